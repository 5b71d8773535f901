"""Generalised assignment (OR-Library, Yagiura): agents are nodes, their capacity is a knapsack."""

from collections.abc import Sequence
from pathlib import Path

from optalloc.entities import Task
from optalloc.instance import Instance
from optalloc.io.importing import Option, Tokens, fitting_modes, instance_of_modes, single

__all__ = ["import_gap"]


def import_gap(paths: Sequence[str | Path], *, maximise: bool = False) -> Instance:
    """Agent i is a node of b_i devices; job j runs at tick 0, for one tick, on a_ij of them, for c_ij.

    Parameters
    ----------
    maximise
        The published values are profits: each is imported as (largest value - value), and
        ``original value = constant - objective``.
    """
    source = single(paths)
    tokens = Tokens(source)
    agents, jobs = tokens.whole("the number of agents", 1), tokens.whole("the number of jobs", 1)
    values = [tokens.wholes(jobs, "a cost") for _ in range(agents)]
    sizes = [tokens.wholes(jobs, "a resource use", 1) for _ in range(agents)]
    capacities = {f"agent{i}": tokens.whole("a capacity") for i in range(1, agents + 1)}
    tokens.end()
    largest = max(map(max, values))
    tasks, dropped = [], 0
    for j in range(jobs):
        options = [
            Option({agent: sizes[i][j]}, 1, largest - values[i][j] if maximise else values[i][j])
            for i, agent in enumerate(capacities)
            if capacities[agent]
        ]
        modes, left_out = fitting_modes(options, capacities)
        dropped += left_out
        tasks.append(Task(id=f"job{j + 1}", deadline_s=1, modes=modes))
    meta = {"dropped_modes": dropped}
    original = {"original": {"sense": "max", "constant": jobs * largest, "factor": -1}} if maximise else {}
    return instance_of_modes(source, capacities, tasks, {"cost": 1}, meta=meta | original)
