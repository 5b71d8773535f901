"""One event as a learned scheduler sees it: what can be decided, the rule's score of it, and how it is carried out.

The action space is that of `replan-index`: at every event one task after the other is given a mode. What starts now, or
waits for its data only, is decided for good; the rest blocks capacity until the next event. The rule's scores are the
ones of `optalloc.solvers.online.index`; a scheduler that adds nothing to them is that rule, decision by decision.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from optalloc.environment.costs import Costs
from optalloc.environment.prospects import Prospects
from optalloc.environment.scales import Floats, Scales
from optalloc.problem import ABSENT, FREE, NEVER, Bools, Ints
from optalloc.simulation import Simulator
from optalloc.solvers.learned.ground import Ground
from optalloc.solvers.online.desk import OnlineDesk
from optalloc.solvers.online.index import Priced

__all__ = ["LATER", "REJECT", "Board", "Choice"]

REJECT, LATER = -1, -2
"""In the place of a row: the task is rejected; it is left for the next event and blocks nothing until then."""

_WORSE: Final = 1.0
"""So many mean objectives the rule scores leaving a task for later below its best row: it never does."""


@dataclass(frozen=True, eq=False)
class Choice:
    """The ways to decide one task, from the rule's best to its worst.

    Attributes
    ----------
    task
        The task.
    at
        Positions of its open rows on the board; REJECT or LATER in the place of one.
    score
        What the rule gives each: minus the increase of the objective and the price of the devices held.
    """

    task: int
    at: Ints
    score: Floats


class Board:
    """All rows of the tasks that wait, kept up to date while they are decided.

    Parameters
    ----------
    ground
        Of the problem.
    simulator
        What the decisions go to.
    seed
        Of the desk's random numbers.

    Attributes
    ----------
    tasks
        Tasks that wait for a decision, in the order of the queue.
    rows, ptr, owner
        Their rows one after the other; those of ``tasks[w]`` are ``rows[ptr[w]:ptr[w + 1]]``.
    open
        (N,) rows that have a placement within the plan limits.
    start, end, charge
        (N,) of these placements; money for transfers and purchases, of which those that others need until the next
        event are paid already.
    increase
        Per level of the objective, (N,) what they add; scaled by K.
    primary
        (N,) increase of the first level and the price of the devices; infinite where a row is not open.
    best
        (W,) position of each task's best row, -1 without any.
    urgency
        (W,) weight per tick to the end of that row; -1 without any.
    price
        Of a device for a tick, at this event.
    """

    def __init__(self, ground: Ground, simulator: Simulator, seed: int = 0):
        self.ground, self.simulator = ground, simulator
        self.problem = ground.problem
        self.desk = OnlineDesk(simulator, seed)
        self.prospects = Prospects(ground.layout, simulator)
        self.scales = Scales(ground.isolated, ground.known.weight)
        self.seen = np.zeros(self.problem.num_tasks, dtype=bool)
        self.price = 0.0

    # looking ----------------------------------------------------------------------------------------------
    def begin(self) -> None:
        """A new event."""
        self.desk.begin()
        self.price = Priced(self.desk).price
        self.seen = self.simulator.scope.free & (np.array(self.simulator.firm.mode) != ABSENT)
        self.scales.see(np.flatnonzero(self.seen).tolist())
        self._left: set[int] = set()
        self.look()

    @property
    def clock(self) -> int:
        """The tick of now."""
        return self.simulator.clock

    @property
    def value(self) -> float:
        """The unit of values: the mean objective of seen tasks, each alone; not scaled by K."""
        return self.scales.value / self.problem.scale

    def look(self) -> None:
        """Bring everything up to date with the simulator."""
        self.prospects.look()
        layout, table = self.ground.layout, self.simulator.table
        self.tasks, self.rows, self.ptr = self.prospects.tasks, self.prospects.rows, self.prospects.ptr
        self.waiting: Ints = np.array(self.tasks, dtype=np.int64)
        self.owner = np.repeat(np.arange(len(self.tasks)), np.diff(self.ptr))
        start = self.prospects.start[self.rows]
        self.open: Bools = start < NEVER
        self.start: Ints = np.where(self.open, start, 0)
        self.end: Ints = np.where(self.open, start + layout.duration[self.rows], 0)
        unpaid = np.where(np.array([*table.bought, 1]) > 0, 0, np.append(self.problem.purchase_cost, 0))
        self.charge: Ints = self.prospects.egress[self.rows] + unpaid[layout.buy[self.rows]].sum(axis=1)
        self.increase = [self._added(cost) for cost in self.ground.costs]
        self.open &= self._within_limits()
        priced = self.increase[0] / self.problem.scale + self.price * self.ground.held[self.rows]
        self.primary: Floats = np.where(self.open, priced, np.inf)
        self._find_best()

    def _added(self, cost: Costs) -> Ints:
        """(N,) what each row adds to a form."""
        return cost.increase(self.rows, self.end, self.charge, self.simulator.table.makespan)

    def _within_limits(self) -> Bools:
        """(N,) rows that leave room in the plan limits for the other tasks of the queue at their least."""
        allowed, limits = np.ones(len(self.rows), dtype=bool), self.desk.limits
        tasks = self.ground.layout.task[self.rows]
        for cost, least, slack in zip(self.ground.limits, limits.least, limits.slack, strict=True):
            allowed &= self._added(cost) - least[tasks] <= slack
        return allowed

    def _find_best(self) -> None:
        """By the key of the rule: primary, the other levels, the end, the mode."""
        count = len(self.tasks)
        self.best: Ints = np.full(count, -1, dtype=np.int64)
        self.urgency: Floats = np.full(count, -1.0)
        at = np.flatnonzero(self.open)
        if not len(at):
            return
        owner = self.owner[at]
        keys = (self.primary, *self.increase[1:], self.end, self.ground.layout.mode[self.rows])
        for key in keys:
            first = np.flatnonzero(np.diff(owner, prepend=-1))
            least = np.minimum.reduceat(key[at], first)
            equal = key[at] == np.repeat(least, np.diff(np.append(first, len(at))))
            at, owner = at[equal], owner[equal]
            if len(at) == len(first):
                break
        self.best[owner] = at
        weight = self.ground.weight[self.waiting[owner]]
        self.urgency[owner] = weight / np.maximum(1, self.end[at] - self.clock)

    # what can be decided ----------------------------------------------------------------------------------
    @property
    def options(self) -> Ints:
        """Positions in ``tasks`` of those that have an open row, by release."""
        there = np.flatnonzero(self.best >= 0)
        if self._left:
            there = there[~np.isin(self.waiting[there], list(self._left))]
        tasks = self.waiting[there]
        return there[np.lexsort((tasks, self.problem.release[tasks]))]

    def choice(self, position: int) -> Choice:
        """The ways to decide ``tasks[position]``, which has an open row."""
        task = self.tasks[position]
        first, last = self.ptr.item(position), self.ptr.item(position + 1)
        at = first + np.flatnonzero(self.open[first:last])
        mode = self.ground.layout.mode[self.rows[at]]
        keys = (mode, self.end[at], *(level[at] for level in reversed(self.increase[1:])), self.primary[at])
        at = at[np.lexsort(keys)]
        score = -self.primary[at]
        chain = self._rejected_with(task)
        if chain:
            best = at[0]
            added = tuple(level.item(best) for level in self.increase)
            rejected = self.desk.rejection_increase(chain)
            worth = score[0] + (added[0] - rejected[0]) / self.problem.scale
            place = 0 if rejected < added else len(at)
            at, score = np.insert(at, place, REJECT), np.insert(score, place, worth)
        if self._can_be_left(task, self.rows[first:last][self.open[first:last]]):
            at, score = np.append(at, LATER), np.append(score, score.max() - _WORSE * self.value)
        return Choice(task, at, score)

    def _can_be_left(self, task: int, rows: Ints) -> bool:
        """Whether something else will happen, and the task still meets its deadline then, or may be rejected.

        Data that are neither there nor on their way come over their fastest route, from that event on.
        """
        upcoming, deadline = self.simulator.next_known_event, self.problem.deadline.item(task)
        if upcoming is None or deadline == NEVER or self.simulator.scope.rejectable[task]:
            return upcoming is not None
        need = self.ground.layout.need[rows]
        brought = upcoming + np.append(self.desk.fastest_route, 0)[need]
        there = np.where(self.prospects.missing[need], brought, self.prospects.arrival[need])
        start = np.maximum(upcoming, there.max(axis=1, initial=0))
        return bool((start + self.ground.layout.duration[rows] <= deadline).any())

    def _rejected_with(self, task: int) -> tuple[int, ...]:
        """The task and those after it, if they may be rejected."""
        chain = tuple(self.simulator.table.followers(task)) if self.simulator.may_reject(task) else ()
        return chain if chain and self.desk.limits.allow_rejection(chain) else ()

    # deciding ---------------------------------------------------------------------------------------------
    def decide(self, task: int, at: int) -> bool:
        """Place the task in the row at a position, reject it, or leave it for later.

        Returns
        -------
        Whether it is for good.
        """
        if at == LATER:
            self._left.add(task)
            return False
        if at == REJECT:
            self.desk.reject(task)
            self.look()
            return True
        row = self.rows.item(at)
        placement = self.simulator.table.earliest(task, self.ground.layout.mode.item(row))
        if placement is None or placement.start != self.start[at]:
            raise RuntimeError(f"Task {task}: the board does not know where mode {row} would be placed.")
        for_good = self.desk.commit(placement)
        self.prospects.committed(placement, for_good)
        self.look()
        return for_good

    def finish(self) -> None:
        """Reject what has no placement beside what is decided for good; the rest is left for the next event."""
        left = [task for task, best in zip(self.tasks, self.best.tolist(), strict=True) if best < 0]
        for task in sorted(left, key=lambda task: (self.problem.release.item(task), task)):
            if self.simulator.table.mode[task] == FREE:
                self.desk.settle(task, None)
