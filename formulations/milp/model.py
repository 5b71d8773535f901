"""The time-indexed model of one objective level, in Pyomo."""

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyomo.common.gc_manager import PauseGC
from pyomo.core.expr.numeric_expr import LinearExpression, MonomialTermExpression
from pyomo.environ import Any as AnyIndex
from pyomo.environ import Binary, ConcreteModel, Constraint, Objective, SetOf, UnitInterval, Var, minimize

from optalloc.formulations.milp.constraints import FAMILIES, Row, form_rows
from optalloc.formulations.milp.matrix import Made, Matrix, flatten
from optalloc.formulations.milp.objective import shifted_form
from optalloc.formulations.milp.variables import Columns, make_columns
from optalloc.problem import Form, Ints
from optalloc.scope import Scope, Windows

__all__ = ["MilpModel", "all_rows", "build", "holds_empty", "make_model"]

Objects = NDArray[np.object_]


@dataclass(eq=False)
class MilpModel:
    """One level of a problem as a mixed-integer linear model.

    Attributes
    ----------
    columns
        What the columns mean, as arrays.
    level
        Which level of the objective is minimised.
    costs, constant
        The level of a plan is ``costs @ columns + constant``; each task's least cost is in the constant.
    model
        The Pyomo model. Components: x[j,m,t], rejected[j], y[k,q,t], z[b], held[k,t], after[t], a
        constraint block for each family of `constraints.FAMILIES`, ``limits``, ``level``. Rows may be added
        before it is solved. None where the arrays were made without Pyomo.
    possible
        False if a row without columns cannot hold: no plan exists.
    made
        Entries of the expressions that `build` has made.
    """

    columns: Columns
    level: int
    costs: Ints
    constant: int
    model: Any
    possible: bool = True
    made: Made | None = field(default=None, repr=False)

    @cached_property
    def matrix(self) -> Matrix:
        """The arrays that a solver is given."""
        with unhurried():
            return flatten(self.model, self.made)

    @cached_property
    def unit(self) -> int:
        """The greatest common factor of the costs: the level of any plan is ``constant`` plus a multiple of
        it.
        """
        return max(1, int(np.gcd.reduce(self.costs))) if len(self.costs) else 1

    @cached_property
    def scaled_matrix(self) -> Matrix:
        """`matrix` with costs in units of ``unit`` and without the constant."""
        return replace(self.matrix, cost=self.matrix.cost / self.unit, offset=0.0)

    def row_name(self, row: int) -> str:
        """Name of a row of the matrix, for messages."""
        if self.model is None:
            return f"row {row}"
        rows = self.model.component_data_objects(Constraint, active=True, sort=False)
        return str(next(islice(rows, row, None)).name)


@contextmanager
def unhurried() -> Iterator[None]:
    """Make many objects without the garbage collector looking through them again and again (most of the time else).

    Freezing and unfreezing at the end counts them as long-lived, so that they are not all looked through at once
    as soon as the collector is back.
    """
    with PauseGC():
        yield
        if gc.get_freeze_count() == 0:
            gc.freeze()
            gc.unfreeze()


def make_model(
    scope: Scope, windows: Windows, level: int, caps: tuple[int, ...], cutoff: int | None
) -> tuple[MilpModel, list[tuple[Form, int]]]:
    """The columns and costs of a level without its rows, and the forms that are bounded: caps, limits,
    cutoff.
    """
    problem = scope.problem
    bounded = list(zip(problem.levels, caps, strict=False))
    bounded += [(limit.form, limit.bound) for limit in problem.limits]
    bounded += [(problem.levels[level], cutoff)] if cutoff is not None else []
    columns = make_columns(scope, windows, [problem.levels[level], *(form for form, _ in bounded)])
    costs, constant = shifted_form(columns, problem.levels[level])
    return MilpModel(columns, level, costs, constant, None), bounded


def all_rows(
    columns: Columns, bounded: list[tuple[Form, int]], check: Callable[[], None]
) -> Iterator[tuple[str, Iterable[Row]]]:
    """(family, rows) of the whole model; ``check`` is called before every family and now and then between rows."""
    for name, family in FAMILIES.items():
        check()
        yield name, _watched(family(columns), check)
    check()
    yield "limits", form_rows(columns, bounded)


def _watched(rows: Iterator[Row], check: Callable[[], None]) -> Iterator[Row]:
    for at, row in enumerate(rows, 1):
        yield row
        if at % 16 == 0:
            check()


def build(
    scope: Scope,
    windows: Windows,
    level: int = 0,
    caps: tuple[int, ...] = (),
    cutoff: int | None = None,
    *,
    check: Callable[[], None] = lambda: None,
) -> MilpModel:
    """The Pyomo model of one level.

    Parameters
    ----------
    scope, windows
        What is decided, and where runs may start (`optalloc.scope.windows` or narrower).
    level
        Index of the level that is minimised.
    caps
        Greatest values of the earlier levels.
    cutoff
        Greatest value of the level itself; None: no such row.
    check
        Called now and then; may raise to give up (out of time).
    """
    milp, bounded = make_model(scope, windows, level, caps, cutoff)
    with unhurried():
        milp.model = ConcreteModel(name=scope.problem.instance.name)
        milp.made = Made(_add_columns(milp.model, milp.columns), {})
        for name, rows in all_rows(milp.columns, bounded, check):
            milp.possible &= _add_rows(milp.model, name, rows, milp.made)
        if not milp.possible:
            _add_contradiction(milp.model)
        milp.model.level = Objective(expr=_objective(milp, milp.made), sense=minimize)
    return milp


def _add_columns(model: Any, c: Columns) -> Objects:
    """Declare the variables in the order of the columns; returns them as one array."""
    # SetOf takes the keys as they are: unique by construction, and never looked through again.
    starts, transfers = (c.x_task, c.x_mode, c.x_start), (c.y_replica, c.y_route, c.y_start)
    model.x = Var(SetOf(_keys(*starts)), domain=Binary)
    model.rejected = Var(SetOf(c.rejected_task.tolist()), domain=Binary)
    model.y = Var(SetOf(_keys(*transfers)), domain=Binary)
    model.z = Var(SetOf(c.z_purchase.tolist()), domain=Binary)
    model.held = Var(SetOf(_keys(c.held_replica, c.held_tick)), domain=UnitInterval)
    model.after = Var(SetOf(c.after_tick.tolist()), domain=Binary)
    blocks = (model.x, model.rejected, model.y, model.z, model.held, model.after)
    return _objects([variable for block in blocks for variable in block.values()])


def _keys(*parts: Ints) -> list[tuple[int, ...]]:
    return list(zip(*(part.tolist() for part in parts), strict=True))


def _terms(coefficients: Ints, columns: Ints, variables: Objects) -> Objects:
    """``coefficient * variable`` entry by entry; equal entries share one object.

    Expressions never change, and a model of a million entries has far fewer different terms.
    """
    terms = variables[columns]
    other = np.flatnonzero(coefficients != 1)
    if len(other):
        values, rank = np.unique(coefficients[other], return_inverse=True)
        keys, inverse = np.unique(rank * len(variables) + columns[other], return_inverse=True)
        rank, column = np.divmod(keys, len(variables))
        pairs = zip(values[rank].tolist(), variables[column].tolist(), strict=True)
        terms[other] = _objects(list(map(MonomialTermExpression, pairs)))[inverse]
    return terms


def _objects(items: list[Any]) -> Objects:
    """An array that holds the items themselves, whatever they are."""
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


def _objective(milp: MilpModel, made: Made) -> Any:
    """costs @ columns + constant; the constant has no column, which is written as -1."""
    used = np.flatnonzero(milp.costs)
    terms = _terms(milp.costs[used], used, made.variables).tolist()
    expression = LinearExpression([*terms, milp.constant])
    return made.note(expression, np.append(used, -1), np.append(milp.costs[used], milp.constant))


def _add_rows(model: Any, name: str, rows: Iterable[Row], made: Made) -> bool:
    """One constraint block for a family; False if a row without columns does not hold (others are left out)."""
    block = Constraint(AnyIndex)
    model.add_component(name, block)
    rows = list(rows)
    full = [row for row in rows if len(row.columns)]
    if full:
        coefficients, columns = (np.concatenate([row[i] for row in full]) for i in (2, 1))
        terms = _terms(coefficients, columns, made.variables).tolist()
        end = np.cumsum([len(row.columns) for row in full]).tolist()
        for row, first, last in zip(full, [0, *end], end, strict=False):
            key = row.key if len(row.key) > 1 else row.key[0]
            body = LinearExpression(terms[first:last])
            block.add(key, _bounded(row, made.note(body, row.columns, row.coefficients)))
    return all(len(row.columns) or holds_empty(row) for row in rows)


def holds_empty(row: Row) -> bool:
    """Whether a row without columns holds."""
    return (row.lower or 0) <= 0 <= (row.upper or 0)


def _bounded(row: Row, body: Any) -> Any:
    return body == row.lower if row.lower == row.upper else (row.lower, body, row.upper)


def _add_contradiction(model: Any) -> None:
    """A row without columns does not hold: ``impossible`` is fixed at 0 and must be 1."""
    model.impossible = Var(bounds=(0, 0))
    model.no_plan = Constraint(expr=(1, LinearExpression([model.impossible]), None))
