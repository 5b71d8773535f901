"""Scheduling without foresight: an event-driven simulator on the placement kernel."""

from optalloc.simulation.actions import Action, Commit, Reject, Stage, Wait
from optalloc.simulation.replay import follow, left_shifted, replay
from optalloc.simulation.running import Policy, simulate
from optalloc.simulation.simulator import DISCIPLINES, REPLAN, RESERVE, Simulator
from optalloc.simulation.trace import Trace, write_trace
from optalloc.simulation.turn import Turn

__all__ = [
    "DISCIPLINES", "REPLAN", "RESERVE", "Action", "Commit", "Policy", "Reject", "Simulator", "Stage", "Trace",
    "Turn", "Wait", "follow", "left_shifted", "replay", "simulate", "write_trace",
]  # fmt: skip
