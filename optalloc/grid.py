"""Tables that fit the terminal: columns that do not fit side by side go below, and no word is broken."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.table import Table

__all__ = ["Grid"]

_NUMBER: Final = "0123456789-<"
"""First characters of numbers, of what is not known, and of what is almost nothing."""


@dataclass(frozen=True)
class Grid:
    """A table of text; rich prints it.

    Attributes
    ----------
    columns
        Headings; all empty: none are shown.
    rows
        Cells, as many as there are columns.
    keys
        So many leading columns say what a line is about: each part of a table that is too wide begins with them.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    keys: int = 1

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> Iterator["Table"]:
        """The parts, each within the width of the console."""
        title = self.title
        for part in _parts([self._least(c) for c in range(len(self.columns))], self.keys, options.max_width):
            yield self._table(title, part, options.max_width)
            title = ""

    def _texts(self, column: int) -> Iterable[str]:
        return (self.columns[column], *(row[column] for row in self.rows))

    def _is_of_numbers(self, column: int) -> bool:
        """Right-aligned, so that digits stand below each other."""
        cells = [row[column] for row in self.rows]
        return column >= self.keys and any(self.columns) and all(cell[:1] in _NUMBER for cell in cells)

    def _least(self, column: int) -> int:
        """Width of the longest word."""
        return max((_width(word) for text in self._texts(column) for word in text.split()), default=1)

    def _table(self, title: str, part: Sequence[int], room: int) -> "Table":
        from rich import box
        from rich.markup import escape
        from rich.table import Table

        most = [
            max(_width(line) for text in self._texts(c) for line in (text.splitlines() or [""])) for c in part
        ]
        widths = _narrowed(most, [self._least(c) for c in part], room - _frame(len(part)))
        shown = any(self.columns)
        table = Table(
            title=escape(title) or None, title_justify="left", box=box.SIMPLE_HEAD, show_header=shown
        )
        for column, width in zip(part, widths, strict=True):
            side: Literal["left", "right"] = "right" if self._is_of_numbers(column) else "left"
            table.add_column(escape(self.columns[column]), justify=side, overflow="fold", width=width)
        for row in self.rows:
            table.add_row(*(escape(row[column]) for column in part))
        return table


def _width(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(text)


def _frame(columns: int) -> int:
    """What edges, lines and margins take."""
    return 3 * columns + 1


def _parts(least: Sequence[int], keys: int, room: int) -> Iterator[tuple[int, ...]]:
    """Columns that fit side by side, in order; each part begins with the key columns.

    Examples
    --------
    >>> list(_parts([5, 3, 3, 3], 1, 21))
    [(0, 1, 2), (0, 3)]
    """
    first, part = tuple(range(keys)), tuple[int, ...]()
    for column in range(keys, len(least)):
        if part and not _fits((*first, *part, column), least, room):
            yield first + part
            part = ()
        part = (*part, column)
    yield first + part


def _fits(columns: Sequence[int], least: Sequence[int], room: int) -> bool:
    return sum(least[column] for column in columns) + _frame(len(columns)) <= room


def _narrowed(most: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """Widths within ``room``: what is widest beyond its longest word gives first, then what is widest.

    Examples
    --------
    >>> _narrowed([10, 30], [6, 8], 25), _narrowed([10, 30], [9, 28], 20)
    ([10, 15], [9, 11])
    """
    widths = list(most)
    while sum(widths) > room and max(widths) > 1:
        spare = [width - word for width, word in zip(widths, least, strict=True)]
        measure = spare if max(spare) > 0 else widths
        widths[measure.index(max(measure))] -= 1
    return widths
