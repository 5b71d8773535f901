"""Demonstrations: what is shown is what the plan does."""

import numpy as np
import pytest
from support.learned import random_weights
from support.online import compiled, drawn

from optalloc.evaluation import evaluate
from optalloc.problem import Plan
from optalloc.scope import full_scope
from optalloc.simulation import Simulator
from optalloc.solvers.learned.board import LATER
from optalloc.solvers.learned.demonstrations import PlanScorer, better_plan, shown_decisions
from optalloc.solvers.learned.ground import Ground
from optalloc.solvers.learned.policy import run_episode
from optalloc.solvers.learned.rule import RuleScorer
from optalloc.solvers.learned.schedulers import SCHEDULERS


def shown_plan(preset: str, seed: int) -> tuple[Ground, Plan]:
    """An instance, and a plan of it that is better than the rule's."""
    ground = Ground(compiled(drawn(preset, 10, seed)))
    plan = better_plan(ground, RuleScorer(), 300)
    assert plan is not None
    return ground, plan


def guided(ground: Ground, plan: Plan, name: str = "fdqn") -> Plan:
    """What a scheduler with random weights does under the guidance of a plan."""
    scorer = SCHEDULERS[name].make(random_weights(name))
    scorer.guide = PlanScorer(plan)
    return run_episode(ground, Simulator(full_scope(ground.problem)), scorer).firm.plan()


# labels -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["fdqn", "additive", "flat-dqn"])
@pytest.mark.parametrize("case", [("edge", 1), ("geo", 1), ("ladder", 2), ("pipeline", 2), ("market", 3)])
def test_a_guided_scheduler_carries_out_the_plan(case, name):
    """Every mode and start of it, level by level, where it brings no data before their readers are seen."""
    ground, plan = shown_plan(*case)
    assert (
        evaluate(ground.problem, guided(ground, plan, name)).levels == evaluate(ground.problem, plan).levels
    )
    found = guided(ground, plan, name)
    np.testing.assert_array_equal(found.mode, plan.mode)
    np.testing.assert_array_equal(found.start, plan.start)


@pytest.mark.parametrize("case", [("market", 1), ("contended", 2)])
def test_what_is_brought_too_early_to_be_shown_keeps_its_mode(case):
    """The plans move data before the tasks that read them are seen: other starts, in the same modes."""
    ground, plan = shown_plan(*case)
    found = guided(ground, plan)
    np.testing.assert_array_equal(found.mode, plan.mode)
    assert (found.start != plan.start).any()


def test_a_plan_without_waiting_is_another_one():
    """The test above would see it if tasks took room that the plan keeps."""

    class Hasty(PlanScorer):
        def row(self, event, position, choice):
            found = super().row(event, position, choice)
            return self._planned(event, choice) if choice.at[found] == LATER else found

    ground, plan = shown_plan("market", 3)
    found = run_episode(ground, Simulator(full_scope(ground.problem)), Hasty(plan)).firm.plan()
    assert (found.start != plan.start).any()


def test_decisions_are_shown_where_something_begins():
    """Once for each task, and where one is left for later; the scorer is its own master again."""
    ground, plan = shown_plan("market", 3)
    scorer = SCHEDULERS["fdqn"].make(random_weights("fdqn"))
    steps = shown_decisions(ground, scorer, plan)
    assert scorer.guide is None
    assert scorer.steps is None
    guide = PlanScorer(plan)
    run_episode(ground, Simulator(full_scope(ground.problem)), guide)
    assert len(steps) == sum(guide.begins) < len(guide.begins)
    assert len(steps) >= ground.problem.num_tasks


def test_the_search_makes_plans_better_and_the_same_again():
    """Never worse than the scheduler's own; by its steps it can be repeated."""
    better = 0
    for preset in ("market", "contended", "edge"):
        ground, plan = shown_plan(preset, 2)
        own = run_episode(ground, Simulator(full_scope(ground.problem)), RuleScorer())
        value = evaluate(ground.problem, plan).levels[0]
        assert value <= own.values[0]
        better += value < own.values[0]
        again = shown_plan(preset, 2)[1]
        np.testing.assert_array_equal(again.mode, plan.mode)
        np.testing.assert_array_equal(again.start, plan.start)
    assert better == 3
