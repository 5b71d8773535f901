"""What a user may turn when generating an instance."""

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from optalloc.errors import Fault, InputError
from optalloc.generators.draw import plain
from optalloc.quantities import shown

__all__ = ["Knobs", "knobs"]

MAX_TASKS = 1_000_000
LEAST, MOST = Decimal("0.000001"), Decimal(10_000)
"""Of load and coupling: times, sizes and prices then stay within what an instance may hold."""
DECIMALS = {"load": 20, "coupling": 6}
"""Room is counted in the last decimal of the sizes, so that they cannot have many."""


@dataclass(frozen=True)
class Knobs:
    """Checked parameters of a preset.

    Attributes
    ----------
    preset
        Name of the preset.
    tasks
        Number of tasks, >= 1.
    load
        Least device-ticks of all tasks / (number of devices x release span), 0.000001 to 10000.
    coupling
        Factor of dataset sizes and egress prices, as load, or 0: every dataset is at home at every site.
    seed
        >= 0.
    """

    preset: str
    tasks: int
    load: Decimal
    coupling: Decimal
    seed: int


def knobs(preset: str, tasks: int, load: object, coupling: object, seed: int) -> Knobs:
    """Check the parameters of a preset.

    Raises
    ------
    InputError
        With every parameter that is out of range.
    """
    faults: list[Fault] = []
    ranges = (("tasks", tasks, 1, MAX_TASKS), ("seed", seed, 0, 2**53))
    for name, value, low, high in ranges:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            faults.append(Fault(name, f"must be an integer from {low} to {high}, got {value!r}."))
    load_value, coupling_value = _number(load), _number(coupling)
    if load_value is None or not _fits("load", load_value):
        faults.append(Fault("load", f"must be a number {_limits('load')}, got {shown(load)}."))
    if coupling_value is None or not (_fits("coupling", coupling_value) or coupling_value == 0):
        faults.append(
            Fault("coupling", f"must be 0, or a number {_limits('coupling')}, got {shown(coupling)}.")
        )
    if faults or load_value is None or coupling_value is None:
        raise InputError(faults)
    return Knobs(preset, tasks, plain(load_value), plain(coupling_value), seed)


def _limits(name: str) -> str:
    return f"from {LEAST} to {MOST} with at most {DECIMALS[name]} decimals"


def _fits(name: str, number: Decimal) -> bool:
    """Within the limits; told by comparison, as arithmetic overflows and rounds."""
    exponent = number.as_tuple().exponent
    return LEAST <= number <= MOST and isinstance(exponent, int) and exponent >= -DECIMALS[name]


def _number(value: object) -> Decimal | None:
    """The exact decimal a user means (floats as they are printed), None if it is not a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        return None
    try:
        number = Decimal(str(value))
    except (InvalidOperation, ValueError):
        return None
    return number if number.is_finite() else None
