"""The placement kernel within a scope: what is fixed, what is left out, and when it begins."""

from dataclasses import replace

import numpy as np
import pytest
from support.random_instances import random_instance

from optalloc.compilation import compile as compile_problem
from optalloc.errors import InputError
from optalloc.evaluation import evaluate
from optalloc.instance import read_instance
from optalloc.placement import Timetable
from optalloc.problem import ABSENT, FREE, Plan, Problem
from optalloc.scope import Scope, full_scope
from optalloc.solvers.rules import RULES, DeadEnd, run_rule


def problems(profile, seeds):
    for seed in seeds:
        try:
            problem = compile_problem(read_instance(random_instance(seed, profile)))
        except InputError:
            continue
        if not problem.impossible:
            yield seed, problem


def halfway(problem: Problem, rng: np.random.Generator) -> Scope | None:
    """What is under way at some tick of a random plan is fixed, one task does not exist, the rest is open."""
    scope = full_scope(problem)
    try:
        plan = run_rule(RULES["random"], scope, int(rng.integers(100)))
    except DeadEnd:
        return None
    tick = int(rng.integers(0, 12))
    begun = (plan.mode >= 0) & (plan.start < tick)
    mode = np.where(scope.free, np.where(begun, plan.mode, FREE), scope.mode)
    transfers = tuple(t for t in plan.transfers if t.start < tick)
    # A task that nothing comes after may be left out of the solve.
    leaves = [j for j in range(problem.num_tasks) if mode[j] == FREE and not problem.successors[j]]
    if leaves:
        mode[int(rng.choice(leaves))] = ABSENT
    return Scope(problem, mode, plan.start, transfers, not_before=tick)


@pytest.mark.parametrize("profile", ["small", "tiny", "medium"])
def test_rules_respect_what_is_fixed(profile):
    """A plan that goes on from a plan under way keeps it, begins at ``not_before``, and breaks no rule."""
    found = 0
    for seed, problem in problems(profile, range(14)):
        rng = np.random.default_rng(seed)
        scope = halfway(problem, rng)
        if scope is None:
            continue
        for name in ("fifo", "joint-greedy", "cheapest", "random"):
            try:
                plan = run_rule(RULES[name], scope, seed)
            except DeadEnd:
                continue
            assert evaluate(problem, plan, scope=scope).violations == (), (problem, name)
            found += 1
    assert found >= 8


@pytest.mark.parametrize("profile", ["small", "medium"])
def test_tasks_may_be_taken_out_and_put_back(profile):
    """Removing random tasks and placing them again, as local search does, never breaks a rule."""
    moved = 0
    for seed, problem in problems(profile, range(8)):
        scope = full_scope(replace(problem, limits=()))
        try:
            plan = run_rule(RULES["random"], scope, seed)
        except DeadEnd:
            continue
        moved += shuffle(scope, plan, np.random.default_rng(seed))
    assert moved > 10


def shuffle(scope: Scope, plan: Plan, rng: np.random.Generator) -> int:
    """Number of tasks that found a place again."""
    table = Timetable(scope)
    table.adopt(plan)
    assert (table.plan().mode == plan.mode).all()
    assert (table.plan().start == plan.start).all()
    assert set(table.transfers) == set(plan.transfers)
    moved = 0
    for task in rng.choice(scope.problem.num_tasks, size=20).tolist():
        if not scope.free[task] or table.mode[task] < 0:
            continue
        before = table.copy()
        table.remove(task)
        # Its successors stay where they are: the task has to end in time for them.
        placement = table.earliest(task, int(rng.choice(scope.problem.modes_of(task))))
        if placement is None:
            table = before
            continue
        table.commit(placement)
        moved += 1
        assert evaluate(scope.problem, table.plan(), scope=scope).violations == ()
    return moved


def test_a_staged_dataset_that_nobody_can_read_takes_storage():
    """Site s1 has room for 10 GB; the state brings 4 GB there in [0, 5) that no task can use: 7 GB fit from 5 on."""
    instance = {
        "format": "optalloc-instance/1",
        "name": "ballast",
        "tick_seconds": 1,
        "sites": [{"id": "s0"}, {"id": "s1", "storage_gb": 10}],
        "links": [{"id": "l", "from": "s0", "to": "s1", "bandwidth_gbps": 8}],
        "datasets": [
            {"id": "d", "size_gb": 7, "sites": ["s0"]},
            {"id": "x", "size_gb": 4.5, "sites": ["s0"]},
        ],
        "device_types": [{"id": "a"}],
        "nodes": [{"id": "n", "site": "s1", "device_type": "a", "devices": 1, "usd_per_device_hour": 0}],
        "tasks": [
            {
                "id": "t",
                "modes": [
                    {"id": "m", "uses": [{"node": "n", "devices": 1}], "duration_ticks": 4, "datasets": ["d"]}
                ],
            }
        ],
        "state": {"transfers": [{"dataset": "x", "site": "s1", "route": ["l"], "start": 0}]},
    }
    problem = compile_problem(read_instance(instance))
    scope = full_scope(problem)
    placement = Timetable(scope).earliest(0, problem.modes_of(0).item(0))
    assert (placement.transfers[0].start, placement.start) == (5, 12)
    table = Timetable(scope)
    table.commit(placement)
    assert evaluate(problem, table.plan(), scope=scope).violations == ()
