"""The ladder in small: valid runs, stored one by one and gone on with; tables; what it is compared with."""

import dataclasses
import importlib.util
import sys
from pathlib import Path

import pytest

import optalloc as oa
from optalloc.result import CurvePoint
from optalloc.scope import full_scope

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

import ladder  # noqa: E402
import ladder_parts  # noqa: E402
import ladder_report  # noqa: E402
import ladder_run  # noqa: E402
import peers  # noqa: E402
from ladder_store import CRASHED, ENDED, REFUSED, Part, Run, Spec, Store, code_commit, line_of, read_run  # noqa: E402

needs_pyjobshop = pytest.mark.skipif(
    importlib.util.find_spec("pyjobshop") is None, reason="needs pyjobshop: pip install 'optalloc[peers]'"
)
LIMIT = 1.0


def spec_of(solver: str = "auto", **others: object) -> Spec:
    """A run on the smallest rung."""
    kind = {
        "tasks": 8,
        "load": "3",
        "coupling": "0",
        "objective": "time",
        "seed": 0,
        "limit": LIMIT,
        "threads": 2,
    }
    return Spec(solver=solver, **(kind | others))


def run_of(*curve: tuple[float, int | None, int | None], status: str = "FEASIBLE", **others: object) -> Run:
    """A stored run that nobody has run."""
    spec = spec_of(**{"limit": 60.0, **others})
    reached = ladder_run.reached(curve, ladder_run.CLOSE, spec.limit)
    _, plan, bound = curve[-1] if curve else (0, None, None)
    parts = {"bound": Part(1.5, 0.25, 0.0, 0.125), "search": Part(58.0, 0.5, 0.03, 0.0)}
    return Run(spec, "abc", {"machine": "m"}, status, "", plan, bound, 60.0, reached, 0.5, parts, curve)


# running ---------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def series(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Spec], Store]:
    """Two runs, and between them one whose process dies."""
    folder = tmp_path_factory.mktemp("series")
    code = "import os\n\ndef solve(problem):\n    print('about to die', flush=True)\n    os._exit(7)\n"
    (folder / "deadly.py").write_text(code)
    deadly = spec_of(f"{folder / 'deadly.py'}:solve")
    asked = [spec_of("auto", tasks=6, objective="completion", coupling="1"), deadly, spec_of("auto")]
    store = Store(folder / "results" / "series.jsonl")
    ladder.run_all(asked, store)
    return asked, store


def test_every_run_is_stored_also_after_one_that_crashes(series):
    asked, store = series
    assert [run.spec for run in store] == asked
    assert [run.failed for run in store] == [False, True, False]
    crashed = list(store)[1]
    assert crashed.status == CRASHED
    assert crashed.message == "exit code 7: about to die"


def test_the_smallest_rung_is_valid(series):
    """Bound <= plan; that the plan passes `evaluate` is part of a run (INVALID otherwise)."""
    for run in (run for run in series[1] if not run.failed):
        assert run.status in ("OPTIMAL", "FEASIBLE")
        assert run.plan is not None
        assert run.bound is not None
        assert run.bound <= run.plan
        assert run.curve[-1][1:] == (run.plan, run.bound)
        assert all(b is None or p is None or b <= p for _, p, b in run.curve)
        assert set(run.parts) <= set(ladder_parts.NAMES)
        assert run.commit == code_commit()
        if Path("/proc/self/status").exists():
            assert 0 < run.gigabytes < 20


def test_a_series_goes_on_where_it_was_stopped(series, monkeypatch):
    asked, store = series
    begun: list[Spec] = []

    def begin(spec: Spec, commit: str) -> Run:
        begun.append(spec)
        return dataclasses.replace(run_of((1.0, 5, 5), status="OPTIMAL"), spec=spec, commit=commit)

    monkeypatch.setattr(ladder, "run_apart", begin)
    copied = Store(store.path.with_name("copy.jsonl"))
    for run in list(store)[:2]:
        copied.add(run)
    ladder.run_all(asked, copied)
    assert begun == asked[2:]
    ladder.run_all(asked, copied, retry=True)
    assert begun == [asked[2], asked[1]]
    assert len(list(copied)) == 3
    monkeypatch.setattr(ladder, "code_commit", lambda: "another")
    ladder.run_all(asked, copied)
    assert begun[2:] == asked
    assert len(list(copied)) == 6
    assert len(copied.newest()) == 3


def test_a_run_that_does_not_end_is_ended(tmp_path):
    (tmp_path / "idle.py").write_text("import time\n\ndef solve(problem):\n    time.sleep(600)\n")
    run = ladder.run_apart(spec_of(f"{tmp_path / 'idle.py'}:solve", limit=0.5), "abc", warming=1)
    assert run.status == ENDED
    assert run.failed


def test_a_wrong_plan_is_no_result():
    """The stored figures are checked against the schedule, not taken from the solver."""
    problem = oa.compile(ladder_run.instance_of(spec_of()))
    result = oa.solve(problem, "wspt")
    assert ladder_run.fault_of(result) == ""
    level = dataclasses.replace(result.levels[0], objective=result.levels[0].objective - 1)
    assert "is worth" in ladder_run.fault_of(dataclasses.replace(result, levels=(level,)))
    level = dataclasses.replace(result.levels[0], bound=result.levels[0].objective + 1)
    assert "above the plan" in ladder_run.fault_of(dataclasses.replace(result, levels=(level,)))
    early = dataclasses.replace(result.plan.copy(), start=result.plan.start * 0)
    broken = dataclasses.replace(result, schedule=oa.to_schedule(problem, early))
    assert "breaks" in ladder_run.fault_of(broken)


def test_seed_0_of_everything_comes_first(monkeypatch):
    words = (
        "ladder.py --tasks 20 50 --loads 1 3 --couplings 0 1 --objectives completion flow --seeds 2 --marks 1"
    )
    monkeypatch.setattr(sys, "argv", words.split())
    asked = list(ladder.specs(ladder.arguments()))
    assert len(asked) == len(set(asked)) == 32
    assert [spec.seed for spec in asked] == [0] * 16 + [1] * 16
    assert [spec.tasks for spec in asked[:16]] == [20] * 8 + [50] * 8


# records ---------------------------------------------------------------------------------------------------
def test_stored_runs_are_read_as_they_were():
    run = run_of((0.5, None, 3), (1.25, 10, 4))
    assert read_run(line_of(run)) == run


def test_curves_are_thinned_but_exact_at_marks():
    points = [(k / 100, 10_000 - k, k) for k in range(1, 6001)]
    kept = ladder_run.thinned(points, 60.0)
    run = dataclasses.replace(run_of(*points), curve=kept)
    assert len(kept) < 65
    assert kept[-1] == points[-1]
    for mark in (1, 5, 10, 30, 60):
        assert run.gap_at(mark) == (10_000 - 200 * mark) / (10_000 - 100 * mark)


def test_a_gap_is_known_only_within_the_limit_or_when_proven():
    run = run_of((1.0, None, 5), (2.0, 10, 5), (9.0, 10, 9))
    assert [run.gap_at(mark) for mark in (0.5, 1, 2, 60, 61)] == [None, None, 0.5, 0.1, None]
    assert run_of((9.0, 10, 10), status="OPTIMAL").gap_at(300) == 0


def test_what_is_reached_after_the_limit_does_not_count():
    points = [(1.0, 100, 50), (5.02, 100, 99)]
    assert ladder_run.reached(points, 0.01, 5.0) is None
    assert ladder_run.reached(points, 0.01, 6.0) == 5.02


def test_who_moved_what():
    """From the second plan and the second bound on, as a share of the last plan."""
    events = [
        CurvePoint(0.1, 0, 120, None, "rules"),
        CurvePoint(0.2, 0, 120, 50, "bound"),
        CurvePoint(0.3, 0, 110, 50, "lns"),
        CurvePoint(0.4, 0, 110, 80, "bound"),
        CurvePoint(0.5, 0, 100, 80, "highs"),
        CurvePoint(0.6, 0, 100, 100, "cpsat"),
    ]
    plans, bounds = ladder_run.moves(events)
    assert plans == pytest.approx({"rules": 0, "bound": 0, "search": 0.1, "exact": 0.1})
    assert bounds == pytest.approx({"bound": 0.3, "search": 0, "exact": 0.2})


def test_the_watch_sees_which_part_is_at_work():
    problem = oa.compile(oa.generate("ladder", tasks=20, coupling=0))
    with ladder_parts.Watch() as watch:
        oa.solve(problem, "cpsat", time_limit=1, threads=1)
    assert max(watch.seconds, key=watch.seconds.get) == "exact"
    assert watch.seconds["exact"] > 0.3
    assert "search" not in watch.seconds


# tables ----------------------------------------------------------------------------------------------------
SLOW, FAST = ((1.0, 100, 50), (40.0, 100, 99)), ((1.0, 100, 50), (8.0, 100, 99))


def rows_of(text: str) -> list[list[str]]:
    """Cells of the lines of the first table, without its head."""
    lines = text.split("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_gaps_are_medians_and_times_are_compared_with_auto_on_the_same_instance():
    runs = [run_of(*FAST, seed=seed) for seed in range(3)]
    runs += [run_of(*SLOW, solver="cpsat", seed=seed) for seed in range(2)]
    runs += [run_of((1.0, None, 50), solver="cpsat", seed=2), run_of(solver="highs")]
    auto, cpsat, highs = rows_of(ladder_report.gap_table(runs, [10, 60]))
    assert auto[:8] == ["8", "auto", "3", "1.00%", "1.00%", "0", "8 s", "-"]
    assert cpsat[:8] == ["8", "cpsat", "3", "50.00%", "1.00%", "0", "40 s", "5 x"]
    assert highs[3:8] == ["-", "-", "0", "-", "> 7.5 x"]


def test_a_table_has_rows_by_what_differs():
    runs = [run_of(*FAST, load=load, coupling="1") for load in ("1", "3")]
    assert [row[1] for row in rows_of(ladder_report.gap_table(runs, [60]))] == ["1", "3"]


def test_a_report_names_what_was_used_and_what_was_left_out(tmp_path):
    store = Store(tmp_path / "some.jsonl")
    assert ladder_report.report(store) == ladder_report.NOTHING
    store.add(run_of(*FAST))
    store.add(dataclasses.replace(run_of(solver="pyjobshop"), status=REFUSED, message="no words for it"))
    text = ladder_report.report(store)
    for part in ("Commit abc", "seed 0", "60 s", "2 threads", "| 10 s | 60 s |"):
        assert part in text
    assert "| 8 | auto | search | 1 of 1 | 58.0 s | 0.5 GB | -3.00% | - |" in text
    assert "- pyjobshop, 8 tasks: REFUSED in 1 run: no words for it" in text
    ladder.save(store, None)
    assert store.path.with_suffix(".md").read_text() == text + "\n"
    assert "8 tasks" in store.path.with_suffix(".svg").read_text()


def test_a_picture_is_drawn_also_where_nothing_is_known(tmp_path):
    picture = tmp_path / "empty.svg"
    ladder_report.draw([run_of((61.0, 100, 50)), run_of(tasks=9)], picture)
    assert "9 tasks" in picture.read_text()


def test_the_line_of_a_panel_is_the_median():
    runs = [run_of(*FAST, seed=0), run_of(*SLOW, seed=1), run_of(*SLOW, seed=2)]
    assert ladder_report.median_line(runs) == [(1.0, 50.0), (8.0, 50.0), (40.0, 1.0), (60.0, 1.0)]


def test_the_page_agrees_with_the_stored_runs():
    """Else: python benchmarks/ladder.py --report --docs."""
    text = ladder.PAGE.read_text(encoding="utf-8")
    assert ladder_report.filled(text, ladder.RESULTS) == text
    assert text.count("<!-- table:") == 4


def test_what_is_stored_in_the_repository_stays_small():
    for path in ladder.RESULTS.glob("*.jsonl"):
        assert all(len(run.curve) < 65 for run in Store(path)), path.name
    assert sum(path.stat().st_size for path in ladder.RESULTS.glob("*.jsonl")) < 1_000_000


def test_the_page_is_filled_between_its_markers(tmp_path):
    Store(tmp_path / "one.jsonl").add(run_of(*FAST))
    page = "a\n<!-- table:one -->\nold\n<!-- end -->\nb\n<!-- table:two -->\n<!-- end -->\n"
    filled = ladder_report.filled(page, tmp_path)
    assert "old" not in filled
    assert "| 8 | auto |" in filled
    assert f"<!-- table:two -->\n{ladder_report.NOTHING}\n<!-- end -->" in filled
    assert ladder_report.filled(filled, tmp_path) == filled


# peers -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("preset", "objective"),
    [
        ("ladder", "weighted_completion=1"),
        ("ladder", "weighted_flow=1"),
        ("contended", "weighted_completion=1"),  # cpu and memory beside devices
        ("pipeline", "weighted_completion=1"),  # precedence with lags
    ],
)
@pytest.mark.parametrize(
    "name", ["cpsat-plain", "highs-plain", pytest.param("pyjobshop", marks=needs_pyjobshop)]
)
def test_peers_prove_our_optimum(name, preset, objective):
    """In our units: the bound of each is the objective that `cpsat` proves."""
    instance = oa.with_objective(oa.generate(preset, tasks=6, coupling=0, seed=0), objective)
    ours = oa.solve(instance, "cpsat", time_limit=60, threads=2)
    theirs = oa.solve(instance, peers.PEERS[name], time_limit=60, threads=2)
    assert ours.status is theirs.status is oa.Status.OPTIMAL
    assert theirs.objective == theirs.bound == ours.objective
    assert oa.evaluate(theirs.problem, theirs.schedule).objective == ours.objective


@pytest.mark.parametrize("name", ["cpsat-plain", "highs-plain"])
def test_plain_methods_get_no_plan_of_ours(name):
    """Nobody else is named in the curve, and the first thing known is no plan of a rule."""
    instance = oa.with_objective(oa.generate("ladder", tasks=6, coupling=0, seed=0), "weighted_completion=1")
    result = oa.solve(instance, peers.PEERS[name], time_limit=60, threads=2)
    assert {event.source for event in result.curve} <= {name.removesuffix("-plain"), name}
    assert result.info.get("hint", "none") == "none"
    assert result.info.get("native_start", "none") == "none"


@needs_pyjobshop
@pytest.mark.parametrize(
    ("preset", "coupling", "objective", "reason"),
    [
        ("ladder", 1, "weighted_completion=1", "data that are brought first"),
        ("ladder", 0, "weighted_completion=1,cost=1", "the cost of modes"),
        ("ladder", 0, "makespan=1", "objective terms other"),
        ("ladder", 0, "weighted_completion=1;weighted_flow=1", "several levels"),
        ("edge", 0, "weighted_completion=1,rejected=1", "rejection, calendars"),
    ],
)
def test_what_pyjobshop_cannot_express_is_refused(preset, coupling, objective, reason):
    problem = oa.compile(oa.with_objective(oa.generate(preset, tasks=6, coupling=coupling), objective))
    assert reason in ", ".join(peers.cannot_express(full_scope(problem)))
    with pytest.raises(oa.UnsupportedError, match="PyJobShop cannot express"):
        oa.solve(problem, peers.pyjobshop, time_limit=5)


@needs_pyjobshop
def test_a_run_that_is_refused_is_recorded(monkeypatch):
    monkeypatch.setattr(ladder_run, "warm", lambda solver: None)
    run = ladder_run.measure(spec_of("pyjobshop", coupling="1", tasks=6), "abc")
    assert run.status == REFUSED
    assert "data that are brought first" in run.message
    assert not run.failed
