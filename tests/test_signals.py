"""Calls to end a command: the best plan is kept, and no process stays behind."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")

OWN = """
import os, time
from pathlib import Path
from optalloc.placement import Timetable
from optalloc.result import Termination
from optalloc.scope import full_scope
from optalloc.solvers.base import Outcome

def offer(request):
    problem, table = request.scope.problem, Timetable(request.scope)
    for task in problem.topological:
        table.commit(table.earliest(task, int(problem.modes_of(task)[0])))
    request.monitor.offer(table.plan(), "mine")
    Path("ready.tmp").write_text(str(os.getpid()))
    os.replace("ready.tmp", "ready")

def polite(request):
    offer(request)
    while not request.monitor.should_stop():
        time.sleep(0.01)
    return Outcome(Termination.USER)

def deaf(request):
    offer(request)
    while True:
        pass
"""

TINY = {
    "format": "optalloc-instance/1",
    "name": "tiny",
    "sites": [{"id": "here"}],
    "device_types": [{"id": "gpu", "memory_gb": 16}],
    "nodes": [{"id": "pool", "site": "here", "device_type": "gpu", "devices": 1}],
    "tasks": [
        {"id": "t", "modes": [{"id": "m", "uses": [{"node": "pool", "devices": 1}], "duration_ticks": 2}]}
    ],
}

Begin = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    """Begin ``optalloc`` in a folder with an instance and solvers that do not end, and wait until one has a plan."""
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "tiny.json").write_text(json.dumps(TINY))
    begun: list[subprocess.Popen[str]] = []

    def start(*arguments: str, **settings: Any) -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", "optalloc", *arguments]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        settings = {"env": os.environ | {"PYTHONFAULTHANDLER": "1"}, **settings}
        process = subprocess.Popen(command, text=True, cwd=tmp_path, **pipes, **settings)
        begun.append(process)
        _wait_for((tmp_path / "ready").exists)
        return process

    yield start
    for process in begun:
        process.kill()
        process.wait()


def _end_of(process: "subprocess.Popen[str]") -> tuple[str, str]:
    """What it has printed; where every thread is and what it makes of signals, if it does not end."""
    try:
        return process.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        status = Path(f"/proc/{process.pid}/status")
        lines = status.read_text().splitlines() if status.exists() else []
        process.send_signal(signal.SIGABRT)
        said = process.communicate(timeout=30)[1]
        pytest.fail("\n".join(["it did not end", *lines, said]))


def _wait_for(condition: Callable[[], bool], seconds: float = 30) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not come"
        time.sleep(0.02)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not (stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z")


@pytest.mark.parametrize("solver_name", ["polite", "deaf"])
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)]
)
def test_solve_keeps_its_plan_when_it_is_called_to_end(begin, tmp_path, number, code, solver_name):
    """Whether or not the solver looks at the monitor; twice in a row as ``timeout`` does it."""
    process = begin("solve", "tiny.json", "--solver", f"own:{solver_name}", "--out", "plan.json", "--json")
    process.send_signal(number)
    if number != signal.SIGINT:
        process.send_signal(number)
    out, err = _end_of(process)
    answer = json.loads(out)
    assert (process.returncode, answer["status"], answer["termination"]) == (code, "FEASIBLE", "USER"), err
    assert json.loads((tmp_path / "plan.json").read_text())["tasks"]


def test_a_signal_that_is_ignored_stays_ignored(begin, tmp_path):
    """``nohup`` shields from SIGHUP."""
    ignore = {"preexec_fn": lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)}
    process = begin("solve", "tiny.json", "--solver", "own:polite", "--json", **ignore)
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGTERM)
    _end_of(process)
    assert process.returncode == 143


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_compare_leaves_no_process_behind(begin, tmp_path, number):
    """The run that is on is ended; by SIGTERM, what is done is printed. SIGKILL leaves no time for that."""
    process = begin("compare", "tiny.json", "--solvers", "wspt,own:deaf", "--json")
    worker = int((tmp_path / "ready").read_text())
    assert _runs(worker)
    process.send_signal(number)
    if number == signal.SIGKILL:
        process.wait(30)
    else:
        out, err = _end_of(process)
        answer = json.loads(out)
        assert (process.returncode, answer["interrupted"]) == (143, True), err
        assert answer["rows"][0]["status"] == "FEASIBLE"
    _wait_for(lambda: not _runs(worker))
