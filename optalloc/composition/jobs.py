"""Jobs of a real cluster: consecutive rows of a Microsoft ITP trace."""

from collections.abc import Sequence
from dataclasses import dataclass

from optalloc.composition.sources import Reader, whole
from optalloc.errors import Fault, InputError

__all__ = ["TICK", "TRACE", "Job", "offsets", "read_jobs"]

TRACE = "itp-elasticflow/sim/cluster06.csv"
TICK = 1800
"""Seconds of a tick."""
MOST_DEVICES = 8
"""Devices of the largest pool."""
SMALL = 20
"""Up to this size, windows must be small enough for a proof and tight enough to be worth one."""


@dataclass(frozen=True)
class Job:
    """A row of the trace; seconds since the start of the collection."""

    id: str
    submission: int
    iterations: int
    model: str
    batch: int
    deadline: int
    devices: int
    duration: int


_COLUMNS = {
    "submission": "submission_time",
    "iterations": "num_iteration",
    "batch": "batch_size",
    "deadline": "deadline",
    "devices": "num_gpu",
    "duration": "duration",
}


def read_jobs(reader: Reader) -> list[Job]:
    """All sound rows, sorted by submission and id."""
    jobs: dict[str, Job] = {}
    for row in reader.rows(TRACE, ["job_id", "model_name", *_COLUMNS.values()]):
        values = {name: whole(row[column]) for name, column in _COLUMNS.items()}
        job = _job(row, values)
        if job is None:
            reader.drop(TRACE, "a value is missing or not a whole number")
        elif min(job.iterations, job.batch, job.devices, job.duration) == 0 or not job.id:
            reader.drop(TRACE, "no id, or zero iterations, batch, devices or duration")
        elif job.id in jobs:
            reader.drop(TRACE, "repeated job id")
        else:
            jobs[job.id] = job
    return sorted(jobs.values(), key=lambda job: (job.submission, job.id))


def _job(row: dict[str, str], values: dict[str, int | None]) -> Job | None:
    known = {name: value for name, value in values.items() if value is not None}
    if len(known) < len(values):
        return None
    return Job(id=row["job_id"], model=row["model_name"], **known)


def offsets(jobs: Sequence[Job], size: int, offset: int | None = None) -> list[int]:
    """Offsets at which ``size`` consecutive jobs may be taken; only ``offset`` if it is given.

    Raises
    ------
    InputError
        There is none.
    """
    every = range(len(jobs) - size + 1)
    if offset is not None:
        if offset not in every:
            raise InputError(Fault("offset", f"must be from 0 to {len(jobs) - size}, got {offset}."))
        return [offset]
    found = [first for first in every if size > SMALL or suits(jobs[first : first + size])]
    if not found:
        raise InputError(Fault("size", f"no {size} consecutive jobs of {len(jobs)} in {TRACE} are suited."))
    return found


def suits(window: Sequence[Job]) -> bool:
    """A window that is small enough for a proof: 2-24 ticks, mixed device counts, no long job, no burst."""
    releases = [ticks(job.submission - window[0].submission) for job in window]
    durations = sorted(ticks(job.duration) for job in window)
    counts = {job.devices for job in window}
    return (
        2 <= max(releases) <= 24
        and durations[-1] <= 24
        and durations[len(durations) // 2] >= 3
        and max(counts) <= MOST_DEVICES
        and len(counts) >= 2
        and len(set(releases)) >= min(4, len(window) / 4)
    )


def ticks(seconds: int) -> int:
    """Seconds in ticks, rounded up."""
    return -(-seconds // TICK)
