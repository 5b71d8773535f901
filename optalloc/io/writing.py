"""Writing instances and schedules: whole or not at all."""

from pathlib import Path

from optalloc.instance import Instance, write_instance
from optalloc.schedule import Schedule, write_schedule

__all__ = ["write", "write_instance", "write_schedule"]


def write(item: Instance | Schedule, path: str | Path) -> None:
    """Write an instance or a schedule as ``.json`` or, by the name, ``.json.gz``.

    Raises
    ------
    OSError
        If the folder does not exist or cannot be written.
    """
    if isinstance(item, Instance):
        write_instance(item, path)
    elif isinstance(item, Schedule):
        write_schedule(item, path)
    else:
        raise TypeError(f"expected an Instance or a Schedule, got {type(item).__name__}")
