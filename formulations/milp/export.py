"""A level as a file for other solvers, written by HiGHS."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

from optalloc.errors import Fault, InputError, UnsupportedError
from optalloc.formulations.milp.arrays import build_arrays, indexed
from optalloc.formulations.milp.matrix import Matrix
from optalloc.formulations.milp.size import MAX_COLUMNS, MAX_ENTRIES, estimate_size
from optalloc.formulations.milp.variables import Columns
from optalloc.io.atomic import write_bytes
from optalloc.problem import Problem
from optalloc.scope import full_scope, windows

__all__ = ["export_milp"]

FORMATS: Final = ("mps", "lp")
PIECE: Final = 2**20
"""Bytes copied at a time."""
EMPTY_SECTIONS: Final = b"gen\nsemi\n"
"""HiGHS writes them although they are empty, and not all readers know the second."""


def export_milp(
    problem: Problem,
    path: str | Path,
    *,
    format: str | None = None,
    level: int = 0,
    max_columns: int = MAX_COLUMNS,
    max_entries: int = MAX_ENTRIES,
    on_step: Callable[[str], None] = lambda step: None,
) -> None:
    """Write one level, without caps on earlier ones, as MPS or LP; the file is whole or absent.

    Names are made of indices (``x(0_3_17)``: task 0 starts in mode 3 at tick 17), since ids may hold any text.
    The objective value in the file is the level's, scaled by K; its constant is the cost of a column ``constant``,
    which is 1.

    Parameters
    ----------
    format
        ``mps`` or ``lp``; default: the ending of ``path``.
    max_columns, max_entries
        A model that is estimated to have more columns or matrix entries is refused before it is built.
    on_step
        Told what is being done, in words.

    Raises
    ------
    InputError
        The format is neither, or the model is too large.
    UnsupportedError
        A coefficient is too large for HiGHS.
    OSError
        The file cannot be written.
    """
    kind = Path(path).suffix.lstrip(".").lower() if format is None else format
    if kind not in FORMATS:
        raise InputError(f"a MILP is written as {' or '.join(FORMATS)}, not {kind!r}")
    scope = full_scope(problem)
    found = windows(scope)
    columns, entries = estimate_size(scope, found)
    size = f"about {columns:,} columns and {entries:,} entries"
    _check_size(size, (("max_columns", columns, max_columns), ("max_entries", entries, max_entries)))
    on_step(f"building {size}")
    rows: list[str] = []
    milp = build_arrays(scope, found, level, names=rows)
    on_step(f"writing {milp.matrix.num_columns:,} columns and {len(milp.matrix.value):,} entries")
    model = _native(milp.matrix, [*_column_names(milp.columns)], rows)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, f"model.{kind}")
        _require(model.writeModel(str(file)))
        write_bytes(path, _without_empty_sections(_pieces(file)))


def _check_size(size: str, limits: tuple[tuple[str, int, int], ...]) -> None:
    faults = [
        Fault(
            name,
            f"the model would have {size}; {most:,} are allowed; raise it if there is memory, or use longer ticks",
        )
        for name, value, most in limits
        if value > most
    ]
    if faults:
        raise InputError(faults)


def _column_names(c: Columns) -> Iterator[str]:
    """A name for every column of the matrix, in order; the last is used only where no plan exists."""
    families = {
        "x": (c.x_task, c.x_mode, c.x_start),
        "rejected": (c.rejected_task,),
        "y": (c.y_replica, c.y_route, c.y_start),
        "z": (c.z_purchase,),
        "held": (c.held_replica, c.held_tick),
        "after": (c.after_tick,),
    }
    for name, parts in families.items():
        for index in zip(*(part.tolist() for part in parts), strict=True):
            yield indexed(name, index)
    yield "impossible"


def _native(matrix: Matrix, columns: list[str], rows: list[str]) -> Any:
    """The model in HiGHS, with a last column for the constant of the objective: files know none."""
    import highspy

    from optalloc.formulations.milp.native import QuietHighs

    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = matrix.num_columns + 1, matrix.num_rows
    lp.col_names_, lp.row_names_ = [*columns[: matrix.num_columns], "constant"], rows
    lp.col_cost_ = np.append(matrix.cost, matrix.offset)
    lp.col_lower_, lp.col_upper_ = np.append(matrix.lower, 1.0), np.append(matrix.upper, 1.0)
    lp.row_lower_, lp.row_upper_ = matrix.row_lower, matrix.row_upper
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_, lp.a_matrix_.index_ = matrix.start, matrix.index
    lp.a_matrix_.value_ = matrix.value
    kinds = highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger
    lp.integrality_ = [kinds[integer] for integer in (*matrix.integer.tolist(), False)]
    model = QuietHighs()
    _require(model.passModel(lp))
    return model


def _require(status: Any) -> None:
    import highspy

    if status == highspy.HighsStatus.kError:
        raise UnsupportedError("HiGHS cannot write these numbers; use coarser units, or export to cpsat")


def _pieces(file: Path) -> Iterator[bytes]:
    with file.open("rb") as stream:
        while piece := stream.read(PIECE):
            yield piece


def _without_empty_sections(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The content of an LP file without the empty sections at its end."""
    last = b""
    for piece in pieces:
        if last:
            yield last[:-64]
        last = last[-64:] + piece
    yield last.replace(EMPTY_SECTIONS + b"end", b"end")
