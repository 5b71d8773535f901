"""Ctrl-C at any moment: nothing is left half done, and what is held is kept."""

import importlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

import pytest

from optalloc.compilation import compile
from optalloc.generators import generate
from optalloc.io.reading import read
from optalloc.problem import Problem
from optalloc.result import CurvePoint, Status, Termination, not_begun
from optalloc.scope import full_scope
from optalloc.solvers import base
from optalloc.solvers import run as module
from optalloc.solvers.base import Monitor, Outcome
from optalloc.solvers.interrupts import cut, interruptible, whole
from optalloc.solvers.rules import best_start
from optalloc.solvers.run import solve

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


def ctrl_c() -> None:
    """What the terminal does."""
    os.kill(os.getpid(), signal.SIGINT)


LIBRARY = """
import os, signal, time
first = 1
{interrupt}
second = 2
"""
ONCE = "os.kill(os.getpid(), signal.SIGINT)"
AGAIN = f"{ONCE}\ntime.sleep(1.1)\n{ONCE}"


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[str]:
    """Name of a library in the middle of whose import Ctrl-C is pressed."""
    (tmp_path / "interrupted_library.py").write_text(LIBRARY.format(interrupt=request.param))
    monkeypatch.syspath_prepend(tmp_path)
    yield "interrupted_library"
    sys.modules.pop("interrupted_library", None)


# where it raises --------------------------------------------------------------------------------------------
def test_code_is_cut_short() -> None:
    """At once, within `cut`; the handler is the old one afterwards."""
    with interruptible(), pytest.raises(KeyboardInterrupt):
        cut(lambda: (ctrl_c(), time.sleep(10)))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_outside_of_cut_nothing_is_cut_short() -> None:
    """Ctrl-C is remembered: the next `cut` raises before it begins."""
    begun: list[int] = []
    with interruptible():
        ctrl_c()
        with pytest.raises(KeyboardInterrupt):
            cut(lambda: begun.append(1))
    assert begun == []


def test_whole_within_cut() -> None:
    """A part that is not cut short; what comes after it is."""
    done: list[str] = []

    def part() -> None:
        ctrl_c()
        done.append("part")

    def work() -> None:
        whole(part)
        cut(lambda: done.append("more"))

    with interruptible(), pytest.raises(KeyboardInterrupt):
        cut(work)
    assert done == ["part"]


@pytest.mark.parametrize("library", [ONCE], indirect=True)
def test_imports_are_not_cut_short(library: str) -> None:
    """Half a library would fail for good: it is loaded, and what comes next is interrupted."""
    with interruptible():
        loaded = cut(lambda: importlib.import_module(library))
        assert (loaded.first, loaded.second) == (1, 2)
        with pytest.raises(KeyboardInterrupt):
            cut(lambda: None)


@pytest.mark.parametrize("library", [AGAIN], indirect=True)
def test_an_import_that_goes_on_and_on_is_cut_short(library: str) -> None:
    """By Ctrl-C pressed again."""
    with interruptible(), pytest.raises(KeyboardInterrupt):
        cut(lambda: importlib.import_module(library))
    assert library not in sys.modules


def test_a_handler_left_by_a_library_is_replaced() -> None:
    """As CP-SAT does it where it is not told not to."""
    with interruptible():
        cut(lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        ctrl_c()
        with pytest.raises(KeyboardInterrupt):
            cut(lambda: None)


def test_handlers_of_the_program_are_left_alone() -> None:
    """Whoever handles SIGINT goes on to do so."""
    heard: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
    try:
        with interruptible():
            cut(ctrl_c)
            whole(ctrl_c)
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard == [signal.SIGINT, signal.SIGINT]


# the monitor ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("line", range(12))
def test_the_monitor_is_never_half_changed(
    line: int, monkeypatch: pytest.MonkeyPatch, problem: Problem
) -> None:
    """Cut short before any of its lines: the bound of the third level holds under the second's old value only."""
    values = iter([(5, 5, 5), (4, 6, 5)])
    answer = lambda *args, **rest: SimpleNamespace(violations=(), levels=next(values))  # noqa: E731
    monkeypatch.setattr(base, "evaluate", answer)
    monitor, plan = Monitor(full_scope(problem), 60), full_scope(problem).start_plan()
    monitor.offer(plan, "test")
    monitor._found.bounds[2] = (3, "test")
    lines = iter(range(100))

    def interrupt(frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_code is Monitor.offer.__code__:
            if event == "line" and next(lines) == line:
                raise KeyboardInterrupt
            return interrupt
        return None

    sys.settrace(interrupt)
    try:
        monitor.offer(plan, "test")
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(None)
    assert (monitor.values, monitor.bounds) in (((5, 5, 5), {2: (3, "test")}), ((4, 6, 5), {}))


# runs -------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def problem() -> Problem:
    """Eight tasks; no rule proves anything about them."""
    return compile(read("real-8"))


def offer_one(request: Any) -> None:
    """A plan, but nothing proven."""
    request.monitor.offer(best_start(request.scope), "test")


@pytest.mark.parametrize("library", [ONCE], indirect=True)
def test_a_solver_that_loads_a_library(library: str, problem: Problem) -> None:
    """It gets the whole of it, and hears of Ctrl-C by its monitor."""

    def loads(request: Any) -> Outcome:
        offer_one(request)
        assert importlib.import_module(library).second == 2
        assert request.monitor.should_stop()
        return Outcome(Termination.COMPLETED)

    result = solve(problem, loads)
    assert (result.status, result.termination) == (Status.FEASIBLE, Termination.USER)


@pytest.mark.parametrize("library", [ONCE], indirect=True)
def test_what_follows_an_import_is_cut_short(library: str, problem: Problem) -> None:
    """Also where it never looks at its monitor, and nobody presses again."""

    def loads(request: Any) -> Outcome:
        offer_one(request)
        importlib.import_module(library)
        time.sleep(20)
        return Outcome(Termination.COMPLETED)

    result = solve(problem, loads)
    assert (result.status, result.termination) == (Status.FEASIBLE, Termination.USER)
    assert result.seconds < 10


def test_what_is_cut_short_has_its_time_to_end(problem: Problem) -> None:
    """Nothing but Ctrl-C pressed again cuts it short."""
    ended: list[int] = []

    def ends_slowly(request: Any) -> Outcome:
        offer_one(request)
        try:
            ctrl_c()
            return Outcome(Termination.COMPLETED)
        finally:
            until = time.monotonic() + 2.5
            while time.monotonic() < until:
                time.sleep(0.01)
            ended.append(1)

    result = solve(problem, ends_slowly)
    assert (result.termination, ended) == (Termination.USER, [1])


@pytest.mark.parametrize("step", ["accepted_start", "settled", "result_of"])
def test_no_step_around_the_search_is_cut_short(
    step: str, problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The start and what the search has found are kept."""
    start = None if step == "result_of" else solve(problem, "wspt").plan
    done = getattr(module, step)

    def interrupted(*args: Any) -> Any:
        ctrl_c()
        return done(*args)

    monkeypatch.setattr(module, step, interrupted)
    result = solve(problem, "wspt", start=start)
    assert result.status is Status.FEASIBLE
    assert result.termination is (Termination.COMPLETED if step == "result_of" else Termination.USER)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_before_there_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is held that a result could tell of."""
    monkeypatch.setattr(module, "compile_problem", lambda instance: (ctrl_c(), time.sleep(10)))
    with pytest.raises(KeyboardInterrupt):
        solve("real-8", "wspt")


def test_a_run_within_a_run(problem: Problem) -> None:
    """Both stop, and both keep what they have."""
    inner = []

    def outer(request: Any) -> Outcome:
        offer_one(request)
        inner.append(solve(problem, interrupts))
        return Outcome(Termination.COMPLETED)

    def interrupts(request: Any) -> Outcome:
        offer_one(request)
        ctrl_c()
        return Outcome(Termination.COMPLETED)

    result = solve(problem, outer)
    for found in (*inner, result):
        assert (found.status, found.termination) == (Status.FEASIBLE, Termination.USER)


# the command line -------------------------------------------------------------------------------------------
COMMAND = """
import os, signal, sys
moment = sys.argv.pop(1)

def watch(frame, event, argument):
    if event == "call" and f"{frame.f_globals.get('__name__')}.{frame.f_code.co_qualname}" == moment:
        sys.setprofile(None)
        print(f"pressed at {moment}", file=sys.stderr)
        os.kill(os.getpid(), signal.SIGINT)

from optalloc.cli import main
sys.setprofile(watch)
main()
"""


def command(moment: str, *arguments: object) -> "subprocess.CompletedProcess[str]":
    """Run ``optalloc`` and press Ctrl-C when a function is called, or a module (``module.<module>``) is loaded."""
    line = [sys.executable, "-c", COMMAND, moment, *map(str, arguments)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=100)
    assert f"pressed at {moment}" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    return done


def test_ctrl_c_while_the_commands_are_loading() -> None:
    """A word, and no traceback."""
    done = command("optalloc.cli.app.<module>", "list", "solvers")
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr.endswith("interrupted\n")


BEFORE = (
    "optalloc.io.reading.read",
    "optalloc.solvers.cpsat.<module>",
    "ortools.sat.python.cp_model.<module>",
    "optalloc.compilation.build.compile",
    "optalloc.compilation.build._mode_arrays",
)
"""There is no problem yet."""
DURING = (
    ("cpsat", "optalloc.formulations.cpsat.model.build"),
    ("cpsat", "optalloc.formulations.cpsat.constraints.fit_capacities"),
    ("cpsat", "optalloc.solvers.cpsat._Run.search"),
    ("cpsat", "threading.Thread.start"),
    ("cpsat", "optalloc.solvers.cpsat._Run._attend"),
    ("highs", "optalloc.formulations.milp.constraints.capacity"),
    ("highs", "optalloc.solvers.highs_native.NativeRun.__post_init__"),
    ("highs", "threading.Thread.start"),
    ("auto", "ortools.sat.python.cp_model.<module>"),
)
"""The rules have found a plan."""
AFTER = (
    "optalloc.solvers.ending.result_of",
    "optalloc.schedule.files.write_schedule",
    "optalloc.io.atomic.write_bytes",
    "optalloc.cli.common.print_json",
)
"""The result is there."""


@pytest.mark.parametrize(
    ("name", "moment"),
    [*(("solve", moment) for moment in BEFORE), ("bound", BEFORE[0]), ("bound", BEFORE[-1])],
)
def test_ctrl_c_before_there_is_a_problem(name: str, moment: str, tmp_path: Path) -> None:
    """One JSON object with the names that every result has."""
    own = ("--solver", "cpsat") if name == "solve" else ()
    done = command(moment, name, "real-8", *own, "--seed", 3, "--json", "--out", tmp_path / "plan.json")
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["status"], answer["termination"]) == (130, "NO_SOLUTION", "USER")
    assert (answer["instance"], answer["solver"]) == ("real-8", "cpsat" if name == "solve" else "bound")
    assert answer["seed"] == 3
    assert not (tmp_path / "plan.json").exists()


def test_names_of_a_result(problem: Problem) -> None:
    """Programs find them whenever the run has ended."""
    assert not_begun("x", "y", 0.0, 0, 1).keys() == solve(problem, "wspt").to_dict().keys()


LEAVES_A_SEARCH = """
import threading, time
from pathlib import Path
from optalloc.solvers.rules import best_start

def leaves(request):
    request.monitor.offer(best_start(request.scope), "mine")
    thread = threading.Thread(target=time.sleep, args=(60,))
    thread.start()
    try:
        Path("ready").touch()
        time.sleep(60)
    finally:  # in vain; whoever waits presses again
        thread.join()
"""


def test_a_search_that_does_not_end(tmp_path: Path) -> None:
    """Ctrl-C heard twice at once is one; pressed again, it leaves the search behind, and the plan is kept."""
    (tmp_path / "own.py").write_text(LEAVES_A_SEARCH)
    line = [
        sys.executable,
        "-m",
        "optalloc",
        "solve",
        "real-8",
        "--solver",
        "own:leaves",
        "--json",
        "--out",
        "plan.json",
    ]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    while not (tmp_path / "ready").exists():
        assert process.poll() is None
        time.sleep(0.02)
    for pause in (0.1, 1.5, 0):
        process.send_signal(signal.SIGINT)
        assert process.poll() is None
        time.sleep(pause)
    out, err = process.communicate(timeout=20)
    answer = json.loads(out)
    assert (process.returncode, answer["status"], answer["termination"]) == (130, "FEASIBLE", "USER"), err
    assert json.loads((tmp_path / "plan.json").read_text())["tasks"]


@pytest.mark.parametrize(("name", "moment"), DURING)
def test_ctrl_c_while_a_solver_works(name: str, moment: str, tmp_path: Path) -> None:
    """The plan of the rules is kept, whatever is under way."""
    done = command(moment, "solve", "real-8", "--solver", name, "--json", "--out", tmp_path / "plan.json")
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["status"], answer["termination"]) == (130, "FEASIBLE", "USER")
    assert json.loads((tmp_path / "plan.json").read_text())["tasks"]


@pytest.mark.parametrize("moment", AFTER)
def test_ctrl_c_when_the_result_is_there(moment: str, tmp_path: Path) -> None:
    """It is written and printed in full."""
    done = command(moment, "solve", "real-8", "--solver", "wspt", "--json", "--out", tmp_path / "plan.json")
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["status"]) == (0, "FEASIBLE")
    assert json.loads((tmp_path / "plan.json").read_text())["tasks"]


def test_a_bound_keeps_its_certificate() -> None:
    """The last proof is handed back with its multipliers, not only its value."""
    timers: list[threading.Timer] = []

    def press(point: CurvePoint) -> None:
        if point.bound and not timers:
            timers.append(threading.Timer(0.2, ctrl_c))
            timers[0].start()

    result = solve(generate("ladder", tasks=300), "bound", on_event=press)
    assert result.termination is Termination.USER
    assert result.info["certificate"]["bound"] == result.bound
