"""Project scheduling of PSPLIB: multi-mode (.mm) and single-mode (.sm) files."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from optalloc.entities import After, Task
from optalloc.errors import Fault, InputError
from optalloc.instance import Instance
from optalloc.io.importing import Option, Source, fitting_modes, instance_of_modes, single

__all__ = ["import_psplib"]

Row = tuple[int, list[int]]
"""Line number and the whole numbers on it."""

_COUNT: Final = r"^[\s-]*{}\s*:\s*([0-9]{{1,15}})(?![0-9])"


@dataclass(frozen=True)
class _Job:
    """A job of the file: successors and options (duration, amount of each resource)."""

    successors: list[int]
    options: list[Row]

    @property
    def is_dummy(self) -> bool:
        """Takes no time and nothing else: source and sink."""
        return all(not any(option) for _, option in self.options)


def import_psplib(paths: Sequence[str | Path]) -> Instance:
    """Renewable resources become nodes, modes become explicit modes; the makespan is minimised.

    The first and the last job (source and sink, without duration and demand) are dropped. Files with
    nonrenewable or doubly constrained resources are refused.
    """
    source = single(paths)
    _refuse_other_resources(source)
    amounts = _availabilities(source)
    names = [f"R{index}" for index in range(1, len(amounts) + 1)]
    capacities = dict(zip(names, amounts, strict=True))
    jobs = _jobs(source, len(amounts))
    real = {number: job for number, job in jobs.items() if not (number in (1, len(jobs)) and job.is_dummy)}
    before: dict[int, list[int]] = {number: [] for number in real}
    for number, job in real.items():
        for successor in job.successors:
            if successor in real:
                before[successor].append(number)
    tasks, dropped = [], 0
    for number, job in real.items():
        options = [_option(source, row, names) for row in job.options]
        modes, left_out = fitting_modes(options, capacities)
        dropped += left_out
        after = tuple(After(id=str(other)) for other in before[number])
        tasks.append(Task(id=str(number), modes=modes, **({"after": after} if after else {})))
    return instance_of_modes(source, capacities, tasks, {"makespan": 1}, meta={"dropped_modes": dropped})


def _option(source: Source, row: Row, names: list[str]) -> Option:
    line, (ticks, *amounts) = row
    uses = {name: amount for name, amount in zip(names, amounts, strict=True) if amount}
    if ticks == 0:
        source.fail(line, "a job other than source and sink lasts 0, which has no counterpart here")
    if not uses:
        source.fail(line, "a mode that needs no resource has no counterpart here")
    return Option(uses, ticks)


def _count(source: Source, what: str) -> int:
    """The number behind a label of the head."""
    for line in source.text.split("\n"):
        found = re.match(_COUNT.format(what), line, re.ASCII)
        if found:
            return int(found[1])
    message = f"no line says how many {what.removesuffix('[^:]*')} there are; is this a PSPLIB file?"
    raise InputError(Fault("", message, source.path))


def _refuse_other_resources(source: Source) -> None:
    for kind in ("nonrenewable", "doubly constrained"):
        count = _count(source, kind)
        if count:
            message = f"has {count} {kind} resources; only renewable ones can be expressed"
            raise InputError(Fault("", message, source.path))


def _section(source: Source, title: str) -> Iterator[tuple[int, str]]:
    """(line number, text) of the lines below a title, without headings, up to the next row of asterisks."""
    inside = False
    for number, line in enumerate(source.text.split("\n"), 1):
        if line.strip().startswith(title):
            inside = True
        elif inside and line.startswith("*"):
            return
        elif inside and re.match(r"\s*[0-9]", line):
            yield number, line
    if not inside:
        raise InputError(Fault("", f"section {title!r} is missing; is this a PSPLIB file?", source.path))


def _rows(source: Source, title: str) -> list[Row]:
    rows = []
    for number, line in _section(source, title):
        words = line.split()
        if not all(re.fullmatch("[0-9]{1,15}", word, re.ASCII) for word in words):
            source.fail(number, f"expected whole numbers, got {line.strip()[:60]!r}")
        rows.append((number, [int(word) for word in words]))
    return rows


def _availabilities(source: Source) -> list[int]:
    rows = _rows(source, "RESOURCEAVAILABILITIES")
    count = _count(source, "renewable")
    if len(rows) != 1 or len(rows[0][1]) != count:
        line = rows[0][0] if rows else 1
        source.fail(line, f"expected one row with the availabilities of {count} resources")
    return rows[0][1]


def _jobs(source: Source, resources: int) -> dict[int, _Job]:
    """Job number -> job."""
    count = _count(source, "jobs[^:]*")
    options = _options(source, resources)
    jobs = {}
    for expected, (line, row) in enumerate(_rows(source, "PRECEDENCE RELATIONS"), 1):
        number, modes, successors = row[0], row[1:2], row[3:]
        if number != expected or row[2:3] != [len(successors)]:
            source.fail(line, f"expected job {expected}, how many modes and successors it has, and these")
        if any(not 1 <= successor <= count for successor in successors):
            source.fail(line, f"a successor is not one of the jobs 1 to {count}")
        given = options.get(number, [])
        if modes != [len(given)]:
            source.fail(line, f"job {number} has {len(given)} modes in REQUESTS/DURATIONS")
        jobs[number] = _Job(successors, given)
    if len(jobs) != count:
        message = f"{len(jobs)} jobs stand in PRECEDENCE RELATIONS, but the head says {count}"
        raise InputError(Fault("", message, source.path))
    return jobs


def _options(source: Source, resources: int) -> dict[int, list[Row]]:
    """Job number -> its modes as (duration, amounts); the rows of further modes leave out the job number."""
    options: dict[int, list[Row]] = {}
    number = 0
    for line, row in _rows(source, "REQUESTS/DURATIONS"):
        if len(row) == resources + 3:
            number, *row = row
        if len(row) != resources + 2 or number == 0:
            source.fail(line, f"expected mode, duration and the amounts of {resources} resources")
        modes = options.setdefault(number, [])
        if row[0] != len(modes) + 1:
            source.fail(line, f"expected mode {len(modes) + 1} of job {number}, got {row[0]}")
        modes.append((line, row[1:]))
    return options
