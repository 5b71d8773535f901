"""Episodes: masks and arrays equal the simulator's answers one by one, returns equal objectives, dead ends."""

from collections import Counter
from itertools import pairwise
from random import Random

import numpy as np
import pytest
from support.episodes import along, at_random, commits, greedy, one_level, run
from support.online import CHANGES, compiled, drawn, split
from support.problems import Mode, Replica, Task, make_problem

from optalloc.environment import Episode, Prepared
from optalloc.environment.gaps import Gaps
from optalloc.environment.layout import Layout, padded
from optalloc.environment.prospects import Prospects
from optalloc.environment.shaping import backlog, potential_of
from optalloc.errors import InputError, UnsupportedError
from optalloc.evaluation import evaluate
from optalloc.problem import NEVER
from optalloc.profile import Profile
from optalloc.result import Status
from optalloc.scope import full_scope
from optalloc.simulation import DISCIPLINES, Commit, Reject, Simulator, Stage, Wait
from optalloc.solvers.run import solve


# arrays against the kernel ------------------------------------------------------------------------
def same_as_simulator(episode):
    """Every option, start, charge and increase is what the simulator and the kernel say; how many were compared."""
    decision, simulator, table = episode.decision, episode.simulator, episode.simulator.table
    options = [decision.action(option) for option in range(len(decision.mask))]
    possible = {action for action, open_ in zip(options, decision.mask, strict=True) if open_}
    known = set(simulator.actions())
    if episode.transfers == "none":
        known = {action for action in known if not isinstance(action, Stage)}
    assert possible == known
    for position, action in enumerate(commits(episode)):
        placement, row = table.earliest(action.task, action.mode), decision.rows[position]
        start = NEVER if placement is None else placement.start
        assert episode.prospects.start[row] == start
        if placement is not None:
            assert episode.prospects.egress[row] == sum(t.cost for t in placement.transfers)
            lacking = any(k not in table.held for k in table.facts(action.mode).needs)
            assert episode.prospects.lacking[row] == lacking
        if decision.open[position]:
            assert decision.end[position] == placement.end
            assert decision.increase[position] == simulator.firm.increase(
                episode.problem.levels[0], placement
            )
    return len(decision.rows)


@pytest.mark.parametrize("discipline", DISCIPLINES)
@pytest.mark.parametrize("profile", ["small", "tiny", "medium"])
def test_arrays_equal_the_simulator(profile, discipline):
    """Random decisions on random problems: after each, every mode of every waiting task is compared."""
    compared, seen = 0, Counter()
    for seed, problem in one_level(profile, range(32 if profile == "medium" else 45)):
        transfers = ("none", "seen", "any")[seed % 3]
        episode, choose = Episode(problem, discipline, transfers), at_random(seed, (0.2, 0.8)[seed % 2])
        while not episode.done:
            compared += same_as_simulator(episode)
            option = choose(episode)
            seen[type(episode.decision.action(option))] += 1
            episode.choose(option)
    assert compared > 100
    assert min(seen[kind] for kind in (Commit, Reject, Wait)) >= 1
    assert seen[Stage] >= 3


@pytest.mark.long
@pytest.mark.parametrize("discipline", DISCIPLINES)
@pytest.mark.parametrize("profile", ["small", "tiny", "medium"])
def test_arrays_equal_the_simulator_on_many(profile, discipline):
    """The same on hundreds of problems."""
    for seed, problem in one_level(profile, range(400)):
        episode = Episode(problem, discipline, ("none", "seen", "any")[seed % 3])
        choose = at_random(seed, (0.1, 0.5, 0.9)[seed // 3 % 3])
        while not episode.done:
            same_as_simulator(episode)
            episode.choose(choose(episode))


@pytest.mark.parametrize("preset", ["contended", "pipeline", "market", "edge", "geo"])
def test_arrays_equal_the_simulator_on_presets(preset):
    """Storage, several inputs, purchases, seats, calendars: 12 tasks, both disciplines."""
    problem = compiled(drawn(preset, 12, 3))
    for number, discipline in enumerate(DISCIPLINES):
        episode, choose = Episode(problem, discipline), at_random(number, 0.3)
        while not episode.done:
            same_as_simulator(episode)
            episode.choose(choose(episode))


def test_what_is_not_told_is_noticed():
    """The comparison above would find a row that was not computed again."""
    problem = compiled(drawn("contended", 8, 1))
    episode = Episode(problem)
    episode.prospects.committed = lambda placement, for_good: None

    def compare():
        while not episode.done:
            same_as_simulator(episode)
            episode.choose(greedy(episode))

    with pytest.raises(AssertionError):
        compare()


def test_fits_of_many_runs():
    """`Gaps.fit_all` is the kernel's answer for each run, on random profiles of two resources."""
    rng = np.random.default_rng(4)
    modes = [Mode(int(p), {0: int(a), 1: int(b)}) for p, a, b in rng.integers(1, 4, (12, 3))]
    problem = make_problem([Task(modes)], [3, 3])
    layout = Layout(problem)
    for _ in range(40):
        profiles = [Profile(range(9), [*rng.integers(0, 4, 8).tolist(), 3]) for _ in range(2)]
        gaps = Gaps(layout)
        for resource, profile in enumerate(profiles):
            gaps.update(resource, profile, 2)
        lower = rng.integers(2, 9, layout.num_rows)
        found = gaps.fit_all(layout.pair, lower, layout.duration)
        table = Simulator(full_scope(problem)).table
        table.profiles = profiles
        for row, first in enumerate(lower.tolist()):
            facts = table.facts(layout.mode.item(row))
            assert found[row] == table.fit(facts.uses, first, facts.duration)


def test_rows_are_ordered_by_the_hierarchy():
    """Task, then data with access, then node, then devices; each label is one stretch."""
    for _, problem in one_level("medium", range(12)):
        layout = Layout(problem)
        keys = [
            (task, problem.inputs(mode), sorted(r for r, _ in problem.uses(mode) if r < problem.num_nodes))
            for task, mode in zip(layout.task.tolist(), layout.mode.tolist(), strict=True)
        ]
        for label, depth in ((layout.choice, 2), (layout.place, 3)):
            assert (np.diff(label) >= 0).all()
            same = [a[:depth] == b[:depth] for a, b in pairwise(keys)]
            assert (np.diff(label) == 0).tolist() == same
        together = np.diff(layout.place) == 0
        assert (np.diff(layout.devices)[together] >= 0).all()
        assert sorted(layout.mode.tolist()) == np.flatnonzero(problem.active).tolist()


def test_padded_lists():
    """Without any entry there are no columns."""
    assert padded(np.array([0, 0, 0]), np.zeros(0, int), np.arange(2), -1).shape == (2, 0)


# returns ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("discipline", DISCIPLINES)
@pytest.mark.parametrize("profile", ["small", "tiny", "medium"])
def test_returns_are_objectives(profile, discipline):
    """Random and greedy decisions on random problems with every feature but levels: exact integers."""
    finished = Counter()
    for seed, problem in one_level(profile, range(60)):
        for name, choose in (("random", at_random(seed)), ("greedy", greedy)):
            episode = Episode(problem, discipline)
            total = run(episode, choose)
            if episode.feasible:
                finished[name] += 1
                checked = evaluate(problem, episode.simulator.plan())
                assert checked.violations == ()
                assert total == checked.objective - episode.start_value
                assert evaluate(problem, episode.schedule()).objective == checked.objective
    assert min(finished["random"], finished["greedy"]) >= 5


@pytest.mark.parametrize("profile", ["small", "tiny"])
def test_optimal_decisions_return_the_optimum(profile):
    """The optimal plan, shifted to the left and followed from decision to decision, with leave to prefetch."""
    found = 0
    for seed, problem in one_level(profile, range(50)):
        result = solve(problem, "cpsat", threads=1, time_limit=10)
        if result.status is Status.OPTIMAL:
            episode = Episode(problem, DISCIPLINES[seed % 2], "any")
            if not episode.done:
                total = run(episode, along(problem, result.plan))
                assert episode.feasible
                assert total == result.objective - episode.start_value
                found += 1
    assert found >= 10


# small cases --------------------------------------------------------------------------------------
def test_storage_that_is_taken_moves_others():
    """Room for one replica; t0 brings its own in [0, 1) and reads it in [1, 5): the other one comes in [5, 6)."""
    tasks = [Task([Mode(4, {0: 1}, needs=[0])]), Task([Mode(2, {1: 1}, needs=[1])])]
    problem = make_problem(tasks, [1, 1], replicas=[Replica(0), Replica(1)], storage={0: 1})
    episode = Episode(problem)
    assert episode.decision.start.tolist() == [1, 1]
    episode.apply(Commit(0, 0))
    assert episode.decision.start.tolist() == [6]
    same_as_simulator(episode)


def test_transfers_that_are_not_possible():
    """Replica 0 costs more than the limit leaves, replica 1 is larger than its storage; replica 2 may come."""
    tasks = [Task([*(Mode(1, {0: 1}, needs=[k]) for k in range(3)), Mode(1, {0: 1})])]
    replicas = [Replica(0, 0, [(1, 7, ())]), Replica(1, 1, size=2), Replica(2, 0, [(1, 5, ())])]
    episode = Episode(make_problem(tasks, replicas=replicas, storage={1: 1}, limits={"cost": 6}))
    assert episode.decision.routes.tolist() == [0, 1, 2]
    assert episode.decision.may_stage.tolist() == [False, False, True]
    same_as_simulator(episode)


# dead ends ----------------------------------------------------------------------------------------
def test_dead_ends():
    """A missed deadline; nothing possible any more; a limit that leaves no way."""
    missed = Episode(make_problem([Task([Mode(4, {0: 1})]), Task([Mode(2, {0: 1})], deadline=3)]))
    missed.apply(Commit(0, 0))
    assert missed.done
    assert not missed.feasible
    assert "cannot meet its deadline" in missed.simulator.failure
    stuck = Episode(make_problem([Task([Mode(1, {0: 1}, money=6)])], limits={"cost": 5}))
    assert stuck.done
    assert (
        stuck.simulator.failure == "dead end at tick 0: nothing is possible any more, and tasks are undecided"
    )


def test_no_plan_by_the_horizon_costs_as_much_as_the_penalty():
    """Of any feasible episode, however it was played."""
    for seed, problem in one_level("small", range(40)):
        prepared = Prepared(problem)
        for choose in (at_random(seed), at_random(seed, 0.0)):
            episode = Episode(prepared, "reserve")
            total = run(episode, choose)
            assert 0 < prepared.worst < 2**53
            assert not episode.feasible or total < prepared.worst


def test_several_levels_are_refused():
    """With the remedy."""
    levels = [{"weighted_completion": 1}, {"cost": 1}]
    problem = make_problem([Task([Mode(1, {0: 1})])], levels=levels)
    with pytest.raises(UnsupportedError, match='2 levels: give it one, for example objective="weighted_flow'):
        Episode(problem)
    with pytest.raises(InputError, match="none, seen, any"):
        Episode(make_problem([Task([Mode(1, {0: 1})])]), transfers="all")


# options ------------------------------------------------------------------------------------------
def test_what_is_masked_out_is_refused():
    """Every option of every decision: possible ones are taken by a copy, others raise."""
    refused = 0
    for seed, problem in one_level("small", range(14)):
        prepared = Prepared(problem)
        taken = []
        episode, choose = Episode(prepared), at_random(seed)
        while not episode.done:
            for option, possible in enumerate(episode.decision.mask.tolist()):
                twin = Episode(prepared)
                for past in taken:
                    twin.choose(past)
                if possible:
                    twin.choose(option)
                else:
                    refused += 1
                    with pytest.raises(ValueError, match="not possible"):
                        twin.choose(option)
                    if option < len(episode.decision.rows):
                        assert twin.decision.action(option) not in twin.simulator.actions()
            taken.append(choose(episode))
            episode.choose(taken[-1])
        for option in (-1, len(episode.decision.mask)):
            with pytest.raises(ValueError, match="not possible"):
                episode.choose(option)
    assert refused >= 20


def test_waiting_alone_is_not_asked():
    """One device; t1 is released at 5: after t0 the next decision is at 5."""
    episode = Episode(make_problem([Task([Mode(2, {0: 1})]), Task([Mode(1, {0: 1})], release=5)]))
    assert episode.decision.mask.tolist() == [True, False, True]
    assert episode.choose(0) == 2
    assert episode.simulator.clock == 5
    assert episode.choose(0) == 6
    assert (episode.done, episode.decisions) == (True, 2)


def test_transfers_by_themselves():
    """t1, released at 4, reads what takes 3 ticks: never, once t1 is seen, or at any time."""
    tasks = [Task([Mode(9, {0: 1})]), Task([Mode(2, {0: 1}, needs=[0])], release=4)]
    problem = make_problem(tasks, [2], replicas=[Replica(0, 0, [(3, 7, ())])])
    offered = {}
    for transfers in ("none", "seen", "any"):
        episode = Episode(problem, transfers=transfers)
        offered[transfers] = [len(episode.decision.routes)]
        episode.apply(Commit(0, 0))
        while episode.simulator.clock < 4:
            episode.apply(Wait())
        offered[transfers].append(len(episode.decision.routes))
    assert offered == {"none": [0, 0], "seen": [0, 1], "any": [1, 1]}


def test_wrong_actions_are_refused():
    """A task that does not wait; a transfer that there is not."""
    episode = Episode(make_problem([Task([Mode(2, {0: 1})]), Task([Mode(1, {0: 1})], release=5)]))
    for action in (Commit(1, 1), Commit(0, 1), Stage(0, 0), Reject(0)):
        with pytest.raises((ValueError, IndexError)):
            episode.apply(action)


# shaping ------------------------------------------------------------------------------------------
def test_backlog():
    """One device, weight 2 and 4 ticks, penalty 5 for the second: 2 * 4 alone, 5 rather than 9; later one tick more."""
    tasks = [
        Task([Mode(4, {0: 1})], weight=2),
        Task([Mode(9, {0: 1})], penalty=5),
        Task([Mode(1, {0: 1})], release=1),
    ]
    problem = make_problem(tasks, levels=[{"weighted_completion": 1, "rejected": 1}])
    episode = Episode(problem)
    assert backlog(episode) == -(8 + 5)
    episode.apply(Wait())
    assert backlog(episode) == -(2 * 5 + 5 + 2)
    with pytest.raises(InputError, match="backlog or a function"):
        potential_of("nonsense")


# no look ahead ------------------------------------------------------------------------------------
@pytest.mark.parametrize("preset", ["edge", "contended", "market"])
def test_nothing_of_the_future_shows(preset):
    """Other tasks, or none, released later: the same features and masks up to then."""
    document = drawn(preset, 16, 1)
    moment = int(split(document)[0] // document["tick_seconds"])

    def seen(problem):
        found, episode = [], Episode(problem)
        while not episode.done and episode.simulator.clock <= moment:
            features, decision = episode.features, episode.decision
            groups = (features.tasks, features.modes(), features.nodes, features.datasets)
            found.append(((*groups, features.transfers, features.scalars), decision.mask))
            episode.choose(greedy(episode))
        return found

    known = seen(compiled(document))
    assert len(known) >= 3
    for number, alter in enumerate(CHANGES.values()):
        changed = compiled(alter(document, Random(number)))
        other = seen(changed)
        # K, and with it the grain of the scaled values, may differ.
        for (mine, mask), (theirs, their_mask) in zip(known, other, strict=True):
            assert mask.tolist() == their_mask.tolist()
            for left, right in zip(mine, theirs, strict=True):
                np.testing.assert_allclose(left, right, atol=1e-5)


def test_prospects_by_themselves():
    """They need no more than a layout and a simulator."""
    problem = make_problem([Task([Mode(2, {0: 1}), Mode(1, {0: 2})])], [2])
    prospects = Prospects(Layout(problem), Simulator(full_scope(problem)))
    assert prospects.tasks == [0]
    assert prospects.start.tolist() == [0, 0]
