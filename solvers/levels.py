"""Lexicographic levels: each is minimised under "the levels before are no worse than achieved"."""

from collections.abc import Mapping
from typing import Any, Final

from optalloc.errors import SolverError
from optalloc.result import Termination
from optalloc.solvers.base import Backend, LevelAnswer, LevelTask, Monitor, Outcome, Request

__all__ = ["solve_levels"]

_CUT_SHORT: Final = (Termination.TIME_LIMIT, Termination.USER, Termination.MEMORY, Termination.ERROR)
"""Endings after which later levels are not tried."""


def solve_levels(request: Request, backend: Backend, name: str) -> Outcome:
    """Run an exact method on every level in turn.

    A level whose optimum is proven already is skipped. A level that could not be proven does not stop the
    next: the bounds that follow hold under what was achieved, which results report as conditional.

    Parameters
    ----------
    name
        Who is to be named for the bounds.

    Raises
    ------
    SolverError
        If the method contradicts a verified plan, or says it is done and holds neither plan nor proof.
    """
    monitor = request.monitor
    info: dict[str, Any] = {}
    message = ""
    levels = range(len(request.scope.problem.levels))
    for level in levels if request.level is None else (request.level,):
        if monitor.gap(level) == 0:
            continue
        if monitor.should_stop():
            return Outcome(_stopped(monitor), message=message, info=info)
        task = _task(request, level)
        answer = backend(task)
        _collect(info, level, answer.info)
        message = answer.message or message
        if answer.infeasible and answer.below is None and monitor.best is None:
            return Outcome(Termination.PROVEN, infeasible=True, message=message, info=info)
        _note_bound(task, answer, name)
        if monitor.best is None:
            return Outcome(_without_plan(answer, name), message=message, info=info)
        if not monitor.close_enough(level) and answer.termination in _CUT_SHORT:
            return Outcome(answer.termination, message=message, info=info)
    return Outcome(_ending(request), message=message, info=info)


def _task(request: Request, level: int) -> LevelTask:
    monitor = request.monitor
    return LevelTask(
        scope=request.scope,
        monitor=monitor,
        level=level,
        caps=monitor.values[:level],
        start=monitor.best,
        seed=request.seed,
        threads=request.threads,
        options=request.options,
        narrowed=request.windows.get(level),
    )


def _note_bound(task: LevelTask, answer: LevelAnswer, name: str) -> None:
    """Pass the answer's bound on; a sub-problem that is infeasible below a cutoff proves the cutoff."""
    monitor, level, values = task.monitor, task.level, task.monitor.values
    if any(value > cap for value, cap in zip(values, task.caps, strict=False)):
        return  # someone else has found a plan that is better on the whole, but not under these caps
    if answer.infeasible and answer.below is None:
        raise SolverError(f"{name} finds level {level} infeasible, but a verified plan exists")
    bound = answer.below if answer.infeasible else answer.bound
    if bound is None:
        return
    if values and bound > values[level]:
        raise SolverError(f"{name} bounds level {level} by {bound}, but a verified plan has {values[level]}")
    monitor.bound(level, bound, name, task.caps)


def _without_plan(answer: LevelAnswer, name: str) -> Termination:
    if answer.termination is Termination.PROVEN:
        raise SolverError(f"{name} says it is done, but holds neither a plan nor a proof that there is none")
    return answer.termination


def _stopped(monitor: Monitor) -> Termination:
    return Termination.USER if monitor.interrupted else Termination.TIME_LIMIT


def _ending(request: Request) -> Termination:
    """How the run ended after the last level."""
    monitor, levels = request.monitor, range(len(request.scope.problem.levels))
    if all(monitor.gap(level) == 0 for level in levels):
        return Termination.PROVEN
    return Termination.GAP if all(map(monitor.close_enough, levels)) else Termination.COMPLETED


def _collect(info: dict[str, Any], level: int, facts: Mapping[str, Any]) -> None:
    """Facts of the first level stand by themselves (its model is the largest), later ones are numbered."""
    info.update(facts if level == 0 else {f"level{level}": dict(facts)} if facts else {})
