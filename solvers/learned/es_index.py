"""`es-index`: the weights of `optalloc.solvers.learned.index` tuned by an evolution strategy. No network.

References
----------
Hansen, N. (2016). The CMA evolution strategy: a tutorial. https://arxiv.org/abs/1604.00772
"""

from dataclasses import dataclass
from typing import Any

import cma
import numpy as np

from optalloc.environment.scales import Floats
from optalloc.solvers.learned.index import NAMES, IndexScorer
from optalloc.solvers.learned.practice import TRAINING, ratios
from optalloc.solvers.learned.schedulers import indexed, known_index
from optalloc.solvers.learned.training import Arrays, Trainer, Training

__all__ = ["Args", "Learner"]


@dataclass(frozen=True)
class Args(Training):
    """Settings of a training run.

    Attributes
    ----------
    index
        Weights to begin with, a file or the name of shipped ones; empty: zeros, which are the rule.
    instances
        How many instances of the family are learned from.
    sample
        How many of them judge one generation, one after the other in turn.
    population
        Candidates of a generation.
    spread
        Standard deviation of the first generation.
    decay
        Loss of a candidate for each unit of its squared length: without it the mean drifts away by chance, since
        most weights matter less than the choice of instances.
    caution
        Additional loss, so many times over, of families on which a candidate is worse than `replan-index`.
    """

    judge_every: int = 4
    index: str = ""
    instances: int = 100
    sample: int = 6
    population: int = 16
    spread: float = 0.3
    decay: float = 0.002
    caution: float = 0.0


class Learner(Trainer):
    """CMA-ES on the mean logarithm of the ratio to `replan-index`."""

    def __init__(self, args: Args):
        self.args = args
        self.weights = {"index": known_index(args.index) if args.index else np.zeros(len(NAMES))}
        self._begin(args.spread)

    def _begin(self, spread: float, iteration: int = 0) -> None:
        seed = self.args.seed + 1 + iteration
        options: dict[str, Any] = {
            "seed": np.nan,  # the generator of all of NumPy is left to others
            "randn": np.random.RandomState(seed).randn,
            "verbose": -9,
            "popsize": self.args.population,
        }
        self.strategy = cma.CMAEvolutionStrategy(self.weights["index"], spread, options)

    def scorer(self, weights: Arrays) -> IndexScorer:
        return indexed(weights)

    def iterate(self, number: int) -> dict[str, float]:
        """One generation."""
        args = self.args
        seeds = [TRAINING + (number * args.sample + i) % args.instances for i in range(args.sample)]
        candidates = self.strategy.ask()
        losses = [self._loss(candidate, seeds) for candidate in candidates]
        self.strategy.tell(candidates, losses)
        self.weights = {"index": np.array(self.strategy.mean)}
        with np.errstate(over="ignore"):  # what is infinite ends the run
            return {"mean": float(np.exp(np.mean(losses))), "least": float(np.exp(min(losses)))}

    def _loss(self, candidate: Floats, seeds: list[int]) -> float:
        found = [ratios(IndexScorer(candidate), family, seeds) for family in self.args.families]
        losses = np.log(found).mean(axis=1)
        worse = np.maximum(losses, 0).mean()
        return float(losses.mean() + self.args.caution * worse + self.args.decay * (candidate**2).sum())

    def state(self) -> Arrays:
        return {"spread": np.array([self.strategy.sigma])}

    def restore(self, state: Arrays, iteration: int) -> None:
        """Go on from the mean and the spread; the shape of the distribution begins anew."""
        self._begin(float(state["spread"][0]), iteration)
