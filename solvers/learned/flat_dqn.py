"""`flat-dqn`: a control of `fdqn` that scores every row of every waiting task at once. For small problems only.

Q(s, row) = V(s) + A(row) - max A. The rule's score of a row is the urgency of its task plus what the row is worse than
the task's best; so zero residuals are `replan-index` here, too.
"""

from dataclasses import dataclass

from optalloc.errors import Fault, InputError
from optalloc.solvers.learned import fdqn
from optalloc.solvers.learned.schedulers import flat

__all__ = ["Args", "Learner"]


@dataclass(frozen=True)
class Args(fdqn.Args):
    """Settings: those of `fdqn`, with a smaller memory, since decisions are large."""

    memory: int = 5_000


class Learner(fdqn.Learner):
    """The learner of `fdqn` on the product space.

    Raises
    ------
    InputError
        There is an ``index``: its weights of rows belong to levels that are not here.
    """

    make = staticmethod(flat)

    def __init__(self, args: Args):
        if args.index:
            raise InputError(
                Fault("index", "flat-dqn has one level and cannot begin with an index; leave it out")
            )
        super().__init__(args)
