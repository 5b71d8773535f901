"""compile() against an independent derivation of the mode table in exact fractions."""

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from support import evaluator, mode_table
from support.random_instances import PROFILES, random_instance

from optalloc.compilation import compile
from optalloc.instance import read_instance
from optalloc.problem import ACCESS_NAMES, CHANNEL, DEVICES, EXTRA, NEVER, SEATS, Problem

SEEDS = {"small": range(140), "tiny": range(150), "medium": range(60)}


def labelled(problem: Problem, resource: int) -> tuple[str, str]:
    """(kind, id of the owner) of a resource."""
    owner = int(problem.resource_owner[resource])
    kind = int(problem.resource_kind[resource])
    ids = {
        DEVICES: problem.node_ids,
        EXTRA: problem.node_ids,
        CHANNEL: problem.link_ids,
        SEATS: problem.dataset_ids,
    }
    names = {DEVICES: "devices", EXTRA: "extra", CHANNEL: "channel", SEATS: "seat"}
    return names[kind], ids[kind][owner]


def compiled_modes(problem: Problem, task: int) -> dict[Any, Any]:
    """Content -> facts of every mode of a task, dominated ones included."""
    found = {}
    source = problem.instance.tasks[task]
    for mode in problem.modes_of(task, active=False).tolist():
        inputs = []
        for dataset, access, route in problem.inputs(mode):
            links = (
                tuple(problem.link_ids[link] for link in problem.route_links[route]) if route >= 0 else None
            )
            inputs.append((problem.dataset_ids[dataset], ACCESS_NAMES[access], links))
        uses: dict[str, dict[str, Any]] = {"devices": {}, "channel": {}, "seat": {}, "extra": {}}
        for resource, amount in problem.uses(mode):
            kind, owner = labelled(problem, resource)
            whole = int(problem.capacity(resource)[1][0])
            share = Fraction(amount, whole) if kind == "extra" else amount
            key = (owner, share) if kind == "extra" else owner
            uses[kind][key] = uses[kind].get(key, 0) + share
        explicit = int(problem.explicit[mode])
        name = source.modes[explicit].id if explicit >= 0 else None
        key = (name, tuple(inputs), tuple(sorted(uses.pop("devices").items())))
        assert key not in found, f"{key} is listed twice"
        found[key] = {
            "duration": int(problem.duration[mode]),
            "money": int(problem.money[mode]),
            "utility": int(problem.utility[mode]),
            "available": int(problem.available[mode]),
            "needs": {
                (problem.dataset_ids[problem.replica_dataset[k]], problem.site_ids[problem.replica_site[k]])
                for k in problem.needs(mode)
            },
            "buys": {problem.dataset_ids[problem.purchase_dataset[b]] for b in problem.buys(mode)},
            **uses,
        }
    return found


def expected_modes(table: mode_table.Table, task: str) -> dict[Any, Any]:
    """The same from the independent table."""
    found = {}
    for mode in table.tasks[task].modes:
        channels: dict[str, int] = {}
        extra: dict[Any, Fraction] = {}
        for chosen in mode.inputs:
            for link in chosen.route.channels if chosen.route else ():
                channels[link] = channels.get(link, 0) + 1
        for node, key, amount in mode.extra:
            share = amount / table.extra[node, key]
            extra[node, share] = extra.get((node, share), Fraction(0)) + share
        found[mode.key] = {
            "duration": mode.duration,
            "money": mode.money,
            "utility": mode.utility,
            "available": mode.available,
            "needs": set(mode.replicas),
            "buys": set(mode.datasets) & table.once.keys(),
            "channel": channels,
            "seat": {d: 1 for d in mode.datasets if table.seats[d] is not None},
            "extra": extra,
        }
    return found


def without_free_purchases(modes: dict[Any, Any], free: set[str]) -> dict[Any, Any]:
    """A purchase that costs nothing may stand in the lists or not."""
    return {key: {**facts, "buys": facts["buys"] - free} for key, facts in modes.items()}


def check_modes(problem: Problem, table: mode_table.Table) -> None:
    free = {d for d, price in table.once.items() if price == 0}
    for j, task in enumerate(problem.task_ids):
        got = without_free_purchases(compiled_modes(problem, j), free)
        assert got == without_free_purchases(expected_modes(table, task), free), task
    prices = {
        problem.dataset_ids[d]: int(c)
        for d, c in zip(problem.purchase_dataset, problem.purchase_cost, strict=True)
    }
    assert all(table.once[d] == price for d, price in prices.items())


def check_tasks(problem: Problem, table: mode_table.Table) -> None:
    for j, name in enumerate(problem.task_ids):
        task = table.tasks[name]
        assert int(problem.release[j]) == task.release
        assert int(problem.due[j]) == (NEVER if task.due is None else task.due)
        assert int(problem.deadline[j]) == (NEVER if task.deadline is None else task.deadline)
        assert bool(problem.rejectable[j]) == task.rejectable
        assert sorted((problem.task_ids[p], lag) for p, lag in problem.predecessors(j)) == sorted(task.after)
    assert problem.scale == evaluator.scale(table)


def check_capacities(problem: Problem, table: mode_table.Table) -> None:
    for resource in range(problem.num_resources):
        kind, owner = labelled(problem, resource)
        times, amounts = (array.tolist() for array in problem.capacity(resource))
        assert times[0] == 0
        assert times == sorted(set(times))
        if kind == "devices":
            row = table.calendar[owner]
            for tick in range(len(row) + 3):
                last = max(i for i, time in enumerate(times) if time <= tick)
                assert amounts[last] == row[min(tick, len(row) - 1)], (owner, tick)
        elif kind == "channel":
            assert (times, amounts) == ([0], [table.channels[owner]])
        elif kind == "seat":
            assert (times, amounts) == ([0], [table.seats[owner]])


def check_routes(problem: Problem, table: mode_table.Table) -> None:
    """Every kept route has the right facts, and every other one is no better than a kept one."""
    for k in range(problem.num_replicas):
        dataset = problem.dataset_ids[problem.replica_dataset[k]]
        site = problem.site_ids[problem.replica_site[k]]
        known = {route.links: route for route in table.routes[dataset, site]}
        assert int(problem.replica_available[k]) == table.available[dataset]
        kept = []
        for q in problem.routes_of(k):
            route = known.pop(tuple(problem.link_ids[link] for link in problem.route_links[q]))
            channels = {labelled(problem, r)[1] for r in problem.route_channels[q]}
            assert (int(problem.route_ticks[q]), int(problem.route_cost[q])) == (route.ticks, route.cost)
            assert channels == route.channels
            kept.append(route)
        for route in known.values():
            assert any(
                o.ticks <= route.ticks and o.cost <= route.cost and o.channels <= route.channels for o in kept
            )
        limit, size = table.storage[site], table.size[dataset]
        storage = int(problem.site_storage[problem.replica_site[k]])
        assert (storage >= NEVER) == (limit is None)
        if limit:
            assert Fraction(int(problem.replica_size[k]), storage) == size / limit


def check(source: Mapping[str, Any] | Path) -> None:
    """Everything that compile() derives equals the independent derivation."""
    problem, table = compile(read_instance(source)), mode_table.build(source)
    check_tasks(problem, table)
    check_modes(problem, table)
    check_capacities(problem, table)
    check_routes(problem, table)


def test_independent_table_counts_modes_as_published(shared: Path) -> None:
    """The independent derivation itself counts the modes of every small case as its expected file does."""
    for path in sorted((shared / "bench" / "small_cases").glob("*.expected.json")):
        expected = mode_table.exact(path)
        table = mode_table.build(path.with_name(path.name.replace(".expected", "")))
        assert {name: len(task.modes) for name, task in table.tasks.items()} == expected["modes_per_task"], (
            path.name
        )


def test_independent_evaluator_agrees_with_published_plans(shared: Path) -> None:
    """Every published plan keeps every rule, with the published terms, levels and K."""
    for path in sorted((shared / "bench" / "small_cases").glob("*.expected.json")):
        expected = mode_table.exact(path)
        table = mode_table.build(path.with_name(path.name.replace(".expected", "")))
        assert evaluator.scale(table) == expected["K"], path.name
        if expected["schedule"] is None:
            continue
        plan = evaluator.read_plan(table, expected["schedule"])
        assert not evaluator.broken_rules(table, plan), path.name
        assert evaluator.terms(table, plan) == {t: Fraction(v) for t, v in expected["terms"].items()}, (
            path.name
        )
        assert evaluator.level_values(table, plan) == expected["levels"], path.name


def test_small_cases(shared: Path) -> None:
    """compile() derives every small case as the independent table does."""
    for path in sorted((shared / "bench" / "small_cases").glob("*.json")):
        if not path.name.endswith(".expected.json"):
            check(path)


@pytest.mark.parametrize("profile", PROFILES)
def test_random_instances(profile: str) -> None:
    """compile() derives every random instance as the independent table does, dominated modes included."""
    for seed in SEEDS[profile]:
        try:
            check(random_instance(seed, profile))
        except Exception as error:
            error.add_note(f"instance: {profile} {seed}")
            raise
