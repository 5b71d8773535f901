"""Exact numbers that remember how they were written; the checked types that instance fields are made of."""

import decimal
import json
import math
import numbers
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Final, NoReturn, TypeVar

from pydantic import AfterValidator, GetCoreSchemaHandler, GetJsonSchemaHandler, Strict, StringConstraints
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

__all__ = [
    "EMPTY", "LIMIT", "Amount", "Count", "Flag", "Fraction01", "FrozenDict", "Id", "Mapped", "Nat", "Number",
    "OneOf", "Permille", "Positive", "Signed", "Tick", "as_number", "fault", "parse_float", "parse_int",
    "shown",
]  # fmt: skip

LIMIT: Final = 2**53
"""No number of an instance is larger; beyond it, solvers that compute in doubles lose units."""
_FINEST: Final = 30
"""Digits allowed after the decimal point: a guard against texts such as 1e-999999999."""
_FARTHEST: Final = 10**9
"""Exponent that stands for those that Decimal cannot hold."""
_JSON_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?", re.ASCII)


def fault(message: str) -> PydanticCustomError:
    """The error that a validator raises; its message reaches the user unchanged."""
    return PydanticCustomError("optalloc", "{message}", {"message": message})


class Number(Decimal):
    """An exact decimal that keeps its literal: ``Number("1.50")`` equals 1.5 and is written as 1.50 again.

    Attributes
    ----------
    text
        The number as it stands in the file.
    """

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> "Number":
        if not _JSON_NUMBER.fullmatch(text):
            raise ValueError(f"a number is written as in JSON, e.g. 12 or 0.5, got {text!r}")
        return cls._trusted(text)

    @classmethod
    def _trusted(cls, text: str) -> "Number":
        """A number whose text is known to be one."""
        try:
            number = super().__new__(cls, text)
        except (
            decimal.InvalidOperation
        ):  # an exponent beyond all that Decimal holds, and so beyond every range
            digits, _, exponent = text.lower().partition("e")
            number = super().__new__(cls, f"{digits}e{'-' * exponent.startswith('-')}{_FARTHEST}")
        number.text = text
        return number

    def __reduce__(self) -> tuple[Any, ...]:
        return Number, (self.text,)

    def __copy__(self) -> "Number":
        return self

    def __deepcopy__(self, memo: Any) -> "Number":
        return self

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Number({self.text!r})"


def as_number(value: object) -> Number:
    """Read an int, float (through its shortest text), Decimal or numpy scalar exactly.

    Raises
    ------
    ValueError
        For anything else, for NaN and infinities, and for magnitudes past 2^53 or finer than 1e-30.
    """
    if type(value) is int and -LIMIT <= value <= LIMIT:
        return Number._trusted(str(value))
    number = value if type(value) is Number else _convert(value)
    if len(number.text) > 15 or "e" in number.text or "E" in number.text:
        _check_magnitude(number, number.text)
    return number


def _convert(value: object) -> Number:
    if isinstance(value, bool) or not isinstance(value, numbers.Real | Decimal):
        raise ValueError(f"must be a number, got {shown(value)}")
    if isinstance(value, numbers.Integral):
        whole = int(value)
        if abs(whole) > LIMIT:
            raise ValueError("must not exceed 2^53 in magnitude")
        return Number(str(whole))
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise ValueError("must be a finite number; what has no limit is left out")
        return Number(str(value))
    if isinstance(value, numbers.Rational):
        raise ValueError(f"must be an int, a float or a Decimal, got {value!r}")
    double = float(value)
    if not math.isfinite(double):
        raise ValueError("must be a finite number; what has no limit is left out")
    return Number(float.__repr__(double))


def _check_magnitude(number: Decimal, text: str) -> None:
    """By comparison, which is exact: arithmetic such as abs() rounds, and overflows beyond 1e999999."""
    if not -LIMIT <= number <= LIMIT:
        raise ValueError(f"must not exceed 2^53 in magnitude, got {text[:40]}")
    exponent = number.as_tuple().exponent
    if isinstance(exponent, int) and exponent < -_FINEST:
        raise ValueError(f"must not have more than {_FINEST} decimals, got {text[:40]}")


def shown(value: object) -> str:
    """A value as a fault message shows it."""
    if isinstance(value, Number):
        return value.text[:40]
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list | tuple):
        return "a list"
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, int) and abs(value) > 10**30:
        return "a number of many digits"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def parse_float(text: str) -> Number:
    """Hook for JSON numbers with a point or an exponent."""
    return Number._trusted(text)


def parse_int(text: str) -> int | Number:
    """Hook for JSON whole numbers; what int() would lose (-0) or refuse (too many digits) stays a text."""
    return int(text) if len(text) <= 20 and text != "-0" else Number(text)


@dataclass(frozen=True)
class Range:
    """Marks a `Number` field and the values it may take."""

    low: int | None = None
    high: int | None = None
    above: int | None = None

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.validate)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        low = -LIMIT if self.low is None else self.low
        lower = {"minimum": low} if self.above is None else {"exclusiveMinimum": self.above}
        return {"type": "number", **lower, "maximum": LIMIT if self.high is None else self.high}

    def validate(self, value: object) -> Number:
        """The value as a Number within the range."""
        try:
            number = as_number(value)
        except ValueError as error:
            raise fault(str(error)) from None
        if self.low is not None and number < self.low:
            raise fault(f"must be at least {self.low}, got {number}")
        if self.above is not None and number <= self.above:
            raise fault(f"must be greater than {self.above}, got {number}")
        if self.high is not None and number > self.high:
            raise fault(f"must be at most {self.high}, got {number}")
        return number


@dataclass(frozen=True)
class Whole:
    """Marks an int field and the values it may take."""

    low: int
    high: int = LIMIT

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.validate)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"type": "integer", "minimum": self.low, "maximum": self.high}

    def validate(self, value: object) -> int:
        """The value as an int within the range."""
        if isinstance(value, bool) or not isinstance(value, numbers.Integral):
            raise fault(f"must be a whole number without a decimal point, got {shown(value)}")
        whole = int(value)
        if whole < self.low:
            raise fault(f"must be at least {self.low}, got {shown(value)}")
        if whole > self.high:
            if self.high == LIMIT:
                raise fault("must not exceed 2^53")
            raise fault(f"must be at most {self.high}, got {shown(value)}")
        return whole


@dataclass(frozen=True)
class OneOf:
    """Marks a text field that takes one of a few words."""

    words: tuple[str, ...]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.literal_schema(list(self.words))


Amount = Annotated[Number, Range(low=0)]
Positive = Annotated[Number, Range(above=0)]
Fraction01 = Annotated[Number, Range(low=0, high=1)]
Signed = Annotated[Number, Range()]
Count = Annotated[int, Whole(1)]
Nat = Annotated[int, Whole(0)]
Permille = Annotated[int, Whole(0, 1000)]
Tick = Annotated[int, Whole(-LIMIT)]
Id = Annotated[str, Strict(), StringConstraints(min_length=1)]
Flag = Annotated[bool, Strict()]

Value = TypeVar("Value")


class FrozenDict(dict[str, Value]):
    """A dict that refuses to change, so that an Instance stays what it was when it was checked."""

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("an instance cannot be changed; build a changed copy with replace()")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenDict, (dict(self),)

    def __copy__(self) -> "FrozenDict[Value]":
        return self

    def __deepcopy__(self, memo: Any) -> "FrozenDict[Value]":
        return self


EMPTY: Final[FrozenDict[Any]] = FrozenDict()
Mapped = Annotated[dict[Id, Value], AfterValidator(FrozenDict)]
