"""What a solver is given and what it gives back. Certificates are not its business: see `run`."""

import threading
import time
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, Protocol

from optalloc.errors import InputError, SolverError
from optalloc.evaluation import evaluate
from optalloc.problem import Plan
from optalloc.result import CurvePoint, Termination
from optalloc.scope import Scope, Windows, windows

__all__ = ["Backend", "LevelAnswer", "LevelTask", "Monitor", "Outcome", "Request", "Solver"]


@dataclass(eq=False)
class _Found:
    """What all parts of a run share."""

    best: Plan | None = None
    values: tuple[int, ...] = ()
    bounds: dict[int, tuple[int, str]] = field(default_factory=dict)
    curve: list[CurvePoint] = field(default_factory=list)
    interrupted: bool = False
    failure: BaseException | None = None
    lock: Any = field(default_factory=threading.RLock)  # native solvers call back from threads of their own


class Monitor:
    """Holds the best verified plan, the bounds and the anytime curve; says when to stop.

    Parameters
    ----------
    scope
        What is being solved.
    time_limit
        Seconds from ``began``.
    max_gap
        Each level is done once its gap is this small; None: prove it.
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
        self.stopped = False
        self._found = _Found()

    @property
    def best(self) -> Plan | None:
        """The best verified plan; None before there is one."""
        return self._found.best

    @property
    def values(self) -> tuple[int, ...]:
        """The levels of the best plan; () before there is one."""
        return self._found.values

    @property
    def bounds(self) -> dict[int, tuple[int, str]]:
        """Level -> (proven lower bound, who proved it), under the achieved values of earlier levels."""
        return self._found.bounds

    @property
    def curve(self) -> list[CurvePoint]:
        """Every new plan and bound so far."""
        return self._found.curve

    @property
    def interrupted(self) -> bool:
        """Someone has asked the run to stop."""
        return self._found.interrupted

    @property
    def failure(self) -> BaseException | None:
        """What ``on_event`` raised; `run` raises it again after a clean stop (native code would swallow it)."""
        return self._found.failure

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
        self._found.interrupted = True

    def should_stop(self) -> bool:
        """Interrupted, stopped or out of time."""
        return self.interrupted or self.stopped or self.remaining <= 0

    def part(self, seconds: float) -> "Monitor":
        """The same run for one of its methods, which stops after ``seconds`` from now already, or by ``stop``."""
        part = copy(self)
        part.time_limit = min(self.time_limit, self.elapsed + seconds)
        return part

    def stop(self) -> None:
        """Ask this part to stop, and no other."""
        self.stopped = True

    def gap(self, level: int) -> float | None:
        """(objective - bound) / max(|objective|, 1) of a level; None without plan or bound."""
        values, known = self.values, self.bounds.get(level)  # looked at once: another thread may replace them
        if not values or known is None:
            return None
        return (values[level] - known[0]) / max(abs(values[level]), 1)

    def close_enough(self, level: int) -> bool:
        """The gap of the level is 0 or within ``max_gap``."""
        gap = self.gap(level)
        return gap is not None and gap <= (self.max_gap or 0)

    def offer(self, plan: Plan, source: str) -> bool:
        """Verify ``plan`` and keep it if it is better (lexicographically) than the best.

        Raises
        ------
        SolverError
            It is no plan of this problem, or a rule is broken: no plan leaves a solver unverified, and none is
            repaired in silence.
        """
        if not isinstance(plan, Plan):
            raise SolverError(f"{source} offered {type(plan).__name__} instead of a Plan")
        try:
            checked = evaluate(self.scope.problem, plan, scope=self.scope)
        except InputError as error:
            faults = "; ".join(map(str, error.faults))
            raise SolverError(f"{source} built what is no plan of this problem: {faults}") from None
        if checked.violations:
            raise SolverError(f"{source} built a plan that breaks {checked.violations[0]}")
        with self._found.lock:
            old, new = self.values, checked.levels
            if self.best is not None and new >= old:
                return False
            # A bound holds under the values of earlier levels: where one of them has grown, it is void.
            grown = next((k for k, value in enumerate(old) if new[k] > value), len(new))
            bounds = {level: known for level, known in self.bounds.items() if level <= grown}
            found, best = self._found, plan.copy()
            found.best, found.values, found.bounds = best, new, bounds  # no step where Ctrl-C could part them
            self._record(next((k for k, value in enumerate(old) if new[k] != value), 0), source)
        return True

    def bound(self, level: int, value: int, source: str, caps: tuple[int, ...] | None = None) -> None:
        """Note a proven lower bound of ``level``.

        Parameters
        ----------
        caps
            Values of earlier levels under which it is proven: it is void where one of them has grown beyond.
            Default: the achieved ones.

        Raises
        ------
        SolverError
            It is no whole number, or there is no such level.
        """
        if isinstance(value, bool) or not isinstance(value, Integral):
            raise SolverError(f"{source} gives {value!r} as a bound; bounds are whole numbers, scaled by K")
        if level not in range(len(self.scope.problem.levels)):
            raise SolverError(f"{source} bounds level {level!r}; levels are counted from 0")
        with self._found.lock:
            if caps is not None and any(v > cap for v, cap in zip(self.values, caps, strict=False)):
                return
            if level not in self.bounds or value > self.bounds[level][0]:
                self.bounds[level] = (int(value), source)
                self._record(level, source)

    def _record(self, level: int, source: str) -> None:
        objective = self.values[level] if self.values else None
        point = CurvePoint(self.elapsed, level, objective, self.bounds.get(level, (None, ""))[0], source)
        self.curve.append(point)
        if self.on_event is None or self.failure is not None:
            return
        try:
            self.on_event(point)
        except KeyboardInterrupt:
            self.interrupt()
        except BaseException as failure:
            self._found.failure = failure
            self.interrupt()


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
    windows: Mapping[int, Windows] = field(default_factory=dict)
    """Level -> start windows in which every plan lies that is no worse than the best known."""
    level: int | None = None
    """The only level that an exact method is to work on. None: all in turn."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a solver says. Plans go to ``request.monitor.offer`` and bounds to ``request.monitor.bound``.

    Attributes
    ----------
    termination
        Why it stopped.
    infeasible
        It has proven that no plan exists.
    """

    termination: Termination
    infeasible: bool = False
    message: str = ""
    info: Mapping[str, Any] = field(default_factory=dict)


Solver = Callable[[Request], Outcome]


@dataclass(frozen=True, eq=False)
class LevelTask:
    """One level for an exact back-end: minimise ``level`` with each level ``i < level`` at most ``caps[i]``.

    ``start``, if given, is a verified plan that respects the caps; its value is a cutoff that the back-end
    may use to drop modes and starts that can only be worse (strictly).
    """

    scope: Scope
    monitor: Monitor
    level: int
    caps: tuple[int, ...]
    start: Plan | None
    seed: int
    threads: int
    options: Mapping[str, Any]
    narrowed: Windows | None = None
    """Windows in which every plan lies that is no worse than ``start``; None: nothing better is known."""

    @property
    def windows(self) -> Windows:
        """Valid start windows to begin with."""
        return windows(self.scope) if self.narrowed is None else self.narrowed


@dataclass(frozen=True, eq=False)
class LevelAnswer:
    """The back-end's word on one level.

    Attributes
    ----------
    bound
        Proven lower bound of the level under the caps, or None.
    infeasible
        No plan respects the caps and, if ``below`` is given, has a level value < ``below``.
    below
        The strict cutoff under which this was found. None: there was none, so a start contradicts it.
    """

    termination: Termination
    bound: int | None = None
    infeasible: bool = False
    below: int | None = None
    message: str = ""
    info: Mapping[str, Any] = field(default_factory=dict)


class Backend(Protocol):
    """An exact method for one level. Offers every plan it finds to ``task.monitor``."""

    def __call__(self, task: LevelTask) -> LevelAnswer: ...
