"""`auto` with its search in a second thread: proofs, plans and failures of all parts come together."""

import threading

import pytest
from support.random_instances import random_instance

import optalloc as oa
from optalloc.errors import SolverError
from optalloc.instance import read_instance
from optalloc.solvers import auto as module
from optalloc.solvers.jit import COMPILED
from optalloc.solvers.lns import driver

needs_kernels = pytest.mark.skipif(not COMPILED, reason="numba is not installed: auto leaves the search out")


def ladder(tasks, seed=0):
    """A congested instance."""
    return oa.compile(oa.generate("ladder", tasks=tasks, seed=seed))


@needs_kernels
@pytest.mark.parametrize("threads", [1, 2])
def test_bound_search_fixing_and_highs_prove_the_optimum(monkeypatch, threads):
    """Without CP-SAT's first try: the price bound leaves few starts, and HiGHS proves that the plan is optimal."""
    monkeypatch.setattr(module, "_TRY", 0.0)
    monkeypatch.setattr(module, "_FEWEST_STARTS", 0)
    problem = ladder(10)
    result = oa.solve(problem, "auto", time_limit=60, threads=threads)
    assert result.status == "OPTIMAL"
    assert {"bound", "lns", "highs"} <= {row["name"] for row in result.info["methods"]}
    assert result.objective == oa.solve(problem, "cpsat", time_limit=60).objective


@needs_kernels
def test_no_thread_is_left_behind():
    """The search has ended when the result is there."""
    oa.solve(ladder(40), "auto", time_limit=1, threads=2)
    assert "search" not in {thread.name for thread in threading.enumerate()}


@needs_kernels
def test_a_failure_of_the_search_is_not_lost(monkeypatch):
    """What goes wrong in the second thread ends the run as an error; the best plan is kept."""

    def broken(*_):
        raise SolverError("a search that breaks")

    real = driver.improve

    def improve(request, *rest):
        own = threading.current_thread() is threading.main_thread()
        return real(request, *rest) if own else broken()

    monkeypatch.setattr(module, "_TRY", 0.0)
    monkeypatch.setattr(driver, "improve", improve)
    result = oa.solve(ladder(40), "auto", time_limit=5, threads=2)
    assert (result.status, result.message) == ("ERROR", "a search that breaks")
    assert result.plan is not None


@needs_kernels
@pytest.mark.parametrize("chunk", range(2))
def test_every_feature_with_two_threads(monkeypatch, chunk):
    """Random instances, several levels among them: the same status and levels as CP-SAT."""
    monkeypatch.setattr(module, "_TRY", 0.0)
    compared = several = 0
    for seed in range(500 + 20 * chunk, 520 + 20 * chunk):
        problem = oa.compile(read_instance(random_instance(seed)))
        truth = oa.solve(problem, "cpsat", time_limit=30, threads=1)
        result = oa.solve(problem, "auto", time_limit=30, threads=2)
        assert result.status == truth.status, seed
        if truth.plan is not None:
            assert [level.objective for level in result.levels] == [
                level.objective for level in truth.levels
            ], seed
            compared += 1
            several += len(truth.levels) > 1
    assert compared >= 10
    assert several >= 1
