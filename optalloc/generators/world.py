"""The world that presets build on: the parts of an instance file, drawn piece by piece.

Everything is invented. Rates are whole samples/s, prices whole cents, sizes whole GB, so that compiled
numbers are short. Draws never depend on load or coupling: turning one of these knobs changes what it names
and nothing else.
"""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from itertools import permutations
from typing import Any

from optalloc.generators.draw import Draw, plain
from optalloc.generators.knobs import Knobs

__all__ = ["COUNTS", "DEVICE_TYPES", "DOMAINS", "REFERENCE", "TICK", "World", "mesh"]

TICK = 900
"""Seconds of a tick in every preset."""

DOMAINS = ("vision", "language", "speech", "translation")

COUNTS = (1, 2, 4, 8, 16)
"""Device counts with a measured rate."""

DEVICE_TYPES = {
    # memory in GB, interconnect in Gbit/s, cents per device-hour, speed in percent of the first
    "t16": (16, 25, 60, 100),
    "t24": (24, 50, 110, 170),
    "t40": (40, 200, 240, 320),
    "t80": (80, 400, 390, 520),
}

REFERENCE = "t24"
"""The device type by which the work of a task is drawn; it runs every model."""

SIZES = {"s": (10, 60, 140), "l": (20, 20, 50)}
"""Model sizes: memory per device in GB and the range of the base rate in samples/s."""

Entry = dict[str, Any]


class World:
    """Parts of an instance under construction.

    Parameters
    ----------
    knobs
        Checked parameters.
    stream
        Number of the preset's stream of draws.
    domains
        Domains that occur.
    """

    def __init__(self, knobs: Knobs, stream: int, domains: Sequence[str] = DOMAINS):
        self.knobs = knobs
        self.draw = Draw(knobs.seed, stream)
        self.domains = tuple(domains)
        self.sites: list[Entry] = []
        self.links: list[Entry] = []
        self.datasets: list[Entry] = []
        self.nodes: list[Entry] = []
        self.models: list[Entry] = []
        self.throughputs: list[Entry] = []
        self.tasks: list[Entry] = []
        self.objective: Entry = {"levels": [{"weighted_completion": 1, "cost": 1}], "limits": {}}
        self.rates: dict[tuple[str, str], dict[int, int]] = {}
        self.dataset_of: dict[str, Entry] = {}

    # places -------------------------------------------------------------------------------------------------
    def site(self, name: str, tier: str = "cloud", storage_gb: Decimal | None = None) -> str:
        """Add a site."""
        self.sites.append({"id": name, "tier": tier, "storage_gb": storage_gb})
        return name

    def link(
        self,
        origin: str,
        target: str,
        gbps: Decimal,
        latency_ms: int,
        egress: Decimal,
        channels: int | None = None,
    ) -> None:
        """Add a directed link; ``egress`` in $ per GB is before coupling."""
        entry = {"id": f"{origin}-{target}", "from": origin, "to": target, "bandwidth_gbps": gbps}
        entry |= {"latency_s": Decimal(latency_ms) / 1000, "egress_usd_per_gb": self.coupled(egress)}
        self.links.append(entry | {"channels": channels})

    def coupled(self, value: Decimal) -> Decimal:
        """``value`` times the coupling."""
        return plain(value * self.knobs.coupling)

    def node(self, name: str, site: str, device_type: str, devices: int, **more: Any) -> None:
        """Add a pool; its price is the type's within -20 % to +25 %, in whole cents."""
        cents = DEVICE_TYPES[device_type][2] * self.draw.integer(80, 125) // 100
        entry = {"id": name, "site": site, "device_type": device_type, "devices": devices}
        self.nodes.append(entry | {"usd_per_device_hour": Decimal(cents) / 100} | more)

    # data ---------------------------------------------------------------------------------------------------
    def dataset(
        self, name: str, domain: str, homes: Sequence[str], gb: tuple[int, int], **more: Any
    ) -> Entry:
        """Add a dataset of ``domain``, of some use for one other domain; the size is before coupling."""
        other = self.draw.pick([d for d in self.domains if d != domain] or [domain])
        relevance = {other: self.draw.decimal(40, 65, 2), domain: self.draw.decimal(70, 100, 2)}
        size, quality = Decimal(self.draw.integer(*gb)), self.draw.decimal(75, 100, 2)
        everywhere = self.knobs.coupling == 0
        sites = [site["id"] for site in self.sites] if everywhere else list(homes)
        entry: Entry = {"id": name, "size_gb": self.coupled(size), "sites": sites}
        self.datasets.append(entry | {"quality": quality, "relevance": relevance} | more)
        self.dataset_of[name] = self.datasets[-1]
        return self.datasets[-1]

    # models -------------------------------------------------------------------------------------------------
    def add_models(self) -> None:
        """A small and a large model for each domain, with rates on the device types that nodes have."""
        for domain in self.domains:
            for size, (_, low, high) in SIZES.items():
                self._model(f"{domain}-{size}", domain, self.draw.integer(low, high))

    def _model(self, name: str, domain: str, base: int) -> None:
        self.models.append({"id": name, "domain": domain, "size_gb": self.draw.decimal(1, 40, 1)})
        used = {node["device_type"] for node in self.nodes}
        for device_type, (_, _, _, speed) in DEVICE_TYPES.items():
            # Which device is good at what differs by domain: the best data and the best devices
            # depend on each other.
            first = base * speed * self.draw.integer(65, 150) // 10_000
            table = scaled_rates(max(1, first), self.draw.integer(80, 97))
            self.rates[name, device_type] = table
            if device_type in used:
                measured = {str(count): rate for count, rate in table.items()}
                self.throughputs.append({"model": name, "device_type": device_type, "measured": measured})

    # tasks --------------------------------------------------------------------------------------------------
    def task(self, name: str, counts: Sequence[int], ticks: tuple[int, int], **more: Any) -> Entry:
        """Add a task of a drawn model, of ``ticks`` on the least of ``counts`` reference devices."""
        model = self.draw.pick(self.models)["id"]
        percent = self.draw.integer(ticks[0] * 100 - 90, ticks[1] * 100)
        samples = self.rates[model, REFERENCE][min(counts)] * TICK * percent // 100
        entry: Entry = {"id": name, "model": model, "release_s": 0, "weight": self.draw.pick((1, 1, 2, 4))}
        entry |= {"samples": samples, "device_counts": list(counts), "kappa": self.draw.pick(KAPPAS)}
        entry["memory_gb_per_device"] = SIZES[model[-1]][0]
        self.tasks.append(entry | more)
        return self.tasks[-1]

    def device_types(self) -> list[Entry]:
        """The device types in use, as the file lists them."""
        used = {node["device_type"] for node in self.nodes}
        kept = ((name, facts) for name, facts in DEVICE_TYPES.items() if name in used)
        return [{"id": name, "memory_gb": facts[0], "interconnect_gbps": facts[1]} for name, facts in kept]


KAPPAS = (Decimal(0), Decimal("0.5"), Decimal(1))


def scaled_rates(first: int, percent: int) -> dict[int, int]:
    """Rates at 1, 2, 4, ... devices when each doubling brings ``percent`` of twice the rate.

    >>> scaled_rates(100, 90)
    {1: 100, 2: 180, 4: 324, 8: 583, 16: 1049}
    """
    rates = {1: first}
    for count in COUNTS[1:]:
        rates[count] = max(1, rates[count // 2] * 2 * percent // 100)
    return rates


def mesh(places: Iterable[str]) -> list[tuple[str, str]]:
    """All ordered pairs of ``places``."""
    return list(permutations(places, 2))
