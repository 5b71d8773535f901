"""Plan <-> Schedule: decisions are matched by what they say, never by the index of a mode."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from optalloc.problem import ABSENT, ACCESS_NAMES, FREE, REJECTED, STREAMED, Ints, Plan, Problem, Transfer
from optalloc.schedule.model import (
    Choice,
    InputChoice,
    Schedule,
    Segment,
    TaskEntry,
    TransferEntry,
    Use,
    Violation,
)
from optalloc.schedule.names import names

__all__ = ["chain_fault", "resolve", "resolve_transfer", "to_schedule"]


# Plan -> Schedule -------------------------------------------------------------------------------------------
def to_schedule(problem: Problem, plan: Plan, *, sha256: str | None = None) -> Schedule:
    """Write the decisions of a plan down by content.

    Parameters
    ----------
    sha256
        Hash to record; default that of ``problem.instance``.
    """
    if not isinstance(plan, Plan):
        raise TypeError(f"expected a Plan, got {type(plan).__name__}")
    decided = np.flatnonzero((plan.mode >= 0) | (plan.mode == REJECTED)).tolist()
    return Schedule(
        instance=problem.instance.name,
        instance_sha256=problem.instance.sha256 if sha256 is None else sha256,
        tasks=tuple(
            _task_entry(problem, task, int(plan.mode[task]), int(plan.start[task])) for task in decided
        ),
        transfers=tuple(_transfer_entry(problem, transfer) for transfer in plan.transfers),
    )


def _task_entry(problem: Problem, task: int, mode: int, start: int) -> TaskEntry:
    if mode == REJECTED:
        return TaskEntry(problem.task_ids[task], rejected=True)
    uses = tuple(Use(problem.node_ids[r], a) for r, a in problem.uses(mode) if r < problem.num_nodes)
    segment = Segment(uses, start, start + int(problem.duration[mode]))
    return TaskEntry(problem.task_ids[task], choice=_choice(problem, task, mode), segments=(segment,))


def _choice(problem: Problem, task: int, mode: int) -> Choice:
    inputs = []
    for dataset, access, route in problem.inputs(mode):
        links = tuple(problem.link_ids[i] for i in problem.route_links[route]) if access == STREAMED else None
        inputs.append(InputChoice(problem.dataset_ids[dataset], ACCESS_NAMES[access], links))
    explicit = int(problem.explicit[mode])
    if explicit < 0:
        return Choice(tuple(inputs))
    return Choice(tuple(inputs), list(names(problem).explicit[task])[explicit])


def _transfer_entry(problem: Problem, transfer: Transfer) -> TransferEntry:
    route = tuple(problem.link_ids[i] for i in transfer.links)
    return TransferEntry(
        problem.dataset_ids[transfer.dataset], problem.site_ids[transfer.site], route, transfer.start
    )


# Schedule -> Plan -------------------------------------------------------------------------------------------
def resolve(problem: Problem, schedule: Schedule) -> tuple[Plan, tuple[Violation, ...]]:
    """Find the indices behind a Schedule. The state of the instance is added where it is left out.

    Returns
    -------
    The plan, in which a task is FREE if what the Schedule says about it is not possible, and ABSENT if the
    Schedule says nothing; and what is wrong (R1, R2, R7, R11), all of it.
    """
    if not isinstance(schedule, Schedule):
        raise TypeError(f"expected a Schedule, got {type(schedule).__name__}")
    found: list[Violation] = []
    mode, start = _resolve_tasks(problem, schedule, found)
    return Plan(mode, start, _resolve_transfers(problem, schedule, found)), tuple(found)


def _resolve_tasks(problem: Problem, schedule: Schedule, found: list[Violation]) -> tuple[Ints, Ints]:
    mode = np.full(problem.num_tasks, ABSENT, dtype=np.int64)
    start = np.zeros(problem.num_tasks, dtype=np.int64)
    for entry in schedule.tasks:
        task = names(problem).task.get(entry.task)
        if task is None:
            found.append(Violation("R1", (entry.task,), f"task {entry.task!r} is not in the instance"))
        elif mode[task] != ABSENT:
            found.append(Violation("R1", (entry.task,), f"task {entry.task!r} is decided more than once"))
        else:
            mode[task], start[task], fault = _resolve_task(problem, task, entry)
            if fault:
                found.append(Violation("R2", (entry.task,), f"task {entry.task!r}: {fault}"))
    _add_state(problem, mode, start, found)
    return mode, start


def _add_state(problem: Problem, mode: Ints, start: Ints, found: list[Violation]) -> None:
    """A Schedule may leave the tasks of the state out, but not contradict it."""
    in_state = problem.state_mode != FREE
    left_out = in_state & (mode == ABSENT)
    mode[left_out], start[left_out] = problem.state_mode[left_out], problem.state_start[left_out]
    wrong = in_state & (mode != FREE) & ((mode != problem.state_mode) | (start != problem.state_start))
    for task in np.flatnonzero(wrong).tolist():
        mode[task] = FREE
        id = problem.task_ids[task]
        found.append(Violation("R1", (id,), f"task {id!r} is fixed by the state and decided otherwise"))


def _resolve_task(problem: Problem, task: int, entry: TaskEntry) -> tuple[int, int, str]:
    """(mode, start, "") or (FREE, 0, what is wrong)."""
    if entry.rejected:
        return REJECTED, 0, ""
    if entry.choice is None or len(entry.segments) != 1:
        return FREE, 0, f"needs a choice and exactly one segment, has {len(entry.segments)}"
    segment = entry.segments[0]
    mode = _find_mode(problem, task, entry.choice, segment.uses)
    if isinstance(mode, str):
        return FREE, 0, mode
    duration = int(problem.duration[mode])
    if segment.end != segment.start + duration:
        length = segment.end - segment.start
        return (
            FREE,
            0,
            f"runs {length} ticks ({segment.start} to {segment.end}), but its choice takes {duration}",
        )
    return mode, segment.start, ""


def _find_mode(problem: Problem, task: int, choice: Choice, uses: tuple[Use, ...]) -> int | str:
    """The mode that is meant, or what is wrong."""
    inputs = [_resolve_input(problem, given) for given in choice.inputs]
    faults = [given for given in inputs if isinstance(given, str)]
    devices = _resolve_uses(problem, uses)
    explicit = -1 if choice.mode is None else names(problem).explicit[task].get(choice.mode)
    if explicit is None:
        faults.append(f"has no mode {choice.mode!r}")
    if isinstance(devices, str):
        faults.append(devices)
    if faults or isinstance(devices, str) or explicit is None:
        return "; ".join(faults)
    known = [given for given in inputs if not isinstance(given, str)]
    modes = problem.modes_of(task, active=False)
    modes = modes[problem.explicit[modes] == explicit]
    modes = _with_inputs(problem, modes, known)
    for mode in map(int, _with_first_use(problem, modes, devices)):
        if _is_mode(problem, mode, known, devices):
            return mode
    named = "" if choice.mode is None else f"mode {choice.mode!r} with "
    return f"{named}{_describe(choice, uses)} is not one of its modes"


_Input = tuple[int, int, tuple[int, ...] | None]
"""(dataset, access, links of a stream)."""


def _resolve_input(problem: Problem, given: InputChoice) -> _Input | str:
    dataset = names(problem).dataset.get(given.dataset)
    if dataset is None:
        return f"dataset {given.dataset!r} is not in the instance"
    if given.access not in ACCESS_NAMES:
        return f"access {given.access!r} is none of {', '.join(ACCESS_NAMES)}"
    access = ACCESS_NAMES.index(given.access)
    if (given.route is not None) != (access == STREAMED):
        return f"dataset {given.dataset!r}: a route is given for streamed data, and for these only"
    links = tuple(names(problem).link.get(id, -1) for id in given.route) if given.route is not None else None
    if links is not None and -1 in links:
        return f"dataset {given.dataset!r}: no such link in the route {list(given.route or ())}"
    return dataset, access, links


def _resolve_uses(problem: Problem, uses: tuple[Use, ...]) -> list[tuple[int, int]] | str:
    """(node, devices) sorted by node, one entry per node."""
    devices: dict[int, int] = {}
    for use in uses:
        node = names(problem).node.get(use.node)
        if node is None:
            return f"node {use.node!r} is not in the instance"
        devices[node] = devices.get(node, 0) + use.devices
    return sorted(devices.items())


def _with_inputs(problem: Problem, modes: Ints, inputs: list[_Input]) -> Ints:
    """The modes that have these datasets with these kinds of access."""
    first = problem.input_ptr[modes]
    keep = problem.input_ptr[modes + 1] - first == len(inputs)
    modes, first = modes[keep], first[keep]
    for position, (dataset, access, _) in enumerate(inputs):
        at = first + position
        keep = (problem.input_dataset[at] == dataset) & (problem.input_access[at] == access)
        modes, first = modes[keep], first[keep]
    return modes


def _with_first_use(problem: Problem, modes: Ints, devices: list[tuple[int, int]]) -> Ints:
    """The modes whose first use is the first of ``devices``: leaves few to look at one by one."""
    if not devices:
        return modes
    modes = modes[problem.use_ptr[modes + 1] > problem.use_ptr[modes]]
    first = problem.use_ptr[modes]
    node, amount = devices[0]
    return np.asarray(modes[(problem.use_resource[first] == node) & (problem.use_amount[first] == amount)])


def _is_mode(problem: Problem, mode: int, inputs: list[_Input], devices: list[tuple[int, int]]) -> bool:
    """Compare all devices and the routes of streams; datasets and access are known to agree."""
    if [use for use in problem.uses(mode) if use[0] < problem.num_nodes] != devices:
        return False
    routes = [problem.route_links[q] if a == STREAMED else None for _, a, q in problem.inputs(mode)]
    return routes == [links for _, _, links in inputs]


def _describe(choice: Choice, uses: tuple[Use, ...]) -> str:
    data = [
        f"{i.dataset} {i.access}" + (f" over {'>'.join(i.route)}" if i.route else "") for i in choice.inputs
    ]
    devices = [f"{use.devices} of {use.node}" for use in uses]
    return f"{', '.join(data) or 'no data'} on {', '.join(devices) or 'no devices'}"


# transfers --------------------------------------------------------------------------------------------------
def _resolve_transfers(problem: Problem, schedule: Schedule, found: list[Violation]) -> tuple[Transfer, ...]:
    transfers = list(problem.state_transfers)
    repeated = {(t.dataset, t.site, t.links, t.start) for t in problem.state_transfers}
    for entry in schedule.transfers:
        faults = list(_transfer_faults(problem, entry))
        found += faults
        if faults:
            continue
        known = names(problem)
        links = tuple(known.link[id] for id in entry.route)
        dataset, site = known.dataset[entry.dataset], known.site[entry.site]
        if (dataset, site, links, entry.start) in repeated:
            repeated.remove((dataset, site, links, entry.start))
            continue
        transfers.append(resolve_transfer(problem, dataset, site, links, entry.start))
    return tuple(transfers)


def _transfer_faults(problem: Problem, entry: TransferEntry) -> Iterator[Violation]:
    """What keeps a transfer from having any meaning."""
    known = names(problem)
    ids = (entry.dataset, entry.site)
    what = f"transfer of {entry.dataset!r} to {entry.site!r}"
    if entry.dataset not in known.dataset:
        yield Violation("R11", ids, f"{what}: dataset {entry.dataset!r} is not in the instance")
    if entry.site not in known.site:
        yield Violation("R11", ids, f"{what}: site {entry.site!r} is not in the instance")
    unknown = [id for id in entry.route if id not in known.link]
    if unknown or not entry.route:
        yield Violation(
            "R7", (*ids, *unknown), f"{what}: {f'no such link: {unknown}' if unknown else 'no route'}"
        )
        return
    if entry.dataset in known.dataset and entry.site in known.site:
        links = [known.link[id] for id in entry.route]
        dataset, site = known.dataset[entry.dataset], known.site[entry.site]
        fault = chain_fault(problem, dataset, site, links)
        if fault:
            yield Violation("R7", (*ids, *entry.route), f"{what}: {fault}")
        elif site in known.homes[dataset]:
            yield Violation("R11", ids, f"{what}: that site holds the dataset from the start")


def chain_fault(problem: Problem, dataset: int, site: int, links: Sequence[int]) -> str:
    """Why ``links`` is no simple chain from a home of the dataset to the site; empty if it is one."""
    ends = [names(problem).link_ends[link] for link in links]
    if not ends:
        return "there is no route"
    if ends[0][0] not in names(problem).homes[dataset]:
        return f"the route starts at {problem.site_ids[ends[0][0]]!r}, which is no home of the dataset"
    if any(before[1] != after[0] for before, after in pairwise(ends)):
        return "the links of the route do not join"
    if ends[-1][1] != site:
        return f"the route ends at {problem.site_ids[ends[-1][1]]!r}"
    visited = [ends[0][0], *(end for _, end in ends)]
    return "the route visits a site twice" if len(set(visited)) < len(visited) else ""


def resolve_transfer(
    problem: Problem, dataset: int, site: int, links: tuple[int, ...], start: int
) -> Transfer:
    """The transfer with its ticks, cost and channels, over any simple chain of links from a home site."""
    replica = problem.replica_of.get((dataset, site), -1)
    if replica >= 0:
        for route in problem.routes_of(replica):
            if problem.route_links[route] == links:
                return problem.transfer(replica, route, start)
    # A route that compile has dropped because another is no worse may still be used.
    from optalloc.compilation import route_facts

    facts = route_facts(problem, dataset, links)
    return Transfer(dataset, site, links, start, facts.ticks, facts.cost, facts.channels, replica)
