"""What a Schedule is: the choice and start of each task, and the transfers."""

from dataclasses import dataclass
from typing import Any

__all__ = ["Choice", "InputChoice", "Schedule", "Segment", "TaskEntry", "TransferEntry", "Use", "Violation"]


@dataclass(frozen=True)
class Violation:
    """One broken rule.

    Attributes
    ----------
    rule
        ``R1`` ... ``R11`` (docs/model.md), or ``scope`` where something fixed was changed or started early.
    ids
        What it is about: ids of tasks, nodes, links, datasets, sites; the one to blame first.
    message
        One sentence with the numbers.
    """

    rule: str
    ids: tuple[str, ...]
    message: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.message}"


@dataclass(frozen=True)
class Use:
    """Devices of one node that a run holds."""

    node: str
    devices: int


@dataclass(frozen=True)
class InputChoice:
    """The data of one input of a task.

    Attributes
    ----------
    access
        ``local``, ``staged`` or ``streamed``.
    route
        Link ids in travel order where the data are streamed, else None (a staged replica's route is that of
        its transfer).
    """

    dataset: str
    access: str
    route: tuple[str, ...] | None = None

    def to_dict(self) -> dict[str, Any]:
        """JSON object."""
        route = None if self.route is None else list(self.route)
        return {"dataset": self.dataset, "access": self.access, "route": route}


@dataclass(frozen=True)
class Choice:
    """Which data a task uses, and which of its explicit modes if it lists any."""

    inputs: tuple[InputChoice, ...] = ()
    mode: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """JSON object; ``mode`` only where there is one."""
        mode = {} if self.mode is None else {"mode": self.mode}
        return {**mode, "inputs": [given.to_dict() for given in self.inputs]}


@dataclass(frozen=True)
class Segment:
    """A run on fixed devices in ``[start, end)`` ticks. Tasks that cannot change devices have one."""

    uses: tuple[Use, ...]
    start: int
    end: int

    def to_dict(self) -> dict[str, Any]:
        """JSON object."""
        uses = [{"node": use.node, "devices": use.devices} for use in self.uses]
        return {"uses": uses, "start": self.start, "end": self.end}


@dataclass(frozen=True)
class TaskEntry:
    """The decision about one task: rejected, or a choice with its segments."""

    task: str
    rejected: bool = False
    choice: Choice | None = None
    segments: tuple[Segment, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """JSON object."""
        if self.rejected or self.choice is None:
            return {"task": self.task, "rejected": True}
        segments = [segment.to_dict() for segment in self.segments]
        return {"task": self.task, "choice": self.choice.to_dict(), "segments": segments}


@dataclass(frozen=True)
class TransferEntry:
    """A dataset brought to a site over a route (link ids in travel order), starting at a tick."""

    dataset: str
    site: str
    route: tuple[str, ...]
    start: int

    def to_dict(self) -> dict[str, Any]:
        """JSON object."""
        return {"dataset": self.dataset, "site": self.site, "route": list(self.route), "start": self.start}


@dataclass(frozen=True)
class Schedule:
    """The decisions of a plan.

    Attributes
    ----------
    instance, instance_sha256
        Name and hash of the instance it was made for; a hash of None is not compared.
    """

    instance: str
    instance_sha256: str | None
    tasks: tuple[TaskEntry, ...] = ()
    transfers: tuple[TransferEntry, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """JSON object in the format "optalloc-schedule/1"."""
        return {
            "format": "optalloc-schedule/1",
            "instance": self.instance,
            "instance_sha256": self.instance_sha256,
            "tasks": [entry.to_dict() for entry in self.tasks],
            "transfers": [entry.to_dict() for entry in self.transfers],
        }
