"""``optalloc bound``: how good can any plan be?"""

import time
from pathlib import Path
from typing import Annotated

import typer

from optalloc.cli.common import (
    Exit,
    finite_number,
    kept,
    nothing_yet,
    parse_limits,
    print_json,
    say,
    writable,
)
from optalloc.result import Result, Status, Termination

__all__ = ["bound"]


@kept
def bound(
    instance: Annotated[str, typer.Argument(help="File, or name of a shipped instance.")],
    objective: Annotated[
        str | None, typer.Option(help="makespan=1,cost=0.1 with ';' between levels; default: the instance's.")
    ] = None,
    limit: Annotated[list[str] | None, typer.Option(help="TERM=MAX; may be repeated.")] = None,
    time_limit: Annotated[float, typer.Option(help="Seconds.")] = 60.0,
    seed: Annotated[int, typer.Option(help="Seed of everything that is drawn.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Write the certificate here (optalloc verify --bound).")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> Exit:
    """Prove a lower bound of the first level by prices of capacity; works at every size."""
    from optalloc.cli.progress import Progress
    from optalloc.io.reading import read
    from optalloc.solvers.interrupts import cut
    from optalloc.solvers.options import usable_cores
    from optalloc.solvers.run import solve

    began = time.perf_counter()
    finite_number("--time-limit", time_limit)
    writable("--out", out)
    try:
        given = cut(lambda: read(instance))
        with Progress(f"{given.name}: bound", time_limit) as progress:
            result = solve(
                given,
                "bound",
                time_limit=time_limit,
                seed=seed,
                objective=objective,
                limits=parse_limits(limit) or None,
                on_event=progress.event,
            )
    except KeyboardInterrupt:
        return nothing_yet(json, instance, "bound", began, seed, usable_cores(None))
    written = out is None or _write(result, out)
    if json:
        print_json(result.to_dict())
    else:
        _print(result)
    if result.termination is Termination.USER:
        return Exit.INTERRUPTED
    if result.status in _CODES:
        return _CODES[result.status]
    return Exit.DONE if written else Exit.NO_PLAN


_CODES = {Status.INFEASIBLE: Exit.INFEASIBLE, Status.ERROR: Exit.INTERNAL}


def _write(result: Result, out: Path) -> bool:
    """Write the certificate, if there is one."""
    import json

    from optalloc.io.atomic import write_text

    certificate = result.info.get("certificate")
    if certificate is None:
        say(
            "no certificate is written: there was no time for one, no plan exists, or nothing is to be decided"
        )
        return False
    write_text(out, json.dumps(certificate, allow_nan=False, ensure_ascii=False) + "\n")
    say(f"wrote {out}")
    return True


def _print(result: Result) -> None:
    from optalloc.report import console, price_table, result_tables

    for table in result_tables(result):
        console().print(table)
    if result.message:
        say(result.message)
    certificate = result.info.get("certificate")
    if certificate is not None and certificate["prices"]:
        console().print(price_table(result.problem, certificate))
