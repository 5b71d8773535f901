"""Matrices of tasks by machines: assignment (OR-Library), and expected times to compute (Braun et al.)."""

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

from optalloc.entities import Task
from optalloc.instance import Instance
from optalloc.io.importing import Option, Tokens, fitting_modes, instance_of_modes, single
from optalloc.quantities import Number

__all__ = ["import_assignment", "import_etc"]


def import_assignment(paths: Sequence[str | Path], *, maximise: bool = False) -> Instance:
    """Each of n jobs takes one of n places at tick 0, for one tick; the sum of the costs is minimised.

    Parameters
    ----------
    maximise
        The published values are profits: each is imported as (largest value - value), and
        ``original value = constant - objective``.
    """
    source = single(paths)
    tokens = Tokens(source)
    count = tokens.whole("the number of jobs", 1)
    values = [tokens.wholes(count, "a cost") for _ in range(count)]
    tokens.end()
    largest = max(map(max, values))
    capacities = {f"place{index}": 1 for index in range(1, count + 1)}
    tasks = []
    for index, row in enumerate(values, 1):
        costs = [largest - value if maximise else value for value in row]
        options = [Option({place: 1}, 1, cost) for place, cost in zip(capacities, costs, strict=True)]
        tasks.append(Task(id=f"job{index}", deadline_s=1, modes=fitting_modes(options, capacities)[0]))
    original = {"original": {"sense": "max", "constant": count * largest, "factor": -1}}
    return instance_of_modes(source, capacities, tasks, {"cost": 1}, meta=original if maximise else None)


def import_etc(paths: Sequence[str | Path]) -> Instance:
    """Unrelated machines: task j takes the time in row j, column i on machine i; the makespan is minimised.

    Times are exact: a tick is the smallest decimal that the file uses.
    """
    source = single(paths)
    tokens = Tokens(source)
    count, machines = tokens.whole("the number of tasks", 1), tokens.whole("the number of machines", 1)
    tokens.rest_of_line()
    times = [[tokens.positive("a time") for _ in range(machines)] for _ in range(count)]
    tokens.end()
    decimals = max(len(time.text.partition(".")[2]) for row in times for time in row)
    capacities = {f"machine{index}": 1 for index in range(1, machines + 1)}
    tasks = []
    for index, row in enumerate(times, 1):
        ticks = [int(Fraction(time) * 10**decimals) for time in row]
        options = [Option({machine: 1}, time) for machine, time in zip(capacities, ticks, strict=True)]
        tasks.append(Task(id=f"job{index}", modes=fitting_modes(options, capacities)[0]))
    tick = Number(f"1e-{decimals}") if decimals else Number("1")
    return instance_of_modes(source, capacities, tasks, {"makespan": 1}, tick_seconds=tick)
