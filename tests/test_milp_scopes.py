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
