"""The arrays that the price kernels work on."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from optalloc.problem import Form, Ints, Problem, rejection_cost
from optalloc.scope import Scope, Windows, start_intervals, windows

__all__ = ["Layout", "bucket_of_ticks", "build_layout", "capacity_areas", "times"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Layout:
    """Rows are (mode, interval of starts), grouped by task, cheapest first.

    Attributes
    ----------
    row_ptr
        (J+1,) rows of each task; fixed tasks have none.
    mode, first, last, ticks
        (N,) mode, inclusive interval of starts, duration.
    const
        (N,) what the row costs whatever its start: money, utility, flow constant.
    low
        (N,) own cost at the first start; rows of a task are sorted by it.
    slope, tardiness, late, due, reject
        (J,) cost per tick of the end; beyond the due date; of being late; due date; of rejection (``never`` if barred).
    share_ptr, share
        By mode: indices of the (task, charge) pairs that it pays shares of.
    pair_task, pair_charge
        What each pair stands for; charges are replicas, then purchases.
    charge
        Least price of each charge.
    charge_ptr, charge_pair
        The pairs of each charge.
    unit
        How many units of ``form`` make one of the objective.
    """

    problem: Problem
    scope: Scope
    form: Form
    never: int
    row_ptr: Ints
    mode: Ints
    first: Ints
    last: Ints
    ticks: Ints
    const: Ints
    low: Ints
    slope: Ints
    tardiness: Ints
    late: Ints
    due: Ints
    reject: Ints
    share_ptr: Ints
    share: Ints
    pair_task: Ints
    pair_charge: Ints
    charge: Ints
    charge_ptr: Ints
    charge_pair: Ints
    horizon: int
    unit: int


def build_layout(scope: Scope, form: Form, open_windows: Windows | None = None, *, unit: int = 1) -> Layout:
    """Lay out ``scope`` for pricing ``form``.

    Parameters
    ----------
    form
        An integer form, e.g. `optalloc.certificate.combined`; its units are those of the bound.
    open_windows
        Default: the windows of the scope.
    unit
        How many units of ``form`` make one of the objective.
    """
    problem = scope.problem
    open_windows = windows(scope) if open_windows is None else open_windows
    mode, first, last = _rows(scope, open_windows)
    task = problem.mode_task[mode]
    const = (
        form.loss[task] * (1000 - problem.utility[mode]) + form.placed[task] + form.cost * problem.money[mode]
    )
    end = first + problem.duration[mode]
    over = np.maximum(0, end - problem.due[task])
    low = const + form.completion[task] * end + form.tardiness[task] * over + form.late[task] * (over > 0)
    order = np.lexsort((low, task))
    never = 2**61
    charge = _charges(scope, form)
    share_ptr, share, pair_task, pair_charge = _pairs(problem, mode, charge)
    by_charge = np.argsort(pair_charge, kind="stable")
    return Layout(
        problem=problem,
        scope=scope,
        form=form,
        never=never,
        row_ptr=np.searchsorted(task[order], np.arange(problem.num_tasks + 1)),
        mode=mode[order],
        first=first[order],
        last=last[order],
        ticks=problem.duration[mode[order]],
        const=const[order],
        low=low[order],
        slope=form.completion,
        tardiness=form.tardiness,
        late=form.late,
        due=problem.due,
        reject=np.where(scope.rejectable, rejection_cost(form), never),
        share_ptr=share_ptr,
        share=share,
        pair_task=pair_task,
        pair_charge=pair_charge,
        charge=charge,
        charge_ptr=np.searchsorted(pair_charge[by_charge], np.arange(len(charge) + 1)),
        charge_pair=by_charge,
        horizon=open_windows.horizon,
        unit=unit,
    )


def times(layout: Layout, factor: int, form: Form) -> Layout:
    """The layout in units of which ``factor`` make one of its own: ``form`` is ``factor`` times its form."""
    reject = np.where(layout.reject < layout.never, layout.reject * factor, layout.never)
    return replace(
        layout,
        form=form,
        const=layout.const * factor,
        low=layout.low * factor,
        slope=layout.slope * factor,
        tardiness=layout.tardiness * factor,
        late=layout.late * factor,
        charge=layout.charge * factor,
        reject=reject,
        unit=layout.unit * factor,
    )


def _rows(scope: Scope, open_windows: Windows) -> tuple[Ints, Ints, Ints]:
    """(mode, first, last) of every interval of starts of a free task."""
    problem = scope.problem
    usable = np.flatnonzero(problem.active & open_windows.open & scope.free[problem.mode_task])
    first, last = open_windows.earliest[usable], open_windows.latest[usable]
    owner = np.repeat(np.arange(problem.num_modes), np.diff(problem.use_ptr))
    changing = np.diff(problem.cap_ptr)[problem.use_resource] > 1
    calendar = np.zeros(problem.num_modes, dtype=bool)
    calendar[owner[changing]] = True
    plain = ~calendar[usable]
    rows = [np.column_stack([usable[plain], first[plain], last[plain]])]
    for m, a, b in zip(usable[~plain].tolist(), first[~plain].tolist(), last[~plain].tolist(), strict=True):
        found = start_intervals(problem, m, a, b)
        rows.append(np.array([(m, *interval) for interval in found], dtype=np.int64).reshape(-1, 3))
    table = np.concatenate(rows).astype(np.int64)
    return table[:, 0].copy(), table[:, 1].copy(), table[:, 2].copy()


def _charges(scope: Scope, form: Form) -> Ints:
    """Least price of each replica and purchase; 0 for what is fixed already."""
    problem = scope.problem
    replicas = []
    for k in range(problem.num_replicas):
        pair = (int(problem.replica_dataset[k]), int(problem.replica_site[k]))
        routes = [int(problem.route_cost[q]) for q in problem.routes_of(k)]
        replicas.append(0 if pair in scope.fixed_replicas else min(routes, default=0))
    return form.cost * np.concatenate([np.array(replicas, dtype=np.int64), problem.purchase_cost])


def _pairs(problem: Problem, modes: Ints, charge: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Which (task, charge) pairs each mode pays a share of; free charges are left out."""
    used = np.zeros(problem.num_modes, dtype=bool)
    used[modes] = True
    lists = []
    for ptr, index, shift in (
        (problem.need_ptr, problem.need_replica, 0),
        (problem.buy_ptr, problem.buy_purchase, problem.num_replicas),
    ):
        owner = np.repeat(np.arange(problem.num_modes), np.diff(ptr))
        charged = index.astype(np.int64) + shift
        keep = used[owner] & (charge[charged] > 0)
        lists.append(np.column_stack([owner[keep], charged[keep]]))
    entries = np.concatenate(lists).astype(np.int64)
    entries = entries[np.argsort(entries[:, 0], kind="stable")]
    key = problem.mode_task[entries[:, 0]] * max(1, len(charge)) + entries[:, 1]
    names, share = np.unique(key, return_inverse=True)
    share_ptr = np.searchsorted(entries[:, 0], np.arange(problem.num_modes + 1))
    return share_ptr, share.astype(np.int64), names // max(1, len(charge)), names % max(1, len(charge))


def bucket_of_ticks(edges: Ints) -> Ints:
    """Bucket of each tick before the last edge."""
    return np.repeat(np.arange(len(edges) - 1), np.diff(edges))


def capacity_areas(scope: Scope, edges: Ints) -> Ints:
    """(R, buckets) unit-ticks of each resource in each bucket that the fixed part leaves."""
    problem = scope.problem
    areas = np.zeros((problem.num_resources, len(edges) - 1), dtype=np.int64)
    for r in range(problem.num_resources):
        times, amounts = problem.capacity(r)
        before = np.concatenate([[0], np.cumsum(np.diff(times) * amounts[:-1])])
        at = np.searchsorted(times, edges, side="right") - 1
        areas[r] = np.diff(before[at] + (edges - times[at]) * amounts[at])
    for r, start, end, amount in scope.fixed_uses:
        overlap = np.minimum(end, edges[1:]) - np.maximum(start, edges[:-1])
        areas[r] -= amount * np.maximum(0, overlap)
    return areas
