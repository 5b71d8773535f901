"""The learned schedulers by name: how each acts by its weights, and what these are like. NumPy only."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from optalloc.environment.scales import Floats
from optalloc.errors import Fault, InputError
from optalloc.quantities import shown
from optalloc.solvers.learned.index import NAMES, IndexScorer
from optalloc.solvers.learned.network import Network, initial
from optalloc.solvers.learned.policy import Scorer
from optalloc.solvers.learned.scorer import FactoredScorer, FlatScorer
from optalloc.solvers.learned.weights import Arrays, load_weights, read_facts, weights_file

__all__ = [
    "SCHEDULERS",
    "Scheduler",
    "branched",
    "factored",
    "flat",
    "indexed",
    "known_index",
    "known_weights",
    "untimed",
]


def factored(weights: Arrays) -> FactoredScorer:
    """Each level given those before it: `fdqn`."""
    return FactoredScorer(Network(weights))


def branched(weights: Arrays) -> FactoredScorer:
    """Levels that know nothing of each other: `additive` and `bdq`."""
    return FactoredScorer(Network(weights), "branches", conditional=False)


def flat(weights: Arrays) -> FlatScorer:
    """Every row of every waiting task at once: `flat-dqn`."""
    return FlatScorer(Network(weights))


def untimed(weights: Arrays) -> FactoredScorer:
    """Neither the rule's scores nor anything that tells a duration: `reinforce`."""
    return FactoredScorer(Network(weights), "no times", by_rule=False)


def indexed(weights: Arrays) -> IndexScorer:
    """A weighted index: `es-index`."""
    return IndexScorer(weights["index"])


@dataclass(frozen=True)
class Scheduler:
    """A learned scheduler.

    Attributes
    ----------
    make
        From weights to what acts.
    initial
        From a seed to weights to begin with: names, shapes and types are those of all its weights.
    """

    make: Callable[[Arrays], Scorer]
    initial: Callable[[int], dict[str, np.ndarray]]


def known_weights(name: str, weights: str | Path, option: str) -> dict[str, np.ndarray]:
    """The weights of a scheduler.

    Parameters
    ----------
    weights
        A file, or the name of shipped ones.
    option
        Which gives them; named in faults.

    Raises
    ------
    InputError
        There are no such weights, or they are not this scheduler's.
    """
    path = weights_file(name, weights, option)
    of = read_facts(path).get("solver", name)
    if of != name:
        raise InputError(Fault(f"options.{option}", f"{path} holds weights of {shown(of)}, not of {name}"))
    return load_weights(path, SCHEDULERS[name].initial(0))[0]


def known_index(weights: str) -> Floats:
    """(NAMES,) weights of `es-index`, a file or the name of shipped ones, for other learners to begin with.

    Raises
    ------
    InputError
        As `known_weights`.
    """
    return known_weights("es-index", weights, "index")["index"]


def _zeros(seed: int) -> dict[str, np.ndarray]:
    return {"index": np.zeros(len(NAMES))}


SCHEDULERS: Final[Mapping[str, Scheduler]] = {
    "fdqn": Scheduler(factored, initial),
    "bdq": Scheduler(branched, initial),
    "additive": Scheduler(branched, initial),
    "flat-dqn": Scheduler(flat, initial),
    "reinforce": Scheduler(untimed, initial),
    "es-index": Scheduler(indexed, _zeros),
}
