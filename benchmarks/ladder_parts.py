"""Time and memory of the parts of a run, by looking every few milliseconds at what each thread is doing.

Solvers need not take part: the module that a thread is in says which part is at work.
"""

import os
import sys
import threading
import time
from pathlib import Path
from types import FrameType, TracebackType

PARTS = {
    "optalloc.compilation": "compile",
    "optalloc.solvers.rules": "rules",
    "optalloc.solvers.price_bound": "bound",
    "optalloc.solvers.prices": "bound",
    "optalloc.solvers.lns": "search",
    "optalloc.solvers.cpsat": "exact",
    "optalloc.solvers.highs": "exact",
    "optalloc.solvers.highs_native": "exact",
    "optalloc.formulations": "exact",
    "pyjobshop": "exact",
    "peers": "exact",
}
"""Module or package -> part; the innermost one of a thread counts."""

PART_OF_SOURCE = {"rules": "rules", "bound": "bound", "auto": "bound", "lns": "search"}
"""Who moved plan or bound -> part; all others are exact methods."""

NAMES = ("compile", "rules", "bound", "search", "exact")

_INTERVAL = 0.02
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_GIGA = 1e9


class Watch:
    """Looks on for the time of a ``with`` block.

    Attributes
    ----------
    seconds
        Part -> seconds during which it was at work in any thread.
    gigabytes
        Part -> largest resident memory meanwhile (Linux).
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.gigabytes: dict[str, float] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look_on, name="watch", daemon=True)

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._ended.set()
        self._thread.join()

    def _look_on(self) -> None:
        before = time.perf_counter()
        while not self._ended.wait(_INTERVAL):
            now, memory = time.perf_counter(), resident()
            for part in at_work():
                self.seconds[part] = self.seconds.get(part, 0.0) + now - before
                if memory is not None:
                    self.gigabytes[part] = max(memory, self.gigabytes.get(part, 0.0))
            before = now


def at_work() -> set[str]:
    """Parts that any other thread is in."""
    own = threading.get_ident()
    found = (part_of(frame) for thread, frame in sys._current_frames().items() if thread != own)
    return {part for part in found if part is not None}


def part_of(frame: FrameType | None) -> str | None:
    """The part of the innermost function that belongs to one."""
    while frame is not None:
        part = _part_of_module(frame.f_globals.get("__name__", ""))
        if part is not None:
            return part
        frame = frame.f_back
    return None


def _part_of_module(name: str) -> str | None:
    while name:
        if name in PARTS:
            return PARTS[name]
        name = name.rpartition(".")[0]
    return None


def resident() -> float | None:
    """Resident memory of this process now, in GB; None where nobody tells."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE / _GIGA
    except (OSError, ValueError, IndexError):
        return None


def peak() -> float | None:
    """Largest resident memory of this process so far, in GB.

    Not what getrusage says: on Linux that begins with the memory of the process from which this one was made.
    """
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return _peak_of_usage()
    found = (int(line.split()[1]) * 1024 / _GIGA for line in lines if line.startswith("VmHWM"))
    return next(found, None)


def _peak_of_usage() -> float | None:
    try:
        import resource
    except ModuleNotFoundError:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / _GIGA
