"""What is running, staged and bought at tick 0, resolved to modes, starts and transfers."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from optalloc.compilation.routes import RouteFacts, book_of, resolve_route
from optalloc.errors import Fault, InputError
from optalloc.instance import Instance, StateTask, StateTransfer
from optalloc.problem import ACCESS_NAMES, DEVICES, FREE, REJECTED, Bools, Problem, Transfer

__all__ = ["bought_datasets", "rejectable_tasks", "state_tasks", "with_state"]


def state_tasks(instance: Instance) -> dict[str, StateTask]:
    """Task id -> its entry in the state."""
    return {} if instance.state is None else {entry.task: entry for entry in instance.state.tasks}


def bought_datasets(instance: Instance) -> set[str]:
    """Datasets that cost nothing more: bought, or read by a task of the state."""
    if instance.state is None:
        return set()
    read = {
        choice.dataset for entry in instance.state.tasks if entry.choice for choice in entry.choice.inputs
    }
    return read | set(instance.state.purchases)


def with_state(problem: Problem) -> Problem:
    """The problem with the state of its instance resolved.

    Raises
    ------
    InputError
        A task of the state is not in one of its modes, or a transfer is none; all of them are named.
    """
    state = problem.instance.state
    if state is None:
        return problem
    faults: list[Fault] = []
    mode = np.full(problem.num_tasks, FREE, dtype=np.int64)
    start = np.zeros(problem.num_tasks, dtype=np.int64)
    index = {task: position for position, task in enumerate(problem.task_ids)}
    for number, entry in enumerate(state.tasks):
        task = index[entry.task]
        found = _mode_of(problem, task, entry)
        if isinstance(found, str):
            faults.append(Fault(f"state.tasks[{number}]", found))
        else:
            mode[task], start[task] = found
    transfers = list(_transfers(problem, state.transfers, faults))
    if faults:
        raise InputError(faults)
    return replace(problem, state_mode=mode, state_start=start, state_transfers=tuple(transfers))


def _mode_of(problem: Problem, task: int, entry: StateTask) -> tuple[int, int] | str:
    """(mode, start), or what is wrong."""
    if entry.rejected:
        return (REJECTED, 0) if problem.rejectable[task] else f"task {entry.task!r} may not be rejected"
    if len(entry.segments) != 1:
        return f"task {entry.task!r} needs exactly one segment, got {len(entry.segments)}"
    segment = entry.segments[0]
    for mode in problem.modes_of(task, active=False).tolist():
        if _content(problem, mode) == _wanted(problem, entry):
            ends = segment.start + int(problem.duration[mode])
            if segment.end != ends:
                return (
                    f"task {entry.task!r} starts at {segment.start} and must end at {ends}, got {segment.end}"
                )
            return mode, segment.start
    return f"task {entry.task!r} is in none of its modes (memory, sites, utility and budget filter them)"


Content = tuple[str | None, tuple[tuple[str, str, tuple[str, ...] | None], ...], tuple[tuple[str, int], ...]]


def _wanted(problem: Problem, entry: StateTask) -> Content:
    choice = entry.choice
    inputs = () if choice is None else tuple((i.dataset, i.access, i.route) for i in choice.inputs)
    devices: dict[str, int] = {}
    for use in entry.segments[0].uses:
        devices[use.node] = devices.get(use.node, 0) + use.devices
    return (choice.mode if choice else None), inputs, tuple(sorted(devices.items()))


def _content(problem: Problem, mode: int) -> Content:
    """A mode as the state writes it."""
    task = problem.instance.tasks[int(problem.mode_task[mode])]
    explicit = int(problem.explicit[mode])
    name = task.modes[explicit].id if task.modes and explicit >= 0 else None
    inputs = tuple(_input(problem, *entry) for entry in problem.inputs(mode))
    nodes = [(r, amount) for r, amount in problem.uses(mode) if problem.resource_kind[r] == DEVICES]
    return name, inputs, tuple(sorted((problem.node_ids[r], amount) for r, amount in nodes))


def _input(
    problem: Problem, dataset: int, access: int, route: int
) -> tuple[str, str, tuple[str, ...] | None]:
    links = None if route < 0 else tuple(problem.link_ids[link] for link in problem.route_links[route])
    return problem.dataset_ids[dataset], ACCESS_NAMES[access], links


def _transfers(
    problem: Problem, entries: tuple[StateTransfer, ...], faults: list[Fault]
) -> Iterator[Transfer]:
    seen: set[tuple[str, str]] = set()
    for number, entry in enumerate(entries):
        path = f"state.transfers[{number}]"
        try:
            chain, facts, site = resolve_route(book_of(problem), entry.dataset, entry.route)
        except InputError as error:
            faults += [Fault(f"{path}.{fault.path}", fault.message) for fault in error.faults]
            continue
        ends = problem.site_ids[site]
        if ends != entry.site:
            faults.append(Fault(f"{path}.route", f"the route ends at site {ends!r}, not at {entry.site!r}"))
        elif (entry.dataset, entry.site) in seen:
            faults.append(Fault(path, f"a second transfer of {entry.dataset!r} to {entry.site!r}"))
        else:
            seen.add((entry.dataset, entry.site))
            dataset = problem.dataset_ids.index(entry.dataset)
            yield _transfer(problem, dataset, site, chain.links, facts, entry.start)


def _transfer(
    problem: Problem, dataset: int, site: int, links: tuple[int, ...], facts: RouteFacts, start: int
) -> Transfer:
    """A transfer that is paid already."""
    replica = problem.replica_of.get((dataset, site), -1)
    routes = problem.routes_of(replica) if replica >= 0 else range(0)
    route = next((q for q in routes if problem.route_links[q] == links), -1)
    return Transfer(dataset, site, links, start, facts.ticks, 0, facts.channels, replica, route)


def rejectable_tasks(instance: Instance) -> Bools:
    """(J,) has a penalty, is not placed by the state, and all its successors are rejectable."""
    placed = {task for task, entry in state_tasks(instance).items() if not entry.rejected}
    index = {task.id: position for position, task in enumerate(instance.tasks)}
    allowed = np.array(
        [t.reject_penalty is not None and t.id not in placed for t in instance.tasks], dtype=bool
    )
    waiting = [index[task.id] for task in instance.tasks if not allowed[index[task.id]]]
    while waiting:
        for after in instance.tasks[waiting.pop()].after:
            if allowed[index[after.id]]:
                allowed[index[after.id]] = False
                waiting.append(index[after.id])
    return allowed
