"""Tasks at the head of long chains first.

References
----------
Topcuoglu, H., Hariri, S. and Wu, M.-Y. (2002). Performance-effective and low-complexity task scheduling for
heterogeneous computing. IEEE Transactions on Parallel and Distributed Systems 13(3), 260-274.
https://doi.org/10.1109/71.993206
"""

import numpy as np

from optalloc.solvers.rules.criteria import Completion, by
from optalloc.solvers.rules.desk import Desk
from optalloc.solvers.rules.listing import place_in_order

__all__ = ["heft", "upward_rank"]


def upward_rank(desk: Desk) -> np.ndarray:
    r"""(J,) :math:`r_j = \bar p_j + \max_s (lag_{js} + r_s)` over the successors s of j.

    :math:`\bar p_j` is the mean duration over the modes of j; what data transfers add is in the placement,
    not here.
    """
    rank = desk.mean_duration.astype(float)
    for task in reversed(desk.problem.topological):
        for pred, lag in desk.problem.predecessors(task):
            rank[pred] = max(rank[pred], desk.mean_duration[pred] + lag + rank[task])
    return rank


def heft(desk: Desk) -> None:
    """Heterogeneous earliest finish time: largest upward rank first, each task where it ends first."""
    place_in_order(desk, (-upward_rank(desk)).tolist(), by(Completion()))
