"""How large a model would be, before it is built."""

from typing import Final

import numpy as np

from optalloc.formulations.milp.matrix import Floats
from optalloc.problem import Bools
from optalloc.scope import Scope, Windows

__all__ = ["MAX_COLUMNS", "MAX_ENTRIES", "estimate_size"]

MAX_COLUMNS: Final = 2_000_000
MAX_ENTRIES: Final = 30_000_000
"""No larger model is built unless the user says so: some GB of memory, and minutes."""


def estimate_size(scope: Scope, windows: Windows) -> tuple[int, int]:
    """(columns, entries of the matrix), about: calendars and rows that cannot bind are not looked at.

    Floats: with very short ticks, products pass what an int64 holds.
    """
    problem = scope.problem
    is_open = windows.open & scope.free[problem.mode_task]
    starts = np.where(is_open, windows.latest - windows.earliest + 1, 0).astype(float)
    uses = np.diff(problem.use_ptr)
    entries = int((starts * (1 + uses * problem.duration)).sum())
    by_task, width = np.zeros(problem.num_tasks), np.zeros(problem.num_tasks)
    np.add.at(by_task, problem.mode_task, starts)
    np.maximum.at(width, problem.mode_task, starts)
    for task in np.flatnonzero(scope.free).tolist():
        for pred, _ in problem.predecessors(task):
            entries += int(width[task] * (by_task[task] + by_task[pred])) // 2
    transfers = _transfers(scope, windows, is_open)
    entries += 3 * int(transfers.sum()) + _staging(scope, starts, transfers)
    return int(starts.sum() + transfers.sum()), entries


def _transfers(scope: Scope, windows: Windows, is_open: Bools) -> Floats:
    """(K,) about how many transfer columns each replica has."""
    problem = scope.problem
    owner = np.repeat(np.arange(problem.num_modes), np.diff(problem.need_ptr))
    last = np.full(problem.num_replicas, -1, dtype=np.int64)
    reading = is_open[owner]
    np.maximum.at(last, problem.need_replica[reading], windows.latest[owner[reading]])
    ticks = np.where(problem.constant_replicas, 1, (last - windows.transfer_earliest + 1).clip(0))
    return np.asarray(ticks.astype(float) * np.diff(problem.route_ptr) * (last >= 0))


def _staging(scope: Scope, starts: Floats, transfers: Floats) -> int:
    """Entries of the rows that let readers wait for arrivals: half of the columns, at every arrival."""
    problem = scope.problem
    owner = np.repeat(np.arange(problem.num_modes), np.diff(problem.need_ptr))
    pair = problem.need_replica * problem.num_tasks + problem.mode_task[owner]
    pairs, inverse = np.unique(pair, return_inverse=True)
    reading, width = np.zeros(len(pairs)), np.zeros(len(pairs))
    np.add.at(reading, inverse, starts[owner])
    np.maximum.at(width, inverse, starts[owner])
    arrivals = transfers[pairs // problem.num_tasks]
    return int((np.minimum(width, arrivals) * (reading + arrivals)).sum()) // 2
