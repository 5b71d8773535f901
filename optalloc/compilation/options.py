"""Where a task may run: nodes and device counts with a rate, filtered by memory, sites and extra demands."""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np

from optalloc.compilation.exact import Column, integers
from optalloc.compilation.rates import Rates
from optalloc.compilation.resources import Resources
from optalloc.compilation.units import Units
from optalloc.instance import Instance, Task
from optalloc.problem import Bools, Ints

__all__ = ["Classes", "OptionTable", "Options"]


@dataclass(frozen=True, eq=False)
class Classes:
    """Device types with a count: options of one class take equally long.

    Attributes
    ----------
    kind
        (C,) index of the device type.
    numerator, denominator
        (C,) ticks per sample.
    """

    kind: Ints
    numerator: Column
    denominator: Column


@dataclass(frozen=True, eq=False)
class Options:
    """(node, device count) pairs, by node, then count.

    Attributes
    ----------
    node, count
        (O,).
    of_class
        (O,) index into ``classes``.
    sites
        Different sites of the nodes.
    site_position
        (O,) index into ``sites``.
    """

    node: Ints
    count: Ints
    of_class: Ints
    classes: Classes
    sites: tuple[int, ...]
    site_position: Ints

    def __len__(self) -> int:
        return len(self.node)


class OptionTable:
    """Options of tasks, shared between tasks that agree in what matters.

    Parameters
    ----------
    instance
        Gives nodes and device types.
    rates
        Gives rates.
    resources
        Gives extra capacities.
    units
        Gives the length of a tick.
    """

    def __init__(self, instance: Instance, rates: Rates, resources: Resources, units: Units):
        sites = {site.id: index for index, site in enumerate(instance.sites)}
        self.kinds = {kind.id: index for index, kind in enumerate(instance.device_types)}
        self.nodes = instance.nodes
        self.node_site = np.array([sites[node.site] for node in instance.nodes], dtype=np.int64)
        self.node_kind = [self.kinds[node.device_type] for node in instance.nodes]
        self._site_index = sites
        self._memory = [kind.memory_gb for kind in instance.device_types]
        self._rates = rates
        self._tick = units.tick
        self._resources = resources
        self._large: dict[Decimal, Bools] = {}
        self._base: dict[tuple[object, ...], Options] = {}
        self._known: dict[tuple[object, ...], Options] = {}

    def options(self, task: Task) -> Options:
        """Everywhere that a task described by physics may run, data apart."""
        key = (task.model, task.device_counts, task.memory_gb_per_device, task.sites, task.extra)
        if key not in self._known:
            base = self.base(task)
            allowed = self.allowed_nodes(task) & self.has_memory(task)
            self._known[key] = self._kept(base, allowed[base.node])
        return self._known[key]

    def base(self, task: Task) -> Options:
        """Nodes and counts with a rate, whatever the memory, sites and extra demands."""
        key = (task.model, task.device_counts)
        if key not in self._base:
            self._base[key] = self._build(task)
        return self._base[key]

    def has_memory(self, task: Task) -> Bools:
        """(nodes,) whether a device is large enough."""
        needed = task.memory_gb_per_device
        if needed not in self._large:
            enough = [memory is None or needed <= memory for memory in self._memory]
            self._large[needed] = np.array([enough[kind] for kind in self.node_kind], dtype=bool)
        return self._large[needed]

    def allowed_nodes(self, task: Task) -> Bools:
        """(nodes,) whether the site is allowed and the extra demands fit an idle node."""
        return self.at_allowed_site(task) & self.has_extra(task)

    def at_allowed_site(self, task: Task) -> Bools:
        """(nodes,) whether the task may run at the node's site."""
        allowed = np.full(len(self._site_index), task.sites is None)
        if task.sites is not None:
            allowed[[self._site_index[site] for site in task.sites]] = True
        return allowed[self.node_site]

    def has_extra(self, task: Task) -> Bools:
        """(nodes,) whether the node lists every key that the task demands, and enough of it."""
        fits = np.ones(len(self.nodes), dtype=bool)
        for key, amount in self.demands(task):
            fits &= self._resources.extras[key].capacity >= amount
        return fits

    def demands(self, task: Task) -> list[tuple[str, int]]:
        """(key, amount) of the extra demands above 0, in the common unit of the key."""
        extras = self._resources.extras
        return [(key, extras[key].whole(value)) for key, value in task.extra.items() if value > 0]

    def _build(self, task: Task) -> Options:
        classes: dict[tuple[int, int], int] = {}
        per_sample: list[Fraction] = []
        rows: list[tuple[int, int, int]] = []
        for index, node in enumerate(self.nodes):
            kind = self.node_kind[index]
            for count in self.counts(task, node.device_type, node.devices):
                if (kind, count) not in classes:
                    classes[kind, count] = len(per_sample)
                    per_sample.append(self._ticks_per_sample(task, node.device_type, count))
                rows.append((index, count, classes[kind, count]))
        columns = np.array(rows, dtype=np.int64).reshape(-1, 3)
        kinds = np.array([kind for kind, _ in classes], dtype=np.int64)
        numerators = integers([ticks.numerator for ticks in per_sample])
        denominators = integers([ticks.denominator for ticks in per_sample])
        listed = Classes(kinds, numerators, denominators)
        return self._located(columns[:, 0], columns[:, 1], columns[:, 2], listed)

    def counts(self, task: Task, device_type: str, devices: int) -> list[int]:
        """Device counts that the task allows, the node has and a rate is known for, increasing."""
        model = str(task.model)
        if task.device_counts is None:
            return self._rates.counts(model, device_type, devices)
        allowed = sorted({count for count in task.device_counts if count <= devices})
        return [count for count in allowed if self._rates.rate(model, device_type, count)]

    def _ticks_per_sample(self, task: Task, device_type: str, count: int) -> Fraction:
        rate = self._rates.rate(str(task.model), device_type, count)
        return 1 / (rate * self._tick) if rate else Fraction(0)

    def _kept(self, base: Options, mask: Bools) -> Options:
        if mask.all():
            return base
        return self._located(base.node[mask], base.count[mask], base.of_class[mask], base.classes)

    def _located(self, node: Ints, count: Ints, of_class: Ints, classes: Classes) -> Options:
        site = self.node_site[node]
        present = np.zeros(len(self._site_index), dtype=bool)
        present[site] = True
        position = np.cumsum(present) - 1
        return Options(
            node, count, of_class, classes, tuple(np.flatnonzero(present).tolist()), position[site]
        )
