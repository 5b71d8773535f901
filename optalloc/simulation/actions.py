"""What can be done at a decision."""

from dataclasses import dataclass

__all__ = ["Action", "Commit", "Reject", "Stage", "Wait"]


@dataclass(frozen=True, order=True)
class Commit:
    """Run ``task`` in ``mode`` as early as possible; transfers that it lacks begin as early as they can."""

    task: int
    mode: int


@dataclass(frozen=True, order=True)
class Stage:
    """Bring ``replica`` over ``route`` as early as possible."""

    replica: int
    route: int


@dataclass(frozen=True, order=True)
class Reject:
    """Reject ``task`` and all released tasks after it; those released later are rejected at their release."""

    task: int


@dataclass(frozen=True, order=True)
class Wait:
    """Go on to the next event, or to tick ``until`` where that comes first."""

    until: int | None = None


Action = Commit | Stage | Reject | Wait
