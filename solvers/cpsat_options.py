"""CP-SAT parameters by name: unknown names and wrong values are refused before anything is built."""

from collections.abc import Mapping
from typing import Any

from ortools.sat.python import cp_model

from optalloc.errors import Fault, InputError

__all__ = ["apply_options", "check_options"]

_SET_BY = {"catch_sigint_signal": "Ctrl-C ends a run in any case, and its best plan is kept"}
_TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def check_options(options: Mapping[str, Any]) -> None:
    """Refuse wrong options before any work.

    Raises
    ------
    InputError
        Unknown names and values of the wrong type, all of them; else the first value out of range.
    """
    native = cp_model.CpSolver()
    apply_options(native.parameters, options)
    native.parameters.log_search_progress = False
    native.parameters.catch_sigint_signal = False  # else Ctrl-C kills the process from now on
    # CP-SAT looks at the ranges only when it solves something.
    if native.solve(cp_model.CpModel()) == cp_model.MODEL_INVALID:
        raise InputError(Fault("options", f"CP-SAT says: {native.solution_info()}"))


def apply_options(parameters: Any, options: Mapping[str, Any]) -> None:
    """Set native parameters; text is read as the type of the parameter.

    Parameters
    ----------
    parameters
        A `SatParameters`.
    options
        Its fields by name, e.g. ``{"linearization_level": 2}``.

    Raises
    ------
    InputError
        A name that CP-SAT does not know or that is set by us, or a value that it does not take: all of them.
    """
    faults = [fault for name, value in options.items() if (fault := _apply(parameters, name, value))]
    if faults:
        raise InputError(faults)


def _apply(parameters: Any, name: str, value: Any) -> Fault | None:
    """Set one parameter, or say what is wrong with it."""
    path = f"options.{name}"
    if name in _SET_BY:
        return Fault(path, f"cannot be set here; {_SET_BY[name]}")
    if not isinstance(getattr(type(parameters), name, None), property):
        return Fault(path, f"CP-SAT has no parameter {name!r}; see its SatParameters")
    old = getattr(parameters, name)
    try:
        if hasattr(old, "extend"):
            old.clear()
            old.extend(value.split(",") if isinstance(value, str) else list(value))
        else:
            setattr(parameters, name, _read(type(old), value))
    except (AttributeError, KeyError, TypeError, ValueError):
        return Fault(path, f"{value!r} is not what CP-SAT takes here: {_expected(old)}")
    return None


def _read(kind: type, value: Any) -> Any:
    """The value as the parameter's type; only text is converted, and whole numbers where reals are taken."""
    if isinstance(value, str) and kind is not str:
        if kind is bool:
            return _TRUTH[value.lower()]
        return kind(value) if kind in (int, float) else getattr(kind, value)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, kind):
        raise TypeError(value)
    return value


def _expected(old: Any) -> str:
    """What a parameter takes, for people."""
    if hasattr(old, "extend"):
        return "a list"
    kind = type(old)
    if kind in (bool, int, float, str):
        return {bool: "true or false", int: "a whole number", float: "a number", str: "text"}[kind]
    return "one of " + ", ".join(sorted(getattr(kind, "__members__", {})))
