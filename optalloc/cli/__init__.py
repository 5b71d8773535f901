"""The command line: ``optalloc solve | bound | verify | compare | train | generate | export | plot | list`` ..."""

import os
import sys
import threading
from typing import Final

__all__ = ["main"]

_FIRST_SIGNAL: Final = 129
"""Exit codes from here on stand for signals."""


def main() -> None:
    """Entry point of the ``optalloc`` command."""
    from optalloc.solvers.interrupts import take_over

    take_over()  # for good: neither loading the commands nor the way out is cut short; what they `cut` is
    from optalloc.cli.app import app

    try:
        app()
    except SystemExit as end:
        _leave(end.code)
        raise


def _leave(code: object) -> None:
    """Leave a search behind that has not heard of Ctrl-C yet: in native code, Python's way out would crash it."""
    if isinstance(code, int) and code >= _FIRST_SIGNAL and threading.active_count() > 1:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
