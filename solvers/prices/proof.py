"""From float prices to an integer certificate: floats never decide."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from optalloc.certificate import Certificate, combined, fixed_part, form_divisor, level_texts
from optalloc.errors import UnsupportedError
from optalloc.problem import NEVER, Ints, Problem
from optalloc.scope import Scope, first_end
from optalloc.solvers.prices.ascent import Prices, cuts, kernel_arrays, multipliers, no_memory
from optalloc.solvers.prices.kernels import dual
from optalloc.solvers.prices.layout import Layout, bucket_of_ticks, capacity_areas, times

__all__ = ["Proof", "prove"]

_LARGEST_SCALE = 2**16
_SAFE = 1 - 2.0**-30
"""Floats that sum to 1 may sum to a little more in large integers: the makespan's weight must not be exceeded."""


@dataclass(frozen=True, eq=False)
class Proof:
    """Integer multipliers, the bound that they prove, and the layout in their units.

    Attributes
    ----------
    certificate
        Can be saved and re-checked.
    layout
        Rows in units of 1/scale of an objective unit.
    reduced
        (J,) least priced cost of each free task, in the same units: the base of reduced costs.
    total
        The bound times scale, before rounding up.
    """

    certificate: Certificate
    layout: Layout
    price: Ints
    share: Ints
    end_price: Ints
    rate: Ints
    reduced: Ints
    total: int


def prove(
    layout: Layout,
    prices: Prices,
    level: int,
    *,
    caps: tuple[int, ...] = (),
    earlier: tuple[int, ...] = (),
    limits: Mapping[str, int] | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Proof | None:
    """Round the multipliers down to integers and evaluate the bound exactly; None if there is no time to finish.

    Parameters
    ----------
    layout, prices
        From `ascend`.
    earlier, limits
        The multipliers that went into ``layout.form``, in the units of the layout.
    should_stop
        Asked between parts of the work.
    """
    scope = layout.scope
    finer = _scale(layout, prices)
    scale = finer * layout.unit
    whole_earlier = tuple(m * finer for m in earlier) or (0,) * len(caps)
    whole_limits = {term: m * finer for term, m in (limits or {}).items() if m > 0}
    exact = times(layout, finer, combined(scope.problem, level, scale, whole_earlier, whole_limits))
    price = np.floor(prices.price * finer).astype(np.int64)
    share = np.floor(prices.share * finer).astype(np.int64)
    _keep_within(exact, share)
    weights = multipliers(layout, _SAFE * prices.simplex)
    end_price, rate = (np.floor(m * finer).astype(np.int64) for m in weights)
    # What is least in floats is a good row to begin with.
    hint = prices.row if len(prices.row) else None
    reduced = _minima(exact, prices.edges, price, share, end_price, rate, hint, should_stop)
    if reduced is None:
        return None
    problem = scope.problem
    certificate = Certificate(
        instance=problem.instance.name,
        instance_sha256=problem.instance.sha256,
        objective=level_texts(problem),
        level=level,
        scale=scale,
        edges=tuple(prices.edges.tolist()),
        bound=0,
        caps=caps,
        prices={
            n: tuple(row.tolist()) for n, row in zip(problem.resource_label, price, strict=True) if row.any()
        },
        shares=_named_shares(problem, exact, share),
        ends={problem.task_ids[j]: int(v) for j, v in enumerate(end_price) if v},
        energy={problem.resource_label[r]: int(v) for r, v in enumerate(rate) if v},
        limits=whole_limits,
        earlier=whole_earlier,
    )
    total = _total(scope, exact, certificate, price, reduced)
    divisor = form_divisor(problem.levels[level])
    bound = -(-total // (scale * divisor)) * divisor
    return Proof(replace(certificate, bound=bound), exact, price, share, end_price, rate, reduced, total)


def _scale(layout: Layout, prices: Prices) -> int:
    """The largest power of two at which no number of the proof can reach the mark of a barred rejection.

    Raises
    ------
    UnsupportedError
        If there is none.
    """
    largest = _largest_cost(layout, prices)
    scale = _LARGEST_SCALE
    while scale > 1 and largest * scale >= layout.never:
        scale //= 2
    if largest * scale >= layout.never:
        raise UnsupportedError(
            f"priced costs of up to {largest} do not fit into 64 bits; use coarser ticks, money or weights"
        )
    return scale


def _largest_cost(layout: Layout, prices: Prices) -> int:
    """No task's cost under the prices is beyond this, whatever its mode and start."""
    form, problem = layout.form, layout.problem
    latest = int((layout.last + layout.ticks).max(initial=0))
    per_tick = sum(int(np.abs(array).max(initial=0)) for array in (layout.slope, layout.tardiness))
    uses = int(np.diff(problem.use_ptr).max(initial=0)) * int(problem.use_amount.max(initial=0))
    held = uses * int(np.ceil(prices.price.max(initial=0.0))) * int(prices.edges[-1])
    once = (layout.const, layout.late, layout.reject[layout.reject < layout.never])
    own = sum(int(np.abs(array).max(initial=0)) for array in once)
    energy = int(form.makespan) * (1 + uses) * max(1, latest)
    return own + per_tick * latest + held + energy + int(layout.charge.sum())


def _keep_within(layout: Layout, share: Ints) -> None:
    """Rounding the money factor down can leave a charge smaller than its shares: take the excess away."""
    for c in range(len(layout.charge)):
        pairs = layout.charge_pair[layout.charge_ptr[c] : layout.charge_ptr[c + 1]]
        excess = int(share[pairs].sum()) - int(layout.charge[c])
        for pair in pairs.tolist():
            if excess <= 0:
                break
            taken = min(excess, int(share[pair]))
            share[pair] -= taken
            excess -= taken


def _minima(
    layout: Layout,
    edges: Ints,
    price: Ints,
    share: Ints,
    end_price: Ints,
    rate: Ints,
    hint: Ints | None,
    should_stop: Callable[[], bool],
) -> Ints | None:
    tasks = layout.problem.num_tasks
    before = np.zeros((len(price), len(edges)), dtype=np.int64)
    cost, row, start = (np.zeros(tasks, dtype=np.int64) for _ in range(3))
    rows, table, uses, shares = kernel_arrays(layout, np.int64)
    grid = (price, before, edges, bucket_of_ticks(edges))
    multipliers = (share, end_price, rate, no_memory(np.int64, hint))
    for part in pairwise(cuts(rows[0])):
        if should_stop():
            return None
        dual(rows, table, uses, shares, grid, *multipliers, layout.scope.free, cost, row, start, *part)
    return cost


def _total(scope: Scope, layout: Layout, certificate: Certificate, price: Ints, reduced: Ints) -> int:
    """The sum that `optalloc.certificate.check_bound` derives again in plain loops."""
    areas = capacity_areas(scope, np.array(certificate.edges, dtype=np.int64))
    held = sum(int(p) * int(a) for p, a in zip(price.ravel(), areas.ravel(), strict=True) if p)
    free = sum(int(v) for v in reduced[scope.free])
    least_makespan = first_end(scope, layout.mode, layout.first) if layout.form.makespan else 0
    return min(free, NEVER**3) - held + fixed_part(scope.problem, scope, certificate, least_makespan)


def _named_shares(problem: Problem, layout: Layout, share: Ints) -> dict[tuple[str, str, str], int]:
    named = {}
    for pair in np.flatnonzero(share).tolist():
        task, charge = problem.task_ids[int(layout.pair_task[pair])], int(layout.pair_charge[pair])
        if charge < problem.num_replicas:
            dataset = problem.dataset_ids[int(problem.replica_dataset[charge])]
            site = problem.site_ids[int(problem.replica_site[charge])]
        else:
            bought = int(problem.purchase_dataset[charge - problem.num_replicas])
            dataset, site = problem.dataset_ids[bought], ""
        named[task, dataset, site] = int(share[pair])
    return named
