"""The best placement of every ready task, kept up to date, for rules that compare all of them."""

from collections.abc import Callable

import numpy as np

from optalloc.placement import Placement
from optalloc.problem import NEVER, REJECTED, Ints
from optalloc.solvers.rules.criteria import Completion, best_placement
from optalloc.solvers.rules.desk import Desk
from optalloc.solvers.rules.listing import Ready

__all__ = ["Offers", "Pick", "place_best_offers"]

Claims = set[tuple[str, int]]


class Offers:
    """The placement of each ready task that ends first.

    What is reserved never gets less, so an offer that still fits is still the best, and the end of one that does
    not is a lower bound of the new end: whatever a replica brought by another task allows, the task could have
    brought it itself (for modes with several missing replicas this holds as far as the kernel is exact). So after a
    commitment the offers that hold something of what it took are only marked, and looked at again when they matter.
    Under plan limits a placement can become better than an old offer, by a charge that is now paid: then all are
    worked out anew.

    Parameters
    ----------
    with_second
        Also keep the best placement on another node.

    Attributes
    ----------
    start, end, second
        (J,) of the best offer, and end of the best one on another node; NEVER where there is none.
    ready
        (J,) tasks that have an offer or have been found to have none.
    since
        (J,) tick from which a ready task waits: released, and its predecessors have ended (lags included).
    """

    def __init__(self, desk: Desk, with_second: bool = False):
        size = desk.problem.num_tasks
        self.desk = desk
        self.with_second = with_second
        self.start, self.end, self.second = (np.full(size, NEVER, dtype=np.int64) for _ in range(3))
        self.ready = np.zeros(size, dtype=bool)
        self._marked = np.zeros(size, dtype=bool)
        self.since = np.maximum(desk.problem.release, desk.scope.not_before)
        self._offers: dict[int, list[Placement]] = {}
        self._holders: dict[tuple[str, int], set[int]] = {}

    def add(self, task: int) -> None:
        """Work out the offer of a task."""
        best = best_placement(self.desk, task, Completion())
        found = [best] if best is not None else []
        if best is not None and self.with_second:
            other = best_placement(self.desk, task, Completion(), self._elsewhere(task, best.mode))
            found += [other] if other is not None else []
        self.ready[task] = True
        self._marked[task] = False
        self.since[task] = max(self.since.item(task), self.desk.table.ready(task))
        self.start[task], self.end[task] = (found[0].start, found[0].end) if found else (NEVER, NEVER)
        self.second[task] = found[1].end if len(found) > 1 else NEVER
        self._offers[task] = found
        for placement in found:
            for claim in self._claims(placement):
                self._holders.setdefault(claim, set()).add(task)

    def _elsewhere(self, task: int, mode: int) -> Ints:
        """Modes whose first resource is another one."""
        problem, modes = self.desk.problem, self.desk.modes(task)
        if problem.use_ptr[mode] == problem.use_ptr[mode + 1]:
            return modes[:0]
        first = problem.use_resource[np.minimum(problem.use_ptr[modes], len(problem.use_resource) - 1)]
        return np.asarray(modes[first != problem.use_resource[problem.use_ptr[mode]]])

    def best(self, task: int) -> Placement | None:
        """The offer of a task."""
        return self._offers[task][0] if self._offers[task] else None

    def drop(self, task: int) -> None:
        """Forget a task that is decided."""
        for placement in self._offers.pop(task, ()):
            for claim in self._claims(placement):
                self._holders[claim].discard(task)
        self.start[task] = self.end[task] = self.second[task] = NEVER
        self.ready[task] = False

    def _claims(self, placement: Placement) -> Claims:
        """What a placement holds, as keys."""
        table = self.desk.table
        facts = table.facts(placement.mode)
        claims: Claims = {("resource", resource) for resource, _ in facts.uses}
        for replica in facts.needs:
            claims |= {("replica", replica), ("site", table.book.replica(replica).site)}
        for transfer in placement.transfers:
            claims |= {("resource", channel) for channel in transfer.channels}
        return claims

    def after(self, placement: Placement) -> None:
        """Note what a commitment has changed."""
        if self._may_improve(placement):
            for task in list(self._offers):
                self._renew(task)
        elif self.desk.problem.limits:
            self.mark_all()
        else:
            for claim in self._claims(placement):
                self._marked[list(self._holders.get(claim, ()))] = True

    def mark_all(self) -> None:
        """Look at every offer again before it is used: the limits leave less than before."""
        self._marked[list(self._offers)] = True

    def _may_improve(self, placement: Placement) -> bool:
        """Whether a charge is paid that kept the limits from allowing a better placement of other tasks."""
        charged = placement.transfers or self.desk.table.facts(placement.mode).buys
        return bool(self.desk.problem.limits and charged)

    def _renew(self, task: int) -> None:
        self.drop(task)
        self.add(task)

    def check(self, task: int) -> bool:
        """Bring a marked offer up to date; True if it is as it was."""
        if self._marked[task]:
            self._marked[task] = False
            if not all(map(self._stands, self._offers[task])):
                self._renew(task)
                return False
        return True

    def check_all(self) -> None:
        """Bring all offers up to date."""
        for task in np.flatnonzero(self._marked & self.ready).tolist():
            self.check(task)

    def first_to_end(self) -> int:
        """The ready task whose offer, up to date, ends first; the first in the instance among equals."""
        while True:
            task = int(np.argmin(np.where(self.ready, self.end, NEVER + 1)))
            if self.check(task):
                return task

    def _stands(self, placement: Placement) -> bool:
        return self.desk.table.fits(placement) and self.desk.allows(placement)


Pick = Callable[[Offers], int]
"""Which task comes next; it is called while some task is ready."""


def place_best_offers(desk: Desk, pick: Pick, with_second: bool = False) -> None:
    """Place the open tasks one by one, each where it ends first, in the order that ``pick`` says.

    Raises
    ------
    DeadEnd
        A task that must run has no feasible placement left.
    """
    offers, ready = Offers(desk, with_second), Ready(desk)
    for task in ready.first():
        offers.add(task)
    while offers.ready.any():
        task = pick(offers)
        offers.check(task)
        placement = offers.best(task)
        offers.drop(task)
        desk.settle(task, placement)
        if placement is not None and desk.table.mode[task] != REJECTED:
            offers.after(placement)
        else:
            offers.mark_all()
        for successor in ready.after(task):
            offers.add(successor)
