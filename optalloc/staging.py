"""The part of the placement kernel that brings missing replicas before a run."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING

from optalloc.problem import NEVER, Transfer
from optalloc.profile import Profile, fit_all
from optalloc.reservations import ModeFacts, Placement

if TYPE_CHECKING:
    from optalloc.placement import Timetable

__all__ = ["MAX_COMBINATIONS", "Routes", "staged_start", "staging_fits"]

MAX_COMBINATIONS = 64
"""Route combinations tried for one mode; beyond it each replica keeps its first to arrive and its cheapest."""

Routes = Mapping[int, Sequence[int]] | None
"""Replica -> routes that a new transfer may take; None or no entry: all routes of the Problem."""


def staged_start(
    table: "Timetable", mode: int, lower: int, latest: int, not_before: int, routes: Routes
) -> Placement | None:
    """The earliest placement of a mode that reads staged replicas; see `Timetable.earliest`.

    Parameters
    ----------
    lower, latest
        First and last start that everything but data and capacity allows.
    """
    facts = table.facts(mode)
    missing = [replica for replica in facts.needs if replica not in table.held]
    for replica in facts.needs:
        if replica in table.held:
            lower = max(lower, table.held[replica].transfer.end)
    if not missing:
        return _without_transfers(table, mode, lower, latest)
    choices = [_first_transfers(table, replica, not_before, latest, routes) for replica in missing]
    if not all(choices):
        return None
    finite = table.problem.replica_site.item(missing[0]) in table.storage
    if finite or (len(missing) > 1 and any(t.channels for choice in choices for t in choice)):
        return _best_combination(table, mode, lower, latest, choices)
    return _independent(table, mode, lower, latest, choices)


def _without_transfers(table: "Timetable", mode: int, lower: int, latest: int) -> Placement | None:
    """All replicas are there: the run has to fit, and storage from their last readers to its end."""
    facts = table.facts(mode)
    start = table.fit(facts.uses, lower, facts.duration, latest)
    # A later start only lengthens the retention, so a shortage here closes the mode.
    if start >= NEVER or _shortage(table, facts, start + facts.duration, ()) >= 0:
        return None
    return Placement(facts.task, mode, start, start + facts.duration)


def _first_transfers(
    table: "Timetable", replica: int, not_before: int, latest: int, routes: Routes
) -> list[Transfer]:
    """The earliest transfer on each allowed route, as far as channels go, if it arrives by ``latest``."""
    problem = table.problem
    first = max(not_before, problem.replica_available.item(replica))
    allowed = (
        problem.routes_of(replica) if routes is None else routes.get(replica, problem.routes_of(replica))
    )
    found = []
    for route in allowed:
        start = _channel_fit(
            table.profiles, problem.route_channels[route], first, problem.route_ticks.item(route)
        )
        if start + problem.route_ticks.item(route) <= latest:
            found.append(problem.transfer(replica, route, start))
    return found


def _channel_fit(
    profiles: Mapping[int, Profile] | Sequence[Profile], channels: Iterable[int], start: int, ticks: int
) -> int:
    return fit_all([(profiles[channel], 1) for channel in channels], start, ticks)


def _independent(
    table: "Timetable", mode: int, lower: int, latest: int, choices: Sequence[Sequence[Transfer]]
) -> Placement | None:
    """Nothing that the transfers hold can get in the way of each other: exact."""
    facts = table.facts(mode)
    arrival = max(min(t.end for t in choice) for choice in choices)
    start = table.fit(facts.uses, max(lower, arrival), facts.duration, latest)
    if start >= NEVER:
        return None
    # Of the routes that do not delay the run the cheapest; among equals the first to arrive.
    chosen = (min((t for t in choice if t.end <= start), key=_preference) for choice in choices)
    return Placement(facts.task, mode, start, start + facts.duration, tuple(chosen))


def _preference(transfer: Transfer) -> tuple[int, int, int]:
    return transfer.cost, transfer.end, transfer.route


def _best_combination(
    table: "Timetable", mode: int, lower: int, latest: int, choices: Sequence[Sequence[Transfer]]
) -> Placement | None:
    """The earliest start over all combinations of routes, then the cheapest, then the first to arrive."""
    best: Placement | None = None
    for combination in product(*_thinned(choices)):
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


def _thinned(choices: Sequence[Sequence[Transfer]]) -> Sequence[Sequence[Transfer]]:
    combinations = 1
    for choice in choices:
        combinations *= len(choice)
    if combinations <= MAX_COMBINATIONS:
        return choices
    return [sorted({min(c, key=_arrival), min(c, key=_preference)}, key=_preference) for c in choices]


def _arrival(transfer: Transfer) -> tuple[int, int, int]:
    return transfer.end, transfer.cost, transfer.route


def _on_these_routes(
    table: "Timetable", mode: int, lower: int, latest: int, transfers: Sequence[Transfer]
) -> Placement | None:
    """The earliest start on given routes, the transfers not before the given ones.

    Where storage falls short between the start of a transfer and the end of the run, the transfer has to
    start after the shortage: any start before it, with a run no earlier than now, would hold the replica
    through it. So moving it there loses no solution when one replica is missing; with several, all that hold
    in the shortage are moved.
    """
    facts = table.facts(mode)
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
    storage = table.storage.get(table.problem.replica_site.item(facts.needs[0]))
    if storage is None:
        return -1
    holds = [(t.start, table.problem.replica_size.item(t.replica)) for t in transfers]
    for replica in facts.needs:
        held = table.held.get(replica)
        if held is not None and held.until < end:
            holds.append((held.until, table.problem.replica_size.item(replica)))
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
    facts = table.facts(placement.mode)
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
