"""Published problems that are special cases of the model, with their known optima, by exact methods.

The default run takes all multi-mode projects and the generalised assignments up to gap5 by CP-SAT, and the
smaller half by HiGHS; `-m long` takes the rest.
"""

import csv
from pathlib import Path
from typing import Any

import pytest

import optalloc as oa
from optalloc.io.formats import import_instance

PROJECTS = [
    "n01_7", "n02_1", "n02_6", "n02_8", "n02_10", "n03_1", "n03_9", "n04_3", "n04_5", "n04_8", "n09_1", "n010_2",
    "n010_6", "n010_10", "n011_5", "n011_8", "n011_10", "n012_2", "n017_1", "n017_5", "n017_7", "n017_8", "n017_10",
    "n018_4", "n020_3", "n025_1", "n026_3", "n027_1", "n028_1", "n028_2", "n028_10", "n033_3", "n033_5", "n033_6",
    "n035_9", "n036_2", "n042_3", "n042_8", "n043_3", "n043_9", "n044_10",
]  # fmt: skip
ASSIGNMENTS = [f"gap{k}-{i}" for k in range(1, 9) for i in range(2)]

QUICK_BY_HIGHS = {
    "n02_1",
    "n02_8",
    "n03_1",
    "n03_9",
    "n04_8",
    "n09_1",
    "n012_2",
    "n017_10",
    "n020_3",
    "n044_10",
}
NEVER_ENDING = ("highs", "n033_3")
"""The time-indexed MILP does not prove it within minutes."""

WRONG_IN_9_15 = {"n017_1": 31, "n017_10": 14}
"""CP-SAT 9.15.6755 proves 32 and 15 if alternatives share start and end variables. Source: PSPLIB n0opt.mm."""


def optima(path: Path) -> dict[str, int]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return {row["instance"]: int(row["optimum"]) for row in csv.DictReader(file)}


def solved(problem: oa.Problem, solver: str, time_limit: float = 240) -> oa.Result:
    """A proven result whose plan is verified once more."""
    result = oa.solve(problem, solver, time_limit=time_limit, threads=1)
    assert result.status == "OPTIMAL"
    assert result.bound == result.objective
    assert result.schedule is not None
    assert oa.evaluate(problem, result.schedule).levels == (result.objective,)
    return result


def test_no_project_is_missing(shared: Path) -> None:
    """The list of this file is the published list."""
    assert set(PROJECTS) == optima(shared / "bench" / "mrcpsp_n0" / "optima.csv").keys()


def check_project(folder: Path, name: str, solver: str) -> None:
    instance = import_instance("psplib-mm", [folder / f"{name}.mm"])
    result = solved(oa.compile(instance), solver)
    assert result.weight_scale == 1
    assert result.objective == optima(folder / "optima.csv")[name]


def runs(names: list[str], quick: dict[str, set[str]]) -> list[Any]:
    """(method, name) of every run; those that are not quick are long."""
    return [
        pytest.param(method, name, marks=[] if name in quick[method] else pytest.mark.long)
        for method in quick
        for name in names
        if (method, name) != NEVER_ENDING
    ]


@pytest.mark.parametrize(
    ("method", "name"), runs(PROJECTS, {"cpsat": set(PROJECTS), "highs": QUICK_BY_HIGHS})
)
def test_multi_mode_projects(shared: Path, method: str, name: str) -> None:
    """PSPLIB n0: every mode is one (node, devices, duration), precedence, makespan."""
    check_project(shared / "bench" / "mrcpsp_n0", name, method)


@pytest.mark.parametrize("name", WRONG_IN_9_15)
def test_cpsat_9_15_wrong_optimum(shared: Path, name: str) -> None:
    """The formulation does not trip over the fault of CP-SAT 9.15 with shared start and end variables."""
    instance = import_instance("psplib-mm", [shared / "bench" / "mrcpsp_n0" / f"{name}.mm"])
    for seed in range(3):
        result = oa.solve(oa.compile(instance), "cpsat", time_limit=60, threads=1, seed=seed)
        assert (result.status, result.objective) == ("OPTIMAL", WRONG_IN_9_15[name])


def check_assignment(folder: Path, name: str, solver: str, maximise: bool) -> None:
    options = {"maximise": True} if maximise else {}
    instance = import_instance("gap", [folder / f"{name}.txt"], **options)
    result = solved(oa.compile(instance), solver)
    known = optima(folder / ("optima_max.csv" if maximise else "optima.csv"))[name]
    assert result.objective is not None
    value = result.objective
    if maximise:
        original = instance.meta["original"]
        value = original["constant"] + original["factor"] * result.objective
    assert value == known


@pytest.mark.parametrize("maximise", [False, True], ids=["min", "max"])
@pytest.mark.parametrize(
    ("method", "name"), runs(ASSIGNMENTS, {"cpsat": set(ASSIGNMENTS[:10]), "highs": set(ASSIGNMENTS[:4])})
)
def test_generalised_assignment(shared: Path, method: str, name: str, maximise: bool) -> None:
    """gap1 to gap8 both ways: all tasks run at tick 0, the capacity of a node is the knapsack."""
    check_assignment(shared / "bench" / "gap", name, method, maximise)
