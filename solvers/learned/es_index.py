"""`es-index`: the index of `replan-index` with eighteen more weights, tuned by an evolution strategy. No network.

The score of a task is log urgency plus a weighted sum of some of its features; that of a row is minus its priced
increase, in mean objectives, plus such a sum. All weights zero: `replan-index`.

References
----------
Hansen, N. (2016). The CMA evolution strategy: a tutorial. https://arxiv.org/abs/1604.00772
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from optalloc.environment.scales import Floats
from optalloc.problem import Ints
from optalloc.solvers.learned.board import Choice
from optalloc.solvers.learned.features import ROW, TASK, Event
from optalloc.solvers.learned.policy import urgency
from optalloc.solvers.learned.practice import TRAINING, ratios
from optalloc.solvers.learned.training import Arrays, Trainer, Training

__all__ = ["NAMES", "Args", "IndexScorer", "Learner", "scorer"]

_OF_TASK: Final = ("slack", "time_left", "age", "sufferage")
_OF_BEST: Final = ("delay", "charge", "lacking")
_OF_ROW: Final = (
    "delay", "charge", "charge_shared", "popularity", "lacking", "staged", "priced", "late", "utility", "reject",
    "later",
)  # fmt: skip
NAMES: Final = (
    *(f"task {name}" for name in _OF_TASK),
    *(f"best {name}" for name in _OF_BEST),
    *(f"row {name}" for name in _OF_ROW),
)
"""What each weight belongs to: a task, its best row, or a row."""

_TASK_COLUMNS = [TASK.index(name) for name in _OF_TASK]
_BEST_COLUMNS = [ROW.index(name) for name in _OF_BEST]
_ROW_COLUMNS = [ROW.index(name) for name in _OF_ROW]


class IndexScorer:
    """The index with its weights.

    Parameters
    ----------
    weights
        In the order of NAMES.
    """

    def __init__(self, weights: Floats):
        self.weights = np.asarray(weights, dtype=np.float64)
        ends = np.cumsum([len(_OF_TASK), len(_OF_BEST)])
        self._task, self._best, self._row = np.split(self.weights, ends)

    def task(self, event: Event, positions: Ints) -> int:
        best = event.board.best[positions]
        score = urgency(event, positions) + event.tasks(positions)[:, _TASK_COLUMNS] @ self._task
        score += event.rows(best, best)[:, _BEST_COLUMNS] @ self._best
        return int(score.argmax())

    def row(self, event: Event, position: int, choice: Choice) -> int:
        best = np.full(len(choice.at), event.board.best[position])
        more = event.rows(choice.at, best)[:, _ROW_COLUMNS] @ self._row
        return int((choice.score / event.board.value + more).argmax())


def scorer(weights: Arrays) -> IndexScorer:
    """The scheduler with these weights."""
    return IndexScorer(weights["index"])


@dataclass(frozen=True)
class Args(Training):
    """Settings of a training run.

    Attributes
    ----------
    instances
        How many instances of the family are learned from.
    sample
        How many of them judge one generation, one after the other in turn.
    population
        Candidates of a generation.
    spread
        Standard deviation of the first generation.
    """

    judge_every: int = 4
    instances: int = 100
    sample: int = 6
    population: int = 12
    spread: float = 0.5


class Learner(Trainer):
    """CMA-ES on the mean logarithm of the ratio to `replan-index`."""

    def __init__(self, args: Args):
        self.args = args
        self.weights = {"index": np.zeros(len(NAMES))}
        self._begin(args.spread)

    def _begin(self, spread: float) -> None:
        import cma

        options: dict[str, Any] = {"seed": self.args.seed + 1, "verbose": -9, "popsize": self.args.population}
        self.strategy = cma.CMAEvolutionStrategy(self.weights["index"], spread, options)

    def scorer(self, weights: Arrays) -> IndexScorer:
        return scorer(weights)

    def iterate(self, number: int) -> dict[str, float]:
        """One generation."""
        args = self.args
        seeds = [TRAINING + (number * args.sample + i) % args.instances for i in range(args.sample)]
        candidates = self.strategy.ask()
        losses = [self._loss(candidate, seeds) for candidate in candidates]
        self.strategy.tell(candidates, losses)
        self.weights = {"index": np.array(self.strategy.mean)}
        return {"mean": float(np.exp(np.mean(losses))), "least": float(np.exp(min(losses)))}

    def _loss(self, candidate: Floats, seeds: list[int]) -> float:
        return float(np.log(ratios(IndexScorer(candidate), self.args.family, seeds)).mean())

    def state(self) -> Arrays:
        return {"spread": np.array([self.strategy.sigma])}

    def restore(self, state: Arrays, iteration: int) -> None:
        """Go on from the mean and the spread; the shape of the distribution begins anew."""
        self._begin(float(state["spread"][0]))
