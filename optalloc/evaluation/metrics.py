"""Figures that are reported beside the objective and never optimised silently: hours, $, GB, shares."""

import math
from fractions import Fraction
from typing import Any

import numpy as np

from optalloc.evaluation.facts import facts
from optalloc.evaluation.terms import cost, makespan
from optalloc.evaluation.view import View
from optalloc.problem import NEVER, REJECTED, entries

__all__ = ["plan_metrics", "task_facts"]


def plan_metrics(view: View) -> dict[str, Any]:
    """All metrics; None where a figure has no meaning (a mean of nothing)."""
    return {
        "makespan_hours": _hours(view, makespan(view)),
        **_flow(view),
        **_punctuality(view),
        **_money(view),
        "moved_gb": _moved_gb(view),
        **_utilisation(view),
        "matching_ratio": _matching_ratio(view),
        "tasks_placed": len(view.task),
        "tasks_rejected": int((view.scope.exists & (view.plan.mode == REJECTED)).sum()),
    }


def _hours(view: View, ticks: int | Fraction) -> float:
    return float(ticks * facts(view.problem).tick_hours)


def _flow(view: View) -> dict[str, float | None]:
    """Time from release to end: its mean, and the least value that 99 % of the placed tasks do not exceed."""
    flow = sorted((view.end - view.problem.release[view.task]).tolist())
    if not flow:
        return {"mean_flow_hours": None, "p99_flow_hours": None}
    p99 = flow[math.ceil(Fraction(99, 100) * len(flow)) - 1]
    return {
        "mean_flow_hours": _hours(view, Fraction(sum(flow), len(flow))),
        "p99_flow_hours": _hours(view, p99),
    }


def _punctuality(view: View) -> dict[str, Any]:
    """Of the tasks with a due date or a deadline: how many end by both. A rejected task does not."""
    problem = view.problem
    by = np.minimum(problem.due, problem.deadline)
    dated = view.scope.exists & (by < NEVER)
    met = int((view.end <= by[view.task])[dated[view.task]].sum())
    of = int(dated.sum())
    return {"deadlines": of, "deadlines_met": met, "due_met": met / of if of else None}


def _money(view: View) -> dict[str, Any]:
    """The cost in $, and what it is for: devices, data prices, moving data (transfers and streams)."""
    problem, known = view.problem, facts(view.problem)
    paying = view.mode[~view.exempt]
    _, at = entries(problem.input_ptr, paying)
    per_use = int(known.use_price[problem.input_dataset[at]].sum())
    which, _, routes = view.streams
    streams = int(problem.route_cost[routes[~view.exempt[which]]].sum())
    _, bought = entries(problem.buy_ptr, view.mode)
    once = int(problem.purchase_cost[np.unique(problem.buy_purchase[bought])].sum())
    moves = sum(transfer.cost for transfer in view.plan.transfers)
    own = int(problem.money[paying].sum())
    parts = {"compute": own - per_use - streams, "data": per_use + once, "transfer": moves + streams}
    return {
        "cost_usd": float(cost(view) * known.money_usd),
        "cost_breakdown_usd": {name: float(part * known.money_usd) for name, part in parts.items()},
    }


def _moved_gb(view: View) -> float:
    """GB that leave a home site: every new transfer and every stream, once each however long the route."""
    which, datasets, _ = view.streams
    streamed = datasets[~view.exempt[which]].tolist()
    moved = [transfer.dataset for transfer in view.new_transfers] + streamed
    sizes = facts(view.problem).size_gb
    return float(sum((sizes[dataset] for dataset in moved), Fraction(0)))


def _utilisation(view: View) -> dict[str, Any]:
    """Device-ticks used over device-ticks available in [0, makespan), per node and over all nodes."""
    problem, span = view.problem, int(makespan(view))
    which, resource, amount = view.uses
    ticks = np.minimum(view.end, span) - np.maximum(view.start, 0)
    used = np.zeros(problem.num_resources)
    np.add.at(used, resource, amount * np.maximum(ticks, 0)[which])
    there = [_device_ticks(view, node, span) for node in range(problem.num_nodes)]
    used_ticks = used[: problem.num_nodes].tolist()
    shares = [u / t if t else None for u, t in zip(used_ticks, there, strict=True)]
    return {
        "utilisation": sum(used_ticks) / sum(there) if sum(there) else None,
        "node_utilisation": dict(zip(problem.node_ids, shares, strict=True)),
    }


def _device_ticks(view: View, node: int, span: int) -> float:
    times, amounts = view.problem.capacity(node)
    lengths = np.diff(np.minimum(np.append(times, NEVER), span))
    return float((lengths.astype(float) * amounts).sum())


def _matching_ratio(view: View) -> float | None:
    """Utility of the chosen data over the best that any mode of the same tasks offers; placed tasks only."""
    best = int(facts(view.problem).best_utility[view.task].sum())
    return int(view.problem.utility[view.mode].sum()) / best if best else None


def task_facts(view: View) -> dict[str, dict[str, Any]]:
    """What became of each placed task."""
    return {view.task_id(at): _task(view, at) for at in range(len(view.task))}


def _task(view: View, at: int) -> dict[str, Any]:
    """What became of one placed task."""
    task, mode = int(view.task[at]), int(view.mode[at])
    problem, end = view.problem, int(view.end[at])
    return {
        "start": int(view.start[at]),
        "end": end,
        "flow_ticks": end - int(problem.release[task]),
        "tardiness_ticks": max(0, end - int(problem.due[task])),
        "money_usd": float(int(problem.money[mode]) * facts(problem).money_usd),
        "utility": int(problem.utility[mode]) / 1000,
    }
