"""How the kernels of the search are compiled, where numba is installed; else they run as plain Python, slower."""

import hashlib
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar, cast

from optalloc.solvers.prices.jit import COMPILED

__all__ = ["COMPILED", "Real", "Whole", "kernel", "part"]

Whole = Any
"""A whole number, a Python or a numpy one."""

Real = Any
"""A float, likewise."""

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile the function at its first call, and keep the result on disk."""
    return _compiled(function, {}) if COMPILED else function


def part(function: F) -> F:
    """Compile the function with those that call it: only kernels can, and in exchange it compiles faster."""
    return (
        _compiled(function, {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}) if COMPILED else function
    )


def _compiled(function: F, options: dict[str, bool]) -> F:
    import numba

    dispatcher: Any = numba.njit(cache=True, nogil=True, **options)(function)  # type: ignore[call-overload]
    kept = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if kept is not None:
        # numba looks at the file of the function alone; what it calls and the columns are in others.
        kept._source_stamp = _fingerprint()
    return cast(F, dispatcher)


@cache
def _fingerprint() -> str:
    """Changes with the source of any kernel."""
    digest = hashlib.sha256()
    for package in ("optalloc.solvers.lns", "optalloc.solvers.prices"):
        for file in sorted(files(package).iterdir(), key=lambda entry: entry.name):
            if file.name.endswith(".py"):
                digest.update(file.read_bytes())
    return digest.hexdigest()
