"""Properties that hold for every instance, looked for among random ones."""

import copy
import gzip
import json
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from support.oracle import TooLarge, enumerate_optimum
from support.random_instances import PROFILES, random_instance

import optalloc as oa
from optalloc.instance import Instance, read_instance
from optalloc.problem import own_cost

SEEDS = st.integers(1000, 10**6)
FEW = settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
MORE = settings(FEW, max_examples=60)


def answer(document: dict[str, Any], solver: str = "cpsat") -> tuple[str, tuple[Fraction, ...]]:
    """Status, and the optimum of every level with K taken out."""
    result = oa.solve(read_instance(document), solver, time_limit=60, threads=1)
    assert result.status in ("OPTIMAL", "INFEASIBLE")
    if result.status == "INFEASIBLE":
        return "INFEASIBLE", ()
    return "OPTIMAL", tuple(Fraction(level.objective or 0, result.weight_scale) for level in result.levels)


def no_better(one: tuple[str, Any], other: tuple[str, Any]) -> bool:
    """The first answer is infeasible or lexicographically no less than the second."""
    return one[0] == "INFEASIBLE" or (other[0] == "OPTIMAL" and one[1] >= other[1])


@MORE
@given(seed=SEEDS, profile=st.sampled_from(PROFILES))
def test_read_of_write_is_the_same(tmp_path_factory: pytest.TempPathFactory, seed: int, profile: str) -> None:
    """Writing an instance and reading it back gives the same instance, as text and compressed."""
    folder: Path = tmp_path_factory.mktemp("written")
    instance = read_instance(random_instance(seed, profile))
    for name in ("x.json", "x.json.gz"):
        oa.write(instance, folder / name)
        again = oa.read(folder / name)
        assert again == instance
        assert again.sha256 == instance.sha256
    assert json.loads(gzip.decompress((folder / "x.json.gz").read_bytes())) == json.loads(
        (folder / "x.json").read_text("utf-8")
    )


@FEW
@given(seed=SEEDS, profile=st.sampled_from(["small", "tiny"]))
def test_order_of_entries_does_not_matter(seed: int, profile: str) -> None:
    """Tasks, nodes, datasets, links and sites in another order: the same optimum."""
    document = random_instance(seed, profile)
    mixed = copy.deepcopy(document)
    for kind in ("tasks", "nodes", "datasets", "links", "sites", "models", "throughputs", "device_types"):
        Random(seed).shuffle(mixed[kind])
    assert answer(mixed) == answer(document)


@FEW
@given(seed=SEEDS, factor=st.sampled_from([2, 0.5, 3, 10]))
def test_scaling_the_weights_scales_the_optimum(seed: int, factor: float) -> None:
    """All weights of the levels times a factor: the same status, optima times the factor."""
    document = random_instance(seed, "small")
    assume("levels" in document["objective"])
    scaled = copy.deepcopy(document)
    for level in scaled["objective"]["levels"]:
        for term in level:
            level[term] = float(Fraction(repr(level[term])) * Fraction(repr(factor)))
    status, values = answer(document)
    assert answer(scaled) == (status, tuple(Fraction(repr(factor)) * value for value in values))


@FEW
@given(seed=SEEDS)
def test_a_useless_mode_changes_nothing(seed: int) -> None:
    """A longer and dearer twin of every explicit mode changes nothing."""
    document = random_instance(seed, "small")
    assume(any("modes" in task for task in document["tasks"]))
    more = copy.deepcopy(document)
    for task in more["tasks"]:
        for mode in list(task.get("modes", [])):
            worse = {"id": mode["id"] + "+", "duration_ticks": mode["duration_ticks"] + 1}
            task["modes"].append(mode | worse | {"usd": mode["usd"] + 1})
    assert answer(more) == answer(document)


def shrunk(document: dict[str, Any], draw: Random) -> dict[str, Any] | None:
    """The instance without one resource, or with less of it; None if that leaves an explicit mode dangling."""
    less = copy.deepcopy(document)
    kind = draw.choice(["node", "devices", "link", "seats", "channels", "storage", "window"])
    if kind == "link" and less["links"]:
        less["links"].remove(draw.choice(less["links"]))
    elif kind == "seats":
        draw.choice(less["datasets"])["max_readers"] = 1
    elif kind == "channels" and less["links"]:
        draw.choice(less["links"])["channels"] = 1
    elif kind == "storage":
        site = draw.choice(less["sites"])
        site["storage_gb"] = min(site.get("storage_gb") or 4, 4)
    elif kind == "window":
        node = draw.choice(less["nodes"])
        if not node.get("availability"):
            node["availability"] = [[0, 8 * less["tick_seconds"], node["devices"]]]
    else:
        node = draw.choice(less["nodes"])
        if kind == "node":
            less["nodes"].remove(node)
            for task in less["tasks"]:
                if "modes" in task:
                    modes = task["modes"]
                    task["modes"] = [m for m in modes if all(u["node"] != node["id"] for u in m["uses"])]
        elif node["devices"] > 1:
            node["devices"] -= 1
            for window in node.get("availability") or []:
                window[2] = min(window[2], node["devices"])
    usable = less["nodes"] and all(task.get("modes", True) for task in less["tasks"])
    return less if usable else None


@settings(FEW, max_examples=25)
@given(seed=SEEDS, profile=st.sampled_from(["small", "tiny"]))
def test_removing_a_resource_never_improves(seed: int, profile: str) -> None:
    """Without a node, a link, a device, a seat, a channel, room or time, no level gets better."""
    document = random_instance(seed, profile)
    document.pop("state", None)
    less = shrunk(document, Random(seed))
    assume(less is not None)
    assert less is not None
    assert no_better(answer(less), answer(document))


@settings(FEW, max_examples=15)
@given(seed=SEEDS)
def test_a_later_release_or_a_higher_price_never_improves(seed: int) -> None:
    """Everything dearer, slower or later is no better."""
    document = random_instance(seed, "small")
    document.pop("state", None)
    worse = copy.deepcopy(document)
    for dataset in worse["datasets"]:
        dataset["price_usd"] = dataset.get("price_usd", 0) + 0.31
    for link in worse["links"]:
        link["latency_s"] = link.get("latency_s", 0) + worse["tick_seconds"]
    for task in worse["tasks"]:
        task["weight"] = 2 * task["weight"]
    assert no_better(answer(worse), answer(document))


@settings(FEW, max_examples=20)
@given(seed=SEEDS)
def test_methods_agree_outside_the_fixed_seeds(seed: int) -> None:
    """The agreement of enumeration and both methods, on seeds that nobody has chosen."""
    document = random_instance(seed, "tiny")
    try:
        known = enumerate_optimum(document, 2000)
    except TooLarge:
        assume(False)
        return
    expected = (known.status, tuple(Fraction(value, known.scale) for value in known.levels))
    assert answer(document, "highs") == expected
    assert answer(document, "cpsat") == expected


# thresholds --------------------------------------------------------------------------------------
def choice_of_data(
    price: int, utility: int, other_price: int, other_utility: int, loss: Fraction
) -> dict[str, Any]:
    """One task, one device, two local datasets: d (price in cents, utility in permille) against e."""
    datasets = [
        {"id": name, "size_gb": 1, "sites": ["a"], "relevance": {"v": u / 1000}, "price_usd": p / 100}
        for name, p, u in (("d", price, utility), ("e", other_price, other_utility))
    ]
    return {
        "format": "optalloc-instance/1",
        "name": "choice",
        "sites": [{"id": "a"}],
        "links": [],
        "datasets": datasets,
        "device_types": [{"id": "t"}],
        "nodes": [{"id": "n", "site": "a", "device_type": "t", "devices": 1}],
        "models": [{"id": "x", "domain": "v"}],
        "throughputs": [{"model": "x", "device_type": "t", "measured": {"1": 1}}],
        "tasks": [{"id": "p", "model": "x", "samples": 60, "datasets": ["d", "e"]}],
        "objective": {"levels": [{"cost": 1, "utility_loss": float(loss)}]},
    }


def chosen(document: dict[str, Any], solver: str) -> str:
    result = oa.solve(read_instance(document), solver, time_limit=60, threads=1)
    assert result.schedule is not None
    return str(result.schedule.tasks[0].choice.inputs[0].dataset)


@settings(FEW, max_examples=8)
@given(u=st.integers(300, 1000), v=st.integers(300, 1000), cents=st.integers(0, 200))
def test_price_flips_the_choice_at_the_threshold(solver: str, u: int, v: int, cents: int) -> None:
    """At 1 cent a permille d may cost (u - v) cents more than e: one cent less it is chosen, one more it is not."""
    threshold = cents + u - v
    assume(threshold >= 1)
    loss = Fraction(1, 100)
    assert chosen(choice_of_data(threshold - 1, u, cents, v, loss), solver) == "d"
    assert chosen(choice_of_data(threshold + 1, u, cents, v, loss), solver) == "e"


@settings(FEW, max_examples=8)
@given(v=st.integers(300, 990), more=st.integers(1, 200), by_quality=st.booleans())
def test_relevance_and_quality_flip_the_choice_at_the_threshold(
    solver: str, v: int, more: int, by_quality: bool
) -> None:
    """d costs so many cents more than e: it must be so many permille better, by relevance or by quality."""
    needed = v + more
    assume(needed + 1 <= 1000)
    for u, expected in ((needed + 1, "d"), (needed - 1, "e")):
        document = choice_of_data(more, u, 0, v, Fraction(1, 100))
        if by_quality:
            document["datasets"][0] |= {"relevance": {"v": 1}, "quality": u / 1000}
        assert chosen(document, solver) == expected


# decoupling --------------------------------------------------------------------------------------
def decoupled(preset: str, seed: int) -> Instance:
    """A generated instance at coupling 0 in which data and compute have nothing to do with each other."""
    instance = oa.generate(preset, tasks=8, coupling=0, seed=seed)
    document = json.loads(instance.canonical())
    for dataset in document["datasets"]:
        dataset |= {"pricing": "per_use", "max_readers": None, "available_s": 0}
    for task in document["tasks"]:
        task["kappa"] = 0
        task.pop("budget_usd", None)
    return read_instance(document)


@pytest.mark.parametrize("preset", ["geo", "edge", "market", "contended", "pipeline", "ladder"])
@pytest.mark.parametrize("seed", range(3))
def test_at_coupling_0_one_dataset_is_best_on_every_node(preset: str, seed: int) -> None:
    """For every task one choice of data is cheapest on every node, with every count of devices."""
    problem = oa.compile(decoupled(preset, seed))
    assert problem.num_replicas == 0
    for task in range(problem.num_tasks):
        best: dict[Any, set[Any]] = {}
        for mode in problem.modes_of(task, active=False).tolist():
            place = tuple(problem.uses(mode))
            best.setdefault(place, set()).add((value(problem, mode), data(problem, mode)))
        winners = [{name for cost, name in found if cost == min(found)[0]} for found in best.values()]
        assert set.intersection(*winners), problem.task_ids[task]


def value(problem: oa.Problem, mode: int) -> tuple[int, ...]:
    """Own cost of a mode started at tick 0, level by level."""
    return tuple(int(own_cost(problem, form, np.int64(mode), np.int64(0))) for form in problem.levels)


def data(problem: oa.Problem, mode: int) -> tuple[int, ...]:
    return tuple(dataset for dataset, *_ in problem.inputs(mode))
