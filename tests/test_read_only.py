"""What plans are verified against cannot be changed by a solver, neither by accident nor by lifting a flag."""

import copy
import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import optalloc as oa
from optalloc.problem import Problem, ReadOnly
from optalloc.scope import full_scope, windows
from optalloc.solvers.rules import best_start


@pytest.fixture(scope="module")
def problem() -> Problem:
    """With purchases, seats and limits."""
    return oa.compile(oa.read("market-6"))


def parts(problem: Problem) -> Iterator[tuple[str, NDArray[Any]]]:
    """Every array of a problem, its forms, its scope and the windows of that."""
    scope = full_scope(problem)
    held = [problem, *problem.levels, *(limit.form for limit in problem.limits), scope, windows(scope)]
    for part in held:
        assert isinstance(part, ReadOnly)
        for name, value in vars(part).items():
            if isinstance(value, np.ndarray):
                yield f"{type(part).__name__}.{name}", value
    for name in ("free", "exists", "rejectable"):
        yield name, getattr(scope, name)


def test_no_flag_makes_an_array_writable(problem):
    """NumPy lets nobody write into bytes; a mere flag could be set again."""
    seen = dict(parts(problem))
    assert len(seen) > 55
    for name, array in seen.items():
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
        with pytest.raises(ValueError, match="cannot set WRITEABLE"):
            array.setflags(write=True)
        with pytest.raises(ValueError, match="cannot set WRITEABLE"):
            array[:1].flags.writeable = True
        assert array.dtype in (np.int64, np.bool_), name
        assert array.flags.aligned, name


@pytest.mark.parametrize(
    "copied",
    [copy.copy, copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p)), lambda p: replace(p, notes=())],
    ids=["copy", "deepcopy", "pickle", "replace"],
)
def test_copies_are_read_only_as_well(problem, copied: Callable[[Problem], Problem]):
    """And equal to what they were copied from."""
    twin = copied(problem)
    for (name, one), (_, other) in zip(parts(problem), parts(twin), strict=True):
        np.testing.assert_array_equal(one, other, err_msg=name)
        with pytest.raises(ValueError, match="cannot set WRITEABLE"):
            other.setflags(write=True)


@pytest.mark.parametrize("name", ["money", "duration", "use_amount", "cap_amount", "due"])
def test_a_solver_that_changes_the_problem_has_its_attempt_refused(name: str):
    """No plan of such a solver is reported with an objective that it does not have."""

    def cheat(problem, *, scope):
        array = getattr(problem, name)
        array.setflags(write=True)
        array[:] = 0
        return best_start(scope)

    result = oa.solve("real-8", cheat)
    assert result.status is oa.Status.ERROR
    assert "cannot set WRITEABLE" in result.message
    assert result.objective is None
