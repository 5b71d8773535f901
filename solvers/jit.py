"""Kernels are compiled by numba where it is installed; without it the same code runs as plain Python, slower."""

import hashlib
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from typing import Any, Final, TypeVar, cast

__all__ = ["COMPILED", "Real", "Whole", "kernel", "part"]

COMPILED: Final = find_spec("numba") is not None
"""Kernels are compiled."""

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
    for folder in ("lns", "prices"):  # read as files: importing the packages here would go round in a circle
        for file in sorted(
            files("optalloc.solvers").joinpath(folder).iterdir(), key=lambda entry: entry.name
        ):
            if file.name.endswith(".py"):
                digest.update(file.read_bytes())
    return digest.hexdigest()
