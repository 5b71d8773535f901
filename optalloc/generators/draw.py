"""Seeded draws of integers and short decimals.

Floats never appear: a drawn number is an integer over a power of ten, so that it is written the same
everywhere and money and weights stay exact.
"""

from collections.abc import Sequence
from decimal import Decimal
from typing import TypeVar

import numpy as np

__all__ = ["Draw", "decimal", "plain"]

T = TypeVar("T")


def decimal(units: int, digits: int) -> Decimal:
    """``units`` / 10**``digits`` without trailing zeros.

    >>> decimal(850, 3)
    Decimal('0.85')
    """
    return plain(Decimal(units).scaleb(-digits))


def plain(value: Decimal) -> Decimal:
    """``value`` without trailing zeros and, if it is whole, without an exponent.

    >>> plain(Decimal("1.50")), plain(Decimal("2E+1"))
    (Decimal('1.5'), Decimal('20'))
    """
    return value.quantize(Decimal(1)) if value == value.to_integral_value() else value.normalize()


class Draw:
    """One stream of random choices.

    Parameters
    ----------
    seed
        Seed of the user, >= 0.
    stream
        Further numbers that tell this stream from others of the same seed.
    """

    def __init__(self, seed: int, *stream: int):
        self._generator = np.random.default_rng([seed, *stream])

    def integer(self, low: int, high: int) -> int:
        """An integer of [``low``, ``high``], both included."""
        return int(self._generator.integers(low, high + 1))

    def integers(self, low: int, high: int, count: int) -> list[int]:
        """``count`` integers of [``low``, ``high``], both included."""
        values: list[int] = self._generator.integers(low, high + 1, size=count).tolist()
        return values

    def decimal(self, low: int, high: int, digits: int) -> Decimal:
        """An integer of [``low``, ``high``] over 10**``digits``."""
        return decimal(self.integer(low, high), digits)

    def chance(self, percent: int) -> bool:
        """True in ``percent`` of 100 cases."""
        return self.integer(1, 100) <= percent

    def pick(self, options: Sequence[T]) -> T:
        """One of ``options``, each as likely."""
        return options[self.integer(0, len(options) - 1)]

    def sample(self, options: Sequence[T], count: int) -> list[T]:
        """``count`` different entries of ``options`` in random order (all of them if there are fewer)."""
        pool = list(options)
        for place in range(min(count, len(pool))):
            other = self.integer(place, len(pool) - 1)
            pool[place], pool[other] = pool[other], pool[place]
        return pool[:count]
