"""Tables at every width: nothing is lost, no word is broken while there is room for it."""

import io
import re

import pytest
from rich.console import Console

from optalloc.comparison import Comparison, Row
from optalloc.grid import Grid
from optalloc.report import comparison_tables

METRICS = {
    "makespan_hours": 18.5,
    "mean_flow_hours": 4.5,
    "cost_usd": 753.45,
    "moved_gb": 1281.0,
    "matching_ratio": 0.814,
    "utilisation": 0.35,
    "due_met": 1.0,
}


def printed(grid: Grid, width: int) -> list[str]:
    """Lines as a terminal of that width shows them."""
    stream = io.StringIO()
    Console(file=stream, width=width).print(grid)
    return stream.getvalue().splitlines()


def comparison(seeds: int = 1) -> Comparison:
    """Two solvers on one instance."""
    rows = [
        Row(
            "real-8",
            name,
            seed,
            "FEASIBLE",
            "COMPLETED",
            91267,
            None,
            0.0342,
            metrics=METRICS,
            weight_scale=100,
        )
        for name in ("joint-greedy", "my.module:scheduler")
        for seed in range(seeds)
    ]
    return Comparison(rows, {})


@pytest.mark.parametrize("width", [45, 60, 80, 100, 120, 160, 200])
@pytest.mark.parametrize("seeds", [1, 2])
def test_a_comparison_fits_every_terminal(width, seeds):
    """Every line is within the width, every word is whole, and each part begins with the solver."""
    lines = printed(comparison_tables(comparison(seeds))[0], width)
    assert max(map(len, lines)) <= width
    words = [re.split(r"\s{2,}", line.strip()) for line in lines]
    cells = [cell for line in words for cell in line]
    for value in ("FEASIBLE", "912.67", "3.42%", "18.5", "753.45", "1,281", "0.814", "35%", "100%"):
        assert cells.count(value) == 2 * seeds, value
    parts = sum(line[0] == "joint-greedy" for line in words) // seeds
    assert sum(line[0] == "my.module:scheduler" for line in words) == parts * seeds
    assert (parts == 1) == (width >= 160)
    for heading in ("objective", "makespan", "matching", "seconds"):
        assert sum(heading in line for line in lines) == 1, heading


def test_text_wraps_between_words_and_stands_on_the_left():
    """As the summaries of a list do; numbers stand on the right."""
    grid = Grid(
        "solvers", ["name", "summary", "n"], [["a", "time-indexed MILP, solved", "7"], ["b", "x", "12"]]
    )
    lines = [line.rstrip() for line in printed(grid, 32)]
    assert "  a      time-indexed        7" in lines
    assert "         MILP, solved" in lines
    assert "  b      x                  12" in lines


def test_a_word_that_is_too_long_is_folded():
    """Rather than cut off."""
    word = "x" * 50
    lines = printed(Grid("long", ["key", "value"], [["k", word]]), 30)
    assert max(map(len, lines)) <= 30
    assert "".join(lines).count("x") == 50


def test_wide_characters_and_markup_are_text():
    """A character of two columns counts as two; brackets are no markup."""
    lines = printed(Grid("[bold]", ["name", "n"], [["日本語", "1"], ["[red]", "2"]]), 40)
    assert lines[0].strip() == "[bold]"
    assert "  日本語   1  " in lines
    assert "  [red]    2  " in lines


@pytest.mark.parametrize("rows", [[], [["a", "b"]]])
def test_tables_without_rows_or_headings(rows):
    """Nothing to show is no error."""
    assert printed(Grid("", ["", ""], rows), 80)
    assert printed(Grid("only", ["key"], [row[:1] for row in rows]), 80)[0].strip() == "only"
