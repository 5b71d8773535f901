"""A plan to begin from: the best of a few fast rules."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np

from optalloc.errors import SolverError
from optalloc.evaluation import evaluate
from optalloc.problem import NEVER, Plan
from optalloc.scope import Scope
from optalloc.solvers.rules.completion import min_min, sufferage
from optalloc.solvers.rules.data_then_devices import data_first
from optalloc.solvers.rules.desk import DeadEnd, Desk
from optalloc.solvers.rules.due_dates import atc, due_date
from optalloc.solvers.rules.extremes import cheapest, random
from optalloc.solvers.rules.first_come import fifo
from optalloc.solvers.rules.joint import place_jointly
from optalloc.solvers.rules.shortest import smith_ratio, wspt
from optalloc.solvers.rules.upward_rank import heft, upward_rank

__all__ = ["best_start", "joint_with_retries"]

SMALL: Final = 100
"""Up to this many open tasks nearly all rules are tried."""

MEDIUM: Final = 1000
"""Up to this many the rule by apparent tardiness cost is tried, whose time grows faster than the number of tasks."""

RETRIES: Final = 30
"""How often a joint rule starts again with the tasks first that it could not place, on small problems."""

FEW_RETRIES: Final = 3
"""The same on large problems."""

RESTARTS: Final = 20
"""Random plans tried on small problems that no rule has solved."""

Fill = Callable[[Desk], None]


def best_start(scope: Scope, seed: int = 0, should_stop: Callable[[], bool] = lambda: False) -> Plan | None:
    """The best plan, verified, of a few fast rules; None if all of them fail, which proves nothing.

    Parameters
    ----------
    seed
        Of the random restarts; without a dead end the answer does not depend on it.
    should_stop
        Asked before each further rule; the best plan so far is given once it says True.
    """
    try:
        blank = Desk(scope, seed)
    except DeadEnd:
        return None
    best, value = None, None
    for plan in _plans(blank, should_stop):
        found = _verified(scope, plan)
        if value is None or found < value:
            best, value = plan, found
    return best


def _fills(desk: Desk) -> list[Fill]:
    """The rules to try, the most promising first."""
    size = len(desk.free)
    orders = [(-smith_ratio(desk)).tolist(), desk.problem.release.tolist()]
    if (due_date(desk) < NEVER).any():
        orders.append(due_date(desk).tolist())
    if len(desk.problem.pred_task):
        orders.append((-upward_rank(desk)).tolist())
    fills = [*map(joint_with_retries, orders), wspt, fifo]
    if size <= MEDIUM:
        fills.append(atc)
    return [*fills, min_min, sufferage, heft, data_first, cheapest] if size <= SMALL else fills


def joint_with_retries(priority: Sequence[float]) -> Fill:
    """A joint rule that, after a dead end, starts again with the tasks first that it could not place."""

    def fill(desk: Desk) -> None:
        urgent: list[int] = []
        for _ in range(RETRIES if len(desk.free) <= SMALL else FEW_RETRIES):
            trial = desk.copy()
            try:
                place_jointly(trial, priority, urgent)
            except DeadEnd as end:
                if end.task in urgent:
                    raise
                urgent.append(end.task)
            else:
                desk.table = trial.table
                return
        raise DeadEnd(urgent[-1])

    return fill


def _plans(blank: Desk, should_stop: Callable[[], bool]) -> Iterator[Plan]:
    found = False
    for index, fill in enumerate(_fills(blank)):
        if index and should_stop():
            return
        desk = blank.copy()
        try:
            fill(desk)
        except DeadEnd:
            continue
        found = True
        yield desk.table.plan()
    if not found and len(blank.free) <= SMALL:
        yield from _random_plans(blank)


def _random_plans(blank: Desk) -> Iterator[Plan]:
    for restart in range(RESTARTS):
        desk = blank.copy()
        desk.rng = np.random.default_rng([blank.seed, restart])
        try:
            random(desk)
        except DeadEnd:
            continue
        yield desk.table.plan()
        return


def _verified(scope: Scope, plan: Plan) -> tuple[int, ...]:
    """The levels of a plan that breaks no rule."""
    checked = evaluate(scope.problem, plan, scope=scope)
    if checked.violations:
        raise SolverError(f"the start plan breaks {checked.violations[0]}")
    return checked.levels
