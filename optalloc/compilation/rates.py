"""Rates in samples/s of a model on some devices: measured, or extended from one device by a scaling."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from typing import Final

from optalloc.errors import Fault, InputError
from optalloc.instance import Instance, Model

__all__ = ["MAX_COUNTS", "SCALINGS", "Rates", "Ring", "ring_step_seconds"]

MAX_COUNTS: Final = 10_000
"""Device counts that a task without ``device_counts`` may have on a node."""
_DIGITS: Final = 60
_WORKING: Final = Context(prec=_DIGITS + 20, Emin=-(10**9), Emax=10**9)
_SHOWN: Final = Context(prec=_DIGITS, Emin=-(10**9), Emax=10**9)

Parameters = Mapping[str, Decimal]


@dataclass(frozen=True)
class Ring:
    """What the ring scaling needs beside its own parameters.

    Attributes
    ----------
    size_bytes
        Gradient bytes sent, compression applied.
    bandwidth
        Bytes/s between devices.
    """

    size_bytes: Fraction
    bandwidth: Fraction


def _linear(single: Fraction, count: int, parameters: Parameters, ring: Ring) -> Fraction | None:
    return single * count


def _amdahl(single: Fraction, count: int, parameters: Parameters, ring: Ring) -> Fraction | None:
    """T(n)/T(1) = f + (1 - f)/n with serial fraction f."""
    serial = Fraction(parameters["f"])
    return _divided(single, serial + (1 - serial) / count)


def _affine_log(single: Fraction, count: int, parameters: Parameters, ring: Ring) -> Fraction | None:
    """T(n)/T(1) = a + b/n + c*log2 n; the logarithm is the IEEE double, taken exactly."""
    a, b, c = (Fraction(parameters[name]) for name in "abc")
    return _divided(single, a + b / count + c * Fraction(math.log2(count)))


def _ring(single: Fraction, count: int, parameters: Parameters, ring: Ring) -> Fraction | None:
    batch = Fraction(parameters["batch_samples"])
    seconds = ring_step_seconds(batch / single, count, Fraction(parameters.get("gam", Decimal(1))), ring)
    return None if seconds is None else _divided(batch, seconds)


def ring_step_seconds(compute: Fraction, count: int, gam: Fraction, ring: Ring) -> Fraction | None:
    """Seconds of one training step: compute and ring all-reduce, joined by the norm of order ``gam``.

    Parameters
    ----------
    compute
        Seconds of a step on one device.
    gam
        1: no overlap (exact); other powers to 60 digits.

    Returns
    -------
    None where devices are not connected.
    """
    if ring.size_bytes and not ring.bandwidth:
        return None
    volume = Fraction(2 * (count - 1), count) * ring.size_bytes
    network = volume / ring.bandwidth if volume else Fraction(0)
    return _joined(compute / count, network, gam)


def _joined(first: Fraction, second: Fraction, gam: Fraction) -> Fraction:
    """(first^gam + second^gam)^(1/gam)."""
    if gam == 1 or not second:
        return first + second
    context = _WORKING
    order = context.divide(Decimal(gam.numerator), Decimal(gam.denominator))
    powers = [
        context.power(context.divide(Decimal(part.numerator), Decimal(part.denominator)), order)
        for part in (first, second)
    ]
    total = context.power(context.add(*powers), context.divide(Decimal(1), order))
    return Fraction(_SHOWN.plus(total))


def _divided(value: Fraction, by: Fraction) -> Fraction | None:
    return value / by if by > 0 else None


SCALINGS: Final[Mapping[str, Callable[[Fraction, int, Parameters, Ring], Fraction | None]]] = {
    "linear": _linear,
    "amdahl": _amdahl,
    "affine_log": _affine_log,
    "ring": _ring,
}


class Rates:
    """Rates of an instance, each computed once.

    Parameters
    ----------
    instance
        Gives models, throughputs and device types.
    """

    def __init__(self, instance: Instance):
        self._models = {model.id: model for model in instance.models}
        self._interconnect = {kind.id: Fraction(kind.interconnect_gbps) for kind in instance.device_types}
        self._measured = {
            (entry.model, entry.device_type): {
                int(count): Fraction(rate) for count, rate in entry.measured.items()
            }
            for entry in instance.throughputs
        }
        self._known: dict[tuple[str, str, int], Fraction | None] = {}

    def rate(self, model: str, device_type: str, count: int) -> Fraction | None:
        """Samples/s of the whole job on ``count`` devices; None where the model does not run or nothing is known."""
        key = (model, device_type, count)
        if key not in self._known:
            self._known[key] = self._rate(*key) or None
        return self._known[key]

    def counts(self, model: str, device_type: str, largest: int) -> list[int]:
        """Device counts up to ``largest`` with a rate."""
        measured = self._measured.get((model, device_type), {})
        scaled = self._models[model].scaling is not None and measured.get(1)
        if scaled and largest > MAX_COUNTS:
            reason = f"model {model!r} could run on 1 to {largest} devices, more than {MAX_COUNTS} counts"
            raise InputError(Fault("tasks", f"{reason}: give device_counts"))
        candidates = range(1, largest + 1) if scaled else sorted(c for c in measured if c <= largest)
        return [count for count in candidates if self.rate(model, device_type, count)]

    def _rate(self, model: str, device_type: str, count: int) -> Fraction | None:
        measured = self._measured.get((model, device_type), {})
        if count in measured:
            return measured[count]
        scaling, single = self._models[model].scaling, measured.get(1)
        if scaling is None or not single:
            return None
        ring = self._ring(self._models[model], device_type)
        return SCALINGS[scaling.name](single, count, scaling.parameters, ring)

    def _ring(self, model: Model, device_type: str) -> Ring:
        size = Fraction(model.size_gb) * 10**9 * Fraction(model.compression)
        return Ring(size, self._interconnect[device_type] * 10**9 / 8)
