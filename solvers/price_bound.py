"""`bound`: prices of capacity, a proven lower bound at every size, and a certificate that anyone can re-check."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

import numpy as np

from optalloc.certificate import combined
from optalloc.io.certificates import certificate_document
from optalloc.problem import Form, Plan, own_cost, rejection_cost
from optalloc.result import Termination
from optalloc.scope import Scope
from optalloc.solvers.base import Monitor, Outcome, Request
from optalloc.solvers.interrupts import whole
from optalloc.solvers.jit import prepare
from optalloc.solvers.prices.ascent import REFINING, Prices, Settings, ascend, evaluate_prices, no_prices
from optalloc.solvers.prices.layout import Layout, build_layout
from optalloc.solvers.prices.proof import Proof, prove
from optalloc.solvers.registry import solver

__all__ = ["PriceBound", "least_value", "price_bound", "price_horizon", "run_bound"]

_ROUNDS = 6
"""Rounds in which multipliers of limits are moved."""
_SECONDS_PER_ROW = 1e-6
"""Time for a proof, to be kept back for it, before one has been made; as much again for the arrays."""
_GRACE = 0.5
"""Seconds that a proof may take when the time is up, for it to be worth beginning."""
_BETWEEN_PROOFS = 1.0
"""Least seconds between two proofs while prices are still moving."""
_LEAST_GAIN = 1e-5
"""A pass that gains less (relative) has gained nothing."""
_IDLE = 4
"""Refining ends after so many passes in a row that have gained nothing."""
_FINE = 2**10
"""Units to an objective unit where limits or earlier levels are weighed."""
_HEAVIEST = 2**44
"""What a multiplier may make of one task, in those units: limits that ask for more cannot be kept, and 64 bits end."""


class PriceBound:
    """The best proof found for one level, and the prices behind it.

    Attributes
    ----------
    layout, prices
        Floats in units of the layout.
    proof
        None until there is one.
    settled
        The search ended of itself, not for want of time.
    """

    def __init__(self, layout: Layout, prices: Prices, proof: Proof | None = None):
        self.layout = layout
        self.prices = prices
        self.proof = proof
        self.settled = False

    @property
    def value(self) -> int | None:
        """The proven bound, if there is one."""
        return None if self.proof is None else self.proof.certificate.bound


@solver("bound", summary="prices of capacity: a proven lower bound at every size, no plan")
def run_bound(request: Request) -> Outcome:
    """Bound the first level."""
    scope, monitor = request.scope, request.monitor
    monitor.bound(0, least_value(scope), "bound")
    if not prepare(monitor.should_stop):
        message = "the time was up before the bound was compiled; that takes half a minute, once"
        return Outcome(_stopped(monitor), message=message)
    if _SECONDS_PER_ROW * int(scope.problem.active.sum()) > monitor.remaining:
        return Outcome(_stopped(monitor), message="the time does not suffice for the first prices")
    # Ctrl-C asks the monitor to stop, and cuts nothing short: the last proof is to be kept.
    found = whole(lambda: price_bound(scope, monitor, 0, seed=request.seed, plan=monitor.best, refine=True))
    ended = Termination.COMPLETED if found.settled else _stopped(monitor)
    info: dict[str, Any] = {}
    if found.proof is not None:
        info["certificate"] = certificate_document(found.proof.certificate)
    return Outcome(ended, info=info)


def least_value(scope: Scope) -> int:
    """A bound of the first level that needs no time: only state runs that ended before tick 0 cost less than 0."""
    fixed = scope.mode >= 0
    cost = own_cost(scope.problem, scope.problem.levels[0], scope.mode[fixed], scope.start[fixed])
    return int(np.minimum(0, cost).sum())


def _stopped(monitor: Monitor) -> Termination:
    return Termination.USER if monitor.interrupted else Termination.TIME_LIMIT


def price_bound(
    scope: Scope,
    monitor: Monitor,
    level: int,
    *,
    caps: tuple[int, ...] = (),
    seed: int = 0,
    plan: Plan | None = None,
    settings: Settings | None = None,
    begin: Prices | None = None,
    refine: bool = False,
) -> PriceBound:
    """The best price bound of one level that time allows; every improvement goes to the monitor.

    Parameters
    ----------
    caps
        Values that earlier levels may not exceed.
    plan
        A plan that tells how far into the future capacity can be scarce.
    begin
        Prices of this level to go on from, e.g. those of an earlier call. Default: none.
    refine
        Go on after the stages of ``settings``, as long as there is time and a pass gains something.
    """
    problem = scope.problem
    weights = _Weights(scope, level, caps)
    layout = weights.layout()
    if begin is None or len(begin.share) != len(layout.pair_task):
        begin = no_prices(layout, price_horizon(layout, plan))
    keeper = _Keeper(monitor, level, caps, weights, PriceBound(layout, begin))
    if not begin.price.any():
        keeper.keep(layout, evaluate_prices(layout, begin, should_stop=keeper.patience()))
    prices, rounds = begin, 1 + (_ROUNDS if weights.any and problem.num_tasks else 0)
    settings, idle = settings or Settings(), 0
    for round_ in count():
        known = keeper.best.value
        prices = ascend(
            layout,
            prices,
            seed=seed + round_,
            settings=replace(settings, seconds=keeper.seconds / max(1, rounds - round_)),
            should_stop=keeper.should_stop,
            on_better=partial(keeper.consider, layout),
        )
        keeper.keep(layout, prices)
        idle = 0 if round_ < rounds or keeper.gained(known) else idle + 1
        if keeper.should_stop():
            break
        if round_ + 1 >= rounds and (not refine or idle >= _IDLE):
            keeper.best.settled = True
            break
        if weights.any:
            weights.move(layout, prices, monitor.values[level] if monitor.values else None)
            layout = weights.layout()
            if len(layout.pair_task) != len(prices.share):
                prices = no_prices(layout, int(prices.edges[-1]))
        if round_ + 1 >= rounds:
            settings = replace(settings, stages=REFINING)
    return keeper.best


class _Keeper:
    """Proves the best prices so far, now and then, and keeps back the time to do so at the end."""

    def __init__(
        self, monitor: Monitor, level: int, caps: tuple[int, ...], weights: "_Weights", best: PriceBound
    ):
        self.monitor, self.level, self.caps, self.weights, self.best = monitor, level, caps, weights, best
        self._tried: tuple[Layout | None, float] = (None, -np.inf)
        self._reserve = _SECONDS_PER_ROW * len(best.layout.mode)
        self._again = 0.0

    @property
    def seconds(self) -> float:
        """For the search of prices."""
        return self.monitor.remaining - self._reserve

    def should_stop(self) -> bool:
        """No more time but for the last proof."""
        return self.monitor.should_stop() or self.seconds < 0

    def gained(self, known: int | None) -> bool:
        """The bound has moved so far from ``known`` that it is worth going on."""
        return known is None or (self.best.value or 0) - known > _LEAST_GAIN * abs(known)

    def patience(self) -> Callable[[], bool]:
        """No more time for what begins now, and may take a moment in any case."""
        until = self.monitor.elapsed + _GRACE
        return lambda: self.monitor.should_stop() and self.monitor.elapsed > until

    def consider(self, layout: Layout, prices: Prices) -> None:
        """Prove ``prices`` if the last proof is some time ago."""
        if self.monitor.elapsed >= self._again:
            self.keep(layout, prices)

    def keep(self, layout: Layout, prices: Prices) -> None:
        """Prove ``prices`` if they promise more than the last ones under the same weights, and there is time for it.

        Nothing is said by comparing them with the bound itself: they do not know of what is fixed.
        """
        weights, (last, worth) = self.weights, self._tried
        if not np.isfinite(prices.value) or (layout is last and prices.value <= worth):
            return
        monitor, began = self.monitor, self.monitor.elapsed
        proof = prove(
            layout,
            prices,
            self.level,
            caps=self.caps,
            earlier=weights.earlier,
            limits=weights.limits,
            should_stop=self.patience(),
        )
        seconds = monitor.elapsed - began
        self._reserve = max(self._reserve, 1.3 * seconds)
        self._again = monitor.elapsed + max(_BETWEEN_PROOFS, 5 * seconds)
        self._tried = layout, prices.value
        value = self.best.value
        if proof is not None and (value is None or proof.certificate.bound > value):
            self.best.layout, self.best.prices, self.best.proof = layout, prices, proof
            monitor.bound(self.level, proof.certificate.bound, "bound", self.caps)


def price_horizon(layout: Layout, plan: Plan | None) -> int:
    """The tick after which capacity is taken to be free: some way beyond the end of a plan, if there is one."""
    problem = layout.problem
    if plan is not None:
        placed = plan.mode >= 0
        ends = plan.start[placed] + problem.duration[plan.mode[placed]]
        return min(layout.horizon, int(1.1 * ends.max(initial=1)) + 1)
    owner = np.repeat(np.arange(problem.num_modes), np.diff(problem.use_ptr))
    work = np.zeros(problem.num_modes)
    np.add.at(work, owner, problem.use_amount * (problem.use_resource < problem.num_nodes))
    area = work[layout.mode] * layout.ticks
    some = layout.row_ptr[:-1][np.diff(layout.row_ptr) > 0]  # what is fixed has no rows
    least = np.minimum.reduceat(area, some) if len(some) else area
    capacity = sum(int(problem.capacity(n)[1].max()) for n in range(problem.num_nodes))
    longest = int(layout.ticks.max(initial=1))
    begin = max(int(problem.release.max(initial=0)), layout.scope.not_before)
    return max(1, min(layout.horizon, begin + longest + int(2 * least.sum() / max(1, capacity))))


class _Weights:
    """Multipliers of limits and of earlier levels, in 1/unit of an objective unit, moved by Polyak steps."""

    def __init__(self, scope: Scope, level: int, caps: tuple[int, ...]):
        self.scope, self.level, self.caps = scope, level, caps
        self.earlier: tuple[int, ...] = (0,) * len(caps)
        self.limits: dict[str, int] = {limit.term: 0 for limit in scope.problem.limits}
        self.unit = _FINE if self.any else 1

    @property
    def any(self) -> bool:
        """There is something to weigh."""
        return bool(self.caps or self.limits)

    def form(self) -> Form:
        """The relaxed objective."""
        return combined(self.scope.problem, self.level, self.unit, self.earlier, self.limits)

    def layout(self) -> Layout:
        """Rows under the relaxed objective."""
        return build_layout(self.scope, self.form(), unit=self.unit)

    def move(self, layout: Layout, prices: Prices, upper: int | None) -> None:
        """Raise the multipliers of what the relaxed plan breaks, lower those of what it keeps."""
        problem = self.scope.problem
        rows = [(problem.levels[i], cap) for i, cap in enumerate(self.caps)]
        rows += [(limit.form, limit.bound) for limit in problem.limits]
        excess = np.array([_value(layout, prices, form) - bound for form, bound in rows], dtype=float)
        norm = float((excess**2).sum())
        target = float(upper * self.unit) if upper is not None else 1.05 * abs(prices.value) + 1
        step = max(0.0, target - prices.value) / norm if norm > 0 else 0.0
        most = [_HEAVIEST // _largest(layout, form) for form, _ in rows]
        moved = np.floor(np.clip(np.array([*self.earlier, *self.limits.values()]) + step * excess, 0, most))
        whole = [int(value) for value in moved]
        self.earlier = tuple(whole[: len(self.caps)])
        self.limits = dict(zip(self.limits, whole[len(self.caps) :], strict=True))


def _largest(layout: Layout, form: Form) -> int:
    """No task adds more to ``form``, whatever its mode and start; at least 1."""
    problem = layout.problem
    own = own_cost(problem, form, layout.mode, layout.last)
    charges = max(int(array.max(initial=0)) for array in (problem.route_cost, problem.purchase_cost))
    makespan = form.makespan * int((layout.last + layout.ticks).max(initial=0))
    alone = max(1, int(own.max(initial=0)), int(rejection_cost(form).max(initial=0)))
    return alone + form.cost * charges + makespan


def _value(layout: Layout, prices: Prices, form: Form) -> int:
    """What the relaxed plan is worth in ``form``, without shared charges."""
    problem = layout.problem
    chosen = np.flatnonzero(prices.row >= 0)
    modes = layout.mode[prices.row[chosen]]
    value = int(own_cost(problem, form, modes, prices.start[chosen]).sum())
    rejected = layout.scope.free & (prices.row < 0)
    value += int(rejection_cost(form)[rejected].sum())
    ends = prices.start[chosen] + problem.duration[modes]
    return value + form.makespan * int(ends.max(initial=0))
