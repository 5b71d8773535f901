"""The price bound: never above an optimum, re-derived exactly by plain loops, refused when tampered with."""

import json
import threading
from dataclasses import fields, replace
from itertools import count

import numpy as np
import pytest
from support.oracle import TooLarge, enumerate_optimum
from support.random_instances import begun_earlier, random_instance

import optalloc as oa
from optalloc.certificate import check_bound, combined
from optalloc.errors import InputError
from optalloc.generators import generate
from optalloc.instance import read_instance
from optalloc.io.certificates import read_certificate, write_certificate
from optalloc.io.faults import json_path
from optalloc.schedule import build_scope
from optalloc.scope import full_scope, start_intervals
from optalloc.solvers.base import Monitor
from optalloc.solvers.price_bound import least_value, price_bound, price_horizon
from optalloc.solvers.prices.alike import alike_nodes
from optalloc.solvers.prices.ascent import (
    STAGES,
    Settings,
    Stage,
    ascend,
    cuts,
    evaluate_prices,
    kernel_arrays,
    no_prices,
)
from optalloc.solvers.prices.layout import build_layout, times
from optalloc.solvers.prices.proof import prove

QUICK = Settings(stages=(Stage(20, 12, 1.0, 0.05), Stage(60, 8, 0.3, 0.05)))


def proof_of(problem, seed=0, until=60):
    """A price bound of the first level from a few epochs."""
    layout = build_layout(full_scope(problem), problem.levels[0])
    return prove(layout, ascend(layout, no_prices(layout, until), seed=seed, settings=QUICK), 0)


@pytest.fixture(scope="module")
def ladder():
    """A congested instance of twelve tasks with shared staging."""
    return oa.compile(generate("ladder", tasks=12, seed=1))


def test_the_checker_derives_the_same_integer(ladder):
    """Kernel and plain loops agree to the unit."""
    certificate = proof_of(ladder).certificate
    checked = check_bound(ladder, certificate)
    assert checked.value == certificate.bound > 0
    assert checked.valid


def test_a_bound_raised_by_one_unit_is_rejected(ladder):
    """The claim must not go beyond what the multipliers prove."""
    certificate = proof_of(ladder).certificate
    assert not check_bound(ladder, replace(certificate, bound=certificate.bound + 1)).valid


def test_a_price_with_its_sign_flipped_is_rejected(ladder):
    """A negative multiplier proves nothing."""
    certificate = proof_of(ladder).certificate
    name, prices = next((n, p) for n, p in certificate.prices.items() if max(p) > 0)
    k = int(np.argmax(prices))
    flipped = {**certificate.prices, name: (*prices[:k], -prices[k], *prices[k + 1 :])}
    with pytest.raises(InputError, match=name.split(":")[-1]):
        check_bound(ladder, replace(certificate, prices=flipped))


def test_shares_beyond_their_charge_are_rejected(ladder):
    """What tasks pay of one transfer may not add up to more than the transfer costs."""
    certificate = proof_of(ladder).certificate
    key = next(iter(certificate.shares))
    greedy = {**certificate.shares, key: certificate.shares[key] + 10**9}
    with pytest.raises(InputError, match="charge"):
        check_bound(ladder, replace(certificate, shares=greedy))


def test_numbers_that_would_wrap_round_are_refused(ladder):
    """With a scale of 2^60 the coefficients do not fit into 64 bits: wrapped ones would prove anything."""
    certificate = proof_of(ladder).certificate
    empty = replace(certificate, prices={}, shares={}, ends={}, energy={}, bound=0)
    honest = check_bound(ladder, replace(empty, scale=1)).value
    assert check_bound(ladder, replace(empty, scale=2**40)).value == honest
    with pytest.raises(InputError, match="2\\^62"):
        check_bound(ladder, replace(empty, scale=2**60))


def test_start_intervals_equal_a_scan_of_every_tick():
    """A start is allowed if the calendar has room at every tick of the run from 0 on."""
    compared = 0
    for seed in range(8):
        problem = oa.compile(generate("edge", tasks=5, seed=seed))
        for mode in range(problem.num_modes):
            room = []
            for resource, amount in problem.uses(mode):
                times, amounts = problem.capacity(resource)
                room.append(
                    [amounts[np.searchsorted(times, t, side="right") - 1] >= amount for t in range(400)]
                )
            fits = np.all(room, axis=0)
            ticks = int(problem.duration[mode])
            scan = [s for s in range(-3, 300) if fits[max(0, s) : max(0, s + ticks)].all()]
            spans = start_intervals(problem, mode, -3, 299)
            assert [s for a, b in spans for s in range(a, b + 1)] == scan
            compared += 0 < len(scan) < 303
    assert compared >= 50


def test_a_certificate_of_another_objective_or_instance_is_refused(ladder):
    """Both are named in the file."""
    certificate = proof_of(ladder).certificate
    with pytest.raises(InputError, match="objective"):
        check_bound(ladder, replace(certificate, objective=({"makespan": "1"},)))
    with pytest.raises(InputError, match="instance"):
        check_bound(ladder, replace(certificate, instance_sha256="0" * 64))


def test_a_certificate_file_comes_back_as_it_was(ladder, tmp_path):
    """Writing and reading."""
    certificate = proof_of(ladder).certificate
    path = tmp_path / "c.json"
    write_certificate(certificate, path)
    assert read_certificate(path) == certificate


def test_damages_of_a_certificate_are_told_in_words(ladder, tmp_path):
    """All at once, each with file, place and what should stand there."""
    path = tmp_path / "c.json"
    write_certificate(proof_of(ladder).certificate, path)
    document = json.loads(path.read_text())
    first = next(iter(document["prices"]))
    damaged = document | {
        "scale": "many",
        "level": -1,
        "caps": {},
        "bound": True,
        "bond": 3,
        "limits": {"cost": 2.5},
    }
    damaged["prices"] = document["prices"] | {first: [1, None, "2"]}
    damaged["shares"] = [{"task": 3, "dataset": "d", "site": "s"}]
    del damaged["edges"]
    path.write_text(json.dumps(damaged))
    with pytest.raises(InputError) as caught:
        read_certificate(path)
    prices = json_path(("prices", first))
    assert {fault.path: fault.message.partition(";")[0] for fault in caught.value.faults} == {
        "scale": "must be a whole number without a decimal point, got 'many'",
        "level": "must be at least 0, got -1",
        "caps": "must be a list, got an object",
        "bound": "must be a whole number without a decimal point, got true",
        "bond": "unknown key",
        "limits.cost": "must be a whole number without a decimal point, got 2.5",
        f"{prices}[1]": "must be a whole number without a decimal point, got null",
        f"{prices}[2]": "must be a whole number without a decimal point, got '2'",
        "shares[0].task": "must be text, got 3",
        "shares[0].share": "is required",
        "edges": "is required",
    }
    assert {fault.source for fault in caught.value.faults} == {str(path)}
    assert "meta" not in str(caught.value)  # free keys belong there in an instance only
    for text, message in (
        ("[]", "must be an object, got a list"),
        ("{", "is not JSON"),
        ('{"a": 1, "a": 2}', "a: stands"),
    ):
        path.write_text(text)
        with pytest.raises(InputError, match=message):
            read_certificate(path)


@pytest.mark.parametrize("chunk", range(4))
def test_the_bound_never_passes_the_optimum(chunk):
    """Random instances with every feature switched on somewhere; the optimum is CP-SAT's."""
    compared = 0
    for seed in range(25 * chunk, 25 * chunk + 25):
        problem = oa.compile(read_instance(random_instance(seed)))
        exact = oa.solve(problem, "cpsat", time_limit=20, threads=1)
        if exact.status != "OPTIMAL":
            continue
        bound = oa.solve(problem, "bound", time_limit=5).levels[0].bound
        assert bound is None or bound <= exact.levels[0].objective, seed
        compared += bound is not None
    assert compared >= 8


def with_running_tasks(seeds):
    """Random instances with a run of the state, as drawn and begun earlier, under their objective and the makespan."""
    for seed in seeds:
        drawn = random_instance(seed)
        for ticks in (0, 1, 3, 8) if drawn.get("state", {}).get("tasks") else ():
            begun = begun_earlier(drawn, ticks)
            yield begun
            yield begun | {"objective": {"levels": [{"makespan": 1, "rejected": 5}]}}


@pytest.mark.parametrize("chunk", range(4))
def test_the_bound_never_passes_the_optimum_of_states_that_began_long_before(chunk):
    """Runs and transfers from before tick 0, some of them over by then; the optimum is that of enumeration."""
    compared = tight = 0
    for instance in with_running_tasks(range(50 * chunk, 50 * chunk + 50)):
        try:
            best = enumerate_optimum(instance, most_steps=20_000)
        except TooLarge:
            continue
        if best.status != "OPTIMAL":
            continue
        problem = oa.compile(read_instance(instance))
        certificate = proof_of(problem).certificate
        where = instance["name"], instance["state"]["tasks"][0]["segments"], instance["objective"]
        assert certificate.bound <= best.levels[0], where
        assert least_value(full_scope(problem)) <= best.levels[0], where
        assert check_bound(problem, certificate).value == certificate.bound, where
        compared += 1
        tight += certificate.bound == best.levels[0]
    assert compared >= 50
    assert tight >= 10


def test_candidate_starts_are_enough():
    """The least cost over candidates is the least over every tick, at random prices, with calendars and due dates."""
    from optalloc.certificate import _Proof

    generator = np.random.default_rng(5)
    for seed in range(6):
        problem = oa.compile(generate("edge", tasks=5, seed=seed))
        scope = full_scope(problem)
        layout = build_layout(scope, problem.levels[0])
        prices = no_prices(layout, 40)
        edges = np.unique(generator.integers(0, 60, 8)).tolist()
        edges = np.array([0, *[e for e in edges if e > 0]])
        price = generator.integers(0, 4000, (problem.num_resources, len(edges) - 1)).astype(float)
        certificate = prove(layout, replace(prices, edges=edges, price=price), 0).certificate
        proof = _Proof(problem, scope, certificate)
        for j in range(problem.num_tasks):
            costs = [proof.rejection(j)] if scope.rejectable[j] else []
            for mode in problem.modes_of(j).tolist():
                for first, last in proof.intervals(mode):
                    costs += [proof.cost(j, mode, start) for start in range(first, min(last, 400) + 1)]
            assert proof.task(j) == min(costs)


def test_same_seed_same_prices(ladder):
    """Repeatable on one thread."""
    assert proof_of(ladder, seed=3).certificate == proof_of(ladder, seed=3).certificate


def test_a_bound_by_itself_goes_on_until_nothing_is_gained():
    """More than the first stages find, and it ends though time is unlimited."""
    problem = oa.compile(generate("edge", tasks=20, seed=0))
    scope = full_scope(problem)
    first = price_bound(scope, Monitor(scope, np.inf), 0).proof.certificate.bound
    result = oa.solve(problem, "bound")
    assert result.termination == "COMPLETED"
    assert result.bound > 1.1 * first


def test_a_bound_under_a_limit_ends_as_well(ladder):
    """Multipliers of limits move between passes; they raise the bound where the limit is felt."""
    free = oa.solve(ladder, "bound").bound
    tight = oa.compile(oa.with_objective(generate("ladder", tasks=12, seed=1), limits={"cost": 138}))
    result = oa.solve(tight, "bound")
    assert result.termination == "COMPLETED"
    assert result.bound > free


def test_a_proof_that_is_not_finished_claims_nothing(ladder):
    """The time is up between two parts of it."""
    layout = build_layout(full_scope(ladder), ladder.levels[0])
    prices = evaluate_prices(layout, no_prices(layout, 60))
    assert prices.value > 0
    assert prove(layout, prices, 0, should_stop=lambda: True) is None
    assert evaluate_prices(layout, prices, should_stop=lambda: True).value == -np.inf


@pytest.mark.parametrize("after", [0.0, 0.05, 0.2])
def test_an_interrupted_bound_is_valid(ladder, after):
    """Whenever it is stopped: what is claimed can be checked."""
    scope = full_scope(ladder)
    monitor = Monitor(scope, np.inf)
    threading.Timer(after, monitor.interrupt).start()
    found = price_bound(scope, monitor, 0, refine=True)
    assert found.proof is not None
    assert monitor.bounds[0][0] == check_bound(ladder, found.proof.certificate).value > 0


@pytest.mark.parametrize("objective", ["weighted_completion=1,cost=1,late=1", "makespan=3,cost=1,late=1"])
def test_a_layout_in_finer_units_is_that_of_the_finer_form(objective):
    """Proofs need not lay out the rows once more."""
    problem = oa.compile(oa.with_objective(generate("market", tasks=12, seed=4), objective))
    scope, form = full_scope(problem), problem.levels[0]
    finer = combined(problem, 0, 1024, (), {})
    scaled, built = times(build_layout(scope, form), 1024, finer), build_layout(scope, finer, unit=1024)
    for field in fields(built):
        old, new = getattr(built, field.name), getattr(scaled, field.name)
        assert np.array_equal(old, new) if isinstance(old, np.ndarray) else old == new, field.name


def test_what_is_fixed_hides_no_better_prices(ladder):
    """Values of prices leave the fixed part out, the bound does not; its tasks have no rows."""
    whole = oa.solve(ladder, "joint-greedy")
    fixed = replace(whole.schedule, tasks=whole.schedule.tasks[:6])
    layout = build_layout(build_scope(ladder, fixed), ladder.levels[0])
    plain = no_prices(layout, price_horizon(layout, whole.plan))
    found = (evaluate_prices(layout, plain), ascend(layout, plain))
    first, last = (prove(layout, prices, 0).certificate.bound for prices in found)
    assert last > first
    assert oa.solve(ladder, "bound", fixed=fixed).bound > 0.1 * first + 0.9 * last


def test_limits_that_no_plan_keeps_do_not_run_away(monkeypatch):
    """Multipliers could grow for ever."""
    monkeypatch.setattr("optalloc.solvers.price_bound._HEAVIEST", 2**32)
    limits = {"cost": 57, "weighted_completion": 82}  # each is possible by itself: 56.59 and 80
    problem = oa.compile(oa.with_objective(generate("ladder", tasks=6, seed=1), limits=limits))
    result = oa.solve(problem, "bound")
    assert result.termination == "COMPLETED"
    assert result.bound > 2 * oa.solve(generate("ladder", tasks=6, seed=1), "bound").bound


def test_the_weight_of_the_makespan_is_not_exceeded():
    """Parts of 1 that sum to a little more in floats, of a weight near 2^57."""
    problem = running_since(0, {"makespan": 10**12})
    layout = build_layout(full_scope(problem), problem.levels[0])
    plain = no_prices(layout, 20)
    simplex = np.full(len(plain.simplex), 1 / len(plain.simplex))
    simplex[-1] += 4e-16
    certificate = prove(layout, evaluate_prices(layout, replace(plain, simplex=simplex)), 0).certificate
    assert certificate.scale * 10**12 > 2**53
    assert check_bound(problem, certificate).value == certificate.bound > 0


@pytest.fixture
def many(monkeypatch):
    """What is done with many tasks is done with few."""
    monkeypatch.setattr("optalloc.solvers.prices.ascent.MANY", 1)
    monkeypatch.setattr("optalloc.solvers.prices.ascent.ROWS_AT_ONCE", 40)


def kinds_of(arrays):
    """What a kernel is compiled for."""
    return [[(array.dtype, array.flags.writeable) for array in group] for group in arrays]


def test_groups_of_nodes(many):
    """One row for those that differ in the node of their group only; prices of nodes from those of groups."""
    problem = oa.compile(generate("ladder", tasks=40, seed=2))
    layout = build_layout(full_scope(problem), problem.levels[0])
    alike = alike_nodes(layout)
    kinds = {(node.site, node.device_type) for node in problem.instance.nodes}
    assert alike.groups == len(kinds) < problem.num_nodes
    assert len(alike.kept) < len(layout.mode)
    plain = kernel_arrays(layout, float)
    assert kinds_of(alike.arrays(layout, plain)) == kinds_of(plain)  # else kernels are compiled once more
    assert len(np.unique(problem.mode_task[layout.mode[alike.kept]])) == 40
    least = evaluate_prices(layout, no_prices(layout, 60)).value
    found = ascend(layout, no_prices(layout, 60), settings=QUICK)
    certificate = prove(layout, found, 0).certificate
    assert check_bound(problem, certificate).value == certificate.bound > least


@pytest.mark.parametrize("looks", [50, 200, 400, 800])
def test_the_best_prices_come_back_where_the_time_ends(many, looks):
    """Whatever is being done at that moment."""
    problem = oa.compile(generate("ladder", tasks=40, seed=2))
    layout = build_layout(full_scope(problem), problem.levels[0])
    looked, values = count(), []
    found = ascend(
        layout,
        no_prices(layout, 60),
        should_stop=lambda: next(looked) > looks,
        on_better=lambda prices: values.append(prices.value),
    )
    assert found.value == max(values)


def test_there_are_no_groups_where_the_makespan_counts():
    """Prices of energy are those of single nodes."""
    problem = oa.compile(oa.with_objective(generate("ladder", tasks=40, seed=2), "makespan=1"))
    assert alike_nodes(build_layout(full_scope(problem), problem.levels[0])) is None


def test_parts_between_looks_at_the_clock_change_nothing(ladder, monkeypatch):
    """The same certificate from one part and from many."""
    whole = proof_of(ladder).certificate
    monkeypatch.setattr("optalloc.solvers.prices.ascent.ROWS_AT_ONCE", 40)
    layout = build_layout(full_scope(ladder), ladder.levels[0])
    assert len(cuts(layout.row_ptr)) > 3
    assert proof_of(ladder).certificate == whole


def test_a_tiny_time_limit_still_ends_well(ladder):
    """Out of time before it begins: no bound, no error."""
    result = oa.solve(ladder, "bound", time_limit=0)
    assert result.status == "NO_SOLUTION"
    assert Monitor(full_scope(ladder), 0).should_stop()


@pytest.mark.parametrize("preset", ["ladder", "edge", "market", "pipeline"])
@pytest.mark.parametrize("objective", ["weighted_completion=1,cost=1,late=1", "makespan=3,cost=1,late=1"])
def test_what_is_remembered_of_rows_changes_nothing(preset, objective):
    """Rows that the memory passes over are those that cost more: the same value as when every row is looked at."""
    problem = oa.compile(oa.with_objective(generate(preset, tasks=12, seed=4), objective))
    layout = build_layout(full_scope(problem), problem.levels[0])
    found = ascend(layout, no_prices(layout, 60), settings=Settings(stages=STAGES[:3]))
    assert found.price.any()
    again = evaluate_prices(layout, found)
    assert found.value == pytest.approx(again.value, rel=1e-12)
    assert found.cost == pytest.approx(again.cost, rel=1e-9)


def running_since(start, weights, free_ticks=1, devices=1):
    """A run of the state from ``start`` for 3 ticks on one of some devices, and free tasks of some ticks."""
    mode = {"id": "m", "uses": [{"node": "n", "devices": 1}], "duration_ticks": 3}
    free = [{"id": f"f{k}", "modes": [{**mode, "duration_ticks": free_ticks + k}]} for k in range(3)]
    held = {"uses": [{"node": "n", "devices": 1}], "start": start, "end": start + 3}
    text = {
        "format": "optalloc-instance/1",
        "name": "running",
        "sites": [{"id": "a"}],
        "device_types": [{"id": "g"}],
        "nodes": [{"id": "n", "site": "a", "device_type": "g", "devices": devices}],
        "tasks": [{"id": "run", "modes": [mode]}, *free],
        "objective": {"levels": [weights]},
        "state": {"tasks": [{"task": "run", "choice": {"mode": "m", "inputs": []}, "segments": [held]}]},
    }
    return oa.compile(read_instance(text))


@pytest.mark.parametrize("devices", [1, 2])
@pytest.mark.parametrize("start", [-7, -3, -2, -1, 0, 1])
@pytest.mark.parametrize(
    "weights", [{"makespan": 1}, {"makespan": 5, "weighted_completion": 1}, {"weighted_completion": 2}]
)
def test_runs_from_before_tick_0(start, weights, devices):
    """What was held before tick 0 counts for nobody: the bound, its checker and `auto` agree with the optimum."""
    problem = running_since(start, weights, devices=devices)
    optimum = oa.solve(problem, "cpsat", threads=1).objective
    layout = build_layout(full_scope(problem), problem.levels[0])
    certificate = prove(layout, ascend(layout, no_prices(layout, 30), settings=QUICK), 0).certificate
    assert certificate.bound <= optimum
    assert check_bound(problem, certificate).value == certificate.bound
    assert least_value(full_scope(problem)) <= optimum


def test_the_energy_row_of_a_run_from_before_tick_0_is_tight():
    """One device: a tick of the run from 0 on, then 1 + 2 + 3 ticks: makespan 7, not the 9 that its length suggests."""
    problem = running_since(-2, {"makespan": 1})
    layout = build_layout(full_scope(problem), problem.levels[0])
    assert prove(layout, ascend(layout, no_prices(layout, 30)), 0).certificate.bound == 7
    assert oa.solve(problem, "highs").objective == 7


def test_a_horizon_of_billions_of_ticks():
    """Only the first ticks are priced: the bound is found all the same, and is none too large."""
    problem = running_since(0, {"makespan": 1}, free_ticks=3 * 10**9)
    optimum = oa.solve(problem, "cpsat", threads=1).objective
    found = oa.solve(problem, "bound", time_limit=20)
    assert 0 < found.bound <= optimum
