r"""Packing by alignment of demand and free capacity, and shortest work first.

References
----------
Grandl, R., Ananthanarayanan, G., Kandula, S., Rao, S. and Akella, A. (2014). Multi-resource packing for cluster
schedulers. ACM SIGCOMM 2014, 455-466. https://doi.org/10.1145/2619239.2626334
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction

from optalloc.placement import Placement
from optalloc.problem import FREE, LOCAL
from optalloc.solvers.online.desk import OnlineDesk
from optalloc.solvers.rules.criteria import Completion, best_placement

__all__ = ["alignment", "tetris"]

_REMOTE = Fraction(9, 10)
"""Factor on the alignment of a mode that does not read all its data at home."""


def tetris(desk: OnlineDesk) -> None:
    """Largest alignment of a mode that starts now, less its share of the mean work; then the next, until none fits.

    A task none of whose modes has its data on the site gets its data brought: it takes the mode in which it ends
    first. Other tasks that cannot start now just wait.
    """
    for task in _without_data(desk):
        desk.settle(task, best_placement(desk, task, Completion()))
    while options := list(_options(desk)):
        best = _best(desk, options)
        desk.settle(best.task, best)
    for task in _waiting(desk):
        if desk.simulator.may_reject(task):
            placement = best_placement(desk, task, Completion())
            if desk.prefers_rejection(task, placement):
                desk.reject(task)


def _waiting(desk: OnlineDesk) -> list[int]:
    clock = desk.simulator.clock
    return [j for j in desk.free if desk.table.mode[j] == FREE and desk.table.ready(j) <= clock]


def _without_data(desk: OnlineDesk) -> list[int]:
    """Waiting tasks of which every mode lacks a replica."""
    held = desk.table.held
    return [
        task
        for task in _waiting(desk)
        if all(any(k not in held for k in desk.table.facts(m).needs) for m in desk.modes(task).tolist())
    ]


def _options(desk: OnlineDesk) -> Iterator[Placement]:
    """All placements that start now."""
    clock = desk.simulator.clock
    for task in _waiting(desk):
        modes = desk.modes(task)
        for mode in modes[desk.starts(task, modes) <= clock].tolist():
            placement = desk.table.earliest(task, mode, latest=clock)
            if placement is not None and desk.allows(placement):
                yield placement


def alignment(desk: OnlineDesk, mode: int) -> Fraction:
    r""":math:`\sum_r \frac{use_r}{cap_r} \cdot \frac{free_r}{cap_r}`, a tenth less where data are not at home."""
    problem, clock = desk.problem, desk.simulator.clock
    total = Fraction(0)
    for resource, amount in desk.table.facts(mode).uses:
        capacity = int(problem.capacity(resource)[1].max())
        total += Fraction(amount * desk.table.profiles[resource].at(clock), capacity * capacity)
    is_home = all(access == LOCAL for _, access, _ in problem.inputs(mode))
    return total if is_home else _REMOTE * total


def _work(desk: OnlineDesk, placement: Placement) -> Fraction:
    """Share of each capacity, summed up, times the duration."""
    facts = desk.table.facts(placement.mode)
    shares = (Fraction(a, int(desk.problem.capacity(r)[1].max())) for r, a in facts.uses)
    return facts.duration * sum(shares, Fraction(0))


def _best(desk: OnlineDesk, options: Sequence[Placement]) -> Placement:
    r"""The largest :math:`a - \frac{\bar a}{\bar w} w`; a alignment, w work, :math:`\bar a, \bar w` their means."""
    aligned = [alignment(desk, placement.mode) for placement in options]
    works = [_work(desk, placement) for placement in options]
    trade = sum(aligned, Fraction(0)) / (sum(works, Fraction(0)) or 1)
    scores = [a - trade * w for a, w in zip(aligned, works, strict=True)]
    return options[scores.index(max(scores))]
