"""A plan that is known beforehand, carried out by a simulator."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from optalloc.placement import Placement, Timetable
from optalloc.problem import REJECTED, Plan, Transfer
from optalloc.scope import Scope
from optalloc.simulation.actions import Action, Commit, Reject, Stage, Wait
from optalloc.simulation.simulator import Simulator

__all__ = ["follow", "left_shifted", "replay"]


def left_shifted(scope: Scope, plan: Plan) -> Plan:
    """The plan with every run and transfer moved to the left until none can start earlier by itself.

    Modes, routes and rejections stay. Transfers that nobody reads and that are not fixed are left out. No term
    of the objective grows. Every start is then a tick at which something happens: a release, data become
    available, a run or transfer ends (with lag), a calendar changes.

    Parameters
    ----------
    plan
        A plan that breaks no rule; its fixed part is that of ``scope``.
    """
    table = Timetable(scope)
    table.adopt(plan)
    while _shift(table):
        pass
    return table.plan()


def _shift(table: Timetable) -> bool:
    """One pass in the order of the starts; whether anything has moved."""
    moved = False
    for transfer in sorted(table.transfers, key=lambda transfer: transfer.start):
        moved |= _shift_transfer(table, transfer)
    placed = [task for task in np.flatnonzero(table.scope.free).tolist() if table.mode[task] >= 0]
    for task in sorted(placed, key=lambda task: table.start[task]):
        moved |= _shift_run(table, task)
    return moved


def _shift_run(table: Timetable, task: int) -> bool:
    mode, start = table.mode[task], table.start[task]
    table.remove(task, keep_transfers=True)
    found = table.earliest(task, mode, latest=start)
    if found is None:
        raise ValueError(f"Task {task}: the plan breaks a rule where it starts at {start}.")
    table.commit(found)
    return found.start < start


def _shift_transfer(table: Timetable, transfer: Transfer) -> bool:
    if transfer in table.scope.transfers or transfer.replica < 0:
        return False
    held = table.held[transfer.replica]
    readers, until = list(held.readers), held.until
    runs = [Placement(task, table.mode[task], table.start[task], table.end[task]) for task in readers]
    for task in readers:
        table.remove(task, keep_transfers=True)
    table.unstage(transfer.replica)
    if not readers:
        return True
    first = _first_start(table, transfer, until)
    table.stage(replace(transfer, start=first))
    for run in runs:
        table.commit(run)
    return first < transfer.start


def _first_start(table: Timetable, transfer: Transfer, until: int) -> int:
    """First start from which the replica can be brought and kept ``until`` its last reader ends."""
    facts = table.book.replica(transfer.replica)
    first = max(facts.available, table.scope.not_before)
    storage = table.storage.get(transfer.site)
    if storage is not None:
        first = max(first, storage.last_shortage(facts.size, first, until))
    return table.fit([(channel, 1) for channel in transfer.channels], first, transfer.ticks)


def follow(simulator: Simulator, plan: Plan) -> Action:
    """What to do next so that the plan comes out: a transfer, run or rejection of now, or waiting.

    A wait lasts until the plan begins something, where that comes before the next event: with a plan that is
    `left_shifted`, and a simulator with leave to prefetch, it never does.

    Parameters
    ----------
    plan
        A plan that breaks no rule; what is decided so far is part of it.

    Raises
    ------
    ValueError
        The plan begins nothing any more although tasks are undecided, or cannot be followed from here.
    """
    ahead = [transfer for transfer in plan.transfers if not _is_there(simulator, transfer)]
    waiting = simulator.waiting
    for transfer in ahead:
        if transfer.start == simulator.clock:
            return Stage(transfer.replica, transfer.route)
    for task in waiting:
        if plan.mode[task] == REJECTED:
            return Reject(task)
        if plan.mode[task] >= 0 and plan.start[task] == simulator.clock:
            return Commit(task, plan.mode.item(task))
    starts = [*(t.start for t in ahead), *_starts(simulator, plan)]
    until = min(starts, default=None)
    if until is not None and until <= simulator.clock:
        raise ValueError(f"At tick {simulator.clock} it is too late for what the plan begins at {until}.")
    if until is None and simulator.next_event is None:
        raise ValueError(
            f"At tick {simulator.clock} the plan begins nothing any more, and tasks are undecided."
        )
    event = simulator.next_event
    return Wait() if until is None or (event is not None and event <= until) else Wait(until)


def _is_there(simulator: Simulator, transfer: Transfer) -> bool:
    return transfer.replica < 0 or transfer.replica in simulator.firm.held


def _starts(simulator: Simulator, plan: Plan) -> Iterator[int]:
    """Starts of the seen runs that are ahead."""
    return (plan.start.item(task) for task in simulator.queue if plan.mode[task] >= 0)


def replay(simulator: Simulator, plan: Plan) -> Simulator:
    """Carry out a plan to its end: its transfers (also before the release of their readers), runs, rejections.

    Parameters
    ----------
    simulator
        At its beginning, or after decisions that are part of the plan.
    plan
        A plan that breaks no rule.

    Returns
    -------
    The simulator, done.

    Raises
    ------
    ValueError
        The plan cannot be carried out from here.
    """
    while not simulator.done:
        action = follow(simulator, plan)
        simulator.apply(action)
        if isinstance(action, Commit) and simulator.firm.start[action.task] != plan.start[action.task]:
            raise ValueError(f"Task {action.task} cannot start at {plan.start[action.task]} as planned.")
    return simulator
