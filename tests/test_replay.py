"""Replay: left-shifted plans, and that an optimal one, carried out without any alarm, reaches the optimum."""

import numpy as np
import pytest
from support.online import random_problem
from support.problems import Mode, Replica, Task, make_problem
from support.ticks import broken

from optalloc.evaluation import evaluate
from optalloc.problem import REJECTED, Plan
from optalloc.result import Status
from optalloc.scope import full_scope
from optalloc.simulation import Commit, Simulator, Stage, Wait, follow, left_shifted, replay
from optalloc.solvers.run import solve


def optimal(seed, profile):
    """(problem, optimal plan), or None."""
    problem = random_problem(seed, profile)
    if problem is None:
        return None
    result = solve(problem, "cpsat", threads=1, time_limit=10)
    return (problem, result.plan) if result.status is Status.OPTIMAL else None


@pytest.mark.parametrize("discipline", ["replan", "reserve"])
@pytest.mark.parametrize("profile", ["small", "tiny"])
def test_an_optimal_plan_replayed_reaches_the_optimum(profile, discipline):
    """With its transfers and starts, level by level; the clock stops by itself wherever something begins."""
    found = 0
    for seed in range(24):
        solved = optimal(seed, profile)
        if solved is None:
            continue
        problem, plan = solved
        scope = full_scope(problem)
        shifted = left_shifted(scope, plan)
        assert broken(scope, shifted) == []
        best = evaluate(problem, plan).levels
        assert evaluate(problem, shifted).levels <= best
        simulator = Simulator(scope, discipline, prefetch=True)
        while not simulator.done:
            action = follow(simulator, shifted)
            assert action == Wait() or not isinstance(action, Wait)
            assert action in simulator.actions()
            simulator.apply(action)
        assert simulator.failure == ""
        assert tuple(simulator.values) == best
        assert evaluate(problem, simulator.plan()).levels == best
        found += 1
    assert found >= 12


def test_any_plan_can_be_replayed():
    """Not shifted: the clock is stopped wherever the plan begins something."""
    for seed in range(6):
        solved = optimal(seed, "tiny")
        if solved is not None:
            problem, plan = solved
            simulator = replay(Simulator(full_scope(problem)), plan)
            assert tuple(simulator.values) == evaluate(problem, simulator.plan()).levels
            assert simulator.plan().start.tolist() == plan.start.tolist()


def test_left_shift():
    """One device, a transfer of 3 ticks, storage for one replica; every start is as early as the others allow.

    Replica 0 is brought in [0, 3), t0 reads it in [3, 5); then there is room for replica 1: [5, 6), t1 [6, 8).
    t2 needs no data: [0, 3) stays free for it. The transfer of replica 2 has no reader and goes.
    """
    tasks = [Task([Mode(2, {0: 1}, needs=[0])]), Task([Mode(2, {0: 1}, needs=[1])]), Task([Mode(3, {0: 1})])]
    replicas = [Replica(0, 0, [(3, 7, ())]), Replica(1, 0, [(1, 7, ())]), Replica(2, 0, [(1, 7, ())])]
    problem = make_problem(tasks, replicas=replicas, storage={0: 1})
    moved = [problem.transfer(0, 0, 2), problem.transfer(1, 1, 20), problem.transfer(2, 2, 50)]
    plan = Plan(np.array([0, 1, 2]), np.array([7, 22, 11]), tuple(moved))
    scope = full_scope(problem)
    assert broken(scope, plan) == []
    shifted = left_shifted(scope, plan)
    assert broken(scope, shifted) == []
    assert shifted.start.tolist() == [3, 6, 0]
    assert {(t.replica, t.start) for t in shifted.transfers} == {(0, 0), (1, 5)}


def test_prefetching():
    """t1 is released at 5 and reads what takes 3 ticks to bring and exists from 1: with leave it starts at 5."""
    tasks = [Task([Mode(2, {0: 1})]), Task([Mode(2, {0: 1}, needs=[0])], release=5)]
    problem = make_problem(tasks, replicas=[Replica(0, 0, [(3, 0, ())], available=1)])
    scope = full_scope(problem)
    plan = Plan(np.array([0, 1]), np.array([0, 5]), (problem.transfer(0, 0, 1),))
    without = Simulator(scope)
    assert Stage(0, 0) not in without.actions()
    without.apply(Commit(0, 0))
    assert without.next_event == 2
    with_leave = Simulator(scope, prefetch=True)
    with_leave.apply(Commit(0, 0))
    assert with_leave.next_event == 1
    with_leave.apply(Wait())
    assert Stage(0, 0) in with_leave.actions()
    assert replay(with_leave, plan).values == [2 + 7]
    assert follow(without, plan) == Wait(1)


def test_rejections_are_replayed():
    """At the first moment at which the task waits."""
    tasks = [Task([Mode(4, {0: 1})], penalty=1), Task([Mode(1, {0: 1})])]
    problem = make_problem(tasks, levels=[{"weighted_completion": 1, "rejected": 1}])
    plan = Plan(np.array([REJECTED, 1]), np.array([0, 0]))
    assert replay(Simulator(full_scope(problem)), plan).values == [2]


def test_what_cannot_be_replayed_is_refused():
    """Two runs at once on one device; a task left open; a start that is past."""
    problem = make_problem([Task([Mode(2, {0: 1})]), Task([Mode(2, {0: 1})])])
    scope = full_scope(problem)
    for discipline, message in (("reserve", "Task 1 cannot start at 0"), ("replan", "too late")):
        with pytest.raises(ValueError, match=message):
            replay(Simulator(scope, discipline), Plan(np.array([0, 1]), np.array([0, 0])))
    with pytest.raises(ValueError, match="begins nothing any more"):
        replay(Simulator(scope), Plan(np.array([0, -3]), np.array([0, 0])))
    simulator = Simulator(scope)
    simulator.apply(Commit(0, 0))
    simulator.apply(Wait())
    with pytest.raises(ValueError, match="too late"):
        replay(simulator, Plan(np.array([0, 1]), np.array([0, 1])))
    with pytest.raises(ValueError, match="breaks a rule"):
        left_shifted(scope, Plan(np.array([0, 1]), np.array([0, 0])))
