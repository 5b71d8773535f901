"""Solvers by name: built in, joined by decorator, by entry point, or named as ``module:object``.

A built-in solver is one file and one line in ``_BUILT_IN``; its module loads when the solver is first used.
"""

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final, TypeVar

from optalloc.errors import Fault, InputError
from optalloc.solvers.base import Solver
from optalloc.solvers.naming import named_object, own_object
from optalloc.solvers.plain import adapted, is_full_solver

__all__ = [
    "SolverEntry", "check_solver", "describe_solvers", "entry_of", "get_solver", "is_built_in", "solver",
    "solver_names",
]  # fmt: skip

F = TypeVar("F", bound=Callable[..., Any])

ENTRY_POINT_GROUP: Final = "optalloc.solvers"


@dataclass(frozen=True)
class SolverEntry:
    """A solver and what is known about it.

    Attributes
    ----------
    exact
        It proves optimality or infeasibility if it has the time.
    options
        Names of the options that it takes, with their defaults (an option given as text is read as the
        default's type); None: it checks its options by itself.
    least
        Smallest values allowed, of options that have one.
    libraries
        Distributions whose versions are recorded in results.
    """

    name: str
    run: Solver
    exact: bool = False
    summary: str = ""
    options: Mapping[str, Any] | None = field(default_factory=dict)
    libraries: tuple[str, ...] = ()
    least: Mapping[str, float] = field(default_factory=dict)
    scoped: bool = True
    """It respects fixed parts, ``not_before`` and left-out tasks."""


@dataclass(frozen=True)
class _BuiltIn:
    """Where a built-in solver lives, known without loading it."""

    module: str
    kind: str
    summary: str


def _rules(**summaries: str) -> dict[str, _BuiltIn]:
    names = {name.replace("_", "-"): summary for name, summary in summaries.items()}
    return {name: _BuiltIn("optalloc.solvers.rules", "rules", summary) for name, summary in names.items()}


def _online(*rules: str, **summaries: str) -> dict[str, _BuiltIn]:
    names = {f"online-{rule}": f"{rule} at every event, on what has been released" for rule in rules}
    names |= {name.replace("_", "-"): summary for name, summary in summaries.items()}
    return {name: _BuiltIn("optalloc.solvers.online", "online", summary) for name, summary in names.items()}


def _learned(**summaries: str) -> dict[str, _BuiltIn]:
    names = {name.replace("_", "-"): summary for name, summary in summaries.items()}
    return {
        name: _BuiltIn("optalloc.solvers.learned.solving", "learned", summary)
        for name, summary in names.items()
    }


_BUILT_IN: Final[Mapping[str, _BuiltIn]] = {
    "auto": _BuiltIn(
        "optalloc.solvers.auto", "auto", "rules, search, price bound and exact methods in rounds"
    ),
    "highs": _BuiltIn("optalloc.solvers.highs", "exact", "time-indexed MILP, solved by HiGHS"),
    "cpsat": _BuiltIn("optalloc.solvers.cpsat", "exact", "interval model, solved by OR-Tools CP-SAT"),
    "lns": _BuiltIn(
        "optalloc.solvers.lns", "search", "large neighbourhood search, guided by prices; no proof"
    ),
    "bound": _BuiltIn(
        "optalloc.solvers.price_bound",
        "bound",
        "prices of capacity: a proven lower bound at every size, no plan",
    ),
    **_rules(
        fifo="by release",
        spt="shortest duration first",
        wspt="largest weight per duration first",
        edd="earliest due date first",
        atc="apparent tardiness cost",
        min_min="the task that can end first, first",
        max_min="the task whose earliest end is last, first",
        sufferage="the task that loses most without its best mode, first",
        heft="longest path to the end first",
        cheapest="least money for each task",
        fastest="shortest run of each task",
        random="random order and modes, by seed",
        compute_centric="dataset by relevance first, then the devices",
        data_first="dataset that costs least by itself first, then the devices",
        joint_greedy="smallest increase of the objective over all modes",
    ),
    **_online(
        *(
            "fifo",
            "spt",
            "wspt",
            "edd",
            "atc",
            "min-min",
            "max-min",
            "sufferage",
            "heft",
            "cheapest",
            "fastest",
        ),
        *("random", "compute-centric", "data-first", "joint-greedy"),
        replan_index="largest weight per tick to its end first, devices priced by the queue",
        easy_backfill="first come, first served; later tasks start now if that does not delay the first",
        conservative_backfill="first come, first served; later tasks start sooner if that delays nobody",
        tetris="packing by alignment of demand and free capacity, and shortest work first",
        rollout="one step of look-ahead: each first step, then replan-index",
        rolling="what has been released solved exactly, again whenever more comes",
    ),
    **_learned(
        fdqn="replan-index and a learned residual: task, then data, node, devices, each given those before",
        bdq="control of fdqn: independent branches with one target",
        additive="control of fdqn: a sum of scores of data, node and devices",
        flat_dqn="control of fdqn: every row of every waiting task at once",
        reinforce="policy gradient for completion time and utilisation, without predicted durations",
        es_index="replan-index with more weights, tuned by an evolution strategy",
        lookahead="rollout with more first steps",
    ),
}

_joined: dict[str, SolverEntry] = {}


def solver(
    name: str,
    *,
    exact: bool = False,
    summary: str = "",
    options: Mapping[str, Any] | None = (),  # type: ignore[assignment]
    libraries: tuple[str, ...] = (),
    least: Mapping[str, float] | None = None,
) -> Callable[[F], F]:
    """Decorator that makes a function a solver.

    The function is either a full solver (one parameter, `optalloc.solvers.base.Request`; gives an `Outcome`),
    or a plain scheduler ``f(problem, *, time_limit, seed, ...) -> Schedule | Plan | None`` that takes the
    keywords it wants (docs/results.md).

    Parameters
    ----------
    name
        How it is called in ``solve(..., solver=name)``.
    exact, summary, options, libraries, least
        See `SolverEntry`. A plain function's options default to its own keyword parameters.

    Raises
    ------
    ValueError
        If the name is a built-in solver's, or another function has joined under it.
    """

    def join(function: F) -> F:
        entry = _entry(
            name,
            function,
            exact=exact,
            summary=summary,
            options=options,
            libraries=libraries,
            least=dict(least or {}),
        )
        known = _joined.get(name)
        foreign = name in _BUILT_IN and not _origin(entry.run)[0].startswith("optalloc.solvers.")
        if foreign or (known is not None and _origin(known.run) != _origin(entry.run)):
            raise ValueError(f"there is a solver named {name!r} already")
        _joined[name] = entry
        return function

    return join


def _origin(run: Any) -> tuple[str, str]:
    function = getattr(run, "__wrapped__", run)
    return getattr(function, "__module__", ""), getattr(function, "__qualname__", repr(function))


def _entry(name: str, function: Callable[..., Any], **facts: Any) -> SolverEntry:
    if not facts["summary"]:
        facts["summary"] = (inspect.getdoc(function) or "").partition("\n")[0]
    if is_full_solver(function):
        facts["options"] = {} if facts["options"] == () else facts["options"]
        return SolverEntry(name, function, **facts)
    plain = adapted(function)
    if facts["options"] == ():
        facts["options"] = plain.options
    return SolverEntry(name, plain, scoped=plain.scoped, **facts)


# look-up ---------------------------------------------------------------------------------------------
def get_solver(name: str) -> SolverEntry:
    """The solver of that name; its module is loaded now.

    Raises
    ------
    InputError
        If there is none; the message lists the names.
    """
    if name in _BUILT_IN and name not in _joined:
        importlib.import_module(_BUILT_IN[name].module)
    if name in _joined:
        return _joined[name]
    if name in _entry_points():
        return _loaded(name, own_object(name, _entry_points()[name].load))
    if ":" in name:
        return _loaded(name, own_object(name, lambda: named_object(name)))
    known = ", ".join(solver_names())
    raise InputError(
        Fault("solver", f"{name!r} is unknown; known: {known}; your own: module:function or file.py:function")
    )


def entry_of(given: str | SolverEntry | Callable[..., Any]) -> SolverEntry:
    """The solver behind a name, an entry or a function."""
    if isinstance(given, str):
        return get_solver(given)
    return _loaded(getattr(given, "__name__", type(given).__name__), given)


def check_solver(name: str) -> None:
    """Refuse an unknown name without loading a built-in solver; `get_solver` says what is raised."""
    if name not in _BUILT_IN and name not in _joined and name not in _entry_points():
        get_solver(name)


def summary_of(name: str) -> str:
    """The line about a built-in solver."""
    return _BUILT_IN[name].summary


def is_built_in(name: str) -> bool:
    """The solver comes with optalloc."""
    return name in _BUILT_IN


def solver_names(kind: str | None = None) -> list[str]:
    """Names of all solvers, or of one kind: ``rules``, ``online``, ``learned``, ``exact``, ``auto``, ``own``."""
    return [row["name"] for row in describe_solvers() if kind in (None, row["kind"])]


def describe_solvers() -> list[dict[str, Any]]:
    """Name, kind and one line about each solver; loads none of the built-in ones."""
    rows = [{"name": n, "kind": b.kind, "summary": b.summary} for n, b in _BUILT_IN.items()]
    own = {name: entry.summary for name, entry in _joined.items() if name not in _BUILT_IN}
    own |= {name: f"from {point.value}" for name, point in _entry_points().items() if name not in own}
    return rows + [{"name": name, "kind": "own", "summary": summary} for name, summary in own.items()]


@cache
def _entry_points() -> dict[str, EntryPoint]:
    """Solvers of other installed distributions; a built-in name cannot be taken over."""
    return {
        point.name: point for point in entry_points(group=ENTRY_POINT_GROUP) if point.name not in _BUILT_IN
    }


def _loaded(name: str, found: Any) -> SolverEntry:
    """The entry behind an object: itself an entry, a joined function, or a function that joins now."""
    if isinstance(found, SolverEntry):
        return found
    for entry in _joined.values():
        if getattr(entry.run, "__wrapped__", entry.run) is found:
            return entry
    if not callable(found):
        raise InputError(Fault("solver", f"{name!r} is not callable"))
    return _entry(name, found, exact=False, summary="", options=(), libraries=())
