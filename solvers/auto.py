"""The default: the best dispatch rule as start, then the exact methods in turn, sharing plans and bounds."""

from typing import Any, Final

from optalloc.errors import UnsupportedError
from optalloc.result import Termination
from optalloc.solvers.base import Monitor, Outcome, Request
from optalloc.solvers.registry import get_solver, solver

__all__ = ["auto"]

_METHODS: Final = (("cpsat", 0.5), ("highs", 1.0))
"""Exact methods in turn, each with the share of the remaining time that it may take."""


@solver("auto", exact=True, options={}, libraries=("ortools", "highspy", "pyomo"))
def auto(request: Request) -> Outcome:
    """Begin with the best rule's plan; prove or improve it with one exact method after the other."""
    monitor = request.monitor
    info: dict[str, Any] = {"methods": []}
    _begin(request, info)
    ending = Termination.COMPLETED
    for name, share in _METHODS:
        if monitor.should_stop():
            break
        outcome = _run(request, name, share, info)
        if outcome is None:
            continue
        if outcome.infeasible or outcome.termination is Termination.PROVEN:
            return Outcome(outcome.termination, outcome.infeasible, outcome.message, info)
        ending = outcome.termination
    return Outcome(_stopped(monitor) or ending, info=info)


def _begin(request: Request, info: dict[str, Any]) -> None:
    """Offer the best plan of a few fast rules."""
    from optalloc.solvers.rules import best_start

    plan = best_start(request.scope, seed=request.seed)
    info["start"] = "none found" if plan is None else "rules"
    if plan is not None:
        request.monitor.offer(plan, "rules")


def _run(request: Request, name: str, share: float, info: dict[str, Any]) -> Outcome | None:
    """One method for its share of the time; None if it does not handle the problem."""
    monitor = request.monitor
    entry = get_solver(name)
    part = Request(request.scope, monitor, start=monitor.best, seed=request.seed, threads=request.threads)
    began = monitor.elapsed
    try:
        with monitor.within(share * monitor.remaining):
            outcome = entry.run(part)
    except UnsupportedError as error:
        info["methods"].append({"name": name, "refused": str(error)})
        return None
    row = {
        "name": name,
        "termination": outcome.termination.value,
        "seconds": round(monitor.elapsed - began, 3),
    }
    info["methods"].append(row | dict(outcome.info))
    return outcome


def _stopped(monitor: Monitor) -> Termination | None:
    if monitor.interrupted:
        return Termination.USER
    return Termination.TIME_LIMIT if monitor.remaining <= 0 else None
