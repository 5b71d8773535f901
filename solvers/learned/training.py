"""The frame of a training run: one iteration after the other, judged on instances that nobody learns from.

The weights that are kept are those with the least mean ratio to `replan-index` on the validation instances, whose seeds
are never learned from; the first judged are the initial ones.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from optalloc.errors import Fault, InputError
from optalloc.solvers.interrupts import cut
from optalloc.solvers.learned.policy import Scorer
from optalloc.solvers.learned.practice import TRAINING, VALIDATION, Family, ratios

__all__ = ["Judged", "Run", "Trainer", "Training", "run_training"]

Arrays = dict[str, np.ndarray]

_NOT_FINITE = "weights or losses are no finite numbers any more"
_REMEDY = "the best weights before are kept; train anew with smaller rates"


@dataclass(frozen=True)
class Training:
    """Settings that all learners share.

    Attributes
    ----------
    preset, tasks, load, coupling
        Instances to learn from (`Family`); several presets, and several numbers of tasks, with commas between them:
        then of every preset with every number.
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
    tasks: str = "40"
    load: str = ""
    coupling: str = "1"
    seed: int = 0
    minutes: float = 10.0
    iterations: int = 0
    judge_every: int = 20
    judges: int = 16

    @property
    def families(self) -> list[Family]:
        """The instances.

        Raises
        ------
        ValueError
            A number of tasks is none.
        """
        presets = [name.strip() for name in self.preset.split(",")]
        sizes = [int(size) for size in self.tasks.split(",")]
        return [Family(name, size, self.load, self.coupling) for size in sizes for name in presets]

    def drawn(self, rng: np.random.Generator, instances: int) -> tuple[Family, int]:
        """A family and the seed of one of its first ``instances`` training instances, at random."""
        families = self.families
        return families[int(rng.integers(len(families)))], TRAINING + int(rng.integers(instances))

    def numbered(self, number: int) -> tuple[Family, int]:
        """A family and the seed of a training instance, one after the other; families take turns."""
        families = self.families
        return families[number % len(families)], TRAINING + number // len(families)


class Trainer(ABC):
    """A learner: weights that get better by iterations."""

    weights: Arrays

    @abstractmethod
    def iterate(self, number: int) -> dict[str, float]:
        """Learn for a while; returns what there is to say about it."""

    @abstractmethod
    def scorer(self, weights: Arrays) -> Scorer:
        """The scheduler with these weights."""

    def ratios(self, scorer: Scorer, family: Family, seeds: Sequence[int]) -> np.ndarray:
        """(S,) what a scorer is judged by on instances of a family, over that of `replan-index`: the objective."""
        return ratios(scorer, family, seeds)

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
        Mean over the instances of what the learner is judged by (`Trainer.ratios`).
    facts
        What the learner said about its last iteration.
    families
        The ratio of each family.
    """

    iteration: int
    seconds: float
    ratio: float
    facts: dict[str, float]
    families: dict[str, float] = field(default_factory=dict)


@dataclass(eq=False)
class Run:
    """Where a training run stands.

    Attributes
    ----------
    weights, state
        Of the learner, after so many iterations.
    best
        Weights of the look with the least ratio.
    seconds
        Spent so far, in all parts of the run.
    resumed
        Iterations at which it went on after a stop: what is not kept began anew there.
    interrupted
        Ctrl-C has ended it.
    """

    weights: Arrays
    state: Arrays
    best: Arrays
    iteration: int = 0
    seconds: float = 0.0
    looks: list[Judged] = field(default_factory=list)
    resumed: list[int] = field(default_factory=list)
    interrupted: bool = False

    @property
    def best_look(self) -> Judged | None:
        """The look with the least ratio; the first of them."""
        return min(self.looks, key=lambda look: look.ratio, default=None)

    @property
    def judged(self) -> bool:
        """The weights of now have been looked at."""
        return bool(self.looks) and self.looks[-1].iteration == self.iteration


def run_training(
    trainer: Trainer,
    args: Training,
    *,
    resumed: Run | None = None,
    say: Callable[[Run], None] = lambda run: None,
    keep: Callable[[Run], None] = lambda run: None,
    stop: Callable[[], bool] = lambda: False,
) -> Run:
    """Iterate until the time or the iterations are over. Ctrl-C ends it after the last whole iteration.

    Raises
    ------
    InputError
        Weights or losses have become infinite or NaN: the settings do not work. What was kept stays.

    Parameters
    ----------
    resumed
        What goes on here; the trainer has its weights and state.
    say
        Told where the run stands after each iteration and each look at the validation instances.
    keep
        The same after each look, and at the end.
    stop
        Asked before each iteration.
    """
    run = resumed or Run(_copied(trainer.weights), trainer.state(), _copied(trainer.weights))
    before, began = run.seconds, time.monotonic()

    def told() -> None:
        run.seconds = before + time.monotonic() - began
        say(run)

    def look(facts: dict[str, float]) -> None:
        cut(lambda: _judge(run, trainer, args, before + time.monotonic() - began, facts))
        told()
        keep(run)

    facts: dict[str, float] = {}
    try:
        if not run.looks:
            look(facts)
        while not stop() and _goes_on(args, run):
            facts = cut(lambda: trainer.iterate(run.iteration))
            if not _finite(trainer.weights, facts):
                keep(run)
                raise InputError(
                    Fault("settings", f"{_NOT_FINITE} after iteration {run.iteration + 1}; {_REMEDY}")
                )
            run.weights, run.state, run.iteration = (
                _copied(trainer.weights),
                trainer.state(),
                run.iteration + 1,
            )
            told()
            if run.iteration % args.judge_every == 0:
                look(facts)
        if not run.judged:
            look(facts)
    except KeyboardInterrupt:
        run.interrupted = True
        keep(run)
    return run


def _judge(run: Run, trainer: Trainer, args: Training, seconds: float, facts: dict[str, float]) -> None:
    """Look at the validation instances; better weights are the best from now on."""
    scorer = trainer.scorer(run.weights)
    seeds = range(VALIDATION, VALIDATION + args.judges)
    found = [float(trainer.ratios(scorer, family, seeds).mean()) for family in args.families]
    ratio = float(np.mean(found))
    best = run.best_look
    if best is None or ratio < best.ratio:
        run.best = run.weights
    each = dict(zip(map(str, args.families), found, strict=True))
    run.looks.append(Judged(run.iteration, seconds, ratio, facts, each))


def _finite(weights: Arrays, facts: Mapping[str, float]) -> bool:
    numbers = [*weights.values(), np.array([*facts.values()])]
    return all(bool(np.isfinite(array).all()) for array in numbers)


def _copied(arrays: Arrays) -> Arrays:
    return {name: array.copy() for name, array in arrays.items()}


def _goes_on(args: Training, run: Run) -> bool:
    in_time = not args.minutes or run.seconds < 60 * args.minutes
    return in_time and (not args.iterations or run.iteration < args.iterations)
