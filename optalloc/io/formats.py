"""The published formats that can be imported: one line each."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from optalloc.errors import InputError
from optalloc.instance import Instance
from optalloc.io.fjsp import import_fjsp
from optalloc.io.gap import import_gap
from optalloc.io.matrices import import_assignment, import_etc
from optalloc.io.psplib import import_psplib
from optalloc.io.single_machine import import_knapsack, import_weighted_tardiness

__all__ = ["FORMATS", "describe_formats", "format_names", "import_instance"]

FORMATS: Final[Mapping[str, tuple[Callable[..., Instance], str]]] = {
    "assignment": (import_assignment, "assignment of OR-Library: n and a matrix of n x n costs"),
    "etc": (import_etc, "expected times to compute of tasks on unrelated machines (Braun et al.)"),
    "fjsp": (import_fjsp, "flexible job shop (.fjs)"),
    "gap": (import_gap, "generalised assignment of OR-Library and Yagiura"),
    "knapsack": (import_knapsack, "0/1 knapsack: n and W, then profit and weight of each item"),
    "psplib-mm": (import_psplib, "multi-mode project scheduling of PSPLIB (.mm), renewable resources"),
    "psplib-sm": (import_psplib, "project scheduling of PSPLIB (.sm)"),
    "wt": (import_weighted_tardiness, "weighted tardiness on one machine of OR-Library"),
}
"""Name -> function(paths, **options) and what the format is."""


def format_names() -> list[str]:
    """The formats, sorted."""
    return sorted(FORMATS)


def describe_formats() -> list[dict[str, Any]]:
    """Name, description and options of every format, for lists."""
    return [
        {"name": name, "description": FORMATS[name][1], "options": _options(FORMATS[name][0])}
        for name in format_names()
    ]


def _options(function: Callable[..., Instance]) -> list[str]:
    parameters = inspect.signature(function).parameters.values()
    return [parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]


def import_instance(name: str, paths: Sequence[str | Path], **options: Any) -> Instance:
    """Read published files as an instance.

    Parameters
    ----------
    name
        One of `format_names`.
    paths
        The files; most formats take one.
    options
        What the format takes, e.g. ``maximise=True`` for ``gap``.

    Raises
    ------
    InputError
        Unknown format or option, or a malformed file (with its line).
    """
    if name not in FORMATS:
        raise InputError(f"unknown format {name!r}; known: {', '.join(format_names())}")
    function, _ = FORMATS[name]
    unknown = sorted(set(options) - set(_options(function)))
    if unknown:
        takes = ", ".join(_options(function)) or "no options"
        raise InputError(f"format {name!r} does not take {', '.join(unknown)}; it takes {takes}")
    return function(paths, **options)
