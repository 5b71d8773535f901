"""`reinforce`: policy gradient for mean completion time and utilisation, without knowing how long anything takes.

The policy draws level by level from softmax(residual): no rule's score, and no feature that tells a duration is seen.
The reward of a decision is minus the time that tasks spend in the system until the next one, and minus ``idle`` times
the growth of the makespan, which is what utilisation loses, both in mean durations; a rejected task never leaves.
Several runs on the same instance share an input-dependent baseline: the mean of the others at the same tick.

References
----------
Williams, R. J. (1992). Simple statistical gradient-following algorithms for connectionist reinforcement learning.
Machine Learning 8, 229-256.
Mao, H. et al. (2019). Variance reduction for reinforcement learning in input-driven environments. ICLR 2019.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from optalloc.environment.scales import Floats
from optalloc.problem import REJECTED
from optalloc.solvers.learned.board import Board
from optalloc.solvers.learned.episodes import Episode, Explorer, along, play, watch
from optalloc.solvers.learned.fdqn import Batch, Estimate, log_policy, moments, set_moments
from optalloc.solvers.learned.ground import Ground
from optalloc.solvers.learned.network import initial
from optalloc.solvers.learned.policy import Scorer
from optalloc.solvers.learned.practice import Family, ratio_of
from optalloc.solvers.learned.rule import RuleScorer
from optalloc.solvers.learned.schedulers import untimed
from optalloc.solvers.learned.scorer import FactoredScorer
from optalloc.solvers.learned.training import Arrays, Trainer, Training

__all__ = ["Args", "Learner", "Time"]


@dataclass(frozen=True)
class Args(Training):
    """Settings of a training run.

    Attributes
    ----------
    instances
        How many instances of the family are learned from.
    runs
        On the same instance in one iteration.
    steps
        Decisions of a return.
    learning_rate
        Of Adam.
    entropy
        Weight of the entropy of the policy.
    idle
        What a tick of makespan costs beside a tick of a task in the system.
    batch
        Most decisions of an update.
    """

    judge_every: int = 10
    instances: int = 100
    runs: int = 4
    steps: int = 64
    learning_rate: float = 1e-3
    entropy: float = 0.01
    idle: float = 1.0
    batch: int = 256


class Time:
    """Time in the system of all tasks so far, and ``idle`` times the makespan so far, in mean durations.

    Rejected tasks stay: otherwise to reject would be the shortest way out.
    """

    def __init__(self, ground: Ground, idle: float):
        self.release, self.idle = ground.problem.release, idle
        self.unit = max(1.0, float(ground.isolated.duration.mean()))

    def __call__(self, board: Board) -> float:
        firm, clock = board.simulator.firm, board.clock
        mode, last = np.array(firm.mode), max(firm.makespan, clock)
        decided = np.flatnonzero((mode >= 0) & board.seen)
        rejected = np.flatnonzero((mode == REJECTED) & board.seen)
        queue = np.array(list(board.simulator.queue), dtype=np.int64)
        spent = (np.array(firm.end)[decided] - self.release[decided]).sum()
        waited = (clock - self.release[queue]).sum() + (last - self.release[rejected]).sum()
        return float((spent + waited + self.idle * last) / self.unit)


class Learner(Trainer):
    """The learner."""

    def __init__(self, args: Args):
        torch.set_num_threads(1)
        self.args = args
        self.rng = np.random.default_rng(args.seed)
        self.weights = initial(args.seed)
        # The policy that acts is softmax(residual): no level has a scale of its own.
        self.weights["scale"] = np.zeros_like(self.weights["scale"])
        # Among equal residuals the first option is taken, which is the rule's: heads of zeros would be the rule.
        heads = self.weights["heads.weight"]
        self.weights["heads.weight"] = (0.1 * self.rng.standard_normal(heads.shape)).astype(heads.dtype)
        self.online = Estimate(self.weights)
        self.learned = [tensor for name, tensor in self.online.weights.items() if name != "scale"]
        for tensor in self.learned:
            tensor.requires_grad_()
        self.optimiser = torch.optim.Adam(self.learned, lr=args.learning_rate)

    def scorer(self, weights: Arrays) -> FactoredScorer:
        return untimed(weights)

    def ratios(self, scorer: Scorer, family: Family, seeds: Sequence[int]) -> np.ndarray:
        """(S,) time in the system and makespan (`Time`) over those of `replan-index`: what it learns for."""
        idle = self.args.idle
        pairs = ((time_of(scorer, family, seed, idle), time_of_rule(family, seed, idle)) for seed in seeds)
        return np.array([ratio_of(mine, rule) for mine, rule in pairs])

    def iterate(self, number: int) -> dict[str, float]:
        """Some runs on one instance, then one pass over their decisions."""
        args = self.args
        family, seed = args.drawn(self.rng, args.instances)
        ground = family.ground(seed)
        drawing = self.scorer(self.weights)
        drawing.choose = Explorer(self.rng, 1.0, 1.0)
        episodes = [play(ground, drawing, worth=Time(ground, args.idle)) for _ in range(args.runs)]
        gains = advantages(episodes, args.steps)
        steps = [step for episode in episodes for step in episode.steps]
        order = self.rng.permutation(len(steps))
        for first in range(0, len(order), args.batch):
            part = order[first : first + args.batch]
            self.update(Batch.of([steps[i] for i in part]), torch.from_numpy(gains[part]).float())
        self.weights = self.online.arrays()
        return {"time": float(np.mean([episode.regret[-1] for episode in episodes]))}

    def update(self, batch: Batch, gain: Tensor) -> None:
        """One step up the gradient of log pi * gain, and of the entropy."""
        if not len(batch.chosen):
            return
        log = log_policy(self.online.advantage(batch), batch)
        entropy = -(log.exp() * log).sum() / len(batch.chosen)
        loss = -(log[batch.chosen] * gain[batch.step]).mean() - self.args.entropy * entropy
        self.optimiser.zero_grad()
        torch.autograd.backward([loss])
        torch.nn.utils.clip_grad_norm_(self.learned, 1.0)
        self.optimiser.step()

    def state(self) -> Arrays:
        """The moments of the optimiser."""
        return moments(self.optimiser, self.online)

    def restore(self, state: Arrays, iteration: int) -> None:
        """Go on from there."""
        self.rng = np.random.default_rng([self.args.seed, iteration])
        self.online.set(self.weights)
        set_moments(self.optimiser, self.online, state)


def time_of(scorer: Scorer, family: Family, seed: int, idle: float) -> float | None:
    """What a scorer comes to on an instance (`Time`); None at a dead end."""
    ground = family.ground(seed)
    (time, _), objective = watch(ground, scorer, Time(ground, idle))
    return None if objective is None else float(time[-1])


@lru_cache(maxsize=1024)
def time_of_rule(family: Family, seed: int, idle: float) -> float | None:
    """The same of `replan-index`, which every look asks for again."""
    return time_of(RuleScorer(), family, seed, idle)


def advantages(episodes: list[Episode], steps: int) -> Floats:
    """(N,) what each decision's run has within so many decisions, less than the others by the same ticks; scaled to 1.

    Less time is a gain.
    """
    found = []
    for episode in episodes:
        count = len(episode.steps)
        end = np.minimum(np.arange(count) + steps, count)
        grown = episode.regret[end] - episode.regret[:count]
        ended = episode.objective is not None
        others = [other for other in episodes if other is not episode] or [episode]
        paths = [along((other.regret, other.clock), episode.clock, ended=ended) for other in others]
        expected = np.mean([path[end] - path[:count] for path in paths], axis=0)
        found.append(expected - grown)
    gains = np.concatenate(found)
    return np.asarray(gains / (gains.std() + 1e-9))
