"""Writing files: whole or not at all, through links, and into what is no file."""

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from optalloc.io.atomic import can_write, open_descriptor, write_bytes, write_text

posix = pytest.mark.skipif(os.name != "posix", reason="links, pipes and permissions of POSIX")


@pytest.fixture
def unprivileged():
    """Permissions bind nobody who is root."""
    if os.name != "posix" or os.geteuid() == 0:
        pytest.skip("needs a user whom permissions bind")


def test_a_file_is_replaced_whole(tmp_path):
    """New, and over an old one; nothing else is left in the folder, however long the name."""
    path = tmp_path / ("x" * 250 + ".json")
    for content in (b"first", b"2"):
        can_write(path)
        write_bytes(path, content)
        assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


@posix
@pytest.mark.parametrize("exists", [True, False])
def test_a_link_stays_a_link(tmp_path, exists):
    """What it leads to, over another link, is written; in the folder of the file."""
    (tmp_path / "data").mkdir()
    target = tmp_path / "data" / "plan.json"
    if exists:
        target.write_text("old")
    (tmp_path / "near.json").symlink_to("data/plan.json")
    link = tmp_path / "far.json"
    link.symlink_to("near.json")
    can_write(link)
    assert target.exists() == exists
    write_text(link, "new")
    assert link.is_symlink()
    assert (tmp_path / "near.json").is_symlink()
    assert target.read_text() == "new"


@posix
def test_a_pipe_is_written_into(tmp_path):
    """The reader gets the content, the pipe is still a pipe."""
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    can_write(pipe)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write_bytes(pipe, b"content")
    reader.join(10)
    assert got == [b"content"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@posix
@pytest.mark.parametrize("name", ["/dev/fd/1", "/proc/self/fd/1"])
@pytest.mark.parametrize("into", ["pipe", "file"])
def test_standard_output_by_name_comes_in_order(tmp_path, name, into):
    """After what was printed before and before what is printed after, also where it leads into a file."""
    code = (
        "from optalloc.io.atomic import can_write, write_text as w; print('before');"
        f"can_write({name!r}); w({name!r}, 'written\\n'); print('after')"
    )
    if into == "pipe":
        out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    else:
        with (tmp_path / "out").open("w") as stream:
            subprocess.run([sys.executable, "-c", code], stdout=stream, check=True)
        out = (tmp_path / "out").read_text()
    assert out.split() == ["before", "written", "after"]


@posix
def test_names_of_what_is_open():
    """Only looked up: a mistake here must not replace a device."""
    named = {"/dev/stdout": 1, "/dev/stderr": 2, "/dev/fd/63": 63, "/proc/self/fd/0": 0}
    others = ("/dev/null", "/dev/stdout/x", "plan/dev/stdout", "/proc/1/fd/1", "stdout")
    assert {name: open_descriptor(name) for name in named} == named
    assert {open_descriptor(Path(name)) for name in others} == {None}


@posix
def test_permissions_of_a_file_that_is_replaced_are_kept(tmp_path):
    """A private file stays private; a new one follows the mask."""
    path = tmp_path / "plan.json"
    write_bytes(path, b"1")
    assert stat.S_IMODE(path.stat().st_mode) & 0o600 == 0o600
    path.chmod(0o600)
    write_bytes(path, b"2")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@posix
def test_a_file_that_may_not_be_written_is_not_replaced(tmp_path, unprivileged):
    """Nor is anything put into a folder that is closed."""
    path = tmp_path / "plan.json"
    path.write_bytes(b"old")
    path.chmod(0o400)
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    for wrong in (path, closed / "plan.json"):
        for attempt in (lambda p: write_bytes(p, b"new"), can_write):
            with pytest.raises(PermissionError):
                attempt(wrong)
    assert path.read_bytes() == b"old"


@pytest.mark.parametrize("wrong", ["nowhere/plan.json", "."])
def test_errors_name_what_was_asked_for(tmp_path, wrong):
    """Not a temporary file."""
    path = tmp_path / wrong
    for attempt in (lambda p: write_bytes(p, b"new"), can_write):
        with pytest.raises(OSError) as caught:  # noqa: PT011  (its kind differs by system)
            attempt(path)
        assert caught.value.filename == str(path)


@posix
def test_a_loop_of_links_is_an_error(tmp_path):
    """Neither written nor replaced."""
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(OSError, match="loop"):
        write_bytes(loop, b"")
    assert loop.is_symlink()


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a file system that takes no files")
def test_a_folder_that_takes_no_files_is_found_out_beforehand():
    """Its permissions do not tell."""
    with pytest.raises(OSError, match=r"/proc/optalloc\.json"):
        can_write("/proc/optalloc.json")
