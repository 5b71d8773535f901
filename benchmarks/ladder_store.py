"""Runs of the ladder as they are stored: one JSON line each, in a file that is replaced as a whole after every run."""

import hashlib
import json
import os
import platform
import subprocess
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from optalloc.io.atomic import write_text

ROOT = Path(__file__).resolve().parents[1]
LIBRARIES = ("numpy", "numba", "highspy", "ortools", "pyjobshop")
CRASHED, ENDED, REFUSED, INVALID = "CRASHED", "ENDED", "REFUSED", "INVALID"
"""Besides the statuses of a result: its process died; it had to be ended; the solver does not handle the instance; its
plan or bound is wrong."""

Point = tuple[float, int | None, int | None]
"""Seconds since the call, best plan and best bound of the first level by then."""


@dataclass(frozen=True)
class Spec:
    """What was asked: an instance kind, a solver, a limit in seconds.

    Attributes
    ----------
    load, coupling
        As they are given to the generator.
    objective
        A name in `ladder_run.OBJECTIVES`.
    """

    tasks: int
    load: str
    coupling: str
    objective: str
    seed: int
    solver: str
    limit: float
    threads: int


@dataclass(frozen=True)
class Part:
    """What one part of a run took, and what it was worth.

    Attributes
    ----------
    seconds
        During which it was at work; parts in several threads overlap.
    gigabytes
        Largest resident memory of the process meanwhile; None where it was too short to be seen.
    plan, bound
        How far it has moved the plan down and the bound up, as a share of the last plan.
    """

    seconds: float = 0.0
    gigabytes: float | None = None
    plan: float = 0.0
    bound: float = 0.0


@dataclass(frozen=True)
class Run:
    """One solver on one instance, in a process of its own.

    Attributes
    ----------
    commit
        Last commit of the package's code, and a hash of what had been changed since.
    about
        Machine and versions.
    plan, bound
        Of the first level, scaled.
    reached
        Seconds to a proven gap of 1 %.
    gigabytes
        Largest resident memory of the process.
    curve
        At most some sixty points.
    """

    spec: Spec
    commit: str
    about: dict[str, str]
    status: str
    message: str = ""
    plan: int | None = None
    bound: int | None = None
    seconds: float = 0.0
    reached: float | None = None
    gigabytes: float | None = None
    parts: dict[str, Part] = field(default_factory=dict)
    curve: tuple[Point, ...] = ()

    @property
    def failed(self) -> bool:
        """Nothing was measured: it may go better another time."""
        return self.status in (CRASHED, ENDED)

    @property
    def wrong(self) -> bool:
        """The solver failed, or what it says is wrong."""
        return self.status in (INVALID, "ERROR")

    def gap_at(self, mark: float) -> float | None:
        """(plan - bound) / max(1, |plan|) by then; None without plan, bound, or so much time."""
        if mark > self.spec.limit and self.status != "OPTIMAL":
            return None
        last = next((point for point in reversed(self.curve) if point[0] <= mark), None)
        return None if last is None else gap_of(last)


def gap_of(point: Point) -> float | None:
    """The gap of a point of the curve."""
    _, plan, bound = point
    return None if plan is None or bound is None else (plan - bound) / max(1, abs(plan))


class Store:
    """The runs of one file; the last one of the same kind and commit counts."""

    def __init__(self, path: Path):
        self.path = path

    def __iter__(self) -> Iterator[Run]:
        if self.path.exists():
            yield from map(read_run, self.path.read_text(encoding="utf-8").splitlines())

    def has(self, spec: Spec, commit: str, *, retry: bool = False) -> bool:
        """That run is stored; with ``retry``, and it has not failed."""
        same = (run for run in self if (run.spec, run.commit) == (spec, commit))
        return any(not (retry and run.failed) for run in same)

    def add(self, run: Run) -> None:
        """Store a run, in place of an earlier one of the same kind and commit."""
        others = [other for other in self if (other.spec, other.commit) != (run.spec, run.commit)]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_text(self.path, "".join(map(line_of, [*others, run])))

    def newest(self) -> list[Run]:
        """The last run of every kind, whatever its commit."""
        return list({run.spec: run for run in self}.values())


def line_of(run: Run) -> str:
    """A run as a line."""
    return json.dumps(asdict(run), separators=(",", ":")) + "\n"


def read_run(line: str) -> Run:
    """The run of a line."""
    found: dict[str, Any] = json.loads(line)
    found["spec"] = Spec(**found["spec"])
    found["parts"] = {name: Part(**part) for name, part in found["parts"].items()}
    found["curve"] = tuple((seconds, plan, bound) for seconds, plan, bound in found["curve"])
    return Run(**found)


# where it ran ----------------------------------------------------------------------------------------------
def code_commit() -> str:
    """The last commit that changed the package: results and pages can be committed while a series goes on."""
    code = ("optalloc", "solvers", "formulations")
    commit = _git("log", "-1", "--format=%h", "--", *code) or "unknown"
    changed = _git("diff", "HEAD", "--", *code)
    return f"{commit}+{hashlib.sha256(changed.encode()).hexdigest()[:6]}" if changed else commit


def _git(*words: str) -> str:
    try:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip()


def about_here() -> dict[str, str]:
    """Machine and versions."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    machine = f"{_processor()}, {cores} cores"
    versions = {"Python": platform.python_version()} | {name: _version(name) for name in LIBRARIES}
    return {"machine": machine} | {name: found for name, found in versions.items() if found}


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
