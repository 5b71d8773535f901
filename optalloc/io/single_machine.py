"""One machine: weighted tardiness of OR-Library, and knapsacks as weighted numbers of late tasks."""

from collections.abc import Sequence
from pathlib import Path

from optalloc.entities import Task
from optalloc.errors import Fault, InputError
from optalloc.instance import Instance
from optalloc.io.importing import Option, Tokens, fitting_modes, instance_of_modes, single

__all__ = ["import_knapsack", "import_weighted_tardiness"]

MACHINE = {"machine": 1}
PER_FILE = 125
"""Instances in one file of OR-Library."""


def import_weighted_tardiness(
    paths: Sequence[str | Path], *, number: int = 1, jobs: int | None = None, first: int | None = None
) -> Instance:
    """One of the instances of a file: times, weights and due dates of one machine; weighted tardiness is minimised.

    Parameters
    ----------
    number
        Which instance of the file, from 1.
    jobs
        Jobs of each instance; by default the file is taken to hold 125.
    first
        Keep only so many jobs, with due dates ``floor(due * their total time / total time)``.
    """
    source = single(paths)
    tokens = Tokens(source)
    jobs = jobs or len(tokens) // (3 * PER_FILE)
    count = len(tokens) // (3 * jobs) if jobs else 0
    if jobs < 1 or count * 3 * jobs != len(tokens):
        message = f"{len(tokens)} numbers are not instances of {jobs or '?'} jobs; say how many jobs each has"
        raise InputError(Fault("", message, source.path))
    if not 1 <= number <= count or not 1 <= (first or jobs) <= jobs:
        message = f"holds {count} instances of {jobs} jobs; number and first must stay within that"
        raise InputError(Fault("", message, source.path))
    tokens.skip(3 * jobs * (number - 1))
    times = tokens.wholes(jobs, "a processing time", 1)
    weights, dues = tokens.wholes(jobs, "a weight"), tokens.wholes(jobs, "a due date")
    kept = first or jobs
    share, total = sum(times[:kept]), sum(times)
    tasks = [_task(j, times[j], weights[j], dues[j] * share // total) for j in range(kept)]
    name = f"{source.stem}_{number}" + (f"_first{first}" if first else "")
    return instance_of_modes(source, MACHINE, tasks, {"weighted_tardiness": 1}, name=name)


def import_knapsack(paths: Sequence[str | Path]) -> Instance:
    """Items are tasks of duration = weight, weight = profit and due date = capacity: what is packed is in time.

    The weighted number of late tasks is minimised; ``original value = sum of profits - objective``.
    """
    source = single(paths)
    tokens = Tokens(source)
    items, capacity = tokens.whole("the number of items", 1), tokens.whole("the capacity")
    pairs = [(tokens.whole("a profit"), tokens.whole("a weight", 1)) for _ in range(items)]
    if len(tokens) == items:
        tokens.wholes(items, "a mark of the solution")  # some files end with one: 1 for what is packed
    tokens.end()
    tasks = [_task(j, weight, profit, capacity) for j, (profit, weight) in enumerate(pairs)]
    original = {"sense": "max", "constant": sum(profit for profit, _ in pairs), "factor": -1}
    return instance_of_modes(source, MACHINE, tasks, {"late": 1}, meta={"original": original})


def _task(index: int, ticks: int, weight: int, due: int) -> Task:
    modes, _ = fitting_modes([Option(MACHINE, ticks)], MACHINE)
    return Task(id=f"job{index + 1}", weight=weight, due_s=due, modes=modes)
