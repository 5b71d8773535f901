"""From the modes of single tasks to the arrays of the Problem."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from optalloc.compilation.choices import ChoiceTable
from optalloc.compilation.dominance import Signatures, active_modes
from optalloc.compilation.modes import COLUMNS, TaskModes
from optalloc.compilation.options import OptionTable
from optalloc.compilation.resources import Resources
from optalloc.instance import Instance
from optalloc.problem import Bools, Ints, expand

__all__ = ["Listing", "ModeTable", "dominance_mask", "list_replicas", "mode_uses", "stack"]


@dataclass(frozen=True, eq=False)
class ModeTable:
    """The modes of all tasks, a row each: the columns of TaskModes one below the other."""

    ptr: Ints
    task: Ints
    node: Ints
    count: Ints
    choice: Ints
    duration: Ints
    money: Ints
    utility: Ints
    explicit: Ints
    several: dict[int, tuple[tuple[int, int], ...]]

    def __len__(self) -> int:
        return len(self.task)

    def node_uses(self) -> tuple[Ints, Ints, Ints]:
        """(mode, node, devices) of every node that a mode uses, by mode, then node."""
        if not self.several:
            return np.arange(len(self)), self.node, self.count
        length = np.ones(len(self), dtype=np.int64)
        for row, uses in self.several.items():
            length[row] = len(uses)
        mode = np.repeat(np.arange(len(self)), length)
        node, count = self.node[mode], self.count[mode]
        ends = np.cumsum(length)
        for row, uses in self.several.items():
            part = slice(int(ends[row]) - len(uses), int(ends[row]))
            node[part], count[part] = np.array(uses, dtype=np.int64).T
        return mode, node, count


def stack(parts: list[TaskModes]) -> ModeTable:
    """The modes of all tasks; empties ``parts``, which can be large."""
    length = np.array([len(part) for part in parts], dtype=np.int64)
    ptr = np.concatenate([[0], np.cumsum(length)])
    several = {
        int(ptr[task]) + row: uses for task, part in enumerate(parts) for row, uses in part.several.items()
    }
    columns: dict[str, Any] = {
        name: np.concatenate([_NONE, *(getattr(part, name) for part in parts)]) for name in COLUMNS
    }
    parts.clear()
    return ModeTable(ptr=ptr, task=np.repeat(np.arange(len(length)), length), several=several, **columns)


_NONE: Ints = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Listing:
    """Replicas, routes and purchases that some mode uses, and the lists of the modes in terms of them."""

    need_ptr: Ints
    need_replica: Ints
    buy_ptr: Ints
    buy_purchase: Ints
    input_ptr: Ints
    input_dataset: Ints
    input_access: Ints
    input_route: Ints
    replica_dataset: Ints
    replica_site: Ints
    route_ptr: Ints
    route_ticks: Ints
    route_cost: Ints
    route_links: tuple[tuple[int, ...], ...]
    route_channels: tuple[tuple[int, ...], ...]
    purchases: tuple[int, ...]


def list_replicas(table: ModeTable, choices: ChoiceTable) -> Listing:
    """Number the replicas by dataset and site, their kept routes in the same order, dropped routes last.

    Dropped routes stand behind ``route_ptr[-1]``: only streams read over them, in modes that are never active.
    """
    used = np.unique(table.choice)
    need_ptr, needs = _picked(choices.needs.ptr, choices.needs.values, table.choice)
    buy_ptr, buys = _picked(choices.buys.ptr, choices.buys.values, table.choice)
    input_ptr, inputs = _picked(choices.inputs.ptr, choices.inputs.values, table.choice)
    triples = inputs.reshape(-1, 3)
    streamed = np.unique(_picked(choices.inputs.ptr, choices.inputs.values, used)[1].reshape(-1, 3)[:, 2])
    streamed = streamed[streamed >= 0]
    replicas = _used_replicas(choices, _picked(choices.needs.ptr, choices.needs.values, used)[1], streamed)
    replica_map, route_map, order = _numbers(choices, replicas, streamed)
    purchases = np.unique(buys)
    routes = [choices.routes[number] for number in order]
    return Listing(
        need_ptr=need_ptr,
        need_replica=replica_map[needs],
        buy_ptr=buy_ptr,
        buy_purchase=np.searchsorted(purchases, buys),
        input_ptr=input_ptr // 3,
        input_dataset=triples[:, 0].copy(),
        input_access=triples[:, 1].copy(),
        input_route=route_map[triples[:, 2]],
        replica_dataset=np.array([choices.replicas[k].dataset for k in replicas], dtype=np.int64),
        replica_site=np.array([choices.replicas[k].site for k in replicas], dtype=np.int64),
        route_ptr=np.cumsum([0, *(len(choices.replicas[k].kept) for k in replicas)]),
        route_ticks=np.array([route.ticks for route in routes], dtype=np.int64),
        route_cost=np.array([route.cost for route in routes], dtype=np.int64),
        route_links=tuple(route.chain.links for route in routes),
        route_channels=tuple(route.chain.channels for route in routes),
        purchases=tuple(purchases.tolist()),
    )


def _picked(ptr: "array[int]", values: "array[int]", rows: Ints) -> tuple[Ints, Ints]:
    """The lists of ``rows`` one after the other, with their own ptr."""
    begin = np.array(ptr, dtype=np.int64)
    length = np.diff(begin)[rows]
    _, position = expand(begin[rows], length)
    return np.concatenate([[0], np.cumsum(length)]), np.array(values, dtype=np.int64)[position]


def _used_replicas(choices: ChoiceTable, needs: Ints, streamed: Ints) -> list[int]:
    """Numbers of the replicas that are staged or streamed to, by dataset and site."""
    firsts = np.array([replica.first for replica in choices.replicas], dtype=np.int64)
    of_stream = np.searchsorted(firsts, streamed, side="right") - 1
    used = np.unique(np.concatenate([needs, of_stream])).tolist()
    return sorted(used, key=lambda k: (choices.replicas[k].dataset, choices.replicas[k].site))


def _numbers(choices: ChoiceTable, replicas: Sequence[int], streamed: Ints) -> tuple[Ints, Ints, list[int]]:
    """Old -> new replica and route numbers (-1 stays -1), and the old numbers of the listed routes in their order."""
    replica_map = np.full(len(choices.replicas), -1, dtype=np.int64)
    replica_map[replicas] = np.arange(len(replicas))
    kept = [number for k in replicas for number in _kept_numbers(choices, k)]
    listed = set(kept)
    order = [*kept, *(number for number in streamed.tolist() if number not in listed)]
    route_map = np.full(len(choices.routes) + 1, -1, dtype=np.int64)
    route_map[order] = np.arange(len(order))
    return replica_map, route_map, order


def _kept_numbers(choices: ChoiceTable, replica: int) -> range:
    entry = choices.replicas[replica]
    return range(entry.first, entry.first + len(entry.kept))


def mode_uses(
    table: ModeTable, choices: ChoiceTable, options: OptionTable, resources: Resources, instance: Instance
) -> tuple[Ints, Ints, Ints]:
    """(ptr, resource, amount) of everything renewable that a mode holds, by resource within a mode."""
    nodes = np.ones(len(table), dtype=np.int64)
    for row, uses in table.several.items():
        nodes[row] = len(uses)
    demands = [_ordered_demands(options.demands(task), resources) for task in instance.tasks]
    extras = np.array([len(demand) for demand in demands], dtype=np.int64)[table.task] * nodes
    pairs_ptr, pairs = _picked(choices.uses.ptr, choices.uses.values, table.choice)
    held = np.diff(pairs_ptr) // 2
    ptr = np.concatenate([[0], np.cumsum(nodes + extras + held)])
    resource, amount = np.zeros((2, int(ptr[-1])), dtype=np.int64)
    resource[ptr[:-1]], amount[ptr[:-1]] = table.node, table.count
    _fill_extras(table, ptr, demands, resources, resource, amount)
    _, position = expand(ptr[1:] - held, held)
    resource[position], amount[position] = pairs.reshape(-1, 2).T
    for row, uses in table.several.items():
        both = _several(uses, demands[int(table.task[row])], resources)
        part = slice(int(ptr[row]), int(ptr[row]) + len(both))
        resource[part], amount[part] = zip(*both, strict=True)
    return ptr, resource, amount


def _ordered_demands(demands: list[tuple[str, int]], resources: Resources) -> list[tuple[str, int]]:
    """In the order of the resource table."""
    order = {key: position for position, key in enumerate(resources.extras)}
    return sorted(demands, key=lambda demand: order[demand[0]])


def _fill_extras(
    table: ModeTable,
    ptr: Ints,
    demands: Sequence[list[tuple[str, int]]],
    resources: Resources,
    resource: Ints,
    amount: Ints,
) -> None:
    """Extra demands right after the devices; modes on several nodes are overwritten later."""
    for task, demand in enumerate(demands):
        part = slice(int(table.ptr[task]), int(table.ptr[task + 1]))
        for offset, (key, value) in enumerate(demand, 1):
            resource[ptr[part] + offset] = resources.extras[key].resource[table.node[part]]
            amount[ptr[part] + offset] = value


def _several(
    uses: tuple[tuple[int, int], ...], demand: list[tuple[str, int]], resources: Resources
) -> list[tuple[int, int]]:
    """Devices, then the extra demands of the run on every node it uses."""
    extras = [(int(resources.extras[key].resource[node]), value) for node, _ in uses for key, value in demand]
    return [*uses, *sorted(extras)]


def dominance_mask(table: ModeTable, choices: ChoiceTable, available: Ints, num_resources: int) -> Bools:
    """(M,) modes that no other mode of the same task makes superfluous."""
    signatures = Signatures()
    held = [_held(choices, row, num_resources) for row in range(len(choices))]
    of_choice = np.array([signatures.number(amounts) for amounts in held], dtype=np.int64)
    signature = of_choice[table.choice]
    for row, uses in table.several.items():
        signature[row] = signatures.number({**held[int(table.choice[row])], **dict(uses)})
    columns = (table.task, table.duration, table.money, table.utility, available)
    return active_modes(*columns, table.node_uses(), signature, signatures)


def _held(choices: ChoiceTable, row: int, num_resources: int) -> dict[int, int]:
    """Token -> amount of a data choice: resources, then replicas, then purchases."""
    pairs = choices.uses.values[choices.uses.ptr[row] : choices.uses.ptr[row + 1]]
    needs = choices.needs.values[choices.needs.ptr[row] : choices.needs.ptr[row + 1]]
    buys = choices.buys.values[choices.buys.ptr[row] : choices.buys.ptr[row + 1]]
    tokens = {num_resources + replica: 1 for replica in needs}
    tokens |= {num_resources + len(choices.replicas) + dataset: 1 for dataset in buys}
    return dict(zip(pairs[::2], pairs[1::2], strict=True)) | tokens
