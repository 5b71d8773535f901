"""Sites and links, and the simple chains of links between two sites."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, Final, NamedTuple

import networkx as nx

from optalloc.compilation.units import common_multiplier
from optalloc.instance import Instance, Link

__all__ = ["MAX_CHAINS", "MAX_STEPS", "Chain", "Network"]

MAX_CHAINS: Final = 100
"""Simple paths taken per (home site, site): those with the fewest links."""
MAX_STEPS: Final = 20_000
"""Links looked at per (home site, site) before the search for paths stops."""


class Chain(NamedTuple):
    """Links one after the other, with what does not depend on the dataset; numbers in the scales of the Network.

    Attributes
    ----------
    links
        Link indices in travel order.
    latency
        Sum over the links.
    bandwidth
        Least of the links.
    egress
        Sum over the links.
    channels
        The resources of its links with limited channels, sorted.
    """

    links: tuple[int, ...]
    latency: int
    bandwidth: int
    egress: int
    channels: tuple[int, ...]


class Network:
    """Directed links between sites.

    Parameters
    ----------
    instance
        ``both_ways`` links count twice.
    channel_resource
        Link id -> resource of its channels, for links with limited channels.

    Attributes
    ----------
    latency_scale, bandwidth_scale, egress_scale
        A chain's numbers are whole multiples of 1 s, 1 Gbit/s and 1 $/GB divided by these.
    capped
        (home, site) pairs with more chains than were taken.
    """

    def __init__(self, instance: Instance, channel_resource: dict[str, int]):
        self.links: tuple[Link, ...] = instance.all_links
        self.link_index = {link.id: index for index, link in enumerate(self.links)}
        self.site_ids = tuple(site.id for site in instance.sites)
        self.site_index = {site: index for index, site in enumerate(self.site_ids)}
        self.capped: set[tuple[int, int]] = set()
        self.latency_scale, self._latency = _scaled(link.latency_s for link in self.links)
        self.bandwidth_scale, self._bandwidth = _scaled(link.bandwidth_gbps for link in self.links)
        self.egress_scale, self._egress = _scaled(link.egress_usd_per_gb for link in self.links)
        self._channel = [channel_resource.get(link.id) for link in self.links]
        self.graph = self._graph()
        self._outgoing = [
            [(link, target) for _, target, link in self.graph.out_edges(site, keys=True)]
            for site in range(len(self.site_ids))
        ]
        self._direct: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for site, steps in enumerate(self._outgoing):
            for link, target in steps:
                self._direct.setdefault((site, target), []).append((link, target))
        self._hops: dict[int, dict[int, int]] = {}
        self._chains: dict[tuple[int, int], tuple[Chain, ...]] = {}

    def _graph(self) -> "nx.MultiDiGraph[int]":
        graph: nx.MultiDiGraph[int] = nx.MultiDiGraph()
        graph.add_nodes_from(range(len(self.site_ids)))
        for index, link in enumerate(self.links):
            if link.from_ != link.to:
                graph.add_edge(self.site_index[link.from_], self.site_index[link.to], key=index)
        return graph

    def ends(self, link: int) -> tuple[int, int]:
        """(from, to) sites of a link."""
        return self.site_index[self.links[link].from_], self.site_index[self.links[link].to]

    def chain(self, links: tuple[int, ...]) -> Chain:
        """The facts of links in travel order."""
        return Chain(
            links=links,
            latency=sum([self._latency[i] for i in links]),
            bandwidth=min([self._bandwidth[i] for i in links]),
            egress=sum([self._egress[i] for i in links]),
            channels=tuple(sorted([r for i in links if (r := self._channel[i]) is not None])),
        )

    def chains(self, home: int, site: int) -> tuple[Chain, ...]:
        """Simple chains from ``home`` to ``site``, fewest links first; none if home == site."""
        key = (home, site)
        if key not in self._chains:
            self._chains[key] = tuple(self.chain(links) for links in self._nearest_first(home, site))
        return self._chains[key]

    def _nearest_first(self, home: int, site: int) -> list[tuple[int, ...]]:
        """Up to MAX_CHAINS chains; a pair that has more (or is too much work) is kept in ``capped``."""
        hops = self._hops_to(site)
        found: list[tuple[int, ...]] = []
        if home == site or home not in hops:
            return found
        reach = {member: hops[member] for member in self._between(home, site) & hops.keys() - {site}}
        search = _Search(self._outgoing, self._direct, reach, home, site)
        for length in range(hops[home], len(self.site_ids)):
            for links in search.chains(length):
                if len(found) == MAX_CHAINS:
                    self.capped.add((home, site))
                    return found
                found.append(links)
            if search.steps_left < 0:
                self.capped.add((home, site))
            if search.steps_left < 0 or not search.shortened:
                return found
        return found

    def _hops_to(self, site: int) -> dict[int, int]:
        if site not in self._hops:
            reverse = self.graph.reverse(copy=False)
            self._hops[site] = dict(nx.single_source_shortest_path_length(reverse, site))
        return self._hops[site]

    def _between(self, home: int, site: int) -> set[int]:
        """Sites on some simple path between two sites, directions apart: the blocks that a path has to cross."""
        crossed = nx.shortest_path(self._blocks, home, site)[1::2]
        return {member for block in crossed for member in self._blocks[block]}

    @cached_property
    def _blocks(self) -> "nx.Graph[Any]":
        """The forest of sites and blocks (biconnected components, as frozen sets)."""
        forest: nx.Graph[Any] = nx.Graph()
        for block in map(frozenset, nx.biconnected_components(nx.Graph(self.graph))):
            forest.add_edges_from((block, site) for site in block)
        return forest


class _Search:
    """Simple chains of a given length.

    As networkx.all_simple_edge_paths, but without its dead ends, which are exponentially many on large networks: it
    never leaves the sites between the two, nor enters one that is too far from the goal.

    Parameters
    ----------
    outgoing
        Site -> (link, target) pairs.
    direct
        (site, target) -> the same pairs.
    reach
        Links to the goal from each site worth entering.

    Attributes
    ----------
    steps_left
        Negative: stopped before its end.
    shortened
        The last call met longer chains that it had to leave out.
    """

    def __init__(
        self,
        outgoing: Sequence[Sequence[tuple[int, int]]],
        direct: Mapping[tuple[int, int], Sequence[tuple[int, int]]],
        reach: Mapping[int, int],
        home: int,
        site: int,
    ):
        self.steps_left = MAX_STEPS
        self.shortened = False
        self._outgoing = outgoing
        self._direct = direct
        self._reach = reach
        self._home = home
        self._site = site

    def chains(self, length: int) -> Iterator[tuple[int, ...]]:
        """Chains of exactly ``length`` links, in the order of the links."""
        self.shortened = False
        links: list[int] = []
        visited = [self._home]
        stack = [self._steps(self._home, length)]
        while stack and self.steps_left >= 0:
            self.steps_left -= 1
            step = next(stack[-1], None)
            if step is None:
                stack.pop()
                visited.pop()
                del links[-1:]
                continue
            link, target = step
            left = length - len(links) - 1
            if left == 0:
                yield (*links, link)
            elif target in self._reach and target not in visited:
                if self._reach[target] > left:
                    self.shortened = True
                    continue
                links.append(link)
                visited.append(target)
                stack.append(self._steps(target, left))

    def _steps(self, here: int, left: int) -> Iterator[tuple[int, int]]:
        """(link, target) with ``left`` links to go: the goal with the last, never before."""
        if left > 1:
            return iter(self._outgoing[here])
        self.shortened = True
        return iter(self._direct.get((here, self._site), ()))


def _scaled(values: Iterable[Decimal]) -> tuple[int, list[int]]:
    """The least multiplier that makes all values whole, and the whole values."""
    exact = [Fraction(value) for value in values]
    scale = common_multiplier(exact)
    return scale, [int(value * scale) for value in exact]
