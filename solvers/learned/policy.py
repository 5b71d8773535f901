"""The loop that every learned scheduler shares: at each event task by task, each with data, node and devices."""

from collections.abc import Callable
from typing import Protocol

import numpy as np

from optalloc.environment.scales import Floats
from optalloc.problem import Ints
from optalloc.simulation import Simulator, Turn, simulate
from optalloc.solvers.learned.board import Board, Choice
from optalloc.solvers.learned.features import Event
from optalloc.solvers.learned.ground import Ground

__all__ = ["LearnedPolicy", "Scorer", "run_episode", "urgency"]


class Scorer(Protocol):
    """What a learned scheduler is: two choices, one after the other."""

    def task(self, event: Event, positions: Ints) -> int:
        """Which of some tasks, given by their positions on the board, is decided next: an index of ``positions``."""
        ...

    def row(self, event: Event, position: int, choice: Choice) -> int:
        """How the task at a position is decided: an index of ``choice.at``."""
        ...


def urgency(event: Event, positions: Ints) -> Floats:
    """The rule's score of tasks: log of weight per tick to the end of the best row."""
    # Weights are scaled by K: what is added to every task changes no decision.
    return np.asarray(np.log(np.maximum(event.board.urgency[positions], 1e-300)))


class LearnedPolicy:
    """A scorer that acts in one simulation.

    Parameters
    ----------
    ground
        Of the problem.
    simulator
        What the decisions go to.
    scorer
        Makes the choices.
    looking
        Called before each decision with the board; for learning.
    """

    def __init__(
        self,
        ground: Ground,
        simulator: Simulator,
        scorer: Scorer,
        seed: int = 0,
        looking: Callable[[Board], None] | None = None,
    ):
        self.board = Board(ground, simulator, seed)
        self.scorer, self.looking = scorer, looking

    def __call__(self, turn: Turn) -> None:
        self.act()

    def act(self) -> None:
        """Decide at the event at which the clock stands."""
        board = self.board
        board.begin()
        event = Event(board)
        while len(positions := board.options):
            event.look()
            if self.looking is not None:
                self.looking(board)
            position = int(positions[self.scorer.task(event, positions)])
            choice = board.choice(position)
            at = int(choice.at[self.scorer.row(event, position, choice)])
            board.decide(choice.task, at)
        board.finish()


def run_episode(ground: Ground, simulator: Simulator, scorer: Scorer) -> Simulator:
    """One run from the simulator's clock to the end."""
    return simulate(simulator, LearnedPolicy(ground, simulator, scorer))
