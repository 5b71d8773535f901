"""The dispatch rules at every event: the rule runs over the queue as a list scheduler from the clock on."""

from collections.abc import Callable, Mapping

from optalloc.problem import FREE
from optalloc.solvers.online.desk import OnlineDesk
from optalloc.solvers.rules import RULES
from optalloc.solvers.rules.criteria import Completion, by
from optalloc.solvers.rules.desk import Desk
from optalloc.solvers.rules.extremes import random_placement
from optalloc.solvers.rules.listing import place_in_order

__all__ = ["ONLINE_RULES", "OnlineRule"]

OnlineRule = Callable[[OnlineDesk], None]
"""Acts at one event."""


def heft(desk: OnlineDesk) -> None:
    """Heterogeneous earliest finish time: largest upward rank first, over what has been released."""
    ranks: dict[int, float] = {}
    priority = [0.0] * desk.problem.num_tasks
    for task in desk.free:
        priority[task] = -_rank(desk, task, ranks)
    place_in_order(desk, priority, by(Completion()))


def _rank(desk: OnlineDesk, task: int, ranks: dict[int, float]) -> float:
    """`optalloc.solvers.rules.upward_rank` with the released successors only."""
    order = [task]
    while order:
        at = order[-1]
        after = [s for s in desk.problem.successors[at] if desk.table.mode[s] == FREE]
        missing = [s for s in after if s not in ranks]
        if missing:
            order += missing
            continue
        lags = {s: lag for s in after for pred, lag in desk.problem.predecessors(s) if pred == at}
        longest = max((lags[s] + ranks[s] for s in after), default=0.0)
        ranks[order.pop()] = float(desk.mean_duration[at]) + longest
    return ranks[task]


def random(desk: OnlineDesk) -> None:
    """A random order of the queue and, for each task, the first of its modes in random order that fits."""
    priority = [0.0] * desk.problem.num_tasks
    for task in desk.free:
        priority[task] = float(desk.rng.random())
    place_in_order(desk, priority, random_placement)


def _online(rule: Callable[[Desk], None]) -> OnlineRule:
    return lambda desk: rule(desk)


ONLINE_RULES: Mapping[str, OnlineRule] = {name: _online(rule) for name, rule in RULES.items()} | {
    "heft": heft,
    "random": random,
}
"""Rule -> its online form. heft and random would look beyond the queue: they have forms of their own."""
