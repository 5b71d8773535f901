"""The lexicographic driver with scripted methods: every ending of a level, and what it makes of the run."""

from dataclasses import replace

import pytest
from support.world import plan_of, problem, run

from optalloc.errors import SolverError
from optalloc.result import Status, Termination
from optalloc.scope import full_scope
from optalloc.solvers.base import LevelAnswer, Monitor, Request
from optalloc.solvers.levels import solve_levels
from optalloc.solvers.registry import SolverEntry
from optalloc.solvers.run import solve

T = Termination
NO_TRANSFERS = {}


@pytest.fixture(scope="module")
def three():
    """One task, three levels: end, then cost, then lost utility. Later starts only make the first worse.

    Mode ``fast`` ends after 1 tick for $9 at utility 900, ``slow`` after 2 ticks for $1 at 1000.
    """
    modes = [run("m", 1, 1, usd=9, utility=900) | {"id": "fast"}, run("m", 1, 2, usd=1) | {"id": "slow"}]
    levels = [{"weighted_completion": 1}, {"cost": 0.01}, {"utility_loss": 1}]
    return problem(tasks=[{"id": "t", "modes": modes}], objective={"levels": levels}, money_unit_usd=1)


def plan(problem, mode, start):
    made = plan_of(problem, {"t": start}, NO_TRANSFERS)
    made.mode[0] = mode
    return made


FAST, SLOW = 0, 1


def request_of(problem, **settings):
    scope = full_scope(problem)
    return Request(scope, Monitor(scope, 60.0, **settings))


class Script:
    """A method that plays one prepared step per call: (plan or None, answer)."""

    def __init__(self, *steps):
        self.steps = list(steps)
        self.tasks = []

    def __call__(self, task):
        self.tasks.append(task)
        found, answer = self.steps.pop(0)
        if found is not None:
            task.monitor.offer(found, "script")
        return answer


def proven(bound):
    return LevelAnswer(T.PROVEN, bound=bound)


def finish(problem, script, **settings):
    """The result of a whole solve by the script."""
    entry = SolverEntry("script", lambda request: solve_levels(request, script, "script"), exact=True)
    return solve(problem, entry, **settings)


def test_k_of_the_three_levels(three):
    """K = 100 makes 0.01 per $ whole; plans are worth (100 * end, $, 100 * lost utility)."""
    assert three.scale == 100
    monitor = request_of(three).monitor
    monitor.offer(plan(three, FAST, 0), "test")
    assert monitor.values == (100, 9, 10_000)


def test_all_levels_proven_is_optimal(three):
    """Each level is solved under what the earlier ones achieved, from the best plan so far."""
    script = Script((plan(three, FAST, 0), proven(100)), (None, proven(9)), (None, proven(10_000)))
    result = finish(three, script)
    assert (result.status, result.termination) == (Status.OPTIMAL, T.PROVEN)
    assert [task.caps for task in script.tasks] == [(), (100,), (100, 9)]
    assert [task.level for task in script.tasks] == [0, 1, 2]
    assert script.tasks[0].start is None
    assert script.tasks[2].start is not None
    assert [level.bound for level in result.levels] == [100, 9, 10_000]
    assert {level.proven_by for level in result.levels} == {"script"}
    assert not any(level.conditional for level in result.levels)
    # With all levels proven, the numbers shown are those of the last.
    assert (result.objective, result.bound, result.gap) == (10_000, 10_000, 0)


def test_a_level_without_proof_makes_later_bounds_conditional(three):
    """COMPLETED without proof goes on to the next level; the numbers shown are those of the unproven one."""
    script = Script(
        (plan(three, SLOW, 0), LevelAnswer(T.COMPLETED, bound=150)), (None, proven(1)), (None, proven(0))
    )
    result = finish(three, script)
    assert (result.status, result.termination) == (Status.FEASIBLE, T.COMPLETED)
    assert [level.conditional for level in result.levels] == [False, True, True]
    assert (result.objective, result.bound) == (200, 150)
    assert not any(level.proven for level in result.levels)


@pytest.mark.parametrize("ending", [T.TIME_LIMIT, T.USER, T.MEMORY])
def test_a_level_cut_short_ends_the_run(three, ending):
    """Later levels are not tried; their plan values are known, their bounds are not."""
    script = Script((plan(three, SLOW, 0), LevelAnswer(ending, bound=100)))
    result = finish(three, script)
    assert (result.status, result.termination) == (Status.FEASIBLE, ending)
    assert [level.bound for level in result.levels] == [100, None, None]
    assert result.levels[1].objective == 1
    assert result.levels[1].gap is None
    assert result.gap == pytest.approx(0.5)


@pytest.mark.parametrize("ending", [T.TIME_LIMIT, T.USER, T.MEMORY, T.COMPLETED])
def test_no_plan_in_time_is_no_solution(three, ending):
    """A bound may be known all the same; no value is None."""
    result = finish(three, Script((None, LevelAnswer(ending, bound=100))))
    assert (result.status, result.termination) == (Status.NO_SOLUTION, ending)
    assert (result.objective, result.bound, result.gap) == (None, 100, None)
    assert result.schedule is None


def test_infeasible_without_any_plan_is_infeasible(three):
    """A proof that no plan exists."""
    result = finish(three, Script((None, LevelAnswer(T.PROVEN, infeasible=True))))
    assert (result.status, result.termination) == (Status.INFEASIBLE, T.PROVEN)
    assert result.objective is None


def test_infeasible_below_a_cutoff_proves_the_incumbent(three):
    """A sub-problem infeasible under a cutoff is not INFEASIBLE: nothing is better than the cutoff."""
    cut = LevelAnswer(T.PROVEN, infeasible=True, below=100)
    script = Script((None, cut), (None, proven(9)), (None, proven(10_000)))
    result = finish(three, script, start=plan(three, FAST, 0))
    assert result.status is Status.OPTIMAL
    assert result.levels[0].bound == 100


def test_infeasible_below_a_higher_cutoff_proves_only_that(three):
    """Nothing under 60 is less than the plan's 100."""
    script = Script(
        (plan(three, FAST, 0), LevelAnswer(T.COMPLETED, infeasible=True, below=60)),
        (None, proven(9)),
        (None, proven(10_000)),
    )
    result = finish(three, script)
    assert result.status is Status.FEASIBLE
    assert (result.objective, result.bound) == (100, 60)


@pytest.mark.parametrize("given", ["start", "found"])
def test_infeasible_against_a_verified_plan_is_an_error(three, given):
    """Without a cutoff, a plan given or found contradicts it; the plan is kept, the bounds are not."""
    answer = LevelAnswer(T.PROVEN, infeasible=True)
    found = plan(three, FAST, 0)
    script = Script((found if given == "found" else None, answer))
    result = finish(three, script, start=found if given == "start" else None)
    assert (result.status, result.termination) == (Status.ERROR, T.ERROR)
    assert "infeasible" in result.message
    assert result.objective == 100
    assert result.bound is None


def test_a_bound_above_a_verified_plan_is_an_error(three):
    """Somebody is wrong, and it is not the verifier."""
    result = finish(three, Script((plan(three, FAST, 0), proven(101))))
    assert result.status is Status.ERROR
    assert "101" in result.message
    assert result.bound is None


def test_done_without_plan_or_proof_is_an_error(three):
    """PROVEN has to mean something."""
    assert finish(three, Script((None, LevelAnswer(T.PROVEN)))).status is Status.ERROR


def test_a_broken_plan_is_an_error(three):
    """A plan that breaks a rule is never repaired in silence; a good one found before is kept."""
    bad = plan(three, FAST, -1)
    result = finish(three, Script((bad, proven(100))))
    assert result.status is Status.ERROR
    assert "R3" in result.message
    assert result.schedule is None
    script = Script((plan(three, SLOW, 0), LevelAnswer(T.COMPLETED, bound=0)), (bad, proven(0)))
    result = finish(three, script)
    assert result.status is Status.ERROR
    assert result.objective == 200


def test_a_proven_level_is_skipped(three):
    """What another method has proven in the same run is not solved again."""
    request = request_of(three)
    request.monitor.offer(plan(three, FAST, 0), "other")
    request.monitor.bound(0, 100, "other")
    script = Script((None, proven(9)), (None, proven(10_000)))
    assert solve_levels(request, script, "script").termination is T.PROVEN
    assert [task.level for task in script.tasks] == [1, 2]


def test_within_max_gap_the_next_level_follows(three):
    """A gap of 0.5 is allowed: the run ends with GAP, and what follows is conditional."""
    script = Script(
        (plan(three, SLOW, 0), LevelAnswer(T.GAP, bound=100)), (None, proven(1)), (None, proven(0))
    )
    result = finish(three, script, max_gap=0.5)
    assert (result.status, result.termination) == (Status.FEASIBLE, T.GAP)
    assert [level.conditional for level in result.levels] == [False, True, True]


def test_nothing_is_started_when_the_time_is_up(three):
    """The time is looked at between levels."""

    def slow(task):
        task.monitor.offer(plan(three, FAST, 0), "slow")
        task.monitor.time_limit = 0
        return proven(100)

    result = finish(three, slow)
    assert (result.status, result.termination) == (Status.FEASIBLE, T.TIME_LIMIT)
    assert result.levels[0].proven


def test_interrupted_between_levels(three):
    """An interrupt that the method does not notice is noticed by the driver."""

    def slow(task):
        task.monitor.offer(plan(three, FAST, 0), "slow")
        task.monitor.interrupt()
        return proven(100)

    assert finish(three, slow).termination is T.USER


def test_a_later_improvement_of_an_early_level_voids_bounds(three):
    """A bound of level 2 under (200, 1) says nothing once level 0 is better and level 1 worse."""
    monitor = request_of(three).monitor
    monitor.offer(plan(three, SLOW, 0), "a")
    for level, bound in enumerate((50, 1, 0)):
        monitor.bound(level, bound, "a")
    monitor.offer(plan(three, FAST, 0), "b")
    assert monitor.values == (100, 9, 10_000)
    # Level 1 was bounded under level 0 <= 200, which still holds; level 2 under level 1 <= 1, which does not.
    assert set(monitor.bounds) == {0, 1}


def test_a_bound_under_caps_that_no_longer_hold_is_not_taken(three):
    """Someone else's plan is better on level 0 and worse on level 1: what was proven under level 1 <= 1 is void."""
    monitor = request_of(three).monitor
    monitor.offer(plan(three, SLOW, 0), "a")
    caps = monitor.values[:2]
    monitor.offer(plan(three, FAST, 0), "b")
    assert monitor.values[0] < caps[0]
    assert monitor.values[1] > caps[1]
    monitor.bound(2, 123, "late", caps)
    assert 2 not in monitor.bounds
    monitor.bound(1, 4, "in time", caps[:1])
    assert monitor.bounds[1] == (4, "in time")


def test_a_part_shares_what_is_found_and_stops_by_itself(three):
    """Plans and bounds are everyone's; its time and its stop are its own; an interrupt is everyone's."""
    monitor = request_of(three).monitor
    part, other = monitor.part(0.0), monitor.part(1e9)
    assert part.should_stop()
    assert not monitor.should_stop()
    other.offer(plan(three, SLOW, 0), "part")
    other.bound(0, 7, "part")
    assert (monitor.values, monitor.bounds[0]) == (other.values, (7, "part"))
    assert other.time_limit == monitor.time_limit
    other.stop()
    assert other.should_stop()
    assert not monitor.should_stop()
    part.interrupt()
    assert monitor.should_stop()


def test_one_level_alone(three):
    """Others are left for later."""
    request = request_of(three)
    request.monitor.offer(plan(three, FAST, 0), "other")
    script = Script((None, proven(9)))
    solve_levels(replace(request, level=1), script, "script")
    assert [task.level for task in script.tasks] == [1]
    assert set(request.monitor.bounds) == {1}


def test_the_start_is_passed_on(three):
    """The method sees the verified start, and the result is never worse."""
    script = Script((None, LevelAnswer(T.TIME_LIMIT)))
    result = finish(three, script, start=plan(three, FAST, 3))
    assert script.tasks[0].start.start[0] == 3
    assert result.objective == 400
    assert result.info["warm_start"] == "accepted"


def test_facts_of_later_levels_are_numbered(three):
    """Those of the first stand by themselves."""
    steps = [(plan(three, FAST, 0), 100), (None, 9), (None, 10_000)]
    script = Script(*((p, LevelAnswer(T.PROVEN, bound=b, info={"columns": b})) for p, b in steps))
    info = finish(three, script).info
    assert (info["columns"], info["level1"], info["level2"]) == (100, {"columns": 9}, {"columns": 10_000})


def test_contradictions_are_raised_to_whoever_calls_the_driver(three):
    """`auto` and others see them as SolverError."""
    script = Script((plan(three, FAST, 0), LevelAnswer(T.PROVEN, infeasible=True)))
    with pytest.raises(SolverError):
        solve_levels(request_of(three), script, "script")
