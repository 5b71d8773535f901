"""Exact integer columns: int64 where all products fit, Python ints (dtype object) where they do not."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["Column", "ceil_column", "exact_for", "half_up_column", "integers", "largest"]

Column = NDArray[Any]
"""Integers of dtype int64 or object."""

_SAFE: Final = 2**62
"""Sums and products below this fit an int64, doubled as well as plus one another."""


def integers(values: Sequence[int]) -> Column:
    """Non-negative integers as a column."""
    return np.array(values, dtype=np.int64 if max(values, default=0) < _SAFE else object)


def largest(column: Column) -> int:
    """Largest value, 0 of an empty column."""
    return int(column.max()) if column.size else 0


def exact_for(bounds: Sequence[int], *columns: Column) -> tuple[Column, ...]:
    """The columns, in Python ints if some value computed from them could reach one of the ``bounds`` beyond int64."""
    return columns if max(bounds) < _SAFE else tuple(column.astype(object) for column in columns)


def ceil_column(numerator: Column, denominator: Column | int) -> Column:
    """numerator / denominator, rounded up."""
    return np.asarray(-(-numerator // denominator))


def half_up_column(numerator: Column, denominator: Column | int) -> Column:
    """numerator / denominator, halves up; twice the operands must fit too."""
    return np.asarray((2 * numerator + denominator) // (2 * denominator))
