"""`compare`: rows, their claims against each other, and what is shown and written."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import optalloc as oa
from optalloc import parallel
from optalloc.cli.app import app

POOL = [{"node": "pool", "devices": 1}]


def two_jobs(name: str = "two jobs", ticks: tuple[int, int] = (2, 5), **more: Any) -> dict[str, Any]:
    """One device; short before long ends at 2 and 7."""
    modes = [[{"id": "m", "uses": POOL, "duration_ticks": t}] for t in ticks]
    return {
        "format": "optalloc-instance/1",
        "name": name,
        "sites": [{"id": "here"}],
        "device_types": [{"id": "gpu", "memory_gb": 16}],
        "nodes": [{"id": "pool", "site": "here", "device_type": "gpu", "devices": 1}],
        "tasks": [{"id": id, "modes": m} | more for id, m in zip(("short", "long"), modes, strict=True)],
        "objective": {"levels": [{"weighted_completion": 1}]},
    }  # fmt: skip


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write a document into a file."""

    def written(document: Mapping[str, Any], name: str = "instance.json") -> Path:
        path = tmp_path / name
        path.write_text(json.dumps(document))
        return path

    return written


@pytest.fixture
def run(monkeypatch):
    """``optalloc compare`` with runs in this process: (exit code, standard output, standard error)."""

    def here(jobs: int) -> parallel.Engine:
        def engine(function: Any, arguments: Sequence[Any], timeout: float, keep: Any) -> bool:
            for index, given in enumerate(arguments):
                keep(index, function(*given))
            return True

        return engine

    monkeypatch.setitem(parallel.ENGINES, "local", here)

    def call(*arguments: object) -> tuple[int, str, str]:
        result = CliRunner().invoke(app, ["compare", *map(str, arguments)])
        return result.exit_code, result.stdout, result.stderr

    return call


# runs without a plan ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("document", "method", "shown"),
    [
        (two_jobs(deadline_s=120), "cpsat", "INFEASIBLE"),
        (two_jobs(), "bound", "NO PLAN"),
        (two_jobs(), "cpsat", "OPTIMAL"),
    ],
)
def test_a_run_without_a_plan_has_its_line_in_the_table(run, write, document, method, shown):
    """INFEASIBLE (both must end by tick 2) and a bound by itself; a plan is shown as ever."""
    code, out, err = run(write(document), "--solvers", f"{method},wspt")
    assert (code, "Traceback" in err) == (0, False)
    assert shown in out
    assert "wspt" in out
    code, out, _ = run(write(document), "--solvers", method, "--json")
    row = json.loads(out)["rows"][0]
    assert isinstance(row["terms"], dict)
    assert isinstance(row["metrics"], dict)


# which instances -------------------------------------------------------------------------------------------
def test_two_instances_of_one_name_are_refused(run, write):
    """Both are named, and all faults at once; neither is dropped in silence."""
    first, second = write(two_jobs(), "a.json"), write(two_jobs(ticks=(2, 6)), "b.json")
    shipped = write(two_jobs("real-8"), "c.json")
    code, out, err = run(first, second, "real-8", shipped, "nowhere.json", "--solvers", "wspt")
    assert (code, out) == (2, "")
    lines = err.strip().splitlines()
    assert len(lines) == 3
    assert str(second) in lines[0]
    assert str(first) in lines[0]
    assert str(shipped) in lines[1]
    assert "real-8" in lines[1]
    assert "nowhere.json" in lines[2]


def test_one_instance_given_twice_is_solved_once(run, write):
    """Under one name; the same tasks under another name are another instance."""
    files = write(two_jobs(), "a.json"), write(two_jobs(), "b.json"), write(two_jobs("other"), "c.json")
    code, out, _ = run(*files, "--solvers", "wspt", "--json")
    assert (code, [row["instance"] for row in json.loads(out)["rows"]]) == (0, ["two jobs", "other"])


def test_one_instance_and_one_solver_need_no_list(run, write):
    """From Python."""
    path = write(two_jobs())
    for given in (path, str(path), oa.read(path)):
        rows = oa.compare(given, "wspt").rows
        assert [(row.instance, row.solver, row.status) for row in rows] == [("two jobs", "wspt", "FEASIBLE")]
