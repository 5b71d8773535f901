"""`auto` with its search in a second thread: proofs, plans and failures of all parts come together."""

import os
import subprocess
import sys
import threading
from functools import partial

import pytest
from support.random_instances import random_instance

import optalloc as oa
from optalloc.errors import SolverError
from optalloc.instance import read_instance
from optalloc.scope import full_scope
from optalloc.solvers import auto as module
from optalloc.solvers.base import Monitor, Request
from optalloc.solvers.jit import COMPILED
from optalloc.solvers.lns import driver
from optalloc.solvers.price_bound import PriceBound

needs_kernels = pytest.mark.skipif(not COMPILED, reason="numba is not installed: auto leaves the search out")


def ladder(tasks, seed=0):
    """A congested instance."""
    return oa.compile(oa.generate("ladder", tasks=tasks, seed=seed))


@needs_kernels
@pytest.mark.parametrize("threads", [1, 2])
def test_bound_search_fixing_and_highs_prove_the_optimum(monkeypatch, threads):
    """Without CP-SAT's first try: the price bound leaves few starts, and HiGHS proves that the plan is optimal."""
    monkeypatch.setattr(module, "_TRY_SECONDS", 0.0)
    monkeypatch.setattr(module, "_FEWEST_STARTS", 0)
    problem = ladder(10)
    result = oa.solve(problem, "auto", time_limit=60, threads=threads)
    assert result.status == "OPTIMAL"
    wanted = {"bound", "highs"} | ({"lns"} if threads == 2 else set())
    assert wanted <= {row["name"] for row in result.info["methods"]}
    assert result.objective == oa.solve(problem, "cpsat", time_limit=60).objective


@needs_kernels
def test_prices_without_a_proof_do_not_replace_proven_ones(monkeypatch):
    """There was no time for a proof of the finer ones."""
    scope = full_scope(ladder(10))
    team = module._Team(Request(scope, Monitor(scope, 60)))
    team.bound(0, module.STAGES, 0.5)
    known = team.priced(0)
    assert known.proof is not None
    monkeypatch.setattr(module, "price_bound", lambda *_, begin, **__: PriceBound(known.layout, begin))
    team.bound(0, module.REFINING, 0.5)
    assert team.priced(0) is known


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

    monkeypatch.setattr(module, "_TRY_SECONDS", 0.0)
    monkeypatch.setattr(driver, "improve", improve)
    result = oa.solve(ladder(40), "auto", time_limit=5, threads=2)
    assert (result.status, result.message) == ("ERROR", "a search that breaks")
    assert result.plan is not None


@needs_kernels
@pytest.mark.parametrize("chunk", range(2))
def test_every_feature_with_two_threads(monkeypatch, chunk):
    """Random instances, several levels among them: the same status and levels as CP-SAT."""
    monkeypatch.setattr(module, "_TRY_SECONDS", 0.0)
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


@needs_kernels
def test_no_time_limit_waits_for_the_compiler(tmp_path):
    """In an empty cache: each solver ends in time, with a verified plan where it needs no kernels, and a bound."""
    code = (
        "import time, sys, optalloc as oa\n"
        "problem = oa.compile(oa.generate('ladder', tasks=30))\n"
        "began = time.process_time()\n"
        "for name in ('auto', 'lns', 'bound'):\n"
        "    result = oa.solve(problem, name, time_limit=0.5)\n"
        "    print(name, result.status.value, result.termination.value, result.bound is not None)\n"
        "print(time.process_time() - began < 8)\n"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120, check=True
    )
    lines = done.stdout.split("\n")
    assert lines[0] == "auto FEASIBLE TIME_LIMIT True"
    assert lines[1].startswith("lns FEASIBLE TIME_LIMIT")
    assert lines[2] == "bound NO_SOLUTION TIME_LIMIT True"
    assert lines[3] == "True"  # compiling alone takes some 20 seconds of processor time


@needs_kernels
@pytest.mark.long
def test_after_warming_nothing_is_left_to_compile(tmp_path):
    """Every kernel, for every type that solvers use: later runs add no file to the cache."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    run = partial(subprocess.run, env=environment, timeout=600, check=True)
    run([sys.executable, "-m", "optalloc.solvers.warming"])
    files = sorted(path.name for path in tmp_path.rglob("*.nbc"))
    assert files
    code = (
        "import optalloc as oa\n"
        "for name in ('edge-6', 'market-6', 'contended-6', 'pipeline-6', 'ladder-10', 'real-8'):\n"
        "    for solver in ('lns', 'bound', 'auto'):\n"
        "        oa.solve(name, solver, time_limit=2)\n"
    )
    run([sys.executable, "-c", code])
    assert sorted(path.name for path in tmp_path.rglob("*.nbc")) == files
