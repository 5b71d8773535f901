"""One run through a problem, decision by decision."""

from optalloc.environment.decision import Decision
from optalloc.environment.features import Features
from optalloc.environment.prepared import Prepared
from optalloc.environment.prospects import Prospects
from optalloc.environment.scales import Scales
from optalloc.errors import Fault, InputError
from optalloc.problem import Problem
from optalloc.schedule import Schedule, to_schedule
from optalloc.scope import full_scope
from optalloc.simulation import REPLAN, RESERVE, Action, Commit, Simulator, Stage

__all__ = ["TRANSFERS", "Episode"]

TRANSFERS = ("none", "seen", "any")
"""Transfers by themselves: never; those that a seen task could use; those that any task could use."""


class Episode:
    """A simulator that stops wherever there is something to decide.

    Where waiting is the only option it waits by itself; where there is none at all the run is a dead end.

    Parameters
    ----------
    problem
        With one level in its objective; or what was prepared of it, where several episodes share it.
    discipline
        ``"replan"`` or ``"reserve"``.
    transfers
        ``"none"``: a transfer begins only as part of a commitment that lacks it. ``"seen"``: also by itself, if a
        seen task could use it. ``"any"``: also before any task that could is seen; the clock then stops where the
        data become available, too.

    Raises
    ------
    UnsupportedError
        The objective has several levels.
    InputError
        The problem was shown to have no plan, or a setting is unknown.

    Attributes
    ----------
    simulator
        What it decides by.
    decision
        What can be decided now; once `done`, what could be decided last.
    start_value
        The objective of what is fixed from the start.
    decisions
        How many have been taken.
    """

    decision: Decision

    def __init__(self, problem: Problem | Prepared, discipline: str = REPLAN, transfers: str = "seen"):
        if transfers not in TRANSFERS:
            raise InputError(Fault("transfers", f"must be one of {', '.join(TRANSFERS)}, got {transfers!r}"))
        self.prepared = problem if isinstance(problem, Prepared) else Prepared(problem)
        self.problem, self.transfers = self.prepared.problem, transfers
        self.simulator = Simulator(full_scope(self.problem), discipline, prefetch=transfers == "any")
        self.start_value, self.decisions = self.value, 0
        self.scales = Scales(self.prepared.isolated, self.prepared.known.weight)
        self.prospects = Prospects(self.prepared.layout, self.simulator)
        self._go_on()

    # questions --------------------------------------------------------------------------------------------
    @property
    def value(self) -> int:
        """The objective of what is decided for good, scaled by K."""
        return self.simulator.values[0]

    @property
    def done(self) -> bool:
        """Everything is decided, or no plan can come out any more."""
        return self.simulator.done

    @property
    def feasible(self) -> bool:
        """Whether a plan can still come out; once `done`, whether it did."""
        return not self.simulator.failure

    @property
    def features(self) -> Features:
        """What a learner sees of the decision."""
        prepared = self.prepared
        return Features(self.decision, prepared.known, prepared.isolated.value, self.scales)

    def schedule(self) -> Schedule:
        """What is decided for good."""
        return to_schedule(self.problem, self.simulator.plan())

    # decisions --------------------------------------------------------------------------------------------
    def choose(self, option: int) -> int:
        """Take one of the options of `decision`; returns by how much the objective has grown.

        Raises
        ------
        ValueError
            It is masked out, or there is no such option.
        """
        mask = self.decision.mask
        if not 0 <= option < len(mask) or not mask[option] or self.done:
            raise ValueError(f"Option {option} is not possible at tick {self.simulator.clock}.")
        return self.apply(self.decision.action(option))

    def apply(self, action: Action) -> int:
        """Do something that is possible now and go on to the next decision; returns the growth of the objective.

        Raises
        ------
        ValueError
            It is not possible now.
        """
        before, simulator = self.value, self.simulator
        if isinstance(action, Commit):
            placement = simulator.placement(action)
            self.prospects.committed(placement, simulator.commit(placement))
        elif isinstance(action, Stage):
            transfer = simulator.stage(action.replica, action.route)
            for_good = simulator.discipline == RESERVE or transfer.start == simulator.clock
            self.prospects.staged(transfer, for_good)
        else:
            simulator.apply(action)
        self.decisions += 1
        self._go_on()
        return self.value - before

    def _go_on(self) -> None:
        """To the next moment at which there is something to decide."""
        simulator, transfers = self.simulator, self.transfers != "none"
        while True:
            self.prospects.look()
            self.decision = Decision(self.prospects, self.prepared.costs, transfers=transfers)
            if simulator.done or self.decision.asks:
                break
            if simulator.next_event is None:
                simulator.fail("nothing is possible any more, and tasks are undecided")
            else:
                simulator.wait()
        self.scales.see(list(simulator.queue))
