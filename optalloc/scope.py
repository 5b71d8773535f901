"""What one solve may decide, the horizon, and the start windows that follow from it."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from optalloc.problem import (
    ABSENT,
    FREE,
    NEVER,
    REJECTED,
    Bools,
    Ints,
    Plan,
    Problem,
    ReadOnly,
    Transfer,
    read_only,
)

__all__ = [
    "Scope", "Windows", "first_end", "full_scope", "horizon", "propagate", "start_intervals",
    "windows",
]  # fmt: skip


@dataclass(frozen=True, eq=False)
class Scope(ReadOnly):
    """A problem together with what is already decided.

    Attributes
    ----------
    mode, start
        (J,) FREE where the solve decides; else the fixed mode (or REJECTED) and its start. Tasks that do not exist
        for this solve are ABSENT. The state of the instance is always included.
    transfers
        Fixed transfers (of the state and of `fixed`); no other transfer may bring the same (dataset, site).
    not_before
        Nothing outside the fixed part starts before this tick.
    """

    problem: Problem
    mode: Ints
    start: Ints
    transfers: tuple[Transfer, ...]
    not_before: int = 0

    @cached_property
    def free(self) -> Bools:
        """(J,) tasks that this solve decides."""
        return read_only(self.mode == FREE)

    @cached_property
    def exists(self) -> Bools:
        """(J,) tasks that exist for this solve."""
        return read_only(self.mode != ABSENT)

    @cached_property
    def rejectable(self) -> Bools:
        """(J,) free tasks that may be rejected here: all their successors are rejected or may be."""
        allowed = self.problem.rejectable & self.free
        for task in reversed(self.problem.topological):
            for successor in self.problem.successors[task]:
                if self.exists[successor] and self.mode[successor] != REJECTED and not allowed[successor]:
                    allowed[task] = False
        return read_only(allowed)

    @cached_property
    def fixed_replicas(self) -> dict[tuple[int, int], Transfer]:
        """(dataset, site) -> the fixed transfer that brings it."""
        return {(t.dataset, t.site): t for t in self.transfers}

    @cached_property
    def fixed_uses(self) -> tuple[tuple[int, int, int, int], ...]:
        """(resource, start, end, amount) of everything that fixed runs and fixed transfers hold."""
        problem, found = self.problem, []
        for task in np.flatnonzero(self.mode >= 0).tolist():
            mode, start = int(self.mode[task]), int(self.start[task])
            end = start + int(problem.duration[mode])
            found += [(resource, start, end, amount) for resource, amount in problem.uses(mode)]
        found += [(channel, t.start, t.end, 1) for t in self.transfers for channel in t.channels]
        return tuple(found)

    def start_plan(self) -> Plan:
        """A plan that holds just the fixed part; free tasks are still FREE."""
        return Plan(self.mode.copy(), np.where(self.mode >= 0, self.start, 0), self.transfers)


def full_scope(problem: Problem) -> Scope:
    """The scope in which everything but the state is open."""
    return Scope(problem, problem.state_mode.copy(), problem.state_start.copy(), problem.state_transfers)


def horizon(scope: Scope) -> int:
    """A tick by which some optimal plan has ended.

    Last fixed event + sum over tasks of (longest duration + largest incoming lag) + sum over replicas of the longest
    transfer.
    """
    problem = scope.problem
    fixed = scope.mode >= 0
    ends = (
        (scope.start + problem.duration[scope.mode.clip(0)])[fixed] if problem.num_modes else np.zeros(0, int)
    )
    events = [scope.not_before, 0]
    known = (
        problem.release[scope.exists],
        problem.available[scope.exists[problem.mode_task]],
        problem.cap_time,
    )
    replicas = _replicas(scope)
    events += [int(a.max()) for a in (*known, problem.replica_available[replicas], ends) if len(a)]
    events += [t.end for t in scope.transfers]
    total = max(events)
    for task in np.flatnonzero(scope.free).tolist():
        modes = problem.modes_of(task)
        longest = int(problem.duration[modes].max()) if len(modes) else 0
        total += longest + max((lag for _, lag in problem.predecessors(task)), default=0)
    fixed_lags = (
        max((lag for _, lag in problem.predecessors(t)), default=0) for t in np.flatnonzero(fixed).tolist()
    )
    total += sum(fixed_lags)
    for replica in replicas.tolist():
        total += max((int(problem.route_ticks[q]) for q in problem.routes_of(replica)), default=0)
    return total


def _replicas(scope: Scope) -> Ints:
    """Replicas that count: all, or, where some tasks do not exist, those that the modes of the others need."""
    problem = scope.problem
    if scope.exists.all():
        return np.arange(problem.num_replicas)
    exists = scope.exists[problem.mode_task]
    owner = np.repeat(np.arange(problem.num_modes), np.diff(problem.need_ptr))
    return np.unique(problem.need_replica[exists[owner]])


@dataclass(frozen=True, eq=False)
class Windows(ReadOnly):
    """Start windows: a mode may start at ticks ``earliest[m] .. latest[m]`` (none if latest < earliest).

    Attributes
    ----------
    earliest, latest
        (M,) inclusive; a mode outside the scope or inactive has an empty window; a fixed task has one mode left.
    horizon
        Every run and transfer ends by this tick.
    transfer_earliest
        (K,) first tick at which the transfer of a replica may start (fixed: its start).
    """

    earliest: Ints
    latest: Ints
    horizon: int
    transfer_earliest: Ints

    @property
    def open(self) -> Bools:
        """(M,) modes with a start left."""
        return np.asarray(self.earliest <= self.latest)


def windows(scope: Scope, end_by: int | None = None) -> Windows:
    """Windows from release, data, deadlines, precedence (forward along all, backward from tasks that must run).

    Parameters
    ----------
    end_by
        No run ends later than this tick; default the horizon.
    """
    problem = scope.problem
    end_by = horizon(scope) if end_by is None else end_by
    task = problem.mode_task
    transfer_earliest = np.maximum(problem.replica_available, scope.not_before)
    arrival = np.zeros(problem.num_replicas, dtype=np.int64)
    for k in range(problem.num_replicas):
        fixed = scope.fixed_replicas.get((int(problem.replica_dataset[k]), int(problem.replica_site[k])))
        if fixed is not None:
            transfer_earliest[k] = fixed.start
            arrival[k] = fixed.end
        else:
            ticks = [int(problem.route_ticks[q]) for q in problem.routes_of(k)]
            arrival[k] = transfer_earliest[k] + min(ticks, default=NEVER)
    earliest = np.maximum(problem.release[task], np.maximum(problem.available, scope.not_before))
    if len(problem.need_replica):
        owner = np.repeat(np.arange(problem.num_modes), np.diff(problem.need_ptr))
        np.maximum.at(earliest, owner, arrival[problem.need_replica])
    latest = np.minimum(problem.deadline[task], end_by) - problem.duration
    usable = problem.active & scope.free[task]
    latest = np.where(usable, latest, earliest - 1)
    fixed_tasks = np.flatnonzero(scope.mode >= 0)
    chosen = scope.mode[fixed_tasks]
    earliest[chosen] = latest[chosen] = scope.start[fixed_tasks]
    propagate(scope, earliest, latest)
    return Windows(earliest, latest, end_by, transfer_earliest)


def propagate(scope: Scope, earliest: Ints, latest: Ints) -> None:
    """Tighten the windows of free tasks in place along precedence."""
    problem = scope.problem
    must = scope.exists & (scope.mode != REJECTED) & ~scope.rejectable

    def modes(task: int) -> slice:
        return slice(int(problem.mode_ptr[task]), int(problem.mode_ptr[task + 1]))

    for task in problem.topological:
        if not scope.free[task]:
            continue
        part = modes(task)
        for pred, lag in problem.predecessors(task):
            if not scope.exists[pred]:
                continue
            prior = modes(pred)
            is_open = earliest[prior] <= latest[prior]
            ends = (earliest[prior] + problem.duration[prior])[is_open]
            first = int(ends.min()) + lag if len(ends) else NEVER
            earliest[part] = np.maximum(earliest[part], first)
    for task in reversed(problem.topological):
        part = modes(task)
        is_open = earliest[part] <= latest[part]
        if not must[task]:
            continue
        last = int(latest[part][is_open].max()) if is_open.any() else -NEVER
        for pred, lag in problem.predecessors(task):
            if scope.free[pred]:
                prior = modes(pred)
                latest[prior] = np.minimum(latest[prior], last - lag - problem.duration[prior])


def first_end(scope: Scope, modes: Ints, starts: Ints) -> int:
    """A lower bound of the makespan: every fixed end, and the earliest end of each task that must run.

    Parameters
    ----------
    modes, starts
        Runs that are possible; of each mode the earliest start is enough.
    """
    problem = scope.problem
    placed = scope.mode >= 0
    known = scope.start[placed] + problem.duration[scope.mode[placed]]
    earliest = np.full(problem.num_tasks, NEVER, dtype=np.int64)
    np.minimum.at(earliest, problem.mode_task[modes], starts + problem.duration[modes])
    must = scope.free & ~scope.rejectable & (earliest < NEVER)
    return int(max([0, *known.tolist(), *earliest[must].tolist()]))


def start_intervals(problem: Problem, mode: int, first: int, last: int) -> list[tuple[int, int]]:
    """Maximal intervals of starts in [first, last] at which the calendars alone let ``mode`` run to its end.

    A run is within capacity at every tick of [start, start + duration) that is >= 0.
    """
    blocked = []
    duration = int(problem.duration[mode])
    for resource, amount in problem.uses(mode):
        times, amounts = problem.capacity(resource)
        for i in np.flatnonzero(amounts < amount).tolist():
            until = int(times[i + 1]) if i + 1 < len(times) else NEVER
            blocked.append((int(times[i]) - duration + 1, until - 1))
    free, begin = [], first
    for low, high in sorted(blocked):
        if low > last:
            break
        if begin < low:
            free.append((begin, low - 1))
        begin = max(begin, high + 1)
    if begin <= last:
        free.append((begin, last))
    return free
