"""Episodes with decisions of several kinds, for the tests of the environment."""

from collections.abc import Callable, Iterator
from random import Random

import numpy as np

from optalloc.environment import Episode
from optalloc.problem import Problem
from optalloc.scope import full_scope
from optalloc.simulation import Commit, follow, left_shifted
from support.online import random_problem

Choose = Callable[[Episode], int]
"""The position of an option among those of a decision."""


def one_level(profile: str, seeds: range) -> Iterator[tuple[int, Problem]]:
    """Random problems with every feature but levels."""
    for seed in seeds:
        problem = random_problem(seed, profile)
        if problem is not None and len(problem.levels) == 1:
            yield seed, problem


def at_random(seed: int, eager: float = 0.5) -> Choose:
    """Any possible option; with probability ``eager`` a commitment, where there is one."""
    draw = Random(seed)

    def choose(episode: Episode) -> int:
        decision = episode.decision
        commits = np.flatnonzero(decision.open).tolist()
        if commits and draw.random() < eager:
            return draw.choice(commits)
        return draw.choice(np.flatnonzero(decision.mask).tolist())

    return choose


def greedy(episode: Episode) -> int:
    """The commitment that adds least; without any the first possible option."""
    decision = episode.decision
    if decision.open.any():
        return int(np.where(decision.open, decision.increase, 2**62).argmin())
    return int(decision.mask.argmax())


def along(problem: Problem, plan: object) -> Choose:
    """The decisions of a plan, shifted to the left."""
    shifted = left_shifted(full_scope(problem), plan)

    def choose(episode: Episode) -> int:
        return episode.decision.option(follow(episode.simulator, shifted))

    return choose


def run(episode: Episode, choose: Choose) -> int:
    """Go on to the end; what the steps have added."""
    total = 0
    while not episode.done:
        total += episode.choose(choose(episode))
    return total


def commits(episode: Episode) -> list[Commit]:
    """The commitments of the decision, possible or not, in their order."""
    decision = episode.decision
    found = [decision.action(option) for option in range(len(decision.rows))]
    return [action for action in found if isinstance(action, Commit)]
