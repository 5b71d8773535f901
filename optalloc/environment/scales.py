"""Units of the observation: running means over the tasks seen so far, so that nothing of the future shows."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from optalloc.environment.costs import Costs
from optalloc.environment.layout import Layout
from optalloc.problem import NEVER

__all__ = ["Floats", "Isolated", "Scales", "share", "signed"]

Floats = NDArray[np.float64]


def share(x: Any) -> Any:
    """x / (1 + x): [0, inf) to [0, 1); 1 is half-way."""
    return x / (1 + x)


def signed(x: Any) -> Any:
    """x / (1 + abs x): the same for both signs."""
    return x / (1 + np.abs(x))


class Isolated:
    """Each task by itself, in the row that then adds least to the objective.

    Attributes
    ----------
    value
        (J,) what it adds after its release; 0 without rows.
    duration
        (J,) ticks of that run; 0 without rows.
    """

    def __init__(self, layout: Layout, costs: Costs):
        problem = layout.problem
        release = problem.release[layout.task]
        ticks = np.append(problem.route_ticks, NEVER)[layout.routes].min(axis=1, initial=NEVER)
        money = np.append(problem.route_cost, NEVER)[layout.routes].min(axis=1, initial=NEVER)
        # Replicas without any route, and the padding, cost nothing here: such rows are never open anyway.
        ticks, money = (np.where(least < NEVER, least, 0) for least in (ticks, money))
        arrival = np.append(problem.replica_available, 0) + ticks
        end = np.maximum(layout.earliest, arrival[layout.need].max(axis=1, initial=0)) + layout.duration
        prices = np.append(problem.purchase_cost, 0)
        charge = money[layout.need].sum(axis=1) + prices[layout.buy].sum(axis=1)
        value = costs.increase(np.arange(layout.num_rows), end, charge, 0) - costs.sunk(layout.task, release)
        self.value = np.zeros(problem.num_tasks)
        self.duration = np.zeros(problem.num_tasks)
        for task, rows in enumerate(layout.row_list):
            if len(rows):
                best = rows[value[rows].argmin()]
                self.value[task], self.duration[task] = value[best], layout.duration[best]


class Scales:
    """Running means over seen tasks.

    Attributes
    ----------
    time
        Ticks: mean `Isolated.duration`, at least 1.
    value
        Mean size of `Isolated.value`, at least 1.
    weight
        Mean weight; 1 while nothing is seen.
    """

    def __init__(self, isolated: Isolated, weight: Floats):
        self._columns = np.stack([isolated.duration, np.abs(isolated.value), weight])
        self._seen = np.zeros(len(weight), dtype=bool)
        self._sum = np.zeros(3)
        self.time = self.value = self.weight = 1.0

    def see(self, tasks: list[int]) -> None:
        """These tasks are in the queue now."""
        new = [task for task in tasks if not self._seen[task]]
        if new:
            self._seen[new] = True
            self._sum += self._columns[:, new].sum(axis=1)
            time, value, weight = (self._sum / self._seen.sum()).tolist()
            self.time, self.value, self.weight = max(1.0, time), max(1.0, value), weight or 1.0
