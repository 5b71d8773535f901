"""The command line: contracts that other programs rely on."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from optalloc import parallel

POOL = [{"node": "pool", "devices": 1}]
TINY = {
    "format": "optalloc-instance/1",
    "name": "two jobs",
    "sites": [{"id": "here", "tier": "cloud"}],
    "links": [],
    "datasets": [],
    "device_types": [{"id": "gpu", "memory_gb": 16, "interconnect_gbps": 100}],
    "nodes": [{"id": "pool", "site": "here", "device_type": "gpu", "devices": 1, "usd_per_device_hour": 6}],
    "models": [],
    "throughputs": [],
    "tasks": [
        {"id": name, "modes": [{"id": "m", "uses": POOL, "duration_ticks": ticks, "usd": usd}]}
        for name, ticks, usd in (("short", 2, 1), ("long", 5, 3))
    ],
}  # fmt: skip


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """Two jobs on one device: short before long ends at 2 and 7, completion 9, cost $4."""
    path = tmp_path / "tiny.json"
    path.write_text(json.dumps(TINY))
    return path


@pytest.mark.parametrize("method", ["highs", "cpsat", "auto"])
def test_solve_prints_one_json_object_with_the_proven_optimum(run, tiny, method):
    """Completion 2 + 7, cost $1 + $3: 13 whatever the method; K is 100 since money has two decimals."""
    code, out, _ = run("solve", tiny, "--solver", method, "--json")
    answer = json.loads(out)
    assert code == 0
    assert (answer["status"], answer["termination"]) == ("OPTIMAL", "PROVEN")
    assert answer["objective"] == answer["bound"] == 13 * answer["weight_scale"]
    assert answer["gap"] == 0
    keys = "instance solver status termination objective bound gap levels terms metrics seconds"
    assert {*keys.split(), "weight_scale", "seed", "versions", "schedule"} <= set(answer)


def test_a_plan_written_by_solve_passes_verify(run, tiny, tmp_path):
    """The round trip: solve --out, then verify."""
    plan = tmp_path / "plan.json"
    assert run("solve", tiny, "--solver", "wspt", "--out", plan)[0] == 0
    code, out, _ = run("verify", tiny, plan, "--json")
    answer = json.loads(out)
    assert code == 0
    assert answer["valid"] is True
    assert answer["violations"] == []
    assert {"objective", "terms", "bound", "gap", "bound_valid"} <= set(answer)


def test_verify_lists_every_broken_rule_and_exits_with_one(run, tiny, tmp_path):
    """Both runs at tick 0 on one device: R5, and nothing else."""
    plan = tmp_path / "plan.json"
    run("solve", tiny, "--solver", "wspt", "--out", plan)
    document = json.loads(plan.read_text())
    for entry in document["tasks"]:
        for segment in entry["segments"]:
            segment["start"], segment["end"] = 0, segment["end"] - segment["start"]
    plan.write_text(json.dumps(document))
    code, out, _ = run("verify", tiny, plan, "--json")
    answer = json.loads(out)
    assert code == 1
    assert {violation["rule"] for violation in answer["violations"]} == {"R5"}
    assert {"rule", "ids", "message"} == set(answer["violations"][0])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["solve", "no-such-thing"], "no-such-thing"),
        (["solve", "TINY", "--solver", "magic"], "magic"),
        (["solve", "TINY", "--objective", "speed=1"], "speed"),
        (["solve", "TINY", "--objective", "makespan"], "makespan"),
        (["solve", "TINY", "--limit", "cost"], "--limit"),
        (["solve", "TINY", "--limit", "cost=cheap"], "cheap"),
        (["solve", "TINY", "--time-limit", "nan"], "--time-limit"),
        (["solve", "TINY", "--time-limit", "-1"], "--time-limit"),
        (["solve", "TINY", "--out", "/no/such/folder/plan.json"], "--out"),
        (["solve", "TINY", "--option", "speed=11", "--solver", "highs"], "speed"),
        (["solve", "TINY", "--start", "TINY"], "format"),
        (["solve"], "instance"),
        (["verify", "TINY", "no-plan.json"], "no-plan.json"),
        (["compare", "TINY", "--solvers", "magic"], "magic"),
        (["compare", "TINY", "--solvers", ","], "--solvers"),
        (["compare", "TINY", "--solvers", "spt", "--engine", "cloud"], "cloud"),
        (["generate", "nothing", "--seed", "1", "--out", "x.json"], "nothing"),
        (["compose", "--data", "nowhere", "--size", "8", "--seed", "1", "--out", "x.json"], "nowhere"),
        (["import", "nothing", "TINY", "--out", "x.json"], "nothing"),
        (["export", "TINY", "--to", "xls", "--out", "x"], "xls"),
        (["plot", "TINY", "TINY", "--out", "x.html"], "format"),
        (["list", "everything"], "everything"),
    ],
)
def test_wrong_usage_and_bad_input_exit_with_two_and_name_the_culprit(run, tiny, arguments, words):
    """One clear message on standard error, never a traceback, nothing on standard output."""
    code, out, err = run(*[tiny if argument == "TINY" else argument for argument in arguments])
    assert code == 2
    assert out == ""
    assert words in err.replace("\n", " ")
    assert "Traceback" not in err


@pytest.mark.skipif(os.name != "posix", reason="links of POSIX")
def test_an_output_that_cannot_be_written_is_refused_before_any_work(run, tiny, tmp_path):
    """A link that leads nowhere but to itself: named as it was given, and the solver never runs."""
    loop = tmp_path / "loop.json"
    loop.symlink_to(loop)
    code, out, err = run("solve", tiny, "--solver", "wspt", "--out", loop)
    assert (code, out) == (2, "")
    assert f"--out: {loop}" in err


@pytest.mark.skipif(os.name != "posix", reason="links of POSIX")
def test_a_plan_is_written_where_a_link_leads(run, tiny, tmp_path):
    """The link stays."""
    (tmp_path / "link.json").symlink_to("plan.json")
    assert run("solve", tiny, "--solver", "wspt", "--out", tmp_path / "link.json")[0] == 0
    assert (tmp_path / "link.json").is_symlink()
    assert run("verify", tiny, tmp_path / "plan.json")[0] == 0


def test_all_faults_of_a_file_are_reported_at_once(run, tmp_path):
    """Three faults in one file: three lines, each with the file and the path inside it."""
    document = json.loads(json.dumps(TINY))
    document["nodes"][0]["devices"] = -1
    document["tasks"][0]["release_s"] = -5
    document["tasks"][1]["modes"][0]["uses"][0]["node"] = "nowhere"
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(document))
    code, _, err = run("solve", path)
    assert code == 2
    assert err.count(str(path)) >= 3 or len(err.strip().splitlines()) >= 3
    for place in ("nodes[0].devices", "tasks[0].release_s"):
        assert place in err


def test_infeasible_exits_with_three_and_says_why(run, tmp_path):
    """A deadline before the run can end."""
    document = json.loads(json.dumps(TINY))
    document["tasks"][1]["deadline_s"] = 240
    path = tmp_path / "tight.json"
    path.write_text(json.dumps(document))
    code, out, _ = run("solve", path, "--json")
    assert code == 3
    assert json.loads(out)["status"] == "INFEASIBLE"
    assert json.loads(out)["objective"] is None


def test_a_rule_that_dead_ends_exits_with_four(run, tmp_path):
    """First come is the long job, [0, 5); the short one must end by tick 2. An exact method sees that."""
    document = json.loads(json.dumps(TINY))
    document["tasks"].reverse()
    document["tasks"][1]["deadline_s"] = 120
    path = tmp_path / "blocked.json"
    path.write_text(json.dumps(document))
    code, out, _ = run("solve", path, "--solver", "fifo", "--json")
    answer = json.loads(out)
    assert (code, answer["status"], answer["schedule"]) == (4, "NO_SOLUTION", None)
    assert run("solve", path, "--solver", "cpsat")[0] == 0


def test_a_gap_beyond_the_limit_exits_with_one_and_says_why(run, tiny, tmp_path):
    """A rule has no bound of its own, so no gap can be shown to hold; nor for a plan without a certificate."""
    plan = tmp_path / "plan.json"
    code, _, err = run("solve", tiny, "--solver", "max-min", "--max-gap", "0.1", "--out", plan)
    assert (code, "max-min has proven no bound" in err) == (1, True)
    code, _, err = run("verify", tiny, plan, "--max-gap", "0.1")
    assert (code, "give one with --bound" in err) == (1, True)
    proof = tmp_path / "proof.json"
    run("bound", tiny, "--out", proof)
    code, _, err = run("verify", tiny, plan, "--max-gap", "0", "--bound", proof)
    assert (code, "--max-gap: the gap is " in err) == (1, True)


def test_bound_without_a_certificate_to_write_exits_with_four(run, tmp_path):
    """Nothing is to be decided: OPTIMAL and 0, but no prices, so no file."""
    empty, proof = tmp_path / "empty.json", tmp_path / "proof.json"
    empty.write_text(json.dumps({"format": "optalloc-instance/1", "name": "empty"}))
    code, _, err = run("bound", empty, "--out", proof)
    assert (code, proof.exists(), "no certificate" in err) == (4, False, True)
    assert run("bound", empty)[0] == 0


@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
@pytest.mark.parametrize("arguments", [["list", "solvers"], ["list", "solvers", "--json"], ["verify"]])
def test_a_pipe_that_nobody_reads_is_no_bad_input(run, tiny, tmp_path, arguments):
    """As in ``optalloc ... | true``: the code of a program that SIGPIPE ends, and not a word."""
    run("solve", tiny, "--solver", "wspt", "--out", tmp_path / "plan.json")
    given = [*arguments, "tiny.json", "plan.json"] if arguments == ["verify"] else arguments
    reading, writing = os.pipe()
    os.close(reading)
    ran = subprocess.run(
        [sys.executable, "-m", "optalloc", *given], stdout=writing, stderr=subprocess.PIPE, cwd=tmp_path
    )
    os.close(writing)
    assert (ran.returncode, ran.stderr) == (141, b"")


@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
def test_messages_that_nobody_reads_change_nothing(tiny, tmp_path):
    """The plan is written, the code is that of the answer."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "optalloc", "solve", tiny.name, "--solver", "wspt", "--out", "plan.json"]
    ran = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=writing, cwd=tmp_path)
    os.close(writing)
    assert ran.returncode == 0
    assert (tmp_path / "plan.json").exists()


def test_compare_measures_heuristics_against_the_proven_optimum(run, tiny, tmp_path):
    """Rows in the order asked for; the rules' gaps are to the bound of the exact method; files are written."""
    out_folder = tmp_path / "out"
    code, out, _ = run(
        "compare", tiny, "--solvers", "cpsat,fifo,spt", "--seeds", "2", "--json", "--out", out_folder
    )
    answer = json.loads(out)
    assert code == 0
    assert [(r["solver"], r["seed"]) for r in answer["rows"]] == [
        (s, i) for s in ("cpsat", "fifo", "spt") for i in (0, 1)
    ]
    assert {"instance", "solver", "seed", "status", "objective", "bound", "gap", "seconds"} <= set(
        answer["rows"][0]
    )
    assert all(row["gap"] is not None and row["gap"] >= 0 for row in answer["rows"])
    assert answer["summary"]["spt"]["at_best_bound"] == 2
    assert (out_folder / "rows.csv").read_text().count("\n") == 7
    assert len(list((out_folder / "schedules").iterdir())) == 6


def test_a_solver_that_crashes_does_not_lose_the_other_runs(run, tiny, tmp_path, monkeypatch):
    """An own solver that kills its process, or calls for its end, becomes an ERROR row; exit code 5."""
    (tmp_path / "crashing.py").write_text(
        "import os, sys\ndef die(problem, **settings):\n    os._exit(9)\ndef leave(problem):\n    sys.exit(3)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))
    code, out, _ = run("compare", tiny, "--solvers", "crashing:die,crashing:leave,spt", "--json")
    rows = json.loads(out)["rows"]
    assert (code, [row["status"] for row in rows]) == (5, ["ERROR", "ERROR", "FEASIBLE"])
    assert "SystemExit: 3 (crashing.py, line 5, in leave)" in rows[1]["message"]
    code, out, err = run("solve", tiny, "--solver", "crashing:leave")
    assert (code, "SystemExit: 3" in err, "please report" in err) == (5, True, False)


@pytest.mark.parametrize(
    ("command", "name"),
    [("solve", "nearby:plan"), ("solve", "./nearby.py:plan"), ("compare", "nearby:plan")],
)
def test_own_code_in_the_current_folder_is_found(tiny, command, name):
    """By the ``optalloc`` script, which Python starts without that folder on its path (``-P``); in children too."""
    (tiny.parent / "nearby.py").write_text("def plan(problem):\n    return None\n")
    arguments = [command, tiny, "--solver" + "s" * (command == "compare"), name, "--json"]
    ran = subprocess.run(
        [sys.executable, "-P", "-m", "optalloc", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=tiny.parent,
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
    )
    answer = json.loads(ran.stdout)
    assert (answer if command == "solve" else answer["rows"][0])["status"] == "NO_SOLUTION", ran.stderr


def test_all_solvers_that_cannot_be_run_are_named(run, tiny, tmp_path):
    """At once, each with its reason and a remedy."""
    (tmp_path / "picky.py").write_text("def wants(problem, *, colour):\n    return None\n")
    wanted = ["magic", "no_such_module:f", "spt", f"{tmp_path / 'picky.py'}:wants", "./nowhere.py:f"]
    code, out, err = run("compare", tiny, "--solvers", ",".join(wanted))
    assert (code, out) == (2, "")
    lines = err.strip().splitlines()
    assert len(lines) == 4
    for line, words in zip(
        lines, ("file.py:function", "file.py:function", "colour", "No such file"), strict=True
    ):
        assert words in line


def test_whatever_ends_a_child_is_an_answer():
    """Not only exceptions that the run has caught; Ctrl-C goes on."""
    answers: dict[int, Any] = {}
    for error, goes_on in ((SystemExit(0), True), (RuntimeError("lost"), True), (KeyboardInterrupt(), False)):
        future: Future[dict[str, Any]] = Future()
        future.set_exception(error)
        assert parallel.collect({future: len(answers)}, answers.__setitem__) == goes_on
    assert [answer["status"] for answer in answers.values()] == ["ERROR", "ERROR"]


@pytest.mark.parametrize("what", ["solvers", "formats", "instances", "objectives"])
def test_list_as_json_and_as_a_table(run, what):
    """Every list has rows; the names of the contract are there."""
    code, out, _ = run("list", what, "--json")
    rows = json.loads(out)[what]
    assert code == 0
    assert len(rows) >= 2
    assert run("list", what)[0] == 0


def test_list_solvers_names_what_the_documentation_promises(run):
    """Exact methods, auto, and fifteen dispatch rules."""
    names = {row["name"] for row in json.loads(run("list", "solvers", "--json")[1])["solvers"]}
    promised = (
        "highs cpsat auto fifo spt wspt edd atc min-min max-min sufferage heft cheapest fastest random compute-centric "
        "data-first joint-greedy fdqn bdq additive flat-dqn reinforce es-index lookahead"
    )
    assert set(promised.split()) <= names


@pytest.mark.parametrize("target", ["mps", "lp", "cpsat"])
def test_export_writes_a_model(run, tiny, tmp_path, target):
    """Whatever the task ids are, the file is there and not empty."""
    path = tmp_path / f"model.{target}"
    assert run("export", tiny, "--to", target, "--out", path)[0] == 0
    assert path.stat().st_size > 100


@pytest.mark.parametrize(
    ("ending", "begins"), [("html", b"<!DOCTYPE html>"), ("png", b"\x89PNG"), ("svg", b"<?xml")]
)
def test_plot_writes_pictures(run, tiny, tmp_path, ending, begins):
    """A page, a bitmap, a drawing."""
    plan, picture = tmp_path / "plan.json", tmp_path / f"plan.{ending}"
    run("solve", tiny, "--solver", "spt", "--out", plan)
    assert run("plot", tiny, plan, "--out", picture)[0] == 0
    assert picture.read_bytes().startswith(begins)


def test_generate_is_repeatable_and_its_file_can_be_solved(run, tmp_path):
    """Same seed, same bytes."""
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    for path in (first, second):
        assert run("generate", "geo", "--tasks", "4", "--seed", "3", "--out", path)[0] == 0
    assert first.read_bytes() == second.read_bytes()
    assert run("solve", first, "--solver", "spt", "--json")[0] == 0


def test_help_and_version(run):
    """Every command explains itself."""
    assert run("--version")[1].startswith("optalloc ")
    for command in ("solve", "verify", "compare", "generate", "compose", "import", "export", "plot", "list"):
        code, out, _ = run(command, "--help")
        assert code == 0
        assert "Usage" in out


@pytest.mark.parametrize("levels", ["weighted_completion=1,cost=1", "weighted_completion=1;cost=1"])
def test_a_certificate_gives_verify_its_bound(run, tiny, tmp_path, levels):
    """``bound --out``, then ``verify --bound``; raised by one unit it does not hold, and the exit code is 1."""
    document = json.loads(tiny.read_text())
    terms = [dict(pair.split("=") for pair in level.split(",")) for level in levels.split(";")]
    document["objective"] = {
        "levels": [{term: int(weight) for term, weight in level.items()} for level in terms]
    }
    tiny.write_text(json.dumps(document))
    plan, proof = tmp_path / "plan.json", tmp_path / "proof.json"
    assert run("bound", tiny, "--out", proof)[0] == 0
    run("solve", tiny, "--solver", "max-min", "--out", plan)
    code, out, _ = run("verify", tiny, plan, "--bound", proof, "--json")
    answer, certificate = json.loads(out), json.loads(proof.read_text())
    assert (code, answer["bound_valid"], answer["bound"]) == (0, True, certificate["bound"])
    assert answer["gap"] > 0
    proof.write_text(json.dumps(certificate | {"bound": certificate["bound"] + 1}))
    code, out, _ = run("verify", tiny, plan, "--bound", proof, "--json")
    assert (code, json.loads(out)["bound_valid"]) == (1, False)


@pytest.mark.parametrize(
    "changes",
    [
        ["--objective", "makespan=1"],
        ["--limit", "cost=4"],
        ["--objective", "makespan=1;cost=1", "--limit", "late=2"],
    ],
)
def test_what_was_made_for_another_objective_is_verified_under_it(run, tiny, tmp_path, changes):
    """Plan and certificate pass with the options that they were made with; without, the message names them."""
    plan, proof = tmp_path / "plan.json", tmp_path / "proof.json"
    assert run("bound", tiny, *changes, "--out", proof)[0] == 0
    solved = json.loads(run("solve", tiny, *changes, "--solver", "highs", "--out", plan, "--json")[1])
    code, out, err = run("verify", tiny, plan, *changes, "--bound", proof, "--json")
    answer = json.loads(out)
    assert (code, err, answer["bound_valid"]) == (0, "", True)
    assert answer["levels"] == [level["objective"] for level in solved["levels"]]
    assert answer["notes"] == []
    code, out, err = run("verify", tiny, plan, "--bound", proof)
    assert (code, out) == (2, "")
    assert changes[0] in err


def test_limits_given_to_verify_are_kept_to(run, tiny, tmp_path):
    """Cost $4, allowed $3: R10."""
    plan = tmp_path / "plan.json"
    run("solve", tiny, "--solver", "wspt", "--out", plan)
    code, out, _ = run("verify", tiny, plan, "--limit", "cost=3", "--json")
    assert (code, [broken["rule"] for broken in json.loads(out)["violations"]]) == (1, ["R10"])


def test_the_index_bounds_nothing_under_another_objective(run, tmp_path):
    """Its bounds are for the objective in the file."""
    plan = tmp_path / "plan.json"
    run("solve", "real-8", "--solver", "wspt", "--out", plan)
    assert json.loads(run("verify", "real-8", plan, "--json")[1])["bound"] is not None
    assert json.loads(run("verify", "real-8", plan, "--objective", "cost=1", "--json")[1])["bound"] is None


def test_solve_and_verify_print_the_same_numbers(run, tiny, tmp_path):
    """Completion 9 and $4.00 in tenths and cents: K is 1000, the objective 4.9; never 4900, never 400 money units."""
    plan, proof = tmp_path / "plan.json", tmp_path / "proof.json"
    spec = "weighted_completion=0.1,cost=1.001"
    _, solved, _ = run("solve", tiny, "--objective", spec, "--solver", "highs", "--out", plan)
    run("bound", tiny, "--objective", spec, "--out", proof)
    _, out, _ = run("verify", tiny, plan, "--objective", spec, "--bound", proof)
    assert "objective 4.90\n" in out
    assert re.search(r"objective +4\.90 ", solved)
    assert re.search(r"cost +\$4\.00", out)
    assert re.search(r"makespan +7\n", out)
    assert re.search(r"gap \S+ to the proven bound 4\.\d\d\n", out)
    answer = json.loads(run("verify", tiny, plan, "--objective", spec, "--json")[1])
    assert answer["objective"] == 4.904 * answer["weight_scale"]
    assert "objective 4.90; 7.00\n" in run("verify", tiny, plan, "--objective", f"{spec};makespan=1")[1]


def test_a_limit_that_cannot_be_kept_is_told_in_dollars(run, tiny, tmp_path):
    """As it was given: $4.00 is needed, and what a plan costs is in $ as well."""
    code, out, _ = run("solve", tiny, "--limit", "cost=3.5")
    assert code == 3
    assert "at least $4.00 is needed, $3.50 is allowed" in " ".join(out.split())
    run("solve", tiny, "--solver", "wspt", "--out", tmp_path / "plan.json")
    _, out, _ = run("verify", tiny, tmp_path / "plan.json", "--limit", "cost=3.5", "--limit", "makespan=6")
    assert "R10: cost is $4.00, more than its limit $3.50" in out
    assert "R10: makespan is 7, more than its limit 6" in out


def test_ctrl_c_writes_the_best_plan_and_exits_with_130(tmp_path):
    """An interrupt in the middle of a long solve keeps the incumbent."""
    hard, plan = tmp_path / "hard.json", tmp_path / "plan.json"
    command = [sys.executable, "-m", "optalloc"]
    subprocess.run(
        [*command, "generate", "ladder", "--tasks", "30", "--seed", "1", "--out", str(hard)],
        check=True,
        capture_output=True,
    )
    arguments = [
        *command,
        "solve",
        str(hard),
        "--solver",
        "cpsat",
        "--time-limit",
        "100",
        "--out",
        str(plan),
        "--json",
    ]
    process = subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ}, text=True
    )
    time.sleep(20)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    answer = json.loads(out)
    assert process.returncode == 130, err
    assert (answer["status"], answer["termination"]) == ("FEASIBLE", "USER")
    assert json.loads(plan.read_text())["tasks"]


def test_the_gap_of_a_policy_is_split(run):
    """Of the future: what rolling loses to the clairvoyant optimum; of the heuristic: the policy to rolling."""
    solvers = "references,replan-index,lookahead,fifo"
    code, printed, _ = run("compare", "contended-6", "--solvers", solvers, "--time-limit", 20, "--json")
    assert code == 0
    rows = {row["solver"]: row for row in json.loads(printed)["rows"]}
    best, rolling, policy = (rows[name]["objective"] for name in ("auto", "rolling", "replan-index"))
    assert best == 4441
    assert rows["replan-index"]["heuristic_gap"] == pytest.approx((policy - rolling) / policy)
    assert rows["replan-index"]["future_gap"] == pytest.approx((rolling - best) / policy)
    assert rows["rolling"]["heuristic_gap"] == 0
    assert rows["lookahead"]["heuristic_gap"] is not None
    assert rows["fifo"]["future_gap"] is None  # it knows all releases
