"""How close plan and proof come, over time, on the ladder: gap at marks, solver by solver.

    python benchmarks/ladder.py --tasks 20 50 100 --marks 10 60
    python benchmarks/ladder.py --name grid --loads 1 3 --couplings 0 1 4 --objectives completion flow --seeds 3
    python benchmarks/ladder.py --name peers --couplings 0 --objectives time --solvers auto,cpsat-plain,pyjobshop
    python benchmarks/ladder.py --name grid --report

One run of the largest mark for each instance and solver, in a process of its own: memory is that of the run, and a
crash loses nothing else. Every run is stored as it ends (NAME.jsonl in the folder of ``--out``); the same command goes
on where it was stopped. Seed 0 of everything comes first. Kernels and libraries are loaded before the clock starts;
compiling the instance counts. Tables and picture are made of what is stored, with ``--report`` without running
anything; ``--docs`` puts them into docs/benchmarks.md. ``cpsat-plain``, ``highs-plain``, ``pyjobshop``: see peers.py.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from importlib.util import find_spec
from itertools import product
from pathlib import Path

from ladder_report import draw, filled, report
from ladder_run import OBJECTIVES
from ladder_store import CRASHED, ENDED, ROOT, Run, Spec, Store, about_here, code_commit, read_run

from optalloc.io.atomic import write_text

PAGE = ROOT / "docs" / "benchmarks.md"
RESULTS = ROOT / "benchmarks" / "results"
WARMING = 300.0
"""Seconds that a process may take for loading, before and after its limit counts."""


def main() -> None:
    """Run what is not stored yet, then make the tables."""
    chosen = arguments()
    store = Store(chosen.out / f"{chosen.name}.jsonl")
    if not chosen.report:
        try:
            run_all(list(specs(chosen)), store, retry=chosen.retry)
        except KeyboardInterrupt:
            sys.exit("stopped; the same command goes on from here")
    print("\n" + report(store, chosen.marks if chosen.given_marks else None))
    save(store, chosen.marks if chosen.given_marks else None)
    if chosen.docs:
        write_text(PAGE, filled(PAGE.read_text(encoding="utf-8"), RESULTS))


def arguments() -> argparse.Namespace:
    """What to run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--name", default="ladder", help="of the series: NAME.jsonl, NAME.md and NAME.svg")
    parser.add_argument("--tasks", type=int, nargs="+", default=[20, 50, 100])
    parser.add_argument("--loads", nargs="+", default=["3"])
    parser.add_argument("--couplings", nargs="+", default=["1"])
    parser.add_argument("--objectives", nargs="+", choices=OBJECTIVES, default=["completion"])
    parser.add_argument("--seeds", type=int, default=1, help="instances 0, 1, ... of each kind")
    parser.add_argument("--solvers", default="auto")
    parser.add_argument(
        "--marks", type=float, nargs="+", help="seconds; the largest is the limit; default 10 60"
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "benchmarks", help="folder of the results")
    parser.add_argument("--retry", action="store_true", help="run again what has crashed or had to be ended")
    parser.add_argument("--report", action="store_true", help="only make the tables of what is stored")
    parser.add_argument("--docs", action="store_true", help="fill docs/benchmarks.md from benchmarks/results")
    chosen = parser.parse_args()
    chosen.given_marks = chosen.marks is not None
    chosen.marks = chosen.marks or [10.0, 60.0]
    return chosen


def specs(chosen: argparse.Namespace) -> Iterator[Spec]:
    """All runs, so ordered that one that is stopped has something of everything: by seed, small ones first."""
    solvers = chosen.solvers.split(",")
    kinds = product(
        range(chosen.seeds), chosen.tasks, chosen.loads, chosen.couplings, chosen.objectives, solvers
    )
    for seed, tasks, load, coupling, objective, solver in kinds:
        yield Spec(tasks, load, coupling, objective, seed, solver, float(max(chosen.marks)), chosen.threads)


# running ---------------------------------------------------------------------------------------------------
def run_all(asked: list[Spec], store: Store, *, retry: bool = False) -> None:
    """Run and store what is not stored, and print a line after each run."""
    for number, spec in enumerate(asked, start=1):
        commit = code_commit()
        if store.has(spec, commit, retry=retry):
            continue
        run = run_apart(spec, commit)
        store.add(run)
        print(f"[{number}/{len(asked)}] {line(run)}", flush=True)


def run_apart(spec: Spec, commit: str, warming: float = WARMING) -> Run:
    """One run in a process of its own, which ends with this one; what becomes of it is an answer in any case."""
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.json"
        asked = json.dumps({"spec": asdict(spec), "commit": commit})
        command = [sys.executable, str(Path(__file__).with_name("ladder_run.py")), asked, str(answer)]
        with (Path(folder) / "errors").open("w+", encoding="utf-8") as errors:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, start_new_session=True
            )
            try:
                process.wait(2 * spec.limit + warming)
            except subprocess.TimeoutExpired:
                message = f"did not end within {2 * spec.limit + warming:g} s"
                return Run(spec, commit, about_here(), ENDED, message)
            finally:
                end(process)
            if process.returncode == 0 and answer.exists():
                return read_run(answer.read_text(encoding="utf-8"))
            errors.seek(0)
            said = [text.strip() for text in errors if text.strip()]
    message = f"exit code {process.returncode}" + (f": {said[-1]}" if said else "")
    return Run(spec, commit, about_here(), CRASHED, message)


def end(process: "subprocess.Popen[bytes]") -> None:
    """End a process and those that it has begun."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL) if hasattr(os, "killpg") else process.kill()
        process.wait()


# showing ---------------------------------------------------------------------------------------------------
def line(run: Run) -> str:
    """One run."""
    spec = run.spec
    kind = f"load {spec.load}, coupling {spec.coupling}, {spec.objective}, seed {spec.seed}"
    gap = run.gap_at(spec.limit)
    found = "-" if gap is None else f"{gap:.2%}"
    memory = "" if run.gigabytes is None else f", {run.gigabytes:.1f} GB"
    told = f" ({run.message})" if run.message else ""
    return (
        f"n={spec.tasks} ({kind}) {spec.solver}: {found}; {run.status}{told} "
        f"{run.plan} >= {run.bound} in {run.seconds:.1f} s{memory}"
    )


def save(store: Store, marks: list[float] | None) -> None:
    """The tables and, with matplotlib, the picture beside what is stored."""
    runs = store.newest()
    if runs:
        write_text(store.path.with_suffix(".md"), report(store, marks) + "\n")
        if find_spec("matplotlib") is not None:
            draw(runs, store.path.with_suffix(".svg"))


if __name__ == "__main__":
    main()
