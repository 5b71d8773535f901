"""Invented instances of any size: one file a preset.

A preset is a module with ``LOAD`` (the default load) and ``build(world)``, which fills a
`optalloc.generators.world.World` and returns what the load was made of, and a line in `PRESETS`.
"""

from importlib import import_module
from typing import Any

from optalloc.errors import Fault, InputError
from optalloc.generators.knobs import Knobs, knobs
from optalloc.generators.world import TICK, World
from optalloc.instance import Instance
from optalloc.io.reading import read_instance

__all__ = ["PRESETS", "VERSION", "generate"]

VERSION = 1
"""Raised whenever a preset gives another file for the same parameters."""

PRESETS = {
    "geo": "regions with prices, distances and egress of their own",
    "edge": "availability windows, deadlines, rejection",
    "market": "one-off prices, licence seats, budgets",
    "contended": "link channels, storage, streams",
    "pipeline": "precedence with lags, several inputs",
    "ladder": "congested, any size",
}


def generate(
    preset: str, *, tasks: int = 20, load: object = None, coupling: object = 1, seed: int = 0
) -> Instance:
    """An invented instance.

    Parameters
    ----------
    preset
        One of `PRESETS`.
    tasks
        Number of tasks, >= 1.
    load
        Least device-ticks of all tasks / (devices x release span), 0.000001 to 10000; the releases are
        spread to meet it. Default is the preset's.
    coupling
        Weight of moving data, 0.000001 to 10000 with at most 6 decimals, or 0: multiplies dataset sizes and
        egress prices. At 0 every dataset is at home at every site and nothing is ever moved.
    seed
        Same parameters and seed: the same file, byte by byte.

    Raises
    ------
    InputError
        For an unknown preset or a parameter out of range.
    """
    if preset not in PRESETS:
        raise InputError(Fault("preset", f"{preset!r} is not known; there are {', '.join(PRESETS)}."))
    module = import_module(f"optalloc.generators.{preset}")
    checked = knobs(preset, tasks, module.LOAD if load is None else load, coupling, seed)
    world = World(checked, list(PRESETS).index(preset), module.DOMAINS)
    facts = module.build(world)
    return read_instance(_document(world, checked, facts))


def _document(world: World, parameters: Knobs, facts: dict[str, Any]) -> dict[str, Any]:
    """The instance as a file holds it."""
    name = f"{parameters.preset}-{parameters.tasks}"
    document: dict[str, Any] = {"format": "optalloc-instance/1", "name": name, "tick_seconds": TICK}
    document |= {"sites": world.sites, "links": world.links, "datasets": world.datasets}
    document |= {"device_types": world.device_types(), "nodes": world.nodes, "models": world.models}
    document |= {"throughputs": world.throughputs, "tasks": world.tasks, "objective": world.objective}
    return document | {"meta": _meta(parameters, facts)}


def _meta(parameters: Knobs, facts: dict[str, Any]) -> dict[str, Any]:
    turned = {"tasks": parameters.tasks, "load": str(parameters.load), "coupling": str(parameters.coupling)}
    return {
        "generator": f"optalloc generate {parameters.preset}",
        "version": VERSION,
        "seed": parameters.seed,
        "parameters": turned,
        "load": facts,
        "source": "invented",
        "licence": "MIT",
        "synthetic": ["everything"],
    }
