"""Links, calendars of nodes and scaling of models."""

from collections.abc import Iterator, Mapping
from typing import Final

from optalloc.io.entries import Entry, Finite, Found, finite

__all__ = ["PARAMETERS", "check_calendars", "check_links", "check_scaling"]

PARAMETERS: Final[Mapping[str, Mapping[str, tuple[int, int | None]]]] = {
    "linear": {},
    "amdahl": {"f": (0, 1)},
    "affine_log": {"a": (0, None), "b": (0, None), "c": (0, None)},
    "ring": {"gam": (1, 1000), "batch_samples": (0, None)},
}
"""Scaling -> its parameters, all required, each with its least and largest value."""


def check_links(root: Entry) -> Iterator[Found]:
    """A link leads from one site to another."""
    for link in root.entries("links"):
        start, end = link.text("from"), link.text("to")
        if start is not None and start == end:
            yield link.at("to"), f"is the site at which the link starts, {end!r}; it must lead elsewhere"


def check_calendars(root: Entry) -> Iterator[Found]:
    """Windows are not empty, do not overlap and offer no more devices than the node has."""
    for node in root.entries("nodes"):
        windows = []
        for index, (start, end, devices) in _windows(node):
            owned = node.whole("devices")
            if owned is not None and devices > owned:
                message = f"offers {devices} devices of a node that has {owned}"
                yield node.at("availability", index, 2), message
            if start < end:
                windows.append((start, end, index))
            else:
                yield node.at("availability", index), f"must start before it ends, got {start} to {end}"
        yield from _overlaps(node, sorted(windows))


def _windows(node: Entry) -> Iterator[tuple[int, tuple[Finite, Finite, Finite]]]:
    """The well-formed windows of a node, with their positions."""
    for index, row in enumerate(node.values("availability")):
        if isinstance(row, list) and len(row) == 3:
            start, end, devices = map(finite, row)
            if start is not None and end is not None and devices is not None:
                yield index, (start, end, devices)


def _overlaps(node: Entry, windows: list[tuple[Finite, Finite, int]]) -> Iterator[Found]:
    """Windows that begin before an earlier one has ended; ``windows`` are sorted."""
    last_end, last = windows[0][1:] if windows else (0, 0)
    for start, end, index in windows[1:]:
        if start < last_end:
            message = f"overlaps window {min(index, last)} of the same node; split or merge the two"
            yield node.at("availability", max(index, last)), message
        if end > last_end:
            last_end, last = end, index


def check_scaling(root: Entry) -> Iterator[Found]:
    """Scaling models have their parameters, within their ranges, and what they need to know."""
    for model in root.entries("models"):
        scaling = model.entry("scaling")
        name = scaling.text("name")
        if name is not None and name in PARAMETERS:
            yield from _parameters(scaling, name)
    yield from _interconnects(root)


def _parameters(scaling: Entry, name: str) -> Iterator[Found]:
    wanted, given = PARAMETERS[name], scaling.entry("parameters")
    takes = f"{name!r} takes {', '.join(wanted) or 'no parameters'}"
    for key in given.content:
        if key not in wanted:
            yield given.at(key), f"unknown parameter; {takes}"
    for key, (low, high) in wanted.items():
        value = given.number(key)
        if key not in given.content:
            yield given.at(key), f"is required; {takes}"
        elif value is not None and value < low:
            yield given.at(key), f"must be at least {low}, got {value}"
        elif value is not None and high is not None and value > high:
            yield given.at(key), f"must be at most {high}, got {value}"
    if name == "affine_log" and all(given.number(key) == 0 for key in wanted):
        yield given.steps, "a, b and c must not all be 0: work would take no time"
    if name == "ring" and given.number("batch_samples") == 0:
        yield given.at("batch_samples"), "must be greater than 0, got 0"


def _interconnects(root: Entry) -> Iterator[Found]:
    """Gradients of more than 0 GB need an interconnect to travel over."""
    ring = {
        model.text("id")
        for model in root.entries("models")
        if model.entry("scaling").text("name") == "ring" and (model.number("size_gb") or 0) > 0
    }
    rates = ((row.text("device_type"), row.text("model")) for row in root.entries("throughputs"))
    users = {device_type: model for device_type, model in rates if model in ring}
    for device_type in root.entries("device_types"):
        user = users.get(device_type.text("id"))
        zero = device_type.number("interconnect_gbps") == 0 or not device_type.given("interconnect_gbps")
        if user is not None and zero:
            message = f"must be greater than 0: the ring scaling of model {user!r} divides by it"
            yield device_type.at("interconnect_gbps"), message
