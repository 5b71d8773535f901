"""The default: rules, search, price bound, fixing and the exact methods in turn, sharing plans and bounds.

1. the best dispatch rule gives a first plan;
2. CP-SAT has a short try: small instances end here;
3. rounds: the price bound and the search, each from the best of the other; what the bound rules out is dropped, and
   HiGHS or CP-SAT gets what is left. Bound and search take part where their kernels are compiled
   (`pip install optalloc[fast]`); without them the exact methods take turns.
"""

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from optalloc.errors import UnsupportedError
from optalloc.result import Termination
from optalloc.scope import Windows
from optalloc.solvers.base import Monitor, Outcome, Request
from optalloc.solvers.jit import COMPILED
from optalloc.solvers.price_bound import PriceBound, price_bound
from optalloc.solvers.prices.fixing import narrowed_windows
from optalloc.solvers.registry import get_solver, solver, solver_names

__all__ = ["auto", "starts_left"]

_TRY: Final = 0.1
"""Share of the time for CP-SAT's first try."""
_MOST_STARTS: Final = 20_000
"""Starts up to which the time-indexed model is worth building (measured: root LP in seconds up to a few thousand)."""
_MOST_MODES: Final = 2_000
"""Active modes up to which CP-SAT's first try is worth its model."""
_ROUNDS: Final = 8


@solver("auto", exact=True, options={}, libraries=("ortools", "highspy", "pyomo"))
def auto(request: Request) -> Outcome:
    """Prove or improve with one method after the other, within one time limit."""
    monitor, steps = request.monitor, _Steps(request)
    steps.begin()
    if steps.small:
        steps.exact("cpsat", _TRY)
    for round_ in range(_ROUNDS):
        if steps.ended or monitor.should_stop() or steps.level is None:
            break
        steps.search(0.15)
        steps.bound(0.3, round_)
        steps.exact(steps.method(round_), 0.6 if round_ % 2 == 0 else 0.9)
    if steps.ended is not None:
        return Outcome(steps.ended.termination, steps.ended.infeasible, steps.ended.message, steps.info)
    return Outcome(steps.termination(), info=steps.info)


class _Steps:
    """The methods, and what each leaves for the next."""

    def __init__(self, request: Request):
        self.request, self.monitor = request, request.monitor
        self._windows: dict[int, tuple[tuple[int, ...], Windows]] = {}
        self.ended: Outcome | None = None
        self.last = Termination.COMPLETED
        self.info: dict[str, Any] = {"methods": []}
        self.small = int(request.scope.problem.active.sum()) <= _MOST_MODES

    @property
    def level(self) -> int | None:
        """The first level that is not close enough to proven."""
        levels = range(len(self.request.scope.problem.levels))
        return next((level for level in levels if not self.monitor.close_enough(level)), None)

    @property
    def windows(self) -> dict[int, Windows]:
        """Narrowed windows of each level; those made under other values of earlier levels are void."""
        values = self.monitor.values
        return {k: found for k, (caps, found) in self._windows.items() if caps == values[:k]}

    @property
    def starts(self) -> int:
        """How many (mode, start) pairs are left on that level."""
        level = self.level
        return 0 if level is None else starts_left(self.windows.get(level), _MOST_STARTS + 1)

    def method(self, round_: int) -> str:
        """The time-indexed model for what fits into it; else the methods take turns."""
        if self.windows:
            return "highs" if self.starts <= _MOST_STARTS else "cpsat"
        return ("cpsat", "highs")[round_ % 2]

    def begin(self) -> None:
        """Offer the best plan of a few fast rules."""
        from optalloc.solvers.rules import best_start

        plan = best_start(self.request.scope, seed=self.request.seed, should_stop=self.monitor.should_stop)
        self.info["start"] = "none found" if plan is None else "rules"
        if plan is not None:
            self.monitor.offer(plan, "rules")

    def search(self, share: float) -> None:
        """Improve the plan."""
        if COMPILED and self.monitor.best is not None and "lns" in solver_names():
            self.run("lns", share)

    def bound(self, share: float, round_: int) -> None:
        """Price the capacity; drop what can only be worse than the best plan."""
        monitor, level = self.monitor, self.level
        if not COMPILED or monitor.best is None or level is None or monitor.should_stop():
            return
        began = monitor.elapsed
        try:
            with monitor.within(share * monitor.remaining):
                found = self.priced(level, round_)
        except UnsupportedError as error:
            self.note("bound", began, refused=str(error))
            return
        if found.proof is not None:
            narrowed = narrowed_windows(found.proof, monitor.values[level], self.windows.get(level))
            self._windows[level] = (monitor.values[:level], narrowed)
        self.note("bound", began, starts=self.starts)

    def priced(self, level: int, round_: int) -> PriceBound:
        """The price bound of a level, from the best plan."""
        request, best = self.request, self.monitor.best
        caps, seed = self.monitor.values[:level], request.seed + round_
        return price_bound(request.scope, self.monitor, level, caps=caps, seed=seed, plan=best)

    def exact(self, name: str, share: float) -> None:
        """One exact method on what is left."""
        if self.monitor.should_stop() or self.level is None:
            return
        outcome = self.run(name, share)
        if outcome is not None and (outcome.infeasible or outcome.termination is Termination.PROVEN):
            self.ended = outcome

    def run(self, name: str, share: float) -> Outcome | None:
        """A registered solver for its share of the time; None if it does not handle the problem."""
        request, monitor = self.request, self.monitor
        part = Request(
            request.scope, monitor, monitor.best, request.seed, request.threads, windows=self.windows
        )
        began = monitor.elapsed
        run: Callable[[Request], Outcome] = get_solver(name).run
        try:
            with monitor.within(share * monitor.remaining):
                outcome = run(part)
        except UnsupportedError as error:
            self.note(name, began, refused=str(error))
            return None
        self.last = outcome.termination
        self.note(name, began, termination=outcome.termination.value, **outcome.info)
        return outcome

    def note(self, name: str, began: float, **facts: Any) -> None:
        """Keep who did what for how long."""
        seconds = round(self.monitor.elapsed - began, 3)
        self.info["methods"].append({"name": name, "seconds": seconds, **facts})

    def termination(self) -> Termination:
        """Why it stopped, when no method said that it is done."""
        return _stopped(self.monitor) or (self.last if self.level is not None else self.reached())

    def reached(self) -> Termination:
        """Every level is close enough: proven, or within the gap that was asked for."""
        levels = range(len(self.request.scope.problem.levels))
        return Termination.PROVEN if all(self.monitor.gap(k) == 0 for k in levels) else Termination.GAP


def starts_left(narrowed: Windows | None, otherwise: int) -> int:
    """Number of (mode, start) pairs in narrowed windows."""
    if narrowed is None:
        return otherwise
    return int(np.maximum(0, narrowed.latest - narrowed.earliest + 1)[narrowed.open].sum())


def _stopped(monitor: Monitor) -> Termination | None:
    if monitor.interrupted:
        return Termination.USER
    return Termination.TIME_LIMIT if monitor.remaining <= 0 else None
