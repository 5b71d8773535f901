"""From ids to indices, worked out once per problem."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar
from weakref import WeakKeyDictionary

from optalloc.problem import Problem

__all__ = ["Names", "names", "once_each"]

Key = TypeVar("Key")
Answer = TypeVar("Answer")


def once_each(function: Callable[[Key], Answer]) -> Callable[[Key], Answer]:
    """Work out the answer once and keep it for as long as its key lives; it must not hold the key."""
    known: WeakKeyDictionary[Key, Answer] = WeakKeyDictionary()

    def answer(key: Key) -> Answer:
        if key not in known:
            known[key] = function(key)
        return known[key]

    return answer


@dataclass(frozen=True, eq=False)
class Names:
    """Indices by id.

    Attributes
    ----------
    explicit
        Per task: id of an explicit mode -> its position in the task's list.
    homes
        Per dataset: sites that hold it from the start.
    link_ends
        Per link: (from site, to site).
    """

    task: dict[str, int]
    node: dict[str, int]
    site: dict[str, int]
    dataset: dict[str, int]
    link: dict[str, int]
    explicit: tuple[dict[str, int], ...]
    homes: tuple[frozenset[int], ...]
    link_ends: tuple[tuple[int, int], ...]


@once_each
def names(problem: Problem) -> Names:
    """The ids of a problem."""
    instance = problem.instance
    site = _positions(problem.site_ids)
    tasks = {task.id: task for task in instance.tasks}
    datasets = {dataset.id: dataset for dataset in instance.datasets}
    links = {link.id: link for link in instance.all_links}
    return Names(
        task=_positions(problem.task_ids),
        node=_positions(problem.node_ids),
        site=site,
        dataset=_positions(problem.dataset_ids),
        link=_positions(problem.link_ids),
        explicit=tuple(_positions([mode.id for mode in tasks[id].modes or ()]) for id in problem.task_ids),
        homes=tuple(frozenset(site[s] for s in datasets[id].sites) for id in problem.dataset_ids),
        link_ends=tuple((site[links[id].from_], site[links[id].to]) for id in problem.link_ids),
    )


def _positions(ids: Sequence[str]) -> dict[str, int]:
    return {id: position for position, id in enumerate(ids)}
