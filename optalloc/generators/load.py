"""Release times that meet a load.

Load is the least device-ticks of all tasks / (devices x release span): with load 1 the devices are just
enough for what is released, if everything ran in its cheapest way.
"""

from collections.abc import Iterator
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from math import ceil
from typing import Any

from optalloc.generators.world import DEVICE_TYPES, TICK, World

__all__ = ["best_utility", "least_device_ticks", "set_releases", "shortest_ticks"]

RESOLUTION = 1_000_000


def best_utility(world: World, task: dict[str, Any]) -> int:
    """Utility in permille of the best candidate dataset (1000 for a task that reads nothing)."""
    inputs = task.get("inputs")
    if inputs is None:
        return _best(world, task, task.get("datasets"))
    shares = [(Fraction(each.get("share", 1)), _best(world, task, each["datasets"])) for each in inputs]
    mean = sum(share * utility for share, utility in shares) / sum(share for share, _ in shares)
    return int(mean + Fraction(1, 2))


def _best(world: World, task: dict[str, Any], names: list[str] | None) -> int:
    if names == []:
        return 1000
    domain = task["model"].rsplit("-", 1)[0]
    chosen = world.datasets if names is None else [world.dataset_of[name] for name in names]
    return max(_utility(dataset, domain) for dataset in chosen)


def _utility(dataset: dict[str, Any], domain: str) -> int:
    exact = Decimal(dataset["relevance"].get(domain, 0)) * dataset["quality"] * 1000
    return int(exact.quantize(Decimal(1), ROUND_HALF_UP))


def runs(world: World, task: dict[str, Any]) -> Iterator[tuple[int, int]]:
    """(devices, ticks) of a task on its best data, for each type and count that an allowed node has."""
    utility = best_utility(world, task)
    work = task["samples"] * (1 + Fraction(task["kappa"]) * (1 - Fraction(utility, 1000)))
    sites = task.get("sites")
    for device_type, most in _largest(world, tuple(sites) if sites else None).items():
        if task["memory_gb_per_device"] > DEVICE_TYPES[device_type][0]:
            continue
        setup = task.get("setup_s", {}).get(device_type, 0)
        table = world.rates[task["model"], device_type]
        for count in task["device_counts"]:
            if count <= most:
                yield count, max(1, ceil((setup + work / table[count]) / TICK))


def _largest(world: World, sites: tuple[str, ...] | None) -> dict[str, int]:
    """Device type -> devices of the largest node at ``sites``."""
    largest: dict[str, int] = {}
    for node in world.nodes:
        if sites is None or node["site"] in sites:
            largest[node["device_type"]] = max(node["devices"], largest.get(node["device_type"], 0))
    return largest


def least_device_ticks(world: World, task: dict[str, Any]) -> int:
    """Least devices x ticks of a task."""
    return min(count * ticks for count, ticks in runs(world, task))


def shortest_ticks(world: World, task: dict[str, Any]) -> int:
    """Least ticks of a task."""
    return min(ticks for _, ticks in runs(world, task))


def set_releases(world: World, groups: list[list[dict[str, Any]]] | None = None) -> dict[str, Any]:
    """Release groups of tasks so that the load is met; the first at 0, the last at the end of the span.

    Parameters
    ----------
    groups
        Tasks that are released together, default each by itself.

    Returns
    -------
    What the load was made of, for `meta`.
    """
    groups = [[task] for task in world.tasks] if groups is None else groups
    least = sum(least_device_ticks(world, task) for task in world.tasks)
    devices = sum(node["devices"] for node in world.nodes)
    exact = Fraction(least * TICK) / (devices * Fraction(world.knobs.load))
    span = int(exact + Fraction(1, 2)) if len(groups) > 1 else 0
    moments = sorted(world.draw.integers(0, RESOLUTION, len(groups)))
    moments[0], moments[-1] = 0, RESOLUTION if len(groups) > 1 else 0
    for moment, group in zip(moments, groups, strict=True):
        for task in group:
            task["release_s"] = moment * span // RESOLUTION
    return {"least_device_ticks": least, "devices": devices, "release_span_s": span}
