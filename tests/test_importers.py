"""Published problems become instances: exact mappings, faults with lines, optima where they are cheap to compute."""

import contextlib
import csv
import itertools
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest
from scipy.optimize import linear_sum_assignment
from typer.testing import CliRunner

from optalloc.cli.app import app
from optalloc.errors import InputError
from optalloc.instance import Instance, Task, read_instance, write_instance
from optalloc.io.formats import FORMATS, describe_formats, format_names, import_instance
from optalloc.io.original import original_value
from optalloc.options import Kind

PROJECT = """************************************************************************
file with basedata            : small.bas
************************************************************************
projects                      :  1
jobs (incl. supersource/sink ):  5
horizon                       :  90
RESOURCES
  - renewable                 :  2   R
  - nonrenewable              :  0   N
  - doubly constrained        :  0   D
************************************************************************
PROJECT INFORMATION:
pronr.  #jobs rel.date duedate tardcost  MPM-Time
    1      3      0       15       11       15
************************************************************************
PRECEDENCE RELATIONS:
jobnr.    #modes  #successors   successors
   1        1          2           2   3
   2        3          1           4
   3        1          2           4   5
   4        2          1           5
   5        1          0
************************************************************************
REQUESTS/DURATIONS:
jobnr. mode duration  R 1  R 2
------------------------------------------------------------------------
  1      1     0       0    0
  2      1     2       0    6
         2     4       3    0
         3     3       3    0
  3      1     1       2    1
  4      1     5       9    0
         2     7       0    5
  5      1     0       0    0
************************************************************************
RESOURCEAVAILABILITIES:
  R 1  R 2
    4    6
************************************************************************
"""

GAP = """ 2 3
 7 2 9
 4 4 4
 3 3 3
 1 2 6
 5 4
"""


@pytest.fixture
def save(tmp_path: Path) -> Callable[[str, str], Path]:
    """Write a text to a file of that name."""

    def write(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


Save = Callable[[str, str], Path]


def options(task: Task) -> list[tuple[dict[str, int], int]]:
    """(devices by node, ticks) of a task's modes."""
    return [({use.node: use.devices for use in mode.uses}, mode.duration_ticks) for mode in task.modes or ()]


def table(path: Path) -> dict[str, dict[str, str]]:
    """First column -> row of a CSV file."""
    with path.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    return {next(iter(row.values())): row for row in rows}


# PSPLIB --------------------------------------------------------------------------------------------------------------
def test_projects_map_exactly(save: Save) -> None:
    """Source and sink go, oversize modes go, of equal uses the shorter stays, precedence is end to start."""
    instance = import_instance("psplib-mm", [save("p1_2.mm", PROJECT)])
    assert instance.name == "p1_2"
    assert {node.id: node.devices for node in instance.nodes} == {"R1": 4, "R2": 6}
    tasks = {task.id: task for task in instance.tasks}
    assert options(tasks["2"]) == [({"R2": 6}, 2), ({"R1": 3}, 3)]
    assert options(tasks["3"]) == [({"R1": 2, "R2": 1}, 1)]
    assert options(tasks["4"]) == [({"R2": 5}, 7)]
    after = {name: [other.id for other in task.after] for name, task in tasks.items()}
    assert after == {"2": [], "3": [], "4": ["2", "3"]}
    assert instance.objective.levels == ({"makespan": 1},)
    assert instance.meta["dropped_modes"] == 2
    assert instance.meta["source"] == "p1_2.mm"
    assert len(instance.sites) == 1


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("nonrenewable              :  0", "nonrenewable              :  2", "has 2 nonrenewable resources"),
        ("doubly constrained        :  0", "doubly constrained        :  1", "has 1 doubly constrained"),
        ("  - renewable                 :  2   R\n", "", "no line says how many renewable"),
        ("RESOURCEAVAILABILITIES:", "RESOURCES:", "section 'RESOURCEAVAILABILITIES' is missing"),
        ("    4    6", "    4", "line 38: expected one row with the availabilities of 2"),
        ("   2        3          1           4\n", "", "line 19: expected job 2"),
        (
            "   2        3          1           4",
            "   2        3          2           4",
            "line 19: expected job 2",
        ),
        (
            "   2        3          1           4",
            "   2        3          1           9",
            "line 19: a successor is not",
        ),
        (
            "   2        3          1           4",
            "   2        2          1           4",
            "line 19: job 2 has 3 modes",
        ),
        (
            "   3        1          2           4   5",
            "   3        1          2           4   x",
            "line 20: expected whole",
        ),
        ("         3     3       3    0", "         3     3       3", "line 30: expected mode, duration"),
        (
            "         3     3       3    0",
            "         4     3       3    0",
            "line 30: expected mode 3 of job 2, got 4",
        ),
        (
            "         3     3       3    0",
            "         3     3       0    0",
            "line 30: a mode that needs no resource",
        ),
        (
            "         3     3       3    0",
            "         3     0       3    0",
            "line 30: a job other than source and sink",
        ),
        ("ink ):  5", "ink ):  6", "5 jobs stand in PRECEDENCE RELATIONS"),
        (
            "   4        2          1           5",
            "   4        2          1           2",
            "tasks wait for each other",
        ),
    ],
)
def test_damaged_projects(save: Save, old: str, new: str, message: str) -> None:
    """Faults name the file and, where there is one, the line."""
    assert old in PROJECT
    path = save("p.mm", PROJECT.replace(old, new, 1))
    with pytest.raises(InputError) as caught:
        import_instance("psplib-mm", [path])
    assert message in str(caught.value)
    assert {fault.source for fault in caught.value.faults} == {str(path)}


def test_published_projects_import(shared: Path) -> None:
    """All multi-mode and single-mode files read; durations, resources and precedence are complete."""
    files = {
        "psplib-mm": sorted((shared / "bench" / "mrcpsp_n0").glob("*.mm")),
        "psplib-sm": sorted((shared / "bench" / "rcpsp_rf025").glob("*.sm")),
    }
    assert [len(paths) for paths in files.values()] == [41, 34]
    for name, paths in files.items():
        for path in paths:
            instance = import_instance(name, [path])
            jobs = int(path.read_text().split("sink ):")[1].split()[0])
            assert len(instance.tasks) == jobs - 2
            assert critical_path(instance) <= int(table(path.parent / "optima.csv")[path.stem]["optimum"])


def critical_path(instance: Instance) -> int:
    """Longest chain of shortest durations: a bound that the published optimum cannot undercut."""
    ends: dict[str, int] = {}
    waiting = list(instance.tasks)
    while waiting:
        ready = [task for task in waiting if all(after.id in ends for after in task.after)]
        for task in ready:
            start = max((ends[after.id] for after in task.after), default=0)
            ends[task.id] = start + min(mode.duration_ticks for mode in task.modes or ())
        waiting = [task for task in waiting if task.id not in ends]
    return max(ends.values())


# assignment ----------------------------------------------------------------------------------------------------------
def cheapest(instance: Instance) -> Fraction:
    """Least cost of any choice of one mode a task that fits the nodes, by enumeration."""
    devices = {node.id: node.devices for node in instance.nodes}
    best = None
    for modes in itertools.product(*(task.modes or () for task in instance.tasks)):
        used: dict[str, int] = {}
        for mode in modes:
            for use in mode.uses:
                used[use.node] = used.get(use.node, 0) + use.devices
        if all(count <= devices[node] for node, count in used.items()):
            cost = sum((Fraction(mode.usd) for mode in modes), Fraction(0))
            best = cost if best is None else min(best, cost)
    assert best is not None
    return best


def test_generalised_assignment_maps_exactly(save: Save) -> None:
    """Agents are nodes, a_ij devices for one tick at tick 0, c_ij dollars; a_32 = 6 > 4 does not fit agent 2."""
    path = save("small.txt", GAP)
    instance = import_instance("gap", [path])
    assert {node.id: node.devices for node in instance.nodes} == {"agent1": 5, "agent2": 4}
    assert [options(task) for task in instance.tasks] == [
        [({"agent1": 3}, 1), ({"agent2": 1}, 1)],
        [({"agent1": 3}, 1), ({"agent2": 2}, 1)],
        [({"agent1": 3}, 1)],
    ]
    assert [[mode.usd for mode in task.modes or ()] for task in instance.tasks] == [[7, 4], [2, 4], [9]]
    assert {Fraction(task.deadline_s or 0) / Fraction(instance.tick_seconds) for task in instance.tasks} == {
        1
    }
    assert instance.objective.levels == ({"cost": 1},)
    # Job 3 must go to agent 1 (3 of 5 devices), so that jobs 1 and 2 (3 each) go to agent 2: 4 + 4 + 9.
    assert cheapest(instance) == 17
    assert original_value(instance, Fraction(17)) is None


def test_maximisation_keeps_the_original_value(save: Save) -> None:
    """Values become 9 - value (9 is the largest); 3 jobs make the constant 27, shown back as 27 - objective."""
    text = GAP.replace("1 2 6", "1 2 4")
    instance = import_instance("gap", [save("small.txt", text)], maximise=True)
    assert [[mode.usd for mode in task.modes or ()] for task in instance.tasks] == [[2, 5], [7, 5], [0, 5]]
    assert instance.meta["original"] == {"sense": "max", "constant": 27, "factor": -1}
    # One job fits agent 1. Jobs 1 and 3 to agent 2 need 5 > 4; 2 and 3 need 6: jobs 1 and 2 go to agent 2: 4 + 4 + 9.
    assert original_value(instance, cheapest(instance)) == 17


@pytest.mark.parametrize("maximise", [False, True])
def test_smallest_published_values_stay_bounds(shared: Path, maximise: bool) -> None:
    """Without capacities every job takes its best agent: no published optimum is better than that."""
    optima = table(shared / "bench" / "gap" / ("optima_max.csv" if maximise else "optima.csv"))
    for name in ("gap1-0", "gap5-1", "gap8-0", "gap12-1"):
        instance = import_instance("gap", [shared / "bench" / "gap" / f"{name}.txt"], maximise=maximise)
        least = sum(min(Fraction(mode.usd) for mode in task.modes or ()) for task in instance.tasks)
        optimum = int(optima[name]["optimum"])
        if maximise:
            assert (original_value(instance, least) or 0) >= optimum
        else:
            assert least <= optimum


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: the file ends where the number of agents should stand"),
        ("2 x", "line 1: the number of jobs must be a whole number of at least 1, got 'x'"),
        (GAP + " 8", "line 7: the file should end here, but goes on with '8'"),
        (GAP.replace(" 5 4\n", " 5\n"), "the file ends where a capacity should stand"),
        (GAP.replace("7 2 9", "7 2.5 9"), "line 2: a cost must be a whole number of at least 0, got '2.5'"),
        (GAP.replace("7 2 9", "7 -2 9"), "line 2: a cost must be a whole number of at least 0, got '-2'"),
        (GAP.replace("3 3 3", "3 0 3"), "line 4: a resource use must be a whole number of at least 1, got '0'"),
        (GAP.replace("7 2 9", "7 2 ٣"), "line 2: a cost must be"),
        (GAP.replace("7 2 9", f"7 2 {10**40}"), "line 2: a cost must be"),
    ],
)  # fmt: skip
def test_damaged_assignments(save: Save, text: str, message: str) -> None:
    """The line, what should stand there, and what does."""
    path = save("bad.txt", text)
    with pytest.raises(InputError) as caught:
        import_instance("gap", [path])
    assert message in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_job_that_fits_nowhere_keeps_its_modes(save: Save) -> None:
    """Such an instance is well-formed and infeasible; importing does not hide that."""
    instance = import_instance("gap", [save("tight.txt", GAP.replace("5 4", "2 4"))])
    assert len(instance.tasks[2].modes or ()) == 2


def test_assignment_reaches_the_published_optimum(shared: Path) -> None:
    """The imported costs, solved by an assignment algorithm."""
    instance = import_instance("assignment", [shared / "bench" / "assignment_orlib" / "assign100.txt"])
    costs = [[float(mode.usd) for mode in task.modes or ()] for task in instance.tasks]
    rows, columns = linear_sum_assignment(costs)
    assert sum(costs[i][j] for i, j in zip(rows, columns, strict=True)) == 305


# machines ------------------------------------------------------------------------------------------------------------
def test_job_shop_maps_exactly(save: Save) -> None:
    """Operations follow each other within a job; each machine of an operation is a mode."""
    instance = import_instance("fjsp", [save("two.fjs", "2 3 1.5\n2 2 1 25 2 37 1 3 32\n1 1 2 24\n")])
    tasks = {task.id: task for task in instance.tasks}
    assert options(tasks["1.1"]) == [({"machine1": 1}, 25), ({"machine2": 1}, 37)]
    assert [after.id for after in tasks["1.2"].after] == ["1.1"]
    assert options(tasks["2.1"]) == [({"machine2": 1}, 24)]
    with pytest.raises(InputError, match="line 2: a machine must be a whole number from 1 to 3, got '4'"):
        import_instance("fjsp", [save("bad.fjs", "1 3\n1 1 4 25\n")])


def test_published_job_shops_import(shared: Path) -> None:
    """All files read; the critical path does not exceed the published value."""
    optima = table(shared / "bench" / "fjsp" / "optima.csv")
    for path in sorted((shared / "bench" / "fjsp").glob("*.fjs")):
        bound = critical_path(import_instance("fjsp", [path]))
        values = [int(value) for value in optima[path.stem].values() if value.isdigit()]
        assert not values or bound <= max(values)


def least_tardiness(tasks: tuple[Task, ...]) -> int:
    """Least total weighted tardiness on one machine: dynamic programming over sets of tasks done first."""
    ticks = [(task.modes or ())[0].duration_ticks for task in tasks]
    best = {0: 0}
    for done in range(1, 1 << len(tasks)):
        end = sum(time for j, time in enumerate(ticks) if done >> j & 1)
        best[done] = min(
            best[done & ~(1 << j)] + int(task.weight) * max(0, end - int(task.due_s or 0))
            for j, task in enumerate(tasks)
            if done >> j & 1
        )
    return best[(1 << len(tasks)) - 1]


def test_weighted_tardiness_of_subinstances(shared: Path) -> None:
    """The first 8 jobs of every tenth instance have the published optimum."""
    folder = shared / "bench" / "wt"
    rows = [row for row in table(folder / "optima_subinstances.csv").values() if row["n_first_jobs"] == "8"]
    assert len(rows) > 5
    for row in rows:
        number = int(row["instance"].split("_")[1])
        instance = import_instance("wt", [folder / "wt40.txt"], number=number, first=8)
        assert instance.name == row["instance"]
        assert least_tardiness(instance.tasks) == int(row["sum_wT_subset_dp"])
    assert len(import_instance("wt", [folder / "wt50.txt"], number=125).tasks) == 50


def test_parts_of_files_that_do_not_exist(save: Save) -> None:
    """Number and jobs must fit the file."""
    path = save("wt3.txt", "1 2 3 4 5 6 7 8 9")
    assert [task.due_s for task in import_instance("wt", [path], jobs=3).tasks] == [7, 8, 9]
    for wrong, message in (
        ({}, "say how many jobs"),
        ({"jobs": 2}, "not instances of 2"),
        ({"jobs": 3, "number": 2}, "holds 1"),
    ):
        with pytest.raises(InputError, match=message):
            import_instance("wt", [path], **wrong)


def test_knapsack_as_late_tasks(shared: Path) -> None:
    """Sum of profits minus least weight of late tasks is the knapsack's optimum."""
    folder = shared / "bench" / "knapsack_late"
    for name in ("f3_l-d_kp_4_20", "f1_l-d_kp_10_269", "knapPI_1_100_1000_1"):
        instance = import_instance("knapsack", [folder / f"{name}.txt"])
        capacity = int(instance.tasks[0].due_s or 0)
        best = [0] * (capacity + 1)
        for task in instance.tasks:
            ticks, profit = (task.modes or ())[0].duration_ticks, int(task.weight)
            for room in range(capacity, ticks - 1, -1):
                best[room] = max(best[room], best[room - ticks] + profit)
        late = sum(int(task.weight) for task in instance.tasks) - best[capacity]
        row = table(folder / "optima.csv")[name]
        assert original_value(instance, late) == int(row["knapsack_optimum"])


def test_times_to_compute_are_exact(shared: Path) -> None:
    """Minimum completion time, in the order of the file, gives the published makespan to the last decimal."""
    folder = shared / "bench" / "hcsp_braun"
    instance = import_instance("etc", [folder / "u_c_lolo.0"])
    ready: dict[str, int] = {}
    for task in instance.tasks:
        node, end = min(
            (
                (mode.uses[0].node, ready.get(mode.uses[0].node, 0) + mode.duration_ticks)
                for mode in task.modes or ()
            ),
            key=lambda pair: pair[1],
        )
        ready[node] = end
    published = table(folder / "bounds_and_heuristics.csv")["u_c_lolo.0"]
    makespan = max(ready.values()) * Fraction(instance.tick_seconds)
    assert f"{float(makespan):.3f}" == published["mct_computed_here"]


# formats -------------------------------------------------------------------------------------------------------------
def test_registry() -> None:
    """Names are sorted and described; unknown ones, options and numbers of files are refused."""
    assert format_names() == sorted(FORMATS)
    assert {"gap", "psplib-mm"} <= set(format_names())
    assert {row["name"]: row["options"] for row in describe_formats()}["gap"] == ["maximise"]
    with pytest.raises(InputError, match="unknown format 'xyz'; known: assignment, "):
        import_instance("xyz", ["a"])
    with pytest.raises(InputError, match=r"options\.maximise: psplib-mm has no such option; known: none"):
        import_instance("psplib-mm", ["a"], maximise=True)
    with pytest.raises(InputError, match="exactly one file, got 2"):
        import_instance("gap", ["a", "b"])
    with pytest.raises(InputError, match=r"none\.txt"):
        import_instance("gap", ["none.txt"])


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_a_short_file_with_large_numbers_is_refused_at_once(save: Save, name: str) -> None:
    """Nothing is made from the counts of a head before what it announces has been read."""
    for text in ("100000000 100000000\n", "1 100000000 1\n1 1 1 5\n", f"{10**15} {10**15} {10**15} {10**15}"):
        began = time.perf_counter()
        with pytest.raises(InputError):
            import_instance(name, [save("large.txt", text)])
        assert time.perf_counter() - began < 1


@pytest.mark.parametrize(
    "label", ["renewable                 :  2", "nonrenewable              :  0", "sink ):  5"]
)
@pytest.mark.parametrize("digits", [8, 15, 5000])
def test_large_counts_of_projects_are_refused_at_once(save: Save, label: str, digits: int) -> None:
    """They contradict what stands in the file, or are no number that anyone means."""
    text = PROJECT.replace(label, label[:-1] + "9" * digits)
    assert text != PROJECT
    with pytest.raises(InputError):
        import_instance("psplib-mm", [save("p.mm", text)])


@pytest.mark.parametrize("value", [False, "false", "False", "no", "off", "0"])
def test_an_option_that_says_no(save: Save, value: object) -> None:
    """The text "false" is not true: the values are costs, as without the option."""
    path = save("small.txt", GAP)
    assert import_instance("gap", [path], maximise=value).sha256 == import_instance("gap", [path]).sha256


@pytest.mark.parametrize("value", [True, "true", "True", "YES", "on", "1"])
def test_an_option_that_says_yes(save: Save, value: object) -> None:
    """All ways to say so give a maximisation."""
    instance = import_instance("gap", [save("small.txt", GAP)], maximise=value)
    assert instance.meta["original"]["sense"] == "max"


def test_options_are_read_from_text(save: Save) -> None:
    """The second of two instances of two jobs, cut to its first job, whose due date 8 becomes 8 * 3 // 7."""
    path = save("wt2.txt", "1 1 1 1 5 5 3 4 1 1 8 9")
    chosen = {"jobs": 2, "number": 2, "first": 1}
    instance = import_instance("wt", [path], **{name: str(value) for name, value in chosen.items()})
    assert instance.sha256 == import_instance("wt", [path], **chosen).sha256
    assert [task.due_s for task in instance.tasks] == [3]


WRONG_OPTIONS = [(name, option, kind) for name in FORMATS for option, kind in FORMATS[name].options.items()]


@pytest.mark.parametrize(("name", "option", "kind"), WRONG_OPTIONS)
@pytest.mark.parametrize(
    "value", ["abc", "", "-1", "1.5", "2x", "9" * 5000, "nan", "\u0663", -1, 0.5, None, [1]]
)
def test_wrong_option_values_are_refused(name: str, option: str, kind: Kind, value: object) -> None:
    """Before the file is looked at; the message says what is allowed."""
    wanted = {bool: "true or false", int: "a whole number of at least 1"}[kind.type]
    with pytest.raises(InputError, match=rf"^options\.{option}: must be {wanted}, got "):
        import_instance(name, ["none.txt"], **{option: value})


def test_the_command_reads_options_as_python_does(save: Save, tmp_path: Path) -> None:
    """`optalloc import --option NAME=VALUE`."""
    wt, gap = save("wt2.txt", "1 1 1 1 5 5 3 4 1 1 8 9"), save("small.txt", GAP)
    for name, path, options in (
        ("wt", wt, {"jobs": 2, "number": 2, "first": 1}),
        ("gap", gap, {"maximise": False}),
        ("gap", gap, {"maximise": True}),
    ):
        out = tmp_path / "out.json"
        pairs = [f"--option={option}={value}" for option, value in options.items()]
        ran = CliRunner().invoke(app, ["import", name, str(path), "--out", str(out), *pairs])
        assert ran.exit_code == 0
        assert read_instance(out).sha256 == import_instance(name, [path], **options).sha256
    ran = CliRunner().invoke(app, ["import", "gap", str(gap), "--out", str(out), "--option", "maximise=abc"])
    assert (ran.exit_code, ran.stderr) == (2, "options.maximise: must be true or false, got 'abc'\n")


def test_all_wrong_options_at_once() -> None:
    """Unknown ones and wrong values."""
    with pytest.raises(InputError) as caught:
        import_instance("wt", ["none.txt"], numbr=1, jobs="x", first=0)
    assert [fault.path for fault in caught.value.faults] == ["options.numbr", "options.jobs", "options.first"]
    assert "did you mean 'number'?" in str(caught.value)


@pytest.mark.parametrize("name", sorted(FORMATS))
@pytest.mark.parametrize(
    "text", ["", "{}", "1", "0 0", "-1 -1", "a b c", "1 1 1 1 1 1 1 1", "9" * 50, "\0", "1e5 2"]
)
def test_nonsense_is_a_fault_or_an_instance(save: Save, name: str, text: str) -> None:
    """No text makes an importer fail with anything but a fault."""
    with contextlib.suppress(InputError):
        import_instance(name, [save("any.txt", text)])


def test_imported_instances_survive_their_file(save: Save, tmp_path: Path) -> None:
    """What was imported reads back with the same hash."""
    for name, path in (("psplib-mm", save("a.mm", PROJECT)), ("gap", save("a.txt", GAP))):
        instance = import_instance(name, [path])
        write_instance(instance, tmp_path / "out.json")
        assert read_instance(tmp_path / "out.json").sha256 == instance.sha256
