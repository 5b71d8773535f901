"""A decision taken level by level: task, then data and access, then node, then devices."""

from copy import copy

import numpy as np

from optalloc.environment.episode import Episode
from optalloc.environment.features import DATASET, GLOBAL, MODE, NODE, TASK, TRANSFER, Singles
from optalloc.environment.sizes import Sizes
from optalloc.environment.views import Arrays, Shapes, fill, write_places
from optalloc.problem import Bools, Ints
from optalloc.simulation import Action, Reject, Stage, Wait

__all__ = ["LEVELS", "FactoredView"]

LEVELS = ("task", "data", "node", "devices")

_TASK, _DATA, _NODE, _DEVICES = range(4)
_PARTS = (
    slice(0, len(TASK)),
    slice(len(TASK), len(TASK) + len(MODE)),
    slice(len(TASK) + len(MODE), len(TASK) + len(MODE) + len(TRANSFER)),
)
"""Columns of an option: those of a task, of its best row, of a transfer; 0 where they do not apply."""
_MOST = np.iinfo(np.int64).max


class FactoredView:
    """One level of a decision at a time; a level at which one option is possible is passed over.

    ======= ===================================================================================
    level   options
    ======= ===================================================================================
    task    waiting tasks by release, in the first ``tasks`` places; then the transfers; waiting
    data    datasets with their accesses; behind the ``choices`` places: reject the task
    node    nodes for these data
    devices modes on this node, by their number of devices
    ======= ===================================================================================

    Options of a task, data choice or node are described by the best row below them: the one that adds least to the
    objective among those that are possible.
    """

    def __init__(self, sizes: Sizes):
        self.sizes = sizes
        self.size = max(sizes.tasks + sizes.transfers + 1, sizes.choices + 1, sizes.places, sizes.counts)
        self.shapes: Shapes = {
            "scalars": (len(GLOBAL),),
            "level": (len(LEVELS),),
            "chosen": (_PARTS[1].stop,),
            "options": (self.size, _PARTS[2].stop),
            "datasets": (sizes.datasets, len(DATASET)),
            "dataset_mask": (sizes.datasets,),
            "nodes": (sizes.nodes, len(NODE)),
            "node_mask": (sizes.nodes,),
            "mask": (self.size,),
        }

    def begin(self, episode: Episode) -> None:
        """A new decision, at the level of the task."""
        self.episode, self.decision = episode, episode.decision
        self.features = episode.features
        self.level, self._task = _TASK, -1
        self._below = slice(0, 0)
        self._set_mask()

    # levels -----------------------------------------------------------------------------------------------
    def _groups(self) -> Ints:
        """First row of each option of this level, among the rows of the decision."""
        if self.level == _TASK:
            return self.decision.prospects.ptr[:-1]
        layout, rows = self.decision.prospects.layout, self.decision.rows[self._below]
        keys = {_DATA: layout.choice, _NODE: layout.place}
        labels = keys[self.level][rows] if self.level in keys else rows
        return self._below.start + np.flatnonzero(np.diff(labels, prepend=-1))

    @property
    def _stop(self) -> int:
        """Behind the last row of this level."""
        return len(self.decision.rows) if self.level == _TASK else self._below.stop

    def _set_mask(self) -> None:
        sizes, decision = self.sizes, self.decision
        self._first = self._groups()
        self._mask = np.zeros(self.size, dtype=bool)
        if self.episode.done:
            return
        counted = np.concatenate([[0], np.cumsum(decision.open)])
        possible = np.diff(counted[np.append(self._first, self._stop)]) > 0
        if self.level == _TASK:
            possible = (possible | decision.may_reject)[: sizes.tasks]
            transfers = decision.may_stage[: sizes.transfers]
            self._mask[sizes.tasks : sizes.tasks + len(transfers)] = transfers
            self._mask[sizes.tasks + sizes.transfers] = decision.may_wait
        elif self.level == _DATA:
            self._mask[sizes.choices] = decision.may_reject[self._task]
        self._mask[: len(possible)] = possible

    def mask(self) -> Bools:
        """(size,) options of this level that are possible now."""
        return self._mask.copy()

    def choose(self, option: int) -> Action | None:
        """Take a possible option; None: the next level is to be decided."""
        action = self._take(option)
        while action is None and self._mask.sum() == 1:
            action = self._take(int(self._mask.argmax()))
        return action

    def _take(self, option: int) -> Action | None:
        sizes, decision = self.sizes, self.decision
        if self.level == _TASK and option >= sizes.tasks:
            ahead = option - sizes.tasks
            behind = len(decision.rows) + len(decision.tasks)
            last = behind + len(decision.routes)
            return decision.action(last if ahead == sizes.transfers else behind + ahead)
        if self.level == _DATA and option == sizes.choices:
            return Reject(decision.tasks[self._task])
        if self.level == _DEVICES:
            return decision.action(int(self._first[option]))
        if self.level == _TASK:
            self._task = option
        ends = np.append(self._first, self._stop)[1:]
        self._below = slice(int(self._first[option]), int(ends[option]))
        self.level += 1
        self._set_mask()
        return None

    def path(self, action: Action) -> list[int]:
        """The options, level by level from the task on, that lead to an action.

        Raises
        ------
        ValueError
            It is not shown, or not possible.
        """
        probe, found = copy(self), []
        probe.begin(self.episode)
        taken = None
        while taken is None:
            option = probe._towards(action)
            if not (0 <= option < self.size and probe._mask[option]):
                raise ValueError(f"{action} is not shown or not possible now.")
            found.append(option)
            taken = probe.choose(option)
        if taken != action:  # the only possible option below is another one
            raise ValueError(f"{action} is not shown or not possible now.")
        return found

    def _towards(self, action: Action) -> int:
        """The option of this level below which an action lies."""
        sizes, decision = self.sizes, self.decision
        position = decision.option(action)
        if isinstance(action, Wait):
            return sizes.tasks + sizes.transfers
        if isinstance(action, Stage):
            place = position - len(decision.rows) - len(decision.tasks)
            return sizes.tasks + place if place < sizes.transfers else self.size
        if self.level == _TASK:
            place = decision.tasks.index(action.task)
            return place if place < sizes.tasks else self.size
        if isinstance(action, Reject):
            return sizes.choices
        return int(np.searchsorted(self._first, position, side="right")) - 1

    # observation ------------------------------------------------------------------------------------------
    def write(self, out: Arrays) -> None:
        """Write the observation into arrays of zeros."""
        features = self.features
        write_places(features, out)
        out["scalars"][:] = features.scalars
        out["level"][self.level] = 1
        out["mask"][:] = self._mask
        tasks, modes, transfers = (out["options"][:, columns] for columns in _PARTS)
        places = self.sizes.tasks if self.level == _TASK else self.size
        fill(modes[:places], self._of_best(self._first, self._stop))
        if self.level == _TASK:
            fill(tasks[:places], features.tasks)
            fill(transfers[places : places + self.sizes.transfers], features.transfers)
        else:
            best = self._of_best(np.array([self._below.start]), self._stop)[0]
            out["chosen"][:] = np.concatenate([features.tasks[self._task], best])

    def _of_best(self, first: Ints, stop: int) -> Singles:
        """Features of the row that adds least in each stretch of rows; 0 where none is possible."""
        increase = np.where(self.decision.open, self.decision.increase, _MOST)
        stretches = zip(first.tolist(), np.append(first, stop)[1:].tolist(), strict=True)
        best = [begin + int(increase[begin:end].argmin()) if end > begin else -1 for begin, end in stretches]
        rows = np.array(best, dtype=np.int64)
        found = np.zeros((len(rows), len(MODE)), dtype=np.float32)
        found[rows >= 0] = self.features.modes(rows[rows >= 0])
        return found
