"""The learned schedulers as solvers, and `lookahead`, which searches instead of learning."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from optalloc.problem import Problem
from optalloc.simulation import REPLAN, Policy, Simulator
from optalloc.solvers.base import Request
from optalloc.solvers.learned.ground import Ground
from optalloc.solvers.learned.policy import LearnedPolicy, Scorer
from optalloc.solvers.learned.schedulers import SCHEDULERS, known_weights
from optalloc.solvers.online import Make, join_policy, look_ahead
from optalloc.solvers.online.desk import OnlineDesk
from optalloc.solvers.online.index import replan_index
from optalloc.solvers.online.rules import OnlineRule
from optalloc.solvers.registry import summary_of

__all__ = ["scorer_of"]


def scorer_of(name: str, weights: str | Path, option: str = "weights") -> Scorer:
    """The scheduler of a name with its weights (`known_weights`)."""
    return SCHEDULERS[name].make(known_weights(name, weights, option))


def _learned(name: str) -> Make:
    def make(request: Request, simulator: Simulator) -> Policy:
        scorer = scorer_of(name, request.options.get("weights", name))
        return LearnedPolicy(Ground(simulator.problem), simulator, scorer, request.seed)

    return make


# look-ahead -----------------------------------------------------------------------------------------------
_LOOKAHEAD: Final[Mapping[str, Any]] = {"tasks": 6, "modes": 3, "base": "replan-index"}


def _lookahead(request: Request, simulator: Simulator) -> Policy:
    given = {**_LOOKAHEAD, **request.options}
    base = _base(given["base"], simulator.problem)
    return look_ahead(given["tasks"], given["modes"], base)(request, simulator)


def _base(name: str, problem: Problem) -> OnlineRule:
    if name == "replan-index":
        return replan_index
    scorer, ground = scorer_of("es-index", name, "base"), Ground(problem)

    def rule(desk: OnlineDesk) -> None:
        LearnedPolicy(ground, desk.simulator, scorer, desk.seed).act()

    return rule


for _name in SCHEDULERS:
    join_policy(_name, summary_of(_name), _learned(_name), {"weights": _name, "trace": ""}, REPLAN)
join_policy(
    "lookahead",
    summary_of("lookahead"),
    _lookahead,
    {**_LOOKAHEAD, "trace": ""},
    REPLAN,
    least={"tasks": 1, "modes": 1},
)
