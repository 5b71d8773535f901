"""Documents of earlier versions of the format become documents of this one, step by step."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from optalloc.errors import Fault, InputError

__all__ = ["FORMAT", "migrate"]

FORMAT: Final = "optalloc-instance/1"
MINOR: Final = 0
"""Minor version of FORMAT; version 1.0 is written without it."""

STEPS: Final[Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]]] = {}
"""Minor version -> the function that turns such a document into one of the next minor version."""

_VERSION: Final = re.compile(r"optalloc-instance/([0-9]{1,6})(?:\.([0-9]{1,6}))?", re.ASCII)


def migrate(document: Any, source: str = "") -> Any:
    """The document as this version writes it. Without a known format it is left for the checks to refuse.

    Raises
    ------
    InputError
        Its major version differs, or it is newer than this version of optalloc.
    """
    written = document.get("format") if isinstance(document, dict) else None
    version = _VERSION.fullmatch(written) if isinstance(written, str) else None
    if version is None or written == FORMAT:
        return document
    major, minor = int(version[1]), int(version[2] or 0)
    if (major, minor) > (1, MINOR):
        raise InputError(Fault("format", f"{written!r} is newer than {FORMAT!r}; update optalloc", source))
    if major < 1:
        raise InputError(Fault("format", f"{written!r} is of another major version than {FORMAT!r}", source))
    for step in range(minor, MINOR):
        document = STEPS[step](document)
    return {**document, "format": FORMAT}
