"""What a policy sees and does at one event."""

from collections.abc import Sequence
from fractions import Fraction

from optalloc.placement import ModeFacts, Placement
from optalloc.problem import NEVER
from optalloc.simulation.simulator import Simulator

__all__ = ["Turn"]


class Turn:
    """A policy's turn: read-only questions about what is known now, and its actions.

    Tasks, modes, resources and replicas are indices of the Problem. A question about a task that is not
    released yet is refused.

    Attributes
    ----------
    alarm
        Tick at which the policy wants its next turn although nothing happens; None: at the next event.
    """

    def __init__(self, simulator: Simulator):
        self._simulator = simulator
        self.alarm: int | None = None

    # questions --------------------------------------------------------------------------------------------
    @property
    def clock(self) -> int:
        """The tick of now."""
        return self._simulator.clock

    @property
    def discipline(self) -> str:
        """``"replan"`` or ``"reserve"``."""
        return self._simulator.discipline

    @property
    def waiting(self) -> tuple[int, ...]:
        """Tasks to decide, by release: released, not decided at this event, everything before them decided."""
        return tuple(self._simulator.waiting)

    @property
    def queue(self) -> tuple[int, ...]:
        """Released tasks that are not decided for good, by release."""
        return tuple(self._simulator.queue)

    @property
    def running(self) -> tuple[int, ...]:
        """Tasks that run now."""
        return tuple(self._simulator.running)

    @property
    def value(self) -> tuple[int, ...]:
        """The objective, level by level, of what is decided for good (scaled by K)."""
        return tuple(self._simulator.values)

    def name(self, task: int) -> str:
        """Id of a task."""
        return self._simulator.problem.task_ids[self._seen(task)]

    def release(self, task: int) -> int:
        """Tick of its release."""
        return self._simulator.problem.release.item(self._seen(task))

    def due(self, task: int) -> int:
        """Due date in ticks; NEVER without one."""
        return self._simulator.problem.due.item(self._seen(task))

    def deadline(self, task: int) -> int:
        """Deadline in ticks; NEVER without one."""
        return self._simulator.problem.deadline.item(self._seen(task))

    def weight(self, task: int) -> Fraction:
        """Weight of a task."""
        return self._simulator.problem.task_weight[self._seen(task)]

    def may_reject(self, task: int) -> bool:
        """Whether a task that waits may be rejected."""
        return self._simulator.may_reject(self._seen(task))

    def modes(self, task: int) -> list[int]:
        """Modes in which a task can run."""
        return list(self._simulator.problem.modes_of(self._seen(task)).tolist())

    def mode(self, mode: int) -> ModeFacts:
        """Duration, uses (resource, amount), replicas and purchases of a mode."""
        self._seen_mode(mode)
        return self._simulator.firm.facts(mode)

    def money(self, mode: int) -> int:
        """Own money of a mode, in money units."""
        return self._simulator.problem.money.item(self._seen_mode(mode))

    def utility(self, mode: int) -> int:
        """Utility of the data of a mode, in permille."""
        return self._simulator.problem.utility.item(self._seen_mode(mode))

    def inputs(self, mode: int) -> list[tuple[int, int, int]]:
        """(dataset, access, route or -1) of a mode."""
        return self._simulator.problem.inputs(self._seen_mode(mode))

    def free(self, resource: int, tick: int | None = None) -> int:
        """What is free of a resource at a tick; default now. The devices of node n are resource n."""
        return self._simulator.table.profiles[resource].at(self.clock if tick is None else tick)

    def held(self, replica: int) -> bool:
        """Whether a replica is there or on its way."""
        return replica in self._simulator.table.held

    def earliest(
        self, task: int, mode: int, *, latest: int = NEVER, routes: dict[int, Sequence[int]] | None = None
    ) -> Placement | None:
        """The earliest placement of a task from now on, beside all that is decided; None if there is none.

        Parameters
        ----------
        latest
            Last start of interest.
        routes
            Replica -> the routes that a new transfer may take.
        """
        self._seen(task)
        if self._simulator.problem.mode_task[mode] != task:
            raise ValueError(f"Mode {mode} is none of task {task}.")
        return self._simulator.table.earliest(task, mode, latest=latest, routes=routes)

    def increase(self, placement: Placement) -> tuple[int, ...]:
        """What a placement adds to the objective, level by level."""
        simulator = self._simulator
        return tuple(simulator.table.increase(level, placement) for level in simulator.problem.levels)

    def _seen(self, task: int) -> int:
        if task in self._simulator._hidden:
            raise ValueError(f"Task {task} is not released yet.")
        return task

    def _seen_mode(self, mode: int) -> int:
        self._seen(self._simulator.problem.mode_task.item(mode))
        return mode

    # actions ----------------------------------------------------------------------------------------------
    def commit(self, choice: Placement | int, mode: int | None = None) -> bool:
        """Commit a placement that `earliest` has found at this event, or ``(task, mode)``; True if for good."""
        if isinstance(choice, Placement):
            return self._simulator.commit(choice)
        found = None if mode is None else self.earliest(choice, mode)
        if found is None:
            raise ValueError(f"Task {choice} has no placement in mode {mode} now.")
        return self._simulator.commit(found)

    def stage(self, replica: int, route: int | None = None) -> None:
        """Begin a transfer as early as possible."""
        self._simulator.stage(replica, route)

    def reject(self, task: int) -> None:
        """Reject a task and those after it."""
        self._simulator.reject(self._seen(task))
