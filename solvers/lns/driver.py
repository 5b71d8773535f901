"""Large neighbourhood search on every level of the objective, within time or within a number of steps."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from optalloc.problem import NEVER, Form, Plan
from optalloc.result import Termination
from optalloc.scope import Scope, Windows, windows
from optalloc.solvers.base import Monitor, Outcome, Request
from optalloc.solvers.lns.arrays import Cap, Guide
from optalloc.solvers.lns.compiled import MANY, CompiledSearch, is_regular
from optalloc.solvers.lns.general import GeneralSearch
from optalloc.solvers.lns.guiding import price_guide
from optalloc.solvers.prices.ascent import REFINING, STAGES, Prices, Settings, ascend, no_prices
from optalloc.solvers.prices.layout import Floats, Layout, build_layout

__all__ = ["MANY", "OPTIONS", "begin_plans", "improve", "list_start", "search_plans"]

OPTIONS: Mapping[str, Any] = {"iterations": 0, "prices": True}
"""iterations: steps instead of time (0: time), for runs that can be repeated; prices: work out guide prices."""

PRICE_SHARE = {False: 0.15, True: 0.35}
"""Part of a level's time that may go into guide prices; more with many tasks, where the start decides."""

CYCLES = (1, 3, 9)
"""Relative lengths of the cycles of cooling, each from the best plan so far."""

HEAT = 0.06
"""Loss accepted in the mean at the beginning of a long cycle, as a part of the objective per task."""

LONG = 1_000
"""Steps for each task from which a cycle is long; with fewer the loss is less in the same proportion."""

OFFER_SECONDS = 0.4
"""At least so long between two plans that are verified."""

FEW = 60
"""Up to so many tasks the dispatch rules are tried as well, where the compiled list scheduler has a plan."""

THETAS = (0.5, 0.7, 0.8, 0.9, 1.0, 1.1)
"""Weights of the prices in list scheduling."""

VERY_MANY = 3_000
"""With so many tasks every other weight is tried: a list takes a second."""

SECONDS_PER_MODE = 1.5e-6
"""What nobody can interrupt takes about so long: the arrays of the search and its first list."""

OVERTIME = 1.0
"""So many seconds beyond the limit are better than no plan."""

Search = CompiledSearch | GeneralSearch


@dataclass
class Budget:
    """How much of one level's time or steps is used.

    Attributes
    ----------
    seconds
        Time allowed, from ``began`` on; used if ``iterations`` is 0.
    """

    monitor: Monitor
    seconds: float
    iterations: int
    began: float
    done: int = 0

    @property
    def used(self) -> float:
        """Part that is used, from 0 to 1."""
        if self.iterations:
            return self.done / self.iterations
        return (self.monitor.elapsed - self.began) / max(self.seconds, 1e-9)

    @property
    def spent(self) -> bool:
        """No more of this level."""
        return self.used >= 1 or self.monitor.should_stop()


def search_plans(request: Request) -> Outcome:
    """Improve the start, or the plan of a rule; offers each better plan to the monitor."""
    monitor, scope = request.monitor, request.scope
    if request.start is not None and monitor.best is None:
        monitor.offer(request.start, "start")
    if not scope.free.any():
        if monitor.best is None:
            monitor.offer(scope.start_plan(), "lns")
        return Outcome(Termination.COMPLETED)
    info: dict[str, Any] = {}
    levels = len(scope.problem.levels)
    iterations = int(request.options.get("iterations", 0))
    if not iterations and scope.problem.num_modes * SECONDS_PER_MODE > monitor.remaining + OVERTIME:
        return Outcome(
            Termination.TIME_LIMIT, message="the time does not suffice for the first list", info=info
        )
    for level in range(levels):
        if monitor.should_stop():
            break
        if monitor.gap(level) == 0:
            continue
        share = monitor.remaining / (levels - level)
        budget = Budget(monitor, share, -(-iterations // levels), monitor.elapsed)
        info |= {f"level{level}": improve(request, level, budget)}
        if monitor.best is None:
            return _without_plan(monitor, info)
    return Outcome(_ending(monitor), info=info)


def begin_plans(request: Request) -> Outcome:
    """Only what needs no kernels: the start that is given, else the plan of a rule."""
    monitor = request.monitor
    if request.start is not None and monitor.best is None:
        monitor.offer(request.start, "start")
    if monitor.best is None:
        _rule_start(request)
    message = "the time was up before the search was compiled; that takes half a minute, once"
    return Outcome(_ending(monitor), message=message)


def _ending(monitor: Monitor) -> Termination:
    if monitor.interrupted:
        return Termination.USER
    return Termination.TIME_LIMIT if monitor.remaining <= 0 else Termination.COMPLETED


def _without_plan(monitor: Monitor, info: dict[str, Any]) -> Outcome:
    return Outcome(_ending(monitor), message="no rule found a plan to begin from", info=info)


def improve(
    request: Request, level: int, budget: Budget, known: tuple[Layout, Prices] | None = None
) -> dict[str, Any]:
    """Search on one level, earlier levels no worse than achieved.

    Parameters
    ----------
    known
        Prices of this level, if there are any: they need not be worked out again.
    """
    scope, monitor = request.scope, request.monitor
    allowed = windows(scope)
    regular = is_regular(scope)
    if regular and monitor.best is None:
        list_start(request)
    if monitor.best is None or (level == 0 and not request.start and scope.free.sum() <= FEW):
        _rule_start(request)
    if monitor.best is None or budget.spent:
        return {}
    form, caps = scope.problem.levels[level], _caps(scope, monitor, level)
    if regular:
        priced = request.options.get("prices", True)
        known = known or (_prices(request, form, allowed, budget) if priced else None)
        search: Search = _compiled(request, form, caps, allowed, known)
    else:
        search = GeneralSearch(scope, form, caps, allowed, request.seed)
        search.begin(monitor.best)
    _cool(search, monitor, budget)
    return {"steps": budget.done, "engine": type(search).__name__, "neighbourhoods": search.counts}


def _caps(scope: Scope, monitor: Monitor, level: int) -> tuple[Cap, ...]:
    earlier = zip(scope.problem.levels[:level], monitor.values[:level], strict=True)
    return (*earlier, *((limit.form, limit.bound) for limit in scope.problem.limits))


# beginnings -------------------------------------------------------------------------------------------------
def _rule_start(request: Request) -> None:
    from optalloc.solvers.rules import best_start

    monitor = request.monitor
    plan = best_start(request.scope, seed=request.seed, should_stop=monitor.should_stop)
    if plan is not None:
        monitor.offer(plan, "rules")


def list_start(request: Request) -> bool:
    """Offer the best plan of the compiled list scheduler over a few orders; whether there was one."""
    scope, monitor = request.scope, request.monitor
    if not is_regular(scope):
        return False
    limits = tuple((limit.form, limit.bound) for limit in scope.problem.limits)
    search = CompiledSearch(scope, scope.problem.levels[0], limits, windows(scope))
    for priority in _priorities(scope):
        search.list_plan(priority, 0.0)
        if monitor.should_stop():
            break
    if search.best is None:
        return False
    monitor.offer(search.plan(), "lns")
    return True


def _priorities(scope: Scope) -> list[Floats]:
    """Short and important tasks first; by due date or deadline; by release."""
    problem, form = scope.problem, scope.problem.levels[0]
    shortest = np.full(problem.num_tasks, NEVER)
    active = np.flatnonzero(problem.active)
    np.minimum.at(shortest, problem.mode_task[active], problem.duration[active])
    weight = form.completion + form.tardiness + form.late + 1e-6
    orders = [shortest / weight, problem.release.astype(float)]
    due = np.minimum(problem.due, problem.deadline)
    return [*orders, due.astype(float)] if (due < NEVER).any() else orders


# guide ------------------------------------------------------------------------------------------------------
def _prices(request: Request, form: Form, allowed: Windows, budget: Budget) -> tuple[Layout, Prices] | None:
    """Prices of the level, worked out for a small part of the time; None if that does not suffice for any."""
    scope, monitor = request.scope, request.monitor
    until = _last_end(scope, monitor.best)
    if until <= 0:
        return None
    layout = build_layout(scope, form, allowed)
    many = bool(scope.free.sum() >= MANY)
    limit = monitor.elapsed + PRICE_SHARE[many] * budget.seconds

    def should_stop() -> bool:
        return monitor.should_stop() or (not budget.iterations and monitor.elapsed > limit)

    seconds = np.inf if budget.iterations else PRICE_SHARE[many] * budget.seconds
    settings = Settings(stages=(*STAGES[: 4 if many else 3], *REFINING), seconds=seconds)
    prices = ascend(
        layout, no_prices(layout, until), seed=request.seed, settings=settings, should_stop=should_stop
    )
    return (layout, prices) if np.isfinite(prices.value) else None


def _last_end(scope: Scope, plan: Plan | None) -> int:
    if plan is None:
        return 0
    placed = plan.mode >= 0
    ends = plan.start[placed] + scope.problem.duration[plan.mode[placed]]
    return int(1.05 * max(ends.tolist(), default=0))


def _compiled(
    request: Request, form: Form, caps: tuple[Cap, ...], allowed: Windows, known: tuple[Layout, Prices] | None
) -> CompiledSearch:
    scope, monitor = request.scope, request.monitor
    if known is not None and len(known[0].mode) == 0:
        known = None  # every task is rejected or fixed: there is nothing to price
    guide: Guide | None = price_guide(*known) if known else None
    search = CompiledSearch(scope, form, caps, allowed, guide, request.seed)
    if known is not None:
        layout, prices = known
        for priority in _priced_orders(layout, prices):
            for theta in THETAS if scope.free.sum() < VERY_MANY else THETAS[1::2]:
                if not monitor.should_stop():
                    search.list_plan(priority, theta)
    if monitor.best is not None:
        search.begin(monitor.best)
    if search.best is not None:
        search.restart()
    return search


def _priced_orders(layout: Layout, prices: Prices) -> list[Floats]:
    """By start in the relaxed plan; the same with important tasks earlier, with short ones earlier."""
    start = prices.start.astype(float)
    chosen = prices.row >= 0
    ticks = np.where(chosen, layout.ticks[prices.row], 0)
    weight = np.maximum(1, layout.slope + layout.tardiness)
    scale = float(np.median(weight))
    return [start, start + 0.3 * ticks * scale / weight, start - 2 * weight / scale]


# search -----------------------------------------------------------------------------------------------------
def _cool(search: Search, monitor: Monitor, budget: Budget) -> None:
    """Cycles of cooling; better plans are offered now and then, and at the end."""
    offered: int | None = None
    last_offer = monitor.elapsed
    first, total = 0.0, float(sum(CYCLES))
    start = budget.used
    for length in CYCLES:
        until = first + length / total
        if monitor.best is not None:
            search.begin(monitor.best)  # others may have found a better one
        search.restart()
        while not budget.spent:
            part = (budget.used - start) / max(1e-9, 1 - start)
            if part >= until:
                break
            steps = budget.done / max(part, 1e-9) * (until - first)  # of this cycle, at the pace so far
            budget.done += search.steps(_slack(search, steps, 1 - (part - first) / (until - first)))
            if search.best != offered and monitor.elapsed - last_offer > OFFER_SECONDS:
                monitor.offer(search.plan(), "lns")
                offered, last_offer = search.best, monitor.elapsed
        first = until
    if search.best != offered:
        monitor.offer(search.plan(), "lns")


def _slack(search: Search, steps: float, heat: float) -> float:
    """Loss accepted in the mean in a cycle of so many steps; ``heat`` goes from 1 to 0."""
    tasks = max(30, int(search.scope.free.sum()))
    long = min(1.0, steps / (LONG * tasks))
    return HEAT * abs(search.best or 0) / tasks * long * max(0.0, heat)
