"""Schedule files: read with every fault at once, written whole or not at all."""

import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optalloc.errors import Fault, InputError
from optalloc.io.atomic import write_bytes
from optalloc.problem import Plan
from optalloc.schedule.model import (
    Choice,
    InputChoice,
    Schedule,
    Segment,
    TaskEntry,
    TransferEntry,
    Use,
)

if TYPE_CHECKING:
    from optalloc.entities import StateChoice, StateInput, StateSegment, StateTask
    from optalloc.schedule.document import ScheduleDocument

__all__ = ["as_schedule", "read_schedule", "schedule_from_dict", "write_schedule"]


def read_schedule(path: str | Path) -> Schedule:
    """Read a ``.json`` or ``.json.gz`` file.

    Raises
    ------
    InputError
        With all faults of the file, each with its path.
    """
    from optalloc.io.documents import load, parse

    document, repeated = parse(load(path), str(path))
    return _validated(document, repeated, str(path))


def as_schedule(given: Schedule | Plan | str | Path, name: str) -> Schedule | Plan:
    """A schedule or plan as it is, the schedule in a file otherwise; ``name`` is what faults call it.

    Raises
    ------
    InputError
        As `read_schedule` does.
    TypeError
        It is none of them.
    """
    if isinstance(given, str | Path):
        return read_schedule(given)
    if not isinstance(given, Schedule | Plan):
        raise TypeError(f"{name} must be a Schedule, a Plan or a file, got {type(given).__name__}")
    return given


def schedule_from_dict(document: Mapping[str, Any], source: str = "") -> Schedule:
    """The Schedule in a JSON object; ``source`` names it in faults."""
    return _validated(dict(document), [], source)


def _validated(document: Any, repeated: list[Any], source: str) -> Schedule:
    from pydantic import ValidationError

    from optalloc.io.faults import json_path, shape_faults
    from optalloc.schedule.document import ScheduleDocument

    found = list(repeated)
    try:
        checked = ScheduleDocument.model_validate(document)
    except ValidationError as error:
        found += shape_faults(error, ScheduleDocument)
    if found:
        raise InputError([Fault(json_path(steps), message, source) for steps, message in found])
    return _from_document(checked)


def _from_document(document: "ScheduleDocument") -> Schedule:
    return Schedule(
        instance=document.instance,
        instance_sha256=document.instance_sha256,
        tasks=tuple(map(_task, document.tasks)),
        transfers=tuple(TransferEntry(t.dataset, t.site, t.route, t.start) for t in document.transfers),
    )


def _task(entry: "StateTask") -> TaskEntry:
    choice = None if entry.choice is None else _choice(entry.choice)
    return TaskEntry(entry.task, entry.rejected, choice, tuple(map(_segment, entry.segments)))


def _choice(choice: "StateChoice") -> Choice:
    return Choice(tuple(map(_input, choice.inputs)), choice.mode)


def _input(given: "StateInput") -> InputChoice:
    return InputChoice(given.dataset, given.access, given.route)


def _segment(segment: "StateSegment") -> Segment:
    return Segment(tuple(Use(use.node, use.devices) for use in segment.uses), segment.start, segment.end)


def write_schedule(schedule: Schedule, path: str | Path) -> None:
    """Write a ``.json`` or, by the name, ``.json.gz`` file; equal schedules give equal bytes."""
    from optalloc.io.documents import pretty_text

    if not isinstance(schedule, Schedule):
        raise TypeError(
            f"expected a Schedule, got {type(schedule).__name__}; to_schedule makes one of a Plan"
        )
    content = pretty_text(schedule.to_dict()).encode()
    if str(path).endswith(".gz"):
        content = gzip.compress(content, mtime=0)
    write_bytes(path, content)
