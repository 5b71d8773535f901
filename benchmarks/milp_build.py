"""How long the time-indexed MILP takes to build and to hand over to HiGHS.

200 tasks with one mode on each of 10 pools and 100 possible starts a mode: 200,000 binary columns, 1,200
rows and about 1.2 million matrix entries. Each way runs in a process of its own; CPU seconds are those of
the process, without imports.

    python benchmarks/milp_build.py [--repeat 3]
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from dataclasses import replace
from random import Random
from typing import Any

WAYS = ("pyomo", "arrays")
TASKS, POOLS, STARTS, LONGEST = 200, 10, 100, 9


def instance() -> dict[str, Any]:
    """An instance file with explicit modes; durations of 1 to 9 ticks, 5 on average."""
    random = Random(0)
    pools = [f"pool{n}" for n in range(POOLS)]

    def mode(pool: str) -> dict[str, Any]:
        uses = [{"node": pool, "devices": random.randint(1, 4)}]
        ticks, money = random.randint(1, LONGEST), random.randint(1, 99)
        return {"id": pool, "uses": uses, "duration_ticks": ticks, "usd": money}

    return {
        "format": "optalloc-instance/1",
        "name": "build-200000",
        "tick_seconds": 60,
        "money_unit_usd": 1,
        "sites": [{"id": "site"}],
        "device_types": [{"id": "device"}],
        "nodes": [{"id": p, "site": "site", "device_type": "device", "devices": 8} for p in pools],
        "tasks": [
            {"id": f"task{j}", "weight": random.randint(1, 4), "modes": [mode(p) for p in pools]}
            for j in range(TASKS)
        ],
    }


def measure(way: str) -> dict[str, Any]:
    """CPU seconds of building and of handing over, in this process."""
    from optalloc.compilation import compile
    from optalloc.formulations.milp import build, build_arrays
    from optalloc.io.reading import read_instance
    from optalloc.scope import full_scope, windows
    from optalloc.solvers.highs_native import NativeRun

    problem = compile(read_instance(instance()))
    problem = replace(problem, active=problem.active | True)  # dominated modes too: the size is what matters
    scope = full_scope(problem)
    wide = windows(scope)
    starts = replace(wide, latest=wide.earliest + STARTS - 1)
    began = time.process_time()
    milp = (build if way == "pyomo" else build_arrays)(scope, starts)
    built = time.process_time()
    matrix = milp.scaled_matrix
    flattened = time.process_time()
    run = NativeRun(matrix, seconds=1.0)
    ended = time.process_time()
    return {
        "way": way,
        "columns": run.highs.getNumCol(),
        "rows": run.highs.getNumRow(),
        "entries": run.highs.getNumNz(),
        "build": built - began,
        "flatten": flattened - built,
        "pass": ended - flattened,
        "total": ended - began,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def main() -> None:
    """Print one line a run and the least total of each way."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeat", type=int, default=3, help="runs of each way (default: %(default)s)")
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.way:
        print(json.dumps(measure(given.way)))
        return
    print("way     columns    rows   entries  build flatten  pass total (CPU s)  peak MB")
    for way in WAYS:
        rows = [_in_a_process(way) for _ in range(given.repeat)]
        for row in rows:
            print(
                f"{way:7} {row['columns']:7} {row['rows']:7} {row['entries']:9} {row['build']:6.2f} "
                f"{row['flatten']:7.2f} {row['pass']:5.2f} {row['total']:5.2f} {row['peak_mb']:18.0f}"
            )
        print(f"{way:7} least total {min(row['total'] for row in rows):.2f} s")


def _in_a_process(way: str) -> dict[str, Any]:
    command = [sys.executable, __file__, "--way", way]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(ran.stdout))


if __name__ == "__main__":
    main()
