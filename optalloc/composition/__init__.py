"""Instances composed of real data: a cluster's jobs, measured rates, list prices, networks and dataset sizes.

What no public source holds (relevance, quality and price of data, where it lies) is drawn, and
`meta.synthetic` says so.
"""

from collections.abc import Sequence
from dataclasses import asdict
from decimal import Decimal
from itertools import permutations
from pathlib import Path
from typing import Any

from optalloc.composition.catalogue import HF, TFDS, Entry, read_catalogue
from optalloc.composition.jobs import TICK, TRACE, offsets, read_jobs
from optalloc.composition.layout import DEVICES, Layout, draw_layout
from optalloc.composition.prices import TABLE, read_prices
from optalloc.composition.rates import A100_TABLES, THROUGHPUTS, ModelRates, elasticflow_rates, gavel_rates
from optalloc.composition.regions import COST, LATENCY, THROUGHPUT, Regions, read_regions
from optalloc.composition.sources import SOURCES, Reader
from optalloc.composition.tasks import choose_models, runnable, task_entries
from optalloc.errors import Fault, InputError
from optalloc.generators.draw import Draw, plain
from optalloc.generators.knobs import Knobs, knobs
from optalloc.instance import Instance
from optalloc.io.reading import read_instance

__all__ = ["VERSION", "compose"]

FILES = (TRACE, *A100_TABLES.values(), THROUGHPUTS, TABLE, THROUGHPUT, LATENCY, COST, TFDS, HF)
"""All that is read."""

VERSION = 1
"""Raised whenever the same data and parameters give another file."""

PER_DOMAIN = 3
RELEVANCES = (Decimal(1), Decimal("0.85"), Decimal("0.7"))
PRICES = (0, 0, 5, 20, 40)

SYNTHETIC = [
    "tasks: which rows of the trace; models and deadlines are synthetic in the trace itself",
    "tasks.model and tasks.samples of the half that runs a Gavel model",
    "tasks.weight",
    "tasks.kappa",
    "tasks.sites",
    "sites: which regions, and which of them hold pools",
    "nodes: site, device_type and devices",
    "datasets: which of the catalogues",
    "datasets.size_gb: catalogue size x coupling",
    "datasets.sites",
    "datasets.quality",
    "datasets.relevance",
    "datasets.price_usd",
    "datasets.pricing",
    "objective",
]


def compose(
    data: str | Path, size: int, *, seed: int = 0, coupling: object = 10, offset: int | None = None
) -> Instance:
    """An instance of ``size`` real jobs.

    Parameters
    ----------
    data
        Folder with one folder a source: ``itp-elasticflow``, ``elasticflow``, ``gavel``, ``cloud-gpus``,
        ``skyplane``, ``dataset-catalogs``.
    size
        Number of tasks; up to 20, only windows of the trace that are worth proving are taken.
    seed
        Same data, parameters and seed: the same file, byte by byte.
    coupling
        Multiplies dataset sizes: 0, or 0.000001 to 10000 with at most 6 decimals. Default is 10, since real
        data cost next to nothing to move beside jobs of hours. At 0 every dataset is at home at every site.
    offset
        First row of the sorted trace; default is drawn.

    Raises
    ------
    InputError
        A file is missing or malformed, or a parameter out of range.
    """
    checked = knobs("real", size, 1, coupling, seed)
    if offset is not None and (isinstance(offset, bool) or not isinstance(offset, int) or offset < 0):
        raise InputError(Fault("offset", f"must be an integer >= 0, got {offset!r}."))
    reader = Reader(data)
    reader.require(FILES)
    document, window = _document(reader, checked, offset)
    return read_instance(document | {"meta": _meta(reader, checked, window)})


def _document(reader: Reader, checked: Knobs, offset: int | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """The file without ``meta``, and what ``meta`` says about the draws."""
    gavel = gavel_rates(reader)
    elasticflow = elasticflow_rates(reader, gavel)
    jobs = runnable(reader, read_jobs(reader), elasticflow)
    draw = Draw(checked.seed, 0)
    first = draw.pick(offsets(jobs, checked.tasks, offset))
    chosen = choose_models(draw, jobs[first : first + checked.tasks], elasticflow, gavel)
    regions = read_regions(reader)
    layout = draw_layout(Draw(checked.seed, 1), regions.names, read_prices(reader), checked.tasks)
    domains = sorted({model.domain for _, model in chosen})
    entries = _draw_entries(Draw(checked.seed, 2), read_catalogue(reader), domains)
    document: dict[str, Any] = {"format": "optalloc-instance/1", "name": f"real-{checked.tasks}"}
    document |= {"tick_seconds": TICK, "money_unit_usd": Decimal("0.01")} | _places(layout, regions)
    document["datasets"] = _datasets(Draw(checked.seed, 3), entries, layout, checked.coupling)
    document |= _devices(layout, [model for _, model in chosen])
    document["tasks"] = task_entries(Draw(checked.seed, 4), chosen, layout, PER_DOMAIN)
    document["objective"] = {"levels": [{"weighted_completion": 1, "cost": 1}]}
    return document, {"offset": first, "first_job": chosen[0][0].id, "datasets": _origins(entries)}


def _draw_entries(draw: Draw, catalogue: dict[str, list[Entry]], domains: Sequence[str]) -> list[Entry]:
    """Three datasets of each domain that occurs."""
    for domain in domains:
        if len(catalogue[domain]) < PER_DOMAIN:
            raise InputError(
                f"the catalogues hold only {len(catalogue[domain])} {domain} datasets of a fitting size"
            )
    return [entry for domain in domains for entry in draw.sample(catalogue[domain], PER_DOMAIN)]


def _places(layout: Layout, regions: Regions) -> dict[str, Any]:
    names = [*layout.pool_sites, *layout.data_sites]
    links = []
    for origin, target in permutations(names, 2):
        entry: dict[str, Any] = {"id": f"{origin}>{target}", "from": origin, "to": target}
        links.append(entry | asdict(regions.pair(origin, target)))
    return {"sites": [{"id": name, "tier": "cloud"} for name in names], "links": links}


def _datasets(
    draw: Draw, entries: Sequence[Entry], layout: Layout, coupling: Decimal
) -> list[dict[str, Any]]:
    """Datasets as the file lists them; relevances follow the drawn order of a domain's entries."""
    everywhere = [*layout.pool_sites, *layout.data_sites]
    listed = []
    for place, entry in enumerate(entries):
        home, quality = draw.pick(layout.data_sites), draw.decimal(750, 1000, 3)
        price, pricing = draw.pick(PRICES), draw.pick(("once", "per_use"))
        item: dict[str, Any] = {"id": entry.name, "size_gb": plain(entry.size_gb * coupling)}
        item |= {"sites": [home] if coupling else everywhere, "quality": quality}
        item |= {"price_usd": price, "pricing": pricing}
        listed.append(item | {"relevance": {entry.domain: RELEVANCES[place % PER_DOMAIN]}})
    return listed


def _devices(layout: Layout, models: Sequence[ModelRates]) -> dict[str, Any]:
    """Device types, nodes, models and rates; sample rates are measured rate x batch, exactly."""
    types = sorted({pool.device_type for pool in layout.pools})
    nodes = []
    for place, pool in enumerate(layout.pools):
        node = {"id": f"{place:02d}-{pool.device_type}", "site": pool.site, "device_type": pool.device_type}
        nodes.append(node | {"devices": DEVICES, "usd_per_device_hour": pool.usd_per_device_hour})
    used = {model.id: model for model in models}
    throughputs = []
    for name, model in sorted(used.items()):
        for device_type in types:
            if device_type in model.rates:
                rates = {
                    str(count): rate * model.batch for count, rate in sorted(model.rates[device_type].items())
                }
                throughputs.append({"model": name, "device_type": device_type, "measured": rates})
    return {
        "device_types": [{"id": name} for name in types],
        "nodes": nodes,
        "models": [{"id": name, "domain": model.domain} for name, model in sorted(used.items())],
        "throughputs": throughputs,
    }


def _origins(entries: Sequence[Entry]) -> dict[str, Any]:
    """Name -> where its size is from."""
    return {e.name: {"catalogue": e.catalogue, "config": e.config, "bytes": e.size} for e in entries}


def _meta(reader: Reader, checked: Knobs, facts: dict[str, Any]) -> dict[str, Any]:
    folders = {name.split("/")[0] for name in reader.hashes}
    sources = []
    for folder in sorted(folders):
        title, address, commit, licence = SOURCES[folder]
        files = {
            name: digest for name, digest in sorted(reader.hashes.items()) if name.split("/")[0] == folder
        }
        source = {"title": title, "address": address, "commit": commit, "licence": licence}
        sources.append(source | {"files_sha256": files})
    return {
        "generator": "optalloc compose",
        "version": VERSION,
        "seed": checked.seed,
        "parameters": {"size": checked.tasks, "coupling": str(checked.coupling)},
        **facts,
        "source": "composed of public data, see sources",
        "sources": sources,
        "licence": "MIT; figures from the sources under the licences named there",
        "currency": "US dollars; on-demand list prices, not adjusted for their year",
        "dropped": reader.counts(),
        "synthetic": SYNTHETIC,
    }
