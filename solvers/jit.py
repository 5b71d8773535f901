"""Kernels are compiled by numba where it is installed; without it the same code runs as plain Python, slower.

Compiling takes half a minute, once: the result is kept on disk. Nobody can interrupt it, so that solvers with a time
limit leave it to a process of its own (`prepare`), which goes on if they cannot wait.
"""

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, TypeVar, cast

__all__ = ["COMPILED", "Real", "Whole", "kernel", "mark", "part", "prepare", "ready"]

COMPILED: Final = find_spec("numba") is not None
"""Kernels are compiled."""

Whole = Any
"""A whole number, a Python or a numpy one."""

Real = Any
"""A float, likewise."""

_POLL_SECONDS: Final = 0.05
_LONGEST: Final = 300.0
"""Seconds after which another process that compiles is taken for dead."""

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


# compiling ahead of use --------------------------------------------------------------------------------------
def ready() -> bool:
    """Whether kernels can be had at once: there is nothing to compile, or all of it is on disk."""
    return not COMPILED or _marker() is None or cast(Path, _marker()).exists()


def mark() -> None:
    """Note that everything is compiled and on disk."""
    marker = _marker()
    if marker is not None:
        marker.touch()


def prepare(should_stop: Callable[[], bool]) -> bool:
    """Have the kernels compiled in another process and wait for it.

    Parameters
    ----------
    should_stop
        Asked while waiting; the other process goes on, for those who come later.

    Returns
    -------
    Whether they can be had now. True as well if the other process failed: then they are compiled at their first call.
    """
    if ready():
        return True
    process, began = _compile_elsewhere(), time.monotonic()
    while not ready():
        if process is not None and process.poll() is not None:
            return True
        if process is None and time.monotonic() - began > _LONGEST:
            return True
        if should_stop():
            return False
        time.sleep(_POLL_SECONDS)
    return True


@cache
def _marker() -> Path | None:
    """The file that says that everything is on disk, beside numba's own; None if nothing is kept there."""
    from optalloc.solvers.prices.kernels import dual

    kept = getattr(getattr(dual, "_cache", None), "cache_path", None)
    if kept is None or os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        return None
    python = f"{sys.version_info.major}{sys.version_info.minor}"
    return Path(kept) / f"kernels-{_fingerprint()[:16]}-numba{version('numba')}-py{python}.complete"


_running: list[subprocess.Popen[bytes]] = []


def _compile_elsewhere() -> "subprocess.Popen[bytes] | None":
    """The process that compiles; None if another program has one at work."""
    if _running:
        return _running[0]
    lock = cast(Path, _marker()).with_suffix(".lock")
    try:
        if lock.exists() and time.time() - lock.stat().st_mtime > _LONGEST:
            lock.unlink()
        lock.parent.mkdir(parents=True, exist_ok=True)
        lock.open("x").close()
    except FileExistsError:
        return None
    except OSError:
        pass  # nowhere to write: numba keeps nothing either
    command = [sys.executable, "-m", "optalloc.solvers.warming", str(lock)]
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)
    _running.append(process)
    return process
