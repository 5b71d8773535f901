"""What placements add to the objective, for many rows at once."""

import numpy as np

from optalloc.environment.layout import Layout
from optalloc.problem import Form, Ints, own_cost, rejection_cost

__all__ = ["Costs"]


class Costs:
    """The coefficients of one form by row: `Timetable.increase` on arrays.

    Attributes
    ----------
    form
        A level of the objective, or a limit.
    rejection
        (J,) what rejecting each task adds.
    completion
        (R,) what each tick until the end of a run adds.
    base
        (R,) what a run adds that would end at tick 0 for free.
    """

    def __init__(self, layout: Layout, form: Form):
        problem, task = layout.problem, layout.task
        self.form = form
        self.rejection = rejection_cost(form)
        self.completion: Ints = form.completion[task]
        self.base = own_cost(problem, form, layout.mode, -layout.duration)
        self.due: Ints = problem.due[task]
        self._tardiness: Ints = form.tardiness[task]
        self._late: Ints = form.late[task]
        self._has_due = bool(form.tardiness.any() or form.late.any())

    def increase(self, rows: Ints, end: Ints, money: Ints, makespan: int) -> Ints:
        """What runs add, each by itself.

        Parameters
        ----------
        end
            (N,) ticks.
        money
            (N,) money for transfers and purchases, beside the row's own.
        makespan
            Largest end of what is placed.
        """
        value = self.base[rows] + self.completion[rows] * end
        if self._has_due:
            over = np.maximum(end - self.due[rows], 0)
            value += self._tardiness[rows] * over + self._late[rows] * (over > 0)
        if self.form.cost:
            value += self.form.cost * money
        if self.form.makespan:
            value += self.form.makespan * np.maximum(end - makespan, 0)
        return np.asarray(value)

    def sunk(self, tasks: Ints, clock: int | Ints) -> Ints:
        """(N,) what tasks add by ``clock`` for having waited, whatever is decided then."""
        form = self.form
        return np.asarray((form.completion[tasks] + form.makespan) * clock + form.placed[tasks])
