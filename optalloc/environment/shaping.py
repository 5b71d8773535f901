"""Potential-based shaping: denser rewards that leave every optimal policy optimal.

References
----------
Ng, A. Y., Harada, D. and Russell, S. (1999). Policy invariance under reward transformations: theory and application
to reward shaping. ICML 1999, 278-287.
"""

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from optalloc.environment.episode import Episode
from optalloc.errors import Fault, InputError
from optalloc.problem import FREE

__all__ = ["POTENTIALS", "Potential", "backlog", "potential_of"]

Potential = Callable[[Episode], float]
"""A number for each state that is not terminal; terminal states have 0."""


def backlog(episode: Episode) -> float:
    """Minus what the seen tasks that are not decided for good still add at least, each alone from now on.

    Each in its cheapest row that starts no earlier than now, without transfers and purchases, or rejected where that
    is allowed and adds less.
    """
    prepared, simulator = episode.prepared, episode.simulator
    layout, costs = prepared.layout, prepared.costs[0]
    total = 0
    for task in simulator.queue:
        rows = layout.row_list[task]
        options = []
        if len(rows):
            end = np.maximum(layout.earliest[rows], simulator.clock) + layout.duration[rows]
            money = np.zeros_like(end)
            options.append(int(costs.increase(rows, end, money, simulator.firm.makespan).min()))
        if simulator.scope.rejectable[task] and simulator.firm.mode[task] == FREE:
            options.append(int(costs.rejection[task]))
        total += min(options, default=0)
    return float(-total)


POTENTIALS: Final[Mapping[str, Potential]] = {"backlog": backlog}


def potential_of(shaping: str | Potential | None) -> Potential | None:
    """The potential by its name, or a function of an episode as it is.

    Raises
    ------
    InputError
        There is none of that name.
    """
    if isinstance(shaping, str):
        if shaping not in POTENTIALS:
            raise InputError(
                Fault("shaping", f"must be one of {', '.join(POTENTIALS)} or a function, got {shaping!r}")
            )
        return POTENTIALS[shaping]
    return shaping
