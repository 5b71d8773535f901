"""Exact solver `highs`: the time-indexed model of `optalloc.formulations.milp`, solved by HiGHS."""

import math
import time
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from optalloc.errors import SolverError
from optalloc.evaluation import evaluate
from optalloc.formulations.milp import build, build_arrays, read_plan, start_values
from optalloc.formulations.milp.matrix import Floats
from optalloc.formulations.milp.plans import rounded
from optalloc.formulations.milp.size import estimate_size
from optalloc.problem import Plan
from optalloc.result import Termination
from optalloc.solvers import highs_native as native
from optalloc.solvers.base import LevelAnswer, LevelTask, Outcome, Request
from optalloc.solvers.highs_options import split_options
from optalloc.solvers.levels import solve_levels
from optalloc.solvers.registry import solver
from optalloc.solvers.shrinking import shrink

__all__ = ["highs", "integer_bound", "solve_level"]

NAME: Final = "highs"
PYOMO_COLUMNS, PYOMO_ENTRIES = 500_000, 2_000_000
"""Larger models are made as arrays at once: the same rows from the same functions, seven times faster."""

EXACT: Final = 0.25
"""A tolerance of the objective this large or larger proves nothing about whole numbers."""


@solver(
    NAME,
    exact=True,
    summary="time-indexed MILP, solved by HiGHS",
    options=None,
    libraries=("highspy", "pyomo"),
)
def highs(request: Request) -> Outcome:
    """Solve every level by HiGHS. Options are HiGHS options by name, and ``max_columns``, ``max_entries``."""
    split_options(request.options)  # refuse wrong ones before any work
    if request.monitor.best is None:
        _begin(request)
    return solve_levels(request, solve_level, NAME)


def _begin(request: Request) -> None:
    """Offer the best plan of a few fast rules: without an upper bound the start windows reach to the
    horizon.
    """
    from optalloc.solvers.rules import best_start

    plan = best_start(request.scope, seed=request.seed, should_stop=request.monitor.should_stop)
    if plan is not None:
        request.monitor.offer(plan, "rules")


def solve_level(task: LevelTask) -> LevelAnswer:
    """One level: narrow the windows, build, start from the best plan, search, and say what is proven."""
    run = _Run(task)
    try:
        return run.prepare() or run.solve()
    except _TimeUp:
        return LevelAnswer(run.stopped(), message="the time was up before the search began", info=run.info)


class _TimeUp(Exception):
    """Raised when the run is to stop while the model is made or handed over."""


def integer_bound(bound: float | None, tasks: int) -> int | None:
    """The least whole number that a floating-point lower bound of a whole number proves.

    The tolerance is 1e-6 for each task and for the whole, and 1e-9 of the bound. From 0.25 on nothing can
    be told from rounding errors any more: the bound is then taken down, so that it proves nothing about a
    plan.
    """
    if bound is None or not math.isfinite(bound):
        return None
    tolerance = 1e-6 * (1 + tasks) + 1e-9 * abs(bound)
    return math.ceil(bound - tolerance) if tolerance < EXACT else math.floor(bound - tolerance)


@dataclass(eq=False)
class _Run:
    """One level being solved.

    Attributes
    ----------
    upper
        Value of the start; the model keeps every plan at most this good, and not all that are worse.
    info
        Facts for the result.
    """

    task: LevelTask
    upper: int | None = None
    info: dict[str, Any] = field(default_factory=dict)

    def stopped(self) -> Termination:
        return Termination.USER if self.task.monitor.interrupted else Termination.TIME_LIMIT

    # before --------------------------------------------------------------------------------------------
    def prepare(self) -> LevelAnswer | None:
        """Build the model; an answer if that settles the level or cannot be done."""
        task = self.task
        began = time.perf_counter()
        self.own, self.options = split_options(task.options)
        if task.start is not None:
            self.upper = evaluate(task.scope.problem, task.start, scope=task.scope).levels[task.level]
        found = shrink(task.scope, task.windows, task.level, self.upper, task.caps)
        columns, entries = estimate_size(task.scope, found)
        if columns > self.own["max_columns"] or entries > self.own["max_entries"]:
            return self._too_large(columns, entries)
        self._check()
        through_pyomo = columns <= PYOMO_COLUMNS and entries <= PYOMO_ENTRIES
        make = build if through_pyomo else build_arrays
        self.milp = make(task.scope, found, task.level, task.caps, check=self._check)
        matrix = self.milp.matrix
        self.info |= {"columns": matrix.num_columns, "rows": matrix.num_rows, "entries": len(matrix.value)}
        self.info["build_seconds"] = time.perf_counter() - began
        if not self.milp.possible:
            return self._impossible()
        self._note(self.milp.constant)  # no cost is negative: the constant is a bound already
        self._check()
        return self._only_plan() if matrix.num_columns == 0 else None

    def _check(self) -> None:
        if self.task.monitor.should_stop():
            raise _TimeUp

    def _too_large(self, columns: int, entries: int) -> LevelAnswer:
        message = (
            f"the time-indexed model would have about {columns:,} columns and {entries:,} entries, more than "
            f"max_columns={self.own['max_columns']:,} or max_entries={self.own['max_entries']:,}; coarser "
            "ticks, a better start or solver cpsat help"
        )
        return LevelAnswer(Termination.MEMORY, message=message, info=self.info)

    def _impossible(self) -> LevelAnswer:
        """No plan is as good as the start, which contradicts it; or no plan exists, if there is no start."""
        below = None if self.upper is None else self.upper + 1
        return LevelAnswer(Termination.PROVEN, below, True, below, info=self.info)

    def _only_plan(self) -> LevelAnswer:
        self.task.monitor.offer(read_plan(self.milp, np.zeros(0)), NAME)
        return LevelAnswer(Termination.PROVEN, self.milp.constant, info=self.info)

    # the search ----------------------------------------------------------------------------------------
    def solve(self) -> LevelAnswer:
        """Search; once more without the start if HiGHS misreads it."""
        start = self._start()
        self._check()
        found = self._search(start)
        if self.run.misled and self.info["native_start"] == "complete":
            self.info["native_start"] = "misread by HiGHS, so not used"
            found = self._search(None)
        if self.run.misled:
            raise SolverError("HiGHS takes a solution to be worth what it is not")
        return self._answer(found)

    def _search(self, start: Floats | None) -> native.NativeAnswer:
        """Run HiGHS; offer every plan, note every bound, stop when the monitor says so."""
        monitor, began = self.task.monitor, time.perf_counter()
        self.run = native.NativeRun(
            self.milp.scaled_matrix, monitor.remaining, self.task.threads, self.task.seed, self.options
        )
        self._check()
        if start is not None:
            self.run.start_from(start)
            self._check()
        try:
            self.run.begin()
            while not self._attend():
                if monitor.should_stop() or self._close_enough():
                    self.run.stop()
        finally:  # also when a plan is broken or the user presses Ctrl-C: the search never outlives the call
            self.run.join()
        self.info["solve_seconds"] = time.perf_counter() - began
        self.info["overshoot_seconds"] = max(0.0, monitor.elapsed - monitor.time_limit)
        return self.run.answer()

    def _start(self) -> Floats | None:
        """The start as values of all columns. One that the model has no place for is kept by the monitor."""
        self.info["native_start"] = "none"
        if self.task.start is None:
            return None
        values = start_values(self.milp, self.task.start)
        self.info["native_start"] = "complete" if values is not None else "no place in the model"
        if values is not None:
            self._verify(values, "the start")
        return values

    def _verify(self, values: Floats, what: str) -> None:
        """A verified plan must satisfy the model: if not, the model is wrong."""
        broken = self.milp.matrix.broken(values)
        if broken:
            raise SolverError(f"the model excludes {what}, a verified plan: {self.milp.row_name(broken[0])}")

    def _close_enough(self) -> bool:
        monitor = self.task.monitor
        return monitor.max_gap is not None and monitor.close_enough(self.task.level)

    def _attend(self) -> bool:
        """Take in what has arrived; True once the search has ended. Of several solutions the last is the
        best.
        """
        ended, values = False, None
        for message in self.run.messages():
            if isinstance(message, BaseException):
                raise message
            if message is None:
                ended = True
            elif self.run.misled:
                continue
            elif isinstance(message, float):
                self._note_bound(message)
            else:
                values = message
        if values is not None:
            self._offer(values)
        return ended

    def _note_bound(self, bound: float | None) -> int | None:
        """Note and return the integer bound of the level that HiGHS's bound proves."""
        whole = integer_bound(bound, self.task.scope.problem.num_tasks)
        if whole is None:
            return None
        return self._note(self.milp.constant + self.milp.unit * whole)

    def _note(self, bound: int) -> int:
        """Note a bound of the model, no further than the start: what is worse may have been left out."""
        bound = bound if self.upper is None else min(bound, self.upper)
        self.task.monitor.bound(self.task.level, bound, NAME, self.task.caps)
        return bound

    def _offer(self, values: Floats) -> None:
        """Offer the plan behind a solution, unless it keeps a row only within HiGHS's tolerance."""
        plan = read_plan(self.milp, rounded(self.milp, values))
        exact = start_values(self.milp, plan)
        if exact is None:
            raise SolverError("a solution of the model does not survive being read and written")
        if self.milp.matrix.broken(exact):
            self.info["solutions_lost_to_rounding"] = self.info.get("solutions_lost_to_rounding", 0) + 1
        elif self.task.monitor.offer(plan, NAME):
            self._compare(plan, exact)

    def _compare(self, plan: Plan, values: Floats) -> None:
        """The model's value of a plan is the evaluator's."""
        costs = self.milp.costs
        chosen = np.flatnonzero(values[: len(costs)])
        value = int((costs[chosen] * values[chosen].astype(np.int64)).sum()) + self.milp.constant
        level = evaluate(self.task.scope.problem, plan, scope=self.task.scope).levels[self.task.level]
        if value != level:
            raise SolverError(f"the model values a plan at {value}, but it is {level}")

    # after ---------------------------------------------------------------------------------------------
    def _answer(self, found: native.NativeAnswer) -> LevelAnswer:
        """The level's certificate."""
        self.info |= found.info
        if found.status == native.IMPOSSIBLE:
            return self._impossible()
        if found.values is not None:
            self._offer(found.values)
        bound = self._note_bound(found.bound)
        termination = self._termination(found, bound)
        return LevelAnswer(termination, bound, message=self._message(found, bound), info=self.info)

    def _termination(self, found: native.NativeAnswer, bound: int | None) -> Termination:
        monitor, level = self.task.monitor, self.task.level
        if monitor.values and monitor.values[level] == bound:
            return Termination.PROVEN
        if self._close_enough():
            return Termination.GAP
        if found.status == native.MEMORY:
            return Termination.MEMORY
        return self.stopped() if found.status == native.LIMIT else Termination.COMPLETED

    def _message(self, found: native.NativeAnswer, bound: int | None) -> str:
        """Why HiGHS calls it solved and yet nothing is proven."""
        monitor, level = self.task.monitor, self.task.level
        if found.status != native.PROVEN or (monitor.values and monitor.values[level] == bound):
            return ""
        if "solutions_lost_to_rounding" in self.info:
            return "HiGHS's best solution keeps a row within its tolerance only; it was not used"
        return "the numbers are too large for HiGHS to prove the optimum; cpsat counts in whole numbers"
