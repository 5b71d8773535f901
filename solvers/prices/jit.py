"""Kernels are compiled by numba where it is installed; without it the same code runs as plain Python, slower."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

__all__ = ["COMPILED", "kernel"]

F = TypeVar("F", bound=Callable[..., Any])

try:
    from numba import njit
except ModuleNotFoundError:
    COMPILED = False

    def kernel(function: F) -> F:
        """Leave the function as it is."""
        return function
else:
    COMPILED = True

    def kernel(function: F) -> F:
        """Compile the function at its first call, and keep the result on disk."""
        compiled: Any = njit(cache=True, nogil=True)(function)
        return cast(F, compiled)
