"""Online policies: none looks ahead, every plan is verified, hand-derived decisions, rolling against the optimum."""

import json
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from support.learned import written
from support.online import CHANGES, compiled, decisions, drawn, random_problem, split
from support.problems import Mode, Replica, Task, make_problem
from support.random_instances import random_instance
from support.ticks import broken

from optalloc.errors import InputError
from optalloc.generators import generate
from optalloc.instance import write_instance
from optalloc.result import Status
from optalloc.scope import full_scope
from optalloc.simulation import RESERVE, Simulator, simulate
from optalloc.solvers.base import Monitor, Request
from optalloc.solvers.learned.ground import Ground
from optalloc.solvers.learned.policy import run_episode
from optalloc.solvers.learned.rule import RuleScorer
from optalloc.solvers.learned.weights import shipped_weights, weights_path
from optalloc.solvers.online import online_policy
from optalloc.solvers.online.backfill import conservative_backfill, easy_backfill
from optalloc.solvers.online.desk import OnlineDesk
from optalloc.solvers.online.index import Priced, replan_index, urgency
from optalloc.solvers.online.packing import alignment, tetris
from optalloc.solvers.online.rolling import Rolling
from optalloc.solvers.online.rollout import Rollout
from optalloc.solvers.online.rules import ONLINE_RULES
from optalloc.solvers.registry import get_solver, solver_names
from optalloc.solvers.rules import RULES
from optalloc.solvers.run import solve

SMALL = {
    "rolling": {"deterministic": 0.02},
    "rollout": {"tasks": 1},
    "lookahead": {"tasks": 2, "modes": 2},
}
"""Options that keep a policy fast and its work the same on every machine."""


def forms():
    """Every online policy of the registry, under each discipline that it takes."""
    for name in solver_names("online"):
        given = SMALL.get(name, {})
        both = "discipline" in get_solver(name).options
        for discipline in ("replan", "reserve") if both else ("",):
            more = {"discipline": discipline} if discipline else {}
            yield pytest.param(name, given | more, id=f"{name}-{discipline}".rstrip("-"))
    for name in solver_names("learned"):
        option = "base" if name == "lookahead" else "weights"
        scheduler = "es-index" if name == "lookahead" else name
        given = SMALL.get(name, {})
        yield pytest.param(name, given | {option: RANDOM + scheduler}, id=f"{name}-random")
        if scheduler in shipped_weights():
            yield pytest.param(name, given | {option: scheduler}, id=f"{name}-shipped")


RANDOM = "random weights of "
"""Begins options that stand for a file of such weights."""


def filled(options, folder):
    """Options in which files of random weights are named, which are there now."""
    return {
        key: str(written(value.removeprefix(RANDOM), folder)) if str(value).startswith(RANDOM) else value
        for key, value in options.items()
    }


def traced(problem, name, options, folder):
    """(result, trace) of a policy."""
    path = folder / "trace.jsonl"
    given = filled(options, folder) | {"trace": str(path)}
    result = solve(problem, name, threads=1, time_limit=100, options=given)
    return result, [json.loads(line) for line in path.read_text().splitlines()]


def act(rule, problem, discipline="replan"):
    """Start ticks of a rule on a problem written by hand; its plan breaks nothing."""
    simulator = Simulator(full_scope(problem), discipline)
    desk = OnlineDesk(simulator)
    simulate(simulator, lambda turn: rule(desk.begin()))
    assert simulator.failure == ""
    assert broken(full_scope(problem), simulator.plan()) == []
    return simulator.plan().start.tolist()


# every policy -------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def worlds():
    """(problem, tick, changed problem) triples: what changes is released after the tick."""
    found = []
    everything = (random_instance(seed, "medium") for seed in range(99))
    featured = next(d for d in everything if compiled(d) is not None and len(split(d)[1]) >= 3)
    for number, document in enumerate([drawn("edge", 7, 1), drawn("contended", 7, 2), featured]):
        problem, (moment, late) = compiled(document), split(document)
        assert problem is not None
        assert late
        tick = int(moment // document["tick_seconds"])
        for kind, alter in CHANGES.items():
            changed = compiled(alter(document, Random(number)))
            if changed is not None and kind != list(CHANGES)[number]:
                found.append((problem, tick, changed))
    assert len(found) >= 5
    return found


@pytest.mark.parametrize(("name", "options"), list(forms()))
def test_no_policy_looks_ahead(name, options, worlds, tmp_path):
    """Whatever is released later, in whatever order or not at all: the same decisions up to then."""
    known, compared = {}, 0
    # Building models takes rolling long: every other change has to do.
    for problem, tick, changed in worlds[:: 2 if name == "rolling" else 1]:
        if id(problem) not in known:
            known[id(problem)] = traced(problem, name, options, tmp_path)[1]
        mine = decisions(known[id(problem)], tick)
        assert decisions(traced(changed, name, options, tmp_path)[1], tick) == mine
        compared += len(mine)
    assert compared > 0


class Watching(RuleScorer):
    """`replan-index` that notes what it could see at each decision."""

    def __init__(self):
        self.seen = []

    def task(self, event, positions):
        best = event.board.best[positions]
        parts = (event.moment, event.tasks(positions), event.rows(best, best))
        self._note(event, *parts)
        return super().task(event, positions)

    def row(self, event, position, choice):
        best = np.full(len(choice.at), event.board.best[position])
        self._note(event, event.rows(choice.at, best), choice.score)
        return super().row(event, position, choice)

    def _note(self, event, *parts):
        self.seen.append((event.board.clock, np.concatenate([part.ravel() for part in parts])))


def test_no_feature_shows_the_future():
    """Not even where the decision would be the same: on presets, numbers at all decisions up to the change."""
    compared = 0
    for number, preset in enumerate(("market", "geo", "edge", "contended", "market", "pipeline")):
        document = drawn(preset, 10, number)
        moment, _ = split(document)
        for alter in CHANGES.values():
            seen = []
            for problem in (compiled(document), compiled(alter(document, Random(number)))):
                scorer = Watching()
                run_episode(Ground(problem), Simulator(full_scope(problem)), scorer)
                until = int(moment // document["tick_seconds"])
                seen.append([numbers for clock, numbers in scorer.seen if clock <= until])
            for mine, other in zip(*seen, strict=True):
                np.testing.assert_allclose(mine, other, rtol=0, atol=1e-6)
                compared += len(mine)
    assert compared > 1000


def test_a_policy_that_looks_ahead_is_caught(worlds, tmp_path):
    """It takes the mode that the number and the releases of all tasks say."""

    @online_policy("peeking")
    def peeking(turn):
        problem = turn._simulator.problem
        for task in turn.waiting:
            options = [p for m in turn.modes(task) if (p := turn.earliest(task, m))]
            if options:
                turn.commit(options[int(problem.release.sum() + problem.num_tasks) % len(options)])

    seen = [
        [decisions(traced(p, "peeking", {}, tmp_path)[1], tick) for p in (problem, changed)]
        for problem, tick, changed in worlds
    ]
    assert any(mine != other for mine, other in seen)


@pytest.mark.parametrize(("name", "options"), list(forms()))
def test_plans_are_verified_or_dead_ends_reported(name, options, tmp_path):
    """On random instances with every feature; a policy never claims an error, and says where it got stuck."""
    held = 0
    for profile, seeds in (("small", range(3)), ("tiny", range(4)), ("medium", range(3))):
        for seed in seeds:
            problem = random_problem(seed, profile)
            if problem is None or (name == "rolling" and profile == "medium"):
                continue
            result = solve(problem, name, threads=1, options=filled(options, tmp_path))
            assert result.status in (Status.FEASIBLE, Status.OPTIMAL, Status.NO_SOLUTION), result.message
            assert (result.plan is None) == result.message.startswith("dead end at tick")
            held += result.plan is not None
    assert held >= 2


@pytest.mark.parametrize("name", ["online-random", "replan-index", "tetris", "rollout", "rolling"])
def test_the_same_seed_decides_the_same(name, tmp_path):
    """Two runs, one trace."""
    problem = compiled(drawn("contended", 6, 3))
    first, again = (traced(problem, name, SMALL.get(name, {}), tmp_path)[1] for _ in range(2))
    assert first == again


def test_every_rule_has_an_online_form():
    """Names and kinds."""
    names = {f"online-{name}" for name in RULES}
    others = {"replan-index", "easy-backfill", "conservative-backfill", "tetris", "rollout", "rolling"}
    assert set(solver_names("online")) == names | others
    assert set(ONLINE_RULES) == set(RULES)


def test_wrong_options_are_refused():
    """A discipline that does not exist; one where there is no choice."""
    problem = compiled(drawn("contended", 6, 1))
    with pytest.raises(InputError, match="replan, reserve"):
        solve(problem, "online-fifo", options={"discipline": "hope"})
    with pytest.raises(InputError, match="no such option"):
        solve(problem, "tetris", options={"discipline": "replan"})
    with pytest.raises(InputError, match=r"options\.trace: /no/such/folder/t\.jsonl: No such file"):
        solve(problem, "tetris", options={"trace": "/no/such/folder/t.jsonl"})


def test_a_trace_takes_the_place_of_nothing_that_is_read(run, tmp_path):
    """Neither the instance nor weights; nor of anything where the run does not begin."""
    instance, weights = tmp_path / "i.json", tmp_path / "fdqn.safetensors"
    write_instance(generate("contended", tasks=3, seed=1), instance)
    for path in (weights, weights.with_suffix(".json")):
        path.write_bytes(weights_path("fdqn").with_suffix(path.suffix).read_bytes())
    before = [path.read_bytes() for path in (instance, weights)]
    given = ("solve", instance, "--solver", "fdqn", "--option", f"weights={weights}")
    code, _, err = run(*given, "--option", f"trace={instance}")
    assert (code, "is the instance; choose another file" in err) == (2, True)
    code, _, err = run(*given, "--option", f"trace={weights}")
    assert (code, "is read by another option" in err) == (2, True)
    code, _, err = run(*given, "--out", instance)
    assert (code, "is the instance; choose another file" in err) == (2, True)
    other = tmp_path / "t.jsonl"
    other.write_text("mine")
    missing = ("--option", f"weights={tmp_path / 'none.safetensors'}", "--option", f"trace={other}")
    assert run("solve", instance, "--solver", "fdqn", *missing)[0] == 2
    assert other.read_text() == "mine"
    assert [path.read_bytes() for path in (instance, weights)] == before
    assert run(*given, "--option", f"trace={other}")[0] == 0


def test_the_time_limit_ends_a_run():
    """No plan, and a message that says where it stopped."""
    scope = full_scope(make_problem([Task([Mode(1, {0: 1})])]))
    outcome = get_solver("online-fifo").run(Request(scope, Monitor(scope, 0.0)))
    assert outcome.termination.value == "TIME_LIMIT"
    assert outcome.message == "the time was up at tick 0 of the simulation"


# rules --------------------------------------------------------------------------------------------
def test_released_at_once_and_reserved_a_list_rule_is_its_static_form():
    """All released at 0 and everything reserved at once: the list that the static rule goes through."""
    for seed in range(6):
        document = random_instance(seed, "medium")
        for task in document["tasks"]:
            task["release_s"] = 0
        problem = compiled(document | {"state": {}} if "state" in document else document)
        if problem is None or problem.limits:
            continue
        for name in ("fifo", "wspt", "joint-greedy", "cheapest", "min-min", "heft"):
            static = solve(problem, name, threads=1)
            online = solve(problem, f"online-{name}", threads=1, options={"discipline": RESERVE})
            if static.plan is not None and not problem.rejectable.any():
                assert [level.objective for level in online.levels] == [x.objective for x in static.levels]


def test_replanning_lets_short_tasks_pass():
    """One device, weights 1: runs of 4, 10, 1 released at 0, 1, 2; see the simulator's test of the disciplines."""
    tasks = [Task([Mode(p, {0: 1})], release=r) for p, r in ((4, 0), (10, 1), (1, 2))]
    assert act(ONLINE_RULES["wspt"], make_problem(tasks)) == [0, 5, 4]
    assert act(ONLINE_RULES["wspt"], make_problem(tasks), "reserve") == [0, 4, 14]


def test_heft_ranks_by_released_successors_only():
    """t1 leads to t2, which takes 9 but is released at 3: at 0 t0 (4 ticks) is ahead of t1 (1 tick)."""
    tasks = [
        Task([Mode(4, {0: 1})]),
        Task([Mode(1, {0: 1})]),
        Task([Mode(9, {0: 1})], release=3, after=[(1, 0)]),
    ]
    assert act(ONLINE_RULES["heft"], make_problem(tasks)) == [0, 4, 5]
    at_once = [*tasks[:2], Task([Mode(9, {0: 1})], after=[(1, 0)])]
    assert act(ONLINE_RULES["heft"], make_problem(at_once)) == [10, 0, 1]


def test_a_rejection_that_is_cheaper_is_taken():
    """Rejecting costs 3; the run would end at 4: rejected. With penalty 5 it runs."""
    levels = [{"weighted_completion": 1, "rejected": 1}]
    for penalty, expected in ((3, -1), (5, 0)):
        problem = make_problem([Task([Mode(4, {0: 1})], penalty=penalty)], levels=levels)
        simulator = Simulator(full_scope(problem))
        desk = OnlineDesk(simulator)
        simulate(simulator, lambda turn, desk=desk: ONLINE_RULES["fifo"](desk.begin()))
        assert simulator.plan().mode.tolist() == [expected]


# index --------------------------------------------------------------------------------------------
def test_replan_index_prices_devices_by_the_queue():
    """Four devices, queue weights 2 + 6: price 1/4 * 8/4 = 1/2 a device-tick.

    t0: on 4 devices it ends at 3 (2*3 + 4*3/2 = 12), on 1 at 8 (2*8 + 8/2 = 20). t1: on 4 devices 4 ticks
    (6*4 + 8 = 32), on 2 devices 5 ticks (30 + 5 = 35). Urgencies 2/3 and 6/4: t1 first, on all 4 until 4.
    Then t0 would end at 7 on 4 devices (14 + 6 = 20) or at 12 on 1 (24 + 4): at 4, on 4 devices.
    """
    tasks = [
        Task([Mode(3, {0: 4}), Mode(8, {0: 1})], weight=2),
        Task([Mode(4, {0: 4}), Mode(5, {0: 2})], weight=6),
    ]
    problem = make_problem(tasks, [4])
    desk = OnlineDesk(Simulator(full_scope(problem)))
    priced = Priced(desk)
    keys = [priced.key(desk, desk.table.earliest(*pair))[0] for pair in ((0, 0), (0, 1), (1, 2), (1, 3))]
    assert keys == [12, 20, 32, 35]
    urgencies = [urgency(desk, desk.table.earliest(*pair)) for pair in ((0, 0), (1, 2))]
    assert urgencies == [Fraction(2, 3), Fraction(3, 2)]
    assert act(replan_index, problem) == [4, 0]


def test_replan_index_looks_again_after_every_commitment():
    """Two tasks; the shared data come in a tick for a charge, other data cost 6 a run; devices cost the same.

    Charge 9: t0 adds 5 + 9 or 4 + 6 and takes the other data, and so does t1. Charge 4: 5 + 4 < 4 + 6, t0 brings
    the data, and t1 reads them for nothing.
    """

    def modes(cost):
        tasks = [Task([Mode(4, {0: 1}, needs=[0]), Mode(4, {0: 1}, money=6)]) for _ in range(2)]
        problem = make_problem(tasks, [2], replicas=[Replica(0, 0, [(1, cost, ())])])
        simulator = Simulator(full_scope(problem))
        desk = OnlineDesk(simulator)
        simulate(simulator, lambda turn: replan_index(desk.begin()))
        return simulator.plan().mode.tolist()

    assert modes(9) == [1, 3]
    assert modes(4) == [0, 2]


# backfilling --------------------------------------------------------------------------------------
def rigid(*jobs):
    """(devices, duration, release) on 4 devices."""
    return make_problem([Task([Mode(p, {0: g})], release=r) for g, p, r in jobs], [4])


def test_easy_never_delays_the_head():
    """t0 holds 3 of 4 until 5. The head t1 (4 devices) is reserved at 5.

    t2 (1 device, 6 ticks) would delay it and waits; t3 (1 device, 5 ticks) fits before: [0, 5). Then t1 [5, 7),
    and t2 [7, 13).
    """
    assert act(easy_backfill, rigid((3, 5, 0), (4, 2, 0), (1, 6, 0), (1, 5, 0))) == [0, 5, 7, 0]


def test_easy_may_delay_others_where_conservative_does_not():
    """t0 holds 3 of 4 devices until 4; t1 (2 devices, 6 ticks) is next, then t2 (4, 2 ticks), t3 (1, 11 ticks).

    EASY: t1, the head, is reserved at 4 beside 2 free devices, so t3 may start at 0; t2 then waits for its end at
    11. Conservative: t2 has [10, 12) reserved, which t3 would delay, so t3 comes at 12.
    """
    jobs = ((3, 4, 0), (2, 6, 0), (4, 2, 0), (1, 11, 0))
    assert act(easy_backfill, rigid(*jobs)) == [0, 4, 11, 0]
    assert act(conservative_backfill, rigid(*jobs), "reserve") == [0, 4, 10, 12]


def test_conservative_keeps_every_promise():
    """The start promised at a task's release is the start that it gets, whoever comes later."""
    rng = Random(5)
    jobs = [(rng.randint(1, 4), rng.randint(1, 9), rng.randint(0, 40)) for _ in range(25)]
    problem = rigid(*jobs)
    starts = act(conservative_backfill, problem, "reserve")
    order = sorted(range(25), key=lambda j: (jobs[j][2], j))
    for count in (5, 12, 20):
        first = sorted(order[:count])
        alone = act(conservative_backfill, rigid(*(jobs[j] for j in first)), "reserve")
        assert alone == [starts[j] for j in first]


# packing ------------------------------------------------------------------------------------------
def test_tetris_aligns_demand_with_what_is_free():
    """Four devices, all free. Alignments g/4: t0 (1 device) 1/4, t1 (3) 3/4; both take 4 ticks.

    Works 1 and 3, means 1/2 and 2: scores 1/4 - 1/4 and 3/4 - 3/4, equal: the first, t0; then t1 beside it. If t1
    takes 2 ticks only: works 1 and 3/2, factor 1/2 / (5/4) = 2/5; scores -3/20 and 3/20: t1, then t0 beside it.
    """
    problem = make_problem([Task([Mode(4, {0: 1})]), Task([Mode(2, {0: 3})]), Task([Mode(4, {0: 3})])], [4])
    desk = OnlineDesk(Simulator(full_scope(problem)))
    assert [alignment(desk, mode) for mode in range(3)] == [1 / 4, 3 / 4, 3 / 4]
    assert act(tetris, problem) == [0, 0, 2]


def test_tetris_brings_data_where_nothing_else_can_run():
    """The only mode reads a replica that is not there: its transfer begins at 0, the run at 3."""
    problem = make_problem([Task([Mode(2, {0: 1}, needs=[0])])], replicas=[Replica(0, 0, [(3, 0, ())])])
    assert act(tetris, problem) == [3]


# look-ahead ---------------------------------------------------------------------------------------
def test_rollout_is_never_worse_than_its_base_on_what_is_released():
    """All released at 0: one step of look-ahead after the other only improves."""
    better = 0
    for seed in range(3):
        document = drawn("contended", 6, seed)
        for task in document["tasks"]:
            task["release_s"] = 0
        problem = compiled(document)
        base, ahead = (solve(problem, name, threads=1).objective for name in ("replan-index", "rollout"))
        assert ahead <= base
        better += ahead < base
    assert better >= 1


def test_rollout_hurries_when_half_of_the_time_is_gone():
    """Then the base rule decides alone."""
    tasks = [Task([Mode(p, {0: 1})], release=r) for p, r in ((4, 0), (10, 1), (1, 2))]
    assert act(Rollout(hurry=lambda: True), make_problem(tasks)) == act(replan_index, make_problem(tasks))


# rolling ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("exact", "seeds"), [("cpsat", range(9)), ("highs", range(4))])
def test_rolling_is_optimal_when_everything_is_released_at_once(exact, seeds):
    """All released at 0 and time enough: the clairvoyant optimum, level by level."""
    proven = 0
    for seed in seeds:
        document = random_instance(seed, "small")
        for task in document["tasks"]:
            task["release_s"] = 0
        document.pop("state", None)
        problem = compiled(document)
        if problem is None:
            continue
        optimum = solve(problem, "cpsat", threads=1, time_limit=20)
        options = {"solver": exact, "seconds": 20.0}
        found = solve(problem, "rolling", threads=1, time_limit=60, options=options)
        if optimum.status is Status.OPTIMAL:
            assert [x.objective for x in found.levels] == [x.objective for x in optimum.levels], seed
            proven += 1
    assert proven >= 1


def test_rolling_follows_a_plan_no_worse_than_the_rules_from_here(monkeypatch):
    """At every look, with a limit of 0: the base rules' plan from the same state is never better."""
    looks = []
    original = Rolling._look

    def look(self):
        original(self)
        looks.append(self.looks[-1])

    monkeypatch.setattr(Rolling, "_look", look)
    for preset in ("contended", "edge"):
        problem = compiled(drawn(preset, 6, 1))
        assert solve(problem, "rolling", threads=1, options=SMALL["rolling"]).plan is not None
    assert len(looks) >= 6
    assert all(look.base is None or look.found <= look.base for look in looks)


def test_rolling_without_time_follows_the_rules():
    """No time for any solve: still a plan."""
    problem = compiled(drawn("contended", 6, 1))
    options = {"seconds": 0.0}
    assert solve(problem, "rolling", threads=1, options=options).status is Status.FEASIBLE


# own policies -------------------------------------------------------------------------------------
def test_own_policy():
    """A function of a turn joins under a name, with the options of all."""

    @online_policy("mine", discipline=RESERVE)
    def mine(turn):
        """In the order of the queue."""
        for task in turn.waiting:
            turn.commit(task, turn.modes(task)[0])

    entry = get_solver("mine")
    assert entry.summary == "In the order of the queue."
    assert entry.options == {"discipline": "reserve", "trace": ""}
    for named in ("mine", mine):
        result = solve(compiled(drawn("contended", 6, 1)), named, threads=1)
        assert (result.status, result.solver) == (Status.FEASIBLE, "mine")
