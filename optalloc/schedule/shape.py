"""Is a plan one of this problem at all? Asked before any rule is."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from optalloc.errors import Fault, InputError
from optalloc.problem import NEVER, Plan, Problem, Transfer

__all__ = ["check_shape"]


def check_shape(problem: Problem, plan: Plan, name: str = "plan") -> None:
    """Refuse arrays of another length or kind, ticks beyond 2^53, and transfers that are none.

    Raises
    ------
    InputError
        With every fault; paths begin with ``name``.
    """
    faults = list(_faults(problem, plan, name))
    if faults:
        raise InputError(faults)


def _faults(problem: Problem, plan: Plan, name: str) -> Iterator[Fault]:
    for part, array in (("mode", plan.mode), ("start", plan.start)):
        wrong = _wrong(array, problem.num_tasks)
        if wrong:
            yield Fault(
                f"{name}.{part}", f"must be an array of {problem.num_tasks} int64, one a task, got {wrong}"
            )
        elif array.size and (array.max() > NEVER or array.min() < -NEVER):
            yield Fault(f"{name}.{part}", "must not exceed 2^53")
    if not isinstance(plan.transfers, tuple) or not all(isinstance(t, Transfer) for t in plan.transfers):
        yield Fault(f"{name}.transfers", "must be a tuple of Transfer")


def _wrong(array: Any, length: int) -> str:
    """What it is, if it is not an array of so many signed integers."""
    if not isinstance(array, np.ndarray):
        return type(array).__name__
    if array.dtype.kind != "i":
        return f"an array of {array.dtype}"
    return "" if array.shape == (length,) else f"one of shape {array.shape}"
