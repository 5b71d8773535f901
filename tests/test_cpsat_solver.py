"""The solver `cpsat`: proofs, statuses, starts, interrupts, options; and faults of OR-Tools that it avoids."""

import dataclasses
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optalloc.compilation import compile as compile_problem
from optalloc.errors import InputError, UnsupportedError
from optalloc.evaluation import evaluate
from optalloc.instance import Instance, read_instance
from optalloc.io.psplib import import_psplib
from optalloc.problem import Plan, Problem
from optalloc.result import Result, Status, Termination
from optalloc.scope import full_scope
from optalloc.solvers import cpsat as module
from optalloc.solvers.base import LevelTask, Monitor, Request
from optalloc.solvers.cpsat import cpsat, rounded_bound, solve_level
from optalloc.solvers.cpsat_options import check_options
from optalloc.solvers.run import solve

Ways = Sequence[tuple[str, int, int]]
"""Modes as (node, devices, ticks)."""


def instance_of(nodes: dict[str, int], tasks: list[dict[str, Any]], objective: dict[str, Any]) -> Instance:
    """An instance with one site and explicit modes."""
    return read_instance(
        {
            "format": "optalloc-instance/1",
            "name": "by hand",
            "tick_seconds": 1,
            "money_unit_usd": 1,
            "sites": [{"id": "site"}],
            "device_types": [{"id": "unit"}],
            "nodes": [
                {"id": node, "site": "site", "device_type": "unit", "devices": devices}
                for node, devices in nodes.items()
            ],
            "tasks": tasks,
            "objective": objective,
        }
    )


def task_of(id: str, ways: Ways, after: Sequence[str] = (), **rest: Any) -> dict[str, Any]:
    """A task that lists its modes."""
    modes = [
        {"id": f"m{i}", "uses": [{"node": node, "devices": devices}], "duration_ticks": ticks}
        for i, (node, devices, ticks) in enumerate(ways)
    ]
    return {"id": id, "modes": modes, "after": [{"id": before} for before in after], **rest}


# n017_1 of PSPLIB's multi-mode set n0 (Sprecher and Kolisch), as (resource, amount, ticks) by job without the
# dummy jobs. Data: github.com/ScheduleOpt/optalcp-benchmarks (MIT licence). Known optimum: 31.
N017_1_CAPACITIES = {"R1": 8, "R2": 7}
N017_1_MODES = {
    1: [("R1", 5, 10)],
    2: [("R1", 6, 3), ("R1", 4, 9)],
    3: [("R2", 7, 4), ("R1", 6, 6), ("R2", 6, 9)],
    4: [("R1", 3, 2), ("R1", 2, 8)],
    5: [("R2", 6, 4), ("R1", 8, 4)],
    6: [("R1", 8, 8), ("R1", 7, 9), ("R2", 4, 10)],
    7: [("R2", 4, 6)],
    8: [("R1", 6, 6), ("R2", 7, 9)],
    9: [("R1", 7, 2), ("R1", 6, 8), ("R2", 5, 10)],
    10: [("R2", 6, 1), ("R1", 6, 10), ("R2", 1, 10)],
    11: [("R1", 5, 1), ("R2", 6, 4), ("R2", 5, 7)],
    12: [("R1", 7, 2), ("R1", 4, 7), ("R1", 2, 9)],
    13: [("R1", 8, 3), ("R2", 1, 3)],
    14: [("R1", 8, 3), ("R2", 3, 5), ("R1", 5, 6)],
}
N017_1_SUCCESSORS = {
    1: [4, 7, 11], 2: [4, 5, 10], 3: [6, 12], 4: [8, 13], 5: [11, 12, 13], 6: [9, 11], 7: [8, 9, 10], 8: [14],
    9: [13], 10: [12, 14], 11: [14],
}  # fmt: skip


@pytest.fixture(scope="module")
def n017_1() -> Problem:
    """The problem on which OR-Tools 9.15 can be led to prove 32."""
    before: dict[int, list[str]] = {job: [] for job in N017_1_MODES}
    for job, successors in N017_1_SUCCESSORS.items():
        for successor in successors:
            before[successor].append(str(job))
    tasks = [task_of(str(job), ways, before[job]) for job, ways in N017_1_MODES.items()]
    return compile_problem(instance_of(N017_1_CAPACITIES, tasks, {"levels": [{"makespan": 1}]}))


@pytest.fixture(scope="module")
def endless() -> Problem:
    """Forty tasks whose weighted completion CP-SAT does not prove in a minute."""
    random = np.random.default_rng(1)
    rows = random.integers((1, 3, 1), (4, 20, 9), (40, 3)).tolist()
    tasks = [task_of(f"t{j}", [("a", d, t), ("b", d, t + 2)], weight=w) for j, (d, t, w) in enumerate(rows)]
    return compile_problem(instance_of({"a": 4, "b": 5}, tasks, {"levels": [{"weighted_completion": 1}]}))


@pytest.fixture
def no_thread_left() -> Iterator[None]:
    """No search outlives its call."""
    yield
    assert [thread for thread in threading.enumerate() if thread.name == "cpsat"] == []


def run_cpsat(problem: Problem, **rest: Any) -> Result:
    """One thread, no time limit to speak of."""
    return solve(problem, "cpsat", threads=1, **({"time_limit": 120} | rest))


def level_task(problem: Problem, start: Plan | None = None, **options: Any) -> LevelTask:
    """The first level, without the rules that a whole run begins with."""
    monitor = Monitor(full_scope(problem), 60)
    if start is not None:
        monitor.offer(start, "test")
    return LevelTask(full_scope(problem), monitor, 0, (), start, 0, 1, options)


# proofs ----------------------------------------------------------------------------------------------
def test_wrong_optimum_of_n017_1(n017_1: Problem) -> None:
    """OR-Tools 9.15.6755 answers 32, OPTIMAL, when alternatives share start and end variables; 31 is right."""
    result = run_cpsat(n017_1)
    assert (result.status, result.objective, result.bound) == (Status.OPTIMAL, 31, 31)


def test_wrong_optimum_of_n017_10(shared: Path) -> None:
    """The other published problem that the same fault hits: 14, not 15."""
    instance = import_psplib([shared / "bench" / "mrcpsp_n0" / "n017_10.mm"])
    result = run_cpsat(instance)
    assert (result.status, result.objective, result.bound) == (Status.OPTIMAL, 14, 14)


def test_levels_are_solved_in_turn() -> None:
    """Least makespan first, then least cost under it."""
    # Makespan 2 needs one fast run (cost 3) and one on b (cost 1), or two fast ones (6): 2, then 4.
    tasks = [task_of(f"t{j}", [("a", 1, 1), ("b", 1, 2)]) for j in range(2)]
    for task in tasks:
        task["modes"][0]["usd"], task["modes"][1]["usd"] = 3, 1
    instance = instance_of({"a": 1, "b": 1}, tasks, {"levels": [{"makespan": 1}, {"cost": 1}]})
    result = run_cpsat(instance)
    assert result.status == Status.OPTIMAL
    assert [(level.objective, level.bound, level.proven_by) for level in result.levels] == [
        (2, 2, "cpsat"),
        (4, 4, "cpsat"),
    ]


def test_infeasible() -> None:
    """Three runs that fit two by two and by number of devices, but not together in time."""
    tasks = [task_of(f"t{j}", [("a", 2, 2)], deadline_s=3) for j in range(3)]
    problem = compile_problem(instance_of({"a": 5}, tasks, {"levels": [{"makespan": 1}]}))
    monitor = Monitor(full_scope(problem), 60)
    outcome = cpsat(Request(full_scope(problem), monitor))
    assert (outcome.infeasible, outcome.termination, monitor.best) == (True, Termination.PROVEN, None)


def test_no_tasks_to_decide(n017_1: Problem) -> None:
    """A scope without tasks: the empty plan, proven."""
    result = run_cpsat(n017_1, tasks=[])
    assert (result.status, result.objective) == (Status.OPTIMAL, 0)


# what is held when the search ends early ------------------------------------------------------------------
def test_unknown_is_never_read(n017_1: Problem) -> None:
    """After UNKNOWN, `CpSolver.value` returns memory garbage (4294967296 for a Boolean) without a word."""
    task = level_task(n017_1, stop_after_presolve=True)
    answer = solve_level(task)
    assert (answer.infeasible, answer.termination) == (False, Termination.COMPLETED)
    assert task.monitor.best is None
    assert answer.bound is not None
    assert 0 <= answer.bound <= 31


def test_start_survives_a_search_that_finds_nothing(n017_1: Problem) -> None:
    """An end right after presolve: the start is returned, FEASIBLE, with the bound that there is."""
    start = run_cpsat(n017_1).plan
    assert start is not None
    late = Plan(start.mode, start.start + 5)
    result = run_cpsat(n017_1, start=late, options={"stop_after_presolve": True})
    assert (result.status, result.termination, result.objective) == (
        Status.FEASIBLE,
        Termination.COMPLETED,
        36,
    )
    assert result.info["hint"] == "complete"


def test_no_time_at_all(n017_1: Problem) -> None:
    """Nothing is built when the time is up before the start."""
    result = run_cpsat(n017_1, time_limit=0)
    assert result.termination == Termination.TIME_LIMIT
    assert result.status in (Status.NO_SOLUTION, Status.FEASIBLE)


@pytest.mark.usefixtures("no_thread_left")
def test_time_limit(endless: Problem) -> None:
    """A plan and a bound after four seconds, building included."""
    began = time.perf_counter()
    result = run_cpsat(endless, time_limit=4)
    assert (result.status, result.termination) == (Status.FEASIBLE, Termination.TIME_LIMIT)
    assert result.bound is not None
    assert result.objective is not None
    assert result.bound < result.objective
    assert time.perf_counter() - began < 20


@pytest.mark.usefixtures("no_thread_left")
def test_interrupt_from_another_thread(endless: Problem) -> None:
    """The best plan is kept, and the search ends soon."""
    monitor = Monitor(full_scope(endless), 60)
    timer = threading.Timer(0.7, monitor.interrupt)
    timer.start()
    outcome = cpsat(Request(full_scope(endless), monitor))
    assert outcome.termination == Termination.USER
    assert monitor.best is not None
    assert monitor.elapsed < 20


@pytest.mark.usefixtures("no_thread_left")
def test_failing_observer_ends_the_run(endless: Problem) -> None:
    """What `on_event` raises reaches the caller after a clean stop."""

    def observe(point: Any) -> None:
        if point.source == "cpsat":
            raise ValueError("enough")

    with pytest.raises(ValueError, match="enough"):
        run_cpsat(endless, on_event=observe)


@pytest.mark.usefixtures("no_thread_left")
def test_failure_inside_the_search_thread(n017_1: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception in a native callback is raised in the caller's thread."""

    def fail(*_: Any) -> Plan:
        raise RuntimeError("cannot be read")

    monkeypatch.setattr(module, "read_plan", fail)
    with pytest.raises(RuntimeError, match="cannot be read"):
        solve_level(level_task(n017_1))


@pytest.mark.usefixtures("no_thread_left")
def test_broken_plan_is_an_error(n017_1: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan that breaks a rule is neither returned nor repaired."""

    def everything_at_once(built: Any, value: Any) -> Plan:
        plan = original(built, value)
        return Plan(plan.mode, np.zeros_like(plan.start))

    original = module.read_plan
    monkeypatch.setattr(module, "read_plan", everything_at_once)
    result = run_cpsat(n017_1)
    assert result.status == Status.ERROR
    assert "cpsat built a plan that breaks R" in result.message


def test_gap_ends_a_level(endless: Problem) -> None:
    """Within `max_gap` the level is done; the result is not called optimal."""
    result = run_cpsat(endless, max_gap=0.9)
    assert (result.status, result.termination) == (Status.FEASIBLE, Termination.GAP)
    assert result.gap is not None
    assert 0 < result.gap <= 0.9


def test_native_gap_limit_is_no_proof(endless: Problem) -> None:
    """CP-SAT says OPTIMAL within its own gap limit: the bound tells."""
    result = run_cpsat(endless, options={"relative_gap_limit": 0.9})
    assert result.status == Status.FEASIBLE
    assert result.gap is not None
    assert result.gap > 0


def test_curve_has_plans_and_bounds(endless: Problem) -> None:
    """The anytime curve improves monotonely in both."""
    curve = run_cpsat(endless, time_limit=1.5).curve
    bounds = [point.bound for point in curve if point.bound is not None]
    values = [point.objective for point in curve if point.objective is not None]
    assert bounds == sorted(bounds)
    assert values == sorted(values, reverse=True)
    assert bounds
    assert values


# starts and cutoffs --------------------------------------------------------------------------------------
def test_start_in_a_dominated_mode_is_proven_by_a_cutoff() -> None:
    """The model has no place for the start: "nothing better" is infeasible, which proves the start."""
    # Two modes that are worth the same; compile keeps the first. The start uses the second.
    task = task_of("t", [("a", 1, 2), ("a", 1, 2)])
    problem = compile_problem(instance_of({"a": 1}, [task], {"levels": [{"makespan": 1}]}))
    assert problem.active.tolist() == [True, False]
    given = level_task(problem, Plan(np.array([1]), np.array([0])))
    answer = solve_level(given)
    assert (answer.infeasible, answer.below, answer.bound) == (True, 2, 2)
    assert "cutoff" in answer.info["hint"]
    result = run_cpsat(problem, start=given.start)
    assert (result.status, result.objective) == (Status.OPTIMAL, 2)


def test_optimal_start_is_confirmed(n017_1: Problem) -> None:
    """A complete hint at the optimum: same value, proven."""
    start = run_cpsat(n017_1).plan
    task = level_task(n017_1, start)
    answer = solve_level(task)
    assert (answer.termination, answer.bound, task.monitor.values) == (Termination.PROVEN, 31, (31,))


def test_fixed_part_is_kept(n017_1: Problem) -> None:
    """Tasks of a fixed plan stay where they are, and the rest is solved around them."""
    plan = run_cpsat(n017_1).plan
    assert plan is not None
    fixed = Plan(np.where(np.arange(14) < 5, plan.mode, -2), np.where(np.arange(14) < 5, plan.start, 0))
    result = run_cpsat(n017_1, fixed=fixed)
    assert result.plan is not None
    assert (result.plan.start[:5] == plan.start[:5]).all()
    assert (result.status, result.objective) == (Status.OPTIMAL, 31)


# options ------------------------------------------------------------------------------------------------
def test_unknown_options_are_named() -> None:
    """All faults at once, each with the name of the option."""
    with pytest.raises(InputError) as caught:
        check_options({"linearisation": 2, "num_workers": "many", "use_lns": 3})
    text = str(caught.value)
    assert "options.linearisation: CP-SAT has no parameter" in text
    assert "options.num_workers: 'many' is not what CP-SAT takes here: a whole number" in text
    assert "options.use_lns" in text


@pytest.mark.parametrize("name", ["__class__", "clear_num_workers", "SearchBranching"])
def test_other_attributes_are_no_options(name: str) -> None:
    """Only fields of the parameters count."""
    with pytest.raises(InputError, match="no parameter"):
        check_options({name: 1})


def test_value_out_of_range_is_refused(n017_1: Problem) -> None:
    """CP-SAT itself knows the ranges."""
    with pytest.raises(InputError, match="num_workers"):
        run_cpsat(n017_1, options={"num_workers": -5})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("linearization_level", "1"),
        ("log_search_progress", "true"),
        ("max_deterministic_time", 3),
        ("search_branching", "PORTFOLIO_SEARCH"),
        ("extra_subsolvers", "max_lp,core"),
        ("extra_subsolvers", ["max_lp"]),
    ],
)
def test_options_that_are_taken(name: str, value: Any) -> None:
    """Text, as the command line gives it, is read as the parameter's type."""
    check_options({name: value})


def test_deterministic_runs_are_equal(endless: Problem) -> None:
    """One worker and a deterministic limit: the same plan twice."""
    options = {"max_deterministic_time": 0.05}
    first, second = (run_cpsat(endless, options=options, seed=3) for _ in range(2))
    assert first.termination == Termination.COMPLETED
    assert first.objective == second.objective
    assert first.plan is not None
    assert second.plan is not None
    assert (first.plan.mode == second.plan.mode).all()
    assert (first.plan.start == second.plan.start).all()


CTRL_C = """
import os, signal
import optalloc as oa

def interrupt(point):
    if point.source == "rules":  # the options have been looked at, and the model is not yet built
        os.kill(os.getpid(), signal.SIGINT)

result = oa.solve("real-8", "cpsat", on_event=interrupt)
print(result.status.value, result.termination.value)
"""


def test_ctrl_c_before_the_search() -> None:
    """CP-SAT leaves SIGINT with a handler of its own wherever it is not told not to."""
    ran = subprocess.run([sys.executable, "-c", CTRL_C], capture_output=True, text=True, timeout=120)
    assert (ran.returncode, ran.stdout.split()) == (0, ["FEASIBLE", "USER"]), ran.stderr


def test_handler_of_ctrl_c_is_no_option() -> None:
    """Refused with what happens instead."""
    with pytest.raises(InputError, match="catch_sigint_signal: cannot be set here; Ctrl-C ends a run"):
        check_options({"catch_sigint_signal": True})


@pytest.mark.parametrize(
    "options",
    [
        {"stop_after_first_solution": True},
        {"relative_gap_limit": 0.9},
        {"max_deterministic_time": 0.01},
        {"max_time_in_seconds": 0.2},
    ],
)
def test_ends_by_an_option(endless: Problem, options: dict[str, Any]) -> None:
    """Where a limit of CP-SAT's ends the search and not ours, the method has come to its end."""
    result = run_cpsat(endless, options=options)
    assert (result.status, result.termination) == (Status.FEASIBLE, Termination.COMPLETED)
    assert result.seconds < 60


def test_ends_by_our_limit(endless: Problem) -> None:
    """Also if CP-SAT takes its own limit for reached a moment sooner."""
    results = [run_cpsat(endless, time_limit=1.5, options={"linearization_level": n}) for n in (0, 1, 2)]
    assert {result.termination for result in results} == {Termination.TIME_LIMIT}
    assert all(1.5 <= result.seconds < 4 for result in results)


# numbers --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("value", "bound"),
    [(3.0, 3), (2.3, 3), (3.0000000001, 3), (2.9999999, 3), (-2.3, -2), (2.0**52, 2**52), (0.0, 0)],
)
def test_rounded_bound(value: float, bound: int) -> None:
    """The least integer that is proven; rounding errors are not taken for progress."""
    assert abs(rounded_bound(value) - bound) <= (4 if value > 2**50 else 0)
    assert rounded_bound(value) <= bound


def test_large_objective_is_exact() -> None:
    """Values past 2^40 come back to the unit: they are recomputed in whole numbers."""
    # One run must wait for the other: weights w and w + 1, both 1 tick: the heavier first.
    weight = 2**44 + 1
    tasks = [task_of("a", [("a", 1, 1)], weight=weight), task_of("b", [("a", 1, 1)], weight=weight + 1)]
    result = run_cpsat(instance_of({"a": 1}, tasks, {"levels": [{"weighted_completion": 1}]}))
    assert (result.status, result.objective) == (Status.OPTIMAL, weight + 1 + 2 * weight)


def test_too_large_for_cpsat_is_refused() -> None:
    """The message names the numbers and the remedy; no wrong answer, no MODEL_INVALID."""
    tasks = [task_of(f"t{j}", [("a", 2**40 + j, 2**30)]) for j in range(3)]
    with pytest.raises(UnsupportedError, match="coarser ticks"):
        run_cpsat(instance_of({"a": 2**41}, tasks, {"levels": [{"late": 1, "makespan": 1}]}))


def test_objective_is_recomputed(n017_1: Problem) -> None:
    """The reported value is that of the verified plan."""
    result = run_cpsat(n017_1)
    assert result.plan is not None
    assert evaluate(n017_1, result.plan).levels == (result.objective,)


def test_inactive_modes_are_not_used(n017_1: Problem) -> None:
    """Solvers see the active modes only."""
    active = n017_1.active.copy()
    plan = run_cpsat(n017_1).plan
    assert plan is not None
    active[plan.mode[0]] = len(n017_1.modes_of(0, active=False)) == 1
    problem = dataclasses.replace(n017_1, active=active)
    result = run_cpsat(problem)
    assert result.plan is not None
    assert problem.active[result.plan.mode].all()


# libraries --------------------------------------------------------------------------------------------------
IMPORT_ORDER = """
import {first}
import {second}
from ortools.sat.python import cp_model
import highspy
model = cp_model.CpModel()
x = model.new_int_var(0, 5, "x")
model.maximize(x)
native = cp_model.CpSolver()
assert native.solve(model) == cp_model.OPTIMAL and native.value(x) == 5
other = highspy.Highs()
other.setOptionValue("output_flag", False)
y = other.addVariable(0, 5)
other.maximize(y)
assert round(other.val(y)) == 5
"""


@pytest.mark.parametrize(
    ("first", "second"),
    [("highspy", "ortools.sat.python.cp_model"), ("ortools.sat.python.cp_model", "highspy")],
)
def test_import_order(first: str, second: str) -> None:
    """Both libraries export the symbols of a HiGHS; they work in either order of import."""
    code = IMPORT_ORDER.format(first=first, second=second)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
