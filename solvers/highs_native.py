"""One run of HiGHS on plain arrays.

The native search runs in a thread of its own and reports through a queue; everything else happens in the
caller's thread, so interrupts and exceptions end a run cleanly. A thread of its own also has a task
scheduler of its own: HiGHS refuses to run twice in one thread with different thread counts, and nothing
here touches file descriptors, so that several solves can run at once.
"""

import math
import queue
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import highspy
import numpy as np

from optalloc.errors import SolverError, UnsupportedError
from optalloc.formulations.milp.matrix import Floats, Matrix
from optalloc.solvers.highs_options import QuietHighs, apply_options

__all__ = ["DEFAULTS", "FOUND", "IMPOSSIBLE", "LIMIT", "PROVEN", "NativeAnswer", "NativeRun", "check_numbers"]

POLL_SECONDS: Final = 0.05
SMALLEST, LARGEST = 1e-7, 1e15
"""HiGHS takes no larger entry, and drops small ones in silence; ours are whole numbers, an expert's may not be."""

DEFAULTS: Final[Mapping[str, Any]] = {
    "mip_rel_gap": 0.0,
    # Values are whole numbers: a gap below 1 is none. Half is safely below, and spares the last nodes.
    "mip_abs_gap": 0.5,
    # Probing (rule 15) and enumeration (16) find nothing in time-indexed rows and took most of the run: real-12
    # is proven in 6 seconds of CPU without them, in 23 with them.
    "presolve_rule_off": (1 << 15) + (1 << 16),
}

PROVEN, IMPOSSIBLE, LIMIT, MEMORY, FOUND = "proven", "impossible", "limit", "memory", "found"
STATUS: Final[Mapping[str, str]] = {
    "kOptimal": PROVEN,
    "kInfeasible": IMPOSSIBLE,
    "kUnboundedOrInfeasible": IMPOSSIBLE,  # every column is bounded
    "kTimeLimit": LIMIT,
    "kInterrupt": LIMIT,
    "kHighsInterrupt": LIMIT,
    "kIterationLimit": FOUND,
    "kSolutionLimit": FOUND,
    "kObjectiveBound": FOUND,
    "kObjectiveTarget": FOUND,
    "kUnknown": FOUND,
    "kMemoryLimit": MEMORY,
}
"""What HiGHS says: solved; impossible; stopped by time or by us; out of memory; stopped by an option. The
rest (no model, errors, unbounded) cannot be true of a model built here."""


_Message = Floats | float | BaseException | None


@dataclass(frozen=True, eq=False)
class NativeAnswer:
    """What a run has found.

    Attributes
    ----------
    status
        PROVEN, IMPOSSIBLE, LIMIT, MEMORY or FOUND.
    bound
        Dual bound of the objective as given; None if there is none.
    values
        The best solution; None if HiGHS says that it has none (its arrays hold zeros then).
    """

    status: str
    bound: float | None
    values: Floats | None
    info: Mapping[str, Any]


def check_numbers(matrix: Matrix) -> None:
    """Refuse what HiGHS would misread: NaN, infinite coefficients, entries too large for it.

    Raises
    ------
    SolverError
        A number is not finite.
    UnsupportedError
        A number is too large or too small.
    """
    for name, numbers in (("cost", matrix.cost), ("matrix", matrix.value)):
        if not np.isfinite(numbers).all():
            raise SolverError(f"a {name} coefficient is not finite")
        size = np.abs(numbers[numbers != 0])
        if len(size) and size.max() >= LARGEST:
            raise UnsupportedError(f"a {name} coefficient is above {LARGEST:g}; use coarser units, or cpsat")
        if len(size) and size.min() < SMALLEST:
            raise UnsupportedError(f"a {name} coefficient is below {SMALLEST:g}; scale the row, or use cpsat")
    sides = (matrix.lower, matrix.upper, matrix.row_lower, matrix.row_upper)
    if any(np.isnan(side).any() for side in sides):
        raise SolverError("a bound of a column or row is not a number")


@dataclass(eq=False)
class NativeRun:
    """A model handed to HiGHS.

    Attributes
    ----------
    matrix
        What is solved; its ``offset`` is left out (a large constant would blunt HiGHS's relative tolerances).
    inbox
        What the search reports: solutions (arrays), dual bounds (floats), an exception; None at the end.
    misled
        HiGHS believes a solution to be worth what it is not. HiGHS 1.16 can misread a start as it carries
        it through its presolve ("feasible in the reduced space: objective value is 36" for a start of 81);
        it then stops at a false optimum. Nothing that such a run says is to be used.
    """

    matrix: Matrix
    seconds: float
    threads: int = 1
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)
    inbox: "queue.SimpleQueue[_Message]" = field(default_factory=queue.SimpleQueue)

    def __post_init__(self) -> None:
        self._until = time.perf_counter() + self.seconds
        check_numbers(self.matrix)
        self.highs = QuietHighs()
        self.misled = False
        self._thread = threading.Thread(target=self._run, name="highs", daemon=True)
        self._stop = False
        self._status: Any = None
        self._set_options()
        self._pass_model()
        self._told = -math.inf
        for event in (self.highs.cbMipInterrupt, self.highs.cbSimplexInterrupt, self.highs.cbIpmInterrupt):
            event += self._on_interrupt
        self.highs.cbMipImprovingSolution += self._on_solution
        # The event made for it, cbMipLogging, comes only where HiGHS prints its log.
        self.highs.cbMipInterrupt += self._on_bound

    def _set_options(self) -> None:
        apply_options(self.highs, {**DEFAULTS, **self.options})
        self._limit(self.seconds)
        for name, value in {"threads": self.threads, "random_seed": self.seed % 2**31}.items():
            _require(self.highs.setOptionValue(name, value), f"option {name}")

    def _limit(self, seconds: float) -> None:
        _require(self.highs.setOptionValue("time_limit", max(seconds, 1e-3)), "option time_limit")

    def _pass_model(self) -> None:
        m = self.matrix
        rowwise, minimise = int(highspy.MatrixFormat.kRowwise), int(highspy.ObjSense.kMinimize)
        status = self.highs.passModel(
            m.num_columns, m.num_rows, len(m.value), rowwise, minimise, 0.0, m.cost, m.lower, m.upper,
            m.row_lower, m.row_upper, m.start, m.index, m.value, m.integer.astype(np.int32),
        )  # fmt: skip
        _require(status, "model")

    def start_from(self, values: Floats) -> None:
        """Give a complete start. It must satisfy every row: HiGHS would drop another in silence."""
        solution = highspy.HighsSolution()
        solution.col_value = values.tolist()
        solution.value_valid = True
        _require(self.highs.setSolution(solution), "start")

    # running -------------------------------------------------------------------------------------------
    def begin(self) -> None:
        """Start the search, for what the handing over has left of the seconds."""
        self._limit(self._until - time.perf_counter())
        self._thread.start()

    def stop(self) -> None:
        """Ask the search to end; it does so at its next check (presolve and single steps are not cut
        short).
        """
        self._stop = True

    def wait(self) -> None:
        """Wait for the search to end by itself."""
        self._thread.join()

    def join(self) -> None:
        """Stop the search and wait for its end."""
        while self._thread.is_alive():
            self._stop = True
            self._thread.join(POLL_SECONDS)

    def messages(self) -> Iterator[_Message]:
        """What has arrived, waiting a moment if there is nothing."""
        try:
            yield self.inbox.get(timeout=POLL_SECONDS)
            while True:
                yield self.inbox.get_nowait()
        except queue.Empty:
            return

    def _run(self) -> None:
        """In the search thread."""
        try:
            self._status = self.highs.run()
            if hasattr(highspy.Highs, "resetThreadScheduler"):
                highspy.Highs.resetThreadScheduler(False)
        except BaseException as failure:
            self.inbox.put(failure)
        finally:
            self.inbox.put(None)

    # callbacks, in the search thread -------------------------------------------------------------------
    # HiGHS swallows what they raise, so they raise nothing.
    def _on_interrupt(self, event: Any) -> None:
        if self._stop:
            event.interrupt()

    def _on_solution(self, event: Any) -> None:
        try:
            values = np.array(event.data_out.mip_solution, dtype=float)
            self._compare(values, float(event.data_out.objective_function_value))
            self.inbox.put(values)
        except BaseException as failure:
            self.inbox.put(failure)

    def _on_bound(self, event: Any) -> None:
        try:
            bound = float(event.data_out.mip_dual_bound)
            if self._told < bound < math.inf:
                self._told = bound
                self.inbox.put(bound)
        except BaseException as failure:
            self.inbox.put(failure)

    def _compare(self, values: Floats, claimed: float) -> None:
        """Stop at a solution that is not worth what HiGHS takes it for."""
        value = float(self.matrix.cost @ values)
        if abs(value - claimed) > 1e-5 * max(1.0, abs(value)):
            self.misled = self._stop = True

    # after ---------------------------------------------------------------------------------------------
    def answer(self) -> NativeAnswer:
        """The outcome, once the search has ended.

        Raises
        ------
        SolverError
            HiGHS failed, or says what cannot be.
        """
        _require(self._status, "run")
        native = str(self.highs.getModelStatus().name)
        status = STATUS.get(native)
        if status is None:
            raise SolverError(f"HiGHS ended with {native}")
        facts = self.highs.getInfo()
        bound = float(facts.mip_dual_bound)
        info = {"nodes": int(facts.mip_node_count), "simplex_iterations": int(facts.simplex_iteration_count)}
        return NativeAnswer(status, bound if math.isfinite(bound) else None, self._values(facts), info)

    def _values(self, facts: Any) -> Floats | None:
        """The solution, if there is one: without one the arrays are there all the same, full of zeros."""
        solution = self.highs.getSolution()
        if not solution.value_valid or facts.primal_solution_status != highspy.kSolutionStatusFeasible:
            return None
        values = np.array(solution.col_value, dtype=float)
        self._compare(values, float(facts.objective_function_value))
        return values


def _require(status: Any, what: str) -> None:
    """Refuse what HiGHS refuses; a warning (such as a time limit) is none."""
    if status not in (highspy.HighsStatus.kOk, highspy.HighsStatus.kWarning):
        raise SolverError(f"HiGHS failed: {what}")
