"""What importers share: tokens with their lines, and instances made of explicit modes."""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from optalloc.entities import DeviceType, Mode, Node, Objective, Site, Task, Use
from optalloc.errors import Fault, InputError
from optalloc.instance import Instance
from optalloc.io.documents import load
from optalloc.quantities import LIMIT, Number, as_number

__all__ = ["Option", "Source", "Tokens", "fitting_modes", "instance_of_modes", "single"]

_WHOLE = re.compile(r"-?[0-9]{1,18}", re.ASCII)
_DECIMAL = re.compile(r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+", re.ASCII)


@dataclass(frozen=True)
class Source:
    """A file to import.

    Attributes
    ----------
    path
        As given; shown in faults.
    text
        Its content.
    """

    path: str
    text: str

    @property
    def stem(self) -> str:
        """Name of the file without endings: the instance is called so."""
        return Path(self.path).name.partition(".")[0] or "imported"

    def fail(self, line: int, message: str) -> NoReturn:
        """Refuse the file.

        Raises
        ------
        InputError
            Naming the file and the line (from 1).
        """
        raise InputError(Fault(f"line {line}", message, self.path))

    def meta(self, **more: Any) -> dict[str, Any]:
        """Where an instance comes from."""
        digest = hashlib.sha256(self.text.encode()).hexdigest()
        return {"source": Path(self.path).name, "source_sha256": digest, **more}


def single(paths: Sequence[str | Path]) -> Source:
    """The one file that an importer takes.

    Raises
    ------
    InputError
        There are none or several, or it cannot be read.
    """
    if len(paths) != 1:
        raise InputError(f"this format is imported from exactly one file, got {len(paths)}")
    return Source(str(paths[0]), load(paths[0]))


class Tokens:
    """The words of a file in order, each with its line."""

    def __init__(self, source: Source):
        self.source = source
        lines = source.text.split("\n")
        self._words = [(number, word) for number, line in enumerate(lines, 1) for word in line.split()]
        self._next = 0
        self._last_line = len(lines)

    def __len__(self) -> int:
        return len(self._words) - self._next

    def word(self, what: str) -> tuple[int, str]:
        """(line, text) of the next word, which should be ``what``."""
        if self._next == len(self._words):
            self.source.fail(self._last_line, f"the file ends where {what} should stand")
        self._next += 1
        return self._words[self._next - 1]

    def whole(self, what: str, low: int = 0, high: int = LIMIT) -> int:
        """The next word as a whole number from ``low`` to ``high``."""
        line, text = self.word(what)
        value = int(text) if _WHOLE.fullmatch(text) else None
        if value is None or not low <= value <= high:
            limits = f"of at least {low}" if high == LIMIT else f"from {low} to {high}"
            self.source.fail(line, f"{what} must be a whole number {limits}, got {text[:40]!r}")
        return value

    def wholes(self, count: int, what: str, low: int = 0) -> list[int]:
        """The next ``count`` words as whole numbers."""
        return [self.whole(what, low) for _ in range(count)]

    def positive(self, what: str) -> Number:
        """The next word as an exact decimal greater than 0."""
        line, text = self.word(what)
        if not _DECIMAL.fullmatch(text) or not text.strip("0."):
            self.source.fail(line, f"{what} must be a decimal number greater than 0, got {text[:40]!r}")
        whole, _, decimals = text.partition(".")
        try:
            return as_number(Number((whole.lstrip("0") or "0") + (f".{decimals}" if decimals else "")))
        except ValueError as error:
            self.source.fail(line, f"{what} {error}")

    def skip(self, count: int) -> None:
        """Leave out words."""
        self._next += count

    def rest_of_line(self) -> None:
        """Leave out what else stands on the line of the word read last."""
        line = self._words[self._next - 1][0]
        while len(self) and self._words[self._next][0] == line:
            self._next += 1

    def end(self) -> None:
        """Nothing is left to read."""
        if len(self):
            line, text = self._words[self._next]
            self.source.fail(line, f"the file should end here, but goes on with {text[:40]!r}")


@dataclass(frozen=True)
class Option:
    """One published alternative: devices by node, duration in ticks, money."""

    uses: Mapping[str, int]
    ticks: int
    usd: int = 0


def fitting_modes(options: Iterable[Option], capacities: Mapping[str, int]) -> tuple[tuple[Mode, ...], int]:
    """Modes of one task, and how many options were left out.

    Left out are options larger than a node and, of options with equal uses and money, all but the shortest.
    Where none fits, all are kept: the instance is then infeasible, and says so by itself.
    """
    given = list(options)
    fitting = [o for o in given if all(count <= capacities[node] for node, count in o.uses.items())] or given
    best: dict[Any, tuple[int, Option]] = {}
    for index, option in enumerate(fitting):
        key = (tuple(sorted(option.uses.items())), option.usd)
        if key not in best or option.ticks < best[key][1].ticks:
            best[key] = (best.get(key, (index,))[0], option)
    kept = [option for _, option in sorted(best.values(), key=lambda item: item[0])]
    return tuple(_mode(f"m{index}", option) for index, option in enumerate(kept, 1)), len(given) - len(kept)


def _mode(name: str, option: Option) -> Mode:
    uses = tuple(Use(node=node, devices=count) for node, count in option.uses.items())
    money = {"usd": option.usd} if option.usd else {}
    return Mode(id=name, uses=uses, duration_ticks=option.ticks, **money)


def instance_of_modes(
    source: Source,
    capacities: Mapping[str, int],
    tasks: Sequence[Task],
    objective: Mapping[str, int],
    *,
    name: str | None = None,
    tick_seconds: Number | int = 1,
    meta: Mapping[str, Any] | None = None,
) -> Instance:
    """An instance at one site, with nodes of so many devices and one level of the objective.

    Raises
    ------
    InputError
        The parts do not fit together, e.g. precedence is circular; the faults carry the file's name.
    """
    nodes = [
        Node(id=node, site="site", device_type="unit", devices=count)
        for node, count in capacities.items()
        if count
    ]
    try:
        return Instance(
            name=name or source.stem,
            tick_seconds=tick_seconds,
            money_unit_usd=1,
            sites=(Site(id="site"),),
            device_types=(DeviceType(id="unit"),),
            nodes=nodes,
            tasks=tasks,
            objective=Objective(levels=(dict(objective),)),
            meta=source.meta(**(meta or {})),
        )
    except InputError as error:
        raise InputError(Fault(fault.path, fault.message, source.path) for fault in error.faults) from None
