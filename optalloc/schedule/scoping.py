"""What one solve may decide, given the state, a fixed partial plan, a first tick and a choice of tasks."""

from collections.abc import Iterable

import numpy as np

from optalloc.errors import Fault, InputError
from optalloc.problem import ABSENT, FREE, REJECTED, Plan, Problem, Transfer
from optalloc.schedule.conversion import resolve
from optalloc.schedule.model import Schedule
from optalloc.schedule.names import names
from optalloc.schedule.shape import check_shape
from optalloc.scope import Scope, full_scope

__all__ = ["build_scope"]


def build_scope(
    problem: Problem,
    fixed: Schedule | Plan | None = None,
    not_before: int = 0,
    tasks: Iterable[str] | None = None,
) -> Scope:
    """The scope of a solve.

    Parameters
    ----------
    fixed
        A partial plan that stays as it is and uses capacity. The state of the instance is fixed in any case.
    not_before
        Nothing outside the fixed part starts before this tick.
    tasks
        Ids of the tasks to decide; others that are not fixed do not exist for the solve. Default: all.

    Raises
    ------
    InputError
        If ``fixed`` or ``tasks`` names what is not in the instance, or what is not possible.
    """
    if not_before < 0:
        raise InputError(Fault("not_before", f"must be at least 0, got {not_before}"))
    scope = full_scope(problem)
    mode, start, transfers = scope.mode.copy(), scope.start.copy(), scope.transfers
    if fixed is not None:
        plan = _fixed_plan(problem, fixed)
        settled = ((plan.mode >= 0) | (plan.mode == REJECTED)) & (mode == FREE)
        mode[settled], start[settled] = plan.mode[settled], plan.start[settled]
        transfers = _joined(transfers, plan.transfers)
    if tasks is not None:
        wanted = np.zeros(problem.num_tasks, dtype=bool)
        wanted[_task_indices(problem, tasks)] = True
        mode[(mode == FREE) & ~wanted] = ABSENT
    return Scope(problem, mode, np.where(mode >= 0, start, 0), transfers, int(not_before))


def _fixed_plan(problem: Problem, fixed: Schedule | Plan) -> Plan:
    if isinstance(fixed, Plan):
        check_shape(problem, fixed, "fixed")
        return fixed
    plan, violations = resolve(problem, fixed)
    if violations:
        raise InputError([Fault("fixed", str(violation)) for violation in violations])
    return plan


def _joined(state: tuple[Transfer, ...], fixed: tuple[Transfer, ...]) -> tuple[Transfer, ...]:
    """The transfers of the state first; those of ``fixed`` may repeat them."""
    return state + tuple(transfer for transfer in fixed if transfer not in state)


def _task_indices(problem: Problem, tasks: Iterable[str]) -> list[int]:
    if isinstance(tasks, str):
        raise TypeError(f"tasks must be several ids, got the text {tasks!r}")
    known = names(problem).task
    if not isinstance(tasks, Iterable):
        raise TypeError(f"tasks must be several ids, got {tasks!r}")
    wanted = list(tasks)
    unknown = [id for id in wanted if id not in known]
    if unknown:
        raise InputError([Fault("tasks", f"no such task: {id!r}") for id in unknown])
    return [known[id] for id in wanted]
