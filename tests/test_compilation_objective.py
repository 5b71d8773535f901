"""The weight scale K, the integer levels and limits, and what is refused."""

import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from support.physics import document, problem_of

from optalloc.errors import InputError
from optalloc.problem import NEVER


def priced(levels, tasks=({},), **objective):
    """The base instance with these levels and one copy of the base task for each of ``tasks``."""
    base = document()["tasks"][0]
    listed = [{**base, "id": f"t{number}", **keys} for number, keys in enumerate(tasks)]
    return document(tasks=listed, objective={"levels": levels, **objective})


@pytest.mark.parametrize(
    ("levels", "tasks", "scale"),
    [
        ([{"makespan": 1}], [{}], 1),
        ([{"makespan": 0.5}], [{}], 2),
        ([{"makespan": 0.5}, {"makespan": 0.2}], [{}], 10),  # 2 and 5
        ([{"cost": 1}], [{}], 100),  # $1 for a unit of $0.01
        ([{"cost": 100}], [{}], 1),
        ([{"weighted_completion": 1}], [{"weight": 1.5}, {"weight": 0.4}], 10),
        ([{"weighted_completion": 0.5}], [{"weight": 2}], 1),  # the product is whole
        ([{"makespan": 1, "weighted_flow": 0}], [{"weight": 0.1}], 1),  # a term of weight 0 does not count
        ([{"rejected": 1}], [{"reject_penalty": 0.25}], 4),
        ([{"rejected": 1}], [{"reject_penalty": 0.25, "weight": 0.1}], 4),  # weights do not enter `rejected`
        ([{"utility_loss": 0.002}], [{"weight": 3}], 500),
        ([{"late": 1}], [{"weight": 0.125}], 8),
    ],
)
def test_weight_scale(levels, tasks, scale):
    """K is the least integer that makes every product whole."""
    assert problem_of(priced(levels, tasks)).scale == scale


def test_penalties_of_tasks_that_must_run_count_for_the_scale():
    """K runs over the weights and penalties of all tasks; the first must run for its successor's sake."""
    tasks = [{"reject_penalty": 0.25}, {"after": [{"id": "t0"}]}]
    problem = problem_of(priced([{"rejected": 1, "makespan": 1}], tasks))
    assert (problem.scale, problem.rejectable.tolist()) == (4, [False, False])


def test_limits_do_not_enter_the_scale():
    """They have their own: 2 for a task weight of 1.5; bounds are rounded down."""
    found = priced([{"makespan": 1}], [{"weight": 1.5}], limits={"weighted_completion": 20.9, "cost": 0.709})
    problem = problem_of(found)
    assert problem.scale == 1
    completion, cost = problem.limits
    assert (completion.scale, completion.bound, completion.form.completion.tolist()) == (2, 41, [3])
    assert (cost.scale, cost.bound, cost.form.cost) == (1, 70, 1)


def test_coefficients_of_a_level():
    """Every term at once: K = 100 for the cost, weights 2 and 0.5, penalty 3, release 2 ticks."""
    level = {
        "makespan": 1,
        "weighted_completion": 2,
        "weighted_flow": 3,
        "weighted_tardiness": 4,
        "late": 5,
        "rejected": 6,
        "cost": 7,
        "utility_loss": 8,
    }
    tasks = [{"weight": 2, "release_s": 120}, {"weight": 0.5, "reject_penalty": 3}]
    problem = problem_of(priced([level], tasks))
    (form,) = problem.levels
    assert (problem.scale, form.makespan, form.cost) == (100, 100, 7)
    assert form.completion.tolist() == [1000, 250]  # 100 * (2 + 3) * w
    assert form.placed.tolist() == [-1200, 0]  # -100 * 3 * 2 * release 2
    assert form.tardiness.tolist() == [800, 200]
    assert form.late.tolist() == [1000, 250]
    assert form.loss.tolist() == [1600, 400]
    assert form.rejected.tolist() == [0, 1800]
    assert problem.level_weights == ({term: Fraction(weight) for term, weight in level.items()},)
    assert (problem.task_weight, problem.task_penalty) == ((2, Fraction(1, 2)), (0, 3))


@pytest.mark.parametrize(("weight", "refused"), [(0.000001, False), (0.0000001, True)])
def test_the_scale_is_at_most_a_million(weight, refused):
    """The fault names both numbers and the term."""
    found = priced([{"makespan": weight}])
    if refused:
        with pytest.raises(InputError, match=r"K is 10000000, .* 1000000; makespan alone needs 10000000"):
            problem_of(found)
    else:
        assert problem_of(found).scale == 10**6


def test_an_objective_that_could_pass_2_53_is_refused():
    """Horizon: 10 ticks of the longest mode. 10 * 1e15 passes 2^53 = 9.007e15, 10 * 9e14 does not."""
    assert problem_of(priced([{"makespan": 9 * 10**14}])).levels[0].makespan == 9 * 10**14
    with pytest.raises(InputError, match=rf"levels\[0\]: the value could reach {10**16} .*2\^53 = {NEVER}"):
        problem_of(priced([{"makespan": 10**15}]))


def test_limited_terms_are_checked_too():
    """A task weight of 1e15 in a limited term."""
    with pytest.raises(InputError, match=r"objective\.limits\.weighted_completion: the value could reach"):
        problem_of(priced([{"makespan": 1}], [{"weight": 10**15}], limits={"weighted_completion": 5}))


@pytest.mark.parametrize(
    ("level", "keys", "what"),
    [
        (
            {"weighted_tardiness": 10},
            {"weight": 10**15},
            "its weight in weighted_tardiness, scaled by K = 1, is",
        ),
        ({"rejected": 10}, {"reject_penalty": 10**15}, "its weight in rejected, scaled by K = 1, is"),
        (
            {"weighted_flow": 1},
            {"weight": 10**12, "release_s": 60 * 10**4},
            "its weight in weighted_flow, scaled by K = 1, times its release in ticks is",
        ),
    ],
)
def test_a_weight_past_2_53_names_its_task(level, keys, what):
    """All three come to 10^16; the other task is fine."""
    with pytest.raises(InputError) as caught:
        problem_of(priced([level], [{}, keys]))
    (fault,) = caught.value.faults
    assert fault.path == "tasks[1]"
    assert fault.message.startswith(
        f"{what} {10**16}, which must stay below 2^53 = {NEVER}: use smaller weights"
    )


@pytest.mark.parametrize(
    ("level", "tick", "remedy"),
    [
        ({"cost": 1}, 2**53, "use a larger money unit (money_unit_usd) or shorter ticks, smaller weights"),
        ({"makespan": 1000}, Decimal("1e-11"), "use longer ticks (tick_seconds), smaller weights"),
    ],
)
def test_the_remedy_fits_the_cause(level, tick, remedy):
    """A node that is paid by ticks of 2^53 s costs too much (13 runs of 7.5e14): longer ticks would not help."""
    with pytest.raises(InputError, match=re.escape(remedy)):
        problem_of(priced([level], [{}] * 13) | {"tick_seconds": tick})


PRICE, ROOM = "datasets[0].price_usd", "sites[0].storage_gb"


@pytest.mark.parametrize(
    ("parts", "path", "remedy"),
    [
        ({"tick_seconds": Decimal("1e-14")}, "tasks[0]", "longer ticks"),
        ({"money_unit_usd": Decimal("1e-18")}, "nodes", "larger money unit"),
        (
            {"datasets": [{"id": "near", "size_gb": 1, "sites": ["here"], "price_usd": 10**15}]},
            PRICE,
            "money unit",
        ),
        (
            {"sites": [{"id": "here", "storage_gb": Decimal("3." + "3" * 16)}, {"id": "there"}]},
            ROOM,
            "fewer decimals",
        ),
    ],
)
def test_numbers_past_2_53_name_instance_place_and_remedy(parts, path, remedy):
    """The instance by its name: a file may hold any."""
    with pytest.raises(InputError) as caught:
        problem_of(document(**parts))
    (fault,) = caught.value.faults
    assert (fault.source, fault.path) == ("physics", path)
    assert remedy in fault.message


def test_a_horizon_past_2_53_is_refused():
    """Two tasks that each last 2^52 ticks."""
    modes = [{"id": "a", "uses": [{"node": "n", "devices": 1}], "duration_ticks": 2**52}]
    tasks = [{"id": f"t{number}", "modes": modes} for number in range(3)]
    with pytest.raises(InputError, match="the last run could end at tick"):
        problem_of(document(tasks=tasks))


def test_only_tasks_whose_successors_may_go_can_be_rejected():
    """t0 precedes t1, which precedes t2 that must run; t3 is free."""
    may = {"reject_penalty": 1}
    tasks = [may, {**may, "after": [{"id": "t0"}]}, {"after": [{"id": "t1"}]}, may]
    problem = problem_of(priced([{"rejected": 1}], tasks))
    assert problem.rejectable.tolist() == [False, False, False, True]


def test_arrays_are_read_only():
    """Nobody can change a problem by accident."""
    problem = problem_of(document())
    arrays = [value for value in vars(problem).values() if isinstance(value, np.ndarray)]
    assert len(arrays) > 40
    assert not any(array.flags.writeable for array in arrays)
