"""Exact quantities of the instance that plans are measured by, worked out once per problem."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from optalloc.problem import Ints, Problem
from optalloc.schedule.names import once_each

__all__ = ["Facts", "facts"]


@dataclass(frozen=True, eq=False)
class Facts:
    """Quantities by index.

    Attributes
    ----------
    size_gb
        Per dataset.
    available
        Per dataset: first tick at which it can be read or moved.
    use_price
        Per dataset: money that each reader pays; 0 where the price is paid once.
    storage_gb
        Per site; None: unlimited.
    weights, weight_unit
        Task weights are ``weights[j] / weight_unit`` in whole numbers; penalties likewise.
    tick_hours, money_usd
        One tick in hours, one money unit in $.
    best_utility
        Per task: largest utility of any mode, 0 without modes.
    """

    size_gb: tuple[Fraction, ...]
    available: Ints
    use_price: Ints
    storage_gb: tuple[Fraction | None, ...]
    weights: list[int]
    weight_unit: int
    penalties: list[int]
    penalty_unit: int
    tick_hours: Fraction
    money_usd: Fraction
    best_utility: Ints
    home: frozenset[tuple[int, int]]
    """(dataset, site) pairs that hold the dataset from the start."""


@once_each
def facts(problem: Problem) -> Facts:
    """The quantities of a problem."""
    instance = problem.instance
    datasets = {dataset.id: dataset for dataset in instance.datasets}
    ordered = [datasets[id] for id in problem.dataset_ids]
    site_index = {id: index for index, id in enumerate(problem.site_ids)}
    storage = {site.id: None if (gb := site.storage_gb) is None else Fraction(gb) for site in instance.sites}
    tick, money = Fraction(instance.tick_seconds), Fraction(instance.money_unit_usd)
    weights, weight_unit = _whole(problem.task_weight)
    penalties, penalty_unit = _whole(problem.task_penalty)
    return Facts(
        size_gb=tuple(Fraction(dataset.size_gb) for dataset in ordered),
        available=_ints(math.ceil(Fraction(dataset.available_s) / tick) for dataset in ordered),
        use_price=_ints(
            _half_up(Fraction(dataset.price_usd) / money) if dataset.pricing == "per_use" else 0
            for dataset in ordered
        ),
        storage_gb=tuple(storage[id] for id in problem.site_ids),
        weights=weights,
        weight_unit=weight_unit,
        penalties=penalties,
        penalty_unit=penalty_unit,
        tick_hours=tick / 3600,
        money_usd=money,
        best_utility=_best_utility(problem),
        home=frozenset((d, site_index[s]) for d, dataset in enumerate(ordered) for s in dataset.sites),
    )


def _ints(values: Iterable[int]) -> Ints:
    return np.array(list(values), dtype=np.int64)


def _whole(values: tuple[Fraction, ...]) -> tuple[list[int], int]:
    """The values over their least common denominator."""
    unit = math.lcm(*(value.denominator for value in values))
    return [int(value * unit) for value in values], unit


def _half_up(value: Fraction) -> int:
    return math.floor(value + Fraction(1, 2))


def _best_utility(problem: Problem) -> Ints:
    best = np.zeros(problem.num_tasks, dtype=np.int64)
    np.maximum.at(best, problem.mode_task, problem.utility)
    return best
