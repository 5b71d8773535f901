"""Solving one level of the time-indexed MILP by hand, with every cross-check on the way."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from optalloc.formulations.milp import (
    MilpModel,
    build,
    build_arrays,
    read_plan,
    start_values,
)
from optalloc.formulations.milp.matrix import Matrix
from optalloc.problem import REJECTED, Form, Plan, Problem, Transfer
from optalloc.scope import Scope, full_scope, windows
from optalloc.solvers.highs_native import IMPOSSIBLE, PROVEN, NativeRun


@dataclass
class Solved:
    """The optimum of one level; value and plan are None if there is no plan."""

    value: int | None
    plan: Plan | None
    milp: MilpModel

    @property
    def starts(self) -> list[int]:
        return self.plan.start.tolist()

    @property
    def modes(self) -> list[int]:
        return self.plan.mode.tolist()

    @property
    def transfers(self) -> list[tuple[int, int, int]]:
        """(replica, route, start) of the plan's transfers."""
        return [(t.replica, t.route, t.start) for t in self.plan.transfers]

    def rows(self, family: str) -> int:
        """Number of rows of a family."""
        return len(getattr(self.milp.model, family))


def assert_same(one: Matrix, two: Matrix) -> None:
    """Both matrices are equal, entry by entry."""
    for name in (
        "cost",
        "offset",
        "lower",
        "upper",
        "integer",
        "row_lower",
        "row_upper",
        "start",
        "index",
        "value",
    ):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)


def run_natively(matrix: Matrix) -> tuple[str, Any]:
    """HiGHS on a matrix."""
    run = NativeRun(matrix, seconds=30)
    run.begin()
    run.wait()
    answer = run.answer()
    return answer.status, answer.values


def solve(problem: Problem, *, scope: Scope | None = None, **level: Any) -> Solved:
    """Minimise one level; the arrays made without Pyomo must be the same, and the plan must survive a round trip."""
    scope = full_scope(problem) if scope is None else scope
    milp = build(scope, windows(scope), **level)
    arrays = build_arrays(scope, windows(scope), **level)
    assert_same(milp.matrix, arrays.matrix)
    assert milp.possible == arrays.possible
    if milp.matrix.num_columns == 0:
        return Solved(milp.constant, read_plan(milp, np.zeros(0)), milp)
    status, values = run_natively(milp.scaled_matrix)
    if status == IMPOSSIBLE:
        return Solved(None, None, milp)
    assert status == PROVEN
    assert milp.possible
    plan = read_plan(milp, values)
    exact = start_values(milp, plan)
    assert exact is not None
    assert milp.matrix.broken(exact) == []
    value = round(float(milp.matrix.cost @ exact)) + milp.constant
    assert form_value(problem, problem.levels[level.get("level", 0)], plan) == value
    return Solved(value, plan, milp)


def form_value(problem: Problem, form: Form, plan: Plan) -> int:
    """The value of a plan, term by term."""
    value, ends, paid = 0, [0], set()
    for j, (mode, start) in enumerate(zip(plan.mode.tolist(), plan.start.tolist(), strict=True)):
        if mode == REJECTED:
            value += form.rejected[j] + form.late[j] + 1000 * form.loss[j]
        if mode < 0:
            continue
        end = start + problem.duration[mode]
        ends.append(end)
        paid |= set(problem.buys(mode))
        value += form.completion[j] * end + form.tardiness[j] * max(0, end - problem.due[j]) + form.placed[j]
        value += form.late[j] * (end > problem.due[j]) + form.loss[j] * (1000 - problem.utility[mode])
        value += form.cost * problem.money[mode]
    money = sum(t.cost for t in plan.transfers) + sum(int(problem.purchase_cost[b]) for b in paid)
    return int(value + form.cost * money + form.makespan * max(ends))


def state_transfer(dataset: int, site: int, start: int, ticks: int, **more: Any) -> Transfer:
    """A transfer of the state."""
    return Transfer(dataset, site, (), start, ticks, 0, (), **more)
