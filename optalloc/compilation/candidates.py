"""Which datasets may serve a task, and how well: utilities in permille."""

import itertools
from collections.abc import Sequence
from fractions import Fraction

from optalloc.compilation.units import half_up, permille_half_up, permille_up
from optalloc.instance import Input, Instance, Task

__all__ = ["FULL_UTILITY", "Candidates", "mean_utility"]

FULL_UTILITY = 1000
"""Permille; of a task that needs no data."""


def mean_utility(utilities: Sequence[int], shares: Sequence[Fraction]) -> int:
    """Share-weighted mean of rounded utilities, rounded half up again."""
    total = sum((share * value for share, value in zip(shares, utilities, strict=True)), Fraction(0))
    return half_up(total / sum(shares))


class Candidates:
    """Utilities of datasets by domain, each computed once.

    Parameters
    ----------
    instance
        Gives datasets and models.
    """

    def __init__(self, instance: Instance):
        self._datasets = instance.datasets
        self._index = {dataset.id: index for index, dataset in enumerate(instance.datasets)}
        self._domain = {model.id: model.domain for model in instance.models}
        self._utilities: dict[str, list[int]] = {}
        self._relevant: dict[str, list[int]] = {}

    def domain(self, task: Task) -> str:
        """The task's own domain, else its model's."""
        return task.domain if task.domain is not None else self._domain[str(task.model)]

    def utilities(self, domain: str) -> list[int]:
        """Utility of every dataset for a domain."""
        if domain not in self._utilities:
            self._utilities[domain] = [
                permille_half_up(Fraction(d.relevance.get(domain, 0)) * Fraction(d.quality))
                for d in self._datasets
            ]
        return self._utilities[domain]

    def listed(self, datasets: Sequence[str] | None, domain: str) -> list[int]:
        """Indices of the candidates; None stands for all with relevance above 0."""
        if datasets is not None:
            return [self._index[dataset] for dataset in datasets]
        if domain not in self._relevant:
            positive = [i for i, d in enumerate(self._datasets) if d.relevance.get(domain, 0) > 0]
            self._relevant[domain] = positive
        return self._relevant[domain]

    def inputs(self, task: Task) -> list[tuple[list[int], Fraction, int]]:
        """(candidates, share, least utility) of each input; none where the task needs no data."""
        domain = self.domain(task)
        if task.inputs is not None:
            return [self._input(entry, domain) for entry in task.inputs]
        if task.datasets is not None and not task.datasets:
            return []
        return [(self.listed(task.datasets, domain), Fraction(1), 0)]

    def _input(self, entry: Input, domain: str) -> tuple[list[int], Fraction, int]:
        return self.listed(entry.datasets, domain), Fraction(entry.share), permille_up(entry.min_utility)

    def choices(self, task: Task) -> list[tuple[tuple[int, ...], int]]:
        """(datasets in the order of inputs, utility) of every choice that reaches the least utilities."""
        inputs = self.inputs(task)
        utility = self.utilities(self.domain(task))
        least = permille_up(task.min_utility)
        if len(inputs) == 1:
            candidates, _, floor = inputs[0]
            return [((d,), utility[d]) for d in candidates if utility[d] >= max(least, floor)]
        return [choice for choice in self._combined(inputs, utility) if choice[1] >= least]

    def _combined(
        self, inputs: Sequence[tuple[list[int], Fraction, int]], utility: Sequence[int]
    ) -> list[tuple[tuple[int, ...], int]]:
        if not inputs:
            return [((), FULL_UTILITY)]
        usable = [[d for d in candidates if utility[d] >= floor] for candidates, _, floor in inputs]
        shares = [share for _, share, _ in inputs]
        different = (chosen for chosen in itertools.product(*usable) if len(set(chosen)) == len(chosen))
        return [(chosen, mean_utility([utility[d] for d in chosen], shares)) for chosen in different]

    def explicit(self, datasets: Sequence[str]) -> tuple[int, ...]:
        """Indices of the datasets of an explicit mode."""
        return tuple(self._index[dataset] for dataset in datasets)
