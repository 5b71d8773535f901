"""Tasks: keys that belong together, explicit modes, precedence, rejection."""

from collections.abc import Iterator, Mapping
from typing import Final

from optalloc.io.entries import Entry, Found, join

__all__ = ["check_cycles", "check_modes", "check_rejection", "check_tasks"]

PHYSICS: Final = (
    "model", "domain", "samples", "reference_hours", "reference", "device_counts", "memory_gb_per_device",
    "extra", "setup_s", "datasets", "inputs", "kappa",
)  # fmt: skip
"""Keys from which modes are made; senseless beside modes that are written out."""

CHARGING: Final = ("late", "rejected", "utility_loss")
"""Terms that a rejected task adds to."""


def check_tasks(root: Entry) -> Iterator[Found]:
    """A task says what it is either by physics or by modes, and its work in one way."""
    for task in root.entries("tasks"):
        if task.given("modes"):
            for key in PHYSICS:
                if task.content.get(key) not in (None, 0, {}):
                    yield task.at(key), "has no meaning beside explicit modes; leave it out"
        else:
            yield from _physics(task)


def _physics(task: Entry) -> Iterator[Found]:
    if not task.given("model"):
        yield task.at("model"), "is required for a task without explicit modes"
    if task.given("samples") and task.given("reference_hours"):
        yield (
            task.at("reference_hours"),
            "gives the work a second time; keep either samples or reference_hours",
        )
    if not task.given("samples") and not task.given("reference_hours"):
        yield task.at("samples"), "the work is missing: give samples, or reference_hours with reference"
    if task.given("reference_hours") and not task.given("reference"):
        yield task.at("reference"), "is required with reference_hours: {device_type, devices}"
    if task.given("reference") and not task.given("reference_hours"):
        yield task.at("reference"), "belongs to reference_hours, which is missing"
    if task.given("inputs") and task.given("datasets"):
        yield task.at("datasets"), "is the shorthand for one input; leave it out beside inputs"


def check_modes(root: Entry) -> Iterator[Found]:
    """Explicit modes that read data stay at one site: there would be no telling where the data are read."""
    site_of = {node.text("id"): node.text("site") for node in root.entries("nodes")}
    for task in root.entries("tasks"):
        for mode in task.entries("modes"):
            sites = dict.fromkeys(site_of.get(use.text("node")) for use in mode.entries("uses"))
            known = [site for site in sites if site is not None]
            if mode.values("datasets") and len(known) > 1:
                message = f"reads data and uses nodes at several sites ({join(known)}); keep to one site"
                yield mode.at("uses"), message


def check_cycles(root: Entry) -> Iterator[Found]:
    """No task waits for itself."""
    before: dict[str, dict[str, None]] = {}
    where = {}
    for task in root.entries("tasks"):
        name = task.text("id")
        if name is not None and name not in before and task.values("after"):
            where[name] = task.at("after")
            before[name] = dict.fromkeys(
                text for after in task.entries("after") if (text := after.text("id"))
            )
    while cycle := _cycle(before):
        shown = cycle if len(cycle) <= 12 else [*cycle[:11], "...", cycle[-1]]
        yield where[cycle[0]], f"tasks wait for each other in a circle: {' after '.join(map(repr, shown))}"
        for name in cycle:
            before.pop(name, None)


def _cycle(before: Mapping[str, Mapping[str, None]]) -> list[str]:
    """Some cycle of a precedence relation, its first task repeated at the end; empty if there is none.

    Tasks with nothing left to wait for are taken away until none is; from any task that remains, following
    predecessors that remain must come back to a task seen before.
    """
    waiting = {name: sum(other in before for other in others) for name, others in before.items()}
    successors: dict[str, list[str]] = {}
    for name, others in before.items():
        for other in others:
            successors.setdefault(other, []).append(name)
    free = [name for name, count in waiting.items() if count == 0]
    while free:
        name = free.pop()
        del waiting[name]
        for successor in successors.get(name, ()):
            waiting[successor] -= 1
            if waiting[successor] == 0:
                free.append(successor)
    if not waiting:
        return []
    way: dict[str, None] = {}
    name = next(iter(waiting))
    while name not in way:
        way[name] = None
        name = next(other for other in before[name] if other in waiting)
    seen = list(way)
    return [*seen[seen.index(name) :], name]


def check_rejection(root: Entry) -> Iterator[Found]:
    """Where tasks may be rejected, some level charges for it: else an empty plan would be best."""
    objective = root.entry("objective")
    levels = list(objective.entries("levels"))
    malformed = len(levels) < len(objective.values("levels"))
    malformed |= not isinstance(root.content.get("objective", {}), dict)
    if malformed or any(level.content.get(term, 0) != 0 for level in levels for term in CHARGING):
        return
    names = _rejectable(root)
    if names:
        terms = " or ".join(CHARGING)
        message = f"tasks may be rejected ({join(names)}) but no level charges for it: give {terms}"
        yield (
            objective.at("levels") if levels else objective.steps,
            f"{message} a weight, or drop reject_penalty",
        )


def _rejectable(root: Entry) -> list[str]:
    """Tasks with a penalty that neither run already nor come before a task that must run."""
    running = {entry.text("task") for entry in root.entry("state").entries("tasks")}
    tasks = {name: task for task in root.entries("tasks") if (name := task.text("id")) is not None}
    waiting = [name for name, task in tasks.items() if not task.given("reject_penalty") or name in running]
    must = set(waiting)
    while waiting:
        for after in tasks[waiting.pop()].entries("after"):
            name = after.text("id")
            if name in tasks and name not in must:
                must.add(name)
                waiting.append(name)
    return [name for name in tasks if name not in must]
