"""Imported problems whose published objective differs from ours, e.g. maximisations."""

from fractions import Fraction

from optalloc.instance import Instance

__all__ = ["original_value"]


def original_value(instance: Instance, value: Fraction | int) -> Fraction | None:
    """The published objective that belongs to ``value``, to be shown beside it.

    Parameters
    ----------
    value
        Our objective in the units of the instance: the value of a level divided by the weight scale K.

    Returns
    -------
    ``constant + factor * value`` with the numbers under ``meta.original``; None if there are none.
    """
    original = instance.meta.get("original")
    if not isinstance(original, dict) or not {"constant", "factor"} <= set(original):
        return None
    return Fraction(original["constant"]) + Fraction(original["factor"]) * value
