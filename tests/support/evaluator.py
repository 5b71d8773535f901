"""The rules and the objective, read a second time: on the mode table, tick by tick, without the library."""

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from support.mode_table import Mode, Route, Table, all_links, by_id, route_of

TERMS = (
    "makespan", "weighted_completion", "weighted_flow", "weighted_tardiness",
    "late", "rejected", "cost", "utility_loss",
)  # fmt: skip


@dataclass(frozen=True)
class Run:
    """A placed task."""

    mode: Mode
    start: int
    running: bool = False
    """Part of the state."""

    @property
    def end(self) -> int:
        return self.start + self.mode.duration


@dataclass(frozen=True)
class Move:
    """A transfer."""

    dataset: str
    site: str
    route: Route
    start: int
    running: bool = False

    @property
    def end(self) -> int:
        return self.start + self.route.ticks


@dataclass
class Plan:
    """Decisions: a task without a run is rejected."""

    runs: dict[str, Run] = field(default_factory=dict)
    moves: list[Move] = field(default_factory=list)


def find_mode(table: Table, task: str, row: Mapping[str, Any]) -> Mode:
    """The mode that an entry of a schedule names by content."""
    choice = row["choice"]
    inputs = tuple(
        (i["dataset"], i["access"], tuple(i["route"]) if i["access"] == "streamed" else None)
        for i in choice["inputs"]
    )
    uses = tuple(sorted((u["node"], u["devices"]) for u in row["segments"][0]["uses"]))
    key = (choice.get("mode"), inputs, uses)
    return next(mode for mode in table.tasks[task].modes if mode.key == key)


def find_route(table: Table, dataset: str, links: list[str]) -> Route:
    """The facts of a route that is named by its links."""
    known = by_id({"links": all_links(table.raw)}, "links")
    return route_of(table, table.size[dataset], [known[link] for link in links])


def read_plan(table: Table, schedule: Mapping[str, Any]) -> Plan:
    """The plan in a schedule file, with the state of the instance added to it."""
    plan = Plan()
    state = table.raw.get("state") or {}
    for source, running in ((state, True), (schedule, False)):
        for row in source.get("tasks") or []:
            if row["task"] not in plan.runs and not row.get("rejected"):
                mode = find_mode(table, row["task"], row)
                plan.runs[row["task"]] = Run(mode, row["segments"][0]["start"], running)
        for row in source.get("transfers") or []:
            if not any((m.dataset, m.site) == (row["dataset"], row["site"]) for m in plan.moves):
                route = find_route(table, row["dataset"], row["route"])
                plan.moves.append(Move(row["dataset"], row["site"], route, row["start"], running))
    return plan


def write_plan(table: Table, plan: Plan) -> dict[str, Any]:
    """A plan as a schedule file."""
    tasks: list[dict[str, Any]] = []
    for name in table.tasks:
        run = plan.runs.get(name)
        if run is None:
            tasks.append({"task": name, "rejected": True})
            continue
        inputs = [
            {"dataset": i.dataset, "access": i.access, "route": list(i.route.links) if i.route else None}
            for i in run.mode.inputs
        ]
        choice: dict[str, Any] = {"inputs": inputs}
        if run.mode.explicit is not None:
            choice["mode"] = run.mode.explicit
        uses = [{"node": node, "devices": devices} for node, devices in run.mode.uses]
        tasks.append(
            {"task": name, "choice": choice, "segments": [{"uses": uses, "start": run.start, "end": run.end}]}
        )
    transfers = [
        {"dataset": m.dataset, "site": m.site, "route": list(m.route.links), "start": m.start}
        for m in plan.moves
    ]
    return {
        "format": "optalloc-schedule/1",
        "instance": table.raw.get("name", ""),
        "instance_sha256": None,
        "tasks": tasks,
        "transfers": transfers,
    }


# rules ---------------------------------------------------------------------------------------------
def broken_rules(table: Table, plan: Plan) -> set[str]:
    """Names of the rules that a plan breaks."""
    broken = set()
    for name, task in table.tasks.items():
        run = plan.runs.get(name)
        dead = [p for p, _ in task.after if p not in plan.runs]
        if run is None:
            broken |= set() if task.rejectable else {"R1"}
            continue
        broken |= {"R1"} if dead else set()
        broken |= set() if run.mode in task.modes else {"R2"}
        if not run.running:
            if run.start < task.release or (task.deadline is not None and run.end > task.deadline):
                broken.add("R3")
            broken |= {"R6"} if late_data(plan, run) else set()
        for other, lag in task.after:
            if other in plan.runs and run.start < plan.runs[other].end + lag:
                broken.add("R4")
    for move in plan.moves:
        if not move.running and move.start < max(0, table.available[move.dataset]):
            broken.add("R6")
    if len({(m.dataset, m.site) for m in plan.moves}) < len(plan.moves):
        broken.add("R11")
    last = max([0, *(r.end for r in plan.runs.values()), *(m.end for m in plan.moves)])
    for tick in range(last):
        broken |= broken_at(table, plan, tick)
    values = terms(table, plan)
    for term, limit in ((table.raw["objective"] or {}).get("limits") or {}).items():
        value = values[term] * (table.unit if term == "cost" else 1)
        broken |= {"R10"} if value > Fraction(limit) else set()
    return broken


def late_data(plan: Plan, run: Run) -> bool:
    """A run starts before its data exist, or before a replica that it needs has arrived."""
    if run.start < max(run.mode.available, 0):
        return True
    for dataset, site in run.mode.replicas:
        moves = [m for m in plan.moves if (m.dataset, m.site) == (dataset, site)]
        if not moves or moves[0].end > run.start:
            return True
    return False


def broken_at(table: Table, plan: Plan, tick: int) -> set[str]:
    """Capacity rules that one tick breaks."""
    broken = set()
    runs = [r for r in plan.runs.values() if r.start <= tick < r.end]
    devices: dict[str, int] = defaultdict(int)
    extra: dict[tuple[str, str], Fraction] = defaultdict(Fraction)
    channels: dict[str, int] = defaultdict(int)
    readers: dict[str, int] = defaultdict(int)
    for run in runs:
        for node, count in run.mode.uses:
            devices[node] += count
        for node, key, amount in run.mode.extra:
            extra[node, key] += amount
        for chosen in run.mode.inputs:
            readers[chosen.dataset] += 1
            for link in chosen.route.links if chosen.route else ():
                channels[link] += 1
    for move in plan.moves:
        if move.start <= tick < move.end:
            for link in move.route.links:
                channels[link] += 1
    for node, count in devices.items():
        row = table.calendar[node]
        broken |= {"R5"} if count > row[min(tick, len(row) - 1)] else set()
    broken |= {"R5" for pair, amount in extra.items() if amount > table.extra[pair]}
    broken |= {"R7" for link, count in channels.items() if over(count, table.channels[link])}
    broken |= {"R9" for dataset, count in readers.items() if over(count, table.seats[dataset])}
    for site, limit in table.storage.items():
        held = sum(
            table.size[m.dataset]
            for m in plan.moves
            if m.site == site and m.start <= tick < held_until(plan, m)
        )
        broken |= {"R8"} if limit is not None and held > limit else set()
    return broken


def over(count: int, limit: int | None) -> bool:
    return limit is not None and count > limit


def held_until(plan: Plan, move: Move) -> int:
    """End of the last reader, or of the transfer itself."""
    readers = [r.end for r in plan.runs.values() if (move.dataset, move.site) in r.mode.replicas]
    return max([move.end, *readers])


# objective -----------------------------------------------------------------------------------------
def terms(table: Table, plan: Plan) -> dict[str, Fraction]:
    """Every term, in ticks and money units."""
    value = dict.fromkeys(TERMS, Fraction(0))
    for name, task in table.tasks.items():
        run = plan.runs.get(name)
        if run is None:
            value["rejected"] += task.penalty or 0
            value["late"] += task.weight
            value["utility_loss"] += 1000 * task.weight
            continue
        over_due = 0 if task.due is None else max(0, run.end - task.due)
        value["makespan"] = max(value["makespan"], Fraction(run.end))
        value["weighted_completion"] += task.weight * run.end
        value["weighted_flow"] += task.weight * (run.end - task.release)
        value["weighted_tardiness"] += task.weight * over_due
        value["late"] += task.weight * (over_due > 0)
        value["utility_loss"] += task.weight * (1000 - run.mode.utility)
        value["cost"] += run.mode.money
    value["cost"] += sum(m.route.cost for m in plan.moves if not m.running)
    used = {d for run in plan.runs.values() for d in run.mode.datasets}
    value["cost"] += sum(price for d, price in table.once.items() if d in used)
    return value


def levels_of(table: Table) -> list[dict[str, Fraction]]:
    """Levels as term -> weight, money still per $."""
    objective = table.raw.get("objective") or {}
    levels = objective.get("levels") or [{"weighted_completion": 1, "cost": 1}]
    return [{term: Fraction(weight) for term, weight in level.items()} for level in levels]


def scale(table: Table) -> int:
    """K: makes every weight times unit, task weight or penalty whole."""
    factors = {
        "makespan": [Fraction(1)],
        "cost": [table.unit],
        "rejected": [t.penalty for t in table.tasks.values() if t.penalty is not None],
    }
    weights = [t.weight for t in table.tasks.values()]
    products = [
        w * f for level in levels_of(table) for term, w in level.items() for f in factors.get(term, weights)
    ]
    return math.lcm(1, *(p.denominator for p in products))


def level_values(table: Table, plan: Plan) -> list[int]:
    """The K-scaled objective of every level."""
    value, big = terms(table, plan), scale(table)
    value["cost"] *= table.unit
    return [int(big * sum(w * value[term] for term, w in level.items())) for level in levels_of(table)]
