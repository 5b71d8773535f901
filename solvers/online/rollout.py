"""One-step look-ahead: what comes of each first step if the base rule goes on from there?

References
----------
Bertsekas, D. P. and Castanon, D. A. (1999). Rollout algorithms for stochastic scheduling problems. Journal of
Heuristics 5(1), 89-108. https://doi.org/10.1023/A:1009634810396
"""

from collections.abc import Callable, Iterator

from optalloc.problem import FREE
from optalloc.simulation import Action, Commit, Reject, Simulator, simulate
from optalloc.solvers.online.desk import OnlineDesk
from optalloc.solvers.online.index import Priced, replan_index, urgency
from optalloc.solvers.online.rules import OnlineRule
from optalloc.solvers.rules.criteria import best_placement

__all__ = ["MODES", "TASKS", "Rollout"]

TASKS, MODES = 3, 2
"""First steps looked at: so many of the most urgent tasks, so many of the best modes of each."""

Value = tuple[bool, tuple[int, ...]]


class Rollout:
    """At every event: try each first step, let the base rule finish what has been released, keep the best.

    The steps are commitments of urgent tasks in their best modes, and rejections. As long as one leads to less
    than the base rule alone, it is taken and the search goes on; then the base rule acts. So, on what has been
    released, the base rule from here would not have done better.

    Parameters
    ----------
    tasks, modes
        How many tasks, and modes of each, are tried.
    base
        The base rule.
    hurry
        Asked before each look-ahead; once it says True the base rule acts alone.
    """

    def __init__(
        self,
        tasks: int = TASKS,
        modes: int = MODES,
        base: OnlineRule = replan_index,
        hurry: Callable[[], bool] = lambda: False,
    ):
        self.tasks, self.modes, self.base, self.hurry = tasks, modes, base, hurry

    def __call__(self, desk: OnlineDesk) -> None:
        while len(desk.free) and (step := self._better_step(desk)) is not None:
            desk.simulator.apply(step)
            desk.begin()
        self.base(desk)

    def _better_step(self, desk: OnlineDesk) -> Action | None:
        """The best first step, if it is better than the base rule alone."""
        best, value = None, None
        for step in self._steps(desk):
            if self.hurry():
                return None
            if value is None:
                value = self.value(desk, None)
            found = self.value(desk, step)
            if found < value:
                best, value = step, found
        return best

    def _steps(self, desk: OnlineDesk) -> Iterator[Action]:
        criterion = Priced(desk)
        waiting = [task for task in desk.free if desk.table.mode[task] == FREE and desk.placeable(task)]
        best = {task: best_placement(desk, task, criterion) for task in waiting}
        urgent = sorted(
            (p for p in best.values() if p is not None), key=lambda p: urgency(desk, p), reverse=True
        )
        for placement in urgent[: self.tasks]:
            yield from self._modes(desk, placement.task, criterion)
        yield from (Reject(task) for task in waiting if desk.simulator.may_reject(task))

    def _modes(self, desk: OnlineDesk, task: int, criterion: Priced) -> Iterator[Action]:
        modes = desk.modes(task)
        for _ in range(self.modes):
            placement = best_placement(desk, task, criterion, modes)
            if placement is None:
                return
            modes = modes[modes != placement.mode]
            yield Commit(task, placement.mode)

    def value(self, desk: OnlineDesk, step: Action | None) -> Value:
        """(dead end, objective) of what has been released after ``step`` and the base rule."""
        branch: Simulator = desk.simulator.branch()
        ahead = desk.on(branch)
        if step is not None:
            branch.apply(step)
            ahead.begin()
        if not branch.done:
            self.base(ahead)
            self._finish(ahead)
        return bool(branch.failure), tuple(branch.values)

    def _finish(self, desk: OnlineDesk) -> None:
        branch = desk.simulator
        if branch.done:
            return
        if branch.next_event is None:
            branch.fail("nothing will happen any more")
            return
        branch.wait()
        simulate(branch, lambda turn: self.base(desk.begin()))
