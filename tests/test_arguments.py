"""What the Python functions take: objects, files and names alike; anything else is refused by name."""

from pathlib import Path
from typing import Any

import pytest

import optalloc as oa


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """An instance and a plan of it in every form."""
    folder = tmp_path_factory.mktemp("held")
    result = oa.solve("real-8", "wspt")
    oa.write(oa.read("real-8"), folder / "instance.json")
    oa.write(result.schedule, folder / "plan.json.gz")
    return {
        "instances": ["real-8", folder / "instance.json", str(folder / "instance.json"), oa.read("real-8")],
        "plans": [folder / "plan.json.gz", str(folder / "plan.json.gz"), result.schedule, result.plan],
        "objective": result.objective,
    }


def test_instances_by_name_file_and_object(held):
    """For `compile`, `solve`, `evaluate`, `with_objective`; what is compiled already is taken as it is."""
    problem = oa.compile("real-8")
    for given in held["instances"]:
        assert oa.compile(given).instance.sha256 == problem.instance.sha256
        assert oa.evaluate(given, held["plans"][0]).objective == held["objective"]
        assert oa.solve(given, "wspt").objective == held["objective"]
        assert list(oa.with_objective(given, "cost=1").objective.levels[0]) == ["cost"]
    assert oa.compile(problem) is problem


def test_plans_by_file_and_object(held):
    """For `evaluate`, as a start and as a fixed part."""
    problem = oa.compile("real-8")
    for given in held["plans"]:
        assert oa.evaluate(problem, given).objective == held["objective"]
        begun = oa.solve(problem, lambda problem: None, start=given)
        assert (begun.objective, begun.info["warm_start"]) == (held["objective"], "accepted")
        assert oa.solve(problem, "cpsat", fixed=given).objective == held["objective"]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: oa.compile(5), "an Instance, a file or a name, got int"),
        (lambda: oa.compile(None), "got NoneType"),
        (lambda: oa.evaluate({}, "plan.json"), "got dict"),
        (lambda: oa.evaluate("real-8", 5), "plan must be a Schedule, a Plan or a file, got int"),
        (lambda: oa.solve("real-8", "wspt", start=5), "start must be a Schedule, a Plan or a file"),
        (lambda: oa.solve("real-8", "wspt", fixed={}), "fixed must be a Schedule, a Plan or a file"),
        (lambda: oa.solve("real-8", "wspt", limits=5), "limits must be a mapping"),
        (lambda: oa.solve("real-8", "wspt", options=5), "options must be a mapping"),
        (lambda: oa.solve("real-8", "wspt", tasks=5), "tasks must be several ids"),
        (lambda: oa.solve("real-8", "wspt", on_event=5), "on_event must be a function"),
        (lambda: oa.compare([5], "wspt"), "an Instance, a file or a name, got int"),
        (lambda: oa.resolve(oa.compile("real-8"), 5), "expected a Schedule, got int"),
        (lambda: oa.to_schedule(oa.compile("real-8"), None), "expected a Plan, got NoneType"),
        (lambda: oa.write_schedule(oa.solve("real-8", "wspt").plan, "x.json"), "to_schedule makes one"),
        (lambda: oa.write_instance("real-8", "x.json"), "expected an Instance, got str"),
        (lambda: oa.write(oa.read("real-8"), 5), "os.PathLike"),
        (lambda: oa.read(5), "os.PathLike"),
    ],
)
def test_other_arguments_are_refused_by_name(call, words, tmp_path, monkeypatch):
    """With a TypeError that says what is expected; nothing is written."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TypeError, match=words):
        call()
    assert not list(Path().iterdir())


@pytest.mark.parametrize("name", ["nowhere.json", "x" * 5000])
def test_files_that_are_not_there_are_input_errors(name):
    """As an instance, as a plan, as a start; however long the name."""
    for call in (
        lambda: oa.compile(name),
        lambda: oa.evaluate("real-8", name),
        lambda: oa.solve("real-8", "wspt", start=name),
        lambda: oa.compare(name, "wspt"),
    ):
        with pytest.raises(oa.InputError, match=name):
            call()
