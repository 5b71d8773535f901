"""``optalloc plot``: a Gantt chart of a plan."""

from pathlib import Path
from typing import Annotated

import typer

from optalloc.cli.common import Exit, checked, say, writable

__all__ = ["plot"]


@checked
def plot(
    instance: Annotated[str, typer.Argument(help="File, or name of a shipped instance.")],
    schedule: Annotated[Path, typer.Argument(help="Schedule file.")],
    out: Annotated[Path, typer.Option(help="File to write: .html, .png or .svg.")],
) -> Exit:
    """Draw nodes over time, transfers above."""
    from optalloc.compilation import compile as compile_problem
    from optalloc.io.reading import read
    from optalloc.plotting.page import write_gantt
    from optalloc.schedule import read_schedule, resolve

    writable("--out", out)
    problem = compile_problem(read(instance))
    plan, violations = resolve(problem, read_schedule(schedule))
    for violation in violations:
        say(f"not drawn: {violation}")
    for note in write_gantt(problem, plan, out):
        say(note)
    say(f"wrote {out}")
    return Exit.NOT_GOOD_ENOUGH if violations else Exit.DONE
