"""The compiled problem: integers only, plain arrays.

Indices: task ``j`` in ``range(num_tasks)``, mode ``m`` in ``range(num_modes)`` (the modes of task j are
``mode_ptr[j]:mode_ptr[j+1]``), resource ``r``, replica ``k`` (a dataset at a site that is not a home of it),
route ``q`` (one way to bring a replica: from a home site over links), purchase ``b`` (a dataset paid once).
A pair ``x_ptr, x_...`` is a CSR list: the entries of owner ``i`` are ``x_...[x_ptr[i]:x_ptr[i+1]]``.

Units: time in ticks, money in money units, utility in permille, storage in the site's own common unit,
``extra`` resources in the resource's own common unit.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from optalloc.instance import Instance

__all__ = [
    "ABSENT", "ACCESS_NAMES", "ANY", "CHANNEL", "DEVICES", "EXTRA", "FREE", "LOCAL", "NEVER", "REJECTED", "SEATS",
    "STAGED", "STREAMED", "TERMS", "Form", "Ints", "Limit", "Plan", "Problem", "ReadOnly", "Transfer", "entries",
    "expand", "own_cost", "read_only", "rejection_cost",
]  # fmt: skip

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

NEVER: Final = 2**53
"""No due date, no deadline, unlimited storage: larger than every number of a Problem."""

LOCAL, STAGED, STREAMED = 0, 1, 2
ACCESS_NAMES: Final = ("local", "staged", "streamed")

DEVICES, EXTRA, CHANNEL, SEATS = 0, 1, 2, 3
"""Kinds of resources: devices and extra of a node (R5), channels of a link (R7), seats of a dataset (R9)."""

REJECTED, ABSENT, FREE = -1, -2, -3
"""Stand in the place of a mode: rejected; does not exist in this solve; not decided yet (only in a Scope)."""
ANY: Final = -1

TERMS: Final = (
    "makespan", "weighted_completion", "weighted_flow", "weighted_tardiness", "late", "rejected", "cost",
    "utility_loss",
)  # fmt: skip
"""The objective terms, in the order in which they are shown."""


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """The array over bytes of its own: unlike a flag, that cannot be undone."""
    if isinstance(array.base, bytes):
        return array
    return np.frombuffer(array.tobytes(), dtype=array.dtype).reshape(array.shape)


def expand(first: Ints, count: Ints) -> tuple[Ints, Ints]:
    """(owner, value) of the concatenated ranges ``first[i] .. first[i] + count[i]``."""
    owner = np.repeat(np.arange(len(first)), count)
    before = np.cumsum(count) - count
    return owner, np.arange(len(owner)) + np.repeat(first - before, count)


def entries(pointer: Ints, owners: Ints) -> tuple[Ints, Ints]:
    """(position in ``owners``, position in the list) of every CSR entry that belongs to ``owners``."""
    return expand(pointer[owners], pointer[owners + 1] - pointer[owners])


class ReadOnly:
    """Makes the arrays of a dataclass `read_only`: what is verified against them must not depend on a solver."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                object.__setattr__(self, name, read_only(value))

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.__post_init__()


@dataclass(frozen=True, eq=False)
class Form(ReadOnly):
    """An integer combination of the objective terms: one level of the objective, or one limit.

    The value of a plan is ``makespan * Cmax + cost * money + sum over tasks j`` of, where j is placed with end C and
    utility u, ``completion[j]*C + tardiness[j]*max(0, C - due[j]) + late[j]*[C > due[j]] + loss[j]*(1000 - u) +
    placed[j]``; where j is rejected, ``rejected[j] + late[j] + 1000*loss[j]``. ``money`` is the mode's own money of all
    placed tasks, the cost of each transfer, and each purchase once.

    All coefficients are scaled by ``Problem.scale`` (levels) or ``Limit.scale`` (limits) and are integers.
    """

    makespan: int
    cost: int
    completion: Ints
    tardiness: Ints
    late: Ints
    loss: Ints
    rejected: Ints
    placed: Ints
    """Constant of a placed task (-weight * release, from weighted_flow); may be negative."""


@dataclass(frozen=True, eq=False)
class Limit:
    """``form`` of a plan must be ``<= bound`` (R10); the unscaled term is ``form / scale``."""

    term: str
    form: Form
    bound: int
    scale: int


@dataclass(frozen=True)
class Transfer:
    """One dataset brought to one site, resolved to integers.

    Attributes
    ----------
    dataset, site
        Indices.
    links
        Link indices in travel order.
    start, ticks
        Ticks; it holds its channels in [start, start + ticks).
    cost
        Money units (0 for transfers of the state).
    channels
        The resources of kind CHANNEL among its links, one unit each.
    replica, route
        Indices in the Problem, or -1 if the Problem does not list them (no mode can read it; a dominated route).
    """

    dataset: int
    site: int
    links: tuple[int, ...]
    start: int
    ticks: int
    cost: int
    channels: tuple[int, ...]
    replica: int = -1
    route: int = -1

    @property
    def end(self) -> int:
        """First tick at which the replica can be read."""
        return self.start + self.ticks


@dataclass(eq=False)
class Plan:
    """The decisions as arrays: what solvers build. `optalloc.schedule` turns it into a Schedule and back.

    Attributes
    ----------
    mode
        (num_tasks,) mode index, REJECTED or ABSENT.
    start
        (num_tasks,) ticks; 0 where no mode is chosen.
    transfers
        All transfers, those of the state included, at most one per (dataset, site).
    """

    mode: Ints
    start: Ints
    transfers: tuple[Transfer, ...] = ()

    def copy(self) -> "Plan":
        """A plan that shares nothing mutable with this one."""
        return Plan(self.mode.copy(), self.start.copy(), self.transfers)


@dataclass(frozen=True, eq=False, kw_only=True)
class Problem(ReadOnly):
    """An instance after `compile`: everything that an algorithm sees. Arrays are read-only.

    Attributes that need a word
    ---------------------------
    release, due, deadline
        (J,) ticks; due and deadline are NEVER where there is none. Rounded up, down, down.
    rejectable
        (J,) may be left out of a plan: has a penalty, all successors rejectable too, and not in the state.
    available
        (M,) earliest tick at which all data of the mode exist (0 without data); R6, apart from the release.
    money
        (M,) the mode's own money: device time or explicit usd, per-use prices, stream egress; 0 for tasks of the state.
    active
        (M,) not dominated. Solvers use these; `evaluate` knows all.
    explicit
        (M,) index into the task's explicit `modes`, -1 for modes made from physics.
    use_*
        Every renewable resource a run holds from start to end: devices, extra, link channels of its streams, seats.
        Resource n < num_nodes is the devices of node n. Sorted by resource within a mode, amounts > 0.
    need_*
        Replicas that must have been staged before the start.
    buy_*
        Purchases that must be paid (once for the plan).
    input_*
        The data choice behind the mode, in the task's order of inputs; route is a route index or -1.
    replica_available
        (K,) first tick at which a transfer may start.
    route_*
        Routes of replica k are ``route_ptr[k]:route_ptr[k+1]``; the same routes serve staging and streaming. Behind
        ``route_ptr[-1]`` stand routes that another replaces: only streams of modes that are not active run over them.
    purchase_cost
        (B,) money, 0 where the state has bought it already.
    cap_*
        Capacity profile of a resource: ``cap_amount[i]`` from tick ``cap_time[i]`` until the next entry; the first
        entry is at 0 and the last holds for ever. Nothing is checked before tick 0.
    site_storage
        (S,) in the site's unit, NEVER if unlimited.  ``replica_size`` is in the unit of the replica's site.
    state_mode, state_start, state_transfers
        What is fixed from the start: FREE (or a mode of the state) per task; transfers already made (cost 0).
    scale
        K: levels are scaled by it.
    notes
        Sentences for people: dropped options, capped routes, tasks that must be rejected.
    impossible
        Task id (or "" for the plan) -> reasons, when compile has shown that no plan exists.
    """

    instance: "Instance"
    task_ids: tuple[str, ...]
    node_ids: tuple[str, ...]
    site_ids: tuple[str, ...]
    dataset_ids: tuple[str, ...]
    link_ids: tuple[str, ...]

    release: Ints
    due: Ints
    deadline: Ints
    rejectable: Bools
    pred_ptr: Ints
    pred_task: Ints
    pred_lag: Ints

    mode_ptr: Ints
    mode_task: Ints
    duration: Ints
    money: Ints
    utility: Ints
    available: Ints
    active: Bools
    explicit: Ints
    use_ptr: Ints
    use_resource: Ints
    use_amount: Ints
    need_ptr: Ints
    need_replica: Ints
    buy_ptr: Ints
    buy_purchase: Ints
    input_ptr: Ints
    input_dataset: Ints
    input_access: Ints
    input_route: Ints

    node_site: Ints
    resource_kind: Ints
    resource_owner: Ints
    """(R,) node, node, link or dataset index by kind."""
    resource_label: tuple[str, ...]
    cap_ptr: Ints
    cap_time: Ints
    cap_amount: Ints
    site_storage: Ints

    replica_dataset: Ints
    replica_site: Ints
    replica_size: Ints
    replica_available: Ints
    route_ptr: Ints
    route_ticks: Ints
    route_cost: Ints
    route_links: tuple[tuple[int, ...], ...]
    route_channels: tuple[tuple[int, ...], ...]
    purchase_dataset: Ints
    purchase_cost: Ints

    scale: int
    levels: tuple[Form, ...]
    limits: tuple[Limit, ...]
    level_weights: tuple[Mapping[str, Fraction], ...]
    """The levels as the instance writes them: term -> weight."""
    task_weight: tuple[Fraction, ...]
    task_penalty: tuple[Fraction, ...]
    """(J,) reject penalty, 0 where there is none."""

    state_mode: Ints
    state_start: Ints
    state_transfers: tuple[Transfer, ...] = ()
    notes: tuple[str, ...] = ()
    impossible: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    # sizes -----------------------------------------------------------------------------------------------------------
    @property
    def num_tasks(self) -> int:
        return len(self.task_ids)

    @property
    def num_modes(self) -> int:
        return len(self.duration)

    @property
    def num_nodes(self) -> int:
        return len(self.node_ids)

    @property
    def num_resources(self) -> int:
        return len(self.resource_kind)

    @property
    def num_replicas(self) -> int:
        return len(self.replica_dataset)

    @property
    def num_purchases(self) -> int:
        return len(self.purchase_dataset)

    # lists -----------------------------------------------------------------------------------------------------------
    def modes_of(self, task: int, *, active: bool = True) -> Ints:
        """Mode indices of a task; only the active ones unless ``active=False``."""
        modes = np.arange(self.mode_ptr[task], self.mode_ptr[task + 1])
        return modes[self.active[modes]] if active else modes

    def uses(self, mode: int) -> Iterator[tuple[int, int]]:
        """(resource, amount) pairs of a mode."""
        part = slice(self.use_ptr[mode], self.use_ptr[mode + 1])
        return zip(self.use_resource[part].tolist(), self.use_amount[part].tolist(), strict=True)

    def needs(self, mode: int) -> list[int]:
        """Replicas that a mode reads staged."""
        return list(self.need_replica[self.need_ptr[mode] : self.need_ptr[mode + 1]].tolist())

    def buys(self, mode: int) -> list[int]:
        """Purchases that a mode depends on."""
        return list(self.buy_purchase[self.buy_ptr[mode] : self.buy_ptr[mode + 1]].tolist())

    def inputs(self, mode: int) -> list[tuple[int, int, int]]:
        """(dataset, access, route or -1) of a mode, in the task's order of inputs."""
        part = slice(self.input_ptr[mode], self.input_ptr[mode + 1])
        columns = (self.input_dataset[part], self.input_access[part], self.input_route[part])
        return list(zip(*(c.tolist() for c in columns), strict=True))

    def predecessors(self, task: int) -> Iterator[tuple[int, int]]:
        """(predecessor, lag) pairs of a task."""
        part = slice(self.pred_ptr[task], self.pred_ptr[task + 1])
        return zip(self.pred_task[part].tolist(), self.pred_lag[part].tolist(), strict=True)

    @cached_property
    def successors(self) -> tuple[tuple[int, ...], ...]:
        """Successors of each task."""
        lists: list[list[int]] = [[] for _ in range(self.num_tasks)]
        for task in range(self.num_tasks):
            for pred, _ in self.predecessors(task):
                lists[pred].append(task)
        return tuple(map(tuple, lists))

    @cached_property
    def topological(self) -> tuple[int, ...]:
        """Tasks in an order in which every predecessor comes first (smallest index first among equals)."""
        import heapq

        waiting = np.diff(self.pred_ptr).tolist()
        heap = [task for task in range(self.num_tasks) if waiting[task] == 0]
        order: list[int] = []
        while heap:
            task = heapq.heappop(heap)
            order.append(task)
            for successor in self.successors[task]:
                waiting[successor] -= 1
                if waiting[successor] == 0:
                    heapq.heappush(heap, successor)
        return tuple(order)

    def routes_of(self, replica: int) -> range:
        """Route indices of a replica."""
        return range(int(self.route_ptr[replica]), int(self.route_ptr[replica + 1]))

    def capacity(self, resource: int) -> tuple[Ints, Ints]:
        """(times, amounts) of a resource's capacity profile."""
        part = slice(self.cap_ptr[resource], self.cap_ptr[resource + 1])
        return self.cap_time[part], self.cap_amount[part]

    def transfer(self, replica: int, route: int, start: int) -> Transfer:
        """The transfer that brings ``replica`` over ``route``, starting at tick ``start``."""
        return Transfer(
            dataset=int(self.replica_dataset[replica]),
            site=int(self.replica_site[replica]),
            links=self.route_links[route],
            start=int(start),
            ticks=int(self.route_ticks[route]),
            cost=int(self.route_cost[route]),
            channels=self.route_channels[route],
            replica=int(replica),
            route=int(route),
        )

    @cached_property
    def replica_of(self) -> dict[tuple[int, int], int]:
        """(dataset, site) -> replica."""
        pairs = zip(self.replica_dataset.tolist(), self.replica_site.tolist(), strict=True)
        return {pair: k for k, pair in enumerate(pairs)}

    @cached_property
    def constant_replicas(self) -> Bools:
        """(K,) transfers whose start may be fixed at max(availability, not_before).

        True where no route has a channel limit and the site has no storage limit.
        """
        free = self.site_storage[self.replica_site] >= NEVER if self.num_replicas else np.zeros(0, bool)
        contended = [any(self.route_channels[q] for q in self.routes_of(k)) for k in range(self.num_replicas)]
        return np.asarray(free & ~np.array(contended, dtype=bool).reshape(-1), dtype=bool)

    def written(self, term: str, value: int | Fraction) -> str:
        """A term's value as people write limits of it: ``cost`` in $, others as they are (ticks, tasks, permille)."""
        if term == "cost":
            return f"${float(value * Fraction(self.instance.money_unit_usd)):,.2f}"
        return str(Fraction(value))

    def __repr__(self) -> str:
        return (
            f"Problem({self.instance.name!r}: {self.num_tasks} tasks, {int(self.active.sum())} active of "
            f"{self.num_modes} modes, {self.num_nodes} nodes, {self.num_replicas} replicas)"
        )


def own_cost(problem: Problem, form: Form, mode: Any, start: Any) -> Ints:
    """What a placed task adds to ``form`` by itself, without makespan and shared charges.

    Parameters
    ----------
    mode, start
        Mode indices and start ticks; arrays of shapes that broadcast together.

    Returns
    -------
    Integer array of the broadcast shape.
    """
    mode = np.asarray(mode)
    task = problem.mode_task[mode]
    end = np.asarray(start) + problem.duration[mode]
    over = np.maximum(0, end - problem.due[task])
    value = form.completion[task] * end + form.tardiness[task] * over + form.late[task] * (over > 0)
    value = value + form.loss[task] * (1000 - problem.utility[mode]) + form.placed[task]
    return np.asarray(value + form.cost * problem.money[mode], dtype=np.int64)


def rejection_cost(form: Form) -> Ints:
    """(J,) what each task adds to ``form`` when it is rejected."""
    return np.asarray(form.rejected + form.late + 1000 * form.loss, dtype=np.int64)
