"""The optimum by enumeration, from the independent mode table alone.

Every choice of modes (rejection included) and of routes for the replicas they need is tried. Its best timing
is found

- by all orders of runs and transfers with serial earliest placement, where that is exact: every constraint
  then is a renewable resource, a release or a precedence, and no cost falls when something ends later;
- by all start ticks of runs and transfers where a storage limit could bind (a later start may free room).

A branch is dropped only when what it has already cost, every open decision at its least, is no better than
the best plan: all costs are non-negative and never fall with time.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

from support.evaluator import (
    Move,
    Plan,
    Run,
    broken_rules,
    held_until,
    level_values,
    levels_of,
    read_plan,
    scale,
)
from support.mode_table import Mode, Route, Table, Task, build

BASE = 1 << 60
"""Levels are packed into one integer, the first one counts most."""

Replica = tuple[str, str]
Vector = tuple[int, ...]


@dataclass(frozen=True)
class Answer:
    """What enumeration has found; no plan means that none exists."""

    table: Table
    plan: Plan | None
    scale: int
    levels: list[int]
    timings: int
    """Assignments of modes and routes whose timing was enumerated."""
    ticked: int
    """How many of them by start ticks."""

    @property
    def status(self) -> str:
        return "INFEASIBLE" if self.plan is None else "OPTIMAL"


class TooLarge(Exception):
    """More assignments than the caller allows."""


class Form:
    """A linear form of the terms; with the weight of a task its coefficients are whole."""

    def __init__(self, weights: Mapping[str, Fraction], tasks: Iterable[Task]):
        def of(term: str, factor: Fraction | int = 1) -> int:
            value = weights.get(term, Fraction(0)) * factor
            assert value.denominator == 1, "K is too small"
            return value.numerator

        timed = ("weighted_completion", "weighted_flow", "weighted_tardiness", "late", "utility_loss")
        self.by_task = {task.id: tuple(of(term, task.weight) for term in timed) for task in tasks}
        self.of_makespan, self.of_money = of("makespan"), of("cost")
        self.penalties = {task.id: of("rejected", task.penalty or 0) for task in tasks}

    def run(self, task: Task, mode: Mode, end: int) -> int:
        """What a placed task adds, makespan and shared charges apart."""
        completion, flow, tardiness, late, loss = self.by_task[task.id]
        value = completion * end + flow * (end - task.release) + loss * (1000 - mode.utility)
        if task.due is not None and end > task.due:
            value += tardiness * (end - task.due) + late
        return value + self.of_money * mode.money

    def rejected(self, task: Task) -> int:
        *_, late, loss = self.by_task[task.id]
        return late + 1000 * loss + self.penalties[task.id]

    def makespan(self, end: int) -> int:
        return self.of_makespan * max(0, end)

    def money(self, amount: int) -> int:
        return self.of_money * amount


def forms(table: Table) -> tuple[list[Form], list[int]]:
    """The packed objective and the limits with their bounds."""
    levels, big = levels_of(table), scale(table)
    packed: dict[str, Fraction] = {}
    for k, level in enumerate(levels):
        for term, weight in level.items():
            factor = table.unit if term == "cost" else 1
            packed[term] = packed.get(term, Fraction(0)) + weight * factor * big * BASE ** (
                len(levels) - 1 - k
            )
    tasks = table.tasks.values()
    found, bounds = [Form(packed, tasks)], []
    common = math.lcm(
        *(t.weight.denominator * (t.penalty or Fraction(1)).denominator for t in table.tasks.values())
    )
    for term, limit in ((table.raw.get("objective") or {}).get("limits") or {}).items():
        bound = Fraction(limit) / (table.unit if term == "cost" else 1)
        found.append(Form({term: Fraction(common)}, tasks))
        bounds.append(math.floor(bound * common))
    return found, bounds


def add(a: Vector, b: Vector) -> Vector:
    return (a[0] + b[0],) if len(a) == 1 else tuple(x + y for x, y in zip(a, b, strict=True))


@dataclass
class Activity:
    """A run or a transfer to be placed."""

    name: Any
    length: int
    uses: list[tuple[Any, int]]
    earliest: int
    after: list[tuple[Any, int]]
    until: int


class Search:
    """Branch and bound over assignments; `best` is the best plan so far."""

    def __init__(self, table: Table, most: int, most_steps: int):
        self.table = table
        self.most, self.most_steps = most, most_steps
        self.forms, self.bounds = forms(table)
        self.zero: Vector = (0,) * len(self.forms)
        self.best: Plan | None = None
        self.best_score: int | None = None
        self.timings = self.ticked = self.steps = 0
        self.state = read_plan(table, {})
        self.state_moves = {(m.dataset, m.site): m for m in self.state.moves}
        self.order = self._topological()
        self.free = [table.tasks[name] for name in self.order if name not in self.state.runs]
        self.horizon = self._horizon()
        self.room = self._room()
        self.successors = {
            n: [(t.id, lag) for t in table.tasks.values() for p, lag in t.after if p == n]
            for n in table.tasks
        }
        self.choices = {task.id: self._choices(task) for task in self.free}
        self.least = {task.id: self._least(task) for task in self.free}

    # what does not change ------------------------------------------------------------------------
    def _topological(self) -> list[str]:
        order: list[str] = []
        while len(order) < len(self.table.tasks):
            order += [
                n
                for n, t in self.table.tasks.items()
                if n not in order and all(p in order for p, _ in t.after)
            ]
        return order

    def _horizon(self) -> int:
        """By then some best plan has ended: after the last event no tick is idle."""
        table = self.table
        tasks = table.tasks.values()
        events = [0, *table.available.values(), *(t.release for t in tasks)]
        events += [len(row) for row in table.calendar.values()]
        events += [m.end for m in self.state.moves] + [r.end for r in self.state.runs.values()]
        total = max(events) + sum(max((m.duration for m in t.modes), default=0) for t in self.free)
        total += sum(max((lag for _, lag in t.after), default=0) for t in tasks)
        return total + sum(max(r.ticks for r in routes) for routes in table.routes.values())

    def _room(self) -> dict[Any, list[int]]:
        """Free capacity of every resource, tick by tick, under the state."""
        table, span = self.table, self.horizon
        room: dict[Any, list[int]] = {}
        for node, row in table.calendar.items():
            room["devices", node] = [row[min(t, len(row) - 1)] for t in range(span)]
        self.units = {pair: self._unit(pair) for pair in table.extra}
        for pair, amount in table.extra.items():
            room["extra", *pair] = [int(amount * self.units[pair])] * span
        for link, limit in table.channels.items():
            if limit is not None:
                room["channel", link] = [limit] * span
        for dataset, seats in table.seats.items():
            if seats is not None:
                room["seat", dataset] = [seats] * span
        for run in self.state.runs.values():
            self._take(room, self._uses(run.mode, room), run.start, run.end)
        for move in self.state.moves:
            self._take(room, self._channels(move.route, room), move.start, move.end)
        return room

    def _unit(self, pair: tuple[str, str]) -> int:
        amounts = [self.table.extra[pair]]
        for task in self.table.tasks.values():
            amounts += [v for mode in task.modes for n, k, v in mode.extra if (n, k) == pair]
        return math.lcm(*(a.denominator for a in amounts))

    @staticmethod
    def _take(
        room: dict[Any, list[int]], uses: list[tuple[Any, int]], start: int, end: int, sign: int = 1
    ) -> None:
        for resource, amount in uses:
            row = room[resource]
            for tick in range(max(0, start), end):
                row[tick] -= sign * amount

    def _channels(self, route: Route, room: Mapping[Any, Any]) -> list[tuple[Any, int]]:
        return [(("channel", link), 1) for link in route.links if ("channel", link) in room]

    def _uses(self, mode: Mode, room: Mapping[Any, Any]) -> list[tuple[Any, int]]:
        """(resource, amount) that a run holds, each resource once."""
        held: dict[Any, int] = {}
        for node, count in mode.uses:
            held["devices", node] = held.get(("devices", node), 0) + count
        for node, key, amount in mode.extra:
            held["extra", node, key] = int(amount * self.units[node, key])
        for chosen in mode.inputs:
            if ("seat", chosen.dataset) in room:
                held["seat", chosen.dataset] = 1
            for resource, amount in self._channels(chosen.route, room) if chosen.route else ():
                held[resource] = held.get(resource, 0) + amount
        return list(held.items())

    def _earliest(self, task: Task, mode: Mode) -> int:
        """No run of the mode starts before, whatever else is decided."""
        start = max(0, task.release, mode.available)
        for replica in mode.replicas:
            start = max(start, min(arrival for _, arrival in self._arrivals(replica)))
        return start

    def _arrivals(self, replica: Replica) -> list[tuple[Route | None, int]]:
        """(route, first tick at which the replica can be read over it)."""
        if replica in self.state_moves:
            return [(None, self.state_moves[replica].end)]
        first = max(0, self.table.available[replica[0]])
        distinct: dict[Any, Route] = {}
        for route in self.table.routes[replica]:
            distinct.setdefault((route.ticks, route.cost, route.channels), route)
        return [(route, first + route.ticks) for route in distinct.values()]

    def _choices(self, task: Task) -> list[tuple[Mode, int, Vector]]:
        """Modes of a task, the least costly first: (mode, earliest start, its cost then)."""
        rows = []
        for mode in task.modes:
            start = self._earliest(task, mode)
            if task.deadline is None or start + mode.duration <= task.deadline:
                cost = tuple(form.run(task, mode, start + mode.duration) for form in self.forms)
                rows.append((mode, start, cost))
        return sorted(rows, key=lambda row: row[2])

    def _least(self, task: Task) -> Vector:
        """No decision on the task costs less, form by form; used only where the task has a decision left."""
        costs = [cost for *_, cost in self.choices[task.id]]
        costs += [self._rejection(task)] if task.rejectable else []
        return tuple(map(min, zip(*costs, strict=True))) if costs else self.zero

    def _rejection(self, task: Task) -> Vector:
        return tuple(form.rejected(task) for form in self.forms)

    # pruning -------------------------------------------------------------------------------------
    def hopeless(self, cost: Vector, end: int) -> bool:
        """Already no better than the best plan, or past a limit."""
        score, *limited = (c + form.makespan(end) for c, form in zip(cost, self.forms, strict=True))
        if any(value > bound for value, bound in zip(limited, self.bounds, strict=True)):
            return True
        return self.best_score is not None and score >= self.best_score

    def shared(self, modes: Mapping[str, Mode | None]) -> Vector:
        """Purchases and the cheapest transfers that a partial assignment calls for."""
        chosen = [m for m in modes.values() if m is not None] + [r.mode for r in self.state.runs.values()]
        money = sum(self.table.once.get(d, 0) for d in {d for m in chosen for d in m.datasets})
        for replica in {r for m in chosen for r in m.replicas} - self.state_moves.keys():
            money += min(route.cost for route in self.table.routes[replica])
        return tuple(form.money(money) for form in self.forms)

    # assignments ---------------------------------------------------------------------------------
    def solve(self) -> Answer:
        """Enumerate everything."""
        table = self.table
        if self._state_holds():
            fixed, end = self.zero, 0
            for name, run in self.state.runs.items():
                fixed = add(
                    fixed, tuple(form.run(table.tasks[name], run.mode, run.end) for form in self.forms)
                )
                end = max(end, run.end)
            self.fixed, self.fixed_end = fixed, end
            rest = [self.zero]
            for task in reversed(self.free):
                rest.append(add(rest[-1], self.least[task.id]))
            self.rest = rest[::-1]
            ends = {name: run.end for name, run in self.state.runs.items()}
            self._assign(0, {}, fixed, ends, end)
        levels = level_values(table, self.best) if self.best else []
        return Answer(table, self.best, scale(table), levels, self.timings, self.ticked)

    def _state_holds(self) -> bool:
        """The running part alone breaks no rule; a storage limit is looked at with each timing."""
        if any(min(row, default=0) < 0 for row in self.room.values()):
            return False
        for name, run in self.state.runs.items():
            for other, lag in self.table.tasks[name].after:
                if other in self.state.runs and run.start < self.state.runs[other].end + lag:
                    return False
        return True

    def _assign(
        self, i: int, modes: dict[str, Mode | None], cost: Vector, ends: dict[str, int], last: int
    ) -> None:
        """Decide task i and all after it; `ends` holds the least end of every placed task."""
        self._count()
        bound = add(add(cost, self.rest[i]), self.shared(modes))
        if self.hopeless(bound, last):
            return
        if i == len(self.free):
            for routes in self._route_choices(modes):
                self._time(modes, routes)
            return
        task = self.free[i]
        doomed = any(modes.get(p, True) is None for p, _ in task.after)
        for mode, start, own in [] if doomed else self.choices[task.id]:
            begin = max([start, *(ends[p] + lag for p, lag in task.after)])
            end = begin + mode.duration
            if task.deadline is not None and end > task.deadline:
                continue
            if begin > start:
                own = tuple(form.run(task, mode, end) for form in self.forms)
            self._assign(
                i + 1, {**modes, task.id: mode}, add(cost, own), {**ends, task.id: end}, max(last, end)
            )
        if task.rejectable:
            self._assign(i + 1, {**modes, task.id: None}, add(cost, self._rejection(task)), ends, last)

    def _route_choices(self, modes: Mapping[str, Mode | None]) -> Iterator[dict[Replica, Route]]:
        needed = sorted({r for m in modes.values() if m for r in m.replicas} - self.state_moves.keys())
        options = [[route for route, _ in self._arrivals(replica)] for replica in needed]
        for routes in product(*options):
            yield dict(zip(needed, routes, strict=True))  # type: ignore[arg-type]

    # timing --------------------------------------------------------------------------------------
    def _time(self, modes: Mapping[str, Mode | None], routes: dict[Replica, Route]) -> None:
        """The best timing of one assignment."""
        self._count()
        self.timings += 1
        if self.timings > self.most:
            raise TooLarge
        cost = self.fixed
        for task in self.free:
            if modes[task.id] is None:
                cost = add(cost, self._rejection(task))
        used = {d for m in modes.values() if m for d in m.datasets}
        used |= {d for r in self.state.runs.values() for d in r.mode.datasets}
        money = sum(self.table.once.get(d, 0) for d in used) + sum(r.cost for r in routes.values())
        cost = add(cost, tuple(form.money(money) for form in self.forms))
        self.modes, self.routes = modes, routes
        self.placed: dict[Any, int] = {name: run.end for name, run in self.state.runs.items()}
        self.starts: dict[Any, int] = {}
        activities = self._activities(modes, routes)
        self.lengths = {a.name: a.length for a in activities}
        if self._storage_binds(modes, routes):
            self.ticked += 1
            self._tick_runs([a for a in activities if isinstance(a.name, str)], cost, self.fixed_end)
        else:
            self._orders(activities, cost, self.fixed_end, 0)

    def _activities(
        self, modes: Mapping[str, Mode | None], routes: Mapping[Replica, Route]
    ) -> list[Activity]:
        """Runs in topological order, and the transfers that hold channels."""
        found = []
        for replica, route in routes.items():
            channels = self._channels(route, self.room)
            first = max(0, self.table.available[replica[0]])
            if channels:
                found.append(Activity(replica, route.ticks, channels, first, [], self.horizon))
        waiting = {a.name for a in found}
        for task in self.free:
            mode = modes[task.id]
            if mode is None:
                continue
            start = max(0, task.release, mode.available)
            after: list[tuple[Any, int]] = [(p, lag) for p, lag in task.after]
            for replica in mode.replicas:
                if replica in waiting:
                    after.append((replica, 0))
                else:
                    route_ticks = routes[replica].ticks if replica in routes else 0
                    first = max(0, self.table.available[replica[0]]) + route_ticks
                    start = max(
                        start, self.state_moves[replica].end if replica in self.state_moves else first
                    )
            until = min(self.horizon, self.horizon if task.deadline is None else task.deadline)
            for other, lag in self.successors[task.id]:
                if other in self.state.runs:
                    until = min(until, self.state.runs[other].start - lag)
            found.append(Activity(task.id, mode.duration, self._uses(mode, self.room), start, after, until))
        return found

    def _fits(self, activity: Activity, start: int) -> bool:
        end = start + activity.length
        return all(min(self.room[resource][start:end]) >= amount for resource, amount in activity.uses)

    def _next_fit(self, activity: Activity, start: int) -> int:
        """First start from there on at which the activity fits, past ``until`` if there is none."""
        while start + activity.length <= activity.until:
            tight = start - 1
            for resource, amount in activity.uses:
                part = self.room[resource][start : start + activity.length]
                if min(part) < amount:
                    tight = max(tight, start + max(i for i, free in enumerate(part) if free < amount))
            if tight < start:
                break
            start = tight + 1
        return start

    def _own(self, name: Any, end: int) -> Vector:
        """Cost of a run that ends then; a transfer has none."""
        mode = self.modes[name] if isinstance(name, str) else None
        if mode is None:
            return self.zero
        return tuple(form.run(self.table.tasks[name], mode, end) for form in self.forms)

    def _orders(self, todo: list[Activity], cost: Vector, last: int, after: int) -> None:
        """Serial earliest placement in every order of start ticks.

        A best plan with the least sum of starts is reproduced by placing its activities in the order of their
        starts, so two kinds of orders need not be followed: a next activity that starts before the last one
        (``after``), and one that starts when another could already have ended.
        """
        starts: dict[Any, int] = {}
        bound, end = cost, last
        for activity in todo:  # predecessors stand first
            start = activity.earliest
            for name, lag in activity.after:
                start = max(
                    start, lag + self.placed.get(name, starts.get(name, 0) + self.lengths.get(name, 0))
                )
            start = self._next_fit(activity, start)
            if start + activity.length > activity.until:
                return  # what is reserved only grows: it fits nowhere in any order from here
            starts[activity.name] = start
            bound = add(bound, self._own(activity.name, start + activity.length))
            end = max(end, start + activity.length) if isinstance(activity.name, str) else end
        if self.hopeless(bound, end):
            return
        if not todo:
            self._keep()
            return
        ready = [a for a in todo if all(p in self.placed for p, _ in a.after)]
        first_end = min(starts[a.name] + a.length for a in ready)
        for activity in ready:
            start = starts[activity.name]
            if not after <= start < first_end:
                continue
            end = start + activity.length
            grown = max(last, end) if isinstance(activity.name, str) else last
            self._place(activity, start)
            rest = [a for a in todo if a is not activity]
            self._orders(rest, add(cost, self._own(activity.name, end)), grown, start)
            self._remove(activity, start)

    def _count(self) -> None:
        self.steps += 1
        if self.steps > self.most_steps:
            raise TooLarge

    def _place(self, activity: Activity, start: int) -> None:
        self._count()
        self._take(self.room, activity.uses, start, start + activity.length)
        self.placed[activity.name], self.starts[activity.name] = start + activity.length, start

    def _remove(self, activity: Activity, start: int) -> None:
        self._take(self.room, activity.uses, start, start + activity.length, -1)
        del self.placed[activity.name], self.starts[activity.name]

    # storage: start ticks ------------------------------------------------------------------------
    def _storage_binds(self, modes: Mapping[str, Mode | None], routes: Mapping[Replica, Route]) -> bool:
        """Some site could not hold all replicas of the assignment at once."""
        for site, limit in self.table.storage.items():
            held = {d for d, s in [*routes, *self.state_moves] if s == site}
            if limit is not None and sum(self.table.size[d] for d in held) > limit:
                return True
        return False

    def _tick_runs(self, runs: list[Activity], cost: Vector, last: int) -> None:
        """Every start tick of every run, then of every transfer."""
        bound = cost
        for run in runs:
            bound = add(bound, self._own(run.name, run.earliest + run.length))
        if self.hopeless(bound, last):
            return
        if not runs:
            self._tick_moves(list(self.routes))
            return
        run, rest = runs[0], runs[1:]
        mode = self.modes[run.name]
        first = max([run.earliest, *(self.placed[p] + lag for p, lag in run.after if p in self.placed)])
        for replica in mode.replicas if mode else ():
            if replica in self.routes:
                first = max(first, self.table.available[replica[0]] + self.routes[replica].ticks)
        for start in range(first, run.until - run.length + 1):
            end = start + run.length
            now = add(cost, self._own(run.name, end))
            tail = now
            for other in rest:
                tail = add(tail, self._own(other.name, other.earliest + other.length))
            if self.hopeless(tail, max(last, end)):
                break  # a later start costs no less
            if not self._fits(run, start):
                continue
            self._place(run, start)
            if self._stored(latest=True):
                self._tick_runs(rest, now, max(last, end))
            self._remove(run, start)

    def _tick_moves(self, moves: list[Replica]) -> bool:
        """Some start of every transfer fits channels and storage: they cost the same whenever they start."""
        if not moves:
            if self._stored():
                self._keep()
                return True
            return False
        replica, route = moves[0], self.routes[moves[0]]
        readers = [self.starts[n] for n, m in self.modes.items() if m and replica in m.replicas]
        uses = self._channels(route, self.room)
        activity = Activity(replica, route.ticks, uses, 0, [], min(readers))
        for start in range(min(readers) - route.ticks, max(0, self.table.available[replica[0]]) - 1, -1):
            if self._fits(activity, start):
                self._place(activity, start)
                found = self._stored(latest=True) and self._tick_moves(moves[1:])
                self._remove(activity, start)
                if found:
                    return True
        return False

    def _stored(self, latest: bool = False) -> bool:
        """What is placed fits the storage of every site; open transfers count from their latest start on."""
        plan = self._plan(latest)
        for site, limit in self.table.storage.items():
            if limit is None:
                continue
            spans = [
                (m.start, held_until(plan, m), self.table.size[m.dataset])
                for m in plan.moves
                if m.site == site
            ]
            for tick in {max(0, first) for first, *_ in spans}:
                if sum(size for first, end, size in spans if first <= tick < end) > limit:
                    return False
        return True

    def _plan(self, partial: bool = False) -> Plan:
        """The plan that is placed now."""
        plan = Plan(dict(self.state.runs), list(self.state.moves))
        for name, mode in self.modes.items():
            if mode is not None and name in self.starts:
                plan.runs[name] = Run(mode, self.starts[name])
        for replica, route in self.routes.items():
            start = self.starts.get(replica, max(0, self.table.available[replica[0]]))
            if partial and replica not in self.starts:
                readers = [
                    r.start for r in plan.runs.values() if not r.running and replica in r.mode.replicas
                ]
                if not readers:
                    continue
                start = min(readers) - route.ticks
            plan.moves.append(Move(*replica, route, start))
        return plan

    def _keep(self) -> None:
        """A complete plan that is better than the best."""
        plan = self._plan()
        broken = broken_rules(self.table, plan)
        assert not broken, f"enumeration built a plan that breaks {broken}"
        score = 0
        for value in level_values(self.table, plan):
            score = score * BASE + value
        assert self.best_score is None or score < self.best_score
        self.best, self.best_score = plan, score


def enumerate_optimum(
    instance: Mapping[str, Any] | Path | Table, most: int = 10**9, most_steps: int = 10**9
) -> Answer:
    """The optimum of a small instance.

    Parameters
    ----------
    instance
        Dict, file, or its mode table.
    most
        Assignments whose timing may be enumerated before `TooLarge` is raised.
    most_steps
        Partial assignments and placements that may be tried before `TooLarge` is raised.
    """
    table = instance if isinstance(instance, Table) else build(instance)
    try:
        read_plan(table, {})
    except StopIteration:  # a filter has removed the mode of a running task
        return Answer(table, None, scale(table), [], 0, 0)
    return Search(table, most, most_steps).solve()
