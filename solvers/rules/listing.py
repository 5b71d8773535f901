"""List scheduling: the next task by priority among those whose predecessors are decided."""

import heapq
from collections.abc import Iterable, Iterator, Sequence

from optalloc.problem import FREE
from optalloc.solvers.rules.criteria import Choose
from optalloc.solvers.rules.desk import Desk

__all__ = ["Ready", "place_in_order"]


class Ready:
    """Which open tasks wait for predecessors."""

    def __init__(self, desk: Desk):
        self.mode = desk.table.mode
        self.successors = desk.problem.successors
        self._waiting = {task: self._undecided(desk, task) for task in desk.free}

    def _undecided(self, desk: Desk, task: int) -> int:
        return sum(self.mode[pred] == FREE for pred, _ in desk.problem.predecessors(task))

    def first(self) -> list[int]:
        """Tasks that wait for nothing."""
        return [task for task, count in self._waiting.items() if count == 0]

    def after(self, task: int) -> Iterator[int]:
        """Tasks that wait for nothing any more, now that ``task`` is decided."""
        for successor in self.successors[task]:
            if self.mode[successor] == FREE:
                self._waiting[successor] -= 1
                if self._waiting[successor] == 0:
                    yield successor


def place_in_order(desk: Desk, priority: Sequence[float], choose: Choose, urgent: Iterable[int] = ()) -> None:
    """Place the open tasks one by one.

    Parameters
    ----------
    priority
        (J,) the least goes first among those whose predecessors are decided; among equals the first to be
        released, then the first in the instance.
    choose
        Where a task goes.
    urgent
        Tasks that go before all others, with everything before them.

    Raises
    ------
    DeadEnd
        A task that must run has no feasible placement left.
    """
    ready, release = Ready(desk), desk.problem.release
    first = ancestors(desk, urgent)

    def entry(task: int) -> tuple[bool, float, int, int]:
        return task not in first, priority[task], release.item(task), task

    queue = [entry(task) for task in ready.first()]
    heapq.heapify(queue)
    while queue:
        task = heapq.heappop(queue)[-1]
        if desk.table.mode[task] != FREE:
            continue
        desk.settle(task, choose(desk, task))
        for successor in ready.after(task):
            heapq.heappush(queue, entry(successor))


def ancestors(desk: Desk, tasks: Iterable[int]) -> set[int]:
    """The tasks and all that come before them."""
    found, waiting = set(tasks), list(tasks)
    while waiting:
        for pred, _ in desk.problem.predecessors(waiting.pop()):
            if pred not in found:
                found.add(pred)
                waiting.append(pred)
    return found
