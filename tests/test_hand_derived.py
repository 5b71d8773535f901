"""One instance per rule and per term whose optimum is derived by hand beside it, by every exact method.

The world: ticks of a minute, money units of a cent. Sites a and b; node n (at a) and node m (at b) of two
devices each, for nothing. Datasets d and e of 6 GB live at a. Link ab moves 6 GB in one tick
(6 * 8 / 0.8 = 60 s) for $3 (6 * $0.5). Device type t, model x: one device makes 1 sample a second.
"""

import copy
from typing import Any

import pytest

import optalloc as oa
from optalloc.instance import read_instance

WORLD: dict[str, Any] = {
    "format": "optalloc-instance/1",
    "name": "hand",
    "tick_seconds": 60,
    "money_unit_usd": 0.01,
    "sites": [{"id": "a"}, {"id": "b"}],
    "links": [{"id": "ab", "from": "a", "to": "b", "bandwidth_gbps": 0.8, "egress_usd_per_gb": 0.5}],
    "datasets": [
        {"id": "d", "size_gb": 6, "sites": ["a"], "relevance": {"v": 1}},
        {"id": "e", "size_gb": 6, "sites": ["a"], "relevance": {"v": 0.8}},
    ],
    "device_types": [{"id": "t", "memory_gb": 16, "interconnect_gbps": 8}],
    "nodes": [
        {"id": "n", "site": "a", "device_type": "t", "devices": 2, "usd_per_device_hour": 0},
        {"id": "m", "site": "b", "device_type": "t", "devices": 2, "usd_per_device_hour": 0},
    ],
    "models": [{"id": "x", "domain": "v"}],
    "throughputs": [{"model": "x", "device_type": "t", "measured": {"1": 1}}],
}


def mode(node: str, devices: int, ticks: int, *datasets: str, **more: Any) -> dict[str, Any]:
    """An explicit mode on one node."""
    uses = [{"node": node, "devices": devices}]
    return {
        "id": f"{node}{devices}x{ticks}",
        "uses": uses,
        "duration_ticks": ticks,
        "datasets": [*datasets],
        **more,
    }


def task(name: str, *modes: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A task of explicit modes."""
    return {"id": name, "modes": [*modes], **more}


def world(tasks: list[dict[str, Any]], level: Any, **changes: Any) -> dict[str, Any]:
    """The world with these tasks and levels; ``kind__id={...}`` changes an entry, other names top-level keys."""
    document = copy.deepcopy(WORLD)
    limits = changes.pop("limits", None)
    document["tasks"] = tasks
    document["objective"] = {"levels": level if isinstance(level, list) else [level]}
    if limits:
        document["objective"]["limits"] = limits
    for name, change in changes.items():
        kind, _, key = name.partition("__")
        if key:
            next(row for row in document[kind] if row["id"] == key).update(change)
        else:
            document[kind] = change
    return document


def solve(solver: str, document: dict[str, Any], **settings: Any) -> oa.Result:
    return oa.solve(read_instance(document), solver, time_limit=60, threads=1, **settings)


def optimum(solver: str, document: dict[str, Any], **settings: Any) -> Any:
    """The proven objective divided by K: a number, or a list if there are several levels."""
    result = solve(solver, document, **settings)
    assert result.status == "OPTIMAL", (result.status, result.message, result.reasons)
    values = [level.objective / result.weight_scale for level in result.levels if level.objective is not None]
    assert [level.bound for level in result.levels] == [level.objective for level in result.levels]
    return values if len(values) > 1 else values[0]


def placed(result: oa.Result) -> dict[str, tuple[int, int]]:
    """Start and end of every task that runs."""
    assert result.schedule is not None
    return {e.task: (e.segments[0].start, e.segments[0].end) for e in result.schedule.tasks if not e.rejected}


COMPLETION = {"weighted_completion": 1}
COST = {"cost": 1}


# rules -------------------------------------------------------------------------------------------
def test_r1_a_task_after_a_rejected_one_is_rejected(solver: str) -> None:
    """$5 + $3 = 8 for running both; 5 + 4 for leaving out q; 3 + 4 = 7 for leaving out both.

    Leaving out p alone (3 + 3 = 6) is not allowed: q comes after it.
    """
    p = task("p", mode("n", 1, 1, usd=5), reject_penalty=3)
    q = task("q", mode("n", 1, 1, usd=3), reject_penalty=4, after=[{"id": "p"}])
    assert optimum(solver, world([p, q], {"cost": 1, "rejected": 1})) == 7


def test_r1_a_task_before_one_that_must_run_must_run(solver: str) -> None:
    """q has no penalty, so p must run whatever its own penalty says: 5 + 3."""
    p = task("p", mode("n", 1, 1, usd=5), reject_penalty=1)
    q = task("q", mode("n", 1, 1, usd=3), after=[{"id": "p"}])
    assert optimum(solver, world([p, q], {"cost": 1, "rejected": 1})) == 8


def test_r2_a_mode_is_taken_whole(solver: str) -> None:
    """Slow and free 4, or quick and dear 1 + 0.5 * $8 = 5: the quick time at the low price is no mode."""
    t = task("p", mode("n", 1, 4), mode("n", 1, 1, usd=8))
    assert optimum(solver, world([t], {"weighted_completion": 1, "cost": 0.5})) == 4


def test_r3_release_rounds_up_and_deadline_down(solver: str) -> None:
    """Release 90 s is tick 2 and the deadline 239 s is tick 3: one tick fits (end 3), two do not."""
    times = {"release_s": 90, "deadline_s": 239}
    assert optimum(solver, world([task("p", mode("n", 1, 1), **times)], COMPLETION)) == 3
    assert solve(solver, world([task("p", mode("n", 1, 2), **times)], COMPLETION)).status == "INFEASIBLE"


def test_r4_lags_round_up(solver: str) -> None:
    """p ends at 1, a lag of 61 s is two ticks: q runs from 3 to 4."""
    q = task("q", mode("m", 1, 1), after=[{"id": "p", "lag_s": 61}])
    assert optimum(solver, world([task("p", mode("n", 1, 1)), q], {"makespan": 1})) == 4


def test_r5_devices(solver: str) -> None:
    """Three runs of 2 + 1 + 1 devices on two: the small ones together first, 1 + 1 + 2 (wide first: 1 + 2 + 2)."""
    tasks = [task("p", mode("n", 2, 1)), task("q", mode("n", 1, 1)), task("r", mode("n", 1, 1))]
    assert optimum(solver, world(tasks, COMPLETION)) == 4


def test_r5_calendars(solver: str) -> None:
    """A run lies inside availability: two ticks do not fit before the gap at tick 1, so 2 to 4.

    Without the gap, windows that touch are one: 0 to 2. A tick has the least capacity of its seconds: with one
    device until 90 s and two from then on, a run of two devices begins at tick 2.
    """
    two_ticks, two_devices = [task("p", mode("n", 1, 2))], [task("p", mode("n", 2, 1))]
    gap = {"availability": [[0, 60, 1], [120, 600, 1]]}
    touching = {"availability": [[0, 60, 1], [60, 600, 1]]}
    rising = {"availability": [[0, 90, 1], [90, 600, 2]]}
    assert optimum(solver, world(two_ticks, COMPLETION, nodes__n=gap)) == 4
    assert optimum(solver, world(two_ticks, COMPLETION, nodes__n=touching)) == 2
    assert optimum(solver, world(two_devices, COMPLETION, nodes__n=rising)) == 3
    late = world([task("p", mode("n", 1, 11))], COMPLETION, nodes__n=touching)
    assert solve(solver, late).status == "INFEASIBLE"


def test_r5_extra(solver: str) -> None:
    """Two runs of 6.1 GB of memory do not fit 12 GB beside each other: 1 + 2."""
    run = {"model": "x", "samples": 60, "datasets": [], "sites": ["a"], "extra": {"ram_gb": 6.1}}
    tasks = [{"id": "p", **run}, {"id": "q", **run}]
    assert optimum(solver, world(tasks, COMPLETION, nodes__n={"extra": {"ram_gb": 12}})) == 3
    assert optimum(solver, world(tasks, COMPLETION, nodes__n={"extra": {"ram_gb": 12.2}})) == 2


def test_r6_data_must_exist_and_have_arrived(solver: str) -> None:
    """Available at 61 s is tick 2. Local: 2 to 3. Staged: moved from 2 to 3, run from 3 to 4."""
    local, staged = [task("p", mode("n", 1, 1, "d"))], [task("p", mode("m", 1, 1, "d"))]
    assert optimum(solver, world(local, COMPLETION, datasets__d={"available_s": 61})) == 3
    assert optimum(solver, world(staged, COMPLETION, datasets__d={"available_s": 61})) == 4


def test_r6_a_transfer_may_start_before_the_release(solver: str) -> None:
    """Released at tick 3, the replica is there by then: 3 to 4."""
    t = task("p", mode("m", 1, 1, "d"), release_s=180)
    assert optimum(solver, world([t], COMPLETION)) == 4


def test_r7_one_transfer_a_channel(solver: str) -> None:
    """Two replicas over one channel arrive at 1 and 2: runs end at 2 and 3; without the limit both at 2."""
    tasks = [task("p", mode("m", 1, 1, "d")), task("q", mode("m", 1, 1, "e"))]
    assert optimum(solver, world(tasks, COMPLETION, links__ab={"channels": 1})) == 5
    assert optimum(solver, world(tasks, COMPLETION)) == 4


def test_r7_a_stream_holds_its_channel_while_it_runs(solver: str) -> None:
    """p streams d for 3 ticks; q needs e staged over the same channel.

    Stream first: p ends at 3, e arrives at 4, q ends at 5: 8. Transfer first: e arrives at 1, q ends at 2, p
    runs from 1 to 4: 6. p could stage d too: both transfers take 2, p first: 4 and 3: 7; q first: 2 and 5: 7.
    """
    tasks = [task("p", mode("m", 1, 3, "d")), task("q", mode("m", 1, 1, "e"))]
    changes = {"links__ab": {"channels": 1}, "datasets__d": {"streamable": True}}
    assert optimum(solver, world(tasks, COMPLETION, **changes)) == 6
    assert optimum(solver, world(tasks, COMPLETION, links__ab={"channels": 1})) == 7


def test_r8_storage_is_held_until_the_last_reader_ends(solver: str) -> None:
    """b holds one replica of 6 GB. d is there from 0 to the end of p at 3; e can come from 3 to 4; q ends at 6.

    The other way round it is the same: 3 + 6. With room for both: 3 + 3.
    """
    tasks = [task("p", mode("m", 1, 2, "d")), task("q", mode("m", 1, 2, "e"))]
    assert optimum(solver, world(tasks, COMPLETION, sites__b={"storage_gb": 11.9})) == 9
    assert optimum(solver, world(tasks, COMPLETION, sites__b={"storage_gb": 12})) == 6
    assert solve(solver, world(tasks, COMPLETION, sites__b={"storage_gb": 5.9})).status == "INFEASIBLE"


def test_r8_readers_share_a_replica(solver: str) -> None:
    """b holds one replica. p and r read d, q reads e; one device at a time.

    d for p and r together: moved by 1, runs end at 2 and 3, e moved by 4, q ends at 5: 10. e first: q 2, d by
    3, p and r 4 and 5: 11. e between p and r is impossible: d would have to come twice.
    """
    one = {"devices": 1}
    tasks = [
        task("p", mode("m", 1, 1, "d")),
        task("q", mode("m", 1, 1, "e")),
        task("r", mode("m", 1, 1, "d")),
    ]
    assert optimum(solver, world(tasks, COMPLETION, sites__b={"storage_gb": 6}, nodes__m=one)) == 10


def test_r9_seats(solver: str) -> None:
    """One reader at a time on two devices: 1 + 2."""
    tasks = [task("p", mode("n", 1, 1, "d")), task("q", mode("n", 1, 1, "d"))]
    assert optimum(solver, world(tasks, COMPLETION, datasets__d={"max_readers": 1})) == 3
    assert optimum(solver, world(tasks, COMPLETION)) == 2


def test_r10_limits_compare_exactly(solver: str) -> None:
    """Quick costs $2, slow $1: under $3 one is quick and one slow, 1 + 3; under $2.99 both are slow: 3 + 3."""
    modes = (mode("n", 1, 1, usd=2), mode("n", 1, 3, usd=1))
    tasks = [task("p", *modes), task("q", *modes)]
    assert optimum(solver, world(tasks, COMPLETION, limits={"cost": 3})) == 4
    assert optimum(solver, world(tasks, COMPLETION, limits={"cost": 2.99})) == 6
    assert solve(solver, world(tasks, COMPLETION, limits={"cost": 1.99})).status == "INFEASIBLE"


@pytest.mark.parametrize(
    ("limit", "cost"),
    [
        # one quick and one slow run end at 4, the quick ones at 2
        ({"makespan": 3}, 6),
        ({"makespan": 4}, 4),
        # quick 1, then slow 4; quick 1 and 2
        ({"weighted_completion": 5}, 4),
        ({"weighted_completion": 4.99}, 6),
        ({"weighted_flow": 5}, 4),
        # q is due at 1: slow and first it is 2 late; quick and first it is on time
        ({"weighted_tardiness": 2}, 2),
        ({"weighted_tardiness": 1.99}, 4),
        ({"late": 0}, 4),
        # a slow run loses 300
        ({"utility_loss": 300}, 4),
        ({"utility_loss": 299}, 6),
    ],
)
def test_r10_limits_of_every_term(solver: str, limit: dict[str, Any], cost: int) -> None:
    """One device, a quick run of 1 tick for $3, a slow one of 3 ticks for $1 that loses 300; least cost is 2."""
    modes = (mode("n", 2, 1, usd=3), mode("n", 2, 3, usd=1, utility=700))
    tasks = [task("p", *modes), task("q", *modes, due_s=60)]
    assert optimum(solver, world(tasks, COST, limits=limit)) == cost
    assert optimum(solver, world(tasks, COST)) == 2


def test_r10_limit_of_rejections(solver: str) -> None:
    """Leaving both out costs 2 + 3 in penalties but is limited to 3: p is left out for 2, q runs for $9."""
    p = task("p", mode("n", 1, 1, usd=9), reject_penalty=2)
    q = task("q", mode("n", 1, 1, usd=9), reject_penalty=3)
    assert optimum(solver, world([p, q], {"cost": 1, "rejected": 1})) == 5
    assert optimum(solver, world([p, q], {"cost": 1, "rejected": 1}, limits={"rejected": 3})) == 11


def test_r11_a_replica_is_moved_and_paid_once(solver: str) -> None:
    """Two readers at b, one transfer of $3."""
    tasks = [task("p", mode("m", 1, 1, "d")), task("q", mode("m", 1, 1, "d"))]
    result = solve(solver, world(tasks, COST))
    assert result.objective == 300
    assert result.schedule is not None
    assert len(result.schedule.transfers) == 1


# terms -------------------------------------------------------------------------------------------
def test_makespan(solver: str) -> None:
    """3 + 2 + 2 ticks on two devices: 4 (3 beside 2 + 2), not 5 (3 + 2 beside 2)."""
    tasks = [task(f"p{i}", mode("n", 1, ticks)) for i, ticks in enumerate((3, 2, 2))]
    assert optimum(solver, world(tasks, {"makespan": 1})) == 4


def test_makespan_without_any_run_is_zero(solver: str) -> None:
    """Leaving the task out costs 1, running it 2."""
    t = task("p", mode("n", 1, 2), reject_penalty=1)
    assert optimum(solver, world([t], {"makespan": 1, "rejected": 1})) == 1


def test_weighted_completion(solver: str) -> None:
    """Weight 3 with 2 ticks before weight 1 with 1 tick: 3 * 2 + 3 = 9 (the other way 1 + 3 * 3 = 10)."""
    tasks = [task("p", mode("n", 2, 2), weight=3), task("q", mode("n", 2, 1))]
    assert optimum(solver, world(tasks, COMPLETION)) == 9


def test_weighted_flow(solver: str) -> None:
    """q is released at tick 1, weight 2.5. p first: 2 + 2.5 * (3 - 1) = 7; q first: 2.5 * (2 - 1) + 4 = 6.5."""
    tasks = [task("p", mode("n", 2, 2)), task("q", mode("n", 2, 1), release_s=60, weight=2.5)]
    assert optimum(solver, world(tasks, {"weighted_flow": 1})) == 6.5


def test_weighted_tardiness(solver: str) -> None:
    """Due at 119 s is tick 1. p first: 0 + 2 * (3 - 1) = 4; q first: 0 + (3 - 2) = 1. r has no due date."""
    tasks = [
        task("p", mode("n", 2, 2), due_s=120),
        task("q", mode("n", 2, 1), due_s=119, weight=2),
        task("r", mode("m", 1, 9)),
    ]
    assert optimum(solver, world(tasks, {"weighted_tardiness": 1})) == 1


def test_late(solver: str) -> None:
    """Both are due at tick 2 and each lasts 2: the lighter one is late, or left out, for 1.5."""
    tasks = [
        task("p", mode("n", 2, 2), due_s=120, weight=1.5),
        task("q", mode("n", 2, 2), due_s=120, weight=2),
    ]
    assert optimum(solver, world(tasks, {"late": 1})) == 1.5
    tasks[0]["reject_penalty"] = 9
    assert optimum(solver, world(tasks, {"late": 1})) == 1.5


def test_rejected(solver: str) -> None:
    """By the deadline at 2 only one of two runs of 2 ticks fits: the lesser penalty, 2.5 of 3."""
    tasks = [task(f"p{i}", mode("n", 2, 2), deadline_s=120, reject_penalty=x) for i, x in enumerate((3, 2.5))]
    assert optimum(solver, world(tasks, {"rejected": 1})) == 2.5


def test_a_rejected_task_adds_to_three_terms_only(solver: str) -> None:
    """p must be left out (no room): penalty 7, late 2 * 1, lost utility 2 * 1000; no completion, no cost."""
    p = task("p", mode("n", 2, 2, usd=50), deadline_s=60, reject_penalty=7, weight=2)
    q = task("q", mode("n", 2, 1))
    level = {"rejected": 1, "late": 1, "utility_loss": 0.001, "weighted_completion": 1, "cost": 1}
    assert optimum(solver, world([p, q], level)) == 7 + 2 + 2 + 1


def test_cost_rounds_every_item_once(solver: str) -> None:
    """Device time: 3 ticks * 2 devices * $1.25 / 60 = $0.125 -> 13 cents. Price $0.005 -> 1 cent.

    Egress 6 GB * $0.0041 = $0.0246 -> 2 cents. Together 16 (rounding the sum of $0.1546 would give 15).
    """
    t = {"id": "p", "model": "x", "samples": 180, "device_counts": [2], "datasets": ["d"], "sites": ["b"]}
    changes: dict[str, Any] = {
        "throughputs": [{"model": "x", "device_type": "t", "measured": {"2": 1}}],
        "nodes__m": {"usd_per_device_hour": 1.25},
        "datasets__d": {"price_usd": 0.005},
        "links__ab": {"egress_usd_per_gb": 0.0041},
    }
    result = solve(solver, world([t], COST, **changes))
    assert (result.objective, result.weight_scale) == (16, 100)


def test_cost_of_prices_once_and_per_use(solver: str) -> None:
    """Two readers: $1 for each use is 2, $1.5 once is 1.5."""
    tasks = [task("p", mode("n", 1, 1, "d")), task("q", mode("n", 1, 1, "d"))]
    assert optimum(solver, world(tasks, COST, datasets__d={"price_usd": 1})) == 2
    assert optimum(solver, world(tasks, COST, datasets__d={"price_usd": 1.5, "pricing": "once"})) == 1.5


def test_once_prices_pull_tasks_to_one_dataset(solver: str) -> None:
    """d costs $3 once, e $1 a use at 200 less utility, for two tasks at 0.006 a permille.

    Both on d: 3. Both on e: 2 + 2 * 1.2 = 4.4. One each: 3 + 1 + 1.2 = 5.2. One task alone: e for 2.2.
    """
    run = {"model": "x", "samples": 60, "sites": ["a"]}
    level = {"cost": 1, "utility_loss": 0.006}
    prices: dict[str, Any] = {
        "datasets__d": {"price_usd": 3, "pricing": "once"},
        "datasets__e": {"price_usd": 1},
    }
    assert optimum(solver, world([{"id": "p", **run}, {"id": "q", **run}], level, **prices)) == 3
    assert optimum(solver, world([{"id": "p", **run}], level, **prices)) == pytest.approx(2.2)


def test_cost_of_streams_is_paid_each_run(solver: str) -> None:
    """Nothing may be stored at b, so both stream: 2 * $3; each lasts at least the tick the data need."""
    tasks = [task("p", mode("m", 1, 1, "d")), task("q", mode("m", 1, 1, "d"))]
    changes: dict[str, Any] = {"sites__b": {"storage_gb": 1}, "datasets__d": {"streamable": True}}
    assert optimum(solver, world(tasks, COST, **changes)) == 6
    slow = changes | {"links__ab": {"latency_s": 61}}
    assert optimum(solver, world(tasks, {"makespan": 1}, **slow)) == 3  # ceil((61 + 60) / 60)


def test_utility_loss(solver: str) -> None:
    """Relevance 0.8 * quality 0.75 = 600 permille; weight 2: 800. d would lose 0 but is not a candidate."""
    t = {"id": "p", "model": "x", "samples": 60, "datasets": ["e"], "weight": 2}
    assert optimum(solver, world([t], {"utility_loss": 1}, datasets__e={"quality": 0.75})) == 800


def test_utility_of_several_inputs(solver: str) -> None:
    """Shares 1 and 3 of utilities 1000 and 800: 850. Both inputs on d is not allowed."""
    t = {
        "id": "p",
        "model": "x",
        "samples": 60,
        "inputs": [{"datasets": ["d", "e"]}, {"datasets": ["d", "e"], "share": 3}],
    }
    assert optimum(solver, world([t], {"utility_loss": 1})) == 50  # d takes the share of 3: (800 + 3000) / 4
    t["inputs"] = [{"datasets": ["d"]}, {"datasets": ["e"], "share": 3}]
    assert optimum(solver, world([t], {"utility_loss": 1})) == 150


# physics -----------------------------------------------------------------------------------------
def test_poor_data_need_more_work(solver: str) -> None:
    """kappa 2 and utility 800: 60 * (1 + 2 * 0.2) = 84 samples, two ticks; kappa 0: one."""
    t = {"id": "p", "model": "x", "samples": 60, "datasets": ["e"], "kappa": 2}
    assert optimum(solver, world([t], COMPLETION)) == 2
    assert optimum(solver, world([t | {"kappa": 0}], COMPLETION)) == 1


def test_set_up_is_run_and_billed(solver: str) -> None:
    """1 s of set-up makes 60 s of work two ticks, billed as two minutes of $60 an hour."""
    t = {"id": "p", "model": "x", "samples": 60, "datasets": [], "setup_s": {"t": 1}, "sites": ["a"]}
    nodes = {"usd_per_device_hour": 60}
    assert optimum(solver, world([t], {"cost": 1, "makespan": 100}, nodes__n=nodes)) == 202


@pytest.mark.parametrize(
    ("scaling", "ticks"),
    [
        (None, 4),  # one device only: nothing is invented for two
        ({"name": "linear", "parameters": {}}, 2),
        ({"name": "amdahl", "parameters": {"f": 0.5}}, 3),  # 240 * (0.5 + 0.25)
        (
            {"name": "affine_log", "parameters": {"a": 0.1, "b": 0.5, "c": 0.3}},
            3,
        ),  # 240 * (0.1 + 0.25 + 0.3) = 156
        # ring: 120 samples a step: 60 s of compute and 2 (1/2) * 20 GB / 1 GB/s = 20 s of reduction: 240 * 80 / 120
        ({"name": "ring", "parameters": {"gam": 1, "batch_samples": 120}}, 3),
        # overlapped: (60^2 + 80^2)^(1/2) = 100 s a step with 80 GB: 240 * 100 / 120 = 200
        ({"name": "ring", "parameters": {"gam": 2, "batch_samples": 120}}, 4),
    ],
)
def test_scaling(solver: str, scaling: dict[str, Any] | None, ticks: int) -> None:
    """240 samples at 1 a second; the best of one and two devices."""
    size = 80 if scaling and scaling["parameters"].get("gam") == 2 else 20
    model: dict[str, Any] = {"id": "x", "domain": "v", "size_gb": size}
    model |= {"scaling": scaling} if scaling else {}
    t = {"id": "p", "model": "x", "samples": 240, "datasets": [], "sites": ["a"]}
    assert optimum(solver, world([t], COMPLETION, models=[model])) == ticks


def test_measured_rates_override_scaling(solver: str) -> None:
    """Two devices are measured slower than one: one is used; a rate of 0 means out of memory."""
    models = [{"id": "x", "domain": "v", "scaling": {"name": "linear", "parameters": {}}}]
    t = {"id": "p", "model": "x", "samples": 240, "datasets": [], "sites": ["a"]}
    slower = [{"model": "x", "device_type": "t", "measured": {"1": 1, "2": 0.5}}]
    assert optimum(solver, world([t], COMPLETION, models=models, throughputs=slower)) == 4
    none = [{"model": "x", "device_type": "t", "measured": {"1": 1, "2": 0}}]
    never = world([t | {"device_counts": [2]}], COMPLETION, models=models, throughputs=none)
    assert solve(solver, never).status == "INFEASIBLE"


def test_filters_of_a_task(solver: str) -> None:
    """Each filter alone takes the better mode away: memory, sites, least utility, budget."""
    t = {"id": "p", "model": "x", "samples": 60, "datasets": ["d", "e"], "sites": ["a"]}
    level = {"utility_loss": 1}
    cheap: dict[str, Any] = {"datasets__d": {"price_usd": 0.72}}
    assert optimum(solver, world([t], level, **cheap)) == 0
    assert optimum(solver, world([t | {"budget_usd": 0.719}], level, **cheap)) == 200
    assert optimum(solver, world([t | {"min_utility": 0.8}], COST, **cheap)) == 0
    assert optimum(solver, world([t | {"min_utility": 0.8001}], COST, **cheap)) == 0.72
    far = world([t | {"sites": ["b"]}], COMPLETION)
    assert optimum(solver, far) == 2
    assert solve(solver, world([t | {"memory_gb_per_device": 16.1}], level)).status == "INFEASIBLE"


def test_routes_trade_time_for_money(solver: str) -> None:
    """The direct link takes 1 tick for $3; the way over c two for $0.6: 2 + 3 = 5 against 3 + 0.6 = 3.6."""
    sites = [{"id": "a"}, {"id": "b"}, {"id": "c"}]
    slow = {"bandwidth_gbps": 0.4, "egress_usd_per_gb": 0.05}
    links = [
        *WORLD["links"],
        {"id": "ac", "from": "a", "to": "c", **slow},
        {"id": "cb", "from": "c", "to": "b", **slow},
    ]
    document = world([task("p", mode("m", 1, 1, "d"))], COMPLETION | COST, sites=sites, links=links)
    assert optimum(solver, document) == pytest.approx(3.6)
    document["objective"]["levels"][0]["cost"] = 0.1
    assert optimum(solver, document) == pytest.approx(2.3)  # 2 + 0.3 against 3 + 0.06


def test_both_ways_has_its_own_channel(solver: str) -> None:
    """d goes from a to b and f from b to a at the same time, on a link of one channel each way: 2 + 2."""
    datasets = [*WORLD["datasets"], {"id": "f", "size_gb": 6, "sites": ["b"]}]
    tasks = [task("p", mode("m", 1, 1, "d")), task("q", mode("n", 1, 1, "f"))]
    changes: dict[str, Any] = {"links__ab": {"channels": 1, "both_ways": True}, "datasets": datasets}
    assert optimum(solver, world(tasks, COMPLETION, **changes)) == 4


# levels, state, scopes ---------------------------------------------------------------------------
def test_levels_are_lexicographic(solver: str) -> None:
    """First the end: quick modes end at 1 for $9 at 100 lost, or $7 at 300 lost; then money; then utility."""
    modes = (mode("n", 1, 1, usd=9, utility=900), mode("m", 1, 1, usd=7, utility=700), mode("m", 1, 2))
    t = task("p", *modes)
    ends, money, loss = {"weighted_completion": 1}, {"cost": 1}, {"utility_loss": 1}
    assert optimum(solver, world([t], [ends, money, loss])) == [1, 7, 300]
    assert optimum(solver, world([t], [ends, loss, money])) == [1, 100, 9]
    assert optimum(solver, world([t], [money, ends, loss])) == [0, 2, 0]


def test_k_is_the_least_integer(solver: str) -> None:
    """0.35 * $0.01 needs 2000 (0.0035 = 7/2000), 0.5 * weight 1.5 needs 4: K = 2000."""
    t = task("p", mode("n", 1, 1, usd=0.01), weight=1.5)
    result = solve(solver, world([t], {"cost": 0.35, "weighted_completion": 0.5}))
    assert result.weight_scale == 2000
    assert result.objective == 2000 * 0.75 + 7


def test_state(solver: str) -> None:
    """p runs since tick -1 on both devices and ends at 2, read d, which is paid; the replica at b is under way.

    q waits for the devices (2 to 3) and buys nothing; r reads the replica that arrives at 1 (1 to 2), for
    nothing; p's completion counts: 2 + 3 + 2 = 7.
    """
    paid = {"price_usd": 50, "pricing": "once"}
    tasks = [
        task("p", mode("n", 2, 3, "d", usd=9), release_s=600),
        task("q", mode("n", 2, 1, "d")),
        task("r", mode("m", 1, 1, "d")),
    ]
    choice = {"mode": "n2x3", "inputs": [{"dataset": "d", "access": "local", "route": None}]}
    segment = {"uses": [{"node": "n", "devices": 2}], "start": -1, "end": 2}
    state = {
        "tasks": [{"task": "p", "choice": choice, "segments": [segment]}],
        "transfers": [{"dataset": "d", "site": "b", "route": ["ab"], "start": 0}],
    }
    document = world(tasks, COMPLETION | COST, datasets__d=paid, state=state)
    assert optimum(solver, document) == 7
    assert optimum(solver, world(tasks[1:], COMPLETION | COST, datasets__d=paid)) == 1 + 2 + 50 + 3


def test_state_holds_storage(solver: str) -> None:
    """e is at b since tick -1 for r, which runs until 2; b has room for one: d comes from 2 to 3, q ends at 4."""
    tasks = [task("r", mode("m", 1, 2, "e")), task("q", mode("m", 1, 1, "d"))]
    choice = {"mode": "m1x2", "inputs": [{"dataset": "e", "access": "staged", "route": None}]}
    segment = {"uses": [{"node": "m", "devices": 1}], "start": 0, "end": 2}
    state = {
        "tasks": [{"task": "r", "choice": choice, "segments": [segment]}],
        "transfers": [{"dataset": "e", "site": "b", "route": ["ab"], "start": -1}],
    }
    document = world(tasks, COMPLETION, sites__b={"storage_gb": 6}, state=state)
    assert optimum(solver, document) == 6


def test_fixed_part_and_not_before(solver: str) -> None:
    """p is fixed at 1 to 3 on both devices; q may start from 1 on: 3 to 4. Alone from tick 2 on: 2 to 3."""
    tasks = [task("p", mode("n", 2, 2)), task("q", mode("n", 2, 1))]
    instance = read_instance(world(tasks, COMPLETION))
    problem = oa.compile(instance)
    first = oa.solve(problem, solver, time_limit=60, threads=1, not_before=1, tasks=["p"])
    assert first.status == "OPTIMAL"
    assert placed(first) == {"p": (1, 3)}
    both = oa.solve(problem, solver, time_limit=60, threads=1, fixed=first.schedule, not_before=1)
    assert placed(both) == {"p": (1, 3), "q": (3, 4)}
    assert both.objective == 7
    alone = oa.solve(problem, solver, time_limit=60, threads=1, not_before=2, tasks=["q"])
    assert placed(alone) == {"q": (2, 3)}
