"""The desk of the rules, laid out anew at every event of a simulation."""

from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from optalloc.placement import Placement
from optalloc.problem import DEVICES, FREE, NEVER, Ints, entries, rejection_cost
from optalloc.scope import Scope
from optalloc.simulation import Simulator
from optalloc.simulation.clocked import Clocked
from optalloc.solvers.rules.desk import Desk
from optalloc.solvers.rules.floors import Floors
from optalloc.solvers.rules.limits import Limits

__all__ = ["OnlineDesk"]


class OnlineDesk(Desk):
    """What `Desk` is to a static rule, at one event after the other.

    A rule that runs on it sees the tasks of the queue only, places them from the clock on, and acts through the
    simulator. A task that has no placement at this event is left for later; it is rejected, where that is
    allowed, once it has none beside what is decided for good.

    Parameters
    ----------
    simulator
        What the decisions go to.
    seed
        Of the random numbers, for the rules that use any.
    """

    table: Clocked

    def __init__(self, simulator: Simulator, seed: int = 0):
        problem = simulator.problem
        self.simulator, self.problem, self.seed = simulator, problem, seed
        self.rng = np.random.default_rng(seed)
        self._open = problem.active & simulator.scope.free[problem.mode_task]
        self.shortest = self._least_duration()
        self.rejection = [rejection_cost(level) for level in problem.levels]
        self._firm_floors = Floors(simulator.firm, np.flatnonzero(self._open))
        self._routes = _cheapest_routes(self)
        self.begin()

    def on(self, branch: Simulator) -> "OnlineDesk":
        """The same desk for a branch of the simulation."""
        twin = copy(self)
        twin.simulator, twin._firm_floors = branch, self._firm_floors.copy(branch.firm)
        return twin.begin()

    def begin(self) -> "OnlineDesk":
        """Lay out what is known and decided now."""
        simulator = self.simulator
        # Only `not_before` of this scope changes; what is decided stands in the table.
        self.scope = replace(simulator.scope, not_before=simulator.clock)
        self.free = list(simulator.queue)
        self.first: Any = _Firsts(self)
        self.replica_charge = self._routes.copy()
        self.replica_charge[list(simulator.table.held)] = 0
        self.purchase_charge = self.problem.purchase_cost.copy()
        self.purchase_charge[np.array(simulator.table.bought, dtype=bool)] = 0
        self.limits = self._limits()
        # What holds until the next event only raises the floors until then.
        self.floors = self._firm_floors.copy(simulator.table)
        self._look()
        return self

    def _limits(self) -> Limits:
        if not self.problem.limits:
            return Limits(self.scope, self.simulator.table, self.problem.mode_ptr[:0], self.problem.release)
        modes = [self.modes(task) for task in self.free if self.simulator.table.mode[task] == FREE]
        open_modes = np.sort(np.concatenate([self.problem.mode_ptr[:0], *modes]))
        first = np.maximum(self.problem.release[self.problem.mode_task], self.problem.available)
        first = np.maximum(first, self.simulator.clock)
        plan = self.simulator.table.plan()
        scope = Scope(self.problem, plan.mode, plan.start, plan.transfers, self.simulator.clock)
        return Limits(scope, self.simulator.table, open_modes, first)

    def _look(self) -> None:
        self.table = self.limits.table = self.floors.table = self.simulator.table

    @cached_property
    def devices(self) -> Ints:
        """(M,) devices that each mode holds."""
        problem = self.problem
        held = np.where(problem.resource_kind[problem.use_resource] == DEVICES, problem.use_amount, 0)
        total = np.concatenate([[0], np.cumsum(held)])
        return np.asarray(total[problem.use_ptr[1:]] - total[problem.use_ptr[:-1]])

    @cached_property
    def fastest_route(self) -> Ints:
        """(K,) ticks of the fastest route of each replica: NEVER without any."""
        problem = self.problem
        ticks = np.full(problem.num_replicas, NEVER, dtype=np.int64)
        owner, routes = entries(problem.route_ptr, np.arange(problem.num_replicas))
        np.minimum.at(ticks, owner, problem.route_ticks[routes])
        return ticks

    def placeable(self, task: int) -> bool:
        """Whether everything before the task is decided."""
        return self.table.ready(task) < NEVER

    # decisions --------------------------------------------------------------------------------------------
    def settle(self, task: int, placement: Placement | None) -> None:
        """Commit the placement, reject the task, or leave it for later; see `Desk.settle`."""
        if not self.placeable(task):
            return
        if self.prefers_rejection(task, placement):
            self.reject(task)
        elif placement is not None:
            self.commit(placement)

    def prefers_rejection(self, task: int, placement: Placement | None) -> bool:
        """Whether to reject a task now that would have to go to ``placement``."""
        chain = self.table.followers(task) if self.simulator.may_reject(task) else ()
        if not chain or not self.limits.allow_rejection(chain):
            return False
        if placement is None:
            return self.table is self.simulator.firm
        return self.rejection_increase(chain) < self.increase(placement)

    def reject(self, task: int) -> None:
        """Reject a task and the seen ones after it."""
        self.limits.reject(self.table.followers(task))
        self.simulator.reject(task)

    def commit(self, placement: Placement) -> bool:
        """Commit a placement and note what is paid now; True if it is for good."""
        self.limits.charge(placement)
        for_good = self.simulator.commit(placement)
        self._look()
        facts = self.table.facts(placement.mode)
        self.replica_charge[list(facts.needs)] = 0
        self.purchase_charge[list(facts.buys)] = 0
        for resource, _ in facts.uses:
            self.floors.update(resource)
            if for_good:
                self._firm_floors.update(resource)
        return for_good


class _Firsts:
    """First start that each mode allows from now on, by itself: in the place of the array of `Desk`."""

    def __init__(self, desk: OnlineDesk):
        self._desk = desk

    def __getitem__(self, modes: Ints) -> Ints:
        problem, simulator = self._desk.problem, self._desk.simulator
        first = np.maximum(problem.release[problem.mode_task[modes]], problem.available[modes])
        first = np.maximum(first, simulator.clock)
        at, needs = entries(problem.need_ptr, modes)
        np.maximum.at(first, at, self._arrivals()[problem.need_replica[needs]])
        return np.asarray(first)

    def _arrivals(self) -> Ints:
        """(K,) when each replica is there: as it is held, or by its fastest route from now on."""
        table = self._desk.simulator.table
        arrival = np.maximum(self._desk.problem.replica_available, table.now) + self._desk.fastest_route
        for replica in table.held:
            arrival[replica] = table.arrival(replica)
        return arrival


def _cheapest_routes(desk: OnlineDesk) -> Ints:
    """(K,) cost of the cheapest route; 0 without any: no mode that can be placed needs such a replica."""
    problem = desk.problem
    charge = np.zeros(problem.num_replicas, dtype=np.int64)
    for replica in range(problem.num_replicas):
        routes = problem.routes_of(replica)
        charge[replica] = min((problem.route_cost.item(route) for route in routes), default=0)
    return charge
