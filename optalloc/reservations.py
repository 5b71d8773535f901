"""What the placement kernel keeps and hands out: modes as plain tuples, placements, held replicas."""

from typing import NamedTuple

from optalloc.problem import Form, Problem, Transfer

__all__ = ["Held", "ModeFacts", "Placement", "mode_facts", "own_increase"]


class ModeFacts(NamedTuple):
    """One mode as plain tuples: reading scalars out of arrays is what costs most in a search.

    Attributes
    ----------
    earliest
        First tick allowed by the release and the availability of the data.
    latest
        Last start that meets the deadline.
    task, duration, uses, needs, buys
        As in the Problem.
    """

    task: int
    duration: int
    earliest: int
    latest: int
    uses: tuple[tuple[int, int], ...]
    needs: tuple[int, ...]
    buys: tuple[int, ...]


class Placement(NamedTuple):
    """One way to place a task: what `Timetable.earliest` finds and `Timetable.commit` reserves.

    Attributes
    ----------
    task, mode
        Indices.
    start, end
        Ticks, half open.
    transfers
        Transfers that have to be added for it.
    """

    task: int
    mode: int
    start: int
    end: int
    transfers: tuple[Transfer, ...] = ()


class Held:
    """A replica that a transfer brings, and who reads it.

    Attributes
    ----------
    transfer
        What brings it.
    readers
        Task -> end of its run.
    until
        It takes storage in [transfer.start, until): to the end of the transfer and of the last reader.
    owner
        The timetable (its token) that may change this object.
    """

    __slots__ = ("owner", "readers", "transfer", "until")

    def __init__(self, transfer: Transfer, readers: dict[int, int], until: int, owner: object):
        self.transfer = transfer
        self.readers = readers
        self.until = until
        self.owner = owner

    def clone(self, owner: object) -> "Held":
        """A copy that ``owner`` may change."""
        return Held(self.transfer, self.readers.copy(), self.until, owner)


def mode_facts(problem: Problem, mode: int) -> ModeFacts:
    """The facts of one mode."""
    task, duration = problem.mode_task.item(mode), problem.duration.item(mode)
    return ModeFacts(
        task=task,
        duration=duration,
        earliest=max(problem.release.item(task), problem.available.item(mode)),
        latest=problem.deadline.item(task) - duration,
        uses=tuple(problem.uses(mode)),
        needs=tuple(problem.needs(mode)),
        buys=tuple(problem.buys(mode)),
    )


def own_increase(problem: Problem, form: Form, task: int, mode: int, end: int) -> int:
    """`own_cost` of one mode that ends at ``end``, as a plain int: the same sum, without arrays."""
    value = form.completion.item(task) * end + form.placed.item(task)
    late = end - problem.due.item(task)
    if late > 0:
        value += form.tardiness.item(task) * late + form.late.item(task)
    value += form.loss.item(task) * (1000 - problem.utility.item(mode))
    return int(value + form.cost * problem.money.item(mode))
