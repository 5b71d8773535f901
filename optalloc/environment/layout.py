"""The modes of a problem as rows of plain arrays, in the order in which a decision is taken apart."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from optalloc.problem import DEVICES, NEVER, STAGED, STREAMED, Bools, Ints, Problem

__all__ = ["Layout", "padded"]


class Layout:
    """One row for each mode that can be chosen: by task, then data and access, then node, then devices.

    Only active modes have rows. Lists of different lengths stand in padded columns; the padding is an entry of
    its own behind the last one, which is always free, there, or paid.

    Parameters
    ----------
    problem
        Its arrays are read, never changed.

    Attributes
    ----------
    mode, task
        (R,) of each row.
    ptr
        (J + 1,) rows of task j are ``ptr[j]:ptr[j + 1]``.
    choice
        (R,) number of the data choice (every dataset with its access and stream route) among all tasks; grows with
        the row.
    place
        (R,) number of the pair (choice, nodes); grows with the row.
    node, devices
        (R,) first node (-1: none) and devices on all nodes.
    dataset
        (R,) dataset of the first input, -1 without data.
    staged, streamed
        (R,) whether some input is.
    duration, earliest, latest
        (R,) ticks; first start allowed by release and data, last one by the deadline.
    pair
        (R, .) what the run holds: indices of (``pair_resource``, ``pair_amount``). Behind the resources of the Problem
        stand the storages of the sites; ``storage_pair`` is that of each replica, ``route_pairs`` are the channels of
        each route.
    need, buy
        (R, .) replicas, purchases.
    """

    def __init__(self, problem: Problem):
        self.problem = problem
        modes = np.flatnonzero(problem.active)
        data, nodes = _data_keys(problem), _node_keys(problem)
        first_node, devices = _devices(problem)
        order = np.lexsort((modes, devices[modes], nodes[modes], data[modes], problem.mode_task[modes]))
        self.mode: Ints = modes[order]
        self.task: Ints = problem.mode_task[self.mode]
        self.ptr: Ints = np.searchsorted(self.task, np.arange(problem.num_tasks + 1))
        self.choice = _runs(self.task, data[self.mode])
        self.place = _runs(self.choice, nodes[self.mode])
        self.node, self.devices = first_node[self.mode], devices[self.mode]
        self.duration: Ints = problem.duration[self.mode]
        self.earliest: Ints = np.maximum(problem.release[self.task], problem.available[self.mode])
        self.latest: Ints = problem.deadline[self.task] - self.duration
        self._number_pairs()
        self.need = padded(problem.need_ptr, problem.need_replica, self.mode, problem.num_replicas)
        self.buy = padded(problem.buy_ptr, problem.buy_purchase, self.mode, problem.num_purchases)
        self._read_inputs()

    def _number_pairs(self) -> None:
        problem = self.problem
        channels = _csr(problem.route_channels)
        limited = np.flatnonzero(self.room < NEVER)
        parts = (
            (problem.use_resource, problem.use_amount),
            (channels[1], np.ones_like(channels[1])),
            (problem.num_resources + problem.replica_site[limited], problem.replica_size[limited]),
        )
        resource, amount = (np.concatenate(column) for column in zip(*parts, strict=True))
        # Amounts can be large: their ranks make keys that never overflow.
        amounts, rank = np.unique(amount, return_inverse=True)
        pairs, held = np.unique(resource * (len(amounts) + 1) + rank, return_inverse=True)
        self.pair_resource, at = np.divmod(pairs, len(amounts) + 1)
        self.pair_amount = amounts[at]
        uses, over, stored = np.split(held, np.cumsum([len(part[0]) for part in parts])[:-1])
        routes = np.arange(len(channels[0]))
        self.pair = padded(problem.use_ptr, uses, self.mode, len(pairs))
        self.route_pairs = padded(np.append(channels[0], channels[0][-1]), over, routes, len(pairs))
        self.storage_pair = np.full(problem.num_replicas + 1, len(pairs))
        self.storage_pair[limited] = stored

    def _read_inputs(self) -> None:
        problem = self.problem
        dataset = padded(problem.input_ptr, problem.input_dataset, self.mode, -1)
        access = padded(problem.input_ptr, problem.input_access, self.mode, -1)
        self.inputs = dataset
        """(R, .) datasets read, -1 for none."""
        self.dataset: Ints = dataset[:, 0] if dataset.shape[1] else np.full(len(self.mode), -1)
        self.staged: Bools = (access == STAGED).any(axis=1)
        self.streamed: Bools = (access == STREAMED).any(axis=1)

    @property
    def num_rows(self) -> int:
        """R."""
        return len(self.mode)

    @cached_property
    def pairs_of(self) -> list[list[int]]:
        """Pairs of each resource, and of each storage behind them."""
        lists: list[list[int]] = [[] for _ in range(self.problem.num_resources + len(self.problem.site_ids))]
        for pair, resource in enumerate(self.pair_resource.tolist()):
            lists[resource].append(pair)
        return lists

    @cached_property
    def rows_holding(self) -> list[Ints]:
        """Rows that hold some of each resource."""
        resource = np.append(self.pair_resource, NEVER)[self.pair]
        return _owners(resource, self.problem.num_resources)

    @cached_property
    def rows_needing(self) -> list[Ints]:
        """Rows that read each replica."""
        return _owners(self.need, self.problem.num_replicas)

    @cached_property
    def row_list(self) -> list[Ints]:
        """Rows of each task."""
        return np.split(np.arange(self.num_rows), self.ptr[1:-1])

    @cached_property
    def channelled_routes(self) -> list[int]:
        """Routes that stage a replica and hold channels."""
        return [q for q in range(len(self.route_replica)) if self.problem.route_channels[q]]

    @cached_property
    def replicas_over(self) -> list[list[int]]:
        """Replicas with a route over each resource, which is a channel then."""
        lists: list[set[int]] = [set() for _ in range(self.problem.num_resources)]
        for route in self.channelled_routes:
            for channel in self.problem.route_channels[route]:
                lists[channel].add(self.route_replica.item(route))
        return [sorted(found) for found in lists]

    @cached_property
    def sharing_storage(self) -> list[list[int]]:
        """Replicas that share a limited storage with each replica; itself at least."""
        at = self.problem.replica_site
        return [
            np.flatnonzero(at == at[k]).tolist() if room < NEVER else [k]
            for k, room in enumerate(self.room.tolist())
        ]

    @cached_property
    def task_needs(self) -> list[Ints]:
        """Replicas that some row of each task reads."""
        entries = [np.unique(self.need[rows]) for rows in self.row_list]
        return [found[found < self.problem.num_replicas] for found in entries]

    @cached_property
    def route_fits(self) -> Bools:
        """(Q,) routes that stage a replica which its site can hold at all."""
        return np.asarray((self.problem.replica_size <= self.room)[self.route_replica])

    @cached_property
    def routes(self) -> Ints:
        """(K + 1, .) routes of each replica, padded with the number of all routes."""
        problem = self.problem
        pointer = np.append(problem.route_ptr, problem.route_ptr[-1])
        every = np.arange(len(problem.route_ticks))
        return padded(pointer, every, np.arange(problem.num_replicas + 1), len(every))

    @cached_property
    def route_replica(self) -> Ints:
        """Replica of each route that stages one."""
        return np.repeat(np.arange(self.problem.num_replicas), np.diff(self.problem.route_ptr))

    @cached_property
    def limited(self) -> Bools:
        """(R,) rows that need room in a limited storage."""
        return np.asarray((self.storage_pair < len(self.pair_resource))[self.need].any(axis=1))

    @cached_property
    def intertwined(self) -> Bools:
        """(R,) rows with several replicas whose transfers may get in each other's way."""
        channels = np.zeros(self.problem.num_replicas + 1, dtype=bool)
        channels[self.route_replica[self.channelled_routes]] = True
        several = (self.need < self.problem.num_replicas).sum(axis=1) > 1
        return np.asarray(several & (self.limited | channels[self.need].any(axis=1)))

    @cached_property
    def room(self) -> Ints:
        """(K,) storage of the site of each replica, NEVER if unlimited."""
        return np.asarray(self.problem.site_storage[self.problem.replica_site])


def padded(pointer: Ints, values: Ints, owners: Ints, fill: int) -> Ints:
    """The CSR lists of ``owners`` as rows of equal length.

    Examples
    --------
    >>> padded(np.array([0, 2, 2, 3]), np.array([5, 6, 7]), np.array([0, 1, 2]), -1).tolist()
    [[5, 6], [-1, -1], [7, -1]]
    """
    first, length = pointer[owners], pointer[owners + 1] - pointer[owners]
    columns = np.arange(int(length.max(initial=0)))
    there = columns < length[:, None]
    at = np.where(there, first[:, None] + columns, 0)
    return np.where(there, values[at], fill) if there.any() else np.full(there.shape, fill, dtype=np.int64)


def _csr(lists: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    """Pointer and values of a list of lists."""
    pointer = np.concatenate([[0], np.cumsum([len(each) for each in lists])]).astype(np.int64)
    return pointer, np.array([value for each in lists for value in each], dtype=np.int64)


def _owners(entries: Ints, count: int) -> list[Ints]:
    """Rows in which each of ``count`` values stands."""
    rows, columns = np.nonzero(entries < count)
    values = entries[rows, columns]
    order = np.argsort(values, kind="stable")
    return np.split(rows[order], np.searchsorted(values[order], np.arange(1, count)))[:count]


def _joined(first: Ints, second: Ints) -> Ints:
    """Numbers of the pairs (first, second), in their order; second may be -1."""
    width = int(second.max(initial=0)) + 2
    return np.asarray(np.unique(first * width + second + 1, return_inverse=True)[1])


def _runs(group: Ints, key: Ints) -> Ints:
    """Number of the stretch of equal (group, key) in which each row stands."""
    if not len(group):
        return np.zeros(0, dtype=np.int64)
    new = (np.diff(group) != 0) | (np.diff(key) != 0)
    return np.concatenate([[0], np.cumsum(new)]).astype(np.int64)


def _data_keys(problem: Problem) -> Ints:
    """(M,) number of the data choice of each mode: equal if every input has the same dataset, access and route."""
    everyone = np.arange(problem.num_modes)
    columns = (problem.input_dataset, problem.input_access, problem.input_route)
    key = np.zeros(problem.num_modes, dtype=np.int64)
    tables = [padded(problem.input_ptr, column, everyone, -1) for column in columns]
    for position in range(tables[0].shape[1]):
        for table in tables:
            key = _joined(key, table[:, position])
    return key


def _node_keys(problem: Problem) -> Ints:
    """(M,) number of the set of nodes of each mode."""
    on_node = np.where(problem.resource_kind[problem.use_resource] == DEVICES, problem.use_resource, -1)
    table = padded(problem.use_ptr, on_node, np.arange(problem.num_modes), -1)
    key = np.zeros(problem.num_modes, dtype=np.int64)
    for position in range(table.shape[1]):
        key = _joined(key, table[:, position])
    return key


def _devices(problem: Problem) -> tuple[Ints, Ints]:
    """(M,) the first node of each mode, -1 for none, and its devices on all nodes."""
    everyone = np.arange(problem.num_modes)
    is_node = problem.resource_kind[problem.use_resource] == DEVICES
    first = padded(problem.use_ptr, np.where(is_node, problem.use_resource, NEVER), everyone, NEVER)
    amount = padded(problem.use_ptr, np.where(is_node, problem.use_amount, 0), everyone, 0)
    node = first.min(axis=1, initial=NEVER)
    return np.where(node < NEVER, node, -1), amount.sum(axis=1)
