"""What a user may turn when generating an instance."""

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from optalloc.errors import Fault, InputError
from optalloc.generators.draw import plain

__all__ = ["Knobs", "knobs"]

MAX_TASKS = 1_000_000


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
        Least device-ticks of all tasks / (number of devices x release span), > 0.
    coupling
        Factor of dataset sizes and egress prices, >= 0; 0: every dataset is at home at every site.
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
    if load_value is None or load_value <= 0:
        faults.append(Fault("load", f"must be a number > 0, got {load!r}."))
    if coupling_value is None or coupling_value < 0:
        faults.append(Fault("coupling", f"must be a number >= 0, got {coupling!r}."))
    if faults or load_value is None or coupling_value is None:
        raise InputError(faults)
    return Knobs(preset, tasks, plain(load_value), plain(coupling_value), seed)


def _number(value: object) -> Decimal | None:
    """The exact decimal a user means (floats as they are printed), None if it is not a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        return None
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None
