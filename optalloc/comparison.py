"""Run many solvers on many instances, and measure each against the best proven bound known."""

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from statistics import fmean, geometric_mean
from typing import Any

from optalloc.agreement import Claim, Contradiction, contradictions
from optalloc.errors import Fault, InputError
from optalloc.instance import Instance
from optalloc.io.atomic import write_text
from optalloc.output import answers_only
from optalloc.parallel import Engine, get_engine, refuse_while_imported

__all__ = ["Comparison", "Row", "compare", "reference_gap"]

_SHIFT_SECONDS = 10.0
"""Shift of the geometric mean of times (Achterberg 2007, A.3)."""

_LONGEST_NAME = 100
"""Characters of a file's name; systems allow 255 bytes."""

ROLLING = "rolling"
"""The exact policy without foresight that others are measured against."""

KINDS = ("rules", "exact", "online")
"""Groups of solvers by kind."""

GROUPS = {"references": ["auto", ROLLING], "learned": ["fdqn", "es-index", "lookahead"]}
"""Other groups; learned schedulers without weights for all kinds of instances are left out."""


@dataclass
class Row:
    """One run of one solver.

    Attributes
    ----------
    objective, bound
        Of the level shown (the first unproven one), scaled by ``weight_scale``; bound is the solver's own.
    gap
        To the best bound known for the instance from any solver or the index: (objective - bound) / max(|objective|, 1)
        on the first level at which the plan differs from it. None without a plan or a bound.
    best_bound, best_bound_by
        That bound and who proved it.
    future_gap, heuristic_gap
        For a policy without foresight beside `rolling`, on one level: what is lost by not knowing the future (rolling
        to the best bound, which knows all), and by the heuristic (the policy to rolling). They add up to ``gap``.
    seconds
        Wall time of the solve, compiling included.
    terms, metrics
        As `evaluate` gives them.
    """

    instance: str
    solver: str
    seed: int
    status: str
    termination: str
    objective: int | None = None
    bound: int | None = None
    gap: float | None = None
    best_bound: int | None = None
    best_bound_by: str | None = None
    future_gap: float | None = None
    heuristic_gap: float | None = None
    seconds: float = 0.0
    weight_scale: int = 1
    levels: list[dict[str, Any]] = field(default_factory=list)
    terms: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, Any] = field(default_factory=dict)
    message: str = ""
    schedule: dict[str, Any] | None = None

    @property
    def solved(self) -> bool:
        """A verified plan is held."""
        return self.status in ("OPTIMAL", "FEASIBLE")


@dataclass
class Comparison:
    """Rows in the order in which they were asked for, and a summary per solver."""

    rows: list[Row]
    settings: dict[str, Any]
    interrupted: bool = False
    contradictions: list[Contradiction] = field(default_factory=list)
    """Verified plans that refute what another run, or the index, has claimed; the row of that run is in ERROR."""

    @property
    def summary(self) -> dict[str, dict[str, Any]]:
        """Solver -> runs, solved, optimal, errors, mean and largest gap, shifted geometric mean of seconds."""
        solvers = dict.fromkeys(row.solver for row in self.rows)
        return {name: _summary([row for row in self.rows if row.solver == name]) for name in solvers}

    def to_dict(self) -> dict[str, Any]:
        """JSON object with ``rows``, ``summary``, ``contradictions`` and ``settings``."""
        rows = [{k: v for k, v in asdict(row).items() if k != "schedule"} for row in self.rows]
        return {
            "rows": rows,
            "summary": self.summary,
            "contradictions": [asdict(found) for found in self.contradictions],
            "settings": self.settings,
            "interrupted": self.interrupted,
        }

    def write(self, folder: str | Path) -> None:
        """Write ``comparison.json``, ``rows.csv`` and each plan as ``schedules/*.json``."""
        folder = Path(folder)
        (folder / "schedules").mkdir(parents=True, exist_ok=True)
        write_text(folder / "comparison.json", json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n")
        write_text(folder / "rows.csv", self._csv())
        for row in self.rows:
            if row.schedule is not None:
                text = json.dumps(row.schedule, indent=1, allow_nan=False) + "\n"
                write_text(folder / "schedules" / _file_name(row), text)

    def _csv(self) -> str:
        columns = [c for c in Row.__dataclass_fields__ if c not in ("levels", "terms", "metrics", "schedule")]
        stream = io.StringIO()
        writer = csv.writer(stream)
        writer.writerow(columns)
        writer.writerows([getattr(row, column) for column in columns] for row in self.rows)
        return stream.getvalue()


def _file_name(row: Row) -> str:
    """One of its own for every row, on every file system: a name that does not fit gets a hash of itself."""
    name = f"{row.instance}__{row.solver}__{row.seed}"
    plain = re.sub(r"[^a-z0-9._-]+", "_", name)[:_LONGEST_NAME]
    return f"{plain}.json" if plain == name else f"{plain}-{sha256(name.encode()).hexdigest()[:8]}.json"


def compare(
    instances: Iterable[Instance | str | Path] | Instance | str | Path,
    solvers: Sequence[str] | str,
    *,
    time_limit: float = 60.0,
    seeds: int = 1,
    threads: int = 2,
    jobs: int = 1,
    engine: str = "local",
    on_row: Callable[[Row], None] | None = None,
) -> Comparison:
    """Solve every instance with every solver and seed, each run in a process of its own.

    A run that crashes or does not stop becomes a row with status ERROR; the others are unaffected. So does one whose
    bound or proof a verified plan of another run refutes: see `Comparison.contradictions`.

    Parameters
    ----------
    instances
        Instances, files, or names of the index; one that is given twice is solved once.
    solvers
        Names, ``module:object``, or groups: ``rules``, ``exact``, ``online``; ``references``, which are `auto` (knows
        all) and `rolling` (exact, but without foresight).
    time_limit
        Seconds for each run, compiling and model building included.
    seeds
        Seeds 0 .. seeds-1.
    threads
        Threads that one run may use.
    jobs
        Runs at a time. More than cores / threads distorts the seconds.
    engine
        ``local``, which ends a run that does not stop by twice its time, or ``dask``, which waits for it.
    on_row
        Called with each row as it comes in (its gap is not known yet).

    Raises
    ------
    InputError
        For malformed instances, different instances of one name, or unknown solvers, before anything runs; and
        where the calling script has no guard ``if __name__ == "__main__":`` (each process imports the script).
    """
    refuse_while_imported()
    texts = _texts([instances] if isinstance(instances, Instance | str | Path) else instances)
    names = expand_solvers([solvers] if isinstance(solvers, str) else solvers)
    if seeds < 1:
        raise InputError(f"seeds must be at least 1, got {seeds}")
    jobs_list = [(i, s, seed) for i in texts for s in names for seed in range(seeds)]
    settings: dict[str, Any] = {
        "time_limit": time_limit,
        "seeds": seeds,
        "threads": threads,
        "engine": engine,
    }
    comparison = Comparison([], settings)
    rows: dict[int, Row] = {}

    def keep(index: int, answer: Mapping[str, Any]) -> None:
        rows[index] = row = _row(*jobs_list[index], answer)
        if on_row is not None:
            on_row(row)

    arguments = [(texts[i], s, seed, time_limit, threads) for i, s, seed in jobs_list]
    runner: Engine = get_engine(engine, jobs)
    comparison.interrupted = not runner(_run, arguments, time_limit + max(30.0, time_limit), keep)
    comparison.rows = [rows[index] for index in sorted(rows)]
    for name, text in texts.items():
        own, stored = [row for row in comparison.rows if row.instance == name], _stored_bounds(text)
        comparison.contradictions += _refuted(name, own, stored)
        _add_gaps(own, stored)
    return comparison


def expand_solvers(names: Sequence[str]) -> list[str]:
    """Replace the groups (`KINDS`, `GROUPS`) by their members; refuse what cannot be run, all at once."""
    from optalloc.solvers.options import checked_options
    from optalloc.solvers.registry import get_solver, is_built_in, solver_names

    expanded: dict[str, None] = {}
    for name in names:
        members = solver_names(kind=name) if name in KINDS else GROUPS.get(name, [name])
        expanded.update(dict.fromkeys(members))
    faults: list[Fault] = []
    for name in expanded:
        try:
            if not is_built_in(name):
                checked_options(get_solver(name), None)
        except InputError as error:
            faults += error.faults
    if faults:
        raise InputError(faults)
    return list(expanded)


def _texts(items: Iterable[Instance | str | Path]) -> dict[str, str]:
    """Name -> canonical text of the instances, which compile; rows and files are told apart by the name."""
    from optalloc.compilation import compile as compile_problem
    from optalloc.io.reading import as_instance

    texts: dict[str, str] = {}
    sources: dict[str, str] = {}
    faults: list[Fault] = []
    for item in items:
        try:
            instance = as_instance(item)
            compile_problem(instance)
        except InputError as error:
            faults += error.faults
            continue
        name, text = instance.name, instance.canonical()
        source = f"an instance named {name!r}" if isinstance(item, Instance) else str(item)
        if texts.setdefault(name, text) != text:
            message = f"is named {name!r} as {sources[name]} is, but differs from it; change one `name`"
            faults.append(Fault("name", message, source))
        sources.setdefault(name, source)
    if faults:
        raise InputError(faults)
    return texts


def _run(text: str, solver: str, seed: int, time_limit: float, threads: int) -> dict[str, Any]:
    """One run, in the child process: a small JSON-able answer."""
    from optalloc.io.reading import read_text
    from optalloc.solvers.run import solve

    with answers_only():
        result = solve(read_text(text), solver, time_limit=time_limit, seed=seed, threads=threads)
    return result.to_dict()


def _row(instance: str, solver: str, seed: int, answer: Mapping[str, Any]) -> Row:
    known = {k: answer[k] for k in Row.__dataclass_fields__ if answer.get(k) is not None}  # None: no plan
    known |= {"instance": instance, "solver": solver, "seed": seed, "gap": None}
    return Row(**known)


def reference_gap(values: Sequence[int], bounds: Mapping[int, int]) -> tuple[int, float] | None:
    """(level, gap) on the first level where a plan differs from the best known bounds, else on the last.

    Parameters
    ----------
    values
        The plan's value of each level.
    bounds
        Level -> proven lower bound, valid if all earlier levels are at theirs.

    Returns
    -------
    None where the first differing level has no bound.

    Examples
    --------
    >>> reference_gap([10, 8], {0: 10, 1: 6})
    (1, 0.25)
    """
    for level, value in enumerate(values):
        if level not in bounds:
            return None
        if value != bounds[level] or level == len(values) - 1:
            return level, (value - bounds[level]) / max(abs(value), 1)
    return None


Bounds = dict[int, tuple[int, str]]
"""Level -> (proven bound, by whom)."""


def _refuted(instance: str, rows: list[Row], stored: Bounds) -> list[Contradiction]:
    """Plans and claims that cannot both be right; what is refuted is dropped from ``rows`` and ``stored``."""
    claims = {_run_name(row): row for row in rows}
    index = [{"objective": None, "bound": stored[level][0]} for level in range(len(stored))]
    found = contradictions(
        instance,
        [
            *(Claim(by, row.levels, row.status == "INFEASIBLE") for by, row in claims.items()),
            Claim("the index", index),
        ],
        max((row.weight_scale for row in rows), default=1),
    )
    for each in found:
        if each.bound_by in claims:
            _put_in_error(claims[each.bound_by], each)
        else:
            stored.clear()
    return found


def _run_name(row: Row) -> str:
    return f"{row.solver} (seed {row.seed})"


def _put_in_error(row: Row, found: Contradiction) -> None:
    """As in a single run: of what a solver has claimed against a verified plan, only its own plan is kept."""
    row.status, row.termination, row.bound = "ERROR", "ERROR", None
    row.levels = [level | {"bound": None, "gap": None, "proven_by": None} for level in row.levels]
    row.message = f"refuted by the verified plan of {found.plan_by}"


def _add_gaps(rows: list[Row], stored: Bounds) -> None:
    best = _best_bounds(rows, stored)
    bounds = {level: bound for level, (bound, _) in best.items()}
    for row in rows:
        if not row.solved:
            continue
        found = reference_gap([level["objective"] for level in row.levels], bounds)
        if found is not None:
            level, row.gap = found
            row.best_bound, row.best_bound_by = best[level]
    _split_gaps(rows)


def _split_gaps(rows: list[Row]) -> None:
    """Tell the price of not knowing the future from the price of the heuristic."""
    from optalloc.solvers.registry import solver_names

    policies = {*solver_names(kind="online"), *solver_names(kind="learned")}
    rolling = {row.seed: row for row in rows if row.solver == ROLLING and row.gap is not None}
    for row in rows:
        exact = rolling.get(row.seed)
        if exact is None or row.solver not in policies or row.gap is None or len(row.levels) != 1:
            continue
        policy, followed = row.levels[0]["objective"], exact.levels[0]["objective"]
        row.heuristic_gap = (policy - followed) / max(abs(policy), 1)
        row.future_gap = row.gap - row.heuristic_gap


def _best_bounds(rows: Iterable[Row], stored: Bounds) -> Bounds:
    """The largest unconditional bounds from the runs and from the index."""
    best = dict(stored)
    for row in rows:
        for level, entry in enumerate(row.levels):
            bound = entry["bound"]
            if bound is None or entry.get("conditional"):
                continue
            if level not in best or bound > best[level][0]:
                best[level] = (bound, entry.get("proven_by") or row.solver)
    return best


def _stored_bounds(text: str) -> Bounds:
    """The bounds that the index of shipped instances holds for exactly this instance."""
    from optalloc import instances

    return instances.bounds_of(sha256(text.encode()).hexdigest())


def _summary(rows: list[Row]) -> dict[str, Any]:
    gaps = [row.gap for row in rows if row.gap is not None]
    return {
        "runs": len(rows),
        "solved": sum(row.solved for row in rows),
        "optimal": sum(row.status == "OPTIMAL" for row in rows),
        "at_best_bound": sum(gap == 0 for gap in gaps),
        "errors": sum(row.status == "ERROR" for row in rows),
        "mean_gap": fmean(gaps) if gaps else None,
        "max_gap": max(gaps, default=None),
        "seconds": geometric_mean([row.seconds + _SHIFT_SECONDS for row in rows]) - _SHIFT_SECONDS,
    }
