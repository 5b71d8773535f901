"""Shipped instances, each with its proven optimum or bounds and a stored plan. Data only; solves nothing.

>>> from optalloc import instances
>>> "real-12" in instances.names()
True
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import as_file, files
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, Any

from optalloc.errors import Fault, InputError

if TYPE_CHECKING:
    from optalloc.instance import Instance
    from optalloc.schedule import Schedule

__all__ = ["FORMAT", "Entry", "bounds_of", "describe", "entry", "load", "names", "solution"]

FORMAT = "optalloc-index/1"


@dataclass(frozen=True)
class Entry:
    """What the index says about an instance. Objective values are scaled by ``weight_scale``.

    Attributes
    ----------
    name, family
        The family is a preset of `generate`, or ``real``.
    path, solution
        Files of the instance and of its best known plan, inside this package.
    sizes
        Numbers of tasks, nodes, datasets, modes and active modes.
    origin
        Command, parameters, seed and version that make the instance again.
    sha256
        Hash of the instance's canonical form.
    weight_scale
        K of the compiled problem.
    lower, upper
        Proven bound, and objective of the stored plan.
    proven_by
        Runs that proved the bound: solver, version, seconds.
    facts
        Why a composed instance was chosen, and what the stored plan looks like.
    """

    name: str
    family: str
    path: str
    sizes: Mapping[str, int]
    origin: Mapping[str, Any]
    sha256: str
    weight_scale: int
    lower: int
    upper: int
    proven_by: tuple[Mapping[str, Any], ...]
    solution: str
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def optimum(self) -> int | None:
        """The proven optimum, None if there is a gap."""
        return self.upper if self.lower == self.upper else None

    @property
    def prover(self) -> str:
        """Who proved the bound, e.g. ``highs 1.16.0, cpsat 9.15.6755``."""
        return ", ".join(f"{run['solver']} {run['version']}" for run in self.proven_by)


def names() -> list[str]:
    """Names of the shipped instances, in the order of the index."""
    return list(_index())


def entry(name: str) -> Entry:
    """What the index says about an instance.

    Raises
    ------
    InputError
        The name is not known.
    """
    if name not in _index():
        raise InputError(Fault("", f"{name!r} is not shipped; there are {', '.join(_index())}."))
    return _index()[name]


@cache
def load(name: str) -> "Instance":
    """A shipped instance."""
    from optalloc.io.reading import read_instance

    with as_file(_file(entry(name).path)) as path:
        return read_instance(path)


@cache
def solution(name: str) -> "Schedule":
    """The best known plan of a shipped instance; optimal if its entry has an optimum."""
    from optalloc.schedule import read_schedule

    with as_file(_file(entry(name).solution)) as path:
        return read_schedule(path)


def describe() -> list[dict[str, Any]]:
    """One row of facts per instance, for tables."""
    return [_row(each) for each in _index().values()]


def bounds_of(sha256: str) -> dict[int, tuple[int, str]]:
    """Level -> (proven bound, by whom) for the instance with this hash; empty if it is not shipped."""
    for each in _index().values():
        if each.sha256 == sha256:
            return {0: (each.lower, each.prover)}
    return {}


def _row(each: Entry) -> dict[str, Any]:
    sizes = {key: each.sizes[key] for key in ("tasks", "nodes", "datasets", "active_modes")}
    known = {"optimum": each.optimum, "lower": each.lower, "upper": each.upper, "proven_by": each.prover}
    return {"name": each.name, "family": each.family} | sizes | known


def _file(path: str) -> Traversable:
    return files("optalloc.instances").joinpath(*path.split("/"))


@cache
def _index() -> dict[str, Entry]:
    document = json.loads(_file("index.json").read_text(encoding="utf-8"))
    if document.get("format") != FORMAT:
        raise InputError(Fault("format", f"must be {FORMAT!r}.", "index.json"))
    entries = [Entry(**each | {"proven_by": tuple(each["proven_by"])}) for each in document["instances"]]
    return {each.name: each for each in entries}
