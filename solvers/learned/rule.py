"""`replan-index` as a scorer: what every learned scheduler starts from."""

from optalloc.problem import Ints
from optalloc.solvers.learned.board import Choice
from optalloc.solvers.learned.features import Event

__all__ = ["RuleScorer"]


class RuleScorer:
    """Largest urgency first, each task in its best row."""

    def task(self, event: Event, positions: Ints) -> int:
        return int(event.board.urgency[positions].argmax())

    def row(self, event: Event, position: int, choice: Choice) -> int:
        return int(choice.score.argmax())
