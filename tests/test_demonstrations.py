"""Demonstrations: the labels are the plan's, and imitating them makes a scheduler decide alike."""

import numpy as np
import pytest
import torch
from support.learned import random_weights
from support.online import compiled, drawn

from optalloc.errors import InputError
from optalloc.evaluation import evaluate
from optalloc.problem import Plan
from optalloc.scope import full_scope
from optalloc.simulation import Simulator
from optalloc.solvers.learned import fdqn
from optalloc.solvers.learned.board import LATER
from optalloc.solvers.learned.demonstrations import PlanScorer, better_plan, shown_decisions
from optalloc.solvers.learned.fdqn import Batch, surprise
from optalloc.solvers.learned.files import RunFiles
from optalloc.solvers.learned.ground import Ground
from optalloc.solvers.learned.learners import make_trainer, training_args
from optalloc.solvers.learned.network import TASK_LEVEL
from optalloc.solvers.learned.policy import run_episode
from optalloc.solvers.learned.rule import RuleScorer
from optalloc.solvers.learned.schedulers import SCHEDULERS
from optalloc.solvers.learned.scorer import Pick, Step
from optalloc.solvers.learned.training import run_training

SETTINGS = {
    "preset": "market", "tasks": 8, "minutes": 0, "iterations": 8, "judges": 1, "judge_every": 8, "batch": 64,
    "demonstrations": 8, "demonstration_steps": 200, "demonstration_updates": 40, "learning_rate": 1e-3,
}  # fmt: skip


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


class Hasty(PlanScorer):
    """Waits for nobody."""

    def row(self, event, position, choice):
        found = super().row(event, position, choice)
        return self._planned(event, choice) if choice.at[found] == LATER else found


class Backward(PlanScorer):
    """The last task first."""

    def task(self, event, positions):
        return int(self.start[event.board.waiting[positions]].argmax())


@pytest.mark.parametrize(
    ("case", "other"), [(("market", 3), Hasty), (("pipeline", 6), Backward), (("edge", 12), Backward)]
)
def test_a_plan_told_otherwise_is_another_one(case, other):
    """The tests above would see tasks that take room which the plan keeps, and tasks in another order."""
    ground, plan = shown_plan(*case)
    for guide, alike in ((PlanScorer(plan), True), (other(plan), False)):
        found = run_episode(ground, Simulator(full_scope(ground.problem)), guide).firm.plan()
        assert ((found.start == plan.start).all() and (found.mode == plan.mode).all()) == alike


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


# imitation ----------------------------------------------------------------------------------------
def test_surprise_is_the_negative_log_probability():
    """Of softmax, by hand: e^2 / (e^2 + e^1), and one of three alike."""
    zeros = np.zeros
    step = Step(
        zeros(2, np.float32),
        [
            Pick(0, zeros((2, 1), np.float32), zeros(2, np.float32), 0),
            Pick(1, zeros((3, 1), np.float32), zeros(3, np.float32), 2),
        ],
    )
    found = surprise(torch.tensor([1.0, 0.5, 7.0, 7.0, 7.0]), Batch.of([step]), 0.5)
    np.testing.assert_allclose(found.numpy(), [np.log(1 + np.exp(-1)), np.log(3)], rtol=1e-6)


def agreement(trainer, steps):
    """Share of the shown choices below the task that the scheduler would take."""
    network = trainer.scorer(trainer.weights).network
    picks = [pick for step in steps for pick in step.picks if pick.level != TASK_LEVEL]
    taken = [(pick.score + network.residual(pick.level, pick.options)).argmax() for pick in picks]
    return float(np.mean([one == pick.chosen for one, pick in zip(taken, picks, strict=True)]))


def imitated():
    """A trainer before and after its demonstrations: the losses, and how much it agrees."""
    before, trainer = (make_trainer("fdqn", training_args("fdqn", SETTINGS)) for _ in range(2))
    losses = [trainer.iterate(number)["loss"] for number in range(8)]
    return losses, agreement(before, trainer.shown), agreement(trainer, trainer.shown)


def test_imitation_makes_the_scheduler_decide_alike():
    """The loss falls, and the scheduler takes more of what was shown."""
    losses, before, after = imitated()
    assert losses[-1] < 0.9 * losses[0]
    assert after > before + 0.05


def test_imitating_the_opposite_does_not(monkeypatch):
    """The margin tells them apart."""
    monkeypatch.setattr(fdqn, "surprise", lambda *args: -surprise(*args).clamp(max=5))
    _, before, after = imitated()
    assert after < before


@pytest.mark.parametrize("name", ["fdqn", "additive", "bdq", "flat-dqn"])
def test_after_the_demonstrations_comes_q_learning(name):
    """The same seed learns the same, and each part has its iterations."""
    few = {"tasks": 5, "demonstrations": 2, "warm_up": 1, "decisions_per_update": 2}
    args = training_args(name, SETTINGS | few)
    facts, weights = [], []
    for _ in range(2):
        trainer = make_trainer(name, args)
        facts.append([trainer.iterate(number) for number in range(4)])
        weights.append(trainer.weights)
    assert facts[0] == facts[1]
    assert all(weights[0][one].tobytes() == weights[1][one].tobytes() for one in weights[0])
    assert ["regret" in one for one in facts[0]] == [False, False, True, True]


def test_a_search_without_end_is_refused():
    """No steps would be no limit."""
    with pytest.raises(InputError, match="demonstration_steps: must be a whole number of at least 1"):
        training_args("fdqn", {"demonstration_steps": 0})


def test_a_resumed_run_has_the_same_demonstrations(tmp_path):
    """Plans are kept in its state and told again, without another search."""
    settings = SETTINGS | {"tasks": 5, "iterations": 2, "demonstrations": 3, "judge_every": 2}
    args, longer = (training_args("fdqn", settings | {"iterations": end}) for end in (2, 4))
    begun = make_trainer("fdqn", args)
    run_training(begun, args, keep=RunFiles(tmp_path, "fdqn", args).keep)
    files, trainer = RunFiles(tmp_path, "fdqn", longer), make_trainer("fdqn", longer)
    resumed = files.resume(trainer)
    assert len(trainer.shown) == len(begun.shown) > 0
    for one, other in zip(trainer.shown, begun.shown, strict=True):
        assert one.state.tobytes() == other.state.tobytes()
        assert [(p.level, p.chosen, p.options.tobytes()) for p in one.picks] == [
            (p.level, p.chosen, p.options.tobytes()) for p in other.picks
        ]
    run_training(trainer, longer, resumed=resumed, keep=files.keep)
    assert sorted(trainer.plans) == [0, 1, 2]
