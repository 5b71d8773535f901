"""Backfilling: first come, first served, and later tasks may use what would stay idle.

References
----------
Lifka, D. A. (1995). The ANL/IBM SP scheduling system. Job Scheduling Strategies for Parallel Processing, LNCS
949, 295-303. https://doi.org/10.1007/3-540-60153-8_35

Mu'alem, A. W. and Feitelson, D. G. (2001). Utilization, predictability, workloads, and user runtime estimates in
scheduling the IBM SP2 with backfilling. IEEE Transactions on Parallel and Distributed Systems 12(6), 529-543.
https://doi.org/10.1109/71.932708
"""

from optalloc.placement import Placement
from optalloc.problem import FREE
from optalloc.solvers.online.desk import OnlineDesk
from optalloc.solvers.rules.criteria import Criterion, Increase, best_placement, by
from optalloc.solvers.rules.listing import place_in_order

__all__ = ["conservative_backfill", "easy_backfill", "starting_now"]


def easy_backfill(desk: OnlineDesk) -> None:
    """EASY: the first task that cannot start has a reservation; later ones start now if that does not delay it."""
    clock = desk.simulator.clock
    head_waits = False
    for task in list(desk.free):
        if desk.table.mode[task] != FREE or desk.table.ready(task) > clock:
            continue
        if head_waits:
            placement = starting_now(desk, task, Increase())
            if placement is not None:
                desk.settle(task, placement)
            continue
        desk.settle(task, best_placement(desk, task, Increase()))
        # Still in the queue: it has only reserved its place until the next event.
        head_waits = task in desk.simulator.queue


def conservative_backfill(desk: OnlineDesk) -> None:
    """Conservative: every task has, from its release on, a reservation that nobody who comes later can delay."""
    place_in_order(desk, desk.problem.release.tolist(), by(Increase()))


def starting_now(desk: OnlineDesk, task: int, criterion: Criterion) -> Placement | None:
    """The best placement that starts at the clock, or None."""
    clock, modes = desk.simulator.clock, desk.modes(task)
    found = []
    for mode in modes[desk.starts(task, modes) <= clock].tolist():
        placement = desk.table.earliest(task, mode, latest=clock)
        if placement is not None and desk.allows(placement):
            found.append(placement)
    return min(found, key=lambda placement: criterion.key(desk, placement), default=None)
