"""The objective in integers: the weight scale K, the levels and the limits."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Final

import numpy as np

from optalloc.compilation.units import LARGER_MONEY, LONGER_TICKS, Units, common_multiplier
from optalloc.errors import Fault, InputError
from optalloc.instance import Instance
from optalloc.problem import NEVER, Form, Ints, Limit, Problem
from optalloc.scope import full_scope, horizon

__all__ = ["MAX_SCALE", "Weights", "check_range", "largest_value", "limits", "scaled_levels"]

MAX_SCALE: Final = 10**6
"""Largest weight scale K that is accepted."""
_SMALLER_WEIGHTS: Final = "smaller weights, or weights with fewer decimals"


@dataclass(frozen=True)
class Weights:
    """What the tasks bring to the objective.

    Attributes
    ----------
    weight, penalty
        Of each task; penalty 0 where there is none.
    release
        Ticks.
    """

    weight: tuple[Fraction, ...]
    penalty: tuple[Fraction, ...]
    release: tuple[int, ...]


def scaled_levels(
    instance: Instance, weights: Weights, units: Units
) -> tuple[int, tuple[Form, ...], tuple[Mapping[str, Fraction], ...]]:
    """K, the levels scaled by it, and the levels as the instance writes them.

    Raises
    ------
    InputError
        K is larger than MAX_SCALE.
    """
    levels = [
        {term: Fraction(weight) for term, weight in level.items()} for level in instance.objective.levels
    ]
    factors = [_in_ticks_and_units(level, units.money) for level in levels]
    scales = [(_term_scale(t, factor, weights), t) for level in factors for t, factor in level.items()]
    scale = math.lcm(*(own for own, _ in scales))
    if scale > MAX_SCALE:
        most, term = max(scales)
        reason = (
            f"the weight scale K is {scale}, the largest allowed is {MAX_SCALE}; {term} alone needs {most}"
        )
        remedy = f"use weights of {term} and of the tasks with fewer decimals"
        raise InputError(Fault("objective.levels", f"{reason}: {remedy}"))
    return scale, tuple(_form(level, scale, weights) for level in factors), tuple(levels)


def limits(instance: Instance, weights: Weights, units: Units) -> tuple[Limit, ...]:
    """The limits of the objective; each is scaled by itself, as little as its task weights need."""
    return tuple(_limit(term, value, weights, units) for term, value in instance.objective.limits.items())


def _limit(term: str, value: Decimal, weights: Weights, units: Units) -> Limit:
    scale = _term_scale(term, Fraction(1), weights)
    largest = Fraction(value) / (units.money if term == "cost" else 1)
    bound = min(math.floor(largest * scale), NEVER)
    return Limit(term, _form({term: Fraction(1)}, scale, weights), bound, scale)


def _in_ticks_and_units(level: Mapping[str, Fraction], money: Fraction) -> dict[str, Fraction]:
    """Weights per tick, money unit and permille; only terms that count."""
    return {term: weight * (money if term == "cost" else 1) for term, weight in level.items() if weight}


def _term_scale(term: str, factor: Fraction, weights: Weights) -> int:
    """Least integer that makes factor * (task weight or penalty) whole for all tasks."""
    if term in ("makespan", "cost"):
        return factor.denominator
    values = weights.penalty if term == "rejected" else weights.weight
    return common_multiplier(factor * value for value in set(values))


def _form(level: Mapping[str, Fraction], scale: int, weights: Weights) -> Form:
    """Integer coefficients of a level."""

    def per_task(term: str, values: Sequence[Fraction]) -> Ints:
        factor = level.get(term, Fraction(0)) * scale
        if not factor:
            return np.zeros(len(values), dtype=np.int64)
        return _whole([factor * value for value in values], f"its weight in {term}, scaled by K = {scale},")

    flow = per_task("weighted_flow", weights.weight)
    return Form(
        makespan=int(level.get("makespan", 0) * scale),
        cost=int(level.get("cost", 0) * scale),
        completion=per_task("weighted_completion", weights.weight) + flow,
        tardiness=per_task("weighted_tardiness", weights.weight),
        late=per_task("late", weights.weight),
        loss=per_task("utility_loss", weights.weight),
        rejected=per_task("rejected", weights.penalty),
        placed=-_whole(
            [Fraction(int(a) * b) for a, b in zip(flow, weights.release, strict=True)],
            f"its weight in weighted_flow, scaled by K = {scale}, times its release in ticks",
        ),
    )


def _whole(values: Sequence[Fraction], what: str) -> Ints:
    """The values, one for each task, as integers."""
    faults = [
        Fault(
            f"tasks[{task}]",
            f"{what} is {value}, which must stay below 2^53 = {NEVER}: use {_SMALLER_WEIGHTS}",
        )
        for task, value in enumerate(values)
        if value >= NEVER
    ]
    if faults:
        raise InputError(faults)
    return np.array([int(value) for value in values], dtype=np.int64)


def check_range(problem: Problem) -> None:
    """Every value that a plan can have must be exact in a double.

    Raises
    ------
    InputError
        A time, a level or a limit could pass 2^53.
    """
    end = horizon(full_scope(problem))
    if end > NEVER:
        message = f"the last run could end at tick {end}, which passes 2^53 = {NEVER}: {LONGER_TICKS}"
        raise InputError(Fault("", message))
    for path, form in _named_forms(problem):
        value = largest_value(problem, form, end)
        if value > NEVER:
            times = largest_value(problem, replace(form, cost=0), end)
            remedy = LONGER_TICKS if 2 * times > value else f"{LARGER_MONEY} or shorter ticks"
            reason = f"the value could reach {value} (weights scaled by K), which passes 2^53 = {NEVER}"
            raise InputError(Fault(path, f"{reason}: {remedy}, {_SMALLER_WEIGHTS}"))


def _named_forms(problem: Problem) -> Iterator[tuple[str, Form]]:
    for number, form in enumerate(problem.levels):
        yield f"objective.levels[{number}]", form
    for limit in problem.limits:
        yield f"objective.limits.{limit.term}", limit.form


def largest_value(problem: Problem, form: Form, end: int) -> int:
    """What no plan passes: everything ends at tick ``end``, in the dearest and poorest mode, with every charge."""
    weights = [column.tolist() for column in (form.completion, form.tardiness, form.late, form.loss)]
    rejection = [
        int(a) + int(b) + 1000 * int(c) for a, b, c in zip(form.rejected, form.late, form.loss, strict=True)
    ]
    money = _largest_by_task(problem, problem.money)
    loss = _largest_by_task(problem, 1000 - problem.utility)
    tasks = sum(
        max((completion + tardiness) * end + late + lost * per_loss + form.cost * paid, rejected)
        for completion, tardiness, late, per_loss, rejected, paid, lost in zip(
            *weights, rejection, money, loss, strict=True
        )
    )
    return int(form.makespan * end + tasks + form.cost * _shared_charges(problem))


def _largest_by_task(problem: Problem, values: Ints) -> list[int]:
    """Largest value over the modes of each task, 0 for tasks without modes."""
    largest = np.zeros(problem.num_tasks, dtype=np.int64)
    np.maximum.at(largest, problem.mode_task, values)
    return [int(value) for value in largest]


def _shared_charges(problem: Problem) -> int:
    """Every purchase and the dearest route of every replica."""
    routes = (problem.route_cost[list(problem.routes_of(k))] for k in range(problem.num_replicas))
    return int(sum(problem.purchase_cost.tolist())) + sum(int(costs.max()) for costs in routes if len(costs))
