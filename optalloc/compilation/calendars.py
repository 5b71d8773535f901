"""Capacity of a node tick by tick: the least over the seconds of the tick."""

import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction

from optalloc.compilation.units import LONGER_TICKS, bounded

__all__ = ["Steps", "calendar_steps"]

Steps = list[tuple[int, int]]
"""(first tick, amount) pairs; the first at tick 0, the last holds for ever; neighbours differ."""

Window = tuple[Decimal | Fraction | int, Decimal | Fraction | int, int]


def calendar_steps(windows: Sequence[Window] | None, devices: int, tick: Fraction) -> Steps:
    """Capacity profile of a node.

    Parameters
    ----------
    windows
        (start_s, end_s, devices), free of overlaps; nothing outside them; None: all devices always.
    devices
        Size of the node.
    tick
        Seconds in a tick.
    """
    if windows is None:
        return [(0, devices)]
    pieces = _pieces(sorted((Fraction(a) / tick, Fraction(b) / tick, c) for a, b, c in windows))
    return _merged(_tick_values(pieces))


def _pieces(windows: Iterable[tuple[Fraction, Fraction, int]]) -> list[tuple[Fraction, Fraction | None, int]]:
    """[0, infinity) in pieces of constant capacity, gaps included; windows that touch leave no gap."""
    pieces: list[tuple[Fraction, Fraction | None, int]] = []
    until = Fraction(0)
    for begin, end, amount in windows:
        if end <= begin:
            continue
        if begin > until:
            pieces.append((until, begin, 0))
        pieces.append((begin, end, amount))
        until = end
    pieces.append((until, None, 0))
    return pieces


def _tick_values(pieces: Iterable[tuple[Fraction, Fraction | None, int]]) -> dict[int, int]:
    """First tick of every stretch of equal capacity -> least amount over the seconds of its ticks."""
    least: dict[int, int] = {}
    for begin, end, amount in pieces:
        first, inside = math.floor(begin), math.ceil(begin)
        if first < inside:
            least[first] = min(least.get(first, amount), amount)
        if end is None:
            least[inside] = min(least.get(inside, amount), amount)
            continue
        last = math.floor(end)
        if inside < last:
            least[inside] = amount
        if last < end and last >= inside:
            least[last] = min(least.get(last, amount), amount)
    return least


def _merged(values: dict[int, int]) -> Steps:
    steps: Steps = []
    for time in sorted(values):
        if not steps or steps[-1][1] != values[time]:
            steps.append(
                (bounded(time, "nodes", "a tick of an availability window", LONGER_TICKS), values[time])
            )
    return steps
