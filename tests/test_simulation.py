"""The simulator: events, disciplines, actions, values, dead ends, what is fixed, and that the past is forgotten."""

import json
from random import Random

import pytest
from support.online import random_problem
from support.problems import Mode, Replica, Task, make_problem
from support.ticks import broken

from optalloc.errors import InputError
from optalloc.evaluation import evaluate
from optalloc.problem import FREE, REJECTED
from optalloc.scope import Scope, full_scope
from optalloc.simulation import Commit, Reject, Simulator, Stage, Wait, simulate, write_trace
from optalloc.solvers.rules import RULES, DeadEnd, run_rule


def run(policy, problem, discipline="replan", scope=None):
    """The simulator after a policy, with its trace."""
    lines = []
    simulator = Simulator(scope or full_scope(problem), discipline, trace=lines.append)
    return simulate(simulator, policy), lines


def by(key):
    """A policy: the tasks by ``key``, each in its first mode at its earliest."""

    def policy(turn):
        while waiting := sorted(turn.waiting, key=lambda task: key(turn, task)):
            modes = turn.modes(waiting[0])
            if not modes:
                turn.reject(waiting[0])
                continue
            placement = turn.earliest(waiting[0], modes[0])
            if placement is None:
                return
            turn.commit(placement)

    return policy


FIRST_COME = by(lambda turn, task: turn.release(task))
SHORTEST = by(lambda turn, task: turn.mode(turn.modes(task)[0]).duration)


def clocks(lines):
    """Ticks at which the clock has stopped."""
    return [line["until"] for line in lines if line["action"] == "wait"]


# disciplines --------------------------------------------------------------------------------------
def test_replanning_decides_again_what_has_not_begun():
    """One device; runs of 4, 10, 1 released at 0, 1, 2; the shortest of those that wait first.

    Reserve: the run of 10 takes [4, 14) when it is released, the run of 1 comes at 14. Replan: at 4 the run of 1
    is the shortest that waits: [4, 5), then [5, 15).
    """
    tasks = [Task([Mode(p, {0: 1})], release=r) for p, r in ((4, 0), (10, 1), (1, 2))]
    problem = make_problem(tasks)
    reserved, _ = run(SHORTEST, problem, "reserve")
    assert reserved.plan().start.tolist() == [0, 4, 14]
    planned, lines = run(SHORTEST, problem, "replan")
    assert planned.plan().start.tolist() == [0, 5, 4]
    assert clocks(lines) == [1, 2, 4, 5]
    for_good = [(line["task"], line["clock"]) for line in lines if line.get("for_good")]
    assert for_good == [("t0", 0), ("t2", 4), ("t1", 5)]


def test_a_run_that_waits_only_for_its_data_is_for_good():
    """The transfer takes 3 ticks: at 0 the run [3, 5) is decided for good; then the shorter one has to wait for 5."""
    tasks = [Task([Mode(2, {0: 1}, needs=[0])]), Task([Mode(4, {0: 1})], release=1)]
    problem = make_problem(tasks, replicas=[Replica(0, 0, [(3, 7, ())])])
    simulator, lines = run(FIRST_COME, problem)
    assert simulator.plan().start.tolist() == [3, 5]
    assert lines[0]["for_good"]
    assert lines[0]["values"] == [5 + 7]


def test_a_transfer_begins_though_its_reader_has_to_wait():
    """The device is taken until 9. The reader is only planned, at 9; its transfer [0, 3) is decided and paid at 0."""
    tasks = [Task([Mode(9, {0: 1})]), Task([Mode(2, {0: 1}, needs=[0])])]
    problem = make_problem(tasks, replicas=[Replica(0, 0, [(3, 7, ())])])
    simulator = Simulator(full_scope(problem))
    simulator.apply(Commit(0, 0))
    assert simulator.values == [9]
    assert not simulator.commit(simulator.table.earliest(1, 1))
    assert simulator.values == [16]
    assert simulator.firm.mode[1] == FREE
    assert [t.start for t in simulator.firm.transfers] == [0]
    assert simulator.waiting == []
    simulator.apply(Wait())
    assert (simulator.clock, simulator.waiting) == (3, [1])


def test_no_run_is_for_good_before_its_predecessor_is():
    """The device is taken until 2, so t1 is only planned, at 2; t2 follows it when its data come, at 3.

    Were t2 for good at once, t1 could not be planned again: another run might take its place.
    """
    tasks = [
        Task([Mode(2, {0: 1})]),
        Task([Mode(1, {0: 1})]),
        Task([Mode(1, {1: 1}, needs=[0])], after=[(1, 0)]),
    ]
    problem = make_problem(tasks, [1, 1], replicas=[Replica(0, 0, [(3, 0, ())])])
    simulator = Simulator(full_scope(problem))
    simulator.apply(Commit(0, 0))
    simulator.apply(Commit(1, 1))
    placement = simulator.table.earliest(2, 2)
    assert (placement.start, [t.start for t in placement.transfers]) == (3, [0])
    assert not simulator.commit(placement)
    assert [t.start for t in simulator.firm.transfers] == [0]
    simulator.apply(Wait())
    assert simulator.waiting == [1]


def test_reserving_pays_and_fixes_everything_at_once():
    """The same under reserve: nothing is left to decide."""
    tasks = [Task([Mode(9, {0: 1})]), Task([Mode(2, {0: 1}, needs=[0])])]
    problem = make_problem(tasks, replicas=[Replica(0, 0, [(3, 7, ())])])
    simulator = Simulator(full_scope(problem), "reserve")
    for task in (0, 1):
        simulator.apply(Commit(task, task))
    assert simulator.done
    assert simulator.values == [9 + 11 + 7]


def test_unknown_discipline():
    """The known ones are listed."""
    with pytest.raises(InputError, match="replan, reserve"):
        Simulator(full_scope(make_problem([Task([Mode(1, {0: 1})])])), "guess")


# events -------------------------------------------------------------------------------------------
def test_events():
    """Node 0 opens at 3; data of t1 exist from 5; t2 follows t0 (run [3, 6)) with lag 2; t3 is released at 4."""
    tasks = [
        Task([Mode(3, {0: 1})]),
        Task([Mode(1, {1: 1}, available=5)]),
        Task([Mode(1, {1: 1})], after=[(0, 2)]),
        Task([Mode(1, {1: 1})], release=4),
    ]
    simulator, lines = run(FIRST_COME, make_problem(tasks, [[(0, 0), (3, 1), (20, 0)], 1]))
    assert simulator.plan().start.tolist() == [3, 5, 8, 4]
    assert clocks(lines) == [3, 4, 5, 6, 8]


def test_nothing_that_is_not_released_makes_an_event():
    """t1 (released at 9) would begin 5 ticks after t0, and its data exist from 7: neither is an event before 9."""
    tasks = [
        Task([Mode(2, {0: 1})]),
        Task([Mode(1, {0: 1}, available=7)], release=9, after=[(0, 5)]),
        Task([Mode(1, {0: 1})]),
    ]
    _, lines = run(FIRST_COME, make_problem(tasks))
    assert clocks(lines) == [2, 3, 9]


def test_a_task_is_seen_once_everything_before_it_is():
    """t1 is released at 0, its predecessor at 4: nobody can ask about either before 4."""
    tasks = [
        Task([Mode(2, {0: 1})], release=4),
        Task([Mode(1, {0: 1})], after=[(0, 0)]),
        Task([Mode(1, {0: 1})]),
    ]
    seen = {}

    def policy(turn):
        seen[turn.clock] = turn.queue
        if turn.clock < 4:
            for question in (turn.release, turn.modes, turn.weight):
                with pytest.raises(ValueError, match="not released yet"):
                    question(0)
            with pytest.raises(ValueError, match="not released yet"):
                turn.money(1)
        FIRST_COME(turn)

    simulator, _ = run(policy, make_problem(tasks))
    assert seen[0] == (2,)
    assert seen[4] == (0, 1)
    assert simulator.plan().start.tolist() == [4, 6, 0]


def test_an_alarm_is_an_event():
    """The policy asks to be woken at 3, when nothing happens."""
    stops = []

    def policy(turn):
        stops.append(turn.clock)
        if turn.clock < 3:
            turn.alarm = 3
        else:
            turn.commit(0, 0)

    simulator, _ = run(policy, make_problem([Task([Mode(2, {0: 1})])]))
    assert stops == [0, 3]
    assert simulator.plan().start.tolist() == [3]


# actions ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("discipline", ["replan", "reserve"])
@pytest.mark.parametrize("profile", ["small", "tiny", "medium"])
def test_every_action_offered_can_be_done_and_values_add_up(profile, discipline):
    """Random actions to the end: the totals are the levels of `evaluate`, and a finished plan breaks no rule."""
    finished = 0
    for seed in range(14):
        problem = random_problem(seed, profile)
        if problem is None:
            continue
        rng, simulator = Random(seed), Simulator(full_scope(problem), discipline)
        while not simulator.done and (actions := simulator.actions()):
            for action in rng.sample(actions, 1):
                if action != Wait():
                    simulator.branch().apply(action)
            simulator.apply(rng.choice(actions))
        if not simulator.done or simulator.failure:
            continue
        finished += 1
        checked = evaluate(problem, simulator.plan())
        assert checked.violations == ()
        assert tuple(simulator.values) == checked.levels
    assert finished >= 2


def test_what_is_not_possible_is_refused():
    """Each kind of action, out of place."""
    tasks = [Task([Mode(2, {0: 1}, needs=[0]), Mode(3, {0: 1})]), Task([Mode(1, {0: 1})], penalty=3)]
    levels = [{"weighted_completion": 1, "rejected": 1}]
    problem = make_problem(tasks, replicas=[Replica(0, 0, [(3, 7, ())])], levels=levels)
    simulator = Simulator(full_scope(problem))
    for action in (Commit(0, 2), Reject(0), Wait(0), Stage(0, 9)):
        with pytest.raises((ValueError, IndexError)):
            simulator.apply(action)
    assert simulator.actions() == [Commit(0, 0), Commit(0, 1), Commit(1, 2), Stage(0, 0), Reject(1)]
    placement = simulator.table.earliest(0, 1)
    simulator.apply(Commit(1, 2))
    with pytest.raises(ValueError, match="does not fit"):
        simulator.commit(placement)
    for action in (Commit(1, 2), Reject(1)):
        with pytest.raises(ValueError, match="Task 1"):
            simulator.apply(action)


def test_actions_keep_within_limits():
    """At most 5 money units: the mode that costs 6 is not offered; done anyhow, it is a dead end."""
    problem = make_problem([Task([Mode(1, {0: 1}, money=6), Mode(4, {0: 1})])], limits={"cost": 5})
    simulator = Simulator(full_scope(problem))
    assert simulator.actions() == [Commit(0, 1)]
    simulator.apply(Commit(0, 0))
    assert simulator.done
    assert simulator.failure == "dead end at tick 0: the limit of cost is passed"


def test_a_rejection_takes_along_what_is_released_later():
    """t1 comes after t0 and is released at 6: it is rejected then, and counts from then on."""
    tasks = [
        Task([Mode(2, {0: 1})], penalty=3),
        Task([Mode(2, {0: 1})], release=6, after=[(0, 0)], penalty=4),
    ]
    problem = make_problem(tasks, levels=[{"weighted_completion": 1, "rejected": 1}])
    simulator = Simulator(full_scope(problem))
    simulator.apply(Reject(0))
    assert (simulator.values, simulator.done) == ([3], False)
    simulator.apply(Wait())
    assert (simulator.clock, simulator.values, simulator.done) == (6, [7], True)
    assert simulator.plan().mode.tolist() == [REJECTED, REJECTED]


# dead ends ----------------------------------------------------------------------------------------
def test_a_missed_deadline_is_a_dead_end():
    """First come, first served: the second task cannot end by 3 any more once the first holds the device until 4."""
    tasks = [Task([Mode(4, {0: 1})]), Task([Mode(2, {0: 1})], deadline=3)]
    simulator, lines = run(FIRST_COME, make_problem(tasks))
    assert simulator.failure == "dead end at tick 4: task 't1' must run and cannot meet its deadline any more"
    assert lines[-1]["action"] == "fail"


def test_waiting_for_nothing_is_a_dead_end():
    """A policy that does nothing."""
    simulator, _ = run(lambda turn: None, make_problem([Task([Mode(4, {0: 1})])]))
    assert simulator.failure == "dead end at tick 0: nothing will happen any more, and undecided are 't0'"
    assert simulator.plan().mode.tolist() == [FREE]


def test_a_run_can_be_stopped():
    """Undecided, and no dead end."""
    simulator = Simulator(full_scope(make_problem([Task([Mode(4, {0: 1})])])))
    simulate(simulator, FIRST_COME, should_stop=lambda: True)
    assert not simulator.done
    assert simulator.failure == ""


# what is fixed, what is past ----------------------------------------------------------------------
@pytest.mark.parametrize("profile", ["small", "medium"])
def test_what_is_fixed_stays(profile):
    """From the middle of a random plan on: the plan keeps it, breaks no rule, and the totals add up."""
    finished = 0
    for seed in range(18):
        problem = random_problem(seed, profile)
        if problem is None:
            continue
        try:
            plan = run_rule(RULES["random"], full_scope(problem), seed)
        except DeadEnd:
            continue
        begun, mode = (plan.mode >= 0) & (plan.start < 3), full_scope(problem).mode.copy()
        mode[begun] = plan.mode[begun]
        moved = tuple(t for t in plan.transfers if t.start < 3)
        scope = Scope(problem, mode, plan.start, moved, not_before=3)
        simulator, _ = run(FIRST_COME, problem, scope=scope)
        if simulator.failure:
            continue
        finished += 1
        checked = evaluate(problem, simulator.plan(), scope=scope)
        assert checked.violations == ()
        assert tuple(simulator.values) == checked.levels
        assert (simulator.plan().start[begun] == plan.start[begun]).all()
    assert finished >= 2


def test_the_past_is_forgotten():
    """400 runs one after the other, all reading one replica: neither profiles nor lists of readers grow."""
    tasks = [Task([Mode(2, {0: 1}, needs=[0])], release=3 * j) for j in range(400)]
    problem = make_problem(tasks, [2], replicas=[Replica(0)])
    most = []

    def policy(turn):
        FIRST_COME(turn)
        table = turn._simulator.firm
        most.append((max(len(p.times) for p in table.profiles), len(table.held[0].readers)))

    simulator, _ = run(policy, problem)
    assert broken(full_scope(problem), simulator.plan()) == []
    assert max(most)[0] < 80
    assert max(readers for _, readers in most) < 40


def test_branches_go_on_without_future():
    """A branch ends with what is released, and changes nothing here."""
    tasks = [Task([Mode(2, {0: 1})]), Task([Mode(2, {0: 1})], release=1), Task([Mode(2, {0: 1})], release=9)]
    simulator = Simulator(full_scope(make_problem(tasks)))
    simulator.apply(Commit(0, 0))
    simulator.apply(Wait())
    branch = simulate(simulator.branch(), FIRST_COME)
    assert branch.done
    assert branch.values == [2 + 4]
    assert branch.firm.start[1] == 2
    assert (simulator.clock, simulator.values, simulator.waiting) == (1, [2], [1])


# questions of a policy ----------------------------------------------------------------------------
def test_what_a_policy_sees():
    """Every question, once."""
    tasks = [
        Task([Mode(4, {0: 1}, money=3, utility=900, dataset=0)], weight=2, due=5, deadline=8),
        Task([Mode(2, {0: 2}, needs=[0])], penalty=4),
    ]
    levels = [{"weighted_completion": 1, "cost": 1, "rejected": 1}]
    problem = make_problem(tasks, [2], replicas=[Replica(0, 0, [(1, 5, ())])], levels=levels)
    asked = []

    def policy(turn):
        if not asked:
            assert (turn.name(0), turn.release(0), turn.due(0), turn.deadline(0)) == ("t0", 0, 5, 8)
            assert (turn.weight(0), turn.money(0), turn.utility(0), turn.inputs(0)) == (
                2,
                3,
                900,
                [(0, 0, -1)],
            )
            assert (turn.may_reject(0), turn.may_reject(1), turn.held(0)) == (False, True, False)
            assert (turn.free(0), turn.discipline, turn.running) == (2, "replan", ())
            assert turn.increase(turn.earliest(0, 0)) == (2 * 4 + 3,)
            turn.commit(0, 0)
            assert (turn.running, turn.value, turn.free(0), turn.free(0, 4)) == ((0,), (11,), 1, 2)
            turn.stage(0)
            assert turn.held(0)
            with pytest.raises(ValueError, match="Mode 1 is none of task 0"):
                turn.commit(0, 1)
        elif turn.clock == 1:
            turn.reject(1)
        asked.append(turn.clock)

    simulator, _ = run(policy, problem)
    assert asked == [0, 1]
    assert simulator.values == [11 + 5 + 4]


def test_trace_file(tmp_path):
    """One JSON object a line, by names."""
    tasks = [Task([Mode(2, {0: 1}, needs=[0])]), Task([Mode(1, {0: 1})], penalty=1)]
    levels = [{"weighted_completion": 1, "rejected": 1}]
    problem = make_problem(tasks, replicas=[Replica(0, 0, [(3, 0, ())])], levels=levels)
    lines = []
    simulator = Simulator(full_scope(problem), trace=lines.append)
    simulator.apply(Reject(1))
    simulator.apply(Commit(0, 0))
    write_trace(lines, tmp_path / "trace.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "trace.jsonl").read_text().splitlines()]
    assert rows[0] == {"clock": 0, "action": "reject", "task": "t1", "queue": 1, "values": [1]}
    assert (rows[1]["task"], rows[1]["start"], rows[1]["end"]) == ("t0", 3, 5)
    assert rows[1]["uses"] == {"r0": 1}
    assert rows[1]["inputs"] == [{"dataset": "d0", "access": "staged"}]
    assert rows[1]["transfers"] == [{"dataset": "d0", "site": "s0", "route": [], "start": 0, "end": 3}]
