"""A small world of two sites, written out, in which every rule has something to say.

Ticks last a minute, money units are cents. Site ``b`` has room for 12 GB; link ``ab`` carries one thing at a
time and takes one tick for 6 GB, at $3. Node ``n`` (at ``b``) has 4 devices for 30 ticks; node ``m`` (at
``a``) has 4 devices and 2 cpu for ever. All datasets live at ``a``: ``d``, ``e``, ``g`` of 6 GB, and ``f``
with one licence seat.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from optalloc.compilation import compile as compile_problem
from optalloc.instance import Instance, read_instance
from optalloc.problem import ABSENT, REJECTED, Plan, Problem

__all__ = ["STARTS", "TRANSFERS", "instance", "plan_of", "problem", "run"]

STARTS: Mapping[str, int | None] = {
    "t0": 2, "t1": 4, "t2": 6, "t3": 8, "t4": 10, "t5": 12, "t6": 15, "t7": 17,
}  # fmt: skip
"""A valid plan of `instance`: start of each task (None: rejected) in its only mode."""

TRANSFERS: Mapping[str, int] = {"d": 0, "e": 2, "g": 10}
"""With it: start of the transfer of each dataset over link ``ab``."""


def run(node: str, devices: int, ticks: int, *datasets: str, **more: Any) -> dict[str, Any]:
    """An explicit mode."""
    use = {"node": node, "devices": devices}
    return {"id": "only", "uses": [use], "duration_ticks": ticks, "datasets": list(datasets), **more}


def tasks() -> list[dict[str, Any]]:
    """Eight tasks with one mode each; t2 and t3 need 1.5 cpu; t6 and t7 may be rejected."""
    physics = {"model": "net", "samples": 120, "sites": ["a"], "extra": {"cpu": 1.5}}
    return [
        {"id": "t0", "modes": [run("n", 1, 3, "d", usd=1)]},
        {"id": "t1", "release_s": 240, "modes": [run("n", 1, 3, "e")]},
        {"id": "t2", "after": [{"id": "t0", "lag_s": 60}], "datasets": [], **physics},
        {"id": "t3", "datasets": ["f"], **physics},
        {"id": "t4", "due_s": 600, "modes": [run("m", 1, 2, "f", utility=700)]},
        {"id": "t5", "deadline_s": 1200, "modes": [run("n", 4, 3, "g")]},
        {"id": "t6", "reject_penalty": 5, "modes": [run("m", 1, 2)]},
        {"id": "t7", "reject_penalty": 5, "after": [{"id": "t6"}], "modes": [run("m", 1, 2)]},
    ]


def instance(**changes: Any) -> Instance:
    """The world; ``changes`` replace top-level keys."""
    dataset = {"size_gb": 6, "sites": ["a"]}
    document: dict[str, Any] = {
        "format": "optalloc-instance/1",
        "name": "world",
        "tick_seconds": 60,
        "money_unit_usd": 0.01,
        "sites": [{"id": "a"}, {"id": "b", "storage_gb": 12}],
        "links": [
            {
                "id": "ab",
                "from": "a",
                "to": "b",
                "bandwidth_gbps": 0.8,
                "egress_usd_per_gb": 0.5,
                "channels": 1,
            }
        ],
        "datasets": [
            {"id": "d", **dataset},
            {"id": "e", **dataset},
            {"id": "f", **dataset, "available_s": 120, "max_readers": 1, "price_usd": 2, "pricing": "once"},
            {"id": "g", **dataset, "available_s": 480, "price_usd": 0.25},
        ],
        "device_types": [{"id": "gpu"}],
        "nodes": [
            {"id": "n", "site": "b", "device_type": "gpu", "devices": 4, "availability": [[0, 1800, 4]]},
            {"id": "m", "site": "a", "device_type": "gpu", "devices": 4, "extra": {"cpu": 2}},
        ],
        "models": [{"id": "net", "domain": "x"}],
        "throughputs": [{"model": "net", "device_type": "gpu", "measured": {"1": 1}}],
        "tasks": tasks(),
        "objective": {"levels": [{"makespan": 1, "rejected": 1}], "limits": {"makespan": 35}},
    }
    return read_instance(document | changes)


def problem(**changes: Any) -> Problem:
    """`instance`, compiled."""
    return compile_problem(instance(**changes))


def plan_of(
    problem: Problem,
    starts: Mapping[str, int | None] = STARTS,
    transfers: Mapping[str, int] | Sequence[tuple[str, int]] = TRANSFERS,
) -> Plan:
    """A plan in which each task runs in its first mode over the only route; tasks left out are absent."""
    mode, start = problem.mode_ptr[:-1].copy(), problem.release * 0
    for task, name in enumerate(problem.task_ids):
        at = starts.get(name, -1) if name in starts else ABSENT
        mode[task] = ABSENT if at == ABSENT else REJECTED if at is None else mode[task]
        start[task] = at if mode[task] >= 0 else 0
    pairs = transfers.items() if isinstance(transfers, Mapping) else transfers
    site = problem.site_ids.index("b")
    moved = []
    for name, begin in pairs:
        replica = problem.replica_of[problem.dataset_ids.index(name), site]
        moved.append(problem.transfer(replica, problem.routes_of(replica)[0], begin))
    return Plan(mode, start, tuple(moved))
