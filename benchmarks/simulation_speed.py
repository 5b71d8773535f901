"""Simulator speed: 10,000 tasks on 100 nodes; does a decision get dearer as the past grows? (CPU time)

python benchmarks/simulation_speed.py [--tasks 10000] [--nodes 100] [--load 0.8]
"""

import argparse
import random
import time
from typing import Any

import numpy as np

import optalloc as oa
from optalloc.instance import read_instance
from optalloc.problem import Problem
from optalloc.scope import full_scope
from optalloc.simulation import DISCIPLINES, Simulator, Turn, simulate
from optalloc.solvers.online.desk import OnlineDesk
from optalloc.solvers.online.index import replan_index
from optalloc.solvers.online.rules import ONLINE_RULES


def cluster(tasks: int, nodes: int, load: float, seed: int = 0) -> Problem:
    """Tasks of 1 to 8 devices on nodes of 8, two device types, runs of about an hour; no data."""
    draw = random.Random(seed)
    works = [draw.uniform(0.2, 3) * 3600 for _ in range(tasks)]
    counts = [draw.choice([1, 1, 2, 4, 8]) for _ in range(tasks)]
    span = sum(w * g for w, g in zip(works, counts, strict=True)) / (nodes * 8 * load)
    document: dict[str, Any] = {
        "format": "optalloc-instance/1",
        "name": "cluster",
        "sites": [{"id": "s"}],
        "device_types": [{"id": "a"}, {"id": "b"}],
        "nodes": [
            {
                "id": f"n{i}",
                "site": "s",
                "device_type": "ab"[i % 2],
                "devices": 8,
                "usd_per_device_hour": 1 + i % 2,
            }
            for i in range(nodes)
        ],
        "models": [{"id": "m", "domain": "x", "scaling": {"name": "linear", "parameters": {}}}],
        "throughputs": [
            {"model": "m", "device_type": t, "measured": {"1": r}} for t, r in (("a", 1), ("b", 1.5))
        ],
        "tasks": [
            {
                "id": f"t{j}",
                "model": "m",
                "release_s": round(draw.uniform(0, span)),
                "samples": round(works[j] * counts[j]),
                "device_counts": [counts[j]],
                "datasets": [],
            }
            for j in range(tasks)
        ],
        "objective": {"levels": [{"weighted_flow": 1, "cost": 1}]},
    }
    return oa.compile(read_instance(document))


def run(problem: Problem, rule: Any, discipline: str) -> tuple[float, list[float], int]:
    """(seconds, mean ms of a turn in each fifth of the run, turns)."""
    simulator = Simulator(full_scope(problem), discipline)
    began = time.process_time()
    desk = OnlineDesk(simulator)
    turns: list[float] = []

    def policy(turn: Turn) -> None:
        start = time.process_time()
        rule(desk.begin())
        turns.append(time.process_time() - start)

    simulate(simulator, policy)
    seconds = time.process_time() - began
    if simulator.failure:
        raise SystemExit(simulator.failure)
    return seconds, [1000 * float(part.mean()) for part in np.array_split(turns, 5)], len(turns)


def main() -> None:
    """Print one line for each rule and discipline."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--load", type=float, default=0.8)
    given = parser.parse_args()
    began = time.process_time()
    problem = cluster(given.tasks, given.nodes, given.load)
    print(f"{problem}; compiled in {time.process_time() - began:.1f} s")
    rules = {"fifo": ONLINE_RULES["fifo"], "replan-index": replan_index}
    for name, rule in rules.items():
        for discipline in DISCIPLINES:
            seconds, parts, count = run(problem, rule, discipline)
            shown = " ".join(f"{ms:.2f}" for ms in parts)
            print(
                f"{name:13} {discipline:8} {seconds:6.1f} s, {count} turns, ms a turn by fifths: {shown}",
                flush=True,
            )


if __name__ == "__main__":
    main()
