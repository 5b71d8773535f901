"""``optalloc compose``: an instance made of real traces, rates, prices, bandwidths and dataset sizes."""

from pathlib import Path
from typing import Annotated

import typer

from optalloc.cli.common import Exit, checked, fail, finite_number, say, writable

__all__ = ["compose"]


@checked
def compose(
    data: Annotated[
        Path, typer.Option(help="Folder that holds the public data sources (see docs/instances.md).")
    ],
    size: Annotated[int, typer.Option(min=1, help="Number of tasks.")],
    seed: Annotated[int, typer.Option(help="Same seed and data, same file.")],
    out: Annotated[Path, typer.Option(help="File to write (.json or .json.gz).")],
    coupling: Annotated[float, typer.Option(help="Multiplies dataset sizes.")] = 10.0,
) -> Exit:
    """Compose an instance from real data; `meta.synthetic` lists every field that was drawn."""
    from optalloc.composition import compose as make
    from optalloc.io.writing import write_instance

    finite_number("--coupling", coupling)
    writable("--out", out)
    if not data.is_dir():
        fail("--data", f"{data}: is not a folder")
    instance = make(data, size, seed=seed, coupling=coupling)
    write_instance(instance, out)
    say(
        f"wrote {out}: {len(instance.tasks)} tasks, {len(instance.nodes)} nodes, {len(instance.datasets)} datasets"
    )
    return Exit.DONE
