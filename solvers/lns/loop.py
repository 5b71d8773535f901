"""The compiled search: take some tasks out, put them back in another order, keep what is better."""

from math import log
from typing import Any

from optalloc.problem import FREE, REJECTED
from optalloc.solvers.jit import Whole, kernel, part
from optalloc.solvers.lns import columns as at
from optalloc.solvers.lns.draws import below, uniform
from optalloc.solvers.lns.neighbours import NAMES, PUSH, TARGET, choose
from optalloc.solvers.lns.placing import (
    best_start,
    earliest,
    held_row,
    may_drop,
    mode_row,
    place,
    plan_row,
    take_out,
    task_row,
    value,
    within,
)  # fmt: skip
from optalloc.solvers.lns.profiles import NEVER, fit

__all__ = ["EVERY_MODE", "keep", "left_shift", "list_tasks", "put", "search"]

EVERY_MODE = 2**40
OPERATORS = len(NAMES)
BLINK = 0.02


@part
def _out(c: Any, n: int) -> Whole:
    return c[at.OUT] + at.OUT_COLUMNS * n


# whole plans ------------------------------------------------------------------------------------------------
@kernel
def put(c: Any, s: Any, plan: Any, route: Any) -> None:
    """Fill an empty state: ``plan`` has (mode, start) of each task, ``route`` the routes of replicas (-1: any)."""
    for k in range(c[at.REPLICAS]):
        s[held_row(c, k) + at.ONLY] = route[k]
    for j in range(c[at.TASKS]):
        if plan[j, 0] >= 0 or plan[j, 0] == REJECTED:
            place(c, s, j, plan[j, 0], plan[j, 1])
        else:
            s[plan_row(c, j) + at.CHOSEN] = plan[j, 0]
    for k in range(c[at.REPLICAS]):
        s[held_row(c, k) + at.ONLY] = -1


@kernel
def keep(c: Any, s: Any) -> bool:
    """Copy the current plan if it is better than the best so far."""
    now = value(c, s, 0)
    if now >= s[c[at.BEST]]:
        return False
    s[c[at.BEST]] = now
    for j in range(c[at.TASKS]):
        s[c[at.BEST_PLAN] + 2 * j] = s[plan_row(c, j) + at.CHOSEN]
        s[c[at.BEST_PLAN] + 2 * j + 1] = s[plan_row(c, j) + at.START]
    for k in range(c[at.REPLICAS]):
        s[c[at.BEST_ROUTE] + k] = s[held_row(c, k) + at.ROUTE]
    return True


@kernel
def left_shift(c: Any, s: Any, rank: Any) -> None:
    """Move every free run, in the order ``rank``, to its earliest start in the same mode; routes stay."""
    for n in range(len(rank)):
        j = rank[n]
        if s[plan_row(c, j) + at.CHOSEN] >= 0 and c[task_row(c, j) + at.IS_FREE]:
            _shift(c, s, j)


@kernel
def list_tasks(c: Any, x: Any, s: Any, rank: Any, theta: float) -> Whole:
    """List scheduling: put every waiting task in the order ``rank``; returns the first that has no place, or -1."""
    for n in range(len(rank)):
        j = rank[n]
        if s[plan_row(c, j) + at.CHOSEN] == FREE and not _insert(c, x, s, j, EVERY_MODE, theta, 0.0):
            return j
    return -1


# insertion --------------------------------------------------------------------------------------------------
@part
def _ready(c: Any, s: Any, j: int) -> bool:
    """No predecessor of j waits."""
    task = task_row(c, j)
    for i in range(c[task + at.PRED_LO], c[task + at.PRED_HI], 2):  # noqa: SIM110 (kernels have no generators)
        if s[plan_row(c, c[i]) + at.CHOSEN] == FREE:
            return False
    return True


@kernel
def _insert(c: Any, x: Any, s: Any, j: int, count: int, theta: float, blink: float) -> bool:
    """Put waiting task j where the guide is least, or reject it if that costs less."""
    mode, start, guide = best_start(c, x, s, j, count, theta, blink)
    if may_drop(c, s, j) and c[task_row(c, j) + at.COEFFICIENTS + at.REJECT] < guide:
        place(c, s, j, REJECTED, 0)
        return True
    if mode < 0:
        return False
    place(c, s, j, mode, start)
    return True


@part
def _insert_again(c: Any, s: Any, j: int, m: int) -> bool:
    """Put waiting task j as early as mode m allows."""
    start = earliest(c, s, j, m) if m >= 0 else NEVER
    if start >= NEVER or not (c[at.FORMS] == 1 or within(c, s, j, m, start)):
        return False
    place(c, s, j, m, start)
    return True


@part
def _insert_all(c: Any, x: Any, s: Any, found: int, count: int, theta: float, stay: float) -> Whole:
    """Put the tasks taken out back, each as soon as its predecessors are; returns how many were.

    All but the first keep the mode in ``KEY`` with probability ``stay``, where they can.
    """
    for done in range(found):
        n = done
        while n < found and not _ready(c, s, s[_out(c, n) + at.ORDER]):
            n += 1
        if n == found:
            return done
        j = s[_out(c, n) + at.ORDER]
        for i in range(n, done, -1):
            s[_out(c, i) + at.ORDER] = s[_out(c, i - 1) + at.ORDER]
        s[_out(c, done) + at.ORDER] = j
        stays = stay > 0.0 and done > 0 and uniform(c, s) < stay
        if stays and _insert_again(c, s, j, s[c[at.KEY] + j]):
            continue
        if not _insert(c, x, s, j, count, theta, BLINK):
            return done
    return found


@part
def _order_key(c: Any, s: Any, kind: int, n: int) -> Whole:
    """Where a task goes in the order: random, as it was, or short and important ones first; with noise."""
    out = _out(c, n)
    m = s[out + at.OLD_MODE]
    if kind == 0 or m < 0:
        return below(c, s, 2**40)
    if kind == 1:
        return 1000 * s[out + at.OLD_START] + below(c, s, 6000)
    if kind == 2:
        task = task_row(c, s[out + at.PICKED]) + at.COEFFICIENTS
        weight = c[task + at.SLOPE] + c[task + at.TARDINESS] + 1e-6
        return int(1e6 * c[mode_row(c, m) + at.TICKS] / weight * (0.6 + uniform(c, s)))
    if kind == 4 and c[task_row(c, s[out + at.PICKED]) + at.WANT_MODE] >= 0:
        return 1000 * c[task_row(c, s[out + at.PICKED]) + at.WANT_START] + below(c, s, 3000)
    return 1000 * s[out + at.OLD_START] + below(c, s, 1000)


@part
def _order(c: Any, s: Any, operator: int, found: int) -> None:
    kind = below(c, s, 5)
    if operator == PUSH and kind != 1 and kind != 4:
        kind = 5
    for n in range(found):
        s[c[at.KEY] + s[_out(c, n) + at.PICKED]] = _order_key(c, s, kind, n)
    if operator in (TARGET, PUSH) or kind == 3:
        # One of them comes first.
        first = below(c, s, found) if kind == 3 and operator != TARGET else 0
        s[c[at.KEY] + s[_out(c, first) + at.PICKED]] = -1
    for n in range(found):
        j, i = s[_out(c, n) + at.PICKED], n
        while i > 0 and s[c[at.KEY] + s[_out(c, i - 1) + at.ORDER]] > s[c[at.KEY] + j]:
            s[_out(c, i) + at.ORDER] = s[_out(c, i - 1) + at.ORDER]
            i -= 1
        s[_out(c, i) + at.ORDER] = j


# a step -----------------------------------------------------------------------------------------------------
@part
def _save(c: Any, s: Any) -> None:
    for k in range(c[at.REPLICAS]):
        s[c[at.SAVED] + 2 * k] = s[held_row(c, k) + at.ROUTE]
        s[c[at.SAVED] + 2 * k + 1] = s[held_row(c, k) + at.ONLY]


@part
def _back(c: Any, s: Any, found: int, done: int, moved: int) -> None:
    """Undo a step of which the first ``done`` tasks are placed anew, and ``moved`` others were moved."""
    for n in range(done):
        take_out(c, s, s[_out(c, n) + at.ORDER])
    for n in range(found, found + moved):
        take_out(c, s, s[_out(c, n) + at.PICKED])
    for k in range(c[at.REPLICAS]):
        s[held_row(c, k) + at.ONLY] = s[c[at.SAVED] + 2 * k]
    for n in range(found + moved):
        out = _out(c, n)
        place(c, s, s[out + at.PICKED], s[out + at.OLD_MODE], s[out + at.OLD_START])
    for k in range(c[at.REPLICAS]):
        s[held_row(c, k) + at.ONLY] = s[c[at.SAVED] + 2 * k + 1]


# closing gaps -----------------------------------------------------------------------------------------------
@part
def _mark(c: Any, s: Any, m: int, sign: int) -> None:
    if m >= 0 and c[mode_row(c, m) + at.NODE] >= 0:
        s[c[at.MARK] + c[mode_row(c, m) + at.NODE]] = sign


@part
def _touched(c: Any, s: Any, found: int) -> Whole:
    """List, by start, the tasks after the step on nodes that it touched; returns how many."""
    first, count = NEVER, 0
    for n in range(found):
        out = _out(c, n)
        _mark(c, s, s[out + at.OLD_MODE], 1)
        if s[out + at.OLD_MODE] >= 0:
            first = min(first, s[out + at.OLD_START])
    for j in range(c[at.TASKS]):
        plan = plan_row(c, j)
        m, start = s[plan + at.CHOSEN], s[plan + at.START]
        if m < 0 or start <= first or not c[task_row(c, j) + at.IS_FREE]:
            continue
        node = c[mode_row(c, m) + at.NODE]
        if node < 0 or s[c[at.MARK] + node] == 0:
            continue
        i = count
        while i > 0 and s[plan_row(c, s[c[at.KEY] + i - 1]) + at.START] > start:
            s[c[at.KEY] + i] = s[c[at.KEY] + i - 1]
            i -= 1
        s[c[at.KEY] + i] = j
        count += 1
    for n in range(found):
        _mark(c, s, s[_out(c, n) + at.OLD_MODE], 0)
    return count


@part
def _picked_before(c: Any, s: Any, found: int, j: int) -> Whole:
    for n in range(found):  # noqa: SIM110 (kernels have no generators)
        if s[_out(c, n) + at.PICKED] == j:
            return True
    return False


@part
def _close_gaps(c: Any, s: Any, found: int) -> Whole:
    """Shift tasks left on the nodes that a step touched; returns how many others were moved."""
    moved = 0
    for n in range(_touched(c, s, found)):
        j = s[c[at.KEY] + n]
        m, start = s[plan_row(c, j) + at.CHOSEN], s[plan_row(c, j) + at.START]
        if not _gap_before(c, s, m, start):
            continue
        known = _picked_before(c, s, found, j)
        if not known:
            out = _out(c, found + moved)
            s[out + at.PICKED] = j
            s[out + at.OLD_MODE] = m
            s[out + at.OLD_START] = start
        _shift(c, s, j)
        if not known and s[plan_row(c, j) + at.START] < start:
            moved += 1
    return moved


@part
def _gap_before(c: Any, s: Any, m: int, start: int) -> Whole:
    """What a run in mode m from ``start`` holds is free a tick earlier too."""
    mode = mode_row(c, m)
    for u in range(c[mode + at.USE_LO], c[mode + at.USE_HI], 2):
        span = c[at.SPAN] + 2 * c[u]
        if fit(s, s[span + at.AT], s[span + at.UNTIL], c[u + 1], start - 1, 1, start - 1) != start - 1:
            return False
    return True


@part
def _shift(c: Any, s: Any, j: int) -> None:
    """Move a run to its earliest start in the same mode; routes stay."""
    m, start = s[plan_row(c, j) + at.CHOSEN], s[plan_row(c, j) + at.START]
    mode = mode_row(c, m)
    lo, hi = c[mode + at.NEED_LO], c[mode + at.NEED_HI]
    for i in range(lo, hi):
        held = held_row(c, c[i])
        s[held + at.KEPT] = s[held + at.ONLY]
        s[held + at.ONLY] = s[held + at.ROUTE]
    take_out(c, s, j)
    place(c, s, j, m, min(earliest(c, s, j, m), start))
    for i in range(lo, hi):
        s[held_row(c, c[i]) + at.ONLY] = s[held_row(c, c[i]) + at.KEPT]


@part
def _unbias(c: Any, s: Any) -> None:
    for k in range(c[at.REPLICAS]):
        s[held_row(c, k) + at.BIAS] = at.NORMAL


@part
def _draw(c: Any, s: Any) -> Whole:
    """A neighbourhood, by weight."""
    total = 0
    for i in range(OPERATORS):
        total += s[c[at.WEIGHT] + i]
    left = below(c, s, total)
    for i in range(OPERATORS):
        left -= s[c[at.WEIGHT] + i]
        if left < 0:
            return i
    return 0


@part
def _take_out_all(c: Any, s: Any, found: int) -> None:
    for n in range(found):
        out = _out(c, n)
        j = s[out + at.PICKED]
        s[out + at.OLD_MODE] = s[plan_row(c, j) + at.CHOSEN]
        s[out + at.OLD_START] = s[plan_row(c, j) + at.START]
        take_out(c, s, j)


@part
def _step(c: Any, x: Any, s: Any, size: int, count: int, theta: float, slack: float) -> bool:
    """One step; whether the plan was changed. One that is worse by about ``slack`` is accepted at times."""
    operator = _draw(c, s)
    s[c[at.COUNTS] + 2 * operator] += 1
    _save(c, s)
    before = value(c, s, 0)
    found = choose(c, x, s, operator, min(2 + below(c, s, size - 1), c[at.TASKS]))
    if found > 0:
        _take_out_all(c, s, found)
        _order(c, s, operator, found)
    stay = 0.0
    if operator == PUSH:
        # So many tasks can be put back only because most do not look for another mode.
        stay = 0.8 + 0.2 * uniform(c, s)
        for n in range(found):
            s[c[at.KEY] + s[_out(c, n) + at.PICKED]] = s[_out(c, n) + at.OLD_MODE]
    done = _insert_all(c, x, s, found, count, theta, stay)
    _unbias(c, s)
    moved, after = 0, value(c, s, 0)
    # Gaps are closed only where that has helped enough before.
    if found > 0 and done == found and after - before <= s[c[at.GAIN]]:
        moved = _close_gaps(c, s, found)
        gain = after - value(c, s, 0)
        s[c[at.GAIN]] = max(gain, s[c[at.GAIN]] * 999 // 1000)
        after -= gain
    if found == 0 or done < found or after > before - slack * log(uniform(c, s)):
        _back(c, s, found, done, moved)
        return False
    if after < before:
        s[c[at.COUNTS] + 2 * operator + 1] += 1
    return True


@kernel
def search(c: Any, x: Any, s: Any, steps: int, size: int, count: int, theta: float, slack: float) -> Whole:
    """Run ``steps`` steps with up to ``size`` tasks each; returns how many changed the plan.

    Parameters
    ----------
    count
        Modes tried per task; now and then four times as many, or all.
    theta
        Weight of the guide prices; one step in five goes without.
    slack
        Objective that a step may lose, in the mean.
    """
    changed = 0
    for _ in range(steps):
        wide = uniform(c, s)
        many = count if wide < 0.95 else 4 * count if wide < 0.995 else EVERY_MODE
        guide = theta * (0.5 + 0.7 * uniform(c, s)) if uniform(c, s) < 0.8 else 0.0
        if _step(c, x, s, size, many, guide, slack):
            changed += 1
            keep(c, s)
    return changed
