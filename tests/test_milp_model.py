"""The MILP as an object: matrices, plans and starts, what experts add, export."""

from pathlib import Path
from typing import Any

import highspy
import numpy as np
import pyomo.environ as pyo
import pytest
from support.milp import assert_same, run_natively, solve
from support.problems import Mode, Replica, Task, make_problem

from optalloc.errors import InputError, SolverError, UnsupportedError
from optalloc.formulations.milp import (
    build,
    build_arrays,
    export_milp,
    read_plan,
    start_values,
)
from optalloc.formulations.milp.constraints import FAMILIES
from optalloc.formulations.milp.matrix import compile_standard_form, flatten
from optalloc.formulations.milp.profiles import free_capacity
from optalloc.formulations.milp.size import estimate_size
from optalloc.formulations.milp.variables import spread
from optalloc.problem import FREE, NEVER, REJECTED, Plan, Problem
from optalloc.scope import full_scope, windows


# plans -----------------------------------------------------------------------------------------------
def test_start_outside_the_model_has_no_values() -> None:
    """A start beyond the windows, a mode that is not active: the model has no place for the plan."""
    problem = make_problem([Task([Mode(1, {0: 1})])])
    milp = build(full_scope(problem), windows(full_scope(problem), end_by=4))
    assert start_values(milp, Plan(np.array([0]), np.array([3]))) is not None
    assert start_values(milp, Plan(np.array([0]), np.array([4]))) is None
    assert start_values(milp, Plan(np.array([REJECTED]), np.array([0]))) is None


def test_start_without_unread_transfers_and_with_constant_ones_moved() -> None:
    """A late constant transfer is moved to its fixed start; one that nothing reads is left out."""
    tasks = [Task([Mode(1, {0: 1}, needs=[0]), Mode(5, {0: 1})], deadline=9)]
    problem = make_problem(tasks, replicas=[Replica(0, routes=[(2, 1, ())])])
    milp = build(full_scope(problem), windows(full_scope(problem)))
    late = problem.transfer(0, 0, 3)
    read = start_values(milp, Plan(np.array([0]), np.array([6]), (late,)))
    unread = start_values(milp, Plan(np.array([1]), np.array([0]), (late,)))
    assert read[milp.columns.y_at : milp.columns.z_at].tolist() == [1]
    assert unread[milp.columns.y_at : milp.columns.z_at].tolist() == [0]
    assert milp.matrix.broken(read) == milp.matrix.broken(unread) == []


def test_values_are_rounded_within_a_tolerance_only() -> None:
    """0.9999991 is 1; 0.9 and NaN are errors."""
    problem = make_problem([Task([Mode(1, {0: 1})], deadline=1)])
    milp = build(full_scope(problem), windows(full_scope(problem)))
    assert read_plan(milp, np.array([0.9999991])).mode.tolist() == [0]
    for value in (0.9, np.nan):
        with pytest.raises(SolverError, match="where an integer belongs"):
            read_plan(milp, np.array([value]))


# the model as an object ------------------------------------------------------------------------------
def rich_problem() -> Problem:
    """Every family of rows at once."""
    tasks = [
        Task([Mode(2, {0: 1, 2: 1}), Mode(1, {1: 1}, needs=[0], buys=[0])], penalty=90, deadline=12),
        Task([Mode(2, {1: 1}, needs=[1])], after=[(0, 1)], penalty=80, due=5, deadline=12),
        Task([Mode(3, {0: 1, 3: 1}, money=2), Mode(1, {0: 2, 3: 1}, buys=[0])], deadline=12),
    ]
    replicas = [Replica(n, size=2, routes=[(1, 3, (2,)), (3, 0, ())]) for n in range(2)]
    return make_problem(
        tasks, [2, 1], channels=[1], seats=[1], replicas=replicas, storage={0: 3}, purchases=[4],
        levels=[{"makespan": 2, "cost": 1, "weighted_tardiness": 3, "rejected": 1}], limits={"cost": 30},
    )  # fmt: skip


def test_both_compilers_give_the_same_matrix() -> None:
    """The flattener, Pyomo's own compiler and the arrays without Pyomo agree on a model with every family."""
    scope = full_scope(rich_problem())
    milp = build(scope, windows(scope))
    named = {block.local_name for block in milp.model.component_objects(pyo.Constraint) if len(block)}
    assert named == {*FAMILIES, "limits"} - {"held_for_fixed"}
    assert_same(flatten(milp.model), build_arrays(scope, windows(scope)).matrix)
    assert_same(flatten(milp.model, milp.made), flatten(milp.model))
    own, slow = flatten(milp.model), compile_standard_form(milp.model)
    for name in ("cost", "offset", "lower", "upper", "integer", "row_lower", "row_upper"):
        np.testing.assert_array_equal(getattr(own, name), getattr(slow, name), err_msg=name)
    point = np.random.default_rng(0).random(own.num_columns)
    np.testing.assert_allclose(own.activity(point), slow.activity(point))
    assert solve(rich_problem()).value is not None


def test_rows_of_an_expert_count() -> None:
    """A row added to the Pyomo model is handed over, also one that is not a plain sum; so is a fixed variable."""
    # The cheap mode is forbidden by a row that the flattener does not read by itself: 7 instead of 6.
    problem = make_problem([Task([Mode(2, {0: 1}, money=5), Mode(4, {0: 1}, money=2)])])
    scope = full_scope(problem)
    milp = build(scope, windows(scope))
    milp.model.mine = pyo.Constraint(expr=2 * (milp.model.x[0, 1, 0] + 0) + 1 <= 1)
    _, values = run_natively(milp.scaled_matrix)
    assert read_plan(milp, values).mode.tolist() == [0]
    milp = build(scope, windows(scope))
    milp.model.mine = pyo.Constraint(expr=milp.model.x[0, 0, 0] - 3 * milp.model.x[0, 1, 0] >= 1)
    assert_same(milp.matrix, flatten(milp.model))
    milp = build(scope, windows(scope))
    milp.model.x[0, 1, 0].fix(0)
    _, values = run_natively(milp.scaled_matrix)
    assert read_plan(milp, values).mode.tolist() == [0]


def test_names_of_rows() -> None:
    """Messages name a row by its family and key."""
    scope = full_scope(make_problem([Task([Mode(1, {0: 1})])]))
    assert build(scope, windows(scope)).row_name(0) == "one_start[0]"
    assert build_arrays(scope, windows(scope)).row_name(0) == "row 0"


def test_build_can_be_given_up() -> None:
    """The check between families may raise."""
    scope = full_scope(rich_problem())

    def out_of_time() -> None:
        raise TimeoutError

    for make in (build, build_arrays):
        with pytest.raises(TimeoutError):
            make(scope, windows(scope), check=out_of_time)


def test_size_is_known_before_building() -> None:
    """The estimate is not below the columns of the model without `held` and `after`, and not far above."""
    scope = full_scope(rich_problem())
    columns, entries = estimate_size(scope, windows(scope))
    milp = build(scope, windows(scope))
    built = milp.columns.z_at - len(milp.columns.rejected_task)
    assert built <= columns <= 2 * built
    assert entries > columns


@pytest.mark.parametrize("ending", ["mps", "lp"])
def test_export_is_read_by_another_program(tmp_path: Path, ending: str) -> None:
    """The file has the level's optimum, constant included, and names that carry no ids."""
    problem = rich_problem()
    export_milp(problem, tmp_path / f"model.{ending}")
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    assert highs.readModel(str(tmp_path / f"model.{ending}")) == highspy.HighsStatus.kOk
    highs.run()
    assert round(highs.getInfo().objective_function_value) == solve(problem).value
    assert [file.name for file in tmp_path.iterdir()] == [f"model.{ending}"]


def test_export_of_a_problem_without_a_plan(tmp_path: Path) -> None:
    """A contradiction is written as one, not left out."""
    problem = make_problem([Task([Mode(2, {0: 1})], deadline=1)])
    export_milp(problem, tmp_path / "model.lp")
    assert "impossible" in (tmp_path / "model.lp").read_text()


@pytest.mark.parametrize("ending", ["mps", "lp"])
def test_export_has_the_same_matrix_and_names_of_indices(tmp_path: Path, ending: str) -> None:
    """Column by column and row by row; the constant of the objective is a last column, fixed at 1."""
    problem = rich_problem()
    scope = full_scope(problem)
    matrix = build(scope, windows(scope)).matrix
    export_milp(problem, tmp_path / f"model.{ending}")
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.readModel(str(tmp_path / f"model.{ending}"))
    lp = highs.getLp()
    model = build(scope, windows(scope)).model
    names = [*map(written, model.component_data_objects(pyo.Var, sort=False)), "constant"]
    kinds = [kind == highspy.HighsVarType.kInteger for kind in lp.integrality_]
    read = zip(lp.col_cost_, lp.col_lower_, lp.col_upper_, kinds, strict=True)
    made = zip(
        [*matrix.cost, matrix.offset],
        [*matrix.lower, 1],
        [*matrix.upper, 1],
        [*matrix.integer, False],
        strict=True,
    )
    assert dict(zip(lp.col_names_, read, strict=True)) == dict(zip(names, made, strict=True))
    rows = map(written, model.component_data_objects(pyo.Constraint, sort=False))
    assert list(lp.row_names_) == list(rows)
    assert list(lp.row_lower_) == list(matrix.row_lower)
    assert list(lp.row_upper_) == list(matrix.row_upper)


def written(component: Any) -> str:
    """``x[0,3,17]`` as ``x(0_3_17)``."""
    return component.name.translate(str.maketrans("[],-", "()_n"))


def test_export_refuses_what_is_too_large(tmp_path: Path) -> None:
    """Before anything is built: with ticks of 1 ns the model would have more entries than an int64 counts."""
    problem = make_problem([Task([Mode(10**12, {0: 1})]), Task([Mode(10**12, {0: 1})])])
    with pytest.raises(InputError, match=r"^max_columns: .* 2,000,000 are allowed; raise it") as caught:
        export_milp(problem, tmp_path / "model.lp")
    assert [fault.path for fault in caught.value.faults] == ["max_columns", "max_entries"]
    columns, entries = estimate_size(full_scope(rich_problem()), windows(full_scope(rich_problem())))
    for limits in ({"max_columns": columns - 1}, {"max_entries": entries - 1}):
        with pytest.raises(InputError, match=f"{columns:,} columns and {entries:,} entries"):
            export_milp(rich_problem(), tmp_path / "model.lp", **limits)
    assert list(tmp_path.iterdir()) == []
    steps: list[str] = []
    limits = {"max_columns": columns, "max_entries": entries}
    export_milp(rich_problem(), tmp_path / "model.lp", on_step=steps.append, **limits)
    assert steps[0] == f"building about {columns:,} columns and {entries:,} entries"


def test_export_refuses_what_highs_cannot_write(tmp_path: Path) -> None:
    """An entry of 10^15 or more; nothing is left behind."""
    large = 10**15
    uses = [Task([Mode(1, {0: large}), Mode(2, {0: large - 1})]) for _ in range(2)]
    with pytest.raises(UnsupportedError, match="coarser units"):
        export_milp(make_problem(uses, [large]), tmp_path / "model.lp")
    assert list(tmp_path.iterdir()) == []


def test_export_refuses_other_formats(tmp_path: Path) -> None:
    """The message names the formats."""
    with pytest.raises(InputError, match="mps or lp"):
        export_milp(rich_problem(), tmp_path / "model.xls")
    assert list(tmp_path.iterdir()) == []


# small parts -----------------------------------------------------------------------------------------
def test_spread_lists_ranges() -> None:
    """Ranges one after the other, empty ones included."""
    assert spread(np.array([5, 2, 9]), np.array([2, 0, 3])).tolist() == [5, 6, 9, 10, 11]
    assert spread(np.zeros(0, dtype=int), np.zeros(0, dtype=int)).tolist() == []


def test_free_capacity_subtracts_what_is_fixed() -> None:
    """A calendar of 2, from tick 4 on 1, and a run of the state in [-1, 6)."""
    tasks = [Task([Mode(7, {0: 1})]), Task([Mode(1, {0: 1})])]
    problem = make_problem(tasks, [[(0, 2), (4, 1)]], state_mode=[0, FREE], state_start=[-1, 0])
    times, amounts = free_capacity(full_scope(problem))[0]
    assert (times.tolist(), amounts.tolist()) == ([0, 4, 6], [1, 0, 1])


def test_large_coefficients_stay_exact() -> None:
    """Money near 2^52 is carried without rounding into the rows."""
    big = 2**52 + 1
    task = Task([Mode(1, {0: 1}, money=big), Mode(2, {0: 1}, money=big + 3)], deadline=2)
    problem = make_problem([task], levels=[{"cost": 1}], limits={"cost": big})
    solved = solve(problem)
    assert (solved.value, solved.modes) == (big, [0])
    assert big < NEVER
