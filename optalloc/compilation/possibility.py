"""What is shown impossible without a solver: no modes, windows too short, limits too tight."""

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from optalloc.compilation.modes import ModeMaker
from optalloc.compilation.notes import exclusions, joined
from optalloc.problem import NEVER, Bools, Form, Ints, Problem, own_cost
from optalloc.scope import Windows, full_scope, windows

__all__ = ["hopeless_tasks"]


def hopeless_tasks(problem: Problem, maker: ModeMaker) -> tuple[list[str], dict[str, tuple[str, ...]]]:
    """Notes on tasks that must be rejected, and task id (or "" for the plan) -> why there is no plan."""
    notes: list[str] = []
    impossible: dict[str, tuple[str, ...]] = {}
    for task in np.flatnonzero(np.diff(problem.mode_ptr) == 0).tolist():
        if problem.rejectable[task]:
            notes.append(_rejection_note(problem, maker, task))
        elif problem.state_mode[task] < 0:
            impossible[problem.task_ids[task]] = _no_mode(problem, maker, task)
    window = windows(full_scope(problem))
    fits = _Fits(problem, window)
    for task in fits.tasks_without_modes():
        impossible.setdefault(problem.task_ids[task], tuple(fits.reasons(task)))
    if not impossible:
        broken = tuple(_broken_limits(problem, window, fits.possible))
        impossible |= {"": broken} if broken else {}
    return notes, impossible


def _no_mode(problem: Problem, maker: ModeMaker, task: int) -> tuple[str, ...]:
    entry = problem.instance.tasks[task]
    over_budget = maker.modes(task, entry).over_budget
    reasons = tuple(f"no mode: {reason}" for reason in exclusions(maker, entry, over_budget))
    return reasons or ("no mode",)


def _rejection_note(problem: Problem, maker: ModeMaker, task: int) -> str:
    after = sorted(_successors(problem, task))
    also = f", and with it {joined(problem.task_ids[other] for other in after)}" if after else ""
    return (
        f"Task {problem.task_ids[task]} must be rejected{also}: {'; '.join(_no_mode(problem, maker, task))}."
    )


def _successors(problem: Problem, task: int) -> set[int]:
    found: set[int] = set()
    waiting = [task]
    while waiting:
        fresh = set(problem.successors[waiting.pop()]) - found
        found |= fresh
        waiting += fresh
    return found


class _Fits:
    """Which modes have a start at which windows, calendars, channels, seats and storage alone allow them."""

    def __init__(self, problem: Problem, window: Windows):
        self.problem = problem
        self.in_window = window.open
        self.in_capacity = _in_capacity(problem, window)
        self.in_storage = _in_storage(problem)
        self.possible = np.asarray(self.in_window & self.in_capacity & self.in_storage)
        self.possible[problem.state_mode[problem.state_mode >= 0]] = True
        self._window = window

    def tasks_without_modes(self) -> list[int]:
        """Tasks that must run, have modes, and none of them is possible."""
        problem = self.problem
        some = np.zeros(problem.num_tasks, dtype=bool)
        some[problem.mode_task[self.possible]] = True
        must = ~problem.rejectable & (problem.state_mode < 0) & (np.diff(problem.mode_ptr) > 0)
        return list(np.flatnonzero(must & ~some).tolist())

    def reasons(self, task: int) -> Iterator[str]:
        """Why no mode of the task is possible."""
        modes = self.problem.modes_of(task)
        late = modes[~self.in_window[modes]]
        if len(late):
            first = int(self._window.earliest[late].min())
            until = int(self.problem.deadline[task])
            deadline = f"deadline {until}" if until < NEVER else "no deadline"
            shortest = int(self.problem.duration[late].min())
            what = f"earliest start {first}, shortest duration {shortest}, {deadline}"
            yield f"window: {len(late)} of {len(modes)} modes do not end in time ({what}, in ticks)"
        blocked = modes[self.in_window[modes] & ~self.in_capacity[modes]]
        if len(blocked):
            yield f"capacity: {len(blocked)} of {len(modes)} modes never find enough ({self._scarce(blocked)})"
        full = modes[self.in_window[modes] & self.in_capacity[modes] & ~self.in_storage[modes]]
        if len(full):
            yield f"storage: {len(full)} of {len(modes)} modes stage a dataset that no storage there can hold"

    def _scarce(self, modes: Ints) -> str:
        used = {resource for mode in modes.tolist() for resource, _ in self.problem.uses(mode)}
        return joined(self.problem.resource_label[resource] for resource in sorted(used))


def _in_storage(problem: Problem) -> Bools:
    """(M,) every replica that the mode needs fits the empty storage of its site."""
    fits = np.ones(problem.num_modes, dtype=bool)
    if problem.num_replicas:
        owner = np.repeat(np.arange(problem.num_modes), np.diff(problem.need_ptr))
        large = problem.replica_size > problem.site_storage[problem.replica_site]
        fits[owner[large[problem.need_replica]]] = False
    return fits


def _in_capacity(problem: Problem, window: Windows) -> Bools:
    """(M,) each resource by itself has enough for the whole run at some start in the window."""
    fits = np.ones(problem.num_modes, dtype=bool)
    if not problem.num_modes:
        return fits
    owner = np.repeat(np.arange(problem.num_modes), np.diff(problem.use_ptr))
    most = np.maximum.reduceat(problem.cap_amount, problem.cap_ptr[:-1])
    fits[owner[problem.use_amount > most[problem.use_resource]]] = False
    changes = np.diff(problem.cap_ptr) > 1
    entries = np.flatnonzero(changes[problem.use_resource] & fits[owner] & window.open[owner])
    entries = entries[np.lexsort((problem.use_amount[entries], problem.use_resource[entries]))]
    resource, amount = problem.use_resource[entries], problem.use_amount[entries]
    edges = np.flatnonzero((np.diff(resource) != 0) | (np.diff(amount) != 0)) + 1
    for part in np.split(entries, edges) if len(entries) else []:
        modes = owner[part]
        found = _finds_stretch(
            problem, int(problem.use_resource[part[0]]), int(problem.use_amount[part[0]]), modes, window
        )
        fits[modes[~found]] = False
    return fits


def _finds_stretch(problem: Problem, resource: int, amount: int, modes: Ints, window: Windows) -> Bools:
    """Whether some stretch with ``amount`` free holds a run of each mode within its window."""
    times, amounts = problem.capacity(resource)
    enough = np.concatenate([[False], amounts >= amount, [False]])
    turns = np.flatnonzero(np.diff(enough.astype(np.int8)))
    edges = np.append(times, NEVER)
    found = np.zeros(len(modes), dtype=bool)
    for begin, end in edges[turns].reshape(-1, 2).tolist():
        start = np.maximum(window.earliest[modes], begin if begin else -NEVER)
        found |= (start <= window.latest[modes]) & (start + problem.duration[modes] <= end)
    return found


def _broken_limits(problem: Problem, window: Windows, possible: Bools) -> Iterator[str]:
    for limit in problem.limits:
        least = _least_value(problem, limit.form, window, possible)
        if least > limit.bound:
            needed, allowed = (
                problem.written(limit.term, Fraction(v, limit.scale)) for v in (least, limit.bound)
            )
            yield f"limit of {limit.term}: at least {needed} is needed, {allowed} is allowed"


def _least_value(problem: Problem, form: Form, window: Windows, possible: Bools) -> int:
    """A lower bound of a form: every task by itself, as early as it can, without shared charges."""
    modes = np.flatnonzero(possible)
    least = np.full(problem.num_tasks, NEVER, dtype=np.int64)
    np.minimum.at(least, problem.mode_task[modes], own_cost(problem, form, modes, window.earliest[modes]))
    rejection = form.rejected + form.late + 1000 * form.loss
    may_go = problem.rejectable
    least[may_go] = np.minimum(least, rejection)[may_go]
    end = np.full(problem.num_tasks, NEVER, dtype=np.int64)
    np.minimum.at(end, problem.mode_task[modes], window.earliest[modes] + problem.duration[modes])
    last = max(end[~may_go].tolist(), default=0)
    return form.makespan * last + sum(least.tolist())
