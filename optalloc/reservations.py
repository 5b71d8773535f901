"""What the placement kernel keeps and hands out: modes as plain tuples, placements, held replicas."""

from typing import NamedTuple

import numpy as np

from optalloc.problem import Form, Problem, Transfer

__all__ = ["FactBook", "Held", "ModeFacts", "Placement", "ReplicaFacts", "own_increase"]


class ModeFacts(NamedTuple):
    """One mode as plain tuples: reading scalars out of arrays is what costs most in a search.

    Attributes
    ----------
    earliest
        First tick allowed by the release and the availability of the data.
    latest
        Last start that meets the deadline.
    task, duration, uses, needs, buys
        As in the Problem.
    """

    task: int
    duration: int
    earliest: int
    latest: int
    uses: tuple[tuple[int, int], ...]
    needs: tuple[int, ...]
    buys: tuple[int, ...]


class ReplicaFacts(NamedTuple):
    """One replica as plain tuples; ``routes`` lists (route, ticks, cost, channels)."""

    site: int
    size: int
    available: int
    routes: tuple[tuple[int, int, int, tuple[int, ...]], ...]


class Placement(NamedTuple):
    """One way to place a task: what `Timetable.earliest` finds and `Timetable.commit` reserves.

    Attributes
    ----------
    task, mode
        Indices.
    start, end
        Ticks, half open.
    transfers
        Transfers that have to be added for it.
    """

    task: int
    mode: int
    start: int
    end: int
    transfers: tuple[Transfer, ...] = ()


class Held:
    """A replica that a transfer brings, and who reads it.

    Attributes
    ----------
    transfer
        What brings it.
    readers
        Task -> end of its run.
    until
        It takes storage in [transfer.start, until): to the end of the transfer and of the last reader.
    owner
        The timetable (its token) that may change this object.
    """

    __slots__ = ("owner", "readers", "transfer", "until")

    def __init__(self, transfer: Transfer, readers: dict[int, int], until: int, owner: object):
        self.transfer = transfer
        self.readers = readers
        self.until = until
        self.owner = owner

    def clone(self, owner: object) -> "Held":
        """A copy that ``owner`` may change."""
        return Held(self.transfer, self.readers.copy(), self.until, owner)


class FactBook:
    """Modes and replicas as plain tuples, read when first asked for.

    Scalars are read through memory views: three times as fast as out of arrays.
    """

    def __init__(self, problem: Problem):
        self._modes: dict[int, ModeFacts] = {}
        self._replicas: dict[int, ReplicaFacts] = {}
        self._channels = problem.route_channels
        self._view = {name: np.ascontiguousarray(getattr(problem, name)).data for name in _VIEWED}

    def mode(self, mode: int) -> ModeFacts:
        """The facts of one mode."""
        known = self._modes.get(mode)
        if known is None:
            known = self._modes[mode] = self._read_mode(mode)
        return known

    def _read_mode(self, mode: int) -> ModeFacts:
        view = self._view
        task, duration = view["mode_task"][mode], view["duration"][mode]
        first, last = view["use_ptr"][mode], view["use_ptr"][mode + 1]
        resource, amount = view["use_resource"], view["use_amount"]
        return ModeFacts(
            task,
            duration,
            max(view["release"][task], view["available"][mode]),
            view["deadline"][task] - duration,
            tuple([(resource[i], amount[i]) for i in range(first, last)]),
            self._part("need_ptr", "need_replica", mode),
            self._part("buy_ptr", "buy_purchase", mode),
        )

    def _part(self, pointer: str, values: str, owner: int) -> tuple[int, ...]:
        first, last = self._view[pointer][owner], self._view[pointer][owner + 1]
        return tuple(self._view[values][first:last].tolist()) if last > first else ()

    def replica(self, replica: int) -> "ReplicaFacts":
        """The facts of one replica."""
        known = self._replicas.get(replica)
        if known is None:
            known = self._replicas[replica] = self._read_replica(replica)
        return known

    def _read_replica(self, replica: int) -> "ReplicaFacts":
        view = self._view
        routes = range(view["route_ptr"][replica], view["route_ptr"][replica + 1])
        return ReplicaFacts(
            view["replica_site"][replica],
            view["replica_size"][replica],
            view["replica_available"][replica],
            tuple([(q, view["route_ticks"][q], view["route_cost"][q], self._channels[q]) for q in routes]),
        )


_VIEWED = (
    "mode_task", "duration", "release", "available", "deadline", "use_ptr", "use_resource", "use_amount",
    "need_ptr", "need_replica", "buy_ptr", "buy_purchase",
    "replica_site", "replica_size", "replica_available", "route_ptr", "route_ticks", "route_cost",
)  # fmt: skip


def own_increase(problem: Problem, form: Form, task: int, mode: int, end: int) -> int:
    """`own_cost` of one mode that ends at ``end``, as a plain int: the same sum, without arrays."""
    value = form.completion.item(task) * end + form.placed.item(task)
    late = end - problem.due.item(task)
    if late > 0:
        value += form.tardiness.item(task) * late + form.late.item(task)
    value += form.loss.item(task) * (1000 - problem.utility.item(mode))
    return int(value + form.cost * problem.money.item(mode))
