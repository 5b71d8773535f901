"""What compile left out, in sentences for people."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np

from optalloc.compilation.modes import ModeMaker, TaskModes
from optalloc.compilation.network import MAX_CHAINS, MAX_STEPS, Network
from optalloc.compilation.units import permille_up
from optalloc.instance import Instance, Mode, Task
from optalloc.problem import Bools

__all__ = ["MAX_NOTES", "capped_pairs", "dropped_options", "exclusions", "joined"]

MAX_NOTES: Final = 20
"""Tasks whose dropped options are told one by one."""
_MAX_NAMES: Final = 5


def joined(names: Iterable[str]) -> str:
    """Names as a list for people; long lists are cut."""
    listed = list(names)
    more = f" and {len(listed) - _MAX_NAMES} more" if len(listed) > _MAX_NAMES else ""
    return ", ".join(listed[:_MAX_NAMES]) + more


def capped_pairs(network: Network) -> list[str]:
    """A note if some pair of sites has more simple paths than were taken."""
    if not network.capped:
        return []
    pairs = [f"{network.site_ids[a]} to {network.site_ids[b]}" for a, b in sorted(network.capped)]
    found = f"Routes: {len(pairs)} pairs of sites have too many simple paths ({joined(pairs)})"
    limit = f"at most {MAX_CHAINS} a pair are taken, fewest links first, after at most {MAX_STEPS} steps of search"
    return [f"{found}; {limit}. Optimality is among plans over these routes."]


def dropped_options(instance: Instance, maker: ModeMaker, made: Sequence[TaskModes]) -> list[str]:
    """One note for each of the first tasks that lost options but not all of them."""
    notes: list[str] = []
    for task, modes in zip(instance.tasks, made, strict=True):
        if len(notes) == MAX_NOTES:
            return [*notes, f"Only the first {MAX_NOTES} tasks with dropped options are listed."]
        reasons = list(exclusions(maker, task, modes.over_budget)) if len(modes) else []
        if reasons:
            notes.append(f"Task {task.id}: dropped {'; '.join(reasons)}.")
    return notes


def exclusions(maker: ModeMaker, task: Task, over_budget: int) -> Iterator[str]:
    """What each filter takes away from a task."""
    if task.modes is None:
        yield from _places(maker, task)
        yield from _data(maker, task)
    else:
        yield from _explicit(maker, task, task.modes)
    if over_budget:
        yield f"{over_budget} modes over the budget of ${task.budget_usd}"


def _names(maker: ModeMaker, mask: Bools) -> str:
    return joined(maker.options.nodes[index].id for index in np.flatnonzero(mask).tolist())


def _places(maker: ModeMaker, task: Task) -> Iterator[str]:
    """Nodes that do not come into question."""
    options = maker.options
    if maker.samples(task) is None and task.reference is not None:
        yield f"everything: {task.model} has no throughput on its reference {task.reference.device_type}"
    here = options.at_allowed_site(task)
    if not here.any():
        yield "all nodes: none is at an allowed site"
    small = here & ~options.has_memory(task)
    if small.any():
        yield f"nodes {_names(maker, small)} (memory: a device needs {task.memory_gb_per_device} GB)"
    poor = here & ~options.has_extra(task)
    if poor.any():
        yield f"nodes {_names(maker, poor)} (extra: {joined(f'{k} {v}' for k, v in task.extra.items())})"
    known = np.zeros(len(here), dtype=bool)
    known[options.base(task).node] = True
    if (here & ~known).any():
        yield f"nodes {_names(maker, here & ~known)} (no throughput of {task.model} for an allowed device count)"


def _data(maker: ModeMaker, task: Task) -> Iterator[str]:
    """Datasets that are too poor or cannot be reached."""
    candidates, book = maker.candidates, maker.choices.book
    utility = candidates.utilities(candidates.domain(task))
    inputs = candidates.inputs(task)
    least = permille_up(task.min_utility)
    for listed, _, floor in inputs:
        wanted = max(least, floor) if len(inputs) == 1 else floor
        poor = [book.datasets[d].id for d in listed if utility[d] < wanted]
        if poor or not listed:
            yield f"datasets {joined(poor) or '(no candidate)'} (utility below {wanted} permille)"
    if len(inputs) > 1 and not candidates.choices(task):
        yield f"all combinations of datasets (utility below {least} permille, or not different)"
    yield from _unreachable(maker, task, sorted({d for listed, _, _ in inputs for d in listed}))


def _unreachable(maker: ModeMaker, task: Task, datasets: Sequence[int]) -> Iterator[str]:
    choices = maker.choices
    for site in maker.options.options(task).sites:
        lost = [choices.book.datasets[d].id for d in datasets if not choices.accesses(d, site)]
        if lost:
            yield f"datasets {joined(lost)} at site {choices.book.network.site_ids[site]} (no route)"


def _explicit(maker: ModeMaker, task: Task, modes: Sequence[Mode]) -> Iterator[str]:
    options, least = maker.options, permille_up(task.min_utility)
    elsewhere = ~options.at_allowed_site(task)
    for mode in modes:
        uses = maker.placement(mode)
        if any(devices > options.nodes[node].devices for node, devices in uses):
            yield f"mode {mode.id} (larger than a node)"
        elif any(elsewhere[node] for node, _ in uses):
            yield f"mode {mode.id} (not at an allowed site)"
        elif mode.utility < least:
            yield f"mode {mode.id} (utility below {least} permille)"
        else:
            site = int(options.node_site[uses[0][0]])
            lost = [
                d for d in maker.candidates.explicit(mode.datasets) if not maker.choices.accesses(d, site)
            ]
            if lost:
                names = joined(maker.choices.book.datasets[d].id for d in lost)
                yield f"mode {mode.id} (no route for {names})"
