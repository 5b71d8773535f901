"""A linear model as plain arrays, and how a Pyomo model becomes one."""

from dataclasses import dataclass
from operator import is_
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyomo.common.numeric_types import native_numeric_types
from pyomo.core.expr.numeric_expr import LinearExpression, MonomialTermExpression
from pyomo.environ import Constraint, Objective, Var, value
from pyomo.repn.plugins.standard_form import LinearStandardFormCompiler

from optalloc.problem import Bools, Ints

__all__ = ["Floats", "Made", "Matrix", "compile_standard_form", "flatten"]

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


@dataclass(frozen=True, eq=False)
class Made:
    """What `build` has put into a model, so that it need not be read back term by term.

    Attributes
    ----------
    variables
        The columns, in order.
    entries
        Identity of an expression -> (the expression, columns, coefficients). Expressions never change, so
        whatever row still has the expression has the entries.
    """

    variables: NDArray[np.object_]
    entries: dict[int, tuple[Any, Ints, Ints]]

    def note(self, expression: Any, index: Ints, values: Ints) -> Any:
        """Remember the entries of an expression; gives it back."""
        self.entries[id(expression)] = expression, index, values
        return expression

    def known(self, columns: list[Any]) -> dict[int, tuple[Any, Ints, Ints]]:
        """The entries, if the model still begins with the same columns."""
        same = len(columns) >= len(self.variables) and all(map(is_, columns, self.variables))
        return self.entries if same else {}


def flatten(model: Any, made: Made | None = None) -> Matrix:
    """The arrays of a Pyomo model whose rows are plain sums of terms; any other linear row goes the slower
    way.

    Column and row order are the order of declaration, so columns that an expert adds come last. A column
    may stand only once in a row.

    Parameters
    ----------
    made
        Expressions whose entries are known.
    """
    columns = list(model.component_data_objects(Var, active=True, sort=False))
    known = {} if made is None else made.known(columns)
    bodies: list[Any] = []
    lower, upper = [], []
    for row in model.component_data_objects(Constraint, active=True, sort=False):
        least, body, most = row.to_bounded_expression()
        bodies.append(body)
        lower.append(-np.inf if least is None else value(least))
        upper.append(np.inf if most is None else value(most))
    bodies.append(next(model.component_data_objects(Objective, active=True)).expr)
    entries = _entries(bodies, columns, known)
    if entries is None:
        return compile_standard_form(model)
    *rows, objective = entries
    cost, offset = _costs(*objective, len(columns))
    return Matrix(
        cost,
        offset,
        *_domains(columns),
        np.array(lower, dtype=float),
        np.array(upper, dtype=float),
        np.cumsum([0, *(len(index) for index, _ in rows)]).astype(np.int32),
        np.concatenate([np.zeros(0, dtype=np.int32), *(index for index, _ in rows)]).astype(np.int32),
        np.concatenate([np.zeros(0), *(values for _, values in rows)]),
    )


def _entries(
    bodies: list[Any], columns: list[Any], known: dict[int, tuple[Any, Ints, Ints]]
) -> list[tuple[Any, Any]] | None:
    """(columns, coefficients) of the rows and, last, of the objective; None if one is no plain sum."""
    unknown = [body for body in bodies if id(body) not in known]
    if any(body.__class__ is not LinearExpression for body in unknown):
        return None
    decoded = _decode([term for body in unknown for term in body.args], columns)
    if decoded is None:
        return None
    ends = np.cumsum([body.nargs() for body in unknown])[:-1]
    read = zip(*(np.split(part, ends) for part in decoded), strict=True)
    entries = [known[id(body)][1:] if id(body) in known else next(read) for body in bodies]
    return None if any((index < 0).any() for index, _ in entries[:-1]) else entries


def _costs(index: Ints, values: Floats, count: int) -> tuple[Floats, float]:
    """Cost of each column, and the constant, whose index is -1."""
    cost = np.zeros(count)
    is_constant = index < 0
    np.add.at(cost, index[~is_constant], values[~is_constant])
    return cost, float(values[is_constant].sum())


def _decode(terms: list[Any], columns: list[Any]) -> tuple[NDArray[np.int32], Floats] | None:
    """Column (-1: a number by itself) and coefficient of each term; None if one is nothing of the kind.

    Rows share their terms, so each different one is looked at once.
    """
    identity = np.fromiter(map(id, terms), dtype=np.int64, count=len(terms))
    different, inverse = np.unique(identity, return_inverse=True)
    where = np.empty(len(different), dtype=np.int64)
    where[inverse] = np.arange(len(terms))
    pairs = [
        term.args
        if term.__class__ is MonomialTermExpression
        else (term, None)
        if term.__class__ in native_numeric_types
        else (1.0, term)
        for term in map(terms.__getitem__, where.tolist())
    ]
    factors, variables = zip(*pairs, strict=True) if pairs else ((), ())
    index = _positions(variables, columns)
    if (index == len(columns)).any():
        return None
    values = [f if f.__class__ in native_numeric_types else value(f) for f in factors]
    return index[inverse], np.array(values, dtype=float)[inverse]


def _positions(variables: tuple[Any, ...], columns: list[Any]) -> NDArray[np.int32]:
    """Positions in ``columns``; -1 for None, ``len(columns)`` for what is not there."""
    known = np.fromiter(map(id, [*columns, None]), dtype=np.int64, count=len(columns) + 1)
    wanted = np.fromiter(map(id, variables), dtype=np.int64, count=len(variables))
    order = np.argsort(known)
    at = order[np.searchsorted(known[order], wanted).clip(max=len(columns))]
    at[known[at] != wanted] = len(columns) + 1
    return np.where(at == len(columns), -1, at.clip(max=len(columns))).astype(np.int32)


def _domains(columns: list[Any]) -> tuple[Floats, Floats, Bools]:
    """Lower and upper bounds of the columns, and which are integer; a fixed column has one value left."""
    sides = zip(*(column.bounds for column in columns), strict=True) if columns else ((), ())
    lower, upper = (np.array(side, dtype=float) for side in sides)  # None, no bound, becomes nan
    lower, upper = np.where(np.isnan(lower), -np.inf, lower), np.where(np.isnan(upper), np.inf, upper)
    for at in np.flatnonzero([column.fixed for column in columns]).tolist():
        lower[at] = upper[at] = columns[at].value
    return lower, upper, np.array([not column.is_continuous() for column in columns], dtype=bool)


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
