"""The modes of each task as arrays: every (data choice, access, node, device count), before dominance."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np

from optalloc.compilation.candidates import Candidates
from optalloc.compilation.choices import ChoiceTable, gather
from optalloc.compilation.exact import Column, ceil_column, exact_for, half_up_column, integers, largest
from optalloc.compilation.options import Classes, Options, OptionTable
from optalloc.compilation.rates import Rates
from optalloc.compilation.units import (
    LARGER_MONEY,
    LONGER_TICKS,
    Units,
    bounded,
    common_multiplier,
    permille_up,
)
from optalloc.instance import Instance, Mode, Task
from optalloc.problem import NEVER, Ints, expand

__all__ = ["COLUMNS", "ModeMaker", "TaskModes", "device_money"]


COLUMNS: Final = ("node", "count", "choice", "duration", "money", "utility", "explicit")
"""The arrays of TaskModes."""


@dataclass(frozen=True, eq=False)
class TaskModes:
    """Modes of one task, a row each.

    Attributes
    ----------
    node, count
        Node and devices; of a mode on several nodes the first of ``several``.
    choice
        Row of the ChoiceTable.
    duration, money, utility
        As in the Problem; money of the mode itself, also for tasks of the state.
    explicit
        Index of the explicit mode, -1 for physics.
    several
        Row -> all its (node, devices), for explicit modes on more than one node.
    over_budget
        Modes that the task's budget excludes.
    """

    node: Ints
    count: Ints
    choice: Ints
    duration: Ints
    money: Ints
    utility: Ints
    explicit: Ints
    several: dict[int, tuple[tuple[int, int], ...]]
    over_budget: int = 0

    def __len__(self) -> int:
        return len(self.node)

    def within(self, budget: int | None) -> "TaskModes":
        """The modes whose own money is within the budget."""
        if budget is None or not len(self) or self.money.max() <= budget:
            return self
        kept = np.flatnonzero(self.money <= budget)
        columns: dict[str, Any] = {name: getattr(self, name)[kept] for name in COLUMNS}
        several = {row: self.several[old] for row, old in enumerate(kept.tolist()) if old in self.several}
        return TaskModes(**columns, several=several, over_budget=len(self) - len(kept))


def device_money(numerator: Column, denominator: Column, count: Ints, duration: Ints) -> Ints:
    """Device time in money units, half up: the price per device and tick is numerator / denominator."""
    price = largest(numerator) * largest(count) * largest(duration)
    bounds = [2 * price + largest(denominator), 2 * largest(denominator)]
    numerator, denominator, count, duration = exact_for(bounds, numerator, denominator, count, duration)
    money = half_up_column(numerator * count * duration, denominator)
    bounded(largest(money), "nodes", "the price of a run in money units", LARGER_MONEY)
    return money.astype(np.int64)


class ModeMaker:
    """Makes the modes of tasks.

    Parameters
    ----------
    instance
        Gives nodes and tasks.
    options
        Where tasks run.
    candidates
        What data they may use.
    choices
        How data are read; grows with the tasks.
    rates
        For `reference_hours`.
    units
        Rounds.
    """

    def __init__(
        self,
        instance: Instance,
        options: OptionTable,
        candidates: Candidates,
        choices: ChoiceTable,
        rates: Rates,
        units: Units,
    ):
        self.options = options
        self.candidates = candidates
        self.choices = choices
        self._rates = rates
        self._units = units
        self._node_index = {node.id: index for index, node in enumerate(instance.nodes)}
        self._devices = [node.devices for node in instance.nodes]
        prices = [Fraction(n.usd_per_device_hour) * units.tick / 3600 / units.money for n in instance.nodes]
        self._price = integers([price.numerator for price in prices])
        self._price_unit = integers([price.denominator for price in prices])

    def modes(self, index: int, task: Task) -> TaskModes:
        """Every mode of a task that memory, sites, utility and the task's budget allow."""
        made = self._physics(index, task) if task.modes is None else self._explicit(index, task, task.modes)
        budget = None if task.budget_usd is None else min(NEVER, self._units.money_down(task.budget_usd))
        return made.within(budget)

    def _physics(self, index: int, task: Task) -> TaskModes:
        options = self.options.options(task)
        chosen = self.candidates.choices(task)
        samples = self.samples(task)
        if samples is None or not len(options) or not chosen:
            return _no_modes()
        row, choice = self._spread([datasets for datasets, _ in chosen], options)
        pick, option = row // len(options), row % len(options)
        table = self._durations(index, task, samples, options.classes, [utility for _, utility in chosen])
        duration = np.maximum(
            table[pick, options.of_class[option]], gather(self.choices.stream_ticks, choice)
        )
        node, count = options.node[option], options.count[option]
        money = device_money(self._price[node], self._price_unit[node], count, duration)
        utility = np.array([value for _, value in chosen], dtype=np.int64)[pick]
        money += gather(self.choices.money, choice)
        return TaskModes(node, count, choice, duration, money, utility, np.full(len(row), -1), {})

    def _spread(self, chosen: Sequence[tuple[int, ...]], options: Options) -> tuple[Ints, Ints]:
        """(data choice * options + option, row of the ChoiceTable) of every mode."""
        spans = [self.choices.span(datasets, site) for datasets in chosen for site in options.sites]
        first, count = (
            np.array(spans, dtype=np.int64).reshape(len(chosen), len(options.sites), 2).transpose(2, 0, 1)
        )
        position = options.site_position
        return expand(first[:, position].reshape(-1), count[:, position].reshape(-1))

    def samples(self, task: Task) -> Fraction | None:
        """Work on perfect data; None where the reference has no rate."""
        if task.samples is not None:
            return Fraction(task.samples)
        if task.reference is None or task.reference_hours is None:
            return None
        rate = self._rates.rate(str(task.model), task.reference.device_type, task.reference.devices)
        return None if rate is None else Fraction(task.reference_hours) * 3600 * rate

    def _durations(
        self, index: int, task: Task, samples: Fraction, classes: Classes, utilities: Sequence[int]
    ) -> Ints:
        """(choices, classes) ticks of set-up and compute, rounded up, at least 1.

        set-up + samples * (1 + kappa * (1 - u/1000)) * ticks per sample, over a common denominator.
        """
        setup, setup_unit = self._setup(task, classes)
        kappa, kappa_unit = task.kappa.as_integer_ratio()
        work = integers([samples.numerator * (1000 * kappa_unit + kappa * (1000 - u)) for u in utilities])
        work_unit = samples.denominator * 1000 * kappa_unit
        unit = setup_unit * work_unit * largest(classes.denominator)
        bounds = [
            largest(setup) * unit + largest(work) * largest(classes.numerator) * setup_unit + unit,
            largest(classes.denominator) * setup_unit * work_unit,
        ]
        columns = (setup, work, classes.numerator, classes.denominator)
        setup, work, numerator, denominator = exact_for(bounds, *columns)
        waited = setup * work_unit * denominator
        computed = work[:, None] * (numerator * setup_unit)
        ticks = ceil_column(waited + computed, denominator * (setup_unit * work_unit))
        bounded(largest(ticks), f"tasks[{index}]", "the longest duration in ticks", LONGER_TICKS)
        return np.maximum(ticks, 1).astype(np.int64)

    def _setup(self, task: Task, classes: Classes) -> tuple[Column, int]:
        """Ticks of set-up of each class over a common denominator."""
        if not task.setup_s:
            return np.zeros(len(classes.kind), dtype=np.int64), 1
        ticks = [Fraction(task.setup_s.get(kind, 0)) / self._units.tick for kind in self.options.kinds]
        unit = common_multiplier(ticks)
        return integers([int(value * unit) for value in ticks])[classes.kind], unit

    def _explicit(self, index: int, task: Task, modes: Sequence[Mode]) -> TaskModes:
        least = permille_up(task.min_utility)
        allowed = self.options.allowed_nodes(task)
        rows: list[tuple[int, ...]] = []
        several: dict[int, tuple[tuple[int, int], ...]] = {}
        for position, mode in enumerate(modes):
            uses = self.placement(mode)
            if mode.utility < least or not all(allowed[n] and d <= self._devices[n] for n, d in uses):
                continue
            site = int(self.options.node_site[uses[0][0]])
            first, count = self.choices.span(self.candidates.explicit(mode.datasets), site)
            usd = bounded(
                self._units.money_half_up(mode.usd),
                f"tasks[{index}].modes[{position}].usd",
                "the price in money units",
                LARGER_MONEY,
            )
            for choice in range(first, first + count):
                if len(uses) > 1:
                    several[len(rows)] = uses
                rows.append((*uses[0], choice, mode.duration_ticks, usd, mode.utility, position))
        node, devices, choice_rows, ticks, money, utility, explicit = _columns(rows)
        duration = np.maximum(ticks, gather(self.choices.stream_ticks, choice_rows))
        money = money + gather(self.choices.money, choice_rows)
        return TaskModes(node, devices, choice_rows, duration, money, utility, explicit, several)

    def placement(self, mode: Mode) -> tuple[tuple[int, int], ...]:
        """(node, devices) of an explicit mode, by node."""
        devices: dict[int, int] = {}
        for use in mode.uses:
            node = self._node_index[use.node]
            devices[node] = devices.get(node, 0) + use.devices
        return tuple(sorted(devices.items()))


def _columns(rows: list[tuple[int, ...]]) -> list[Ints]:
    return list(np.array(rows, dtype=np.int64).reshape(-1, 7).T)


def _no_modes() -> TaskModes:
    columns: dict[str, Any] = dict(zip(COLUMNS, _columns([]), strict=True))
    return TaskModes(**columns, several={})
