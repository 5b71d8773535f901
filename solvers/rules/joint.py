"""Data, devices and time at once."""

from collections.abc import Iterable, Sequence

from optalloc.solvers.rules.criteria import Increase, by
from optalloc.solvers.rules.desk import Desk
from optalloc.solvers.rules.listing import place_in_order
from optalloc.solvers.rules.shortest import smith_ratio

__all__ = ["joint_greedy", "place_jointly"]


def joint_greedy(desk: Desk) -> None:
    """Largest w_j / p_j first, each task in the mode that increases the objective least, level by level.

    All modes are compared; the increase counts the charges that the placement causes for everyone (egress of
    new transfers, purchases, makespan).
    """
    place_jointly(desk, (-smith_ratio(desk)).tolist())


def place_jointly(desk: Desk, priority: Sequence[float], urgent: Iterable[int] = ()) -> None:
    """Joint choice of modes in any order of tasks."""
    place_in_order(desk, priority, by(Increase()), urgent)
