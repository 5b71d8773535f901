"""What the price bound and fixing are worth on the ladder: bound, gap to a plan, and starts left.

    python benchmarks/price_bound.py --tasks 20 --seconds 20

The plan is that of the given solver; gaps are to it, so they are as much its fault as the bound's.
"""

import argparse
import platform
import sys
import time
from importlib.metadata import version

import optalloc as oa
from optalloc.scope import Windows, full_scope, windows
from optalloc.solvers.auto import starts_left
from optalloc.solvers.base import Monitor
from optalloc.solvers.jit import COMPILED
from optalloc.solvers.price_bound import price_bound
from optalloc.solvers.prices.fixing import narrowed_windows


def main() -> None:
    """Print the machine, the settings, and one line a size."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", type=int, nargs="+", default=[20, 50, 100])
    parser.add_argument("--seconds", type=float, default=20.0, help="for the plan, and again for the bound")
    parser.add_argument("--solver", default="lns")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    print(
        f"{platform.machine()}, Python {sys.version.split()[0]}, numpy {version('numpy')}, compiled: {COMPILED}"
    )
    print(f"ladder, seed {chosen.seed}, plan by {chosen.solver}, {chosen.seconds:g} s each")
    for tasks in chosen.tasks:
        print(_line(tasks, chosen), flush=True)


def _line(tasks: int, chosen: argparse.Namespace) -> str:
    problem = oa.compile(oa.generate("ladder", tasks=tasks, seed=chosen.seed))
    result = oa.solve(problem, chosen.solver, time_limit=chosen.seconds, seed=chosen.seed)
    if result.plan is None or result.objective is None:
        return f"n={tasks}: no plan"
    scope = full_scope(problem)
    monitor = Monitor(scope, chosen.seconds)
    began = time.perf_counter()
    found = price_bound(scope, monitor, 0, seed=chosen.seed, plan=result.plan)
    seconds = time.perf_counter() - began
    if found.proof is None:
        return f"n={tasks}: no bound"
    bound = found.proof.certificate.bound
    before, after = (_count(w) for w in (windows(scope), narrowed_windows(found.proof, result.objective)))
    gap = (result.objective - bound) / max(1, abs(result.objective))
    return (
        f"n={tasks}: plan {result.objective}, bound {bound} in {seconds:.1f} s, gap {gap:.2%}, "
        f"starts {before:,} -> {after:,}"
    )


def _count(found: Windows) -> int:
    return starts_left(found, 0)


if __name__ == "__main__":
    main()
