"""What to say about a solver that raised."""

import traceback
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final

import optalloc
from optalloc.solvers.registry import is_built_in

__all__ = ["Failure", "failure_of"]

_FRAMES: Final = 8
"""The innermost lines of a traceback tell the most; a recursion without end has thousands."""

_OURS: Final = str(Path(optalloc.__file__).parent)


@dataclass(frozen=True)
class Failure:
    """One sentence, and the last lines of the traceback as text."""

    message: str
    frames: tuple[str, ...]


def failure_of(name: str, error: BaseException) -> Failure:
    """Who raised what, and where in the code of whoever wrote the solver."""
    frames = traceback.extract_tb(error.__traceback__, limit=-_FRAMES)
    what = traceback.format_exception_only(error)[-1].strip()
    where = _place(error.__traceback__)
    report = "; this is a fault of optalloc: please report it with the instance" if is_built_in(name) else ""
    return Failure(
        f"{name} raised {what}{where}{report}", tuple(line.rstrip() for line in traceback.format_list(frames))
    )


def _place(trace: TracebackType | None) -> str:
    """The innermost line that is neither optalloc's nor an installed library's; else the innermost one."""
    frames = traceback.extract_tb(trace)
    own = [f for f in frames if not f.filename.startswith(_OURS) and "site-packages" not in f.filename]
    found = (own or list(frames))[-1:]
    return "".join(f" ({Path(f.filename).name}, line {f.lineno}, in {f.name})" for f in found)
