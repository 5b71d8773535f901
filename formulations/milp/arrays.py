"""The same model as plain arrays, without Pyomo: for models too large for objects."""

from collections.abc import Callable, Iterable

import numpy as np

from optalloc.formulations.milp.constraints import Row
from optalloc.formulations.milp.matrix import Matrix
from optalloc.formulations.milp.model import MilpModel, all_rows, holds_empty, make_model
from optalloc.problem import Ints
from optalloc.scope import Scope, Windows

__all__ = ["build_arrays", "indexed"]


def indexed(name: str, index: Iterable[int]) -> str:
    """A name that every file format takes: ``x(0_3_17)``; a minus is written n.

    >>> indexed("staging", (3, -1, 8))
    'staging(3_n1_8)'
    """
    return f"{name}({'_'.join(map(str, index))})".replace("-", "n")


def build_arrays(
    scope: Scope,
    windows: Windows,
    level: int = 0,
    caps: tuple[int, ...] = (),
    cutoff: int | None = None,
    *,
    check: Callable[[], None] = lambda: None,
    names: list[str] | None = None,
) -> MilpModel:
    """What `optalloc.formulations.milp.build` gives, with ``matrix`` made at once and no Pyomo ``model``.

    Parameters are those of `build`. The rows come from the same functions, and the matrices are equal.

    Parameters
    ----------
    names
        Filled with the name of each row.
    """
    milp, bounded = make_model(scope, windows, level, caps, cutoff)
    rows: list[Row] = []
    for name, family in all_rows(milp.columns, bounded, check):
        for row in family:
            if not len(row.columns):
                milp.possible &= holds_empty(row)
                continue
            rows.append(row)
            if names is not None:
                names.append(indexed(name, row.key))
    if names is not None and not milp.possible:
        names.append("no_plan")
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
