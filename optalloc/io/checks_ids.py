"""Ids: each given once, each reference leads somewhere."""

import difflib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from optalloc.io.entries import Entry, Found, Steps, repeated

__all__ = ["BACK", "check_ids", "check_references", "directed_links", "ids"]

BACK: Final = ":back"
"""Ending of the id of a both_ways link's twin."""

KINDS: Final[Mapping[str, str]] = {
    "sites": "site",
    "links": "link",
    "datasets": "dataset",
    "device_types": "device type",
    "nodes": "node",
    "models": "model",
    "tasks": "task",
}

USES: Final = {"uses": {"node": "nodes"}}
REFERENCES: Final[Mapping[str, Any]] = {
    "links": {"from": "sites", "to": "sites"},
    "datasets": {"sites": "sites"},
    "nodes": {"site": "sites", "device_type": "device_types"},
    "throughputs": {"model": "models", "device_type": "device_types"},
    "tasks": {
        "model": "models",
        "datasets": "datasets",
        "sites": "sites",
        "setup_s": "device_types",
        "reference": {"device_type": "device_types"},
        "after": {"id": "tasks"},
        "inputs": {"datasets": "datasets"},
        "modes": {"datasets": "datasets", **USES},
    },
    "state": {
        "purchases": "datasets",
        "tasks": {
            "task": "tasks",
            "choice": {"inputs": {"dataset": "datasets", "route": "links"}},
            "segments": USES,
        },
        "transfers": {"dataset": "datasets", "site": "sites", "route": "links"},
    },
}
"""Key -> kind of the ids it holds (one, a list, or the keys of an object), or what is inside it."""

LISTS: Final[Mapping[str, Any]] = {
    "datasets": {"sites": "site"},
    "tasks": {
        "datasets": "dataset",
        "sites": "site",
        "device_counts": "count",
        "inputs": {"datasets": "dataset"},
        "modes": {"datasets": "dataset"},
    },
    "state": {"purchases": "dataset"},
}
"""Lists that name each thing once -> what they name."""


def ids(root: Entry, kind: str) -> set[str]:
    """All ids of a kind; for links the twins of both_ways links too."""
    if kind == "links":
        return set(directed_links(root))
    return {name for entry in root.entries(kind) if (name := entry.text("id")) is not None}


def directed_links(root: Entry) -> dict[str, tuple[str | None, str | None]]:
    """Link id -> (from, to), twins included."""
    links = {}
    for link in root.entries("links"):
        name = link.text("id")
        if name is not None:
            links[name] = (link.text("from"), link.text("to"))
            if link.content.get("both_ways") is True:
                links[name + BACK] = (link.text("to"), link.text("from"))
    return links


def marked(content: dict[str, Any], marks: Mapping[str, Any]) -> Iterator[tuple[Steps, Any, str]]:
    """(steps, value, mark) of everything in ``content`` that ``marks`` has a word for (lists whole)."""
    for key, mark in marks.items():
        value = content.get(key)
        if not value:
            continue
        if isinstance(mark, str):
            yield (key,), value, mark
        elif isinstance(value, dict):
            for steps, inner, word in marked(value, mark):
                yield (key, *steps), inner, word
        elif isinstance(value, list):
            for index, entry in enumerate(value):
                if isinstance(entry, dict):
                    for steps, inner, word in marked(entry, mark):
                        yield (key, index, *steps), inner, word


def check_ids(root: Entry) -> Iterator[Found]:
    """Ids are unique per kind, modes and predecessors per task; lists name each thing once."""
    for kind, word in KINDS.items():
        yield from _ids_twice(root, kind, "id", f"another {word} has the id")
    for task in root.entries("tasks"):
        yield from _ids_twice(task, "after", "id", "this task already comes after")
        if task.given("modes"):
            yield from _ids_twice(task, "modes", "id", "another mode of this task has the id")
            for mode in task.entries("modes"):
                yield from _ids_twice(mode, "uses", "node", "this mode already uses node")
    for steps, values, word in marked(root.content, LISTS):
        if isinstance(values, list) and len(values) > 1:
            plain = ((index, value) for index, value in enumerate(values) if isinstance(value, str | int))
            for index, value in repeated(plain):
                yield (*steps, index), f"{word} {value!r} stands more than once in this list"
    yield from _twins(root)
    yield from _rates_twice(root)


def _rates_twice(root: Entry) -> Iterator[Found]:
    rows = root.entries("throughputs")
    pairs = ((row.steps, (row.text("model"), row.text("device_type"))) for row in rows)
    for steps, (model, device_type) in repeated(pair for pair in pairs if None not in pair[1]):
        yield steps, f"the rates of {model!r} on {device_type!r} are given already; merge the two"


def _ids_twice(owner: Entry, key: str, name: str, message: str) -> Iterator[Found]:
    if len(owner.values(key)) < 2:
        return
    given = ((entry.at(name), text) for entry in owner.entries(key) if (text := entry.text(name)) is not None)
    for steps, text in repeated(given):
        yield steps, f"{message} {text!r}"


def _twins(root: Entry) -> Iterator[Found]:
    """The twin of a both_ways link takes an id of its own."""
    both_ways = (link for link in root.entries("links") if link.content.get("both_ways") is True)
    twins = {f"{link.text('id')}{BACK}" for link in both_ways}
    for link in root.entries("links"):
        name = link.text("id")
        if name is not None and name in twins:
            owner = name.removesuffix(BACK)
            yield link.at("id"), f"{name!r} is the way back of both_ways link {owner!r}; choose another id"


def check_references(root: Entry) -> Iterator[Found]:
    """Every id that is referred to exists."""
    known = {kind: ids(root, kind) for kind in KINDS}
    for steps, value, kind in marked(root.content, REFERENCES):
        names = known[kind]
        if isinstance(value, str):
            if value not in names:
                yield steps, _dangling(value, kind, names)
        elif isinstance(value, list | dict):
            for step, name in enumerate(value):
                if isinstance(name, str) and name not in names:
                    inside = step if isinstance(value, list) else name
                    yield (*steps, inside), _dangling(name, kind, names)


def _dangling(name: str, kind: str, known: set[str]) -> str:
    return f"no {KINDS[kind]} has the id {name!r}{_hint(name, known)}"


def _hint(name: str, known: set[str]) -> str:
    # Looking for similar names is quadratic in their number: only where people still read the list.
    close = difflib.get_close_matches(name, sorted(known), n=1) if len(known) <= 1000 else []
    if close:
        return f"; did you mean {close[0]!r}?"
    if not known:
        return "; there are none"
    return f"; known: {', '.join(map(repr, sorted(known)))}" if len(known) <= 8 else ""
