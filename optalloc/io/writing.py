"""Writing instances."""

from optalloc.instance import write_instance

__all__ = ["write_instance"]
