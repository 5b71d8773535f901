"""Instance files in and out: literals, compression, damage, versions, size."""

import gzip
import json
import re
import time
from pathlib import Path

import pytest
from support.documents import Document, faults_of, full

from optalloc.errors import InputError
from optalloc.instance import Instance, read_instance, read_text, write_instance
from optalloc.io import migrations
from optalloc.io.reading import read


@pytest.fixture
def document() -> Document:
    """A fresh full instance."""
    return full()


def small_case_files(shared: Path) -> list[Path]:
    """The instances with independently computed answers."""
    files = sorted((shared / "bench" / "small_cases").glob("*.json"))
    return [path for path in files if not path.name.endswith(".expected.json")]


def test_small_cases_survive_reading_and_writing(shared: Path, tmp_path: Path) -> None:
    """All of them read, and come back from both kinds of file with the same content and hash."""
    files = small_case_files(shared)
    assert len(files) >= 44
    for path in files:
        instance = read_instance(path)
        for name in ("again.json", "again.json.gz"):
            write_instance(instance, tmp_path / name)
            again = read_instance(tmp_path / name)
            assert again == instance
            assert again.sha256 == instance.sha256
            assert json.loads(again.canonical()) == json.loads(path.read_text())


def test_literals_and_keys_are_kept(tmp_path: Path) -> None:
    """Numbers stay as written, explicit nulls stay, nothing is added."""
    text = """{"format": "optalloc-instance/1", "name": "x", "tick_seconds": 60.0, "money_unit_usd": 1E-2,
      "sites": [{"id": "a", "storage_gb": null}, {"id": "b", "storage_gb": 0.10}],
      "meta": {"n": -0, "big": 1e300}}"""
    with pytest.raises(InputError, match=r"meta.big: must not exceed 2\^53"):
        read_text(text)
    write_instance(read_text(text.replace(', "big": 1e300', "")), tmp_path / "x.json")
    written = (tmp_path / "x.json").read_text(encoding="utf-8")
    for part in (
        '"tick_seconds": 60.0',
        '"money_unit_usd": 1E-2',
        '"storage_gb": 0.10',
        '"storage_gb": null',
        '"n": -0',
    ):
        assert part in written
    assert "tier" not in written


def test_compressed_files_are_reproducible(document: Document, tmp_path: Path) -> None:
    """Equal content gives equal bytes, and gzip is told by content rather than by name."""
    instance = read_instance(document)
    write_instance(instance, tmp_path / "a.json.gz")
    first = (tmp_path / "a.json.gz").read_bytes()
    write_instance(instance, tmp_path / "a.json.gz")
    assert (tmp_path / "a.json.gz").read_bytes() == first
    (tmp_path / "b.json").write_bytes(first)
    assert read_instance(tmp_path / "b.json") == instance
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json.gz", "b.json"]


def test_a_byte_order_mark_is_tolerated(document: Document, tmp_path: Path) -> None:
    """Editors on some systems write one."""
    (tmp_path / "bom.json").write_text(json.dumps(document), encoding="utf-8-sig")
    assert read_instance(tmp_path / "bom.json") == read_instance(document)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not JSON"),
        (b"{", "is not JSON: Expecting property name"),
        (b'{"name": 01}', "line 1, column"),
        (b"[1, 2]", "must be an object, got a list"),
        (b"null", "must be an object, got null"),
        (b"{} {}", "is not JSON: Extra data"),
        (b"{'name': 1}", "is not JSON"),
        ('{"name": "é"}'.encode("latin-1"), "is not UTF-8 text (byte 10)"),
        ('{"name": "x"}'.encode("utf-16"), "is not UTF-8"),
        (b"\x1f\x8b broken", "damaged gzip file"),
        (gzip.compress(b'{"name": "x"}', mtime=0)[:-6], "damaged gzip file"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"name": "x", "meta": ' + b'{"a":' * 200 + b"1" + b"}" * 201, "nested more than 60 deep"),
        (b'{"tick_seconds": ' + b"9" * 10_000 + b"}", "must not exceed 2^53"),
        (b'{"tick_seconds": 1e999999999999999999999}', "tick_seconds: must not exceed 2^53 in magnitude, got 1e99"),
        (b'{"tick_seconds": 1e999999999}', "tick_seconds: must not exceed 2^53 in magnitude, got 1e999999999"),
        (b'{"meta": {"x": -1e999999999}}', "meta.x: must not exceed 2^53 in magnitude, got -1e999999999"),
        (b'{"tasks": [{"samples": 1e999999999}]}', "tasks[0].samples: must not exceed 2^53 in magnitude"),
        (b'{"tick_seconds": 1e-999999999999999999999}', "more than 30 decimals"),
        (b'{"tick_seconds": 1e-999999999}', "more than 30 decimals"),
        (b'{"name": "\\ud800"}', "valid Unicode"),
        (b'{"meta": {"a": "\\ud800"}}', "valid Unicode"),
        (b'{"tick_seconds": NaN}', "must be a finite number"),
        (b'{"tick_seconds": -Infinity}', "must be a finite number"),
    ],
)  # fmt: skip
def test_damaged_files(tmp_path: Path, content: bytes, message: str) -> None:
    """Whatever a file holds, the answer is a fault that names it, never a traceback."""
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        read_instance(path)
    assert all(fault.source == str(path) for fault in caught.value.faults)


def test_duplicate_keys_are_faults_wherever_they_are(tmp_path: Path) -> None:
    """A key given twice in an object is refused: most readers would keep the last without a word."""
    text = """{"format": "optalloc-instance/1", "name": "x", "name": "y",
      "sites": [{"id": "a"}, {"id": "b", "tier": "edge", "tier": "cloud"}],
      "meta": {"deep": [{"k": 1, "k": 1, "k": 2}]}}"""
    with pytest.raises(InputError) as caught:
        read_text(text, "f.json")
    assert [fault.path for fault in caught.value.faults] == ["name", "sites[1].tier", "meta.deep[0].k"]
    assert all("more than once" in fault.message for fault in caught.value.faults)


def test_missing_files_and_folders(tmp_path: Path) -> None:
    """They are faults as well."""
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(InputError, match=re.escape(str(path))):
            read_instance(path)
    with pytest.raises(InputError, match="neither a file nor"):
        read("no-such-instance")


def test_size_limit_counts_decompressed_bytes(tmp_path: Path) -> None:
    """A small file that unpacks to a large one is not unpacked further than the limit."""
    bomb = tmp_path / "bomb.json.gz"
    bomb.write_bytes(gzip.compress(b" " * 5_000_000))
    assert bomb.stat().st_size < 10_000
    with pytest.raises(InputError, match="larger than 1000000 bytes"):
        read_instance(bomb, max_bytes=1_000_000)
    plain = tmp_path / "plain.json"
    plain.write_bytes(b" " * 2000)
    with pytest.raises(InputError, match="larger than 1000 bytes"):
        read_instance(plain, max_bytes=1000)


def test_writing_is_whole_or_not_at_all(
    document: Document, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the last step fails the old file is untouched and nothing is left behind."""
    path = tmp_path / "x.json"
    write_instance(read_instance(document), path)
    before = path.read_bytes()

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_instance(Instance(name="other"), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("optalloc-instance/2", "is newer"),
        ("optalloc-instance/1.9", "is newer"),
        ("optalloc-instance/0", "another major"),
    ],
)
def test_other_versions_are_refused(document: Document, version: str, message: str) -> None:
    """Newer files ask for an update; other major versions are not guessed at."""
    assert message in faults_of(document | {"format": version})["format"]


def test_migrations_run_step_by_step(document: Document, monkeypatch: pytest.MonkeyPatch) -> None:
    """A document of an earlier minor version passes through one function per step."""

    def rename(old: Document) -> Document:
        return {("name" if key == "title" else key): value for key, value in old.items()}

    def units(old: Document) -> Document:
        return old | {"tick_seconds": old["tick_seconds"] * 60}

    monkeypatch.setattr(migrations, "STEPS", {0: rename, 1: units})
    monkeypatch.setattr(migrations, "MINOR", 2)
    old = {("title" if key == "name" else key): value for key, value in document.items()}
    new = migrations.migrate(old | {"format": "optalloc-instance/1.0"})
    assert (new["name"], new["tick_seconds"], new["format"]) == ("full", 1800, "optalloc-instance/1")


def test_ten_thousand_tasks_read_quickly(document: Document, tmp_path: Path) -> None:
    """A large file takes about a second of processor time."""
    document.pop("state")
    tasks = [
        dict(document["tasks"][0], id=f"t{i}", after=[{"id": f"t{i - 1}"}] if i else [])
        for i in range(10_000)
    ]
    path = tmp_path / "large.json"
    path.write_text(json.dumps(document | {"tasks": tasks}), encoding="utf-8")
    began = time.process_time()
    instance = read_instance(path)
    assert time.process_time() - began < 5
    assert len(instance.tasks) == 10_000
