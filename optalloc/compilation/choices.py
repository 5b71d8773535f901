"""Data choices at a site: which datasets, how each is read, and what that costs, holds and needs."""

import itertools
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from optalloc.compilation.routes import Route, RouteBook
from optalloc.compilation.units import LARGER_MONEY, LONGER_TICKS, Units, bounded
from optalloc.instance import Instance
from optalloc.problem import LOCAL, STAGED, STREAMED, Ints

__all__ = ["Access", "ChoiceTable", "Replica", "gather"]


@dataclass(frozen=True)
class Replica:
    """A dataset that some choice stages or streams to a site.

    Attributes
    ----------
    first
        Number of its first route among all routes met so far; kept routes come first, then the dropped ones.
    """

    dataset: int
    site: int
    kept: Sequence[Route]
    dropped: Sequence[Route]
    first: int


@dataclass(frozen=True)
class Access:
    """One way to read one dataset at a site.

    Attributes
    ----------
    kind
        LOCAL, STAGED or STREAMED.
    replica
        Number of the replica, -1 for local access.
    route
        Number of the route of a stream, else -1.
    ticks
        Length of the stream, else 0.
    cost
        Egress of the stream, else 0.
    """

    dataset: int
    kind: int
    replica: int = -1
    route: int = -1
    ticks: int = 0
    cost: int = 0
    channels: tuple[int, ...] = ()


@dataclass
class _Csr:
    """Short lists of integers, one after the other."""

    ptr: "array[int]" = field(default_factory=lambda: array("q", [0]))
    values: "array[int]" = field(default_factory=lambda: array("q"))

    def append(self, items: Iterable[int]) -> None:
        self.values.extend(items)
        self.ptr.append(len(self.values))


def gather(column: "array[int]", rows: Ints) -> Ints:
    """``column[rows]`` of a column that may still grow."""
    if not len(rows):
        return np.zeros(0, dtype=np.int64)
    view: NDArray[np.int64] = np.frombuffer(column, dtype=np.int64)
    return view[rows]


class ChoiceTable:
    """Every data choice met so far: a row for each (dataset, access, route) per input.

    Parameters
    ----------
    instance
        Gives datasets.
    book
        Gives routes.
    units
        Rounds.
    seat
        Dataset -> resource of its seats.
    """

    def __init__(self, instance: Instance, book: RouteBook, units: Units, seat: dict[int, int]):
        datasets = instance.datasets
        self.book = book
        self.available = [
            bounded(
                units.ticks_up(dataset.available_s),
                f"datasets[{index}].available_s",
                "the availability in ticks",
                LONGER_TICKS,
            )
            for index, dataset in enumerate(datasets)
        ]
        self.replicas: list[Replica] = []
        self.routes: list[Route] = []
        self._seat = seat
        self._streamable = [dataset.streamable for dataset in datasets]
        price = [
            bounded(
                units.money_half_up(dataset.price_usd),
                f"datasets[{index}].price_usd",
                "the price in money units",
                LARGER_MONEY,
            )
            for index, dataset in enumerate(datasets)
        ]
        self._once = [dataset.pricing == "once" and dataset.price_usd > 0 for dataset in datasets]
        self._per_use = [0 if once else price for once, price in zip(self._once, price, strict=True)]
        self._accesses: dict[tuple[int, int], list[Access]] = {}
        self._spans: dict[tuple[tuple[int, ...], int], tuple[int, int]] = {}
        self.stream_ticks = array("q")
        self.money = array("q")
        self.start = array("q")
        self.inputs = _Csr()
        self.uses = _Csr()
        self.needs = _Csr()
        self.buys = _Csr()

    def __len__(self) -> int:
        return len(self.money)

    def span(self, datasets: tuple[int, ...], site: int) -> tuple[int, int]:
        """(first row, number of rows) of all ways to read ``datasets`` (by input) at ``site``."""
        key = (datasets, site)
        if key not in self._spans:
            first = len(self)
            for accesses in itertools.product(*(self.accesses(dataset, site) for dataset in datasets)):
                self._append(accesses)
            self._spans[key] = (first, len(self) - first)
        return self._spans[key]

    def accesses(self, dataset: int, site: int) -> list[Access]:
        """Ways to read one dataset at a site: local at a home, else staged, then streamed over each route."""
        key = (dataset, site)
        if key not in self._accesses:
            is_home = site in self.book.homes[dataset]
            self._accesses[key] = [Access(dataset, LOCAL)] if is_home else self._remote(dataset, site)
        return self._accesses[key]

    def _remote(self, dataset: int, site: int) -> list[Access]:
        kept, dropped = self.book.routes(dataset, site)
        if not kept:
            return []
        if not self._streamable[dataset]:
            dropped = []
        number, first = len(self.replicas), len(self.routes)
        self.replicas.append(Replica(dataset, site, kept, dropped, first))
        self.routes += [*kept, *dropped]
        staged = Access(dataset, STAGED, number)
        if not self._streamable[dataset]:
            return [staged]
        streams = enumerate([*kept, *dropped], first)
        return [staged, *(_stream(dataset, number, index, route) for index, route in streams)]

    def _append(self, accesses: tuple[Access, ...]) -> None:
        datasets = [access.dataset for access in accesses]
        self.stream_ticks.append(max((access.ticks for access in accesses), default=0))
        self.money.append(sum(access.cost for access in accesses) + sum(self._per_use[d] for d in datasets))
        self.start.append(max((self.available[d] for d in datasets), default=0))
        self.inputs.append(itertools.chain.from_iterable((a.dataset, a.kind, a.route) for a in accesses))
        self.uses.append(itertools.chain.from_iterable(sorted(self._uses(accesses).items())))
        self.needs.append(sorted(access.replica for access in accesses if access.kind == STAGED))
        self.buys.append(sorted(dataset for dataset in datasets if self._once[dataset]))

    def _uses(self, accesses: tuple[Access, ...]) -> dict[int, int]:
        """Resource -> amount: a channel of each limited link of each stream, a seat of each limited dataset."""
        amounts: dict[int, int] = {}
        for access in accesses:
            for resource in access.channels:
                amounts[resource] = amounts.get(resource, 0) + 1
            if access.dataset in self._seat:
                amounts[self._seat[access.dataset]] = 1
        return amounts


def _stream(dataset: int, replica: int, number: int, route: Route) -> Access:
    return Access(dataset, STREAMED, replica, number, route.ticks, route.cost, route.chain.channels)
