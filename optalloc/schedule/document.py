"""The format "optalloc-schedule/1" as a checked model: the shapes of an instance's state, and a header."""

from typing import Final, Literal

from pydantic import model_validator

from optalloc.entities import Listed, Part, StateTask, StateTransfer
from optalloc.quantities import Id, fault

__all__ = ["FORMAT", "ScheduleDocument"]

FORMAT: Final = "optalloc-schedule/1"


class TaskDecision(StateTask):
    """``{task, rejected: true}`` or ``{task, choice, segments}``."""

    @model_validator(mode="after")
    def _one_of_both(self) -> "TaskDecision":
        placed = self.choice is not None and bool(self.segments)
        if self.rejected and (self.choice is not None or self.segments):
            raise fault("is rejected and placed at once; give either rejected: true, or choice and segments")
        if not self.rejected and not placed:
            raise fault("needs rejected: true, or both a choice and segments")
        return self


class ScheduleDocument(Part):
    """A schedule file."""

    format: Literal["optalloc-schedule/1"]
    instance: Id
    instance_sha256: Id | None = None
    tasks: Listed[TaskDecision]
    transfers: Listed[StateTransfer] = ()
