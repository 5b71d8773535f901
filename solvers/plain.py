"""Plain functions as solvers: ``f(problem, *, time_limit, seed, ...) -> Schedule | Plan | None``."""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final

from optalloc.errors import SolverError
from optalloc.problem import Plan
from optalloc.result import Termination
from optalloc.schedule import Schedule, resolve
from optalloc.solvers.base import Outcome, Request

__all__ = ["Adapted", "adapted", "is_full_solver"]

_OFFERED: Final[Mapping[str, Callable[[Request], Any]]] = {
    "scope": lambda request: request.scope,
    "monitor": lambda request: request.monitor,
    "start": lambda request: request.start,
    "seed": lambda request: request.seed,
    "threads": lambda request: request.threads,
    "time_limit": lambda request: request.monitor.remaining,
}
"""Keywords that a plain function may take beside options of its own."""

_KEYWORDS: Final = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def is_full_solver(function: Callable[..., Any]) -> bool:
    """It takes exactly one `Request`: told by the name ``request`` or by the annotation."""
    parameters = list(_parameters(function).values())
    if len(parameters) != 1:
        return False
    annotation = parameters[0].annotation
    return parameters[0].name == "request" or annotation is Request or annotation == "Request"


class Adapted:
    """A plain function in the clothes of a solver.

    Attributes
    ----------
    options
        Its own keyword parameters with their defaults; None if it takes any (``**options``).
    scoped
        It takes the scope, so that it can respect what is fixed.
    """

    def __init__(self, function: Callable[..., Any]):
        functools.update_wrapper(self, function)
        self.function = function
        parameters = list(_parameters(function).values())
        self.keywords = [p.name for p in parameters[1:] if p.kind in _KEYWORDS]
        own = {p.name: p.default for p in parameters[1:] if p.kind in _KEYWORDS and p.name not in _OFFERED}
        takes_any = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)
        self.options: dict[str, Any] | None = None if takes_any else own
        self.scoped = "scope" in self.keywords

    def __call__(self, request: Request) -> Outcome:
        offered = {name: give(request) for name, give in _OFFERED.items() if name in self.keywords}
        answer = self.function(request.scope.problem, **offered, **request.options)
        if answer is not None:
            name = getattr(self, "__name__", "plain")
            request.monitor.offer(_plan(request, answer, name), name)
        return Outcome(Termination.COMPLETED)


def adapted(function: Callable[..., Any]) -> Adapted:
    """The function as a solver."""
    return Adapted(function)


def _parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(function).parameters


def _plan(request: Request, answer: Any, name: str) -> Plan:
    if isinstance(answer, Plan):
        return answer
    if not isinstance(answer, Schedule):
        raise SolverError(f"{name} returned {type(answer).__name__}; expected Schedule, Plan or None")
    plan, violations = resolve(request.scope.problem, answer)
    if violations:
        raise SolverError(f"the schedule of {name} breaks {violations[0]}")
    return plan
