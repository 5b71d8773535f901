"""The frame of a training run: one iteration after the other, judged on instances that nobody learns from.

The weights that are kept are those with the least mean ratio to `replan-index` on the validation instances, whose seeds
are never learned from; the first judged are the initial ones.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from optalloc.solvers.learned.policy import Scorer
from optalloc.solvers.learned.practice import TRAINING, VALIDATION, Family, ratios

__all__ = ["Judged", "Trainer", "Training", "run_training"]

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Training:
    """Settings that all learners share.

    Attributes
    ----------
    preset, tasks, load, coupling
        Instances to learn from (`Family`); several presets, with commas between them, take turns.
    seed
        Of all random numbers.
    minutes
        After which the run ends; 0: it does not.
    iterations
        After which the run ends; 0: it does not.
    judge_every
        Iterations between two looks at the validation instances.
    judges
        How many of these there are.
    """

    preset: str = "contended"
    tasks: int = 40
    load: str = ""
    coupling: str = "1"
    seed: int = 0
    minutes: float = 10.0
    iterations: int = 0
    judge_every: int = 20
    judges: int = 16

    @property
    def families(self) -> list[Family]:
        """The instances."""
        names = [name.strip() for name in self.preset.split(",")]
        return [Family(name, self.tasks, self.load, self.coupling) for name in names]

    def drawn(self, rng: np.random.Generator, instances: int) -> tuple[Family, int]:
        """A family and the seed of one of its first ``instances`` training instances, at random."""
        families = self.families
        return families[int(rng.integers(len(families)))], TRAINING + int(rng.integers(instances))


class Trainer(ABC):
    """A learner: weights that get better by iterations."""

    weights: Arrays

    @abstractmethod
    def iterate(self, number: int) -> dict[str, float]:
        """Learn for a while; returns what there is to say about it."""

    @abstractmethod
    def scorer(self, weights: Arrays) -> Scorer:
        """The scheduler with these weights."""

    @abstractmethod
    def state(self) -> Arrays:
        """What is needed, beside the weights, to go on later."""

    @abstractmethod
    def restore(self, state: Arrays, iteration: int) -> None:
        """Go on from `state`."""


@dataclass(frozen=True)
class Judged:
    """One look at the validation instances.

    Attributes
    ----------
    ratio
        Mean objective over that of `replan-index`.
    """

    iteration: int
    seconds: float
    ratio: float
    facts: dict[str, float]


def run_training(
    trainer: Trainer,
    args: Training,
    *,
    say: Callable[[Judged, Judged], None] = lambda last, best: None,
    stop: Callable[[], bool] = lambda: False,
) -> tuple[Arrays, list[Judged]]:
    """Iterate until the time or the iterations are over.

    Parameters
    ----------
    say
        Told every look at the validation instances, and the best so far.
    stop
        Asked before each iteration.

    Returns
    -------
    The best weights, and all looks.
    """
    began = time.monotonic()
    seeds = range(VALIDATION, VALIDATION + args.judges)
    best = trainer.weights
    looks: list[Judged] = []

    def judge(iteration: int, facts: dict[str, float]) -> None:
        nonlocal best
        weights = {name: array.copy() for name, array in trainer.weights.items()}
        scorer = trainer.scorer(weights)
        ratio = float(np.mean([ratios(scorer, family, seeds) for family in args.families]))
        if all(ratio < look.ratio for look in looks):
            best = weights
        looks.append(Judged(iteration, time.monotonic() - began, ratio, facts))
        say(looks[-1], min(looks, key=lambda look: look.ratio))

    judge(0, {})
    iteration = 0
    while not stop() and _goes_on(args, iteration, time.monotonic() - began):
        facts = trainer.iterate(iteration)
        iteration += 1
        if iteration % args.judge_every == 0:
            judge(iteration, facts)
    return best, looks


def _goes_on(args: Training, iteration: int, seconds: float) -> bool:
    in_time = not args.minutes or seconds < 60 * args.minutes
    return in_time and (not args.iterations or iteration < args.iterations)
