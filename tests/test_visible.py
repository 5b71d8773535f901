"""Ids hold any characters; what reaches a terminal shows control characters instead of sending them."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from optalloc.cli.app import app
from optalloc.errors import visible, visible_lines

NASTY = "\x1b[31m\x00\x07\x9b2J\u202e\u2028\x7f"
SHOWN = r"\x1b[31m\x00\x07\x9b2J\u202e\u2028\x7f"
COMMANDS = set("\x1b\x00\x07\x9b\u202e\u2028\x7f")


def test_control_characters_are_written_out() -> None:
    """All else stays as it is."""
    assert visible(NASTY) == SHOWN
    assert visible("a\nb\tc\r") == r"a\nb\tc\r"
    assert visible_lines("a\nb\x1b") == "a\nb\\x1b"
    for text in ("", "é 日本 😀 क्", "a\\x1b", "e\u0301", "\u200d"):
        assert visible(text) == visible_lines(text) == text


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """``good.json``; ``bad.json``, two of whose tasks have one id; a plan of nothing. All names are nasty."""
    modes = [{"id": "m", "uses": [{"node": NASTY, "devices": 1}], "duration_ticks": 2}]
    document = {
        "format": "optalloc-instance/1",
        "name": NASTY,
        "sites": [{"id": NASTY}],
        "device_types": [{"id": NASTY}],
        "nodes": [{"id": NASTY, "site": NASTY, "device_type": NASTY, "devices": 1}],
        "tasks": [{"id": NASTY, "modes": modes, "deadline_s": 60}],
    }
    (tmp_path / "good.json").write_text(json.dumps(document))
    (tmp_path / "bad.json").write_text(json.dumps(document | {"tasks": document["tasks"] * 2}))
    (tmp_path / "plan.json").write_text(
        json.dumps(
            {"format": "optalloc-schedule/1", "instance": NASTY, "tasks": [{"task": NASTY, "rejected": True}]}
        )
    )
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["solve", "good.json", "--solver", "wspt"], 3),
        (["solve", "bad.json", "--solver", "wspt"], 2),
        (["verify", "good.json", "plan.json"], 1),
        (["export", "bad.json", "--to", "lp", "--out", "model.lp"], 2),
    ],
)
def test_no_command_sends_them(folder: Path, arguments: list[str], code: int) -> None:
    """Neither tables nor faults nor broken rules."""
    given = [str(folder / word) if "." in word else word for word in arguments]
    ran = CliRunner().invoke(app, given)
    assert ran.exit_code == code
    assert not COMMANDS & set(ran.stdout + ran.stderr)
    assert r"\x1b[31m" in "".join((ran.stdout + ran.stderr).split())
