"""What to say about a solver that raised."""

import os
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import optalloc
from optalloc.solvers.registry import is_built_in

__all__ = ["Failure", "failure_of"]

_FRAMES: Final = 8
"""The innermost lines of a traceback tell the most; a recursion without end has thousands."""

_OURS: Final = str(Path(optalloc.__file__).parent) + os.sep


@dataclass(frozen=True)
class Failure:
    """One sentence, and the last lines of the traceback as text, from where it leaves optalloc."""

    message: str
    frames: tuple[str, ...]


def failure_of(name: str, error: BaseException) -> Failure:
    """Who raised what, and where in the code of whoever wrote the solver."""
    every = traceback.extract_tb(error.__traceback__)
    ours = is_built_in(name)
    first = next((number for number, frame in enumerate(every) if ours or not _is_ours(frame)), 0)
    frames = every[first:][-_FRAMES:]
    what = traceback.format_exception_only(error)[-1].strip()
    where = _place(every)
    report = "; this is a fault of optalloc: please report it with the instance" if ours else ""
    return Failure(
        f"{name} raised {what}{where}{report}", tuple(line.rstrip() for line in traceback.format_list(frames))
    )


def _is_ours(frame: traceback.FrameSummary) -> bool:
    return frame.filename.startswith(_OURS)


def _place(frames: Sequence[traceback.FrameSummary]) -> str:
    """The innermost line that is neither optalloc's nor an installed library's; else the innermost one."""
    own = [frame for frame in frames if not _is_ours(frame) and "site-packages" not in frame.filename]
    found = (own or list(frames))[-1:]
    return "".join(f" ({Path(f.filename).name}, line {f.lineno}, in {f.name})" for f in found)
