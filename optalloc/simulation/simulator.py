"""The event-driven simulator: what has been decided for good, what only for now, and what the clock shows."""

from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Any, Final

import numpy as np

from optalloc.errors import Fault, InputError
from optalloc.placement import Placement
from optalloc.problem import ABSENT, FREE, NEVER, REJECTED, Plan, Problem, Transfer
from optalloc.scope import Scope
from optalloc.simulation.actions import Action, Commit, Reject, Stage
from optalloc.simulation.clocked import Clocked
from optalloc.simulation.events import Events
from optalloc.simulation.ledger import Ledger
from optalloc.simulation.options import possible_actions
from optalloc.simulation.trace import Trace, entry

__all__ = ["DISCIPLINES", "REPLAN", "RESERVE", "Simulator"]

RESERVE: Final = "reserve"
REPLAN: Final = "replan"
DISCIPLINES: Final = (REPLAN, RESERVE)

_FORGET_EVERY: Final = 32
"""Steps of the clock between two clean-ups of the past."""


class Simulator:
    """One run through time: the clock stops at events, and whoever decides acts there.

    **Decided for good** (`firm`) are, under the discipline *reserve*, all commitments. Under *replan* it is a
    run that starts now or waits for nothing but its data, a transfer that starts now, and a rejection; any
    other commitment only blocks its capacity until the next event, and is decided again then. (A run waits for
    nothing but its data if everything before it is decided for good, all transfers that it lacks start now, and
    it starts when the last of its replicas arrives.)

    **Seen** are released tasks, once everything before them is released too; the others are absent.

    Parameters
    ----------
    scope
        What is to be decided; its fixed part is there from the start, and the clock begins at ``not_before``.
    discipline
        ``"replan"`` or ``"reserve"``.
    prefetch
        Offer transfers that no seen task could use, too, and stop the clock where their data become available.
    trace
        Called with every decision and every step of the clock, as a dictionary that JSON can write.

    Raises
    ------
    InputError
        If the discipline is unknown.

    Attributes
    ----------
    clock
        The tick of now.
    firm
        What is decided for good.
    table
        That, and what blocks capacity until the next event: where decisions look for room.
    queue
        Seen tasks that are not decided for good, by release.
    ledger
        What that is worth.
    failure
        Why no plan can come out any more; empty while one can.
    """

    def __init__(
        self,
        scope: Scope,
        discipline: str = REPLAN,
        *,
        prefetch: bool = False,
        trace: Trace | None = None,
    ):
        if discipline not in DISCIPLINES:
            raise InputError(
                Fault("discipline", f"must be one of {', '.join(DISCIPLINES)}, got {discipline!r}")
            )
        self.scope = scope
        self.problem: Problem = scope.problem
        self.discipline = discipline
        self.prefetch = prefetch
        self.trace = trace
        self.clock = max(0, scope.not_before)
        unseen = replace(scope, mode=np.where(scope.free, ABSENT, scope.mode))
        self.firm = self.table = Clocked(unseen, self.clock)
        self.queue: dict[int, None] = {}
        self.failure = ""
        self.ledger = Ledger(self.problem, self.firm)
        self._rejectable: list[bool] = scope.rejectable.tolist()
        self._undecided = int(scope.free.sum())
        self._hidden: set[int] = set(np.flatnonzero(scope.free).tolist())
        self._unreleased = set(self._hidden)
        self._events = Events(scope, self.clock)
        self._steps = 0
        if prefetch:
            self._add_ticks(self.problem.replica_available.tolist())
        self._check_limits()
        self._look_around()

    # questions --------------------------------------------------------------------------------------------
    @property
    def done(self) -> bool:
        """Everything is decided for good, or no plan can come out any more."""
        return self._undecided == 0 or bool(self.failure)

    @property
    def values(self) -> list[int]:
        """The objective, level by level, of what is decided for good, with state and fixed part; scaled by K."""
        return self.ledger.values

    @property
    def next_event(self) -> int | None:
        """The tick of the next event; None: nothing will happen any more."""
        return self._events.after(self.clock)

    @property
    def next_known_event(self) -> int | None:
        """The tick of the next event that can be foreseen: no release; None: only a release can be the next one."""
        return self._events.known_after(self.clock)

    @property
    def waiting(self) -> list[int]:
        """Tasks to decide now: in the queue, not decided at this event, everything before them decided."""
        return [task for task in self.queue if self.table.mode[task] == FREE and self._may_be_decided(task)]

    def _may_be_decided(self, task: int) -> bool:
        mode = self.table.mode
        return all(mode[pred] >= 0 or mode[pred] == ABSENT for pred in self._preds[task])

    @cached_property
    def _preds(self) -> list[list[int]]:
        problem = self.problem
        return [[pred for pred, _ in problem.predecessors(task)] for task in range(problem.num_tasks)]

    @property
    def running(self) -> list[int]:
        """Tasks that run now."""
        start, end = self.firm.start, self.firm.end
        return [j for j, mode in enumerate(self.firm.mode) if mode >= 0 and start[j] <= self.clock < end[j]]

    def may_reject(self, task: int) -> bool:
        """Whether a task that waits may be rejected."""
        return self._rejectable[task] and self.table.mode[task] == FREE

    def actions(self) -> list[Action]:
        """Every action that is possible now: it breaks no rule, and what is decided stays within the limits."""
        return possible_actions(self)

    def plan(self) -> Plan:
        """What is decided for good; tasks that are not are FREE in it."""
        plan = self.firm.plan()
        open_tasks = list(self.queue) + list(self._hidden)
        plan.mode[open_tasks] = FREE
        return plan

    def seen_scope(self) -> Scope:
        """The part of the scope that can be seen, from the clock on, with what is decided for good fixed.

        Tasks not seen yet are ABSENT in it; the tasks of the queue are FREE.
        """
        plan = self.firm.plan()
        return Scope(self.problem, plan.mode, plan.start, plan.transfers, self.clock)

    # actions ----------------------------------------------------------------------------------------------
    def apply(self, action: Action) -> None:
        """Do one of `actions`.

        Raises
        ------
        ValueError
            It is not possible now.
        """
        if isinstance(action, Commit):
            self.commit(self.placement(action))
        elif isinstance(action, Stage):
            self.stage(action.replica, action.route)
        elif isinstance(action, Reject):
            self.reject(action.task)
        else:
            self.wait(action.until)

    def placement(self, action: Commit) -> Placement:
        """What a commitment means now.

        Raises
        ------
        ValueError
            It is not possible now.
        """
        self._check_waiting(action.task)
        found = None
        if self.problem.mode_task[action.mode] == action.task:
            found = self.table.earliest(action.task, action.mode)
        if found is None:
            raise ValueError(f"Task {action.task} has no placement in mode {action.mode} now.")
        return found

    def _check_waiting(self, task: int) -> None:
        if task not in self.queue or self.table.mode[task] != FREE or not self._may_be_decided(task):
            raise ValueError(f"Task {task} does not wait for a decision now.")

    def commit(self, placement: Placement) -> bool:
        """Commit a placement that ``table.earliest`` has found at this event; True if it is for good.

        Raises
        ------
        ValueError
            It does not fit.
        """
        self._check_waiting(placement.task)
        if placement.start < self.clock or not self.table.fits(placement):
            raise ValueError(f"Task {placement.task}: the placement at {placement.start} does not fit now.")
        for_good = self._is_for_good(placement)
        begun = [t for t in placement.transfers if for_good or t.start == self.clock]
        for transfer in begun:
            self._begin(transfer)
        rest = placement._replace(transfers=tuple(t for t in placement.transfers if t not in begun))
        if for_good:
            self._decide(rest)
        else:
            self._for_now().commit(rest)
        self._note("commit", placement=placement, for_good=for_good)
        return for_good

    def _is_for_good(self, placement: Placement) -> bool:
        if self.discipline == RESERVE or placement.start == self.clock:
            return True
        if any(transfer.start > self.clock for transfer in placement.transfers):
            return False
        if any(self.firm.mode[pred] == FREE for pred in self._preds[placement.task]):
            return False
        arrivals = {transfer.replica: transfer.end for transfer in placement.transfers}
        needs = self.firm.facts(placement.mode).needs
        if any(replica not in self.firm.held and replica not in arrivals for replica in needs):
            return False
        ends = [arrivals.get(k) or self.firm.arrival(k) for k in needs]
        return placement.start == max(ends, default=self.clock)

    def _for_now(self) -> Clocked:
        """The table for what holds until the next event only."""
        if self.table is self.firm:
            self.table = self.firm.copy()
        return self.table

    def _decide(self, placement: Placement) -> None:
        """Place a task for good; its transfers have begun."""
        self.ledger.place(self.firm, placement)
        self.firm.commit(placement)
        if self.table is not self.firm:
            self.table.commit(placement)
        self._settled(placement.task)
        self._check_limits()
        self._events.add(placement.end)
        for task, lag in self._followers(placement.task):
            if lag and task in self.queue:
                self._events.add(placement.end + lag)

    def _followers(self, task: int) -> Iterator[tuple[int, int]]:
        for successor in self.problem.successors[task]:
            yield from (
                (successor, lag) for pred, lag in self.problem.predecessors(successor) if pred == task
            )

    def _settled(self, task: int) -> None:
        del self.queue[task]
        self._undecided -= 1

    def _check_limits(self) -> None:
        term = self.ledger.passed()
        if term:
            self.fail(f"the limit of {term} is passed")

    def stage(self, replica: int, route: int | None = None) -> Transfer:
        """Begin a transfer as early as possible; one that cannot begin now is undone at the next event (replan).

        Raises
        ------
        ValueError
            The replica is there or on its way, or there is no way to bring it.
        """
        transfer = self.table.earliest_transfer(replica, route)
        if transfer is None:
            raise ValueError(f"Replica {replica} cannot be brought over route {route} now.")
        if self.discipline == RESERVE or transfer.start == self.clock:
            self._begin(transfer)
        else:
            self._for_now().stage(transfer)
        self._note("stage", transfer=transfer)
        return transfer

    def _begin(self, transfer: Transfer) -> None:
        """A transfer for good."""
        self.ledger.pay(transfer.cost)
        self._check_limits()
        self.firm.stage(transfer)
        if self.table is not self.firm:
            self.table.stage(transfer)
        self._events.add(transfer.end)

    def reject(self, task: int) -> None:
        """Reject a task that waits, and the seen tasks after it.

        Raises
        ------
        ValueError
            It must run, or is decided already.
        """
        if task not in self.queue or not self.may_reject(task):
            raise ValueError(f"Task {task} cannot be rejected now.")
        for one in self.firm.followers(task):
            self._reject(one)
        self._note("reject", task=task)

    def _reject(self, task: int) -> None:
        self.firm.mode[task] = self.table.mode[task] = REJECTED
        self._settled(task)
        self.ledger.reject(task)
        self._check_limits()

    def wait(self, until: int | None = None) -> None:
        """Go on to the next event, or to ``until`` where that comes first.

        Raises
        ------
        ValueError
            Nothing will happen any more, or ``until`` is not after the clock.
        """
        ticks = [tick for tick in (self.next_event, until) if tick is not None]
        if self.done or not ticks or min(ticks) <= self.clock:
            raise ValueError("There is nothing to wait for.")
        self._note("wait", until=min(ticks))
        self.clock = self.firm.now = min(ticks)
        self.table = self.firm
        self._steps += 1
        if self._steps % _FORGET_EVERY == 0:
            self.firm.forget()
        self._look_around()

    def fail(self, reason: str) -> None:
        """No plan will come out: there is nothing left to do and nothing to wait for."""
        self.failure = self.failure or f"dead end at tick {self.clock}: {reason}"
        self._note("fail", reason=self.failure)

    # what is released -------------------------------------------------------------------------------------
    def _look_around(self) -> None:
        """See what is released by now, and whether a task has missed its deadline."""
        for task in self._events.released(self.clock):
            self._unreleased.discard(task)
            self._reveal(task)
        for task in self.queue:
            if self._last_start[task] < self.clock and not self._rejectable[task]:
                self.fail(
                    f"task {self.problem.task_ids[task]!r} must run and cannot meet its deadline any more"
                )
                return

    @cached_property
    def _last_start(self) -> list[int]:
        """(J,) last start by which a task meets its deadline."""
        problem = self.problem
        shortest = np.full(problem.num_tasks, NEVER, dtype=np.int64)
        np.minimum.at(shortest, problem.mode_task[problem.active], problem.duration[problem.active])
        return list((problem.deadline - shortest).tolist())

    def _reveal(self, task: int) -> None:
        """See ``task`` if everything before it is seen, and then what has waited for that."""
        if task in self._unreleased or task not in self._hidden or self._waits_for_hidden(task):
            return
        self._hidden.remove(task)
        self.queue[task] = None
        self.firm.mode[task] = FREE
        if any(self.firm.mode[pred] == REJECTED for pred in self._preds[task]):
            if not self._rejectable[task]:
                self.fail(f"task {self.problem.task_ids[task]!r} must run and comes after a rejected one")
            self._reject(task)
        else:
            self._add_events(task)
        for successor in self.problem.successors[task]:
            self._reveal(successor)

    def _waits_for_hidden(self, task: int) -> bool:
        return any(pred in self._hidden for pred in self._preds[task])

    def _add_events(self, task: int) -> None:
        """When data of a task become available, and when its predecessors let it begin."""
        problem = self.problem
        first, last = problem.mode_ptr[task], problem.mode_ptr[task + 1]
        needs = problem.need_replica[problem.need_ptr[first] : problem.need_ptr[last]]
        ticks = set(problem.available[first:last].tolist()) | set(problem.replica_available[needs].tolist())
        for pred, lag in problem.predecessors(task):
            if self.firm.mode[pred] >= 0:
                ticks.add(self.firm.end[pred] + lag)
        self._add_ticks(ticks)

    def _add_ticks(self, ticks: Iterable[int]) -> None:
        for tick in set(ticks):
            if tick > self.clock:
                self._events.add(tick)

    # copies and traces ------------------------------------------------------------------------------------
    def branch(self) -> "Simulator":
        """A simulator that goes on from here by itself, without any further release and without trace."""
        twin = copy(self)
        twin.trace = None
        twin.firm = self.firm.copy()
        twin.table = twin.firm if self.table is self.firm else self.table.copy()
        twin.queue = self.queue.copy()
        twin.ledger = self.ledger.copy()
        twin._events = self._events.copy(with_releases=False)
        twin._undecided = len(self.queue)
        twin._hidden, twin._unreleased = set(), set()
        return twin

    def _note(self, action: str, **facts: Any) -> None:
        if self.trace is not None:
            self.trace(entry(self, action, **facts))
