"""One line on the terminal while a solver works: best plan, bound, gap."""

import sys
from types import TracebackType

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

            self._status = Console(stderr=True).status(f"{title} ... (Ctrl-C keeps the best plan)")

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
        known = point.objective is not None and point.bound is not None
        gap = f"{(point.objective - point.bound) / max(abs(point.objective), 1):.2%}" if known else "-"  # type: ignore[operator]
        plan, bound = ("-" if v is None else f"{v:,}" for v in (point.objective, point.bound))
        self._status.update(
            f"{self.title}  {point.seconds:.1f} of {self.time_limit:g} s  plan {plan}  bound {bound}  gap {gap}  ({point.source})"
        )
