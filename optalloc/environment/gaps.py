"""Free capacity as arrays of gaps: the earliest fit of many runs in one go."""

from collections.abc import Iterator

import numpy as np

from optalloc.environment.layout import Layout
from optalloc.problem import NEVER, Ints
from optalloc.profile import Profile

__all__ = ["Gaps"]

_FOR_EVER = 2**60
"""End of a gap that never closes: later than NEVER and a run after it."""


class Gaps:
    """For every pair (resource, amount), the maximal intervals in which the amount is free.

    Attributes
    ----------
    begin, end
        (P + 1, .) of each gap, padded; the last pair is free for ever.
    """

    def __init__(self, layout: Layout):
        self._pairs_of = layout.pairs_of
        self._amount: list[int] = layout.pair_amount.tolist()
        self.begin = np.full((len(self._amount) + 1, 4), NEVER, dtype=np.int64)
        self.end = self.begin.copy()
        self.begin[-1, 0], self.end[-1, 0] = 0, _FOR_EVER

    def update(self, resource: int, profile: Profile, clock: int) -> None:
        """Read a profile that has changed; gaps that end by ``clock`` are left out."""
        for pair in self._pairs_of[resource]:
            begin, end = zip(*_gaps(profile, self._amount[pair], clock), strict=True)
            self._widen(len(begin))
            self.begin[pair] = self.end[pair] = NEVER
            self.begin[pair, : len(begin)], self.end[pair, : len(end)] = begin, end

    def _widen(self, columns: int) -> None:
        while self.begin.shape[1] < columns:
            more = np.full_like(self.begin, NEVER)
            self.begin, self.end = np.hstack([self.begin, more]), np.hstack([self.end, more])

    def fit(self, pairs: Ints, start: Ints, duration: Ints) -> Ints:
        """(N,) earliest tick from ``start`` on at which the pair is free for ``duration`` ticks, or NEVER."""
        begin = np.maximum(self.begin[pairs], start[:, None])
        fits = self.end[pairs] - begin >= duration[:, None]
        first = fits.argmax(axis=1)
        rows = np.arange(len(pairs))
        return np.where(fits[rows, first], begin[rows, first], NEVER)

    def reaching(self, pairs: Ints, end: Ints) -> Ints:
        """(N,) begin of the first gap that lasts until ``end`` or longer, or NEVER.

        From there on the amount is free up to ``end``; before it there is a shortage.
        """
        lasts = self.end[pairs] >= end[:, None]
        first = lasts.argmax(axis=1)
        rows = np.arange(len(pairs))
        return np.where(lasts[rows, first], self.begin[pairs][rows, first], NEVER)

    def fit_all(self, pairs: Ints, start: Ints, duration: Ints) -> Ints:
        """(N,) earliest common tick for all columns of ``pairs`` (N, U), or NEVER.

        Each step moves to the earliest tick that one pair allows, so no common start is passed over.
        """
        found, moving = start.copy(), np.arange(len(pairs))
        while len(moving):
            before = now = found[moving]
            for column in pairs[moving].T:
                now = self.fit(column, now, duration[moving])
            found[moving] = now
            # With one pair only, what it allows is the answer.
            moving = moving[(now > before) & (now < NEVER)] if pairs.shape[1] > 1 else moving[:0]
        return found


def _gaps(profile: Profile, amount: int, clock: int) -> Iterator[tuple[int, int]]:
    """(begin, end) of the gaps that end after ``clock``; at least one pair, which may be empty."""
    begin = -1
    for time, free in zip(profile.times, profile.free, strict=True):
        if free >= amount:
            begin = time if begin < 0 else begin
        elif begin >= 0:
            if time > clock:
                yield begin, time
            begin = -1
    yield (begin, _FOR_EVER) if begin >= 0 else (NEVER, NEVER)
