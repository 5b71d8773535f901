"""Flexible job shops (.fjs): machines are nodes of one device."""

from collections.abc import Sequence
from pathlib import Path

from optalloc.entities import After, Task
from optalloc.instance import Instance
from optalloc.io.importing import Option, Tokens, fitting_modes, instance_of_modes, single

__all__ = ["import_fjsp"]

MOST_MACHINES = 100_000
"""The first line alone says how many nodes there will be; published files have up to a hundred."""


def import_fjsp(paths: Sequence[str | Path]) -> Instance:
    """Operation ``j.k`` is a task with one mode per machine, after ``j.(k-1)``; the makespan is minimised."""
    source = single(paths)
    tokens = Tokens(source)
    jobs = tokens.whole("the number of jobs", 1)
    machines = tokens.whole("the number of machines", 1, MOST_MACHINES)
    tokens.rest_of_line()
    capacities = {f"machine{index}": 1 for index in range(1, machines + 1)}
    tasks = []
    for job in range(1, jobs + 1):
        for step in range(1, tokens.whole("a number of operations") + 1):
            alternatives = tokens.whole("a number of machines", 1)
            options = [_option(tokens, machines) for _ in range(alternatives)]
            modes, _ = fitting_modes(options, capacities)
            after = (After(id=f"{job}.{step - 1}"),) if step > 1 else ()
            tasks.append(Task(id=f"{job}.{step}", modes=modes, after=after))
    tokens.end()
    return instance_of_modes(source, capacities, tasks, {"makespan": 1})


def _option(tokens: Tokens, machines: int) -> Option:
    machine = tokens.whole("a machine", 1, machines)
    return Option({f"machine{machine}": 1}, tokens.whole("a processing time", 1))
