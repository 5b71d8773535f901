"""``optalloc solve``: a plan and its certificate."""

import time
from pathlib import Path
from typing import Annotated

import typer

from optalloc.cli.common import (
    Exit,
    close_enough,
    fail,
    finite_number,
    kept,
    look_here,
    nothing_yet,
    parse_limits,
    parse_pairs,
    print_json,
    say,
    writable,
)
from optalloc.io.atomic import same_file
from optalloc.output import answers_only
from optalloc.result import Result, Status, Termination

__all__ = ["solve"]


@kept
def solve(
    instance: Annotated[
        str, typer.Argument(help="File, or name of a shipped instance (optalloc list instances).")
    ],
    solver: Annotated[
        str, typer.Option(help="Name (optalloc list solvers), module:function or file.py:function.")
    ] = "auto",
    objective: Annotated[
        str | None, typer.Option(help="makespan=1,cost=0.1 with ';' between levels; default: the instance's.")
    ] = None,
    limit: Annotated[list[str] | None, typer.Option(help="TERM=MAX; may be repeated.")] = None,
    time_limit: Annotated[float, typer.Option(help="Seconds, compiling and model building included.")] = 60.0,
    max_gap: Annotated[
        float | None, typer.Option(help="Stop at this gap; exit code 1 if it is passed.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything that is drawn.")] = 0,
    threads: Annotated[int, typer.Option(min=1, help="Threads.")] = 2,
    start: Annotated[Path | None, typer.Option(help="Schedule file to begin from.")] = None,
    option: Annotated[
        list[str] | None, typer.Option(help="NAME=VALUE for the solver; may be repeated.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the plan here.")] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> Exit:
    """Find the best plan within the time limit, and say how far from the best possible it is."""
    from optalloc.cli.progress import Progress
    from optalloc.io.reading import read
    from optalloc.schedule import read_schedule, write_schedule
    from optalloc.solvers.interrupts import cut
    from optalloc.solvers.run import solve as run

    began = time.perf_counter()
    finite_number("--time-limit", time_limit)
    finite_number("--max-gap", max_gap)
    options = parse_pairs("--option", option)
    writable("--out", out)
    for path, written in (("--out", out), ("--option trace", options.get("trace"))):
        if written and same_file(written, instance):
            fail(path, f"{written} is the instance; choose another file")
    look_here(solver)
    try:
        given = cut(lambda: read(instance))
        begin = None if start is None else read_schedule(start)
        with Progress(f"{given.name}: {solver}", time_limit) as progress, answers_only():
            result = run(
                given,
                solver,
                time_limit=time_limit,
                max_gap=max_gap,
                seed=seed,
                threads=threads,
                start=begin,
                objective=objective,
                limits=parse_limits(limit) or None,
                options=options,
                on_event=progress.event,
            )
    except KeyboardInterrupt:
        return nothing_yet(json, instance, solver, began, seed, threads)
    if out is not None and result.schedule is not None:
        write_schedule(result.schedule, out)
    if json:
        print_json(result.to_dict())
    else:
        _print(result, out)
    return exit_code(result, max_gap)


def exit_code(result: Result, max_gap: float | None = None) -> Exit:
    """The exit code that the result stands for."""
    if result.termination is Termination.USER:
        return Exit.INTERRUPTED
    if result.status in _CODES:
        return _CODES[result.status]
    unknown = f"{result.solver} has proven no bound, so that no gap is known"
    return Exit.DONE if close_enough(result.gap, max_gap, unknown) else Exit.NOT_GOOD_ENOUGH


_CODES = {Status.ERROR: Exit.INTERNAL, Status.INFEASIBLE: Exit.INFEASIBLE, Status.NO_SOLUTION: Exit.NO_PLAN}


def _print(result: Result, out: Path | None) -> None:
    from optalloc.report import console, result_tables

    for table in result_tables(result):
        console().print(table)
    for line in (*result.info.get("traceback", ()), result.message):
        if line:
            say(line)
    if out is not None and result.schedule is not None:
        say(f"wrote {out}")
