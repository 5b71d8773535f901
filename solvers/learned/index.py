"""The index of `es-index`: that of `replan-index` with twenty more weights.

The score of a task is log urgency plus a weighted sum of some of its features; that of a row is minus its priced
increase, in mean objectives, plus such a sum. All weights zero: `replan-index`.
"""

from typing import Final

import numpy as np

from optalloc.environment.scales import Floats
from optalloc.problem import Ints
from optalloc.solvers.learned.board import Choice
from optalloc.solvers.learned.features import ROW, TASK, Event, Singles
from optalloc.solvers.learned.network import COLUMNS, DATA, DEVICES, LEVELS, NODE, TASK_LEVEL
from optalloc.solvers.learned.policy import urgency

__all__ = ["NAMES", "IndexScorer", "as_linear"]

_OF_TASK: Final = ("slack", "time_left", "age", "sufferage")
_OF_BEST: Final = ("delay", "duration", "charge", "lacking", "priced")
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


def as_linear(weights: Floats) -> Singles:
    """(COLUMNS, LEVELS) the linear part of a network that scores as the index does.

    It differs from the index where the rule's best row with a label is not the index's: that row speaks for the label.
    """
    linear = np.zeros((len(COLUMNS), len(LEVELS)), dtype=np.float32)
    for name, weight in zip(NAMES, weights, strict=True):
        kind, _, column = name.partition(" ")
        levels = [TASK_LEVEL] if kind in ("task", "best") else [DATA, NODE, DEVICES]
        linear[COLUMNS.index(column), levels] = weight
    return linear
