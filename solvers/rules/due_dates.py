r"""Due dates first: ``d_j`` is the due date of task j, ``p_j`` its shortest duration, ``w_j`` its weight.

References
----------
Jackson, J. R. (1955). Scheduling a production line to minimize maximum tardiness. Research Report 43,
Management Science Research Project, University of California, Los Angeles.

Vepsalainen, A. P. J. and Morton, T. E. (1987). Priority rules for job shops with weighted tardiness costs.
Management Science 33(8), 1035-1047. https://doi.org/10.1287/mnsc.33.8.1035
"""

from typing import Final

import numpy as np

from optalloc.problem import NEVER
from optalloc.solvers.rules.criteria import Completion, by
from optalloc.solvers.rules.desk import Desk
from optalloc.solvers.rules.listing import place_in_order
from optalloc.solvers.rules.offers import Offers, place_best_offers
from optalloc.solvers.rules.shortest import smith_ratio

__all__ = ["LOOK_AHEAD", "atc", "atc_index", "due_date", "edd"]

LOOK_AHEAD: Final = 2.0
"""k of the ATC rule: how many mean durations ahead a due date is felt."""


def due_date(desk: Desk) -> np.ndarray:
    """(J,) the due date, or the deadline where that is earlier."""
    return np.minimum(desk.problem.due, desk.problem.deadline)


def edd(desk: Desk) -> None:
    """Earliest due date (or deadline, if that is earlier) first, each task where it ends first."""
    place_in_order(desk, due_date(desk).tolist(), by(Completion()))


def atc_index(desk: Desk, tasks: np.ndarray, now: int, mean: float) -> np.ndarray:
    r"""Apparent tardiness cost :math:`(w_j / p_j) \exp(-\max(0, d_j - p_j - t) / (k \bar p))` of each task.

    Parameters
    ----------
    now
        The tick t of the decision.
    mean
        :math:`\bar p`, mean of p_j over the tasks that wait.
    """
    slack = np.maximum(0, due_date(desk)[tasks] - desk.shortest[tasks] - now)
    return np.asarray(smith_ratio(desk)[tasks] * np.exp(-slack / (LOOK_AHEAD * max(mean, 1))))


def atc(desk: Desk) -> None:
    """Apparent tardiness cost: largest index I_j(t) first, each task where it ends first.

    The tick t of a decision is the start of the placement that ends first of all. Only tasks that wait by t
    (released, predecessors ended, lags included) are compared; tasks without a due date have index 0 and go
    by w_j / p_j among themselves.
    """
    ratio = smith_ratio(desk)

    def pick(offers: Offers) -> int:
        waiting = np.flatnonzero(offers.ready)
        now = offers.start.item(offers.first_to_end())
        if now >= NEVER:
            return int(waiting[0])
        come = waiting[offers.since[waiting] <= now]
        index = atc_index(desk, come, now, float(desk.shortest[waiting].mean()))
        return int(come[np.lexsort((come, -ratio[come], -index))[0]])

    place_best_offers(desk, pick)
