"""Place one task, take one back: the compiled twin of `optalloc.placement` where transfers hold nothing.

It answers like `Timetable.earliest` when no replica has a channel limit or goes to a site with a storage limit.
Names: ``c``, ``x``, ``s`` as in `optalloc.solvers.lns.columns`; j a task; m a mode; k a replica; the address of a row
is called by what the row is about.
"""

from typing import Any

from optalloc.problem import FREE, REJECTED
from optalloc.solvers.jit import Real, Whole, kernel, part
from optalloc.solvers.lns import columns as at
from optalloc.solvers.lns.draws import uniform
from optalloc.solvers.lns.profiles import NEVER, fit, reserve

__all__ = [
    "best_start", "charges", "earliest", "held_row", "increase", "may_drop", "mode_row", "place", "plan_row",
    "replica_row", "take_out", "task_row", "value", "within",
]  # fmt: skip


# rows -------------------------------------------------------------------------------------------------------
@part
def task_row(c: Any, j: int) -> Whole:
    return c[at.TASK] + c[at.TASK_WIDTH] * j


@part
def mode_row(c: Any, m: int) -> Whole:
    return c[at.MODE] + c[at.MODE_WIDTH] * m


@part
def replica_row(c: Any, k: int) -> Whole:
    return c[at.REPLICA] + at.REPLICA_COLUMNS * k


@part
def plan_row(c: Any, j: int) -> Whole:
    """In s."""
    return c[at.PLAN] + at.PLAN_COLUMNS * j


@part
def held_row(c: Any, k: int) -> Whole:
    """In s."""
    return c[at.HELD] + at.HELD_COLUMNS * k


# replicas ---------------------------------------------------------------------------------------------------
@part
def _route(c: Any, s: Any, k: int, by: int) -> Whole:
    """The cheapest route of replica k that arrives by tick ``by``, the faster one among equals; -1: none."""
    replica, only, best = replica_row(c, k), s[held_row(c, k) + at.ONLY], -1
    for q in range(c[replica + at.ROUTE_LO], c[replica + at.ROUTE_HI], 2):
        if (only >= 0 and q != only) or c[replica + at.FROM_TICK] + c[q] > by:
            continue
        if best < 0 or c[q + 1] < c[best + 1] or (c[q + 1] == c[best + 1] and c[q] < c[best]):
            best = q
    return best


@part
def _arrival(c: Any, s: Any, k: int) -> Whole:
    """First tick at which replica k can be read, as it is or over its fastest route."""
    replica, held = replica_row(c, k), held_row(c, k)
    if c[replica + at.FIXED] >= 0:
        return c[replica + at.FIXED]
    if s[held + at.READERS] > 0:
        return s[held + at.ARRIVAL]
    first = NEVER
    for q in range(c[replica + at.ROUTE_LO], c[replica + at.ROUTE_HI], 2):
        if s[held + at.ONLY] < 0 or s[held + at.ONLY] == q:
            first = min(first, c[replica + at.FROM_TICK] + c[q])
    return first


@part
def _unpaid(c: Any, s: Any, k: int) -> Whole:
    """Nobody has brought replica k."""
    return c[replica_row(c, k) + at.FIXED] < 0 and s[held_row(c, k) + at.READERS] == 0


# starts -----------------------------------------------------------------------------------------------------
@part
def _lowest(c: Any, s: Any, j: int, m: int) -> Whole:
    """First start that everything but capacity allows, or NEVER."""
    task, mode = task_row(c, j), mode_row(c, m)
    lower = c[mode + at.FIRST]
    for i in range(c[task + at.PRED_LO], c[task + at.PRED_HI], 2):
        pred = plan_row(c, c[i])
        if s[pred + at.CHOSEN] >= 0:
            lower = max(lower, s[pred + at.END] + c[i + 1])
        elif s[pred + at.CHOSEN] == REJECTED:
            return NEVER
    for i in range(c[mode + at.NEED_LO], c[mode + at.NEED_HI]):
        lower = max(lower, _arrival(c, s, c[i]))
    return lower


@part
def _last_start(c: Any, s: Any, j: int, m: int) -> Whole:
    """Last start that the window and placed successors allow."""
    task, mode = task_row(c, j), mode_row(c, m)
    latest = c[mode + at.LAST]
    for i in range(c[task + at.SUCC_LO], c[task + at.SUCC_HI], 2):
        succ = plan_row(c, c[i])
        if s[succ + at.CHOSEN] >= 0:
            latest = min(latest, s[succ + at.START] - c[i + 1] - c[mode + at.TICKS])
    return latest


@kernel
def earliest(c: Any, s: Any, j: int, m: int) -> Whole:
    """Earliest start of task j in mode m, or NEVER."""
    start, latest, mode = _lowest(c, s, j, m), _last_start(c, s, j, m), mode_row(c, m)
    lo, hi = c[mode + at.USE_LO], c[mode + at.USE_HI]
    if start > latest:
        return NEVER
    while True:
        first = start
        for u in range(lo, hi, 2):
            span = c[at.SPAN] + 2 * c[u]
            first = fit(s, s[span + at.AT], s[span + at.UNTIL], c[u + 1], first, c[mode + at.TICKS], latest)
            if first >= NEVER:
                return NEVER
        if first == start or hi - lo == 2:
            return first
        start = first


# money ------------------------------------------------------------------------------------------------------
@part
def _purchases(c: Any, s: Any, m: int) -> Whole:
    """Price of what mode m needs bought and nobody has."""
    mode, money = mode_row(c, m), 0
    for i in range(c[mode + at.BUY_LO], c[mode + at.BUY_HI], 2):
        if s[c[at.BUYERS] + c[i]] == 0:
            money += c[i + 1]
    return money


@part
def charges(c: Any, s: Any, m: int, start: int, biased: bool) -> Whole:
    """Money for transfers and purchases that a run in mode m from ``start`` adds, its own not counted.

    ``biased``: as the guide sees it; then -1 if a closed replica is needed.
    """
    mode, money = mode_row(c, m), _purchases(c, s, m)
    for i in range(c[mode + at.NEED_LO], c[mode + at.NEED_HI]):
        bias = s[held_row(c, c[i]) + at.BIAS]
        if biased and bias == at.CLOSED:
            return -1
        if _unpaid(c, s, c[i]) and not (biased and bias == at.GRATIS):
            money += c[_route(c, s, c[i], start) + 1]
    return money


@part
def own(c: Any, f: int, j: int, m: int, end: int) -> Whole:
    """What task j in mode m ending at ``end`` adds to form f by itself."""
    task = task_row(c, j)
    row = task + at.COEFFICIENTS + at.FORM_COLUMNS * f
    cost = c[mode_row(c, m) + at.CONST + f] + c[row + at.SLOPE] * end
    over = end - c[task + at.DUE]
    if over > 0:
        cost += c[row + at.TARDINESS] * over + c[row + at.LATE]
    return cost


@part
def increase(c: Any, s: Any, f: int, j: int, m: int, start: int, money: int) -> Whole:
    """What placing task j adds to form f."""
    form, end = c[at.FORM] + at.FORM_FACTS * f, start + c[mode_row(c, m) + at.TICKS]
    later = max(0, end - s[c[at.LATEST]])
    return own(c, f, j, m, end) + c[form + at.MONEY] * money + c[form + at.MAKESPAN] * later


@kernel
def value(c: Any, s: Any, f: int) -> Whole:
    """Form f of what is placed and rejected."""
    return (
        s[c[at.SUMS] + 2 * f + at.TOTAL] + c[c[at.FORM] + at.FORM_FACTS * f + at.MAKESPAN] * s[c[at.LATEST]]
    )


@part
def _room(c: Any, s: Any, f: int, j: int) -> Whole:
    """How much task j may add to form f, the other waiting tasks at their least."""
    rest = (
        s[c[at.SUMS] + 2 * f + at.WAITING]
        - c[task_row(c, j) + at.COEFFICIENTS + at.FORM_COLUMNS * f + at.LEAST]
    )
    return c[c[at.FORM] + at.FORM_FACTS * f + at.BOUND] - value(c, s, f) - rest


@part
def within(c: Any, s: Any, j: int, m: int, start: int) -> bool:
    """Whether placing task j passes no cap."""
    money = charges(c, s, m, start, False)
    for f in range(1, c[at.FORMS]):  # noqa: SIM110 (kernels have no generators)
        if increase(c, s, f, j, m, start, money) > _room(c, s, f, j):
            return False
    return True


# guide ------------------------------------------------------------------------------------------------------
@part
def _until(c: Any, x: Any, r: int, tick: int) -> Real:
    """Guide price of one unit of r from tick 0 to ``tick``."""
    last = c[at.EDGES] - 1
    before = c[at.BEFORE] + r * c[at.EDGES]
    if tick >= c[c[at.EDGE] + last]:
        return x[before + last]
    k = c[c[at.BUCKET] + max(tick, 0)]
    return x[before + k] + x[c[at.PRICE] + r * last + k] * (tick - c[c[at.EDGE] + k])


@part
def priced(c: Any, x: Any, m: int, start: int) -> Real:
    """Guide price of what a run holds."""
    mode = mode_row(c, m)
    total, end = 0.0, start + c[mode + at.TICKS]
    for u in range(c[mode + at.USE_LO], c[mode + at.USE_HI], 2):
        total += c[u + 1] * (_until(c, x, c[u], end) - _until(c, x, c[u], start))
    return total


@kernel
def best_start(
    c: Any, x: Any, s: Any, j: int, count: int, theta: float, blink: float
) -> tuple[int, int, float]:
    """(mode, start, guide value) of the best of the first ``count`` candidates of task j; mode -1: none.

    The guide adds ``theta`` times the price of the capacity held to what the placement adds to the objective.
    """
    best, best_mode, best_at = 1e300, -1, 0
    task = task_row(c, j)
    lo = c[task + at.CAND_LO]
    for i in range(lo, min(c[task + at.CAND_HI], lo + count)):
        if x[c[at.LOW] + i - c[at.CAND]] >= best or (blink > 0.0 and uniform(c, s) < blink):
            continue
        m = c[i]
        start = earliest(c, s, j, m)
        if start >= NEVER:
            continue
        money = charges(c, s, m, start, True)
        if money < 0:
            continue
        guide = float(increase(c, s, 0, j, m, start, money))
        if theta > 0.0:
            guide += theta * priced(c, x, m, start)
        if guide < best and (c[at.FORMS] == 1 or within(c, s, j, m, start)):
            best, best_mode, best_at = guide, m, start
    return best_mode, best_at, best


# changes ----------------------------------------------------------------------------------------------------
@part
def _hold(c: Any, s: Any, m: int, start: int, sign: int) -> None:
    """Reserve (sign 1) or free (-1) what a run holds."""
    mode = mode_row(c, m)
    for u in range(c[mode + at.USE_LO], c[mode + at.USE_HI], 2):
        span = c[at.SPAN] + 2 * c[u]
        end = start + c[mode + at.TICKS]
        s[span + at.UNTIL] = reserve(s, s[span + at.AT], s[span + at.UNTIL], sign * c[u + 1], start, end)


@part
def _add(c: Any, s: Any, f: int, column: int, amount: int) -> None:
    s[c[at.SUMS] + 2 * f + column] += amount


@part
def _wait(c: Any, s: Any, j: int, sign: int) -> None:
    """Task j waits (sign 1), or does not any more (-1)."""
    task = task_row(c, j)
    if c[task + at.IS_FREE]:
        for f in range(c[at.FORMS]):
            _add(c, s, f, at.WAITING, sign * c[task + at.COEFFICIENTS + at.FORM_COLUMNS * f + at.LEAST])


@part
def _reject(c: Any, s: Any, j: int, sign: int) -> None:
    for f in range(c[at.FORMS]):
        _add(c, s, f, at.TOTAL, sign * c[task_row(c, j) + at.COEFFICIENTS + at.FORM_COLUMNS * f + at.REJECT])


@part
def _charge(c: Any, s: Any, j: int, m: int, end: int, money: int, sign: int) -> None:
    """Add what a run and its charges are worth to all forms, or take it away (sign -1)."""
    for f in range(c[at.FORMS]):
        cost = own(c, f, j, m, end) + c[c[at.FORM] + at.FORM_FACTS * f + at.MONEY] * money
        _add(c, s, f, at.TOTAL, sign * cost)


@kernel
def place(c: Any, s: Any, j: int, m: int, start: int) -> None:
    """Place waiting task j; m may be REJECTED. A replica is opened over the cheapest route that is in time."""
    plan, mode = plan_row(c, j), mode_row(c, m)
    _wait(c, s, j, -1)
    s[plan + at.CHOSEN] = m
    if m == REJECTED:
        _reject(c, s, j, 1)
        return
    end = start + c[mode + at.TICKS]
    s[plan + at.START] = start
    s[plan + at.END] = end
    s[c[at.LATEST]] = max(s[c[at.LATEST]], end)
    _charge(c, s, j, m, end, charges(c, s, m, start, False), 1)
    for i in range(c[mode + at.NEED_LO], c[mode + at.NEED_HI]):
        k = c[i]
        held = held_row(c, k)
        if _unpaid(c, s, k):
            s[held + at.ROUTE] = _route(c, s, k, start)
            s[held + at.ARRIVAL] = c[replica_row(c, k) + at.FROM_TICK] + c[s[held + at.ROUTE]]
        s[held + at.READERS] += 1
    for i in range(c[mode + at.BUY_LO], c[mode + at.BUY_HI], 2):
        s[c[at.BUYERS] + c[i]] += 1
    _hold(c, s, m, start, 1)


@kernel
def take_out(c: Any, s: Any, j: int) -> None:
    """Take task j back; replicas without readers and purchases without users go with it."""
    plan = plan_row(c, j)
    m, start, end = s[plan + at.CHOSEN], s[plan + at.START], s[plan + at.END]
    _wait(c, s, j, 1)
    s[plan + at.CHOSEN] = FREE
    if m == REJECTED:
        _reject(c, s, j, -1)
        return
    mode, money = mode_row(c, m), 0
    for i in range(c[mode + at.NEED_LO], c[mode + at.NEED_HI]):
        held = held_row(c, c[i])
        s[held + at.READERS] -= 1
        if _unpaid(c, s, c[i]):
            money += c[s[held + at.ROUTE] + 1]
            s[held + at.ROUTE] = -1
    for i in range(c[mode + at.BUY_LO], c[mode + at.BUY_HI], 2):
        s[c[at.BUYERS] + c[i]] -= 1
    _charge(c, s, j, m, end, money + _purchases(c, s, m), -1)
    _hold(c, s, m, start, -1)
    s[plan + at.START] = 0
    s[plan + at.END] = 0
    if end == s[c[at.LATEST]]:
        _find_latest(c, s)


@part
def _find_latest(c: Any, s: Any) -> None:
    """Work out the makespan anew, if any form asks for it."""
    asked = False
    for f in range(c[at.FORMS]):
        asked = asked or c[c[at.FORM] + at.FORM_FACTS * f + at.MAKESPAN] > 0
    if asked:
        latest = 0
        for j in range(c[at.TASKS]):
            latest = max(latest, s[plan_row(c, j) + at.END])
        s[c[at.LATEST]] = latest


@part
def may_drop(c: Any, s: Any, j: int) -> bool:
    """Whether waiting task j may be rejected as things are."""
    task = task_row(c, j)
    if not c[task + at.REJECTABLE]:
        return False
    for i in range(c[task + at.SUCC_LO], c[task + at.SUCC_HI], 2):
        if s[plan_row(c, c[i]) + at.CHOSEN] >= 0:
            return False
    for f in range(1, c[at.FORMS]):
        if c[task + at.COEFFICIENTS + at.FORM_COLUMNS * f + at.REJECT] > _room(c, s, f, j):
            return False
    return True
