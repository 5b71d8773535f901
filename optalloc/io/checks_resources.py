"""Links, calendars of nodes and scaling of models."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from itertools import pairwise
from typing import Final

from optalloc.io.entries import Entry, Found, finite

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
        if "from_" in link.content:
            yield link.at("from_"), "unknown key; in a file it is written 'from'"
        if link.text("from") is not None and link.text("from") == link.text("to"):
            yield (
                link.at("to"),
                f"is the site {link.text('to')!r} at which the link starts; it must lead elsewhere",
            )


def check_calendars(root: Entry) -> Iterator[Found]:
    """Windows are not empty, do not overlap and offer no more devices than the node has."""
    for node in root.entries("nodes"):
        windows = []
        for index, row in enumerate(node.values("availability")):
            values = (
                [finite(value) for value in row]
                if isinstance(row, list | tuple) and len(row) == 3
                else [None]
            )
            if None in values:
                continue
            start, end, devices = values
            steps = node.at("availability", index)
            owned = node.whole("devices")
            if owned is not None and devices > owned:  # type: ignore[operator]
                yield (*steps, 2), f"offers {devices} devices of a node that has {owned}"
            if start >= end:  # type: ignore[operator]
                yield steps, f"must start before it ends, got {start} to {end}"
            else:
                windows.append((start, end, index))
        windows.sort()
        for (_, end, first), (start, _, second) in pairwise(windows):
            if start < end:  # type: ignore[operator]
                later, earlier = max(first, second), min(first, second)
                yield (
                    node.at("availability", later),
                    f"overlaps window {earlier} of the same node; split or merge them",
                )


def check_scaling(root: Entry) -> Iterator[Found]:
    """Scaling models have their parameters, within their ranges, and what they need to know."""
    models = {}
    for model in root.entries("models"):
        scaling = model.entry("scaling")
        name = scaling.text("name")
        if name in PARAMETERS:
            yield from _parameters(scaling, name)
            if name == "ring" and (model.number("size_gb") or 0) > 0:
                models[model.text("id")] = model
    yield from _interconnects(root, models)


def _parameters(scaling: Entry, name: str) -> Iterator[Found]:
    wanted, given = PARAMETERS[name], scaling.entry("parameters")
    takes = f"{name!r} takes {', '.join(wanted) or 'no parameters'}"
    for steps, key in scaling.keys("parameters"):
        if key not in wanted:
            yield steps, f"unknown parameter; {takes}"
    for key, (low, high) in wanted.items():
        value = given.number(key)
        if key not in given.content:
            yield given.at(key), f"is required; {takes}"
        elif value is not None and (value < low or (high is not None and value > high)):
            yield given.at(key), f"must be in [{low}, {'...' if high is None else high}], got {value}"
    numbers = [given.number(key) for key in wanted]
    if name == "affine_log" and all(value == 0 for value in numbers):
        yield given.steps, "a, b and c must not all be 0: no work would take no time"
    if name == "ring" and given.number("batch_samples") == 0:
        yield given.at("batch_samples"), "must be greater than 0, got 0"


def _interconnects(root: Entry, ring: Mapping[str | None, Entry]) -> Iterator[Found]:
    """Gradients of more than 0 GB need an interconnect to travel over."""
    used = {
        row.text("device_type"): row.text("model")
        for row in root.entries("throughputs")
        if row.text("model") in ring
    }
    for device_type in root.entries("device_types"):
        name = device_type.text("id")
        speed: int | float | Decimal | None = device_type.number("interconnect_gbps")
        missing = speed == 0 or "interconnect_gbps" not in device_type.content
        if name is not None and name in used and missing:
            needed = f"must be greater than 0: the ring scaling of model {used[name]!r} divides by it"
            yield device_type.at("interconnect_gbps"), needed
