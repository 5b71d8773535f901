"""The time-indexed MILP: one tiny problem per family of rows, its optimum derived in a comment."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.milp import run_natively, solve, state_transfer
from support.problems import Mode, Replica, Task, make_problem

from optalloc.formulations.milp import (
    build,
)
from optalloc.problem import ABSENT, FREE, REJECTED, Problem
from optalloc.scope import Scope, full_scope, windows


def scope_of(problem: Problem, mode: list[int], start: list[int], **more: Any) -> Scope:
    """A scope with some tasks fixed."""
    return Scope(
        problem, np.array(mode), np.array(start), more.get("transfers", ()), more.get("not_before", 0)
    )


# tasks -----------------------------------------------------------------------------------------------
def test_one_start_chooses_the_cheapest_mode() -> None:
    """2 ticks for 5 money or 4 ticks for 2."""
    # Fast: C = 2, cost 5, sum 7. Slow: C = 4, cost 2, sum 6.
    solved = solve(make_problem([Task([Mode(2, {0: 1}, money=5), Mode(4, {0: 1}, money=2)])]))
    assert (solved.value, solved.modes, solved.starts) == (6, [1], [0])


def test_costs_are_shifted_by_the_least_of_each_task() -> None:
    """The constant is the sum of least own costs, rejection counted; some column of each task costs 0."""
    # Task 0: least 1 * (0 + 2) + 1000 = 1002. Task 1: rejection for 3 is below its least 1 * (0 + 4) = 4.
    tasks = [Task([Mode(2, {0: 1}, money=1000)]), Task([Mode(4, {0: 1})], penalty=3)]
    problem = make_problem(tasks, levels=[{"weighted_completion": 1, "cost": 1, "rejected": 1}])
    milp = build(full_scope(problem), windows(full_scope(problem)))
    assert milp.constant == 1002 + 3
    assert milp.costs.min() == 0
    assert milp.matrix.offset == 1005


def test_rejection_is_passed_on_to_successors() -> None:
    """Rejecting the first task costs 1, but takes the second with it for 5."""
    # The first runs 8 ticks, the second 1: placed 8 + 9 = 17. Rejecting both: 6. The second alone: 8 + 5 = 13.
    tasks = [Task([Mode(8, {0: 1})], penalty=1), Task([Mode(1, {0: 1})], penalty=5, after=[(0, 0)])]
    problem = make_problem(tasks, levels=[{"weighted_completion": 1, "rejected": 1}])
    solved = solve(problem)
    assert (solved.value, solved.modes) == (6, [REJECTED, REJECTED])
    assert solved.rows("rejection") == 1


def test_task_after_a_fixed_rejection_cannot_run() -> None:
    """A must-run task after one that is fixed as rejected leaves no plan."""
    problem = make_problem([Task([Mode(1, {0: 1})]), Task([Mode(1, {0: 1})], after=[(0, 0)])])
    solved = solve(problem, scope=scope_of(problem, [REJECTED, FREE], [0, 0]))
    assert solved.value is None
    assert not solved.milp.possible


def test_precedence_with_a_lag() -> None:
    """The second task starts 3 ticks after the end of the first, in whichever mode that runs."""
    # First: 4 ticks for 0 (end 4) or 1 tick for 2 (end 1). Second ends 3 + 1 later.
    # Slow: 4 + 8 = 12. Fast: 1 + 5 + 2 = 8.
    tasks = [Task([Mode(4, {0: 1}), Mode(1, {0: 1}, money=2)]), Task([Mode(1, {0: 1})], after=[(0, 3)])]
    solved = solve(make_problem(tasks))
    assert (solved.value, solved.modes, solved.starts) == (8, [1, 2], [0, 4])


def test_precedence_rows_are_tight() -> None:
    """The relaxation cannot start half a successor at once: its bound is the optimum here."""
    # Each task weighs 1 and runs 2 ticks: ends 2 and 4. Rows for each tick give 6 without branching.
    tasks = [Task([Mode(2, {0: 1})], deadline=6), Task([Mode(2, {1: 1})], after=[(0, 0)], deadline=8)]
    problem = make_problem(tasks, [1, 1])
    milp = build(full_scope(problem), windows(full_scope(problem)))
    relaxed = replace(milp.matrix, integer=np.zeros(milp.matrix.num_columns, dtype=bool))
    _, values = run_natively(relaxed)
    assert milp.matrix.cost @ values + milp.constant == pytest.approx(6)


def test_absent_tasks_neither_run_nor_precede() -> None:
    """A task outside the solve costs nothing and delays nobody."""
    problem = make_problem([Task([Mode(5, {0: 1})]), Task([Mode(1, {0: 1})], after=[(0, 2)])])
    solved = solve(problem, scope=scope_of(problem, [ABSENT, FREE], [0, 0]))
    assert (solved.value, solved.modes, solved.starts) == (1, [ABSENT, 1], [0, 0])


# resources -------------------------------------------------------------------------------------------
def test_capacity_holds_at_every_tick() -> None:
    """Runs of 2, 2 and 3 devices on a node of 4."""
    # The runs of 2 devices share [0, 2), the third follows: ends 2, 2, 5. The other order: 3, 5, 5.
    tasks = [Task([Mode(2, {0: 2})]), Task([Mode(2, {0: 2})]), Task([Mode(3, {0: 3})])]
    assert solve(make_problem(tasks, [4])).value == 2 + 2 + 5


def test_capacity_rows_only_where_they_can_bind() -> None:
    """No row where all that can run fits, none at ticks where nothing starts, one where less is left."""
    # Both runs fit a node of 2. On a node that shrinks at tick 1, the runs can start at 0 only: one row, at 1.
    tasks = [Task([Mode(2, {0: 1})], deadline=2, penalty=9) for _ in range(2)]
    levels = [{"rejected": 1}]
    wide = solve(make_problem(tasks, [2], levels=levels))
    assert (wide.value, wide.rows("capacity")) == (0, 0)
    narrow = solve(make_problem(tasks, [[(0, 2), (1, 1)]], levels=levels))
    assert (narrow.value, list(narrow.milp.model.capacity)) == (9, [(0, 1)])


def test_run_does_not_span_a_gap_of_the_calendar() -> None:
    """One device in [0, 2) and from 5 on: a run of 3 ticks must wait for the second part."""
    solved = solve(make_problem([Task([Mode(3, {0: 1})])], [[(0, 1), (2, 0), (5, 1)]]))
    assert (solved.value, solved.starts) == (8, [5])


def test_fixed_run_from_before_tick_0_uses_capacity() -> None:
    """A run of the state from -2 to 3 leaves the device free at 3; its end counts."""
    # C = 3 for the state's task, 3 + 1 for the other.
    tasks = [Task([Mode(5, {0: 1})]), Task([Mode(1, {0: 1})])]
    solved = solve(make_problem(tasks, state_mode=[0, FREE], state_start=[-2, 0]))
    assert (solved.value, solved.starts) == (3 + 4, [-2, 3])


def test_fixed_part_beyond_capacity_leaves_no_plan() -> None:
    """Two fixed runs on one device: infeasible, even if nothing else runs there."""
    problem = make_problem([Task([Mode(2, {0: 1})])] * 2 + [Task([Mode(1, {1: 1})])], [1, 1])
    solved = solve(problem, scope=scope_of(problem, [0, 1, FREE], [0, 1, 0]))
    assert solved.value is None


def test_seats_bound_readers_at_a_time() -> None:
    """Three nodes, one seat: the runs follow each other."""
    # Ends 1, 2, 3 with one seat, 1, 1, 1 without.
    tasks = [Task([Mode(1, {n: 1, 3: 1})]) for n in range(3)]
    assert solve(make_problem(tasks, [1, 1, 1], seats=[1])).value == 6


# data ------------------------------------------------------------------------------------------------
def test_staging_shares_one_transfer() -> None:
    """Two tasks read one replica: one transfer of 3 ticks for 4 money serves both."""
    # Arrival at 3, runs of 1 tick on two nodes: 4 + 4 + 4.
    tasks = [Task([Mode(1, {n: 1}, needs=[0])]) for n in range(2)]
    solved = solve(make_problem(tasks, [1, 1], replicas=[Replica(0, routes=[(3, 4, ())])]))
    assert (solved.value, solved.transfers) == (12, [(0, 0, 0)])


def test_route_is_chosen_for_all_its_readers() -> None:
    """A slow free route or a fast dear one: worth it for two readers, not for one."""
    # Slow: arrival 4, each ends at 5. Fast for 3: arrival 2, each ends at 3.
    # One reader: 5 against 3 + 3 = 6. Two readers: 10 against 6 + 3 = 9.
    replica = Replica(0, routes=[(4, 0, ()), (2, 3, ())])
    reader = Task([Mode(1, {0: 1}, needs=[0])])
    one, two = (make_problem([reader] * n, [2], replicas=[replica]) for n in (1, 2))
    assert (solve(one).value, solve(one).transfers) == (5, [(0, 0, 0)])
    assert (solve(two).value, solve(two).transfers) == (9, [(0, 1, 0)])


def test_constant_transfer_has_one_start() -> None:
    """Without channels and storage limits the transfer starts at once; with a channel every start is open."""
    # With a run of 3 ticks on node 1 the horizon is 1 + 1 + 3 + 2 = 7: the reader starts by 6.
    tasks = [Task([Mode(1, {0: 1}, needs=[0])]), Task([Mode(3, {1: 1})])]
    replicas = [[Replica(0, routes=[(2, 0, held)], available=1)] for held in ((), (2,))]
    free = solve(make_problem(tasks, [1, 1], channels=[1], replicas=replicas[0]))
    contended = solve(make_problem(tasks, [1, 1], channels=[1], replicas=replicas[1]))
    assert (free.value, free.milp.columns.y_start.tolist()) == (4 + 3, [1])
    assert (contended.value, contended.milp.columns.y_start.tolist()) == (4 + 3, [1, 2, 3, 4])


def test_channel_is_shared_by_transfers_and_streams() -> None:
    """One channel: a stream of 2 ticks and a transfer of 3 ticks cannot overlap."""
    # Stream first: end 2; transfer [2, 5), its reader ends at 6: 8. Transfer first: 4 and 5: 9.
    tasks = [Task([Mode(2, {0: 1, 2: 1})]), Task([Mode(1, {1: 1}, needs=[0])])]
    replicas = [Replica(0, routes=[(3, 0, (2,))])]
    assert solve(make_problem(tasks, [1, 1], channels=[1], replicas=replicas)).value == 8
    assert solve(make_problem(tasks, [1, 1], channels=[2], replicas=replicas)).value == 2 + 4


def test_fixed_transfer_excludes_others_and_is_waited_for() -> None:
    """A transfer of the state that arrives at 5 is the one transfer: a faster one may not be added."""
    problem = make_problem(
        [Task([Mode(1, {0: 1}, needs=[0])])],
        replicas=[Replica(0, routes=[(1, 0, ())])],
        state_transfers=[state_transfer(0, 0, -1, 6, replica=0)],
    )
    solved = solve(problem)
    assert (solved.value, solved.starts, len(solved.plan.transfers)) == (6, [5], 1)
    assert len(solved.milp.columns.y_replica) == 0


def test_fixed_reader_needs_an_arrival_in_time() -> None:
    """A fixed run at tick 3 that reads a replica forces the fast route, 2 ticks for 7, over 4 ticks for 0."""
    # C = 4 and 7 money.
    replica = Replica(0, routes=[(4, 0, ()), (2, 7, ())])
    problem = make_problem([Task([Mode(1, {0: 1}, needs=[0])])], replicas=[replica])
    solved = solve(problem, scope=scope_of(problem, [0], [3]))
    assert (solved.value, solved.transfers) == (11, [(0, 1, 0)])
    assert solve(problem, scope=scope_of(problem, [0], [1])).value is None


def test_state_reader_needs_no_transfer() -> None:
    """R6 does not bind tasks of the state."""
    problem = make_problem(
        [Task([Mode(1, {0: 1}, needs=[0])])], replicas=[Replica(0)], state_mode=[0], state_start=[0]
    )
    assert (solve(problem).value, solve(problem).transfers) == (1, [])


def test_purchase_is_paid_once() -> None:
    """Data for 6 serve two tasks; each saves 4 ticks with them."""
    # Without: 5 + 5 = 10. With: 1 + 1 + 6 = 8. For one task alone: 5 against 1 + 6.
    task = Task([Mode(5, {0: 1}), Mode(1, {0: 1}, buys=[0])])
    assert solve(make_problem([task] * 2, [2], purchases=[6])).value == 8
    assert solve(make_problem([task], [2], purchases=[6])).value == 5


def test_purchase_of_a_fixed_task_is_a_constant() -> None:
    """What a fixed run has bought, others use for nothing."""
    # Fixed: end 1 and 6 money. The other: 1, without paying again.
    task = Task([Mode(5, {0: 1}), Mode(1, {0: 1}, buys=[0])])
    problem = make_problem([task] * 2, [2], purchases=[6])
    solved = solve(problem, scope=scope_of(problem, [1, FREE], [0, 0]))
    assert (solved.value, len(solved.milp.columns.z_purchase)) == (1 + 6 + 1, 0)


# storage ---------------------------------------------------------------------------------------------
def storage_problem(room: int, **more: Any) -> Problem:
    """Two tasks, one node each at site 0, that read replicas of sizes 3 and 2, brought in 2 ticks; runs of 3."""
    tasks = [Task([Mode(3, {n: 1}, needs=[n])], deadline=14) for n in range(2)]
    replicas = [Replica(n, size=3 - n, routes=[(2, 0, ())]) for n in range(2)]
    return make_problem(tasks, [1, 1], replicas=replicas, storage={0: room}, **more)


def test_storage_is_held_until_the_last_reader_ends() -> None:
    """Room for one replica: the second sets out when the first reader has ended."""
    # First: transfer [0, 2), run [2, 5). Second: transfer [5, 7), run [7, 10). 5 + 10. With room for both: 5 + 5.
    solved = solve(storage_problem(4))
    assert solved.value == 15
    assert sorted(start for *_, start in solved.transfers) == [0, 5]
    wide = solve(storage_problem(5))
    assert (wide.value, len(wide.milp.columns.held_tick)) == (10, 0)


def test_storage_is_held_between_readers() -> None:
    """A replica with an early and a late reader is held in between, when nobody reads it."""
    # Node 0 is closed in [5, 8). Readers of replica 0: runs of 3 at 2 and, after the gap, at 8. Replica 1 (2 ticks,
    # then 1 on node 1) must wait until 11: 11 + 2 + 1 = 14, or go first: [0, 2), [2, 3), then replica 0 from 3 to 5
    # and runs [8, 11), [11, 14). First way 5 + 11 + 14 = 30, second way 3 + 11 + 14 = 28.
    calendar = [(0, 1), (5, 0), (8, 1)]
    tasks = [Task([Mode(3, {0: 1}, needs=[0])])] * 2 + [Task([Mode(1, {1: 1}, needs=[1])])]
    replicas = [Replica(n, size=1, routes=[(2, 0, ())]) for n in range(2)]
    tight = make_problem(tasks, [calendar, 1], replicas=replicas, storage={0: 1})
    assert solve(tight).value == 28
    # With room for both: 5, 11 and 3.
    assert solve(make_problem(tasks, [calendar, 1], replicas=replicas, storage={0: 2})).value == 19


def test_replica_takes_room_from_the_start_of_its_transfer() -> None:
    """Room for one: two transfers of 4 ticks cannot be under way together."""
    # Runs of 1: first ends at 5, the second transfer starts at 5: 5 + 10.
    tasks = [Task([Mode(1, {n: 1}, needs=[n])]) for n in range(2)]
    replicas = [Replica(n, routes=[(4, 0, ())]) for n in range(2)]
    assert solve(make_problem(tasks, [1, 1], replicas=replicas, storage={0: 1})).value == 15


def test_fixed_reader_keeps_a_fixed_replica() -> None:
    """A run of the state until 6 keeps its replica; the other transfer can start at 6 only."""
    # State: end 6. Other: transfer [6, 8), run [8, 11).
    problem = storage_problem(
        4,
        state_mode=[0, FREE],
        state_start=[3, 0],
        state_transfers=[state_transfer(0, 0, -2, 2, replica=0)],
    )
    assert solve(problem).value == 6 + 11


def test_fixed_replica_is_kept_for_a_later_reader() -> None:
    """A staged replica that only a later run reads takes room from tick 0 to the end of that run."""
    # Replica 0 is there. Node 0 opens at 4: run [4, 7). Replica 1 may set out at 7: run [9, 12).
    problem = make_problem(
        [Task([Mode(3, {n: 1}, needs=[n])]) for n in range(2)],
        [[(0, 0), (4, 1)], 1],
        replicas=[Replica(n, size=3 - n, routes=[(2, 0, ())]) for n in range(2)],
        storage={0: 4},
        state_transfers=[state_transfer(0, 0, -2, 2, replica=0)],
    )
    assert solve(problem).value == 7 + 12


def test_fixed_reader_of_a_replica_to_come_keeps_it() -> None:
    """A state task reads a replica that is brought only now, for another task: it stays until the state task ends."""
    # Replica 0 is brought for task 1 on node 1: [0, 2), run [2, 3). Task 0 (state) reads it until 8.
    # Replica 1 for task 2 sets out at 8, or first: [0, 2), run [2, 3), then replica 0 from 3: run [5, 6).
    # First way: 8 + 3 + 11. Second way: 8 + 6 + 3.
    tasks = [Task([Mode(9, {0: 1}, needs=[0])])]
    tasks += [Task([Mode(1, {1 + n: 1}, needs=[n])]) for n in range(2)]
    problem = make_problem(
        tasks,
        [1, 1, 1],
        replicas=[Replica(n, routes=[(2, 0, ())]) for n in range(2)],
        storage={0: 1},
        state_mode=[0, FREE, FREE],
        state_start=[-1, 0, 0],
    )
    assert solve(problem).value == 8 + 6 + 3


# objective -------------------------------------------------------------------------------------------
def test_makespan_counts_the_last_end_only() -> None:
    """Three runs of 2, 2 and 3 on two devices: 4, not a sum."""
    tasks = [Task([Mode(p, {0: 1})]) for p in (2, 2, 3)]
    solved = solve(make_problem(tasks, [2], levels=[{"makespan": 1}]))
    assert solved.value == 4
    assert solved.rows("work") == 1


def test_makespan_of_a_fixed_run() -> None:
    """The makespan is at least the end of what is fixed."""
    tasks = [Task([Mode(9, {0: 1})]), Task([Mode(1, {1: 1})])]
    problem = make_problem(tasks, [1, 1], levels=[{"makespan": 2}], state_mode=[0, FREE], state_start=[-1, 0])
    assert solve(problem).value == 16


def test_makespan_is_0_if_all_is_rejected() -> None:
    """Nothing runs: only the penalty counts."""
    problem = make_problem([Task([Mode(3, {0: 1})], penalty=2)], levels=[{"makespan": 1, "rejected": 1}])
    assert (solve(problem).value, solve(problem).modes) == (2, [REJECTED])


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        ({"weighted_completion": 1}, 3 * 4),  # released at 2, 2 ticks: C = 4
        ({"weighted_flow": 1}, 3 * 2),
        ({"weighted_tardiness": 1}, 3 * 1),  # due at 3
        ({"late": 1}, 3),
        ({"cost": 1}, 7),
        ({"utility_loss": 1}, 3 * 250),
    ],
)
def test_terms_of_a_placed_task(level: dict[str, int], expected: int) -> None:
    """Each term of one task of weight 3."""
    task = Task([Mode(2, {0: 1}, money=7, utility=750)], release=2, due=3, weight=3)
    assert solve(make_problem([task], levels=[level])).value == expected


@pytest.mark.parametrize(
    ("level", "expected"), [({"rejected": 1}, 5), ({"late": 1}, 3), ({"utility_loss": 1}, 3000)]
)
def test_terms_of_a_rejected_task(level: dict[str, int], expected: int) -> None:
    """A task that has no room is rejected, and charged."""
    task = Task([Mode(2, {0: 1})], deadline=1, weight=3, penalty=5)
    assert solve(make_problem([task], levels=[level])).value == expected


def test_limit_holds() -> None:
    """R10. At most 3 money: the fast mode for 4 is out."""
    task = Task([Mode(1, {0: 1}, money=4), Mode(5, {0: 1}, money=2)])
    levels = [{"weighted_completion": 1}]
    assert solve(make_problem([task], levels=levels)).value == 1
    assert solve(make_problem([task], levels=levels, limits={"cost": 3})).value == 5
    assert solve(make_problem([task], levels=levels, limits={"cost": 1})).value is None


def test_limit_on_the_makespan() -> None:
    """A limit of a term that the objective does not have."""
    # One device, two tasks of 2; the second may go to a dear node. All by 2: 0 + 9 money.
    tasks = [Task([Mode(2, {0: 1})]), Task([Mode(2, {0: 1}), Mode(2, {1: 1}, money=9)])]
    problem = make_problem(tasks, [1, 1], levels=[{"cost": 1}], limits={"makespan": 3})
    assert solve(problem).value == 9


def test_caps_bound_earlier_levels() -> None:
    """Level 1 under level 0 <= cap."""
    # Cost 4 and C = 1, or cost 2 and C = 5.
    task = Task([Mode(1, {0: 1}, money=4), Mode(5, {0: 1}, money=2)])
    problem = make_problem([task], levels=[{"cost": 1}, {"weighted_completion": 1}])
    assert solve(problem, level=1, caps=(2,)).value == 5
    assert solve(problem, level=1, caps=(4,)).value == 1
    assert solve(problem, level=1, caps=(1,)).value is None


def test_cutoff_bounds_the_level_itself() -> None:
    """No plan is better than the optimum of 1."""
    problem = make_problem([Task([Mode(1, {0: 1})])])
    assert solve(problem, cutoff=1).value == 1
    assert solve(problem, cutoff=0).value is None


def test_costs_in_units_of_their_common_factor() -> None:
    """Weights of 6 and 10 apart by ticks: what HiGHS sees are multiples of 1, the level is a multiple of 2."""
    tasks = [Task([Mode(1, {0: 1})], weight=6), Task([Mode(1, {0: 1})], weight=10)]
    milp = build(full_scope(make_problem(tasks)), windows(full_scope(make_problem(tasks))))
    assert milp.unit == 2
    assert milp.scaled_matrix.cost.max() * 2 == milp.costs.max()
    assert solve(make_problem(tasks)).value == 10 * 1 + 6 * 2
