"""The verifier: every rule broken alone, every term by hand, scopes, metrics, speed."""

import json
import time
from fractions import Fraction

import numpy as np
import pytest
from support.world import STARTS, TRANSFERS, instance, plan_of, problem, run

from optalloc.compilation import compile as compile_problem
from optalloc.evaluation import describe_terms, evaluate, form_value
from optalloc.evaluation.rules import RULES
from optalloc.evaluation.view import View
from optalloc.instance import read_instance
from optalloc.problem import ABSENT, FREE, TERMS, Transfer
from optalloc.schedule import build_scope, schedule_from_dict, to_schedule
from optalloc.scope import full_scope


@pytest.fixture(scope="module")
def world():
    """The small world, compiled."""
    return problem()


def rules(evaluation):
    return [violation.rule for violation in evaluation.violations]


# rules ------------------------------------------------------------------------------------------------------
def test_the_plan_before_mutation_is_valid(world):
    """The plan that the mutations below start from keeps every rule."""
    evaluation = evaluate(world, plan_of(world))
    assert evaluation.valid
    assert evaluation.notes == ()


MUTATIONS = {
    # t7 comes after t6; rejecting both would be allowed.
    "R1 placed after a rejected task": ("R1", {"t6": None}, {}, ("t7", "t6")),
    "R1 left out": ("R1", {"t4": ABSENT}, {}, ("t4",)),
    "R1 rejected but must run": ("R1", {"t4": None}, {}, ("t4",)),
    "R3 before tick 0": ("R3", {"t6": -1}, {}, ("t6",)),
    # e arrives at 3, so only the release at 4 forbids a start at 3.
    "R3 before the release": ("R3", {"t1": 3}, {}, ("t1",)),
    # Node n has devices until 30, so only the deadline at 20 forbids an end at 21.
    "R3 after the deadline": ("R3", {"t5": 18}, {}, ("t5",)),
    # t0 ends at 5 and the lag is one tick.
    "R4 before the predecessor": ("R4", {"t2": 5}, {}, ("t2", "t0")),
    # t5 holds all four devices of n in [12, 15); e is then held to 17 beside g: 12 GB fit.
    "R5 devices": ("R5", {"t1": 14}, {}, ("n", "t1", "t5")),
    "R5 outside the availability": ("R5", {"t1": 28}, {}, ("n", "t1")),
    # t2 and t3 take 1.5 cpu each of 2; devices are plenty.
    "R5 extra": ("R5", {"t3": 7}, {}, ("m", "t2", "t3")),
    # d arrives at 1.
    "R6 before the replica has come": ("R6", {"t0": 0}, {}, ("t0", "d", "b")),
    "R6 the replica never comes": ("R6", {}, {"d": None}, ("t0", "d", "b")),
    "R6 transfer before tick 0": ("R6", {}, {"d": -1}, ("d", "b")),
    # g is available from tick 8.
    "R6 transfer before the data exist": ("R6", {}, {"g": 7}, ("g", "b")),
    # f is available from tick 2, read at its home.
    "R6 access before the data exist": ("R6", {"t3": 1}, {}, ("t3",)),
    # The link carries one transfer at a time; both replicas fit the storage.
    "R7 two transfers on one channel": ("R7", {}, {"e": 0}, ("ab", "d", "b", "e")),
    # In [8, 9) the site would hold d (to 9), e (to 9) and g: 18 GB of 12.
    "R8 too much at the site": ("R8", {"t0": 6, "t1": 6, "t2": 10}, {"g": 8}, ("b", "d", "e", "g")),
    # One seat: t3 reads f in [8, 10).
    "R9 two readers": ("R9", {"t4": 9}, {}, ("f", "t3", "t4")),
    "R10 makespan": ("R10", {"t4": 34}, {}, ("makespan",)),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_one_broken_rule_is_flagged_alone(world, name):
    """The smallest change of a valid plan with slack elsewhere is flagged by that rule and no other."""
    rule, starts, moves, ids = MUTATIONS[name]
    transfers = {k: v for k, v in {**TRANSFERS, **moves}.items() if v is not None}
    evaluation = evaluate(world, plan_of(world, {**STARTS, **starts}, transfers))
    assert rules(evaluation) == [rule]
    assert evaluation.violations[0].ids == ids


def test_a_mode_of_another_task_breaks_r2(world):
    """R2: the index points at a mode, but not at one of the task's own."""
    plan = plan_of(world)
    plan.mode[6] = plan.mode[7]
    assert rules(evaluate(world, plan)) == ["R2"]


def test_a_second_transfer_of_a_pair_breaks_r11(world):
    """R11: one transfer per dataset and site, although link and storage are free at tick 20."""
    plan = plan_of(world, STARTS, [*TRANSFERS.items(), ("d", 20)])
    evaluation = evaluate(world, plan)
    assert rules(evaluation) == ["R11"]
    assert evaluation.violations[0].ids == ("d", "b")


def test_every_rule_has_a_mutation():
    """No rule without a test that breaks it alone."""
    broken = {rule for rule, *_ in MUTATIONS.values()} | {"R2", "R11", "scope"}
    assert broken == set(RULES)


def test_numbers_are_in_the_message(world):
    """Who, when, how much, of how much."""
    evaluation = evaluate(world, plan_of(world, {**STARTS, "t1": 14}))
    assert str(evaluation.violations[0]) == "R5: devices of n at tick 14: 5 used, capacity 4 (until tick 15)"


def test_all_violations_are_listed(world):
    """Not only the first of a cascade."""
    evaluation = evaluate(world, plan_of(world, {**STARTS, "t1": 3, "t2": 5, "t3": 1, "t4": 34}))
    assert rules(evaluation) == ["R3", "R4", "R6", "R10"]


def test_overloads_are_intervals():
    """One violation for each longest interval, however many runs begin and end in it."""
    tasks = [{"id": f"t{i}", "modes": [run("m", 3, 4)]} for i in range(5)]
    other = problem(tasks=tasks)
    # Two runs in [2, 4), [4, 6) without a break, and again in [11, 12).
    plan = plan_of(other, {"t0": 0, "t1": 2, "t2": 4, "t3": 8, "t4": 11}, {})
    found = [violation.message for violation in evaluate(other, plan).violations]
    assert found == [
        "devices of m at tick 2: 6 used, capacity 4 (until tick 6)",
        "devices of m at tick 11: 6 used, capacity 4 (until tick 12)",
    ]


def test_a_transfer_must_be_what_its_route_makes_of_it(world):
    """R7: a Plan whose transfer claims to be faster or cheaper than its links is refused."""
    plan = plan_of(world)
    first = plan.transfers[0]
    for change in ({"ticks": 0}, {"cost": 1}, {"channels": ()}, {"links": ()}):
        wrong = Transfer(**{**first.__dict__, **change})
        plan.transfers = (wrong, *plan.transfers[1:])
        assert "R7" in rules(evaluate(world, plan))


def test_an_undecided_task_breaks_r1(world):
    """FREE stands only in scopes."""
    plan = plan_of(world)
    plan.mode[7] = FREE
    assert rules(evaluate(world, plan)) == ["R1"]


def test_an_unused_transfer_is_noted_and_paid(world):
    """R11: a transfer that serves no task costs money and is no fault; it holds storage until it ends."""
    two = {"levels": [{"makespan": 1, "rejected": 1}]}
    other = problem(objective=two, tasks=[{"id": "t6", "reject_penalty": 5, "modes": [run("n", 1, 2, "d")]}])
    evaluation = evaluate(other, plan_of(other, {"t6": None}, {"d": 0}))
    assert evaluation.valid
    assert evaluation.terms["cost"] == 300
    assert evaluation.notes == ("the transfer of 'd' to 'b' serves no task and is paid for",)


def test_streams_hold_channels():
    """R7: a stream and a transfer cannot share one channel; apart they can."""
    datasets = [
        {"id": "d", "size_gb": 6, "sites": ["a"]},
        {"id": "s", "size_gb": 6, "sites": ["a"], "streamable": True},
    ]
    tasks = [{"id": "t0", "modes": [run("n", 1, 1, "d")]}, {"id": "t1", "modes": [run("n", 1, 1, "s")]}]
    other = problem(datasets=datasets, tasks=tasks)
    mode = next(m for m in other.modes_of(1).tolist() if other.inputs(m)[0][1] == 2)
    for start, broken in ((0, ["R7"]), (1, [])):
        plan = plan_of(other, {"t0": 5, "t1": start}, {"d": 0})
        plan.mode[1] = mode
        assert rules(evaluate(other, plan)) == broken


def test_nothing_is_checked_before_tick_0():
    """The state may hold too much before tick 0, and is exempt from R3 and R6, but from no other rule."""
    tasks = [
        {"id": "t0", "release_s": 600, "deadline_s": 60, "modes": [run("m", 3, 5)]},
        {"id": "t1", "modes": [run("m", 3, 4)]},
    ]
    state = {"tasks": [entry("t0", "m", 3, -4, 1), entry("t1", "m", 3, -4, 0)]}
    other = problem(tasks=tasks, state=state)
    assert evaluate(other, plan_of(other, {"t0": -4, "t1": -4}, {})).valid
    state["tasks"][1] = entry("t1", "m", 3, -3, 1)
    other = problem(tasks=tasks, state=state)
    assert rules(evaluate(other, plan_of(other, {"t0": -4, "t1": -3}, {}))) == ["R5"]


def entry(task, node, devices, start, end):
    use = {"node": node, "devices": devices}
    segment = {"uses": [use], "start": start, "end": end}
    return {"task": task, "choice": {"mode": "only", "inputs": []}, "segments": [segment]}


# terms ------------------------------------------------------------------------------------------------------
def terms_of(starts, transfers=(), **changes):
    other = problem(**changes)
    evaluation = evaluate(other, plan_of(other, starts, dict(transfers)))
    assert evaluation.valid
    return evaluation


def test_makespan_is_the_largest_end():
    """Ends 3 and 6: 6; without placed tasks 0."""
    tasks = [{"id": "t0", "modes": [run("m", 1, 3)]}, {"id": "t1", "modes": [run("m", 1, 2)]}]
    assert terms_of({"t0": 0, "t1": 4}, tasks=tasks).terms["makespan"] == 6
    optional = [{"id": "t0", "reject_penalty": 1, "modes": [run("m", 1, 3)]}]
    assert terms_of({"t0": None}, tasks=optional).terms["makespan"] == 0


def test_weighted_completion():
    """1.5 * 3 + 2 * 6 = 16.5."""
    tasks = [
        {"id": "t0", "weight": 1.5, "modes": [run("m", 1, 3)]},
        {"id": "t1", "weight": 2, "modes": [run("m", 1, 2)]},
    ]
    assert terms_of({"t0": 0, "t1": 4}, tasks=tasks).terms["weighted_completion"] == Fraction(33, 2)


def test_weighted_flow():
    """Release 90 s is tick 2: 1.5 * (5 - 2) + 2 * 6 = 16.5."""
    tasks = [
        {"id": "t0", "weight": 1.5, "release_s": 90, "modes": [run("m", 1, 3)]},
        {"id": "t1", "weight": 2, "modes": [run("m", 1, 2)]},
    ]
    assert terms_of({"t0": 2, "t1": 4}, tasks=tasks).terms["weighted_flow"] == Fraction(33, 2)


def test_weighted_tardiness():
    """Due 150 s is tick 2: 1.5 * (3 - 2); the second task has no due date and is never late."""
    tasks = [
        {"id": "t0", "weight": 1.5, "due_s": 150, "modes": [run("m", 1, 3)]},
        {"id": "t1", "weight": 2, "modes": [run("m", 1, 2)]},
    ]
    assert terms_of({"t0": 0, "t1": 4}, tasks=tasks).terms["weighted_tardiness"] == Fraction(3, 2)


def test_late_counts_weights_of_late_and_rejected_tasks():
    """t0 ends at its due tick (not late), t1 a tick later (2), t2 is rejected (0.25)."""
    tasks = [
        {"id": "t0", "weight": 9, "due_s": 180, "modes": [run("m", 1, 3)]},
        {"id": "t1", "weight": 2, "due_s": 300, "modes": [run("m", 1, 2)]},
        {"id": "t2", "weight": 0.25, "reject_penalty": 7, "modes": [run("m", 1, 2)]},
    ]
    terms = terms_of({"t0": 0, "t1": 4, "t2": None}, tasks=tasks).terms
    assert terms["late"] == Fraction(9, 4)
    # The rejected task adds its penalty, and 1000 * 0.25 lost utility, and nothing else.
    assert terms["rejected"] == 7
    assert terms["utility_loss"] == 250
    assert terms["weighted_completion"] == 9 * 3 + 2 * 6


def test_cost_has_devices_prices_once_and_transfers():
    """Two runs of $1, the once price of $2, one transfer of 6 GB at $0.5, a price per use of $0.25 twice."""
    tasks = [
        {"id": "t0", "modes": [run("m", 1, 2, "f", usd=1)]},
        {"id": "t1", "modes": [run("m", 1, 2, "f", usd=1)]},
        {"id": "t2", "modes": [run("n", 1, 2, "g")]},
        {"id": "t3", "modes": [run("n", 1, 2, "g")]},
    ]
    evaluation = terms_of({"t0": 2, "t1": 4, "t2": 9, "t3": 9}, {"g": 8}, tasks=tasks)
    assert evaluation.terms["cost"] == 200 + 200 + 300 + 50
    assert evaluation.metrics["cost_usd"] == 7.5
    assert evaluation.metrics["cost_breakdown_usd"] == {"compute": 2.0, "data": 2.5, "transfer": 3.0}


def test_utility_loss():
    """1.5 * (1000 - 700)."""
    tasks = [{"id": "t0", "weight": 1.5, "modes": [run("m", 1, 3, utility=700)]}]
    assert terms_of({"t0": 0}, tasks=tasks).terms["utility_loss"] == 450


def test_levels_are_scaled_by_k():
    """Weight 0.5 on t0 alone: K = 2, so 0.5 * 3 is 3; cost 1 per $ needs K * 0.01 whole: with it K = 100."""
    tasks = [{"id": "t0", "weight": 0.5, "modes": [run("m", 1, 3, usd=1)]}]
    one = terms_of({"t0": 0}, tasks=tasks, objective={"levels": [{"weighted_completion": 1}]})
    assert one.levels == (3,)
    two = terms_of({"t0": 0}, tasks=tasks, objective={"levels": [{"cost": 1}, {"weighted_completion": 1}]})
    assert two.levels == (100, 150)
    assert two.objective == 150


def test_limits_compare_exact_values():
    """R10: 1.5 is not more than 1.5, but more than 1.49."""
    tasks = [{"id": "t0", "weight": 0.5, "modes": [run("m", 1, 3)]}]
    for limit, broken in ((1.5, []), (1.49, ["R10"])):
        objective = {"levels": [{"makespan": 1}], "limits": {"weighted_completion": limit}}
        other = problem(tasks=tasks, objective=objective)
        assert rules(evaluate(other, plan_of(other, {"t0": 0}, {}))) == broken
    tasks = [{"id": "t0", "modes": [run("m", 1, 3, usd=1)]}]
    for dollars, broken in ((1, []), (0.999, ["R10"])):
        objective = {"levels": [{"makespan": 1}], "limits": {"cost": dollars}}
        other = problem(tasks=tasks, objective=objective)
        assert rules(evaluate(other, plan_of(other, {"t0": 0}, {}))) == broken


def test_every_term_is_described():
    """`optalloc list objectives` shows all terms."""
    assert [row["term"] for row in describe_terms()] == list(TERMS)
    assert all(row["meaning"] for row in describe_terms())


# scopes -----------------------------------------------------------------------------------------------------
def test_tasks_outside_the_scope_do_not_exist(world):
    """R1 is checked on the rest, and the terms are those of the rest."""
    scope = build_scope(world, tasks=["t3", "t4"])
    evaluation = evaluate(world, plan_of(world, {"t3": 8, "t4": 10}, {}), scope=scope)
    assert evaluation.valid
    assert evaluation.terms["makespan"] == 12
    assert rules(evaluate(world, plan_of(world), scope=scope)).count("R1") == 6


def test_what_is_fixed_must_stay(world):
    """A fixed run or transfer may neither move nor vanish."""
    scope = build_scope(world, plan_of(world, {"t0": 2, "t6": None}, {"d": 0}))
    assert rules(evaluate(world, plan_of(world), scope=scope)) == ["scope"]
    both = {**STARTS, "t6": None, "t7": None}
    assert evaluate(world, plan_of(world, both), scope=scope).valid
    assert rules(evaluate(world, plan_of(world, {**both, "t0": 1}), scope=scope)) == ["scope"]
    moved = evaluate(world, plan_of(world, both, {**TRANSFERS, "d": 1}), scope=scope)
    assert rules(moved) == ["scope"]


def test_nothing_free_starts_before_the_scope_allows(world):
    """What is fixed may start earlier."""
    scope = build_scope(world, plan_of(world, {"t0": 2}, {"d": 0}), not_before=3)
    evaluation = evaluate(world, plan_of(world), scope=scope)
    assert [(v.rule, v.ids) for v in evaluation.violations] == [("scope", ("e", "b"))]
    later = {**TRANSFERS, "e": 3}
    assert evaluate(world, plan_of(world, STARTS, later), scope=scope).valid
    early = evaluate(world, plan_of(world, {**STARTS, "t3": 2}, later), scope=scope)
    assert [(v.rule, v.ids) for v in early.violations] == [("scope", ("t3",))]


# metrics and JSON -------------------------------------------------------------------------------------------
def test_metrics_in_hours_dollars_and_gigabytes(world):
    """Worked out by hand from the plan of the small world."""
    metrics = evaluate(world, plan_of(world)).metrics
    assert metrics["makespan_hours"] == pytest.approx(19 / 60)
    # Ends 5, 7, 8, 10, 12, 15, 17, 19, of which only t1 is released later than 0, at 4.
    assert metrics["mean_flow_hours"] == pytest.approx((93 - 4) / 8 / 60)
    assert metrics["p99_flow_hours"] == pytest.approx(19 / 60)
    assert metrics["moved_gb"] == 18
    # t4 ends at 12, due at 10; t5 ends at 15, deadline at 20.
    assert (metrics["deadlines"], metrics["deadlines_met"], metrics["due_met"]) == (2, 1, 0.5)
    # n: 3 + 3 + 12 of 4 * 19 device-ticks; m: 5 runs of 2 ticks.
    assert metrics["node_utilisation"] == {"n": pytest.approx(18 / 76), "m": pytest.approx(10 / 76)}
    assert metrics["utilisation"] == pytest.approx(28 / 152)
    assert metrics["cost_usd"] == 12.25
    assert metrics["matching_ratio"] == 1


def test_json_has_no_floats_where_numbers_are_exact():
    """Fractions are text, whole numbers are ints, and NaN cannot appear."""
    tasks = [{"id": "t0", "weight": 0.5, "modes": [run("m", 1, 3)]}]
    other = problem(tasks=tasks)
    content = evaluate(other, plan_of(other, {"t0": 0}, {})).to_dict()
    assert content["terms"]["weighted_completion"] == "3/2"
    assert content["terms"]["makespan"] == 3
    assert json.loads(json.dumps(content, allow_nan=False)) == content
    assert content["tasks"]["t0"] == {
        "start": 0, "end": 3, "flow_ticks": 3, "tardiness_ticks": 0, "money_usd": 0.0, "utility": 1.0,
    }  # fmt: skip


def test_an_empty_instance_has_an_empty_plan():
    """No tasks, no nodes: every term is 0 and no mean is made of nothing."""
    empty = compile_problem(read_instance({"format": "optalloc-instance/1", "name": "empty"}))
    evaluation = evaluate(empty, plan_of_nothing(empty))
    assert evaluation.valid
    assert set(evaluation.terms.values()) == {0}
    assert evaluation.metrics["mean_flow_hours"] is None


def plan_of_nothing(problem):
    from optalloc.problem import Plan

    return Plan(problem.mode_ptr[:-1].copy(), problem.release.copy())


# against independent answers --------------------------------------------------------------------------------
def test_small_cases_have_the_expected_terms(shared):
    """44 instances with answers computed elsewhere: their plans are valid, with equal K, terms and levels."""
    checked = 0
    for path in sorted((shared / "bench" / "small_cases").glob("*.expected.json")):
        expected = json.loads(path.read_text())
        compiled = compile_problem(read_instance(path.with_name(path.name.replace(".expected", ""))))
        assert compiled.scale == expected["K"], path.name
        if expected["schedule"] is None:
            continue
        evaluation = evaluate(compiled, schedule_from_dict(expected["schedule"]))
        content = evaluation.to_dict()
        assert content["violations"] == [], path.name
        assert content["terms"] == expected["terms"], path.name
        assert content["levels"] == expected["levels"], path.name
        assert evaluate(compiled, to_schedule(compiled, evaluation.plan)).levels == evaluation.levels
        checked += 1
    assert checked >= 38


def test_forms_and_written_weights_agree(world):
    """A level as solvers see it equals the one computed from terms and written weights."""
    objective = {"levels": [{term: 0.5 + index for index, term in enumerate(TERMS)}]}
    other = compile_problem(instance(objective=objective))
    evaluation = evaluate(other, plan_of(other, {**STARTS, "t6": None, "t7": None}))
    dollars = {**evaluation.terms, "cost": Fraction(evaluation.terms["cost"], 100)}
    value = sum((Fraction(1, 2) + index) * dollars[term] for index, term in enumerate(TERMS))
    assert evaluation.levels == (value * other.scale,)
    view = View(other, full_scope(other), evaluation.plan)
    assert form_value(view, other.levels[0]) == evaluation.levels[0]


def test_ten_thousand_tasks_take_well_under_a_second():
    """The verifier is called for every plan of every solver."""
    tasks = [
        {"id": f"t{i}", "weight": 1 + i % 3, "due_s": 60 * i, "modes": [run("m", 1, 1 + i % 5)]}
        for i in range(10_000)
    ]
    other = problem(tasks=tasks, objective={"levels": [{"weighted_completion": 1, "cost": 1}]})
    ends = np.zeros(4, dtype=int)
    starts = {}
    for i in range(10_000):
        device = int(ends.argmin())
        starts[f"t{i}"] = int(ends[device])
        ends[device] += 1 + i % 5
    plan = plan_of(other, starts, {})
    assert evaluate(other, plan).valid
    began = time.process_time()
    evaluation = evaluate(other, plan)
    assert time.process_time() - began < 0.5
    schedule = to_schedule(other, plan)
    began = time.process_time()
    assert evaluate(other, schedule).levels == evaluation.levels
    assert time.process_time() - began < 1
