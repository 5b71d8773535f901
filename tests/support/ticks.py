"""Slow and plain: is a plan allowed, tick by tick? Written for the tests of the placement kernel alone."""

import numpy as np

from optalloc.problem import FREE, NEVER, Plan, Problem
from optalloc.scope import Scope


def broken(scope: Scope, plan: Plan) -> list[str]:
    """What is wrong with the placed tasks and transfers of a plan (tasks not decided yet are left out)."""
    problem = scope.problem
    placed = np.flatnonzero(plan.mode >= 0).tolist()
    wrong = [fault for task in placed for fault in _task_faults(scope, plan, task)]
    wrong += _transfer_faults(scope, plan)
    until = max([1, *(_end(problem, plan, j) for j in placed), *(t.end for t in plan.transfers)])
    for tick in range(until):
        wrong += _use_faults(problem, plan, placed, tick)
        wrong += _storage_faults(problem, plan, placed, tick)
    return wrong


def _end(problem: Problem, plan: Plan, task: int) -> int:
    return int(plan.start[task] + problem.duration[plan.mode[task]])


def _task_faults(scope: Scope, plan: Plan, task: int) -> list[str]:
    problem, mode, start = scope.problem, int(plan.mode[task]), int(plan.start[task])
    arrivals = {t.replica: t.end for t in plan.transfers}
    wrong = []
    if problem.mode_task[mode] != task:
        wrong.append(f"task {task}: mode of another task")
    if scope.mode[task] == FREE:
        first = max(problem.release[task], problem.available[mode], scope.not_before)
        if start < first or _end(problem, plan, task) > problem.deadline[task]:
            wrong.append(f"task {task}: outside its window")
        if any(start < arrivals.get(k, NEVER) for k in problem.needs(mode)):
            wrong.append(f"task {task}: data not there")
    for pred, lag in problem.predecessors(task):
        if plan.mode[pred] >= 0 and start < _end(problem, plan, pred) + lag:
            wrong.append(f"task {task}: too early after {pred}")
    return wrong


def _transfer_faults(scope: Scope, plan: Plan) -> list[str]:
    problem = scope.problem
    pairs = [(t.dataset, t.site) for t in plan.transfers]
    wrong = ["two transfers of one replica"] if len(set(pairs)) < len(pairs) else []
    for transfer in set(plan.transfers) - set(scope.transfers):
        if transfer.start < max(problem.replica_available[transfer.replica], scope.not_before):
            wrong.append(f"replica {transfer.replica}: transfer too early")
    return wrong


def _use_faults(problem: Problem, plan: Plan, placed: list[int], tick: int) -> list[str]:
    used = [0] * problem.num_resources
    for task in placed:
        if plan.start[task] <= tick < _end(problem, plan, task):
            for resource, amount in problem.uses(int(plan.mode[task])):
                used[resource] += amount
    for transfer in plan.transfers:
        if transfer.start <= tick < transfer.end:
            for channel in transfer.channels:
                used[channel] += 1
    return [
        f"resource {resource} overloaded at {tick}"
        for resource, amount in enumerate(used)
        if amount > capacity_at(problem, resource, tick)
    ]


def capacity_at(problem: Problem, resource: int, tick: int) -> int:
    """Capacity of a resource at one tick."""
    times, amounts = problem.capacity(resource)
    return int(amounts[np.searchsorted(times, tick, side="right") - 1])


def _storage_faults(problem: Problem, plan: Plan, placed: list[int], tick: int) -> list[str]:
    taken = [0] * len(problem.site_storage)
    for transfer in plan.transfers:
        ends = [
            _end(problem, plan, j) for j in placed if transfer.replica in problem.needs(int(plan.mode[j]))
        ]
        if transfer.start <= tick < max([transfer.end, *ends]):
            taken[transfer.site] += int(problem.replica_size[transfer.replica])
    return [f"site {s} overfull at {tick}" for s, size in enumerate(taken) if size > problem.site_storage[s]]
