"""What the tables of learned schedulers tell: dead ends, other weights, spread between training runs, pairs."""

import argparse
import dataclasses
import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

import learned  # noqa: E402
import learned_report as report  # noqa: E402
from learned import BASE, REFERENCE, Case, Row  # noqa: E402


def row(solver: str, seed: int, objective: int | None, **more: object) -> Row:
    """A stored run that nobody has run."""
    case = Case("contended", 20, "", "1", seed)
    status = "FEASIBLE" if objective is not None else "UNKNOWN"
    return dataclasses.replace(Row(case, solver, status, objective, None, 1.0, "abc"), **more)


def rows_of(solver: str, *objectives: int | None) -> list[Row]:
    """One on each instance."""
    return [row(solver, seed, objective) for seed, objective in enumerate(objectives)]


def line_of(name: str, rows: list[Row]) -> list[str]:
    """The first line of a solver in the tables."""
    (text,) = report.tables(rows).values()
    return next(
        [c.strip() for c in t.split("|")[1:-1]] for t in text.splitlines() if t.startswith(f"| {name} |")
    )


RULE = rows_of(BASE, 100, 100, 100)


def test_dead_ends_are_told_and_compared_with_nobody():
    """Two of three plans of the first weights; the instance of the third counts for neither."""
    rows = [*RULE, *rows_of("fdqn@contended-40-0", 90, 90, None), *rows_of("fdqn@contended-40-1", 90, 90, 10)]
    line = line_of("fdqn of contended-40", rows)
    assert line[1] == "5 of 6"
    assert line[2] == "0.900 [0.900, 0.900]"
    assert line_of(BASE, rows)[1] == "3 of 3"


def test_an_instance_without_all_weights_is_not_compared_yet():
    """While runs are going on."""
    rows = [*RULE, *rows_of("fdqn@contended-40-0", 90, 90, 90), *rows_of("fdqn@contended-40-1", 110)]
    assert line_of("fdqn of contended-40", rows)[2].startswith("1.000 ")


def test_weights_of_other_instances_have_a_line_of_their_own():
    """What was learned elsewhere, or of a mixture, is not mixed up with what was learned here."""
    others = [*rows_of("fdqn@market-40-0", 120, 120, 120), *rows_of("fdqn@contended+market-40-0", 80, 80, 80)]
    rows = [*RULE, *rows_of("fdqn@contended-40-0", 90, 90, 90), *others]
    found = [
        line_of(name, rows)[2][:5]
        for name in ("fdqn of contended-40", "fdqn of market-40", "fdqn of contended+market-40")
    ]
    assert found == ["0.900", "1.200", "0.800"]


def test_intervals_hold_the_spread_between_training_runs():
    """All instances are alike, the weights are not."""
    rows = [
        *RULE,
        *rows_of("fdqn@contended-40-0", 80, 80, 80),
        *rows_of("fdqn@contended-40-1", 120, 120, 120),
    ]
    assert line_of("fdqn of contended-40", rows)[2] == "1.000 [0.800, 1.200]"
    alike = [*RULE, *rows_of("fdqn@contended-40-0", 80, 100, 120)]
    low, high = (float(text) for text in line_of("fdqn of contended-40", alike)[2][7:-1].split(", "))
    assert low == pytest.approx(0.8)
    assert high == pytest.approx(1.2)


def test_learners_are_compared_in_pairs():
    """Instance by instance: what both find hard cancels out."""
    rows = [
        *RULE,
        *rows_of("fdqn@contended-40-0", 50, 500, 5000),
        *rows_of("additive@contended-40-0", 100, 1000, 5000),
    ]
    (text,) = report.tables(rows).values()
    assert (
        "| fdqn of contended-40 over additive of contended-40 | 0.667 [0.500, 1.000] | 2 of 3 | 0 of 3 |"
        in text
    )


def test_tables_do_not_depend_on_the_order_in_which_runs_end():
    """Means and intervals to the last digit."""
    solvers = (BASE, "tetris", "fdqn@contended-40-0", "fdqn@contended-40-1", "additive@contended-40-0")
    rows = [row(name, seed, 90 + 7 * seed + at) for seed in range(9) for at, name in enumerate(solvers)]
    assert report.tables(rows) == report.tables(rows[::-1])


def test_gaps_and_measures():
    """To the bound of the reference; other figures as means over the plans."""
    rows = [*RULE, *rows_of("fdqn@contended-40-0", 80, 80, 80)]
    rows = [dataclasses.replace(one, measures={"utilisation": 0.5 + one.case.seed / 4}) for one in rows]
    rows += [row(f"{REFERENCE}@20", seed, 70, bound=60) for seed in range(3)]
    rows += [row(f"{REFERENCE}@5", seed, 90, bound=10, seconds=0.5) for seed in range(3)]
    assert line_of("fdqn of contended-40", rows)[5:7] == ["25.0%", "0.50"]
    (text,) = report.tables(rows).values()
    assert "| fdqn of contended-40 | - | - | 0.75 |" in text


def test_plans_are_compared_in_more_than_the_objective():
    """What one of them does not tell is left out."""
    mine = [dataclasses.replace(one, measures={"utilisation": 0.8}) for one in rows_of("fdqn", 80, 90, 90)]
    other = [
        dataclasses.replace(one, measures={"utilisation": use})
        for one, use in zip(rows_of("online-compute-centric", 100, 100, 100), (0.4, 0.4, None), strict=True)
    ]
    line = report.pairs([*RULE, *mine, *other]).splitlines()[-1]
    assert line.startswith(
        "| fdqn over online-compute-centric | contended, 20 tasks, coupling 1 | 0.867 [0.8"
    )
    assert line.endswith("| - | - | - | 2.000 [2.000, 2.000] | - |")


def test_the_page_is_filled_or_refused():
    """Without a place for the tables nothing would be written."""
    places = "a\n<!-- comparison -->\nold\n<!-- end -->\n<!-- curves -->\nold\n<!-- end -->\nb"
    page = report.filled(places, RULE)
    assert page.startswith("a\n<!-- comparison -->\n| instances | number | best rule |")
    assert "| contended, 20 tasks, coupling 1 | 3 | replan-index 1.000 |" in page
    assert "**contended, 20 tasks, coupling 1** (3 instances)" in report.detailed(RULE)
    assert page.endswith("<!-- end -->\nb")
    assert "old" not in page
    with pytest.raises(ValueError, match="no lines"):
        report.filled("a", RULE)


def test_the_pages_agree_with_what_is_stored():
    """Else: python benchmarks/learned.py report --docs."""
    rows, page = learned.stored(), report.PAGE.read_text(encoding="utf-8")
    assert report.filled(page, rows) == page
    assert report.detailed(rows) == report.DETAILS.read_text(encoding="utf-8")


def test_learning_is_told_by_the_best_look_so_far(tmp_path):
    """A mean over the runs with the least and the largest; no column beyond the longest run.

    The last look, which comes when the time is over, is the best of its run.
    """
    for seed, looks in enumerate(
        [
            [(0, 0.0, 1.0), (20, 70.0, 0.9), (30, 110.0, 1.2), (40, 125.0, 0.7)],
            [(0, 0.0, 1.0), (30, 50.0, 0.8)],
        ]
    ):
        run = tmp_path / f"fdqn-market-40-rule-{seed}"
        run.mkdir()
        (run / "fdqn.safetensors").touch()
        (run / "fdqn.json").write_text(json.dumps({"args": {"minutes": 2.0}}))
        lines = [dict(zip(("iteration", "seconds", "ratio"), look, strict=True)) for look in looks]
        (run / "log.jsonl").write_text("\n".join(map(json.dumps, lines)))
    line = report.curves(tmp_path).splitlines()[-1]
    told = ["1.000 [1.000, 1.000]", "0.900 [0.800, 1.000]", "0.750 [0.700, 0.800]", *"------"]
    assert line == f"| market-40-rule | fdqn | 2 | 30 to 40 | {' | '.join(told)} |"


# running ------------------------------------------------------------------------------------------
def test_training_that_was_cut_short_goes_on(tmp_path, monkeypatch):
    """Weights are there from the first look on; only the seconds tell that a run is over."""
    monkeypatch.setattr(learned, "RESULTS", tmp_path)
    chosen = argparse.Namespace(
        presets=["contended"],
        learners=["fdqn"],
        seeds=3,
        minutes=1.0,
        tasks=40,
        coupling="1",
        index=False,
        imitate=False,
    )
    for seed, seconds in ((0, 60.1), (1, 20.0)):
        path = learned.weights("fdqn", "contended", seed, chosen)
        path.parent.mkdir(parents=True)
        path.touch()
        path.with_suffix(".json").write_text(json.dumps({"seconds": seconds}))
    found = learned.unfinished(chosen)
    assert [words[words.index("--seed") + 1] for words in found] == ["1", "2"]
    assert ["--resume" in words for words in found] == [True, False]


def test_runs_that_failed_are_done_again(tmp_path, monkeypatch):
    """Others are not."""
    monkeypatch.setattr(learned, "ROWS", tmp_path / "rows.jsonl")
    rows = [row(BASE, 0, 100, measures={"utilisation": 0.5}), row(BASE, 1, None, status="ERROR: no")]
    monkeypatch.setattr(learned, "RESULTS", tmp_path)
    learned.save(rows)
    assert learned.stored() == rows
    assert learned.kept() == rows[:1]


def test_a_fault_in_one_run_ends_no_other(monkeypatch):
    """It is told in its row."""
    monkeypatch.setattr(learned.oa, "solve", lambda *_, **__: 1 / 0)
    found = learned.measure(Case("contended", 6, "", "1", 0), BASE, "abc")
    assert found.status.startswith("ERROR: ZeroDivisionError")


def test_what_a_run_measures():
    """A rule on a small instance."""
    found = learned.measure(Case("contended", 6, "", "1", 0), BASE, "abc")
    assert (found.status, set(found.measures)) == ("FEASIBLE", set(learned.MEASURES))
    assert 0 < found.measures["utilisation"] <= 1
    assert found.objective > 0
