"""HiGHS options by name: unknown names, wrong values and unsafe ones are refused before anything is built."""

from collections.abc import Mapping
from typing import Any, Final

import highspy

from optalloc.errors import Fault, InputError
from optalloc.formulations.milp.native import QuietHighs
from optalloc.formulations.milp.size import MAX_COLUMNS, MAX_ENTRIES
from optalloc.options import Kind

__all__ = ["OWN_DEFAULTS", "QuietHighs", "apply_options", "split_options"]

OWN_DEFAULTS: Final[Mapping[str, Any]] = {"max_columns": MAX_COLUMNS, "max_entries": MAX_ENTRIES}
"""Options of this solver itself: models with more columns or matrix entries are refused before they are
built.
"""

_SET_BY: Final[Mapping[str, str]] = {
    "time_limit": "give time_limit to solve",
    "threads": "give threads to solve",
    "random_seed": "give seed to solve",
    "output_flag": "progress is reported by events",
    "objective_bound": "it would spoil the proof",
}
_TRUTH: Final = {"true": True, "1": True, "on": True, "false": False, "0": False, "off": False}


def split_options(options: Mapping[str, Any]) -> tuple[dict[str, int], dict[str, Any]]:
    """(options of this solver with defaults, options of HiGHS).

    Raises
    ------
    InputError
        All options that HiGHS does not know, values that it does not take, options that would spoil the
        proof.
    """
    own = dict(OWN_DEFAULTS)
    faults: list[Fault] = []
    for name in OWN_DEFAULTS:
        if name in options:
            try:
                own[name] = Kind(int, 1).read(f"options.{name}", options[name])
            except InputError as error:
                faults += error.faults
    native = {name: value for name, value in options.items() if name not in OWN_DEFAULTS}
    faults += apply_options(QuietHighs(), native, raising=False)
    if faults:
        raise InputError(faults)
    return own, native


def apply_options(highs: Any, options: Mapping[str, Any], *, raising: bool = True) -> list[Fault]:
    """Set options of a `QuietHighs`; text is read as the option's type.

    Raises
    ------
    InputError
        If one is refused, unless ``raising`` is false: then the faults are returned.
    """
    faults = [fault for name, value in options.items() if (fault := _apply(highs, name, value))]
    if faults and raising:
        raise InputError(faults)
    return faults


def _apply(highs: Any, name: str, value: Any) -> Fault | None:
    """Set one option, or say what is wrong with it."""
    path = f"options.{name}"
    if name in _SET_BY:
        return Fault(path, f"cannot be set here; {_SET_BY[name]}")
    status, default = highs.getOptionValue(name)
    if status != highspy.HighsStatus.kOk:
        return Fault(path, f"HiGHS has no option {name!r}; see its list of options")
    try:
        value = _read(type(default), value)
    except (KeyError, TypeError, ValueError):
        return Fault(path, f"must be {_expected(default)}, got {value!r}")
    if name.endswith("_tolerance") and value > default:
        return Fault(path, f"must not exceed {default:g}: proofs rest on it; got {value!r}")
    if highs.setOptionValue(name, value) != highspy.HighsStatus.kOk:
        return Fault(path, f"HiGHS does not take {value!r}")
    return None


def _read(kind: type, value: Any) -> Any:
    """The value in the type of the option; only text is converted, and whole numbers where reals are
    taken.
    """
    if isinstance(value, str) and kind is not str:
        return _TRUTH[value.lower()] if kind is bool else kind(value)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is not kind:
        raise TypeError(value)
    return value


def _expected(default: Any) -> str:
    names = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
    return names[type(default)]
