"""Kinds of faults that users of similar libraries have reported, each with the small input that shows it.

The numbers are those of public reports (see the names of the tests); kinds that are tested where their part is
tested (reading, levels, solvers, command line) are not repeated here.
"""

import concurrent.futures
import copy
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import optalloc as oa
from optalloc.errors import InputError
from optalloc.instance import read_instance

EPOCH = 1_700_000_000


def pool(devices: int, **more: Any) -> dict[str, Any]:
    """A document with one site and one pool."""
    return {
        "format": "optalloc-instance/1",
        "name": "report",
        "sites": [{"id": "here"}],
        "links": [],
        "datasets": [],
        "device_types": [{"id": "gpu", "memory_gb": 16}],
        "nodes": [{"id": "pool", "site": "here", "device_type": "gpu", "devices": devices}],
        "models": [{"id": "net", "domain": "v"}],
        "throughputs": [{"model": "net", "device_type": "gpu", "measured": {"1": 1}}],
        "tasks": [],
        "objective": {"levels": [{"weighted_completion": 1}]},
        **more,
    }


def job(name: str, ticks: int, devices: int = 1, **more: Any) -> dict[str, Any]:
    uses = [{"node": "pool", "devices": devices}]
    return {"id": name, "modes": [{"id": "m", "uses": uses, "duration_ticks": ticks}], **more}


def solve(document: dict[str, Any], solver: str, **settings: Any) -> oa.Result:
    options = {"time_limit": 60, "threads": 1} | settings
    return oa.solve(read_instance(document), solver, **options)


@pytest.fixture(scope="module")
def hard() -> oa.Problem:
    """An instance that neither method proves in a few seconds."""
    return oa.compile(oa.generate("ladder", tasks=40, seed=1))


@pytest.fixture(scope="module")
def no_rule_finds_a_plan() -> oa.Problem:
    """Twenty runs that must fill three devices without a gap by a common deadline: no quick plan, no quick proof."""
    lengths = (7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 80)
    total = sum(lengths) // 3
    tasks = [job(f"j{i}", ticks, deadline_s=60 * total) for i, ticks in enumerate(lengths)]
    return oa.compile(read_instance(pool(3, tasks=tasks)))


def test_r001_infeasible_is_a_status(solver: str) -> None:
    """Two runs of 3 ticks on one device, both due by tick 3: a status with nothing in it, no exception."""
    document = pool(1, tasks=[job("a", 3, deadline_s=180), job("b", 3, deadline_s=180)])
    result = solve(document, solver)
    assert (result.status, result.termination) == ("INFEASIBLE", "PROVEN")
    assert result.objective is None
    assert result.schedule is None
    assert result.gap is None


@pytest.mark.parametrize("limit", [0, 0.01, 1, np.int64(1)])
def test_r003_r007_no_time_is_a_status_by_every_method(hard: oa.Problem, solver: str, limit: Any) -> None:
    """Whatever the limit: FEASIBLE or NO_SOLUTION with TIME_LIMIT, never an exception, never half a plan."""
    result = oa.solve(hard, solver, time_limit=limit, threads=1)
    assert result.status in ("FEASIBLE", "NO_SOLUTION")
    assert result.termination == "TIME_LIMIT"
    assert (result.schedule is None) == (result.objective is None) == (result.status == "NO_SOLUTION")
    with pytest.raises((TypeError, InputError)):
        oa.solve(hard, solver, time_limit="2")


def test_r004_threads_change_within_a_process(solver: str) -> None:
    """1, 2 and again 1 threads: all prove, and say how many they used."""
    document = pool(2, tasks=[job("a", 3), job("b", 2), job("c", 2)])
    for threads in (1, 2, 1):
        result = solve(document, solver, threads=threads)
        assert (result.status, result.objective) == ("OPTIMAL", 2 + 2 + 5)
        assert result.threads == threads


def test_r005_r034_r076_never_worse_than_the_start(hard: oa.Problem, solver: str) -> None:
    """A start and next to no time: the start comes back as FEASIBLE."""
    start = oa.solve(hard, "spt", time_limit=30)
    assert start.schedule is not None
    assert start.objective is not None
    result = oa.solve(hard, solver, time_limit=0.05, threads=1, start=start.schedule)
    assert result.status == "FEASIBLE"
    assert result.objective is not None
    assert result.objective <= start.objective


def test_r008_two_solves_in_two_threads(solver: str) -> None:
    """Both return, with the right optima."""
    documents = [pool(1, tasks=[job("a", 2 + i), job("b", 1)]) for i in range(2)]
    with concurrent.futures.ThreadPoolExecutor(2) as workers:
        results = list(workers.map(lambda d: solve(d, solver), documents))
    assert [(r.status, r.objective) for r in results] == [("OPTIMAL", 4), ("OPTIMAL", 5)]


def test_r014_r068_the_same_run_twice(solver: str) -> None:
    """A second run of the same problem starts cold and, with one thread, decides the same."""
    problem = oa.compile(read_instance(pool(2, tasks=[job(f"j{i}", 1 + i % 3, 1 + i % 2) for i in range(6)])))
    first, second = (oa.solve(problem, solver, time_limit=60, threads=1, seed=3) for _ in range(2))
    assert first.schedule is not None
    assert first.schedule == second.schedule
    assert first.objective == second.objective
    effort = ("nodes", "branches", "conflicts", "columns", "iterations")
    assert {k: first.info.get(k) for k in effort} == {k: second.info.get(k) for k in effort}


def test_r020_times_of_the_epoch_do_not_drown_the_objective(solver: str) -> None:
    """Releases at 1.7e9 seconds: relative tolerances would accept anything; the optimum is exact.

    Two devices, runs of 1, 2, 3 and 4 ticks released together at tick R: 1 | 2, 1 + 3 | 2 + 4 end at R + 1, 2,
    4 and 6. R = ceil(1.7e9 / 60) = 28333334.
    """
    document = pool(2, tasks=[job(f"j{i}", i, release_s=EPOCH) for i in range(1, 5)])
    result = solve(document, solver)
    assert (result.status, result.objective) == ("OPTIMAL", 4 * 28333334 + 13)


@pytest.mark.parametrize("ticks", [10**5, 10**7])
def test_r024_long_horizons_stay_exact(solver: str, ticks: int) -> None:
    """The device is there for two ticks now and again from that tick on: the heavy run first, 3 * 2 + T + 2.

    A model that would become too large is refused with a reason; the plan and what is said of it stay right.
    """
    windows = [[0, 120, 1], [60 * ticks, 70 * ticks, 1]]
    node = {"id": "pool", "site": "here", "device_type": "gpu", "devices": 1, "availability": windows}
    result = solve(pool(1, nodes=[node], tasks=[job("a", 2), job("b", 2, weight=3)]), solver)
    assert result.objective == 3 * 2 + ticks + 2
    assert result.status == "OPTIMAL" or (solver == "highs" and ticks > 10**6 and "columns" in result.message)


def test_r025_tiny_sizes_are_not_dropped(solver: str) -> None:
    """Datasets of 1e-9 GB at a site that holds 1.5e-9: one replica at a time, each move takes a tick.

    The first ends at 2, its replica may go then: the other arrives at 3 and is read by 4.
    """
    document = pool(2, sites=[{"id": "here", "storage_gb": 1.5e-9}, {"id": "there"}])
    document["links"] = [{"id": "l", "from": "there", "to": "here", "bandwidth_gbps": 1}]
    document["datasets"] = [{"id": d, "size_gb": 1e-9, "sites": ["there"]} for d in "de"]
    document["tasks"] = [job("a", 1), job("b", 1)]
    for task, dataset in zip(document["tasks"], "de", strict=True):
        task["modes"][0]["datasets"] = [dataset]
    result = solve(document, solver)
    assert (result.status, result.objective) == ("OPTIMAL", 2 + 4)


def test_r031_results_hold_whole_numbers(solver: str) -> None:
    """Starts, ends, objectives and bounds are ints in the file, not 2.9999999."""
    result = solve(pool(1, tasks=[job("a", 3), job("b", 2)]), solver)
    assert result.schedule is not None
    document = json.loads(json.dumps(result.schedule.to_dict()), parse_float=lambda text: pytest.fail(text))
    times = [
        segment[key] for row in document["tasks"] for segment in row["segments"] for key in ("start", "end")
    ]
    assert all(type(time) is int for time in times)
    assert [type(v) for v in (result.objective, result.bound)] == [int, int]


def test_r040_r082_no_plan_in_time_has_no_values(no_rule_finds_a_plan: oa.Problem, solver: str) -> None:
    """Neither a plan nor a proof: no objective, no schedule, no gap; or a real plan, if the method was quick."""
    result = oa.solve(no_rule_finds_a_plan, solver, time_limit=0.3, threads=1)
    if result.status == "NO_SOLUTION":
        assert result.termination == "TIME_LIMIT"
        assert result.objective is None
        assert result.schedule is None
        assert result.gap is None
    else:
        assert result.schedule is not None
        assert oa.evaluate(no_rule_finds_a_plan, result.schedule).valid


def test_r044_failing_observers_are_heard(hard: oa.Problem, solver: str) -> None:
    """An exception of on_event reaches the caller after a clean stop; the next run works."""

    def fail(_: object) -> None:
        raise ZeroDivisionError("observer")

    with pytest.raises(ZeroDivisionError, match="observer"):
        oa.solve(hard, solver, time_limit=20, threads=1, on_event=fail)
    assert solve(pool(1, tasks=[job("a", 1)]), solver).status == "OPTIMAL"


@pytest.mark.parametrize("first", ["highspy", "ortools.sat.python.cp_model"])
def test_r046_either_library_may_come_first(first: str) -> None:
    """Both methods work in one process whichever library was loaded first."""
    document = json.dumps(pool(1, tasks=[job("a", 2), job("b", 1)]))
    code = f"""
import {first}, json
import optalloc as oa
from optalloc.instance import read_instance
problem = oa.compile(read_instance(json.loads({document!r})))
print([oa.solve(problem, m, time_limit=60, threads=1).objective for m in ("highs", "cpsat", "highs")])
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[4, 4, 4]"


def test_r048_names_may_be_any_text(solver: str, tmp_path: Path) -> None:
    """Spaces, commas, colons and other scripts: solved, written, read back, exported; an empty id is refused."""
    names = ["job 1", "a,b", "a:b", "é", "日本", "x[1]", "-", "1e5", "subject to"]
    document = pool(9, tasks=[job(name, 1) for name in names])
    result = solve(document, solver)
    assert (result.status, result.objective) == ("OPTIMAL", 9)
    assert result.schedule is not None
    oa.write_schedule(result.schedule, tmp_path / "plan.json")
    assert oa.read_schedule(tmp_path / "plan.json") == result.schedule
    document["tasks"][0]["id"] = ""
    with pytest.raises(InputError, match=r"tasks\[0\].id"):
        read_instance(document)


@pytest.mark.parametrize("target", ["mps", "lp", "cpsat"])
def test_r048_exported_models_load_with_any_names(target: str, tmp_path: Path) -> None:
    """The names in a model file are generated, so that every reader takes them."""
    from optalloc.formulations.cpsat.model import export_cpsat
    from optalloc.formulations.milp.export import export_milp

    problem = oa.compile(read_instance(pool(2, tasks=[job("a,b", 1), job("a:b", 2), job("日本 1", 2)])))
    path = tmp_path / f"model.{target}"
    if target == "cpsat":
        export_cpsat(problem, path)
        assert path.stat().st_size > 0
        return
    export_milp(problem, path, format=target)
    import highspy

    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    assert model.readModel(str(path)) == highspy.HighsStatus.kOk
    model.run()
    assert round(model.getInfo().objective_function_value) == 1 + 2 + 3


def test_r051_a_time_limit_with_a_plan_is_feasible(hard: oa.Problem, solver: str) -> None:
    """Two separate facts: what is held, and why the run stopped."""
    result = oa.solve(hard, solver, time_limit=3, threads=1)
    assert (result.status, result.termination) == ("FEASIBLE", "TIME_LIMIT")
    assert result.objective is not None
    assert result.bound is None or result.bound <= result.objective


def test_r052_r053_numbers_that_do_not_fit_are_refused_by_name() -> None:
    """Nanosecond ticks over a month with large weights, and weights of 1e-9 beside 1e9: refused, not wrapped."""
    document = pool(
        1, tick_seconds=1e-9, tasks=[job(f"j{i}", 1, release_s=2.6e6, weight=1000) for i in range(9)]
    )
    with pytest.raises(InputError, match=r"2\^53|9007199254740992"):
        oa.compile(read_instance(document))
    document = pool(1, tasks=[job("a", 1, weight=1e-9), job("b", 1, weight=1e9)])
    with pytest.raises(InputError, match=r"1000000|10\^6|million"):
        oa.compile(read_instance(document))


@pytest.mark.parametrize("value", [float("inf"), float("nan"), "180", True])
def test_r055_r140_deadlines_are_finite_numbers_or_null(value: Any) -> None:
    """No deadline is null; infinity, text and truth are refused with the path."""
    with pytest.raises(InputError, match=r"tasks\[0\].deadline_s"):
        read_instance(pool(1, tasks=[job("a", 1, deadline_s=value)]))
    assert read_instance(pool(1, tasks=[job("a", 1, deadline_s=None)])).tasks[0].deadline_s is None


def test_r062_an_option_that_does_not_fit_is_left_out(solver: str) -> None:
    """Five devices on a node of one: the task uses the other node."""
    document = pool(1)
    document["nodes"].append({"id": "large", "site": "here", "device_type": "gpu", "devices": 5})
    modes = [
        {"id": node, "uses": [{"node": node, "devices": 5}], "duration_ticks": 1}
        for node in ("pool", "large")
    ]
    document["tasks"] = [{"id": "a", "modes": modes}]
    result = solve(document, solver)
    assert (result.status, result.objective) == ("OPTIMAL", 1)


def test_r066_nothing_lasts_zero_ticks(solver: str) -> None:
    """A duration of 0 is refused; hardly any work, and data of no size, still take a tick."""
    with pytest.raises(InputError, match="duration_ticks"):
        read_instance(pool(1, tasks=[job("a", 0)]))
    document = pool(1, tasks=[{"id": "a", "model": "net", "samples": 0.001, "datasets": []}])
    assert solve(document, solver).objective == 1


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"tasks": [job("a", -3)]}, r"tasks\[0\].modes\[0\].duration_ticks"),
        ({"tasks": [job("a", 1, -1)]}, r"tasks\[0\].modes\[0\].uses\[0\].devices"),
        (
            {"nodes": [{"id": "pool", "site": "here", "device_type": "gpu", "devices": -1}]},
            r"nodes\[0\].devices",
        ),
        ({"tasks": [job("a", 1, weight=-1)]}, r"tasks\[0\].weight"),
    ],
)
def test_r067_negative_numbers_are_refused_with_their_path(change: dict[str, Any], path: str) -> None:
    """Durations, devices, capacities and weights."""
    with pytest.raises(InputError, match=path):
        read_instance(pool(1) | change)


def test_r079_the_curve_has_plans_and_bounds(solver: str) -> None:
    """Progress of a proven run ends with the objective met by the bound."""
    events: list[Any] = []
    document = pool(2, tasks=[job(f"j{i}", 1 + i % 4, 1 + i % 2) for i in range(7)])
    result = solve(document, solver, on_event=events.append)
    assert events == list(result.curve)
    assert any(point.objective is not None for point in events)
    assert events[-1].objective == events[-1].bound == result.objective
    assert [point.seconds for point in events] == sorted(point.seconds for point in events)


@pytest.mark.parametrize("option", ["mip_rel_gapp", "num_worker"])
def test_t04_unknown_options_are_named(solver: str, option: str) -> None:
    """A misspelt option of the native solver is an error, not ignored."""
    with pytest.raises(InputError, match=option):
        solve(pool(1, tasks=[job("a", 1)]), solver, options={option: 1})


def test_r113_the_joint_optimum_is_not_the_sum_of_the_best_choices(solver: str) -> None:
    """p costs 2 at a or 100 at b, q 100 at a or 2 at b; both need d, which lives at a and costs 1000 to move.

    Best for each alone: 2 + 2, but then d must be moved: 1004. Jointly both stay at a: 102.
    """
    document = pool(1, sites=[{"id": "here"}, {"id": "there"}])
    document["nodes"].append({"id": "other", "site": "there", "device_type": "gpu", "devices": 1})
    document["links"] = [
        {"id": "l", "from": "here", "to": "there", "bandwidth_gbps": 1, "egress_usd_per_gb": 1000}
    ]
    document["datasets"] = [{"id": "d", "size_gb": 1, "sites": ["here"]}]
    document["tasks"] = [
        {
            "id": name,
            "modes": [
                {
                    "id": n,
                    "uses": [{"node": n, "devices": 1}],
                    "duration_ticks": 1,
                    "usd": usd,
                    "datasets": ["d"],
                }
                for n, usd in (("pool", here), ("other", there))
            ],
        }
        for name, here, there in (("p", 2, 100), ("q", 100, 2))
    ]
    document["objective"] = {"levels": [{"cost": 1}]}
    assert solve(document, solver).objective == 102 * 100


def test_r114_one_impossible_option_does_not_spoil_the_rest(solver: str) -> None:
    """A node too small for the task's memory is dropped; the optimum is on the other."""
    document = pool(1)
    document["device_types"].append({"id": "small", "memory_gb": 4})
    document["nodes"].append({"id": "tiny", "site": "here", "device_type": "small", "devices": 1})
    document["throughputs"].append({"model": "net", "device_type": "small", "measured": {"1": 9}})
    document["tasks"] = [
        {"id": "a", "model": "net", "samples": 60, "datasets": [], "memory_gb_per_device": 8}
    ]
    result = solve(document, solver)
    assert (result.status, result.objective) == ("OPTIMAL", 1)


def test_r115_the_cost_is_broken_down() -> None:
    """Compute, data and moving are told apart in the metrics, in $."""
    document = pool(1, sites=[{"id": "here"}, {"id": "there"}])
    document["nodes"][0]["usd_per_device_hour"] = 60
    document["links"] = [
        {"id": "l", "from": "there", "to": "here", "bandwidth_gbps": 8, "egress_usd_per_gb": 0.08}
    ]
    document["datasets"] = [
        {"id": "d", "size_gb": 100, "sites": ["there"], "price_usd": 3, "relevance": {"v": 1}}
    ]
    document["tasks"] = [{"id": "a", "model": "net", "samples": 120}]
    result = solve(document, "cpsat")
    assert result.evaluation is not None
    metrics = result.evaluation.metrics
    assert metrics["cost_usd"] == 13
    assert sorted(value for value in metrics["cost_breakdown_usd"].values() if value) == [2, 3, 8]


def test_r117_a_device_type_without_a_rate_is_not_used() -> None:
    """No rate known there: no mode there; if none is left the task cannot run, and the reason says so."""
    document = pool(1, tasks=[{"id": "a", "model": "net", "samples": 60, "datasets": []}])
    document["throughputs"] = []
    result = solve(document, "cpsat")
    assert result.status == "INFEASIBLE"
    assert result.reasons["a"]


def test_r122_empty_instances_and_idle_nodes(solver: str) -> None:
    """No tasks: optimal 0. A node that nobody uses disturbs nobody."""
    result = solve(pool(1), solver)
    assert (result.status, result.objective, result.bound) == ("OPTIMAL", 0, 0)
    document = pool(1, tasks=[job("a", 1)])
    document["nodes"].append({"id": "idle", "site": "here", "device_type": "gpu", "devices": 3})
    assert solve(document, solver).objective == 1


def test_r132_jobs_larger_than_any_machine_are_named() -> None:
    """Eight devices wanted, two there: infeasible with the reason, before any solver runs."""
    document = pool(
        2, tasks=[{"id": "big", "model": "net", "samples": 60, "datasets": [], "device_counts": [8]}]
    )
    problem = oa.compile(read_instance(document))
    assert "big" in problem.impossible
    assert oa.solve(problem, "highs").status == "INFEASIBLE"


def test_r138_r139_tables_are_matched_by_id() -> None:
    """Rates in another order than the nodes, and of unknown types, are matched by name or refused."""
    document = pool(1, tasks=[{"id": "a", "model": "net", "samples": 120, "datasets": []}])
    document["device_types"].insert(0, {"id": "slow"})
    document["nodes"].append({"id": "second", "site": "here", "device_type": "slow", "devices": 1})
    document["throughputs"].append({"model": "net", "device_type": "slow", "measured": {"1": 0.5}})
    shuffled = copy.deepcopy(document)
    for kind in ("nodes", "throughputs", "device_types"):
        shuffled[kind].reverse()
    assert [solve(d, "cpsat").objective for d in (document, shuffled)] == [2, 2]
    document["throughputs"][0]["device_type"] = "unknown"
    with pytest.raises(InputError, match=r"throughputs\[0\].device_type"):
        read_instance(document)


def test_r081_r041_cancel_from_another_thread(hard: oa.Problem, solver: str) -> None:
    """An observer that is asked to stop from outside ends the run early; the plan so far is kept."""
    stop = threading.Event()
    timer = threading.Timer(1.5, stop.set)
    timer.start()

    class Cancelled(Exception):
        pass

    def watch(_: object) -> None:
        if stop.is_set():
            raise Cancelled

    try:
        result = oa.solve(hard, solver, time_limit=4, threads=1, on_event=watch)
        assert result.termination == "TIME_LIMIT"
    except Cancelled:
        pass
    finally:
        timer.cancel()


def test_r142_json_is_strict(tmp_path: Path) -> None:
    """What is written has no NaN or Infinity, whatever the status."""
    from typer.testing import CliRunner

    from optalloc.cli.app import app

    def refuse(text: str) -> None:
        pytest.fail(f"{text} is no JSON")

    documents = {
        "proven": pool(1, tasks=[job("a", 1)]),
        "impossible": pool(1, tasks=[job("a", 9, deadline_s=60)]),
        "empty": pool(1),
    }
    for name, document in documents.items():
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(document))
        done = CliRunner().invoke(app, ["solve", str(path), "--solver", "cpsat", "--json"])
        answer = json.loads(done.stdout, parse_constant=refuse)
        assert done.exit_code == (3 if name == "impossible" else 0)
        assert answer["status"] == ("INFEASIBLE" if name == "impossible" else "OPTIMAL")
