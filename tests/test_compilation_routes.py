"""Routes: simple chains of links, ticks, cost, channels, dominance and the cap."""

from fractions import Fraction
from itertools import pairwise
from random import Random

import networkx as nx
import pytest
from support.physics import document, problem_of

from optalloc.compilation import network as networks
from optalloc.compilation import route_facts
from optalloc.compilation.exact import integers
from optalloc.compilation.network import Chain, Network
from optalloc.compilation.routes import ChainSet, RouteBook
from optalloc.compilation.units import Units, half_up
from optalloc.errors import InputError
from optalloc.instance import Instance


def web(size, edges, homes=(0,), **more):
    """Sites s0.. with a link of 1 Gbit/s for each (from, to, keys) and one task on dataset d at the last site."""
    links = [
        {"id": f"l{number}", "from": f"s{a}", "to": f"s{b}", "bandwidth_gbps": 1, **(keys[0] if keys else {})}
        for number, (a, b, *keys) in enumerate(edges)
    ]
    return document(
        sites=[{"id": f"s{site}"} for site in range(size)],
        links=links,
        datasets=[{"id": "d", "size_gb": 10, "sites": [f"s{home}" for home in homes], **more}],
        nodes=[{"id": "n", "site": f"s{size - 1}", "device_type": "gpu", "devices": 1}],
        tasks=[{"id": "t", "model": "net", "samples": 10, "datasets": ["d"]}],
    )


def routes(problem):
    """(links, ticks, cost) of every listed route of the first replica."""
    return [
        (
            "-".join(problem.link_ids[i] for i in problem.route_links[q]),
            int(problem.route_ticks[q]),
            int(problem.route_cost[q]),
        )
        for q in problem.routes_of(0)
    ]


def test_a_chain_adds_latency_and_egress_and_has_the_least_bandwidth():
    """10 GB: 30 s + 35.5 s + 80 Gbit/0.5 Gbit/s = 225.5 s = 4 ticks; (0.01 + 0.0205) * 10 = $0.305 = 30.5 -> 31."""
    first = {"latency_s": 30, "egress_usd_per_gb": 0.01, "bandwidth_gbps": 0.5}
    second = {"latency_s": 35.5, "egress_usd_per_gb": 0.0205}
    problem = problem_of(web(3, [(0, 1, first), (1, 2, second)]))
    assert routes(problem) == [("l0-l1", 4, 31)]


@pytest.mark.parametrize(("latency", "ticks"), [(0, 2), (40, 2), (40.001, 3)])
def test_transfers_round_up_exactly(latency, ticks):
    """80 s + 40 s are exactly two ticks."""
    assert routes(problem_of(web(2, [(0, 1, {"latency_s": latency})]))) == [("l0", ticks, 0)]


def test_an_empty_dataset_still_takes_a_tick():
    """0 GB over a link without latency."""
    assert routes(problem_of(web(2, [(0, 1)], size_gb=0))) == [("l0", 1, 0)]


def test_both_ways_links_have_a_twin():
    """The way back has its own channels and name."""
    problem = problem_of(web(2, [(1, 0, {"both_ways": True, "channels": 2})]))
    assert problem.link_ids == ("l0", "l0:back")
    assert routes(problem)[0][0] == "l0:back"
    assert [problem.resource_label[r] for r in problem.route_channels[0]] == ["channels of l0:back"]


def test_routes_start_at_every_home():
    """From s0 over s1 (itself a home) and from s1 directly; all are incomparable for their limited links."""
    limited = {"channels": 1}
    problem = problem_of(web(3, [(0, 1, limited), (1, 2, limited), (0, 2, limited)], homes=(0, 1)))
    # l0-l1 needs l1 and more than the route l1 alone: it goes.
    assert [route[0] for route in routes(problem)] == ["l2", "l1"]


@pytest.mark.parametrize(
    ("slow", "kept"),
    [
        ({}, ["l0"]),  # an exact tie keeps the first
        ({"egress_usd_per_gb": 1}, ["l0"]),
        ({"bandwidth_gbps": 2}, ["l1"]),  # faster: it replaces the first
        ({"bandwidth_gbps": 2, "egress_usd_per_gb": 1}, ["l0", "l1"]),  # faster but dearer
        ({"bandwidth_gbps": 1.01}, ["l0"]),  # 79.2 s: the same two ticks
        ({"channels": 1}, ["l0"]),
        ({"bandwidth_gbps": 2, "channels": 1}, ["l0", "l1"]),  # faster but limited
    ],
)
def test_dominance_of_parallel_routes(slow, kept):
    """The first link has no channel limit and is free."""
    assert [route[0] for route in routes(problem_of(web(2, [(0, 1), (0, 1, slow)])))] == kept


def test_streams_run_over_dropped_routes_too():
    """The mode exists for the verifier, is not active, and its route stands behind those of the replicas."""
    dear = {"egress_usd_per_gb": 1}
    found = web(2, [(0, 1, dear), (0, 1)], streamable=True)
    found["tasks"][0]["samples"] = 2000  # 200 s: longer than the transfer
    problem = problem_of(found)
    assert [(access, route) for mode in range(3) for _, access, route in problem.inputs(mode)] == [
        (1, -1),
        (2, 0),
        (2, 1),
    ]
    assert problem.route_ptr.tolist() == [0, 1]
    assert [problem.route_links[q] for q in (0, 1)] == [(1,), (0,)]
    assert problem.active.tolist() == [
        False,
        True,
        False,
    ]  # the free stream beats staging, which needs a replica


def test_chains_equal_all_simple_paths():
    """Random directed networks with parallel links, against networkx; the shortest come first."""
    draw = Random(1)
    for _ in range(60):
        size = draw.randint(2, 6)
        edges = [(draw.randrange(size), draw.randrange(size)) for _ in range(draw.randint(1, 12))]
        edges = [(a, b) for a, b in edges if a != b]
        network = Network(Instance(**web(size, edges)), {})
        for a in range(size):
            for b in set(range(size)) - {a}:
                found = [chain.links for chain in network.chains(a, b)]
                paths = nx.all_simple_edge_paths(network.graph, a, b)
                assert sorted(found) == sorted(tuple(key for *_, key in path) for path in paths)
                assert all(len(x) <= len(y) for x, y in pairwise(found))
        assert not network.capped


def test_the_cap_keeps_short_chains_and_is_reported():
    """A complete network of 9 sites has 13,700 simple paths between two of them."""
    edges = [(a, b) for a in range(9) for b in range(9) if a != b]
    problem = problem_of(web(9, edges))
    assert any("pairs of sites have too many simple paths (s0 to s8)" in note for note in problem.notes)
    network = Network(problem.instance, {})
    lengths = [len(chain.links) for chain in network.chains(0, 8)]
    assert lengths == [1] + [2] * 7 + [3] * 42 + [4] * 50
    assert len(lengths) == networks.MAX_CHAINS


def test_capped_routes_are_the_same_after_dominance():
    """Leaving out chains that an earlier one replaces for every dataset changes no set of kept routes."""
    draw = Random(3)
    pruned_any = False
    for _ in range(60):
        chains = [
            Chain(
                (i,),
                *(draw.randint(1, 3) for _ in range(3)),
                tuple(sorted(draw.sample(range(4), draw.randint(0, 2)))),
            )
            for i in range(10)
        ]
        full = ChainSet(chains)
        pruned = ChainSet(full.ever_kept())
        pruned_any |= len(pruned) < len(full)
        # Any roundings that grow with latency and egress and fall with bandwidth.
        scores = {c.links: (c.latency // 2 + 6 // c.bandwidth // 2, c.egress // 2) for c in chains}
        assert _kept(pruned, scores) == _kept(full, scores) == _slowly_kept(full, scores)
    assert pruned_any


def _columns(chains, scores):
    pairs = [scores[chain.links] for chain in chains.chains]
    return integers([ticks for ticks, _ in pairs]), integers([cost for _, cost in pairs])


def _kept(chains, scores):
    mask = chains.kept(*_columns(chains, scores))
    return [chain.links for chain, keep in zip(chains.chains, mask, strict=True) if keep]


def _slowly_kept(chains, scores):
    """The definition, pair by pair."""

    def replaces(a, b):
        (x, first), (y, second) = a, b
        no_worse = all(p <= q for p, q in zip(scores[first.links], scores[second.links], strict=True))
        equal = scores[first.links] == scores[second.links] and set(first.channels) == set(second.channels)
        return x != y and no_worse and set(first.channels) <= set(second.channels) and (not equal or x < y)

    listed = list(enumerate(chains.chains))
    return [b[1].links for b in listed if not any(replaces(a, b) for a in listed)]


def test_routes_equal_fractions():
    """The integer columns against plain rational arithmetic, with and without room in 64 bits."""
    draw = Random(7)
    for digits in (2, 6, 15):
        edges = [(a, b, _odd(draw, digits)) for a in range(4) for b in range(4) if a != b]
        found = web(4, edges, size_gb=round(draw.uniform(1, 900), digits))
        found.update(tick_seconds=7.5, money_unit_usd=0.003)
        instance = Instance(**found)
        book = RouteBook(instance, Network(instance, {}), Units(Fraction("7.5"), Fraction("0.003")))
        kept, dropped = book.routes(0, 3)
        for route in [*kept, *dropped]:
            assert (route.ticks, route.cost) == _slow(instance, route.chain.links)


def _odd(draw, digits):
    return {
        "bandwidth_gbps": round(draw.uniform(0.1, 9), digits),
        "latency_s": round(draw.uniform(0, 9), digits),
        "egress_usd_per_gb": round(draw.uniform(0, 1), digits),
    }


def _slow(instance, links):
    used = [instance.all_links[i] for i in links]
    size = Fraction(instance.datasets[0].size_gb)
    bandwidth = min(Fraction(link.bandwidth_gbps) for link in used)
    seconds = sum(Fraction(link.latency_s) for link in used) + 8 * size / bandwidth
    usd = size * sum(Fraction(link.egress_usd_per_gb) for link in used)
    return -(-seconds // Fraction("7.5")), half_up(usd / Fraction("0.003"))


def test_facts_of_any_chain():
    """Listed, dropped or leading to a site without tasks; by id or by index; from the problem or the instance."""
    problem = problem_of(web(3, [(0, 1, {"channels": 1}), (1, 2), (0, 2), (0, 2, {"egress_usd_per_gb": 1})]))
    assert route_facts(problem, "d", ["l2"]) == (2, 0, ())
    assert route_facts(problem, 0, [3]) == (2, 1000, ())
    ticks, cost, channels = route_facts(problem, "d", ["l0"])
    assert (ticks, cost, [problem.resource_label[r] for r in channels]) == (2, 0, ["channels of l0"])
    assert route_facts(problem.instance, "d", ["l0"]) == (2, 0, channels)


@pytest.mark.parametrize(
    ("dataset", "links", "reason"),
    [
        ("x", ["l0"], "there is no dataset 'x'"),
        ("d", ["x"], "there is no link 'x'"),
        ("d", [], "at least one link"),
        ("d", ["l1"], "does not start at a home"),
        ("d", ["l0", "l2"], "is not one chain"),
        ("d", ["l0", "l4", "l2"], "passes site s0 twice"),
        ("d", ["l0", "l1", "l3", "l4"], "passes site s1 twice"),
        ("d", ["l0", "l5"], "ends at a home"),
    ],
)
def test_chains_that_are_none(dataset, links, reason):
    """The reason is given."""
    edges = [(0, 1), (1, 2), (0, 2), (2, 1), (1, 0), (1, 3)]
    found = web(4, edges, homes=(0, 3))
    found["nodes"][0]["site"] = "s2"
    with pytest.raises(InputError, match=reason):
        route_facts(problem_of(found), dataset, links)
