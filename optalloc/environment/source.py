"""Where the instances of the episodes come from."""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from optalloc.compilation import compile as compile_problem
from optalloc.environment.prepared import Prepared
from optalloc.environment.sizes import Sizes
from optalloc.errors import Fault, InputError
from optalloc.generators import generate
from optalloc.instance import Instance
from optalloc.io.reading import read
from optalloc.objective_spec import with_objective
from optalloc.problem import Problem

__all__ = ["Given", "Source"]

Given = str | Path | Instance | Problem
"""A file, a name of the index, an instance, or a problem."""

_LOOKED_AT = 8
"""Instances of a generator that the sizes are taken from."""
_KEPT = 64
"""Instances of a generator that are kept ready."""


class Source:
    """Draws the problem of each episode: one of those given, or one that a generator makes from a seed.

    Parameters
    ----------
    instance
        What to solve; of several, each episode draws one.
    generator
        Instead: a preset of `optalloc.generate`, or a function from a seed to an instance or problem.
    generator_options
        For the preset: ``tasks``, ``load``, ``coupling``.
    instance_seeds
        Seeds that the generator may be given; for training, validation and test instances kept apart.
    objective, limits
        Take the place of the instances' own (`optalloc.with_objective`).

    Raises
    ------
    InputError
        Neither or both of ``instance`` and ``generator``; or an instance that cannot be read.
    """

    def __init__(
        self,
        instance: Given | Sequence[Given] | None = None,
        generator: str | Callable[[int], Instance | Problem] | None = None,
        generator_options: Mapping[str, Any] | None = None,
        instance_seeds: Sequence[int] = range(2**31),
        objective: str | None = None,
        limits: Mapping[str, Any] | None = None,
    ):
        if (instance is None) == (generator is None):
            raise InputError("The environment needs either an instance or a generator.")
        if not len(instance_seeds):
            raise InputError(Fault("instance_seeds", "must not be empty"))
        self._objective, self._limits = objective, limits
        self._seeds = instance_seeds
        self._make: Callable[[int], Instance | Problem] | None = None
        if instance is not None:
            several = (
                instance if isinstance(instance, Sequence) and not isinstance(instance, str) else [instance]
            )
            self._fixed = [self.prepare(each) for each in several]
            if not self._fixed:
                raise InputError(Fault("instance", "must not be an empty list"))
        elif isinstance(generator, str):
            self._make = partial(_generated, generator, dict(generator_options or {}))
        else:
            self._make = generator
        self._made: OrderedDict[int, Prepared] = OrderedDict()

    def prepare(self, given: Given) -> Prepared:
        """Read, compile and prepare one instance."""
        if isinstance(given, Problem):
            if self._objective is None and not self._limits:
                return Prepared(given)
            given = given.instance
        instance = read(given) if isinstance(given, str | Path) else given
        return Prepared(compile_problem(with_objective(instance, self._objective, self._limits)))

    def draw(self, rng: np.random.Generator) -> Prepared:
        """The problem of the next episode."""
        if self._make is None:
            return self._fixed[int(rng.integers(len(self._fixed))) if len(self._fixed) > 1 else 0]
        return self.of_seed(int(self._seeds[int(rng.integers(len(self._seeds)))]))

    def of_seed(self, seed: int) -> Prepared:
        """The problem that the generator makes from a seed."""
        if self._make is None:
            raise InputError(Fault("instance_seed", "needs a generator"))
        if seed not in self._made:
            self._made[seed] = self.prepare(self._make(seed))
            if len(self._made) > _KEPT:
                self._made.popitem(last=False)
        return self._made[seed]

    def sizes(self) -> Sizes:
        """Sizes for all given instances; for a generator, with a margin, those of the first few of its seeds."""
        if self._make is None:
            return Sizes.largest(Sizes.of(each.layout) for each in self._fixed)
        seen = (self.of_seed(int(seed)) for seed in islice(self._seeds, _LOOKED_AT))
        return Sizes.largest(Sizes.of(each.layout) for each in seen).with_margin()


def _generated(preset: str, options: Mapping[str, Any], seed: int) -> Instance:
    return generate(preset, **options, seed=seed)
