"""Every example in README and docs runs."""

import os
import re
import shlex
from inspect import signature
from pathlib import Path
from pkgutil import resolve_name

import pytest
from typer.testing import CliRunner

import optalloc as oa
from optalloc.cli.app import app

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def _blocks(page: Path, language: str) -> list[str]:
    return re.findall(
        rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_examples_run(page, tmp_path, monkeypatch):
    """The blocks of a page run in order in one namespace; tests in it are called."""
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "example"}
    for block in _blocks(page, "python"):
        exec(compile(block, str(page), "exec"), namespace)
    for name, value in list(namespace.items()):
        if name.startswith("test_") and callable(value) and not signature(value).parameters:
            value()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_shell_examples_run(page, tmp_path, monkeypatch):
    """Lines that begin with ``optalloc`` succeed, in order, beside a ``plan.json`` (``compose`` needs data)."""
    monkeypatch.chdir(tmp_path)
    oa.write_schedule(oa.solve("real-8", "wspt").schedule, "plan.json")
    for block in _blocks(page, "sh"):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words[:1] == ["optalloc"] and words[1] != "compose":
                result = CliRunner().invoke(app, words[1:])
                assert result.exit_code == 0, f"{line}\n{result.output}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_exist(page):
    """A relative link names a file of the repository."""
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_and_modules_of_the_project_exist(page):
    """What a page calls `optalloc/...`, `solvers/...` or `optalloc.x.y` is there."""
    text = page.read_text(encoding="utf-8")
    folders = "optalloc|solvers|formulations|instances|tests|benchmarks|docs"
    paths = re.findall(rf"(?<![\w/.:-])(?:{folders})/[\w/.-]*\w", text)
    environments = ("optalloc/Allocation",)  # the name of an environment, which is no file
    assert [path for path in paths if not (ROOT / path).exists() and not path.startswith(environments)] == []
    missing = []
    for name in re.findall(r"(?<![\w/.])optalloc(?:\.\w+)+", text):
        try:
            resolve_name(name)
        except (ImportError, AttributeError):
            missing.append(name)
    assert missing == []


def test_no_path_of_one_machine_stands_in_the_repository():
    """What is published speaks of the project alone."""
    private = re.compile(r"/(work|home|root|tmp)/\w+")
    for page in PAGES:
        assert not private.search(page.read_text(encoding="utf-8")), page.name


@pytest.mark.skipif(os.name == "nt", reason="the links are checked where git makes them")
def test_every_package_is_declared():
    """A sub-package that pyproject does not name would be missing from the wheel."""
    import tomllib

    setup = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    found = {"optalloc"}
    for top, prefix in (
        ("optalloc", "optalloc"),
        *((t, f"optalloc.{t}") for t in ("formulations", "instances", "solvers")),
    ):
        for init in (ROOT / top).glob("**/__init__.py"):
            inside = init.parent.relative_to(ROOT / top)
            linked = top == "optalloc" and inside.parts[:1] and (ROOT / top / inside.parts[0]).is_symlink()
            if not linked:
                found.add(".".join([prefix, *inside.parts]))
    assert set(setup["packages"]) == found
    for package, folder in setup["package-dir"].items():
        assert package == "optalloc." + folder.replace("/", ".")
