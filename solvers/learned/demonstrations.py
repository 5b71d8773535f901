"""Demonstrations: plans that know the future, told decision by decision.

A plan of the scheduler itself is improved by the search, which knows all releases. A run that is guided by it then
passes through states that the scheduler could meet, and takes there what the plan takes.

References
----------
Hester, T. et al. (2018). Deep Q-learning from demonstrations. AAAI 2018.
"""

import numpy as np

from optalloc.problem import NEVER, REJECTED, Ints, Plan
from optalloc.scope import full_scope
from optalloc.simulation import Simulator, left_shifted
from optalloc.solvers.base import Monitor, Request
from optalloc.solvers.learned.board import LATER, REJECT, Board, Choice
from optalloc.solvers.learned.episodes import play
from optalloc.solvers.learned.features import Event
from optalloc.solvers.learned.ground import Ground
from optalloc.solvers.learned.policy import Scorer, run_episode
from optalloc.solvers.learned.scorer import FactoredScorer, Step
from optalloc.solvers.lns.driver import search_plans

__all__ = ["PlanScorer", "better_plan", "shown_decisions"]

_NO_LIMIT = 1e9
"""Seconds: the search ends by its steps, so that it can be repeated."""


class PlanScorer:
    """A plan as a scorer: its tasks by their starts, each in the mode that it has there.

    A task that would begin now, though the plan has it begin later, is left for later where that may be: the plan keeps
    the room for a task that is not seen yet. One whose mode is not possible now is decided as the rule does.

    Parameters
    ----------
    plan
        Of all tasks.

    Attributes
    ----------
    begins
        For each decision so far whether something begins by it, or would. The others block capacity until the next
        event only, and are made again then.
    """

    def __init__(self, plan: Plan):
        self.mode = plan.mode
        self.start: Ints = np.where(plan.mode == REJECTED, NEVER, plan.start)
        self.begins: list[bool] = []

    def task(self, event: Event, positions: Ints) -> int:
        return int(self.start[event.board.waiting[positions]].argmin())

    def row(self, event: Event, position: int, choice: Choice) -> int:
        found = self._planned(event, choice)
        at = choice.at.item(found)
        begins = at == REJECT or _begins(event.board, at)
        self.begins.append(begins)
        early = at >= 0 and begins and event.board.start[at] < self.start[choice.task]
        later = np.flatnonzero(choice.at == LATER)
        return int(later[0]) if early and len(later) else found

    def _planned(self, event: Event, choice: Choice) -> int:
        """The index of what the plan does with the task, whenever that is."""
        if self.mode[choice.task] == REJECTED:
            shown = choice.at == REJECT
        else:
            rows = event.board.rows[np.maximum(choice.at, 0)]
            shown = (choice.at >= 0) & (event.ground.layout.mode[rows] == self.mode[choice.task])
        return int((shown if shown.any() else choice.score).argmax())


def _begins(board: Board, at: int) -> bool:
    """Whether the row at a position starts now, or its transfers do."""
    return bool(board.start[at] == board.clock or board.prospects.lacking[board.rows[at]])


def better_plan(ground: Ground, scorer: Scorer, steps: int, seed: int = 0) -> Plan | None:
    """The plan of a scorer, improved by so many steps of `lns`; None where neither finds any.

    Runs and transfers are moved to the left, so that their order is the one in which they can be decided.
    """
    scope = full_scope(ground.problem)
    own = run_episode(ground, Simulator(scope), scorer)
    start = None if own.failure else own.firm.plan()
    monitor = Monitor(scope, _NO_LIMIT)
    search_plans(Request(scope, monitor, start, seed, 1, {"iterations": steps}))
    return None if monitor.best is None else left_shifted(scope, monitor.best)


def shown_decisions(ground: Ground, scorer: FactoredScorer, plan: Plan) -> list[Step]:
    """The decisions of a scorer that is guided by a plan, as if it had chosen so by itself, where something begins."""
    scorer.guide = guide = PlanScorer(plan)
    try:
        steps = play(ground, scorer).steps
    finally:
        scorer.guide = None
    return [step for step, begins in zip(steps, guide.begins, strict=True) if begins]
