"""Free capacity over time as a list of breakpoints.

A profile is a step function on the ticks >= 0: ``free[i]`` holds from ``times[i]`` until the next entry, the
last entry for ever. Event lists were measured faster here than arrays with one entry per tick, and need no
horizon.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

from optalloc.problem import NEVER

__all__ = ["Profile", "fit_all"]


class Profile:
    """What is left of one renewable capacity.

    Neighbouring entries always differ, so taking a reservation back restores the very same lists.

    Parameters
    ----------
    times, free
        Breakpoints in ticks, increasing, the first one 0, and the free amount from each on.
    owner
        Who may change it: copies of a timetable share profiles until one of them writes.
    """

    __slots__ = ("free", "hints", "owner", "times")

    def __init__(self, times: Iterable[int], free: Iterable[int], owner: object = None):
        self.times: list[int] = []
        self.free: list[int] = []
        self.owner = owner
        self.hints: dict[int, tuple[int, int, int]] = {}
        for time, amount in zip(times, free, strict=True):
            if not self.free or self.free[-1] != amount:
                self.times.append(time)
                self.free.append(amount)

    def clone(self, owner: object = None) -> "Profile":
        """A profile that shares nothing with this one."""
        twin = Profile.__new__(Profile)
        twin.times = self.times.copy()
        twin.free = self.free.copy()
        twin.hints = self.hints.copy()
        twin.owner = owner
        return twin

    def fit(self, amount: int, start: int, duration: int, latest: int = NEVER) -> int:
        """Earliest tick s in [start, latest] with ``amount`` free on [s, s + duration), or NEVER.

        Parameters
        ----------
        start
            First tick to try, >= 0.
        duration
            Ticks, >= 1.
        """
        times, free = self.times, self.free
        size = len(times)
        i = bisect_right(times, start) - 1
        while True:
            while free[i] < amount:
                i += 1
                if i == size:
                    return NEVER
                start = times[i]
            if start > latest:
                return NEVER
            end = start + duration
            i += 1
            while i < size and times[i] < end:
                if free[i] < amount:
                    break
                i += 1
            else:
                return start

    def add(self, amount: int, start: int, end: int) -> None:
        """Add ``amount`` (negative: reserve) to what is free on [start, end); ticks before 0 do not count."""
        start = max(start, 0)
        if end <= start or amount == 0:
            return
        times, free = self.times, self.free
        first, last = self._cut(start), self._cut(end)
        for i in range(first, last):
            free[i] += amount
        for i in (last, first):
            if i > 0 and free[i] == free[i - 1]:
                del times[i], free[i]

    def _cut(self, time: int) -> int:
        """Index of the entry that begins at ``time``, made if there is none."""
        i = bisect_left(self.times, time)
        if i == len(self.times) or self.times[i] != time:
            self.times.insert(i, time)
            self.free.insert(i, self.free[i - 1])
        return i

    def at(self, tick: int) -> int:
        """What is free at a tick."""
        return self.free[bisect_right(self.times, tick) - 1]

    def begins_before(self, time: int) -> bool:
        """Whether there are entries that `forget` would drop."""
        return len(self.times) > 1 and self.times[1] <= time

    def forget(self, time: int) -> None:
        """Drop what lies before ``time``: from now on the entry in force then stands for all earlier ticks."""
        i = bisect_right(self.times, time) - 1
        if i > 0:
            del self.times[:i], self.free[:i]
            self.times[0] = 0

    def first_shortage(self, amount: int, start: int) -> int:
        """First tick from ``start`` on with less than ``amount`` free, or NEVER."""
        times, free = self.times, self.free
        for i in range(bisect_right(times, start) - 1, len(times)):
            if free[i] < amount:
                return max(start, times[i])
        return NEVER

    def last_shortage(self, amount: int, start: int, end: int) -> int:
        """End of the last stretch within [start, end) with less than ``amount`` free; -1 if there is none.

        The end may lie behind ``end``; it is NEVER if the shortage lasts for ever.
        """
        times, free = self.times, self.free
        start = max(start, 0)
        if end <= start:
            return -1
        i = bisect_left(times, end) - 1
        while i >= 0 and (times[i] > start or i + 1 == len(times) or times[i + 1] > start):
            if free[i] < amount:
                return times[i + 1] if i + 1 < len(times) else NEVER
            i -= 1
        return -1


def fit_all(uses: Sequence[tuple[Profile, int]], start: int, duration: int, latest: int = NEVER) -> int:
    """Earliest tick in [start, latest] where each (profile, amount) is free for ``duration`` ticks, or NEVER.

    Each step moves to the earliest tick that one profile allows, so no common start is passed over.
    """
    while True:
        first = start
        for profile, amount in uses:
            first = profile.fit(amount, first, duration, latest)
            if first > latest:
                return NEVER
        if first == start:
            return start
        start = first
