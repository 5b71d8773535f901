"""Schedule files: read with every fault at once, written whole or not at all."""

import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optalloc.errors import Fault, InputError
from optalloc.io.atomic import write_bytes
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

__all__ = ["read_schedule", "schedule_from_dict", "schedule_to_dict", "write_schedule"]


# reading -----------------------------------------------------------------------------------------------------------
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


def schedule_from_dict(document: Mapping[str, Any], source: str = "") -> Schedule:
    """The Schedule in a JSON object; ``source`` names it in faults."""
    return _validated(dict(document), [], source)


def _validated(document: Any, repeated: list[Any], source: str) -> Schedule:
    from pydantic import ValidationError

    from optalloc.io.faults import faults_of, json_path
    from optalloc.schedule.document import ScheduleDocument

    faults = [Fault(json_path(steps), message, source) for steps, message in repeated]
    try:
        checked = ScheduleDocument.model_validate(document)
    except ValidationError as error:
        faults += [found for _, found in faults_of(error, ScheduleDocument, source)]
    if faults:
        raise InputError(faults)
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


# writing -----------------------------------------------------------------------------------------------------------
def schedule_to_dict(schedule: Schedule) -> dict[str, Any]:
    """The JSON object of a Schedule."""
    return {
        "format": "optalloc-schedule/1",
        "instance": schedule.instance,
        "instance_sha256": schedule.instance_sha256,
        "tasks": [_task_dict(entry) for entry in schedule.tasks],
        "transfers": [
            {"dataset": t.dataset, "site": t.site, "route": list(t.route), "start": t.start}
            for t in schedule.transfers
        ],
    }


def _task_dict(entry: TaskEntry) -> dict[str, Any]:
    if entry.rejected or entry.choice is None:
        return {"task": entry.task, "rejected": True}
    choice: dict[str, Any] = {} if entry.choice.mode is None else {"mode": entry.choice.mode}
    choice["inputs"] = [
        {"dataset": i.dataset, "access": i.access, "route": None if i.route is None else list(i.route)}
        for i in entry.choice.inputs
    ]
    return {"task": entry.task, "choice": choice, "segments": [_segment_dict(s) for s in entry.segments]}


def _segment_dict(segment: Segment) -> dict[str, Any]:
    uses = [{"node": use.node, "devices": use.devices} for use in segment.uses]
    return {"uses": uses, "start": segment.start, "end": segment.end}


def write_schedule(schedule: Schedule, path: str | Path) -> None:
    """Write a ``.json`` or, by the name, ``.json.gz`` file; equal schedules give equal bytes."""
    from optalloc.io.documents import pretty_text

    content = pretty_text(schedule_to_dict(schedule)).encode()
    if str(path).endswith(".gz"):
        content = gzip.compress(content, mtime=0)
    write_bytes(path, content)
