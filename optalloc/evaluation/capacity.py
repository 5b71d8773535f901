"""Find where more is held than there is: one sweep over all resources at once."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from optalloc.evaluation.view import View
from optalloc.problem import CHANNEL, Bools, Ints, entries

__all__ = ["Overload", "overloads"]


@dataclass(frozen=True)
class Overload:
    """More is used than there is, in [tick, until).

    Attributes
    ----------
    used, capacity
        At ``tick``.
    runs
        Indices (into the placed tasks) of the runs that hold the resource at ``tick``.
    transfers
        Indices into the plan's transfers, likewise.
    """

    resource: int
    tick: int
    until: int
    used: int
    capacity: int
    runs: tuple[int, ...]
    transfers: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class _Holds:
    """Who (>= 0: placed task, < 0: transfer ``-1 - who``) holds how much of which resource, and when."""

    who: Ints
    resource: Ints
    amount: Ints
    start: Ints
    end: Ints

    def __getitem__(self, keep: Bools) -> "_Holds":
        columns = (self.who, self.resource, self.amount, self.start, self.end)
        return _Holds(*(column[keep] for column in columns))


def overloads(view: View, kinds: tuple[int, ...]) -> Iterator[Overload]:
    """Every longest interval of ticks >= 0 in which a resource of these kinds is overloaded."""
    holds = _holds(view, kinds)
    if not len(holds.who):
        return
    resource, time, used, capacity, until = _load(view, holds)
    over = used > capacity
    # An interval goes on where the entry before is an overload of the same resource.
    goes_on = np.concatenate([[False], over[:-1] & over[1:] & (resource[:-1] == resource[1:])])
    firsts = np.flatnonzero(over & ~goes_on)
    for first in firsts.tolist():
        last = first
        while last + 1 < len(over) and goes_on[last + 1]:
            last += 1
        at, tick = int(resource[first]), int(time[first])
        who = _holders(holds, at, tick)
        yield Overload(
            at,
            tick,
            int(until[last]),
            int(used[first]),
            int(capacity[first]),
            tuple(w for w in who if w >= 0),
            tuple(-1 - w for w in who if w < 0),
        )


def _holds(view: View, kinds: tuple[int, ...]) -> _Holds:
    """What runs and transfers hold at ticks >= 0."""
    which, resource, amount = view.uses
    holds = _Holds(which, resource, amount, view.start[which], view.end[which])
    if CHANNEL in kinds:
        holds = _joined(holds, _channel_holds(view))
    keep = np.isin(view.problem.resource_kind[holds.resource], kinds) & (holds.end > 0)
    holds = holds[keep]
    return _Holds(holds.who, holds.resource, holds.amount, np.maximum(holds.start, 0), holds.end)


def _channel_holds(view: View) -> _Holds:
    """One channel of every link with limited channels, as long as a transfer takes."""
    rows = [
        (-1 - index, channel, 1, transfer.start, transfer.end)
        for index, transfer in enumerate(view.plan.transfers)
        for channel in transfer.channels
    ]
    return _Holds(*np.array(rows, dtype=np.int64).reshape(-1, 5).T)


def _joined(first: _Holds, second: _Holds) -> _Holds:
    pairs = [(getattr(first, name), getattr(second, name)) for name in _Holds.__dataclass_fields__]
    return _Holds(*map(np.concatenate, pairs))


def _load(view: View, holds: _Holds) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """(resource, time, used, capacity, until) wherever the use or the capacity of a resource changes."""
    problem = view.problem
    used_resources = np.unique(holds.resource)
    which, at = entries(problem.cap_ptr, used_resources)
    steps = problem.cap_amount[at].copy()
    same = np.flatnonzero(which[1:] == which[:-1]) + 1
    steps[same] -= problem.cap_amount[at][same - 1]
    zeros = np.zeros(len(holds.who), dtype=np.int64)
    resource = np.concatenate([holds.resource, holds.resource, used_resources[which]])
    time = np.concatenate([holds.start, holds.end, problem.cap_time[at]])
    use_step = np.concatenate([holds.amount, -holds.amount, np.zeros_like(steps)])
    cap_step = np.concatenate([zeros, zeros, steps])
    order = np.lexsort((time, resource))
    resource, time = resource[order], time[order]
    used, capacity = np.cumsum(use_step[order]), np.cumsum(cap_step[order])
    # All uses of a resource end, so its use sums to 0; its capacity is counted from its own first entry.
    first = np.flatnonzero(np.concatenate([[True], resource[1:] != resource[:-1]]))
    sizes = np.diff(np.append(first, len(resource)))
    capacity = capacity - np.repeat(np.concatenate([[0], capacity])[first], sizes)
    last = np.concatenate([(resource[1:] != resource[:-1]) | (time[1:] != time[:-1]), [True]])
    resource, time, used, capacity = resource[last], time[last], used[last], capacity[last]
    until = np.append(time[1:], time[-1])
    return resource, time, used, capacity, until


def _holders(holds: _Holds, resource: int, tick: int) -> list[int]:
    at = (holds.resource == resource) & (holds.start <= tick) & (tick < holds.end)
    return sorted(set(holds.who[at].tolist()), key=lambda who: (who < 0, abs(who)))
