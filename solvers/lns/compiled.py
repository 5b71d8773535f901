"""The compiled engine: for problems in which transfers hold nothing."""

import heapq
from collections.abc import Sequence

import numpy as np

from optalloc.problem import NEVER, Form, Ints, Plan, Problem, Transfer
from optalloc.scope import Scope, Windows
from optalloc.solvers.lns import columns as at
from optalloc.solvers.lns.arrays import Cap, Core, Guide, build_core, build_state
from optalloc.solvers.lns.loop import EVERY_MODE, keep, left_shift, list_tasks, put, search
from optalloc.solvers.lns.neighbours import NAMES
from optalloc.solvers.lns.placing import value
from optalloc.solvers.prices.layout import Floats

__all__ = ["MANY", "CompiledSearch", "is_regular", "priority_order"]

SIZE = 14
"""Most tasks that an ordinary step takes out."""

SHORTLIST = 12
"""Modes tried per task when there are prices to rank them by, two thirds of it with many tasks; without, all are."""

THETA = 1.0
"""Weight of the prices in the guide, give or take a third: drawn anew for each step."""

MANY = 150
"""From so many free tasks on the shortlist is cut."""


def is_regular(scope: Scope) -> bool:
    """Every transfer that may still be made holds neither channels nor limited storage."""
    problem = scope.problem
    usable = problem.active & scope.free[problem.mode_task]
    owner = np.repeat(np.arange(problem.num_modes), np.diff(problem.need_ptr))
    needed = np.zeros(problem.num_replicas, dtype=bool)
    needed[problem.need_replica[usable[owner]]] = True
    for transfer in scope.transfers:
        # A replica that is held takes storage for as long as it is read.
        if transfer.replica >= 0:
            needed[transfer.replica] &= problem.site_storage[transfer.site] < NEVER
    return bool(problem.constant_replicas[needed].all())


class CompiledSearch:
    """A search on one form.

    Parameters
    ----------
    form, caps
        What is minimised, and what must hold.
    guide
        Modes and prices; default: all open modes, no prices.
    """

    def __init__(
        self,
        scope: Scope,
        form: Form,
        caps: Sequence[Cap],
        allowed: Windows,
        guide: Guide | None = None,
        seed: int = 0,
    ):
        self.scope = scope
        self.core: Core = build_core(scope, form, caps, allowed, guide)
        self.priced = guide is not None
        self._empty = build_state(self.core, seed)
        self.s = self._empty
        self.units = 0
        self.tasks = free = int(scope.free.sum())
        self.unit = max(20, min(500, free // 2))
        """Steps between two looks at the clock."""
        self._shift_every = max(1, free // 2 // self.unit)

    @property
    def best(self) -> int | None:
        """Value of the best plan so far; None without one."""
        found = int(self.s[self.core.c[at.BEST]])
        return found if found < 2**62 else None

    def begin(self, plan: Plan) -> None:
        """Go on from ``plan``; it becomes the best plan if it is better than that so far."""
        rows = np.column_stack([plan.mode, plan.start])
        self._fill(rows, self._routes(plan))
        keep(self.core.c, self.s)

    def restart(self) -> None:
        """Go back to the best plan."""
        rows, routes = self._best()
        self._fill(rows, routes)

    def _fill(self, rows: Ints, routes: Ints) -> None:
        c, old = self.core.c, self.s
        fresh = self._empty.copy()
        # What has been learnt and drawn stays.
        for first, last in ((c[at.BEST], c[at.OUT]), (c[at.COUNTS], self.core.size)):
            fresh[first:last] = old[first:last]
        self.s = fresh
        put(c, self.s, rows, routes)

    def _routes(self, plan: Plan) -> Ints:
        """Address of the route of each replica of a plan, -1: none."""
        problem = self.scope.problem
        routes = np.full(problem.num_replicas, -1, dtype=np.int64)
        for transfer in plan.transfers:
            if transfer.replica >= 0 and not self._fixed(transfer):
                route = transfer.route if transfer.route >= 0 else self._substitute(plan, transfer)
                routes[transfer.replica] = self.core.routes[route]
        return routes

    def _fixed(self, transfer: Transfer) -> bool:
        return (transfer.dataset, transfer.site) in self.scope.fixed_replicas

    def _substitute(self, plan: Plan, transfer: Transfer) -> int:
        """A listed route that is no slower and no dearer than one that the Problem has dropped."""
        problem = self.scope.problem
        good = [q for q in problem.routes_of(transfer.replica) if problem.route_ticks[q] <= transfer.ticks]
        return min(good, key=lambda q: int(problem.route_cost[q]))

    def _best(self) -> tuple[Ints, Ints]:
        c, problem = self.core.c, self.scope.problem
        rows = self.s[c[at.BEST_PLAN] : c[at.BEST_PLAN] + 2 * problem.num_tasks].reshape(-1, 2).copy()
        return rows, self.s[c[at.BEST_ROUTE] : c[at.BEST_ROUTE] + problem.num_replicas].copy()

    def plan(self) -> Plan:
        """The best plan."""
        problem, c = self.scope.problem, self.core.c
        rows, routes = self._best()
        moved = []
        for k in np.flatnonzero(routes >= 0).tolist():
            route = int(routes[k] - self.core.routes[0]) // 2
            from_tick = c[c[at.REPLICA] + at.REPLICA_COLUMNS * k + at.FROM_TICK]
            moved.append(problem.transfer(k, route, int(from_tick)))
        mode = rows[:, 0].copy()
        return Plan(mode, np.where(mode >= 0, rows[:, 1], 0), (*self.scope.transfers, *moved))

    def list_plan(self, priority: Floats, theta: float) -> bool:
        """List scheduling over all modes, least priority first; whether every task found its place."""
        fixed = np.column_stack([self.scope.mode, np.where(self.scope.mode >= 0, self.scope.start, 0)])
        self._fill(fixed, np.full(self.scope.problem.num_replicas, -1, dtype=np.int64))
        rank = priority_order(self.scope.problem, priority)
        if list_tasks(self.core.c, self.core.x, self.s, rank, theta) >= 0:
            return False
        keep(self.core.c, self.s)
        return True

    @property
    def _count(self) -> int:
        if not self.priced:
            return EVERY_MODE
        return SHORTLIST if self.tasks < MANY else 2 * SHORTLIST // 3

    def steps(self, slack: float) -> int:
        """One unit of steps, a left shift now and then; returns the number of steps."""
        c, s = self.core.c, self.s
        search(c, self.core.x, s, self.unit, SIZE, self._count, THETA if self.priced else 0.0, slack)
        self.units += 1
        if self.units % self._shift_every == 0:
            tasks = self.scope.problem.num_tasks
            starts = s[c[at.PLAN] + at.START : c[at.PLAN] + at.PLAN_COLUMNS * tasks : at.PLAN_COLUMNS]
            left_shift(c, s, np.argsort(starts, kind="stable"))
            keep(c, s)
        return self.unit

    @property
    def current(self) -> int:
        """Value of the plan that the search stands at."""
        return int(value(self.core.c, self.s, 0))

    @property
    def counts(self) -> dict[str, tuple[int, int]]:
        """Steps, and steps that made the plan better, by neighbourhood."""
        c = self.core.c
        rows = self.s[c[at.COUNTS] : c[at.COUNTS] + 2 * len(NAMES)].reshape(-1, 2).tolist()
        return {name: (tried, better) for name, (tried, better) in zip(NAMES, rows, strict=True)}


def priority_order(problem: Problem, priority: Floats) -> Ints:
    """Tasks by priority, the least first, but none before its predecessors."""
    if not len(problem.pred_task):
        return np.argsort(priority, kind="stable")
    waiting = np.diff(problem.pred_ptr).tolist()
    heap = [(float(priority[j]), j) for j in range(problem.num_tasks) if waiting[j] == 0]
    heapq.heapify(heap)
    order = []
    while heap:
        _, task = heapq.heappop(heap)
        order.append(task)
        for successor in problem.successors[task]:
            waiting[successor] -= 1
            if waiting[successor] == 0:
                heapq.heappush(heap, (float(priority[successor]), successor))
    return np.array(order, dtype=np.int64)
