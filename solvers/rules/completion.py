"""Rules that compare the earliest ends of all ready tasks at every step.

References
----------
Ibarra, O. H. and Kim, C. E. (1977). Heuristic algorithms for scheduling independent tasks on nonidentical
processors. Journal of the ACM 24(2), 280-289. https://doi.org/10.1145/322003.322011

Maheswaran, M., Ali, S., Siegel, H. J., Hensgen, D. and Freund, R. F. (1999). Dynamic mapping of a class of
independent tasks onto heterogeneous computing systems. Journal of Parallel and Distributed Computing 59(2),
107-131. https://doi.org/10.1006/jpdc.1999.1581
"""

from collections.abc import Callable

import numpy as np

from optalloc.problem import NEVER, Ints
from optalloc.solvers.rules.desk import Desk
from optalloc.solvers.rules.offers import Offers, place_best_offers

__all__ = ["max_min", "min_min", "sufferage"]


def min_min(desk: Desk) -> None:
    """Min-min: the ready task whose earliest end is least, where it ends first."""
    place_best_offers(desk, Offers.first_to_end)


def max_min(desk: Desk) -> None:
    """Max-min: the ready task whose earliest end is largest, where it ends first."""
    place_best_offers(desk, lambda offers: _largest(offers, lambda: offers.end))


def sufferage(desk: Desk) -> None:
    """Sufferage: the ready task that ends latest, compared with its best, if it has to use another node.

    A task with a placement on one node only goes before all others.
    """
    place_best_offers(
        desk, lambda offers: _largest(offers, lambda: offers.second - offers.end), with_second=True
    )


def _largest(offers: Offers, value: Callable[[], Ints]) -> int:
    """The ready task with the largest value, all offers up to date; tasks without a placement come last."""
    offers.check_all()
    return int(np.argmax(np.where(offers.ready, np.where(offers.end < NEVER, value(), -1), -2)))
