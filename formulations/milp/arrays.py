"""The same model as plain arrays, without Pyomo: for models too large for objects."""

from collections.abc import Callable

import numpy as np

from optalloc.formulations.milp.constraints import Row
from optalloc.formulations.milp.matrix import Matrix
from optalloc.formulations.milp.model import MilpModel, all_rows, holds_empty, make_model
from optalloc.problem import Ints
from optalloc.scope import Scope, Windows

__all__ = ["build_arrays"]


def build_arrays(
    scope: Scope,
    windows: Windows,
    level: int = 0,
    caps: tuple[int, ...] = (),
    cutoff: int | None = None,
    *,
    check: Callable[[], None] = lambda: None,
) -> MilpModel:
    """What `optalloc.formulations.milp.build` gives, with ``matrix`` made at once and no Pyomo ``model``.

    Parameters are those of `build`. The rows come from the same functions, and the matrices are equal.
    """
    milp, bounded = make_model(scope, windows, level, caps, cutoff)
    rows: list[Row] = []
    for _, family in all_rows(milp.columns, bounded, check):
        for row in family:
            if len(row.columns):
                rows.append(row)
            else:
                milp.possible &= holds_empty(row)
    milp.matrix = _assemble(milp, rows)
    return milp


def _assemble(milp: MilpModel, rows: list[Row]) -> Matrix:
    """Columns and rows side by side; ``impossible``, fixed at 0, must be 1 where no plan exists."""
    c = milp.columns
    count = c.count
    integer = np.ones(count, dtype=bool)
    integer[c.held_at : c.after_at] = False
    cost, upper = milp.costs.astype(float), np.ones(count)
    if not milp.possible:
        cost, upper, integer = np.append(cost, 0.0), np.append(upper, 0.0), np.append(integer, False)
        one: Ints = np.ones(1, dtype=np.int64)
        rows = [*rows, Row((), one * count, one, 1, None)]
    empty = np.zeros(0, dtype=np.int64)
    return Matrix(
        cost=cost,
        offset=float(milp.constant),
        lower=np.zeros(len(cost)),
        upper=upper,
        integer=integer,
        row_lower=np.array([-np.inf if row.lower is None else row.lower for row in rows], dtype=float),
        row_upper=np.array([np.inf if row.upper is None else row.upper for row in rows], dtype=float),
        start=np.cumsum([0, *(len(row.columns) for row in rows)]).astype(np.int32),
        index=np.concatenate([empty, *(row.columns for row in rows)]).astype(np.int32),
        value=np.concatenate([empty, *(row.coefficients for row in rows)]).astype(float),
    )
