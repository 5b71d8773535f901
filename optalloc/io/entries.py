"""A tolerant view of a raw document: checks read what is well-formed and skip the rest."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

__all__ = ["Entry", "Found", "Step", "Steps", "join", "repeated"]

Step = str | int
Steps = tuple[Step, ...]
Found = tuple[Steps, str]
"""Where something is wrong, and what."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An object of the document and the way to it. Values of the wrong type count as absent."""

    content: Mapping[str, Any]
    steps: Steps = ()

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

    def number(self, key: str) -> int | float | Decimal | None:
        """A finite number."""
        return finite(self.content.get(key))

    def values(self, key: str) -> list[Any]:
        """A list."""
        value = self.content.get(key)
        return list(value) if isinstance(value, list | tuple) else []

    def texts(self, key: str) -> Iterator[tuple[Steps, str]]:
        """The texts of a list."""
        for index, value in enumerate(self.values(key)):
            if isinstance(value, str):
                yield self.at(key, index), value

    def entries(self, key: str) -> Iterator["Entry"]:
        """The objects of a list."""
        for index, value in enumerate(self.values(key)):
            if isinstance(value, Mapping):
                yield Entry(value, self.at(key, index))

    def entry(self, key: str) -> "Entry":
        """An object; an empty one where there is none."""
        value = self.content.get(key)
        return Entry(value if isinstance(value, Mapping) else {}, self.at(key))

    def keys(self, key: str) -> Iterator[tuple[Steps, str]]:
        """The keys of an object."""
        for name in self.entry(key).content:
            if isinstance(name, str):
                yield self.at(key, name), name


def finite(value: Any) -> int | float | Decimal | None:
    """The value if it is a finite number."""
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool) and math.isfinite(value):
        return value
    return None


def repeated(items: Iterable[tuple[Steps, Any]]) -> Iterator[tuple[Steps, Any]]:
    """Those items whose value has come before."""
    seen: set[Any] = set()
    for steps, value in items:
        if value in seen:
            yield steps, value
        seen.add(value)


def join(names: Iterable[str], most: int = 5) -> str:
    """``'a', 'b' and 3 more``."""
    quoted = [repr(name) for name in names]
    more = f" and {len(quoted) - most} more" if len(quoted) > most else ""
    return ", ".join(quoted[:most]) + more
