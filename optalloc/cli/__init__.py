"""The command line: ``optalloc solve | bound | verify | compare | generate | import | export | plot | list`` ..."""

import sys

__all__ = ["main"]


def main() -> None:
    """Entry point of the ``optalloc`` command."""
    try:
        from optalloc.cli.app import app
    except KeyboardInterrupt:  # the commands themselves deal with it; until they are there, nobody does
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    app()
