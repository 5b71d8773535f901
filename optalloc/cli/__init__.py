"""The command line: ``optalloc solve | bound | verify | compare | generate | import | export | plot | list`` ..."""

__all__ = ["main"]


def main() -> None:
    """Entry point of the ``optalloc`` command."""
    from optalloc.cli.app import app

    app()
