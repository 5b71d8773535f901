"""Faults that a person can mend, and how they are shown."""

from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["Fault", "InputError", "OptallocError", "SolverError", "UnsupportedError"]


class OptallocError(Exception):
    """Base of every error that optalloc raises on purpose."""


@dataclass(frozen=True)
class Fault:
    """One thing wrong with an input.

    Attributes
    ----------
    path
        Where it is inside the input, e.g. ``tasks[3].release_s``; empty for the input as a whole.
    message
        What is wrong and what is allowed, in one sentence.
    source
        File or name of the input; empty when it was built in Python.
    """

    path: str
    message: str
    source: str = ""

    def __str__(self) -> str:
        return ": ".join(part for part in (self.source, self.path, self.message) if part)


class InputError(OptallocError, ValueError):
    """Malformed input. Carries every fault found, not just the first.

    Attributes
    ----------
    faults
        The faults, in the order of the input.
    """

    def __init__(self, faults: Iterable[Fault] | Fault | str):
        if isinstance(faults, str):
            faults = [Fault("", faults)]
        elif isinstance(faults, Fault):
            faults = [faults]
        self.faults: tuple[Fault, ...] = tuple(faults)
        super().__init__("\n".join(map(str, self.faults)))


class UnsupportedError(OptallocError, ValueError):
    """A well-formed request that this solver or feature does not handle; the message names the remedy."""


class SolverError(OptallocError, RuntimeError):
    """A solver broke one of its promises (an invalid plan, a rejected option, a wrong claim)."""
