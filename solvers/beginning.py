"""What can be said before any solver runs."""

import numpy as np

from optalloc.errors import InputError, SolverError
from optalloc.evaluation import evaluate
from optalloc.problem import ABSENT, FREE, Plan
from optalloc.schedule import Schedule, Violation, resolve
from optalloc.schedule.shape import check_shape
from optalloc.scope import Scope
from optalloc.solvers.base import Monitor

__all__ = ["accepted_start", "contradictions", "is_plain", "settled", "shown_impossible"]

Reasons = dict[str, tuple[str, ...]]


def is_plain(scope: Scope) -> bool:
    """Nothing but the state of the instance is fixed, and all tasks exist."""
    same = np.array_equal(scope.mode, scope.problem.state_mode)
    return same and scope.not_before == 0 and scope.transfers == scope.problem.state_transfers


def shown_impossible(scope: Scope) -> Reasons:
    """Why there is no plan, as far as compiling has found out; only what concerns the tasks of this solve."""
    exists = dict(zip(scope.problem.task_ids, scope.exists.tolist(), strict=True))
    all_exist = bool(scope.exists.all())
    reasons = scope.problem.impossible.items()
    return {task: tuple(why) for task, why in reasons if exists.get(task, all_exist)}


def contradictions(scope: Scope) -> Reasons:
    """Rules that the fixed part breaks by itself: no plan can contain it.

    What more decisions may mend is left out: tasks without a place, and data that may yet be brought.
    """
    if np.isin(scope.mode, (FREE, ABSENT)).all() and not scope.transfers:
        return {}
    free = {id for id, free in zip(scope.problem.task_ids, scope.free.tolist(), strict=True) if free}
    reasons: Reasons = {}
    for violation in evaluate(scope.problem, scope.start_plan(), scope=scope).violations:
        if _is_final(violation, free):
            task = violation.ids[0] if violation.ids[0] in scope.problem.task_ids else ""
            reasons[task] = (*reasons.get(task, ()), f"what is fixed breaks {violation}")
    return reasons


def _is_final(violation: Violation, free: set[str]) -> bool:
    open_task = violation.rule == "R1" and violation.ids[0] in free
    return violation.rule != "R6" and not open_task


def accepted_start(monitor: Monitor, start: Schedule | Plan | None) -> tuple[tuple[str, ...], Plan | None]:
    """(notes, plan): the start if it keeps all rules, which is then the first plan held."""
    if start is None:
        return (), None
    scope = monitor.scope
    if isinstance(start, Schedule):
        start, violations = resolve(scope.problem, start)
        if violations:
            return (f"the start is refused: {violations[0]}",), None
    try:
        check_shape(scope.problem, start, "start")
        plan = Plan(np.where(scope.exists, start.mode, ABSENT), start.start.copy(), start.transfers)
        monitor.offer(plan, "start")
    except (InputError, SolverError) as error:
        return (f"the start is refused: {error}",), None
    return (), plan


def settled(monitor: Monitor) -> bool:
    """There is nothing to decide: the fixed part is the only plan, and it is held and proven now."""
    scope = monitor.scope
    if (scope.mode == FREE).any():
        return False
    plan = scope.start_plan()
    if not evaluate(scope.problem, plan, scope=scope).valid:
        return False
    monitor.offer(plan, "fixed")
    for level, value in enumerate(monitor.values):
        monitor.bound(level, value, "fixed")
    return True
