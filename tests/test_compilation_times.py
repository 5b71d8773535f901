"""Rounding of times and money, calendars, storage units."""

from fractions import Fraction
from itertools import pairwise
from random import Random

import pytest
from support.physics import changed, document, problem_of

from optalloc.compilation.calendars import calendar_steps
from optalloc.compilation.storage import storage_in_units
from optalloc.compilation.units import Units, ceil_div, half_up, half_up_div, permille_up
from optalloc.errors import InputError
from optalloc.instance import Instance
from optalloc.problem import NEVER

UNITS = Units(tick=Fraction("7.5"), money=Fraction("0.05"))


def test_rounding_directions_at_exact_boundaries():
    """15 s are exactly 2 ticks of 7.5 s; $0.125 is exactly 2.5 units of $0.05."""
    assert [UNITS.ticks_up(Fraction(s)) for s in ("14.999", "15", "15.001")] == [2, 2, 3]
    assert [UNITS.ticks_down(Fraction(s)) for s in ("14.999", "15", "15.001")] == [1, 2, 2]
    assert [UNITS.money_half_up(Fraction(s)) for s in ("0.1249", "0.125", "0.1251")] == [2, 3, 3]
    assert [UNITS.money_down(Fraction(s)) for s in ("0.1499", "0.15", "0.1999")] == [2, 3, 3]
    assert [UNITS.duration(Fraction(s)) for s in ("0", "7.5", "7.51")] == [1, 1, 2]
    assert [permille_up(Fraction(s)) for s in ("0.4", "0.4001", "0")] == [400, 401, 0]


def test_integer_division_helpers():
    """Halves go up."""
    assert [ceil_div(7, 2), ceil_div(8, 2), ceil_div(0, 5)] == [4, 4, 0]
    assert [half_up_div(5, 2), half_up_div(7, 5), half_up(Fraction(1, 2)), half_up(Fraction(49, 100))] == [
        3,
        1,
        1,
        0,
    ]


def test_task_times():
    """Release and lag up, due and deadline down."""
    found = changed(release_s=60.5, due_s=179.9, deadline_s=1200)
    found["tasks"].append({**found["tasks"][0], "id": "next", "after": [{"id": "t", "lag_s": 61}]})
    del found["tasks"][1]["due_s"]
    problem = problem_of(found)
    assert (problem.release.tolist(), problem.due.tolist()) == ([2, 2], [2, NEVER])
    assert (problem.deadline.tolist(), list(problem.predecessors(1))) == ([20, 20], [(0, 2)])


@pytest.mark.parametrize(
    ("windows", "steps"),
    [
        (None, [(0, 4)]),
        ([], [(0, 0)]),
        ([(0, 600, 4)], [(0, 4), (10, 0)]),
        ([(0, 599, 4)], [(0, 4), (9, 0)]),  # the last tick is not covered to its end
        ([(1, 600, 4)], [(0, 0), (1, 4), (10, 0)]),
        ([(0, 90, 4), (90, 240, 2)], [(0, 4), (1, 2), (4, 0)]),  # tick 1 has 4, then 2: the least
        ([(0, 90, 2), (90, 240, 2)], [(0, 2), (4, 0)]),  # touching windows are one
        ([(0, 90, 4), (91, 240, 4)], [(0, 4), (1, 0), (2, 4), (4, 0)]),  # a second of gap
        ([(70, 80, 4), (80, 110, 3)], [(0, 0)]),  # both within one tick, which is not covered
        ([(60, 80, 4), (80, 120, 3)], [(0, 0), (1, 3), (2, 0)]),
        ([(120, 240, 1), (0, 60, 3)], [(0, 3), (1, 0), (2, 1), (4, 0)]),  # any order
        ([(0, 60, 0), (60, 120, 4)], [(0, 0), (1, 4), (2, 0)]),
    ],
)
def test_capacity_of_a_tick_is_the_least_over_its_seconds(windows, steps):
    """Ticks of 60 s, a node of 4 devices."""
    assert calendar_steps(windows, 4, Fraction(60)) == steps


def test_calendars_equal_a_scan_of_tenths_of_seconds():
    """Random windows on odd ticks, against the plain definition."""
    draw = Random(5)
    for _ in range(100):
        edges = sorted(draw.sample(range(200), 2 * draw.randint(1, 4)))
        pairs = [[a, b] for a, b in zip(edges[::2], edges[1::2], strict=True)]
        for first, second in pairwise(pairs):
            second[0] = first[1] if draw.random() < 0.4 else second[0]
        windows = [(Fraction(a, 10), Fraction(b, 10), draw.randint(0, 3)) for a, b in pairs]
        tick = Fraction(draw.choice([3, 7, 10]), 10)
        free = [next((c for a, b, c in windows if 10 * a <= s < 10 * b), 0) for s in range(240)]
        per_tick = int(10 * tick)
        expected = [min(free[s : s + per_tick]) for s in range(0, 210, per_tick)]
        steps = calendar_steps(windows, 3, tick)
        found = [next(c for t, c in reversed(steps) if t <= index) for index in range(len(expected))]
        assert found == expected
        assert all(a[1] != b[1] for a, b in pairwise(steps))


def test_storage_is_compared_in_the_least_common_unit_of_the_site():
    """Sizes 1.5 and 0.25 and storage 2.1: unit 0.05 GB; the unlimited site has its own."""
    found = document(
        sites=[{"id": "here", "storage_gb": 2.1}, {"id": "there"}],
        datasets=[
            {"id": "a", "size_gb": 1.5, "sites": ["there"]},
            {"id": "b", "size_gb": 0.25, "sites": ["there"]},
        ],
        tasks=[],
    )
    storage, sizes = storage_in_units(Instance(**found), [0, 1, 1], [0, 0, 1])
    assert (storage.tolist(), sizes.tolist()) == ([42, NEVER], [30, 5, 1])


@pytest.mark.parametrize(
    ("change", "path", "words"),
    [
        (
            {"tick_seconds": 1e-9, "tasks": [{"release_s": 2**52}]},
            "tasks[0].release_s",
            "the release in ticks",
        ),
        ({"tick_seconds": 1e-9, "tasks": [{"samples": 2**52}]}, "tasks[0]", "the longest duration in ticks"),
        ({"money_unit_usd": 1e-20}, "nodes", "the price of a run in money units"),
    ],
)
def test_numbers_past_2_53_are_refused(change, path, words):
    """The fault names the place, the number and the limit."""
    found = document(**{key: value for key, value in change.items() if key != "tasks"})
    for task, more in zip(found["tasks"], change.get("tasks", []), strict=False):
        task.update(more)
    with pytest.raises(InputError) as caught:
        problem_of(found)
    assert caught.value.faults[0].path == path
    assert words in str(caught.value)
    assert str(NEVER) in str(caught.value)
