"""Fixtures that all tests share, and the folder of helpers on the path."""

import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from optalloc.solvers import registry

TESTS = Path(__file__).resolve().parent
sys.path.insert(0, str(TESTS))

EXACT_METHODS = ("highs", "cpsat")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let `--solvers highs` run the tests of exact methods with some of them only."""
    parser.addoption(
        "--solvers",
        default=",".join(EXACT_METHODS),
        help=f"exact methods to test, separated by commas; default: {','.join(EXACT_METHODS)}",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers of this suite."""
    config.addinivalue_line("markers", "long: not part of the default run; choose with -m long")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Have the kernels compiled once, before workers begin: else each would compile them, within its time limits."""
    if not hasattr(session.config, "workerinput"):
        from optalloc.solvers import jit

        jit.prepare(lambda: False)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the long tests unless -m asks for them."""
    if "long" in (config.getoption("-m") or ""):
        return
    config.hook.pytest_deselected(items=[item for item in items if "long" in item.keywords])
    items[:] = [item for item in items if "long" not in item.keywords]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run every test that takes `solver` once with each exact method."""
    if "solver" in metafunc.fixturenames:
        metafunc.parametrize("solver", metafunc.config.getoption("--solvers").split(","))


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of published problems and reference data beside the repository."""
    folder = TESTS.parent.parent / "shared"
    if not folder.is_dir():
        pytest.skip("the folder of published problems and reference data is not beside the repository")
    return folder


@pytest.fixture(scope="session", autouse=True)
def heard() -> None:
    """Signals that are ignored in the background and under nohup are not ignored by commands that the tests run."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(
            signal.SIGHUP, lambda number, frame: None
        )  # this process goes on; commands do not inherit it


@pytest.fixture(autouse=True)
def joined() -> Iterator[None]:
    """Solvers that join during a test are forgotten after it."""
    before = set(registry._joined)
    yield
    for name in set(registry._joined) - before:
        if not registry.is_built_in(name):
            del registry._joined[name]


@pytest.fixture
def run() -> Callable[..., tuple[int, str, str]]:
    """Run a command in this process: (exit code, standard output, standard error)."""

    from typer.testing import CliRunner

    from optalloc.cli.app import app

    def call(*arguments: object) -> tuple[int, str, str]:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.exit_code, result.stdout, result.stderr

    return call
