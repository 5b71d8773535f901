"""Objective terms as linear functions of the columns."""

import numpy as np

from optalloc.formulations.milp.variables import Columns
from optalloc.problem import NEVER, REJECTED, Form, Ints, own_cost, rejection_cost

__all__ = ["linear_form", "shifted_form"]


def linear_form(c: Columns, form: Form) -> tuple[Ints, int]:
    """``form`` of a plan = coefficients @ columns + constant, in integers.

    A start adds what its task then costs by itself; ``rejected`` the cost of rejection; ``y`` and ``z``
    their money; ``after`` one tick of the makespan each. The fixed part is the constant.
    """
    problem = c.problem
    coefficients = np.zeros(c.count, dtype=np.int64)
    coefficients[: c.rejected_at] = own_cost(problem, form, c.x_mode, c.x_start)
    coefficients[c.rejected_at : c.y_at] = rejection_cost(form)[c.rejected_task]
    coefficients[c.y_at : c.z_at] = form.cost * problem.route_cost[c.y_route]
    coefficients[c.z_at : c.held_at] = form.cost * problem.purchase_cost[c.z_purchase]
    coefficients[c.after_at :] = form.makespan
    return coefficients, fixed_value(c, form)


def fixed_value(c: Columns, form: Form) -> int:
    """What the fixed part adds to ``form``, the lower bound of the makespan included."""
    problem, scope = c.problem, c.scope
    placed = np.flatnonzero(scope.mode >= 0)
    rejected = np.flatnonzero(scope.mode == REJECTED)
    value = own_cost(problem, form, scope.mode[placed], scope.start[placed]).sum()
    value += rejection_cost(form)[rejected].sum()
    paid = {b for mode in scope.mode[placed].tolist() for b in problem.buys(mode)}
    money = sum(t.cost for t in scope.transfers) + sum(int(problem.purchase_cost[b]) for b in paid)
    return int(value) + form.cost * money + form.makespan * c.first_end


def shifted_form(c: Columns, form: Form) -> tuple[Ints, int]:
    """`linear_form` with each free task's least own cost (rejection counted) moved into the constant.

    Every task starts once or is rejected, so the value stays the same, and the numbers that a
    floating-point solver sees are as small as they can be.
    """
    coefficients, constant = linear_form(c, form)
    tasks = np.concatenate([c.x_task, c.rejected_task])
    least = np.full(c.problem.num_tasks, NEVER, dtype=np.int64)
    np.minimum.at(least, tasks, coefficients[: c.y_at])
    coefficients[: c.y_at] -= least[tasks]
    return coefficients, constant + int(least[least < NEVER].sum())
