"""The placement kernel against plain tick scans, and its promises on undo, copies and fixed parts."""

from itertools import product

import numpy as np
import pytest
from support.problems import Mode, Replica, Task, make_problem
from support.ticks import broken

from optalloc.placement import Placement, Timetable
from optalloc.problem import ABSENT, FREE, NEVER, REJECTED, Problem, Transfer
from optalloc.profile import Profile
from optalloc.scope import Scope, full_scope

Rng = np.random.Generator


# profiles -----------------------------------------------------------------------------------------
def random_profile(rng: Rng) -> Profile:
    times = np.unique(np.concatenate([[0], rng.integers(1, 30, size=6)])).tolist()
    return Profile(times, rng.integers(0, 5, size=len(times)).tolist())


def free_at(profile: Profile, tick: int) -> int:
    return [f for t, f in zip(profile.times, profile.free, strict=True) if t <= tick][-1]


@pytest.mark.parametrize("seed", range(20))
def test_profile_finds_the_first_fit(seed):
    """`fit` is the least start of a scan over ticks; the shortages are the first and last ticks of one."""
    rng = np.random.default_rng(seed)
    for _ in range(20):
        profile = random_profile(rng)
        amount, start, duration = (int(rng.integers(low, high)) for low, high in ((1, 5), (0, 30), (1, 12)))
        ok = [all(free_at(profile, t) >= amount for t in range(s, s + duration)) for s in range(80)]
        scanned = next((s for s in range(start, 60) if ok[s]), NEVER)
        assert profile.fit(amount, start, duration) == scanned
        assert profile.fit(amount, start, duration, latest=start + 5) == (
            scanned if scanned <= start + 5 else NEVER
        )
        short = [t for t in range(start, start + duration) if free_at(profile, t) < amount]
        until = profile.last_shortage(amount, start, start + duration)
        assert (until >= 0) == bool(short)
        if short:
            assert until > short[-1]
            assert all(free_at(profile, t) < amount for t in range(short[-1], min(until, 90)))
        first = next((t for t in range(start, 60) if free_at(profile, t) < amount), NEVER)
        assert profile.first_shortage(amount, start) == first


@pytest.mark.parametrize("seed", range(10))
def test_profile_takes_reservations_back_exactly(seed):
    """Reservations in any order leave the lists as they were once all are taken back."""
    rng = np.random.default_rng(seed)
    profile = random_profile(rng)
    before = (profile.times.copy(), profile.free.copy())
    spans = [sorted(rng.integers(-3, 40, size=2).tolist()) for _ in range(12)]
    for first, last in spans:
        profile.add(-1, first, last)
        assert all(a != b for a, b in zip(profile.free, profile.free[1:], strict=False))
    for index in rng.permutation(len(spans)):
        profile.add(1, *spans[index])
    assert (profile.times, profile.free) == before


# random problems ----------------------------------------------------------------------------------
def regular_problem(rng: Rng) -> Problem:
    """Calendars, several resources a mode, seats, precedence, deadlines, unlimited transfers."""
    nodes = [[(0, 2), (int(rng.integers(3, 9)), int(rng.integers(0, 4))), (12, 3)] for _ in range(2)]
    replicas = [
        Replica(
            d,
            0,
            [(int(rng.integers(1, 6)), int(rng.integers(0, 9)), ()) for _ in range(2)],
            1,
            int(rng.integers(4)),
        )
        for d in range(2)
    ]

    def mode() -> Mode:
        uses = {int(rng.integers(2)): int(rng.integers(1, 4))}
        if rng.random() < 0.3:
            uses = {0: int(rng.integers(1, 3)), 1: int(rng.integers(1, 3))}
        if rng.random() < 0.3:
            uses[2] = 1
        needs = sorted({int(k) for k in rng.integers(0, 2, size=int(rng.integers(3)))})
        return Mode(int(rng.integers(1, 7)), uses, needs=needs, available=int(rng.integers(3)))

    tasks = [
        Task(
            [mode() for _ in range(2)],
            release=int(rng.integers(8)),
            deadline=NEVER if rng.random() < 0.7 else int(rng.integers(5, 40)),
            after=[(int(rng.integers(j)), int(rng.integers(3)))] if j and rng.random() < 0.4 else (),
            penalty=1,
        )
        for j in range(6)
    ]
    return make_problem(tasks, nodes, seats=[1], replicas=replicas)


def contended_problem(rng: Rng, most_needs: int = 1) -> Problem:
    """Link channels, storage, streams; every mode needs at most ``most_needs`` staged replicas."""
    replicas = [
        Replica(
            d,
            0,
            [
                (
                    int(rng.integers(1, 5)),
                    int(rng.integers(0, 9)),
                    sorted({int(c) for c in rng.integers(2, 4, size=2)}),
                )
                for _ in range(2)
            ],
            int(rng.integers(1, 4)),
            int(rng.integers(4)),
        )
        for d in range(4)
    ]

    def mode() -> Mode:
        uses = {int(rng.integers(2)): int(rng.integers(1, 3))}
        if rng.random() < 0.3:
            uses[int(rng.integers(2, 4))] = 1
        needs = sorted({int(k) for k in rng.integers(0, 4, size=int(rng.integers(most_needs + 1)))})
        return Mode(int(rng.integers(1, 6)), uses, needs=needs)

    tasks = [Task([mode() for _ in range(3)], release=int(rng.integers(8)), penalty=1) for _ in range(6)]
    return make_problem(tasks, [2, [(0, 2), (9, 1)]], channels=[1, 1], replicas=replicas, storage={0: 5})


def with_transfers(table: Timetable, placement: Placement):
    trial = table.copy()
    trial.commit(placement)
    return trial.plan()


def scanned_start(table: Timetable, task: int, mode: int, last: int) -> int:
    """Least start over all start ticks of the run and of each missing transfer on each route."""
    problem, facts = table.problem, table.facts(mode)
    missing = [k for k in facts.needs if k not in table.held]
    for start in range(last):
        ways = [
            [
                problem.transfer(k, q, t)
                for q in problem.routes_of(k)
                for t in range(start - int(problem.route_ticks[q]) + 1)
            ]
            for k in missing
        ]
        for transfers in product(*ways):
            placement = Placement(task, mode, start, start + facts.duration, transfers)
            if not broken(table.scope, with_transfers(table, placement)):
                return start
    return NEVER


def scanned_regular(table: Timetable, task: int, mode: int, last: int) -> int:
    """Least start when each missing transfer is taken at its first tick on its fastest route."""
    problem, facts = table.problem, table.facts(mode)
    transfers = []
    for k in facts.needs:
        if k not in table.held:
            route = min(problem.routes_of(k), key=lambda q: problem.route_ticks[q])
            transfers.append(
                problem.transfer(k, route, max(int(problem.replica_available[k]), table.scope.not_before))
            )
    for start in range(last):
        placement = Placement(task, mode, start, start + facts.duration, tuple(transfers))
        if not broken(table.scope, with_transfers(table, placement)):
            return start
    return NEVER


def decided(table: Timetable, task: int) -> bool:
    return all(table.mode[p] != FREE for p, _ in table.problem.predecessors(task))


@pytest.mark.parametrize("seed", range(15))
def test_earliest_is_a_tick_scan_on_regular_problems(seed):
    """Calendars, seats, precedence, gaps, deadlines, free transfers: the start is the least one."""
    rng = np.random.default_rng(seed)
    problem = regular_problem(rng)
    scope = full_scope(problem)
    scope = Scope(problem, scope.mode, scope.start, (), not_before=int(rng.integers(3)))
    table = Timetable(scope)
    for task in rng.permutation(problem.num_tasks).tolist() * 3:
        if table.mode[task] != FREE or not decided(table, task):
            continue
        found = []
        for mode in problem.modes_of(task).tolist():
            placement = table.earliest(task, mode)
            assert (placement.start if placement else NEVER) == scanned_regular(table, task, mode, 45)
            found += [placement] if placement else []
        if not found:
            table.reject(task)
            continue
        table.commit(found[int(rng.integers(len(found)))])
        assert broken(scope, table.plan()) == []


@pytest.mark.parametrize("seed", range(8))
def test_earliest_is_exact_with_channels_and_storage(seed):
    """One missing replica: the start is the least over all routes and start ticks of the transfer."""
    rng = np.random.default_rng(100 + seed)
    problem = contended_problem(rng)
    table = Timetable(full_scope(problem))
    for task in rng.permutation(problem.num_tasks).tolist():
        found = []
        for mode in problem.modes_of(task).tolist():
            placement = table.earliest(task, mode)
            assert (placement.start if placement else NEVER) == scanned_start(table, task, mode, 22)
            found += [placement] if placement else []
        if found:
            table.commit(found[int(rng.integers(len(found)))])
            assert broken(table.scope, table.plan()) == []


@pytest.mark.parametrize("seed", range(40))
def test_several_missing_replicas_are_placed_validly(seed):
    """Modes with up to three staged inputs over shared channels into small storage never break a rule."""
    rng = np.random.default_rng(200 + seed)
    problem = contended_problem(rng, most_needs=3)
    table = Timetable(full_scope(problem))
    for task in rng.permutation(problem.num_tasks).tolist():
        options = [p for m in problem.modes_of(task).tolist() if (p := table.earliest(task, m)) is not None]
        if options:
            placement = options[int(rng.integers(len(options)))]
            assert table.fits(placement)
            table.commit(placement)
            assert broken(table.scope, table.plan()) == []


def state_of(table: Timetable):
    profiles = [(p.times.copy(), p.free.copy()) for p in [*table.profiles, *table.storage.values()]]
    held = {k: (h.transfer, dict(h.readers), h.until) for k, h in table.held.items()}
    return (
        profiles,
        held,
        table.mode.copy(),
        table.start.copy(),
        table.end.copy(),
        table.bought.copy(),
        table.makespan,
    )


@pytest.mark.parametrize("seed", range(20))
def test_remove_is_the_inverse_of_commit_and_copies_are_apart(seed):
    """A commit to a copy leaves the original alone; taking tasks back in reverse restores every list."""
    rng = np.random.default_rng(300 + seed)
    problem = contended_problem(rng, most_needs=2)
    table = Timetable(full_scope(problem))
    states, order = [state_of(table)], []
    for task in rng.permutation(problem.num_tasks).tolist():
        options = [p for m in problem.modes_of(task).tolist() if (p := table.earliest(task, m)) is not None]
        if not options:
            continue
        twin = table.copy()
        twin.commit(options[-1])
        assert state_of(table) == states[-1]
        ahead = state_of(twin)
        table.commit(options[0])
        assert state_of(twin) == ahead
        order.append(task)
        states.append(state_of(table))
    for task in reversed(order):
        assert state_of(table) == states.pop()
        table.remove(task)
    assert state_of(table) == states.pop()


# single promises ----------------------------------------------------------------------------------
def test_a_gap_between_reservations_is_used():
    """One node: runs at [0, 2) and [5, 9) leave [2, 5): a run of 3 starts at 2, one of 4 at 9."""
    tasks = [
        Task([Mode(2, {0: 1})]),
        Task([Mode(4, {0: 1})], release=5),
        Task([Mode(3, {0: 1}), Mode(4, {0: 1})]),
    ]
    table = Timetable(full_scope(make_problem(tasks)))
    table.commit(table.earliest(0, 0))
    table.commit(table.earliest(1, 1))
    assert [table.earliest(2, mode).start for mode in (2, 3)] == [2, 9]
    assert table.earliest(2, 3, latest=8) is None
    assert table.earliest(2, 2, not_before=3).start == 9


def test_the_cheapest_route_that_does_not_delay_is_taken():
    """The node is taken until 6. Routes: 2 ticks for 9, 5 for 4, 8 for 0. The run starts at 6; 5 ticks do."""
    replica = Replica(0, 0, [(2, 9, ()), (5, 4, ()), (8, 0, ())])
    problem = make_problem([Task([Mode(6, {0: 1})]), Task([Mode(3, {0: 1}, needs=[0])])], replicas=[replica])
    table = Timetable(full_scope(problem))
    table.commit(table.earliest(0, 0))
    placement = table.earliest(1, 1)
    assert (placement.start, placement.transfers) == (6, (problem.transfer(0, 1, 0),))
    assert table.earliest(1, 1, routes={0: (2,)}).start == 8
    assert table.earliest(1, 1, routes={0: ()}) is None


def test_an_idle_replica_gives_way_and_then_closes_its_late_reader():
    """Storage 2, two replicas of size 2 (2 ticks each). d0 is read in [2, 4); d1 takes the room from 4 to 9.

    A second reader of d0 after 9 would have to keep it through [4, 9): its mode is closed, even at later
    ticks.
    """
    replicas = [Replica(d, 0, [(2, 0, ())], size=2) for d in range(2)]
    tasks = [
        Task([Mode(2, {0: 1}, needs=[0])]),
        Task([Mode(3, {0: 1}, needs=[1])]),
        Task([Mode(1, {0: 1}, needs=[0]), Mode(1, {0: 1}, needs=[1])]),
    ]
    table = Timetable(full_scope(make_problem(tasks, replicas=replicas, storage={0: 2})))
    table.commit(table.earliest(0, 0))
    second = table.earliest(1, 1)
    # The transfer of d1 cannot start before the last reader of d0 has ended.
    assert (second.transfers[0].start, second.start, second.end) == (4, 6, 9)
    before = table.earliest(2, 2)
    assert (before.start, before.transfers) == (4, ())
    table.commit(second)
    assert table.earliest(2, 2) is None
    assert table.earliest(2, 3).start == 9
    assert not table.fits(before)


def test_a_transfer_waits_for_storage_on_its_way():
    """Storage 2 is full in [5, 8): a transfer of 2 ticks for a run that fits from 4 on starts at 8.

    Started at 0 it would arrive at 2, but the run of 3 ticks needs a node that is free only from 4 on: [4, 7)
    meets the shortage, and a replica brought before 8 would have to be kept through it.
    """
    replicas = [Replica(0, 0, [(1, 0, ())], size=2), Replica(1, 0, [(2, 0, ())], size=2)]
    tasks = [
        Task([Mode(2, {1: 1}, needs=[0])], release=6),
        Task([Mode(4, {0: 1})]),
        Task([Mode(3, {0: 1}, needs=[1])]),
    ]
    problem = make_problem(tasks, [1, 1], node_sites=[0, 0], replicas=replicas, storage={0: 2})
    table = Timetable(full_scope(problem))
    table.commit(Placement(0, 0, 6, 8, (problem.transfer(0, 0, 5),)))
    table.commit(table.earliest(1, 1))
    placement = table.earliest(2, 2)
    assert (placement.start, placement.transfers[0].start) == (10, 8)


def test_transfers_may_precede_the_release_but_not_the_data():
    """Release 10, data from 3 on, transfer of 4 ticks: it takes [3, 7) and the run starts at its release."""
    replica = Replica(0, 0, [(4, 1, ())], available=3)
    problem = make_problem([Task([Mode(2, {0: 1}, needs=[0])], release=10)], replicas=[replica])
    placement = Timetable(full_scope(problem)).earliest(0, 0)
    assert (placement.transfers[0].start, placement.start) == (3, 10)
    late = Timetable(full_scope(problem)).earliest(0, 0, not_before=8)
    assert (late.transfers[0].start, late.start) == (8, 12)


def test_a_started_transfer_serves_later_readers():
    """`stage` reserves a transfer by itself; readers then add none and keep it from being taken back."""
    problem = make_problem(
        [Task([Mode(2, {0: 1}, needs=[0])])], replicas=[Replica(0, 0, [(4, 3, ()), (4, 1, ()), (6, 0, ())])]
    )
    table = Timetable(full_scope(problem))
    transfer = table.earliest_transfer(0, not_before=2)
    assert transfer == problem.transfer(0, 1, 2)
    assert table.earliest_transfer(0, route=2) == problem.transfer(0, 2, 0)
    table.stage(transfer)
    assert table.earliest_transfer(0) is None
    table.commit(table.earliest(0, 0))
    assert table.start[0] == 6
    with pytest.raises(ValueError, match="readers"):
        table.unstage(0)
    with pytest.raises(ValueError, match="already"):
        table.stage(transfer)
    table.remove(0, keep_transfers=True)
    assert table.transfers == (transfer,)
    table.unstage(0)
    assert table.transfers == ()


def test_a_transfer_by_itself_waits_for_channel_and_storage():
    """The channel is free from 2 on, the room from 5 on: a transfer of 2 ticks without a reader starts at 5."""
    replicas = [Replica(d, 0, [(2, 0, [1])], size=2) for d in range(2)]
    tasks = [Task([Mode(3, {0: 1}, needs=[0])])]
    problem = make_problem(tasks, channels=[1], replicas=replicas, storage={0: 3})
    table = Timetable(full_scope(problem))
    table.commit(table.earliest(0, 0))
    transfer = table.earliest_transfer(1)
    assert transfer == problem.transfer(1, 1, 5)
    table.stage(transfer)
    assert broken(table.scope, table.plan()) == []


def test_a_task_is_placed_before_its_placed_successors():
    """The successor stands at [5, 6) with lag 1: a run of 3 must end by 4; one of 5 does not fit."""
    tasks = [Task([Mode(3, {0: 1}), Mode(5, {0: 1})]), Task([Mode(1, {0: 1})], after=[(0, 1)])]
    table = Timetable(full_scope(make_problem(tasks)))
    table.commit(Placement(1, 2, 5, 6))
    assert table.earliest(0, 0).start == 0
    assert table.earliest(0, 0, not_before=2) is None
    assert table.earliest(0, 1) is None


def test_an_undecided_predecessor_is_an_error():
    """A task cannot be placed before its predecessors are decided; after a rejected one it has no place."""
    tasks = [Task([Mode(1, {0: 1})], penalty=1), Task([Mode(1, {0: 1})], after=[(0, 0)], penalty=1)]
    table = Timetable(full_scope(make_problem(tasks)))
    with pytest.raises(ValueError, match="predecessor 0"):
        table.earliest(1, 1)
    table.mode[0] = REJECTED
    assert table.earliest(1, 1) is None


def test_rejection_takes_the_successors_along():
    """Rejecting 0 rejects 1; task 2 must run, so neither it nor its predecessor 3 can be rejected."""
    tasks = [
        Task([Mode(1, {0: 1})], penalty=1),
        Task([Mode(1, {0: 1})], after=[(0, 0)], penalty=1),
        Task([Mode(1, {0: 1})], after=[(3, 0)]),
        Task([Mode(1, {0: 1})], penalty=1),
    ]
    table = Timetable(full_scope(make_problem(tasks)))
    assert table.followers(0) == (0, 1)
    assert table.reject(0) == (0, 1)
    assert table.mode == [REJECTED, REJECTED, FREE, FREE]
    for task in (2, 3):
        with pytest.raises(ValueError, match="cannot be rejected"):
            table.reject(task)
    table.remove(0)
    table.remove(1)
    assert table.mode == [FREE] * 4


def test_fixed_runs_and_transfers_use_capacity():
    """Task 0 runs in [-2, 3) on the only device; its replica, there at -1, is kept until 3 for task 1."""
    transfer = Transfer(0, 0, (0,), -3, 2, 0, (), 0, 0)
    tasks = [Task([Mode(5, {0: 1}, needs=[0])]), Task([Mode(2, {0: 1}, needs=[0])]), Task([Mode(1, {0: 1})])]
    problem = make_problem(
        tasks,
        replicas=[Replica(0, 0, [(2, 7, ())])],
        storage={0: 1},
        state_mode=[0, FREE, FREE],
        state_start=[-2, 0, 0],
        state_transfers=[transfer],
    )
    scope = full_scope(problem)
    mode = scope.mode.copy()
    mode[2] = ABSENT
    table = Timetable(Scope(problem, mode, scope.start, scope.transfers))
    assert (table.held[0].until, table.makespan) == (3, 3)
    placement = table.earliest(1, 1)
    assert (placement.start, placement.transfers) == (3, ())
    table.commit(placement)
    with pytest.raises(ValueError, match="fixed"):
        table.remove(0)
    table.remove(1)
    assert table.transfers == (transfer,)
    plan = table.plan()
    assert plan.mode.tolist() == [0, FREE, ABSENT]
    assert plan.start.tolist() == [-2, 0, 0]


@pytest.mark.parametrize("seed", range(10))
def test_increases_add_up_to_the_value(seed):
    """The value of what is placed grows by exactly the increase that a placement announced, on every term."""
    rng = np.random.default_rng(400 + seed)
    replicas = [Replica(0, 0, [(2, 5, ())]), Replica(1, 0, [(1, 8, ())])]

    def mode() -> Mode:
        needs = [int(rng.integers(2))] if rng.random() < 0.6 else []
        buys = [int(rng.integers(2))] if rng.random() < 0.6 else []
        return Mode(
            int(rng.integers(1, 5)), {0: 1}, int(rng.integers(9)), int(rng.integers(1001)), needs, buys
        )

    tasks = [
        Task(
            [mode()],
            int(rng.integers(5)),
            due=int(rng.integers(9)),
            weight=int(rng.integers(1, 4)),
            penalty=7,
        )
        for _ in range(6)
    ]
    terms = {"makespan": 2, "weighted_completion": 1, "weighted_flow": 3, "weighted_tardiness": 2, "late": 5}
    terms |= {"rejected": 1, "cost": 2, "utility_loss": 1}
    problem = make_problem(tasks, replicas=replicas, purchases=[11, 13], levels=[terms])
    form = problem.levels[0]
    table = Timetable(full_scope(problem))
    total = 0
    for task in range(5):
        placement = table.earliest(task, task)
        total += table.increase(form, placement)
        table.commit(placement)
        assert table.value(form) == total
    table.reject(5)
    weight = tasks[5].weight
    assert table.value(form) == total + 7 + 5 * weight + 1000 * weight
