"""Capacity over time, and what the fixed part leaves of it."""

import numpy as np

from optalloc.problem import NEVER, Ints
from optalloc.scope import Scope

__all__ = ["Profile", "fitting", "free_capacity"]

Profile = tuple[Ints, Ints]
"""Ticks (the first is 0) and the amount from each of them until the next; the last holds for ever."""


def _fixed_uses(scope: Scope) -> dict[int, list[tuple[int, int, int]]]:
    """Resource -> (start, end, amount) of fixed runs and transfers."""
    uses: dict[int, list[tuple[int, int, int]]] = {}
    for resource, start, end, amount in scope.fixed_uses:
        uses.setdefault(resource, []).append((start, end, amount))
    return uses


def _less(profile: Profile, uses: list[tuple[int, int, int]]) -> Profile:
    """``profile`` minus ``uses``; nothing is checked before tick 0."""
    times, amounts = profile
    start, end, amount = np.array(uses, dtype=np.int64).T
    ticks = np.unique(np.concatenate([times, start.clip(0), end.clip(0)]))
    under_way = (start <= ticks[:, None]) & (ticks[:, None] < end)
    return ticks, amounts[np.searchsorted(times, ticks, side="right") - 1] - under_way @ amount


def free_capacity(scope: Scope) -> list[Profile]:
    """What calendars and the fixed part leave of each resource; negative where the fixed part alone takes
    too much.
    """
    uses = _fixed_uses(scope)
    profiles = [scope.problem.capacity(resource) for resource in range(scope.problem.num_resources)]
    return [_less(profile, uses[r]) if r in uses else profile for r, profile in enumerate(profiles)]


def fitting(starts: Ints, duration: int, profile: Profile, amount: int) -> Ints:
    """Those ``starts`` from which ``amount`` is free for ``duration`` ticks."""
    times, amounts = profile
    for i in np.flatnonzero(amounts < amount).tolist():
        until = int(times[i + 1]) if i + 1 < len(times) else NEVER
        starts = starts[(starts >= until) | (starts + duration <= int(times[i]))]
    return starts
