"""How long a learned scheduler thinks: milliseconds of each sub-decision, by tasks, datasets and nodes.

python benchmarks/learned_speed.py [--repeats 20]

All tasks wait at once. One of them can read every dataset on every node, the others one dataset on one node; so a
decision about that one is as large as the table says, while the simulator stays small enough to lay out. Timed are the
scores: the task among all that wait; then its data, node and devices, its rows put in order included. `fdqn` scores
options level by level, `flat-dqn` every row. What both need beforehand, where each row would be placed, is the
simulator's part and has its own column.
"""

import argparse
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

import optalloc as oa
from optalloc.instance import read_instance
from optalloc.scope import full_scope
from optalloc.simulation import Simulator
from optalloc.solvers.learned.board import Board
from optalloc.solvers.learned.features import Event
from optalloc.solvers.learned.ground import Ground
from optalloc.solvers.learned.network import initial
from optalloc.solvers.learned.schedulers import SCHEDULERS

SIZES = (
    (10, 10, 10),
    (100, 10, 10),
    (1000, 10, 10),
    (10, 100, 10),
    (10, 10, 100),
    (10, 100, 100),
    (1000, 100, 100),
)
"""Tasks, datasets, nodes."""


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=20)
    repeats = parser.parse_args().repeats
    print("| tasks | datasets | nodes | fdqn: task | fdqn: data, node, devices | flat-dqn | simulator |")
    print("|---|---|---|---|---|---|---|")
    for size in SIZES:
        print(line(size, repeats), flush=True)


def line(size: tuple[int, int, int], repeats: int) -> str:
    """One row: medians in milliseconds."""
    ground = Ground(cluster(*size))
    board = Board(ground, Simulator(full_scope(ground.problem)))
    board.begin()
    event = Event(board)
    event.look()
    positions = board.options
    large = int(np.flatnonzero(board.waiting == 0)[0])
    weights = {name: array + np.float32(0.01) for name, array in initial(0).items()}
    fdqn, flat = (SCHEDULERS[name].make(weights) for name in ("fdqn", "flat-dqn"))
    times = (
        timed(lambda: fdqn.task(event, positions), repeats),
        timed(lambda: fdqn.row(event, large, board.choice(large)), repeats),
        timed(lambda: flat.task(event, positions), repeats),
        timed(board.look, repeats),
    )
    return "| " + " | ".join([*map(str, size), *(f"{1000 * seconds:.2f}" for seconds in times)]) + " |"


def timed(step: Callable[[], Any], repeats: int) -> float:
    """Median CPU seconds."""
    found = []
    for _ in range(repeats):
        began = time.process_time()
        step()
        found.append(time.process_time() - began)
    return median(found)


def cluster(tasks: int, datasets: int, nodes: int) -> oa.Problem:
    """Task 0 can read every dataset on every node; the others read one dataset on the node of their own site."""
    document: dict[str, Any] = {
        "format": "optalloc-instance/1",
        "name": f"wide-{tasks}-{datasets}-{nodes}",
        "tick_seconds": 10,
        "sites": [{"id": "all"}, {"id": "own"}],
        "datasets": [
            # Better data are dearer and faster nodes are dearer still: no row dominates another.
            {"id": f"d{d}", "size_gb": 1, "sites": ["all", "own"], "quality": (700 + 3 * d) / 1000,
             "relevance": {"wide": 1}, "price_usd": 1 + d, "pricing": "per_use"}
            for d in range(datasets)
        ] + [{"id": "narrow", "size_gb": 1, "sites": ["own"], "relevance": {"narrow": 1}}],
        "device_types": [{"id": f"t{n}"} for n in range(nodes)],
        "nodes": [
            {"id": f"n{n}", "site": "all" if n else "own", "device_type": f"t{n}", "devices": 2,
             "usd_per_device_hour": (10 + n) ** 2 / 100}
            for n in range(nodes)
        ],
        "models": [{"id": "wide", "domain": "wide"}, {"id": "narrow", "domain": "narrow"}],
        "throughputs": [
            {"model": model, "device_type": f"t{n}", "measured": {"1": (10 + n) / 10}}
            for n in range(nodes) for model in ("wide", "narrow")
        ],
        "tasks": [
            {"id": f"j{j}", "model": "narrow" if j else "wide", "samples": 100_000,
             "device_counts": [1], "kappa": 1, "weight": 1 + j % 4} | ({"sites": ["own"]} if j else {})
            for j in range(tasks)
        ],
        "objective": {"levels": [{"weighted_flow": 1, "cost": 1, "utility_loss": 0.01}]},
    }  # fmt: skip
    return oa.compile(read_instance(document))


if __name__ == "__main__":
    main()
