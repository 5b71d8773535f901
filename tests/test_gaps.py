"""Optimality gaps of every dispatch rule on every shipped instance, with a stated limit per rule.

A plan better than a stored optimum, or a bound above a stored plan, fails: one of the two would be wrong.
"""

import pytest

from optalloc import instances
from optalloc.compilation import compile as compile_problem
from optalloc.errors import InputError
from optalloc.instance import Instance
from optalloc.schedule import write_schedule
from optalloc.solvers.registry import solver_names
from optalloc.solvers.run import solve
from optalloc.testing import assert_optimality_gap, instance_names

pytest_plugins = ["pytester"]

LIMITS: dict[str, tuple[float, float]] = {
    "fifo": (0.65, 0.50),
    "spt": (0.60, 0.45),
    "wspt": (0.45, 0.40),
    "edd": (0.40, 0.50),
    "atc": (0.45, 0.40),
    "min-min": (0.45, 0.45),
    "max-min": (0.70, 0.60),
    "sufferage": (0.60, 0.55),
    "heft": (0.80, 0.60),
    "cheapest": (0.90, 0.90),
    "fastest": (0.65, 0.70),
    "random": (0.80, 0.80),
    "compute-centric": (0.65, 0.60),
    "data-first": (0.40, 0.50),
    "joint-greedy": (0.40, 0.45),
}
"""Rule -> largest gap on a shipped instance (to its optimum where that is proven, to its bound elsewhere)."""


def test_every_rule_has_a_limit():
    """A new rule states how far from the optimum it may be."""
    assert LIMITS.keys() == set(solver_names(kind="rules"))


def test_rules_keep_their_limits(optalloc_instance):
    """Every rule has a plan; none is better than the bound, none further from it than its limit."""
    problem = compile_problem(optalloc_instance)
    proven = instances.entry(optalloc_instance.name).optimum is not None
    for rule, (to_optimum, to_bound) in LIMITS.items():
        result = solve(problem, rule, time_limit=60, threads=1)
        assert result.schedule is not None, f"{rule}: {result.status}"
        assert_optimality_gap(result.schedule, problem, to_optimum if proven else to_bound)


@pytest.mark.optalloc_instances("*-6", "real-8")
def test_exact_methods_reach_the_stored_optimum(optalloc_instance, tmp_path):
    """A gap of 0 for CP-SAT, by name, by schedule and by file."""
    assert assert_optimality_gap("cpsat", optalloc_instance, limit=0.0) == 0
    schedule = instances.solution(optalloc_instance.name)
    assert assert_optimality_gap(schedule, optalloc_instance.name, limit=0.0) == 0
    write_schedule(schedule, tmp_path / "plan.json")
    assert assert_optimality_gap(tmp_path / "plan.json", optalloc_instance, limit=0.0) == 0


def unfounded(name: str, lower: int) -> dict[int, tuple[int, str]]:
    """Bounds as the index would give them, with another lower bound."""
    return {0: (lower, instances.entry(name).prover)}


def test_plan_below_the_stored_bound_fails(monkeypatch):
    """A plan that is better than a "proven" bound shows that one of them is wrong."""
    entry = instances.entry("geo-6")
    monkeypatch.setattr(instances, "bounds_of", lambda _: unfounded("geo-6", entry.upper + 1))
    with pytest.raises(AssertionError, match="below the proven bound"):
        assert_optimality_gap(instances.solution("geo-6"), "geo-6", limit=1.0)


def test_gap_above_the_limit_fails():
    """A limit just below the gap of the cheapest rule fails and names both."""
    gap = assert_optimality_gap("random", "geo-6", limit=1.0)
    assert 0 < gap < 1
    with pytest.raises(AssertionError, match="is above"):
        assert_optimality_gap("random", "geo-6", limit=gap - 1e-6)


def test_broken_plan_fails(monkeypatch):
    """A plan that breaks a rule fails before its objective is looked at."""
    schedule = instances.solution("geo-6")
    with pytest.raises(AssertionError, match="breaks rules"):
        assert_optimality_gap(schedule, instances.load("geo-10"), limit=1.0)


def test_unshipped_instances_use_the_solvers_own_bound():
    """Without an index entry an exact method proves its own bound; a rule has none."""
    instance: Instance = instances.load("geo-6").replace(name="mine")
    assert assert_optimality_gap("cpsat", instance, limit=0.0) == 0
    with pytest.raises(AssertionError, match="no proven bound"):
        assert_optimality_gap("fifo", instance, limit=1.0)


def test_instance_names_select():
    """Patterns, size and proof narrow the index down."""
    assert instance_names("geo-6", "real-8") == [n for n in instances.names() if n in ("geo-6", "real-8")]
    assert all(instances.entry(name).sizes["tasks"] <= 8 for name in instance_names(max_tasks=8))
    assert "real-200" not in instance_names(proven=True)


def test_plugin_runs_over_the_index(pytester):
    """A foreign project's test runs once for each selected instance; the option narrows further."""
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.optalloc_instances("geo-*", "edge-6", max_tasks=10)
        def test_size(optalloc_instance):
            assert len(optalloc_instance.tasks) <= 10

        @pytest.mark.parametrize("optalloc_instance", ["real-8"], indirect=True)
        def test_own_choice(optalloc_instance):
            assert optalloc_instance.name == "real-8"
        """
    )
    pytester.runpytest_inprocess("--strict-markers").assert_outcomes(passed=4)
    pytester.runpytest_inprocess("--optalloc-instances=geo-6", "-k", "size").assert_outcomes(passed=1)


def test_names_that_select_nothing_are_refused():
    """A loop over no instance would pass: all patterns without a match are named, and filters that leave nothing."""
    with pytest.raises(InputError) as caught:
        instance_names("geo-6", "nonsense-*", "Geo-6")
    assert [fault.message.split(" ")[0] for fault in caught.value.faults] == ["'nonsense-*'", "'Geo-6'"]
    assert "geo-10" in str(caught.value)
    with pytest.raises(InputError, match="max_tasks=5"):
        instance_names("geo-*", max_tasks=5)


@pytest.mark.parametrize("marker", ['"nonsense-*"', '"geo-6", "nonsense-*"', '"geo-*", max_tasks=1'])
def test_a_marker_that_selects_nothing_fails(pytester, marker):
    """The gate does not go green on a typo; the message lists what there is."""
    pytester.makepyfile(
        f"""
        import pytest

        @pytest.mark.optalloc_instances({marker})
        def test_mine(optalloc_instance):
            pass
        """
    )
    ran = pytester.runpytest_inprocess()
    assert ran.ret != 0
    ran.assert_outcomes(errors=1)
    ran.stdout.re_match_lines([r".*optalloc_instances of test_mine: (.*geo-6, .*|.*max_tasks=1.*)"])


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("nothing-*", "'nothing-*' matches no shipped instance; there are real-8, "),
        ("geo-6,nothing-*", "'nothing-*' matches no shipped instance; there are real-8, "),
        ("edge-6", "none of these instances is among those that the tests are marked with"),
    ],
)
def test_an_option_that_selects_nothing_fails(pytester, option, message):
    """With a pattern without a match, or one that leaves nothing of what the markers select."""
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.optalloc_instances("geo-*", max_tasks=6)
        def test_mine(optalloc_instance):
            pass

        def test_other():
            pass
        """
    )
    ran = pytester.runpytest_inprocess(f"--optalloc-instances={option}")
    assert ran.ret == pytest.ExitCode.USAGE_ERROR
    ran.stderr.fnmatch_lines([f"*--optalloc-instances: {message}*"])
    both = pytester.runpytest_inprocess("--optalloc-instances= geo-6 , edge-6")
    both.assert_outcomes(passed=2)


def test_plugin_loads_nothing_heavy(pytester):
    """Loading the plugin imports no solver, no numpy and no pydantic."""
    pytester.makepyfile(
        """
        import sys

        def test_light():
            assert "optalloc.testing" in sys.modules
            heavy = {"numpy", "pydantic", "pyomo", "highspy", "ortools", "networkx", "matplotlib"}
            assert not heavy & sys.modules.keys()
        """
    )
    pytester.runpytest_subprocess("-p", "no:hypothesispytest").assert_outcomes(passed=1)
