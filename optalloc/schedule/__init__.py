"""Schedules: decisions only, named by content, in files that people and other programs can read."""

from optalloc.schedule.conversion import resolve, to_schedule
from optalloc.schedule.files import as_schedule, read_schedule, schedule_from_dict, write_schedule
from optalloc.schedule.model import (
    Choice,
    InputChoice,
    Schedule,
    Segment,
    TaskEntry,
    TransferEntry,
    Use,
    Violation,
)
from optalloc.schedule.scoping import build_scope

__all__ = [
    "Choice",
    "InputChoice",
    "Schedule",
    "Segment",
    "TaskEntry",
    "TransferEntry",
    "Use",
    "Violation",
    "as_schedule",
    "build_scope",
    "read_schedule",
    "resolve",
    "schedule_from_dict",
    "to_schedule",
    "write_schedule",
]
