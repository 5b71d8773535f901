"""Options of every solver: text and values of the wrong kind or out of range are refused before anything runs."""

import math
from typing import Any

import numpy as np
import pytest

import optalloc as oa
from optalloc.cli.common import parse_pairs
from optalloc.errors import InputError
from optalloc.options import Kind
from optalloc.solvers.options import checked_options
from optalloc.solvers.registry import SolverEntry, get_solver, solver_names

DECLARED = {
    name: entry
    for name in solver_names()
    if (entry := get_solver(name)).options and any(type(d) is not str for d in entry.options.values())
}


def entry_with(**options: Any) -> SolverEntry:
    """A solver with such defaults; ``steps`` is at least 1."""
    return SolverEntry("mine", lambda request: request, options=options, least={"steps": 1})


@pytest.mark.parametrize("name", DECLARED)
def test_no_solver_takes_nonsense(name: str) -> None:
    """Neither as text nor as a value: no number, not finite, of another kind, below the least."""
    entry = DECLARED[name]
    for option, default in (entry.options or {}).items():
        if isinstance(default, str):
            continue
        wrong: list[Any] = ["", "abc", "nan", "inf", "1e999", math.nan, math.inf, None, [1], "--1"]
        wrong += ["2", 1, 0.5] if isinstance(default, bool) else [True]
        wrong += ["1.5", 0.5] if type(default) is int else []
        wrong += [entry.least[option] - 1] if option in entry.least else []
        for value in wrong:
            with pytest.raises(InputError, match=rf"^options\.{option}: must be "):
                checked_options(entry, {option: value})
        assert checked_options(entry, {option: str(default)}) == {option: default}
        assert checked_options(entry, {option: default}) == {option: default}


def test_options_that_count_have_a_least_value() -> None:
    """Which, is part of the interface."""
    least = {name: dict(entry.least) for name, entry in DECLARED.items() if entry.least}
    assert least == {
        "lns": {"iterations": 0},
        "rollout": {"tasks": 1, "modes": 1},
        "lookahead": {"tasks": 1, "modes": 1},
        "rolling": {"seconds": 0, "deterministic": 0},
    }


@pytest.mark.parametrize(
    ("method", "option", "value", "message"),
    [
        ("lns", "iterations", -5, "must be a whole number of at least 0, got -5"),
        ("rolling", "seconds", "-1", "must be a finite number of at least 0, got '-1'"),
        ("rolling", "seconds", math.nan, "must be a finite number of at least 0, got nan"),
        ("rollout", "tasks", 0, "must be a whole number of at least 1, got 0"),
        ("rollout", "tasks", "-1", "must be a whole number of at least 1, got '-1'"),
        ("highs", "max_columns", -1, "must be a whole number of at least 1, got -1"),
        ("highs", "max_entries", 2.5, "must be a whole number of at least 1, got 2.5"),
    ],
)
def test_solve_refuses_it(method: str, option: str, value: object, message: str) -> None:
    """By name, with what is allowed."""
    with pytest.raises(InputError) as caught:
        oa.solve("real-8", method, options={option: value})
    assert str(caught.value) == f"options.{option}: {message}"


def test_values_become_the_defaults_type() -> None:
    """Numbers of NumPy and whole numbers for reals are taken; text is read; what has no type is passed on."""
    entry = entry_with(steps=3, share=0.5, exactly=False, name="x", free=None)
    given = {"steps": np.int64(4), "share": 1, "exactly": "yes", "name": "3", "free": "3"}
    read = checked_options(entry, given)
    assert read == {"steps": 4, "share": 1.0, "exactly": True, "name": "3", "free": "3"}
    assert [type(value) for value in read.values()] == [int, float, bool, str, str]
    assert checked_options(entry, {"share": " 1E-3 ", "steps": "+4"}) == {"share": 0.001, "steps": 4}


def test_all_wrong_options_of_a_solver_at_once() -> None:
    """Unknown names, wrong values, values below the least."""
    with pytest.raises(InputError) as caught:
        checked_options(entry_with(steps=3, share=0.5), {"stepz": 1, "steps": 0, "share": "x"})
    assert [str(fault) for fault in caught.value.faults] == [
        "options.stepz: mine has no such option; did you mean 'steps'?",
        "options.steps: must be a whole number of at least 1, got 0",
        "options.share: must be a finite number, got 'x'",
    ]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (Kind(bool), "true or false"),
        (Kind(int), "a whole number"),
        (Kind(int, 1), "a whole number of at least 1"),
        (Kind(float, 0.5), "a finite number of at least 0.5"),
    ],
)
def test_kinds_say_what_they_are(kind: Kind, text: str) -> None:
    """For messages."""
    assert str(kind) == text


@pytest.mark.parametrize("option", ["--limit", "--option"])
def test_a_name_given_twice_with_two_values_is_refused(option: str) -> None:
    """Neither the first nor the last wins; the same value twice is no contradiction."""
    pairs = parse_pairs(option, ["cost=1", "makespan=3", " cost = 1 "])
    assert pairs == {"cost": "1", "makespan": "3"}
    with pytest.raises(InputError, match=f"^{option}: cost is given twice, as 1 and as 2$"):
        parse_pairs(option, ["cost=1", "cost=2"])
