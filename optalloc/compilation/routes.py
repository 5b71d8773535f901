"""Routes of a dataset to a site: ticks, cost and channels of each, and which of them are worth listing."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple
from weakref import WeakKeyDictionary

from optalloc.compilation.network import Chain, Network
from optalloc.compilation.resources import channel_resources
from optalloc.compilation.units import Units, bounded
from optalloc.errors import Fault, InputError
from optalloc.instance import Dataset, Instance
from optalloc.problem import Problem

__all__ = [
    "Route", "RouteBook", "RouteFacts", "book_of", "kept_routes", "remember_book", "resolve_route", "route_facts",
]  # fmt: skip


@dataclass(frozen=True)
class Route:
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

    def route(self, dataset: int, chain: Chain) -> Route:
        """The route that brings ``dataset`` over ``chain``."""
        size = self._sizes[dataset]
        ticks = self.units.duration(chain.latency + 8 * size / chain.bandwidth)
        cost = self.units.money_half_up(size * chain.egress)
        path = f"datasets[{dataset}]"
        bounded(ticks, path, "the transfer in ticks")
        return Route(chain, ticks, bounded(cost, path, "the egress in money units"))

    def routes(self, dataset: int, site: int) -> tuple[list[Route], list[Route]]:
        """Kept and dropped routes from every home to ``site``, which is none of the homes.

        Where the paths of a pair are capped there are too many to list: the second list is then empty.
        """
        homes = self.homes[dataset]
        found = [self.route(dataset, chain) for home in homes for chain in self.network.chains(home, site)]
        kept = kept_routes(found)
        if any((home, site) in self.network.capped for home in homes):
            return [found[i] for i in kept], []
        chosen = set(kept)
        return [found[i] for i in kept], [route for i, route in enumerate(found) if i not in chosen]


def kept_routes(routes: Sequence[Route]) -> list[int]:
    """Indices of the routes that no other one replaces; of exact ties the first.

    A route goes if another is no worse in time and money and its limited links are a subset.
    """
    order = sorted(
        range(len(routes)), key=lambda i: (routes[i].ticks, routes[i].cost, len(routes[i].chain.channels), i)
    )
    kept: list[int] = []
    for i in order:
        route = routes[i]
        if not any(
            routes[other].cost <= route.cost and not routes[other].chain.mask & ~route.chain.mask
            for other in kept
        ):
            kept.append(i)
    return sorted(kept)


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
