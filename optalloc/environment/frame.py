"""One decision, or those of many episodes, as ragged arrays: for learners with networks of their own."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from optalloc.environment.episode import Episode
from optalloc.environment.features import Singles
from optalloc.problem import Bools, Ints

__all__ = ["Frame", "frame_of", "joined"]

_OFFSETS = {
    "task_of_mode": "tasks", "choice_of_mode": "choices", "place_of_mode": "places", "dataset_of_mode": "datasets",
    "node_of_mode": "nodes", "dataset_of_transfer": "datasets",
}  # fmt: skip
"""Column of indices -> what it points into."""


@dataclass(frozen=True, eq=False)
class Frame:
    """What a learner sees, entity by entity, and how the entities hang together.

    With several episodes, their entities stand one after the other and all indices point into the joined arrays; a
    ``..._ptr`` says where those of each episode begin.

    **Options** of an episode, in this order: commit each row, reject each waiting task, bring each transfer, wait.
    An action is the position among them, counted from the episode's own first.

    Attributes
    ----------
    scalars
        (B, GLOBAL) each episode's moment.
    tasks, datasets, nodes, modes, transfers
        (W, TASK), (D, DATASET), (N, NODE), (M, MODE), (S, TRANSFER) features (`optalloc.environment.features`).
    task_ptr, dataset_ptr, node_ptr, mode_ptr, transfer_ptr
        (B + 1,) where those of each episode begin.
    task_of_mode
        (M,) which of ``tasks`` may run so.
    choice_of_mode, place_of_mode
        (M,) numbers, growing with the row, that modes share which have the task and every dataset and access in
        common, or the nodes as well: the levels of the hierarchy task, data, node, devices.
    dataset_of_mode, node_of_mode
        (M,) the first dataset it reads and node it uses; -1 for none.
    dataset_of_transfer
        (S,) what is brought.
    option_ptr
        (B + 1,) where each episode's options begin.
    mask
        (options,) which are possible.
    num_choices, num_places
        How many there are.
    """

    scalars: Singles
    tasks: Singles
    datasets: Singles
    nodes: Singles
    modes: Singles
    transfers: Singles
    task_ptr: Ints
    dataset_ptr: Ints
    node_ptr: Ints
    mode_ptr: Ints
    transfer_ptr: Ints
    task_of_mode: Ints
    choice_of_mode: Ints
    place_of_mode: Ints
    dataset_of_mode: Ints
    node_of_mode: Ints
    dataset_of_transfer: Ints
    option_ptr: Ints
    mask: Bools
    num_choices: int
    num_places: int

    def __len__(self) -> int:
        """Number of episodes."""
        return len(self.scalars)


def frame_of(episode: Episode) -> Frame:
    """The decision of one episode; without options once it is done."""
    features, decision = episode.features, episode.decision
    layout, problem = episode.prepared.layout, episode.problem
    rows = decision.rows
    choice, place = _numbers(layout.choice[rows]), _numbers(layout.place[rows])
    mask = decision.mask & (not episode.done)
    count = len(decision.tasks), len(problem.dataset_ids), problem.num_nodes, len(rows), len(decision.routes)
    task_ptr, dataset_ptr, node_ptr, mode_ptr, transfer_ptr = (np.array([0, each]) for each in count)
    return Frame(
        scalars=features.scalars[None],
        tasks=features.tasks,
        datasets=features.datasets,
        nodes=features.nodes,
        modes=features.modes(),
        transfers=features.transfers,
        task_ptr=task_ptr,
        dataset_ptr=dataset_ptr,
        node_ptr=node_ptr,
        mode_ptr=mode_ptr,
        transfer_ptr=transfer_ptr,
        task_of_mode=features.owner,
        choice_of_mode=choice,
        place_of_mode=place,
        dataset_of_mode=layout.dataset[rows],
        node_of_mode=layout.node[rows],
        dataset_of_transfer=problem.replica_dataset[layout.route_replica[decision.routes]],
        option_ptr=np.array([0, len(mask)]),
        mask=mask,
        num_choices=int(choice[-1]) + 1 if len(rows) else 0,
        num_places=int(place[-1]) + 1 if len(rows) else 0,
    )


def _numbers(keys: Ints) -> Ints:
    """0, 1, ... for each new key; equal keys stand together."""
    return np.cumsum(np.diff(keys, prepend=keys[:1]) != 0)


def joined(frames: Sequence[Frame]) -> Frame:
    """The decisions of several episodes as one frame."""
    if len(frames) == 1:
        return frames[0]
    sizes = {
        "tasks": [len(f.tasks) for f in frames],
        "datasets": [len(f.datasets) for f in frames],
        "nodes": [len(f.nodes) for f in frames],
        "choices": [f.num_choices for f in frames],
        "places": [f.num_places for f in frames],
    }
    before = {name: np.concatenate([[0], np.cumsum(each)[:-1]]) for name, each in sizes.items()}
    found: dict[str, Any] = {}
    for name in (each.name for each in fields(Frame)):
        columns = [getattr(f, name) for f in frames]
        if name.startswith("num_"):
            found[name] = sum(columns)
        elif name.endswith("_ptr"):
            found[name] = np.concatenate([[0], np.cumsum([column[-1] for column in columns])])
        elif name in _OFFSETS:
            shifts = before[_OFFSETS[name]].tolist()
            found[name] = np.concatenate(
                [np.where(c < 0, -1, c + s) for c, s in zip(columns, shifts, strict=True)]
            )
        else:
            found[name] = np.concatenate(columns)
    return Frame(**found)
