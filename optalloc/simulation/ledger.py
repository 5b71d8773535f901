"""What has been decided for good is worth, and what of the plan limits is left."""

from copy import copy

from optalloc.placement import Placement, Timetable
from optalloc.problem import Form, Problem, rejection_cost

__all__ = ["Ledger"]


class Ledger:
    """Running totals of the levels and of the limited terms, as exact integers.

    A transfer is paid when it is decided for good, a purchase with the first run that uses it, the makespan
    grows with the runs: so the totals are, at any time, the terms of `evaluate` on what is decided, and their
    increments add up to the objective.

    Parameters
    ----------
    table
        What is fixed from the start.

    Attributes
    ----------
    values
        The levels, scaled by K.
    limited
        The limited terms, scaled as the limits are.
    """

    def __init__(self, problem: Problem, table: Timetable):
        self.problem = problem
        self._forms: list[Form] = [*problem.levels, *(limit.form for limit in problem.limits)]
        self._rejection = [rejection_cost(form) for form in self._forms]
        self.values = [table.value(level) for level in problem.levels]
        self.limited = [table.value(limit.form) for limit in problem.limits]

    def copy(self) -> "Ledger":
        """The same totals, to go on from."""
        twin = copy(self)
        twin.values, twin.limited = self.values.copy(), self.limited.copy()
        return twin

    def place(self, table: Timetable, placement: Placement) -> None:
        """A task is placed: to be told before ``table`` is."""
        self._add([table.increase(form, placement) for form in self._forms])

    def pay(self, money: int) -> None:
        """A transfer begins."""
        self._add([form.cost * money for form in self._forms])

    def reject(self, task: int) -> None:
        """A task is rejected."""
        self._add([int(cost[task]) for cost in self._rejection])

    def _add(self, growth: list[int]) -> None:
        levels = len(self.values)
        self.values = [old + more for old, more in zip(self.values, growth[:levels], strict=True)]
        self.limited = [old + more for old, more in zip(self.limited, growth[levels:], strict=True)]

    def passed(self) -> str:
        """The term of a limit that is passed; empty if there is none."""
        limits = zip(self.problem.limits, self.limited, strict=True)
        return next((limit.term for limit, value in limits if value > limit.bound), "")

    def allows(self, table: Timetable, placement: Placement) -> bool:
        """Whether a placement passes no limit."""
        limits = zip(self.problem.limits, self.limited, strict=True)
        return all(value + table.increase(limit.form, placement) <= limit.bound for limit, value in limits)

    def affords(self, money: int) -> bool:
        """Whether a transfer of that cost passes no limit."""
        limits = zip(self.problem.limits, self.limited, strict=True)
        return all(value + limit.form.cost * money <= limit.bound for limit, value in limits)

    def allows_rejection(self, tasks: tuple[int, ...]) -> bool:
        """Whether rejecting the tasks passes no limit."""
        costs = self._rejection[len(self.values) :]
        growth = [sum(int(cost[task]) for task in tasks) for cost in costs]
        limits = zip(self.problem.limits, self.limited, growth, strict=True)
        return all(value + more <= limit.bound for limit, value, more in limits)
