"""Dispatch rules as static list schedulers: one pass over the tasks, each placed once by the kernel.

A rule fills a `Desk`; docs/rules.md has the formula and the source of each. A rule that runs into a dead end
or a plan limit gives no plan: nothing is repaired.
"""

from collections.abc import Callable, Mapping

from optalloc.problem import Plan
from optalloc.result import Termination
from optalloc.scope import Scope
from optalloc.solvers.base import Outcome, Request
from optalloc.solvers.registry import solver
from optalloc.solvers.rules.completion import max_min, min_min, sufferage
from optalloc.solvers.rules.data_then_devices import compute_centric, data_first
from optalloc.solvers.rules.desk import DeadEnd, Desk
from optalloc.solvers.rules.due_dates import atc, edd
from optalloc.solvers.rules.extremes import cheapest, fastest, random
from optalloc.solvers.rules.first_come import fifo
from optalloc.solvers.rules.joint import joint_greedy
from optalloc.solvers.rules.shortest import spt, wspt
from optalloc.solvers.rules.start import best_start
from optalloc.solvers.rules.upward_rank import heft

__all__ = ["RULES", "DeadEnd", "Desk", "Rule", "best_start", "run_rule"]

Rule = Callable[[Desk], None]
"""Decides every open task on a desk, or raises `DeadEnd`."""

RULES: Mapping[str, Rule] = {
    "fifo": fifo,
    "spt": spt,
    "wspt": wspt,
    "edd": edd,
    "atc": atc,
    "min-min": min_min,
    "max-min": max_min,
    "sufferage": sufferage,
    "heft": heft,
    "cheapest": cheapest,
    "fastest": fastest,
    "random": random,
    "compute-centric": compute_centric,
    "data-first": data_first,
    "joint-greedy": joint_greedy,
}


def run_rule(rule: Rule, scope: Scope, seed: int = 0) -> Plan:
    """The plan of a rule.

    Raises
    ------
    DeadEnd
        The rule has none.
    """
    desk = Desk(scope, seed)
    rule(desk)
    return desk.table.plan()


def _as_solver(name: str, rule: Rule) -> Callable[[Request], Outcome]:
    def run(request: Request) -> Outcome:
        try:
            plan = run_rule(rule, request.scope, request.seed)
        except DeadEnd as end:
            return Outcome(Termination.COMPLETED, message=end.describe(request.scope))
        request.monitor.offer(plan, name)
        return Outcome(Termination.COMPLETED)

    return run


for _name, _rule in RULES.items():
    solver(_name, summary=(_rule.__doc__ or "").partition("\n")[0])(_as_solver(_name, _rule))
