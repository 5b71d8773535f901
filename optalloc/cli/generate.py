"""``optalloc generate``: a seeded instance of a preset."""

from pathlib import Path
from typing import Annotated

import typer

from optalloc.cli.common import Exit, checked, finite_number, say, writable

__all__ = ["generate"]


@checked
def generate(
    preset: Annotated[str, typer.Argument(help="geo, edge, market, contended, pipeline or ladder.")],
    seed: Annotated[int, typer.Option(help="Same seed, same file.")],
    out: Annotated[Path, typer.Option(help="File to write (.json or .json.gz).")],
    tasks: Annotated[int | None, typer.Option(min=1, help="Number of tasks; default: the preset's.")] = None,
    load: Annotated[
        float | None, typer.Option(help="Least device-time of all tasks / (capacity x release span).")
    ] = None,
    coupling: Annotated[
        float | None, typer.Option(help="Weight of moving data: multiplies sizes and egress.")
    ] = None,
) -> Exit:
    """Write a synthetic instance."""
    from optalloc.generators import generate as make
    from optalloc.io.writing import write_instance

    finite_number("--load", load)
    finite_number("--coupling", coupling)
    writable("--out", out)
    chosen = {"tasks": tasks, "load": load, "coupling": coupling}
    instance = make(preset, seed=seed, **{k: v for k, v in chosen.items() if v is not None})  # type: ignore[arg-type]
    write_instance(instance, out)
    say(
        f"wrote {out}: {len(instance.tasks)} tasks, {len(instance.nodes)} nodes, {len(instance.datasets)} datasets"
    )
    return Exit.DONE
