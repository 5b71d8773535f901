"""The renewable resources: devices and extra capacities of nodes, channels of links, seats of datasets."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np

from optalloc.compilation.calendars import Steps, calendar_steps
from optalloc.compilation.units import FEWER_DECIMALS, bounded, common_multiplier
from optalloc.instance import Instance
from optalloc.problem import CHANNEL, DEVICES, EXTRA, SEATS, Ints

__all__ = ["Extras", "Resources", "build_resources", "channel_resources"]


@dataclass(frozen=True, eq=False)
class Extras:
    """One key of ``extra`` that some task demands.

    Attributes
    ----------
    multiplier
        Makes every capacity and demand of the key whole.
    capacity
        (nodes,) in units of 1/multiplier, -1 where the node does not have it.
    resource
        (nodes,) resource index, -1 where the node does not have it.
    """

    multiplier: int
    capacity: Ints
    resource: Ints

    def whole(self, amount: Decimal) -> int:
        """An amount in the common unit."""
        numerator, denominator = amount.as_integer_ratio()
        return numerator * (self.multiplier // denominator)


@dataclass(frozen=True)
class Resources:
    """The resource table, in the order devices, extras, channels, seats.

    Attributes
    ----------
    kind, owner, label
        As in the Problem.
    steps
        Capacity profiles.
    extras
        By key.
    seat
        Dataset index -> resource.
    """

    kind: list[int]
    owner: list[int]
    label: list[str]
    steps: list[Steps]
    extras: dict[str, Extras]
    seat: dict[int, int]

    def __len__(self) -> int:
        return len(self.kind)


def demanded_keys(instance: Instance) -> list[str]:
    """Keys of ``extra`` with a demand above 0, in the order of the tasks."""
    return list(
        dict.fromkeys(key for task in instance.tasks for key, value in task.extra.items() if value > 0)
    )


def _extra_pairs(instance: Instance) -> Iterator[tuple[int, str]]:
    """(node, key) of each extra resource, in order."""
    keys = demanded_keys(instance)
    return ((index, key) for index, node in enumerate(instance.nodes) for key in keys if key in node.extra)


def channel_resources(instance: Instance) -> dict[str, int]:
    """Link id -> resource, for links with limited channels."""
    first = len(instance.nodes) + sum(1 for _ in _extra_pairs(instance))
    limited = [link.id for link in instance.all_links if link.channels is not None]
    return {link: first + position for position, link in enumerate(limited)}


def build_resources(instance: Instance) -> Resources:
    """The resource table of an instance; it does not depend on the modes."""
    tick = Fraction(instance.tick_seconds)
    table = Resources([], [], [], [], {}, {})
    for index, node in enumerate(instance.nodes):
        _add(
            table,
            DEVICES,
            index,
            f"devices of {node.id}",
            calendar_steps(node.availability, node.devices, tick),
        )
    _add_extras(table, instance)
    for index, link in enumerate(instance.all_links):
        if link.channels is not None:
            _add(table, CHANNEL, index, f"channels of {link.id}", [(0, link.channels)])
    for index, dataset in enumerate(instance.datasets):
        if dataset.max_readers is not None:
            table.seat[index] = len(table)
            _add(table, SEATS, index, f"seats of {dataset.id}", [(0, dataset.max_readers)])
    return table


def _add(table: Resources, kind: int, owner: int, label: str, steps: Steps) -> None:
    table.kind.append(kind)
    table.owner.append(owner)
    table.label.append(label)
    table.steps.append(steps)


def _add_extras(table: Resources, instance: Instance) -> None:
    for key in demanded_keys(instance):
        values = [Fraction(node.extra[key]) for node in instance.nodes if key in node.extra]
        values += [Fraction(task.extra[key]) for task in instance.tasks if key in task.extra]
        multiplier = common_multiplier(values)
        bounded(
            int(max(values, default=Fraction(0)) * multiplier),
            f"extra.{key}",
            "the largest amount in the common unit",
            FEWER_DECIMALS,
        )
        absent = np.full(len(instance.nodes), -1, dtype=np.int64)
        table.extras[key] = Extras(multiplier, absent, absent.copy())
    for index, key in _extra_pairs(instance):
        extra, node = table.extras[key], instance.nodes[index]
        extra.capacity[index] = amount = extra.whole(node.extra[key])
        extra.resource[index] = len(table)
        _add(table, EXTRA, index, f"{key} of {node.id}", [(0, amount)])
