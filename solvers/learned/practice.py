"""Instances to learn from and to be judged by: families of presets, split by the seed of the generator."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from optalloc.compilation import compile as compiled
from optalloc.generators import generate
from optalloc.objective_spec import with_objective
from optalloc.scope import full_scope
from optalloc.simulation import Simulator
from optalloc.solvers.learned.episodes import Path, watch
from optalloc.solvers.learned.ground import Ground
from optalloc.solvers.learned.policy import Scorer, run_episode
from optalloc.solvers.learned.rule import RuleScorer

__all__ = ["TEST", "TRAINING", "VALIDATION", "Family", "by_rule", "objective_of", "ratio_of", "ratios"]

TRAINING: Final = 1_000_000
VALIDATION: Final = 2_000_000
TEST: Final = 3_000_000
"""First seeds of the generator for each use; they never meet, nor do they meet the shipped instances (small seeds)."""


@dataclass(frozen=True)
class Family:
    """Instances of one preset.

    Attributes
    ----------
    preset, tasks, load, coupling
        As `optalloc.generators.generate` takes them; an empty load is the preset's own.
    objective
        In place of the preset's, where it is not empty.
    """

    preset: str
    tasks: int = 60
    load: str = ""
    coupling: str = "1"
    objective: str = ""

    def __str__(self) -> str:
        return f"{self.preset}-{self.tasks}"

    def ground(self, seed: int) -> Ground:
        """One instance, made ready; the last ones are kept."""
        return _ground(self, seed)


@lru_cache(maxsize=256)
def _ground(family: Family, seed: int) -> Ground:
    load = {"load": family.load} if family.load else {}
    instance = generate(family.preset, tasks=family.tasks, coupling=family.coupling, seed=seed, **load)
    if family.objective:
        instance = with_objective(instance, family.objective)
    return Ground(compiled(instance))


def objective_of(ground: Ground, scorer: Scorer) -> int | None:
    """The first level of what a scorer reaches, scaled by K; None at a dead end."""
    simulator = run_episode(ground, Simulator(full_scope(ground.problem)), scorer)
    return None if simulator.failure else simulator.values[0]


@lru_cache(maxsize=4096)
def by_rule(family: Family, seed: int) -> tuple[Path, int | None]:
    """What `replan-index` does with an instance (`watch`)."""
    return watch(family.ground(seed), RuleScorer())


def ratios(scorer: Scorer, family: Family, seeds: Sequence[int], *, dead_end: float = 2.0) -> np.ndarray:
    """(S,) objective of a scorer over that of `replan-index` on instances of a family (`ratio_of`)."""
    values = ((objective_of(family.ground(seed), scorer), by_rule(family, seed)[1]) for seed in seeds)
    return np.array([ratio_of(value, rule, dead_end) for value, rule in values])


def ratio_of(value: float | None, rule: float | None, dead_end: float = 2.0) -> float:
    """An objective over another one, both scaled by K; or two of another measure that is 1 or more.

    Parameters
    ----------
    value, rule
        None at a dead end.
    dead_end
        What it is where only the first has no plan; its inverse where only the second has none.
    """
    if value is None or rule is None:
        return 1.0 if value == rule else dead_end if value is None else 1 / dead_end
    return max(1, value) / max(1, rule)  # 1 is next to nothing, and 0 is as good
