"""From values of the columns to a plan, and back."""

import numpy as np

from optalloc.errors import SolverError
from optalloc.formulations.milp.matrix import Floats
from optalloc.formulations.milp.model import MilpModel
from optalloc.formulations.milp.variables import Columns
from optalloc.problem import REJECTED, Ints, Plan, Transfer

__all__ = ["read_plan", "rounded", "start_values"]

INTEGRALITY = 1e-5
"""A value this far from an integer is none."""


def rounded(milp: MilpModel, values: Floats) -> Floats:
    """``values`` with each integer column at its nearest integer.

    Raises
    ------
    SolverError
        A value is not within 1e-5 of an integer.
    """
    values = np.array(values, dtype=float)
    integer = milp.matrix.integer
    nearest = np.rint(values[integer])
    off = np.abs(values[integer] - nearest)
    if len(off) and not off.max() <= INTEGRALITY:  # NaN fails too
        raise SolverError(
            f"a solution has the value {values[integer][off.argmax()]!r} where an integer belongs"
        )
    values[integer] = nearest
    return values


def read_plan(milp: MilpModel, values: Floats) -> Plan:
    """The plan behind a solution.

    Raises
    ------
    SolverError
        A binary column is not within 1e-5 of an integer.
    """
    c = milp.columns
    chosen = rounded(milp, values)[: c.held_at] > 0.5
    plan = c.scope.start_plan()
    started = np.flatnonzero(chosen[: c.rejected_at])
    plan.mode[c.x_task[started]] = c.x_mode[started]
    plan.start[c.x_task[started]] = c.x_start[started]
    plan.mode[c.rejected_task[chosen[c.rejected_at : c.y_at]]] = REJECTED
    brought = np.flatnonzero(chosen[c.y_at : c.z_at])
    columns = (c.y_replica[brought], c.y_route[brought], c.y_start[brought])
    made = [c.problem.transfer(*entry) for entry in zip(*(part.tolist() for part in columns), strict=True)]
    return Plan(plan.mode, plan.start, (*c.scope.transfers, *made))


def start_values(milp: MilpModel, plan: Plan) -> Floats | None:
    """Values of all columns for a plan; None if the model has no place for it.

    A plan has a place if its modes, starts and routes have columns: one with a dominated mode or a start
    outside the windows has none. Transfers that nothing reads are left out, and constant transfers moved to
    their fixed start.
    """
    c = milp.columns
    values = np.zeros(milp.matrix.num_columns)
    starts = _start_columns(c, plan)
    transfers = _transfer_columns(c, plan)
    if starts is None or transfers is None:
        return None
    values[starts] = 1
    values[c.rejected_at : c.y_at] = plan.mode[c.rejected_task] == REJECTED
    values[transfers] = 1
    paid = {b for mode in plan.mode[plan.mode >= 0].tolist() for b in c.problem.buys(mode)}
    values[c.z_at : c.held_at] = np.isin(c.z_purchase, list(paid))
    values[c.held_at : c.after_at] = _held(c, plan, transfers - c.y_at)
    placed = plan.mode >= 0
    ends = plan.start[placed] + c.problem.duration[plan.mode[placed]]
    values[c.after_at : c.count] = c.after_tick < max(ends.tolist(), default=0)
    return values


def _start_columns(c: Columns, plan: Plan) -> Ints | None:
    """The ``x`` column of every free task that is placed; None if one is missing."""
    columns: list[int] = []
    for task in c.free_tasks:
        mode, start = int(plan.mode[task]), int(plan.start[task])
        if mode == REJECTED and c.scope.rejectable[task]:
            continue
        if mode < 0:
            return None
        first, last = int(c.mode_ptr[mode]), int(c.mode_ptr[mode + 1])
        at = first + int(np.searchsorted(c.x_start[first:last], start))
        if at == last or c.x_start[at] != start:
            return None
        columns.append(at)
    return np.array(columns, dtype=np.int64)


def _transfer_columns(c: Columns, plan: Plan) -> Ints | None:
    """The ``y`` column of every transfer that is decided here and read; None if one is missing."""
    read = {k for mode in plan.mode[plan.mode >= 0].tolist() for k in c.problem.needs(mode)}
    columns: list[int] = []
    for transfer in plan.transfers:
        key = (transfer.dataset, transfer.site)
        replica = c.problem.replica_of.get(key, -1)
        if key in c.scope.fixed_replicas or replica not in read:
            continue
        column = _transfer_column(c, replica, transfer)
        if column is None:
            return None
        columns.append(column)
    return np.array(columns, dtype=np.int64)


def _transfer_column(c: Columns, replica: int, transfer: Transfer) -> int | None:
    """The ``y`` column of one transfer."""
    candidates = c.of_replica(replica) - c.y_at
    same = candidates[c.y_route[candidates] == transfer.route]
    if not c.problem.constant_replicas[replica]:
        same = same[c.y_start[same] == transfer.start]
    return c.y_at + int(same[0]) if len(same) else None


def _held(c: Columns, plan: Plan, transfers: Ints) -> Floats:
    """1 where a replica takes room: from the start of its transfer to the end of its last reader."""
    begin, end = _stay_of_fixed(c)
    sent = c.y_replica[transfers]
    begin[sent], end[sent] = c.y_start[transfers], c.y_end[transfers]
    for task in np.flatnonzero(plan.mode >= 0).tolist():
        mode = int(plan.mode[task])
        needs = c.problem.needs(mode)
        end[needs] = np.maximum(end[needs], int(plan.start[task] + c.problem.duration[mode]))
    tick, replica = c.held_tick, c.held_replica
    return np.asarray((begin[replica] <= tick) & (tick < end[replica]), dtype=float)


def _stay_of_fixed(c: Columns) -> tuple[Ints, Ints]:
    """(K,) start and end of fixed transfers; a replica that is not brought starts after the last tick of
    all.
    """
    never = int(c.held_tick.max()) + 1 if len(c.held_tick) else 0
    begin = np.full(c.problem.num_replicas, never, dtype=np.int64)
    end = np.zeros(c.problem.num_replicas, dtype=np.int64)
    for transfer in c.scope.transfers:
        replica = c.problem.replica_of.get((transfer.dataset, transfer.site))
        if replica is not None:
            begin[replica], end[replica] = transfer.start, transfer.end
    return begin, end
