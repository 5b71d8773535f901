"""``optalloc compare``: solvers side by side, each measured against the best proven bound."""

import os
from pathlib import Path
from typing import Annotated

import typer

from optalloc.cli.common import (
    Exit,
    checked,
    close_enough,
    fail,
    finite_number,
    look_here,
    print_json,
    say,
    writable,
)
from optalloc.comparison import Comparison, Row
from optalloc.output import answers_only

__all__ = ["compare"]


@checked
def compare(
    instances: Annotated[
        list[str], typer.Argument(metavar="INSTANCE...", help="Files or names of shipped instances.")
    ],
    solvers: Annotated[
        str,
        typer.Option(
            help="Names with commas between; also 'rules', 'exact', 'online', 'learned', 'references', "
            "module:function, file.py:function."
        ),
    ] = "exact,rules",
    time_limit: Annotated[float, typer.Option(help="Seconds for each run.")] = 60.0,
    seeds: Annotated[int, typer.Option(min=1, help="Seeds 0 .. N-1.")] = 1,
    max_gap: Annotated[
        float | None, typer.Option(help="Exit code 1 if a plan is further from the bound.")
    ] = None,
    threads: Annotated[int, typer.Option(min=1, help="Threads of one run.")] = 2,
    jobs: Annotated[int, typer.Option(min=1, help="Runs at a time.")] = 1,
    engine: Annotated[str, typer.Option(help="local or dask.")] = "local",
    out: Annotated[
        Path | None, typer.Option(help="Folder for comparison.json, rows.csv and the plans.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> Exit:
    """Run every solver on every instance and seed; a crash of one run never loses the others."""
    from optalloc.comparison import compare as run
    from optalloc.report import contradiction

    finite_number("--time-limit", time_limit)
    finite_number("--max-gap", max_gap)
    if out is not None:
        _can_fill(out)
    names = [name.strip() for name in solvers.split(",") if name.strip()]
    if not names:
        fail("--solvers", "name at least one solver")
    look_here(solvers)
    with answers_only():
        result = run(
            instances,
            names,
            time_limit=time_limit,
            seeds=seeds,
            threads=threads,
            jobs=jobs,
            engine=engine,
            on_row=_progress,
        )
    if out is not None:
        result.write(out)
    if json:
        print_json(result.to_dict())
    else:
        _print(result)
    for found in result.contradictions:
        say(contradiction(found))
    return _exit_code(result, max_gap)


def _can_fill(folder: Path) -> None:
    """Refuse a folder that cannot be made or written before anything runs."""
    there = folder.absolute()
    while not os.path.lexists(there):
        there = there.parent
    if not there.is_dir():
        fail("--out", f"{folder}: {there} is no folder")
    writable("--out", there / "comparison.json")


def _progress(row: Row) -> None:
    message = f": {row.message}" if row.message else ""
    say(f"{_run(row)}{row.status} in {row.seconds:.1f} s{message}")


def _run(row: Row) -> str:
    return f"{row.instance}: {row.solver} (seed {row.seed}): "


def _print(result: Comparison) -> None:
    from optalloc.report import comparison_tables, console

    for table in comparison_tables(result):
        console().print(table)


def _exit_code(result: Comparison, max_gap: float | None) -> Exit:
    if result.contradictions:
        return Exit.CONTRADICTION
    if result.interrupted:
        return Exit.INTERRUPTED
    if any(row.status == "ERROR" for row in result.rows):
        return Exit.INTERNAL
    close = [close_enough(row.gap, max_gap, _unknown(row), _run(row)) for row in result.rows]
    return Exit.DONE if all(close) else Exit.NOT_GOOD_ENOUGH


def _unknown(row: Row) -> str:
    return "there is no plan" if not row.solved else "no bound is known"
