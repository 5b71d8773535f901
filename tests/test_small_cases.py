"""The small published cases: status, K, every level, terms and number of modes, by both exact methods."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import optalloc as oa

NAMES = [f"{i:03d}{kind}" for i in range(11) for kind in ("", "-stress", "-tiny", "-tiny-stress")]


@pytest.fixture(scope="session")
def cases(shared: Path) -> dict[str, tuple[oa.Problem, dict[str, Any]]]:
    """Name -> compiled instance and expected answer; whatever is there, not only what was there once."""
    folder = shared / "bench" / "small_cases"
    found = {}
    for path in sorted(folder.glob("*.expected.json")):
        name = path.name.removesuffix(".expected.json")
        problem = oa.compile(oa.read(folder / f"{name}.json"))
        found[name] = (problem, json.loads(path.read_text("utf-8")))
    return found


def test_no_case_is_missing(cases: dict[str, Any]) -> None:
    """The list of names in this file is the list of files."""
    assert set(NAMES) == cases.keys()


@pytest.mark.parametrize("name", NAMES)
def test_modes_per_task(cases: dict[str, Any], name: str) -> None:
    """The number of modes of each task before dominance."""
    problem, expected = cases[name]
    counts = {t: len(problem.modes_of(j, active=False)) for j, t in enumerate(problem.task_ids)}
    assert counts == expected["modes_per_task"]


@pytest.mark.parametrize("name", NAMES)
def test_answer(cases: dict[str, Any], name: str, solver: str) -> None:
    """Status, K and the objective of every level; the plan passes the verifier with the values claimed."""
    problem, expected = cases[name]
    result = oa.solve(problem, solver, time_limit=120, threads=1)
    assert result.status == expected["status"]
    assert result.weight_scale == expected["K"]
    if expected["status"] != "OPTIMAL":
        assert result.schedule is None
        assert result.objective is None
        return
    assert [level.objective for level in result.levels] == expected["levels"]
    assert [level.bound for level in result.levels] == expected["levels"]
    assert result.objective == expected["objective"]
    assert result.schedule is not None
    evaluation = oa.evaluate(problem, result.schedule)
    assert evaluation.valid
    assert list(evaluation.levels) == expected["levels"]


@pytest.mark.parametrize("name", NAMES)
def test_expected_plan(cases: dict[str, Any], name: str) -> None:
    """The published plan passes the verifier with the published terms."""
    from optalloc.schedule.files import schedule_from_dict

    problem, expected = cases[name]
    if expected["schedule"] is None:
        pytest.skip("infeasible: there is no plan to verify")
    document = {**expected["schedule"], "instance_sha256": problem.instance.sha256}
    evaluation = oa.evaluate(problem, schedule_from_dict(document))
    assert evaluation.valid, evaluation.violations
    assert list(evaluation.levels) == expected["levels"]
    assert {t: Fraction(v) for t, v in evaluation.terms.items()} == {
        t: Fraction(v) for t, v in expected["terms"].items()
    }
