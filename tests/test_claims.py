"""What the literature on joint allocation claims, as acceptance tests on instances small enough to see through.

X1: data are scheduled like compute. X2: relevance, quality and price each change the decision. X3: capability
depends on the pair of domain and resource. X4: where the data lie enters the cost. X5: the best dataset depends
on the device, and the best device on the dataset.
"""

import copy
from typing import Any

import pytest

import optalloc as oa
from optalloc.errors import InputError
from optalloc.instance import read_instance

BASE: dict[str, Any] = {
    "format": "optalloc-instance/1",
    "name": "claims",
    "tick_seconds": 60,
    "money_unit_usd": 0.01,
    "sites": [{"id": "a"}],
    "links": [],
    "datasets": [
        {"id": "d", "size_gb": 6, "sites": ["a"], "relevance": {"v": 0.9}, "price_usd": 2},
        {"id": "e", "size_gb": 6, "sites": ["a"], "relevance": {"v": 0.6}, "price_usd": 1},
    ],
    "device_types": [{"id": "t"}],
    "nodes": [{"id": "n", "site": "a", "device_type": "t", "devices": 1}],
    "models": [{"id": "x", "domain": "v"}],
    "throughputs": [{"model": "x", "device_type": "t", "measured": {"1": 1}}],
    "tasks": [{"id": "p", "model": "x", "samples": 60}],
    "objective": {"levels": [{"cost": 1, "utility_loss": 0.01}]},
}


def solve(document: dict[str, Any], solver: str) -> oa.Result:
    return oa.solve(read_instance(document), solver, time_limit=60, threads=1)


def decisions(document: dict[str, Any], solver: str) -> dict[str, tuple[str, str]]:
    """Task -> (dataset, node) in the proven optimum; a rejected task is missing."""
    result = solve(document, solver)
    assert result.status == "OPTIMAL"
    assert result.schedule is not None
    return {
        entry.task: (entry.choice.inputs[0].dataset, entry.segments[0].uses[0].node)
        for entry in result.schedule.tasks
        if not entry.rejected
    }


def changed(dataset: str, **change: Any) -> dict[str, Any]:
    document = copy.deepcopy(BASE)
    next(row for row in document["datasets"] if row["id"] == dataset).update(change)
    return document


def test_x1_no_task_runs_without_data(solver: str) -> None:
    """Without an admissible dataset a task that must run makes the instance infeasible, with a reason."""
    document = copy.deepcopy(BASE)
    document["tasks"][0]["min_utility"] = 0.95
    result = solve(document, solver)
    assert result.status == "INFEASIBLE"
    assert "p" in result.reasons
    assert result.schedule is None


def test_x1_a_task_without_data_is_rejected_where_it_may_be(solver: str) -> None:
    """With a penalty it is left out, and pays it."""
    document = copy.deepcopy(BASE)
    document["tasks"][0] |= {"min_utility": 0.95, "reject_penalty": 3}
    document["objective"] = {"levels": [{"rejected": 1}]}
    result = solve(document, solver)
    assert (result.status, result.objective) == ("OPTIMAL", 3)
    assert result.schedule is not None
    assert result.schedule.tasks[0].rejected


def test_x1_both_a_dataset_and_a_node_are_assigned(solver: str) -> None:
    """Every placed task names its data, how they are reached, and its devices."""
    result = solve(BASE, solver)
    assert result.schedule is not None
    (entry,) = result.schedule.tasks
    assert [(i.dataset, i.access) for i in entry.choice.inputs] == [("d", "local")]
    assert [(use.node, use.devices) for use in entry.segments[0].uses] == [("n", 1)]


@pytest.mark.parametrize(
    ("change", "before", "after"),
    [
        # d: $2 + 100 * 0.01 = 3; e: $1 + 400 * 0.01 = 5. d loses when it costs more than $4,
        ("price_usd", 3.99, 4.01),
        # or loses more than 300 permille: relevance below 0.7,
        ("relevance", {"v": 0.701}, {"v": 0.699}),
        # or quality below 0.7 / 0.9 = 0.7778: 0.779 * 0.9 = 0.7011, 0.777 * 0.9 = 0.6993
        ("quality", 0.779, 0.777),
    ],
)
def test_x2_each_property_of_the_data_flips_the_optimum(
    solver: str, change: str, before: Any, after: Any
) -> None:
    """Price, relevance and quality at the threshold that the objective implies."""
    assert decisions(changed("d", **{change: before}), solver)["p"][0] == "d"
    assert decisions(changed("d", **{change: after}), solver)["p"][0] == "e"


def test_x3_capability_is_of_the_pair(solver: str) -> None:
    """Two tasks of different domains, two nodes with swapped rates: the diagonal, both end at 1."""
    document = copy.deepcopy(BASE)
    document["datasets"][0]["relevance"] = document["datasets"][1]["relevance"] = {"v": 0.9, "w": 0.9}
    document["device_types"] = [{"id": "t"}, {"id": "u"}]
    document["nodes"] = [
        {"id": "n", "site": "a", "device_type": "t", "devices": 1},
        {"id": "m", "site": "a", "device_type": "u", "devices": 1},
    ]
    document["models"] = [{"id": "x", "domain": "v"}, {"id": "y", "domain": "w"}]
    document["throughputs"] = [
        {"model": model, "device_type": kind, "measured": {"1": rate}}
        for model, kind, rate in (("x", "t", 1), ("x", "u", 0.25), ("y", "t", 0.25), ("y", "u", 1))
    ]
    document["tasks"] = [{"id": "p", "model": "x", "samples": 60}, {"id": "q", "model": "y", "samples": 60}]
    document["objective"] = {"levels": [{"weighted_completion": 1}]}
    found = decisions(document, solver)
    assert (found["p"][1], found["q"][1]) == ("n", "m")
    assert solve(document, solver).objective == 2


def two_sites(egress: float) -> dict[str, Any]:
    """Data at a; a slow free node at a and a quick one at b: three tasks may each move to their speed."""
    document = copy.deepcopy(BASE)
    document["sites"] = [{"id": "a"}, {"id": "b"}]
    document["links"] = [
        {"id": "ab", "from": "a", "to": "b", "bandwidth_gbps": 8, "egress_usd_per_gb": egress}
    ]
    document["datasets"] = [
        {"id": f"d{i}", "size_gb": size, "sites": ["a"], "relevance": {"v": 1}}
        for i, size in enumerate((2, 5, 11))
    ]
    document["device_types"] = [{"id": "t"}, {"id": "u"}]
    document["nodes"] = [
        {"id": "n", "site": "a", "device_type": "t", "devices": 3},
        {"id": "m", "site": "b", "device_type": "u", "devices": 3},
    ]
    document["throughputs"] = [
        {"model": "x", "device_type": kind, "measured": {"1": rate}} for kind, rate in (("t", 0.2), ("u", 1))
    ]
    document["tasks"] = [
        {"id": f"p{i}", "model": "x", "samples": 60, "datasets": [f"d{i}"]} for i in range(3)
    ]
    document["objective"] = {"levels": [{"weighted_completion": 1, "cost": 1}]}
    return document


def test_x4_moves_between_sites_fall_with_the_egress_price(solver: str) -> None:
    """A task gains 3 ticks (5 at home; moved by 1, run to 2) and pays size * egress: it moves while that is less.

    2 GB stay from $1.5, 5 GB from $0.6, 11 GB from $0.2728 on. Values rise, moves fall, both weakly.
    """
    moves, values = [], []
    for egress in (0, 0.27, 0.28, 0.59, 0.61, 1.49, 1.51):
        result = solve(two_sites(egress), solver)
        assert result.schedule is not None
        assert result.objective is not None
        moves.append(len(result.schedule.transfers))
        values.append(result.objective / result.weight_scale)
    assert moves == [3, 3, 2, 2, 1, 1, 0]
    assert values == sorted(values)
    assert (values[0], values[-1]) == (6, 15)


def coupled(egress: float, kappa: float) -> dict[str, Any]:
    """Data d at a is good, data e at b is poor; so is the node: the one at a is slow, the one at b is quick."""
    document = copy.deepcopy(BASE)
    document["sites"] = [{"id": "a"}, {"id": "b"}]
    document["links"] = [
        {"id": "ab", "from": "a", "to": "b", "bandwidth_gbps": 8, "egress_usd_per_gb": egress},
        {"id": "ba", "from": "b", "to": "a", "bandwidth_gbps": 8, "egress_usd_per_gb": egress},
    ]
    document["datasets"] = [
        {"id": "d", "size_gb": 6, "sites": ["a"], "relevance": {"v": 1}},
        {"id": "e", "size_gb": 6, "sites": ["b"], "relevance": {"v": 0.5}},
    ]
    document["device_types"] = [{"id": "t"}, {"id": "u"}]
    document["nodes"] = [
        {"id": "n", "site": "a", "device_type": "t", "devices": 1},
        {"id": "m", "site": "b", "device_type": "u", "devices": 1},
    ]
    document["throughputs"] = [
        {"model": "x", "device_type": kind, "measured": {"1": rate}} for kind, rate in (("t", 0.2), ("u", 1))
    ]
    document["tasks"] = [{"id": "p", "model": "x", "samples": 60, "kappa": kappa}]
    document["objective"] = {"levels": [{"weighted_completion": 1, "cost": 1, "utility_loss": 0.002}]}
    return document


def only_on(document: dict[str, Any], site: str) -> dict[str, Any]:
    document = copy.deepcopy(document)
    document["tasks"][0]["sites"] = [site]
    return document


def test_x5_the_best_dataset_changes_with_the_device(solver: str) -> None:
    """Egress $0.3 a GB; e loses 500 * 0.002 = 1. At a: d 5, e 1 + 5 + 1.8 + 1. At b: d 1 + 1 + 1.8, e 1 + 1."""
    document = coupled(egress=0.3, kappa=0)
    assert decisions(only_on(document, "a"), solver)["p"] == ("d", "n")
    assert decisions(only_on(document, "b"), solver)["p"] == ("e", "m")
    assert decisions(document, solver)["p"] == ("e", "m")


def test_x5_the_best_device_changes_with_the_dataset(solver: str) -> None:
    """With d alone the run at home ends at 5, away it costs 2 + 6 * $0.6 = 5.6: n. With e alone: m for 2."""
    document = coupled(egress=0.6, kappa=0)
    for names, expected in ((["d"], ("d", "n")), (["e"], ("e", "m"))):
        document["tasks"][0]["datasets"] = names
        assert decisions(document, solver)["p"] == expected


def test_x5_choosing_data_first_is_not_optimal(solver: str) -> None:
    """The data of highest utility first, then the best node for them: 5; jointly: 2."""
    document = coupled(egress=0.6, kappa=0)
    joint = solve(document, solver)
    document["tasks"][0]["datasets"] = ["d"]
    first = solve(document, solver)
    assert (joint.objective, first.objective) == (2 * joint.weight_scale, 5 * first.weight_scale)


def test_x5_poor_data_cost_time_where_the_device_is_slow(solver: str) -> None:
    """kappa 1 and utility 500: e takes 1.5 times the work, 8 ticks on n and 2 on m; nothing costs egress.

    Only n: d 5 + 0 against e (moved by 1) 9 + 1. Only m: e 2 + 1 = 3 against d (moved by 1) 2 + 0 = 2.
    """
    document = coupled(egress=0, kappa=1)
    assert decisions(only_on(document, "a"), solver)["p"] == ("d", "n")
    assert decisions(only_on(document, "b"), solver)["p"] == ("d", "m")
    assert solve(only_on(document, "b"), solver).objective == 2 * solve(document, solver).weight_scale


def test_a_task_without_any_candidate_is_a_fault_or_infeasible() -> None:
    """A dataset that does not exist is refused, with its path."""
    document = copy.deepcopy(BASE)
    document["tasks"][0]["datasets"] = ["nothing"]
    with pytest.raises(InputError, match=r"tasks\[0\].datasets\[0\]"):
        read_instance(document)
