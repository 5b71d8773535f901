"""Random numbers inside kernels: compiled or not, the same sequence.

The combined generator of L'Ecuyer (1988, doi:10.1145/62959.62969): its products stay far below 2^63.
"""

from typing import Any, Final

import numpy as np

from optalloc.problem import Ints
from optalloc.solvers.jit import Real, Whole, part
from optalloc.solvers.lns import columns as at

__all__ = ["below", "seeded", "uniform"]

_FIRST: Final = 2147483563
_SECOND: Final = 2147483399


def seeded(seed: int) -> Ints:
    """The two numbers that a sequence starts from."""
    return np.random.default_rng(seed).integers(1, _SECOND, size=2)


@part
def uniform(c: Any, s: Any) -> Real:
    """A number in (0, 1)."""
    rng = c[at.RNG]
    s[rng] = 40014 * s[rng] % _FIRST
    s[rng + 1] = 40692 * s[rng + 1] % _SECOND
    drawn = (s[rng] - s[rng + 1]) % (_FIRST - 1)
    return (drawn + 1) / (_FIRST + 1.0)


@part
def below(c: Any, s: Any, count: int) -> Whole:
    """A whole number in [0, count)."""
    return int(uniform(c, s) * count)
