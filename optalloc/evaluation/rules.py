"""The rules R1 to R11 of docs/model.md. Each looks at the plan by itself and lists all that breaks it."""

import math
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction

import numpy as np

from optalloc.evaluation.capacity import Overload, overloads
from optalloc.evaluation.facts import facts
from optalloc.evaluation.terms import plan_term
from optalloc.evaluation.view import View
from optalloc.problem import ABSENT, CHANNEL, DEVICES, EXTRA, FREE, NEVER, REJECTED, SEATS, Transfer
from optalloc.schedule.conversion import chain_fault, resolve_transfer
from optalloc.schedule.model import Violation

__all__ = ["RULES"]


def placed_once(view: View) -> Iterator[Violation]:
    """R1: each task is placed once or, if rejectable, rejected; a task after a rejected one is rejected."""
    problem, mode = view.problem, view.plan.mode
    for task in np.flatnonzero(view.scope.exists & ((mode == ABSENT) | (mode == FREE))).tolist():
        id = problem.task_ids[task]
        yield Violation("R1", (id,), f"task {id!r} is neither placed nor rejected")
    for task in np.flatnonzero(~view.scope.exists & (mode != ABSENT)).tolist():
        id = problem.task_ids[task]
        yield Violation("R1", (id,), f"task {id!r} does not exist in this solve")
    for task in np.flatnonzero(view.scope.exists & (mode == REJECTED) & ~problem.rejectable).tolist():
        id = problem.task_ids[task]
        yield Violation("R1", (id,), f"task {id!r} is rejected but must run")
    yield from _placed_after_rejected(view)


def _placed_after_rejected(view: View) -> Iterator[Violation]:
    problem = view.problem
    rejected = view.scope.exists & (view.plan.mode == REJECTED)
    follower = np.repeat(np.arange(problem.num_tasks), np.diff(problem.pred_ptr))
    for at in np.flatnonzero(rejected[problem.pred_task] & view.has_mode[follower]).tolist():
        id, before = problem.task_ids[follower[at]], problem.task_ids[problem.pred_task[at]]
        yield Violation("R1", (id, before), f"task {id!r} is placed after {before!r}, which is rejected")


def own_mode(view: View) -> Iterator[Violation]:
    """R2: the choice of a task is one of its modes."""
    problem, mode = view.problem, view.plan.mode
    undecided = np.isin(mode, (ABSENT, FREE, REJECTED))
    for task in np.flatnonzero(view.scope.exists & ~undecided & ~view.has_mode).tolist():
        id = problem.task_ids[task]
        yield Violation("R2", (id,), f"task {id!r}: mode {mode[task]} is not one of its modes")


def in_window(view: View) -> Iterator[Violation]:
    """R3: release <= start and end <= deadline; runs of the state are exempt."""
    release, deadline = view.problem.release[view.task], view.problem.deadline[view.task]
    for at in np.flatnonzero(~view.exempt & (view.start < release)).tolist():
        id = view.task_id(at)
        message = f"task {id!r} starts at {view.start[at]}, before its release at {release[at]}"
        yield Violation("R3", (id,), message)
    for at in np.flatnonzero(~view.exempt & (view.end > deadline)).tolist():
        id = view.task_id(at)
        yield Violation(
            "R3", (id,), f"task {id!r} ends at {view.end[at]}, after its deadline at {deadline[at]}"
        )


def in_order(view: View) -> Iterator[Violation]:
    """R4: start >= end of each predecessor + lag."""
    problem, start, end = view.problem, view.plan.start, view.end_of
    follower = np.repeat(np.arange(problem.num_tasks), np.diff(problem.pred_ptr))
    pred, lag = problem.pred_task, problem.pred_lag
    both = view.has_mode[follower] & view.has_mode[pred]
    for at in np.flatnonzero(both & (start[follower] < end[pred] + lag)).tolist():
        id, before = problem.task_ids[follower[at]], problem.task_ids[pred[at]]
        wait = f" plus a lag of {lag[at]}" if lag[at] else ""
        early = f"task {id!r} starts at {start[follower[at]]}"
        message = f"{early}, before the end of {before!r} at {end[pred[at]]}{wait}"
        yield Violation("R4", (id, before), message)


def within_nodes(view: View) -> Iterator[Violation]:
    """R5: devices and extra capacities of a node suffice at every tick; outside its availability are none."""
    for over in overloads(view, (DEVICES, EXTRA)):
        node = view.problem.node_ids[view.problem.resource_owner[over.resource]]
        yield _overloaded(view, "R5", node, over)


def within_links(view: View) -> Iterator[Violation]:
    """R7: no link carries more transfers and streams than it has channels; routes are what they say."""
    for over in overloads(view, (CHANNEL,)):
        link = view.problem.link_ids[view.problem.resource_owner[over.resource]]
        yield _overloaded(view, "R7", link, over)
    for transfer in view.new_transfers:
        fault = _route_fault(view, transfer)
        if fault:
            dataset, site = view.pair(transfer)
            yield Violation("R7", (dataset, site), f"transfer of {dataset!r} to {site!r}: {fault}")


def _route_fault(view: View, transfer: Transfer) -> str:
    """How a transfer differs from what its links make of it; empty if it does not."""
    problem, dataset, site, links = view.problem, transfer.dataset, transfer.site, transfer.links
    fault = chain_fault(problem, dataset, site, links)
    if fault or (dataset, site) in facts(problem).home:  # the latter breaks R11
        return fault
    meant = resolve_transfer(problem, dataset, site, links, transfer.start)
    if (transfer.ticks, transfer.cost) != (meant.ticks, meant.cost):
        given = f"not {transfer.ticks} and {transfer.cost}"
        return f"its route takes {meant.ticks} ticks and costs {meant.cost}, {given}"
    return (
        "" if set(transfer.channels) == set(meant.channels) else "it holds other channels than its route has"
    )


def within_seats(view: View) -> Iterator[Violation]:
    """R9: no more runs read a dataset at a time than it has licence seats."""
    for over in overloads(view, (SEATS,)):
        dataset = view.problem.dataset_ids[view.problem.resource_owner[over.resource]]
        yield _overloaded(view, "R9", dataset, over)


def _overloaded(view: View, rule: str, id: str, over: Overload) -> Violation:
    holders = [view.task_id(run) for run in over.runs]
    for index in over.transfers:
        holders.extend(view.pair(view.plan.transfers[index]))
    where = f"{view.problem.resource_label[over.resource]} at tick {over.tick}"
    message = f"{where}: {over.used} used, capacity {over.capacity} (until tick {over.until})"
    return Violation(rule, (id, *dict.fromkeys(holders)), message)


def data_there(view: View) -> Iterator[Violation]:
    """R6: accesses and transfers start when the data are available; staged data arrive before the start."""
    available = view.problem.available[view.mode]
    reads = view.problem.input_ptr[view.mode + 1] > view.problem.input_ptr[view.mode]
    for at in np.flatnonzero(reads & ~view.exempt & (view.start < available)).tolist():
        id = view.task_id(at)
        message = f"task {id!r} starts at {view.start[at]}, before its data are available at {available[at]}"
        yield Violation("R6", (id,), message)
    for transfer in view.new_transfers:
        first = int(facts(view.problem).available[transfer.dataset])
        if transfer.start < first:
            dataset, site = view.pair(transfer)
            what = f"transfer of {dataset!r} to {site!r} starts at {transfer.start}"
            yield Violation("R6", (dataset, site), f"{what}, before {dataset!r} is available at {first}")
    yield from _not_arrived(view)


def _not_arrived(view: View) -> Iterator[Violation]:
    problem = view.problem
    arrival = np.full(problem.num_replicas, NEVER, dtype=np.int64)
    for transfer in view.plan.transfers:
        replica = view.replica(transfer)
        if replica >= 0:
            arrival[replica] = min(arrival[replica], transfer.end)
    which, replicas = view.needs
    for at in np.flatnonzero(~view.exempt[which] & (view.start[which] < arrival[replicas])).tolist():
        run, replica = int(which[at]), int(replicas[at])
        id, dataset = view.task_id(run), problem.dataset_ids[problem.replica_dataset[replica]]
        site = problem.site_ids[problem.replica_site[replica]]
        message = f"task {id!r} starts at {view.start[run]} and reads {dataset!r} staged at {site!r}, which"
        when = "is never brought there" if arrival[replica] == NEVER else f"arrives at {arrival[replica]}"
        yield Violation("R6", (id, dataset, site), f"{message} {when}")


def within_storage(view: View) -> Iterator[Violation]:
    """R8: replicas fit the site's storage from the start of a transfer to the end of the last reader."""
    by_site: dict[int, list[tuple[int, int, Transfer]]] = {}
    for transfer in view.plan.transfers:
        until = max(transfer.end, view.last_reader.get(view.replica(transfer), transfer.end))
        if until > 0:
            by_site.setdefault(transfer.site, []).append((max(transfer.start, 0), until, transfer))
    for site, held in by_site.items():
        room = facts(view.problem).storage_gb[site]
        if room is not None:
            yield from _overfull(view, site, room, held)


def _overfull(
    view: View, site: int, room: Fraction, held: list[tuple[int, int, Transfer]]
) -> Iterator[Violation]:
    """One violation per longest interval in which the replicas do not fit."""
    sizes = facts(view.problem).size_gb
    unit = math.lcm(room.denominator, *(sizes[transfer.dataset].denominator for _, _, transfer in held))
    steps: dict[int, int] = {}
    for start, end, transfer in held:
        steps[start] = steps.get(start, 0) + int(sizes[transfer.dataset] * unit)
        steps[end] = steps.get(end, 0) - int(sizes[transfer.dataset] * unit)
    used, began, held_then = 0, None, 0
    for tick in sorted(steps):
        used += steps[tick]
        if used > room * unit and began is None:
            began, held_then = tick, used
        elif used <= room * unit and began is not None:
            yield _not_fitting(view, site, (began, tick), (Fraction(held_then, unit), room), held)
            began = None


def _not_fitting(
    view: View,
    site: int,
    interval: tuple[int, int],
    gb: tuple[Fraction, Fraction],
    held: list[tuple[int, int, Transfer]],
) -> Violation:
    began, until = interval
    datasets = [view.pair(transfer)[0] for start, end, transfer in held if start <= began < end]
    id = view.problem.site_ids[site]
    message = f"site {id!r} at tick {began}: {float(gb[0]):g} GB of replicas, storage {float(gb[1]):g} GB"
    return Violation("R8", (id, *dict.fromkeys(datasets)), f"{message} (until tick {until})")


def within_limits(view: View) -> Iterator[Violation]:
    """R10: the limits of the objective hold."""
    for limit in view.problem.limits:
        value = plan_term(view, limit.term)
        if value * limit.scale > limit.bound:
            held, allowed = (
                view.problem.written(limit.term, v) for v in (value, Fraction(limit.bound, limit.scale))
            )
            yield Violation("R10", (limit.term,), f"{limit.term} is {held}, more than its limit {allowed}")


def one_transfer(view: View) -> Iterator[Violation]:
    """R11: at most one transfer per dataset and site, and none to a home of the dataset."""
    seen: dict[tuple[int, int], int] = {}
    for transfer in view.plan.transfers:
        seen[transfer.dataset, transfer.site] = seen.get((transfer.dataset, transfer.site), 0) + 1
    for (dataset, site), count in seen.items():
        ids = view.problem.dataset_ids[dataset], view.problem.site_ids[site]
        if count > 1:
            yield Violation("R11", ids, f"dataset {ids[0]!r} is brought to site {ids[1]!r} {count} times")
        if (dataset, site) in facts(view.problem).home:
            yield Violation("R11", ids, f"dataset {ids[0]!r} is brought to its home site {ids[1]!r}")


def keeps_scope(view: View) -> Iterator[Violation]:
    """What is fixed stays as it is, and nothing else starts before the scope allows."""
    yield from _changed(view)
    yield from _too_early(view)


def _changed(view: View) -> Iterator[Violation]:
    problem, scope, plan = view.problem, view.scope, view.plan
    fixed = (scope.mode >= 0) | (scope.mode == REJECTED)
    changed = (plan.mode != scope.mode) | ((scope.mode >= 0) & (plan.start != scope.start))
    for task in np.flatnonzero(fixed & changed).tolist():
        id = problem.task_ids[task]
        yield Violation("scope", (id,), f"task {id!r} is fixed and was changed")
    kept = set(plan.transfers)
    for transfer in scope.transfers:
        if transfer not in kept:
            dataset, site = view.pair(transfer)
            message = f"the fixed transfer of {dataset!r} to {site!r} is missing or was changed"
            yield Violation("scope", (dataset, site), message)


def _too_early(view: View) -> Iterator[Violation]:
    first, fixed = view.scope.not_before, set(view.scope.transfers)
    if first == 0:  # R3 and R6 forbid earlier starts
        return
    for at in np.flatnonzero(view.scope.free[view.task] & (view.start < first)).tolist():
        id = view.task_id(at)
        message = f"task {id!r} starts at {view.start[at]}; nothing may start before {first}"
        yield Violation("scope", (id,), message)
    for transfer in view.plan.transfers:
        if transfer.start < first and transfer not in fixed:
            dataset, site = view.pair(transfer)
            message = f"transfer of {dataset!r} to {site!r} starts at {transfer.start}"
            yield Violation("scope", (dataset, site), f"{message}; nothing may start before {first}")


RULES: Mapping[str, Callable[[View], Iterator[Violation]]] = {
    "R1": placed_once,
    "R2": own_mode,
    "R3": in_window,
    "R4": in_order,
    "R5": within_nodes,
    "R6": data_there,
    "R7": within_links,
    "R8": within_storage,
    "R9": within_seats,
    "R10": within_limits,
    "R11": one_transfer,
    "scope": keeps_scope,
}
"""Rule -> the function that checks it."""
