"""A tolerant view of a raw document: checks read what is well-formed and skip the rest."""

import math
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any, TypeVar

__all__ = ["Entry", "Finite", "Found", "Step", "Steps", "finite", "join", "repeated"]

Step = str | int
Steps = tuple[Step, ...]
Place = TypeVar("Place")
Value = TypeVar("Value")
Finite = int | float | Decimal
Found = tuple[Steps, str]
"""Where something is wrong, and what."""


class Entry:
    """An object of the document and the way to it. Values of the wrong type count as absent."""

    __slots__ = ("content", "steps")

    def __init__(self, content: dict[str, Any], steps: Steps = ()):
        self.content = content
        self.steps = steps

    def at(self, *steps: Step) -> Steps:
        """The way to something inside."""
        return (*self.steps, *steps)

    def given(self, key: str) -> bool:
        """The key is there and not null."""
        return self.content.get(key) is not None

    def text(self, key: str) -> str | None:
        """A text."""
        value = self.content.get(key)
        return value if isinstance(value, str) else None

    def whole(self, key: str) -> int | None:
        """A whole number."""
        value = self.content.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def number(self, key: str) -> Finite | None:
        """A finite number."""
        return finite(self.content.get(key))

    def values(self, key: str) -> list[Any]:
        """A list."""
        value = self.content.get(key)
        return value if isinstance(value, list) else []

    def texts(self, key: str) -> Iterator[tuple[Steps, str]]:
        """The texts of a list."""
        for index, value in enumerate(self.values(key)):
            if isinstance(value, str):
                yield self.at(key, index), value

    def entries(self, key: str) -> Iterator["Entry"]:
        """The objects of a list."""
        values = self.content.get(key)
        if isinstance(values, list):
            for index, value in enumerate(values):
                if isinstance(value, dict):
                    yield Entry(value, (*self.steps, key, index))

    def entry(self, key: str) -> "Entry":
        """An object; an empty one where there is none."""
        value = self.content.get(key)
        return Entry(value if isinstance(value, dict) else {}, self.at(key))

    def keys(self, key: str) -> Iterator[tuple[Steps, str]]:
        """The keys of an object."""
        for name in self.entry(key).content:
            if isinstance(name, str):
                yield self.at(key, name), name


def finite(value: Any) -> Finite | None:
    """The value if it is a finite number."""
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool) and math.isfinite(value):
        return value
    return None


def repeated(items: Iterable[tuple[Place, Value]]) -> Iterator[tuple[Place, Value]]:
    """Those (place, value) whose value has come before."""
    seen: set[Value] = set()
    for place, value in items:
        if value in seen:
            yield place, value
        seen.add(value)


def join(names: Iterable[str], most: int = 5) -> str:
    """``'a', 'b' and 3 more``."""
    quoted = [repr(name) for name in names]
    more = f" and {len(quoted) - most} more" if len(quoted) > most else ""
    return ", ".join(quoted[:most]) + more
