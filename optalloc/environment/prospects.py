"""Where every mode of the waiting tasks would be placed now, as arrays, kept up to date decision by decision."""

from collections.abc import Iterable

import numpy as np

from optalloc.environment.gaps import Gaps
from optalloc.environment.layout import Layout
from optalloc.placement import Placement
from optalloc.problem import NEVER, Bools, Ints, Transfer
from optalloc.profile import Profile
from optalloc.simulation import Simulator

__all__ = ["Prospects"]

_EVER = 2 * NEVER
"""Later than any end."""


class Prospects:
    """What `Timetable.earliest` would answer for every mode of the waiting tasks.

    A row is computed again only when something that it depends on has changed: a resource that it holds, a
    channel or the storage of its transfers, a replica, a predecessor, or the clock if it would begin before it.

    Parameters
    ----------
    layout
        Of the simulator's problem.
    simulator
        It has to be told what was decided (`committed`, `staged`); then `look` brings everything up to date.

    Attributes
    ----------
    tasks
        Tasks that wait for a decision, by release.
    rows, ptr
        Their rows one after the other; those of ``tasks[w]`` are ``rows[ptr[w]:ptr[w + 1]]``.
    start
        (R,) start of the placement of each row, NEVER if there is none; true for ``rows`` only.
    egress
        (R,) money that its new transfers cost.
    lacking
        (R,) whether it lacks a replica.
    arrival
        (K + 1,) tick from which a replica can be read: it is there or on its way, or would come by the fastest route.
    missing
        (K + 1,) replicas that are neither there nor on their way.
    unpaid
        (B + 1,) price of each purchase, 0 once it is paid for good.
    """

    def __init__(self, layout: Layout, simulator: Simulator):
        problem = layout.problem
        self.layout, self.simulator = layout, simulator
        self.tasks: list[int] = []
        self.rows: Ints = np.zeros(0, dtype=np.int64)
        self.ptr: Ints = np.zeros(1, dtype=np.int64)
        self.start = np.full(layout.num_rows, NEVER, dtype=np.int64)
        self.egress = np.zeros(layout.num_rows, dtype=np.int64)
        self.lacking = np.zeros(layout.num_rows, dtype=bool)
        self.arrival = np.zeros(problem.num_replicas + 1, dtype=np.int64)
        self.missing = np.zeros(problem.num_replicas + 1, dtype=bool)
        self.unpaid = np.append(problem.purchase_cost, 0)
        self.route_start = np.full(len(problem.route_ticks) + 1, NEVER, dtype=np.int64)
        """First start over each route that stages a missing replica, as far as channels go."""
        self._route_ticks = np.append(problem.route_ticks, 0)
        self._route_cost = np.append(problem.route_cost, NEVER)
        self._valid_until = np.full(layout.num_rows, -1, dtype=np.int64)
        """(R,) last clock at which the row holds if nothing else changes."""
        self._ready = np.zeros(problem.num_tasks, dtype=np.int64)
        self._latest = _latest(layout, simulator)
        self._kept_until = np.full(problem.num_replicas + 1, NEVER, dtype=np.int64)
        self._gaps = Gaps(layout)
        self._clock = -1
        self._for_now: list[tuple[Iterable[int], Iterable[int], Iterable[int]]] = []
        self._resources = {
            *range(problem.num_resources),
            *(problem.num_resources + s for s in simulator.table.storage),
        }
        self._replicas = set(range(problem.num_replicas))
        self._purchases = set(range(problem.num_purchases))
        self.look()

    # what has changed -------------------------------------------------------------------------------------
    def committed(self, placement: Placement, for_good: bool) -> None:
        """A placement has been committed."""
        facts = self.simulator.firm.facts(placement.mode)
        channels = [channel for transfer in placement.transfers for channel in transfer.channels]
        held = [*channels, *(resource for resource, _ in facts.uses)]
        self._touch(held, facts.needs, facts.buys, for_good)
        for task in self.layout.problem.successors[placement.task]:
            self._valid_until[self.layout.ptr[task] : self.layout.ptr[task + 1]] = -1

    def staged(self, transfer: Transfer, for_good: bool) -> None:
        """A transfer has been decided by itself."""
        self._touch(transfer.channels, (transfer.replica,), (), for_good)

    def _touch(
        self, resources: Iterable[int], replicas: Iterable[int], purchases: Iterable[int], for_good: bool
    ) -> None:
        layout = self.layout
        for resource in resources:
            self._valid_until[layout.rows_holding[resource]] = -1
            for replica in layout.replicas_over[resource]:
                self._valid_until[layout.rows_needing[replica]] = -1
        for replica in replicas:
            for other in layout.sharing_storage[replica]:
                self._valid_until[layout.rows_needing[other]] = -1
            if layout.room[replica] < NEVER:
                self._resources.add(layout.problem.num_resources + layout.problem.replica_site.item(replica))
        self._resources.update(resources)
        self._replicas.update(replicas)
        self._purchases.update(purchases)
        if not for_good:
            self._for_now.append((resources, replicas, purchases))

    # looking ----------------------------------------------------------------------------------------------
    def look(self) -> None:
        """Bring everything up to date with the simulator."""
        simulator = self.simulator
        moved = simulator.clock != self._clock
        if moved:
            self._clock = simulator.clock
            for touched in self._for_now:
                self._touch(*touched, for_good=True)
            self._for_now.clear()
        for resource in self._resources:
            self._gaps.update(resource, self._profile(resource), self._clock)
        self._look_at_data(moved)
        for purchase in self._purchases:
            paid = simulator.firm.bought[purchase] > 0
            self.unpaid[purchase] = 0 if paid else self.layout.problem.purchase_cost[purchase]
        for changed in (self._resources, self._replicas, self._purchases):
            changed.clear()
        self._look_at_tasks()

    def _profile(self, resource: int) -> Profile:
        table, resources = self.simulator.table, self.layout.problem.num_resources
        return table.profiles[resource] if resource < resources else table.storage[resource - resources]

    def _look_at_data(self, moved: bool) -> None:
        layout, table = self.layout, self.simulator.table
        changed = {other for replica in self._replicas for other in layout.sharing_storage[replica]}
        for replica in changed:
            held = table.held.get(replica)
            self.missing[replica] = held is None
            if held is not None:
                self.arrival[replica] = held.transfer.end
                self._kept_until[replica] = self._last_end(replica, held.until)
        channels = any(layout.replicas_over[r] for r in self._resources if r < layout.problem.num_resources)
        if (moved or changed or channels) and self.missing.any():
            self._look_at_routes()

    def _last_end(self, replica: int, until: int) -> int:
        """Up to when the storage lets a replica stay that is kept ``until`` now; NEVER: as long as one likes."""
        problem = self.layout.problem
        storage = self.simulator.table.storage.get(problem.replica_site.item(replica))
        return NEVER if storage is None else storage.first_shortage(problem.replica_size.item(replica), until)

    def _look_at_routes(self) -> None:
        layout, problem = self.layout, self.layout.problem
        routes = np.flatnonzero(self.missing[layout.route_replica])
        first = np.maximum(problem.replica_available, self._now)[layout.route_replica[routes]]
        ticks = problem.route_ticks[routes]
        self.route_start[routes] = self._gaps.fit_all(layout.route_pairs[routes], first, ticks)
        ends = np.minimum(self.route_start + self._route_ticks, NEVER)[layout.routes]
        self.arrival[self.missing] = ends.min(axis=1, initial=NEVER)[self.missing]

    @property
    def _now(self) -> int:
        """First tick at which anything can begin."""
        return max(self._clock, self.simulator.scope.not_before)

    def _look_at_tasks(self) -> None:
        layout, simulator = self.layout, self.simulator
        waiting = simulator.waiting
        if waiting != self.tasks:
            self.tasks = waiting
            lists = [layout.row_list[task] for task in waiting]
            self.rows = np.concatenate(lists) if lists else self.rows[:0]
            self.ptr = np.concatenate([[0], np.cumsum([len(rows) for rows in lists])]).astype(np.int64)
        for task in waiting:
            if layout.problem.pred_ptr[task] < layout.problem.pred_ptr[task + 1]:
                self._ready[task] = simulator.table.ready(task)
        stale = self.rows[self._valid_until[self.rows] < self._clock]
        if len(stale):
            self._place(stale)

    # placing ----------------------------------------------------------------------------------------------
    def _place(self, rows: Ints) -> None:
        layout = self.layout
        self.lacking[rows] = self.missing[layout.need[rows]].any(axis=1)
        alone = layout.intertwined[rows]
        squeezed = layout.limited[rows] & self.lacking[rows] & ~alone
        self._place_at_once(rows[~alone & ~squeezed])
        if squeezed.any():
            self._place_with_storage(rows[squeezed])
        if alone.any():
            self._place_one_by_one(rows[alone].tolist())
        start = self.start[rows]
        # Transfers that begin now begin later once the clock has moved.
        self._valid_until[rows] = np.where(self.lacking[rows], self._clock, start)

    def _lower(self, rows: Ints) -> Ints:
        """First start that everything but data and capacity allows."""
        layout = self.layout
        return np.maximum(np.maximum(layout.earliest[rows], self._ready[layout.task[rows]]), self._now)

    def _fit(self, rows: Ints, lower: Ints) -> Ints:
        """Earliest start from ``lower`` on for which there is capacity, or NEVER."""
        layout = self.layout
        start = self._gaps.fit_all(layout.pair[rows], lower, layout.duration[rows])
        return np.where(start <= self._latest[rows], start, NEVER)

    def _place_at_once(self, rows: Ints) -> None:
        """All replicas are there, or nothing stands in the way of bringing them."""
        layout = self.layout
        needs = layout.need[rows]
        start = self._fit(rows, np.maximum(self._lower(rows), self.arrival[needs].max(axis=1, initial=0)))
        # A later start only lengthens the retention, so a shortage closes the row.
        last_end = np.where(self.missing[needs], NEVER, self._kept_until[needs]).min(axis=1, initial=NEVER)
        start[start + layout.duration[rows] > np.where(last_end < NEVER, last_end, _EVER)] = NEVER
        self.start[rows], self.egress[rows] = start, 0
        lacking = self.lacking[rows]
        if lacking.any():
            self._add_egress(rows[lacking])

    def _add_egress(self, rows: Ints) -> None:
        """Of the routes that do not delay the run the cheapest is taken."""
        layout = self.layout
        ends = self.route_start + self._route_ticks
        for needs in layout.need[rows].T:
            routes = layout.routes[needs]
            in_time = ends[routes] <= self.start[rows, None]
            cost = np.where(in_time, self._route_cost[routes], NEVER).min(axis=1, initial=NEVER)
            self.egress[rows] += np.where(self.missing[needs] & (cost < NEVER), cost, 0)

    def _place_with_storage(self, rows: Ints) -> None:
        """One replica has to be brought to a limited storage: of all routes the earliest start, then the cheapest."""
        layout = self.layout
        replica = layout.need[rows].min(axis=1)
        best = np.full((4, len(rows)), NEVER, dtype=np.int64)
        for routes in layout.routes[replica].T:
            there = np.flatnonzero(routes < len(self._route_ticks) - 1)
            start, end = self._over_route(rows[there], replica[there], routes[there])
            found = np.stack([start, self._route_cost[routes[there]], end, routes[there]])
            found[:, start >= NEVER] = NEVER
            better = _lexicographically_less(found, best[:, there])
            best[:, there[better]] = found[:, better]
        self.start[rows], self.egress[rows] = best[0], np.where(best[0] < NEVER, best[1], 0)

    def _over_route(self, rows: Ints, replica: Ints, route: Ints) -> tuple[Ints, Ints]:
        """Start of each run and end of its transfer on a given route.

        Where storage falls short between the two, the transfer has to start after the shortage: any start before it
        would hold the replica through it (`optalloc.staging`).
        """
        layout, ticks = self.layout, self._route_ticks[route]
        lower, pairs, storage = self._lower(rows), layout.route_pairs[route], layout.storage_pair[replica]
        start = np.full(len(rows), NEVER, dtype=np.int64)
        moved, active = self.route_start[route], np.arange(len(rows))
        while len(active):
            run = self._fit(rows[active], np.maximum(lower[active], np.minimum(moved + ticks, NEVER)[active]))
            end = run + layout.duration[rows[active]]
            room = self._gaps.reaching(storage[active], end)
            found, late = run < NEVER, room > moved[active]
            fits, again = found & ~late, found & late & (room < NEVER)
            start[active[fits]] = run[fits]
            moved[active[again]] = self._gaps.fit_all(pairs[active[again]], room[again], ticks[active[again]])
            active = active[again]
        return start, moved + ticks

    def _place_one_by_one(self, rows: list[int]) -> None:
        layout, table = self.layout, self.simulator.table
        for row in rows:
            found = table.earliest(layout.task.item(row), layout.mode.item(row))
            self.start[row] = NEVER if found is None else found.start
            self.egress[row] = 0 if found is None else sum(transfer.cost for transfer in found.transfers)


def _lexicographically_less(found: Ints, best: Ints) -> Bools:
    less, equal = np.zeros(found.shape[1], dtype=bool), np.ones(found.shape[1], dtype=bool)
    for mine, other in zip(found, best, strict=True):
        less |= equal & (mine < other)
        equal &= mine == other
    return less


def _latest(layout: Layout, simulator: Simulator) -> Ints:
    """(R,) last start by the deadline, and before what is fixed after the task."""
    latest = layout.latest.copy()
    problem, firm = layout.problem, simulator.firm
    for task in np.flatnonzero(simulator.scope.mode >= 0).tolist():
        for pred, lag in problem.predecessors(task):
            part = slice(layout.ptr[pred], layout.ptr[pred + 1])
            latest[part] = np.minimum(latest[part], firm.start[task] - lag - layout.duration[part])
    return latest
