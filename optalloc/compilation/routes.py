"""Routes of a dataset to a site: ticks, cost and channels of each, and which of them are worth listing."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import compress
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from optalloc.compilation.exact import Column, ceil_column, exact_for, half_up_column, integers, largest
from optalloc.compilation.network import Chain, Network
from optalloc.compilation.resources import channel_resources
from optalloc.compilation.units import LARGER_MONEY, LONGER_TICKS, Units, bounded
from optalloc.errors import Fault, InputError
from optalloc.instance import Dataset, Instance
from optalloc.problem import Bools, Ints, Problem

__all__ = [
    "ChainSet", "Route", "RouteBook", "RouteFacts", "book_of", "remember_book", "resolve_route", "route_facts",
]  # fmt: skip


class Route(NamedTuple):
    """One way to bring one dataset to a site.

    Attributes
    ----------
    ticks
        Latency plus size over the bottleneck, rounded up; at least 1.
    cost
        Egress in money units, rounded once for the whole route.
    """

    chain: Chain
    ticks: int
    cost: int


class ChainSet:
    """Chains to one site, as columns.

    Parameters
    ----------
    chains
        From each home in turn, fewest links first.

    Attributes
    ----------
    better, worse
        Pairs of chains such that the limited links of ``better[i]`` are among those of ``worse[i]``.
    wins_ties
        Whether ``better[i]`` goes first if it is equal in time and money.
    """

    def __init__(self, chains: Sequence[Chain]):
        self.chains = chains
        self.latency = integers([chain.latency for chain in chains])
        self.bandwidth = integers([chain.bandwidth for chain in chains])
        self.egress = integers([chain.egress for chain in chains])
        words = _words([chain.channels for chain in chains])
        contained = ((words[:, None] & ~words[None, :]) == 0).all(axis=2)
        np.fill_diagonal(contained, False)
        self.better, self.worse = np.nonzero(contained)
        self.wins_ties = ~contained[self.worse, self.better] | (self.better < self.worse)

    def __len__(self) -> int:
        return len(self.chains)

    def kept(self, ticks: Ints, cost: Ints) -> Bools:
        """Routes that no other one replaces, given the ticks and costs of a dataset.

        A route goes if another is no worse in time and money and its limited links are a subset; of exact ties the
        first stays.
        """
        kept = np.ones(len(self), dtype=bool)
        if len(self.worse):
            sooner, dearer = ticks[self.worse] - ticks[self.better], cost[self.worse] - cost[self.better]
            replaced = (sooner >= 0) & (dearer >= 0) & (self.wins_ties | (sooner > 0) | (dearer > 0))
            kept[self.worse[replaced]] = False
        return kept

    def ever_kept(self) -> list[Chain]:
        """The chains without those that an earlier one replaces for every dataset."""
        always = (self.latency[self.better] <= self.latency[self.worse]) & (self.better < self.worse)
        always &= self.bandwidth[self.better] >= self.bandwidth[self.worse]
        always &= self.egress[self.better] <= self.egress[self.worse]
        replaced = set(self.worse[always].tolist())
        return [chain for index, chain in enumerate(self.chains) if index not in replaced]


def _words(sets: Sequence[tuple[int, ...]]) -> NDArray[np.uint64]:
    """(n, words) the sets as bits."""
    row = np.repeat(np.arange(len(sets)), [len(one) for one in sets])
    tokens, bit = np.unique(
        np.array([token for one in sets for token in one], dtype=np.int64), return_inverse=True
    )
    words = np.zeros((len(sets), len(tokens) // 64 + 1), dtype=np.uint64)
    np.bitwise_or.at(words, (row, bit // 64), np.uint64(1) << (bit % 64).astype(np.uint64))
    return words


class RouteBook:
    """Routes of an instance, each (dataset, site) computed once and only when asked for.

    Parameters
    ----------
    instance
        Gives datasets and links.
    network
        Gives chains.
    units
        Rounds.
    """

    def __init__(self, instance: Instance, network: Network, units: Units):
        self.network = network
        self.units = units
        self.datasets: tuple[Dataset, ...] = instance.datasets
        self.dataset_index = {dataset.id: index for index, dataset in enumerate(self.datasets)}
        self.homes = [tuple(network.site_index[site] for site in dataset.sites) for dataset in self.datasets]
        self._sizes = [Fraction(dataset.size_gb) for dataset in self.datasets]
        self._pairs: dict[tuple[int, int], Sequence[Chain]] = {}
        self._sets: dict[tuple[tuple[int, ...], int], ChainSet] = {}

    def route(self, dataset: int, chain: Chain) -> Route:
        """The route that brings ``dataset`` over ``chain``."""
        ticks, cost = self._columns(dataset, ChainSet([chain]))
        return Route(chain, int(ticks[0]), int(cost[0]))

    def routes(self, dataset: int, site: int) -> tuple[list[Route], list[Route]]:
        """Kept and dropped routes from every home to ``site``, which is none of the homes.

        Where the paths of a pair are capped there are too many to list: the second list is then empty.
        """
        chains = self._set(self.homes[dataset], site)
        if not len(chains):
            return [], []
        ticks, cost = self._columns(dataset, chains)
        kept = chains.kept(ticks, cost).tolist()
        routes = list(map(Route, chains.chains, ticks.tolist(), cost.tolist()))
        if any((home, site) in self.network.capped for home in self.homes[dataset]):
            return list(compress(routes, kept)), []
        return list(compress(routes, kept)), [
            route for route, keep in zip(routes, kept, strict=True) if not keep
        ]

    def _set(self, homes: tuple[int, ...], site: int) -> ChainSet:
        if (homes, site) not in self._sets:
            self._sets[homes, site] = ChainSet(
                [chain for home in homes for chain in self._chains(home, site)]
            )
        return self._sets[homes, site]

    def _chains(self, home: int, site: int) -> Sequence[Chain]:
        """Chains between two sites; of too many, only those that some dataset may want."""
        if (home, site) not in self._pairs:
            chains = self.network.chains(home, site)
            capped = (home, site) in self.network.capped
            self._pairs[home, site] = ChainSet(chains).ever_kept() if capped else chains
        return self._pairs[home, site]

    def _columns(self, dataset: int, chains: ChainSet) -> tuple[Ints, Ints]:
        """(ticks, cost) of a dataset over each chain."""
        ticks = self._ticks(self._sizes[dataset], chains)
        cost = self._cost(self._sizes[dataset], chains)
        path = f"datasets[{dataset}]"
        bounded(largest(ticks), path, "the longest transfer in ticks", LONGER_TICKS)
        bounded(largest(cost), path, "the largest egress in money units", LARGER_MONEY)
        return ticks.astype(np.int64), cost.astype(np.int64)

    def _ticks(self, size: Fraction, chains: ChainSet) -> Column:
        """ceil((latency + 8 * size / bandwidth) / tick), over a common denominator; at least 1."""
        tick, network = self.units.tick, self.network
        waiting = tick.denominator * size.denominator
        carrying = 8 * size.numerator * network.bandwidth_scale * network.latency_scale * tick.denominator
        scale = network.latency_scale * size.denominator * tick.numerator
        fastest = largest(chains.bandwidth)
        bounds = [largest(chains.latency) * fastest * waiting + carrying + waiting, fastest * scale]
        latency, bandwidth = exact_for(bounds, chains.latency, chains.bandwidth)
        return np.maximum(1, ceil_column(latency * bandwidth * waiting + carrying, bandwidth * scale))

    def _cost(self, size: Fraction, chains: ChainSet) -> Column:
        """size * egress in money units, half up."""
        factor = size.numerator * self.units.money.denominator
        scale = size.denominator * self.units.money.numerator * self.network.egress_scale
        bounds = [2 * largest(chains.egress) * factor + scale, 2 * scale, factor]
        (egress,) = exact_for(bounds, chains.egress)
        return half_up_column(egress * factor, scale)


class RouteFacts(NamedTuple):
    """What a chain of links does for a dataset.

    Attributes
    ----------
    ticks, cost
        Ticks; money units.
    channels
        Resources of kind CHANNEL, one unit each.
    """

    ticks: int
    cost: int
    channels: tuple[int, ...]


_books: "WeakKeyDictionary[Problem, RouteBook]" = WeakKeyDictionary()


def remember_book(problem: Problem, book: RouteBook) -> None:
    """Let `route_facts` use the book with which a problem was compiled."""
    _books[problem] = book


def book_of(source: Problem | Instance) -> RouteBook:
    """A RouteBook on the resource numbers that `compile` uses."""
    if isinstance(source, Problem):
        if source not in _books:
            _books[source] = book_of(source.instance)
        return _books[source]
    units = Units(Fraction(source.tick_seconds), Fraction(source.money_unit_usd))
    return RouteBook(source, Network(source, channel_resources(source)), units)


def route_facts(source: Problem | Instance, dataset: str | int, links: Sequence[str | int]) -> RouteFacts:
    """Ticks, cost and channels of any simple chain of links from a home of ``dataset``.

    Parameters
    ----------
    source
        The problem; an instance works too but its network is built anew at each call.
    dataset
        Id or index.
    links
        Ids (``<id>:back`` for the twin of a both-ways link) or indices, in travel order.

    Raises
    ------
    InputError
        The chain is empty, broken or passes a site twice, names something unknown, does not start at a home of the
        dataset, or ends at one.
    """
    return resolve_route(book_of(source), dataset, links)[1]


def resolve_route(
    book: RouteBook, dataset: str | int, links: Sequence[str | int]
) -> tuple[Chain, RouteFacts, int]:
    """The chain, its facts and the site where it ends."""
    index = dataset if isinstance(dataset, int) else book.dataset_index.get(dataset, -1)
    if not 0 <= index < len(book.datasets):
        raise InputError(Fault("dataset", f"there is no dataset {dataset!r}"))
    indices = tuple(_link(book.network, link) for link in links)
    site = _end(book, index, indices)
    route = book.route(index, book.network.chain(indices))
    return route.chain, RouteFacts(route.ticks, route.cost, route.chain.channels), site


def _link(network: Network, link: str | int) -> int:
    index = link if isinstance(link, int) else network.link_index.get(link, -1)
    if not 0 <= index < len(network.links):
        raise InputError(Fault("route", f"there is no link {link!r}"))
    return index


def _end(book: RouteBook, dataset: int, links: tuple[int, ...]) -> int:
    """The site at which a simple chain from a home ends."""
    network, homes = book.network, book.homes[dataset]
    names = ", ".join(network.links[link].id for link in links)
    if not links:
        raise InputError(Fault("route", "a route has at least one link"))
    passed = [network.ends(links[0])[0]]
    if passed[0] not in homes:
        raise InputError(Fault("route", f"{names} does not start at a home of {book.datasets[dataset].id}"))
    for link in links:
        start, end = network.ends(link)
        if start != passed[-1]:
            raise InputError(
                Fault("route", f"{names} is not one chain: {network.links[link].id} starts elsewhere")
            )
        if end in passed:
            raise InputError(Fault("route", f"{names} passes site {network.site_ids[end]} twice"))
        passed.append(end)
    if passed[-1] in homes:
        raise InputError(Fault("route", f"{names} ends at a home of {book.datasets[dataset].id}"))
    return passed[-1]
