"""Problems built straight from integers, without an instance: for tests of what sees arrays only.

Tasks and modes are written as small dataclasses; everything is named by its position.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np

from optalloc.problem import (
    CHANNEL,
    DEVICES,
    FREE,
    LOCAL,
    NEVER,
    SEATS,
    STAGED,
    Form,
    Limit,
    Problem,
    Transfer,
)  # fmt: skip

Steps = Sequence[tuple[int, int]]
"""Capacity from a tick on, e.g. [(0, 4), (10, 0)]."""


@dataclass(frozen=True)
class Mode:
    """``uses`` maps resource to amount; resources are numbered nodes first, then channels, then seats."""

    duration: int
    uses: Mapping[int, int]
    money: int = 0
    utility: int = 1000
    needs: Sequence[int] = ()
    buys: Sequence[int] = ()
    available: int = 0
    dataset: int = -1


@dataclass(frozen=True)
class Task:
    """``after`` lists (predecessor, lag); a ``penalty`` makes it rejectable."""

    modes: Sequence[Mode]
    release: int = 0
    due: int = NEVER
    deadline: int = NEVER
    weight: int = 1
    after: Sequence[tuple[int, int]] = ()
    penalty: int | None = None


@dataclass(frozen=True)
class Replica:
    """``routes`` lists (ticks, cost, channel resources)."""

    dataset: int
    site: int = 0
    routes: Sequence[tuple[int, int, Sequence[int]]] = ((1, 0, ()),)
    size: int = 1
    available: int = 0


def make_problem(
    tasks: Sequence[Task],
    nodes: Sequence[int | Steps] = (1,),
    *,
    node_sites: Sequence[int] | None = None,
    channels: Sequence[int] = (),
    seats: Sequence[int] = (),
    replicas: Sequence[Replica] = (),
    storage: Mapping[int, int] | None = None,
    purchases: Sequence[int] = (),
    levels: Sequence[Mapping[str, int]] = ({"weighted_completion": 1, "cost": 1},),
    limits: Mapping[str, int] | None = None,
    state_mode: Sequence[int] | None = None,
    state_start: Sequence[int] | None = None,
    state_transfers: Sequence[Transfer] = (),
) -> Problem:
    """A problem with K = 1 and whole weights; all modes are active."""
    node_sites = [0] * len(nodes) if node_sites is None else node_sites
    sites = 1 + max([*node_sites, *(r.site for r in replicas), 0])
    datasets = 1 + max([*(r.dataset for r in replicas), *(m.dataset for t in tasks for m in t.modes), -1])
    modes = [mode for task in tasks for mode in task.modes]
    owner = [j for j, task in enumerate(tasks) for _ in task.modes]
    kinds = [DEVICES] * len(nodes) + [CHANNEL] * len(channels) + [SEATS] * len(seats)
    capacity = [_steps(c) for c in [*nodes, *channels, *seats]]
    rejectable = _rejectable(tasks)
    routes = [route for replica in replicas for route in replica.routes]
    storage_limits = [(storage or {}).get(s, NEVER) for s in range(sites)]
    return Problem(
        instance=_stub(),
        task_ids=tuple(f"t{j}" for j in range(len(tasks))),
        node_ids=tuple(f"n{n}" for n in range(len(nodes))),
        site_ids=tuple(f"s{s}" for s in range(sites)),
        dataset_ids=tuple(f"d{d}" for d in range(datasets)),
        link_ids=tuple(f"l{r}" for r in range(len(channels))),
        release=_ints(t.release for t in tasks),
        due=_ints(t.due for t in tasks),
        deadline=_ints(t.deadline for t in tasks),
        rejectable=np.array(rejectable, dtype=bool),
        **_csr("pred", [t.after for t in tasks], "task", "lag"),
        mode_ptr=_pointer([t.modes for t in tasks]),
        mode_task=_ints(owner),
        duration=_ints(m.duration for m in modes),
        money=_ints(m.money for m in modes),
        utility=_ints(m.utility for m in modes),
        available=_ints(m.available for m in modes),
        active=np.ones(len(modes), dtype=bool),
        explicit=np.full(len(modes), -1),
        **_csr("use", [sorted(m.uses.items()) for m in modes], "resource", "amount"),
        **_csr("need", [[(k,) for k in m.needs] for m in modes], "replica"),
        **_csr("buy", [[(b,) for b in m.buys] for m in modes], "purchase"),
        **_csr("input", [_inputs(m, replicas) for m in modes], "dataset", "access", "route"),
        node_site=_ints(node_sites),
        resource_kind=_ints(kinds),
        resource_owner=_ints([*range(len(nodes)), *range(len(channels)), *range(len(seats))]),
        resource_label=tuple(f"r{r}" for r in range(len(kinds))),
        **_csr("cap", capacity, "time", "amount"),
        site_storage=_ints(storage_limits),
        replica_dataset=_ints(r.dataset for r in replicas),
        replica_site=_ints(r.site for r in replicas),
        replica_size=_ints(r.size for r in replicas),
        replica_available=_ints(r.available for r in replicas),
        route_ptr=_pointer([r.routes for r in replicas]),
        route_ticks=_ints(ticks for ticks, _, _ in routes),
        route_cost=_ints(cost for _, cost, _ in routes),
        route_links=tuple((q,) for q in range(len(routes))),
        route_channels=tuple(tuple(held) for _, _, held in routes),
        purchase_dataset=_ints(range(len(purchases))),
        purchase_cost=_ints(purchases),
        scale=1,
        levels=tuple(_form(tasks, level) for level in levels),
        limits=tuple(Limit(term, _form(tasks, {term: 1}), most, 1) for term, most in (limits or {}).items()),
        level_weights=tuple({term: Fraction(w) for term, w in level.items()} for level in levels),
        task_weight=tuple(Fraction(t.weight) for t in tasks),
        task_penalty=tuple(Fraction(t.penalty or 0) for t in tasks),
        state_mode=_ints(state_mode if state_mode is not None else [FREE] * len(tasks)),
        state_start=_ints(state_start if state_start is not None else [0] * len(tasks)),
        state_transfers=tuple(state_transfers),
    )


def _stub() -> Any:
    return SimpleNamespace(name="by hand", tasks=(), datasets=(), sites=(), nodes=(), links=())


def _steps(capacity: int | Steps) -> list[tuple[int, int]]:
    return [(0, capacity)] if isinstance(capacity, int) else [(int(t), int(c)) for t, c in capacity]


def _ints(values: Any) -> np.ndarray:
    return np.array(list(values), dtype=np.int64)


def _pointer(lists: Sequence[Sequence[Any]]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum([len(part) for part in lists])]).astype(np.int64)


def _csr(name: str, lists: Sequence[Sequence[Sequence[int]]], *columns: str) -> dict[str, np.ndarray]:
    rows = [row for part in lists for row in part]
    arrays = {f"{name}_{c}": _ints(row[i] for row in rows) for i, c in enumerate(columns)}
    return {f"{name}_ptr": _pointer(lists), **arrays}


def _inputs(mode: Mode, replicas: Sequence[Replica]) -> list[tuple[int, int, int]]:
    if mode.needs:
        return [(replicas[k].dataset, STAGED, -1) for k in mode.needs]
    return [(mode.dataset, LOCAL, -1)] if mode.dataset >= 0 else []


def _rejectable(tasks: Sequence[Task]) -> list[bool]:
    allowed = [task.penalty is not None for task in tasks]
    changed = True
    while changed:
        changed = False
        for j, task in enumerate(tasks):
            for pred, _ in task.after:
                if allowed[pred] and not allowed[j]:
                    allowed[pred], changed = False, True
    return allowed


def _form(tasks: Sequence[Task], weights: Mapping[str, int]) -> Form:
    weight = _ints(t.weight for t in tasks)
    flow = weights.get("weighted_flow", 0)
    return Form(
        makespan=weights.get("makespan", 0),
        cost=weights.get("cost", 0),
        completion=(weights.get("weighted_completion", 0) + flow) * weight,
        tardiness=weights.get("weighted_tardiness", 0) * weight,
        late=weights.get("late", 0) * weight,
        loss=weights.get("utility_loss", 0) * weight,
        rejected=weights.get("rejected", 0) * _ints(t.penalty or 0 for t in tasks),
        placed=-flow * weight * _ints(t.release for t in tasks),
    )
