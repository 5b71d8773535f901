"""The published formats that can be imported: one line each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from optalloc.errors import InputError
from optalloc.instance import Instance
from optalloc.io.fjsp import import_fjsp
from optalloc.io.gap import import_gap
from optalloc.io.matrices import import_assignment, import_etc
from optalloc.io.psplib import import_psplib
from optalloc.io.single_machine import import_knapsack, import_weighted_tardiness
from optalloc.options import Kind, read_options

__all__ = ["FORMATS", "Format", "describe_formats", "format_names", "import_instance"]


@dataclass(frozen=True)
class Format:
    """A published format.

    Attributes
    ----------
    read
        Function of (paths, **options).
    summary
        What the format is.
    options
        Name -> what the option may be. All can be left out.
    """

    read: Callable[..., Instance]
    summary: str
    options: Mapping[str, Kind] = field(default_factory=dict)


_MAXIMISE: Final = {"maximise": Kind(bool)}
_PART: Final = {"number": Kind(int, 1), "jobs": Kind(int, 1), "first": Kind(int, 1)}

FORMATS: Final[Mapping[str, Format]] = {
    "assignment": Format(
        import_assignment, "assignment of OR-Library: n and a matrix of n x n costs", _MAXIMISE
    ),
    "etc": Format(import_etc, "expected times to compute of tasks on unrelated machines (Braun et al.)"),
    "fjsp": Format(import_fjsp, "flexible job shop (.fjs)"),
    "gap": Format(import_gap, "generalised assignment of OR-Library and Yagiura", _MAXIMISE),
    "knapsack": Format(import_knapsack, "0/1 knapsack: n and W, then profit and weight of each item"),
    "psplib-mm": Format(import_psplib, "multi-mode project scheduling of PSPLIB (.mm), renewable resources"),
    "psplib-sm": Format(import_psplib, "project scheduling of PSPLIB (.sm)"),
    "wt": Format(import_weighted_tardiness, "weighted tardiness on one machine of OR-Library", _PART),
}
"""By name."""


def format_names() -> list[str]:
    """The formats, sorted."""
    return sorted(FORMATS)


def describe_formats() -> list[dict[str, Any]]:
    """Name, description and options of every format, for lists."""
    return [
        {"name": name, "description": FORMATS[name].summary, "options": list(FORMATS[name].options)}
        for name in format_names()
    ]


def import_instance(name: str, paths: Sequence[str | Path], **options: Any) -> Instance:
    """Read published files as an instance.

    Parameters
    ----------
    name
        One of `format_names`.
    paths
        The files; most formats take one.
    options
        What the format takes, e.g. ``maximise=True`` for ``gap``; text is read, as from the command line.

    Raises
    ------
    InputError
        Unknown format, unknown or wrong options (all of them), or a malformed file (with its line).
    """
    if name not in FORMATS:
        raise InputError(f"unknown format {name!r}; known: {', '.join(format_names())}")
    chosen = FORMATS[name]
    return chosen.read(paths, **read_options(name, chosen.options, options))
