"""The part of the placement kernel that brings missing replicas before a run."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from math import prod
from typing import TYPE_CHECKING

from optalloc.problem import NEVER, Transfer
from optalloc.profile import Profile, fit_all
from optalloc.reservations import ModeFacts, Placement

if TYPE_CHECKING:
    from optalloc.placement import Timetable

__all__ = ["MAX_COMBINATIONS", "Routes", "earliest_transfer", "staged_start", "staging_fits"]

MAX_COMBINATIONS = 64
"""Route combinations tried for one mode; beyond it only the first to arrive and the cheapest per replica."""

Routes = Mapping[int, Sequence[int]] | None
"""Replica -> routes that a new transfer may take; None or no entry: all routes of the Problem."""

Arrival = tuple[int, int, int]
"""(end, cost, route) of a transfer: the first to arrive, then the cheapest, is the least."""


def staged_start(
    table: "Timetable", mode: int, lower: int, latest: int, not_before: int, routes: Routes
) -> Placement | None:
    """The earliest placement of a mode that reads staged replicas; see `Timetable.earliest`.

    Parameters
    ----------
    lower, latest
        First and last start that everything but data and capacity allows.
    """
    facts = table.book.mode(mode)
    missing = [replica for replica in facts.needs if replica not in table.held]
    for replica in facts.needs:
        if replica in table.held:
            lower = max(lower, table.held[replica].transfer.end)
    if not missing:
        return _without_transfers(table, mode, lower, latest)
    choices = [_arrivals(table, replica, not_before, latest, routes) for replica in missing]
    if not all(choices):
        return None
    if _may_conflict(table, missing):
        return _best_combination(table, mode, lower, latest, missing, choices)
    return _independent(table, mode, lower, latest, missing, choices)


def _may_conflict(table: "Timetable", missing: Sequence[int]) -> bool:
    """Finite storage, or several transfers of which some hold channels."""
    facts = [table.book.replica(replica) for replica in missing]
    if facts[0].site in table.storage:
        return True
    return len(facts) > 1 and any(route[3] for replica in facts for route in replica.routes)


def _without_transfers(table: "Timetable", mode: int, lower: int, latest: int) -> Placement | None:
    """All replicas are there: the run has to fit, and storage from their last readers to its end."""
    facts = table.book.mode(mode)
    start = table.fit(facts.uses, lower, facts.duration, latest)
    # A later start only lengthens the retention, so a shortage here closes the mode.
    if start >= NEVER or _shortage(table, facts, start + facts.duration, ()) >= 0:
        return None
    return Placement(facts.task, mode, start, start + facts.duration)


def _arrivals(
    table: "Timetable", replica: int, not_before: int, latest: int, routes: Routes
) -> list[Arrival]:
    """The earliest arrival on each allowed route, as far as channels go; only those by ``latest``."""
    facts = table.book.replica(replica)
    first = max(not_before, facts.available)
    allowed = None if routes is None else routes.get(replica)
    found = []
    for route, ticks, cost, channels in facts.routes:
        if allowed is not None and route not in allowed:
            continue
        # The hot path of a search: transfers without contention need no look at any profile.
        start = _channel_fit(table.profiles, channels, first, ticks) if channels else first
        if start + ticks <= latest:
            found.append((start + ticks, cost, route))
    return found


def _transfer(table: "Timetable", replica: int, arrival: Arrival) -> Transfer:
    end, _, route = arrival
    return table.problem.transfer(replica, route, end - table.problem.route_ticks.item(route))


def _channel_fit(
    profiles: Mapping[int, Profile] | Sequence[Profile], channels: Iterable[int], start: int, ticks: int
) -> int:
    return fit_all([(profiles[channel], 1) for channel in channels], start, ticks)


def _independent(
    table: "Timetable",
    mode: int,
    lower: int,
    latest: int,
    missing: Sequence[int],
    choices: Sequence[Sequence[Arrival]],
) -> Placement | None:
    """Nothing that the transfers hold can get in the way of each other: exact."""
    facts = table.book.mode(mode)
    for choice in choices:
        lower = max(lower, min(choice)[0])
    start = table.fit(facts.uses, lower, facts.duration, latest)
    if start >= NEVER:
        return None
    # Of the routes that do not delay the run the cheapest; among equals the first to arrive.
    chosen = [min((a for a in choice if a[0] <= start), key=_by_cost) for choice in choices]
    transfers = [_transfer(table, replica, arrival) for replica, arrival in zip(missing, chosen, strict=True)]
    return Placement(facts.task, mode, start, start + facts.duration, tuple(transfers))


def _by_cost(arrival: Arrival) -> Arrival:
    end, cost, route = arrival
    return cost, end, route


def _best_combination(
    table: "Timetable",
    mode: int,
    lower: int,
    latest: int,
    missing: Sequence[int],
    choices: Sequence[Sequence[Arrival]],
) -> Placement | None:
    """The earliest start over all combinations of routes, then the cheapest, then the first to arrive."""
    best: Placement | None = None
    options = [
        [_transfer(table, k, a) for a in choice] for k, choice in zip(missing, _thinned(choices), strict=True)
    ]
    for combination in product(*options):
        found = _on_these_routes(table, mode, lower, best.start if best else latest, combination)
        if found is not None and (best is None or _rank(found) < _rank(best)):
            best = found
    return best


def _rank(placement: Placement) -> tuple[int, int, int, tuple[int, ...]]:
    added = placement.transfers
    return (
        placement.start,
        sum(t.cost for t in added),
        sum(t.end for t in added),
        tuple(t.route for t in added),
    )


def _thinned(choices: Sequence[Sequence[Arrival]]) -> Sequence[Sequence[Arrival]]:
    if prod(map(len, choices)) <= MAX_COMBINATIONS:
        return choices
    return [sorted({min(choice), min(choice, key=_by_cost)}) for choice in choices]


def _on_these_routes(
    table: "Timetable", mode: int, lower: int, latest: int, transfers: Sequence[Transfer]
) -> Placement | None:
    """The earliest start on given routes, the transfers not before the given ones.

    Where storage falls short between the start of a transfer and the end of the run, the transfer has to
    start after the shortage: any start before it, with a run no earlier than now, would hold the replica
    through it. So moving it there loses no solution when one replica is missing; with several, all that hold
    in the shortage are moved.
    """
    facts = table.book.mode(mode)
    firsts = [t.start for t in transfers]
    while True:
        placed = _one_after_another(table, transfers, firsts)
        if placed is None:
            return None
        start = table.fit(facts.uses, max(lower, *(t.end for t in placed)), facts.duration, latest)
        if start >= NEVER:
            return None
        blocked_until = _shortage(table, facts, start + facts.duration, placed)
        if blocked_until < 0:
            return Placement(facts.task, mode, start, start + facts.duration, tuple(placed))
        if blocked_until >= NEVER or all(t.start >= blocked_until for t in placed):
            return None
        firsts = [max(t.start, blocked_until) for t in placed]


def _one_after_another(
    table: "Timetable", transfers: Sequence[Transfer], firsts: Sequence[int]
) -> list[Transfer] | None:
    """The transfers as early as possible from ``firsts`` on; each spares the channels of those before it."""
    profiles = table.profiles if len(transfers) == 1 else list(table.profiles)
    placed = []
    for transfer, first in zip(transfers, firsts, strict=True):
        start = _channel_fit(profiles, transfer.channels, first, transfer.ticks)
        if start >= NEVER:
            return None
        placed.append(table.problem.transfer(transfer.replica, transfer.route, start))
        if len(placed) < len(transfers):
            for channel in transfer.channels:
                profiles[channel] = profiles[channel].clone()
                profiles[channel].add(-1, start, start + transfer.ticks)
    return placed


def _shortage(table: "Timetable", facts: ModeFacts, end: int, transfers: Sequence[Transfer]) -> int:
    """End of the last stretch in which storage is too small for a run until ``end``; -1: there is none.

    The run keeps the replicas that are there from the end of their retention on, the new ones from the start
    of their transfers on. All replicas of a mode are at one site.
    """
    storage = table.storage.get(table.book.replica(facts.needs[0]).site)
    if storage is None:
        return -1
    holds = [(t.start, table.book.replica(t.replica).size) for t in transfers]
    for replica in facts.needs:
        held = table.held.get(replica)
        if held is not None and held.until < end:
            holds.append((held.until, table.book.replica(replica).size))
    holds.sort()
    wanted = sum(size for _, size in holds)
    until = end
    for first, size in reversed(holds):
        blocked_until = storage.last_shortage(wanted, first, until)
        if blocked_until >= 0:
            return blocked_until
        wanted, until = wanted - size, first
    return -1


def staging_fits(table: "Timetable", placement: Placement) -> bool:
    """Whether the transfers of ``placement`` and the storage it needs are still as it assumes."""
    facts = table.book.mode(placement.mode)
    brought = {t.replica for t in placement.transfers}
    for replica in facts.needs:
        held = table.held.get(replica)
        if (held is None) != (replica in brought):
            return False
        if held is not None and held.transfer.end > placement.start:
            return False
    firsts = [t.start for t in placement.transfers]
    placed = _one_after_another(table, placement.transfers, firsts) if firsts else []
    if placed is None or any(t.start != first for t, first in zip(placed, firsts, strict=True)):
        return False
    return _shortage(table, facts, placement.end, placement.transfers) < 0


def earliest_transfer(table: "Timetable", replica: int, not_before: int, routes: Routes) -> Transfer | None:
    """The first transfer to arrive (then the cheapest) that has room in storage while it lasts, or None."""
    facts = table.book.replica(replica)
    storage = table.storage.get(facts.site)
    found = []
    for arrival in _arrivals(table, replica, not_before, NEVER, routes):
        transfer = _transfer(table, replica, arrival)
        uses = [(table.profiles[channel], 1) for channel in transfer.channels]
        if storage is not None:
            uses.append((storage, facts.size))
        start = fit_all(uses, transfer.start, transfer.ticks)
        if start < NEVER:
            found.append((start + transfer.ticks, transfer.cost, transfer.route))
    return _transfer(table, replica, min(found)) if found else None
