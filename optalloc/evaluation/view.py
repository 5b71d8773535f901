"""A plan laid out for checking: what is placed, what is exempt, what is fixed."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from optalloc.problem import FREE, STREAMED, Bools, Ints, Plan, Problem, Transfer, entries
from optalloc.scope import Scope

__all__ = ["View"]


@dataclass(frozen=True, eq=False)
class View:
    """A plan within a scope.

    Tasks without one of their own modes (rejected, absent, undecided, with a mode of another task) are in no
    array.
    """

    problem: Problem
    scope: Scope
    plan: Plan

    @cached_property
    def has_mode(self) -> Bools:
        """(J,) the task exists and its mode is one of its own."""
        pointer, mode = self.problem.mode_ptr, self.plan.mode
        return np.asarray(self.scope.exists & (mode >= pointer[:-1]) & (mode < pointer[1:]))

    @cached_property
    def task(self) -> Ints:
        """Placed tasks; the arrays below run along them."""
        return np.flatnonzero(self.has_mode)

    @cached_property
    def mode(self) -> Ints:
        return np.asarray(self.plan.mode[self.task])

    @cached_property
    def start(self) -> Ints:
        return np.asarray(self.plan.start[self.task])

    @cached_property
    def end(self) -> Ints:
        return np.asarray(self.start + self.problem.duration[self.mode])

    @cached_property
    def end_of(self) -> Ints:
        """(J,) end by task; meaningless for tasks that are not placed."""
        ends = np.zeros(self.problem.num_tasks, dtype=np.int64)
        ends[self.task] = self.end
        return ends

    @cached_property
    def exempt(self) -> Bools:
        """Along placed tasks: runs of the state, which R3 and R6 leave alone."""
        return np.asarray(self.problem.state_mode[self.task] != FREE)

    @cached_property
    def uses(self) -> tuple[Ints, Ints, Ints]:
        """(index into the placed tasks, resource, amount) of everything that runs hold."""
        which, at = entries(self.problem.use_ptr, self.mode)
        return which, self.problem.use_resource[at], self.problem.use_amount[at]

    @cached_property
    def needs(self) -> tuple[Ints, Ints]:
        """(index into the placed tasks, replica) for every staged replica read."""
        which, at = entries(self.problem.need_ptr, self.mode)
        return which, self.problem.need_replica[at]

    @cached_property
    def streams(self) -> tuple[Ints, Ints, Ints]:
        """(index into the placed tasks, dataset, route) of every stream."""
        which, at = entries(self.problem.input_ptr, self.mode)
        streamed = self.problem.input_access[at] == STREAMED
        return (
            which[streamed],
            self.problem.input_dataset[at][streamed],
            self.problem.input_route[at][streamed],
        )

    @cached_property
    def last_reader(self) -> dict[int, int]:
        """Replica -> end of the last run that reads it."""
        which, replica = self.needs
        last: dict[int, int] = {}
        for k, end in zip(replica.tolist(), self.end[which].tolist(), strict=True):
            last[k] = max(end, last.get(k, end))
        return last

    @cached_property
    def new_transfers(self) -> tuple[Transfer, ...]:
        """The transfers that are not part of the state."""
        state = set(self.problem.state_transfers)
        return tuple(transfer for transfer in self.plan.transfers if transfer not in state)

    def replica(self, transfer: Transfer) -> int:
        """Index of the replica that a transfer brings, -1 if no mode can read it."""
        return self.problem.replica_of.get((transfer.dataset, transfer.site), -1)

    # names for messages -------------------------------------------------------------------------------------
    def task_id(self, index: int) -> str:
        """Id of the placed task at ``index``."""
        return self.problem.task_ids[int(self.task[index])]

    def pair(self, transfer: Transfer) -> tuple[str, str]:
        """(dataset, site) ids of a transfer."""
        return self.problem.dataset_ids[transfer.dataset], self.problem.site_ids[transfer.site]
