"""Episodes as learners remember them: the decisions, and what the plan was worth before each.

References
----------
Mao, H., Venkatakrishnan, S. B., Schwarzkopf, M. and Alizadeh, M. (2019). Variance reduction for reinforcement
learning in input-driven environments. ICLR 2019. https://arxiv.org/abs/1807.02264
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from optalloc.environment.scales import Floats
from optalloc.problem import ABSENT, FREE, Ints
from optalloc.scope import full_scope
from optalloc.simulation import Simulator, simulate
from optalloc.solvers.learned.board import Board
from optalloc.solvers.learned.ground import Ground
from optalloc.solvers.learned.network import TASK_LEVEL
from optalloc.solvers.learned.policy import LearnedPolicy, Scorer
from optalloc.solvers.learned.scorer import FactoredScorer, Step, best_of

__all__ = ["DEAD_END", "Episode", "Explorer", "Path", "Regret", "along", "play", "watch"]


class Regret:
    """What is decided and has been waited for, beyond every seen task by itself: J; its growth is what an action costs.

        J = value of what is decided for good - sum over decided tasks of their isolated value
            + sum over the queue of completion * (clock - release) + makespan * (clock - last end so far, if positive)

    in mean isolated values; the last part while tasks wait. It grows by the same as the objective from the first
    decision to the last, but for a constant; the waiting of a task counts when it waits, not when it is decided. What
    is added to all releases changes nothing.
    """

    def __init__(self, ground: Ground):
        form = ground.costs[0].form
        self.rate: Ints = form.completion
        self.makespan = form.makespan
        self.release: Ints = ground.problem.release
        self.alone: Floats = ground.isolated.value + form.completion * self.release + form.placed
        self.unit = max(1.0, float(np.abs(ground.isolated.value).mean()))

    def __call__(self, board: Board) -> float:
        simulator = board.simulator
        queue = np.array(list(simulator.queue), dtype=np.int64)
        decided = self.alone[board.seen].sum() - self.alone[queue].sum()
        waited = (self.rate[queue] * (simulator.clock - self.release[queue])).sum()
        if len(queue):
            waited += self.makespan * max(0, simulator.clock - simulator.firm.makespan)
        return float((simulator.values[0] - decided + waited) / self.unit)


@dataclass(frozen=True, eq=False)
class Episode:
    """One run.

    Attributes
    ----------
    steps
        Its L decisions.
    regret
        (L + 1,) J before each decision, and at the end, less what another run on the instance had by then (`along`): an
        input-dependent baseline, the same whatever is decided (Mao et al. 2019).
    clock
        (L + 1,) ticks.
    duration
        Ticks of a mean run.
    objective
        Of the plan, scaled by K; None at a dead end.
    """

    steps: list[Step]
    regret: Floats
    clock: Ints
    duration: float
    objective: int | None


class Explorer:
    """Draws some decisions by their scores, at all their levels: one in a while, and the better the likelier.

    Parameters
    ----------
    share
        How many decisions are drawn; the others take the best.
    temperature
        In units of the scores: the larger, the more evenly.
    """

    def __init__(self, rng: np.random.Generator, share: float, temperature: float):
        self.rng, self.share, self.temperature = rng, share, temperature
        self._drawing = False

    def __call__(self, level: int, scores: Floats) -> int:
        if level == TASK_LEVEL:
            self._drawing = self.rng.random() < self.share
        if not self._drawing or len(scores) == 1:
            return best_of(level, scores)
        return best_of(level, scores + self.temperature * self.rng.gumbel(size=len(scores)))


DEAD_END = 2.0
"""What a dead end costs, in mean isolated values, for each task that is left."""


Worth = Callable[[Board], float]
Path = tuple[Floats, Ints]
"""J and the clock before each decision, and at the end."""


def play(
    ground: Ground, scorer: FactoredScorer, beside: Path | None = None, *, worth: Worth | None = None
) -> Episode:
    """Run a scorer from beginning to end and remember its decisions.

    Parameters
    ----------
    worth
        Of the plan so far, the less the better; None: `Regret`.
    beside
        Another run on the instance, from `watch`, as the baseline; None: nothing is taken off.
    """
    steps: list[Step] = []
    scorer.steps = steps
    try:
        (regret, clock), objective = watch(ground, scorer, worth)
    finally:
        scorer.steps = None
    if beside is not None:
        regret = regret - along(beside, clock, ended=objective is not None)
    duration = max(1.0, float(ground.isolated.duration.mean()))
    return Episode(steps, regret, clock, duration, objective)


def along(path: Path, clock: Ints, *, ended: bool) -> Floats:
    """(L + 1,) J of one path at the ticks of another.

    Parameters
    ----------
    ended
        The other ends with a plan: its end is held against all that this one comes to, whichever ends first.
    """
    regret, ticks = path
    found = np.interp(clock, ticks, regret)
    if ended:
        found[-1] = regret[-1]
    return np.asarray(found)


def watch(ground: Ground, scorer: Scorer, worth: Worth | None = None) -> tuple[Path, int | None]:
    """Run a scorer from beginning to end: its path, and the objective, or None at a dead end."""
    worth = worth or Regret(ground)
    moments: list[tuple[float, int]] = []

    def remember(board: Board) -> None:
        moments.append((worth(board), board.clock))

    simulator = Simulator(full_scope(ground.problem))
    policy = LearnedPolicy(ground, simulator, scorer, looking=remember)
    simulate(simulator, policy)
    mode, free = np.array(simulator.firm.mode), simulator.scope.free
    # At a dead end some tasks were never seen: they are left, not decided.
    policy.board.seen = free & (mode != ABSENT)
    left = int(np.isin(mode[free], (FREE, ABSENT)).sum()) if simulator.failure else 0
    moments.append((worth(policy.board) + DEAD_END * left, simulator.clock))
    regret, clock = (np.array(column) for column in zip(*moments, strict=True))
    return (regret, clock), None if simulator.failure else simulator.values[0]
