"""The command line: ``optalloc solve | bound | verify | compare | generate | import | export | plot | list`` ..."""

__all__ = ["main"]


def main() -> None:
    """Entry point of the ``optalloc`` command."""
    from optalloc.solvers.interrupts import take_over

    take_over()  # for good: neither loading the commands nor the way out is cut short; what they `cut` is
    from optalloc.cli.app import app

    app()
