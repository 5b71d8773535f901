"""Standard output and standard error: usable whatever they lead to, and standard output for answers alone."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TextIO

__all__ = ["answers_only", "give_up", "make_usable", "takes_unicode"]


def make_usable() -> None:
    """Closed streams (``>&-``) lead to nowhere; characters that an encoding lacks are written out as escapes."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  (it stays open)
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def takes_unicode(stream: TextIO) -> bool:
    """Every character can be written as it is."""
    return (stream.encoding or "").lower().replace("-", "").startswith("utf")


def give_up(stream: TextIO) -> None:
    """Lead a stream that nobody reads any more to nowhere, so that no later write or flush fails."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


@contextmanager
def answers_only() -> Iterator[None]:
    """While this holds, what others print goes to standard error: by Python, by libraries, by processes of theirs."""
    direct = _number(sys.stdout) == 1 and _number(sys.stderr) == 2
    with redirect_stdout(sys.stderr):
        if not direct:
            yield
            return
        kept = os.dup(1)
        os.dup2(2, 1)
        try:
            yield
        finally:
            _flush_libraries()
            os.dup2(kept, 1)
            os.close(kept)


def _number(stream: TextIO | None) -> int | None:
    """The descriptor behind a stream; None where there is none, as in tests and notebooks."""
    try:
        return None if stream is None else stream.fileno()
    except (AttributeError, OSError, ValueError):
        return None


def _flush_libraries() -> None:
    """What C has buffered for standard output would otherwise come later, into the answer."""
    if os.name == "posix":
        import ctypes

        ctypes.CDLL(None).fflush(None)
