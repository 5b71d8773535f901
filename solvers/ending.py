"""From an outcome and the monitor to a Result: the only place where statuses are given."""

from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from platform import python_version
from typing import Any, Final

from optalloc.evaluation import Evaluation, evaluate
from optalloc.result import LevelResult, Result, Status, Termination
from optalloc.schedule import to_schedule
from optalloc.solvers.base import Monitor, Outcome
from optalloc.solvers.registry import SolverEntry

__all__ = ["Run", "infeasible_result", "result_of"]

_LIBRARIES: Final = ("optalloc", "numpy")


@dataclass
class Run:
    """What a result says beside the outcome.

    Attributes
    ----------
    sha256
        Hash of the instance as it was given; with another objective the problem's own differs.
    failed
        How the solver broke a promise, if it did.
    """

    entry: SolverEntry
    monitor: Monitor
    seed: int
    threads: int
    sha256: str
    notes: tuple[str, ...] = ()
    failed: str = ""
    reasons: dict[str, tuple[str, ...]] = field(default_factory=dict)


def infeasible_result(run: Run, reasons: dict[str, tuple[str, ...]]) -> Result:
    """No plan exists, which was shown without a solver."""
    run.reasons = reasons
    return result_of(run, Outcome(Termination.PROVEN, infeasible=True))


def result_of(run: Run, outcome: Outcome) -> Result:
    """The certificate of a run."""
    monitor = run.monitor
    evaluation = _evaluated(monitor)
    failed = run.failed or _contradiction(monitor, outcome)
    levels = () if failed and evaluation is None else _levels(monitor, with_bounds=not failed)
    status = _status(evaluation, levels, outcome, failed)
    seconds = monitor.elapsed
    return Result(
        problem=monitor.scope.problem,
        solver=run.entry.name,
        status=status,
        termination=_termination(status, levels, outcome, monitor),
        levels=levels,
        plan=monitor.best,
        schedule=_schedule(run),
        evaluation=evaluation,
        seconds=seconds,
        seed=run.seed,
        threads=run.threads,
        curve=tuple(monitor.curve),
        message=failed or outcome.message,
        notes=(*monitor.scope.problem.notes, *run.notes),
        reasons=run.reasons,
        versions=_versions(run.entry.libraries),
        info=_info(run, outcome, seconds),
    )


def _evaluated(monitor: Monitor) -> Evaluation | None:
    if monitor.best is None:
        return None
    return evaluate(monitor.scope.problem, monitor.best, scope=monitor.scope)


def _schedule(run: Run) -> Any:
    plan = run.monitor.best
    return None if plan is None else to_schedule(run.monitor.scope.problem, plan, sha256=run.sha256)


def _contradiction(monitor: Monitor, outcome: Outcome) -> str:
    """How what the solver says contradicts what is known, if it does."""
    if outcome.infeasible and monitor.best is not None:
        return "the solver says that no plan exists, but a verified plan is held"
    for level, (bound, by) in sorted(monitor.bounds.items()):
        if monitor.best is not None and bound > monitor.values[level]:
            return f"{by} bounds level {level} by {bound}, but a verified plan has {monitor.values[level]}"
    if outcome.termination is Termination.PROVEN and monitor.best is None and not outcome.infeasible:
        return "the solver says it is done, but holds neither a plan nor a proof that there is none"
    return ""


def _levels(monitor: Monitor, *, with_bounds: bool) -> tuple[LevelResult, ...]:
    """Every level; bounds after a level that is not proven hold only under what was achieved there."""
    levels: list[LevelResult] = []
    for level in range(len(monitor.scope.problem.levels)):
        objective = monitor.values[level] if monitor.values else None
        bound, by = monitor.bounds.get(level, (None, None)) if with_bounds else (None, None)
        conditional = any(not earlier.proven for earlier in levels)
        levels.append(LevelResult(objective, bound, by, conditional))
    return tuple(levels)


def _status(
    evaluation: Evaluation | None, levels: tuple[LevelResult, ...], outcome: Outcome, failed: str
) -> Status:
    if failed:
        return Status.ERROR
    if evaluation is None:
        return Status.INFEASIBLE if outcome.infeasible else Status.NO_SOLUTION
    return Status.OPTIMAL if all(level.proven for level in levels) else Status.FEASIBLE


def _termination(
    status: Status, levels: tuple[LevelResult, ...], outcome: Outcome, monitor: Monitor
) -> Termination:
    """Why it stopped: a proof first, then Ctrl-C, then what the solver says."""
    if status is Status.ERROR:
        return Termination.ERROR
    if status in (Status.OPTIMAL, Status.INFEASIBLE):
        return Termination.PROVEN
    if monitor.interrupted:
        return Termination.USER
    if outcome.termination not in (Termination.PROVEN, Termination.GAP):
        return outcome.termination
    close = all(level.gap is not None and level.gap <= (monitor.max_gap or 0) for level in levels)
    return Termination.GAP if close and monitor.best is not None else Termination.COMPLETED


def _info(run: Run, outcome: Outcome, seconds: float) -> dict[str, Any]:
    refused = any(note.startswith("the start is refused") for note in run.notes)
    started = any(point.source == "start" for point in run.monitor.curve)
    warm = "refused" if refused else "accepted" if started else "none"
    overshoot = max(0.0, seconds - run.monitor.time_limit)
    return {**outcome.info, "warm_start": warm, "overshoot": round(overshoot, 3)}


def _versions(libraries: tuple[str, ...]) -> dict[str, str]:
    return {"python": python_version()} | {name: _version(name) for name in (*_LIBRARIES, *libraries)}


@cache
def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"
