"""A call to end (SIGTERM, SIGHUP) is heard as Ctrl-C is: the best plan is kept, processes are ended."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Final

__all__ = ["End", "ended_gently"]

_CALLS: Final = ("SIGTERM", "SIGHUP")
_SAME_CALL_SECONDS: Final = 1.0
"""``timeout`` signals its child and then the group that the child is in."""


@dataclass
class End:
    """Which signal has ended the command; Ctrl-C unless another did."""

    signal: int = signal.SIGINT
    at: float = -_SAME_CALL_SECONDS

    @property
    def code(self) -> int:
        """The exit code that shells give to a program ended by that signal: 130, 143 or 129."""
        return 128 + self.signal

    def hear(self, number: int, frame: FrameType | None) -> None:
        """Do what Ctrl-C does now."""
        again = time.monotonic() - self.at < _SAME_CALL_SECONDS
        self.signal, self.at = number, time.monotonic()
        if not again:
            handler = signal.getsignal(signal.SIGINT)
            (handler if callable(handler) else signal.default_int_handler)(number, frame)


@contextmanager
def ended_gently() -> Iterator[End]:
    """While this holds, a call to end is a Ctrl-C. What the caller of the program ignores or handles is left alone."""
    end = End()
    if threading.current_thread() is not threading.main_thread():
        yield end
        return
    heard = [number for name in _CALLS if (number := getattr(signal, name, None)) is not None]
    heard = [number for number in heard if signal.getsignal(number) is signal.SIG_DFL]
    for number in heard:
        signal.signal(number, end.hear)
    try:
        yield end
    finally:
        for number in heard:
            signal.signal(number, signal.SIG_DFL)
