"""Exact rounding from physical units to integers: each quantity is rounded once, here."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from optalloc.errors import Fault, InputError
from optalloc.problem import NEVER

__all__ = [
    "FEWER_DECIMALS",
    "LARGER_MONEY",
    "LONGER_TICKS",
    "Units",
    "bounded",
    "ceil_div",
    "common_multiplier",
    "half_up",
    "half_up_div",
    "permille_half_up",
    "permille_up",
]

Exact = Decimal | Fraction | int

LONGER_TICKS = "use longer ticks (tick_seconds)"
LARGER_MONEY = "use a larger money unit (money_unit_usd)"
FEWER_DECIMALS = "use a coarser unit, or numbers with fewer decimals"


def bounded(value: int, path: str, what: str, remedy: str) -> int:
    """The value, if it is below 2^53.

    Raises
    ------
    InputError
        It is not: solvers that compute in doubles would lose units.
    """
    if value >= NEVER:
        raise InputError(Fault(path, f"{what} is {value}, which must stay below 2^53 = {NEVER}: {remedy}"))
    return value


def ceil_div(numerator: int, denominator: int) -> int:
    """Least integer >= numerator / denominator (denominator > 0)."""
    return -(-numerator // denominator)


def half_up_div(numerator: int, denominator: int) -> int:
    """Nearest integer to numerator / denominator, halves up (denominator > 0)."""
    return (2 * numerator + denominator) // (2 * denominator)


def half_up(value: Fraction) -> int:
    """Nearest integer, halves up."""
    return half_up_div(value.numerator, value.denominator)


def permille_half_up(value: Fraction) -> int:
    """A utility in permille, halves up."""
    return half_up(1000 * value)


def permille_up(value: Exact) -> int:
    """A least utility in permille, rounded up."""
    return math.ceil(1000 * Fraction(value))


def common_multiplier(values: Iterable[Fraction]) -> int:
    """Least positive integer that makes every value whole."""
    return math.lcm(*(value.denominator for value in values))


@dataclass(frozen=True)
class Units:
    """What a tick and a money unit are worth.

    Attributes
    ----------
    tick
        Seconds in a tick.
    money
        $ in a money unit.
    """

    tick: Fraction
    money: Fraction

    def ticks_up(self, seconds: Exact) -> int:
        """Releases, availability of data, lags."""
        return math.ceil(Fraction(seconds) / self.tick)

    def ticks_down(self, seconds: Exact) -> int:
        """Due dates and deadlines."""
        return math.floor(Fraction(seconds) / self.tick)

    def duration(self, seconds: Fraction) -> int:
        """Runs and transfers: rounded up, at least one tick."""
        return max(1, self.ticks_up(seconds))

    def money_half_up(self, usd: Exact) -> int:
        """One item of a bill."""
        return half_up(Fraction(usd) / self.money)

    def money_down(self, usd: Exact) -> int:
        """A budget."""
        return math.floor(Fraction(usd) / self.money)
