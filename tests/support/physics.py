"""A small instance in physical units that tests of compile() change in one place each."""

import copy
from typing import Any

from optalloc.compilation import compile
from optalloc.instance import Instance
from optalloc.problem import ACCESS_NAMES, Problem

BASE: dict[str, Any] = {
    "name": "physics",
    "tick_seconds": 60,
    "money_unit_usd": 0.01,
    "sites": [{"id": "here"}, {"id": "there"}],
    "links": [
        {
            "id": "l",
            "from": "there",
            "to": "here",
            "bandwidth_gbps": 1,
            "latency_s": 4,
            "egress_usd_per_gb": 0.1,
        }
    ],
    "datasets": [
        {"id": "near", "size_gb": 10, "sites": ["here"], "relevance": {"vision": 0.8}, "quality": 0.5},
        {"id": "far", "size_gb": 10, "sites": ["there"], "relevance": {"vision": 1}},
    ],
    "device_types": [{"id": "gpu", "memory_gb": 16, "interconnect_gbps": 8}],
    "nodes": [
        {"id": "n", "site": "here", "device_type": "gpu", "devices": 2, "usd_per_device_hour": 3},
    ],
    "models": [{"id": "net", "domain": "vision"}],
    "throughputs": [{"model": "net", "device_type": "gpu", "measured": {"1": 10, "2": 16}}],
    "tasks": [{"id": "t", "model": "net", "samples": 6000, "datasets": ["near"]}],
    "objective": {"levels": [{"makespan": 1}]},
}
"""One task of 6000 samples: 600 s = 10 ticks on one device, 375 s = 7 ticks on two."""


def document(**parts: Any) -> dict[str, Any]:
    """The base instance with some top-level keys replaced."""
    return copy.deepcopy({**BASE, **parts})


def changed(**keys: Any) -> dict[str, Any]:
    """The base instance with keys of its only task added or replaced; None takes a key away."""
    found = document()
    task = {**found["tasks"][0], **keys}
    found["tasks"] = [{key: value for key, value in task.items() if value is not None}]
    return found


def problem_of(found: dict[str, Any]) -> Problem:
    """Compile a document."""
    return compile(Instance(**found))


def shown(problem: Problem) -> list[tuple[Any, ...]]:
    """(datasets with access, devices by node, duration, money, utility) of every mode, in order."""
    return [
        (_data(problem, mode), _devices(problem, mode), *map(int, _numbers(problem, mode)))
        for mode in range(problem.num_modes)
    ]


def _numbers(problem: Problem, mode: int) -> tuple[Any, ...]:
    return problem.duration[mode], problem.money[mode], problem.utility[mode]


def _data(problem: Problem, mode: int) -> str:
    words = []
    for dataset, access, route in problem.inputs(mode):
        links = "" if route < 0 else " " + "-".join(problem.link_ids[i] for i in problem.route_links[route])
        words.append(f"{problem.dataset_ids[dataset]} {ACCESS_NAMES[access]}{links}")
    return ", ".join(words)


def _devices(problem: Problem, mode: int) -> dict[str, int]:
    uses = problem.uses(mode)
    return {problem.node_ids[r]: amount for r, amount in uses if r < problem.num_nodes}
