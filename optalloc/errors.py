"""Faults that a person can mend, and how they are shown."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

__all__ = [
    "Fault",
    "InputError",
    "OptallocError",
    "SolverError",
    "UnsupportedError",
    "visible",
    "visible_lines",
]

_COMMANDS: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufffe\uffff\ud800-\udfff]"
)
"""Characters that terminals obey instead of showing them, and those that no XML may hold."""


def visible(text: str) -> str:
    r"""A line of text in which control characters are written out, e.g. ESC as ``\x1b``.

    >>> visible("a\x1b[31m")
    'a\\x1b[31m'
    """
    return _COMMANDS.sub(lambda found: repr(found[0])[1:-1], text)


def visible_lines(text: str) -> str:
    """`visible` for a text of several lines."""
    return "\n".join(map(visible, text.split("\n")))


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
