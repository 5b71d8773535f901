"""compile() on whole instances: the small cases, speed benchmark in small, and the facts that others rely on."""

import importlib.util
import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from support.physics import document, problem_of

from optalloc.compilation import compile
from optalloc.evaluation import evaluate
from optalloc.instance import Instance, read_instance
from optalloc.problem import STREAMED
from optalloc.schedule import read_schedule
from optalloc.scope import full_scope, horizon


def cases(shared):
    """(instance, answer, answer's path) of every small case."""
    for answer in sorted((shared / "bench" / "small_cases").glob("*.expected.json")):
        path = answer.with_name(answer.name.replace(".expected", ""))
        yield read_instance(path), json.loads(answer.read_text(encoding="utf-8"))


def test_modes_of_the_small_cases(shared):
    """Number of modes of every task before dominance, and K, as an independent implementation counted."""
    for instance, answer in cases(shared):
        problem = compile(instance)
        counts = dict(zip(problem.task_ids, np.diff(problem.mode_ptr).tolist(), strict=True))
        assert (instance.name, counts, problem.scale) == (
            instance.name,
            answer["modes_per_task"],
            answer["K"],
        )


def test_terms_of_the_small_cases(shared, tmp_path):
    """The stored optimal schedules are valid, with the same terms and levels to the last unit."""
    solved = 0
    for instance, answer in cases(shared):
        problem = compile(instance)
        if answer["status"] == "OPTIMAL":
            assert not problem.impossible
            schedule = {**answer["schedule"], "instance_sha256": instance.sha256}
            path = tmp_path / "schedule.json"
            path.write_text(json.dumps(schedule), encoding="utf-8")
            found = evaluate(problem, read_schedule(path))
            assert found.violations == ()
            assert dict(found.terms) == {term: Fraction(value) for term, value in answer["terms"].items()}
            assert list(found.levels) == answer["levels"]
            solved += 1
    assert solved >= 30


def test_most_infeasible_small_cases_are_seen_without_a_solver(shared):
    """Five of six; the sixth needs a search."""
    answers = [(compile(i).impossible, a["status"]) for i, a in cases(shared) if a["status"] != "OPTIMAL"]
    assert {status for _, status in answers} == {"INFEASIBLE"}
    assert sum(bool(reasons) for reasons, _ in answers) == 5


def test_lists_are_consistent(shared):
    """CSR lists end where they should, routes of streams belong to what the mode holds, replicas are no homes."""
    for instance, _ in cases(shared):
        problem = compile(instance)
        for name in ("pred", "use", "need", "buy", "input"):
            ptr, values = getattr(problem, f"{name}_ptr"), getattr(problem, _VALUES[name])
            assert (ptr[0], ptr[-1]) == (0, len(values))
        homes = {(d.id, site) for d in instance.datasets for site in d.sites}
        pairs = zip(problem.replica_dataset.tolist(), problem.replica_site.tolist(), strict=True)
        assert homes.isdisjoint((problem.dataset_ids[d], problem.site_ids[s]) for d, s in pairs)
        for mode in np.flatnonzero(problem.active).tolist():
            resources = [resource for resource, _ in problem.uses(mode)]
            assert resources == sorted(set(resources))
            streams = [route for _, access, route in problem.inputs(mode) if access == STREAMED]
            assert all(0 <= route < problem.route_ptr[-1] for route in streams)
            assert {r for route in streams for r in problem.route_channels[route]} <= set(resources)


_VALUES = {
    "pred": "pred_task",
    "use": "use_resource",
    "need": "need_replica",
    "buy": "buy_purchase",
    "input": "input_dataset",
}


def test_order_of_entities_does_not_matter():
    """Shuffled tables are matched by id."""
    found = document()
    found["nodes"].append({**found["nodes"][0], "id": "m", "usd_per_device_hour": 1})
    found["datasets"].reverse()
    found["sites"].reverse()
    turned = problem_of({**found, "nodes": found["nodes"][::-1]})
    plain = problem_of(found)
    assert sorted(plain.money.tolist()) == sorted(turned.money.tolist()) == [17, 23, 50, 70]
    assert horizon(full_scope(plain)) == horizon(full_scope(turned))


@pytest.fixture(scope="module")
def benchmark():
    """The module that measures the speed of compile()."""
    path = Path(__file__).resolve().parent.parent / "benchmarks" / "compile_speed.py"
    spec = importlib.util.spec_from_file_location("compile_speed", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_speed_benchmark_runs(benchmark):
    """A thousandth of its size: ten tasks."""
    instance = Instance(**benchmark.synthetic(tasks=10, nodes=12, datasets=20, sites=6, hubs=3, seed=1))
    problem = compile(instance)
    assert problem.num_tasks == 10
    assert problem.active.any()
