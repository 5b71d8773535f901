"""What people read about one run."""

import io

import pytest
from rich.console import Console

import optalloc as oa
from optalloc.report import result_tables
from optalloc.result import Termination
from optalloc.solvers.base import Outcome


def shown(result: oa.Result) -> str:
    """The tables as a wide terminal shows them."""
    stream = io.StringIO()
    for table in result_tables(result):
        Console(file=stream, width=200).print(table)
    return stream.getvalue()


@pytest.fixture(scope="module")
def problem() -> oa.Problem:
    """A queue with a note for every task."""
    problem = oa.compile(oa.read("real-8"))
    assert len(problem.notes) == 8
    return problem


def proves(request):
    """Eight hundred dollars at least, and no plan."""
    request.monitor.bound(0, 80_000, "prices")
    return Outcome(Termination.COMPLETED)


def test_a_bound_without_a_plan_is_no_failure(problem):
    """It is headlined as what it is; without one, there is nothing."""
    text = shown(oa.solve(problem, proves))
    assert "bound proven, no plan (NO_SOLUTION, COMPLETED)" in text
    assert "bound 800.00" in text
    assert "NO_SOLUTION (COMPLETED)" in shown(oa.solve(problem, lambda problem: None))


def test_notes_of_compiling_do_not_flood_what_is_read(problem):
    """Two of eight and how many more; what the run itself notes is shown in any case, and JSON has all."""
    result = oa.solve(problem, "wspt", start=oa.Schedule("real-8", None, ()))
    text = shown(result)
    assert sum(line.strip().startswith("note") for line in text.splitlines()) == 4
    assert "... and 6 more from compiling; --json lists them all" in text
    assert "the start is refused" in text
    assert len(result.to_dict()["notes"]) == 9
