"""First come, first served."""

from optalloc.solvers.rules.criteria import Completion, by
from optalloc.solvers.rules.desk import Desk
from optalloc.solvers.rules.listing import place_in_order

__all__ = ["fifo"]


def fifo(desk: Desk) -> None:
    """First in, first out: by release, each task where it ends first."""
    place_in_order(desk, desk.problem.release.tolist(), by(Completion()))
