"""The state: its entries are complete, and their routes lead from a home site to where the data are read."""

from collections.abc import Iterator
from datetime import datetime

from optalloc.io.checks_ids import directed_links
from optalloc.io.entries import Entry, Found, repeated

__all__ = ["check_state"]


def check_state(root: Entry) -> Iterator[Found]:
    """Tasks of the state are placed completely, nothing is said twice, routes fit together."""
    state = root.entry("state")
    if not state.content:
        return
    for steps, name in repeated((entry.at("task"), entry.text("task")) for entry in state.entries("tasks")):
        yield steps, f"task {name!r} is in the state already"
    tasks = {task.text("id"): task for task in root.entries("tasks")}
    for entry in state.entries("tasks"):
        yield from _placement(entry)
        task = tasks.get(entry.text("task"))
        if task is not None and entry.given("choice"):
            yield from _choice(entry.entry("choice"), task)
    yield from _transfers_twice(state)
    yield from _routes(root, state)
    yield from _time_zero(state)


def _placement(entry: Entry) -> Iterator[Found]:
    if entry.content.get("rejected") is True:
        if entry.given("choice") or entry.values("segments"):
            yield entry.steps, "a rejected task has neither choice nor segments"
        return
    if not entry.given("choice"):
        yield entry.at("choice"), "is required for a task that is not rejected"
    if len(entry.values("segments")) != 1:
        yield entry.at("segments"), "must hold exactly one segment: a run is not interrupted"
    for segment in entry.entries("segments"):
        start, end = segment.whole("start"), segment.whole("end")
        if start is not None and end is not None and start >= end:
            yield segment.at("end"), f"must be greater than start {start}, got {end}"
        for steps, name in repeated((use.at("node"), use.text("node")) for use in segment.entries("uses")):
            yield steps, f"node {name!r} stands more than once in this list"


def _choice(choice: Entry, task: Entry) -> Iterator[Found]:
    name, modes = choice.text("mode"), {mode.text("id"): mode for mode in task.entries("modes")}
    if modes and not choice.given("mode"):
        yield choice.at("mode"), "is required: the task has explicit modes"
    elif name is not None and name not in modes:
        known = f"; it has {', '.join(map(repr, modes))}" if modes else ", which has no explicit modes"
        yield choice.at("mode"), f"{name!r} is not a mode of the task{known}"
    wanted, given = _number_of_inputs(task, modes.get(name)), len(choice.values("inputs"))
    if wanted is not None and given != wanted:
        yield choice.at("inputs"), f"must name {wanted} datasets, as many as the task reads, got {given}"
    for entry in choice.entries("inputs"):
        access, route = entry.text("access"), entry.given("route")
        if access == "streamed" and not route:
            yield entry.at("route"), "is required for a streamed dataset"
        if access in ("local", "staged") and route:
            yield entry.at("route"), f"belongs to streamed access only, not to {access}"


def _number_of_inputs(task: Entry, mode: Entry | None) -> int | None:
    if task.given("modes"):
        return None if mode is None else len(mode.values("datasets"))
    if task.given("inputs"):
        return len(task.values("inputs"))
    return 0 if task.content.get("datasets") == [] else 1


def _transfers_twice(state: Entry) -> Iterator[Found]:
    pairs = ((t.steps, (t.text("dataset"), t.text("site"))) for t in state.entries("transfers"))
    for steps, (name, site) in repeated(pair for pair in pairs if None not in pair[1]):
        yield steps, f"dataset {name!r} is brought to site {site!r} already; one transfer is enough"


def _routes(root: Entry, state: Entry) -> Iterator[Found]:
    links = directed_links(root)
    homes = {data.text("id"): [site for _, site in data.texts("sites")] for data in root.entries("datasets")}
    for entry, site in _deliveries(root, state):
        name = entry.text("dataset")
        if name not in homes:
            continue
        if entry.text("site") is not None and site in homes[name]:
            message = f"{site!r} is a home site of dataset {name!r}; nothing needs to be brought there"
            yield entry.at("site"), message
        else:
            yield from _route(entry, links, homes[name], site)


def _deliveries(root: Entry, state: Entry) -> Iterator[tuple[Entry, str]]:
    """(entry with dataset and route, site to which the route must lead) of transfers and streams."""
    for transfer in state.entries("transfers"):
        site = transfer.text("site")
        if site is not None:
            yield transfer, site
    site_of = {node.text("id"): node.text("site") for node in root.entries("nodes")}
    for task in state.entries("tasks"):
        uses = [use for segment in task.entries("segments") for use in segment.entries("uses")]
        site = site_of.get(uses[0].text("node")) if uses else None
        for entry in task.entry("choice").entries("inputs"):
            if site is not None and entry.given("route"):
                yield entry, site


def _route(
    entry: Entry, links: dict[str, tuple[str | None, str | None]], homes: list[str], site: str
) -> Iterator[Found]:
    """A route is a chain of links from a home site to ``site``. Unknown links are reported elsewhere."""
    names = [name for _, name in entry.texts("route")]
    if not names or any(name not in links for name in names):
        return
    here = links[names[0]][0]
    if here not in homes:
        message = f"starts at site {here!r}; the dataset is at home at {', '.join(map(repr, homes))}"
        yield entry.at("route", 0), message
    for index, name in enumerate(names):
        start, end = links[name]
        if start != here:
            message = f"link {name!r} starts at {start!r}, but the route has come to {here!r}"
            yield entry.at("route", index), message
            return
        here = end
    if here != site:
        yield entry.at("route"), f"leads to site {here!r}, not to {site!r}"


def _time_zero(state: Entry) -> Iterator[Found]:
    text = state.text("time_zero")
    if text is None:
        return
    try:
        datetime.fromisoformat(text)
    except ValueError:
        example = "2026-01-31T08:00:00Z"
        yield state.at("time_zero"), f"must be a date and time of ISO 8601 such as {example}, got {text!r}"
