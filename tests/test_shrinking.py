"""Start windows narrowed by bounds: the optimum never moves, and no plan within the bounds is lost."""

import numpy as np
import pytest
from support.problems import Mode, Replica, Task, make_problem
from support.random_instances import random_instance

from optalloc.compilation import compile
from optalloc.evaluation import evaluate
from optalloc.formulations.milp import build
from optalloc.io.reading import read_instance
from optalloc.problem import FREE, Plan, Problem
from optalloc.scope import Scope, Windows, full_scope, windows
from optalloc.solvers.highs_native import NativeRun
from optalloc.solvers.rules import best_start
from optalloc.solvers.run import solve
from optalloc.solvers.shrinking import shrink


def shrunk(problem: Problem, bound: int | None, *, caps: tuple[int, ...] = (), end_by: int = 50) -> Windows:
    """Narrowed windows of the full problem, whose windows reach to ``end_by``."""
    scope = full_scope(problem)
    return shrink(scope, windows(scope, end_by=end_by), len(caps), bound, caps)


def starts(found: Windows) -> list[list[int]]:
    """(earliest, latest) of each mode; [] where there is none."""
    pairs = zip(found.earliest.tolist(), found.latest.tolist(), strict=True)
    return [[first, last] if first <= last else [] for first, last in pairs]


# one argument each, by hand --------------------------------------------------------------------------
def test_own_cost_and_least_cost_of_others() -> None:
    """A start is kept while own cost + least cost of the other task <= bound."""
    # Least: 2 * 1 and 3. Bound 9: task 0 may cost 6 (end 3, start 2), task 1 may end at 9 - 2 = 7 (start 4).
    tasks = [Task([Mode(1, {0: 1})], weight=2), Task([Mode(3, {1: 1})])]
    assert starts(shrunk(make_problem(tasks, [1, 1]), 9)) == [[0, 2], [0, 4]]


def test_bound_itself_is_kept() -> None:
    """Only what is strictly worse goes: at the optimum one start is left, below it none."""
    problem = make_problem([Task([Mode(2, {0: 1})])])
    assert starts(shrunk(problem, 2)) == [[0, 0]]
    assert starts(shrunk(problem, 1)) == [[]]


def test_rejection_counts_as_least_cost() -> None:
    """A task that may be rejected for 1 adds only 1 to the others' bounds."""
    # Task 0 may cost 5 - 1: ends by 4. Task 1 may cost 5 - 2 = 3: its run of 4 is out.
    tasks = [Task([Mode(2, {0: 1})]), Task([Mode(4, {1: 1})], penalty=1)]
    problem = make_problem(tasks, [1, 1], levels=[{"weighted_completion": 1, "rejected": 1}])
    assert starts(shrunk(problem, 5)) == [[0, 2], []]


def test_shared_charges_count_once_and_only_for_the_mode() -> None:
    """A staging charge of 4 and a purchase of 3 count for the mode that needs them, not for the others' least."""
    # Bound 12. Task 0, staged (arrival 1, run 1): 2 + 4 + least of task 1. Task 1 buying: 1 + 3, else 5: least 1.
    # Task 0 may cost 12 - 4 - 1 = 7: start 6. Task 1 by the purchase: 12 - 3 - 2 = 7; without: 12 - 2 = 10.
    tasks = [Task([Mode(1, {0: 1}, needs=[0])]), Task([Mode(1, {1: 1}, buys=[0]), Mode(5, {1: 1})])]
    replicas = [Replica(0, routes=[(1, 4, ()), (1, 9, ())])]
    problem = make_problem(tasks, [1, 1], replicas=replicas, purchases=[3])
    assert starts(shrunk(problem, 12)) == [[1, 6], [0, 6], [0, 5]]


def test_makespan_is_a_maximum_not_a_sum() -> None:
    """The makespan counts once, as the larger of the own end and the earliest end of all that must run."""
    # Task 0 must run 5 ticks, so the makespan is at least 5. Bound 7: all ends by 7.
    tasks = [Task([Mode(5, {0: 1})]), Task([Mode(1, {1: 1})])]
    assert starts(shrunk(make_problem(tasks, [1, 1], levels=[{"makespan": 1}]), 7)) == [[0, 2], [0, 6]]
    # With cost 2 of task 0 as well, weight 3: 15 + 2 <= 19 leaves one tick.
    tasks[0] = Task([Mode(5, {0: 1}, money=2)])
    problem = make_problem(tasks, [1, 1], levels=[{"makespan": 3, "cost": 1}])
    assert starts(shrunk(problem, 20)) == [[0, 1], [0, 5]]


def test_caps_and_limits_narrow_too() -> None:
    """An earlier level's cap, and a limit, without any bound of the level itself."""
    task = Task([Mode(1, {0: 1}, money=4), Mode(5, {0: 1}, money=2)])
    capped = make_problem([task], levels=[{"weighted_completion": 1}, {"cost": 1}])
    assert starts(shrunk(capped, None, caps=(6,))) == [[0, 5], [0, 1]]
    limited = make_problem([task], levels=[{"weighted_completion": 1}], limits={"cost": 3})
    assert starts(shrunk(limited, None)) == [[], [0, 45]]


def test_narrowing_is_passed_along_precedence() -> None:
    """A successor's last start bounds its predecessor's."""
    # Bound 5 on the successor's completion: starts by 4, so the predecessor (weight 0) by 4 - 1 - 2.
    tasks = [Task([Mode(2, {0: 1})], weight=0), Task([Mode(1, {0: 1})], after=[(0, 1)])]
    assert starts(shrunk(make_problem(tasks), 5)) == [[0, 1], [3, 4]]


def test_due_dates_bound_late_starts_only() -> None:
    """Tardiness is free until the due date."""
    tasks = [Task([Mode(2, {0: 1})], due=10, weight=3)]
    problem = make_problem(tasks, levels=[{"weighted_tardiness": 1}])
    assert starts(shrunk(problem, 6)) == [[0, 10]]
    assert starts(shrunk(problem, 5)) == [[0, 9]]


def test_fixed_part_is_a_constant() -> None:
    """Money and completion of what is fixed count; its window stays."""
    # Fixed: end 4, bought data for 3. Bound 12: the other task may end at 12 - 4 - 3 = 5, its purchase is paid.
    tasks = [Task([Mode(4, {0: 1}, buys=[0])]), Task([Mode(1, {1: 1}, buys=[0])])]
    problem = make_problem(tasks, [1, 1], purchases=[3])
    scope = Scope(problem, np.array([0, FREE]), np.array([0, 0]), ())
    found = shrink(scope, windows(scope, end_by=50), 0, 12)
    assert starts(found) == [[0, 0], [0, 4]]


def test_no_start_at_all_closes_everything() -> None:
    """A must-run task without starts: no plan is within the bound."""
    tasks = [Task([Mode(3, {0: 1})], deadline=2), Task([Mode(1, {0: 1})])]
    assert starts(shrunk(make_problem(tasks), 99)) == [[], []]


# on random instances ---------------------------------------------------------------------------------
def is_inside(problem: Problem, plan: Plan, found: Windows) -> bool:
    """Every start of the plan lies in its window, if its mode is active."""
    placed = np.flatnonzero(plan.mode >= 0)
    mode, start = plan.mode[placed], plan.start[placed]
    inside = (found.earliest[mode] <= start) & (start <= found.latest[mode])
    return bool((inside | ~problem.active[mode]).all())


@pytest.mark.parametrize("seed", range(24))
def test_incumbent_and_optimum_survive(seed: int) -> None:
    """Windows narrowed by the value of a plan keep that plan; narrowed by the optimum they keep an optimal plan."""
    problem = compile(read_instance(random_instance(seed, "small")))
    scope = full_scope(problem)
    result = solve(problem, solver="cpsat", time_limit=30, threads=1)
    if result.plan is None:
        return
    wide = windows(scope)
    for plan in (best_start(scope), result.plan):
        if plan is not None:
            values = evaluate(problem, plan, scope=scope).levels
            for level, value in enumerate(values):
                found = shrink(scope, wide, level, value, values[:level])
                assert is_inside(problem, plan, found)
                assert (found.earliest >= wide.earliest).all()
                assert (found.latest <= wide.latest).all()


@pytest.mark.parametrize("seed", range(10))
def test_shrinking_does_not_move_the_optimum(seed: int) -> None:
    """HiGHS with windows narrowed by a rule's plan finds what it finds without any narrowing."""
    problem = compile(read_instance(random_instance(seed, "tiny")))
    scope = full_scope(problem)
    plan = best_start(scope)
    if plan is None:
        return
    value = evaluate(problem, plan, scope=scope).levels[0]
    optima = set()
    for found in (windows(scope), shrink(scope, windows(scope), 0, value)):
        milp = build(scope, found)
        if milp.matrix.num_columns == 0:
            optima.add(milp.constant)
            continue
        run = NativeRun(milp.scaled_matrix, seconds=30)
        run.begin()
        run.wait()
        optima.add(round(milp.unit * float(milp.scaled_matrix.cost @ run.answer().values)) + milp.constant)
    assert len(optima) == 1
