"""Tasks from jobs: half keep their model, measured by ElasticFlow, half get a model of Gavel's."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from optalloc.composition.jobs import MOST_DEVICES, TRACE, Job
from optalloc.composition.layout import Layout
from optalloc.composition.rates import ModelRates
from optalloc.composition.sources import Reader
from optalloc.errors import InputError
from optalloc.generators.draw import Draw

__all__ = ["MOST_MODES", "WEIGHTS", "Chosen", "choose_models", "runnable", "task_entries"]

WEIGHTS = (1, 1, 2, 4)
MOST_MODES = 12
"""Modes of a task at most."""

Chosen = tuple[Job, ModelRates]


def runnable(reader: Reader, jobs: Sequence[Job], elasticflow: Mapping[str, ModelRates]) -> list[Job]:
    """The jobs that have an A100 rate; the others are dropped and counted."""
    kept = []
    for job in jobs:
        model = elasticflow.get(f"{job.model}@{job.batch}")
        if model is None or devices(job) not in model.rates["A100"]:
            reader.drop(TRACE, "no A100 rate for its model, batch and devices")
        else:
            kept.append(job)
    return kept


def devices(job: Job) -> int:
    """Devices of a job, no more than the largest pool has."""
    return min(job.devices, MOST_DEVICES)


def choose_models(
    draw: Draw, jobs: Sequence[Job], elasticflow: Mapping[str, ModelRates], gavel: Mapping[str, ModelRates]
) -> list[Chosen]:
    """Each job with its model: half keep the trace's, half get one that Gavel measured at that count."""
    changed = set(draw.sample(range(len(jobs)), len(jobs) // 2))
    chosen = []
    for place, job in enumerate(jobs):
        if place in changed:
            options = [m for m in gavel.values() if devices(job) in m.rates.get("V100", {})]
            if not options:
                raise InputError(f"no Gavel job type has a V100 rate at {devices(job)} devices")
            chosen.append((job, draw.pick(options)))
        else:
            chosen.append((job, elasticflow[f"{job.model}@{job.batch}"]))
    return chosen


def task_entries(
    draw: Draw, chosen: Sequence[Chosen], layout: Layout, candidates: int
) -> list[dict[str, Any]]:
    """Tasks as the file lists them; ``candidates`` is the number of datasets of a domain."""
    start = chosen[0][0].submission
    entries = []
    for place, (job, model) in enumerate(chosen):
        entry: dict[str, Any] = {"id": f"{place:03d}-{job.id[:8]}", "model": model.id}
        entry |= {"release_s": job.submission - start, "due_s": max(0, job.deadline - start)}
        entry |= {"weight": draw.pick(WEIGHTS), "samples": samples(job, model)}
        entry |= {"device_counts": [devices(job)], "kappa": 1}
        sites = _allowed(draw, layout, model, devices(job), candidates)
        entries.append(entry | ({"sites": sites} if sites else {}))
    return entries


def samples(job: Job, model: ModelRates) -> Decimal | int:
    """Work on perfect data: the trace's iterations, or what a V100 pool does in the trace's duration."""
    if "A100" in model.rates:
        return job.iterations * model.batch
    return job.duration * model.rates["V100"][devices(job)] * model.batch


def _allowed(draw: Draw, layout: Layout, model: ModelRates, count: int, candidates: int) -> list[str]:
    """Sites that keep the modes within the limit; empty if all do (always so with four pools)."""
    usable = {site: 0 for site in layout.pool_sites}
    for pool in layout.pools:
        usable[pool.site] += count in model.rates.get(pool.device_type, {})
    order = draw.sample(layout.pool_sites, len(layout.pool_sites))
    if sum(usable.values()) * candidates <= MOST_MODES:
        return []
    allowed: list[str] = []
    for site in sorted(order, key=lambda site: usable[site] * candidates > MOST_MODES):
        if usable[site] and (
            not allowed or sum(usable[s] for s in [*allowed, site]) * candidates <= MOST_MODES
        ):
            allowed.append(site)
    return [site for site in layout.pool_sites if site in allowed]
