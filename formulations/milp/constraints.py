"""The rows of the time-indexed model, one short function per family.

Notation: ``p`` duration of a mode, ``end = t + p``; sums run over existing columns only. Rows that cannot
bind are left out; what remains describes the same integer points.
"""

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from optalloc.formulations.milp.objective import shifted_form
from optalloc.formulations.milp.profiles import Profile
from optalloc.formulations.milp.variables import (
    Columns,
    Holds,
    fixed_transfer_of,
    growth_ticks,
    spread,
)
from optalloc.problem import NEVER, REJECTED, Form, Ints, Transfer

__all__ = ["FAMILIES", "Row", "form_rows"]


class Row(NamedTuple):
    """``lower <= sum of coefficients * columns <= upper``; None where there is no side."""

    key: tuple[int, ...]
    columns: Ints
    coefficients: Ints
    lower: int | None
    upper: int | None


def _row(
    key: tuple[int, ...], *parts: tuple[Ints, int], lower: int | None = None, upper: int | None = None
) -> Row:
    """A row whose parts have one coefficient each."""
    columns = np.concatenate([part for part, _ in parts])
    coefficients = np.repeat([value for _, value in parts], [len(part) for part, _ in parts])
    return Row(key, columns, coefficients, lower, upper)


# tasks --------------------------------------------------------------------------------------------


def one_start(c: Columns) -> Iterator[Row]:
    """R1, R2. Every task starts once, in one mode, or is rejected: Σ_{m,t} x[j,m,t] + rejected[j] = 1."""
    for task in c.free_tasks:
        yield _row((task,), (c.of_task(task), 1), (c.rejection(task), 1), lower=1, upper=1)


def rejection(c: Columns) -> Iterator[Row]:
    """R1. A task after a rejected one is rejected: rejected[i] <= rejected[j] for every i before j."""
    for task in c.free_tasks:
        for pred, _ in c.problem.predecessors(task):
            if c.scope.mode[pred] == REJECTED:
                yield _row((pred, task), (c.rejection(task), 1), lower=1)
            elif c.scope.rejectable[pred]:
                yield _row((pred, task), (c.rejection(pred), 1), (c.rejection(task), -1), upper=0)


def precedence(c: Columns) -> Iterator[Row]:
    """R4. By every tick t, j has started only if i has ended a lag ago:
    Σ_{m, s <= t} x[j,m,s] <= Σ_{m, s + p + lag <= t} x[i,m,s].

    Windows see to it where i or j is fixed.
    """
    for task in c.free_tasks:
        for pred, lag in c.problem.predecessors(task):
            if c.scope.free[pred]:
                after, before = c.of_task(task), c.of_task(pred)
                yield from _follow((pred, task), after, c.x_start[after], before, c.x_end[before] + lag)


def _follow(key: tuple[int, ...], followers: Ints, when: Ints, leaders: Ints, ready: Ints) -> Iterator[Row]:
    """For every tick t: Σ followers with ``when`` <= t  <=  Σ leaders with ``ready`` <= t.

    Between two ``ready`` ticks the last tick says it all; a row whose left side has not grown adds nothing.
    """
    order, lead = np.argsort(when, kind="stable"), np.argsort(ready, kind="stable")
    followers, when, leaders, ready = followers[order], when[order], leaders[lead], ready[lead]
    changes = np.unique(ready)
    led = np.concatenate([[0], np.searchsorted(ready, changes, side="right")])
    following = np.concatenate([np.searchsorted(when, changes, side="left"), [len(when)]])
    done = 0
    for count, allowed in zip(following.tolist(), led.tolist(), strict=True):
        if count > done:
            tick = int(when[count - 1])
            yield _row((*key, tick), (followers[:count], 1), (leaders[:allowed], -1), upper=0)
            done = count


# resources ----------------------------------------------------------------------------------------


def capacity(c: Columns) -> Iterator[Row]:
    """R5, R7, R9. At every tick t, what runs and transfers hold of a resource fits into what is left of it:
    Σ_{s <= t < end} amount[m,r] x[j,m,s] + Σ_{s <= t < end, route over r} y[k,q,s] <= capacity left[r,t].

    A tick needs a row only if something can start there or less is left than before; elsewhere the row
    before holds.
    """
    for resource, holds in c.holds.items():
        times, amounts = c.free[resource]
        for tick in times[amounts < 0].tolist():  # the fixed part alone is too much: no plan
            yield Row((resource, tick), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), None, -1)
        yield from _capacity_rows(resource, holds, (times, amounts))


def _capacity_rows(resource: int, holds: Holds, left: Profile) -> Iterator[Row]:
    """The rows of one resource at the ticks where they can bind."""
    times, amounts = left
    drops = times[1:][np.diff(amounts) < 0]
    ticks = np.unique(np.concatenate([holds.start, drops]))
    first, last = np.searchsorted(ticks, holds.start), np.searchsorted(ticks, holds.end)
    entry = np.repeat(np.arange(len(holds.columns)), last - first)
    line = spread(first, last - first)
    order = np.argsort(line, kind="stable")
    entry, line = entry[order], line[order]
    room = amounts[np.searchsorted(times, ticks, side="right") - 1]
    most = _most(line, holds.group[entry], holds.amount[entry], len(ticks))
    begin = np.searchsorted(line, np.arange(len(ticks) + 1))
    for i in np.flatnonzero(most > room).tolist():
        part = entry[begin[i] : begin[i + 1]]
        yield Row((resource, int(ticks[i])), holds.columns[part], holds.amount[part], None, int(room[i]))


def _most(line: Ints, group: Ints, amount: Ints, lines: int) -> Ints:
    """(lines,) the most that each line can take if one entry of every group counts."""
    total = np.zeros(lines, dtype=np.int64)
    if len(line):
        heads = np.flatnonzero(np.diff(line, prepend=-1) | np.diff(group, prepend=-1))
        np.add.at(total, line[heads], np.maximum.reduceat(amount, heads))
    return total


# data ---------------------------------------------------------------------------------------------


def one_transfer(c: Columns) -> Iterator[Row]:
    """R11. At most one transfer brings a replica: Σ_{q,t} y[k,q,t] <= 1."""
    for replica in np.unique(c.y_replica).tolist():
        yield _row((replica,), (c.of_replica(replica), 1), upper=1)


def transfer_is_read(c: Columns) -> Iterator[Row]:
    """Nothing is brought in vain: Σ_{q,t} y[k,q,t] <= Σ x[j,m,t] over the modes that read k."""
    for replica in np.unique(c.y_replica).tolist():
        if not c.fixed_readers.get(replica):
            readers = np.concatenate(list(c.readers[replica].values()))
            yield _row((replica,), (c.of_replica(replica), 1), (readers, -1), upper=0)


def staging(c: Columns) -> Iterator[Row]:
    """R6. By every tick t, j has started to read replica k only if k has arrived:
    Σ_{m reads k, s <= t} x[j,m,s] <= Σ_{q, s + ticks <= t} y[k,q,s].

    Windows see to it where the transfer is fixed. A reader that is fixed needs an arrival by its start.
    """
    for replica, by_task in c.readers.items():
        if fixed_transfer_of(c.scope, replica):
            continue
        arrivals = c.of_replica(replica)
        ready = c.y_end[arrivals - c.y_at]
        for task, columns in by_task.items():
            yield from _follow((replica, task), columns, c.x_start[columns], arrivals, ready)
    yield from _fixed_staging(c)


def _fixed_staging(c: Columns) -> Iterator[Row]:
    """Σ_{q, s + ticks <= start} y[k,q,s] >= 1 for a fixed reader whose transfer is not fixed (state:
    exempt).
    """
    for replica, tasks in c.fixed_readers.items():
        bound = [int(c.scope.start[task]) for task in tasks if c.problem.state_mode[task] < 0]
        if bound and not fixed_transfer_of(c.scope, replica):
            arrivals = c.of_replica(replica)
            in_time = arrivals[c.y_end[arrivals - c.y_at] <= min(bound)]
            yield _row((replica, -1, min(bound)), (in_time, 1), lower=1)


def purchase(c: Columns) -> Iterator[Row]:
    """R11. A task that uses bought data needs the purchase: Σ_{m needs b, t} x[j,m,t] <= z[b]."""
    for at, item in enumerate(c.z_purchase.tolist()):
        columns = _buyers(c, item)
        tasks, first = np.unique(c.x_task[columns], return_index=True)
        for task, part in zip(tasks.tolist(), np.split(columns, first[1:]), strict=True):
            yield _row((item, task), (part, 1), (np.array([c.z_at + at]), -1), upper=0)


def purchase_is_used(c: Columns) -> Iterator[Row]:
    """Nothing is bought in vain: z[b] <= Σ x[j,m,t] over the modes that need b."""
    for at, item in enumerate(c.z_purchase.tolist()):
        yield _row((item,), (np.array([c.z_at + at]), 1), (_buyers(c, item), -1), upper=0)


def _buyers(c: Columns, item: int) -> Ints:
    """The ``x`` columns that need a purchase."""
    problem = c.problem
    owner = np.repeat(np.arange(problem.num_modes), np.diff(problem.buy_ptr))
    return c.of_modes(owner[problem.buy_purchase == item])


# storage ------------------------------------------------------------------------------------------


def _fixed_of(c: Columns, replica: int) -> Transfer | None:
    key = (int(c.problem.replica_dataset[replica]), int(c.problem.replica_site[replica]))
    return c.scope.fixed_replicas.get(key)


def held_under_way(c: Columns) -> Iterator[Row]:
    """R8. A replica takes room while it is under way: held[k,t] >= Σ_{q, s <= t < s + ticks} y[k,q,s]."""
    for at, replica, tick, _ in _held_spans(c):
        held = np.array([at])
        columns = c.of_replica(replica)
        under_way = (c.y_start[columns - c.y_at] <= tick) & (c.y_end[columns - c.y_at] > tick)
        if under_way.any():
            yield _row((replica, tick), (held, 1), (columns[under_way], -1), lower=0)


def held_while_read(c: Columns) -> Iterator[Row]:
    """R8. A replica takes room while it is read: held[k,t] >= Σ x[j,m,s] over the runs of j that read k and
    are under way at some moment from t to the next tick u at which anything can be sent to the site (s < u,
    end > t).
    """
    for at, replica, tick, until in _held_spans(c):
        for task, readers in c.readers[replica].items():
            reading = readers[(c.x_end[readers] > tick) & (c.x_start[readers] < until)]
            if len(reading):
                yield _row((replica, tick, task), (np.array([at]), 1), (reading, -1), lower=0)


def held_without_gap(c: Columns) -> Iterator[Row]:
    """R8. Room is taken from the start of the transfer on, without a gap: held[k,t] <= held[k,before] + Σ_q
    y[k,q,t].

    A replica is brought once, so room that was given up cannot be taken again: it is held until the last
    reader ends.
    """
    before: tuple[int, int] | None = None
    for at, replica, tick, _ in _held_spans(c):
        columns = c.of_replica(replica)
        sent = columns[c.y_start[columns - c.y_at] == tick]
        is_first = before is None or before[0] != replica
        if not (is_first and fixed_transfer_of(c.scope, replica)):
            earlier = np.array([] if is_first or before is None else [before[1]], dtype=np.int64)
            yield _row((replica, tick), (np.array([at]), 1), (earlier, -1), (sent, -1), upper=0)
        before = replica, at


def _held_spans(c: Columns) -> Iterator[tuple[int, int, int, int]]:
    """(column, replica, tick, next tick of the replica) of every ``held``."""
    ticks, replicas = c.held_tick, c.held_replica
    following = np.full(len(ticks), NEVER, dtype=np.int64)
    same = replicas[1:] == replicas[:-1]
    following[:-1][same] = ticks[1:][same]
    columns = np.arange(c.held_at, c.held_at + len(ticks))
    return zip(*(part.tolist() for part in (columns, replicas, ticks, following)), strict=True)


def held_for_fixed(c: Columns) -> Iterator[Row]:
    """R8. A fixed reader keeps a replica that has set out until it ends: held[k,t] >= Σ_{q, s <= t} y[k,q,s].

    A fixed transfer has set out: held[k,t] >= 1 until it and its fixed readers have ended.
    """
    for at, replica, tick, _ in _held_spans(c):
        held = np.array([at])
        fixed = _fixed_of(c, replica)
        until = max(_fixed_reading(c, replica), fixed.end if fixed else 0)
        if tick >= until:
            continue
        if fixed:
            yield _row((replica, tick), (held, 1), lower=1)
        else:
            columns = c.of_replica(replica)
            gone = columns[c.y_start[columns - c.y_at] <= tick]
            yield _row((replica, tick), (held, 1), (gone, -1), lower=0)


def _fixed_reading(c: Columns, replica: int) -> int:
    """When the last fixed reader of a replica ends; 0 if there is none."""
    scope, problem = c.scope, c.problem
    tasks = c.fixed_readers.get(replica, [])
    return max((int(scope.start[j] + problem.duration[scope.mode[j]]) for j in tasks), default=0)


def storage(c: Columns) -> Iterator[Row]:
    """R8. What is held fits: Σ_k size[k] held[k,t] <= storage[site], at ticks where a transfer to the site
    can start.

    Elsewhere the room taken cannot grow. Fixed transfers of data that no mode reads take room until they end.
    """
    problem = c.problem
    for site in np.flatnonzero(problem.site_storage < NEVER).tolist():
        here = np.flatnonzero(problem.replica_site[c.held_replica] == site)
        sizes = problem.replica_size[c.held_replica[here]]
        for tick in growth_ticks(c.scope, site, c.y_replica, c.y_start).tolist():
            now = c.held_tick[here] == tick
            room = math.floor(int(problem.site_storage[site]) - _unlisted(c, site, tick))
            if sizes[now].sum() > room:
                yield Row((site, tick), c.held_at + here[now], sizes[now], None, room)


def _unlisted(c: Columns, site: int, tick: int) -> Fraction:
    """Room that fixed transfers outside the list of replicas take at ``tick``, in the site's unit."""
    here = [t for t in c.scope.transfers if t.site == site and (t.dataset, site) not in c.problem.replica_of]
    taken = [t for t in here if t.start <= tick < t.end]
    if not taken:
        return Fraction(0)
    instance = c.problem.instance
    capacity_gb = Fraction(instance.sites[site].storage_gb or 0)
    unit = Fraction(int(c.problem.site_storage[site])) / capacity_gb if capacity_gb else Fraction(1)
    return sum((Fraction(instance.datasets[t.dataset].size_gb) for t in taken), Fraction(0)) * unit


# makespan -----------------------------------------------------------------------------------------


def last_end(c: Columns) -> Iterator[Row]:
    """after[t] = 1 if some run ends after tick t, so the makespan is first_end + Σ_t after[t]:
    Σ_{m, end > t} x[j,m,s] <= after[t]."""
    if not len(c.after_tick):
        return
    for task in c.free_tasks:
        if any(c.scope.free[j] and not c.scope.rejectable[j] for j in c.problem.successors[task]):
            continue  # a successor ends later
        columns = c.of_task(task)
        ends = c.x_end[columns]
        order = np.argsort(-ends, kind="stable")
        columns, ends = columns[order], ends[order]
        for end in np.unique(ends[ends > c.first_end]).tolist():
            count = int(np.searchsorted(-ends, -end, side="right"))
            after = np.array([c.after_at + end - 1 - c.first_end])
            yield _row((task, end - 1), (columns[:count], 1), (after, -1), upper=0)


def one_last_end(c: Columns) -> Iterator[Row]:
    """Nothing ends after t + 1 unless something ends after t: after[t + 1] <= after[t]."""
    for at in range(len(c.after_tick) - 1):
        column = np.array([c.after_at + at])
        yield _row((int(c.after_tick[at]),), (column + 1, 1), (column, -1), upper=0)


def work(c: Columns) -> Iterator[Row]:
    """Redundant: the work on a node fits before the makespan,
    Σ devices[m] p[m] x[j,m,t] <= most devices * (first_end + Σ_t after[t])."""
    if not len(c.after_tick):
        return
    after = c.after_at + np.arange(len(c.after_tick))
    for resource, holds in c.holds.items():
        most = int(c.free[resource][1].max())
        if resource < c.problem.num_nodes and len(holds.columns) and most > 0:
            area = holds.amount * (holds.end - holds.start)
            columns = np.concatenate([holds.columns, after])
            coefficients = np.concatenate([area, np.full(len(after), -most)])
            yield Row((resource,), columns, coefficients, None, most * c.first_end)


# limits and earlier levels ------------------------------------------------------------------------


def form_rows(c: Columns, forms: list[tuple[Form, int]]) -> Iterator[Row]:
    """R10, and earlier levels: ``form`` of the plan <= its bound, each row divided by the common factor."""
    for at, (form, bound) in enumerate(forms):
        coefficients, constant = shifted_form(c, form)
        columns = np.flatnonzero(coefficients)
        factor = int(np.gcd.reduce(coefficients[columns])) if len(columns) else 1
        yield Row((at,), columns, coefficients[columns] // factor, None, (bound - constant) // factor)


FAMILIES: dict[str, Callable[[Columns], Iterator[Row]]] = {
    family.__name__: family
    for family in (
        one_start,
        rejection,
        precedence,
        capacity,
        one_transfer,
        transfer_is_read,
        staging,
        purchase,
        purchase_is_used,
        held_under_way,
        held_while_read,
        held_without_gap,
        held_for_fixed,
        storage,
        last_end,
        one_last_end,
        work,
    )
}
"""Every family, in the order of the rows; the limits follow."""
