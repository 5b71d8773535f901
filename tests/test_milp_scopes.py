"""Both exact methods agree where parts of a plan are fixed, tasks are left out, or nothing may start before a tick."""

from random import Random

import pytest
from support.random_instances import random_instance

from optalloc.compilation import compile
from optalloc.io.reading import read_instance
from optalloc.problem import FREE, Plan
from optalloc.result import Result
from optalloc.solvers.run import solve


def part_of(plan: Plan, random: Random) -> Plan:
    """About half of the tasks and half of the transfers, independently: readers without their transfer, too."""
    mode = plan.mode.copy()
    mode[[random.random() < 0.5 for _ in mode]] = FREE
    return Plan(mode, plan.start.copy(), tuple(t for t in plan.transfers if random.random() < 0.5))


def outcome(result: Result) -> tuple[str, list[int | None]]:
    """Status and levels."""
    return result.status.value, [
        level.objective for level in result.levels
    ] if result.plan is not None else []


@pytest.mark.parametrize("profile", ["tiny", "small"])
@pytest.mark.parametrize("seed", range(8))
def test_methods_agree_on_a_part(profile: str, seed: int) -> None:
    """Fix a random part of an optimal plan and solve for the rest."""
    problem = compile(read_instance(random_instance(seed, profile)))
    whole = solve(problem, solver="cpsat", time_limit=30, threads=1)
    if whole.plan is None:
        return
    random = Random(seed)
    for _ in range(2):
        given = {"fixed": part_of(whole.plan, random), "not_before": random.choice([0, 1, 4])}
        if random.random() < 0.3:
            given["tasks"] = [task for task in problem.task_ids if random.random() < 0.7]
        highs, cpsat = (
            solve(problem, solver=s, time_limit=30, threads=1, **given) for s in ("highs", "cpsat")
        )
        assert outcome(highs) == outcome(cpsat)


@pytest.mark.parametrize(("storage_gb", "expected"), [(10, 11), (11, 6), (None, 6)])
def test_unread_transfer_of_the_state_takes_room(storage_gb: int | None, expected: int, solver: str) -> None:
    """Data that no mode reads, on their way since tick -1, take 6 GB until they arrive at tick 5."""
    # The task's 5 GB need 5 ticks: with 10 GB they set out at 5, are there at 10, and the run ends at 11.
    # With 11 GB they set out at once: 6.
    instance = read_instance(
        {
            "format": "optalloc-instance/1",
            "name": "unread",
            "tick_seconds": 1,
            "sites": [{"id": "home"}, {"id": "edge", "storage_gb": storage_gb}],
            "links": [{"id": "link", "from": "home", "to": "edge", "bandwidth_gbps": 8}],
            "datasets": [
                {"id": "unread", "size_gb": 6, "sites": ["home"]},
                {"id": "read", "size_gb": 5, "sites": ["home"]},
            ],
            "device_types": [{"id": "gpu"}],
            "nodes": [{"id": "pool", "site": "edge", "device_type": "gpu", "devices": 1}],
            "tasks": [
                {
                    "id": "task",
                    "modes": [
                        {
                            "id": "only",
                            "uses": [{"node": "pool", "devices": 1}],
                            "duration_ticks": 1,
                            "datasets": ["read"],
                        }
                    ],
                }
            ],
            "objective": {"levels": [{"weighted_completion": 1}]},
            "state": {"transfers": [{"dataset": "unread", "site": "edge", "route": ["link"], "start": -1}]},
        }
    )
    result = solve(instance, solver=solver, threads=1)
    assert (result.status.value, result.objective) == ("OPTIMAL", expected)
