"""Parts of a compiled search: called by kernels only, so they need no door to Python and compile faster."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from optalloc.solvers.prices.jit import COMPILED, kernel

__all__ = ["COMPILED", "Real", "Whole", "kernel", "part"]

Whole = Any
"""A whole number, a Python or a numpy one."""

Real = Any
"""A float, likewise."""

F = TypeVar("F", bound=Callable[..., Any])


def part(function: F) -> F:
    """Compile the function with those that call it; without numba it stays as it is."""
    if not COMPILED:
        return function
    import numba

    options: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return cast(F, numba.njit(cache=True, nogil=True, **options)(function))
