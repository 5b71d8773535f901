"""How large the fixed-size observation is."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace

import numpy as np

from optalloc.environment.layout import Layout
from optalloc.errors import Fault, InputError
from optalloc.problem import Ints

__all__ = ["Sizes"]

_WINDOWS = ("tasks", "transfers")


@dataclass(frozen=True)
class Sizes:
    """Places in a padded observation; everything of an instance has to fit, but for waiting tasks and transfers.

    Attributes
    ----------
    tasks
        Waiting tasks that are shown: the first by release. The others come up as these are decided.
    modes
        Modes of one task.
    choices, places, counts
        Data choices of a task, nodes for one choice, device counts on one node (levels of the hierarchical view).
    datasets, nodes
        Of the instance.
    transfers
        Transfers that are shown.
    """

    tasks: int
    modes: int
    choices: int
    places: int
    counts: int
    datasets: int
    nodes: int
    transfers: int

    @classmethod
    def of(cls, layout: Layout) -> "Sizes":
        """The least sizes for one problem."""
        problem = layout.problem
        task_of_choice = _firsts(layout.choice, layout.task)
        choice_of_place = _firsts(layout.place, layout.choice)
        return cls(
            tasks=problem.num_tasks,
            modes=int(np.diff(layout.ptr).max(initial=1)),
            choices=_most(task_of_choice),
            places=_most(choice_of_place),
            counts=_most(layout.place),
            datasets=len(problem.dataset_ids),
            nodes=problem.num_nodes,
            transfers=len(layout.route_replica),
        )

    @classmethod
    def largest(cls, sizes: Iterable["Sizes"]) -> "Sizes":
        """Sizes in which each of the given ones fits."""
        rows = [asdict(each) for each in sizes]
        return cls(**{name: max(row[name] for row in rows) for name in rows[0]})

    def with_margin(self) -> "Sizes":
        """Half as large again where instances of one generator differ."""
        kept = ("tasks", "datasets", "nodes")
        return Sizes(**{name: n if name in kept else n + (n + 1) // 2 for name, n in asdict(self).items()})

    def changed(self, given: Mapping[str, int]) -> "Sizes":
        """These sizes with some replaced.

        Raises
        ------
        InputError
            A name is not known, or a size is no whole number >= 1.
        """
        known = asdict(self)
        faults = [
            Fault(
                f"sizes.{name}",
                f"is not known; there are {', '.join(known)}"
                if name not in known
                else "must be an integer >= 1",
            )
            for name, size in given.items()
            if name not in known or isinstance(size, bool) or not isinstance(size, int) or size < 1
        ]
        if faults:
            raise InputError(faults)
        return replace(self, **given)

    def check(self, layout: Layout) -> None:
        """Refuse a problem that does not fit.

        Raises
        ------
        InputError
            With every size that is passed.
        """
        mine, needed = asdict(self), asdict(Sizes.of(layout))
        faults = [
            Fault(
                f"sizes.{name}", f"{mine[name]} is too small: {layout.problem.instance.name!r} needs {count}"
            )
            for name, count in needed.items()
            if name not in _WINDOWS and mine[name] < count
        ]
        if faults:
            raise InputError(faults)


def _firsts(group: Ints, value: Ints) -> Ints:
    """The value of each group; groups stand together."""
    return value[np.flatnonzero(np.diff(group, prepend=-1))]


def _most(group: Ints) -> int:
    """How often the most frequent value stands there; at least 1."""
    return int(np.bincount(group).max(initial=1)) if len(group) else 1
