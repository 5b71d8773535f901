"""Numbers between -1 and 1 about tasks and the ways to run them, the same for every size of problem.

Times are measured in mean durations and values in mean objectives of the tasks seen so far, each alone, and squashed by
x / (1 + abs x). Nothing depends on a task that is not seen.
"""

from typing import Any, Final

import numpy as np

from optalloc.environment.features import Singles, stacked
from optalloc.environment.scales import Floats, share, signed
from optalloc.problem import NEVER, Ints
from optalloc.solvers.learned.board import LATER, REJECT, Board

__all__ = ["MOMENT", "ROW", "TASK", "TIMES", "Event", "Singles"]

MOMENT: Final = ("queue", "waiting", "free", "price", "load", "staged_before")
TASK: Final = (
    "urgency", "weight", "age", "slack", "has_due", "time_left", "has_deadline", "may_reject", "rejection", "sufferage",
    "options",
)  # fmt: skip
ROW: Final = (
    "now", "delay", "duration", "regret", "against_alone", "money", "charge", "charge_shared", "readers", "popularity",
    "devices", "area", "free", "settles", "staged", "streamed", "lacking", "late", "utility", "room", "reject",
    "later",
    "priced",
)  # fmt: skip
TIMES: Final = (
    "urgency", "slack", "time_left", "sufferage", "delay", "duration", "regret", "against_alone", "area", "settles",
    "late", "load", "priced", "money", "price", "rejection",
)  # fmt: skip
"""Features that tell how long something takes, or what its devices cost for that long: a scheduler without predictions
does not see them. The units of the others (means over seen tasks) are the same for all options."""


class Event:
    """The features at one event.

    Parameters
    ----------
    board
        It has begun the event.
    """

    def __init__(self, board: Board):
        self.board, self.ground = board, board.ground
        self.num_task_columns = len(TASK)
        problem, simulator = board.problem, board.simulator
        self.capacity = self.ground.known.capacity
        self.queue = np.array(list(simulator.queue), dtype=np.int64)
        self.moment: Singles = np.zeros(len(MOMENT), dtype=np.float32)
        """(MOMENT,) the moment as a whole."""
        known = self.ground.known
        self.mean_weight = known.weight[self.queue].mean() if len(self.queue) else 1.0
        seen = self.ground.reads[board.seen]
        self.popularity = np.append(seen.mean(axis=0) if len(seen) else np.zeros(seen.shape[1]), 0)
        self.readers = np.append(self.ground.reads[self.queue].sum(axis=0), 0)
        """(D + 1,) tasks of the queue that could read each dataset."""
        load = self.ground.isolated.duration[self.queue].sum() / board.scales.time / self.ground.devices
        self.load = share(load)
        held = problem.replica_dataset[list(simulator.firm.held)]
        self.held_before = share((self.popularity[held] > 0).sum() / 10)

    # the moment -------------------------------------------------------------------------------------------
    def look(self) -> None:
        """Bring up to date what is the same for all rows, after a decision."""
        board = self.board
        table = board.simulator.table
        profiles = table.profiles[: board.problem.num_nodes]
        free = np.array([profile.at(board.clock) for profile in profiles] + [0])
        ends = np.array([profile.times[-1] for profile in profiles] + [0])
        self.free = free / self.capacity
        self.settles = share(np.maximum(0, ends - board.clock) / board.scales.time)
        self.room = self._room()
        count = len(self.queue) / 10
        price = board.price * board.scales.time / board.value
        self.moment = np.array(
            [
                share(count), share(len(board.tasks) / 10), free.sum() / self.ground.devices, share(price), self.load,
                self.held_before,
            ],
            dtype=np.float32,
        )  # fmt: skip

    def _room(self) -> Floats:
        """(S + 1,) free share of the storage of each site now; 1 if unlimited."""
        problem, table = self.board.problem, self.board.simulator.table
        room = np.ones(len(problem.site_ids) + 1)
        for site, storage in table.storage.items():
            room[site] = storage.at(self.board.clock) / max(1, problem.site_storage.item(site))
        return room

    # tasks ------------------------------------------------------------------------------------------------
    def tasks(self, positions: Ints) -> Singles:
        """(P, TASK) tasks by their positions on the board."""
        board, problem, known = self.board, self.board.problem, self.ground.known
        tasks, time = board.waiting[positions], board.scales.time
        shortest = known.shortest[tasks]
        speed = np.log(np.maximum(board.urgency[positions], 1e-300))
        rejectable = board.simulator.scope.rejectable[tasks]
        due, deadline = problem.due[tasks], problem.deadline[tasks]
        cost = self.ground.costs[0].rejection[tasks] / board.scales.value
        columns = {
            "urgency": signed(speed - speed.mean()),
            "weight": share(known.weight[tasks] / max(1e-9, self.mean_weight)),
            "age": share((board.clock - problem.release[tasks]) / time),
            "slack": self._left(due - shortest),
            "has_due": due < NEVER // 2,
            "time_left": self._left(deadline - shortest),
            "has_deadline": deadline < NEVER // 2,
            "may_reject": rejectable,
            "rejection": rejectable * share(cost),
            "sufferage": self._sufferage(positions),
            "options": share(np.diff(board.ptr)[positions] / 100),
        }
        return stacked(columns, TASK, len(positions))

    def _left(self, last: Ints) -> Any:
        given = last < NEVER // 2
        return signed(np.where(given, last - self.board.clock, 0) / self.board.scales.time)

    def _sufferage(self, positions: Ints) -> Floats:
        """What each task loses without the node of its best row; 1 where it has no other."""
        board = self.board
        node = self.ground.layout.node[board.rows]
        favourite = np.where(board.best >= 0, node[board.best], -2)
        elsewhere = np.where(node == favourite[board.owner], np.inf, board.primary)
        full = np.flatnonzero(np.diff(board.ptr))
        second = np.full(len(board.tasks), np.inf)
        if len(full):
            second[full] = np.minimum.reduceat(elsewhere, board.ptr[full])
        best = board.primary[board.best[positions]]
        lost = (second[positions] - best) / board.value
        return np.where(np.isfinite(lost), share(np.maximum(0, np.where(np.isfinite(lost), lost, 0))), 1)

    # rows -------------------------------------------------------------------------------------------------
    def rows(self, at: Ints, best: Ints) -> Singles:
        """(N, ROW) rows by their positions on the board, or what stands in the place of one.

        Parameters
        ----------
        best
            (N,) position of the best row of the same task.
        """
        board, ground, layout = self.board, self.ground, self.ground.layout
        known_at = np.where(at < 0, best, at)
        rows, time, value = board.rows[known_at], board.scales.time, board.value
        tasks, node, dataset = layout.task[rows], layout.node[rows], ground.dataset[rows]
        form = ground.costs[0].form
        price = form.cost / board.scales.value
        length = layout.duration[rows] / time
        held = layout.devices[rows] / self.capacity[node]
        charge = price * board.charge[known_at]
        due = board.problem.due[tasks]
        sunk = ground.costs[0].sunk(tasks, board.clock)
        added = (board.increase[0][known_at] - sunk - ground.isolated.value[tasks]) / board.scales.value
        columns = {
            "now": board.start[known_at] == board.clock,
            "delay": share((board.start[known_at] - board.clock) / time),
            "duration": share(length),
            "regret": share((board.primary[known_at] - board.primary[best]) / value),
            "against_alone": signed(added),
            "money": share(price * ground.money[rows]),
            "charge": share(charge),
            "charge_shared": share(charge / np.maximum(1, self.readers[dataset])),
            "readers": share(self.readers[dataset] / 10),
            "popularity": self.popularity[dataset],
            "devices": np.minimum(held, 1),
            "area": share(held * length),
            "free": self.free[node],
            "settles": self.settles[node],
            "staged": layout.staged[rows],
            "streamed": layout.streamed[rows],
            "lacking": board.prospects.lacking[rows],
            "late": np.where(due < NEVER // 2, signed((board.end[known_at] - due) / time), 0),
            "utility": ground.utility[rows],
            "room": self.room[ground.site[rows]],
            "reject": 0,
            "later": 0,
            "priced": share(board.price * ground.held[rows] / value),
        }
        found = stacked(columns, ROW, len(at))
        for instead, name in ((REJECT, "reject"), (LATER, "later")):
            there = at == instead
            found[there] = 0
            found[there, ROW.index(name)] = 1
        return found
