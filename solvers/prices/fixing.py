"""What a better plan cannot contain: starts whose bound is beyond a verified plan."""

from dataclasses import replace

import numpy as np

from optalloc.scope import Windows, propagate, windows
from optalloc.solvers.prices.ascent import kernel_arrays
from optalloc.solvers.prices.kernels import accumulate, narrow
from optalloc.solvers.prices.layout import bucket_of_ticks
from optalloc.solvers.prices.proof import Proof

__all__ = ["narrowed_windows", "starts_to_look_at"]


def starts_to_look_at(proof: Proof, upper: int) -> int:
    """How many starts `narrowed_windows` looks at, at most: those whose own cost is low enough."""
    layout = proof.layout
    task = layout.problem.mode_task[layout.mode]
    room = proof.reduced[task] + _room(proof, upper) - layout.low
    steep = np.maximum(1, layout.slope[task])
    ticks = np.where(layout.slope[task] > 0, room // steep + 1, layout.last - layout.first + 1)
    return int(np.minimum(ticks, layout.last - layout.first + 1)[room >= 0].clip(0).sum())


def _room(proof: Proof, upper: int) -> int:
    """How far a task of a plan worth ``upper`` may be beyond its least cost; no further than 64 bits can tell."""
    return min(upper * proof.certificate.scale - proof.total, 2 * proof.layout.never)


def narrowed_windows(proof: Proof, upper: int, valid: Windows | None = None) -> Windows:
    """Start windows in which every plan lies whose level value is at most ``upper``.

    A plan that starts task j in mode m at tick t is worth at least ``total - (least cost of j) + (cost of (m, t))``;
    where that is above ``upper`` (strictly), (m, t) is ruled out. Each mode keeps the span from its first to its last
    start left.

    Parameters
    ----------
    upper
        Value of a verified plan: that plan survives.
    valid
        Windows to narrow further; default those of the scope.
    """
    layout = proof.layout
    problem, scope = layout.problem, layout.scope
    valid = windows(scope) if valid is None else valid
    edges = np.array(proof.certificate.edges, dtype=np.int64)
    before = np.zeros((len(proof.price), len(edges)), dtype=np.int64)
    accumulate(proof.price, edges, before)
    rows, tasks, uses, shares = kernel_arrays(layout, np.int64)
    room = _room(proof, upper)
    first = np.full(problem.num_modes, 2**60, dtype=np.int64)
    last = np.full(problem.num_modes, -(2**60), dtype=np.int64)
    grid = (proof.price, before, edges, bucket_of_ticks(edges))
    multipliers = (proof.share, proof.end_price, proof.rate)
    narrow(rows, tasks, uses, shares, grid, *multipliers, proof.reduced, room, first, last)
    free = scope.free[problem.mode_task]
    earliest = np.where(free, np.maximum(valid.earliest, first), valid.earliest)
    latest = np.where(free, np.minimum(valid.latest, last), valid.latest)
    latest = np.where(latest < earliest, np.minimum(earliest - 1, latest), latest)
    propagate(scope, earliest, latest)
    return replace(valid, earliest=earliest, latest=latest)
