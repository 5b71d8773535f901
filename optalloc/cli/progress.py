"""One line on the terminal while something works: best plan, bound, gap."""

import sys
from types import TracebackType
from typing import Self

from optalloc.errors import visible
from optalloc.result import CurvePoint

__all__ = ["Progress", "Status"]


class Status:
    """A line on standard error, if that is a terminal.

    Parameters
    ----------
    title
        What is being done.
    hint
        Shown until there is something to say.
    """

    def __init__(self, title: str, hint: str):
        self.title = title
        self._status = None
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.markup import escape

            self.title = escape(visible(title))
            self._status = Console(stderr=True).status(f"{self.title} ... ({hint})")

    def __enter__(self) -> Self:
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status is not None:
            self._status.stop()

    def update(self, text: str) -> None:
        """Show ``text`` behind the title."""
        if self._status is not None:
            self._status.update(f"{self.title}  {text}")


class Progress(Status):
    """Shows the latest point of the anytime curve.

    Parameters
    ----------
    title
        What is being solved.
    time_limit
        Seconds.
    """

    def __init__(self, title: str, time_limit: float):
        super().__init__(title, "Ctrl-C keeps the best plan")
        self.time_limit = time_limit

    def event(self, point: CurvePoint) -> None:
        """Show ``point``."""
        plan, bound = ("-" if v is None else f"{v:,}" for v in (point.objective, point.bound))
        spent = f"{point.seconds:.1f} of {self.time_limit:g} s"
        self.update(f"{spent}  plan {plan}  bound {bound}  gap {_gap(point)}  ({point.source})")


def _gap(point: CurvePoint) -> str:
    if point.objective is None or point.bound is None:
        return "-"
    return f"{(point.objective - point.bound) / max(abs(point.objective), 1):.2%}"
