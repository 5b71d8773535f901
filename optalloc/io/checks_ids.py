"""Ids: each given once, each reference leads somewhere."""

import difflib
from collections.abc import Iterator, Mapping
from typing import Final

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

REFERENCES: Final = (
    ("links", "from", "sites"),
    ("links", "to", "sites"),
    ("datasets", "sites[]", "sites"),
    ("nodes", "site", "sites"),
    ("nodes", "device_type", "device_types"),
    ("throughputs", "model", "models"),
    ("throughputs", "device_type", "device_types"),
    ("tasks", "model", "models"),
    ("tasks", "datasets[]", "datasets"),
    ("tasks", "sites[]", "sites"),
    ("tasks", "setup_s{}", "device_types"),
    ("tasks.reference", "device_type", "device_types"),
    ("tasks.after", "id", "tasks"),
    ("tasks.inputs", "datasets[]", "datasets"),
    ("tasks.modes", "datasets[]", "datasets"),
    ("tasks.modes.uses", "node", "nodes"),
    ("state", "purchases[]", "datasets"),
    ("state.tasks", "task", "tasks"),
    ("state.tasks.choice.inputs", "dataset", "datasets"),
    ("state.tasks.choice.inputs", "route[]", "links"),
    ("state.tasks.segments.uses", "node", "nodes"),
    ("state.transfers", "dataset", "datasets"),
    ("state.transfers", "site", "sites"),
    ("state.transfers", "route[]", "links"),
)
"""(objects, key inside them, kind of id): ``key[]`` a list of ids, ``key{}`` an object whose keys are ids."""

WITHIN_TASK: Final = (("modes", "id"), ("after", "id"))


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


def objects(root: Entry, way: str) -> Iterator[Entry]:
    """All objects at a dotted way, through lists and single objects."""
    entries = [root]
    for key in way.split("."):
        entries = [inner for entry in entries for inner in _inside(entry, key)]
    yield from entries


def _inside(entry: Entry, key: str) -> Iterator[Entry]:
    return iter([entry.entry(key)]) if isinstance(entry.content.get(key), Mapping) else entry.entries(key)


def check_ids(root: Entry) -> Iterator[Found]:
    """Ids are unique per kind, modes and predecessors per task, and lists of ids name each once."""
    for kind, word in KINDS.items():
        yield from _ids_twice(root, kind, "id", f"another {word} has the id")
    for task in root.entries("tasks"):
        yield from _ids_twice(task, "modes", "id", "another mode of this task has the id")
        yield from _ids_twice(task, "after", "id", "this task already comes after")
        for mode in task.entries("modes"):
            yield from _ids_twice(mode, "uses", "node", "this mode already uses node")
        for steps, count in repeated(
            (task.at("device_counts", i), n)
            for i, n in enumerate(task.values("device_counts"))
            if isinstance(n, int)
        ):
            yield steps, f"{count} stands more than once in this list"
    yield from _twins(root)
    for way, key, _ in REFERENCES:
        if key.endswith("[]") and key != "route[]":
            for entry in objects(root, way):
                for steps, name in repeated(entry.texts(key.removesuffix("[]"))):
                    yield steps, f"{name!r} stands more than once in this list"
    pairs = ((t.steps, (t.text("model"), t.text("device_type"))) for t in root.entries("throughputs"))
    for steps, (model, device_type) in repeated(pair for pair in pairs if None not in pair[1]):
        yield steps, f"the rates of {model!r} on {device_type!r} are given already; merge the two"


def _ids_twice(owner: Entry, key: str, name: str, message: str) -> Iterator[Found]:
    given = ((entry.at(name), text) for entry in owner.entries(key) if (text := entry.text(name)) is not None)
    for steps, text in repeated(given):
        yield steps, f"{message} {text!r}"


def _twins(root: Entry) -> Iterator[Found]:
    """The twin of a both_ways link takes an id of its own."""
    twins = {
        f"{link.text('id')}{BACK}" for link in root.entries("links") if link.content.get("both_ways") is True
    }
    for link in root.entries("links"):
        if link.text("id") in twins:
            name = str(link.text("id"))
            message = (
                f"{name!r} is also the return direction of the both_ways link {name.removesuffix(BACK)!r}"
            )
            yield link.at("id"), f"{message}; choose another id"


def check_references(root: Entry) -> Iterator[Found]:
    """Every id that is referred to exists."""
    known = {kind: ids(root, kind) for kind in KINDS}
    for way, key, kind in REFERENCES:
        for entry in objects(root, way):
            for steps, name in _references(entry, key):
                if name not in known[kind]:
                    yield steps, f"no {KINDS[kind]} has the id {name!r}{_hint(name, known[kind])}"


def _references(entry: Entry, key: str) -> Iterator[tuple[Steps, str]]:
    if key.endswith("[]"):
        yield from entry.texts(key.removesuffix("[]"))
    elif key.endswith("{}"):
        yield from entry.keys(key.removesuffix("{}"))
    else:
        name = entry.text(key)
        if name is not None:
            yield entry.at(key), name


def _hint(name: str, known: set[str]) -> str:
    # Looking for similar names is quadratic in their number: only where people still read the list.
    close = difflib.get_close_matches(name, sorted(known), n=1) if len(known) <= 1000 else []
    if close:
        return f"; did you mean {close[0]!r}?"
    if not known:
        return "; there are none"
    return f"; known: {', '.join(map(repr, sorted(known)))}" if len(known) <= 8 else ""
