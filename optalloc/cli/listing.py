"""``optalloc list``: what there is."""

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any

import typer

from optalloc.cli.common import Exit, checked, print_json

__all__ = ["list_"]


class What(StrEnum):
    """Kinds of things that have names."""

    SOLVERS = "solvers"
    FORMATS = "formats"
    INSTANCES = "instances"
    OBJECTIVES = "objectives"


@checked
def list_(
    what: Annotated[What, typer.Argument(help="What to list.")],
    json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> Exit:
    """List solvers, import formats, shipped instances or objective terms."""
    rows = _LISTS[what]()
    if json:
        print_json({what.value: rows})
    else:
        from optalloc.report import console, plain_table

        console().print(plain_table(what.value, rows))
    return Exit.DONE


def _solvers() -> list[dict[str, Any]]:
    from optalloc.solvers.registry import describe_solvers

    return describe_solvers()


def _formats() -> list[dict[str, Any]]:
    from optalloc.io.formats import describe_formats

    return describe_formats()


def _instances() -> list[dict[str, Any]]:
    from optalloc import instances

    return instances.describe()


def _objectives() -> list[dict[str, Any]]:
    from optalloc.evaluation import describe_terms

    return describe_terms()


_LISTS: dict[What, Callable[[], list[dict[str, Any]]]] = {
    What.SOLVERS: _solvers,
    What.FORMATS: _formats,
    What.INSTANCES: _instances,
    What.OBJECTIVES: _objectives,
}
