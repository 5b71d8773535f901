"""Writing instances: whole or not at all, numbers as they were read."""

import gzip
from pathlib import Path

from optalloc.instance import Instance
from optalloc.io.atomic import write_bytes
from optalloc.io.documents import pretty_text

__all__ = ["write_instance"]


def write_instance(instance: Instance, path: str | Path) -> None:
    """Write a ``.json`` or, by the name, ``.json.gz`` file; equal instances give equal bytes."""
    content = pretty_text(instance.document()).encode()
    if str(path).endswith(".gz"):
        content = gzip.compress(content, mtime=0)
    write_bytes(path, content)
