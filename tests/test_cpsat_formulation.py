"""The CP-SAT formulation: one tiny problem per constraint family, its optimum derived in a comment."""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from ortools.sat.python import cp_model
from support.problems import Mode, Replica, Task, make_problem

from optalloc.errors import UnsupportedError
from optalloc.formulations.cpsat import CpsatModel, add_cutoff, add_hint, build, export_cpsat, read_plan
from optalloc.formulations.cpsat.objective import Linear, form_value
from optalloc.formulations.cpsat.profiles import Profile, allowed_spans, residual_profiles
from optalloc.problem import ABSENT, FREE, REJECTED, Form, Plan, Problem, Transfer
from optalloc.scope import Scope, Windows, full_scope, windows


@dataclass
class Solved:
    """What the native solver said about one level."""

    status: str
    value: int | None
    plan: Plan | None
    built: CpsatModel

    @property
    def transfers(self) -> list[tuple[int, int, int]]:
        """(replica, route, start) of the plan's transfers."""
        return [(t.replica, t.route, t.start) for t in self.plan.transfers]


def solve_natively(built: CpsatModel, **parameters: Any) -> tuple[Any, cp_model.CpSolver]:
    """CP-SAT with one thread and a fixed seed."""
    native = cp_model.CpSolver()
    native.parameters.num_workers = 1
    native.parameters.max_time_in_seconds = 30
    for name, value in parameters.items():
        setattr(native.parameters, name, value)
    return native.solve(built.model), native


def solve(
    problem: Problem,
    *,
    level: int = 0,
    caps: tuple[int, ...] = (),
    cutoff: int | None = None,
    scope: Scope | None = None,
    bounds: Windows | None = None,
) -> Solved:
    """Minimise one level; the optimum must also be reached with every variable at its hinted value."""
    scope = full_scope(problem) if scope is None else scope
    built = build(scope, bounds or windows(scope), level, caps, cutoff)
    status, native = solve_natively(built)
    if status != cp_model.OPTIMAL:
        return Solved(native.status_name(status), None, None, built)
    value = round(native.objective_value) + built.constant
    assert native.response_proto.inner_objective_lower_bound + built.constant == value
    plan = read_plan(built, native.value)
    assert hinted_value(built, plan) == value
    return Solved("OPTIMAL", value, plan, built)


def hinted_value(built: CpsatModel, plan: Plan) -> int:
    """Objective of the complete hint: shows that it satisfies every constraint."""
    assert add_hint(built, plan)
    assert len(built.model.proto.solution_hint.vars) == len(built.model.proto.variables)
    status, native = solve_natively(built, fix_variables_to_their_hinted_value=True)
    assert status == cp_model.OPTIMAL
    return round(native.objective_value) + built.constant


def intervals(built: CpsatModel) -> list[Any]:
    """The interval constraints of the model."""
    return [c.interval for c in built.model.proto.constraints if c.has_interval()]


# modes, windows, calendars -------------------------------------------------------------------------------
def test_cheapest_way_is_chosen() -> None:
    """Exactly one mode: 2 ticks for 5 or 4 ticks for 2."""
    # Fast: C = 2, cost 5, sum 7. Slow: C = 4, cost 2, sum 6.
    problem = make_problem([Task([Mode(2, {0: 1}, money=5), Mode(4, {0: 1}, money=2)])])
    solved = solve(problem)
    assert (solved.value, solved.plan.mode.tolist(), solved.plan.start.tolist()) == (6, [1], [0])


def test_release_and_data_availability_delay_a_run() -> None:
    """A run waits for its release, and a mode for its data."""
    # Released at 3. Mode 0 needs data from 5 on: ends at 5 + 1 = 6. Mode 1: ends at 3 + 2 = 5.
    modes = [Mode(1, {0: 1}, available=5), Mode(2, {0: 1})]
    solved = solve(make_problem([Task(modes, release=3)]))
    assert (solved.value, solved.plan.start.tolist()) == (5, [3])


def test_deadline_makes_a_problem_infeasible() -> None:
    """Two runs of 2 ticks on one device cannot both end by tick 3."""
    tasks = [Task([Mode(2, {0: 1})], deadline=3) for _ in range(2)]
    assert solve(make_problem(tasks)).status == "INFEASIBLE"


def test_run_does_not_span_a_gap_of_the_calendar() -> None:
    """One device in [0, 2) and from 5 on: a run of 3 ticks must wait for the second part."""
    # [0, 2) is too short, so start 5, end 8.
    solved = solve(make_problem([Task([Mode(3, {0: 1})])], [[(0, 1), (2, 0), (5, 1)]]))
    assert (solved.value, solved.plan.start.tolist()) == (8, [5])


def test_each_mode_has_its_own_allowed_starts() -> None:
    """A calendar that only the mode on one node must respect."""
    # Node 0 is closed in [0, 4): end 4 + 1 = 5, cost 0. Node 1 is open: end 2, cost 2. 5 against 4.
    modes = [Mode(1, {0: 1}), Mode(2, {1: 1}, money=2)]
    solved = solve(make_problem([Task(modes)], [[(0, 0), (4, 1)], 1]))
    assert (solved.value, solved.plan.start.tolist()) == (4, [0])


def test_capacity_holds_at_every_tick() -> None:
    """Runs of 2, 2 and 3 devices on a node of 4."""
    # The runs of 2 devices share [0, 2), the third follows: ends 2, 2, 5. The other order: 3, 5, 5.
    tasks = [Task([Mode(2, {0: 2})]), Task([Mode(2, {0: 2})]), Task([Mode(3, {0: 3})])]
    assert solve(make_problem(tasks, [4])).value == 2 + 2 + 5


def test_capacity_drops_while_runs_cannot_move() -> None:
    """Both runs can start at 0 alone, not together, as the node shrinks to one device at tick 1."""
    tasks = [Task([Mode(2, {0: 1})], deadline=2, penalty=9) for _ in range(2)]
    problem = make_problem(tasks, [[(0, 2), (1, 1)]], levels=[{"rejected": 1}])
    solved = solve(problem)
    assert solved.value == 9
    assert intervals(solved.built) == []


def test_unit_horizon_needs_no_intervals() -> None:
    """Generalised assignment: everything runs in tick 0, capacities are knapsack rows."""
    # Node 0 holds one of the tasks (2 of 3 devices). Costs (1, 9) and (2, 4): the first takes it, 1 + 4.
    costs = [(1, 9), (2, 4)]
    tasks = [Task([Mode(1, {0: 2}, money=a), Mode(1, {1: 2}, money=b)], deadline=1) for a, b in costs]
    solved = solve(make_problem(tasks, [3, 3], levels=[{"cost": 1}]))
    assert solved.value == 5
    assert intervals(solved.built) == []


def test_intervals_have_fixed_sizes_and_no_end_variable() -> None:
    """The end of a mode's interval is its own start plus a number: see the wrong optima of OR-Tools 9.15."""
    tasks = [Task([Mode(2, {0: 1}), Mode(3, {1: 1})]) for _ in range(3)]
    made = intervals(solve(make_problem(tasks, [1, 1])).built)
    assert len(made) == 6
    for interval in made:
        assert list(interval.size.vars) == []
        assert list(interval.end.vars) == list(interval.start.vars)
        assert interval.end.offset - interval.start.offset == interval.size.offset


# precedence and rejection -----------------------------------------------------------------------------------
def test_successor_waits_for_end_and_lag() -> None:
    """start >= end + lag, with the mode of the predecessor chosen for the successor's sake."""
    # Fast first run (cost 3): ends 1 and 1 + 2 + 1 = 4, sum 8. Slow one: 5 and 8, sum 13.
    first = Task([Mode(5, {0: 1}), Mode(1, {0: 1}, money=3)])
    solved = solve(make_problem([first, Task([Mode(1, {0: 1})], after=[(0, 2)])]))
    assert (solved.value, solved.plan.start.tolist()) == (8, [0, 3])


def test_rejection_passes_on_to_successors() -> None:
    """A placed task has placed predecessors."""
    # Task 1 alone would be placed (end 1 against 5), but its predecessor ends at 20: 20 + 21 against 3 + 5.
    first, second = Task([Mode(20, {0: 1})], penalty=3), Task([Mode(1, {0: 1})], after=[(0, 0)], penalty=5)
    problem = make_problem([first, second], levels=[{"weighted_completion": 1, "rejected": 1}])
    solved = solve(problem)
    assert (solved.value, solved.plan.mode.tolist()) == (8, [REJECTED, REJECTED])


def test_rejectable_task_without_modes_is_rejected() -> None:
    """No mode left in the windows: rejection is all that remains."""
    tasks = [Task([Mode(3, {0: 1})], deadline=2, penalty=7), Task([Mode(1, {0: 1})])]
    solved = solve(make_problem(tasks, levels=[{"weighted_completion": 1, "rejected": 1}]))
    assert (solved.value, solved.plan.mode.tolist()) == (8, [REJECTED, 1])


# data -------------------------------------------------------------------------------------------------------
SLOW_OR_FAST = ((5, 1, ()), (2, 3, ()))
"""Routes: 5 ticks for 1, 2 ticks for 3."""


def test_staged_data_arrive_before_the_run() -> None:
    """One replica for two readers, its route chosen by what both gain."""
    # Fast: both start at 2, end at 3: 3 + 3 + cost 3 = 9. Slow: 6 + 6 + 1 = 13.
    tasks = [Task([Mode(1, {0: 1}, needs=[0])]) for _ in range(2)]
    solved = solve(make_problem(tasks, [2], replicas=[Replica(0, routes=SLOW_OR_FAST)]))
    assert (solved.value, solved.transfers) == (9, [(0, 1, 0)])


def test_data_that_exist_late_are_moved_late() -> None:
    """A transfer starts at or after the availability of its dataset."""
    # Available at 4, two ticks on the way: start 6, end 7, cost 3.
    replica = Replica(0, routes=SLOW_OR_FAST, available=4)
    solved = solve(make_problem([Task([Mode(1, {0: 1}, needs=[0])])], replicas=[replica]))
    assert (solved.value, solved.transfers) == (10, [(0, 1, 4)])


def test_only_what_is_read_is_brought() -> None:
    """A free transfer that nobody reads is not made."""
    modes = [Mode(1, {0: 1}), Mode(3, {0: 1}, needs=[0])]
    solved = solve(make_problem([Task(modes)], replicas=[Replica(0)]))
    assert (solved.value, solved.transfers) == (1, [])


def test_one_reading_literal_for_several_modes() -> None:
    """Two modes of a task read the same replica."""
    # Waits 2 ticks. On node 0: ends at 5, cost 0. On node 1: ends at 3, cost 1. Transfer costs 3.
    modes = [Mode(3, {0: 1}, needs=[0]), Mode(1, {1: 1}, needs=[0], money=1), Mode(9, {0: 1})]
    solved = solve(make_problem([Task(modes)], [1, 1], replicas=[Replica(0, routes=[(2, 3, ())])]))
    assert (solved.value, solved.plan.start.tolist()) == (7, [2])


def test_transfers_share_a_channel_in_turn() -> None:
    """Two transfers of 2 ticks over a link that carries one at a time."""
    # Arrivals at 2 and 4, runs of 1 tick: ends 3 and 5.
    replicas = [Replica(d, routes=[(2, 0, (1,))]) for d in range(2)]
    tasks = [Task([Mode(1, {0: 1}, needs=[k])]) for k in range(2)]
    solved = solve(make_problem(tasks, [2], channels=[1], replicas=replicas))
    assert solved.value == 8
    assert sorted(start for *_, start in solved.transfers) == [0, 2]


def test_stream_holds_its_channel_while_it_runs() -> None:
    """A transfer waits for a channel that a stream holds, or goes first."""
    # Stream (3 ticks) first: 3, then transfer [3, 5), run ends 6: 9. Transfer first: 3, and the stream 5: 8.
    stream = Task([Mode(3, {0: 1, 1: 1})])
    reader = Task([Mode(1, {0: 1}, needs=[0])])
    replica = Replica(0, routes=[(2, 0, (1,))])
    assert solve(make_problem([stream, reader], [2], channels=[1], replicas=[replica])).value == 8


def test_storage_holds_a_replica_until_its_last_reader_ends() -> None:
    """Room for one of two replicas: the second is brought when the first has been read."""
    # Replica 0 arrives at 1, its run (2 ticks) ends at 3, replica 1 arrives at 4, run ends at 6: 9.
    # The other way round: ends 3 and 3 + 1 + 2 as well. Without the limit: 3 + 3.
    replicas = [Replica(d, size=3, routes=[(1, 0, ())]) for d in range(2)]
    tasks = [Task([Mode(2, {0: 1}, needs=[k])]) for k in range(2)]
    assert solve(make_problem(tasks, [2], replicas=replicas)).value == 6
    solved = solve(make_problem(tasks, [2], replicas=replicas, storage={0: 5}))
    assert solved.value == 9
    assert sorted(start for *_, start in solved.transfers) == [0, 3]


def test_storage_too_small_for_a_replica() -> None:
    """A replica larger than the site cannot be brought at all."""
    task = Task([Mode(1, {0: 1}, needs=[0]), Mode(1, {0: 1}, money=50)])
    problem = make_problem([task], replicas=[Replica(0, size=3)], storage={0: 2})
    assert solve(problem).value == 51


def test_seats_limit_readers_at_a_time() -> None:
    """Two devices, one licence seat."""
    # One after the other: 2 + 4. Seats are the resource after the node.
    tasks = [Task([Mode(2, {0: 1, 1: 1})]) for _ in range(2)]
    assert solve(make_problem(tasks, [2], seats=[1])).value == 6


def test_once_price_is_paid_once() -> None:
    """A dataset for 5, for all who use it, against 4 a task on other data."""
    # Both buy: 2 * (1 + 0) + 5 = 7. None: 2 * (1 + 4) = 10. One of each: 1 + 5 + 1 + 4 = 11.
    tasks = [Task([Mode(1, {0: 1}, buys=[0]), Mode(1, {0: 1}, money=4)]) for _ in range(2)]
    solved = solve(make_problem(tasks, [2], purchases=[5]))
    assert (solved.value, solved.plan.mode.tolist()) == (7, [0, 2])


# objective terms, limits, levels -------------------------------------------------------------------------
LONG_AND_SHORT = (
    Task([Mode(4, {0: 1}, utility=900)], release=1, due=4, weight=1, penalty=30),
    Task([Mode(2, {0: 1}, utility=700)], release=0, due=3, weight=2, penalty=7),
)
"""One device. Short first: [0, 2), [2, 6). Long first: [1, 5), [5, 7)."""


@pytest.mark.parametrize(
    ("level", "value"),
    [
        # Short first. Rejecting costs 30 and 7 through `rejected` where it is part of the level.
        ({"makespan": 1, "rejected": 1}, 6),  # 6; only long: 5 + 7; only short: 2 + 30
        ({"makespan": 9, "rejected": 1}, 37),  # none: 30 + 7; short alone: 18 + 30; both: 54
        ({"weighted_completion": 1, "rejected": 1}, 10),  # 6 + 2 * 2; only long: 5 + 7
        ({"weighted_flow": 1, "rejected": 1}, 9),  # (6 - 1) + 2 * (2 - 0)
        ({"weighted_tardiness": 1, "rejected": 1}, 2),  # (6 - 4) + 0
        ({"weighted_tardiness": 9, "rejected": 1}, 16),  # long alone: 9 * (5 - 4) + 7; both: 9 * 2
        ({"late": 1}, 1),  # the long run cannot end by 4
        ({"utility_loss": 1}, 700),  # 100 + 2 * 300; rejecting the short one would be 2 * 1000
        ({"rejected": 1}, 0),
    ],
)
def test_terms(level: dict[str, int], value: int) -> None:
    """Each term by itself, with rejection where the level charges it."""
    assert solve(make_problem(LONG_AND_SHORT, levels=[level])).value == value


def test_late_counts_rejected_tasks() -> None:
    """A rejected task is late, with or without a due date."""
    # The deadline lets one run: the heavier (3); the other is rejected and late with weight 2.
    tasks = [Task([Mode(1, {0: 1})], deadline=1, weight=w, penalty=0) for w in (2, 3)]
    solved = solve(make_problem(tasks, levels=[{"late": 1}]))
    assert (solved.value, solved.plan.mode.tolist()) == (2, [REJECTED, 1])


def test_late_with_a_mode_that_is_never_on_time() -> None:
    """The quick mode is dear; being on time is worth 4."""
    # Mode 0 ends at 5 > 3: late, 4. Mode 1 (3 ticks) is on time for 2, mode 2 (2 ticks) for 3.
    modes = [Mode(5, {0: 1}), Mode(3, {0: 1}, money=2), Mode(2, {0: 1}, money=3)]
    solved = solve(make_problem([Task(modes, due=3, weight=4)], levels=[{"late": 1, "cost": 1}]))
    assert (solved.value, solved.plan.mode.tolist()) == (2, [1])


def test_makespan_ignores_rejected_tasks() -> None:
    """All rejected: 0; the end of a task that is left out means nothing."""
    tasks = [Task([Mode(3, {0: 1})], release=5, penalty=1)]
    assert solve(make_problem(tasks, levels=[{"makespan": 1, "rejected": 1}])).value == 1


@pytest.mark.parametrize("part", [field.name for field in dataclasses.fields(Form)])
def test_every_part_of_a_form_has_a_term(part: str) -> None:
    """A coefficient anywhere in a form shows in its expression."""
    task = Task([Mode(2, {0: 1}, money=3, utility=900), Mode(4, {0: 1})], due=3, penalty=5)
    problem = make_problem([task])
    scope = full_scope(problem)
    terms = build(scope, windows(scope)).terms
    empty = {field.name: np.zeros(1, dtype=np.int64) for field in dataclasses.fields(Form)}
    ones = {part: 1 if part in ("makespan", "cost") else np.ones(1, dtype=np.int64)}
    linear = form_value(terms, Form(**({**empty, "makespan": 0, "cost": 0} | ones)))
    assert linear.range()[1] > 0


def test_building_can_be_given_up() -> None:
    """What `check` raises ends the building."""
    problem = make_problem([Task([Mode(1, {0: 1})])])
    calls = []

    def check() -> None:
        calls.append(1)
        if len(calls) == 7:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        build(full_scope(problem), windows(full_scope(problem)), check=check)


def test_no_family_is_long_without_a_check() -> None:
    """However many tasks there are: each loop over tasks checks in between, and so does the hint."""
    tasks, calls = 40, []
    problem = make_problem([Task([Mode(1, {0: 1}), Mode(2, {0: 1})]) for _ in range(tasks)])
    scope = full_scope(problem)
    # Variables; one mode, ends and windows; uses; first ends; terms: eight loops over all tasks at least.
    built = build(scope, windows(scope), check=lambda: calls.append(1))
    assert len(calls) > 8 * tasks
    calls.clear()
    add_hint(built, Plan(np.zeros(tasks, dtype=np.int64) + 2 * np.arange(tasks), np.arange(tasks)))
    assert len(calls) > tasks


def test_limit_on_cost_forces_the_slow_mode() -> None:
    """R10: the plan's money is at most 4, transfers and purchases included."""
    # Fast modes cost 3 each: two of them pass the limit, so one task is slow: 1 + 5.
    tasks = [Task([Mode(1, {0: 1}, money=3), Mode(5, {0: 1}, money=1)]) for _ in range(2)]
    problem = make_problem(tasks, [2], levels=[{"weighted_completion": 1}], limits={"cost": 4})
    assert solve(problem).value == 6


def test_limit_on_tardiness() -> None:
    """A limit on a term that the objective does not have."""
    # Weight 9 first would be 2 * 9 + 4 = 22, its rival 2 ticks late. With the limit: 2 + 4 * 9 = 38.
    tasks = [Task([Mode(2, {0: 1})], weight=9, due=9), Task([Mode(2, {0: 1})], weight=1, due=2)]
    levels = [{"weighted_completion": 1}]
    assert solve(make_problem(tasks, levels=levels)).value == 22
    assert solve(make_problem(tasks, levels=levels, limits={"weighted_tardiness": 1})).value == 38


def test_second_level_under_a_cap() -> None:
    """Least cost among the plans of least makespan."""
    # Makespan 2 needs the fast mode (cost 3) for one task, the other may take node 1 (2 ticks, cost 1).
    tasks = [Task([Mode(1, {0: 1}, money=3), Mode(2, {1: 1}, money=1)]) for _ in range(2)]
    problem = make_problem(tasks, [1, 1], levels=[{"makespan": 1}, {"cost": 1}])
    assert solve(problem).value == 2
    assert solve(problem, level=1).value == 2
    assert solve(problem, level=1, caps=(2,)).value == 4


def test_cutoff() -> None:
    """Only plans at most at the cutoff count; below the optimum there is none."""
    problem = make_problem([Task([Mode(3, {0: 1})]) for _ in range(2)])
    assert solve(problem, cutoff=9).value == 9
    assert solve(problem, cutoff=8).status == "INFEASIBLE"
    assert solve(problem, cutoff=-1).status == "INFEASIBLE"


def test_problem_without_free_tasks() -> None:
    """Nothing to decide: the value of what is fixed."""
    problem = make_problem([Task([Mode(3, {0: 1}, money=2)])], state_mode=[0], state_start=[-1])
    assert solve(problem).value == 2 + 2


# what is fixed --------------------------------------------------------------------------------------------
def scope_of(
    problem: Problem, mode: Sequence[int], start: Sequence[int], *transfers: Transfer, **rest: int
) -> Scope:
    """A scope with a fixed part."""
    return Scope(problem, np.array(mode), np.array(start), tuple(transfers), **rest)


def test_fixed_run_uses_capacity() -> None:
    """A fixed run blocks the only device in [1, 3), and counts in every term."""
    # The free run of 2 ticks follows: end 5; the fixed one ends at 3.
    problem = make_problem([Task([Mode(2, {0: 1})]), Task([Mode(2, {0: 1})])])
    solved = solve(problem, scope=scope_of(problem, [0, FREE], [1, 0]))
    assert (solved.value, solved.plan.start.tolist()) == (8, [1, 3])


def test_fixed_run_before_tick_zero() -> None:
    """A run of the state that began before tick 0 holds its device until it ends."""
    problem = make_problem(
        [Task([Mode(5, {0: 1})]), Task([Mode(2, {0: 1})])], state_mode=[0, FREE], state_start=[-3, 0]
    )
    assert solve(problem).value == 2 + 4


def test_fixed_part_that_does_not_fit() -> None:
    """Two fixed runs on one device: no plan."""
    problem = make_problem([Task([Mode(2, {0: 1})]), Task([Mode(2, {0: 1})])])
    assert solve(problem, scope=scope_of(problem, [0, 1], [0, 1])).status == "INFEASIBLE"


def test_absent_and_fixed_rejected_tasks() -> None:
    """An absent predecessor binds nothing; after a rejected one there is only rejection."""
    tasks = [Task([Mode(4, {0: 1})], penalty=3), Task([Mode(1, {0: 1})], after=[(0, 0)], penalty=50)]
    problem = make_problem(tasks, levels=[{"weighted_completion": 1, "rejected": 1}])
    assert solve(problem, scope=scope_of(problem, [ABSENT, FREE], [0, 0])).value == 1
    assert solve(problem, scope=scope_of(problem, [REJECTED, FREE], [0, 0])).value == 53


def test_not_before() -> None:
    """Neither a run nor a transfer starts before the scope's first tick."""
    problem = make_problem([Task([Mode(1, {0: 1}, needs=[0])])], replicas=[Replica(0)])
    solved = solve(problem, scope=scope_of(problem, [FREE], [0], not_before=4))
    assert (solved.value, solved.transfers) == (6, [(0, 0, 4)])


def test_fixed_transfer_is_read_and_paid() -> None:
    """A fixed transfer serves free runs, and no second one is made."""
    # It arrives at 2 and costs 3: the run ends at 3.
    problem = make_problem([Task([Mode(1, {0: 1}, needs=[0])])], replicas=[Replica(0, routes=SLOW_OR_FAST)])
    fixed = problem.transfer(0, 1, 0)
    solved = solve(problem, scope=scope_of(problem, [FREE], [0], fixed))
    assert (solved.value, solved.plan.transfers) == (6, (fixed,))


def test_fixed_transfer_holds_its_channel_and_storage() -> None:
    """A fixed transfer [0, 2) holds the channel, and storage until its fixed reader ends at 5."""
    # Replica 1 needs the channel (from 2) and the room (from 5): arrives at 7, the free run ends at 8.
    replicas = [Replica(d, size=2, routes=[(2, 0, (1,))]) for d in range(2)]
    tasks = [Task([Mode(3, {0: 1}, needs=[0])]), Task([Mode(1, {0: 1}, needs=[1])])]
    problem = make_problem(tasks, [2], channels=[1], replicas=replicas, storage={0: 3})
    scope = scope_of(problem, [0, FREE], [2, 0], problem.transfer(0, 0, 0))
    solved = solve(problem, scope=scope)
    assert solved.value == 5 + 8
    assert solved.plan.transfers[1].start == 5


def test_fixed_run_that_reads_what_is_still_to_be_brought() -> None:
    """The transfer for a fixed run is not optional, and must arrive in time."""
    problem = make_problem([Task([Mode(1, {0: 1}, needs=[0])])], replicas=[Replica(0, routes=SLOW_OR_FAST)])
    solved = solve(problem, scope=scope_of(problem, [0], [4]))
    assert (solved.value, solved.transfers) == (5 + 3, [(0, 1, 0)])
    assert solve(problem, scope=scope_of(problem, [0], [1])).status == "INFEASIBLE"


# hints -------------------------------------------------------------------------------------------------
def staged_pair() -> Problem:
    """Two readers of a replica over a channel; storage, a price, due dates and rejection."""
    tasks = [
        Task([Mode(2, {0: 1}, needs=[0], buys=[0]), Mode(3, {0: 1})], due=3, penalty=9) for _ in range(2)
    ]
    return make_problem(
        tasks,
        [1],
        channels=[1],
        replicas=[Replica(0, routes=[(1, 1, (1,)), (1, 2, ())], size=2), Replica(1, size=2)],
        storage={0: 3},
        purchases=[2],
        levels=[
            {
                t: 1
                for t in ("makespan", "weighted_tardiness", "late", "rejected", "cost", "weighted_completion")
            }
        ],
    )


def test_hint_covers_every_variable() -> None:
    """Any plan of the model, good or bad, becomes a complete and feasible assignment."""
    problem = staged_pair()
    built = build(full_scope(problem), windows(full_scope(problem)), 0, ())
    # Both staged at 1 and 3: makespan 5, completion 3 + 5, tardy 2, one late, cost 1 (route) + 2 (price): 19.
    plan = Plan(np.array([0, 2]), np.array([1, 3]), (problem.transfer(0, 0, 0),))
    assert hinted_value(built, plan) == 19
    # One rejected, the other without data at 4: makespan 7, completion 7, tardy 4, two late, penalty 9.
    assert hinted_value(built, Plan(np.array([REJECTED, 3]), np.array([0, 4]))) == 7 + 7 + 4 + 2 + 9


def test_hint_is_replaced_not_added_to() -> None:
    """A second hint replaces the first: a variable that is hinted twice makes CP-SAT refuse the model."""
    problem = staged_pair()
    built = build(full_scope(problem), windows(full_scope(problem)), 0, ())
    for start in (0, 2):
        plan = Plan(np.array([1, REJECTED]), np.array([start, 0]))
        assert add_hint(built, plan)
    assert solve_natively(built)[0] == cp_model.OPTIMAL


def test_hint_drops_unread_transfers_and_replaces_unlisted_routes() -> None:
    """What the model has no place for, but loses nothing by leaving out."""
    problem = staged_pair()
    built = build(full_scope(problem), windows(full_scope(problem)), 0, ())
    unread = problem.transfer(1, 2, 0)
    detour = Transfer(dataset=0, site=0, links=(7, 8), start=0, ticks=1, cost=4, channels=(1,), replica=0)
    plan = Plan(np.array([0, 2]), np.array([1, 3]), (detour, unread))
    assert hinted_value(built, plan) == 19


def test_hint_without_a_place_is_none() -> None:
    """A start outside the windows, or a mode that is not open: no hint at all."""
    problem = staged_pair()
    scope = full_scope(problem)
    built = build(scope, windows(scope, end_by=6), 0, ())
    assert not add_hint(built, Plan(np.array([1, REJECTED]), np.array([5, 0])))
    assert list(built.model.proto.solution_hint.vars) == []


# redundancy, magnitudes, export --------------------------------------------------------------------------
def test_energy_rows_give_the_bound_at_the_root() -> None:
    """16 runs of 3 devices * 5 ticks on 7 devices: work says makespan >= 35, before any search."""
    tasks = [Task([Mode(5, {0: 3})]) for _ in range(16)]
    built = solve(make_problem(tasks, [7], levels=[{"makespan": 1}])).built
    rows = [sorted(c.linear.coeffs) for c in built.model.proto.constraints if c.has_linear()]
    assert [-15] * 16 + [7] in rows


def test_on_time_work_fits_before_the_due_date() -> None:
    """The weighted number of late tasks on one machine with due date 10 is a knapsack."""
    # Best durations <= 10: 7 + 3 (weight 17); 4 + 6 has 10, 4 + 3 has 13. Late weight 27 - 17.
    pairs = [(7, 9), (3, 8), (4, 5), (6, 5)]
    tasks = [Task([Mode(d, {0: 1})], due=10, weight=w) for d, w in pairs]
    assert solve(make_problem(tasks, levels=[{"late": 1}])).value == 27 - 17


def test_large_coefficients_are_refused() -> None:
    """Past 2^53 CP-SAT would turn the objective into one of floating-point numbers."""
    problem = make_problem([Task([Mode(1, {0: 1}, money=2**53 + 1)])])
    with pytest.raises(UnsupportedError, match="2\\^53"):
        solve(problem)


def test_overflowing_sums_are_refused() -> None:
    """Many values that are fine one by one and not together."""
    problem = make_problem([Task([Mode(1, {0: 1}, money=2**52)]) for _ in range(3000)], [3000])
    with pytest.raises(UnsupportedError, match="overflow"):
        solve(problem)


def test_overflowing_energy_is_refused() -> None:
    """Capacity times horizon past 2^62."""
    tasks = [Task([Mode(2**30, {0: 2**40 + i})]) for i in range(3)]
    with pytest.raises(UnsupportedError, match="capacity"):
        solve(make_problem(tasks, [2**41], levels=[{"cost": 1, "makespan": 1}]))
    # The area fits (2^41 * 2^20), 2^4 times as much work does not.
    tasks = [Task([Mode(2**16, {0: 2**41 - i % 2})], deadline=2**20, penalty=0) for i in range(2**6)]
    with pytest.raises(UnsupportedError, match="work"):
        solve(make_problem(tasks, [2**41], levels=[{"late": 1}]))


def test_common_unit_keeps_large_amounts_small() -> None:
    """Amounts that share a divisor are counted in it."""
    tasks = [Task([Mode(2, {0: 2**45})]) for _ in range(3)]
    assert solve(make_problem(tasks, [2**46 + 5])).value == 2 + 2 + 4


def test_range_of_an_expression() -> None:
    """Range of 3 - 2 x + 5 y for x in 0..4, y in -1..2."""
    model = cp_model.CpModel()
    linear = Linear(3)
    linear.add(-2, model.new_int_var(0, 4, "x"))
    linear.add(5, model.new_int_var(-1, 2, "y"))
    assert linear.range() == (3 - 8 - 5, 3 + 10)


@pytest.mark.parametrize("name", ["model.pb", "model.txt"])
def test_export(name: str, tmp_path: Any) -> None:
    """The file holds the whole model: read back, it has the same optimum."""
    file = tmp_path / name
    export_cpsat(staged_pair(), file)
    model = cp_model.CpModel()
    if name.endswith(".txt"):
        assert model.proto.parse_text_format(file.read_text())
        native = cp_model.CpSolver()
        assert native.solve(model) == cp_model.OPTIMAL
        assert native.objective_value == solve(staged_pair()).value
    assert file.stat().st_size > 100
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


# profiles -------------------------------------------------------------------------------------------------
def profile_at(profile: Profile) -> Callable[[int], int]:
    """The profile tick by tick."""
    return lambda tick: [a for t, a in zip(profile.times, profile.amounts, strict=True) if t <= tick][-1]


def test_profile_against_ticks() -> None:
    """Pieces, peak, area, gaps and allowed starts equal a scan of all ticks, on random profiles."""
    random = np.random.default_rng(5)
    for _ in range(40):
        times = (0, *sorted(random.choice(np.arange(1, 20), 4, replace=False).tolist()))
        profile = Profile(times, tuple(random.integers(0, 4, 5).tolist()))
        holds = [(int(a), int(a + d), int(n)) for a, d, n in random.integers(-3, 6, (3, 3)) if d > 0]
        less, at = profile.less(holds), profile_at(profile)
        ticks = {t: at(t) - sum(n for a, b, n in holds if a <= t < b) for t in range(25)}
        first, last = 2, 22
        inside = [ticks[t] for t in range(first, last)]
        assert [profile_at(less)(t) for t in ticks] == list(ticks.values())
        assert less.area(first, last) == sum(inside)
        assert (less.low(first, last), less.peak(first, last)) == (min(inside), max(inside))
        spans = allowed_spans([less.below(2)], 3, first, 18)
        allowed = {t for begin, end in spans for t in range(begin, end + 1)}
        assert allowed == {t for t in range(first, 19) if min(ticks[u] for u in range(t, t + 3)) >= 2}


def test_residual_profiles_take_fixed_runs_and_transfers_off() -> None:
    """Devices and channels that the fixed part holds."""
    problem = make_problem(
        [Task([Mode(3, {0: 2}, needs=[0])])], [5], channels=[2], replicas=[Replica(0, routes=[(4, 0, (1,))])]
    )
    scope = scope_of(problem, [0], [-1], problem.transfer(0, 0, 1))
    assert residual_profiles(scope) == (Profile((0, 2), (3, 5)), Profile((0, 1, 5), (2, 1, 2)))


def test_cutoff_after_building() -> None:
    """A cutoff may be added to a built model; one above every value changes nothing."""
    problem = make_problem([Task([Mode(3, {0: 1})])])
    scope = full_scope(problem)
    built = build(scope, windows(scope), 0, ())
    add_cutoff(built, 10**9)
    assert solve_natively(built)[0] == cp_model.OPTIMAL
    add_cutoff(built, 2)
    assert solve_natively(built)[0] == cp_model.INFEASIBLE
