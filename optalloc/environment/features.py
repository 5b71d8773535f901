"""What a learner sees: numbers between -1 and 1 about the queue, its options, and the places where they run.

Times are measured in mean durations and values in mean objectives of the tasks seen so far, each alone
(`optalloc.environment.scales`), and squashed by x / (1 + abs x). Nothing depends on a task that is not seen.
"""

from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from optalloc.environment.decision import Decision
from optalloc.environment.layout import Layout
from optalloc.environment.scales import Floats, Scales, share, signed
from optalloc.problem import NEVER, SEATS, TERMS, Bools, Ints

__all__ = ["DATASET", "GLOBAL", "MODE", "NODE", "TASK", "TRANSFER", "Features", "Known", "Singles", "stacked"]

Singles = NDArray[np.float32]

GLOBAL: Final = ("clock", "queue", "waiting", "free", "next_event", "will_happen", *TERMS)
TASK: Final = (
    "weight", "age", "slack", "has_due", "time_left", "has_deadline", "may_reject", "rejection", "shortest", "options",
    "delay", "increase", "regret", "sufferage",
)  # fmt: skip
DATASET: Final = ("held", "seats", "demand", "utility", "price", "delay", "regret")
NODE: Final = ("devices", "free", "settles", "room", "demand", "ready", "regret")
MODE: Final = (
    "open", "now", "delay", "duration", "increase", "regret", "against_alone", "money", "egress", "utility", "devices",
    "area", "free", "staged", "streamed", "lacking", "late",
)  # fmt: skip
TRANSFER: Final = ("open", "ticks", "cost", "delay", "demand")

_BIG = 2**62


class Known:
    """Facts of a problem that never change.

    Attributes
    ----------
    weight
        (J,) task weights.
    shortest
        (J,) ticks of the shortest row.
    terms
        Shares of the objective's weights, one for each of TERMS.
    capacity
        (N + 1,) most devices of each node, at least 1; 1 behind the last.
    seats
        Dataset -> the resource that limits its readers, and how many there may be.
    """

    def __init__(self, layout: Layout):
        problem = layout.problem
        self.weight = np.array([float(weight) for weight in problem.task_weight])
        self.shortest = np.array([layout.duration[rows].min(initial=NEVER) for rows in layout.row_list])
        weights = [float(problem.level_weights[0].get(term, 0)) for term in TERMS]
        self.terms = [weight / (sum(weights) or 1) for weight in weights]
        most = [max(1, int(problem.capacity(node)[1].max())) for node in range(problem.num_nodes)]
        self.capacity = np.array([*most, 1], dtype=np.int64)
        limited = np.flatnonzero(problem.resource_kind == SEATS).tolist()
        owner = problem.resource_owner
        self.seats = {owner.item(r): (r, max(1, int(problem.capacity(r)[1].max()))) for r in limited}
        self.replicas = [
            np.flatnonzero(problem.replica_dataset == d) for d in range(len(problem.dataset_ids))
        ]


class Features:
    """The features of one decision, worked out when they are asked for.

    Parameters
    ----------
    decision
        What can be decided.
    alone
        (J,) `Isolated.value`.
    """

    def __init__(self, decision: Decision, known: Known, alone: Floats, scales: Scales):
        self.decision, self.known, self.alone, self.scales = decision, known, alone, scales
        self.prospects = decision.prospects
        self.layout, self.simulator = self.prospects.layout, self.prospects.simulator
        self.problem, self.form = self.layout.problem, decision.costs[0].form
        self.clock, self.ptr = self.simulator.clock, self.prospects.ptr
        self.waiting: Ints = np.array(decision.tasks, dtype=np.int64)
        self.owner = np.repeat(np.arange(len(self.waiting)), np.diff(self.ptr))
        """(N,) position of each row's task."""
        self.best = self._least(decision.increase, decision.open)
        self.regret = np.where(decision.open, decision.increase - self.best[self.owner], 0) / scales.value
        self.delay = np.where(decision.open, decision.start - self.clock, 0) / scales.time
        free = [self.simulator.table.profiles[node].at(self.clock) for node in range(self.problem.num_nodes)]
        self.free = np.array([*free, 0]) / self.known.capacity

    def _least(self, values: Any, among: Bools) -> Any:
        """(W,) least value of those of each task's rows that are ``among``, 0 without any."""
        least = np.full(len(self.waiting), _BIG, dtype=values.dtype)
        full = np.flatnonzero(np.diff(self.ptr))
        if len(full):
            least[full] = np.minimum.reduceat(np.where(among, values, _BIG), self.ptr[full])
        return np.where(least < _BIG, least, 0)

    # groups -----------------------------------------------------------------------------------------------
    @cached_property
    def scalars(self) -> Singles:
        """(GLOBAL,) the moment as a whole."""
        simulator, upcoming = self.simulator, self.simulator.next_event
        free = (self.free * self.known.capacity)[:-1].sum() / max(1, self.known.capacity[:-1].sum())
        ahead = 0 if upcoming is None else upcoming - self.clock
        counts = [self.clock / self.scales.time, len(simulator.queue) / 10, len(self.waiting) / 10]
        moment = [*map(share, counts), free, share(ahead / self.scales.time), float(upcoming is not None)]
        return np.array([*moment, *self.known.terms], dtype=np.float32)

    @cached_property
    def tasks(self) -> Singles:
        """(W, TASK) waiting tasks."""
        problem, tasks, time, value = self.problem, self.waiting, self.scales.time, self.scales.value
        opened = self.decision.open
        number = np.bincount(self.owner[opened], minlength=len(tasks))
        some = number > 0
        shortest = self.known.shortest[tasks]
        so_far = self.best - self._sunk(tasks)
        columns = {
            "weight": share(self.known.weight[tasks] / self.scales.weight),
            "age": share((self.clock - problem.release[tasks]) / time),
            **self._time_left("slack", "has_due", problem.due[tasks] - shortest),
            **self._time_left("time_left", "has_deadline", problem.deadline[tasks] - shortest),
            "may_reject": self.decision.may_reject,
            "rejection": self.decision.may_reject * share(self.decision.costs[0].rejection[tasks] / value),
            "shortest": np.where(shortest < NEVER, share(shortest / time), 0),
            "options": number / np.maximum(1, np.diff(self.ptr)),
            "delay": share(self._least(self.delay, opened)),
            "increase": some * signed(so_far / value),
            "regret": some * signed((so_far - self.alone[tasks]) / value),
            "sufferage": some * self._sufferage(),
        }
        return stacked(columns, TASK, len(tasks))

    def _time_left(self, name: str, exists: str, last: Ints) -> dict[str, Any]:
        given = last < NEVER // 2
        left = np.where(given, last - self.clock, 0)
        return {name: signed(left / self.scales.time), exists: given}

    def _sunk(self, tasks: Ints) -> Ints:
        return self.decision.costs[0].sunk(tasks, self.clock)

    def _sufferage(self) -> Any:
        """What a task loses if the node of its best row is lost; 1 where it has no other."""
        opened, node = self.decision.open, self.layout.node[self.decision.rows]
        favourite = np.full(len(self.waiting), -1)
        at = np.flatnonzero(opened & (self.regret == 0))[::-1]
        favourite[self.owner[at]] = node[at]
        other = opened & (node != favourite[self.owner])
        has_other = np.bincount(self.owner[other], minlength=len(self.waiting)) > 0
        return np.where(has_other, share(self._least(self.regret, other)), 1)

    def modes(self, at: Ints | Bools | slice = slice(None)) -> Singles:
        """(N, MODE) rows of the decision, or those at some positions; 0 where a row is not open."""
        decision, layout, known = self.decision, self.layout, self.known
        rows, owner, opened = decision.rows[at], self.owner[at], decision.open[at]
        time, value = self.scales.time, self.scales.value
        tasks, node = layout.task[rows], layout.node[rows]
        so_far = decision.increase[at] - self._sunk(self.waiting)[owner]
        length = layout.duration[rows] / time
        held = layout.devices[rows] / known.capacity[node]
        price = self.form.cost / value
        columns = {
            "open": opened,
            "now": decision.start[at] == self.clock,
            "delay": share(self.delay[at]),
            "duration": share(length),
            "increase": signed(so_far / value),
            "regret": share(self.regret[at]),
            "against_alone": signed((so_far - self.alone[tasks]) / value),
            "money": share(price * (self.problem.money[layout.mode[rows]] + decision.charge[at])),
            "egress": share(price * self.prospects.egress[rows]),
            "utility": self.problem.utility[layout.mode[rows]] / 1000,
            "devices": np.minimum(held, 1),
            "area": share(held * length),
            "free": self.free[node],
            "staged": layout.staged[rows],
            "streamed": layout.streamed[rows],
            "lacking": self.prospects.lacking[rows],
            "late": decision.end[at] > self.problem.due[tasks],
        }
        return stacked(columns, MODE, len(rows)) * opened[:, None].astype(np.float32)

    @cached_property
    def datasets(self) -> Singles:
        """(D, DATASET) all datasets; of those that no open row reads only where they are and their seats."""
        problem, layout, count = self.problem, self.layout, len(self.problem.dataset_ids)
        opened = np.flatnonzero(self.decision.open)
        inputs = layout.inputs[self.decision.rows[opened]]
        at, column = np.nonzero(inputs >= 0)
        dataset, row = inputs[at, column], opened[at]
        readers = np.bincount(dataset, minlength=count)
        utility = np.bincount(dataset, problem.utility[layout.mode[self.decision.rows[row]]], minlength=count)
        here = ~self.prospects.missing
        columns = {
            "held": np.bincount(problem.replica_dataset, here[:-1], minlength=count) / len(problem.site_ids),
            "seats": self._seats(),
            "demand": self._demand(row, dataset, count),
            "utility": utility / np.maximum(1, readers) / 1000,
            "price": (readers > 0) * self._prices(),
            "delay": _least_by(dataset, share(self.delay[row]), count),
            "regret": _least_by(dataset, share(self.regret[row]), count),
        }
        return stacked(columns, DATASET, count)

    def _seats(self) -> Floats:
        """(D,) free share of the seats of each dataset now; 1 if unlimited."""
        free = np.ones(len(self.problem.dataset_ids))
        for dataset, (resource, most) in self.known.seats.items():
            free[dataset] = self.simulator.table.profiles[resource].at(self.clock) / most
        return free

    def _prices(self) -> Any:
        """(D,) what is to be paid once for each dataset."""
        price = np.zeros(len(self.problem.dataset_ids))
        price[self.problem.purchase_dataset] = self.prospects.unpaid[:-1]
        return share(self.form.cost / self.scales.value * price)

    @cached_property
    def nodes(self) -> Singles:
        """(N, NODE) all nodes."""
        problem, count = self.problem, self.problem.num_nodes
        opened = np.flatnonzero(self.decision.open)
        node = self.layout.node[self.decision.rows[opened]]
        opened, node = opened[node >= 0], node[node >= 0]
        now = self.decision.start[opened] == self.clock
        ends = np.array([self.simulator.table.profiles[n].times[-1] for n in range(count)])
        columns = {
            "devices": self.known.capacity[:-1] / self.known.capacity.max(),
            "free": self.free[:-1],
            "settles": share(np.maximum(0, ends - self.clock) / self.scales.time),
            "room": self._room()[problem.node_site],
            "demand": self._demand(opened, node, count),
            "ready": self._demand(opened[now], node[now], count),
            "regret": _least_by(node, share(self.regret[opened]), count),
        }
        return stacked(columns, NODE, count)

    def _room(self) -> Floats:
        """(S,) free share of the storage of each site now; 1 if unlimited."""
        room = np.ones(len(self.problem.site_ids))
        for site, storage in self.simulator.table.storage.items():
            room[site] = storage.at(self.clock) / max(1, self.problem.site_storage.item(site))
        return room

    @cached_property
    def transfers(self) -> Singles:
        """(S, TRANSFER) routes of the decision."""
        routes, time = self.decision.routes, self.scales.time
        begin = np.minimum(self.prospects.route_start[routes], NEVER)
        need = self.layout.need[self.decision.rows]
        at, column = np.nonzero(need < self.problem.num_replicas)
        demand = self._demand(at, need[at, column], self.problem.num_replicas)
        columns = {
            "open": self.decision.may_stage,
            "ticks": share(self.problem.route_ticks[routes] / time),
            "cost": share(self.form.cost * self.problem.route_cost[routes] / self.scales.value),
            "delay": share(np.maximum(0, begin - self.clock) / time),
            "demand": demand[self.layout.route_replica[routes]] if len(routes) else [],
        }
        return stacked(columns, TRANSFER, len(routes))

    def _demand(self, at: Ints, group: Ints, count: int) -> Any:
        """(count,) share of the waiting tasks with a row at one of the positions in the group."""
        asked = np.zeros((len(self.waiting), count), dtype=bool)
        asked[self.owner[at], group] = True
        return asked.mean(axis=0) if len(self.waiting) else np.zeros(count)


def _least_by(group: Ints, values: Any, count: int) -> Floats:
    """(count,) least value in each group, 1 in an empty one."""
    least = np.ones(count)
    np.minimum.at(least, group, values)
    return least


def stacked(columns: dict[str, Any], names: tuple[str, ...], rows: int) -> Singles:
    """(rows, names) the columns in the order of their names."""
    found = np.empty((rows, len(names)), dtype=np.float32)
    for position, name in enumerate(names):
        found[:, position] = columns[name]
    return found
