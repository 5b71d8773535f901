"""Files appear whole or not at all."""

import os
import tempfile
from pathlib import Path

__all__ = ["write_bytes", "write_text"]


def write_bytes(path: str | Path, content: bytes) -> None:
    """Write ``content`` to ``path`` through a temporary file in the same folder.

    Raises
    ------
    OSError
        If the folder does not exist or cannot be written; an existing file is then untouched.
    """
    path = Path(path)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def write_text(path: str | Path, content: str) -> None:
    """`write_bytes` of UTF-8 text."""
    write_bytes(path, content.encode())


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
