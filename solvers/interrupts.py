"""Ctrl-C ends what can be ended at any moment, and keeps what is held.

A KeyboardInterrupt can come between any two steps. In the import of a library it leaves half of it behind, which
fails ever after; behind the search it takes the plan along. So it is raised within `cut` only, and even there not in
an import, unless that goes on and on. Elsewhere Ctrl-C is remembered: the next `cut` raises, and so does the one that
goes on when the import is done.
"""

import _thread
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from optalloc.solvers.base import Monitor

__all__ = ["cut", "interruptible", "take_over", "whole"]

T = TypeVar("T")

_IMPORT: Final = "<frozen importlib._bootstrap>"
"""File of the frames under which modules are loaded."""
_PATIENCE_SECONDS: Final = 1.0
"""Ctrl-C that long after the first one is meant: it ends an import, and the wait for a native search to end. Sooner
it may be the same one heard twice, from the terminal and from the program that began this one.
"""


class _State:
    """Of the main thread, the only one in which signals are handled."""

    asked: float | None = None
    """When Ctrl-C was pressed first."""
    raises = False
    """It may raise KeyboardInterrupt at this moment."""
    raised = False
    """It has raised one. What it cuts short may take its time to end: only who presses again cuts that as well."""
    reminded = False
    """The next call of the handler is not Ctrl-C, but a reminder of the first."""
    monitors: Final["list[Monitor]"] = []
    """Runs to be stopped by it."""


@contextmanager
def interruptible() -> Iterator[None]:
    """Handle Ctrl-C as this module says, if `take_over` does."""
    taken = take_over()
    try:
        yield
    finally:
        if taken:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def take_over() -> bool:
    """Handle Ctrl-C as this module says from now on.

    Returns
    -------
    Whether it does; not outside the main thread, nor where the program handles SIGINT, this module included.
    """
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return False
    _State.asked, _State.raised, _State.reminded = None, False, False
    signal.signal(signal.SIGINT, _handle)
    return True


def cut(function: Callable[[], T], monitor: "Monitor | None" = None) -> T:
    """Call a function that Ctrl-C may cut short.

    Parameters
    ----------
    monitor
        Of the run that Ctrl-C is to stop: a KeyboardInterrupt in a native callback may be swallowed there, but
        solvers look at their monitor.

    Raises
    ------
    KeyboardInterrupt
        Ctrl-C is pressed meanwhile, or has been since the beginning of `interruptible`.
    """
    if not _is_ours():
        return function()
    before, monitors = _State.raises, len(_State.monitors)
    try:
        if monitor is not None:
            _State.monitors.append(monitor)
        _State.raises = True
        if _State.asked is not None:
            _State.raised = True
            raise KeyboardInterrupt
        return function()
    finally:
        _State.raises = before
        del _State.monitors[monitors:]
        signal.signal(signal.SIGINT, _handle)  # a native search may have left another handler in its place


def whole(function: Callable[[], T]) -> T:
    """Call a function that Ctrl-C does not cut short, save where it calls `cut`."""
    if not _is_ours():
        return function()
    before = _State.raises
    try:
        _State.raises = False
        return function()
    finally:
        _State.raises = before


def _is_ours() -> bool:
    in_main = threading.current_thread() is threading.main_thread()
    return in_main and signal.getsignal(signal.SIGINT) is _handle


def _handle(number: int, frame: FrameType | None) -> None:
    """Called by Python when Ctrl-C is pressed, with what runs at that moment."""
    now, first, reminded = time.monotonic(), _State.asked, _State.reminded
    _State.reminded = False
    for monitor in _State.monitors:
        monitor.interrupt()
    if first is None:
        _State.asked = now
        _thread.start_new_thread(_remind, (now,))  # threading's would wait for locks that the frame may hold
    pressed_again = first is not None and not reminded and now - first > _PATIENCE_SECONDS
    if _State.raises and (pressed_again or not (_State.raised or _imports(frame))):
        _State.raised = True
        raise KeyboardInterrupt


def _remind(asked: float) -> None:
    """In a thread: call the handler again until it has raised, or nobody is left to hear it.

    Ctrl-C in an import is not raised there. What follows may never look at its monitor.
    """
    while True:
        time.sleep(_PATIENCE_SECONDS)
        if _State.asked != asked or _State.raised or signal.getsignal(signal.SIGINT) is not _handle:
            return
        if _State.raises:
            _State.reminded = True
            main = threading.main_thread().ident
            if main is not None and hasattr(signal, "pthread_kill"):  # wakes a thread that sleeps
                signal.pthread_kill(main, signal.SIGINT)
            else:
                _thread.interrupt_main(signal.SIGINT)


def _imports(frame: FrameType | None) -> bool:
    """A module is being loaded, within the innermost `cut`."""
    while frame is not None and frame.f_code is not cut.__code__:
        if frame.f_code.co_filename == _IMPORT:
            return True
        frame = frame.f_back
    return False
