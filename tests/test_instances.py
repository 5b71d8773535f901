"""The index: complete, unchanged, and every stored plan valid and worth what the index says."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from optalloc import instances
from optalloc.compilation import compile as compile_problem
from optalloc.errors import InputError
from optalloc.evaluation import evaluate
from optalloc.generators import PRESETS, generate
from optalloc.problem import Plan, Problem
from optalloc.solvers.registry import solver_names
from optalloc.solvers.run import solve

NAMES = instances.names()
SMALL_REAL = ("real-8", "real-12", "real-20")
PACKAGE = Path(instances.__file__).parent

every = pytest.mark.parametrize("name", NAMES)
small_real = pytest.mark.parametrize("name", SMALL_REAL)


@pytest.fixture(scope="module")
def problems() -> Mapping[str, Problem]:
    """Compiled instances, each compiled once."""

    class Compiled(dict[str, Problem]):
        def __missing__(self, name: str) -> Problem:
            self[name] = compile_problem(instances.load(name))
            return self[name]

    return Compiled()


def test_everything_that_should_ship_does():
    """Five composed instances, and every preset at 6 and 10 tasks and one larger size."""
    assert {f"real-{size}" for size in (8, 12, 20, 60, 200)} <= set(NAMES)
    for preset in PRESETS:
        sizes = [instances.entry(n).sizes["tasks"] for n in NAMES if instances.entry(n).family == preset]
        assert sizes[:2] == [6, 10]
        assert sizes[2] >= 30


def test_files_and_index_match():
    """Each file belongs to one entry and each entry has its files."""
    listed = {path for name in NAMES for path in (instances.entry(name).path, instances.entry(name).solution)}
    found = {str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.json*")} - {"index.json"}
    assert found == listed


@every
def test_entry_describes_the_instance(name, problems):
    """Hash, sizes, K and name are the instance's."""
    entry, instance, problem = instances.entry(name), instances.load(name), problems[name]
    assert instance.name == entry.name == name
    assert instance.sha256 == entry.sha256
    assert problem.scale == entry.weight_scale
    assert len(problem.levels) == 1
    assert entry.sizes == {
        "tasks": len(instance.tasks),
        "nodes": len(instance.nodes),
        "datasets": len(instance.datasets),
        "modes": problem.num_modes,
        "active_modes": int(problem.active.sum()),
    }
    assert entry.origin["seed"] == instance.meta["seed"]
    assert entry.origin["version"] == instance.meta["version"]
    assert all(run["solver"] and run["version"] and run["seconds"] >= 0 for run in entry.proven_by)


@every
def test_stored_plan_is_valid_and_worth_its_objective(name, problems):
    """No rule is broken, the objective is the stored one, and no bound is above it."""
    entry, schedule = instances.entry(name), instances.solution(name)
    assert schedule.instance_sha256 == entry.sha256
    checked = evaluate(problems[name], schedule)
    assert checked.violations == ()
    assert checked.objective == entry.upper >= entry.lower
    assert entry.optimum == (entry.upper if entry.upper == entry.lower else None)


@every
def test_small_instances_are_proven_twice(name):
    """Up to 20 tasks composed and 10 invented, both exact methods have proven the optimum."""
    entry = instances.entry(name)
    if entry.sizes["tasks"] <= (20 if entry.family == "real" else 10):
        assert entry.optimum is not None
        assert {run["solver"] for run in entry.proven_by} == {"cpsat", "highs"}


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("real-")])
def test_generated_instances_equal_a_fresh_generation(name):
    """The shipped file is what its command makes today."""
    origin = instances.entry(name).origin
    fresh = generate(origin["preset"], tasks=origin["tasks"], seed=origin["seed"])
    assert fresh.sha256 == instances.entry(name).sha256


@pytest.mark.parametrize("name", [n for n in NAMES if instances.entry(n).sizes["tasks"] <= 8])
def test_an_optimum_proven_again(name, problems):
    """CP-SAT finds the stored optimum of the smallest instances."""
    result = solve(problems[name], "cpsat", time_limit=60, threads=1)
    assert (result.status, result.objective) == ("OPTIMAL", instances.entry(name).optimum)


def readers(problem: Problem, plan: Plan) -> Any:
    """Number of tasks that read each replica."""
    count = np.zeros(problem.num_replicas, dtype=int)
    for mode in plan.mode[plan.mode >= 0].tolist():
        count[problem.needs(mode)] += 1
    return count


@small_real
def test_real_instances_are_worth_solving(name, problems):
    """The criteria of the seed search: stored figures hold, and what is cheap is counted again."""
    entry, problem = instances.entry(name), problems[name]
    facts, optimum = entry.facts, entry.optimum
    plan = evaluate(problem, instances.solution(name)).plan
    wait = int((plan.start - problem.release).sum())
    assert facts["utility_first_optimum"] >= 1.005 * optimum
    assert facts["total_wait_ticks"] == wait >= problem.num_tasks / 2
    assert readers(problem, plan).max() >= 2
    assert facts["shared"]
    assert facts["milp_columns"] <= 20_000
    assert all(run["seconds"] <= 120 for run in entry.proven_by)
    assert instances.load(name).meta["search"]["tried"] >= 1
    assert max(len(problem.modes_of(task)) for task in range(problem.num_tasks)) <= 12


@small_real
def test_no_rule_solves_a_real_instance(name, problems):
    """The best dispatch rule is 3 % or more above the optimum."""
    results = [solve(problems[name], rule, time_limit=60, threads=1) for rule in solver_names(kind="rules")]
    best = min(result.objective for result in results if result.objective is not None)
    assert best >= 1.03 * instances.entry(name).optimum


def test_utility_first_costs_something(problems):
    """real-8 with each task bound to its most useful dataset: the optimum rises to the stored figure."""
    problem = problems["real-8"]
    tasks = []
    for number, task in enumerate(problem.instance.tasks):
        modes = problem.modes_of(number, active=False)
        (dataset, _, _) = problem.inputs(int(modes[np.argmax(problem.utility[modes])]))[0]
        tasks.append(task.replace(datasets=[problem.dataset_ids[dataset]]))
    result = solve(problem.instance.replace(tasks=tasks), "cpsat", time_limit=60, threads=1)
    assert result.objective == instances.entry("real-8").facts["utility_first_optimum"]


def test_unknown_names_are_refused():
    """The message lists the known names."""
    with pytest.raises(InputError, match="real-12"):
        instances.entry("real-13")


def test_bounds_by_hash():
    """bounds_of finds an instance by its hash only."""
    entry = instances.entry("geo-6")
    assert instances.bounds_of(entry.sha256) == {0: (entry.lower, entry.prover)}
    assert instances.bounds_of("0" * 64) == {}


def test_describe_has_a_row_each():
    """The rows that `optalloc list instances` prints."""
    rows = instances.describe()
    assert [row["name"] for row in rows] == NAMES
    assert all(row["lower"] <= row["upper"] for row in rows)
