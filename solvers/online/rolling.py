"""Rolling horizon: solve what has been released, do what the plan begins now, solve again when more comes."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from optalloc.errors import SolverError
from optalloc.evaluation import evaluate
from optalloc.placement import Placement
from optalloc.problem import FREE, REJECTED, Ints, Plan
from optalloc.result import Result, Status
from optalloc.scope import Scope
from optalloc.simulation import Simulator, Turn
from optalloc.solvers.rules import best_start

__all__ = ["Horizon", "Rolling", "Solve"]

Solve = Callable[[Scope, Plan | None], Result | None]
"""Solves a scope from a plan to begin with; None: there is no time left."""


@dataclass(frozen=True)
class Horizon:
    """One look at what has been released.

    Attributes
    ----------
    clock
        When.
    base, found
        Levels of the base rule's plan from here, and of the plan that is followed; None without one.
    proven
        No plan for what has been released is better.
    """

    clock: int
    base: tuple[int, ...] | None
    found: tuple[int, ...] | None
    proven: bool


@dataclass(eq=False)
class Rolling:
    """Follows, at every event, the best plan known for what has been released.

    The plan is the exact solver's, warm-started from the last plan (new tasks added by rules) or from the rules
    alone, whichever is better. It is solved again when tasks have been released, or while it is not proven
    optimal. Only transfers and runs that begin now are decided; a rejection is put off until nothing else can
    happen, as a later plan may have room.

    Attributes
    ----------
    simulator, solve, seed
        What is decided, how, and the seed of the base rules.
    looks
        What was found at every look.
    """

    simulator: Simulator
    solve: Solve
    seed: int = 0
    plan: Plan | None = None
    proven: bool = False
    looks: list[Horizon] = field(default_factory=list)
    _planned: set[int] = field(default_factory=set)

    def __call__(self, turn: Turn) -> None:
        simulator = self.simulator
        if self.plan is None or not self.proven or not self._planned >= simulator.queue.keys():
            self._look()
        if self.plan is not None and not simulator.done:
            self._act(self.plan)
            turn.alarm = self._next_start(self.plan)
            if turn.alarm is None and simulator.next_event is None:
                self._reject(self.plan)

    # looking ----------------------------------------------------------------------------------------------
    def _look(self) -> None:
        simulator = self.simulator
        scope = simulator.seen_scope()
        base = best_start(scope, self.seed)
        start = self._better(scope, base, self._continued(scope))
        result = self.solve(scope, start)
        if result is not None and result.status is Status.INFEASIBLE:
            simulator.fail("no plan exists for what has been released")
            return
        if result is not None and result.status is Status.ERROR:
            raise SolverError(f"{result.solver}: {result.message}")
        self.plan = start if result is None or result.plan is None else result.plan
        self.proven = result is not None and result.status is Status.OPTIMAL
        self._planned = set(simulator.queue)
        values = [None if plan is None else _levels(scope, plan) for plan in (base, self.plan)]
        self.looks.append(Horizon(simulator.clock, values[0], values[1], self.proven))

    def _continued(self, scope: Scope) -> Plan | None:
        """What is left of the last plan, with the new tasks added by rules."""
        if self.plan is None:
            return None
        mode, start = scope.mode.copy(), scope.start.copy()
        old = [task for task in self._planned if mode[task] == FREE]
        mode[old], start[old] = self.plan.mode[old], self.plan.start[old]
        there = set(scope.fixed_replicas)
        more = tuple(t for t in self.plan.transfers if (t.dataset, t.site) not in there)
        extended = Scope(scope.problem, mode, start, (*scope.transfers, *more), scope.not_before)
        plan = best_start(extended, self.seed) if extended.free.any() else extended.start_plan()
        return plan if plan is not None and evaluate(scope.problem, plan, scope=scope).valid else None

    def _better(self, scope: Scope, *plans: Plan | None) -> Plan | None:
        known = [plan for plan in plans if plan is not None]
        return min(known, key=lambda plan: _levels(scope, plan), default=None)

    # acting -----------------------------------------------------------------------------------------------
    def _act(self, plan: Plan) -> None:
        """Begin the transfers and runs that the plan begins now."""
        simulator, clock = self.simulator, self.simulator.clock
        for transfer in plan.transfers:
            if (
                transfer.start == clock
                and transfer.replica >= 0
                and transfer.replica not in simulator.firm.held
            ):
                simulator.stage(transfer.replica, transfer.route)
        for task in simulator.waiting:
            if plan.mode[task] >= 0 and plan.start[task] == clock:
                mode = plan.mode.item(task)
                end = clock + simulator.firm.facts(mode).duration
                simulator.commit(Placement(task, mode, clock, end))

    def _next_start(self, plan: Plan) -> int | None:
        """When the plan begins something next."""
        simulator = self.simulator
        queue: Ints = np.array(list(simulator.queue), dtype=np.int64)
        ticks = plan.start[queue[plan.mode[queue] >= 0]].tolist()
        ticks += [t.start for t in plan.transfers if t.replica not in simulator.firm.held]
        return min((tick for tick in ticks if tick > simulator.clock), default=None)

    def _reject(self, plan: Plan) -> None:
        for task in list(self.simulator.queue):
            if task in self.simulator.queue and plan.mode[task] == REJECTED:
                self.simulator.reject(task)


def _levels(scope: Scope, plan: Plan) -> tuple[int, ...]:
    return evaluate(scope.problem, plan, scope=scope).levels
