"""A policy through a whole run."""

from collections.abc import Callable

from optalloc.simulation.simulator import Simulator
from optalloc.simulation.turn import Turn

__all__ = ["Policy", "simulate"]

Policy = Callable[[Turn], None]
"""Acts at one event; when it returns, the clock goes on to the next one."""


def simulate(
    simulator: Simulator, policy: Policy, should_stop: Callable[[], bool] = lambda: False
) -> Simulator:
    """Let ``policy`` decide at every event until everything is decided or a dead end is reached.

    Parameters
    ----------
    should_stop
        Asked at every event; the run ends, undecided, once it says True.

    Returns
    -------
    The simulator: ``failure`` says whether there is a `plan`.
    """
    while not simulator.done and not should_stop():
        turn = Turn(simulator)
        if simulator.queue:
            policy(turn)
        if simulator.done:
            break
        if simulator.next_event is None and turn.alarm is None:
            names = ", ".join(repr(simulator.problem.task_ids[task]) for task in list(simulator.queue)[:5])
            simulator.fail(f"nothing will happen any more, and undecided are {names}")
        else:
            simulator.wait(turn.alarm)
    return simulator
