"""Sizes of replicas and storage of sites in whole numbers, compared exactly."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from optalloc.compilation.units import FEWER_DECIMALS, bounded, common_multiplier
from optalloc.instance import Instance
from optalloc.problem import NEVER, Ints

__all__ = ["storage_in_units"]


def storage_in_units(instance: Instance, datasets: Sequence[int], sites: Sequence[int]) -> tuple[Ints, Ints]:
    """(storage of each site, size of each replica), each in the unit of its site.

    The unit of a site is 1 GB over the least number that makes its storage and every size that can be brought there
    whole. Unlimited storage is NEVER, and sizes there are cut off at NEVER: nobody compares them.

    Parameters
    ----------
    datasets, sites
        Of each replica.
    """
    sizes = [Fraction(dataset.size_gb) for dataset in instance.datasets]
    multiplier = common_multiplier(sizes)
    capacity = [None if site.storage_gb is None else Fraction(site.storage_gb) for site in instance.sites]
    multipliers = [common_multiplier([Fraction(1, multiplier), room or Fraction(0)]) for room in capacity]
    storage = [
        NEVER
        if room is None
        else bounded(
            int(room * unit), f"sites[{index}].storage_gb", "the storage in its common unit", FEWER_DECIMALS
        )
        for index, (room, unit) in enumerate(zip(capacity, multipliers, strict=True))
    ]
    replicas = [min(int(sizes[d] * multipliers[s]), NEVER) for d, s in zip(datasets, sites, strict=True)]
    return np.array(storage, dtype=np.int64), np.array(replicas, dtype=np.int64)
