"""Ctrl-C asks a run to stop and keeps its best plan."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from optalloc.solvers.base import Monitor

__all__ = ["interruptible"]


@contextmanager
def interruptible(monitor: Monitor) -> Iterator[None]:
    """While this holds, SIGINT interrupts the monitor as well as the code that runs.

    A KeyboardInterrupt raised inside a native callback may be swallowed there; the monitor remembers it, and
    solvers look at the monitor. Does nothing outside the main thread, or where the program handles SIGINT.
    """
    own = threading.current_thread() is threading.main_thread()
    if not own or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        monitor.interrupt()
        signal.default_int_handler(number, frame)

    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
