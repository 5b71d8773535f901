"""`lns`: large neighbourhood search from the best plan of a rule. docs/search.md says how, and what was measured."""

from optalloc.solvers.base import Outcome, Request
from optalloc.solvers.jit import prepare
from optalloc.solvers.lns.driver import OPTIONS, begin_plans, search_plans
from optalloc.solvers.registry import solver

__all__ = ["lns"]


@solver("lns", options=OPTIONS, least={"iterations": 0})
def lns(request: Request) -> Outcome:
    """Large neighbourhood search, guided by prices; never worse than its start, no proof."""
    if not prepare(request.monitor.should_stop):
        return begin_plans(request)
    return search_plans(request)
