"""The objective terms of a plan: exact numbers, and the scaled integers that solvers minimise."""

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from operator import mul
from typing import Any, Final

import numpy as np

from optalloc.errors import SolverError
from optalloc.evaluation.facts import facts
from optalloc.evaluation.view import View
from optalloc.problem import REJECTED, TERMS, Form, Ints, entries
from optalloc.schedule.names import once_each

__all__ = ["describe_terms", "form_value", "plan_levels", "plan_term", "plan_terms", "text"]

Exact = int | Fraction


def text(value: Exact) -> int | str:
    """A whole number as int, any other as text such as ``57/2``: JSON without rounding."""
    value = Fraction(value)
    return value.numerator if value.denominator == 1 else f"{value.numerator}/{value.denominator}"


# one function per term --------------------------------------------------------------------------------------
def makespan(view: View) -> Exact:
    """Largest end of the placed tasks, 0 if there are none; ticks."""
    return max(0, int(view.end.max())) if len(view.end) else 0


def weighted_completion(view: View) -> Exact:
    """Sum of weight * end over placed tasks; ticks."""
    return _weighted(view, view.task, view.end)


def weighted_flow(view: View) -> Exact:
    """Sum of weight * (end - release) over placed tasks; ticks."""
    return _weighted(view, view.task, view.end - view.problem.release[view.task])


def weighted_tardiness(view: View) -> Exact:
    """Sum of weight * max(0, end - due) over placed tasks; ticks."""
    return _weighted(view, view.task, np.maximum(0, view.end - view.problem.due[view.task]))


def late(view: View) -> Exact:
    """Sum of the weights of tasks that end after their due date or are rejected."""
    over = view.end > view.problem.due[view.task]
    tasks = np.concatenate([view.task[over], _rejected(view)])
    return _weighted(view, tasks, np.ones_like(tasks))


def rejected(view: View) -> Exact:
    """Sum of the penalties of rejected tasks."""
    known = facts(view.problem)
    total = sum(known.penalties[task] for task in _rejected(view).tolist())
    return _short(Fraction(total, known.penalty_unit))


def cost(view: View) -> Exact:
    """Own money of each run, each transfer, and each purchase once; money units."""
    _, at = entries(view.problem.buy_ptr, view.mode)
    bought = np.unique(view.problem.buy_purchase[at])
    runs = int(view.problem.money[view.mode].sum())
    moves = sum(transfer.cost for transfer in view.plan.transfers)
    return runs + moves + int(view.problem.purchase_cost[bought].sum())


def utility_loss(view: View) -> Exact:
    """Sum of weight * (1000 - utility in permille), where a rejected task has utility 0."""
    tasks = np.concatenate([view.task, _rejected(view)])
    lost = np.full(len(tasks), 1000, dtype=np.int64)
    lost[: len(view.task)] -= view.problem.utility[view.mode]
    return _weighted(view, tasks, lost)


_FUNCTIONS: Final[Mapping[str, Callable[[View], Exact]]] = {
    "makespan": makespan,
    "weighted_completion": weighted_completion,
    "weighted_flow": weighted_flow,
    "weighted_tardiness": weighted_tardiness,
    "late": late,
    "rejected": rejected,
    "cost": cost,
    "utility_loss": utility_loss,
}


def describe_terms() -> list[dict[str, Any]]:
    """Name and meaning of every term that an objective or a limit may name."""
    return [{"term": term, "meaning": (_FUNCTIONS[term].__doc__ or "").rstrip(".")} for term in TERMS]


def plan_term(view: View, term: str) -> Exact:
    """One term of the plan, unscaled: time in ticks, cost in money units, task weights applied."""
    return _FUNCTIONS[term](view)


def plan_terms(view: View) -> dict[str, Exact]:
    """Every term of the plan: see `plan_term`."""
    return {term: plan_term(view, term) for term in TERMS}


def _rejected(view: View) -> Ints:
    return np.flatnonzero(view.scope.exists & (view.plan.mode == REJECTED))


def _weighted(view: View, tasks: Ints, values: Ints) -> Exact:
    """Sum of task weight * value, exact at any magnitude."""
    known = facts(view.problem)
    total = sum(
        known.weights[task] * value for task, value in zip(tasks.tolist(), values.tolist(), strict=True)
    )
    return _short(Fraction(total, known.weight_unit))


def _short(value: Fraction) -> Exact:
    return value.numerator if value.denominator == 1 else value


# levels -----------------------------------------------------------------------------------------------------
def plan_levels(view: View, terms: Mapping[str, Exact]) -> tuple[int, ...]:
    """The levels of the objective, scaled, computed twice: from the written weights and as solvers see them.

    Raises
    ------
    SolverError
        If the two differ: then what solvers minimise is not what the instance asks for.
    """
    problem, unit = view.problem, facts(view.problem).money_usd
    written = tuple(_written_level(weights, terms, unit) * problem.scale for weights in problem.level_weights)
    seen = tuple(form_value(view, form) for form in problem.levels)
    if written != seen:
        raise SolverError(f"the objective was compiled wrongly: {seen} instead of {tuple(map(str, written))}")
    return seen


def _written_level(
    weights: Mapping[str, Fraction], terms: Mapping[str, Exact], money_usd: Fraction
) -> Fraction:
    return sum((w * terms[t] * (money_usd if t == "cost" else 1) for t, w in weights.items()), Fraction(0))


def form_value(view: View, form: Form) -> int:
    """The value of a plan in an integer combination of terms, in whole Python numbers."""
    tasks, out = view.task, _rejected(view)
    lists = _coefficients(form)
    value = form.makespan * int(makespan(view)) + form.cost * int(cost(view))
    value += _dot(lists["completion"], tasks, view.end)
    value += _dot(lists["tardiness"], tasks, np.maximum(0, view.end - view.problem.due[tasks]))
    value += _dot(lists["late"], tasks, view.end > view.problem.due[tasks])
    value += _dot(lists["loss"], tasks, 1000 - view.problem.utility[view.mode])
    value += _dot(lists["placed"], tasks, np.ones_like(tasks))
    for name, times in (("rejected", 1), ("late", 1), ("loss", 1000)):
        value += times * _dot(lists[name], out, np.ones_like(out))
    return value


@once_each
def _coefficients(form: Form) -> dict[str, list[int]]:
    """The arrays of a form as lists of Python ints."""
    names = ("completion", "tardiness", "late", "loss", "rejected", "placed")
    return {name: getattr(form, name).tolist() if getattr(form, name).any() else [] for name in names}


def _dot(coefficients: list[int], tasks: Ints, values: Iterable[Any]) -> int:
    """Sum of coefficient * value over tasks; an empty list stands for zeros."""
    if not coefficients:
        return 0
    return sum(
        map(mul, map(coefficients.__getitem__, tasks.tolist()), np.asarray(values, dtype=np.int64).tolist())
    )
