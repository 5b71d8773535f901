"""Decisions as JSON lines, named by content."""

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optalloc.io.atomic import write_text
from optalloc.placement import Placement
from optalloc.problem import ACCESS_NAMES, Problem, Transfer

if TYPE_CHECKING:
    from optalloc.simulation.simulator import Simulator

__all__ = ["Trace", "entry", "write_trace"]

Trace = Callable[[dict[str, Any]], None]
"""Called with one decision or step of the clock."""


def write_trace(lines: Iterable[Mapping[str, Any]], path: str | Path) -> None:
    """One JSON object a line."""
    write_text(Path(path), "".join(json.dumps(line) + "\n" for line in lines))


def entry(
    simulator: "Simulator",
    action: str,
    *,
    placement: Placement | None = None,
    for_good: bool = True,
    transfer: Transfer | None = None,
    task: int | None = None,
    until: int | None = None,
    reason: str = "",
) -> dict[str, Any]:
    """What has just happened; ``values`` are those of what is decided for good."""
    problem = simulator.problem
    row: dict[str, Any] = {"clock": simulator.clock, "action": action}
    if placement is not None:
        row |= _placed(problem, placement) | {"for_good": for_good}
    if transfer is not None:
        row["transfer"] = _moved(problem, transfer)
    if task is not None:
        row["task"] = problem.task_ids[task]
    if until is not None:
        row["until"] = until
    if reason:
        row["reason"] = reason
    return row | {"queue": len(simulator.queue), "values": list(simulator.values)}


def _placed(problem: Problem, placement: Placement) -> dict[str, Any]:
    return {
        "task": problem.task_ids[placement.task],
        "start": placement.start,
        "end": placement.end,
        "uses": {problem.resource_label[r]: amount for r, amount in problem.uses(placement.mode)},
        "inputs": [
            {"dataset": problem.dataset_ids[dataset], "access": ACCESS_NAMES[access]}
            for dataset, access, _ in problem.inputs(placement.mode)
        ],
        "transfers": [_moved(problem, transfer) for transfer in placement.transfers],
    }


def _moved(problem: Problem, transfer: Transfer) -> dict[str, Any]:
    links = [problem.link_ids[link] for link in transfer.links if link < len(problem.link_ids)]
    return {
        "dataset": problem.dataset_ids[transfer.dataset],
        "site": problem.site_ids[transfer.site],
        "route": links,
        "start": transfer.start,
        "end": transfer.end,
    }
