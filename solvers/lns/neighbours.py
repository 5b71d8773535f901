"""Which tasks to take out together. Each neighbourhood lists them in ``OUT`` and returns how many there are."""

from typing import Any, Final

from optalloc.solvers.jit import Real, Whole, part
from optalloc.solvers.lns import columns as at
from optalloc.solvers.lns.draws import below
from optalloc.solvers.lns.placing import held_row, mode_row, own, plan_row, priced, replica_row, task_row

__all__ = ["NAMES", "PUSH", "TARGET", "choose"]

NAMES: Final = (
    "random",
    "node",
    "two-nodes",
    "window",
    "dataset",
    "last",
    "chain",
    "close",
    "open",
    "reroute",
    "target",
    "push",
)
"""The neighbourhoods in the order of their numbers."""

RANDOM, ON_NODE, ON_TWO_NODES, WINDOW, ON_DATASET, LAST, CHAIN, CLOSE, OPEN, REROUTE, TARGET, PUSH = range(
    len(NAMES)
)

_FAR: Final = 2**60
_TICK: Final = 1000
"""Distances count in thousandths of a tick, so that noise can be added."""


@part
def _picked(c: Any, n: int) -> Whole:
    return c[at.OUT] + at.OUT_COLUMNS * n + at.PICKED


@part
def _nearest(c: Any, s: Any, count: int) -> Whole:
    """List the ``count`` tasks with the least keys, least first."""
    found, key = 0, c[at.KEY]
    for j in range(c[at.TASKS]):
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
def _a_task(c: Any, s: Any) -> Whole:
    """A free task; there must be one."""
    while True:
        j = below(c, s, c[at.TASKS])
        if c[task_row(c, j) + at.IS_FREE]:
            return j


@part
def _fact(c: Any, s: Any, j: int, column: int) -> Whole:
    """NODE or DATASET of a task as it is placed now; -1 if it is not."""
    m = s[plan_row(c, j) + at.CHOSEN]
    return c[mode_row(c, m) + column] if m >= 0 else -1


@part
def _noise(draw: int, j: int, most: int) -> Whole:
    """A number in [0, most) by task and draw: a scramble, for a new random number per task costs more."""
    return (draw ^ (j * 40503 + (draw >> 7) * (j + 1))) * 2654435 % 1000003 * most // 1000003


@part
def _distance(c: Any, s: Any, operator: int, j: int, seed: int, node: int, other: int, draw: int) -> Whole:
    """How far task j is from the seed task, with some noise."""
    plan = plan_row(c, j)
    if operator == RANDOM:
        return _noise(draw, j, _TICK * _TICK)
    if operator == LAST:
        return -_TICK * s[plan + at.END] + _noise(draw, j, 10 * _TICK)
    if s[plan + at.CHOSEN] < 0:
        return _noise(draw, j, 20 * _TICK)
    away = _TICK * abs(s[plan + at.START] - s[plan_row(c, seed) + at.START])
    if operator == WINDOW:
        return away + _noise(draw, j, 6 * _TICK)
    if operator == ON_DATASET:
        related = _fact(c, s, j, at.DATASET) == node
        return away + _noise(draw, j, 6 * _TICK) if related else _FAR
    on = _fact(c, s, j, at.NODE)
    return away + _noise(draw, j, _TICK) if on in (node, other) else _FAR


@part
def _related(c: Any, s: Any, operator: int, count: int) -> Whole:
    """Tasks near a seed task in time, on its node or dataset where the neighbourhood says so."""
    seed = _a_task(c, s)
    node = _fact(c, s, seed, at.DATASET if operator == ON_DATASET else at.NODE)
    other = _fact(c, s, _a_task(c, s), at.NODE) if operator == ON_TWO_NODES else node
    draw = below(c, s, 2**20)
    for j in range(c[at.TASKS]):
        free = c[task_row(c, j) + at.IS_FREE]
        s[c[at.KEY] + j] = _distance(c, s, operator, j, seed, node, other, draw) if free else _FAR
    if operator != LAST:
        s[c[at.KEY] + seed] = -1
    return _nearest(c, s, count)


@part
def _regret(c: Any, x: Any, s: Any, j: int) -> Real:
    """What task j costs at the guide prices where it is, more than where they would put it."""
    plan, task = plan_row(c, j), task_row(c, j)
    m, want = s[plan + at.CHOSEN], c[task + at.WANT_MODE]
    if m < 0 or want < 0:
        return 0.0
    here = _worth(c, x, j, m, s[plan + at.START])
    return here - _worth(c, x, j, want, c[task + at.WANT_START])


@part
def _worth(c: Any, x: Any, j: int, m: int, start: int) -> Real:
    return own(c, 0, j, m, start + c[mode_row(c, m) + at.TICKS]) + priced(c, x, m, start)


@part
def _misplaced(c: Any, x: Any, s: Any) -> Whole:
    """The one of four tasks that is farthest from where the prices would put it."""
    seed = _a_task(c, s)
    most = _regret(c, x, s, seed)
    for _ in range(3):
        j = _a_task(c, s)
        regret = _regret(c, x, s, j)
        if regret > most:
            seed, most = j, regret
    return seed


@part
def _target(c: Any, x: Any, s: Any, count: int) -> Whole:
    """A task that is far from where the prices would put it, and those that are there."""
    seed = _misplaced(c, x, s)
    task = task_row(c, seed)
    if c[task + at.WANT_MODE] >= 0:
        node, middle = c[mode_row(c, c[task + at.WANT_MODE]) + at.NODE], c[task + at.WANT_START]
    else:
        other = _a_task(c, s)
        node, middle = _fact(c, s, other, at.NODE), s[plan_row(c, other) + at.START]
    draw = below(c, s, 2**20)
    for j in range(c[at.TASKS]):
        near = c[task_row(c, j) + at.IS_FREE] and _fact(c, s, j, at.NODE) == node
        away = _TICK * abs(s[plan_row(c, j) + at.START] - middle)
        s[c[at.KEY] + j] = away + _noise(draw, j, 2 * _TICK) if near else _FAR
    s[c[at.KEY] + seed] = -1
    return _nearest(c, s, count)


@part
def _push(c: Any, x: Any, s: Any) -> Whole:
    """A task, and all that a node does from some time on: there is room for it wherever it goes."""
    seed = _misplaced(c, x, s) if below(c, s, 2) == 0 else _a_task(c, s)
    task, other, where = task_row(c, seed), _a_task(c, s), below(c, s, 3)
    node, since = _fact(c, s, seed if where == 1 else other, at.NODE), s[plan_row(c, other) + at.START]
    if where == 0 and c[task + at.WANT_MODE] >= 0:
        node, since = c[mode_row(c, c[task + at.WANT_MODE]) + at.NODE], c[task + at.WANT_START]
    if node < 0:
        return 0
    for j in range(c[at.TASKS]):
        start = s[plan_row(c, j) + at.START]
        on = c[task_row(c, j) + at.IS_FREE] and _fact(c, s, j, at.NODE) == node
        s[c[at.KEY] + j] = start if on and start >= since else _FAR
    s[c[at.KEY] + seed] = -1
    return _nearest(c, s, at.MOST_OUT)


@part
def _reads(c: Any, m: int, k: int) -> bool:
    mode = mode_row(c, m)
    for i in range(c[mode + at.NEED_LO], c[mode + at.NEED_HI]):  # noqa: SIM110 (kernels have no generators)
        if c[i] == k:
            return True
    return False


@part
def _all_readers(c: Any, s: Any, k: int) -> Whole:
    """All free readers of replica k, as far as there is room."""
    found = 0
    for j in range(c[at.TASKS]):
        m = s[plan_row(c, j) + at.CHOSEN]
        if m >= 0 and found < at.MOST_OUT and c[task_row(c, j) + at.IS_FREE] and _reads(c, m, k):
            s[_picked(c, found)] = j
            found += 1
    return found


@part
def _a_replica(c: Any, s: Any, least: int, most: int) -> Whole:
    """A replica that is not fixed and has that many readers; -1: none was met."""
    if c[at.REPLICAS] == 0:
        return -1
    for _ in range(20):
        k = below(c, s, c[at.REPLICAS])
        if c[replica_row(c, k) + at.FIXED] < 0 and least <= s[held_row(c, k) + at.READERS] <= most:
            return k
    return -1


@part
def _close(c: Any, s: Any, count: int) -> Whole:
    """All readers of a replica, which is closed to them."""
    k = _a_replica(c, s, 1, min(4 * count, at.MOST_OUT))
    if k < 0:
        return 0
    s[held_row(c, k) + at.BIAS] = at.CLOSED
    return _all_readers(c, s, k)


@part
def _reroute(c: Any, s: Any) -> Whole:
    """All readers of a replica, which must take a certain route from now on, or may take any."""
    k = _a_replica(c, s, 1, at.MOST_OUT)
    if k < 0:
        return 0
    lo, hi = c[replica_row(c, k) + at.ROUTE_LO], c[replica_row(c, k) + at.ROUTE_HI]
    if hi - lo < 4:
        return 0
    route = lo + 2 * below(c, s, (hi - lo) // 2 + 1)
    s[held_row(c, k) + at.ONLY] = route if route < hi else -1
    return _all_readers(c, s, k)


@part
def _open(c: Any, s: Any, count: int) -> Whole:
    """Some tasks that could read a replica which nobody reads; its charge does not keep them away."""
    k = _a_replica(c, s, 0, 0)
    if k < 0:
        return 0
    s[held_row(c, k) + at.BIAS] = at.GRATIS
    for j in range(c[at.TASKS]):
        s[c[at.KEY] + j] = _FAR
    for i in range(c[replica_row(c, k) + at.READER_LO], c[replica_row(c, k) + at.READER_HI]):
        if c[task_row(c, c[i]) + at.IS_FREE]:
            s[c[at.KEY] + c[i]] = below(c, s, _FAR)
    return _nearest(c, s, count)


@part
def _chain(c: Any, s: Any, count: int) -> Whole:
    """A task and those before and after it, breadth first."""
    s[_picked(c, 0)] = _a_task(c, s)
    found, seen = 1, 0
    while seen < found and found < count:
        task = task_row(c, s[_picked(c, seen)])
        seen += 1
        for side in range(0, 4, 2):
            for i in range(c[task + at.PRED_LO + side], c[task + at.PRED_HI + side], 2):
                known = c[task_row(c, c[i]) + at.IS_FREE] == 0
                for n in range(found):
                    known = known or s[_picked(c, n)] == c[i]
                if not known and found < count:
                    s[_picked(c, found)] = c[i]
                    found += 1
    return found if found > 1 else 0


@part
def choose(c: Any, x: Any, s: Any, operator: int, count: int) -> Whole:
    """Run one neighbourhood; 0: it has nothing to offer as things are."""
    if operator == CLOSE:
        return _close(c, s, count)
    if operator == OPEN:
        return _open(c, s, count)
    if operator == REROUTE:
        return _reroute(c, s)
    if operator == TARGET:
        return _target(c, x, s, count)
    if operator == PUSH:
        return _push(c, x, s)
    if operator == CHAIN:
        return _chain(c, s, count)
    return _related(c, s, operator, count)
