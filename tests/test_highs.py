"""HiGHS as a solver: statuses, bounds, starts, options, threads, interrupts."""

import math
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import highspy
import numpy as np
import pytest
from support.problems import Mode, Task, make_problem

from optalloc.compilation import compile
from optalloc.errors import InputError, SolverError, UnsupportedError
from optalloc.formulations.milp import build
from optalloc.formulations.milp.matrix import Matrix
from optalloc.generators import generate
from optalloc.io.reading import read_instance
from optalloc.objective_spec import with_objective
from optalloc.problem import Problem
from optalloc.result import Status, Termination
from optalloc.scope import full_scope, windows
from optalloc.solvers import highs as solver_highs
from optalloc.solvers import highs_native
from optalloc.solvers.base import LevelAnswer, LevelTask, Monitor
from optalloc.solvers.highs import integer_bound, solve_level
from optalloc.solvers.highs_native import (
    IMPOSSIBLE,
    LIMIT,
    PROVEN,
    STATUS,
    NativeAnswer,
    NativeRun,
    check_numbers,
)
from optalloc.solvers.highs_options import QuietHighs, split_options
from optalloc.solvers.rules import best_start
from optalloc.solvers.run import solve

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def geo() -> Problem:
    """Six tasks over three regions."""
    return compile(generate("geo", tasks=6, seed=1))


@pytest.fixture
def no_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """HiGHS begins without the plan of a rule."""
    monkeypatch.setattr(solver_highs, "_begin", lambda request: None)


def knapsacks(columns: int = 60, rows: int = 30, seed: int = 1) -> Matrix:
    """A problem that HiGHS does not solve within seconds: every column counts in many tight rows."""
    random = np.random.default_rng(seed)
    weights = random.integers(1, 50, (rows, columns)).astype(float)
    return Matrix(
        cost=-random.integers(1, 50, columns).astype(float),
        offset=0.0,
        lower=np.zeros(columns),
        upper=np.ones(columns),
        integer=np.ones(columns, dtype=bool),
        row_lower=np.full(rows, -np.inf),
        row_upper=np.floor(weights.sum(axis=1) / 3),
        start=(np.arange(rows + 1) * columns).astype(np.int32),
        index=np.tile(np.arange(columns, dtype=np.int32), rows),
        value=weights.ravel(),
    )


def finish(run: NativeRun) -> NativeAnswer:
    """Let a run come to its end."""
    run.begin()
    run.wait()
    return run.answer()


def level_task(problem: Problem, **options: Any) -> LevelTask:
    """The first level without a start."""
    scope = full_scope(problem)
    return LevelTask(scope, Monitor(scope, 60.0), 0, (), None, 0, 1, options)


# proofs ----------------------------------------------------------------------------------------------
def test_optimum_is_proven(geo: Problem) -> None:
    """Plan, bound and versions; the objective is recomputed by `evaluate`."""
    result = solve(geo, solver="highs", threads=1)
    assert (result.status, result.termination) == (Status.OPTIMAL, Termination.PROVEN)
    assert result.objective == result.bound == result.evaluation.objective
    assert result.levels[0].proven_by == "highs"
    assert {"highspy", "pyomo"} <= result.versions.keys()
    assert result.info["columns"] > 0


def test_runs_without_a_start(geo: Problem, no_rules: None) -> None:
    """The same optimum if no rule's plan narrows the windows."""
    cold = solve(geo, solver="highs", threads=1)
    assert cold.info["native_start"] == "none"
    assert cold.objective == cold.bound == solve(geo, solver="cpsat", threads=1).objective


def test_infeasible_is_a_status(no_rules: None) -> None:
    """Two runs of 2 ticks on one device by tick 3: each fits alone, both do not."""
    mode = {"id": "m", "uses": [{"node": "n", "devices": 1}], "duration_ticks": 2}
    tasks = [{"id": f"t{i}", "modes": [mode], "deadline_s": 180} for i in range(2)]
    instance = read_instance(
        {
            "format": "optalloc-instance/1",
            "name": "tight",
            "sites": [{"id": "s"}],
            "device_types": [{"id": "d"}],
            "nodes": [{"id": "n", "site": "s", "device_type": "d", "devices": 1}],
            "tasks": tasks,
        }
    )
    result = solve(instance, solver="highs", threads=1)
    assert (result.status, result.plan, result.objective) == (Status.INFEASIBLE, None, None)


@pytest.mark.parametrize(
    ("bound", "tasks", "whole"),
    [
        (3.2, 10, 4),
        (3.0000001, 10, 3),  # within the tolerance of 3
        (2.9999999, 10, 3),
        (3.5, 10, 4),  # what HiGHS stops at with an absolute gap of 0.5
        (-0.5, 10, 0),
        (1e8, 10, 10**8),  # tolerance 0.1
        (2.6e8, 10, 260_000_000 - 1),  # tolerance 0.26: a bound, but no proof
        (math.inf, 10, None),
        (-math.inf, 10, None),
        (None, 10, None),
    ],
)
def test_integer_bound(bound: float | None, tasks: int, whole: int | None) -> None:
    """What a floating-point bound of a whole number proves."""
    assert integer_bound(bound, tasks) == whole


def test_gap_ends_the_run(geo: Problem) -> None:
    """With a gap of 100 % the first bound is enough."""
    result = solve(geo, solver="highs", threads=1, max_gap=1.0)
    assert result.gap is not None
    assert result.gap <= 1.0
    assert result.termination in (Termination.GAP, Termination.PROVEN)


def test_bound_is_there_as_soon_as_the_model_is(geo: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every task's least own cost is a bound before HiGHS has said anything."""
    monkeypatch.setattr(NativeRun, "_on_bound", lambda run, event: None)
    monkeypatch.setattr(solver_highs._Run, "_answer", lambda run, found: LevelAnswer(Termination.COMPLETED))
    result = solve(geo, solver="highs", threads=1)
    assert result.bound is not None
    assert 0 < result.bound <= solve(geo, solver="cpsat", threads=1).objective


def test_search_cut_short_by_an_option(geo: Problem, no_rules: None) -> None:
    """With no nodes to look at, the bound is valid and the termination says COMPLETED (or it is proven at the root)."""
    optimum = solve(geo, solver="cpsat", threads=1).objective
    result = solve(geo, solver="highs", threads=1, options={"mip_max_nodes": 0, "mip_heuristic_effort": 0.0})
    assert result.bound <= optimum
    assert result.termination in (Termination.COMPLETED, Termination.PROVEN)


# statuses --------------------------------------------------------------------------------------------
def test_every_native_status_is_known() -> None:
    """A status is translated or an error; none is missing from the thinking."""
    errors = {"kNotset", "kLoadError", "kModelError", "kPresolveError", "kSolveError", "kPostsolveError"}
    errors |= {"kModelEmpty", "kUnbounded"}
    assert STATUS.keys() | errors == set(highspy.HighsModelStatus.__members__)
    assert not STATUS.keys() & errors


def test_no_values_without_an_incumbent() -> None:
    """A market split, out of time at once: HiGHS holds zeros, which are no solution."""
    matrix = knapsacks()
    answer = finish(NativeRun(replace(matrix, row_lower=matrix.row_upper), seconds=0.0))
    assert answer.status == LIMIT
    assert answer.values is None


def test_time_limit_without_a_plan(geo: Problem, no_rules: None) -> None:
    """NO_SOLUTION and TIME_LIMIT, no plan, no objective."""
    result = solve(geo, solver="highs", time_limit=1e-6, threads=1)
    assert (result.status, result.termination) == (Status.NO_SOLUTION, Termination.TIME_LIMIT)
    assert (result.plan, result.objective, result.gap) == (None, None, None)


def test_handing_over_counts() -> None:
    """The search gets what is left of the seconds when it begins."""
    run = NativeRun(knapsacks(), seconds=30)
    time.sleep(0.3)
    run.begin()
    run.join()
    assert run.highs.getOptionValue("time_limit")[1] <= 29.7


@pytest.mark.parametrize("step", ["_pass_model", "start_from"])
def test_time_is_up_while_the_model_is_handed_over(
    geo: Problem, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No search is begun that could not be cut short before it has presolved."""
    task = level_task(geo)
    task.monitor.offer(best_start(task.scope), "test")
    task = replace(task, start=task.monitor.best)
    hand_over = getattr(NativeRun, step)

    def late(*args: Any) -> None:
        hand_over(*args)
        task.monitor.time_limit = 0.0

    monkeypatch.setattr(NativeRun, step, late)
    monkeypatch.setattr(NativeRun, "begin", lambda run: pytest.fail("it has begun"))
    answer = solve_level(task)
    assert (answer.termination, answer.bound) == (Termination.TIME_LIMIT, None)
    assert task.monitor.bounds


def test_solved_and_impossible() -> None:
    """The two proofs of the native run."""
    matrix = knapsacks(columns=8, rows=2)
    assert finish(NativeRun(matrix, seconds=20)).status == PROVEN
    least = np.full(matrix.num_rows, matrix.value.sum() + 1)
    answer = finish(NativeRun(replace(matrix, row_lower=least, row_upper=least), seconds=20))
    assert (answer.status, answer.values) == (IMPOSSIBLE, None)


# starts ----------------------------------------------------------------------------------------------
def test_start_is_kept(geo: Problem) -> None:
    """With no time to search, the result is as good as the start, and says that it was given one."""
    good = solve(geo, solver="highs", threads=1)
    again = solve(geo, solver="highs", threads=1, start=good.plan, time_limit=0.001)
    assert again.objective == good.objective
    proven = solve(geo, solver="highs", threads=1, start=good.plan)
    assert (proven.status, proven.objective) == (Status.OPTIMAL, good.objective)
    assert proven.info["native_start"] == "complete"


def test_misread_start_is_not_trusted(shared: Path, no_rules: None) -> None:
    """HiGHS 1.16 takes a start of 12760 for 10960 on the third level here, and stops at once; true is 11360."""
    result = solve(read_instance(shared / "bench" / "small_cases" / "004.json"), solver="highs", threads=1)
    assert [level.objective for level in result.levels] == [1378, 1080, 11360]
    assert result.status is Status.OPTIMAL


def test_run_stops_at_a_solution_that_is_not_worth_what_is_claimed() -> None:
    """The claim of HiGHS is compared with the costs."""
    run = NativeRun(knapsacks(), seconds=1)
    values = np.zeros(60)
    run._compare(values, 1e-9)
    assert not run.misled
    run._compare(values, -3.0)
    assert run.misled


def test_cold_run_after_a_misread_start(geo: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the run with the start is misled, another without it proves the optimum."""
    searches: list[bool] = []
    search = solver_highs._Run._search

    def misled_if_started(run: Any, start: Any) -> NativeAnswer:
        searches.append(start is not None)
        answer = search(run, start)
        run.run.misled = start is not None
        return answer

    monkeypatch.setattr(solver_highs._Run, "_search", misled_if_started)
    result = solve(geo, solver="highs", threads=1)
    assert searches == [True, False]
    assert result.status is Status.OPTIMAL
    assert "misread" in result.info["native_start"]


def test_model_that_excludes_a_verified_plan_is_an_error(
    geo: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The start must satisfy every row; if not, the run is an ERROR that names the row."""
    monkeypatch.setattr(Matrix, "broken", lambda matrix, values: [0])
    result = solve(geo, solver="highs", threads=1)
    assert result.status is Status.ERROR
    assert "one_start[0]" in result.message


def test_solution_within_tolerance_only_is_not_used() -> None:
    """Values that break a limit once they are rounded are left out, and counted."""
    # Modes for 4 and 2 money; the limit of 3 allows the second only.
    task = Task([Mode(1, {0: 1}, money=4), Mode(5, {0: 1}, money=2)])
    problem = make_problem([task], levels=[{"weighted_completion": 1}], limits={"cost": 3})
    run = solver_highs._Run(level_task(problem))
    run.milp = build(full_scope(problem), windows(full_scope(problem), end_by=5))
    values = np.zeros(run.milp.matrix.num_columns)
    values[0] = 1
    run._offer(values)
    assert run.info == {"solutions_lost_to_rounding": 1}
    assert run.task.monitor.best is None


# what is handed over ---------------------------------------------------------------------------------
def test_numbers_are_checked_before() -> None:
    """NaN in costs, matrix or bounds, infinite or huge coefficients."""
    matrix = knapsacks(columns=4, rows=2)
    check_numbers(matrix)
    bad = np.array([1.0, np.nan, 1.0, 1.0])
    for fault in ({"cost": bad}, {"value": np.full(8, np.inf)}, {"lower": bad}, {"row_upper": bad[:2]}):
        with pytest.raises(SolverError, match="not"):
            NativeRun(replace(matrix, **fault), seconds=1)
    for size in (2.0**52, 1e-8):
        with pytest.raises(UnsupportedError, match="cpsat"):
            check_numbers(replace(matrix, value=np.full(8, size)))


def test_model_with_a_column_twice_in_a_row_is_refused() -> None:
    """HiGHS's return code is looked at."""
    matrix = knapsacks(columns=4, rows=2)
    with pytest.raises(SolverError, match="model"):
        NativeRun(replace(matrix, index=np.zeros(8, dtype=np.int32)), seconds=1)


@pytest.mark.parametrize("limit", ["max_columns", "max_entries"])
def test_too_large_is_said_before_building(geo: Problem, no_rules: None, limit: str) -> None:
    """The message has the size, the limit and what to do; nothing is built."""
    result = solve(geo, solver="highs", threads=1, options={limit: 10})
    assert (result.status, result.termination) == (Status.NO_SOLUTION, Termination.MEMORY)
    assert "columns" in result.message
    assert f"{limit}=10" in result.message
    assert "rows" not in result.info


def test_large_models_are_built_as_arrays(geo: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond half a million columns there is no Pyomo model; the optimum is the same."""
    expected = solve(geo, solver="highs", threads=1).objective
    monkeypatch.setattr(solver_highs, "PYOMO_COLUMNS", 0)
    monkeypatch.setattr(solver_highs, "build", None)
    assert solve(geo, solver="highs", threads=1).objective == expected


# options ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"mip_rel_gapp": 0.1}, "no option 'mip_rel_gapp'"),
        ({"presolve": 3}, "must be text"),
        ({"presolve": "perhaps"}, "does not take 'perhaps'"),
        ({"mip_rel_gap": -1.0}, "does not take -1.0"),
        ({"mip_max_nodes": 2.5}, "must be a whole number"),
        ({"mip_detect_symmetry": "maybe"}, "must be true or false"),
        ({"mip_feasibility_tolerance": 1e-3}, "must not exceed"),
        ({"time_limit": 5}, "give time_limit to solve"),
        ({"max_columns": "many"}, "must be a whole number"),
    ],
)
def test_options_are_refused(geo: Problem, options: dict[str, Any], words: str) -> None:
    """Before any work, with the name and what is wrong."""
    with pytest.raises(InputError, match=words.replace("(", r"\(")):
        solve(geo, solver="highs", options=options)


def test_all_wrong_options_at_once() -> None:
    """Every fault has its path."""
    with pytest.raises(InputError) as refused:
        split_options({"nope": 1, "threads": 2, "presolve": "off"})
    assert [fault.path for fault in refused.value.faults] == ["options.nope", "options.threads"]


def test_options_are_passed_on(geo: Problem) -> None:
    """Text, as the command line gives it, is read in the option's type."""
    own, native = split_options({"presolve": "off", "mip_max_nodes": "7", "max_columns": "100"})
    assert (own["max_columns"], native) == (100, {"presolve": "off", "mip_max_nodes": "7"})
    run = NativeRun(knapsacks(), seconds=1, options=native)
    assert run.highs.getOptionValue("mip_max_nodes")[1] == 7
    result = solve(geo, solver="highs", threads=1, options={"presolve": "off"})
    assert result.status is Status.OPTIMAL


def test_defaults_of_a_run() -> None:
    """Gaps of a proof between whole numbers, seed and threads."""
    run = NativeRun(knapsacks(), seconds=7, threads=2, seed=2**31 + 5)
    options = {
        name: run.highs.getOptionValue(name)[1] for name in ("mip_rel_gap", "mip_abs_gap", "time_limit")
    }
    assert options == {"mip_rel_gap": 0.0, "mip_abs_gap": 0.5, "time_limit": 7}
    assert run.highs.getOptionValue("random_seed")[1] == 5
    assert run.highs.getOptionValue("threads")[1] == 2


# threads, interrupts, callbacks ----------------------------------------------------------------------
def test_other_thread_counts_in_one_process(geo: Problem) -> None:
    """HiGHS refuses a second run with other threads in one thread; ours get a fresh one each."""
    values = {solve(geo, solver="highs", threads=threads).objective for threads in (1, 2, 1)}
    assert len(values) == 1


def test_two_solves_at_once(geo: Problem) -> None:
    """Two threads solve side by side, and neither hangs."""
    results: dict[int, Any] = {}

    def work(key: int) -> None:
        results[key] = solve(geo, solver="highs", threads=1, seed=key)

    threads = [threading.Thread(target=work, args=(key,), daemon=True) for key in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(results) == 2
    assert results[0].objective == results[1].objective


def test_native_run_can_be_stopped() -> None:
    """A hard search ends soon after it is asked to; its best solution stays."""
    run = NativeRun(knapsacks(), seconds=60)
    run.begin()
    time.sleep(0.5)
    asked = time.perf_counter()
    run.join()
    assert time.perf_counter() - asked < 20
    answer = run.answer()
    assert answer.status == LIMIT
    assert answer.values is not None
    assert answer.bound is not None


def test_interrupt_keeps_the_best_plan() -> None:
    """`Monitor.interrupt` from another thread ends the level with termination USER."""
    problem = compile(generate("ladder", tasks=10, seed=1))
    task = level_task(problem)
    threading.Timer(1.0, task.monitor.interrupt).start()
    began = time.perf_counter()
    answer = solve_level(task)
    assert answer.termination in (Termination.USER, Termination.PROVEN)
    assert time.perf_counter() - began < 40


def test_exception_of_an_observer_reaches_the_caller(geo: Problem) -> None:
    """HiGHS would swallow it; here the run ends and it is raised."""

    def observer(point: Any) -> None:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        solve(geo, solver="highs", threads=1, on_event=observer)


def test_failure_in_a_callback_is_told(geo: Problem, no_rules: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes wrong in the search thread comes out in the result."""

    def fail(run: Any, event: Any) -> None:
        run.inbox.put(RuntimeError("in the thread"))

    monkeypatch.setattr(NativeRun, "_on_solution", fail)
    result = solve(geo, solver="highs", threads=1)
    assert result.status is Status.ERROR
    assert "highs raised RuntimeError: in the thread" in result.message


def test_plan_that_breaks_a_rule_is_an_error(
    geo: Problem, no_rules: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong plan is never repaired in silence."""

    def refuse(monitor: Any, plan: Any, source: str) -> bool:
        raise SolverError(f"{source} built a plan that breaks R5")

    monkeypatch.setattr(Monitor, "offer", refuse)
    result = solve(geo, solver="highs", threads=1)
    assert (result.status, result.plan) == (Status.ERROR, None)


def test_same_seed_same_plan(geo: Problem) -> None:
    """One thread, one seed: equal plans."""
    first, second = (solve(geo, solver="highs", threads=1, seed=3) for _ in range(2))
    assert first.plan.mode.tolist() == second.plan.mode.tolist()
    assert first.plan.start.tolist() == second.plan.start.tolist()


def test_nothing_is_printed() -> None:
    """HiGHS writes a banner past Python's standard output; a program that reads ours must not see it."""
    program = (
        "from optalloc.generators import generate\n"
        "from optalloc.solvers.run import solve\n"
        "print(solve(generate('geo', tasks=4, seed=1), solver='highs', threads=1).status.value)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=True
    )
    assert (ran.stdout, ran.stderr) == ("OPTIMAL\n", "")


def test_quiet_from_the_start() -> None:
    """The output is off before callbacks are."""
    assert QuietHighs().getOptionValue("output_flag")[1] is False


def test_native_module_names_what_is_off() -> None:
    """The presolve rules switched off are those of HiGHS's list: 15 is probing, 16 enumeration."""
    assert highs_native.DEFAULTS["presolve_rule_off"] == 0b1_1000_0000_0000_0000


def test_bounds_arrive_while_it_searches():
    """Whoever stops it early has the bound of that moment, not the one from before the search."""
    instance = generate("ladder", tasks=12, load="3", coupling="1", seed=0)
    result = solve(with_objective(instance, "weighted_completion=1,cost=1"), "highs", time_limit=60)
    bounds = [point.bound for point in result.curve if point.bound is not None]
    assert result.status is Status.OPTIMAL
    assert bounds == sorted(bounds)
    assert len(set(bounds) - {bounds[0], result.objective}) >= 2
