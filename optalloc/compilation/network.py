"""Sites and links, and the simple chains of links between two sites."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import networkx as nx

from optalloc.instance import Instance, Link

__all__ = ["MAX_CHAINS", "MAX_STEPS", "Chain", "Network"]

MAX_CHAINS: Final = 200
"""Simple paths taken per (home site, site): those with the fewest links."""
MAX_STEPS: Final = 20_000
"""Links looked at per (home site, site) before the search for paths stops."""


@dataclass(frozen=True)
class Chain:
    """Links one after the other, with what does not depend on the dataset.

    Attributes
    ----------
    links
        Link indices in travel order.
    latency
        Sum over the links, s.
    bandwidth
        Least of the links, Gbit/s.
    egress
        Sum over the links, $ per GB.
    channels
        The resources of its links with limited channels, sorted.
    mask
        The same as the bits of an int.
    """

    links: tuple[int, ...]
    latency: Fraction
    bandwidth: Fraction
    egress: Fraction
    channels: tuple[int, ...]
    mask: int


class Network:
    """Directed links between sites.

    Parameters
    ----------
    instance
        ``both_ways`` links count twice.
    channel_resource
        Link id -> resource of its channels, for links with limited channels.
    """

    def __init__(self, instance: Instance, channel_resource: dict[str, int]):
        self.links: tuple[Link, ...] = instance.all_links
        self.link_index = {link.id: index for index, link in enumerate(self.links)}
        self.site_ids = tuple(site.id for site in instance.sites)
        self.site_index = {site: index for index, site in enumerate(self.site_ids)}
        self.capped: set[tuple[int, int]] = set()
        self._latency = [Fraction(link.latency_s) for link in self.links]
        self._bandwidth = [Fraction(link.bandwidth_gbps) for link in self.links]
        self._egress = [Fraction(link.egress_usd_per_gb) for link in self.links]
        self._channel = [channel_resource.get(link.id) for link in self.links]
        self.graph = self._graph()
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
        channels = tuple(sorted(r for r in (self._channel[i] for i in links) if r is not None))
        return Chain(
            links=links,
            latency=sum((self._latency[i] for i in links), Fraction(0)),
            bandwidth=min(self._bandwidth[i] for i in links),
            egress=sum((self._egress[i] for i in links), Fraction(0)),
            channels=channels,
            mask=sum(1 << resource for resource in channels),
        )

    def chains(self, home: int, site: int) -> tuple[Chain, ...]:
        """Simple chains from ``home`` to ``site``, those with the fewest links first; none if home == site."""
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
        budget = [MAX_STEPS]
        for length in range(hops[home], len(self.site_ids)):
            for links in self._of_length(home, site, length, hops, budget):
                if len(found) == MAX_CHAINS:
                    self.capped.add((home, site))
                    return found
                found.append(links)
            if budget[0] < 0:
                self.capped.add((home, site))
                return found
        return found

    def _hops_to(self, site: int) -> dict[int, int]:
        if site not in self._hops:
            reverse = self.graph.reverse(copy=False)
            self._hops[site] = dict(nx.single_source_shortest_path_length(reverse, site))
        return self._hops[site]

    def _of_length(
        self, home: int, site: int, length: int, hops: dict[int, int], budget: list[int]
    ) -> Iterator[tuple[int, ...]]:
        """Simple chains of exactly ``length`` links.

        As networkx.all_simple_edge_paths, but it never enters a site that is too far from the goal: on large sparse
        networks that function walks through exponentially many dead ends.
        """
        links: list[int] = []
        visited = [home]
        stack = [self._steps(home)]
        while stack:
            budget[0] -= 1
            step = next(stack[-1], None) if budget[0] >= 0 else None
            if step is None:
                stack.pop()
                visited.pop()
                if links:
                    links.pop()
                continue
            link, target = step
            left = length - len(links) - 1
            if target == site:
                if left == 0:
                    yield (*links, link)
            elif target not in visited and hops.get(target, length) <= left:
                links.append(link)
                visited.append(target)
                stack.append(self._steps(target))

    def _steps(self, site: int) -> Iterator[tuple[int, int]]:
        return ((link, target) for _, target, link in self.graph.out_edges(site, keys=True))
