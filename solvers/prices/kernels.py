"""Inner loops of the price bound. One source for floats (search) and integers (proof).

Prices are constant on buckets between ``edges`` and 0 after the last. ``bucket[t]`` is the bucket of tick t.
``before[r, k]`` is the price of one unit of r from tick 0 to edge k.
"""

from typing import Any

import numpy as np

from optalloc.solvers.jit import kernel, part

__all__ = ["accumulate", "add_use", "dual", "least", "narrow", "project", "sweep"]


@kernel
def accumulate(price: Any, edges: Any, before: Any) -> None:
    """Fill ``before`` from ``price``."""
    for r in range(price.shape[0]):
        before[r, 0] = 0
        for k in range(price.shape[1]):
            before[r, k + 1] = before[r, k] + price[r, k] * (edges[k + 1] - edges[k])


@kernel
def _until(before: Any, price: Any, edges: Any, bucket: Any, r: int, tick: int) -> Any:
    """Price of one unit of r from tick 0 to ``tick``."""
    last = len(edges) - 1
    if tick >= edges[last]:
        return before[r, last]
    if tick <= 0:
        return before[r, 0]
    k = bucket[tick]
    return before[r, k] + price[r, k] * (tick - edges[k])


@kernel
def _own(const: Any, slope: Any, tardiness: Any, late: Any, due: int, end: int) -> Any:
    """Own cost of a run that ends at ``end``."""
    value = const + slope * end
    if end > due:
        value += late + tardiness * (end - due)
    return value


@kernel
def _held(
    lo: int,
    hi: int,
    use_resource: Any,
    use_amount: Any,
    before: Any,
    price: Any,
    edges: Any,
    bucket: Any,
    start: int,
    end: int,
) -> Any:
    """Price of the capacity that a run holds in [start, end)."""
    value = before[0, 0] * 0
    for u in range(lo, hi):
        r = use_resource[u]
        span = _until(before, price, edges, bucket, r, end) - _until(before, price, edges, bucket, r, start)
        value += use_amount[u] * span
    return value


@part
def _least_start(
    i: int, lo: int, hi: int, c: Any, slope: Any, tardiness: Any, late: Any, due: int, rows: Any, uses: Any,
    prices: Any, limit: Any,
) -> Any:  # fmt: skip
    """(least cost, start) of row i among those below ``limit``; (limit, first start) if there is none.

    Within an interval of starts the cost is piecewise linear; it can be least only at the ends, at due - p, where a
    price drops at the start, or where one rises at the end of the run.
    """
    first, last, ticks = rows[2], rows[3], rows[4]
    use_resource, use_amount = uses[1], uses[2]
    price, before, edges, bucket = prices
    top = len(edges) - 1
    p, a, b = ticks[i], first[i], last[i]
    best, best_start = limit, a
    own = _own(c, slope, tardiness, late, due, a + p)
    if own >= best:
        return best, best_start
    value = own + _held(lo, hi, use_resource, use_amount, before, price, edges, bucket, a, a + p)
    if value < best:
        best, best_start = value, a
    for t in (due - p, b):
        if a < t <= b:
            own = _own(c, slope, tardiness, late, due, t + p)
            if own < best:
                value = own + _held(lo, hi, use_resource, use_amount, before, price, edges, bucket, t, t + p)
                if value < best:
                    best, best_start = value, t
    for u in range(lo, hi):
        r = use_resource[u]
        for side in range(2):
            shift = p * side
            if a + shift >= edges[top]:
                continue
            k = 1 if a + shift < 0 else bucket[a + shift] + 1
            while k <= top - side:
                t = edges[k] - shift
                if t > b:
                    break
                own = _own(c, slope, tardiness, late, due, t + p)
                if own >= best:
                    break
                after = price[r, k] if k < top else price[r, k - 1] * 0
                drops = after < price[r, k - 1]
                rises = after > price[r, k - 1]
                if t > a and ((side == 0 and drops) or (side == 1 and rises)):
                    value = own + _held(
                        lo, hi, use_resource, use_amount, before, price, edges, bucket, t, t + p
                    )
                    if value < best:
                        best, best_start = value, t
                k += 1
    return best, best_start


@part
def _fallen(i: int, m: int, rows: Any, uses: Any, shares: Any, memory: Any) -> Any:
    """How much the cost of row i can have fallen since the beginning, at most."""
    use_ptr, use_resource, use_amount = uses
    share_ptr, share_index = shares
    drop, share_drop = memory[1], memory[2]
    total = 0.0
    for u in range(use_ptr[m], use_ptr[m + 1]):
        total += use_amount[u] * drop[use_resource[u]]
    total *= rows[4][i]
    for q in range(share_ptr[m], share_ptr[m + 1]):
        total += share_drop[share_index[q]]
    return total


@kernel
def least(
    j: int, rows: Any, tasks: Any, uses: Any, shares: Any, prices: Any, share: Any, end_price: Any, rate: Any,
    memory: Any,
) -> Any:  # fmt: skip
    """(least cost, row or -1 for rejection, start) of task j under the prices.

    ``memory`` is (base, drop, share_drop, last, slack): row i costs at least base[i] less what its prices have fallen
    in all, so that most rows need not be looked at again; last[j] is the row that was best before. Empty arrays:
    nothing is remembered.
    """
    row_ptr, mode, const, low = rows[0], rows[1], rows[5], rows[6]
    slopes, tardinesses, lates, dues, reject = tasks
    use_ptr, use_resource, use_amount = uses
    share_ptr, share_index = shares
    zero = prices[1][0, 0] * 0
    base, last_row, slack = memory[0], memory[3], memory[4]
    remember = len(base) > 0
    slope, tardiness, late, due = slopes[j] + end_price[j], tardinesses[j], lates[j], dues[j]
    best, best_row, best_start = reject[j], -1, 0
    known = last_row[j] if len(last_row) > 0 else -1
    for n in range(row_ptr[j] - 1, row_ptr[j + 1]):
        i = n
        if n < row_ptr[j]:
            if known < 0:
                continue
            i = known
        elif low[i] >= best:
            break
        elif i == known:
            continue
        m = mode[i]
        fallen = 0.0
        if remember:
            fallen = _fallen(i, m, rows, uses, shares, memory)
            if base[i] - fallen >= best:
                continue
        c = const[i] + zero
        for q in range(share_ptr[m], share_ptr[m + 1]):
            c += share[share_index[q]]
        for u in range(use_ptr[m], use_ptr[m + 1]):
            c += rate[use_resource[u]] * use_amount[u] * rows[4][i]
        limit = best + zero
        if remember:
            limit += slack[j]
        value, start = _least_start(
            i, use_ptr[m], use_ptr[m + 1], c, slope, tardiness, late, due, rows, uses, prices, limit
        )
        if remember:
            base[i] = value + fallen
        if value < best:
            best, best_row, best_start = value, i, start
    if remember:
        last_row[j] = best_row
    return best, best_row, best_start


@kernel
def dual(
    rows: Any, tasks: Any, uses: Any, shares: Any, prices: Any, share: Any, end_price: Any, rate: Any, memory: Any,
    free: Any, cost: Any, row: Any, start: Any, begin: int, end: int,
) -> None:  # fmt: skip
    """The minimum of every free task in [begin, end): fills ``cost``, ``row`` and ``start``."""
    accumulate(prices[0], prices[2], prices[1])
    for j in range(begin, end):
        if free[j]:
            found = least(j, rows, tasks, uses, shares, prices, share, end_price, rate, memory)
            cost[j], row[j], start[j] = found
        else:
            cost[j], row[j], start[j] = 0, -1, 0


@kernel
def add_use(used: Any, r: int, amount: Any, start: int, end: int, edges: Any, bucket: Any) -> None:
    """Add the unit-ticks of a run to the buckets that it covers."""
    start, end = max(0, start), min(end, edges[-1])
    if start >= end:
        return
    k = bucket[start]
    while start < end:
        until = min(end, edges[k + 1])
        used[r, k] += amount * (until - start)
        start = until
        k += 1


@kernel
def project(share: Any, pairs: Any, budget: Any) -> Any:
    """Nearest shares >= 0 of one charge that sum to at most ``budget`` (Held, Wolfe and Crowder 1974).

    Returns what each has lost, at most.
    """
    total = 0.0
    for q in pairs:
        total += share[q]
    if total <= budget:
        return 0.0
    values = np.sort(share[pairs])[::-1]
    total, cut = 0.0, 0.0
    for n in range(len(values)):
        total += values[n]
        level = (total - budget) / (n + 1)
        if values[n] > level:
            cut = level
    for q in pairs:
        share[q] = max(0.0, share[q] - cut)
    return cut


@kernel
def sweep(
    rows: Any, tasks: Any, uses: Any, shares: Any, prices: Any, share: Any, end_price: Any, rate: Any, memory: Any,
    order: Any, batches: int, step: float, share_step: float, average: float, mean_price: Any, mean_share: Any,
    areas: Any, lengths: Any, pair_charge: Any, charge: Any, charge_ptr: Any, charge_pair: Any, energy: Any,
    ends: Any, begin: int, end: int,
) -> None:  # fmt: skip
    """Batches [begin, end) of an epoch of the batched incremental subgradient method (Nedic and Bertsekas 2001).

    In one epoch every task comes once.

    After each batch the prices move by ``step`` times (use - its part of the capacity) per tick, and the running means
    follow. ``energy`` (unit-ticks by resource) and ``ends`` of the chosen runs are left for the makespan's multipliers.
    """
    price, before, edges, bucket = prices
    use_ptr, use_resource, use_amount = uses
    share_ptr, share_index = shares
    drop, share_drop = memory[1], memory[2]
    resources, buckets = price.shape
    used = np.zeros((resources, buckets))
    touched = np.zeros(len(charge), np.bool_)
    for batch in range(begin, end):
        lo, hi = batch * len(order) // batches, (batch + 1) * len(order) // batches
        accumulate(price, edges, before)
        used[:] = 0
        touched[:] = False
        for n in range(lo, hi):
            j = order[n]
            _, i, start = least(j, rows, tasks, uses, shares, prices, share, end_price, rate, memory)
            if i < 0:
                continue
            m, p = rows[1][i], rows[4][i]
            ends[j] = start + p
            for u in range(use_ptr[m], use_ptr[m + 1]):
                add_use(used, use_resource[u], use_amount[u], start, start + p, edges, bucket)
                energy[use_resource[u]] += use_amount[u] * p
            for q in range(share_ptr[m], share_ptr[m + 1]):
                pair = share_index[q]
                share[pair] += share_step * charge[pair_charge[pair]]
                touched[pair_charge[pair]] = True
        fraction = (hi - lo) / len(order)
        for r in range(resources):
            most = 0.0
            for k in range(buckets):
                moved = max(0.0, price[r, k] + step * (used[r, k] - fraction * areas[r, k]) / lengths[k])
                most = max(most, price[r, k] - moved)
                price[r, k] = moved
                mean_price[r, k] += average * (moved - mean_price[r, k])
            drop[r] += most
        for c in range(len(charge)):
            if touched[c]:
                pairs = charge_pair[charge_ptr[c] : charge_ptr[c + 1]]
                cut = project(share, pairs, charge[c])
                for q in pairs:
                    share_drop[q] += cut
        for q in range(len(share)):
            mean_share[q] += average * (share[q] - mean_share[q])


@kernel
def narrow(
    rows: Any, tasks: Any, uses: Any, shares: Any, prices: Any, share: Any, end_price: Any, rate: Any,
    reduced: Any, room: int, earliest: Any, latest: Any,
) -> None:  # fmt: skip
    """First and last start of each mode whose cost is within ``room`` of the least cost of its task."""
    row_ptr, mode, first, last, ticks, const, low = rows
    slopes, tardinesses, lates, dues, _ = tasks
    use_ptr, use_resource, use_amount = uses
    share_ptr, share_index = shares
    price, before, edges, bucket = prices
    for j in range(len(row_ptr) - 1):
        limit = reduced[j] + room
        slope, tardiness, late, due = slopes[j] + end_price[j], tardinesses[j], lates[j], dues[j]
        for i in range(row_ptr[j], row_ptr[j + 1]):
            if low[i] > limit:
                break
            m, p = mode[i], ticks[i]
            lo, hi = use_ptr[m], use_ptr[m + 1]
            c = const[i]
            for q in range(share_ptr[m], share_ptr[m + 1]):
                c += share[share_index[q]]
            for u in range(lo, hi):
                c += rate[use_resource[u]] * use_amount[u] * p
            for t in range(first[i], last[i] + 1):
                own = _own(c, slope, tardiness, late, due, t + p)
                if own > limit:
                    break
                if t > earliest[m] and t <= latest[m]:
                    continue
                held = _held(lo, hi, use_resource, use_amount, before, price, edges, bucket, t, t + p)
                if own + held <= limit:
                    earliest[m] = min(earliest[m], t)
                    latest[m] = max(latest[m], t)
