"""`solve` with scripted solvers: statuses, starts, scopes, interrupts, options, JSON; and the registry."""

import json
import math
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from support.world import STARTS, TRANSFERS, instance, plan_of, problem, run

from optalloc.errors import InputError, UnsupportedError
from optalloc.evaluation import evaluate
from optalloc.instance import read_instance
from optalloc.objective_spec import parse_objective, with_objective
from optalloc.problem import FREE, REJECTED
from optalloc.result import Status, Termination, json_able
from optalloc.schedule import Schedule, TaskEntry, to_schedule
from optalloc.solvers import registry
from optalloc.solvers.base import Outcome
from optalloc.solvers.online import online_policy
from optalloc.solvers.registry import check_solver, describe_solvers, get_solver, solver, solver_names
from optalloc.solvers.run import solve

T = Termination


@pytest.fixture(scope="module")
def world():
    """The small world, compiled."""
    return problem()


def nothing(request):
    """A solver that finds nothing."""
    return Outcome(T.COMPLETED)


def finds(plan, bound=None):
    """A solver that offers a plan and perhaps a bound."""

    def found(request):
        request.monitor.offer(plan, "found")
        if bound is not None:
            request.monitor.bound(0, bound, "found")
        return Outcome(T.PROVEN if bound is not None else T.COMPLETED)

    return found


LATE = {**STARTS, "t7": 20}
"""The world's plan with makespan 22 instead of 19."""


# statuses ---------------------------------------------------------------------------------------------------
def test_a_heuristic_plan_is_feasible(world):
    """A verified plan, no bound, no gap."""
    result = solve(world, finds(plan_of(world)))
    assert (result.status, result.termination) == (Status.FEASIBLE, T.COMPLETED)
    assert (result.objective, result.bound, result.gap) == (19, None, None)
    assert result.evaluation.valid
    assert evaluate(world, result.schedule).levels == (19,)


def test_a_heuristic_dead_end_is_no_solution(world):
    """Not INFEASIBLE: nothing is proven."""
    result = solve(world, nothing)
    assert (result.status, result.termination) == (Status.NO_SOLUTION, T.COMPLETED)
    assert result.schedule is None
    assert result.to_dict()["schedule"] is None


def test_optimal_only_if_bound_equals_objective(world):
    """A solver that says PROVEN with a lower bound is not believed."""
    assert solve(world, finds(plan_of(world), 19)).status is Status.OPTIMAL
    result = solve(world, finds(plan_of(world), 18))
    assert (result.status, result.termination) == (Status.FEASIBLE, T.COMPLETED)
    assert result.gap == pytest.approx(1 / 19)
    close = solve(world, finds(plan_of(world), 18), max_gap=0.1)
    assert (close.status, close.termination) == (Status.FEASIBLE, T.GAP)


def test_infeasible_with_a_plan_is_an_error(world):
    """Whoever says so."""

    def confused(request):
        request.monitor.offer(plan_of(world), "confused")
        return Outcome(T.PROVEN, infeasible=True)

    result = solve(world, confused)
    assert (result.status, result.termination) == (Status.ERROR, T.ERROR)
    assert result.bound is None


def test_a_broken_plan_is_an_error(world):
    """With the rule in the message; the start is kept."""
    broken = finds(plan_of(world, {**STARTS, "t2": 5}))
    result = solve(world, broken, start=plan_of(world))
    assert result.status is Status.ERROR
    assert "R4" in result.message
    assert result.objective == 19


def test_out_of_memory_keeps_the_incumbent(world):
    """Termination MEMORY."""

    def hungry(request):
        request.monitor.offer(plan_of(world), "hungry")
        raise MemoryError

    result = solve(world, hungry)
    assert (result.status, result.termination) == (Status.FEASIBLE, T.MEMORY)


class _Odd(Exception):
    def __str__(self):
        raise RuntimeError


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ZeroDivisionError, "ZeroDivisionError"),
        (lambda: KeyError("boo"), "KeyError: 'boo'"),
        (lambda: SystemExit(3), "SystemExit: 3"),
        (_Odd, "_Odd"),
    ],
)
@pytest.mark.parametrize("kind", ["full", "plain", "policy"])
def test_what_a_solver_raises_is_an_error_that_names_it(world, error, words, kind):
    """With the line in its code, and the plan that it had found before; never the end of the program."""

    def full(request):
        request.monitor.offer(plan_of(world), "full")
        raise error()

    def plain(problem):
        raise error()

    def policy(turn):
        raise error()

    if kind == "policy":
        online_policy("policy")(policy)
    result = solve(world, {"full": full, "plain": plain, "policy": "policy"}[kind])
    assert (result.status, result.termination) == (Status.ERROR, T.ERROR)
    assert result.message.startswith(f"{kind} raised ")
    assert words in result.message
    assert re.search(rf"\(test_run\.py, line \d+, in {kind}\)", result.message)
    assert "please report" not in result.message
    assert "raise error()" in result.info["traceback"][-1]
    assert len(result.info["traceback"]) == 1  # none of the lines of optalloc that have led there
    assert result.objective == (19 if kind == "full" else None)
    assert json.dumps(result.to_dict())


def test_a_recursion_without_end_leaves_a_short_traceback(world):
    """And the name of the solver."""

    def deep(problem):
        return deep(problem)

    result = solve(world, deep)
    assert "deep raised RecursionError" in result.message
    assert len(result.info["traceback"]) < 20


def test_what_a_built_in_solver_raises_is_to_be_reported(world):
    """It is our fault."""
    entry = registry.SolverEntry("wspt", lambda request: 1 // 0)
    message = solve(world, entry).message
    assert "wspt raised ZeroDivisionError" in message
    assert "please report" in message


@pytest.mark.parametrize("error", [InputError("no such trace"), UnsupportedError("one level only")])
def test_a_solver_may_refuse(world, error):
    """What it refuses reaches the caller as it is."""

    def refuses(request):
        raise error

    with pytest.raises(type(error), match=str(error)):
        solve(world, refuses)


@pytest.mark.parametrize(
    "outcome", [None, "PROVEN", Outcome("PROVEN"), Outcome(T.COMPLETED, info=5), plan_of(problem())]
)
def test_a_full_solver_returns_an_outcome(world, outcome):
    """Whatever else it returns is named."""

    def mine(request):
        return outcome

    result = solve(world, mine)
    assert result.status is Status.ERROR
    assert result.message.startswith("mine returned ")


@pytest.mark.parametrize("bound", [3.7, math.nan, None, "3", True, Fraction(3)])
def test_a_bound_is_a_whole_number(world, bound):
    """Others are refused, and nothing of them is kept."""

    def mine(request):
        request.monitor.bound(0, bound, "mine")
        return Outcome(T.COMPLETED)

    result = solve(world, mine)
    assert (result.status, result.bound) == (Status.ERROR, None)
    assert "whole number" in result.message


@pytest.mark.parametrize("level", [1, -1, None, "0"])
def test_a_bound_is_on_a_level_that_there_is(world, level):
    """The world has one."""

    def mine(request):
        request.monitor.bound(level, 3, "mine")
        return Outcome(T.COMPLETED)

    result = solve(world, mine)
    assert result.status is Status.ERROR
    assert "levels are counted from 0" in result.message


MALFORMED = {
    "short": lambda p: replace(p, mode=p.mode[:-1], start=p.start[:-1]),
    "no array": lambda p: replace(p, start=p.start.tolist()),
    "float": lambda p: replace(p, start=p.start + 0.5),
    "unsigned": lambda p: replace(p, mode=p.mode.astype(np.uint64)),
    "two rows": lambda p: replace(p, mode=np.stack([p.mode, p.mode])),
    "wraps round": lambda p: replace(p, start=np.full_like(p.start, 2**63 - 1)),
    "transfers": lambda p: replace(p, transfers=(1, 2)),
    "no tuple": lambda p: replace(p, transfers=list(p.transfers)),
}
"""Plans that are none of this problem."""


@pytest.mark.parametrize("kind", MALFORMED)
def test_a_malformed_plan_is_refused_wherever_it_comes_from(world, kind):
    """From a solver, as a start, as a fixed part, for `evaluate`; each time it is said what is wrong."""
    plan = MALFORMED[kind](plan_of(world))

    def mine(problem):
        return plan

    result = solve(world, mine)
    assert result.status is Status.ERROR
    assert "mine built what is no plan of this problem: plan." in result.message
    begun = solve(world, nothing, start=plan)
    assert (begun.status, begun.info["warm_start"]) == (Status.NO_SOLUTION, "refused")
    for attempt in (lambda: solve(world, nothing, fixed=plan), lambda: evaluate(world, plan)):
        with pytest.raises(InputError):
            attempt()


@pytest.mark.parametrize("given", [None, to_schedule(problem(), plan_of(problem()))])
def test_only_a_plan_can_be_offered(world, given):
    """Neither a schedule nor nothing."""

    def mine(request):
        request.monitor.offer(given, "mine")
        return Outcome(T.COMPLETED)

    result = solve(world, mine)
    assert result.status is Status.ERROR
    assert "mine offered" in result.message


def test_an_option_without_a_default_has_to_be_given(world):
    """It is asked for before the solver runs."""

    def mine(problem, *, colour, shade):
        return plan_of(world) if (colour, shade) == ("red", "dark") else None

    with pytest.raises(InputError) as caught:
        solve(world, mine, options={"shade": "dark"})
    assert [fault.path for fault in caught.value.faults] == ["options.colour"]
    assert solve(world, mine, options={"shade": "dark", "colour": "red"}).objective == 19


def test_impossible_instances_need_no_solver():
    """What compile has shown is INFEASIBLE, with the reasons by task."""
    tasks = [
        {"id": "big", "deadline_s": 60, "modes": [run("m", 1, 5)]},
        {"id": "fine", "modes": [run("m", 1, 1)]},
    ]

    def never(request):
        raise AssertionError("no solver should run")

    result = solve(instance(tasks=tasks), never)
    assert (result.status, result.termination) == (Status.INFEASIBLE, T.PROVEN)
    assert "big" in result.reasons
    assert result.to_dict()["reasons"]["big"]
    # Without that task there is a plan.
    assert solve(instance(tasks=tasks), nothing, tasks=["fine"]).status is Status.NO_SOLUTION


def test_an_empty_instance_is_optimal_0():
    """Nothing to do, and nothing better."""
    empty = read_instance({"format": "optalloc-instance/1", "name": "empty"})
    result = solve(empty, nothing)
    assert (result.status, result.termination) == (Status.OPTIMAL, T.PROVEN)
    assert (result.objective, result.bound, result.gap) == (0, 0, 0)


# starts and scopes ------------------------------------------------------------------------------------------
def test_a_run_with_a_start_never_returns_worse(world):
    """Whether the solver finds nothing, something worse, or something better."""
    start = to_schedule(world, plan_of(world))
    assert solve(world, nothing, start=start).objective == 19
    assert solve(world, finds(plan_of(world, LATE)), start=start).objective == 19
    assert solve(world, finds(plan_of(world)), start=plan_of(world, LATE)).objective == 19
    assert solve(world, nothing, start=start).info["warm_start"] == "accepted"


@pytest.mark.parametrize("kind", ["unknown task", "broken rule"])
def test_a_wrong_start_is_refused_with_a_reason(world, kind):
    """The reason stands in the notes; the solver runs without it."""
    if kind == "unknown task":
        start = Schedule("world", None, (TaskEntry("zz", rejected=True),))
    else:
        start = plan_of(world, {**STARTS, "t2": 5})
    result = solve(world, nothing, start=start)
    assert result.status is Status.NO_SOLUTION
    assert result.info["warm_start"] == "refused"
    assert any("start is refused" in note for note in result.notes)


def test_what_is_fixed_is_in_the_result(world):
    """A solver that moves it is in error."""
    fixed = plan_of(world, {"t0": 2}, {"d": 0})
    assert solve(world, finds(plan_of(world)), fixed=fixed).objective == 19
    moved = plan_of(world, {**STARTS, "t0": 1})
    assert solve(world, finds(moved), fixed=fixed).status is Status.ERROR
    early = solve(world, finds(plan_of(world)), fixed=fixed, not_before=3)
    assert early.status is Status.ERROR
    assert "nothing may start before 3" in early.message


def test_everything_fixed_is_optimal(world):
    """There is nothing to decide: the value is proven without a solver."""
    result = solve(world, nothing, fixed=to_schedule(world, plan_of(world, LATE)))
    assert result.status is Status.OPTIMAL
    assert result.objective == result.bound == 22


def test_a_fixed_part_that_breaks_a_rule_is_infeasible(world):
    """No plan can contain it; the reasons name the rule."""
    result = solve(world, nothing, fixed=plan_of(world, {"t0": 2, "t2": 3}, {"d": 0}))
    assert result.status is Status.INFEASIBLE
    assert "R4" in result.reasons["t2"][0]


def test_tasks_outside_do_not_exist(world):
    """The result decides the chosen tasks only."""
    plan = plan_of(world, {"t3": 8, "t4": 10}, {})
    result = solve(world, finds(plan), tasks=["t3", "t4"], start=plan_of(world, STARTS, {}))
    assert result.status is Status.FEASIBLE
    assert [entry.task for entry in result.schedule.tasks] == ["t3", "t4"]


def test_a_plain_function_cannot_keep_to_a_scope_it_does_not_see(world):
    """It is refused before it runs, and the message names the remedy."""

    def plain(problem, *, seed):
        raise AssertionError("should not run")

    with pytest.raises(UnsupportedError, match="scope"):
        solve(world, plain, not_before=3)

    def scoped(problem, *, scope):
        assert scope.not_before == 3

    assert solve(world, scoped, not_before=3).status is Status.NO_SOLUTION


# interrupts and events --------------------------------------------------------------------------------------
def test_ctrl_c_keeps_the_incumbent(world):
    """SIGINT in the middle of a Python loop ends the run with Termination.USER."""

    def loops(request):
        request.monitor.offer(plan_of(world), "loops")
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(30)
        raise AssertionError("should have been interrupted")

    result = solve(world, loops)
    assert (result.status, result.termination) == (Status.FEASIBLE, T.USER)
    assert result.objective == 19
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_solver_that_swallows_ctrl_c_sees_it_in_the_monitor(world):
    """Native callbacks swallow exceptions; the monitor remembers."""

    def swallows(request):
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(30)
        except KeyboardInterrupt:
            assert request.monitor.should_stop()
        return Outcome(T.COMPLETED)

    assert solve(world, swallows).termination is T.USER


def test_interrupt_from_another_thread(world):
    """The run stops within a moment."""

    def polls(request):
        threading.Timer(0.05, request.monitor.interrupt).start()
        while not request.monitor.should_stop():
            time.sleep(0.005)
        return Outcome(T.TIME_LIMIT)

    began = time.perf_counter()
    result = solve(world, polls)
    assert result.termination is T.USER
    assert time.perf_counter() - began < 5


def test_solve_works_outside_the_main_thread(world):
    """Signals are left alone there."""
    results = []
    thread = threading.Thread(target=lambda: results.append(solve(world, finds(plan_of(world)))))
    thread.start()
    thread.join()
    assert results[0].objective == 19


def test_an_exception_in_on_event_is_raised_after_a_clean_stop(world):
    """Even if the solver would go on, and even if it ignores exceptions."""
    stopped = []

    def solver_(request):
        request.monitor.offer(plan_of(world), "x")
        stopped.append(request.monitor.should_stop())
        return Outcome(T.COMPLETED)

    def on_event(point):
        raise ValueError("my bug")

    with pytest.raises(ValueError, match="my bug"):
        solve(world, solver_, on_event=on_event)
    assert stopped == [True]
    for settings in ({"start": plan_of(world)}, {"fixed": plan_of(world)}):
        with pytest.raises(ValueError, match="my bug"):
            solve(world, nothing, on_event=on_event, **settings)


def test_the_curve_has_plans_and_bounds(world):
    """Every improvement of either, in order, with who made it."""
    points = []

    def improves(request):
        request.monitor.bound(0, 5, "b")
        request.monitor.offer(plan_of(world, LATE), "p")
        request.monitor.offer(plan_of(world, LATE), "p")
        request.monitor.bound(0, 4, "b")
        request.monitor.offer(plan_of(world), "p")
        return Outcome(T.COMPLETED)

    result = solve(world, improves, on_event=points.append)
    seen = [(p.level, p.objective, p.bound, p.source) for p in result.curve]
    assert seen == [(0, None, 5, "b"), (0, 22, 5, "p"), (0, 19, 5, "p")]
    assert points == list(result.curve)
    assert [p.seconds for p in points] == sorted(p.seconds for p in points)


# arguments --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("limit", [2, 2.5, np.int64(2), np.float32(2), math.inf, 0])
def test_time_limits_of_any_number_type(world, limit):
    """It reaches the monitor as seconds."""
    limits = []

    def reads(request):
        limits.append(request.monitor.time_limit)
        return Outcome(T.COMPLETED)

    solve(world, reads, time_limit=limit)
    assert limits == [float(limit)]


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("time_limit", "2", TypeError),
        ("time_limit", None, TypeError),
        ("time_limit", True, TypeError),
        ("time_limit", -1, ValueError),
        ("time_limit", math.nan, ValueError),
        ("max_gap", -0.1, ValueError),
        ("max_gap", "0", TypeError),
        ("seed", 1.5, TypeError),
        ("seed", -1, InputError),
        ("not_before", 1.5, TypeError),
        ("not_before", -1, ValueError),
        ("threads", 0, ValueError),
        ("threads", "2", TypeError),
        ("tasks", ["zz"], ValueError),
        ("tasks", "t0", TypeError),
        ("objective", "nonsense", ValueError),
        ("limits", {"cost": "much"}, ValueError),
    ],
)
def test_wrong_arguments_are_refused(world, name, value, error):
    """Types by TypeError, values by ValueError; the message names the argument."""
    with pytest.raises(error, match=name.rstrip("s")):
        solve(world, nothing, **{name: value})


def test_what_is_neither_instance_nor_problem_is_refused():
    """A path has to be read first."""
    with pytest.raises(TypeError, match="a file or a name"):
        solve(17, nothing)


def test_overshoot_is_recorded(world):
    """A solver that ignores the limit is found out."""

    def slow(request):
        time.sleep(0.05)
        return Outcome(T.TIME_LIMIT)

    info = solve(world, slow, time_limit=0.01).info
    assert 0.03 < info["overshoot"] < 5


def test_the_limit_counts_from_began(world):
    """Compiling before the call can be counted in."""
    result = solve(world, nothing, began=time.perf_counter() - 10)
    assert result.seconds > 10


def test_versions_and_threads_are_recorded(world):
    """What is needed to repeat a run."""
    result = solve(world, nothing, seed=np.int64(7), threads=3)
    assert (result.seed, result.threads) == (7, 3)
    assert {"python", "optalloc", "numpy"} <= set(result.versions)
    assert 1 <= solve(world, nothing).threads <= 8


# another objective ------------------------------------------------------------------------------------------
def test_another_objective_recompiles(world):
    """Levels by SPEC, limits by term; the schedule keeps the hash of the instance as it was given."""
    result = solve(
        world, finds(plan_of(world)), objective="cost=1,rejected=1;makespan=0.5", limits={"makespan": "20"}
    )
    assert result.problem.scale == 100
    assert [level.objective for level in result.levels] == [1225, 950]
    assert result.schedule.instance_sha256 == world.instance.sha256
    assert [limit.bound for limit in result.problem.limits] == [20]
    broken = solve(world, finds(plan_of(world)), objective="cost=1,rejected=1", limits={"makespan": 18})
    assert broken.status is Status.ERROR


def test_specs_are_read_exactly():
    """Decimals, not floats."""
    changed = with_objective(instance(), "makespan=0.1,late=3;cost=1e-2", {"cost": "0.30"})
    assert [{t: str(w) for t, w in level.items()} for level in changed.objective.levels] == [
        {"makespan": "0.1", "late": "3"},
        {"cost": "1e-2"},
    ]
    assert {t: str(v) for t, v in changed.objective.limits.items()} == {"makespan": "35", "cost": "0.30"}
    unchanged = instance()
    assert with_objective(unchanged) is unchanged


@pytest.mark.parametrize(
    "spec", ["", "makespan", "makespan=", "makespan=x", "span=1", "makespan=1,makespan=2", "=1", ";"]
)
def test_wrong_specs_are_refused(spec):
    """With a message, never a guess."""
    with pytest.raises(InputError):
        parse_objective(spec)


# the registry -----------------------------------------------------------------------------------------------
def test_own_full_solver_by_decorator(world):
    """It gets a Request."""

    @solver("mine", exact=True, options={"depth": 3})
    def mine(request):
        """My solver."""
        assert request.options == {"depth": 5}
        request.monitor.offer(plan_of(world), "mine")
        return Outcome(T.COMPLETED)

    assert solve(world, "mine", options={"depth": "5"}).objective == 19
    assert {"name": "mine", "kind": "own", "summary": "My solver."} in describe_solvers()
    assert "mine" in solver_names("own")


@pytest.mark.parametrize("kind", ["plan", "schedule"])
def test_own_plain_function_by_decorator(world, kind):
    """It gets the keywords that it takes, options among them, and may return a Plan or a Schedule."""
    seen = {}

    @solver("plain")
    def plain(problem, *, time_limit, seed, bias=0.5):
        seen.update(time_limit=time_limit, seed=seed, bias=bias)
        plan = plan_of(problem)
        return plan if kind == "plan" else to_schedule(problem, plan)

    assert solve(world, "plain", seed=4, time_limit=9, options={"bias": 0.25}).objective == 19
    assert (seen["seed"], seen["bias"]) == (4, 0.25)
    assert 0 < seen["time_limit"] <= 9


def test_plain_functions_with_wrong_answers_are_in_error(world):
    """Neither Plan nor Schedule, or a Schedule that cannot be resolved."""
    result = solve(world, lambda problem: 3)
    assert result.status is Status.ERROR
    assert "int" in result.message
    wrong = Schedule("world", None, (TaskEntry("zz", rejected=True),))
    assert solve(world, lambda problem: wrong).status is Status.ERROR


def test_solvers_by_module_and_object(world, tmp_path, monkeypatch):
    """``module:object``, as on the command line."""
    (tmp_path / "my_module.py").write_text(
        textwrap.dedent("""
            from optalloc.result import Termination
            from optalloc.solvers.base import Outcome, Request

            def full(given: Request):
                return Outcome(Termination.COMPLETED)

            class Inner:
                @staticmethod
                def plain(problem, *, seed):
                    return None

            number = 3
        """)
    )
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("my_module:full", "my_module:Inner.plain"):
        check_solver(name)
        result = solve(world, name)
        assert (result.status, result.solver) == (Status.NO_SOLUTION, name)
    for name in ("my_module:zz", "no_module:x", "my_module:number", ":x", "my_module:"):
        with pytest.raises(InputError):
            check_solver(name)


BROKEN = {
    "raising.py": "raise KeyError('boo')",
    "leaving.py": "import sys; sys.exit(3)",
    "garbled.py": "def f(:",
    "text.txt": "",
}


@pytest.mark.parametrize("file", [*BROKEN, "missing.py"])
@pytest.mark.parametrize("form", ["module", "file"])
def test_own_code_that_cannot_be_loaded_is_bad_input(tmp_path, monkeypatch, file, form):
    """With the reason, whatever happens on loading."""
    monkeypatch.syspath_prepend(tmp_path)
    if file in BROKEN:
        (tmp_path / file).write_text(BROKEN[file])
    name = file.partition(".")[0] if form == "module" else str(tmp_path / file)
    reasons = {"raising.py": "boo", "leaving.py": "SystemExit: 3", "garbled.py": "SyntaxError"}
    with pytest.raises(InputError, match=reasons.get(file, "found|No such file|No module")) as caught:
        get_solver(f"{name}:f")
    assert f"{name}:f" in str(caught.value)


def test_solvers_by_file_and_object(world, tmp_path, monkeypatch):
    """Loaded once; it finds what lies beside it, and takes no other module's name."""
    (tmp_path / "beside.py").write_text("TURN = 7")
    (tmp_path / "json.py").write_text(
        textwrap.dedent("""
            from dataclasses import dataclass
            import beside

            calls = []

            @dataclass
            class Mine:
                turn: "int" = beside.TURN

                def plain(self, problem):
                    calls.append(self.turn)

            plain = Mine().plain
        """)
    )
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    name = "./json.py:plain"
    check_solver(name)
    assert solve(world, name).solver == name
    assert solve(world, str(tmp_path / "json.py:plain")).status is Status.NO_SOLUTION
    assert sys.modules[str(tmp_path / "json.py")].calls == [7, 7]
    assert sys.modules["json"] is json
    sys.modules.pop("beside")


def test_solvers_by_entry_point(world, monkeypatch):
    """Other distributions may bring solvers; built-in names are not taken over."""
    point = type(
        "Point", (), {"name": "theirs", "value": "their:solver", "load": staticmethod(lambda: nothing)}
    )
    broken = type("Point", (), {"name": "broken", "value": "b:c", "load": staticmethod(lambda: 1 // 0)})
    monkeypatch.setattr(registry, "_entry_points", lambda: {"theirs": point, "broken": broken})
    with pytest.raises(InputError, match="'broken' cannot be loaded: ZeroDivisionError"):
        get_solver("broken")
    check_solver("theirs")
    assert "theirs" in solver_names()
    assert solve(world, "theirs").status is Status.NO_SOLUTION


def test_every_built_in_solver_can_be_had():
    """Each line of the table leads to a solver of that name."""
    for name in registry._BUILT_IN:
        entry = get_solver(name)
        assert entry.name == name
        assert entry.summary
        assert entry.exact == (registry._BUILT_IN[name].kind in ("exact", "auto"))


def test_unknown_solvers_and_options_list_the_known_ones(world):
    """All unknown options at once, with a hint."""
    with pytest.raises(InputError, match="known: auto, highs, cpsat"):
        get_solver("gurobi")

    @solver("mine", options={"depth": 3, "exactly": True})
    def mine(request):
        return Outcome(T.COMPLETED)

    with pytest.raises(InputError) as caught:
        solve(world, "mine", options={"dept": 1, "zz": 2})
    assert "did you mean 'depth'?" in str(caught.value)
    assert "known: depth, exactly" in str(caught.value)
    for options in ({"depth": "x"}, {"exactly": "maybe"}):
        with pytest.raises(InputError):
            solve(world, "mine", options=options)


def test_names_are_not_taken_over():
    """Neither a built-in name nor that of another function."""
    with pytest.raises(ValueError, match="cpsat"):
        solver("cpsat")(nothing)
    solver("mine")(nothing)
    solver("mine")(nothing)
    with pytest.raises(ValueError, match="mine"):
        solver("mine")(test_names_are_not_taken_over)


def test_listing_loads_no_heavy_library():
    """`optalloc list solvers` is quick."""
    code = "from optalloc.solvers.registry import describe_solvers as d; import sys; d(); print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"ortools", "highspy", "pyomo", "networkx"} & set(ran.stdout.split())


# JSON -------------------------------------------------------------------------------------------------------
def test_results_as_json(world):
    """The documented keys; ints stay ints; nothing that JSON cannot say."""

    def chatty(request):
        request.monitor.offer(plan_of(world), "chatty")
        request.monitor.bound(0, np.int64(18), "chatty")
        info = {"nodes": np.int64(3), "rate": np.float64(0.5), "worst": math.inf, "list": (1, math.nan)}
        return Outcome(T.TIME_LIMIT, info=info)

    content = solve(world, chatty).to_dict()
    documented = (
        "instance solver status termination objective bound gap levels terms metrics seconds weight_scale"
        " seed versions schedule"
    )
    assert set(documented.split()) <= set(content)
    assert json.loads(json.dumps(content, allow_nan=False)) == content
    assert (content["objective"], content["bound"], content["weight_scale"]) == (19, 18, 1)
    assert type(content["bound"]) is int
    level = {"objective": 19, "bound": 18, "gap": 1 / 19, "proven_by": "chatty", "conditional": False}
    assert content["levels"] == [level]
    assert content["info"]["worst"] is None
    assert content["info"]["list"] == [1, None]
    assert content["terms"]["makespan"] == 19
    assert content["schedule"]["format"] == "optalloc-schedule/1"
    assert content["status"] == "FEASIBLE"


def test_json_able():
    """Every kind of value."""
    value = {"a": np.arange(2), 3: {4}, "b": None, "c": True, "d": np.bool_(True), "e": T.GAP, "f": object}
    assert json_able(value) == {
        "a": [0, 1],
        "3": [4],
        "b": None,
        "c": True,
        "d": True,
        "e": "GAP",
        "f": str(object),
    }


# auto -------------------------------------------------------------------------------------------------------
@pytest.fixture
def methods(monkeypatch, world):
    """The parts of `auto`, replaced by scripted ones; the test fills in what each does."""
    from optalloc.solvers import auto

    parts = {"rules": lambda scope, seed: None}
    fake = type(
        "Rules", (), {"best_start": staticmethod(lambda scope, seed=0, **_: parts["rules"](scope, seed))}
    )
    monkeypatch.setitem(sys.modules, "optalloc.solvers.rules", fake)
    entries = {}

    def entry_of(name):
        entries.setdefault(name, registry.SolverEntry(name, lambda request: parts[name](request)))
        return entries[name]

    monkeypatch.setattr(auto, "get_solver", entry_of)
    monkeypatch.setattr(auto, "COMPILED", False)
    return parts


def test_auto_begins_with_the_best_rule_and_stops_at_a_proof(world, methods):
    """CP-SAT sees the rule's plan as its start; HiGHS is not needed."""
    methods["rules"] = lambda scope, seed: plan_of(world, LATE)

    def cpsat(request):
        assert evaluate(world, request.start).levels == (22,)
        return finds(plan_of(world), 19)(request)

    methods["cpsat"] = cpsat
    result = solve(world, "auto")
    assert result.status is Status.OPTIMAL
    assert [point.source for point in result.curve] == ["rules", "found", "found"]
    assert [row["name"] for row in result.info["methods"]] == ["cpsat"]


def test_auto_shares_bounds_and_incumbent(world, methods):
    """What one method proves and another finds make one certificate."""
    methods["cpsat"] = lambda request: finds(plan_of(world, LATE), 19)(request) and Outcome(T.TIME_LIMIT)

    def highs(request):
        assert request.monitor.bounds[0][0] == 19
        assert request.start is not None
        return finds(plan_of(world))(request)

    methods["highs"] = highs
    result = solve(world, "auto")
    assert (result.status, result.termination) == (Status.OPTIMAL, T.PROVEN)
    assert result.levels[0].proven_by == "found"


def test_auto_gives_the_first_method_a_share_of_the_time(world, methods):
    """A tenth for a first try, then more; without a price bound the methods take turns."""
    left = []

    def method(request):
        left.append(request.monitor.remaining)
        return Outcome(T.TIME_LIMIT)

    methods["cpsat"] = methods["highs"] = method
    result = solve(world, "auto", time_limit=20)
    assert (result.status, result.termination) == (Status.NO_SOLUTION, T.TIME_LIMIT)
    assert left[0] <= 2
    assert left[0] < left[1] <= 12 < 15 < left[2] <= 18


def test_auto_skips_a_method_that_refuses(world, methods):
    """With the reason in the facts."""

    def refuses(request):
        raise UnsupportedError("too large; use coarser ticks")

    methods["cpsat"] = refuses
    methods["highs"] = finds(plan_of(world), 19)
    result = solve(world, "auto")
    assert result.status is Status.OPTIMAL
    assert result.info["methods"][0]["refused"] == "too large; use coarser ticks"


def test_auto_says_infeasible(world, methods):
    """One proof is enough."""
    methods["cpsat"] = lambda request: Outcome(T.PROVEN, infeasible=True)
    assert solve(world, "auto").status is Status.INFEASIBLE


def test_transfers_of_the_world_are_needed(world):
    """Guard of the fixtures above: the plan is valid, and not without its transfers."""
    assert evaluate(world, plan_of(world)).valid
    assert not evaluate(world, plan_of(world, STARTS, {k: v for k, v in TRANSFERS.items() if k != "g"})).valid
    assert {FREE, REJECTED}.isdisjoint(plan_of(world).mode.tolist())
