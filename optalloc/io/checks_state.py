"""The state: what it names exists, and its entries are complete."""

from collections.abc import Iterator
from datetime import datetime

from optalloc.io.checks_ids import directed_links
from optalloc.io.entries import Entry, Found, Steps, repeated

__all__ = ["check_state"]


def check_state(root: Entry) -> Iterator[Found]:
    """Tasks of the state are placed completely, routes lead from a home site, nothing is said twice."""
    state = root.entry("state")
    tasks = {task.text("id"): task for task in root.entries("tasks")}
    sites_of_nodes = {node.text("id"): node.text("site") for node in root.entries("nodes")}
    for steps, name in repeated((e.at("task"), e.text("task")) for e in state.entries("tasks")):
        yield steps, f"task {name!r} is in the state already"
    for entry in state.entries("tasks"):
        yield from _placement(entry)
        task = tasks.get(entry.text("task"))
        if task is not None:
            yield from _choice(entry.entry("choice"), task)
    yield from _transfers(root, state)
    yield from _streams(root, state, sites_of_nodes)
    yield from _time_zero(state)


def _placement(entry: Entry) -> Iterator[Found]:
    if entry.content.get("rejected") is True:
        if entry.given("choice") or entry.values("segments"):
            yield entry.steps, "a rejected task has neither choice nor segments"
        return
    if not entry.given("choice"):
        yield entry.at("choice"), "is required for a task that is not rejected"
    segments = list(entry.entries("segments"))
    if len(entry.values("segments")) != 1:
        yield entry.at("segments"), "must hold exactly one segment: a run is not interrupted"
    for segment in segments:
        start, end = segment.whole("start"), segment.whole("end")
        if start is not None and end is not None and start >= end:
            yield segment.at("end"), f"must be greater than start {start}, got {end}"
        for steps, name in repeated((use.at("node"), use.text("node")) for use in segment.entries("uses")):
            yield steps, f"node {name!r} stands more than once in this list"


def _choice(choice: Entry, task: Entry) -> Iterator[Found]:
    name, modes = choice.text("mode"), {mode.text("id"): mode for mode in task.entries("modes")}
    chosen = modes.get(name)
    if modes and choice.steps and name is None and choice.content:
        yield choice.at("mode"), "is required: the task has explicit modes"
    if name is not None and chosen is None:
        known = f"; it has {', '.join(map(repr, modes))}" if modes else ", which has no explicit modes"
        yield choice.at("mode"), f"{name!r} is not a mode of the task{known}"
    if choice.content and "inputs" in choice.content:
        wanted = _number_of_inputs(task, chosen)
        if wanted is not None and len(choice.values("inputs")) != wanted:
            yield choice.at("inputs"), f"must have {wanted} entries, as the task has inputs"
    for entry in choice.entries("inputs"):
        access, route = entry.text("access"), entry.given("route")
        if access == "streamed" and not route:
            yield entry.at("route"), "is required for a streamed dataset"
        if access in ("local", "staged") and route:
            yield (
                entry.at("route"),
                "belongs to streamed access only; a staged dataset comes by one of the transfers",
            )


def _number_of_inputs(task: Entry, mode: Entry | None) -> int | None:
    if task.given("modes"):
        return None if mode is None else len(mode.values("datasets"))
    if task.given("inputs"):
        return len(task.values("inputs"))
    return 0 if task.content.get("datasets") == [] else 1


def _transfers(root: Entry, state: Entry) -> Iterator[Found]:
    homes = {data.text("id"): {site for _, site in data.texts("sites")} for data in root.entries("datasets")}
    pairs = ((t.steps, (t.text("dataset"), t.text("site"))) for t in state.entries("transfers"))
    for steps, (name, site) in repeated(pair for pair in pairs if None not in pair[1]):
        yield steps, f"dataset {name!r} is brought to site {site!r} already; one transfer is enough"
    for transfer in state.entries("transfers"):
        name, site = transfer.text("dataset"), transfer.text("site")
        if name in homes and site in homes[name]:
            yield (
                transfer.at("site"),
                f"{site!r} is a home site of dataset {name!r}; nothing needs to be brought there",
            )
        elif name in homes and site is not None:
            yield from _route(root, transfer.at("route"), transfer, homes[name], site)


def _streams(root: Entry, state: Entry, site_of: dict[str | None, str | None]) -> Iterator[Found]:
    homes = {data.text("id"): {site for _, site in data.texts("sites")} for data in root.entries("datasets")}
    for task in state.entries("tasks"):
        uses = [use for segment in task.entries("segments") for use in segment.entries("uses")]
        site = site_of.get(uses[0].text("node")) if uses else None
        for entry in task.entry("choice").entries("inputs"):
            name = entry.text("dataset")
            if entry.given("route") and name in homes and site is not None:
                yield from _route(root, entry.at("route"), entry, homes[name], site)


def _route(root: Entry, steps: Steps, owner: Entry, homes: set[str], site: str) -> Iterator[Found]:
    """A route is a chain of links from a home site to ``site``. Unknown links are told elsewhere."""
    links = directed_links(root)
    names = [name for _, name in owner.texts("route")]
    if not names or any(name not in links for name in names):
        return
    here = links[names[0]][0]
    if here not in homes:
        yield (
            (*steps, 0),
            f"starts at site {here!r}; the dataset is at home at {', '.join(map(repr, sorted(homes)))}",
        )
    for index, name in enumerate(names):
        start, end = links[name]
        if start != here:
            yield (*steps, index), f"link {name!r} starts at {start!r}, the route has come to {here!r}"
            return
        here = end
    if here != site:
        yield steps, f"leads to site {here!r}, not to {site!r}"


def _time_zero(state: Entry) -> Iterator[Found]:
    text = state.text("time_zero")
    if text is None:
        return
    try:
        datetime.fromisoformat(text)
    except ValueError:
        yield (
            state.at("time_zero"),
            f"must be a date and time of ISO 8601 such as 2026-01-31T08:00:00Z, got {text!r}",
        )
