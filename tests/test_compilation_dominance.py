"""The mask of active modes against the definition, pair by pair."""

import json
from dataclasses import replace

import numpy as np
import pytest
from support.physics import changed, problem_of, shown
from support.random_instances import random_instance

import optalloc as oa
from optalloc.compilation import dominance
from optalloc.compilation.dominance import Signatures, active_modes
from optalloc.instance import Instance


def brute_force(problem):
    """For every mode: is it better than, or the first equal of, all modes of its task?"""
    return [
        not any(_dominates(problem, other, mode) for other in problem.modes_of(task, active=False).tolist())
        for mode, task in enumerate(problem.mode_task.tolist())
    ]


def _facts(problem, mode):
    numbers = (problem.duration[mode], problem.money[mode], -problem.utility[mode], problem.available[mode])
    return numbers, dict(problem.uses(mode)), set(problem.needs(mode)), set(problem.buys(mode))


def _dominates(problem, other, mode):
    (numbers, uses, needs, buys), (these, own_uses, own_needs, own_buys) = (
        _facts(problem, m) for m in (other, mode)
    )
    no_worse = all(a <= b for a, b in zip(numbers, these, strict=True))
    no_worse &= all(amount <= own_uses.get(resource, 0) for resource, amount in uses.items())
    no_worse &= needs <= own_needs and buys <= own_buys
    equal = (numbers, uses, needs, buys) == (these, own_uses, own_needs, own_buys)
    return other != mode and no_worse and (not equal or other < mode)


@pytest.mark.parametrize("profile", ["small", "medium"])
def test_mask_equals_the_definition(profile):
    """15 random instances with every feature; a good share of the modes goes."""
    gone = total = 0
    for seed in range(15):
        problem = problem_of(json.loads(json.dumps(random_instance(seed, profile))))
        assert problem.active.tolist() == brute_force(problem)
        gone += int((~problem.active).sum())
        total += problem.num_modes
    assert gone > total / 20


def test_the_same_in_small_chunks(monkeypatch, shared):
    """Cutting the table into pieces of whole tasks changes nothing."""
    path = shared / "bench" / "small_cases" / "006-stress.json"
    instance = Instance(**{k: v for k, v in json.loads(path.read_text()).items()})
    whole = problem_of(instance.document())
    monkeypatch.setattr(dominance, "_CHUNK", 7)
    assert problem_of(instance.document()).active.tolist() == whole.active.tolist()


def random_table(seed, tasks=40, rows=30):
    """Columns of a mode table with many ties, signatures of channels and replicas, and some modes on two nodes."""
    draw = np.random.default_rng(seed)
    signatures = Signatures()
    held = [
        {int(t): int(a) for t, a in zip(draw.choice(90, size, False), draw.integers(1, 3, size), strict=True)}
        for size in draw.integers(0, 4, 12)
    ]
    count = tasks * rows
    nodes = [sorted(draw.choice(4, 2 if draw.random() < 0.2 else 1, False).tolist()) for _ in range(count)]
    amounts = [draw.integers(1, 4, len(used)).tolist() for used in nodes]
    picked = draw.integers(0, len(held), count).tolist()
    tokens = [
        held[p] | ({100 + n: a for n, a in zip(ns, am, strict=True)} if len(ns) > 1 else {})
        for p, ns, am in zip(picked, nodes, amounts, strict=True)
    ]
    uses = [(row, n, a) for row in range(count) for n, a in zip(nodes[row], amounts[row], strict=True)]
    columns = [draw.integers(0, 3, count) for _ in range(4)]
    return {
        "task": np.repeat(np.arange(tasks), rows),
        "columns": columns,
        "uses": tuple(np.array(column) for column in zip(*uses, strict=True)),
        "signature": np.array([signatures.number(one) for one in tokens]),
        "signatures": signatures,
        "held": [
            dict(zip(("n", "t"), (dict(zip(ns, am, strict=True)), held[p]), strict=True))
            for p, ns, am in zip(picked, nodes, amounts, strict=True)
        ],
    }


def slow_mask(table):
    """The definition on the columns."""

    def dominates(a, b):
        (duration, money, utility, available) = table["columns"]
        worse = (
            duration[a] > duration[b]
            or money[a] > money[b]
            or available[a] > available[b]
            or utility[a] < utility[b]
        )
        mine, other = table["held"][a], table["held"][b]
        inside = all(other[k].get(t, 0) >= amount for k in "nt" for t, amount in mine[k].items())
        equal = all(column[a] == column[b] for column in table["columns"]) and mine == other
        return not worse and inside and (not equal or a < b)

    rows = range(len(table["task"]))
    same = [[a for a in rows if table["task"][a] == table["task"][b] and a != b] for b in rows]
    return [not any(dominates(a, b) for a in same[b]) for b in rows]


@pytest.mark.parametrize("seed", range(6))
def test_vectorised_mask_equals_pairs(seed):
    """Ties, subsets of channels and modes on several nodes, on random tables."""
    table = random_table(seed, tasks=6)
    mask = active_modes(
        table["task"], *table["columns"], table["uses"], table["signature"], table["signatures"]
    )
    assert mask.tolist() == slow_mask(table)
    assert not mask.all()


def test_more_devices_without_gain_go():
    """Two devices are slower here: dearer, longer and more of the node."""
    found = changed()
    found["throughputs"][0]["measured"] = {"1": 10, "2": 9}
    problem = problem_of(found)
    assert [row[1] for row in shown(problem)] == [{"n": 1}, {"n": 2}]
    assert problem.active.tolist() == [True, False]


def test_utility_is_never_traded_for_money():
    """A dearer dataset of higher utility stays whatever the weights are."""
    found = changed(datasets=["near", "far"], device_counts=[1])
    found["datasets"][1].update(sites=["here"], price_usd=100)
    assert problem_of(found).active.tolist() == [True, True]
    found["datasets"][1]["relevance"] = {"vision": 0.4}
    assert problem_of(found).active.tolist() == [True, False]


def test_a_seat_a_replica_or_a_purchase_less_is_a_gain():
    """Of two equal datasets the one that needs less stays, whichever is first."""
    for change in (
        {"max_readers": 5},
        {"sites": ["there"]},
        {"price_usd": 1, "pricing": "once"},
        {"available_s": 60},
    ):
        for order in (["near", "far"], ["far", "near"]):
            found = changed(datasets=order, device_counts=[1])
            found["datasets"][1].update({"sites": ["here"], "relevance": {"vision": 0.4}, **change})
            problem = problem_of(found)
            kept = [problem.dataset_ids[problem.inputs(m)[0][0]] for m in problem.modes_of(0).tolist()]
            assert kept == ["near"]


def test_exact_ties_keep_the_first():
    """Two datasets with the same numbers at the same site."""
    found = changed(datasets=["far", "near"], device_counts=[1])
    found["datasets"][1].update(sites=["here"], relevance={"vision": 0.4})
    problem = problem_of(found)
    assert [problem.dataset_ids[problem.inputs(m)[0][0]] for m in problem.modes_of(0).tolist()] == ["far"]


def test_the_optimum_does_not_move():
    """With and without the dominated modes the proven values are equal."""
    compared = 0
    for seed in range(40):
        problem = problem_of(json.loads(json.dumps(random_instance(seed, "tiny"))))
        if problem.impossible or problem.active.all():
            continue
        whole = replace(problem, active=np.ones_like(problem.active))
        answers = [oa.solve(one, "cpsat", time_limit=20, threads=1) for one in (problem, whole)]
        assert len({answer.status for answer in answers}) == 1
        assert len({tuple(level.objective for level in answer.levels) for answer in answers}) == 1
        compared += 1
    assert compared >= 10
