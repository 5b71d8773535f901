r"""The strongest measured index rule, and how it values a mode.

With :math:`f_m` the end of a task in mode m if it is placed now, t the clock, :math:`w_j` the coefficient of
its completion in the first level (the task weights where that has none), :math:`g_m` devices and :math:`p_m`
duration:

- mode: least :math:`\Delta_m + \frac14 \cdot \frac{\sum_{i \text{ in the queue}} w_i}{\text{devices}} \cdot
  g_m p_m`, where :math:`\Delta_m` is what the placement adds to the first level: :math:`w_j (f_m - t)` + cost in
  the usual case. The second part is the price of holding devices while others wait.
- task: largest :math:`\log (w_j / (f_j - t))` of its best mode, computed again after every commitment.
"""

from fractions import Fraction

import numpy as np

from optalloc.placement import Placement
from optalloc.problem import FREE, Ints
from optalloc.solvers.online.desk import OnlineDesk
from optalloc.solvers.rules.criteria import Completion, Key, best_placement
from optalloc.solvers.rules.desk import Desk

__all__ = ["Priced", "replan_index", "urgency"]

_SHARE = Fraction(1, 4)


class Priced(Completion):
    """Least increase of the first level plus the price of the devices held; then the other levels, the end.

    Values are divided by K, so that they do not depend on tasks that nobody has seen.
    """

    def __init__(self, desk: OnlineDesk):
        problem = desk.problem
        self.scale = problem.scale
        self.devices = desk.devices
        completion = problem.levels[0].completion
        waiting = sum(completion.item(task) for task in desk.free)
        devices = max(1, sum(int(problem.capacity(n)[1].max()) for n in range(problem.num_nodes)))
        self.price = float(_SHARE * waiting / self.scale / devices)

    def bounds(self, desk: Desk, modes: Ints, starts: Ints) -> Ints:
        least = desk.least_increase(desk.problem.levels[0], modes, starts) / self.scale
        return np.asarray(least + self.price * (self.devices[modes] * desk.problem.duration[modes]))

    def key(self, desk: Desk, placement: Placement) -> Key:
        increase = desk.increase(placement)
        held = self.devices.item(placement.mode) * desk.problem.duration.item(placement.mode)
        return increase[0] / self.scale + self.price * held, *increase[1:], placement.end, placement.mode

    def slope(self, desk: Desk, task: int) -> float:
        # A little less, so that rounding never cuts off a start that is as good.
        return desk.problem.levels[0].completion.item(task) / self.scale * (1 - 1e-6)


def urgency(desk: OnlineDesk, placement: Placement) -> Fraction:
    """w / (f - t): orders tasks as its logarithm does, without rounding."""
    problem = desk.problem
    completion = problem.levels[0].completion
    task = placement.task
    weight = Fraction(completion.item(task), problem.scale) if completion.any() else problem.task_weight[task]
    return weight / max(1, placement.end - desk.simulator.clock)


def replan_index(desk: OnlineDesk) -> None:
    """Largest weight per tick to its end first, each task in its best mode with devices priced by the queue."""
    criterion = Priced(desk)
    offers: dict[int, Placement | None] = {}
    seen: set[int] = set()
    while True:
        new = [task for task in desk.free if task not in seen and _is_open(desk, task)]
        offers |= {task: best_placement(desk, task, criterion) for task in new}
        seen.update(new)
        if not offers:
            return
        task = _most_urgent(desk, offers)
        placement = offers.pop(task)
        desk.settle(task, placement)
        _renew(desk, offers, placement, criterion)


def _is_open(desk: OnlineDesk, task: int) -> bool:
    return desk.table.mode[task] == FREE and desk.placeable(task)


def _most_urgent(desk: OnlineDesk, offers: dict[int, Placement | None]) -> int:
    """Tasks without a placement come last; among equals the first in the queue."""

    def rank(task: int) -> Fraction:
        placement = offers[task]
        return Fraction(-1) if placement is None else urgency(desk, placement)

    return max(sorted(offers, key=lambda task: (desk.problem.release.item(task), task)), key=rank)


def _renew(
    desk: OnlineDesk, offers: dict[int, Placement | None], committed: Placement | None, criterion: Priced
) -> None:
    """Place again what does not fit any more; everything, if what others add can have changed with it."""
    for task in [task for task in offers if desk.table.mode[task] != FREE]:
        del offers[task]  # rejected with a task before it
    if committed is None:
        return
    problem = desk.problem
    shared = bool(committed.transfers or desk.table.facts(committed.mode).buys or problem.limits)
    shared |= any(level.makespan for level in problem.levels)
    for task, placement in offers.items():
        if shared or (placement is not None and not desk.table.fits(placement)):
            offers[task] = best_placement(desk, task, criterion)
