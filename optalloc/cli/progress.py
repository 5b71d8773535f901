"""One line on the terminal while a solver works: best plan, bound, gap."""

import sys
from types import TracebackType

from optalloc.errors import visible
from optalloc.result import CurvePoint

__all__ = ["Progress"]


class Progress:
    """Shows the latest point of the anytime curve on standard error, if that is a terminal.

    Parameters
    ----------
    title
        What is being solved.
    time_limit
        Seconds.
    """

    def __init__(self, title: str, time_limit: float):
        self.title = title
        self.time_limit = time_limit
        self._status = None
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.markup import escape

            self.title = escape(visible(title))
            self._status = Console(stderr=True).status(f"{self.title} ... (Ctrl-C keeps the best plan)")

    def __enter__(self) -> "Progress":
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status is not None:
            self._status.stop()

    def event(self, point: CurvePoint) -> None:
        """Show ``point``."""
        if self._status is None:
            return
        plan, bound = ("-" if v is None else f"{v:,}" for v in (point.objective, point.bound))
        spent = f"{point.seconds:.1f} of {self.time_limit:g} s"
        self._status.update(
            f"{self.title}  {spent}  plan {plan}  bound {bound}  gap {_gap(point)}  ({point.source})"
        )


def _gap(point: CurvePoint) -> str:
    if point.objective is None or point.bound is None:
        return "-"
    return f"{(point.objective - point.bound) / max(abs(point.objective), 1):.2%}"
