"""Optimality-gap checks in pytest (a plugin that comes with optalloc).

A test that takes the fixture ``optalloc_instance`` runs once for every shipped instance; the marker
``optalloc_instances`` or the option ``--optalloc-instances`` narrows them down::

    import pytest
    from optalloc.testing import assert_optimality_gap

    @pytest.mark.optalloc_instances("geo-*", "real-12", max_tasks=20)
    def test_my_scheduler(optalloc_instance):
        assert_optimality_gap("my_package.scheduler:solve", optalloc_instance, limit=0.10)
"""

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from optalloc.errors import Fault, InputError

if TYPE_CHECKING:
    from optalloc.instance import Instance
    from optalloc.problem import Problem
    from optalloc.schedule import Schedule

__all__ = ["assert_optimality_gap", "instance_names", "optalloc_instance"]

FIXTURE, MARKER, OPTION = "optalloc_instance", "optalloc_instances", "--optalloc-instances"
SELECTED = pytest.StashKey[list[int]]()
"""How many instances each test runs over."""


def assert_optimality_gap(
    solver_or_schedule: "str | Path | Callable[..., Any] | Schedule",
    instance: "Instance | Problem | str | Path",
    limit: float,
    *,
    time_limit: float = 60.0,
    seed: int = 0,
) -> float:
    """Assert that a solver, or a plan, is valid and within ``limit`` of the best proven bound.

    Parameters
    ----------
    solver_or_schedule
        A registered name, ``module:object``, a solver function, a Schedule, or the path of a schedule file.
    instance
        An Instance, compiled or not, a file, or a name of the index. The bound is the index's; for an instance
        that is not shipped it is the one that the solver proves itself.
    limit
        Largest gap allowed: (objective - bound) / max(|objective|, 1).
    time_limit
        Seconds for the solver.
    seed
        Seed for the solver.

    Returns
    -------
    The gap.

    Raises
    ------
    AssertionError
        No plan, a broken rule, a gap above the limit, or a plan better than the proven bound (then one of the
        two is wrong).
    """
    from optalloc import instances

    problem = _compiled(instance)
    values, own = _values(problem, solver_or_schedule, time_limit, seed)
    stored = instances.bounds_of(problem.instance.sha256)
    bounds = {level: bound for level, (bound, _) in stored.items()} or own
    return _gap(problem.instance.name, values, bounds, limit)


def _compiled(instance: "Instance | Problem | str | Path") -> "Problem":
    from optalloc.compilation import compile as compile_problem
    from optalloc.io.reading import read
    from optalloc.problem import Problem

    if isinstance(instance, Problem):
        return instance
    return compile_problem(read(instance) if isinstance(instance, str | Path) else instance)


def _values(
    problem: "Problem", solver_or_schedule: Any, time_limit: float, seed: int
) -> tuple[tuple[int, ...], dict[int, int]]:
    """The value of each level of a valid plan, and the bounds that its solver proved."""
    from optalloc.evaluation import evaluate
    from optalloc.schedule import Schedule, read_schedule
    from optalloc.solvers.run import solve

    own: dict[int, int] = {}
    plan = solver_or_schedule
    if isinstance(plan, Path) or (isinstance(plan, str) and plan.endswith((".json", ".json.gz"))):
        plan = read_schedule(plan)
    if not isinstance(plan, Schedule):
        result = solve(problem, plan, time_limit=time_limit, seed=seed)
        assert result.schedule is not None, f"{result.solver}: no plan, {result.status}. {result.message}"
        kept = (level for level in enumerate(result.levels) if not level[1].conditional)
        own = {number: level.bound for number, level in kept if level.bound is not None}
        plan = result.schedule
    checked = evaluate(problem, plan)
    broken = "; ".join(f"{violation.rule}: {violation.message}" for violation in checked.violations)
    assert checked.valid, f"{problem.instance.name}: the plan breaks rules: {broken}"
    return checked.levels, own


def _gap(name: str, values: Sequence[int], bounds: dict[int, int], limit: float) -> float:
    """The gap on the first level at which a plan differs from the bounds, checked on both sides."""
    from optalloc.comparison import reference_gap

    found = reference_gap(values, bounds)
    assert found is not None, f"{name}: there is no proven bound to compare with"
    level, gap = found
    value, bound = values[level], bounds[level]
    assert gap >= 0, f"{name}: objective {value} is below the proven bound {bound}: one of them is wrong"
    assert gap <= limit, f"{name}: gap {gap:.2%} ({value} to {bound}) is above {limit:.2%}"
    return gap


def instance_names(*patterns: str, max_tasks: int | None = None, proven: bool = False) -> list[str]:
    """Names of shipped instances that match one of ``patterns`` (default all); at least one.

    Parameters
    ----------
    patterns
        Shell patterns such as ``geo-*``.
    max_tasks
        Only instances of at most so many tasks.
    proven
        Only instances whose optimum is proven.

    Raises
    ------
    InputError
        A pattern matches no name, or nothing is left: a check of nothing would pass unseen.
    """
    from optalloc import instances

    def wanted(name: str) -> bool:
        entry = instances.entry(name)
        small = max_tasks is None or entry.sizes["tasks"] <= max_tasks
        return small and (entry.optimum is not None or not proven)

    found = [name for name in _matching(patterns) if wanted(name)]
    if not found:
        raise InputError(f"no shipped instance is left with max_tasks={max_tasks}, proven={proven}")
    return found


def _matching(patterns: Sequence[str]) -> list[str]:
    """The names that match one of the patterns, in the order of the index; all without patterns."""
    from optalloc import instances

    names = instances.names()
    faults = [
        Fault("", f"{pattern!r} matches no shipped instance; there are {', '.join(names)}")
        for pattern in patterns
        if not any(fnmatchcase(name, pattern) for name in names)
    ]
    if faults:
        raise InputError(faults)
    return [n for n in names if not patterns or any(fnmatchcase(n, p) for p in patterns)]


@pytest.fixture(name=FIXTURE)
def optalloc_instance(request: pytest.FixtureRequest) -> "Instance":
    """A shipped instance; the test runs for each that the marker and the option select."""
    from optalloc import instances

    return instances.load(request.param)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--optalloc-instances``."""
    text = "comma-separated names or patterns of optalloc instances to test on"
    parser.getgroup("optalloc").addoption(OPTION, default="", metavar="PATTERNS", help=text)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker; refuse an option that names nothing."""
    text = f"{MARKER}(*patterns, max_tasks=None, proven=False): shipped instances that {FIXTURE} runs over"
    config.addinivalue_line("markers", text)
    config.stash[SELECTED] = []
    try:
        _matching(_patterns(config))
    except InputError as error:
        raise pytest.UsageError(f"{OPTION}: {error}") from None


def _patterns(config: pytest.Config) -> list[str]:
    return [pattern.strip() for pattern in config.getoption(OPTION).split(",") if pattern.strip()]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests that take the fixture once for each selected instance."""
    given = [mark.args[0] for mark in metafunc.definition.iter_markers("parametrize")]
    if FIXTURE not in metafunc.fixturenames or any(FIXTURE in str(names) for names in given):
        return
    marker = metafunc.definition.get_closest_marker(MARKER)
    try:
        chosen = instance_names(*marker.args, **marker.kwargs) if marker else instance_names()
    except InputError as error:
        pytest.fail(f"{MARKER} of {metafunc.definition.name}: {error}", pytrace=False)
    narrowed = _matching(_patterns(metafunc.config))
    chosen = [name for name in chosen if name in narrowed]
    metafunc.config.stash[SELECTED].append(len(chosen))
    metafunc.parametrize(FIXTURE, chosen, indirect=True, ids=chosen)


def pytest_collection_modifyitems(config: pytest.Config) -> None:
    """Refuse an option that leaves no instance to any of the tests that take one."""
    selected = config.stash[SELECTED]
    if _patterns(config) and selected and not any(selected):
        raise pytest.UsageError(
            f"{OPTION}: none of these instances is among those that the tests are marked with"
        )
