"""A guard for plan limits (R10): keep enough for every task that is still to be placed."""

from collections.abc import Sequence
from copy import copy

import numpy as np

from optalloc.placement import Placement, Timetable
from optalloc.problem import Form, Ints, own_cost, rejection_cost
from optalloc.scope import Scope

__all__ = ["Limits"]


class Limits:
    """What each limit leaves, after all open tasks are counted at their least.

    The least of a task is that of its own cost in any open mode at its first start, or of its rejection;
    charges that tasks share and makespan are left out. So a placement that this refuses would pass a limit
    for certain; one that it allows may still lead to a dead end.

    Parameters
    ----------
    table
        What is placed at the beginning.
    open_modes, first
        Modes that may be chosen, and the first start of every mode.
    """

    def __init__(self, scope: Scope, table: Timetable, open_modes: Ints, first: Ints):
        self.table = table
        self.forms = [limit.form for limit in scope.problem.limits]
        self.rejection = [rejection_cost(form) for form in self.forms]
        self.least = [_least(scope, form, open_modes, first) for form in self.forms]
        self.slack = [
            limit.bound - table.value(limit.form) - int(least.sum())
            for limit, least in zip(scope.problem.limits, self.least, strict=True)
        ]

    def copy(self, table: Timetable) -> "Limits":
        """The same limits for a copy of the timetable."""
        twin = copy(self)
        twin.table = table
        return twin

    def _growth(self, placement: Placement) -> list[int]:
        pairs = zip(self.forms, self.least, strict=True)
        return [self.table.increase(form, placement) - least.item(placement.task) for form, least in pairs]

    def _rejection_growth(self, tasks: Sequence[int]) -> list[int]:
        pairs = zip(self.rejection, self.least, strict=True)
        return [sum(cost.item(task) - least.item(task) for task in tasks) for cost, least in pairs]

    def _leave_room(self, growth: Sequence[int]) -> bool:
        return all(more <= slack for more, slack in zip(growth, self.slack, strict=True))

    def _take(self, growth: Sequence[int]) -> None:
        self.slack = [slack - more for slack, more in zip(self.slack, growth, strict=True)]

    def allow(self, placement: Placement) -> bool:
        """The placement and the rest of the tasks at their least pass no limit."""
        return not self.forms or self._leave_room(self._growth(placement))

    def allow_rejection(self, tasks: Sequence[int]) -> bool:
        """Rejecting the tasks and the rest at its least pass no limit."""
        return not self.forms or self._leave_room(self._rejection_growth(tasks))

    def charge(self, placement: Placement) -> None:
        """Note that ``placement`` is about to be committed."""
        self._take(self._growth(placement))

    def reject(self, tasks: Sequence[int]) -> None:
        """Note that the tasks are rejected."""
        self._take(self._rejection_growth(tasks))


def _least(scope: Scope, form: Form, modes: Ints, first: Ints) -> Ints:
    """(J,) least that each free task adds to ``form``; 0 for the others."""
    problem = scope.problem
    unset = np.iinfo(np.int64).max
    least = np.full(problem.num_tasks, unset)
    np.minimum.at(least, problem.mode_task[modes], own_cost(problem, form, modes, first[modes]))
    reject = np.where(scope.rejectable, rejection_cost(form), unset)
    least = np.minimum(least, reject)
    return np.where(scope.free & (least < unset), least, 0)
