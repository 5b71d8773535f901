"""Which tasks to take out together. Each neighbourhood lists them in ``OUT`` and returns how many there are."""

from typing import Any, Final

from optalloc.solvers.lns.columns import (
    BIAS, CHOSEN, CLOSED, DATASET, END, FIXED, GRATIS, IS_FREE, KEY, MOST_OUT, NEED_HI, NEED_LO, NODE, ONLY, OUT,
    OUT_COLUMNS, PICKED, PRED_HI, PRED_LO, READER_HI, READER_LO, READERS, REPLICAS, ROUTE_HI, ROUTE_LO, START, TASKS,
)  # fmt: skip
from optalloc.solvers.lns.draws import below
from optalloc.solvers.lns.jit import part
from optalloc.solvers.lns.placing import held_row, mode_row, plan_row, replica_row, task_row

__all__ = ["NAMES", "choose"]

NAMES: Final = ("random", "node", "two-nodes", "window", "dataset", "last", "chain", "close", "open", "reroute")
"""The neighbourhoods in the order of their numbers."""

RANDOM, ON_NODE, ON_TWO_NODES, WINDOW, ON_DATASET, LAST, CHAIN, CLOSE, OPEN, REROUTE = range(len(NAMES))

_FAR: Final = 2**60
_TICK: Final = 1000
"""Distances count in thousandths of a tick, so that noise can be added."""


@part
def _picked(c: Any, n: int) -> int:
    return c[OUT] + OUT_COLUMNS * n + PICKED


@part
def _nearest(c: Any, s: Any, count: int) -> int:
    """List the ``count`` tasks with the least keys, least first."""
    found, key = 0, c[KEY]
    for j in range(c[TASKS]):
        distance = s[key + j]
        if distance >= _FAR or (found == count and distance >= s[key + s[_picked(c, found - 1)]]):
            continue
        if found < count:
            found += 1
        i = found - 1
        while i > 0 and s[key + s[_picked(c, i - 1)]] > distance:
            s[_picked(c, i)] = s[_picked(c, i - 1)]
            i -= 1
        s[_picked(c, i)] = j
    return found


@part
def _a_task(c: Any, s: Any) -> int:
    """A free task; there must be one."""
    while True:
        j = below(c, s, c[TASKS])
        if c[task_row(c, j) + IS_FREE]:
            return j


@part
def _fact(c: Any, s: Any, j: int, column: int) -> int:
    """NODE or DATASET of a task as it is placed now; -1 if it is not."""
    m = s[plan_row(c, j) + CHOSEN]
    return c[mode_row(c, m) + column] if m >= 0 else -1


@part
def _distance(c: Any, s: Any, operator: int, j: int, seed: int, node: int, other: int) -> int:
    """How far task j is from the seed task, with some noise."""
    plan = plan_row(c, j)
    if operator == RANDOM:
        return below(c, s, _FAR)
    if operator == LAST:
        return -_TICK * s[plan + END] + below(c, s, 10 * _TICK)
    if s[plan + CHOSEN] < 0:
        return below(c, s, 20 * _TICK)
    away = _TICK * abs(s[plan + START] - s[plan_row(c, seed) + START])
    if operator == WINDOW:
        return away + below(c, s, 6 * _TICK)
    if operator == ON_DATASET:
        related = _fact(c, s, j, DATASET) == node
        return away + below(c, s, 6 * _TICK) if related else _FAR
    on = _fact(c, s, j, NODE)
    return away + below(c, s, _TICK) if on == node or on == other else _FAR


@part
def _related(c: Any, s: Any, operator: int, count: int) -> int:
    """Tasks near a seed task in time, on its node or dataset where the neighbourhood says so."""
    seed = _a_task(c, s)
    node = _fact(c, s, seed, DATASET if operator == ON_DATASET else NODE)
    other = _fact(c, s, _a_task(c, s), NODE) if operator == ON_TWO_NODES else node
    for j in range(c[TASKS]):
        free = c[task_row(c, j) + IS_FREE]
        s[c[KEY] + j] = _distance(c, s, operator, j, seed, node, other) if free else _FAR
    if operator != LAST:
        s[c[KEY] + seed] = -1
    return _nearest(c, s, count)


@part
def _reads(c: Any, m: int, k: int) -> bool:
    mode = mode_row(c, m)
    for i in range(c[mode + NEED_LO], c[mode + NEED_HI]):
        if c[i] == k:
            return True
    return False


@part
def _all_readers(c: Any, s: Any, k: int) -> int:
    """All free readers of replica k, as far as there is room."""
    found = 0
    for j in range(c[TASKS]):
        m = s[plan_row(c, j) + CHOSEN]
        if m >= 0 and found < MOST_OUT and c[task_row(c, j) + IS_FREE] and _reads(c, m, k):
            s[_picked(c, found)] = j
            found += 1
    return found


@part
def _a_replica(c: Any, s: Any, least: int, most: int) -> int:
    """A replica that is not fixed and has that many readers; -1: none was met."""
    if c[REPLICAS] == 0:
        return -1
    for _ in range(20):
        k = below(c, s, c[REPLICAS])
        if c[replica_row(c, k) + FIXED] < 0 and least <= s[held_row(c, k) + READERS] <= most:
            return k
    return -1


@part
def _close(c: Any, s: Any, count: int) -> int:
    """All readers of a replica, which is closed to them."""
    k = _a_replica(c, s, 1, min(4 * count, MOST_OUT))
    if k < 0:
        return 0
    s[held_row(c, k) + BIAS] = CLOSED
    return _all_readers(c, s, k)


@part
def _reroute(c: Any, s: Any) -> int:
    """All readers of a replica, which must take a certain route from now on, or may take any."""
    k = _a_replica(c, s, 1, MOST_OUT)
    if k < 0:
        return 0
    lo, hi = c[replica_row(c, k) + ROUTE_LO], c[replica_row(c, k) + ROUTE_HI]
    if hi - lo < 4:
        return 0
    route = lo + 2 * below(c, s, (hi - lo) // 2 + 1)
    s[held_row(c, k) + ONLY] = route if route < hi else -1
    return _all_readers(c, s, k)


@part
def _open(c: Any, s: Any, count: int) -> int:
    """Some tasks that could read a replica which nobody reads; its charge does not keep them away."""
    k = _a_replica(c, s, 0, 0)
    if k < 0:
        return 0
    s[held_row(c, k) + BIAS] = GRATIS
    for j in range(c[TASKS]):
        s[c[KEY] + j] = _FAR
    for i in range(c[replica_row(c, k) + READER_LO], c[replica_row(c, k) + READER_HI]):
        if c[task_row(c, c[i]) + IS_FREE]:
            s[c[KEY] + c[i]] = below(c, s, _FAR)
    return _nearest(c, s, count)


@part
def _chain(c: Any, s: Any, count: int) -> int:
    """A task and those before and after it, breadth first."""
    s[_picked(c, 0)] = _a_task(c, s)
    found, at = 1, 0
    while at < found and found < count:
        task = task_row(c, s[_picked(c, at)])
        at += 1
        for side in range(0, 4, 2):
            for i in range(c[task + PRED_LO + side], c[task + PRED_HI + side], 2):
                known = c[task_row(c, c[i]) + IS_FREE] == 0
                for n in range(found):
                    known = known or s[_picked(c, n)] == c[i]
                if not known and found < count:
                    s[_picked(c, found)] = c[i]
                    found += 1
    return found if found > 1 else 0


@part
def choose(c: Any, s: Any, operator: int, count: int) -> int:
    """Run one neighbourhood; 0: it has nothing to offer as things are."""
    if operator == CLOSE:
        return _close(c, s, count)
    if operator == OPEN:
        return _open(c, s, count)
    if operator == REROUTE:
        return _reroute(c, s)
    if operator == CHAIN:
        return _chain(c, s, count)
    return _related(c, s, operator, count)
