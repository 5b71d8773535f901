"""What prices tell the search: which modes are worth trying, and what capacity is worth when."""

from typing import Any

import numpy as np

from optalloc.solvers.jit import kernel
from optalloc.solvers.lns.arrays import Guide
from optalloc.solvers.prices.ascent import Prices, kernel_arrays, multipliers, no_memory
from optalloc.solvers.prices.kernels import accumulate, least
from optalloc.solvers.prices.layout import Floats, Layout, bucket_of_ticks

__all__ = ["price_guide", "reduced_costs"]

NEAR = 0.3
"""Reduced costs are worked out up to this part beyond the least of the task; rows that cost more follow unpriced."""


@kernel
def _row_costs(
    rows: Any, tasks: Any, uses: Any, shares: Any, prices: Any, share: Any, end_price: Any, rate: Any, memory: Any,
    cost: Any,
) -> None:  # fmt: skip
    """Fill ``cost`` with the least priced cost of each row, or leave it where that is no less than rejection."""
    row_ptr = rows[0]
    one = row_ptr.copy()
    alone = (one, rows[1], rows[2], rows[3], rows[4], rows[5], rows[6])
    accumulate(prices[0], prices[2], prices[1])
    for j in range(len(row_ptr) - 1):
        for i in range(row_ptr[j], row_ptr[j + 1]):
            one[j], one[j + 1] = i, i + 1
            value, row, _ = least(j, alone, tasks, uses, shares, prices, share, end_price, rate, memory)
            if row >= 0:
                cost[i] = value


def reduced_costs(layout: Layout, prices: Prices) -> Floats:
    """(N,) least priced cost of each row; infinite where it is not near the least of its task."""
    rows, tasks, uses, shares = kernel_arrays(layout, float)
    tasks = (*tasks[:-1], prices.cost + NEAR * np.abs(prices.cost))
    end_price, rate = multipliers(layout, prices.simplex)
    before = np.zeros((layout.problem.num_resources, len(prices.edges)))
    cost = np.full(len(layout.mode), np.inf)
    arrays = (rows, tasks, uses, shares, (prices.price, before, prices.edges, bucket_of_ticks(prices.edges)))
    _row_costs(*arrays, prices.share, end_price, rate, no_memory(float), cost)
    return cost


def price_guide(layout: Layout, prices: Prices) -> Guide:
    """Modes by reduced cost, and the prices in units of the objective. ``layout`` is of the scope that is searched."""
    cost = reduced_costs(layout, prices)
    best = np.full(layout.problem.num_modes, np.inf)
    finite = np.isfinite(cost)
    # Rows that were not priced come after all others, cheapest first.
    shift = cost[finite].max(initial=0.0) + 1.0 - min(0.0, float(layout.low.min(initial=0)))
    np.minimum.at(best, layout.mode, np.where(finite, cost, shift + layout.low))
    modes = np.unique(layout.mode)
    chosen = np.full(len(prices.row), -1)
    placed = prices.row >= 0
    chosen[placed] = layout.mode[prices.row[placed]]
    want = np.column_stack([chosen, prices.start])
    return Guide(modes, best[modes], prices.edges, prices.price / layout.unit, want)
