"""The columns of the time-indexed model: what is decided, as arrays.

Columns are numbered in the order ``x, rejected, y, z, held, after``:

=====================  ==============================================================================
``x[j,m,t]``           task j starts in mode m at tick t (binary)
``rejected[j]``        task j is rejected (binary)
``y[k,q,t]``           replica k is brought over route q, starting at tick t (binary)
``z[b]``               purchase b is paid (binary)
``held[k,t]``          replica k takes room at tick t (continuous, 0 to 1; at sites of limited storage)
``after[t]``           some run ends after tick t (binary; only where the makespan counts)
=====================  ==============================================================================

Only what can be chosen has a column: fixed tasks and transfers enter the rows as constants.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from optalloc.formulations.milp.profiles import Profile, fitting, free_capacity
from optalloc.problem import NEVER, Form, Ints, Problem
from optalloc.scope import Scope, Windows, first_end

__all__ = ["Columns", "Holds", "fixed_transfer_of", "growth_ticks", "make_columns", "spread"]


def spread(first: Ints, count: Ints) -> Ints:
    """The ranges ``first[i] .. first[i] + count[i] - 1``, one after the other."""
    ends = np.cumsum(count)
    total = int(ends[-1]) if len(ends) else 0
    return np.asarray(np.arange(total) + np.repeat(first - (ends - count), count), dtype=np.int64)


class Holds(NamedTuple):
    """Columns that hold a resource in [start, end); columns of one group (a task, a replica) exclude each
    other.
    """

    columns: Ints
    start: Ints
    end: Ints
    amount: Ints
    group: Ints


# columns ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Columns:
    """All columns of the model. Arrays of one family have one entry a column.

    Attributes
    ----------
    free
        What is left of each resource (see `free_capacity`).
    x_mode, x_task, x_start, x_end
        Starts, sorted by mode (so by task), then tick.
    mode_ptr
        (M + 1,) the columns of mode m are ``mode_ptr[m] .. mode_ptr[m + 1] - 1``.
    rejected_task
        Tasks that may be rejected.
    y_replica, y_route, y_start, y_end
        Transfers, sorted by replica, route, tick.
    z_purchase
        Purchases that cost something and are not paid by the fixed part.
    held_replica, held_tick
        Sorted by site, replica, tick.
    after_tick
        Consecutive ticks; empty where the makespan does not count.
    first_end
        The makespan is at least this.
    """

    scope: Scope
    windows: Windows
    free: list[Profile]
    x_mode: Ints
    x_start: Ints
    mode_ptr: Ints
    rejected_task: Ints
    y_replica: Ints
    y_route: Ints
    y_start: Ints
    z_purchase: Ints
    held_replica: Ints
    held_tick: Ints
    after_tick: Ints
    first_end: int

    @property
    def problem(self) -> Problem:
        return self.scope.problem

    @cached_property
    def x_task(self) -> Ints:
        return self.problem.mode_task[self.x_mode]

    @cached_property
    def x_end(self) -> Ints:
        return self.x_start + self.problem.duration[self.x_mode]

    @cached_property
    def y_end(self) -> Ints:
        return self.y_start + self.problem.route_ticks[self.y_route]

    # positions --------------------------------------------------------------------------------
    @cached_property
    def rejected_at(self) -> int:
        """First column of ``rejected``."""
        return len(self.x_mode)

    @cached_property
    def y_at(self) -> int:
        """First column of ``y``."""
        return self.rejected_at + len(self.rejected_task)

    @cached_property
    def z_at(self) -> int:
        """First column of ``z``."""
        return self.y_at + len(self.y_replica)

    @cached_property
    def held_at(self) -> int:
        """First column of ``held``."""
        return self.z_at + len(self.z_purchase)

    @cached_property
    def after_at(self) -> int:
        """First column of ``after``."""
        return self.held_at + len(self.held_replica)

    @cached_property
    def count(self) -> int:
        """Number of columns."""
        return self.after_at + len(self.after_tick)

    @cached_property
    def free_tasks(self) -> list[int]:
        """Tasks that are decided here."""
        return list(np.flatnonzero(self.scope.free).tolist())

    def of_modes(self, modes: Ints) -> Ints:
        """The ``x`` columns of some modes, in their order."""
        first = self.mode_ptr[modes]
        return spread(first, self.mode_ptr[np.asarray(modes) + 1] - first)

    def of_task(self, task: int) -> Ints:
        """The ``x`` columns of a task."""
        problem = self.problem
        first, last = problem.mode_ptr[task], problem.mode_ptr[task + 1]
        return np.arange(self.mode_ptr[first], self.mode_ptr[last])

    def rejection(self, task: int) -> Ints:
        """The ``rejected`` column of a task, if it has one."""
        return self.rejected_at + np.flatnonzero(self.rejected_task == task)

    def of_replica(self, replica: int) -> Ints:
        """The ``y`` columns of a replica."""
        first, last = np.searchsorted(self.y_replica, [replica, replica + 1])
        return np.arange(self.y_at + first, self.y_at + last)

    @cached_property
    def readers(self) -> dict[int, dict[int, Ints]]:
        """Replica -> task -> its ``x`` columns that read the replica staged (free tasks only)."""
        problem = self.problem
        owner = np.repeat(np.arange(problem.num_modes), np.diff(problem.need_ptr))
        lists: dict[int, dict[int, Ints]] = {}
        for replica in range(problem.num_replicas):
            columns = self.of_modes(owner[problem.need_replica == replica])
            tasks, first = np.unique(self.x_task[columns], return_index=True)
            parts = np.split(columns, first[1:]) if len(tasks) else []
            lists[replica] = dict(zip(tasks.tolist(), parts, strict=True))
        return lists

    @cached_property
    def fixed_readers(self) -> dict[int, list[int]]:
        """Replica -> fixed tasks that read it staged."""
        lists: dict[int, list[int]] = {}
        for task in np.flatnonzero(self.scope.mode >= 0).tolist():
            for replica in self.problem.needs(int(self.scope.mode[task])):
                lists.setdefault(replica, []).append(task)
        return lists

    @cached_property
    def holds(self) -> dict[int, Holds]:
        """Resource -> what can hold it: runs, and transfers over a channel."""
        problem = self.problem
        owner = np.repeat(np.arange(problem.num_modes), np.diff(problem.use_ptr))
        order = np.argsort(problem.use_resource, kind="stable")
        first = np.searchsorted(problem.use_resource[order], np.arange(problem.num_resources + 1))
        channels = self._channels()
        empty = np.zeros(0, dtype=np.int64)
        return {
            resource: self._holds(
                owner, order[first[resource] : first[resource + 1]], channels.get(resource, empty)
            )
            for resource in range(problem.num_resources)
        }

    def _holds(self, owner: Ints, entries: Ints, y: Ints) -> Holds:
        """Who holds a resource: the modes behind the ``entries`` of the lists of uses, and the transfers
        ``y``.
        """
        problem, modes = self.problem, owner[entries]
        x = self.of_modes(modes)
        amount = np.repeat(problem.use_amount[entries], self.mode_ptr[modes + 1] - self.mode_ptr[modes])
        return Holds(
            columns=np.concatenate([x, self.y_at + y]),
            start=np.concatenate([self.x_start[x], self.y_start[y]]),
            end=np.concatenate([self.x_end[x], self.y_end[y]]),
            amount=np.concatenate([amount, np.ones(len(y), dtype=np.int64)]),
            group=np.concatenate([self.x_task[x], problem.num_tasks + self.y_replica[y]]),
        )

    def _channels(self) -> dict[int, Ints]:
        """Resource -> transfers that hold a channel of it."""
        lists: dict[int, list[int]] = {}
        for y, route in enumerate(self.y_route.tolist()):
            for resource in self.problem.route_channels[route]:
                lists.setdefault(resource, []).append(y)
        return {resource: np.array(columns, dtype=np.int64) for resource, columns in lists.items()}


def fixed_transfer_of(scope: Scope, replica: int) -> bool:
    """Whether the fixed part already brings ``replica``."""
    problem = scope.problem
    return (int(problem.replica_dataset[replica]), int(problem.replica_site[replica])) in scope.fixed_replicas


def _start_columns(scope: Scope, windows: Windows, free: list[Profile]) -> tuple[Ints, Ints, Ints]:
    """(mode, start, mode_ptr): every start that windows, calendars and the fixed part allow."""
    problem = scope.problem
    least = [int(amounts.min()) for _, amounts in free]
    lists: list[Ints] = [np.zeros(0, dtype=np.int64)] * problem.num_modes
    is_open = windows.open & scope.free[problem.mode_task]
    for mode in np.flatnonzero(is_open).tolist():
        starts = np.arange(windows.earliest[mode], windows.latest[mode] + 1)
        for resource, amount in problem.uses(mode):
            if amount > least[resource]:
                starts = fitting(starts, int(problem.duration[mode]), free[resource], amount)
        lists[mode] = starts
    count = np.array([len(starts) for starts in lists], dtype=np.int64)
    pointer = np.concatenate([[0], np.cumsum(count)]).astype(np.int64)
    starts = np.concatenate(lists).astype(np.int64) if lists else np.zeros(0, dtype=np.int64)
    return np.repeat(np.arange(problem.num_modes), count), starts, pointer


def _last_reading(scope: Scope, x_mode: Ints, x_start: Ints) -> Ints:
    """(K,) latest start of a run that reads the replica staged and needs a transfer; -1 if there is none.

    Fixed tasks of the state need none (R6 does not bind them).
    """
    problem = scope.problem
    last_start = np.full(problem.num_modes, -1, dtype=np.int64)
    np.maximum.at(last_start, x_mode, x_start)
    given = np.flatnonzero((scope.mode >= 0) & (problem.state_mode < 0))
    last_start[scope.mode[given]] = scope.start[given]
    last = np.full(problem.num_replicas, -1, dtype=np.int64)
    owner = np.repeat(np.arange(problem.num_modes), np.diff(problem.need_ptr))
    np.maximum.at(last, problem.need_replica, last_start[owner])
    return last


def _transfer_columns(
    scope: Scope, windows: Windows, free: list[Profile], last: Ints
) -> tuple[Ints, Ints, Ints]:
    """(replica, route, start): every transfer that can arrive before its last reader starts.

    Where a transfer competes for nothing its start is fixed at the earliest tick and only the route remains.
    """
    problem = scope.problem
    parts: list[tuple[int, int, Ints]] = []
    for replica in range(problem.num_replicas):
        if fixed_transfer_of(scope, replica):
            continue
        earliest = int(windows.transfer_earliest[replica])
        for route in problem.routes_of(replica):
            ticks = int(problem.route_ticks[route])
            latest = int(last[replica]) - ticks
            if problem.constant_replicas[replica]:
                latest = min(latest, earliest)
            starts = np.arange(earliest, latest + 1)
            for resource in problem.route_channels[route]:
                starts = fitting(starts, ticks, free[resource], 1)
            parts.append((replica, route, starts))
    count = np.array([len(starts) for *_, starts in parts], dtype=np.int64)
    replicas = np.repeat(np.array([k for k, *_ in parts], dtype=np.int64), count)
    routes = np.repeat(np.array([q for _, q, _ in parts], dtype=np.int64), count)
    starts = np.concatenate([np.zeros(0, dtype=np.int64), *(s for *_, s in parts)])
    return replicas, routes, starts.astype(np.int64)


def _purchases(scope: Scope, x_mode: Ints) -> Ints:
    """Purchases that cost something, that some column needs, and that no fixed task pays already."""
    problem = scope.problem
    owner = np.repeat(np.arange(problem.num_modes), np.diff(problem.buy_ptr))
    has_column = np.zeros(problem.num_modes, dtype=bool)
    has_column[x_mode] = True
    wanted = np.unique(problem.buy_purchase[has_column[owner]])
    paid = [b for mode in scope.mode[scope.mode >= 0].tolist() for b in problem.buys(mode)]
    wanted = wanted[problem.purchase_cost[wanted] > 0]
    return np.asarray(wanted[~np.isin(wanted, paid)], dtype=np.int64)


def growth_ticks(scope: Scope, site: int, y_replica: Ints, y_start: Ints) -> Ints:
    """Ticks at which the room taken at ``site`` can grow: where a transfer to it starts."""
    here = scope.problem.replica_site[y_replica] == site
    fixed = [max(t.start, 0) for t in scope.transfers if t.site == site]
    return np.unique(np.concatenate([y_start[here], np.array(fixed, dtype=np.int64)]))


def _held_columns(scope: Scope, y_replica: Ints, y_start: Ints) -> tuple[Ints, Ints]:
    """(replica, tick): where a replica can take room at a site whose storage may not hold all that can
    come.
    """
    problem = scope.problem
    sent = np.full(problem.num_replicas, NEVER, dtype=np.int64)
    np.minimum.at(sent, y_replica, y_start)
    unlisted = set()
    for transfer in scope.transfers:
        replica = problem.replica_of.get((transfer.dataset, transfer.site))
        if replica is None:
            unlisted.add(transfer.site)
        else:
            sent[replica] = transfer.start
    replicas = [np.zeros(0, dtype=np.int64)]
    ticks = [np.zeros(0, dtype=np.int64)]
    for site in np.flatnonzero(problem.site_storage < NEVER).tolist():
        here = np.flatnonzero((problem.replica_site == site) & (sent < NEVER))
        if site in unlisted or problem.replica_size[here].sum() > problem.site_storage[site]:
            growth = growth_ticks(scope, site, y_replica, y_start)
            for replica in here.tolist():
                ticks.append(growth[growth >= sent[replica]])
                replicas.append(np.full(len(ticks[-1]), replica, dtype=np.int64))
    return np.concatenate(replicas), np.concatenate(ticks)


def make_columns(scope: Scope, windows: Windows, forms: list[Form]) -> Columns:
    """All columns for ``forms``, the objective and the limits of the model."""
    free = free_capacity(scope)
    x_mode, x_start, mode_ptr = _start_columns(scope, windows, free)
    last = _last_reading(scope, x_mode, x_start)
    y_replica, y_route, y_start = _transfer_columns(scope, windows, free, last)
    held_replica, held_tick = _held_columns(scope, y_replica, y_start)
    ends = x_start + scope.problem.duration[x_mode]
    begin = first_end(scope, x_mode, x_start)
    counts = any(form.makespan > 0 for form in forms)
    last_end = int(ends.max()) if counts and len(ends) else begin
    return Columns(
        scope=scope,
        windows=windows,
        free=free,
        x_mode=x_mode,
        x_start=x_start,
        mode_ptr=mode_ptr,
        rejected_task=np.flatnonzero(scope.rejectable),
        y_replica=y_replica,
        y_route=y_route,
        y_start=y_start,
        z_purchase=_purchases(scope, x_mode),
        held_replica=held_replica,
        held_tick=held_tick,
        after_tick=np.arange(begin, max(begin, last_end)),
        first_end=begin,
    )
