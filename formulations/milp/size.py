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
    entries += 3 * int(transfers.sum()) + _staging(scope, starts, transfers)
    return int(starts.sum() + transfers.sum()), entries


def _transfers(scope: Scope, windows: Windows, is_open: Bools) -> Ints:
    """(K,) about how many transfer columns each replica has."""
    problem = scope.problem
    owner = np.repeat(np.arange(problem.num_modes), np.diff(problem.need_ptr))
    last = np.full(problem.num_replicas, -1, dtype=np.int64)
    reading = is_open[owner]
    np.maximum.at(last, problem.need_replica[reading], windows.latest[owner[reading]])
    ticks = np.where(problem.constant_replicas, 1, (last - windows.transfer_earliest + 1).clip(0))
    return np.asarray(ticks * np.diff(problem.route_ptr) * (last >= 0), dtype=np.int64)


def _staging(scope: Scope, starts: Ints, transfers: Ints) -> int:
    """Entries of the rows that let readers wait for arrivals: half of the columns, at every arrival."""
    problem = scope.problem
    owner = np.repeat(np.arange(problem.num_modes), np.diff(problem.need_ptr))
    pair = problem.need_replica * problem.num_tasks + problem.mode_task[owner]
    pairs, inverse = np.unique(pair, return_inverse=True)
    reading = np.zeros(len(pairs), dtype=np.int64)
    np.add.at(reading, inverse, starts[owner])
    width = np.zeros(len(pairs), dtype=np.int64)
    np.maximum.at(width, inverse, starts[owner])
    arrivals = transfers[pairs // problem.num_tasks]
    return int((np.minimum(width, arrivals) * (reading + arrivals)).sum()) // 2
