"""What all rules share: where a task may go, what that adds, and whether rejecting it is better."""

from collections.abc import Iterable
from copy import copy
from dataclasses import replace
from functools import cached_property

import numpy as np

from optalloc.evaluation import evaluate
from optalloc.placement import Placement, Timetable
from optalloc.problem import ABSENT, NEVER, Form, Ints, own_cost, rejection_cost
from optalloc.scope import Scope, windows
from optalloc.solvers.rules.floors import Floors
from optalloc.solvers.rules.limits import Limits

__all__ = ["DeadEnd", "Desk"]


class DeadEnd(Exception):
    """A rule cannot go on.

    Attributes
    ----------
    task
        The task that has no feasible placement left and may not be rejected; -1: what is fixed breaks a rule.
    reason
        In that case, which.
    """

    def __init__(self, task: int, reason: str = ""):
        super().__init__(task, reason)
        self.task = task
        self.reason = reason

    def describe(self, scope: Scope) -> str:
        """The dead end in a sentence."""
        if self.task < 0:
            return f"dead end: what is fixed breaks {self.reason}"
        id = scope.problem.task_ids[self.task]
        return f"dead end: task {id!r} must run and has no feasible placement left"


def check_fixed(scope: Scope) -> None:
    """Refuse a scope whose fixed part breaks a rule by itself: nothing that is added can mend it.

    Raises
    ------
    DeadEnd
        With the first rule that is broken.
    """
    if scope.free.all() and not scope.transfers:
        return
    alone = replace(scope, mode=np.where(scope.free, ABSENT, scope.mode))
    violations = evaluate(scope.problem, alone.start_plan(), scope=alone).violations
    if violations:
        raise DeadEnd(-1, str(violations[0]))


class Desk:
    """A timetable together with the facts that rules decide by.

    Parameters
    ----------
    scope
        What is to be decided.
    seed
        Of the random numbers, for the rules that use any.

    Raises
    ------
    DeadEnd
        What is fixed breaks a rule by itself.

    Attributes
    ----------
    table
        What is placed so far.
    modes
        Per task, the modes that may still be chosen: active, and with a start left
        (`optalloc.scope.windows`).
    first
        (M,) first start of a mode that windows allow.
    shortest
        (J,) duration of the shortest of these modes; 0 for tasks that are not free or have no mode.
    replica_charge, purchase_charge
        (K,), (B,) money that the first reader from now on has to pay: the cheapest route, the price; 0 once
        paid.
    """

    def __init__(self, scope: Scope, seed: int = 0):
        check_fixed(scope)
        self.scope = scope
        self.problem = problem = scope.problem
        self.table = Timetable(scope)
        self.seed = seed
        self.rng = np.random.default_rng(seed)
        allowed = windows(scope)
        self.first = allowed.earliest
        self._open = allowed.open & scope.free[problem.mode_task]
        self.free: list[int] = np.flatnonzero(scope.free).tolist()
        self.shortest = self._least_duration()
        self.rejection = [rejection_cost(level) for level in problem.levels]
        self.replica_charge = _cheapest_routes(scope)
        self.purchase_charge = problem.purchase_cost.copy()
        self.purchase_charge[np.array(self.table.bought, dtype=bool)] = 0
        self.floors = Floors(self.table, np.flatnonzero(self._open))
        self.limits = Limits(scope, self.table, np.flatnonzero(self._open), self.first)

    def copy(self) -> "Desk":
        """A desk that can be filled without touching this one; the random numbers start anew."""
        twin = copy(self)
        twin.table = self.table.copy()
        twin.rng = np.random.default_rng(self.seed)
        twin.replica_charge, twin.purchase_charge = self.replica_charge.copy(), self.purchase_charge.copy()
        twin.floors, twin.limits = self.floors.copy(twin.table), self.limits.copy(twin.table)
        return twin

    # modes ---------------------------------------------------------------------------------------------
    def modes(self, task: int) -> Ints:
        """Modes of a task that may be chosen."""
        first, last = self.problem.mode_ptr.item(task), self.problem.mode_ptr.item(task + 1)
        return np.asarray(first + np.flatnonzero(self._open[first:last]))

    def _least_duration(self) -> Ints:
        problem = self.problem
        values = np.full(problem.num_tasks, NEVER, dtype=np.int64)
        np.minimum.at(values, problem.mode_task[self._open], problem.duration[self._open])
        return np.where(values == NEVER, 0, values)

    @cached_property
    def mean_duration(self) -> np.ndarray:
        """(J,) mean duration of the modes that may be chosen; 0 without any."""
        problem = self.problem
        owner = problem.mode_task[self._open]
        count = np.bincount(owner, minlength=problem.num_tasks)
        total = np.bincount(owner, problem.duration[self._open], minlength=problem.num_tasks)
        return np.asarray(total / np.maximum(count, 1))

    @cached_property
    def weight(self) -> np.ndarray:
        """(J,) task weights as floats."""
        return np.array([float(weight) for weight in self.problem.task_weight])

    def starts(self, task: int, modes: Ints) -> Ints:
        """A lower bound on the start of each of the task's modes, given what is placed."""
        return np.maximum(np.maximum(self.first[modes], self.table.ready(task)), self.floors(modes))

    # charges -------------------------------------------------------------------------------------------
    def shared_money(self, modes: Ints) -> Ints:
        """Least money that each mode would add for transfers and purchases that are not paid yet."""
        problem = self.problem
        staged = _sums(problem.need_ptr, problem.need_replica, self.replica_charge, modes)
        return staged + _sums(problem.buy_ptr, problem.buy_purchase, self.purchase_charge, modes)

    def least_increase(self, form: Form, modes: Ints, starts: Ints) -> Ints:
        """What each mode adds to ``form`` at least when it starts no earlier than ``starts``."""
        return own_cost(self.problem, form, modes, starts) + form.cost * self.shared_money(modes)

    def money(self, placement: Placement) -> int:
        """Money that a placement adds: its own, that of new transfers and of purchases not paid yet."""
        problem, table = self.problem, self.table
        total = problem.money.item(placement.mode) + sum(transfer.cost for transfer in placement.transfers)
        for purchase in table.facts(placement.mode).buys:
            if not table.bought[purchase]:
                total += problem.purchase_cost.item(purchase)
        return total

    def increase(self, placement: Placement) -> tuple[int, ...]:
        """What a placement adds to each level of the objective."""
        return tuple(self.table.increase(level, placement) for level in self.problem.levels)

    def rejection_increase(self, tasks: Iterable[int]) -> tuple[int, ...]:
        """What rejecting the tasks adds to each level."""
        tasks = list(tasks)
        return tuple(sum(cost.item(task) for task in tasks) for cost in self.rejection)

    # decisions -----------------------------------------------------------------------------------------
    def allows(self, placement: Placement) -> bool:
        """Whether the plan limits leave room for the placement and the other open tasks at their least."""
        return self.limits.allow(placement)

    def settle(self, task: int, placement: Placement | None) -> None:
        """Commit the placement or reject the task.

        A rejectable task is rejected when there is no placement, or when rejecting it and all tasks after it
        adds less to the objective (level by level) than the placement.

        Raises
        ------
        DeadEnd
            There is no placement, and the task cannot be rejected.
        """
        chain = self.table.followers(task) if self.scope.rejectable[task] else ()
        can_reject = bool(chain) and self.limits.allow_rejection(chain)
        if placement is not None and not (
            can_reject and self.rejection_increase(chain) < self.increase(placement)
        ):
            self.commit(placement)
            return
        if not can_reject:
            raise DeadEnd(task)
        self.limits.reject(chain)
        self.table.reject(task)

    def commit(self, placement: Placement) -> bool:
        """Reserve a placement and note what is paid now; True: it is for good."""
        self.limits.charge(placement)
        self.table.commit(placement)
        facts = self.table.facts(placement.mode)
        for replica in facts.needs:
            self.replica_charge[replica] = 0
        for purchase in facts.buys:
            self.purchase_charge[purchase] = 0
        for resource, _ in facts.uses:
            self.floors.update(resource)
        return True


def _cheapest_routes(scope: Scope) -> Ints:
    problem = scope.problem
    charge = np.zeros(problem.num_replicas, dtype=np.int64)
    brought = {transfer.replica for transfer in scope.transfers}
    for replica in set(range(problem.num_replicas)) - brought:
        costs = (problem.route_cost.item(route) for route in problem.routes_of(replica))
        # Without a route no mode that needs the replica is open.
        charge[replica] = min(costs, default=0)
    return charge


def _sums(pointer: Ints, entries: Ints, charge: Ints, owners: Ints) -> Ints:
    """Sum of ``charge`` over the CSR entries of each owner; owners increase and lie close together."""
    if not len(owners):
        return np.zeros(0, dtype=np.int64)
    first, last = pointer[owners[0]], pointer[owners[-1] + 1]
    total = np.concatenate([[0], np.cumsum(charge[entries[first:last]])])
    return np.asarray(total[pointer[owners + 1] - first] - total[pointer[owners] - first])
