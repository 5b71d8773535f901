"""compile(): an instance in physical units becomes a Problem in integers."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from optalloc.compilation.candidates import Candidates
from optalloc.compilation.choices import ChoiceTable, gather
from optalloc.compilation.modes import ModeMaker
from optalloc.compilation.network import Network
from optalloc.compilation.notes import capped_pairs, dropped_options
from optalloc.compilation.objective import Weights, check_range, limits, scaled_levels
from optalloc.compilation.options import OptionTable
from optalloc.compilation.possibility import hopeless_tasks
from optalloc.compilation.rates import Rates
from optalloc.compilation.resources import Resources, build_resources, channel_resources
from optalloc.compilation.routes import RouteBook, remember_book
from optalloc.compilation.state import bought_datasets, rejectable_tasks, state_tasks, with_state
from optalloc.compilation.storage import storage_in_units
from optalloc.compilation.tables import Listing, ModeTable, dominance_mask, list_replicas, mode_uses, stack
from optalloc.compilation.units import LARGER_MONEY, LONGER_TICKS, Units, bounded
from optalloc.errors import Fault, InputError
from optalloc.instance import Instance
from optalloc.io.reading import as_instance
from optalloc.problem import FREE, NEVER, Ints, Problem

__all__ = ["compile"]


@dataclass(frozen=True)
class _Parts:
    """What the steps of compile share."""

    instance: Instance
    units: Units
    resources: Resources
    book: RouteBook
    choices: ChoiceTable
    options: OptionTable
    maker: ModeMaker


def compile(instance: Instance | Problem | str | Path) -> Problem:
    """Turn physics into integers: modes, resources, replicas and charges.

    Parameters
    ----------
    instance
        An instance, a file, or the name of a shipped one. What is compiled already is given back.

    Returns
    -------
    The problem. A well-formed instance that cannot be planned is compiled too: see ``Problem.impossible``.

    Raises
    ------
    InputError
        A number passes 2^53, the weight scale K is too large, or the state names what is not a mode. Faults carry
        the name of the instance.
    """
    if isinstance(instance, Problem):
        return instance
    instance = as_instance(instance)
    try:
        return _compiled(instance)
    except InputError as error:
        named = (Fault(fault.path, fault.message, fault.source or instance.name) for fault in error.faults)
        raise InputError(named) from None


def _compiled(instance: Instance) -> Problem:
    parts = _parts(instance)
    made = [parts.maker.modes(index, task) for index, task in enumerate(instance.tasks)]
    notes = [*dropped_options(instance, parts.maker, made), *capped_pairs(parts.book.network)]
    problem = _assemble(parts, stack(made))
    remember_book(problem, parts.book)
    problem = with_state(problem)
    check_range(problem)
    rejected, impossible = hopeless_tasks(problem, parts.maker)
    problem = replace(problem, notes=(*rejected, *notes), impossible=impossible)
    remember_book(problem, parts.book)
    return problem


def _parts(instance: Instance) -> _Parts:
    units = Units(Fraction(instance.tick_seconds), Fraction(instance.money_unit_usd))
    resources = build_resources(instance)
    book = RouteBook(instance, Network(instance, channel_resources(instance)), units)
    choices = ChoiceTable(instance, book, units, resources.seat)
    rates = Rates(instance)
    options = OptionTable(instance, rates, resources, units)
    maker = ModeMaker(instance, options, Candidates(instance), choices, rates, units)
    return _Parts(instance, units, resources, book, choices, options, maker)


def _assemble(parts: _Parts, table: ModeTable) -> Problem:
    """The problem without its state."""
    instance = parts.instance
    listing = list_replicas(table, parts.choices)
    arrays = {
        **_task_arrays(instance, parts.units),
        **_mode_arrays(parts, table),
        **_listed(listing),
        **_resource_arrays(parts.resources),
        **_storage_arrays(instance, listing),
        "node_site": parts.options.node_site,
        "replica_available": _ints(parts.choices.available[d] for d in listing.replica_dataset.tolist()),
        "purchase_cost": _purchase_costs(instance, parts.units, listing.purchases),
    }
    return Problem(
        instance=instance,
        **_ids(instance),
        **arrays,
        resource_label=tuple(parts.resources.label),
        route_links=listing.route_links,
        route_channels=listing.route_channels,
        **_objective(instance, parts.units, arrays["release"]),
    )


def _mode_arrays(parts: _Parts, table: ModeTable) -> dict[str, Any]:
    """What a mode is, costs and holds; data lists apart."""
    paid = replace(table, money=_own_money(parts.instance, table))
    available = gather(parts.choices.start, table.choice)
    uses = mode_uses(table, parts.choices, parts.options, parts.resources, parts.instance)
    return {
        "mode_ptr": table.ptr,
        "mode_task": table.task,
        "duration": table.duration,
        "money": paid.money,
        "utility": table.utility,
        "available": available,
        "active": dominance_mask(paid, parts.choices, available, len(parts.resources)),
        "explicit": table.explicit,
        "use_ptr": uses[0],
        "use_resource": uses[1],
        "use_amount": uses[2],
    }


def _storage_arrays(instance: Instance, listing: Listing) -> dict[str, Ints]:
    replicas = listing.replica_dataset.tolist(), listing.replica_site.tolist()
    storage, sizes = storage_in_units(instance, *replicas)
    return {"site_storage": storage, "replica_size": sizes}


def _ids(instance: Instance) -> dict[str, Any]:
    kinds: dict[str, tuple[Any, ...]] = {
        "task_ids": instance.tasks,
        "node_ids": instance.nodes,
        "site_ids": instance.sites,
        "dataset_ids": instance.datasets,
        "link_ids": instance.all_links,
    }
    return {name: tuple(entry.id for entry in entries) for name, entries in kinds.items()}


def _task_arrays(instance: Instance, units: Units) -> dict[str, Any]:
    tasks = instance.tasks
    index = {task.id: position for position, task in enumerate(tasks)}
    return {
        "release": _ints(
            bounded(
                units.ticks_up(task.release_s),
                f"tasks[{number}].release_s",
                "the release in ticks",
                LONGER_TICKS,
            )
            for number, task in enumerate(tasks)
        ),
        "due": _ints(_or_never(task.due_s, units) for task in tasks),
        "deadline": _ints(_or_never(task.deadline_s, units) for task in tasks),
        "rejectable": rejectable_tasks(instance),
        "pred_ptr": np.cumsum([0, *(len(task.after) for task in tasks)]),
        "pred_task": _ints(index[after.id] for task in tasks for after in task.after),
        "pred_lag": _ints(
            bounded(units.ticks_up(after.lag_s), f"tasks[{number}].after", "a lag in ticks", LONGER_TICKS)
            for number, task in enumerate(tasks)
            for after in task.after
        ),
        "state_mode": np.full(len(tasks), FREE, dtype=np.int64),
        "state_start": np.zeros(len(tasks), dtype=np.int64),
    }


def _or_never(seconds: Decimal | None, units: Units) -> int:
    """A due date or deadline; what lies past 2^53 ticks is never reached."""
    return NEVER if seconds is None else min(NEVER, units.ticks_down(seconds))


def _resource_arrays(resources: Resources) -> dict[str, Ints]:
    return {
        "resource_kind": _ints(resources.kind),
        "resource_owner": _ints(resources.owner),
        "cap_ptr": np.cumsum([0, *map(len, resources.steps)]),
        "cap_time": _ints(time for steps in resources.steps for time, _ in steps),
        "cap_amount": _ints(amount for steps in resources.steps for _, amount in steps),
    }


def _listed(listing: Listing) -> dict[str, Ints]:
    """The arrays of a listing under the names they have in the Problem."""
    arrays = {field.name: getattr(listing, field.name) for field in fields(listing)}
    arrays["purchase_dataset"] = _ints(arrays.pop("purchases"))
    return {name: array for name, array in arrays.items() if isinstance(array, np.ndarray)}


def _own_money(instance: Instance, table: ModeTable) -> Ints:
    """Money of the modes; nothing for tasks of the state, which are paid already."""
    money = table.money
    if len(money):
        dearest = int(money.argmax())
        path = f"tasks[{int(table.task[dearest])}]"
        bounded(int(money[dearest]), path, "the price of a run in money units", LARGER_MONEY)
    paid = state_tasks(instance)
    for index, task in enumerate(instance.tasks):
        if task.id in paid:
            money[table.ptr[index] : table.ptr[index + 1]] = 0
    return money


def _purchase_costs(instance: Instance, units: Units, purchases: Sequence[int]) -> Ints:
    bought = bought_datasets(instance)
    datasets = [instance.datasets[index] for index in purchases]
    return _ints(
        0 if dataset.id in bought else units.money_half_up(dataset.price_usd) for dataset in datasets
    )


def _objective(instance: Instance, units: Units, release: Ints) -> dict[str, Any]:
    weight = tuple(Fraction(task.weight) for task in instance.tasks)
    penalty = tuple(Fraction(task.reject_penalty or 0) for task in instance.tasks)
    weights = Weights(weight, penalty, tuple(release.tolist()))
    scale, levels, level_weights = scaled_levels(instance, weights, units)
    return {
        "scale": scale,
        "levels": levels,
        "level_weights": level_weights,
        "limits": limits(instance, weights, units),
        "task_weight": weight,
        "task_penalty": penalty,
    }


def _ints(values: Iterable[int]) -> Ints:
    return np.array(list(values), dtype=np.int64)
