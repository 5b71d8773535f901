r"""Short tasks first: ``p_j`` is the duration of the shortest mode of task j, ``w_j`` its weight.

References
----------
Smith, W. E. (1956). Various optimizers for single-stage production. Naval Research Logistics Quarterly
3(1-2), 59-66. https://doi.org/10.1002/nav.3800030106
"""

import numpy as np

from optalloc.solvers.rules.criteria import Completion, by
from optalloc.solvers.rules.desk import Desk
from optalloc.solvers.rules.listing import place_in_order

__all__ = ["smith_ratio", "spt", "wspt"]


def spt(desk: Desk) -> None:
    """Shortest processing time: least p_j first, each task where it ends first."""
    place_in_order(desk, desk.shortest.tolist(), by(Completion()))


def wspt(desk: Desk) -> None:
    """Weighted shortest processing time: largest w_j / p_j first, each task where it ends first."""
    place_in_order(desk, (-smith_ratio(desk)).tolist(), by(Completion()))


def smith_ratio(desk: Desk) -> np.ndarray:
    """(J,) w_j / p_j."""
    return np.asarray(desk.weight / np.maximum(desk.shortest, 1))
