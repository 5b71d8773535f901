"""Variables of the CP-SAT model.

Runs and transfers are both *activities*: a start, an end, and one literal per way to do it (a mode; a route),
of which exactly one holds, or the literal that says the activity is left out. An interval belongs to one
literal, has a fixed size and shares no end variable with any other: OR-Tools 9.15 has proved wrong optima
where the intervals of alternatives share their start *and* end variables.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeVar

from ortools.sat.python import cp_model

from optalloc.evaluation.facts import facts
from optalloc.formulations.cpsat.profiles import Profile, Spans, allowed_spans, residual_profiles
from optalloc.problem import NEVER, REJECTED, Problem, Transfer
from optalloc.scope import Scope, Windows

__all__ = ["Activity", "CpsatVariables", "Literal", "Option", "Retention", "Variable", "make_variables"]

T = TypeVar("T")

Variable = Any
"""An integer variable of `cp_model` (untyped there)."""
Literal = Any
"""A Boolean variable of `cp_model`, or its negation."""


@dataclass(frozen=True, eq=False)
class Option:
    """One way to do an activity.

    Attributes
    ----------
    literal
        True if it is chosen.
    ticks
        How long it lasts.
    starts
        Inclusive ranges of the ticks at which it may start; never empty.
    """

    literal: Literal
    ticks: int
    starts: Spans

    @property
    def first(self) -> int:
        """Earliest start."""
        return self.starts[0][0]

    @property
    def last(self) -> int:
        """Latest start."""
        return self.starts[-1][1]


@dataclass(frozen=True, eq=False)
class Activity:
    """A run of a task, or the transfer of a replica.

    Attributes
    ----------
    start, end
        Ticks; where the activity is left out they stand at ``idle``.
    options
        Mode or route -> its option.
    absent
        True if the activity is left out; None where that is not allowed.
    idle
        (start, end) of an activity that is left out: the earliest values, so that bounds stay tight.
    """

    start: Variable
    end: Variable
    options: Mapping[int, Option]
    absent: Literal | None
    idle: tuple[int, int]

    @property
    def present(self) -> Literal:
        """True if the activity is done."""
        return True if self.absent is None else self.absent.negated()

    @property
    def last_end(self) -> int:
        """Latest possible end."""
        return max((option.last + option.ticks for option in self.options.values()), default=self.idle[1])


@dataclass(frozen=True, eq=False)
class Retention:
    """How long a replica takes room at its site: from its transfer's start until ``end`` (R8).

    Attributes
    ----------
    begin
        Start of the transfer: a variable, or the tick (at least 0) of a fixed transfer.
    arrival
        End of the transfer: a variable, or the tick of a fixed transfer.
    present
        True if the replica is brought at all.
    """

    begin: Variable | int
    arrival: Variable | int
    size: Variable
    end: Variable
    present: Literal


@dataclass(eq=False)
class CpsatVariables:
    """Everything a constraint family needs: the model, the problem and the variables by index.

    Attributes
    ----------
    model
        The native `CpModel`; experts may add to it before solving.
    profiles
        Per resource, the capacity that fixed runs and transfers leave.
    check
        Called now and then while the model is made; may raise to give up (out of time).
    tasks
        Task -> activity, for free tasks.
    transfers
        Replica -> activity, for replicas that some run may read and that are not fixed.
    reads
        (task, replica) -> literal: the task's mode reads that replica staged.
    readings
        The same by replica: (task, literal) pairs.
    purchases
        Purchase -> literal, for those that cost something and that no fixed run has made.
    retentions
        Replica -> retention, at sites whose storage may run short.
    derived
        (literal, literals): the first is true exactly if one of the others is.
    """

    model: cp_model.CpModel
    scope: Scope
    windows: Windows
    profiles: tuple[Profile, ...]
    check: Callable[[], None] = lambda: None
    tasks: dict[int, Activity] = field(default_factory=dict)
    transfers: dict[int, Activity] = field(default_factory=dict)
    reads: dict[tuple[int, int], Literal] = field(default_factory=dict)
    readings: dict[int, list[tuple[int, Literal]]] = field(default_factory=dict)
    purchases: dict[int, Literal] = field(default_factory=dict)
    retentions: dict[int, Retention] = field(default_factory=dict)
    derived: list[tuple[Variable, tuple[Literal, ...]]] = field(default_factory=list)

    @property
    def problem(self) -> Problem:
        """The compiled problem."""
        return self.scope.problem

    def watched(self, items: Iterable[T]) -> Iterator[T]:
        """``items`` with a `check` before each: for loops that can take long."""
        for item in items:
            self.check()
            yield item

    @cached_property
    def fixed(self) -> dict[int, tuple[int, int]]:
        """Fixed placed task -> (start, end)."""
        mode, start, duration = self.scope.mode, self.scope.start, self.problem.duration
        placed = [task for task in range(self.problem.num_tasks) if mode[task] >= 0]
        return {task: (int(start[task]), int(start[task] + duration[mode[task]])) for task in placed}

    @cached_property
    def fixed_rejected(self) -> frozenset[int]:
        """Tasks that the scope has rejected."""
        return frozenset(task for task, mode in enumerate(self.scope.mode.tolist()) if mode == REJECTED)

    def start_of(self, task: int) -> Variable | int:
        """Start of a task that is free or placed."""
        return self.fixed[task][0] if task in self.fixed else self.tasks[task].start

    def end_of(self, task: int) -> Variable | int:
        """End of a task that is free or placed."""
        return self.fixed[task][1] if task in self.fixed else self.tasks[task].end

    def present(self, task: int) -> Literal:
        """True if the task is placed."""
        return True if task in self.fixed else task in self.tasks and self.tasks[task].present

    def fixed_readers(self, replica: int) -> list[int]:
        """Fixed tasks whose mode reads the replica."""
        return [task for task in self.fixed if replica in self.problem.needs(int(self.scope.mode[task]))]

    def fixed_transfer(self, replica: int) -> Transfer | None:
        """The fixed transfer that brings a replica."""
        pair = int(self.problem.replica_dataset[replica]), int(self.problem.replica_site[replica])
        return self.scope.fixed_replicas.get(pair)

    def unlisted_at(self, site: int) -> list[tuple[int, int, Fraction]]:
        """(from, until, storage) of fixed transfers to a site that no mode can read."""
        problem, found = self.problem, []
        for transfer in self.scope.transfers:
            listed = (transfer.dataset, transfer.site) in problem.replica_of
            if transfer.site == site and not listed and transfer.end > 0:
                size, room = facts(problem).size_gb[transfer.dataset], facts(problem).storage_gb[site]
                units = size * int(problem.site_storage[site]) / room if room else Fraction(1 if size else 0)
                found.append((max(transfer.start, 0), transfer.end, units))
        return found

    def any_of(self, literals: list[Literal], name: str) -> Literal:
        """A literal that is true exactly if one of ``literals`` is, at most one of which can be."""
        if len(literals) == 1:
            return literals[0]
        either = self.model.new_bool_var(name)
        self.model.add(cp_model.LinearExpr.sum(literals) == either)
        self.derived.append((either, tuple(literals)))
        return either


def make_variables(
    model: cp_model.CpModel, scope: Scope, windows: Windows, check: Callable[[], None]
) -> CpsatVariables:
    """All decision variables; those of objective terms are made where a form asks for them."""
    variables = CpsatVariables(model, scope, windows, residual_profiles(scope), check)
    for make in variables.watched(
        (_make_tasks, _make_transfers, _make_reads, _make_purchases, _make_retentions)
    ):
        make(variables)
    return variables


def _make_activity(
    model: cp_model.CpModel, name: str, ways: dict[int, tuple[int, Spans]], optional: bool
) -> Activity:
    """An activity with one option per way (ticks, starts); ways without a start are left out."""
    ways = {way: (ticks, starts) for way, (ticks, starts) in ways.items() if starts}
    first = min((starts[0][0] for _, starts in ways.values()), default=0)
    end = min((starts[0][0] + ticks for ticks, starts in ways.values()), default=first)
    latest = max((starts[-1][1] + ticks for ticks, starts in ways.values()), default=end)
    ranges = [list(span) for _, starts in ways.values() for span in starts] or [[first, first]]
    return Activity(
        start=model.new_int_var_from_domain(cp_model.Domain.from_intervals(ranges), f"{name}_start"),
        end=model.new_int_var(end, latest, f"{name}_end"),
        options={
            way: Option(model.new_bool_var(f"{name}_way{way}"), ticks, starts)
            for way, (ticks, starts) in ways.items()
        },
        absent=model.new_bool_var(f"{name}_absent") if optional else None,
        idle=(first, end),
    )


def _make_tasks(variables: CpsatVariables) -> None:
    """An activity per free task: one literal per open mode, starts only where calendars let the mode run."""
    problem, scope, windows = variables.problem, variables.scope, variables.windows
    is_open = windows.open
    gaps: dict[tuple[int, int], Spans] = {}

    def starts(mode: int) -> Spans:
        for use in problem.uses(mode):
            if use not in gaps:
                gaps[use] = variables.profiles[use[0]].below(use[1])
        bounds = int(problem.duration[mode]), int(windows.earliest[mode]), int(windows.latest[mode])
        return allowed_spans((gaps[use] for use in problem.uses(mode)), *bounds)

    for task in variables.watched(range(problem.num_tasks)):
        if scope.free[task]:
            modes = problem.modes_of(task)
            modes = modes[is_open[modes]].tolist()
            ways = {mode: (int(problem.duration[mode]), starts(mode)) for mode in modes}
            optional = bool(scope.rejectable[task])
            variables.tasks[task] = _make_activity(variables.model, f"task{task}", ways, optional)


def _make_transfers(variables: CpsatVariables) -> None:
    """An activity per replica that may be read, a literal per route; its start fixed if nothing contends."""
    problem, latest = variables.problem, _latest_readings(variables)
    for replica in variables.watched(range(problem.num_replicas)):
        if variables.fixed_transfer(replica) is not None:
            continue
        last = latest.get(replica)
        forced = [task for task in variables.fixed_readers(replica) if problem.state_mode[task] < 0]
        if last is None and not forced:
            continue
        last = min([variables.fixed[task][0] for task in forced] or [NEVER if last is None else last])
        ways = {route: _route_starts(variables, replica, route, last) for route in problem.routes_of(replica)}
        activity = _make_activity(variables.model, f"replica{replica}", ways, optional=not forced)
        variables.transfers[replica] = activity


def _latest_readings(variables: CpsatVariables) -> dict[int, int]:
    """Replica -> latest start of a free run that may read it, for those that one may."""
    latest: dict[int, int] = {}
    for activity in variables.watched(variables.tasks.values()):
        for mode, option in activity.options.items():
            for replica in variables.problem.needs(mode):
                latest[replica] = max(option.last, latest.get(replica, 0))
    return latest


def _route_starts(variables: CpsatVariables, replica: int, route: int, end_by: int) -> tuple[int, Spans]:
    """(ticks, starts) of bringing a replica over a route."""
    problem, windows = variables.problem, variables.windows
    ticks, first = int(problem.route_ticks[route]), int(windows.transfer_earliest[replica])
    last = min(end_by, windows.horizon) - ticks
    if problem.constant_replicas[replica]:
        last = min(first, last)
    gaps = [variables.profiles[channel].below(1) for channel in problem.route_channels[route]]
    return ticks, allowed_spans(gaps, ticks, first, last)


def _make_reads(variables: CpsatVariables) -> None:
    """A literal per task and replica that its modes may read."""
    for task, activity in variables.watched(variables.tasks.items()):
        readers: dict[int, list[Literal]] = {}
        for mode, option in activity.options.items():
            for replica in variables.problem.needs(mode):
                readers.setdefault(replica, []).append(option.literal)
        for replica, literals in readers.items():
            reading = variables.any_of(literals, f"task{task}_reads{replica}")
            variables.reads[task, replica] = reading
            variables.readings.setdefault(replica, []).append((task, reading))


def _make_purchases(variables: CpsatVariables) -> None:
    """A literal per purchase that costs money and is still open."""
    problem = variables.problem
    bought = {b for task in variables.fixed for b in problem.buys(int(variables.scope.mode[task]))}
    modes = (mode for activity in variables.watched(variables.tasks.values()) for mode in activity.options)
    wanted = {b for mode in modes for b in problem.buys(mode)}
    for purchase in sorted(wanted - bought):
        if problem.purchase_cost[purchase] > 0:
            variables.purchases[purchase] = variables.model.new_bool_var(f"buy{purchase}")


def _make_retentions(variables: CpsatVariables) -> None:
    """A retention per replica at each site that could not hold all that may be brought there."""
    problem = variables.problem
    brought = [
        k for k in range(problem.num_replicas) if k in variables.transfers or variables.fixed_transfer(k)
    ]
    for site in sorted({int(problem.replica_site[k]) for k in brought}):
        if problem.site_storage[site] >= NEVER:
            continue
        here = [k for k in brought if problem.replica_site[k] == site]
        unlisted = sum(units for *_, units in variables.unlisted_at(site))
        if sum(int(problem.replica_size[k]) for k in here) + unlisted > problem.site_storage[site]:
            for replica in here:
                variables.retentions[replica] = _make_retention(variables, replica)


def _make_retention(variables: CpsatVariables, replica: int) -> Retention:
    fixed = variables.fixed_transfer(replica)
    latest = max([variables.windows.horizon, *(end for _, end in variables.fixed.values())])
    if fixed is not None:
        latest = max(latest, fixed.end)
    size = variables.model.new_int_var(0, latest, f"replica{replica}_held")
    end = variables.model.new_int_var(0, latest, f"replica{replica}_dropped")
    if fixed is not None:
        return Retention(max(fixed.start, 0), fixed.end, size, end, True)
    activity = variables.transfers[replica]
    return Retention(activity.start, activity.end, size, end, activity.present)
