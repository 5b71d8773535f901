"""Capacity left over time: calendars less what is already reserved, and the starts that it allows."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from optalloc.problem import NEVER
from optalloc.scope import Scope

__all__ = ["Profile", "Spans", "allowed_spans", "residual_profiles"]

Spans = tuple[tuple[int, int], ...]
"""Disjoint ranges of ticks in increasing order."""


@dataclass(frozen=True)
class Profile:
    """A step function of time: ``amounts[i]`` from ``times[i]`` until the next time; the last holds for ever.

    The first time is 0. Amounts may be negative where the fixed part alone asks for more than there is.
    """

    times: tuple[int, ...]
    amounts: tuple[int, ...]

    def segments(self, first: int, last: int) -> Iterator[tuple[int, int, int]]:
        """(from, until, amount) pieces of [first, last), in order."""
        for (begin, amount), (until, _) in pairwise(
            [*zip(self.times, self.amounts, strict=True), (NEVER, 0)]
        ):
            if max(begin, first) < min(until, last):
                yield max(begin, first), min(until, last), amount

    def peak(self, first: int, last: int) -> int:
        """Largest amount in [first, last); 0 if that is empty."""
        return max((amount for *_, amount in self.segments(first, last)), default=0)

    def low(self, first: int, last: int) -> int:
        """Least amount in [first, last); 0 if that is empty."""
        return min((amount for *_, amount in self.segments(first, last)), default=0)

    def area(self, first: int, last: int) -> int:
        """Unit-ticks in [first, last)."""
        return sum((until - begin) * amount for begin, until, amount in self.segments(first, last))

    def below(self, amount: int) -> Spans:
        """Maximal half-open ranges (from, until) in which less than ``amount`` is left."""
        gaps: list[tuple[int, int]] = []
        for begin, until, left in self.segments(0, NEVER):
            if left >= amount:
                continue
            if gaps and gaps[-1][1] == begin:
                gaps[-1] = (gaps[-1][0], until)
            else:
                gaps.append((begin, until))
        return tuple(gaps)

    def less(self, holds: Iterable[tuple[int, int, int]]) -> "Profile":
        """The profile without reservations (from, until, amount); what is before tick 0 does not count."""
        changes: dict[int, int] = {}
        previous = 0
        for time, amount in zip(self.times, self.amounts, strict=True):
            changes[time] = changes.get(time, 0) + amount - previous
            previous = amount
        for begin, until, amount in holds:
            if until > 0:
                changes[max(begin, 0)] = changes.get(max(begin, 0), 0) - amount
                changes[until] = changes.get(until, 0) + amount
        return _cumulated(changes)


def _cumulated(changes: dict[int, int]) -> Profile:
    times: list[int] = []
    amounts: list[int] = []
    level = 0
    for time in sorted(changes):
        level += changes[time]
        if not times or level != amounts[-1]:
            times.append(time)
            amounts.append(level)
    return Profile(tuple(times), tuple(amounts))


def residual_profiles(scope: Scope) -> tuple[Profile, ...]:
    """What fixed runs and fixed transfers leave of every resource."""
    problem = scope.problem
    holds: dict[int, list[tuple[int, int, int]]] = {}
    for resource, start, end, amount in scope.fixed_uses:
        holds.setdefault(resource, []).append((start, end, amount))
    profiles = []
    for resource in range(problem.num_resources):
        times, amounts = (tuple(values.tolist()) for values in problem.capacity(resource))
        profiles.append(Profile(times, amounts).less(holds.get(resource, ())))
    return tuple(profiles)


def allowed_spans(gaps: Iterable[Spans], duration: int, first: int, last: int) -> Spans:
    """Inclusive ranges of starts in [first, last] from which ``duration`` ticks meet none of the ``gaps``."""
    spans: list[tuple[int, int]] = [(first, last)] if first <= last else []
    for gap in gaps:
        for begin, until in gap:
            spans = list(_without(spans, begin - duration + 1, until - 1))
    return tuple(spans)


def _without(spans: list[tuple[int, int]], first: int, last: int) -> Iterator[tuple[int, int]]:
    """``spans`` less the inclusive range [first, last]."""
    for begin, end in spans:
        if begin < first:
            yield begin, min(end, first - 1)
        if end > last:
            yield max(begin, last + 1), end
