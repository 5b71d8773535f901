"""A decision as a learner with fixed sizes sees it: numbered options with a mask, padded arrays."""

import numpy as np

from optalloc.environment.episode import Episode
from optalloc.environment.features import DATASET, GLOBAL, MODE, NODE, TASK, TRANSFER, Features, Singles
from optalloc.environment.sizes import Sizes
from optalloc.problem import Bools, Ints
from optalloc.simulation import Action

__all__ = ["Arrays", "FlatView", "Shapes", "fill", "write_places"]

Shapes = dict[str, tuple[int, ...]]
"""Part of the observation -> its shape before it is laid out in a row."""
Arrays = dict[str, Singles]


def fill(out: Singles, values: Singles) -> None:
    """Write the first rows, as far as there is room."""
    count = min(len(out), len(values))
    out[:count] = values[:count]


def write_places(features: Features, out: Arrays) -> None:
    """The parts that all views share: datasets and nodes, and how many of them there are."""
    for name, values in (("datasets", features.datasets), ("nodes", features.nodes)):
        fill(out[name], values)
        out[f"{name[:-1]}_mask"][: len(values)] = 1


class FlatView:
    """Every option of a decision at once.

    The option ``i`` commits mode ``i % modes`` of waiting task ``i // modes`` for ``i < tasks * modes`` (modes in the
    order data, node, devices); then come a rejection for each task, the transfers, and waiting.
    """

    def __init__(self, sizes: Sizes):
        self.sizes = sizes
        self.size = sizes.tasks * sizes.modes + sizes.tasks + sizes.transfers + 1
        self.shapes: Shapes = {
            "scalars": (len(GLOBAL),),
            "tasks": (sizes.tasks, len(TASK)),
            "task_mask": (sizes.tasks,),
            "datasets": (sizes.datasets, len(DATASET)),
            "dataset_mask": (sizes.datasets,),
            "nodes": (sizes.nodes, len(NODE)),
            "node_mask": (sizes.nodes,),
            "modes": (sizes.tasks, sizes.modes, len(MODE)),
            "transfers": (sizes.transfers, len(TRANSFER)),
            "mask": (self.size,),
        }

    def begin(self, episode: Episode) -> None:
        """A new decision."""
        self.episode, self.decision = episode, episode.decision
        self._option = self._numbers()
        """Number of each of the decision's options here; ``size`` for those that are not shown."""
        self._mask = np.zeros(self.size + 1, dtype=bool)
        if not episode.done:
            self._mask[self._option] = self.decision.mask
        self._mask = self._mask[:-1]

    def _numbers(self) -> Ints:
        sizes, ptr = self.sizes, self.decision.prospects.ptr
        shown = min(len(self.decision.tasks), sizes.tasks)
        owner = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
        local = np.arange(ptr[-1]) - ptr[:-1][owner]
        commits = np.where(owner < shown, owner * sizes.modes + local, self.size)
        first = sizes.tasks * sizes.modes
        groups = ((len(ptr) - 1, sizes.tasks), (len(self.decision.routes), sizes.transfers), (1, 1))
        others = []
        for count, places in groups:
            position = np.arange(count)
            others.append(np.where(position < places, first + position, self.size))
            first += places
        return np.concatenate([commits, *others])

    def mask(self) -> Bools:
        """(size,) options that are possible now."""
        return self._mask.copy()

    def choose(self, option: int) -> Action:
        """The action of a possible option."""
        return self.decision.action(int(np.flatnonzero(self._option == option)[0]))

    def path(self, action: Action) -> list[int]:
        """The options that lead to an action: one.

        Raises
        ------
        ValueError
            It is not shown, or not possible.
        """
        option = int(self._option[self.decision.option(action)])
        if option >= self.size or not self._mask[option]:
            raise ValueError(f"{action} is not shown or not possible now.")
        return [option]

    def write(self, out: Arrays) -> None:
        """Write the observation into arrays of zeros."""
        features = self.episode.features
        out["scalars"][:] = features.scalars
        out["mask"][:] = self._mask
        fill(out["tasks"], features.tasks)
        out["task_mask"][: len(self.decision.tasks)] = 1
        write_places(features, out)
        rows = self._option[: len(self.decision.rows)]
        shown = rows < self.size
        out["modes"].reshape(-1, len(MODE))[rows[shown]] = features.modes(shown)
        fill(out["transfers"], features.transfers)
