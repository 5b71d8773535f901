"""A linear model as plain arrays, and how a Pyomo model becomes one."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyomo.common.numeric_types import native_numeric_types
from pyomo.core.expr.numeric_expr import LinearExpression, MonomialTermExpression
from pyomo.environ import Constraint, Objective, Var, value
from pyomo.repn.plugins.standard_form import LinearStandardFormCompiler

from optalloc.problem import Bools

__all__ = ["Floats", "Matrix", "compile_standard_form", "flatten"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Matrix:
    """Minimise ``cost @ v + offset`` subject to ``row_lower <= A v <= row_upper``, ``lower <= v <= upper``.

    Attributes
    ----------
    integer
        Which columns are integer.
    start, index, value
        A by rows: the entries of row i are ``start[i] .. start[i + 1] - 1``.
    """

    cost: Floats
    offset: float
    lower: Floats
    upper: Floats
    integer: Bools
    row_lower: Floats
    row_upper: Floats
    start: NDArray[np.int32]
    index: NDArray[np.int32]
    value: Floats

    @property
    def num_columns(self) -> int:
        return len(self.cost)

    @property
    def num_rows(self) -> int:
        return len(self.row_lower)

    def activity(self, values: Floats) -> Floats:
        """``A @ values``."""
        total = np.zeros(self.num_rows)
        rows = np.repeat(np.arange(self.num_rows), np.diff(self.start))
        np.add.at(total, rows, self.value * values[self.index])
        return total

    def broken(self, values: Floats, tolerance: float = 1e-9) -> list[int]:
        """Rows that ``values`` break by more than ``tolerance`` (relative to their size)."""
        activity = self.activity(values)
        slack = tolerance * np.maximum(1.0, np.abs(activity))
        out = (activity < self.row_lower - slack) | (activity > self.row_upper + slack)
        return list(np.flatnonzero(out).tolist())


def flatten(model: Any) -> Matrix:
    """The arrays of a Pyomo model whose rows are plain sums of terms; any other linear row goes the slower
    way.

    Column and row order are the order of declaration, so columns that an expert adds come last. A column
    may stand only once in a row.
    """
    columns = list(model.component_data_objects(Var, active=True, sort=False))
    number = dict(zip(map(id, columns), range(len(columns)), strict=True))
    terms: list[Any] = []
    start, lower, upper = [0], [], []
    for row in model.component_data_objects(Constraint, active=True, sort=False):
        least, body, most = row.to_bounded_expression()
        if body.__class__ is not LinearExpression:
            return compile_standard_form(model)
        terms += body.args
        start.append(len(terms))
        lower.append(-np.inf if least is None else value(least))
        upper.append(np.inf if most is None else value(most))
    entries = _decode(terms, number)
    objective = next(model.component_data_objects(Objective, active=True)).expr
    if entries is None or objective.__class__ is not LinearExpression:
        return compile_standard_form(model)
    cost = np.zeros(len(columns))
    np.add.at(cost, [number[id(column)] for column in objective.linear_vars], objective.linear_coefs)
    return Matrix(
        cost,
        float(value(objective.constant)),
        *_domains(columns),
        np.array(lower, dtype=float),
        np.array(upper, dtype=float),
        np.array(start, dtype=np.int32),
        *entries,
    )


def _decode(terms: list[Any], number: dict[int, int]) -> tuple[NDArray[np.int32], Floats] | None:
    """Column and coefficient of each term; None if one is neither a variable nor a multiple of one.

    Rows share their terms, so each different one is looked at once.
    """
    identity = np.fromiter(map(id, terms), dtype=np.int64, count=len(terms))
    _, first, inverse = np.unique(identity, return_index=True, return_inverse=True)
    index: list[int | None] = []
    values: list[float] = []
    for at in first.tolist():
        factor, term = 1.0, terms[at]
        if term.__class__ is MonomialTermExpression:
            factor, term = term.args
        values.append(factor if factor.__class__ in native_numeric_types else value(factor))
        index.append(number.get(id(term)))
    if None in index:
        return None
    return np.array(index, dtype=np.int32)[inverse], np.array(values, dtype=float)[inverse]


def _domains(columns: list[Any]) -> tuple[Floats, Floats, Bools]:
    """Lower and upper bounds of the columns, and which are integer; a fixed column has one value left."""
    bounds = [(column.value, column.value) if column.fixed else column.bounds for column in columns]
    lower, upper = np.array(bounds, dtype=float).reshape(-1, 2).T  # None, no bound, becomes nan
    integer = np.array([not column.is_continuous() for column in columns], dtype=bool)
    return np.where(np.isnan(lower), -np.inf, lower), np.where(np.isnan(upper), np.inf, upper), integer


def compile_standard_form(model: Any) -> Matrix:
    """The arrays by Pyomo's own compiler: any linear model, slower."""
    form = LinearStandardFormCompiler().write(model, mixed_form=True, set_sense=None)
    columns = list(model.component_data_objects(Var, active=True, sort=False))
    number = {id(column): i for i, column in enumerate(columns)}
    order = np.array([number[id(column)] for column in form.columns], dtype=np.int64)
    rows = form.A.tocsr()
    cost = np.zeros(len(columns))
    cost[order] = form.c.toarray()[0]
    lower = np.full(rows.shape[0], -np.inf)
    upper = np.full(rows.shape[0], np.inf)
    for i, (side, kind) in enumerate(zip(form.rhs, (row.bound_type for row in form.rows), strict=True)):
        if kind <= 0:
            lower[i] = side
        if kind >= 0:
            upper[i] = side
    low, high, integer = _domains(columns)
    return Matrix(
        cost, float(form.c_offset[0]), low, high, integer, lower, upper,
        rows.indptr.astype(np.int32), order[rows.indices].astype(np.int32), rows.data.astype(float),
    )  # fmt: skip
