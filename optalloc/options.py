"""What an option of a solver or a format may be; text, as the command line gives it, is read."""

import difflib
import math
import numbers
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from optalloc.errors import Fault, InputError
from optalloc.quantities import shown

__all__ = ["Kind", "read_options"]

_TRUTH: Final = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
_WANTED: Final = {bool: "true or false", int: "a whole number", float: "a finite number"}


@dataclass(frozen=True)
class Kind:
    """What a value must be.

    Attributes
    ----------
    type
        bool, int or float.
    least, most
        The smallest and the largest number allowed; None: any.
    """

    type: type[bool] | type[int] | type[float]
    least: float | None = None
    most: float | None = None

    def __str__(self) -> str:
        least = "" if self.least is None else f" of at least {self.least:g}"
        most = "" if self.most is None else f" of at most {self.most:g}"
        return _WANTED[self.type] + (f"{least} and{most}" if least and most else least or most)

    def read(self, path: str, value: Any) -> Any:
        """The value in this type.

        Parameters
        ----------
        path
            Names the option in the fault.
        value
            Text, which is read (true, yes, on, 1 and their opposites for bool), or a value of the type.

        Raises
        ------
        InputError
            It is something else; the message says what is allowed.
        """
        found = (
            _read(self.type, value.strip().lower()) if isinstance(value, str) else _taken(self.type, value)
        )
        if found is None or not self._within(found):
            raise InputError(Fault(path, f"must be {self}, got {shown(value)}"))
        return found

    def _within(self, number: Any) -> bool:
        return (self.least is None or number >= self.least) and (self.most is None or number <= self.most)


def _read(kind: type, text: str) -> Any:
    """The value that a text stands for; None if it stands for none."""
    if kind is bool:
        return _TRUTH.get(text)
    if kind is int:
        return int(text) if _WHOLE.fullmatch(text) else None
    try:
        return _taken(float, float(text))
    except ValueError:
        return None


def _taken(kind: type, value: Any) -> Any:
    """The value if it is of this kind (whole numbers are reals as well), else None."""
    if kind is bool or isinstance(value, bool):
        return value if kind is bool and isinstance(value, bool) else None
    if kind is int:
        return int(value) if isinstance(value, numbers.Integral) else None
    if not isinstance(value, numbers.Real):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def read_options(owner: str, known: Mapping[str, Kind | None], given: Mapping[str, Any]) -> dict[str, Any]:
    """The options that are given, each in its type.

    Parameters
    ----------
    owner
        What takes the options, for messages.
    known
        Name -> what the option may be; None: anything.

    Raises
    ------
    InputError
        Unknown names and wrong values, all of them.
    """
    checked: dict[str, Any] = {}
    faults: list[Fault] = []
    for name, value in given.items():
        try:
            checked[name] = _option(owner, known, name, value)
        except InputError as error:
            faults += error.faults
    if faults:
        raise InputError(faults)
    return checked


def _option(owner: str, known: Mapping[str, Kind | None], name: str, value: Any) -> Any:
    path = f"options.{name}"
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known) or 'none'}"
        raise InputError(Fault(path, f"{owner} has no such option; {hint}"))
    kind = known[name]
    return value if kind is None else kind.read(path, value)
