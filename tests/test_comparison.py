"""`compare`: rows, their claims against each other, and what is shown and written."""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import optalloc as oa
from optalloc import comparison, parallel
from optalloc.agreement import Claim, contradictions
from optalloc.cli.app import app
from optalloc.solvers.registry import is_built_in

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


def test_a_gap_beyond_the_limit_exits_with_one_and_names_the_run(run, write):
    """The long job first: 5 + 7 instead of 2 + 7; a run without a plan has no gap."""
    path = write(two_jobs())
    code, _, err = run(path, "--solvers", "max-min,bound,cpsat", "--max-gap", "0.2")
    assert code == 1
    assert "two jobs: max-min (seed 0): the gap is 25.0000%" in err
    assert "two jobs: bound (seed 0): there is no plan" in err
    assert run(path, "--solvers", "max-min,cpsat", "--max-gap", "0.25")[0] == 0
    code, _, err = run(path, "--solvers", "max-min", "--max-gap", "9")
    assert (code, "max-min (seed 0): no bound is known" in err) == (1, True)


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


def test_an_instance_whose_numbers_pass_2_53_is_refused_before_anything_runs(run, write):
    """By name, beside the fault of a file that cannot be read."""
    good, large = write(two_jobs()), write(two_jobs("large", weight=2**53), "large.json")
    code, out, err = run(good, large, "nothing.json", "--solvers", "wspt")
    assert (code, out) == (2, "")
    assert "wspt" not in err
    assert {line.partition(":")[0] for line in err.splitlines()} == {"large", "nothing.json"}


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


# claims against each other ---------------------------------------------------------------------------------
OWN = """
from optalloc.placement import Timetable
from optalloc.result import Termination
from optalloc.scope import full_scope
from optalloc.solvers.base import Outcome

def plan(problem, tasks):
    table = Timetable(full_scope(problem))
    for task in tasks:
        table.commit(table.earliest(task, int(problem.modes_of(task)[0])))
    return table.plan()

def wrong_optimum(request):
    "Long before short: 5 + 7, said to be the least."
    request.monitor.offer(plan(request.scope.problem, (1, 0)), "me")
    request.monitor.bound(0, request.monitor.values[0], "me")
    return Outcome(Termination.PROVEN)

def wrong_bound(request):
    request.monitor.bound(0, 10**6, "me")
    return Outcome(Termination.COMPLETED)

def wrong_proof(request):
    return Outcome(Termination.PROVEN, infeasible=True)

def wrong_second_level(request):
    "The first level is right, the second is not: the wrong task is late."
    request.monitor.offer(plan(request.scope.problem, (0, 1)), "me")
    for level, value in enumerate(request.monitor.values):
        request.monitor.bound(level, value, "me")
    return Outcome(Termination.PROVEN)
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A module of solvers that claim too much."""
    (tmp_path / "claiming.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    yield "claiming"
    sys.modules.pop("claiming", None)


@pytest.mark.parametrize(
    ("claim", "bound"), [("wrong_optimum", 12), ("wrong_bound", 10**6), ("wrong_proof", None)]
)
@pytest.mark.parametrize("order", [1, -1])
def test_a_plan_better_than_another_runs_proof_is_a_contradiction(run, write, own, claim, bound, order):
    """The optimum is 2 + 7 = 9: both runs are named, the false claim is used for no gap, the exit code is 6."""
    liar = f"{own}:{claim}"
    code, out, err = run(write(two_jobs()), "--solvers", ",".join([liar, "cpsat"][::order]), "--json")
    answer = json.loads(out)
    found = {
        "instance": "two jobs",
        "level": 0,
        "objective": 9,
        "plan_by": "cpsat (seed 0)",
        "bound": bound,
        "bound_by": f"{liar} (seed 0)",
        "weight_scale": 1,
    }
    assert (code, answer["contradictions"]) == (6, [found])
    said = next(line for line in err.splitlines() if "CONTRADICTION" in line)
    assert "cpsat (seed 0)" in said
    assert f"{liar} (seed 0)" in said
    rows = {row["solver"]: row for row in answer["rows"]}
    assert (rows["cpsat"]["status"], rows["cpsat"]["gap"], rows["cpsat"]["best_bound"]) == ("OPTIMAL", 0, 9)
    assert (rows[liar]["status"], rows[liar]["bound"], rows[liar]["gap"]) == ("ERROR", None, None)
    assert answer["summary"][liar]["optimal"] == 0


def test_a_contradiction_is_not_hidden_by_a_gap_that_is_allowed(run, write, own):
    """Nor is the false bound printed as a fact."""
    code, out, _ = run(write(two_jobs()), "--solvers", f"{own}:wrong_bound,spt,cpsat", "--max-gap", "0.5")
    assert code == 6
    assert "nothing below 9.00 is possible (proven by cpsat)" in out
    assert "1,000,000" not in out


def test_a_contradiction_on_a_later_level(run, write, own):
    """Makespan 7 either way; the long job is late if it runs second, the short one is late in no order."""
    document = two_jobs()
    document["objective"] = {"levels": [{"makespan": 1}, {"late": 1}]}
    document["tasks"][1]["due_s"] = 5 * 60
    code, out, err = run(write(document), "--solvers", f"{own}:wrong_second_level,cpsat", "--json")
    found = json.loads(out)["contradictions"]
    assert [(each["level"], each["objective"], each["bound"]) for each in found] == [(1, 0, 1)]
    assert code == 6
    assert "on level 2" in err


def test_a_plan_below_the_bound_of_the_index_is_a_contradiction(run, monkeypatch, tmp_path):
    """For `compare` and for `verify`; whoever made the plan."""
    from optalloc import instances

    plan = tmp_path / "plan.json"
    oa.write(instances.solution("real-8"), plan)
    assert CliRunner().invoke(app, ["verify", "real-8", str(plan), "--max-gap", "0"]).exit_code == 0
    wrong = instances.entry("real-8").lower * 3
    monkeypatch.setattr(instances, "bounds_of", lambda sha256: {0: (wrong, "someone")})
    result = CliRunner().invoke(app, ["verify", "real-8", str(plan), "--max-gap", "0.5"])
    assert (result.exit_code, "CONTRADICTION" in result.stderr) == (6, True)
    code, out, err = run("real-8", "--solvers", "wspt")
    assert (code, "wspt (seed 0)" in err, "the index" in err) == (6, True, True)
    assert "is possible" not in out


def test_plans_that_are_merely_worse_contradict_nothing():
    """A bound of a level speaks of plans that are no worse on the levels before."""
    proven = Claim("a", [{"objective": 10, "bound": 10}, {"objective": 8, "bound": 8}])
    held = Claim("b", [{"objective": 12, "bound": 5}, {"objective": 7, "bound": 7}])
    assert contradictions("x", [proven, held]) == []
    better = Claim("c", [{"objective": 11, "bound": None}, {"objective": 6, "bound": None}])
    assert [(c.plan_by, c.bound_by, c.level) for c in contradictions("x", [proven, held, better])] == [
        ("c", "b", 1)
    ]
    nothing = Claim("d", [{"objective": None, "bound": 10}, {"objective": None, "bound": 99}])
    assert contradictions("x", [proven, nothing, Claim("e", infeasible=False)]) == []


# processes -------------------------------------------------------------------------------------------------
SCRIPT = """
import optalloc as oa

@oa.solver("mine")
def mine(problem):
    return None

def main():
    try:
        print([row.status for row in oa.compare("real-8", ["wspt", "mine"]).rows])
    except oa.InputError as error:
        print(error)

{call}
"""


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("if __name__ == '__main__': main()", "['FEASIBLE', 'NO_SOLUTION']"),
        ("main()", 'call compare under: if __name__ == "__main__":'),
    ],
)
def test_a_script_that_compares_as_it_is_imported_is_told_so(tmp_path, call, said):
    """Instead of an ERROR in every row; under the guard, solvers that the script has joined are known."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(call=call))
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120)
    assert said in ran.stdout
    assert ran.stderr == ""


def test_a_process_that_cannot_begin_later_loses_no_row():
    """Only where it is so from the beginning, the script is to blame."""
    lost: Future[dict[str, Any]] = Future()
    lost.set_exception(BrokenProcessPool("All workers expired"))
    with pytest.raises(oa.InputError, match="__main__"):
        parallel.collect({lost: 0}, lambda index, answer: None)
    done: Future[dict[str, Any]] = Future()
    done.set_result({"status": "FEASIBLE"})
    later: Future[dict[str, Any]] = Future()
    statuses: list[str] = []

    def keep(index: int, answer: Mapping[str, Any]) -> None:
        statuses.append(answer["status"])
        if not later.done():
            later.set_exception(BrokenProcessPool("All workers expired"))

    assert parallel.collect({done: 0, later: 1}, keep)
    assert statuses == ["FEASIBLE", "ERROR"]


# what is written -------------------------------------------------------------------------------------------
NAMES = ("a b", "a_b", "a/b", "A_b", "x" * 300, "x" * 301, "ä", "a\u0308", "..", "con/../aux")


def test_every_plan_has_a_file_of_its_own(run, write, tmp_path):
    """Whatever the instances are called, also where case and length of names are limited."""
    files = [write(two_jobs(name), f"{number}.json") for number, name in enumerate(NAMES)]
    code, _, err = run(*files, "--solvers", "wspt,spt", "--out", tmp_path / "out")
    assert code == 0, err
    plans = list((tmp_path / "out" / "schedules").iterdir())
    assert len({plan.name.lower() for plan in plans}) == len(plans) == 2 * len(NAMES)
    assert {json.loads(plan.read_text())["instance"] for plan in plans} == set(NAMES)
    assert max(len(plan.name) for plan in plans) < 130
    assert all(plan.name.isascii() for plan in plans)


def test_names_that_fit_stay_as_they_are(run, write, tmp_path):
    """They can be guessed."""
    run(write(two_jobs("geo-4")), "--solvers", "wspt", "--out", tmp_path / "a" / "b")
    assert [plan.name for plan in (tmp_path / "a" / "b" / "schedules").iterdir()] == ["geo-4__wspt__0.json"]


@pytest.mark.parametrize("wrong", ["file", "file/inside", "loop/inside"])
def test_a_folder_that_cannot_be_filled_is_refused_before_anything_runs(run, write, tmp_path, wrong):
    """Nothing is made."""
    (tmp_path / "file").write_text("")
    if wrong.startswith("loop"):
        (tmp_path / "loop").symlink_to("loop")
    code, out, err = run(write(two_jobs()), "--solvers", "wspt", "--out", tmp_path / wrong)
    assert (code, out) == (2, "")
    assert "--out: " in err
    assert "wspt" not in err
    assert (tmp_path / "file").read_text() == ""


# groups ----------------------------------------------------------------------------------------------------
def test_learned_schedulers_run_by_the_name_of_their_group(run: Any, write: Callable[..., Path]) -> None:
    """Each of them has weights that came with it, or needs none; on two jobs nobody goes wrong."""
    code, out, err = run(write(two_jobs()), "--solvers", "learned,replan-index", "--json")
    assert code == 0, err
    rows = {row["solver"]: row for row in json.loads(out)["rows"]}
    assert list(rows) == ["fdqn", "es-index", "lookahead", "replan-index"]
    assert {(row["status"], row["objective"]) for row in rows.values()} == {("FEASIBLE", 9)}


def test_groups_have_members_that_exist() -> None:
    """A renamed solver is not forgotten in a group."""
    for group in comparison.GROUPS:
        assert comparison.expand_solvers([group]) == comparison.GROUPS[group]
        assert all(is_built_in(name) for name in comparison.GROUPS[group])
