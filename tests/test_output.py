"""Standard output: for the answer alone, in every encoding, and open or not."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

posix = pytest.mark.skipif(os.name != "posix", reason="descriptors of POSIX")

OWN = """
print("imported")

def chatty(problem):
    import ctypes, os, sys
    print("by print")
    sys.stdout.write("by write")
    os.write(1, b"by descriptor")
    os.system("echo by a process")
    if os.name == "posix":
        ctypes.CDLL(None).printf(b"by C")
    return None
"""

POOL = [{"node": "\u30d7\u30fc\u30eb", "devices": 1}]
JAPANESE = {
    "format": "optalloc-instance/1",
    "name": "\u4e8c\u3064 \U0001f600",
    "sites": [{"id": "here"}],
    "device_types": [{"id": "gpu", "memory_gb": 16}],
    "nodes": [{"id": "\u30d7\u30fc\u30eb", "site": "here", "device_type": "gpu", "devices": 1}],
    "tasks": [{"id": "\u4ed5\u4e8b", "modes": [{"id": "m", "uses": POOL, "duration_ticks": 2}]}],
}

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """``optalloc`` in a folder with an instance and a solver that prints."""
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "instance.json").write_text(json.dumps(JAPANESE))

    def ran(
        arguments: Sequence[str], encoding: str = "utf-8", **more: Any
    ) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "optalloc", *arguments],
            text=True,
            encoding=encoding,
            cwd=tmp_path,
            env={**os.environ, "PYTHONIOENCODING": encoding},
            timeout=120,
            **more,
        )

    return ran


@posix
@pytest.mark.parametrize(
    "arguments", [["solve", "instance.json", "--solver"], ["compare", "instance.json", "--solvers"]]
)
def test_what_a_solver_prints_does_not_break_the_answer(run, arguments):
    """However it is printed, it comes on standard error."""
    answer = run([*arguments, "own:chatty", "--json"], capture_output=True)
    assert "NO_SOLUTION" in json.dumps(json.loads(answer.stdout))
    for how in ("imported", "by print", "by write", "by descriptor", "by a process", "by C"):
        assert how in answer.stderr


@pytest.mark.parametrize("encoding", ["latin-1", "ascii", "cp1252", "utf-8"])
def test_names_are_printed_in_every_encoding(run, encoding):
    """JSON says the same whatever the encoding; tables and messages write out what it lacks."""
    solved = run(
        ["solve", "instance.json", "--solver", "wspt", "--json", "--out", "plan.json"],
        encoding,
        capture_output=True,
    )
    answer = json.loads(solved.stdout)
    assert (solved.returncode, answer["instance"]) == (0, JAPANESE["name"]), solved.stderr
    assert answer["schedule"]["tasks"][0]["task"] == "\u4ed5\u4e8b"
    for arguments in (
        ["solve", "instance.json", "--solver", "wspt"],
        ["verify", "instance.json", "plan.json"],
    ):
        shown = run(arguments, encoding, capture_output=True)
        assert (shown.returncode, shown.stderr) == (0, "")
        assert shown.stdout
    missing = run(["solve", "\u4e8c\u3064.json"], encoding, capture_output=True)
    assert (missing.returncode, "Traceback" in missing.stderr) == (2, False)


@posix
@pytest.mark.parametrize("closed", [(1,), (2,), (1, 2)])
def test_closed_streams_are_no_error(run, tmp_path, closed):
    """The plan is written and the code says how it went; nothing of one stream comes on the other."""
    arguments = ["solve", "instance.json", "--solver", "own:chatty", "--json"]
    for given, code in ((arguments, 4), ([*arguments[:3], "wspt", "--json", "--out", "plan.json"], 0)):
        ran = run(given, capture_output=True, preexec_fn=lambda: [os.close(number) for number in closed])
        assert ran.returncode == code, ran.stderr
        assert "Traceback" not in ran.stderr
        if 1 not in closed:
            json.loads(ran.stdout)
    assert json.loads((tmp_path / "plan.json").read_text())["tasks"]
