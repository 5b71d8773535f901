"""Cloud regions: measured throughput, round-trip time and egress price of every ordered pair."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import permutations
from math import floor

from optalloc.composition.sources import Reader, number
from optalloc.errors import Fault, InputError
from optalloc.generators.draw import decimal

__all__ = ["Pair", "Regions", "read_regions"]

THROUGHPUT, LATENCY, COST = "skyplane/throughput.csv", "skyplane/latency.csv", "skyplane/cost.csv"
TIER = "PREMIUM"
RECEIVED = "throughput_received_bits_per_second"


@dataclass(frozen=True)
class Pair:
    """What lies between two regions, in one direction."""

    bandwidth_gbps: Decimal
    latency_s: Decimal
    egress_usd_per_gb: Decimal


Measured = Mapping[tuple[str, str], Sequence[Decimal]]
"""(origin, target) -> the repeated measurements."""


@dataclass(frozen=True)
class Regions:
    """Regions between all of which everything was measured.

    Attributes
    ----------
    names
        Sorted, ``cloud:region``.
    received, rtt, cost
        bit/s, ms and $ per GB.
    """

    names: tuple[str, ...]
    received: Measured
    rtt: Measured
    cost: Measured

    def pair(self, origin: str, target: str) -> Pair:
        """Means of the measurements; one way takes half of a round trip."""
        received, rtt, cost = (mean(table[origin, target]) for table in (self.received, self.rtt, self.cost))
        return Pair(billionths(received / 10**9), billionths(rtt / 2000), billionths(cost))


def read_regions(reader: Reader) -> Regions:
    """Regions with full throughput, latency and cost; those with most gaps are left out first."""
    received = _measured(reader, THROUGHPUT, ("src_region", "dst_region", "src_tier", "dst_tier"), RECEIVED)
    rtt = _measured(reader, LATENCY, ("src_region", "dst_region", "src_tier", "dst_tier"), "avg_rtt")
    cost = _measured(reader, COST, ("src", "dest", "src_tier", "dest_tier"), "cost")
    known = {pair for pair in received.keys() & rtt.keys() & cost.keys() if any(received[pair])}
    names = _complete({name for pair in received for name in pair}, known)
    if len(names) < 2:
        raise InputError(Fault("", "no two regions are fully measured.", reader.path("skyplane")))
    return Regions(names, received, rtt, cost)


def _measured(reader: Reader, name: str, columns: tuple[str, str, str, str], value: str) -> Measured:
    """What was measured between regions, both ends of the premium tier."""
    found: defaultdict[tuple[str, str], list[Decimal]] = defaultdict(list)
    origin, target, tier, other_tier = columns
    for row in reader.rows(name, [*columns, value]):
        if row[tier] != TIER or row[other_tier] != TIER:
            continue
        measured = number(row[value])
        if measured is None:
            reader.drop(name, f"{value} is missing or not a number")
        else:
            found[row[origin], row[target]].append(measured)
    return dict(found)


def _complete(names: set[str], known: set[tuple[str, str]]) -> tuple[str, ...]:
    """The regions left when the one with most missing pairs is dropped until none is missing."""
    while True:
        gaps = Counter(name for pair in permutations(sorted(names), 2) if pair not in known for name in pair)
        if not gaps:
            return tuple(sorted(names))
        names = names - {max(sorted(gaps), key=lambda name: gaps[name])}


def mean(values: Sequence[Decimal]) -> Fraction:
    """The exact mean."""
    return Fraction(sum(values)) / len(values)


def billionths(value: Fraction) -> Decimal:
    """``value`` to nine decimals, half up: whole bits per second, and exact where measured once."""
    return decimal(floor(value * 10**9 + Fraction(1, 2)), 9)
