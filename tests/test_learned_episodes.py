"""What learners are told of an episode: it adds up to the objective, and nothing that is worse looks better."""

from typing import Any

import numpy as np
import pytest
import torch
from support.learned import random_weights
from support.online import compiled, drawn, random_problem

from optalloc.problem import REJECTED
from optalloc.scope import full_scope
from optalloc.simulation import Simulator
from optalloc.solvers.learned.board import LATER, REJECT, Board
from optalloc.solvers.learned.episodes import Episode, Explorer, Regret, play, watch
from optalloc.solvers.learned.fdqn import Batch
from optalloc.solvers.learned.ground import Ground
from optalloc.solvers.learned.learners import make_trainer, training_args
from optalloc.solvers.learned.network import Network
from optalloc.solvers.learned.reinforce import Time, advantages
from optalloc.solvers.learned.rule import RuleScorer
from optalloc.solvers.learned.schedulers import SCHEDULERS
from optalloc.solvers.learned.scorer import Step


def ground_of(preset: str, tasks: int, seed: int) -> Ground:
    """A generated instance."""
    return Ground(compiled(drawn(preset, tasks, seed)))


# regret -------------------------------------------------------------------------------------------
def test_the_regret_grows_by_the_same_as_the_objective():
    """With every term and feature, whatever is decided; beside the rule it ends with the difference to it."""
    differ = 0
    for seed in range(100, 160):
        problem = random_problem(seed, "small")
        if problem is None:
            continue
        ground = Ground(problem)
        path, objective = watch(ground, RuleScorer())
        scorer = SCHEDULERS["fdqn"].make(random_weights("fdqn", seed))
        own, beside = play(ground, scorer), play(ground, scorer, path)
        if objective is None or own.objective is None:
            continue
        more = (own.objective - objective) / Regret(ground).unit
        grown, by_rule = own.regret[-1] - own.regret[0], path[0][-1] - path[0][0]
        assert grown - by_rule == pytest.approx(more, rel=1e-6, abs=1e-6), seed
        assert beside.regret[-1] == pytest.approx(more, rel=1e-6, abs=1e-6), seed
        differ += more != 0
    assert differ >= 10


def test_the_regret_does_not_depend_on_the_hour():
    """Makespan and completion count from the releases on: all of them later, the same growth."""
    grown = []
    for later in (1000, 3000):
        document = drawn("pipeline", 10, 1)
        for task in document["tasks"]:
            task["release_s"] = task.get("release_s", 0) + later * document["tick_seconds"]
        grown.append(np.diff(watch(Ground(compiled(document)), RuleScorer())[0][0]))
    np.testing.assert_allclose(*grown, rtol=0, atol=1e-6)


class Failing(RuleScorer):
    """Decides at the first event, at which it ends."""

    def task(self, event, positions):
        event.board.simulator.fail("no way on")
        return super().task(event, positions)


def test_a_dead_end_costs_what_is_left_also_where_it_was_never_seen():
    """Tasks not released by then are no gain."""
    ground = ground_of("contended", 10, 1)
    unseen = int((ground.problem.release > ground.problem.release.min()).sum())
    (path, clock), objective = watch(ground, Failing())
    assert objective is None
    assert clock[-1] == ground.problem.release.min()
    assert unseen >= 5
    assert path[-1] - path[0] > unseen


# reinforce ----------------------------------------------------------------------------------------
def test_who_ends_first_is_no_worse_for_it():
    """Two runs that come to the same have no gain over each other."""
    steps = [Step(np.zeros(2, np.float32))] * 2
    runs = [
        Episode(steps, np.array([0.0, 1, 4]), np.array([0, 1, 2]), 1.0, 7),
        Episode(steps, np.array([0.0, 2, 4]), np.array([0, 1, 5]), 1.0, 7),
    ]
    gains = advantages(runs, 64)
    assert (gains[0], gains[2]) == (0, 0)
    assert gains[1] < 0 < gains[3]


class Rejecting(RuleScorer):
    """Wherever it may."""

    def row(self, event, position, choice):
        there = np.flatnonzero(choice.at == REJECT)
        return int(there[0]) if len(there) else super().row(event, position, choice)


def test_rejecting_saves_no_time():
    """Rejected tasks count until the last end, and time in the system never falls."""
    ground, boards = ground_of("edge", 12, 1), []

    class Watching(Time):
        def __call__(self, board):
            boards.append(board)
            return super().__call__(board)

    (path, clock), _ = watch(ground, Rejecting(), Watching(ground, 1.0))
    firm, release = boards[-1].simulator.firm, ground.problem.release
    mode, last = np.array(firm.mode), max(firm.makespan, clock[-1])
    rejected = last - release[mode == REJECTED]
    placed = (np.array(firm.end) - release)[mode >= 0]
    assert len(rejected) >= 3
    assert path[-1] * ground.isolated.duration.mean() == pytest.approx(placed.sum() + rejected.sum() + last)
    assert np.diff(path).min() >= -1e-9


def test_the_policy_that_learns_is_the_one_that_acts():
    """At every level, after it has learned something."""
    args = training_args("reinforce", {"tasks": 6, "runs": 2, "learning_rate": 0.05, "iterations": 1})
    trainer = make_trainer("reinforce", args)
    trainer.iterate(0)
    trainer.iterate(1)
    scorer = trainer.scorer(trainer.weights)
    scorer.choose = Explorer(np.random.default_rng(0), 1.0, 1.0)
    steps = play(ground_of("market", 20, 1), scorer).steps
    network = Network(trainer.weights)
    acts = np.concatenate(
        [network.residual(pick.level, pick.options) for step in steps for pick in step.picks]
    )
    with torch.no_grad():
        learns = trainer.online.advantage(Batch.of(steps)).numpy()
    assert {pick.level for step in steps for pick in step.picks} == {0, 1, 2, 3}
    assert np.abs(acts).max() > 0.1
    np.testing.assert_allclose(learns, acts, rtol=0, atol=1e-4)


# what can be decided ------------------------------------------------------------------------------
def mode(ticks: int, *datasets: str) -> dict[str, Any]:
    """A run on one of two devices."""
    uses = [{"node": "n", "devices": 1}]
    return {"id": "only", "uses": uses, "duration_ticks": ticks, "datasets": [*datasets]}


@pytest.mark.parametrize(
    ("facts", "offered"),
    [
        ({}, True),
        ({"deadline_s": 6 * 60}, False),
        ({"deadline_s": 7 * 60}, True),
        ({"deadline_s": 6 * 60, "reject_penalty": 5}, True),
    ],
)
def test_what_must_run_is_not_left_until_it_is_too_late(facts, offered):
    """The next event is the end of x at 4; y takes 3 ticks."""
    assert offered_later(two_tasks({"modes": [mode(3)], **facts})) is offered


@pytest.mark.parametrize(("minutes", "offered"), [(9, False), (11, False), (12, True)])
def test_data_that_have_to_come_first_count(minutes, offered):
    """They take 5 ticks from the event at 4 on, and the run 3; begun now it would end at 8."""
    document = two_tasks({"modes": [mode(3, "d")], "deadline_s": 60 * minutes})
    document["sites"].append({"id": "b"})
    document["links"] = [{"id": "l", "from": "b", "to": "a", "bandwidth_gbps": 0.08}]
    document["datasets"] = [{"id": "d", "size_gb": 3, "sites": ["b"]}]
    assert offered_later(document) is offered


def two_tasks(facts):
    """x ends at 4."""
    return {
        "format": "optalloc-instance/1",
        "name": "two",
        "tick_seconds": 60,
        "money_unit_usd": 0.01,
        "sites": [{"id": "a"}],
        "links": [],
        "datasets": [],
        "device_types": [{"id": "t"}],
        "nodes": [{"id": "n", "site": "a", "device_type": "t", "devices": 2}],
        "models": [],
        "throughputs": [],
        "tasks": [{"id": "x", "modes": [mode(4)]}, {"id": "y", **facts}],
        "objective": {"levels": [{"weighted_completion": 1, "rejected": 1}]},
    }


def offered_later(document):
    """Whether y, which could start now, may be left for later once x is decided."""
    ground = Ground(compiled(document))
    simulator = Simulator(full_scope(ground.problem))
    board = Board(ground, simulator)
    board.begin()
    board.decide(0, int(board.choice(0).at[0]))
    assert simulator.next_known_event == 4
    choice = board.choice(board.tasks.index(1))
    assert choice.at.max() >= 0
    return LATER in choice.at
