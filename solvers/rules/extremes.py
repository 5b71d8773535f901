"""Rules that look at one property of a mode only."""

from optalloc.placement import Placement
from optalloc.solvers.rules.criteria import Duration, Money, by
from optalloc.solvers.rules.desk import Desk
from optalloc.solvers.rules.listing import place_in_order

__all__ = ["cheapest", "fastest", "random", "random_placement"]


def cheapest(desk: Desk) -> None:
    """By release, each task in the mode that adds least money, over the cheapest routes."""
    place_in_order(desk, desk.problem.release.tolist(), by(Money()))


def fastest(desk: Desk) -> None:
    """By release, each task in a mode of the shortest duration, where it ends first."""
    place_in_order(desk, desk.problem.release.tolist(), by(Duration()))


def random(desk: Desk) -> None:
    """A random order and, for each task, the first of its modes in random order that has a placement."""
    place_in_order(desk, desk.rng.random(desk.problem.num_tasks).tolist(), random_placement)


def random_placement(desk: Desk, task: int) -> Placement | None:
    """The placement of the first mode, in random order, that has one."""
    for mode in desk.rng.permutation(desk.modes(task)).tolist():
        placement = desk.table.earliest(task, mode)
        if placement is not None and desk.allows(placement):
            return placement
    return None
