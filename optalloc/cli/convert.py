"""``optalloc import`` and ``optalloc export``."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from optalloc.cli.common import Exit, checked, parse_pairs, say, writable

__all__ = ["export", "import_"]


@checked
def import_(
    format: Annotated[str, typer.Argument(help="optalloc list formats names them.")],
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Files of that format.")],
    out: Annotated[Path, typer.Option(help="File to write (.json or .json.gz).")],
    maximise: Annotated[bool, typer.Option(help="The published problem maximises.")] = False,
    option: Annotated[
        list[str] | None, typer.Option(help="NAME=VALUE for the format; may be repeated.")
    ] = None,
) -> Exit:
    """Turn a published problem into an instance."""
    from optalloc.io.formats import import_instance
    from optalloc.io.writing import write_instance

    writable("--out", out)
    options: dict[str, Any] = dict(parse_pairs("--option", option)) | ({"maximise": True} if maximise else {})
    instance = import_instance(format, paths, **options)
    write_instance(instance, out)
    say(f"wrote {out}: {len(instance.tasks)} tasks, {len(instance.nodes)} nodes")
    return Exit.DONE


class Target(StrEnum):
    """Formats that a model can be exported to."""

    MPS = "mps"
    LP = "lp"
    CPSAT = "cpsat"


@checked
def export(
    instance: Annotated[str, typer.Argument(help="File, or name of a shipped instance.")],
    to: Annotated[Target, typer.Option(help="Format.")],
    out: Annotated[Path, typer.Option(help="File to write.")],
    max_columns: Annotated[
        int | None, typer.Option(min=1, help="Refuse a larger MILP; default: 2,000,000.")
    ] = None,
    max_entries: Annotated[
        int | None, typer.Option(min=1, help="Refuse a MILP with more matrix entries; default: 30,000,000.")
    ] = None,
) -> Exit:
    """Write the exact model for another solver: the MILP as MPS or LP, or the CP-SAT model."""
    from optalloc.compilation import compile as compile_problem
    from optalloc.io.reading import read

    writable("--out", out)
    problem = compile_problem(read(instance))
    if to is Target.CPSAT:
        from optalloc.formulations.cpsat.model import export_cpsat

        export_cpsat(problem, out)
    else:
        from optalloc.formulations.milp.export import export_milp

        given = {"max_columns": max_columns, "max_entries": max_entries}
        limits = {name: most for name, most in given.items() if most is not None}
        export_milp(problem, out, format=to.value, on_step=say, **limits)
    say(f"wrote {out}")
    return Exit.DONE
