"""Published problems with known optima: no bound passes the optimum, no plan beats it, whatever the time.

The exact methods alone are in `test_published`; here `bound` and `auto` have seconds, and need not end. The default run
takes a few problems of each family; `-m long` takes the rest.
"""

import csv
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import optalloc as oa
from optalloc.io.formats import import_instance
from optalloc.solvers.jit import COMPILED

pytestmark = pytest.mark.skipif(
    not COMPILED, reason="bound and auto take part where their kernels are compiled"
)

SECONDS = 3.0


@dataclass(frozen=True)
class Case:
    """A published problem.

    Attributes
    ----------
    file
        Below the folder of published problems.
    table, row
        Where its optimum stands.
    options
        Of the importer.
    """

    format: str
    file: str
    table: str
    row: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """For the list of tests."""
        return f"{self.row}-max" if self.options.get("maximise") else self.row


def cases() -> Iterator[tuple[Case, bool]]:
    """(case, whether it is in the default run)."""
    projects = ["n01_7", "n03_9", "n017_1", "n017_10", "n025_1", "n033_3", "n044_10"]
    for name in projects:
        yield Case("psplib-mm", f"mrcpsp_n0/{name}.mm", "mrcpsp_n0/optima.csv", name), name in projects[1:3]
    for name in (
        *(f"gap{k}-{i}" for k in range(1, 13) for i in range(2)),
        "a05100",
        "c05100",
        "b10100",
        "c10400",
    ):
        yield Case("gap", f"gap/{name}.txt", "gap/optima.csv", name), name in ("gap4-0", "c05100")
    for name in (f"gap{k}-{i}" for k in range(1, 13) for i in range(2)):
        options = {"maximise": True}
        yield Case("gap", f"gap/{name}.txt", "gap/optima_max.csv", name, options), name == "gap8-1"
    for jobs in (40, 50):
        for number in range(1, 126, 10):
            row = f"wt{jobs}_{number}"
            case = Case("wt", f"wt/wt{jobs}.txt", "wt/optima.csv", row, {"number": number})
            yield case, row in ("wt40_11", "wt50_121")


CASES = [pytest.param(case, marks=[] if quick else pytest.mark.long, id=case.name) for case, quick in cases()]


def optimum(folder: Path, case: Case, instance: oa.Instance) -> Fraction:
    """In the units of the instance."""
    value = Fraction(_row(folder / case.table, case.row)["optimum"])
    original = instance.meta.get("original")
    if original is None:
        return value
    return (value - Fraction(original["constant"])) / Fraction(original["factor"])


def _row(table: Path, name: str) -> dict[str, str]:
    with table.open(encoding="utf-8-sig", newline="") as file:
        return next(row for row in csv.DictReader(file) if row["instance"] == name)


@pytest.mark.parametrize("case", CASES)
def test_bound_and_auto_keep_to_the_optimum(shared: Path, case: Case) -> None:
    """bound <= optimum <= objective, for `bound` and `auto` alike; what is called OPTIMAL is the optimum."""
    folder = shared / "bench"
    instance = import_instance(case.format, [folder / case.file], **case.options)
    problem, least = oa.compile(instance), optimum(folder, case, instance)
    bound, found = run(problem, "bound"), run(problem, "auto")
    for result in (bound, found):
        assert result.bound is None or Fraction(result.bound, result.weight_scale) <= least
    assert bound.bound is not None
    if found.objective is None:  # some assignments are so tight that seconds do not always find one
        assert case.format == "gap"
    else:
        value = Fraction(found.objective, found.weight_scale)
        assert value == least if found.status == "OPTIMAL" else value >= least


def run(problem: oa.Problem, solver: str) -> oa.Result:
    """What some seconds give; no contradiction in any case."""
    result = oa.solve(problem, solver, time_limit=SECONDS, threads=2)
    assert result.status in ("OPTIMAL", "FEASIBLE", "NO_SOLUTION"), result.message
    return result


# unrelated machines -----------------------------------------------------------------------------------------
# Braun et al.: the best makespan known, and the bound of the linear relaxation. Ticks of the times as published would
# be 1e-4 s; coarser ones bound from below where times are rounded down, from above where they are rounded up.
TICK = {"u_c_hihi.0": 26, "u_c_hilo.0": 10, "u_c_lohi.0": 12, "u_c_lolo.0": 1}
"""Seconds; no time is shorter."""


def rounded(shared: Path, name: str, rounding: Callable[[Fraction], int], file: Path) -> oa.Problem:
    """The problem with whole ticks."""
    head, *numbers = (shared / "bench" / "hcsp_braun" / name).read_text().splitlines()
    tasks, machines, _ = map(int, head.split())
    ticks = [rounding(Fraction(number) / TICK[name]) for line in numbers for number in line.split()]
    file.write_text("\n".join([f"{tasks} {machines} 0", *map(str, ticks)]))
    return oa.compile(import_instance("etc", [file]))


MACHINES = [pytest.param(name, marks=[] if name == "u_c_lolo.0" else pytest.mark.long) for name in TICK]


@pytest.mark.parametrize("name", MACHINES)
def test_bound_of_unrelated_machines(shared: Path, tmp_path: Path, name: str) -> None:
    """No bound for times rounded down passes the best makespan known."""
    known = Fraction(_row(shared / "bench" / "hcsp_braun" / "optima.csv", name)["optimum"]) / TICK[name]
    result = run(rounded(shared, name, math.floor, tmp_path / "down"), "bound")
    assert result.bound is not None
    assert 0 < result.bound <= known * result.weight_scale


@pytest.mark.parametrize("name", MACHINES)
def test_plan_for_unrelated_machines(shared: Path, tmp_path: Path, name: str) -> None:
    """No plan for times rounded up beats the linear relaxation."""
    row = _row(shared / "bench" / "hcsp_braun" / "bounds_and_heuristics.csv", name)
    relaxed = Fraction(row["lp_lower_bound_computed_here"]) / TICK[name] * Fraction(999_999, 1_000_000)
    result = run(rounded(shared, name, math.ceil, tmp_path / "up"), "auto")
    assert result.objective is not None
    assert result.objective >= relaxed * result.weight_scale
