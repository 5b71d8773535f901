"""Exact solver `cpsat`: the interval model of `optalloc.formulations.cpsat`, solved by OR-Tools CP-SAT.

The native search runs in a thread of its own, and hands plans and bounds over through a queue; everything
else happens in the caller's thread, so interrupts and exceptions end a run cleanly at any moment.
"""

import math
import queue
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from ortools.sat.python import cp_model

from optalloc.errors import SolverError
from optalloc.evaluation import evaluate
from optalloc.formulations.cpsat import add_cutoff, add_hint, build, read_plan
from optalloc.problem import Plan
from optalloc.result import Termination
from optalloc.solvers.base import LevelAnswer, LevelTask, Outcome, Request
from optalloc.solvers.cpsat_options import apply_options, check_options
from optalloc.solvers.levels import solve_levels
from optalloc.solvers.registry import solver
from optalloc.solvers.shrinking import shrink

__all__ = ["cpsat", "solve_level"]

NAME: Final = "cpsat"
POLL_SECONDS: Final = 0.05
SPARE_SECONDS: Final = 1.0

PROVEN, FOUND, IMPOSSIBLE, NOTHING = "proven", "found", "impossible", "nothing"
_STATUS: Final[Mapping[Any, str]] = {
    cp_model.OPTIMAL: PROVEN,
    cp_model.FEASIBLE: FOUND,
    cp_model.INFEASIBLE: IMPOSSIBLE,
    cp_model.UNKNOWN: NOTHING,
}
"""What CP-SAT says; anything else (MODEL_INVALID) is an error. It has values with the first two only."""


@solver(
    NAME,
    exact=True,
    summary="interval model, solved by OR-Tools CP-SAT",
    options=None,
    libraries=("ortools",),
)
def cpsat(request: Request) -> Outcome:
    """Solve every level by CP-SAT. Options are CP-SAT parameters by name (`SatParameters`)."""
    check_options(request.options)
    if request.monitor.best is None:
        _begin(request)
    return solve_levels(request, solve_level, NAME)


def _begin(request: Request) -> None:
    """Offer the best plan of a few fast rules: a first plan at once, and narrower windows."""
    from optalloc.solvers.rules import best_start

    plan = best_start(request.scope, seed=request.seed, should_stop=request.monitor.should_stop)
    if plan is not None:
        request.monitor.offer(plan, "rules")


def solve_level(task: LevelTask) -> LevelAnswer:
    """One level: build, hint, search, and say what is proven."""
    run = _Run(task)
    if not run.prepare():
        return LevelAnswer(_stopped(task), message="the time was up before the search began", info=run.info)
    run.search()
    return run.answer()


def _stopped(task: LevelTask) -> Termination:
    return Termination.USER if task.monitor.interrupted else Termination.TIME_LIMIT


class _TimeUp(Exception):
    """Raised between the families of constraints when the run is to stop."""


@dataclass(eq=False)
class _Run:
    """One search.

    Attributes
    ----------
    below
        Strict cutoff in force, None without one.
    inbox
        What the native threads report: a Plan, a bound, an exception; None at the end.
    info
        Facts for the result.
    """

    task: LevelTask
    below: int | None = None
    inbox: "queue.SimpleQueue[Plan | int | BaseException | None]" = field(default_factory=queue.SimpleQueue)
    info: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def native(self) -> cp_model.CpSolver:
        """The solver with its parameters. We stop it when the time is up: its own limit, which it takes for reached
        a little sooner, is behind ours, so that we know who has ended the search.
        """
        native = cp_model.CpSolver()
        parameters = native.parameters
        parameters.num_workers = max(1, self.task.threads)
        parameters.random_seed = self.task.seed % 2**31
        _prefer_cuts(parameters)
        parameters.catch_sigint_signal = False  # the caller's thread watches for interrupts
        apply_options(parameters, self.task.options)
        limit = self.task.monitor.remaining + SPARE_SECONDS
        parameters.max_time_in_seconds = min(limit, parameters.max_time_in_seconds)
        return native

    @cached_property
    def start_value(self) -> int | None:
        """The level's value of the start, the best plan so far."""
        task = self.task
        return None if task.start is None else _level_value(task, task.start)

    # before --------------------------------------------------------------------------------------------
    def prepare(self) -> bool:
        """Build the model; False if the time is up before the search could begin."""
        task, began = self.task, time.perf_counter()
        try:
            self._check()
            found = shrink(task.scope, task.windows, task.level, self.start_value, task.caps)
            self.built = build(task.scope, found, task.level, task.caps, check=self._check)
            self._give_start()
            self._check()
        except _TimeUp:
            return False
        self.info |= {
            "variables": len(self.built.model.proto.variables),
            "constraints": len(self.built.model.proto.constraints),
            "build_seconds": time.perf_counter() - began,
        }
        return True

    def _check(self) -> None:
        if self.task.monitor.should_stop():
            raise _TimeUp

    def _give_start(self) -> None:
        """The start as a complete hint with its value as a cutoff; strictly below it where the model has no
        place for the start (a dominated mode, say), so that it is still never lost."""
        if self.task.start is None or self.start_value is None:
            self.info["hint"] = "none"
            return
        hinted = add_hint(self.built, self.task.start)
        self.below = None if hinted else self.start_value
        add_cutoff(self.built, self.start_value if hinted else self.start_value - 1)
        self.info["hint"] = "complete" if hinted else "no place in the model: cutoff instead"

    # during --------------------------------------------------------------------------------------------
    def search(self) -> None:
        """Run CP-SAT; offer every plan, note every bound, stop when the monitor says so."""
        began = time.perf_counter()
        native = self.native
        thread = threading.Thread(target=self._solve, name="cpsat", daemon=True)
        try:
            thread.start()
            while not self._attend():
                if self._should_stop():
                    native.stop_search()
        finally:  # also when a plan is broken or the user presses Ctrl-C: the search never outlives the call
            while thread.is_alive():
                native.stop_search()
                thread.join(POLL_SECONDS)
        self.info["solve_seconds"] = time.perf_counter() - began

    def _solve(self) -> None:
        """In the search thread."""
        try:
            self.native.best_bound_callback = self._note_bound
            self.native.solve(self.built.model, _Watcher(self))
        except BaseException as failure:
            self.inbox.put(failure)
        finally:
            self.inbox.put(None)

    def _note_bound(self, value: float) -> None:
        self.inbox.put(rounded_bound(value) + self.built.constant)

    def _attend(self) -> bool:
        """Take in what has arrived, waiting a moment if there is nothing; True once the search has ended.

        Of several plans only the last is looked at: it is the best.
        """
        plan, ended = None, False
        for message in self._messages():
            if isinstance(message, BaseException):
                raise message
            if isinstance(message, Plan):
                plan = message
            elif message is None:
                ended = True
            else:
                self.task.monitor.bound(self.task.level, self._capped(message), NAME, self.task.caps)
        if plan is not None:
            self.task.monitor.offer(plan, NAME)
        return ended

    def _messages(self) -> Iterator[Plan | int | BaseException | None]:
        try:
            yield self.inbox.get(timeout=POLL_SECONDS)
            while True:
                yield self.inbox.get_nowait()
        except queue.Empty:
            return

    def _capped(self, bound: int) -> int:
        """A bound of the model says nothing about plans at or above its strict cutoff."""
        return bound if self.below is None else min(bound, self.below)

    def _should_stop(self) -> bool:
        monitor = self.task.monitor
        return monitor.should_stop() or (
            monitor.max_gap is not None and monitor.close_enough(self.task.level)
        )

    # after ---------------------------------------------------------------------------------------------
    def answer(self) -> LevelAnswer:
        """The level's certificate from the native response."""
        response = self.native.response_proto
        status = _STATUS.get(response.status)
        if status is None:
            raise SolverError(f"CP-SAT refused the model: {self.native.solution_info() or response.status}")
        self.info |= {"conflicts": response.num_conflicts, "branches": response.num_branches}
        if status == IMPOSSIBLE:
            return self._infeasible()
        if status in (PROVEN, FOUND):
            self.task.monitor.offer(read_plan(self.built, self.native.value), NAME)
        bound = self._final_bound(status)
        return LevelAnswer(self._termination(bound), bound=bound, info=self.info)

    def _infeasible(self) -> LevelAnswer:
        """Under a strict cutoff this proves the start; else there is no plan at all."""
        return LevelAnswer(Termination.PROVEN, self.below, True, self.below, info=self.info)

    def _final_bound(self, status: str) -> int:
        """The exact integer bound of the response, also the objective value where that is proven."""
        bound = int(self.native.response_proto.inner_objective_lower_bound) + self.built.constant
        bound = max(self._capped(bound), self.built.range[0])
        self.task.monitor.bound(self.task.level, bound, NAME, self.task.caps)
        return bound

    def _termination(self, bound: int) -> Termination:
        monitor, level = self.task.monitor, self.task.level
        if monitor.values and monitor.values[level] == bound:
            return Termination.PROVEN
        if monitor.max_gap is not None and monitor.close_enough(level):
            return Termination.GAP
        return _stopped(self.task) if monitor.should_stop() else Termination.COMPLETED


class _Watcher(cp_model.CpSolverSolutionCallback):  # type: ignore[misc]
    """Hands every solution over, in the search thread."""

    def __init__(self, run: _Run):
        super().__init__()
        self.run = run

    def on_solution_callback(self) -> None:
        """Called by CP-SAT."""
        try:
            self.run.inbox.put(read_plan(self.run.built, self.value))
        except BaseException as failure:
            self.run.inbox.put(failure)


def _prefer_cuts(parameters: Any) -> None:
    """Cuts on completion times prove sums of them; of several workers, the first by default goes without."""
    parameters.linearization_level = 2
    if parameters.num_workers > 1:
        parameters.extra_subsolvers.append("max_lp")


def rounded_bound(value: float) -> int:
    """The least integer that a bound given as a floating-point number proves.

    The objective is an integer, so a bound of 2.3 proves 3; a value that misses an integer by rounding errors
    only (1e-6, or a few units in the last place) is that integer.
    """
    return math.ceil(value - max(1e-6, abs(value) * 2.0**-50))


def _level_value(task: LevelTask, plan: Plan) -> int:
    return evaluate(task.scope.problem, plan, scope=task.scope).levels[task.level]
