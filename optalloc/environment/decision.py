"""What can be decided now: every option with its mask, and what each placement would add."""

import numpy as np

from optalloc.environment.costs import Costs
from optalloc.environment.prospects import Prospects
from optalloc.problem import NEVER, Bools, Ints
from optalloc.simulation import Action, Commit, Reject, Stage, Wait

__all__ = ["Decision"]


class Decision:
    """The options of one moment; the same as `Simulator.actions`, as arrays.

    **Order of the options**: a commitment for each row of ``prospects.rows``, a rejection for each waiting task, a
    transfer for each of ``routes``, waiting.

    Parameters
    ----------
    prospects
        Up to date.
    costs
        Of the first level, then of each limit.
    transfers
        Whether transfers by themselves are options.

    Attributes
    ----------
    rows, tasks
        (N,) rows, (W,) waiting tasks.
    open
        (N,) rows that can be committed.
    end, charge, increase
        (N,) end of the run, money for transfers and purchases, and what the placement adds to what is decided for
        good; 0 where it is not open.
    may_reject
        (W,) tasks that can be rejected.
    routes
        (S,) routes over which a replica could be brought that a seen task reads and that is missing (with leave to
        prefetch: any missing replica).
    may_stage
        (S,) those that are possible now.
    may_wait
        Whether something will happen.
    """

    def __init__(self, prospects: Prospects, costs: list[Costs], *, transfers: bool):
        self.prospects, self.costs = prospects, costs
        layout, simulator = prospects.layout, prospects.simulator
        self.tasks, self.rows = prospects.tasks, prospects.rows
        start = prospects.start[self.rows]
        self.open: Bools = start < NEVER
        self.start: Ints = np.where(self.open, start, 0)
        self.end: Ints = np.where(self.open, start + layout.duration[self.rows], 0)
        self.charge: Ints = prospects.egress[self.rows] + prospects.unpaid[layout.buy[self.rows]].sum(axis=1)
        makespan = simulator.firm.makespan
        values = [cost.increase(self.rows, self.end, self.charge, makespan) for cost in costs]
        for limit, used, added in zip(
            layout.problem.limits, simulator.ledger.limited, values[1:], strict=True
        ):
            self.open &= added <= limit.bound - used
        self.increase: Ints = np.where(self.open, values[0], 0)
        self.may_reject: Bools = np.array([self._may_reject(task) for task in self.tasks], dtype=bool)
        self.routes = self._routes() if transfers else self.rows[:0]
        self.may_stage = self._may_stage()
        self.may_wait = simulator.next_event is not None

    def _may_reject(self, task: int) -> bool:
        simulator = self.prospects.simulator
        if not simulator.may_reject(task):
            return False
        if not simulator.problem.limits:
            return True
        return simulator.ledger.allows_rejection(simulator.firm.followers(task))

    def _routes(self) -> Ints:
        layout, simulator = self.prospects.layout, self.prospects.simulator
        wanted = self.prospects.missing[:-1].copy()
        if not simulator.prefetch:
            needed = np.zeros_like(wanted)
            for task in simulator.queue:
                needed[layout.task_needs[task]] = True
            wanted &= needed
        return np.flatnonzero(wanted[layout.route_replica])

    def _may_stage(self) -> Bools:
        layout, ledger = self.prospects.layout, self.prospects.simulator.ledger
        possible = layout.route_fits[self.routes] & (self.prospects.route_start[self.routes] < NEVER)
        if layout.problem.limits:
            costs = layout.problem.route_cost[self.routes].tolist()
            possible &= np.array([ledger.affords(cost) for cost in costs], dtype=bool)
        return np.asarray(possible)

    @property
    def mask(self) -> Bools:
        """(N + W + S + 1,) which options are possible."""
        return np.concatenate([self.open, self.may_reject, self.may_stage, [self.may_wait]])

    @property
    def asks(self) -> bool:
        """Whether anything but waiting is possible."""
        return bool(self.open.any() or self.may_reject.any() or self.may_stage.any())

    def action(self, option: int) -> Action:
        """What an option means."""
        for entries, act in ((self.rows, self._commit), (self.tasks, Reject), (self.routes, self._stage)):
            if option < len(entries):
                return act(int(entries[option]))
            option -= len(entries)
        return Wait()

    def option(self, action: Action) -> int:
        """The position of an action among the options, possible or not.

        Raises
        ------
        ValueError
            It is none of them.
        """
        layout = self.prospects.layout
        if isinstance(action, Commit):
            first, wanted = 0, action.mode
            entries: list[int] = layout.mode[self.rows].tolist()
        elif isinstance(action, Reject):
            first, entries, wanted = len(self.rows), self.tasks, action.task
        elif isinstance(action, Stage):
            first, wanted = len(self.rows) + len(self.tasks), action.route
            entries = self.routes.tolist()
        else:
            return len(self.mask) - 1
        if wanted not in entries or self.action(first + entries.index(wanted)) != action:
            raise ValueError(f"{action} is no option of this decision.")
        return first + entries.index(wanted)

    def _commit(self, row: int) -> Action:
        layout = self.prospects.layout
        return Commit(layout.task.item(row), layout.mode.item(row))

    def _stage(self, route: int) -> Action:
        return Stage(self.prospects.layout.route_replica.item(route), route)
