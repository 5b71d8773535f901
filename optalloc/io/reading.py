"""Reading: by file or by name of a shipped instance."""

import os
from pathlib import Path

from optalloc.errors import Fault, InputError
from optalloc.instance import Instance, read_instance, read_text

__all__ = ["as_instance", "read", "read_instance", "read_text"]


def read(path_or_name: str | Path) -> Instance:
    """The instance in a file (which wins) or of that name in the index of shipped instances.

    Raises
    ------
    InputError
        It is neither, or the file is malformed.
    """
    if isinstance(path_or_name, Path) or os.path.exists(os.fspath(path_or_name)):
        return read_instance(path_or_name)
    # Shipped instances are read by this module, so that it cannot import them on top.
    from optalloc import instances

    if path_or_name in instances.names():
        return instances.load(path_or_name)
    message = "is neither a file nor one of the names that `optalloc list instances` shows"
    raise InputError(Fault("", message, path_or_name))


def as_instance(given: Instance | str | Path) -> Instance:
    """An instance as it is, what is behind a file or a name otherwise.

    Raises
    ------
    InputError
        As `read` does.
    TypeError
        It is none of them.
    """
    if isinstance(given, str | Path):
        return read(given)
    if not isinstance(given, Instance):
        raise TypeError(f"expected an Instance, a file or a name, got {type(given).__name__}")
    return given
