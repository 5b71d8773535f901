"""Free capacity over time as event lists in a flat array: the compiled twin of `optalloc.profile`.

A profile is a list of (tick, free) pairs in ``s[lo:hi]``: so much is free from the tick until the next pair, the last
holds for ever. The first tick is 0 and neighbours differ, so that taking a reservation back restores the same list.
"""

from typing import Any, Final

from optalloc.solvers.jit import Whole, kernel, part

__all__ = ["NEVER", "fit", "reserve"]

NEVER: Final = 2**53


@part
def _entry(s: Any, lo: int, hi: int, tick: int) -> Whole:
    """Address of the last pair that begins at or before ``tick``."""
    below, above = 0, (hi - lo) // 2
    while above - below > 1:
        mid = (below + above) // 2
        if s[lo + 2 * mid] <= tick:
            below = mid
        else:
            above = mid
    return lo + 2 * below


@kernel
def fit(s: Any, lo: int, hi: int, amount: int, start: int, duration: int, latest: int) -> Whole:
    """Earliest tick t in [start, latest] with ``amount`` free on [t, t + duration), or NEVER."""
    i = _entry(s, lo, hi, start)
    while True:
        while s[i + 1] < amount:
            i += 2
            if i == hi:
                return NEVER
            start = s[i]
        if start > latest:
            return NEVER
        end = start + duration
        i += 2
        while i < hi and s[i] < end and s[i + 1] >= amount:
            i += 2
        if i == hi or s[i] >= end:
            return start


@part
def _cut(s: Any, lo: int, hi: int, tick: int) -> Whole:
    """Address of the pair that begins at ``tick``; where there is none it is made, and ``~address`` is returned."""
    i = _entry(s, lo, hi, tick)
    if s[i] == tick:
        return i
    for k in range(hi + 1, i + 3, -1):
        s[k] = s[k - 2]
    s[i + 2] = tick
    s[i + 3] = s[i + 1]
    return ~(i + 2)


@part
def _join(s: Any, lo: int, hi: int, i: int) -> Whole:
    """Drop the pair at i if it frees as much as the one before; returns the new end of the list."""
    if i <= lo or i >= hi or s[i + 1] != s[i - 1]:
        return hi
    for k in range(i, hi - 2):
        s[k] = s[k + 2]
    return hi - 2


@kernel
def reserve(s: Any, lo: int, hi: int, amount: int, start: int, end: int) -> Whole:
    """Take ``amount`` (negative: give back) on [start, end); returns the new end of the list.

    Ticks before 0 do not count. There must be room for two more pairs.
    """
    start = max(start, 0)
    if end <= start or amount == 0:
        return hi
    first = _cut(s, lo, hi, start)
    if first < 0:
        first, hi = ~first, hi + 2
    last = _cut(s, lo, hi, end)
    if last < 0:
        last, hi = ~last, hi + 2
    for k in range(first + 1, last, 2):
        s[k] -= amount
    hi = _join(s, lo, hi, last)
    return _join(s, lo, hi, first)
