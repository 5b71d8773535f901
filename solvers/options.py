"""Options of a solver, and threads."""

import difflib
import inspect
import os
from collections.abc import Mapping
from typing import Any

from optalloc.errors import Fault, InputError
from optalloc.solvers.registry import SolverEntry

__all__ = ["checked_options", "usable_cores"]

_MOST_THREADS = 8


def checked_options(entry: SolverEntry, options: Mapping[str, Any] | None) -> dict[str, Any]:
    """The options; unknown ones are refused, all at once, and text is read as the default's type."""
    given = dict(options or {})
    if entry.options is None:
        return given
    faults = [_unknown(entry, name) for name in given if name not in entry.options]
    faults += [
        Fault(f"options.{name}", f"{entry.name} needs it: it has no default")
        for name, default in entry.options.items()
        if default is inspect.Parameter.empty and name not in given
    ]
    if faults:
        raise InputError(faults)
    return {name: _read(name, value, entry.options[name]) for name, value in given.items()}


def _unknown(entry: SolverEntry, name: str) -> Fault:
    known = list(entry.options or ())
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known) or 'none'}"
    return Fault(f"options.{name}", f"{entry.name} has no such option; {hint}")


def _read(name: str, value: Any, default: Any) -> Any:
    """Text, as the command line gives it, in the type of the default."""
    if not isinstance(value, str) or isinstance(default, str):
        return value
    if isinstance(default, bool):
        if value.lower() not in ("true", "false"):
            raise InputError(Fault(f"options.{name}", f"must be true or false, got {value!r}"))
        return value.lower() == "true"
    if isinstance(default, int | float):
        try:
            return type(default)(value)
        except ValueError:
            wanted = "a whole number" if isinstance(default, int) else "a number"
            raise InputError(Fault(f"options.{name}", f"must be {wanted}, got {value!r}")) from None
    return value


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
