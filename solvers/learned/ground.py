"""What a learned scheduler works out once per problem."""

from fractions import Fraction
from functools import cached_property
from math import lcm

import numpy as np

from optalloc.environment.costs import Costs
from optalloc.environment.features import Known
from optalloc.environment.layout import Layout
from optalloc.environment.scales import Floats, Isolated
from optalloc.problem import Bools, Ints, Problem

__all__ = ["Ground"]


class Ground:
    """Facts of a problem, shared by all episodes on it.

    Attributes
    ----------
    layout
        Its modes as rows.
    costs, limits
        Of each level of the objective, and of each plan limit.
    isolated, known
        Units and facts for the features.
    weight
        (J,) whole numbers in the proportions of the coefficients of completion (of the task weights where there are
        none): what a tick of waiting costs.
    held
        (R,) device-ticks of each row.
    reads
        (J, D) whether some row of the task reads the dataset.
    """

    def __init__(self, problem: Problem):
        self.problem = problem
        self.layout = Layout(problem)
        self.costs = [Costs(self.layout, level) for level in problem.levels]
        self.limits = [Costs(self.layout, limit.form) for limit in problem.limits]
        self.isolated = Isolated(self.layout, self.costs[0])
        self.known = Known(self.layout)
        completion = problem.levels[0].completion
        self.weight: Ints = completion if completion.any() else _whole(problem.task_weight)
        self.held: Ints = self.layout.devices * self.layout.duration
        self.devices = int(self.known.capacity[:-1].sum())

    @cached_property
    def reads(self) -> Bools:
        layout = self.layout
        found = np.zeros((self.problem.num_tasks, len(self.problem.dataset_ids) + 1), dtype=bool)
        for column in layout.inputs.T:
            found[layout.task, column] = True
        return found[:, :-1]

    @cached_property
    def dataset(self) -> Ints:
        """(R,) dataset of the first input; the number of datasets without data."""
        return np.where(self.layout.dataset < 0, len(self.problem.dataset_ids), self.layout.dataset)

    @cached_property
    def site(self) -> Ints:
        """(R,) site of the first node; the number of sites without."""
        problem = self.problem
        return np.append(problem.node_site, len(problem.site_ids))[self.layout.node]

    @cached_property
    def utility(self) -> Floats:
        """(R,) of the data, between 0 and 1."""
        return np.asarray(self.problem.utility[self.layout.mode] / 1000)

    @cached_property
    def money(self) -> Ints:
        """(R,) own money of each row."""
        return np.asarray(self.problem.money[self.layout.mode])


def _whole(weights: tuple[Fraction, ...]) -> Ints:
    """Whole numbers in the same proportions."""
    common = lcm(*(weight.denominator for weight in weights)) if weights else 1
    return np.array([int(weight * common) for weight in weights], dtype=np.int64)
