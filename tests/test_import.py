"""What imports load, and that the arrows between modules point one way only."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import optalloc

ROOT = Path(optalloc.__file__).parent

LAYERS = (
    "errors", "quantities", "io", "entities", "instance", "problem", "scope", "result", "compilation",
    "schedule", "evaluation", "placement", "simulation", "environment", "formulations", "solvers", "comparison",
    "report", "cli",
)  # fmt: skip
"""From the bottom up: a module may import what stands before it."""

PLACES = {
    "profile": "placement",
    "reservations": "placement",
    "staging": "placement",
    "objective_spec": "instance",
    "options": "quantities",
    "parallel": "comparison",
    "agreement": "comparison",
    "output": "comparison",
    "grid": "report",
    "certificate": "evaluation",
    "generators": "instance",
    "composition": "instance",
    "generate": "instance",
    "compose": "instance",
    "plotting": "evaluation",
    "testing": "cli",
    "instances": "schedule",
    "__main__": "cli",
    "__init__": "cli",
}
"""Modules that are no layer of their own -> the layer to which they belong."""


def sources() -> Iterator[tuple[str, Path]]:
    """(dotted name below optalloc, file) of every module."""
    folders = [Path(folder) for folder, _, _ in os.walk(ROOT, followlinks=True)]
    for path in sorted(path for folder in folders for path in folder.glob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        yield ".".join(part for part in parts if part != "__init__") or "__init__", path


def imported(tree: ast.Module) -> Iterator[tuple[str, bool]]:
    """(module, on loading) of every run-time import; imports for type checkers only do not count."""
    waiting: list[tuple[ast.AST, bool]] = [(node, True) for node in tree.body]
    while waiting:
        node, at_once = waiting.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            yield from ((alias.name, at_once) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            yield from (
                (f"{module}.{alias.name}" if module == "optalloc" else module, at_once)
                for alias in node.names
            )
        inside = at_once and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        waiting += [(child, inside) for child in ast.iter_child_nodes(node)]


MODULES = {name: list(imported(ast.parse(path.read_text()))) for name, path in sources()}


def layer(name: str) -> int:
    """Height of a module, by the first part of its name below optalloc."""
    first = name.split(".")[0]
    return LAYERS.index(PLACES.get(first, first))


def test_every_module_has_its_place():
    """A new module is put into the order here; the linked folders are looked at as well."""
    assert {"solvers.run", "formulations", "instances"} <= set(MODULES)
    for name in MODULES:
        first = name.split(".")[0]
        assert first in LAYERS or first in PLACES, name


def test_arrows_point_downwards():
    """No module imports from a layer above its own, not even inside a function."""
    wrong = []
    for name, modules in MODULES.items():
        if name == "__init__":
            continue
        for module, _ in modules:
            if module.split(".")[0] != "optalloc" or module == "optalloc":
                continue
            target = module.removeprefix("optalloc.")
            if target.split(".")[0] not in {*LAYERS, *PLACES}:
                continue
            if layer(target) > layer(name) and not _reads_files(name, target):
                wrong.append(f"{name} -> {target}")
    assert sorted(set(wrong)) == []


def _reads_files(name: str, target: str) -> bool:
    """Readers and writers live in io, and know the objects that they read and write."""
    objects = ("certificate", "entities", "instance", "instances", "problem", "schedule")
    return name.startswith("io") and target.split(".")[0] in objects


def test_the_judge_knows_no_solver():
    """Schedule and evaluation import neither formulations nor solvers nor the placement kernel."""
    forbidden = (
        "optalloc.formulations",
        "optalloc.solvers",
        "optalloc.placement",
        "ortools",
        "highspy",
        "pyomo",
    )
    for name, modules in MODULES.items():
        if name.split(".")[0] in ("schedule", "evaluation"):
            assert not [m for m, _ in modules if m.startswith(forbidden)], name


def test_imports_are_absolute_and_by_the_public_name():
    """Never ``import solvers``: that would be a second copy of every class."""
    for name, path in sources():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0, name
                assert (node.module or "").split(".")[0] not in ("solvers", "formulations", "instances"), name


HEAVY = (
    "torch",
    "gymnasium",
    "pyomo",
    "ortools",
    "highspy",
    "matplotlib",
    "pandas",
    "networkx",
    "rich",
    "typer",
)
LIGHT = {
    "import optalloc": (*HEAVY, "numpy", "pydantic"),
    "import optalloc; optalloc.Status": (*HEAVY, "numpy", "pydantic"),
    "import optalloc; optalloc.read": HEAVY,
    "import optalloc; optalloc.evaluate": tuple(name for name in HEAVY if name != "networkx"),
    "import optalloc; optalloc.solve": tuple(name for name in HEAVY if name != "networkx"),
}


@pytest.mark.parametrize("code", LIGHT)
def test_imports_are_light(code):
    """Heavy libraries load when they are used."""
    program = f"{code}\nimport sys\nprint(*(name.split('.')[0] for name in sys.modules))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not set(LIGHT[code]) & set(ran.stdout.split())


def test_public_names_exist():
    """Each name of `__all__` can be had, and the table of homes lists just these."""
    assert sorted(optalloc.__all__) == sorted(optalloc._HOME)
    for name in optalloc.__all__:
        assert getattr(optalloc, name) is not None
    assert set(optalloc.__all__) <= set(dir(optalloc))
    with pytest.raises(AttributeError, match="nonsense"):
        optalloc.nonsense  # noqa: B018


def test_type_checkers_see_the_same_names():
    """The imports under TYPE_CHECKING are those of the table."""
    tree = ast.parse((ROOT / "__init__.py").read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == optalloc._HOME
