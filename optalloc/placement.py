"""The placement kernel: where and when one more task fits, given everything that is reserved.

List scheduling, local search, the simulator and the learning environment all place tasks by a `Timetable`.
"""

from collections.abc import Iterable
from math import ceil
from typing import Self

import numpy as np

from optalloc.evaluation.facts import facts
from optalloc.problem import (
    ABSENT,
    FREE,
    NEVER,
    REJECTED,
    Form,
    Ints,
    Plan,
    Problem,
    Transfer,
    own_cost,
    rejection_cost,
)  # fmt: skip
from optalloc.profile import Profile, fit_all
from optalloc.reservations import FactBook, Held, ModeFacts, Placement, own_increase
from optalloc.scope import Scope
from optalloc.staging import Routes, earliest_transfer, staged_start, staging_fits

__all__ = ["Held", "ModeFacts", "Placement", "Timetable"]


class Timetable:
    """Everything that is reserved: runs, transfers, storage. It starts with the fixed part of a scope.

    **What `earliest` finds.** The least start of a run in the given mode such that, together with what is
    reserved now, every rule of the model holds: release, data availability, deadline, predecessors and
    successors already placed with their lags, calendars and capacities, seats, channels of its streams (held
    for the run), one transfer per (dataset, site), channels of its transfers, storage, ``not_before``. Gaps
    between reservations are used. A missing transfer starts as early as it can, also before the release of
    its reader, but never before ``not_before`` or the availability of the dataset; of the routes that do not
    delay the run the cheapest is taken. A replica that is there takes storage to the end of its last reader;
    a later reader extends that over the gap if the storage is free, else the mode is closed to it. What is
    reserved never moves.

    The start is the earliest possible one, with one exception where the placement is valid but perhaps not
    the earliest: a mode that needs several missing replicas which share finite channels or go to a site with
    finite storage (its transfers are placed one after another).

    Copies are cheap: they share all profiles until one side writes. `remove` takes a task back exactly.

    Parameters
    ----------
    scope
        The problem and what is fixed in it.
    """

    def __init__(self, scope: Scope):
        self.scope = scope
        self.problem: Problem = scope.problem
        problem = self.problem
        self._token = object()
        self.book = FactBook(problem)
        self._preds, self._succs = _neighbours(problem)
        self.profiles = [
            Profile(*_lists(problem.capacity(r)), self._token) for r in range(problem.num_resources)
        ]
        self.storage = {
            site: Profile((0,), (amount,), self._token)
            for site, amount in enumerate(problem.site_storage.tolist())
            if amount < NEVER
        }
        self.mode: list[int] = scope.mode.tolist()
        """(J,) mode, REJECTED, ABSENT or FREE."""
        self.start: list[int] = np.where(scope.mode >= 0, scope.start, 0).tolist()
        self.end: list[int] = self.start.copy()
        self.makespan = 0
        """Largest end of a placed task."""
        self.held: dict[int, Held] = {}
        """Replica -> how it is held."""
        self.bought: list[int] = [0] * problem.num_purchases
        """(B,) placed tasks that use the purchase."""
        self.unlisted: list[Transfer] = []
        """Transfers of replicas that no mode can read; they only take channels and storage."""
        for transfer in scope.transfers:
            self.stage(transfer)
        for task in np.flatnonzero(scope.mode >= 0).tolist():
            mode, start = self.mode[task], self.start[task]
            self.commit(Placement(task, mode, start, start + self.facts(mode).duration))

    # questions --------------------------------------------------------------------------------------------
    def facts(self, mode: int) -> ModeFacts:
        """The mode as plain tuples, kept for the next time."""
        return self.book.mode(mode)

    def ready(self, task: int) -> int:
        """First tick allowed by the predecessors; NEVER after a rejected one.

        Raises
        ------
        ValueError
            A predecessor is not decided yet.
        """
        first = 0
        for pred, lag in self._preds[task]:
            mode = self.mode[pred]
            if mode >= 0:
                first = max(first, self.end[pred] + lag)
            elif mode == REJECTED:
                return NEVER
            elif mode == FREE:
                raise ValueError(f"Task {task}: its predecessor {pred} has to be placed or rejected first.")
        return first

    def earliest(
        self,
        task: int,
        mode: int,
        not_before: int = 0,
        *,
        latest: int = NEVER,
        routes: Routes = None,
    ) -> Placement | None:
        """The earliest placement of ``task`` in ``mode``, or None if there is none (see the class).

        Parameters
        ----------
        not_before
            Neither the run nor a transfer added for it starts earlier.
        latest
            Last start of interest: beyond it the answer is None, sooner.
        routes
            Replica -> the routes that a new transfer may take; default all routes of the Problem.
        """
        facts = self.book.mode(mode)
        not_before = max(not_before, self.scope.not_before)
        lower = max(facts.earliest, not_before, self.ready(task))
        latest = min(latest, facts.latest)
        for succ, lag in self._succs[task]:
            if self.mode[succ] >= 0:
                latest = min(latest, self.start[succ] - lag - facts.duration)
        if lower > latest:
            return None
        if facts.needs:
            return staged_start(self, mode, lower, latest, not_before, routes)
        start = self.fit(facts.uses, lower, facts.duration, latest)
        return Placement(task, mode, start, start + facts.duration) if start < NEVER else None

    def fit(self, uses: Iterable[tuple[int, int]], start: int, duration: int, latest: int = NEVER) -> int:
        """Earliest tick in [start, latest] where all ``uses`` are free for ``duration`` ticks, or NEVER."""
        profiles = self.profiles
        return fit_all([(profiles[resource], amount) for resource, amount in uses], start, duration, latest)

    def earliest_transfer(
        self, replica: int, route: int | None = None, not_before: int = 0
    ) -> Transfer | None:
        """The transfer of ``replica`` that arrives first (then the cheapest), or None.

        None: the replica is there or on its way, or there is no route, channel or storage for it. Storage is
        checked for the time of the transfer itself: who reads the replica extends that.
        """
        if replica in self.held:
            return None
        first = max(not_before, self.scope.not_before)
        return earliest_transfer(self, replica, first, None if route is None else {replica: (route,)})

    def fits(self, placement: Placement) -> bool:
        """Whether a placement found earlier can still be committed as it is.

        What comes before and after the task in precedence must not have changed in between.
        """
        facts, start = self.facts(placement.mode), placement.start
        if self.fit(facts.uses, start, facts.duration, start) != start:
            return False
        return not facts.needs or staging_fits(self, placement)

    def increase(self, form: Form, placement: Placement) -> int:
        """What committing ``placement`` adds to ``form``: own cost, new shared charges, makespan."""
        value = own_increase(self.problem, form, placement.task, placement.mode, placement.end)
        money = sum(transfer.cost for transfer in placement.transfers)
        for purchase in self.facts(placement.mode).buys:
            if not self.bought[purchase]:
                money += self.problem.purchase_cost.item(purchase)
        return value + form.cost * money + form.makespan * max(0, placement.end - self.makespan)

    def value(self, form: Form) -> int:
        """``form`` of what is decided so far: placed and rejected tasks, transfers, purchases, makespan."""
        problem = self.problem
        mode = np.array(self.mode, dtype=np.int64)
        placed = np.flatnonzero(mode >= 0)
        total = int(own_cost(problem, form, mode[placed], np.array(self.start)[placed]).sum())
        total += int(rejection_cost(form)[mode == REJECTED].sum())
        money = sum(t.cost for t in self.transfers)
        money += sum(problem.purchase_cost.item(b) for b, users in enumerate(self.bought) if users)
        return total + form.cost * money + form.makespan * self.makespan

    @property
    def transfers(self) -> tuple[Transfer, ...]:
        """All transfers."""
        return (*self.unlisted, *(held.transfer for held in self.held.values()))

    def plan(self) -> Plan:
        """What is reserved, as a Plan; tasks not decided yet are FREE in it."""
        return Plan(np.array(self.mode, dtype=np.int64), np.array(self.start, dtype=np.int64), self.transfers)

    # changes ----------------------------------------------------------------------------------------------
    def commit(self, placement: Placement) -> None:
        """Reserve what ``placement`` says; it must fit what is reserved now."""
        task, mode, start, end, transfers = placement
        for transfer in transfers:
            self.stage(transfer)
        facts = self.facts(mode)
        for resource, amount in facts.uses:
            self._profile(resource).add(-amount, start, end)
        for replica in facts.needs:
            # A run of the state may read what nothing is known to have brought.
            if replica in self.held:
                held = self._own(replica)
                held.readers[task] = end
                self._retain(replica, held, max(held.until, end))
        for purchase in facts.buys:
            self.bought[purchase] += 1
        self.mode[task], self.start[task], self.end[task] = mode, start, end
        self.makespan = max(self.makespan, end)

    def adopt(self, plan: Plan) -> None:
        """Reserve all that a verified plan decides, beside what is fixed; tasks that are FREE in it stay open."""
        present = set(self.transfers)
        for transfer in plan.transfers:
            if transfer not in present:
                self.stage(transfer)
        for task in np.flatnonzero(self.scope.free & (plan.mode >= 0)).tolist():
            mode, start = plan.mode.item(task), plan.start.item(task)
            self.commit(Placement(task, mode, start, start + self.facts(mode).duration))
        for task in np.flatnonzero(self.scope.free & (plan.mode == REJECTED)).tolist():
            self.mode[task] = REJECTED

    def remove(self, task: int, *, keep_transfers: bool = False) -> None:
        """Take back a placed or rejected task: the inverse of `commit`, and of `reject` for this task alone.

        Parameters
        ----------
        keep_transfers
            Keep transfers that nobody reads any more; else those that are not fixed are taken back too.

        Raises
        ------
        ValueError
            The task is fixed.
        """
        if not self.scope.free[task]:
            raise ValueError(f"Task {task} is fixed: it cannot be removed.")
        mode = self.mode[task]
        if mode >= 0:
            self._release(task, mode, keep_transfers)
        self.mode[task], self.start[task], self.end[task] = FREE, 0, 0

    def _release(self, task: int, mode: int, keep_transfers: bool) -> None:
        facts, start, end = self.facts(mode), self.start[task], self.end[task]
        for resource, amount in facts.uses:
            self._profile(resource).add(amount, start, end)
        for replica in facts.needs:
            held = self._own(replica)
            del held.readers[task]
            self._retain(replica, held, max(held.readers.values(), default=held.transfer.end))
            if not held.readers and not keep_transfers and not self._is_fixed(held.transfer):
                self.unstage(replica)
        for purchase in facts.buys:
            self.bought[purchase] -= 1
        if end == self.makespan:
            self.end[task] = 0
            self.makespan = max(self.end, default=0)

    def _is_fixed(self, transfer: Transfer) -> bool:
        return (transfer.dataset, transfer.site) in self.scope.fixed_replicas

    def reject(self, task: int) -> tuple[int, ...]:
        """Reject ``task`` and everything after it; returns the tasks that this rejected.

        Raises
        ------
        ValueError
            One of them must run or is placed already.
        """
        chain = self.followers(task)
        for one in chain:
            if not self.scope.rejectable[one] or self.mode[one] >= 0:
                raise ValueError(f"Task {one} cannot be rejected: it must run or is placed.")
        for one in chain:
            self.mode[one] = REJECTED
        return chain

    def followers(self, task: int) -> tuple[int, ...]:
        """``task`` and all tasks after it that are not rejected yet: those that a rejection takes along."""
        chain, waiting = {task: None}, [task]
        while waiting:
            for succ, _ in self._succs[waiting.pop()]:
                if succ not in chain and self.mode[succ] not in (ABSENT, REJECTED):
                    chain[succ] = None
                    waiting.append(succ)
        return tuple(chain)

    def stage(self, transfer: Transfer) -> None:
        """Reserve a transfer: its channels and, until its end, storage; readers extend that."""
        if transfer.replica in self.held:
            raise ValueError(f"Replica {transfer.replica} has its transfer already.")
        self._occupy(transfer, -1)
        if transfer.replica < 0:
            size = _unlisted_size(self.problem, transfer)
            self._hold(transfer.site, -size, transfer.start, transfer.end)
            self.unlisted.append(transfer)
            return
        held = Held(transfer, {}, transfer.start, self._token)
        self.held[transfer.replica] = held
        self._retain(transfer.replica, held, transfer.end)

    def unstage(self, replica: int) -> None:
        """Take back a transfer that nobody reads."""
        held = self._own(replica)
        if held.readers:
            raise ValueError(f"Replica {replica} has readers: {sorted(held.readers)}.")
        self._retain(replica, held, held.transfer.start)
        self._occupy(held.transfer, 1)
        del self.held[replica]

    def copy(self) -> Self:
        """A timetable that may be changed without touching this one; costs as much as copying a few lists."""
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        # Neither side owns the shared parts any more: whoever writes first makes its own.
        self._token, twin._token = object(), object()
        for name in ("profiles", "mode", "start", "end", "bought", "storage", "held", "unlisted"):
            setattr(twin, name, getattr(self, name).copy())
        return twin

    # reservations -----------------------------------------------------------------------------------------
    def _profile(self, resource: int) -> Profile:
        profile = self.profiles[resource]
        if profile.owner is not self._token:
            profile = self.profiles[resource] = profile.clone(self._token)
        return profile

    def _own(self, replica: int) -> Held:
        held = self.held[replica]
        if held.owner is not self._token:
            held = self.held[replica] = held.clone(self._token)
        return held

    def _occupy(self, transfer: Transfer, amount: int) -> None:
        for channel in transfer.channels:
            self._profile(channel).add(amount, transfer.start, transfer.end)

    def _retain(self, replica: int, held: Held, until: int) -> None:
        """Move the end of a replica's retention to ``until``."""
        size = self.problem.replica_size.item(replica)
        if until > held.until:
            self._hold(held.transfer.site, -size, held.until, until)
        else:
            self._hold(held.transfer.site, size, until, held.until)
        held.until = until

    def _hold(self, site: int, amount: int, start: int, end: int) -> None:
        storage = self.storage.get(site)
        if storage is None:
            return
        if storage.owner is not self._token:
            storage = self.storage[site] = storage.clone(self._token)
        storage.add(amount, start, end)


def _lists(arrays: tuple[Ints, Ints]) -> tuple[list[int], list[int]]:
    return arrays[0].tolist(), arrays[1].tolist()


Arcs = list[tuple[tuple[int, int], ...]]


def _neighbours(problem: Problem) -> tuple[Arcs, Arcs]:
    """(predecessor, lag) and (successor, lag) pairs of each task."""
    preds: Arcs = [()] * problem.num_tasks
    succs: Arcs = [()] * problem.num_tasks
    for task in np.flatnonzero(np.diff(problem.pred_ptr)).tolist():
        preds[task] = tuple(problem.predecessors(task))
        for pred, lag in preds[task]:
            succs[pred] += ((task, lag),)
    return preds, succs


def _unlisted_size(problem: Problem, transfer: Transfer) -> int:
    """Storage taken by a fixed transfer that no mode can read, in the unit of its site, rounded up."""
    capacity = problem.site_storage.item(transfer.site)
    if capacity >= NEVER:
        return 0
    known = facts(problem)
    # Where the site has no room at all its unit is not known: any size is too much.
    return ceil(known.size_gb[transfer.dataset] * (capacity or 1) / (known.storage_gb[transfer.site] or 1))
