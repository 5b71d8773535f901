"""Parts of a compiled search: called by kernels only, so they need no door to Python and compile faster."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from optalloc.solvers.prices.jit import COMPILED, kernel

__all__ = ["COMPILED", "kernel", "part"]

F = TypeVar("F", bound=Callable[..., Any])


def part(function: F) -> F:
    """Compile the function with those that call it; without numba it stays as it is."""
    if not COMPILED:
        return function
    from numba import njit

    compiled: Any = njit(cache=True, nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)
    return cast(F, compiled)
