"""`additive`: a control of `fdqn` whose data, node and device scores know nothing of each other (value decomposition).

Everything but this is `fdqn`: the same encoder, memory, targets and budget. Data are described without the node, nodes
without the data, and each is scored by the best row of the task that has it; Q is the sum, with one error on the sum.
Where the best node depends on the data, such a sum cannot be right.

References
----------
Sunehag, P. et al. (2018). Value-decomposition networks for cooperative multi-agent learning. AAMAS 2018.
https://arxiv.org/abs/1706.05296
"""

from dataclasses import dataclass

from optalloc.solvers.learned import fdqn
from optalloc.solvers.learned.schedulers import branched

__all__ = ["Args", "Learner"]


@dataclass(frozen=True)
class Args(fdqn.Args):
    """Settings: those of `fdqn`."""


class Learner(fdqn.Learner):
    """The learner of `fdqn` on independent branches."""

    make = staticmethod(branched)
