"""Lower bounds on the starts of modes, kept up to date while a timetable fills."""

from copy import copy

import numpy as np

from optalloc.placement import Timetable
from optalloc.problem import Ints

__all__ = ["Floors"]


class Floors:
    """For each class of modes, the first tick at which its smallest member would fit.

    A class holds the modes with the same first resource, the same amount of it, and durations between two
    powers of two. As a timetable only fills up, the bound only grows, and one class speaks for many modes: on
    large problems most modes are ruled out without being placed.

    Parameters
    ----------
    modes
        The modes that will be asked about.
    """

    def __init__(self, table: Timetable, modes: Ints):
        problem = table.problem
        self.table = table
        modes = modes[problem.use_ptr[modes + 1] > problem.use_ptr[modes]]
        first = problem.use_ptr[modes]
        resource, amount, duration = (
            problem.use_resource[first],
            problem.use_amount[first],
            problem.duration[modes],
        )
        # Amounts are numbered: a key that packs three numbers sorts much faster than rows of three.
        levels, level = np.unique(amount, return_inverse=True)
        keys = (resource * len(levels) + level) * 64 + np.frexp(duration)[1]
        classes, inverse = np.unique(keys, return_inverse=True)
        shortest = np.full(len(classes), np.iinfo(np.int64).max)
        np.minimum.at(shortest, inverse, duration)
        # The last entry is for modes that use nothing.
        self.floor = np.zeros(len(classes) + 1, dtype=np.int64)
        self.class_of = np.full(problem.num_modes, len(classes), dtype=np.int32)
        self.class_of[modes] = inverse
        self._members: dict[int, list[tuple[int, int, int]]] = {}
        owners, needed = np.divmod(classes // 64, max(len(levels), 1))
        for index, owner in enumerate(owners.tolist()):
            member = (index, levels.item(needed.item(index)), shortest.item(index))
            self._members.setdefault(owner, []).append(member)
        for owner in self._members:
            self.update(owner)

    def copy(self, table: Timetable) -> "Floors":
        """The same bounds for a copy of the timetable."""
        twin = copy(self)
        twin.table, twin.floor = table, self.floor.copy()
        return twin

    def update(self, resource: int) -> None:
        """Raise the bounds of a resource after a reservation."""
        profile = self.table.profiles[resource]
        for index, amount, duration in self._members.get(resource, ()):
            self.floor[index] = profile.fit(amount, self.floor.item(index), duration)

    def __call__(self, modes: Ints) -> Ints:
        """Lower bound on the start of each mode; NEVER where it fits nowhere any more."""
        return np.asarray(self.floor[self.class_of[modes]])
