"""`solve`: compile, run, verify, and say what is proven."""

import math
import time
from collections.abc import Callable, Iterable, Mapping
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from optalloc.compilation import compile as compile_problem
from optalloc.errors import Fault, InputError, SolverError, UnsupportedError
from optalloc.instance import Instance, Objective
from optalloc.io.reading import as_instance
from optalloc.objective_spec import with_objective
from optalloc.problem import Plan, Problem
from optalloc.result import CurvePoint, Result, Termination
from optalloc.schedule import Schedule, as_schedule, build_scope
from optalloc.scope import Scope
from optalloc.solvers.base import Monitor, Outcome, Request
from optalloc.solvers.beginning import accepted_start, contradictions, is_plain, settled, shown_impossible
from optalloc.solvers.crashes import failure_of
from optalloc.solvers.ending import Run, infeasible_result, result_of
from optalloc.solvers.interrupts import cut, interruptible
from optalloc.solvers.options import checked_options, usable_cores
from optalloc.solvers.registry import SolverEntry, entry_of

__all__ = ["solve"]


def solve(
    instance_or_problem: Instance | Problem | str | Path,
    solver: str | SolverEntry | Callable[..., Any] = "auto",
    *,
    time_limit: float = 60.0,
    seed: int = 0,
    start: Schedule | Plan | str | Path | None = None,
    fixed: Schedule | Plan | str | Path | None = None,
    not_before: int = 0,
    tasks: Iterable[str] | None = None,
    max_gap: float | None = None,
    threads: int | None = None,
    objective: Objective | str | None = None,
    limits: Mapping[str, Any] | None = None,
    on_event: Callable[[CurvePoint], None] | None = None,
    options: Mapping[str, Any] | None = None,
    began: float | None = None,
) -> Result:
    """Find the best plan within the time limit, verify it, and say how far from the best possible it is.

    No status is an exception: see `Result` and docs/results.md.

    Parameters
    ----------
    instance_or_problem
        An instance, a compiled one, a file, or the name of a shipped instance.
    solver
        A name (`optalloc list solvers`), ``module:object``, or a function.
    time_limit
        Seconds of wall time, compiling and model building included.
    seed
        Of everything that is drawn; at least 0.
    start
        A plan, or the file of one, to begin from; the result is never worse. One that breaks a rule is refused with a
        note.
    fixed
        A partial plan, or its file, that stays as it is and uses capacity. The instance's state is fixed in any case.
    not_before
        Nothing outside the fixed part starts before this tick.
    tasks
        Ids of the tasks to decide; others that are not fixed do not exist for this solve. Default: all.
    max_gap
        A level is done once its gap is this small. Default: prove it.
    threads
        Threads that the solver may use. Default: the cores of this process, at most 8.
    objective, limits
        Instead of the instance's: see `with_objective`.
    on_event
        Called with every new plan or bound; what it raises ends the run and reaches the caller.
    options
        For the solver, by name.
    began
        `time.perf_counter` from which the limit counts. Default: now.

    Raises
    ------
    InputError
        For malformed arguments: unknown solver, option or task; a fixed part that names what does not exist.
    UnsupportedError
        If the solver does not handle the problem; the message names the remedy.
    KeyboardInterrupt
        If Ctrl-C is pressed before there is a problem to solve; later, the result says ``Termination.USER``.
    """
    began = time.perf_counter() if began is None else began
    with interruptible():
        entry = cut(lambda: entry_of(solver))
        given = checked_options(entry, options)
        limit, gap = _seconds(time_limit), _gap(max_gap)
        if on_event is not None and not callable(on_event):
            raise TypeError(f"on_event must be a function of a CurvePoint, got {on_event!r}")
        problem, instance = cut(lambda: _compiled(instance_or_problem, objective, limits))
        start, fixed = _decided("start", start), _decided("fixed", fixed)
        scope = build_scope(problem, fixed, _whole("not_before", not_before), tasks)
        monitor = Monitor(scope, limit, max_gap=gap, began=began, on_event=on_event)
        run = Run(entry, monitor, _whole("seed", seed, least=0), usable_cores(threads), instance.sha256)
        reasons = shown_impossible(scope) or contradictions(scope)
        if reasons:
            return infeasible_result(run, reasons)
        run.notes, begin = accepted_start(monitor, start)
        if settled(monitor):
            outcome = Outcome(Termination.PROVEN)
        else:
            _refuse_scope(entry, scope)
            outcome = _outcome(entry, Request(scope, monitor, begin, run.seed, run.threads, given), run)
        if monitor.failure is not None:
            raise monitor.failure
        return result_of(run, outcome)


def _outcome(entry: SolverEntry, request: Request, run: Run) -> Outcome:
    """Run the solver; what goes wrong in it becomes an outcome, and the best verified plan is kept."""
    try:
        return _answer(entry.name, cut(lambda: entry.run(request), request.monitor))
    except KeyboardInterrupt:
        request.monitor.interrupt()
        return Outcome(Termination.USER)
    except MemoryError:
        return Outcome(Termination.MEMORY, message="the solver ran out of memory")
    except SolverError as error:
        run.failed = str(error)
        return Outcome(Termination.ERROR, message=str(error))
    except (InputError, UnsupportedError):
        raise  # the solver refuses what it was asked
    except (Exception, SystemExit) as error:
        failure = failure_of(entry.name, error)
        run.failed = failure.message
        return Outcome(Termination.ERROR, message=failure.message, info={"traceback": failure.frames})


def _answer(name: str, outcome: Any) -> Outcome:
    if not isinstance(outcome, Outcome):
        given = type(outcome).__name__
        raise SolverError(f"{name} returned {given}; a function of a request returns an Outcome")
    if not isinstance(outcome.termination, Termination) or not isinstance(outcome.info, Mapping):
        raise SolverError(f"{name} returned {outcome}; its termination is a Termination, its info a dict")
    return outcome


def _compiled(
    given: Instance | Problem | str | Path,
    objective: Objective | str | None,
    limits: Mapping[str, Any] | None,
) -> tuple[Problem, Instance]:
    """The problem, recompiled if the objective changes, and the instance as it was given."""
    instance = given.instance if isinstance(given, Problem) else as_instance(given)
    changed = with_objective(instance, objective, limits)
    if isinstance(given, Problem) and changed is instance:
        return given, instance
    return compile_problem(changed), instance


def _refuse_scope(entry: SolverEntry, scope: Scope) -> None:
    if not entry.scoped and not is_plain(scope):
        raise UnsupportedError(
            f"{entry.name} cannot keep to a fixed part, not_before or chosen tasks; "
            "let the function take the keyword 'scope'"
        )


def _decided(name: str, given: Schedule | Plan | str | Path | None) -> Schedule | Plan | None:
    return None if given is None else as_schedule(given, name)


# numbers --------------------------------------------------------------------------------------------------
def _real(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, got {value!r}")
    if math.isnan(value) or value < 0:
        raise InputError(Fault(name, f"must be at least 0, got {value}"))
    return float(value)


def _seconds(value: Any) -> float:
    return _real("time_limit", value)


def _gap(value: Any) -> float | None:
    return None if value is None else _real("max_gap", value)


def _whole(name: str, value: Any, least: int | None = None) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be a whole number, got {value!r}")
    if least is not None and value < least:
        raise InputError(Fault(name, f"must be at least {least}, got {value}"))
    return int(value)
