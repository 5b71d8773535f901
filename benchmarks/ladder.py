"""How close plan and proof come, over time, on the ladder: gap at marks, solver by solver.

    python benchmarks/ladder.py --tasks 20 50 100 --marks 10 60 --out out/ladder
    python benchmarks/ladder.py --tasks 20 50 100 --loads 1 3 --couplings 0 1 4 --seeds 3 --objectives completion flow
    python benchmarks/ladder.py --tasks 50 --solvers auto,cpsat,highs --marks 10 60

One run of the largest mark for each instance and solver; the gap at an earlier mark is that of the best plan and the
best bound of the run by then. Compiling the instance counts; compiling the kernels (once for each version) does
not. With ``--out`` the table, the curves and a picture of the gap over time are written.
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import version
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import optalloc as oa
from optalloc.io.atomic import write_text
from optalloc.result import Result
from optalloc.solvers.jit import prepare

OBJECTIVES = {
    "completion": "weighted_completion=1,cost=1",
    "flow": "weighted_flow=1,cost=1",
}


@dataclass
class Run:
    """One solver on one instance.

    Attributes
    ----------
    gaps
        At each mark; None before there are a plan and a bound.
    gigabytes
        Largest resident memory of the process until the end of the run.
    """

    tasks: int
    load: str
    coupling: str
    objective: str
    seed: int
    solver: str
    gaps: list[float | None]
    status: str
    plan: int | None
    bound: int | None
    seconds: float
    gigabytes: float
    curve: list[tuple[float, float | None]]


def main() -> None:
    """Run, and print a line after each run and the table at the end."""
    chosen = arguments()
    prepare(lambda: False)
    print(header(chosen))
    runs = []
    for run in each_run(chosen):
        runs.append(run)
        print(line(run), flush=True)
    print("\n" + table(runs, chosen.marks))
    if chosen.out is not None:
        save(runs, chosen)


def arguments() -> argparse.Namespace:
    """What to run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", type=int, nargs="+", default=[20, 50, 100])
    parser.add_argument("--loads", nargs="+", default=["3"])
    parser.add_argument("--couplings", nargs="+", default=["1"])
    parser.add_argument("--objectives", nargs="+", choices=OBJECTIVES, default=["completion"])
    parser.add_argument("--seeds", type=int, default=1, help="instances 0, 1, ... of each kind")
    parser.add_argument("--solvers", default="auto")
    parser.add_argument("--marks", type=float, nargs="+", default=[10.0, 60.0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, help="folder for ladder.json, ladder.md and ladder.svg")
    return parser.parse_args()


def header(chosen: argparse.Namespace) -> str:
    """Machine, versions and settings."""
    versions = ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba", "highspy", "ortools"))
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=Path(__file__).parent, capture_output=True, text=True, check=False,
    ).stdout.strip()  # fmt: skip
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    python = sys.version.split()[0]
    return (
        f"commit {commit or 'unknown'}, {platform.machine()}, {cores} cores, Python {python}, {versions}\n"
        f"ladder, marks {chosen.marks} s, {chosen.threads} threads, solver seed 0"
    )


def each_run(chosen: argparse.Namespace) -> Iterator[Run]:
    """All runs, small ones first."""
    kinds = product(chosen.tasks, chosen.loads, chosen.couplings, chosen.objectives, range(chosen.seeds))
    for tasks, load, coupling, objective, seed in kinds:
        instance = oa.generate("ladder", tasks=tasks, load=load, coupling=coupling, seed=seed)
        instance = oa.with_objective(instance, OBJECTIVES[objective])
        for solver in chosen.solvers.split(","):
            limit = max(chosen.marks)
            result = oa.solve(instance, solver, time_limit=limit, threads=chosen.threads)
            curve = list(gaps_of(result))
            gaps = [gap_at(curve, mark) for mark in chosen.marks]
            gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
            yield Run(
                tasks, load, coupling, objective, seed, solver, gaps, result.status.value, result.objective,
                result.bound, result.seconds, gigabytes, curve,
            )  # fmt: skip


def gaps_of(result: Result) -> Iterator[tuple[float, float | None]]:
    """(seconds, gap) after each event of the first level."""
    plan = bound = None
    for point in result.curve:
        if point.level == 0:
            plan = point.objective if point.objective is not None else plan
            bound = point.bound if point.bound is not None else bound
            known = plan is not None and bound is not None
            yield point.seconds, (plan - bound) / max(1, abs(plan)) if known else None


def gap_at(curve: list[tuple[float, float | None]], mark: float) -> float | None:
    """The gap at a time."""
    return next((gap for seconds, gap in reversed(curve) if seconds <= mark), None)


def line(run: Run) -> str:
    """One run."""
    gaps = ", ".join("-" if gap is None else f"{gap:.2%}" for gap in run.gaps)
    kind = f"load {run.load}, coupling {run.coupling}, {run.objective}, seed {run.seed}"
    return (
        f"n={run.tasks} ({kind}) {run.solver}: {gaps}; {run.status} {run.plan} >= {run.bound} in {run.seconds:.1f} s, "
        f"{run.gigabytes:.1f} GB"
    )


def table(runs: list[Run], marks: list[float]) -> str:
    """Median gap by size and solver."""
    columns = " | ".join(f"{mark:g} s" for mark in marks)
    rows = [f"| tasks | solver | runs | {columns} | proven |", "|---" * (4 + len(marks)) + "|"]
    for tasks, solver in dict.fromkeys((run.tasks, run.solver) for run in runs):
        same = [run for run in runs if (run.tasks, run.solver) == (tasks, solver)]
        cells = " | ".join(cell([run.gaps[i] for run in same]) for i in range(len(marks)))
        proven = sum(run.status == "OPTIMAL" for run in same)
        rows.append(f"| {tasks:,} | {solver} | {len(same)} | {cells} | {proven} |")
    return "\n".join(rows)


def cell(gaps: list[float | None]) -> str:
    """The median; a run without plan or bound counts as the worst."""
    middle = median(1e9 if gap is None else gap for gap in gaps)
    return "-" if middle >= 1e9 else f"{middle:.2%}"


def save(runs: list[Run], chosen: argparse.Namespace) -> None:
    """Everything that was measured, the table, and a picture."""
    chosen.out.mkdir(parents=True, exist_ok=True)
    document: dict[str, Any] = {"about": header(chosen), "runs": [asdict(run) for run in runs]}
    write_text(chosen.out / "ladder.json", json.dumps(document, indent=1) + "\n")
    write_text(chosen.out / "ladder.md", f"{header(chosen)}\n\n{table(runs, chosen.marks)}\n")
    draw(runs, chosen.out / "ladder.svg")


def draw(runs: list[Run], path: Path) -> None:
    """Gap over time, one line a run."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    for run in runs:
        points = [(seconds, 100 * gap) for seconds, gap in run.curve if gap is not None]
        if points:
            label = f"n={run.tasks}, {run.solver}"
            axes.step(*zip(*points, strict=True), where="post", label=label, linewidth=1.2)
    axes.set(xscale="log", yscale="log", xlabel="seconds", ylabel="gap to the proven bound in %")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    figure.savefig(path)
    pyplot.close(figure)


if __name__ == "__main__":
    main()
