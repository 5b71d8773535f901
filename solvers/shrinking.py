"""Start windows narrowed by an upper bound: what can only lead to worse plans is left out.

A mode m of task j, started at t, costs at least: what j then adds by itself, the shared charges of m once,
and for every other task the least it can add (its cheapest mode without shared charges, or its rejection).
If that is above the bound, no plan within the bound starts so. The makespan counts as weight * max(end of
the run, global lower bound). The same argument holds for every form that is bounded: the level itself, caps
of earlier levels, limits (R10).
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from optalloc.problem import NEVER, REJECTED, Form, Ints, own_cost, rejection_cost
from optalloc.scope import Scope, Windows, first_end, propagate

__all__ = ["shrink"]

ROUNDS = 50
"""Narrowing one window can narrow others; each round is valid by itself."""


def shrink(
    scope: Scope, windows: Windows, level: int, upper_bound: int | None, caps: tuple[int, ...] = ()
) -> Windows:
    """Narrower windows that keep every plan which respects caps and limits and whose level is <=
    ``upper_bound``.

    Parameters
    ----------
    windows
        Valid windows of the scope.
    upper_bound
        Value of ``level`` that plans of interest do not exceed, e.g. that of a verified plan; None: there
        is none.
    caps
        Greatest values of the earlier levels.

    Returns
    -------
    Windows in which a mode that is ruled out has an empty window (``latest < earliest``).
    """
    problem = scope.problem
    bounded = list(zip(problem.levels, caps, strict=False))
    bounded += [(limit.form, limit.bound) for limit in problem.limits]
    bounded += [(problem.levels[level], upper_bound)] if upper_bound is not None else []
    for _ in range(ROUNDS):
        earliest, latest = windows.earliest.copy(), windows.latest.copy()
        for form, bound in bounded:
            _cut(scope, form, bound, earliest, latest)
        propagate(scope, earliest, latest)
        if (earliest == windows.earliest).all() and (latest == windows.latest).all():
            break
        windows = replace(windows, earliest=earliest, latest=latest)
    return windows


def _cut(scope: Scope, form: Form, bound: int, earliest: Ints, latest: Ints) -> None:
    """Lower ``latest`` of each mode to its last start at which ``form`` can still be within ``bound``."""
    problem = scope.problem
    modes = np.flatnonzero((earliest <= latest) & scope.free[problem.mode_task])
    task = problem.mode_task[modes]
    first, last = earliest[modes], latest[modes]
    least = _least(scope, form, modes, own_cost(problem, form, modes, first))
    if least is None:  # a task that must run has no start left
        latest[modes] = first - 1
        return
    others = _fixed(scope, form) + int(least.sum()) - least[task]
    charged = others + form.cost * _charges(scope)[modes]
    makespan = first_end(scope, modes, first)

    def value(start: Ints) -> Ints:
        ends = np.maximum(start + problem.duration[modes], makespan)
        own = own_cost(problem, form, modes, start)
        return np.asarray(own + charged + form.makespan * ends, dtype=np.int64)

    latest[modes] = _last_within(value, first, last, bound)


def _last_within(value: Callable[[Ints], Ints], first: Ints, last: Ints, bound: int) -> Ints:
    """The last start in [first, last] whose value, which never falls with the start, is <= bound; else
    first - 1.
    """
    low, high = first - 1, last.copy()
    while (low < high).any():
        middle = (low + high + 1) // 2
        fits = value(middle) <= bound
        low, high = np.where(fits, middle, low), np.where(fits, high, middle - 1)
    return low


def _least(scope: Scope, form: Form, modes: Ints, cost: Ints) -> Ints | None:
    """(J,) the least that each free task adds by itself (others: 0); None if one cannot add anything."""
    least = np.full(scope.problem.num_tasks, NEVER, dtype=np.int64)
    np.minimum.at(least, scope.problem.mode_task[modes], cost)
    rejection = np.where(scope.rejectable, rejection_cost(form), NEVER)
    least = np.where(scope.free, np.minimum(least, rejection), 0)
    return None if (least >= NEVER).any() else least


def _fixed(scope: Scope, form: Form) -> int:
    """What the fixed part adds, makespan left out."""
    problem = scope.problem
    placed, rejected = np.flatnonzero(scope.mode >= 0), np.flatnonzero(scope.mode == REJECTED)
    value = int(own_cost(problem, form, scope.mode[placed], scope.start[placed]).sum())
    value += int(rejection_cost(form)[rejected].sum())
    money = sum(t.cost for t in scope.transfers) + sum(int(problem.purchase_cost[b]) for b in _paid(scope))
    return value + form.cost * money


def _paid(scope: Scope) -> set[int]:
    """Purchases that the fixed part pays."""
    modes = scope.mode[scope.mode >= 0].tolist()
    return {purchase for mode in modes for purchase in scope.problem.buys(mode)}


def _charges(scope: Scope) -> Ints:
    """(M,) shared charges of each mode: cheapest route of each replica to be brought, purchases not yet
    paid.
    """
    problem = scope.problem
    route = np.zeros(problem.num_replicas, dtype=np.int64)
    for (dataset, site), replica in problem.replica_of.items():
        if (dataset, site) not in scope.fixed_replicas:
            route[replica] = min((int(problem.route_cost[q]) for q in problem.routes_of(replica)), default=0)
    price = problem.purchase_cost.copy()
    price[list(_paid(scope))] = 0
    charges = np.zeros(problem.num_modes, dtype=np.int64)
    modes = np.arange(problem.num_modes)
    np.add.at(charges, np.repeat(modes, np.diff(problem.need_ptr)), route[problem.need_replica])
    np.add.at(charges, np.repeat(modes, np.diff(problem.buy_ptr)), price[problem.buy_purchase])
    return charges
