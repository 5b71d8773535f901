"""Reduced-cost fixing: the incumbent survives, and the optimum stays where it is."""

from dataclasses import replace

import numpy as np
import pytest
from support.random_instances import random_instance

import optalloc as oa
from optalloc.generators import generate
from optalloc.instance import read_instance
from optalloc.scope import full_scope, windows
from optalloc.solvers.base import Monitor, Request
from optalloc.solvers.price_bound import price_bound
from optalloc.solvers.prices.ascent import Settings, Stage
from optalloc.solvers.prices.fixing import narrowed_windows, starts_to_look_at
from optalloc.solvers.registry import get_solver

QUICK = Settings(stages=(Stage(20, 12, 1.0, 0.05), Stage(60, 8, 0.3, 0.05)))


def fixed(problem, plan):
    """Windows narrowed by a quick price bound and the value of ``plan``."""
    scope = full_scope(problem)
    monitor = Monitor(scope, 60)
    monitor.offer(plan, "start")
    proof = price_bound(scope, monitor, 0, plan=plan, settings=QUICK).proof
    return narrowed_windows(proof, monitor.values[0])


@pytest.mark.parametrize("preset", ["ladder", "geo", "edge", "market", "contended", "pipeline"])
def test_the_incumbent_survives_fixing(preset):
    """Every run of the plan that gives the upper bound is still allowed."""
    problem = oa.compile(generate(preset, tasks=8, seed=2))
    plan = oa.solve(problem, "joint-greedy").plan or oa.solve(problem, "cpsat", time_limit=20).plan
    narrowed = fixed(problem, plan)
    for mode, start in zip(plan.mode.tolist(), plan.start.tolist(), strict=True):
        if mode >= 0:
            assert narrowed.earliest[mode] <= start <= narrowed.latest[mode]


def test_fixing_rules_out_most_starts_of_a_congested_instance():
    """Otherwise it would be of no use: less than a third of the starts is left, and fewer modes."""
    problem = oa.compile(generate("ladder", tasks=12, seed=1))
    before = windows(full_scope(problem))
    after = fixed(problem, oa.solve(problem, "cpsat", time_limit=10, threads=1).plan)
    counts = [(w.latest - w.earliest + 1).clip(0)[w.open].sum() for w in (before, after)]
    assert counts[1] * 3 < counts[0]
    assert after.open.sum() < before.open.sum()


def test_a_gap_that_64_bits_cannot_hold_rules_nothing_out():
    """Sums over all tasks may be larger than what one task can cost."""
    scope = full_scope(oa.compile(generate("ladder", tasks=6, seed=1)))
    proof = price_bound(scope, Monitor(scope, 60), 0, settings=QUICK).proof
    far = replace(proof, total=-(2**70))
    before, after = windows(scope), narrowed_windows(far, 10**9)
    assert starts_to_look_at(far, 10**9) > 0
    assert np.array_equal(after.open, before.open)
    assert np.array_equal(after.latest[after.open], before.latest[before.open])


@pytest.mark.parametrize("chunk", range(3))
def test_the_optimum_stays_where_it_is(chunk):
    """CP-SAT with windows fixed by a rule's plan finds the same optimum as without."""
    compared = 0
    for seed in range(15 * chunk, 15 * chunk + 15):
        problem = oa.compile(read_instance(random_instance(seed)))
        free = oa.solve(problem, "cpsat", time_limit=20, threads=1)
        start = oa.solve(problem, "joint-greedy")
        if free.status != "OPTIMAL" or start.plan is None:
            continue
        scope = full_scope(problem)
        monitor = Monitor(scope, 20)
        monitor.offer(start.plan, "start")
        request = Request(scope, monitor, start=start.plan, windows={0: fixed(problem, start.plan)})
        get_solver("cpsat").run(request)
        assert monitor.values == tuple(level.objective for level in free.levels), seed
        compared += 1
    assert compared >= 4
