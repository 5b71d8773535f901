"""Gantt charts: every text is drawn as it is, whatever the ids hold."""

import json
import struct
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from optalloc.compilation import compile as compile_problem
from optalloc.instance import read_text
from optalloc.plotting.page import write_gantt
from optalloc.problem import Plan, Problem
from optalloc.solvers.run import solve

KINDS = ("sites", "datasets", "nodes", "tasks")


def document(suffix: str) -> dict[str, Any]:
    """Two runs on data that one of them has to fetch; each id ends in ``suffix``."""
    far, near, data, node = (f"{name}{suffix}" for name in ("far", "near", "data", "node"))
    task = {"model": "m", "samples": 3600, "device_counts": [1], "datasets": [data]}
    return {
        "format": "optalloc-instance/1",
        "name": f"plot{suffix}",
        "tick_seconds": 600,
        "sites": [{"id": far}, {"id": near}],
        "links": [{"id": "link", "from": far, "to": near, "bandwidth_gbps": 1}],
        "datasets": [{"id": data, "size_gb": 10, "sites": [far], "relevance": {"d": 1}}],
        "device_types": [{"id": "gpu"}],
        "nodes": [{"id": node, "site": near, "device_type": "gpu", "devices": 2}],
        "models": [{"id": "m", "domain": "d"}],
        "throughputs": [{"model": "m", "device_type": "gpu", "measured": {"1": 1}}],
        "tasks": [{"id": f"{name}{suffix}", **task} for name in ("a", "b")],
        "objective": {"levels": [{"makespan": 1}]},
    }


def solved(suffix: str) -> tuple[Problem, Plan]:
    """The instance with such ids and a plan."""
    problem = compile_problem(read_text(json.dumps(document(suffix))))
    plan = solve(problem, "wspt").plan
    assert plan is not None
    assert len(plan.transfers) == 1
    return problem, plan


class Words(HTMLParser):
    """The texts of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_data(self, data: str) -> None:
        self.found.append(data.strip())


SUFFIXES = {
    "$x_{y}$": "$x_{y}$",
    r"$\frac$": r"$\frac$",
    r"\$": r"\$",
    "$": "$",
    "$$": "$$",
    "<b>&amp;": "<b>&amp;",
    "{title}": "{title}",
    "a\nb\tc": r"a\nb\tc",
    "\x00\x1b[31m\x7f": r"\x00\x1b[31m\x7f",
    "\u202e\ufffe": r"\u202e\ufffe",
}
"""Ends of ids -> as they are drawn."""


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_ids_are_drawn_literally(suffix: str, tmp_path: Path) -> None:
    """Each id stands in the picture and in the page, neither of which it breaks."""
    problem, plan = solved(suffix)
    shown = SUFFIXES[suffix]
    write_gantt(problem, plan, tmp_path / "p.svg")
    texts = "".join(ElementTree.parse(tmp_path / "p.svg").getroot().itertext())
    for name in ("a", "b", "node", "data", "near", "plot"):
        assert f"{name}{shown}" in texts
    write_gantt(problem, plan, tmp_path / "p.html")
    page = Words()
    page.feed((tmp_path / "p.html").read_text())
    assert {f"{name}{shown}" for name in ("a", "b", "data", "plot")} <= set(page.found)
    write_gantt(problem, plan, tmp_path / "p.png")
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("ending", ["png", "svg", "html"])
def test_characters_that_no_font_has_are_told_in_one_sentence(
    ending: str, tmp_path: Path, recwarn: Any
) -> None:
    """U+0378 is no character, so no font has it; Python's warnings, one for every text, do not reach the user."""
    problem, plan = solved("\u0378")
    notes = write_gantt(problem, plan, tmp_path / f"p.{ending}")
    assert [note[:43] for note in notes] == ["the fonts installed here lack characters of"] * (
        ending == "png"
    )
    assert not recwarn.list
    assert write_gantt(*solved("é"), tmp_path / f"p.{ending}") == []


def test_a_picture_of_many_devices_stays_within_what_can_be_drawn(tmp_path: Path) -> None:
    """3000 lanes of 0.22 inches are 99,000 points at 150 to the inch; 65,535 can be drawn."""
    large = document("")
    large["nodes"][0]["devices"] = 3000
    problem = compile_problem(read_text(json.dumps(large)))
    plan = solve(problem, "wspt").plan
    assert plan is not None
    write_gantt(problem, plan, tmp_path / "p.png")
    width, height = struct.unpack(">II", (tmp_path / "p.png").read_bytes()[16:24])
    assert 60_000 < height < 2**16
    assert width > 500


def test_a_dataset_that_begins_with_an_underscore_is_in_the_legend(tmp_path: Path) -> None:
    """Matplotlib leaves such labels out."""
    text = json.dumps(document("")).replace('"data"', '"_data"')
    problem = compile_problem(read_text(text))
    plan = solve(problem, "wspt").plan
    assert plan is not None
    write_gantt(problem, plan, tmp_path / "p.svg")
    texts = list(ElementTree.parse(tmp_path / "p.svg").getroot().itertext())
    assert sum("_data" in text for text in texts) == 2  # the transfer and the legend


def test_long_ids_leave_room_for_the_chart(tmp_path: Path) -> None:
    """They are cut in the picture; the page lists them whole."""
    problem, plan = solved("x" * 5000)
    write_gantt(problem, plan, tmp_path / "p.html")
    page = (tmp_path / "p.html").read_text()
    assert "x" * 5000 in page
    drawing = page[page.index("<svg") : page.index("</svg>")]
    assert "x" * 60 not in drawing
    assert "…" in drawing
