"""Where a task may run: nodes and device counts with a rate, filtered by memory, sites and extra demands."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from optalloc.compilation.rates import Rates
from optalloc.compilation.resources import Resources
from optalloc.compilation.units import Units
from optalloc.instance import Instance, Task
from optalloc.problem import Bools, Ints

__all__ = ["Class", "OptionTable", "Options"]


@dataclass(frozen=True)
class Class:
    """A device type with a count: options of one class take equally long.

    Attributes
    ----------
    kind
        Index of the device type.
    numerator, denominator
        Ticks per sample.
    """

    kind: int
    count: int
    numerator: int
    denominator: int


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
    classes: Sequence[Class]
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
        enough = [memory is None or needed <= memory for memory in self._memory]
        return np.array([enough[kind] for kind in self.node_kind], dtype=bool)

    def allowed_nodes(self, task: Task) -> Bools:
        """(nodes,) whether the site is allowed and the extra demands fit an idle node."""
        return self.at_allowed_site(task) & self.has_extra(task)

    def at_allowed_site(self, task: Task) -> Bools:
        """(nodes,) whether the task may run at the node's site."""
        if task.sites is None:
            return np.ones(len(self.nodes), dtype=bool)
        return np.isin(self.node_site, [self._site_index[site] for site in task.sites])

    def has_extra(self, task: Task) -> Bools:
        """(nodes,) whether the node lists every key that the task demands, and enough of it."""
        fits = np.ones(len(self.nodes), dtype=bool)
        for key, amount in self.demands(task):
            fits &= self._resources.extras[key].capacity >= amount
        return fits

    def demands(self, task: Task) -> list[tuple[str, int]]:
        """(key, amount) of the extra demands above 0, in the common unit of the key."""
        extras = self._resources.extras
        return [
            (key, int(Fraction(value) * extras[key].multiplier))
            for key, value in task.extra.items()
            if value > 0
        ]

    def _build(self, task: Task) -> Options:
        classes: dict[tuple[int, int], int] = {}
        listed: list[Class] = []
        rows: list[tuple[int, int, int]] = []
        for index, node in enumerate(self.nodes):
            kind = self.node_kind[index]
            for count in self.counts(task, node.device_type, node.devices):
                if (kind, count) not in classes:
                    classes[kind, count] = len(listed)
                    listed.append(self._class(task, kind, node.device_type, count))
                rows.append((index, count, classes[kind, count]))
        columns = np.array(rows, dtype=np.int64).reshape(-1, 3)
        return self._located(columns[:, 0], columns[:, 1], columns[:, 2], listed)

    def counts(self, task: Task, device_type: str, devices: int) -> list[int]:
        """Device counts that the task allows, the node has and a rate is known for, increasing."""
        model = str(task.model)
        if task.device_counts is None:
            return self._rates.counts(model, device_type, devices)
        allowed = sorted({count for count in task.device_counts if count <= devices})
        return [count for count in allowed if self._rates.rate(model, device_type, count)]

    def _class(self, task: Task, kind: int, device_type: str, count: int) -> Class:
        rate = self._rates.rate(str(task.model), device_type, count)
        per_sample = 1 / (rate * self._tick) if rate else Fraction(0)
        return Class(kind, count, per_sample.numerator, per_sample.denominator)

    def _kept(self, base: Options, mask: Bools) -> Options:
        if mask.all():
            return base
        return self._located(base.node[mask], base.count[mask], base.of_class[mask], base.classes)

    def _located(self, node: Ints, count: Ints, of_class: Ints, classes: Sequence[Class]) -> Options:
        sites, position = np.unique(self.node_site[node], return_inverse=True)
        return Options(node, count, of_class, classes, tuple(sites.tolist()), position.reshape(-1))
