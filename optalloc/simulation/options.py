"""Which actions are possible now."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from optalloc.simulation.actions import Action, Commit, Reject, Stage, Wait

if TYPE_CHECKING:
    from optalloc.simulation.simulator import Simulator

__all__ = ["possible_actions"]


def possible_actions(simulator: "Simulator") -> list[Action]:
    """Commitments by task and mode, transfers, rejections, and waiting where something will happen."""
    if simulator.done:
        return []
    waiting = simulator.waiting
    found: list[Action] = [action for task in waiting for action in _commits(simulator, task)]
    found += _stages(simulator)
    found += [Reject(task) for task in waiting if _may_reject(simulator, task)]
    return found if simulator.next_event is None else [*found, Wait()]


def _commits(simulator: "Simulator", task: int) -> Iterator[Commit]:
    for mode in simulator.problem.modes_of(task).tolist():
        placement = simulator.table.earliest(task, mode)
        if placement is not None and simulator.ledger.allows(simulator.firm, placement):
            yield Commit(task, mode)


def _stages(simulator: "Simulator") -> Iterator[Stage]:
    """Transfers that some mode of a task in the queue could use; with leave to prefetch all."""
    problem = simulator.problem
    for replica in range(problem.num_replicas) if simulator.prefetch else _needed(simulator):
        for route in problem.routes_of(replica):
            transfer = simulator.table.earliest_transfer(replica, route)
            if transfer is not None and simulator.ledger.affords(transfer.cost):
                yield Stage(replica, route)


def _needed(simulator: "Simulator") -> list[int]:
    """Replicas that some mode of a task in the queue reads."""
    modes = [mode for task in simulator.queue for mode in simulator.problem.modes_of(task).tolist()]
    return sorted({k for mode in modes for k in simulator.firm.facts(mode).needs})


def _may_reject(simulator: "Simulator", task: int) -> bool:
    chain = simulator.firm.followers(task)
    return simulator.may_reject(task) and simulator.ledger.allows_rejection(chain)
