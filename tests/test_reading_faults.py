"""Faults of instances: every kind, with its path and remedy, all at once."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.documents import Change, Document, drop, faults_of, full, put

from optalloc.errors import InputError
from optalloc.instance import read_instance
from optalloc.io.faults import RESERVED, json_path
from optalloc.io.schema import instance_schema


@pytest.fixture
def document() -> Document:
    """A fresh full instance."""
    return full()


T0, T1, T2 = ("tasks", 0), ("tasks", 1), ("tasks", 2)
MODE = (*T2, "modes", 0)
RUN = ("state", "tasks", 0)

# (change, path of the fault, part of its message)
FAULTS: list[tuple[Change, str, str]] = [
    # shape
    (drop("format"), "format", "is required"),
    (put("format")("optalloc-schedule/1"), "format", "must be 'optalloc-instance/1'"),
    (drop("name"), "name", "is required"),
    (put("name")(""), "name", "must not be empty"),
    (put("sites")({}), "sites", "must be a list, got an object"),
    (put("sites", 0)("a"), "sites[0]", "must be an object, got 'a'"),
    (put("objective")([]), "objective", "must be an object, got a list"),
    (put("sites", 0, "id")(3), "sites[0].id", "must be text, got 3"),
    (put("sites", 0, "id")(""), "sites[0].id", "must not be empty"),
    (put("sites", 0, "id")("\ud800"), "sites[0].id", "valid Unicode"),
    (put("links", 0, "both_ways")(1), "links[0].both_ways", "must be true or false, got 1"),
    (put(*T0, "weight")("2"), "tasks[0].weight", "must be a number, got '2'"),
    (put(*T0, "weight")(True), "tasks[0].weight", "must be a number, got true"),
    (put(*T0, "weight")(None), "tasks[0].weight", "must be a number, got null"),
    (put("nodes", 0, "devices")(2.0), "nodes[0].devices", "whole number without a decimal point, got 2.0"),
    (put("nodes", 0, "devices")("2"), "nodes[0].devices", "whole number"),
    (
        put("datasets", 0, "pricing")("twice"),
        "datasets[0].pricing",
        "must be 'per_use' or 'once', got 'twice'",
    ),
    (put("nodes", 0, "availability", 0)([0, 5]), "nodes[0].availability[0][2]", "is required"),
    # unknown and reserved keys
    (put(*T0, "relase_s")(1), "tasks[0].relase_s", "unknown key; did you mean 'release_s'?"),
    (put("colour")(1), "colour", "unknown key; allowed: format, name"),
    (put("links", 1, "from_")("a"), "links[1].from_", "unknown key"),
    # negative and zero where senseless, ranges
    (put("tick_seconds")(0), "tick_seconds", "must be greater than 0, got 0"),
    (put("money_unit_usd")(-0.01), "money_unit_usd", "must be greater than 0, got -0.01"),
    (put("sites", 0, "storage_gb")(-1), "sites[0].storage_gb", "must be at least 0, got -1"),
    (put("links", 0, "bandwidth_gbps")(0), "links[0].bandwidth_gbps", "must be greater than 0"),
    (put("links", 0, "latency_s")(-1), "links[0].latency_s", "at least 0"),
    (put("links", 0, "egress_usd_per_gb")(-1), "links[0].egress_usd_per_gb", "at least 0"),
    (put("links", 0, "channels")(0), "links[0].channels", "must be at least 1, got 0"),
    (put("datasets", 0, "size_gb")(-1), "datasets[0].size_gb", "at least 0"),
    (put("datasets", 0, "quality")(1.01), "datasets[0].quality", "must be at most 1, got 1.01"),
    (put("datasets", 0, "relevance", "text")(-0.1), "datasets[0].relevance.text", "at least 0"),
    (put("datasets", 0, "relevance", "a b")(2), 'datasets[0].relevance["a b"]', "at most 1"),
    (put("datasets", 0, "price_usd")(-1), "datasets[0].price_usd", "at least 0"),
    (put("datasets", 0, "available_s")(-1), "datasets[0].available_s", "at least 0"),
    (put("datasets", 0, "max_readers")(0), "datasets[0].max_readers", "at least 1"),
    (put("datasets", 0, "sites")([]), "datasets[0].sites", "must not be empty"),
    (put("nodes", 0, "devices")(0), "nodes[0].devices", "at least 1"),
    (put("nodes", 0, "usd_per_device_hour")(-1), "nodes[0].usd_per_device_hour", "at least 0"),
    (put("nodes", 0, "extra", "cpu")(-1), "nodes[0].extra.cpu", "at least 0"),
    (put("throughputs", 0, "measured", "1")(-1), 'throughputs[0].measured["1"]', "at least 0"),
    (put("throughputs", 0, "measured", "0")(1), 'throughputs[0].measured["0"]', "number of devices"),
    (put("throughputs", 0, "measured", "1.5")(1), 'throughputs[0].measured["1.5"]', "number of devices"),
    (put(*T0, "release_s")(-1), "tasks[0].release_s", "must be at least 0, got -1"),
    (put(*T0, "deadline_s")(-1), "tasks[0].deadline_s", "at least 0"),
    (put(*T0, "weight")(-1), "tasks[0].weight", "at least 0"),
    (put(*T0, "reject_penalty")(-1), "tasks[0].reject_penalty", "at least 0"),
    (put(*T0, "samples")(-1), "tasks[0].samples", "at least 0"),
    (put(*T0, "kappa")(-1), "tasks[0].kappa", "at least 0"),
    (put(*T0, "min_utility")(2), "tasks[0].min_utility", "at most 1"),
    (put(*T0, "budget_usd")(-1), "tasks[0].budget_usd", "at least 0"),
    (put(*T0, "setup_s", "gpu")(-1), "tasks[0].setup_s.gpu", "at least 0"),
    (put(*T0, "device_counts")([0]), "tasks[0].device_counts[0]", "at least 1"),
    (put(*T0, "device_counts")([]), "tasks[0].device_counts", "must not be empty"),
    (put(*T0, "device_counts")([1.5]), "tasks[0].device_counts[0]", "whole number"),
    (put(*T0, "sites")([]), "tasks[0].sites", "must not be empty"),
    (put(*T1, "inputs", 0, "share")(0), "tasks[1].inputs[0].share", "greater than 0"),
    (put(*T1, "inputs")([]), "tasks[1].inputs", "must not be empty"),
    (put(*T1, "after", 0, "lag_s")(-1), "tasks[1].after[0].lag_s", "at least 0"),
    (put(*MODE, "duration_ticks")(0), "tasks[2].modes[0].duration_ticks", "at least 1"),
    (put(*MODE, "usd")(-1), "tasks[2].modes[0].usd", "at least 0"),
    (put(*MODE, "utility")(1001), "tasks[2].modes[0].utility", "at most 1000"),
    (put(*MODE, "uses")([]), "tasks[2].modes[0].uses", "must not be empty"),
    (put(*MODE, "uses", 0, "devices")(0), "tasks[2].modes[0].uses[0].devices", "at least 1"),
    (put("objective", "levels")([]), "objective.levels", "must not be empty"),
    (put("objective", "levels", 0)({}), "objective.levels[0]", "must not be empty"),
    (put("objective", "levels", 0, "cost")(-1), "objective.levels[0].cost", "at least 0"),
    (put("objective", "levels", 0, "profit")(1), "objective.levels[0].profit", "not a term of the objective"),
    (put("objective", "limits", "costs")(1), "objective.limits.costs", "not a term of the objective"),
    (put("objective", "limits", "cost")(-1), "objective.limits.cost", "at least 0"),
    # numbers no solver can bear
    (put(*T0, "weight")(2**53 + 1), "tasks[0].weight", "must not exceed 2^53"),
    (put(*T0, "weight")(1e300), "tasks[0].weight", "must not exceed 2^53"),
    (put("nodes", 0, "devices")(2**60), "nodes[0].devices", "must not exceed 2^53"),
    (put(*T0, "weight")(1e-40), "tasks[0].weight", "more than 30 decimals"),
    (put(*T0, "weight")(float("nan")), "tasks[0].weight", "must be a finite number"),
    (put(*T0, "deadline_s")(float("inf")), "tasks[0].deadline_s", "must be a finite number"),
    (put("meta", "x")([0, float("nan")]), "meta.x[1]", "must be a finite number"),
    (put("meta", "x")({"é ": {1, 2}}), 'meta.x["é "]', "must be JSON"),
    # ids twice
    (put("sites", 1, "id")("a"), "sites[1].id", "another site has the id 'a'"),
    (put("links", 1, "id")("ab"), "links[1].id", "another link has the id 'ab'"),
    (put("links", 1, "id")("ab:back"), "links[1].id", "way back of both_ways link 'ab'"),
    (put("datasets", 1, "id")("d0"), "datasets[1].id", "another dataset has the id 'd0'"),
    (put("device_types", 1, "id")("gpu"), "device_types[1].id", "another device type has the id 'gpu'"),
    (put("nodes", 1, "id")("n0"), "nodes[1].id", "another node has the id 'n0'"),
    (put("models", 4, "id")("m0"), "models[4].id", "another model has the id 'm0'"),
    (put("tasks", 3, "id")("t0"), "tasks[3].id", "another task has the id 't0'"),
    (put(*T2, "modes", 1, "id")("e0"), "tasks[2].modes[1].id", "another mode of this task has the id 'e0'"),
    (put(*T1, "after", 1)({"id": "t2"}), "tasks[1].after[1].id", "already comes after 't2'"),
    (
        put(*T2, "modes", 1, "uses", 1, "node")("n0"),
        "tasks[2].modes[1].uses[1].node",
        "already uses node 'n0'",
    ),
    (
        put("throughputs", 2)({"model": "m0", "device_type": "gpu", "measured": {}}),
        "throughputs[2]",
        "given already",
    ),
    (put("datasets", 1, "sites")(["a", "a"]), "datasets[1].sites[1]", "site 'a' stands more than once"),
    (put(*T0, "datasets")(["d0", "d0"]), "tasks[0].datasets[1]", "'d0' stands more than once"),
    (put(*T0, "sites")(["a", "a"]), "tasks[0].sites[1]", "'a' stands more than once"),
    (put(*T0, "device_counts")([2, 2]), "tasks[0].device_counts[1]", "2 stands more than once"),
    (put(*T1, "inputs", 0, "datasets")(["d0", "d0"]), "tasks[1].inputs[0].datasets[1]", "more than once"),
    (put("state", "purchases")(["d0", "d0"]), "state.purchases[1]", "more than once"),
    # dangling ids
    (put("links", 0, "from")("c"), "links[0].from", "no site has the id 'c'; known: 'a', 'b'"),
    (put("links", 0, "to")("c"), "links[0].to", "no site"),
    (put("datasets", 0, "sites", 0)("c"), "datasets[0].sites[0]", "no site"),
    (put("nodes", 0, "site")("c"), "nodes[0].site", "no site"),
    (
        put("nodes", 0, "device_type")("cpu"),
        "nodes[0].device_type",
        "no device type has the id 'cpu'; did you mean",
    ),
    (put("throughputs", 0, "model")("x"), "throughputs[0].model", "no model"),
    (put("throughputs", 0, "device_type")("x"), "throughputs[0].device_type", "no device type"),
    (put(*T0, "model")("x"), "tasks[0].model", "no model"),
    (put(*T0, "datasets", 1)("x"), "tasks[0].datasets[1]", "no dataset"),
    (put(*T0, "sites", 1)("x"), "tasks[0].sites[1]", "no site"),
    (put(*T0, "setup_s", "x")(1), "tasks[0].setup_s.x", "no device type"),
    (put(*T1, "reference", "device_type")("x"), "tasks[1].reference.device_type", "no device type"),
    (put(*T1, "inputs", 0, "datasets", 0)("x"), "tasks[1].inputs[0].datasets[0]", "no dataset"),
    (put(*T1, "after", 0, "id")("x"), "tasks[1].after[0].id", "no task has the id 'x'"),
    (put(*MODE, "uses", 0, "node")("x"), "tasks[2].modes[0].uses[0].node", "no node"),
    (put(*MODE, "datasets", 0)("x"), "tasks[2].modes[0].datasets[0]", "no dataset"),
    # precedence
    (put(*T1, "after", 0, "id")("t1"), "tasks[1].after", "'t1' after 't1'"),
    (put(*T2, "after")([{"id": "t1"}]), "tasks[1].after", "in a circle: 't1' after 't2' after 't1'"),
    # links, calendars, scaling
    (put("links", 1, "to")("b"), "links[1].to", "must lead elsewhere"),
    (
        put("nodes", 0, "availability", 0)([5, 5, 1]),
        "nodes[0].availability[0]",
        "must start before it ends, got 5 to 5",
    ),
    (put("nodes", 0, "availability", 1)([99, 200, 2]), "nodes[0].availability[1]", "overlaps window 0"),
    (put("nodes", 0, "availability", 1)([0, 600, 2]), "nodes[0].availability[2]", "overlaps window 1"),
    (
        put("nodes", 0, "availability", 0)([0, 9, 5]),
        "nodes[0].availability[0][2]",
        "5 devices of a node that has 4",
    ),
    (put("nodes", 0, "availability", 0)([-1, 9, 1]), "nodes[0].availability[0][0]", "at least 0"),
    (put("models", 0, "scaling", "name")("cubic"), "models[0].scaling.name", "must be 'linear', 'amdahl'"),
    (
        put("models", 1, "scaling", "parameters")({}),
        "models[1].scaling.parameters.f",
        "is required; 'amdahl' takes f",
    ),
    (
        put("models", 1, "scaling", "parameters", "f")(2),
        "models[1].scaling.parameters.f",
        "must be at most 1, got 2",
    ),
    (
        put("models", 1, "scaling", "parameters", "g")(2),
        "models[1].scaling.parameters.g",
        "unknown parameter; 'amdahl' takes f",
    ),
    (
        put("models", 3, "scaling", "parameters")({"f": 1}),
        "models[3].scaling.parameters.f",
        "takes no parameters",
    ),
    (
        put("models", 2, "scaling", "parameters")({"a": 0, "b": 0, "c": 0}),
        "models[2].scaling.parameters",
        "must not all be 0",
    ),
    (put("models", 0, "scaling", "parameters", "gam")(0.5), "models[0].scaling.parameters.gam", "at least 1"),
    (
        put("models", 0, "scaling", "parameters", "batch_samples")(0),
        "models[0].scaling.parameters.batch_samples",
        "greater than 0",
    ),
    (
        drop("device_types", 0, "interconnect_gbps"),
        "device_types[0].interconnect_gbps",
        "ring scaling of model 'm0'",
    ),
    (put("device_types", 0, "interconnect_gbps")(0), "device_types[0].interconnect_gbps", "greater than 0"),
    # keys of a task that belong together
    (drop(*T0, "model"), "tasks[0].model", "is required"),
    (drop(*T0, "samples"), "tasks[0].samples", "the work is missing"),
    (put(*T0, "reference_hours")(1), "tasks[0].reference_hours", "a second time"),
    (drop(*T1, "reference"), "tasks[1].reference", "is required with reference_hours"),
    (
        put(*T0, "reference")({"device_type": "gpu", "devices": 1}),
        "tasks[0].reference",
        "belongs to reference_hours",
    ),
    (put(*T1, "datasets")(["d0"]), "tasks[1].datasets", "leave it out beside inputs"),
    (put(*T2, "model")("m0"), "tasks[2].model", "no meaning beside explicit modes"),
    (put(*T2, "samples")(5), "tasks[2].samples", "no meaning beside explicit modes"),
    (put(*T2, "inputs")([{"datasets": ["d0"]}]), "tasks[2].inputs", "no meaning beside explicit modes"),
    (put(*T2, "modes")([]), "tasks[2].modes", "must not be empty"),
    (
        put(*T2, "modes", 1, "datasets")(["d1"]),
        "tasks[2].modes[1].uses",
        "uses nodes at several sites ('a', 'b')",
    ),
    # rejection
    (
        put("objective", "levels")([{"cost": 1}]),
        "objective.levels",
        "tasks may be rejected ('t0') but no level charges",
    ),
    (
        put("objective", "levels")([{"late": 0, "cost": 1}]),
        "objective.levels",
        "give late or rejected or utility_loss",
    ),
    (drop("objective"), "objective", "tasks may be rejected ('t0')"),
    # state
    (put(*RUN, "task")("x"), "state.tasks[0].task", "no task has the id 'x'"),
    (put(*RUN, "task")("t1"), "state.tasks[1].task", "task 't1' is in the state already"),
    (drop(*RUN, "choice"), "state.tasks[0].choice", "is required"),
    (put(*RUN, "rejected")(True), "state.tasks[0]", "neither choice nor segments"),
    (drop(*RUN, "choice", "mode"), "state.tasks[0].choice.mode", "is required: the task has explicit modes"),
    (
        put(*RUN, "choice", "mode")("e9"),
        "state.tasks[0].choice.mode",
        "'e9' is not a mode of the task; it has 'e0', 'e1'",
    ),
    (put("state", "tasks", 1, "choice", "mode")("e0"), "state.tasks[1].choice.mode", "has no explicit modes"),
    (put(*RUN, "choice", "inputs")([]), "state.tasks[0].choice.inputs", "must name 1 datasets"),
    (
        put(*RUN, "choice", "inputs", 0, "dataset")("x"),
        "state.tasks[0].choice.inputs[0].dataset",
        "no dataset",
    ),
    (
        put(*RUN, "choice", "inputs", 0, "access")("fetched"),
        "state.tasks[0].choice.inputs[0].access",
        "must be 'local'",
    ),
    (
        put(*RUN, "choice", "inputs", 0, "access")("streamed"),
        "state.tasks[0].choice.inputs[0].route",
        "is required",
    ),
    (
        put(*RUN, "choice", "inputs", 0, "route")(["ab"]),
        "state.tasks[0].choice.inputs[0].route",
        "streamed access only",
    ),
    (put(*RUN, "segments")([]), "state.tasks[0].segments", "exactly one segment"),
    (put(*RUN, "segments", 0, "end")(-1), "state.tasks[0].segments[0].end", "greater than start -1, got -1"),
    (put(*RUN, "segments", 0, "uses", 0, "node")("x"), "state.tasks[0].segments[0].uses[0].node", "no node"),
    (
        put(*RUN, "segments", 0, "uses", 1)({"node": "n1", "devices": 1}),
        "state.tasks[0].segments[0].uses[1].node",
        "once",
    ),
    (put("state", "transfers", 0, "dataset")("x"), "state.transfers[0].dataset", "no dataset"),
    (put("state", "transfers", 0, "site")("x"), "state.transfers[0].site", "no site"),
    (put("state", "transfers", 0, "site")("a"), "state.transfers[0].site", "home site of dataset 'd0'"),
    (put("state", "transfers", 0, "route")(["x"]), "state.transfers[0].route[0]", "no link has the id 'x'"),
    (put("state", "transfers", 0, "route")([]), "state.transfers[0].route", "must not be empty"),
    (
        put("state", "transfers", 0, "route")(["ba"]),
        "state.transfers[0].route[0]",
        "starts at site 'b'; the dataset is at home",
    ),
    (
        put("state", "transfers", 0, "route")(["ab", "ba"]),
        "state.transfers[0].route",
        "leads to site 'a', not to 'b'",
    ),
    (
        put("state", "transfers", 0, "route")(["ab", "ab"]),
        "state.transfers[0].route[1]",
        "the route has come to 'b'",
    ),
    (
        put("state", "transfers", 1)({"dataset": "d0", "site": "b", "route": ["ab"], "start": 0}),
        "state.transfers[1]",
        "already",
    ),
    (put("state", "purchases")(["x"]), "state.purchases[0]", "no dataset"),
    (put("state", "time_zero")("yesterday"), "state.time_zero", "ISO 8601"),
]


def test_the_full_document_is_right(document: Document) -> None:
    """Nothing is wrong with what the faults below are made of, and it has every key of the format."""
    assert faults_of(document) == {}
    assert not list(missing_keys(document, instance_schema()))


def missing_keys(document: Document, schema: Document) -> Iterator[str]:
    """Keys of the schema that no object of the document has."""
    for name, part in schema["$defs"].items():
        text = json.dumps(document)
        yield from (f"{name}.{key}" for key in part["properties"] if f'"{key}"' not in text)


@pytest.mark.parametrize(
    ("change", "path", "message"), FAULTS, ids=[f"{i}-{row[1]}" for i, row in enumerate(FAULTS)]
)
def test_fault(document: Document, change: Change, path: str, message: str) -> None:
    """Each single fault is found at its place and says what is allowed."""
    change(document)
    found = faults_of(document)
    assert path in found, found
    assert message in found[path]


@pytest.mark.parametrize("key", sorted(RESERVED))
def test_reserved_keys_are_refused_with_a_reason(document: Document, key: str) -> None:
    """What is not built yet is not silently ignored, wherever the key stands and whatever its value."""
    for steps in ((key,), (*T0, key), ("nodes", 0, key), ("sites", 0, key)):
        changed = copy.deepcopy(document)
        put(*steps)(False)(changed)
        assert "is reserved for" in faults_of(changed)[json_path(steps)]


def test_all_faults_at_once_in_the_order_of_the_file(document: Document, tmp_path: Path) -> None:
    """Shape, range, reference and logic faults of one file come together, with file and path."""
    changes: list[tuple[Change, str]] = [
        (put("tick_seconds")(0), "tick_seconds"),
        (put("sites", 0, "id")(7), "sites[0].id"),
        (put("links", 0, "channels")(0), "links[0].channels"),
        (put("datasets", 1, "sites")(["b", "z"]), "datasets[1].sites[1]"),
        (put("nodes", 0, "availability", 1)([50, 120, 9]), "nodes[0].availability[1]"),
        (put(*T0, "datasets")(["d7"]), "tasks[0].datasets[0]"),
        (put(*T0, "elastic")(True), "tasks[0].elastic"),
        (put(*T2, "after")([{"id": "t1"}]), "tasks[1].after"),
        (put("objective", "limits")({"profit": 1}), "objective.limits.profit"),
    ]
    for change, _ in changes:
        change(document)
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_instance(path)
    paths = [fault.path for fault in caught.value.faults]
    assert [p for p in paths if p in {place for _, place in changes}] == [place for _, place in changes]
    assert {fault.source for fault in caught.value.faults} == {str(path)}
    assert str(caught.value).splitlines()[0] == f"{path}: tick_seconds: must be greater than 0, got 0"


def test_every_cycle_is_named_once() -> None:
    """Two separate circles are two faults; tasks that only lead into one are left alone."""
    tasks = [
        {"id": name, "modes": [{"id": "m", "uses": [{"node": "n", "devices": 1}], "duration_ticks": 1}]}
        | {"after": [{"id": other} for other in before]}
        for name, before in {"a": "b", "b": "c", "c": "a", "d": "ae", "e": "", "x": "y", "y": "x"}.items()
    ]
    document = {
        "format": "optalloc-instance/1",
        "name": "x",
        "sites": [{"id": "s"}],
        "device_types": [{"id": "g"}],
        "nodes": [{"id": "n", "site": "s", "device_type": "g", "devices": 1}],
        "tasks": tasks,
    }
    found = faults_of(document)
    assert sorted(found) == ["tasks[0].after", "tasks[5].after"]
    assert "'a' after 'b' after 'c' after 'a'" in found["tasks[0].after"]


def test_a_penalty_without_effect_needs_no_charge(document: Document) -> None:
    """A task before one that must run, or one that runs already, is not rejectable after all."""
    document["objective"] = {"levels": [{"cost": 1}]}
    assert "objective.levels" in faults_of(document)
    changed = copy.deepcopy(document)
    changed["tasks"][3]["after"] = [{"id": "t0"}]
    assert faults_of(changed) == {}
    document["tasks"][0].pop("reject_penalty")
    document["tasks"][2]["reject_penalty"] = 1
    assert faults_of(document) == {}


def test_well_formed_but_impossible_is_no_fault(document: Document) -> None:
    """No mode, no window, no budget: that is for the solver to say (infeasible), not for the reader."""
    document["tasks"][0] |= {
        "budget_usd": 0,
        "deadline_s": 0,
        "memory_gb_per_device": 10**6,
        "min_utility": 1,
    }
    document["tasks"][0] |= {"device_counts": [10**6], "extra": {"unheard of": 1}, "due_s": -5}
    document["tasks"][2]["modes"][0]["uses"][0]["devices"] = 10**6
    assert faults_of(document) == {}


def test_ids_may_be_any_text(document: Document) -> None:
    """Commas, colons, spaces, letters of any script; texts that look alike stay apart."""
    names = ["a,b", "a:b", "job 1", "é", "e\u0301", "日本", "'", '"', "\n", " ", "null", "0"]
    document["tasks"] += [
        {"id": name, "model": "m1", "samples": 1, "after": [{"id": "t3"}]} for name in names
    ]
    instance = read_instance(document)
    assert [task.id for task in instance.tasks[4:]] == names
