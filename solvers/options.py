"""Options of a solver, and threads."""

import inspect
import os
from collections.abc import Mapping
from typing import Any

from optalloc.errors import Fault, InputError
from optalloc.options import Kind, read_options
from optalloc.solvers.registry import SolverEntry

__all__ = ["checked_options", "usable_cores"]

_MOST_THREADS = 8


def checked_options(entry: SolverEntry, options: Mapping[str, Any] | None) -> dict[str, Any]:
    """The options, each of its default's type and not below its least value; text is read.

    Raises
    ------
    InputError
        Unknown and missing options and wrong values, all of them.
    """
    if options is not None and not isinstance(options, Mapping):
        raise TypeError(f"options must be a mapping of names to values, got {options!r}")
    given = dict(options or {})
    if entry.options is None:
        return given
    faults = [
        Fault(f"options.{name}", f"{entry.name} needs it: it has no default")
        for name, default in entry.options.items()
        if default is inspect.Parameter.empty and name not in given
    ]
    kinds = {name: _kind(default, entry.least.get(name)) for name, default in entry.options.items()}
    try:
        read = read_options(entry.name, kinds, given)
    except InputError as error:
        raise InputError([*error.faults, *faults]) from None
    if faults:
        raise InputError(faults)
    return read


def _kind(default: Any, least: float | None) -> Kind | None:
    """What an option with such a default may be; None: anything, as only its solver knows."""
    of_type = next((kind for kind in (bool, int, float) if isinstance(default, kind)), None)
    return None if of_type is None else Kind(of_type, least)


def usable_cores(threads: Any = None) -> int:
    """The number asked for, else the cores that this process may use, at most 8."""
    if threads is None:
        return min(
            len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
            _MOST_THREADS,
        )
    if isinstance(threads, bool) or not hasattr(threads, "__index__"):
        raise TypeError(f"threads must be a whole number, got {threads!r}")
    if threads < 1:
        raise InputError(Fault("threads", f"must be at least 1, got {threads}"))
    return int(threads)
