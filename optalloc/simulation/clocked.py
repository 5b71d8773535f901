"""A timetable that knows the time: nothing new begins before it, and the past is forgotten."""

from optalloc.placement import Placement, Timetable
from optalloc.problem import FREE, NEVER, REJECTED, Transfer
from optalloc.scope import Scope
from optalloc.staging import Routes

__all__ = ["Clocked"]


class Clocked(Timetable):
    """A timetable at a clock; tasks that are not released yet are ABSENT in it.

    Attributes
    ----------
    now
        The clock: runs and transfers that are added start no earlier.
    """

    def __init__(self, scope: Scope, now: int):
        super().__init__(scope)
        self.now = now

    def ready(self, task: int) -> int:
        """First tick allowed by the predecessors; NEVER after a rejected one or one not decided yet."""
        first = 0
        for pred, lag in self._preds[task]:
            mode = self.mode[pred]
            if mode >= 0:
                first = max(first, self.end[pred] + lag)
            elif mode in (REJECTED, FREE):
                return NEVER
        return first

    def earliest(
        self, task: int, mode: int, not_before: int = 0, *, latest: int = NEVER, routes: Routes = None
    ) -> Placement | None:
        """The earliest placement from the clock on; see `Timetable.earliest`."""
        return super().earliest(task, mode, max(not_before, self.now), latest=latest, routes=routes)

    def earliest_transfer(
        self, replica: int, route: int | None = None, not_before: int = 0
    ) -> Transfer | None:
        """The first transfer to arrive, begun at the clock or later; see `Timetable.earliest_transfer`."""
        return super().earliest_transfer(replica, route, max(not_before, self.now))

    def arrival(self, replica: int) -> int:
        """Tick from which a replica that is held can be read."""
        return self.held[replica].transfer.end

    def forget(self) -> None:
        """Drop what lies before the clock and can no longer matter.

        Storage keeps its past: whether an idle replica is still there depends on it.
        """
        for resource, profile in enumerate(self.profiles):
            if profile.begins_before(self.now):
                self._profile(resource).forget(self.now)
        for replica, held in self.held.items():
            if len(held.readers) > 1:
                self._forget_readers(replica)

    def _forget_readers(self, replica: int) -> None:
        """Of the readers that have ended only the last one says how long the replica was kept."""
        readers = self._own(replica).readers
        last = max(readers, key=lambda task: readers[task])
        for task in [task for task, end in readers.items() if end <= self.now and task != last]:
            del readers[task]
