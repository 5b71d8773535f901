"""`flat-dqn`: a control of `fdqn` that scores every row of every waiting task at once. For small problems only.

Q(s, row) = V(s) + A(row) - max A. The rule's score of a row is the urgency of its task plus what the row is worse than
the task's best; so zero residuals are `replan-index` here, too.
"""

from dataclasses import dataclass

from optalloc.solvers.learned import fdqn
from optalloc.solvers.learned.schedulers import flat

__all__ = ["Args", "Learner"]


@dataclass(frozen=True)
class Args(fdqn.Args):
    """Settings: those of `fdqn`, with a smaller memory, since decisions are large."""

    memory: int = 5_000


class Learner(fdqn.Learner):
    """The learner of `fdqn` on the product space."""

    make = staticmethod(flat)
