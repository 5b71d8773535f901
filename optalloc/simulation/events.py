"""When something happens: a heap of ticks, and the tasks by release."""

import heapq
from collections.abc import Iterable

import numpy as np

from optalloc.problem import DEVICES, Ints, Problem
from optalloc.scope import Scope

__all__ = ["Events"]


class Events:
    """Ticks at which the clock has to stop.

    Only what is known by then is in it: releases show themselves one by one, everything else comes from
    released tasks, from what is fixed, and from the calendars of the nodes.

    Parameters
    ----------
    clock
        Ticks up to it are past.
    """

    def __init__(self, scope: Scope, clock: int):
        self._heap = sorted({tick for tick in _known_from_the_start(scope) if tick > clock})
        free = np.flatnonzero(scope.free)
        order = free[np.argsort(scope.problem.release[free], kind="stable")]
        self._tasks: list[int] = order.tolist()
        self._release: list[int] = scope.problem.release[order].tolist()
        self._next = 0

    def copy(self, *, with_releases: bool) -> "Events":
        """The same events; without releases nothing new is ever released."""
        twin = Events.__new__(Events)
        twin._heap = self._heap.copy()
        twin._tasks, twin._release = self._tasks, self._release
        twin._next = self._next if with_releases else len(self._tasks)
        return twin

    def add(self, tick: int) -> None:
        """The clock has to stop at ``tick``."""
        heapq.heappush(self._heap, tick)

    def released(self, clock: int) -> Iterable[int]:
        """The tasks released by ``clock``, each once."""
        while self._next < len(self._tasks) and self._release[self._next] <= clock:
            yield self._tasks[self._next]
            self._next += 1

    def after(self, clock: int) -> int | None:
        """The first event after ``clock``."""
        known = self.known_after(clock)
        ticks = ([] if known is None else [known]) + self._release[self._next : self._next + 1]
        return min(ticks, default=None)

    def known_after(self, clock: int) -> int | None:
        """The first event after ``clock`` that is no release."""
        while self._heap and self._heap[0] <= clock:
            heapq.heappop(self._heap)
        return self._heap[0] if self._heap else None


def _known_from_the_start(scope: Scope) -> set[int]:
    """Calendar changes of the nodes; ends of runs and transfers that are fixed."""
    problem = scope.problem
    fixed = np.flatnonzero(scope.mode >= 0)
    ends = scope.start[fixed] + problem.duration[scope.mode[fixed]]
    return {*_calendar_changes(problem).tolist(), *ends.tolist(), *(t.end for t in scope.transfers)}


def _calendar_changes(problem: Problem) -> Ints:
    owner = np.repeat(np.arange(problem.num_resources), np.diff(problem.cap_ptr))
    return np.unique(problem.cap_time[problem.resource_kind[owner] == DEVICES])
