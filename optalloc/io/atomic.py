"""Files appear whole or not at all; what is no file (a pipe, a terminal) is written into, never replaced."""

import errno
import os
import re
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["can_write", "open_descriptor", "same_file", "write_bytes", "write_text"]

_DESCRIPTOR = re.compile(r"/dev/(?:stdout|stderr|fd/(\d+))|/proc/self/fd/(\d+)")
"""Paths that name what this process has open."""


def write_bytes(path: str | Path, content: bytes | Iterable[bytes]) -> None:
    """Write ``content``, in one piece or many, to ``path``: a file through a temporary one in its folder, all else
    directly.

    A link stays a link: the file that it names is replaced. A file that is replaced keeps its permissions.

    Raises
    ------
    OSError
        If the folder does not exist, or it or the file cannot be written; an existing file is then untouched.
    """
    pieces = [content] if isinstance(content, bytes) else content
    descriptor = open_descriptor(path)
    if descriptor is not None:
        _flush()
        with os.fdopen(os.dup(descriptor), "wb") as stream:
            stream.writelines(pieces)
        return
    with _naming(path):
        target, mode = _target(path)
        if mode is None or stat.S_ISREG(mode):
            _replace(target, mode, pieces)
        else:
            with open(target, "wb") as stream:
                stream.writelines(pieces)


def write_text(path: str | Path, content: str) -> None:
    """`write_bytes` of UTF-8 text."""
    write_bytes(path, content.encode())


def can_write(path: str | Path) -> None:
    """Find out before any work whether `write_bytes` can; nothing is changed.

    Raises
    ------
    OSError
        As `write_bytes` would.
    """
    if open_descriptor(path) is not None:
        return
    with _naming(path):
        target, mode = _target(path)
        if mode is None or stat.S_ISREG(mode):
            os.unlink(_temporary(target)[1])


def same_file(path: str | Path, other: object) -> bool:
    """Both are there and one file; False where ``other`` is no path."""
    try:
        return isinstance(other, str | Path) and os.path.samefile(path, other)
    except (OSError, ValueError):
        return False


def open_descriptor(path: str | Path) -> int | None:
    """The number of the open file that ``path`` names, if it names one."""
    found = _DESCRIPTOR.fullmatch(os.fspath(path))
    if found is None or os.name != "posix":
        return None
    number = found[1] or found[2]
    return int(number) if number else 1 if found[0] == "/dev/stdout" else 2


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()


def _target(path: str | Path) -> tuple[str, int | None]:
    """The file to which links lead, or else ``path``, and the mode of what is there; None: nothing is."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return os.path.realpath(path), None
    if stat.S_ISDIR(mode):
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not os.access(path, os.W_OK):
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))
    return os.path.realpath(path) if stat.S_ISREG(mode) else str(path), mode


def _replace(target: str, mode: int | None, pieces: Iterable[bytes]) -> None:
    handle, name = _temporary(target)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.writelines(pieces)
        os.chmod(name, 0o666 & ~_umask() if mode is None else stat.S_IMODE(mode))
        os.replace(name, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(name)
        raise


def _temporary(target: str) -> tuple[int, str]:
    return tempfile.mkstemp(dir=os.path.dirname(target), prefix=".optalloc.", suffix=".tmp")


@contextmanager
def _naming(path: str | Path) -> Iterator[None]:
    """Errors name the file that was asked for, not a temporary one."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
