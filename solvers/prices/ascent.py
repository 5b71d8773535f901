"""Search for good prices: batched incremental subgradients on ever finer buckets.

The bound at any prices is valid; here floats look for large ones, `optalloc.solvers.prices.proof` makes them a proof.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from time import perf_counter
from typing import Any

import numpy as np

from optalloc.problem import Ints
from optalloc.solvers.prices.alike import Alike, alike_nodes
from optalloc.solvers.prices.kernels import dual, sweep
from optalloc.solvers.prices.layout import Floats, Layout, bucket_of_ticks, capacity_areas

__all__ = [
    "REFINING",
    "STAGES",
    "Prices",
    "Settings",
    "Stage",
    "ascend",
    "cuts",
    "evaluate_prices",
    "no_prices",
    "split",
]


@dataclass(frozen=True)
class Stage:
    """Epochs on a number of buckets, with the step falling geometrically from ``large`` to ``small``."""

    buckets: int
    epochs: int
    large: float
    small: float


STAGES = (
    Stage(50, 15, 4.0, 0.3),
    Stage(100, 15, 1.5, 0.1),
    Stage(200, 30, 0.6, 0.01),
    Stage(400, 30, 0.6, 0.01),
    Stage(800, 30, 0.6, 0.01),
)
"""Coarse prices are found in a few epochs and then refined; stages without new edges are left out. Measured: steps of a
quarter of these need four times as many epochs for the same bound, with 1,000 tasks ten times."""

REFINING = (Stage(1600, 150, 0.6, 0.003),)
"""From the prices of `STAGES` on, if there is time: most of what is left to the optimum of the relaxation."""

FEW = 600
"""With more tasks the steps grow with their number to the power of 0.45: measured at 10,000."""

MANY = 6_000
"""From so many tasks on, first prices are those of groups of nodes, and steps are small from then on."""

COARSE = (
    Stage(50, 8, 1.0, 0.06),
    Stage(100, 10, 0.15, 0.03),
    Stage(200, 12, 0.05, 0.01),
    Stage(400, 20, 0.03, 0.003),
)
"""Where there are many tasks, before `STAGES`: an epoch costs a fifth and gains more than on single nodes."""

COARSE_PART = 0.2
"""Of the time that is left, for each stage of `COARSE`."""

CALM = 0.03
"""Largest step after `COARSE`: larger ones lose what has been found."""

ROWS_AT_ONCE = 100_000
"""Rows between two looks at the clock."""

MANY_IN_BATCH = 5
"""Tasks in a batch where there are many."""

MOST_TICKS = 5_000_000
"""Capacity after so many ticks is not priced, which leaves the bound valid: kernels look up the bucket of each tick."""

SLACK = 0.1
"""Rows are worked out exactly up to this part beyond the least cost, so that they need not be looked at next time."""


@dataclass(frozen=True)
class Settings:
    """Of the ascent.

    Attributes
    ----------
    batches
        Batches of tasks in one epoch, at most; at least four tasks to a batch. With many tasks there are more.
    seconds
        Time for all stages: where it is short, the steps fall faster, and each stage but the last takes half of what is
        left.
    share_step
        Step of the shares of a charge, as a part of the charge, at step 1.
    simplex_step
        Exponent of the multiplicative step of the makespan's multipliers.
    patience
        A stage ends after so many epochs without a gain of ``least_gain`` (relative).
    """

    batches: int = 50
    seconds: float = np.inf
    share_step: float = 0.05
    simplex_step: float = 0.3
    patience: int = 100
    least_gain: float = 1e-6
    stages: tuple[Stage, ...] = STAGES


@dataclass(frozen=True, eq=False)
class Prices:
    """Multipliers and what they are worth.

    Attributes
    ----------
    edges, price
        (B+1,) bucket edges; (R, B) price per unit and tick.
    share
        Share of each (task, charge) pair.
    simplex
        (R + J,) split of the makespan's weight among energy rows and ends; sums to at most 1.
    value
        The bound in floats.
    cost, row, start
        (J,) least cost of each task under the prices; where it is: row of the layout (-1: rejected or fixed), start.
    """

    edges: Ints
    price: Floats
    share: Floats
    simplex: Floats
    value: float = -np.inf
    cost: Floats = field(default_factory=lambda: np.zeros(0))
    row: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    start: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


def no_prices(layout: Layout, until: int) -> Prices:
    """Capacity is free, each charge is shared evenly, the makespan is priced by energy alone."""
    problem = layout.problem
    share = np.zeros(len(layout.pair_task))
    for c in range(len(layout.charge)):
        pairs = layout.charge_pair[layout.charge_ptr[c] : layout.charge_ptr[c + 1]]
        share[pairs] = layout.charge[c] / max(1, len(pairs))
    simplex = np.zeros(problem.num_resources + problem.num_tasks)
    simplex[: problem.num_resources] = 0.9 / max(1, problem.num_resources)
    simplex[problem.num_resources :] = 0.1 / max(1, problem.num_tasks)
    edges = np.array([0, min(MOST_TICKS, max(1, until))], dtype=np.int64)
    return Prices(edges, np.zeros((problem.num_resources, 1)), share, simplex)


def ascend(
    layout: Layout,
    prices: Prices,
    *,
    seed: int = 0,
    settings: Settings | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    on_better: Callable[[Prices], None] = lambda prices: None,
) -> Prices:
    """Improve ``prices``; stops early when ``should_stop`` says so, and then returns the best so far."""
    settings = settings or Settings()
    until = perf_counter() + settings.seconds
    ascent = _Ascent(layout, settings, until, np.random.default_rng(seed), should_stop, on_better)
    best = ascent.evaluated(prices)
    on_better(best)
    if layout.scope.free.sum() < MANY:
        return ascent.run(best, settings.stages)
    if not best.price.any():
        best = _coarse(ascent, best)
    finer = tuple(s for s in settings.stages if s.buckets >= len(best.edges)) or settings.stages[-1:]
    return ascent.run(best, tuple(replace(s, large=min(s.large, CALM)) for s in finer))


def _coarse(ascent: "_Ascent", best: Prices) -> Prices:
    """First prices where there are many tasks; of groups of nodes if there are such."""
    alike = None if ascent.should_stop() else alike_nodes(ascent.layout)
    if alike is None:
        return ascent.run(best, COARSE)
    groups = replace(ascent, alike=alike, on_better=lambda prices: None)
    found = groups.evaluated(alike.together(best))
    for stage in COARSE:
        found = groups.run(found, (stage,), last=COARSE_PART)
        apart = ascent.evaluated(alike.apart(found))
        if apart.value > best.value:
            best = apart
            ascent.on_better(best)
        if ascent.should_stop():
            break
    return best


@dataclass(eq=False)
class _Ascent:
    """The method with what it remembers; ``alike``: prices are those of groups of nodes."""

    layout: Layout
    settings: Settings
    until: float
    generator: np.random.Generator
    should_stop: Callable[[], bool]
    on_better: Callable[[Prices], None]
    alike: Alike | None = None

    def __post_init__(self) -> None:
        self.mean = _Memory(self.layout, self.alike)
        self.near = _Memory(self.layout, self.alike)

    def evaluated(self, prices: Prices) -> Prices:
        """``prices`` with their bound; -inf if there is no time for it."""
        return evaluate_prices(self.layout, prices, self.mean, self.work(prices.edges), self.should_stop)

    def work(self, edges: Ints) -> "_Work":
        """Arrays for prices on these buckets."""
        return _Work(self.layout, edges, self.alike)

    def run(self, best: Prices, stages: tuple[Stage, ...], last: float = 1.0) -> Prices:
        """One stage after the other, from prices with their bound; they come back as they are if there is no time.

        Each takes at most half of the time that is left, the last one at most the part ``last``.
        """
        for number, stage in enumerate(stages):
            finer = split(best, stage.buckets)
            if self.should_stop() or (number and len(finer.edges) == len(best.edges)):
                continue
            left = self.until - perf_counter()
            clock = _Clock(left * (last if number + 1 == len(stages) else 0.5))
            work = self.work(finer.edges)
            found = evaluate_prices(self.layout, finer, self.mean, work, self.should_stop)
            if np.isfinite(found.value):
                best = _run_stage(self, work, found, stage, clock)
        return best


def split(prices: Prices, buckets: int) -> Prices:
    """The prices on about ``buckets`` equal buckets; the same ones if the old edges are among the new."""
    last = int(prices.edges[-1])
    wanted = np.round(np.linspace(0, last, min(buckets, last) + 1)).astype(np.int64)
    old = np.searchsorted(prices.edges, wanted[:-1], side="right") - 1
    return replace(prices, edges=wanted, price=prices.price[:, old].copy(), value=-np.inf)


def evaluate_prices(
    layout: Layout,
    prices: Prices,
    memory: "_Memory | None" = None,
    work: "_Work | None" = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Prices:
    """``prices`` with their bound and minimisers filled in; as they are, worth -inf, if there is no time for it."""
    work = _Work(layout, prices.edges) if work is None else work
    end_price, rate = multipliers(layout, prices.simplex)
    cost, row, start = np.zeros(work.tasks), np.zeros(work.tasks, np.int64), np.zeros(work.tasks, np.int64)
    rows, tasks, uses, shares, grid = work.arrays(prices.price)
    free = layout.scope.free
    remembered = no_memory(float) if memory is None else memory.at(prices)
    multiplied = (prices.share, end_price, rate, remembered)
    for part in pairwise(work.cuts):
        if should_stop():
            return replace(prices, value=-np.inf)
        dual(rows, tasks, uses, shares, grid, *multiplied, free, cost, row, start, *part)
    value = float(cost.sum() - (prices.price * work.areas).sum())
    return replace(prices, value=value, cost=cost, row=row, start=start)


def multipliers(layout: Layout, simplex: Floats) -> tuple[Floats, Floats]:
    """(end price of each task, energy price of each resource) from the split of the makespan's weight."""
    problem = layout.problem
    weight, resources = layout.form.makespan, problem.num_resources
    peak = np.array([max(1, int(problem.capacity(r)[1].max())) for r in range(resources)], dtype=float)
    return weight * simplex[resources:], weight * simplex[:resources] / peak


class _Work:
    """Arrays that depend on the edges only."""

    def __init__(self, layout: Layout, edges: Ints, alike: Alike | None = None):
        self.layout, self.edges = layout, edges
        self.tasks = layout.problem.num_tasks
        self.bucket = bucket_of_ticks(edges)
        self.areas = capacity_areas(layout.scope, edges).astype(float)
        self.lengths = np.diff(edges).astype(float)
        self._fixed = kernel_arrays(layout, float)
        if alike is not None:
            self.areas = alike.areas(self.areas)
            self._fixed = alike.arrays(layout, self._fixed)
        self.before = np.zeros((len(self.areas), len(edges)))
        self.cuts = cuts(self._fixed[0][0])

    def arrays(self, price: Floats) -> tuple[tuple[Any, ...], ...]:
        """(rows, tasks, uses, shares, prices) as the kernels take them."""
        return (*self._fixed, (price, self.before, self.edges, self.bucket))


def cuts(row_ptr: Ints) -> Ints:
    """Tasks between which kernels come back, so that someone may ask whether to go on: 0, ..., J."""
    parts = np.arange(0, row_ptr[-1], ROWS_AT_ONCE)
    return np.unique([0, *np.searchsorted(row_ptr, parts), len(row_ptr) - 1])


def no_memory(number: Any, last: Ints | None = None) -> tuple[Any, ...]:
    """For kernels that are called once; ``last``: rows to look at first, -1 where none is known."""
    none = np.zeros(0, dtype=number)
    return none, np.zeros(0), np.zeros(0), np.zeros(0, dtype=np.int64) if last is None else last, none


class _Memory:
    """What kernels remember of rows while prices move: see `optalloc.solvers.prices.kernels.least`."""

    def __init__(self, layout: Layout, alike: Alike | None = None):
        self.drop = np.zeros(layout.problem.num_resources if alike is None else alike.groups)
        self.share_drop = np.zeros(len(layout.pair_task))
        self.slack = np.zeros(layout.problem.num_tasks)
        some = np.diff(layout.row_ptr) > 0
        self.slack[some] = SLACK * np.abs(layout.low[layout.row_ptr[:-1][some]])
        self._base = np.full(len(layout.mode) if alike is None else len(alike.kept), -np.inf)
        self._last = np.full(layout.problem.num_tasks, -1, dtype=np.int64)
        self.before: Prices | None = None

    @property
    def arrays(self) -> tuple[Any, ...]:
        """As the kernels take it."""
        return self._base, self.drop, self.share_drop, self._last, self.slack

    def forget(self) -> None:
        """Costs have changed otherwise than by prices and shares."""
        self._base[:] = -np.inf

    def at(self, prices: Prices) -> tuple[Any, ...]:
        """The arrays, with what prices have fallen since the last call."""
        old, self.before = self.before, prices
        if old is not None:
            self.drop += _fall(old, prices)
            self.share_drop += np.maximum(0.0, old.share - prices.share)
            if (old.simplex != prices.simplex).any():
                self.forget()
        return self.arrays


def _fall(old: Prices, new: Prices) -> Floats:
    """(R,) the most that a price falls at any tick; both end at the same tick."""
    times = np.union1d(old.edges[:-1], new.edges[:-1])
    before, after = (p.price[:, np.searchsorted(p.edges, times, side="right") - 1] for p in (old, new))
    return np.asarray(np.maximum(0.0, before - after).max(axis=1))


def kernel_arrays(layout: Layout, number: Any) -> tuple[tuple[Any, ...], ...]:
    """(rows, tasks, uses, shares) with costs as ``number``."""
    problem = layout.problem
    whole = (layout.row_ptr, layout.mode, layout.first, layout.last, layout.ticks)
    rows = (*whole, layout.const.astype(number), layout.low.astype(number))
    slopes = (array.astype(number) for array in (layout.slope, layout.tardiness, layout.late))
    tasks = (*slopes, layout.due, layout.reject.astype(number))
    uses = (problem.use_ptr, problem.use_resource, problem.use_amount.astype(number))
    return rows, tasks, uses, (layout.share_ptr, layout.share)


class _Clock:
    """How much of some seconds is used."""

    def __init__(self, seconds: float):
        self._began, self._seconds = perf_counter(), max(1e-3, seconds)

    @property
    def used(self) -> float:
        """Part that is used, 0 at the beginning."""
        return (perf_counter() - self._began) / self._seconds


def _run_stage(ascent: _Ascent, work: _Work, best: Prices, stage: Stage, clock: _Clock) -> Prices:
    layout, settings, near, mean = ascent.layout, ascent.settings, ascent.near, ascent.mean
    free = np.flatnonzero(layout.scope.free)
    if len(free) == 0 or work.areas.sum() <= 0:
        return best
    price, share, simplex = best.price.copy(), best.share.copy(), best.simplex.copy()
    mean_price, mean_share = price.copy(), share.copy()
    batches = max(1, min(max(settings.batches, len(free) // MANY_IN_BATCH), len(free) // 4))
    parts = list(pairwise(np.unique(np.linspace(0, batches, len(work.cuts)).astype(int)).tolist()))
    unit = _step_unit(layout, best, work) * max(1.0, len(free) / FEW) ** 0.45
    rows, tasks, uses, shares, grid = work.arrays(price)
    near.slack = mean.slack = SLACK * np.abs(best.cost)
    near.at(best)
    since = 0
    for epoch in range(stage.epochs):
        progress = max(epoch / max(1, stage.epochs - 1), clock.used)
        if progress > 1:
            break
        factor = stage.large * (stage.small / stage.large) ** progress
        end_price, rate = multipliers(layout, simplex)
        energy, ends = np.zeros(layout.problem.num_resources), np.zeros(work.tasks)
        order = ascent.generator.permutation(free)
        for part in parts:
            if ascent.should_stop():
                return best
            sweep(
                rows, tasks, uses, shares, grid, share, end_price, rate, near.arrays, order, batches, factor * unit,
                settings.share_step * factor, 1 / batches, mean_price, mean_share, work.areas, work.lengths,
                layout.pair_charge, layout.charge.astype(float), layout.charge_ptr, layout.charge_pair, energy, ends,
                *part,
            )  # fmt: skip
        simplex = _move_simplex(layout, simplex, energy, ends, settings.simplex_step * factor)
        if layout.form.makespan:
            near.forget()
        moved = replace(best, price=mean_price.copy(), share=mean_share.copy(), simplex=simplex)
        found = evaluate_prices(layout, moved, mean, work, ascent.should_stop)
        since = 0 if found.value > best.value + settings.least_gain * abs(best.value) else since + 1
        if found.value > best.value:
            best = found
            ascent.on_better(best)
        if ascent.should_stop() or since >= settings.patience:
            break
    near.before = replace(best, price=price, share=share)
    return best


def _step_unit(layout: Layout, prices: Prices, work: _Work) -> float:
    """0.3 * objective / (capacity area) / (mean capacity): the scale of a price that matters."""
    area = float(work.areas.sum())
    mean_capacity = area / (float(work.edges[-1]) * max(1, layout.problem.num_resources))
    cheapest = layout.low[layout.row_ptr[:-1][np.diff(layout.row_ptr) > 0]]
    scale = max(abs(prices.value), float(cheapest.sum()), 1.0)
    return 0.3 * scale / area / max(mean_capacity, 1e-9)


def _move_simplex(layout: Layout, simplex: Floats, energy: Floats, ends: Floats, step: float) -> Floats:
    """Exponentiated gradient: weight goes where the relaxed plan ends latest or needs most."""
    if not layout.form.makespan:
        return simplex
    problem = layout.problem
    peak = np.array([max(1, int(problem.capacity(r)[1].max())) for r in range(problem.num_resources)])
    gradient = np.concatenate([energy / peak, ends])
    moved = simplex * np.exp(step * gradient / max(1.0, float(gradient.max())))
    return np.asarray(moved / moved.sum())
