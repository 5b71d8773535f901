"""Presets: same seed same file, load and coupling as defined, every family shows what it is for."""

import time
from collections import Counter
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from optalloc.compilation import compile as compile_problem
from optalloc.errors import InputError
from optalloc.generators import PRESETS, VERSION, generate
from optalloc.instance import Instance
from optalloc.io.reading import read_instance
from optalloc.io.writing import write_instance
from optalloc.problem import DEVICES, Problem

every_preset = pytest.mark.parametrize("preset", PRESETS)


@every_preset
def test_same_seed_gives_the_same_bytes(preset, tmp_path):
    """Two runs write equal files, another seed another one, and the file reads back as the instance."""
    first, second, other = tmp_path / "a.json", tmp_path / "b.json", tmp_path / "c.json"
    for path, seed in ((first, 7), (second, 7), (other, 8)):
        write_instance(generate(preset, tasks=9, seed=seed), path)
    assert first.read_bytes() == second.read_bytes() != other.read_bytes()
    assert read_instance(first).sha256 == generate(preset, tasks=9, seed=7).sha256


@every_preset
@pytest.mark.parametrize("tasks", [1, 2, 7, 45])
def test_any_size(preset, tasks):
    """As many tasks as asked for, each with a mode, in short numbers."""
    instance = generate(preset, tasks=tasks, seed=3)
    problem = compile_problem(instance)
    assert len(instance.tasks) == problem.num_tasks == tasks
    assert not problem.impossible
    assert np.diff(problem.mode_ptr).min() >= 1
    assert problem.scale <= 1000


def least_device_ticks(problem: Problem) -> int:
    """Sum over tasks of the least devices x ticks over all modes, by brute force."""
    total = 0
    for task in range(problem.num_tasks):
        modes = problem.modes_of(task, active=False).tolist()
        areas = [
            int(problem.duration[m])
            * sum(a for r, a in problem.uses(m) if problem.resource_kind[r] == DEVICES)
            for m in modes
        ]
        total += min(areas)
    return total


@every_preset
@pytest.mark.parametrize("load", ["0.5", "3"])
def test_load_is_met(preset, load):
    """Least device-ticks / (devices x release span) equals the load, with a span of whole seconds."""
    instance = generate(preset, tasks=24, load=Decimal(load), seed=1)
    problem = compile_problem(instance)
    least, devices = least_device_ticks(problem), sum(node.devices for node in instance.nodes)
    assert instance.meta["load"]["least_device_ticks"] == least
    releases = [Fraction(task.release_s) for task in instance.tasks]
    span = max(releases) - min(releases)
    assert min(releases) == 0
    exact = least * Fraction(instance.tick_seconds) / (devices * Fraction(load))
    assert abs(span - exact) <= Fraction(1, 2)


def without(instance: Instance, *parts: str) -> dict[str, object]:
    """The document without some of its parts and without meta."""
    return {key: value for key, value in instance.document().items() if key not in (*parts, "meta")}


@every_preset
def test_load_moves_times_only(preset):
    """Another load changes release, due and deadline of tasks and nothing else."""
    slow, fast = generate(preset, tasks=12, load=1, seed=2), generate(preset, tasks=12, load=2, seed=2)
    assert without(slow, "tasks") == without(fast, "tasks")
    times = {"release_s", "due_s", "deadline_s"}
    for one, other in zip(slow.document()["tasks"], fast.document()["tasks"], strict=True):
        assert {k: v for k, v in one.items() if k not in times} == {
            k: v for k, v in other.items() if k not in times
        }


@every_preset
def test_coupling_multiplies_sizes_and_egress(preset):
    """Twice the coupling: twice every size (and room) and egress price; times and all else stay."""
    one, two = generate(preset, tasks=12, seed=2), generate(preset, tasks=12, coupling=2, seed=2)
    assert without(one, "datasets", "links", "sites") == without(two, "datasets", "links", "sites")
    for before, after in zip(one.datasets, two.datasets, strict=True):
        assert after.size_gb == 2 * before.size_gb
        assert after.replace(size_gb=before.size_gb) == before
    for before, after in zip(one.links, two.links, strict=True):
        assert after.egress_usd_per_gb == 2 * before.egress_usd_per_gb
        assert after.replace(egress_usd_per_gb=before.egress_usd_per_gb) == before


@every_preset
def test_coupling_zero_moves_nothing(preset):
    """At coupling 0 every dataset is at home at every site: no replica, no transfer."""
    instance = generate(preset, tasks=12, coupling=0, seed=2)
    problem = compile_problem(instance)
    places = {site.id for site in instance.sites}
    assert all(set(dataset.sites) == places for dataset in instance.datasets)
    assert problem.num_replicas == 0
    assert not problem.impossible


@every_preset
def test_meta_tells_how_to_make_it_again(preset):
    """meta holds generator, version, seed, parameters and that everything is invented."""
    meta = generate(preset, tasks=5, load="1.5", coupling="0.5", seed=11).meta
    assert meta["generator"] == f"optalloc generate {preset}"
    assert (meta["version"], meta["seed"]) == (VERSION, 11)
    assert meta["parameters"] == {"tasks": 5, "load": "1.5", "coupling": "0.5"}
    assert meta["synthetic"] == ("everything",)


def test_faults_are_reported_together():
    """All parameters out of range are named at once; an unknown preset lists the known ones."""
    with pytest.raises(InputError) as caught:
        generate("geo", tasks=0, load=0, coupling=float("nan"), seed=-1)
    assert [fault.path for fault in caught.value.faults] == ["tasks", "seed", "load", "coupling"]
    with pytest.raises(InputError, match="ladder"):
        generate("nothing")


FAR = [
    1e300,
    1e-300,
    "1e999999999",
    "1e-999999999",
    "1e99999999999999999999",
    10**400,
    "9" * 5000,
    -1,
    "",
    [],
    None,
]


@pytest.mark.parametrize("knob", ["load", "coupling"])
@pytest.mark.parametrize("value", [*FAR, 10_001, Decimal("1e-7"), "0." + "3" * 21])
def test_knobs_out_of_range(knob, value):
    """One message with the range, before anything is computed with the value (a load of None is the preset's)."""
    if (knob, value) == ("load", None):
        return
    with pytest.raises(
        InputError, match=f"^{knob}: must be .*from 0.000001 to 10000 with at most .* got"
    ) as caught:
        generate("geo", tasks=3, **{knob: value})
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("load", ["0.000001", 10_000, 1 / 3])
@pytest.mark.parametrize("coupling", ["0.000001", 10_000, "9999.999999", 0])
def test_knobs_within_range_give_problems_that_compile(preset, load, coupling):
    """At the ends of both ranges no number passes what an instance or a problem may hold."""
    assert compile_problem(generate(preset, tasks=30, load=load, coupling=coupling)).num_tasks >= 30


@pytest.mark.parametrize("value", [True, "many", None])
def test_tasks_must_be_an_integer(value):
    """Booleans, texts and None are refused, not converted."""
    with pytest.raises(InputError, match="tasks"):
        generate("geo", tasks=value)


def test_geo_has_regions():
    """Prices, distances and allowed sites differ."""
    instance = generate("geo", tasks=30, seed=0)
    assert len({link.latency_s for link in instance.links}) > 2
    assert any(task.sites for task in instance.tasks)
    assert any(len(dataset.sites) > 1 for dataset in instance.datasets)


def test_edge_has_windows_and_deadlines():
    """Edge pools have windows with parts of their devices; tasks with a deadline may be rejected."""
    instance = generate("edge", tasks=30, seed=0)
    windows = {node.id: node.availability for node in instance.nodes}
    assert windows["cloud-0"] is None
    assert sum(value is not None for value in windows.values()) == 3
    dated = [task for task in instance.tasks if task.deadline_s is not None]
    assert dated
    assert all(task.reject_penalty is not None and task.due_s < task.deadline_s for task in dated)


def test_market_sells_data():
    """Free, rented and bought data, seats, budgets and least utilities."""
    instance = generate("market", tasks=30, seed=0)
    assert {"per_use", "once"} == {d.pricing for d in instance.datasets if d.price_usd > 0}
    assert any(d.max_readers for d in instance.datasets)
    assert any(task.budget_usd for task in instance.tasks)
    assert any(task.min_utility for task in instance.tasks)


def test_contended_is_narrow():
    """Every link has channels, compute sites have little storage, some data are streamed."""
    problem = compile_problem(generate("contended", tasks=20, seed=0))
    assert all(link.channels for link in problem.instance.links)
    assert sum(site.storage_gb is not None for site in problem.instance.sites) == 2
    assert not problem.constant_replicas.any()
    assert 2 in problem.input_access


def test_pipeline_has_steps():
    """Workflows with lags, several inputs and steps that read nothing."""
    instance = generate("pipeline", tasks=30, seed=0)
    assert any(after.lag_s for task in instance.tasks for after in task.after)
    assert any(task.inputs for task in instance.tasks)
    assert any(task.datasets == () for task in instance.tasks)
    assert max(len(task.after) for task in instance.tasks) == 2


@pytest.mark.parametrize("tasks", [6, 20, 100])
def test_ladder_up_to_100_tasks(tasks):
    """Six nodes of 4, 8 and 16 devices, three sites, sixteen datasets, load 3, coupling 1."""
    instance = generate("ladder", tasks=tasks, seed=0)
    assert sorted(node.devices for node in instance.nodes) == [4, 4, 8, 8, 16, 16]
    assert (len(instance.sites), len(instance.datasets)) == (3, 16)
    assert instance.meta["parameters"] == {"tasks": tasks, "load": "3", "coupling": "1"}


def test_ladder_grows():
    """Beyond 100 tasks nodes and datasets grow; tasks keep 5 to 500 modes in the mean."""
    instance = generate("ladder", tasks=1000, seed=0)
    problem = compile_problem(instance)
    assert (len(instance.nodes), len(instance.datasets)) == (19, 90)
    counts = np.diff(problem.mode_ptr)
    assert counts.max() <= 500
    assert 5 <= counts.mean() <= 500
    assert Counter(node.devices for node in instance.nodes).keys() == {4, 8, 16}


def test_ladder_of_10000_tasks_in_seconds():
    """Ten thousand tasks are generated and checked in seconds of processor time."""
    began = time.process_time()
    instance = generate("ladder", tasks=10_000, seed=0)
    assert time.process_time() - began < 20
    assert (len(instance.tasks), len(instance.nodes), len(instance.datasets)) == (10_000, 60, 506)
