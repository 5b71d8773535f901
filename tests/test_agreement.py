"""Enumeration, the time-indexed MILP and CP-SAT give the same integers on random instances with every feature.

Enumeration works from the independent mode table: it shares nothing with the library. A wrong reading of a rule
on either side, a lost optimum in dominance or window shrinking, a wrong bound: all end as a disagreement here.
"""

import dataclasses
import functools
import json
from fractions import Fraction
from typing import Any

import pytest
from support import evaluator, mode_table
from support.binding_seeds import BINDING
from support.oracle import Answer, TooLarge, enumerate_optimum
from support.random_instances import REMOVALS, random_instance, without

import optalloc as oa
from optalloc.instance import read_instance
from optalloc.schedule.files import schedule_from_dict

METHODS = ("highs", "cpsat")
MOST_STEPS = 50_000
"""What enumeration may try; larger instances are compared between the two methods only."""
EXTRA = {(p, s) for seeds in BINDING.values() for p, of in seeds.items() for s in of}
ENUMERATED = sorted({("small", s) for s in range(135)} | {("tiny", s) for s in range(155)} | EXTRA)
BATCH = 12
BATCHES = [ENUMERATED[first : first + BATCH] for first in range(0, len(ENUMERATED), BATCH)]
MEDIUM = sorted(set(range(80)) - {16, 49, 75})
"""The time-indexed MILP needs longer for those that are left out."""


@functools.cache
def enumerated(profile: str, seed: int) -> Answer | None:
    """What enumeration says; None if the instance is too large for it."""
    try:
        return enumerate_optimum(random_instance(seed, profile), most_steps=MOST_STEPS)
    except TooLarge:
        return None


def compiled(profile: str, seed: int) -> oa.Problem:
    return oa.compile(read_instance(random_instance(seed, profile)))


def solve(problem: oa.Problem, method: str, **settings: Any) -> tuple[str, list[int | None], oa.Result]:
    """Status and objectives by an exact method, whose claims must hold together."""
    result = oa.solve(problem, method, time_limit=120, threads=1, **settings)
    assert result.status in ("OPTIMAL", "INFEASIBLE"), (method, result.status, result.message)
    assert result.termination == "PROVEN"
    if result.status == "INFEASIBLE":
        assert result.schedule is None
        return result.status, [], result
    values = [level.objective for level in result.levels]
    assert [level.bound for level in result.levels] == values
    return result.status, values, result


def check_plan(table: mode_table.Table, result: oa.Result) -> None:
    """The plan of a method keeps every rule as read a second time, with the terms the library reports."""
    assert result.schedule is not None
    assert result.evaluation is not None
    plan = evaluator.read_plan(table, json.loads(json.dumps(result.schedule.to_dict())))
    assert not evaluator.broken_rules(table, plan)
    terms = {term: Fraction(value) for term, value in result.evaluation.terms.items()}
    assert terms == evaluator.terms(table, plan)
    assert [level.objective for level in result.levels] == evaluator.level_values(table, plan)


def check_enumerated_plan(problem: oa.Problem, answer: Answer) -> None:
    """The plan of enumeration passes the verifier of the library with the same levels."""
    assert answer.plan is not None
    document = evaluator.write_plan(answer.table, answer.plan)
    document["instance_sha256"] = problem.instance.sha256
    evaluation = oa.evaluate(problem, schedule_from_dict(document))
    assert evaluation.valid, evaluation.violations
    assert list(evaluation.levels) == answer.levels


def check(profile: str, seed: int, answer: Answer | None) -> None:
    """All methods agree on one instance."""
    problem = compiled(profile, seed)
    table = answer.table if answer else mode_table.build(random_instance(seed, profile))
    said = {}
    for method in METHODS:
        status, values, result = solve(problem, method)
        said[method] = (status, values)
        if status == "OPTIMAL":
            check_plan(table, result)
    if answer is not None:
        assert problem.scale == answer.scale
        said["enumeration"] = (answer.status, list(answer.levels))
        if answer.plan is not None:
            check_enumerated_plan(problem, answer)
    assert len({json.dumps(claim) for claim in said.values()}) == 1, said


@pytest.mark.parametrize("batch", BATCHES, ids=lambda batch: f"{'-'.join(map(str, batch[0]))}")
def test_enumeration_and_both_methods_agree(batch: list[tuple[str, int]]) -> None:
    """Same status and same integers on every level, feasible or not, and every plan is valid both ways."""
    for profile, seed in batch:
        try:
            check(profile, seed, enumerated(profile, seed))
        except Exception as error:
            error.add_note(f"instance: random_instance({seed}, {profile!r})")
            raise


@pytest.mark.parametrize("seed", MEDIUM)
def test_both_methods_agree_on_more_tasks(seed: int) -> None:
    """6 to 10 tasks, too many to enumerate."""
    check("medium", seed, None)


def test_enough_instances_of_every_kind() -> None:
    """At least 300 enumerated ones, feasible and infeasible, some of them by start ticks; 60 larger ones."""
    answers = [enumerated(*instance) for instance in ENUMERATED]
    done = [answer for answer in answers if answer is not None]
    assert len(done) >= 300
    assert sum(a.status == "INFEASIBLE" for a in done) >= 20
    assert sum(a.ticked > 0 for a in done) >= 20
    assert sum(len(a.levels) > 1 for a in done) >= 50
    assert len(MEDIUM) >= 60


def unscaled(answer: Answer | None) -> Any:
    """Status and levels in units of the instance, K taken out; None if there is no answer."""
    return answer and (answer.status, [Fraction(value, answer.scale) for value in answer.levels])


@pytest.mark.parametrize("feature", REMOVALS)
def test_features_bind(feature: str) -> None:
    """Without the feature the optimum is another one, in at least ten of the enumerated instances."""
    changed = 0
    for profile, seeds in BINDING[feature].items():
        for seed in seeds:
            instance = without(random_instance(seed, profile), feature)
            changed += unscaled(enumerated(profile, seed)) != unscaled(enumerate_optimum(instance))
    assert changed >= 10


@pytest.mark.parametrize("seed", range(40))
def test_both_methods_agree_on_what_is_left_to_decide(seed: int) -> None:
    """Half of an optimal plan is fixed: nothing is lost. Nothing else before some tick: the methods agree."""
    problem = compiled("small", seed)
    status, values, result = solve(problem, "cpsat")
    others: list[dict[str, Any]] = [{"not_before": 2}, {"tasks": problem.task_ids[::2]}]
    if result.schedule is not None:
        fixed = half(result.schedule)
        others.append({"not_before": 3, "fixed": fixed})
        for method in METHODS:
            assert solve(problem, method, fixed=fixed)[:2] == (status, values)
    for settings in others:
        first, second = (solve(problem, method, **settings)[:2] for method in METHODS)
        assert first == second, settings


def half(schedule: oa.Schedule) -> oa.Schedule:
    """Every other task of a plan with the transfers that it reads."""
    entries = schedule.tasks[::2]
    read = {
        (i.dataset, i.access) for entry in entries if entry.choice is not None for i in entry.choice.inputs
    }
    moves = tuple(move for move in schedule.transfers if (move.dataset, "staged") in read)
    return dataclasses.replace(schedule, tasks=entries, transfers=moves)


@pytest.mark.parametrize(("profile", "seed"), [(p, s) for p in ("small", "tiny") for s in range(8)])
def test_no_other_method_contradicts_enumeration(profile: str, seed: int) -> None:
    """Every registered rule and policy: valid plans only, none better than the optimum, no false claim."""
    answer = enumerated(profile, seed)
    assert answer is not None
    problem = compiled(profile, seed)
    for name in [*oa.solver_names("rules"), *oa.solver_names("online")]:
        result = oa.solve(problem, name, time_limit=20, threads=1)
        assert result.status in ("FEASIBLE", "OPTIMAL", "NO_SOLUTION", "INFEASIBLE"), (name, result.message)
        if result.schedule is None:
            assert result.status == "NO_SOLUTION" or answer.plan is None, name
            continue
        plan = evaluator.read_plan(answer.table, json.loads(json.dumps(result.schedule.to_dict())))
        assert not evaluator.broken_rules(answer.table, plan), name
        values = evaluator.level_values(answer.table, plan)
        assert values >= answer.levels, name
        assert result.status == "FEASIBLE" or values == answer.levels, name
