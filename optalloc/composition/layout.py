"""Which regions and pools an instance has: drawn, under what the real tables allow."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from optalloc.composition.prices import CLOUDS
from optalloc.errors import InputError
from optalloc.generators.draw import Draw

__all__ = ["DEVICES", "Layout", "Pool", "cloud_of", "draw_layout", "pool_count"]

DEVICES = 8
"""Devices of a pool."""
NUM_SITES, NUM_POOL_SITES = 5, 3
MIX = ("A100", "A100", "V100", "P100")
"""Types of four pools."""
_TRIES = 10_000


@dataclass(frozen=True)
class Pool:
    """A node: its site, device type and $ per device and hour."""

    site: str
    device_type: str
    usd_per_device_hour: Decimal


@dataclass(frozen=True)
class Layout:
    """Regions with pools, regions with data only, and the pools."""

    pool_sites: tuple[str, ...]
    data_sites: tuple[str, ...]
    pools: tuple[Pool, ...]


def pool_count(size: int) -> int:
    """Pools for a number of tasks: 4 up to 20 tasks, then 4 more for every 90.

    A longer window of the trace spans more time, so that pools need not grow in proportion.

    >>> [pool_count(size) for size in (8, 20, 60, 200)]
    [4, 4, 8, 12]
    """
    return len(MIX) * (1 + -(-max(0, size - 20) // 90))


def cloud_of(region: str) -> str:
    """Cloud of a region named ``cloud:place``."""
    return region.split(":", 1)[0]


def draw_layout(
    draw: Draw, regions: Sequence[str], prices: Mapping[tuple[str, str], Decimal], size: int
) -> Layout:
    """Five regions with all three clouds among them; three hold pools, of types that are priced there.

    Raises
    ------
    InputError
        The tables do not allow it.
    """
    for _ in range(_TRIES):
        sites = draw.sample(regions, NUM_SITES)
        holding = sites[:NUM_POOL_SITES]
        priced = {device for device in MIX for site in holding if (cloud_of(site), device) in prices}
        if set(map(cloud_of, sites)) == set(CLOUDS.values()) and priced == set(MIX):
            pools = _draw_pools(draw, holding, prices, pool_count(size))
            return Layout(tuple(holding), tuple(sites[NUM_POOL_SITES:]), pools)
    raise InputError(
        f"no {NUM_SITES} regions of all three clouds with priced {', '.join(sorted(set(MIX)))} were found"
    )


def _draw_pools(
    draw: Draw, sites: Sequence[str], prices: Mapping[tuple[str, str], Decimal], count: int
) -> tuple[Pool, ...]:
    """``count`` pools, spread: each at a priced site with fewest pools of its type, then fewest of all."""
    chosen: Counter[str] = Counter()
    of_type: Counter[tuple[str, str]] = Counter()
    pools = []
    for _ in range(count // len(MIX)):
        for device_type in draw.sample(MIX, len(MIX)):
            open_sites = [site for site in sites if (cloud_of(site), device_type) in prices]
            ranks = {site: (of_type[site, device_type], chosen[site]) for site in open_sites}
            site = draw.pick([site for site in open_sites if ranks[site] == min(ranks.values())])
            chosen[site] += 1
            of_type[site, device_type] += 1
            pools.append(Pool(site, device_type, prices[cloud_of(site), device_type]))
    return tuple(sorted(pools, key=lambda pool: (sites.index(pool.site), pool.device_type)))
