"""Nodes of one site and device type priced as one: how coarse prices are found where there are many tasks.

Once the money for its devices is part of the price of a node, such nodes are worth the same to most tasks. A task then
has one row for what were as many as there are nodes, and prices no longer swing between nodes that can stand in for one
another. Nothing here needs to be exact: what is found is a beginning for prices of each node.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from optalloc.problem import Ints, read_only
from optalloc.solvers.prices.layout import Floats, Layout

if TYPE_CHECKING:
    from optalloc.solvers.prices.ascent import Prices

__all__ = ["Alike", "alike_nodes"]


@dataclass(frozen=True, eq=False)
class Alike:
    """Groups of nodes.

    Attributes
    ----------
    group
        (R,) group of each resource.
    money
        (R,) what a unit costs per tick, in units of the form.
    kept
        Rows of the layout that stand for all that differ in nothing but the node of their group; by task, then ``low``.
    const, low
        Of the kept rows, as in the layout, less the money that is now part of the price.
    """

    group: Ints
    money: Floats
    kept: Ints
    const: Floats
    low: Floats

    @property
    def groups(self) -> int:
        """How many there are."""
        return int(self.group.max(initial=-1)) + 1

    def together(self, prices: "Prices") -> "Prices":
        """Beginning of a search for prices of groups, with all but the prices of capacity as they are."""
        return replace(prices, price=np.zeros((self.groups, prices.price.shape[1])), value=-np.inf)

    def apart(self, prices: "Prices") -> "Prices":
        """Prices of each node from those of its group."""
        price = np.maximum(0.0, prices.price[self.group] - self.money[:, None])
        none = np.zeros(0)
        return replace(
            prices, price=price, value=-np.inf, cost=none, row=none.astype(int), start=none.astype(int)
        )

    def areas(self, areas: Floats) -> Floats:
        """(groups, buckets) unit-ticks of all nodes of a group."""
        summed = np.zeros((self.groups, areas.shape[1]))
        np.add.at(summed, self.group, areas)
        return summed

    def arrays(self, layout: Layout, plain: tuple[tuple[Any, ...], ...]) -> tuple[tuple[Any, ...], ...]:
        """(rows, tasks, uses, shares) for kernels, from those of the layout."""
        rows, tasks, (use_ptr, use_resource, use_amount), shares = plain
        task = layout.problem.mode_task[layout.mode[self.kept]]
        row_ptr = np.searchsorted(task, np.arange(layout.problem.num_tasks + 1))
        kept = (array[self.kept] for array in rows[1:5])
        # As it is in the layout: kernels are compiled once more for arrays that can be written to.
        group = read_only(self.group.astype(use_resource.dtype)[use_resource])
        return (row_ptr, *kept, self.const, self.low), tasks, (use_ptr, group, use_amount), shares


def alike_nodes(layout: Layout) -> Alike | None:
    """Groups of nodes; None where modes use more than the devices of one node, or the makespan counts."""
    problem, mode = layout.problem, layout.mode
    single = bool((np.diff(problem.use_ptr)[mode] == 1).all())
    if not len(mode) or not single or layout.form.makespan or problem.num_resources != problem.num_nodes:
        return None
    numbers: dict[tuple[str, str], int] = {}
    nodes = problem.instance.nodes
    group = np.array([numbers.setdefault((n.site, n.device_type), len(numbers)) for n in nodes])
    if len(numbers) == len(group):
        return None
    resource, amount = (array[problem.use_ptr[mode]] for array in (problem.use_resource, problem.use_amount))
    area = amount.astype(np.int64) * layout.ticks
    money = _money(layout, resource, area)
    task = problem.mode_task[mode]
    first = _first_of_each(
        task, group[resource], amount, layout.ticks, layout.first, layout.last, *_shares(layout)
    )
    less = money[resource[first]] * area[first]
    const = (layout.const[first] - less).astype(np.float64)
    low = (layout.low[first] - less).astype(np.float64)
    order = np.lexsort((low, task[first]))
    return Alike(group, money, first[order], const[order], low[order])


def _money(layout: Layout, resource: Ints, area: Ints) -> Floats:
    """(R,) least money of a unit and tick among the larger half of the rows; the rest is rounded too much."""
    spent = layout.form.cost * layout.problem.money[layout.mode] / np.maximum(1, area)
    money = np.full(layout.problem.num_resources, np.inf)
    large = area >= np.median(area)
    np.minimum.at(money, resource[large], spent[large])
    return np.where(np.isfinite(money), money, 0.0)


def _shares(layout: Layout) -> tuple[Ints, Ints]:
    """(number of shares, first of them, -1 if there is none) of each row."""
    count = np.diff(layout.share_ptr)[layout.mode]
    index = np.append(layout.share, -1)[np.where(count, layout.share_ptr[layout.mode], -1)]
    return count, index


def _first_of_each(*columns: Ints) -> Ints:
    """Index of the first row of each set of equal rows; two sets in 2^64 are taken for one."""
    key = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in columns:
        key = (key ^ column.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        key ^= key >> np.uint64(29)
    return np.asarray(np.unique(key, return_index=True)[1])
