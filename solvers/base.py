"""What a solver is given and what it gives back. Verification and certificates are not its business: see `run`."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from optalloc.errors import SolverError
from optalloc.evaluation import evaluate
from optalloc.problem import Plan
from optalloc.result import CurvePoint, Termination
from optalloc.scope import Scope

__all__ = ["Backend", "LevelAnswer", "LevelTask", "Monitor", "Outcome", "Request", "Solver"]


class Monitor:
    """Holds the best verified plan, the bounds and the anytime curve; says when to stop.

    Parameters
    ----------
    scope
        What is being solved.
    time_limit
        Seconds from ``began``.
    max_gap
        Stop once the gap of the last level is this small; None: prove it.
    began
        `time.perf_counter` at the call of solve (compiling included).
    on_event
        Called with each CurvePoint; an exception it raises ends the run and reaches the caller.
    """

    def __init__(
        self,
        scope: Scope,
        time_limit: float,
        *,
        max_gap: float | None = None,
        began: float | None = None,
        on_event: Callable[[CurvePoint], None] | None = None,
    ):
        self.scope = scope
        self.began = time.perf_counter() if began is None else began
        self.time_limit = time_limit
        self.max_gap = max_gap
        self.on_event = on_event
        self.best: Plan | None = None
        self.values: tuple[int, ...] = ()
        self.bounds: dict[int, tuple[int, str]] = {}
        self.curve: list[CurvePoint] = []
        self.interrupted = False

    @property
    def elapsed(self) -> float:
        """Seconds since the call of solve."""
        return time.perf_counter() - self.began

    @property
    def remaining(self) -> float:
        """Seconds left; never negative."""
        return max(0.0, self.time_limit - self.elapsed)

    def interrupt(self) -> None:
        """Ask the run to stop; the best plan is kept. Safe to call from any thread or signal handler."""
        self.interrupted = True

    def should_stop(self) -> bool:
        """Interrupted or out of time."""
        return self.interrupted or self.remaining <= 0

    def offer(self, plan: Plan, source: str) -> bool:
        """Verify ``plan`` and keep it if it is better (lexicographically) than the best.

        Raises
        ------
        SolverError
            A rule is broken: no plan leaves a solver unverified, and none is repaired in silence.
        """
        checked = evaluate(self.scope.problem, plan, scope=self.scope)
        if checked.violations:
            raise SolverError(f"{source} built a plan that breaks {checked.violations[0]}")
        if self.best is not None and checked.levels >= self.values:
            return False
        old = self.values
        self.best, self.values = plan.copy(), checked.levels
        level = next((k for k, v in enumerate(old) if checked.levels[k] != v), 0)
        self._record(level, source)
        return True

    def bound(self, level: int, value: int, source: str) -> None:
        """Note a proven lower bound of ``level`` (under the achieved values of earlier levels)."""
        if level not in self.bounds or value > self.bounds[level][0]:
            self.bounds[level] = (value, source)
            self._record(level, source)

    def _record(self, level: int, source: str) -> None:
        objective = self.values[level] if self.values else None
        point = CurvePoint(self.elapsed, level, objective, self.bounds.get(level, (None, ""))[0], source)
        self.curve.append(point)
        if self.on_event is not None:
            self.on_event(point)


@dataclass(frozen=True, eq=False)
class Request:
    """What a solver is asked.

    Attributes
    ----------
    scope
        The problem and what is fixed.
    start
        A verified plan to begin from (already offered to the monitor), or None.
    """

    scope: Scope
    monitor: Monitor
    start: Plan | None = None
    seed: int = 0
    threads: int = 1
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a solver says. Plans go to ``request.monitor.offer`` and bounds to ``request.monitor.bound``.

    Attributes
    ----------
    termination
        Why it stopped.
    infeasible
        It has proven that no plan exists.
    conditional
        Levels from this one on were bounded under earlier levels that are not proven.
    """

    termination: Termination
    infeasible: bool = False
    message: str = ""
    info: Mapping[str, Any] = field(default_factory=dict)


Solver = Callable[[Request], Outcome]


@dataclass(frozen=True, eq=False)
class LevelTask:
    """One level for an exact back-end: minimise level ``level`` with levels ``i < level`` at most ``caps[i]``.

    ``start``, if given, is a verified plan that respects the caps; its value is a cutoff that the back-end may use to
    drop modes and starts that can only be worse (strictly).
    """

    scope: Scope
    monitor: Monitor
    level: int
    caps: tuple[int, ...]
    start: Plan | None
    seed: int
    threads: int
    options: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class LevelAnswer:
    """The back-end's word on one level.

    Attributes
    ----------
    bound
        Proven lower bound of the level under the caps, or None.
    infeasible
        No plan respects the caps (and is not worse than the start, where one was given).
    """

    termination: Termination
    bound: int | None = None
    infeasible: bool = False
    message: str = ""
    info: Mapping[str, Any] = field(default_factory=dict)


class Backend(Protocol):
    """An exact method for one level. Offers every plan it finds to ``task.monitor``."""

    def __call__(self, task: LevelTask) -> LevelAnswer: ...
