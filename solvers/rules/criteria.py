"""Ways to choose a mode for one task: the search, and what it minimises.

A criterion gives each placement a key (the smaller the better) and each mode, before it is placed, a lower
bound on the first entry of that key. The search places modes in the order of their bounds and stops where the
bound passes the best key found: most modes are never placed.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from optalloc.placement import Placement
from optalloc.problem import NEVER, Ints
from optalloc.solvers.rules.desk import Desk

__all__ = [
    "Choose", "Completion", "Criterion", "Duration", "Increase", "Key", "Money", "best_in_groups", "best_placement",
    "by",
]  # fmt: skip

Key = tuple[float, ...]
Choose = Callable[[Desk, int], Placement | None]
"""Where a rule puts a task; None: it has no feasible placement."""
Routes = dict[int, Sequence[int]] | None


class Criterion(Protocol):
    """What a rule minimises when it chooses the mode of a task."""

    def bounds(self, desk: Desk, modes: Ints, starts: Ints) -> Ints:
        """For each mode, started no earlier than ``starts``, a lower bound on the first entry of its key."""
        ...

    def key(self, desk: Desk, placement: Placement) -> Key:
        """How good a placement is; smaller is better."""
        ...

    def slope(self, desk: Desk, task: int) -> float:
        """By how much the first entry of the key grows at least with every tick that the run starts later."""
        ...

    def routes(self, desk: Desk, mode: int) -> Routes:
        """Routes that missing transfers may take; None: all."""
        ...


class Completion:
    """Earliest end; among equals the least own money."""

    def bounds(self, desk: Desk, modes: Ints, starts: Ints) -> Ints:
        return np.asarray(starts + desk.problem.duration[modes])

    def key(self, desk: Desk, placement: Placement) -> Key:
        return placement.end, desk.problem.money.item(placement.mode), placement.mode

    def slope(self, desk: Desk, task: int) -> float:
        return 1

    def routes(self, desk: Desk, mode: int) -> Routes:
        return None


class Duration(Completion):
    """Shortest run; among equals the earliest end."""

    def bounds(self, desk: Desk, modes: Ints, starts: Ints) -> Ints:
        return np.asarray(desk.problem.duration[modes])

    def key(self, desk: Desk, placement: Placement) -> Key:
        return placement.end - placement.start, placement.end, placement.mode

    def slope(self, desk: Desk, task: int) -> float:
        return 0


class Money(Completion):
    """Least money, new transfers over their cheapest routes and purchases included; then the earliest end."""

    def bounds(self, desk: Desk, modes: Ints, starts: Ints) -> Ints:
        return np.asarray(desk.problem.money[modes] + desk.shared_money(modes))

    def key(self, desk: Desk, placement: Placement) -> Key:
        return desk.money(placement), placement.end, placement.mode

    def slope(self, desk: Desk, task: int) -> float:
        return 0

    def routes(self, desk: Desk, mode: int) -> Routes:
        problem, table = desk.problem, desk.table
        missing = [replica for replica in table.facts(mode).needs if replica not in table.held]
        return {replica: _cheapest(problem.routes_of(replica), problem.route_cost) for replica in missing}


def _cheapest(routes: range, cost: Ints) -> list[int]:
    least = min((cost.item(route) for route in routes), default=0)
    return [route for route in routes if cost.item(route) == least]


class Increase(Completion):
    """Least increase of the objective, level by level; then the earliest end."""

    def bounds(self, desk: Desk, modes: Ints, starts: Ints) -> Ints:
        return desk.least_increase(desk.problem.levels[0], modes, starts)

    def key(self, desk: Desk, placement: Placement) -> Key:
        return *desk.increase(placement), placement.end, placement.mode

    def slope(self, desk: Desk, task: int) -> float:
        return desk.problem.levels[0].completion.item(task)


def best_placement(
    desk: Desk, task: int, criterion: Criterion, modes: Ints | None = None
) -> Placement | None:
    """The best placement of a task by a criterion, among those that the limits allow, or None."""
    modes = desk.modes(task) if modes is None else modes
    starts = desk.starts(task, modes)
    modes, starts = modes[starts < NEVER], starts[starts < NEVER]
    bounds = criterion.bounds(desk, modes, starts)
    order = np.argsort(bounds, kind="stable")
    slope = criterion.slope(desk, task)
    best: Placement | None = None
    best_key: Key = ()
    latest = NEVER
    for mode, start, bound in zip(
        *(column[order].tolist() for column in (modes, starts, bounds)), strict=True
    ):
        if best is not None:
            if bound > best_key[0]:
                break
            latest = start + int((best_key[0] - bound) // slope) if slope else NEVER
        placement = desk.table.earliest(task, mode, latest=latest, routes=criterion.routes(desk, mode))
        if placement is None or not desk.allows(placement):
            continue
        key = criterion.key(desk, placement)
        if best is None or key < best_key:
            best, best_key = placement, key
    return best


def by(criterion: Criterion) -> Choose:
    """The choice of the best placement by one criterion."""
    return lambda desk, task: best_placement(desk, task, criterion)


def best_in_groups(desk: Desk, task: int, modes: Ints, rank: Ints, criterion: Criterion) -> Placement | None:
    """The best placement in the first group of modes that has any.

    Parameters
    ----------
    rank
        Group of each mode; the least comes first.
    """
    for group in np.unique(rank).tolist():
        placement = best_placement(desk, task, criterion, modes[rank == group])
        if placement is not None:
            return placement
    return None
