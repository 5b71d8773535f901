"""How large a model would be, before it is built."""

import numpy as np

from optalloc.problem import Bools, Ints
from optalloc.scope import Scope, Windows

__all__ = ["estimate_size"]


def estimate_size(scope: Scope, windows: Windows) -> tuple[int, int]:
    """(columns, entries of the matrix), about: calendars and rows that cannot bind are not looked at."""
    problem = scope.problem
    is_open = windows.open & scope.free[problem.mode_task]
    starts = np.where(is_open, windows.latest - windows.earliest + 1, 0)
    uses = np.diff(problem.use_ptr)
    entries = int((starts * (1 + uses * problem.duration)).sum())
    by_task = np.zeros(problem.num_tasks, dtype=np.int64)
    np.add.at(by_task, problem.mode_task, starts)
    width = np.zeros(problem.num_tasks, dtype=np.int64)
    np.maximum.at(width, problem.mode_task, starts)
    for task in np.flatnonzero(scope.free).tolist():
        for pred, _ in problem.predecessors(task):
            entries += int(width[task] * (by_task[task] + by_task[pred])) // 2
    transfers = _transfers(scope, windows, is_open)
    return int(starts.sum() + transfers.sum()), entries + 3 * int(transfers.sum())


def _transfers(scope: Scope, windows: Windows, is_open: Bools) -> Ints:
    """(K,) about how many transfer columns each replica has."""
    problem = scope.problem
    owner = np.repeat(np.arange(problem.num_modes), np.diff(problem.need_ptr))
    last = np.full(problem.num_replicas, -1, dtype=np.int64)
    reading = is_open[owner]
    np.maximum.at(last, problem.need_replica[reading], windows.latest[owner[reading]])
    ticks = np.where(problem.constant_replicas, 1, (last - windows.transfer_earliest + 1).clip(0))
    return np.asarray(ticks * np.diff(problem.route_ptr) * (last >= 0), dtype=np.int64)
