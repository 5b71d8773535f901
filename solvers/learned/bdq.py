"""`bdq`: a control of `fdqn` with independent branches that share one target.

    Q_l(s, a_l) = V(s) + A_l(a_l) - mean A_l,    y = r + discount * mean over levels of Q_l(s', argmax Q_l(s', .))

The loss is the mean over the levels of (y - Q_l)^2. Options are described as in `additive`.

References
----------
Tavakoli, A., Pardo, F. and Kormushev, P. (2018). Action branching architectures for deep reinforcement learning.
AAAI 2018. https://arxiv.org/abs/1711.08946
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from optalloc.solvers.learned import additive, fdqn
from optalloc.solvers.learned.fdqn import Batch, largest

__all__ = ["Args", "Learner"]


@dataclass(frozen=True)
class Args(fdqn.Args):
    """Settings: those of `fdqn`."""


class Learner(additive.Learner):
    """The learner of `fdqn` with branches instead of a sum."""

    def error(self, value: Tensor, advantage: Tensor, batch: Batch, target: Tensor) -> Tensor:
        """Mean over all branches of all decisions; without a choice the value of the state is the branch."""
        alone = torch.bincount(batch.step, minlength=len(value)) == 0
        branch = torch.cat([value[batch.step] + above_mean(advantage, batch), value[alone]])
        return torch.nn.functional.smooth_l1_loss(branch, torch.cat([target[batch.step], target[alone]]))

    @torch.no_grad()
    def expected(self, batch: Batch) -> Tensor:
        """(B,) double estimate: in each branch the option that the network takes, as the slow copy values it."""
        slow, online = self.slow.advantage(batch), self.online.advantage(batch)
        count = len(batch.chosen)
        best = largest(online, batch.pick, count)
        taken = largest(torch.where(online >= best[batch.pick], slow, -torch.inf), batch.pick, count)
        over = taken - means(slow, batch)
        branches = torch.bincount(batch.step, minlength=len(batch.state)).clamp(min=1)
        total = torch.zeros(len(batch.state)).index_add(0, batch.step, over)
        return self.slow.value(batch.state) + total / branches


def means(values: Tensor, batch: Batch) -> Tensor:
    """(P,) mean over the options of each pick."""
    total = torch.zeros(len(batch.chosen)).index_add(0, batch.pick, values)
    return total / torch.bincount(batch.pick, minlength=len(batch.chosen))


def above_mean(advantage: Tensor, batch: Batch) -> Tensor:
    """(P,) A(chosen) - mean A."""
    return advantage[batch.chosen] - means(advantage, batch)
