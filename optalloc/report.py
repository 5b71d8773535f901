"""Tables for people: hours, dollars, gigabytes and percent. Programs read the JSON instead."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from optalloc.agreement import Contradiction
from optalloc.comparison import Comparison, Row
from optalloc.errors import visible, visible_lines
from optalloc.grid import Grid
from optalloc.problem import Problem
from optalloc.result import Result, Status

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["comparison_tables", "console", "contradiction", "plain_table", "price_table", "result_tables"]

_WIDTH_OF_FILES = 160
"""Columns where standard output is no terminal."""

_NOTES = 2
"""Notes of compiling that are shown."""

_METRICS = {
    "makespan_hours": ("makespan h", "{:.1f}"),
    "mean_flow_hours": ("mean flow h", "{:.1f}"),
    "cost_usd": ("cost $", "{:,.2f}"),
    "moved_gb": ("moved GB", "{:,.0f}"),
    "matching_ratio": ("matching", "{:.3f}"),
    "utilisation": ("used", "{:.0%}"),
    "due_met": ("due met", "{:.0%}"),
}
"""Metric of `evaluate` -> (heading, format)."""


def console() -> "Console":
    """A console on standard output that does not squeeze tables when it is a file or a pipe."""
    from rich.console import Console

    class Printer(Console):
        def on_broken_pipe(self) -> None:  # rich would end the program
            raise BrokenPipeError

    return Printer(width=None if sys.stdout.isatty() else _WIDTH_OF_FILES, highlight=False)


def result_tables(result: Result) -> list[Grid]:
    """The certificate of one run, and the plan in physical units."""
    tables = [_table(f"{result.problem.instance.name}: {result.solver}", ["", ""], _certificate(result))]
    if result.evaluation is not None:
        rows = [(heading, cell) for heading, cell in _metrics(result.evaluation.metrics).items()]
        tables.append(_table("plan", ["", ""], rows))
    if result.reasons:
        reasons = [(task or "the plan", text) for task, texts in result.reasons.items() for text in texts]
        tables.append(_table("why there is no plan", ["task", "reason"], reasons))
    return tables


def comparison_tables(comparison: Comparison) -> list[Grid]:
    """One table per instance with a line per run, and a summary per solver if there are several instances."""
    by_instance: dict[str, list[Row]] = {}
    for row in comparison.rows:
        by_instance.setdefault(row.instance, []).append(row)
    tables = [_instance_table(name, rows) for name, rows in by_instance.items()]
    if len(tables) > 1:
        tables.append(_summary_table(comparison.summary))
    return tables


def price_table(problem: Problem, certificate: Mapping[str, Any]) -> Grid:
    """What one unit-hour of each resource is worth, over the time in which it is scarce: mean and peak price.

    Prices are in objective units as the instance writes its weights (in $ where the weight of cost is 1).
    """
    hours = float(problem.instance.tick_seconds) / 3600
    per_hour = 1 / (certificate["scale"] * problem.scale * hours)
    edges, rows = certificate["edges"], []
    for name, prices in certificate["prices"].items():
        scarce = [(price, b - a) for price, a, b in zip(prices, edges, edges[1:], strict=False) if price > 0]
        ticks = sum(length for _, length in scarce)
        mean = sum(price * length for price, length in scarce) / ticks
        peak = max(price for price, _ in scarce)
        rows.append([name, f"{mean * per_hour:,.2f}", f"{peak * per_hour:,.2f}", f"{ticks * hours:,.1f}"])
    return _table("prices per unit-hour", ["resource", "mean", "peak", "hours scarce"], rows)


def plain_table(title: str, rows: list[dict[str, Any]]) -> Grid:
    """A table of dicts that share their keys."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    return _table(title, columns, [[_cell(row.get(column)) for column in columns] for row in rows])


def _table(title: str, columns: list[str], rows: Iterable[Iterable[str]], keys: int = 1) -> Grid:
    return Grid(visible(title), columns, [[visible_lines(cell) for cell in row] for row in rows], keys)


def _cell(value: Any) -> str:
    return "-" if value is None else str(value)


def scaled(value: int | None, scale: int) -> str:
    """An objective as people wrote its weights: divided by K."""
    return "-" if value is None else f"{value / scale:,.2f}"


def percent(gap: float | None) -> str:
    """A gap; exact zero is told apart from what rounds to it."""
    if gap is None:
        return "-"
    return "0" if gap == 0 else f"{gap:.2%}" if not 0 < gap < 0.0001 else "<0.01%"


def contradiction(found: Contradiction) -> str:
    """Who holds what, and who claims that it cannot be."""
    plan, least = (scaled(value, found.weight_scale) for value in (found.objective, found.bound))
    level = f" on level {found.level + 1}" if found.level else ""
    claim = "no plan exists" if found.bound is None else f"nothing below {least} ({found.bound}) is possible"
    return (
        f"{found.instance}: CONTRADICTION: {found.plan_by} holds a verified plan of {plan} ({found.objective}){level}, "
        f"but {found.bound_by} claims that {claim}: one of the two is wrong"
    )


def _certificate(result: Result) -> list[tuple[str, str]]:
    scale = result.problem.scale
    lines = [("status", _status(result))]
    for number, level in enumerate(result.levels, 1):
        name = "objective" if len(result.levels) == 1 else f"level {number}"
        proof = f"bound {scaled(level.bound, scale)}, gap {percent(level.gap)}"
        by = f", by {level.proven_by}" if level.proven_by else ""
        condition = ", if the levels before are optimal" if level.conditional else ""
        lines.append((name, f"{scaled(level.objective, scale)} ({proof}{by}{condition})"))
    lines.append(("seconds", f"{result.seconds:.2f}"))
    lines += [("note", note) for note in _notes(result)]
    return lines


def _status(result: Result) -> str:
    """A bound without a plan is what some solvers are for."""
    status, termination = result.status.value, result.termination.value
    if result.status is Status.NO_SOLUTION and any(level.bound is not None for level in result.levels):
        return f"bound proven, no plan ({status}, {termination})"
    return f"{status} ({termination})"


def _notes(result: Result) -> Iterator[str]:
    """Compiling writes one for every task that cannot run everywhere: a few of them show what they are about."""
    made = result.problem.notes
    yield from made[:_NOTES]
    if len(made) > _NOTES:
        yield f"... and {len(made) - _NOTES} more from compiling; --json lists them all"
    yield from result.notes[len(made) :]


def _metrics(metrics: Mapping[str, Any]) -> dict[str, str]:
    return {
        heading: form.format(float(metrics[name]))
        for name, (heading, form) in _METRICS.items()
        if metrics.get(name) is not None
    }


def _instance_table(name: str, rows: list[Row]) -> Grid:
    proofs = sorted({f"{row.best_bound_by}" for row in rows if row.best_bound_by})
    bound = next(
        (scaled(row.best_bound, row.weight_scale) for row in rows if row.best_bound is not None), None
    )
    title = (
        name
        if bound is None
        else f"{name}: nothing below {bound} is possible (proven by {', '.join(proofs)})"
    )
    headings = [heading for heading, _ in _METRICS.values()]
    seeds = len({row.seed for row in rows}) > 1
    split = any(row.future_gap is not None for row in rows)
    columns = [
        "solver",
        *(["seed"] if seeds else []),
        "status",
        "objective",
        "own bound",
        "gap",
        *(["of the future", "of the heuristic"] if split else []),
        "seconds",
        *headings,
    ]
    cells = [_cells(row, headings, seeds, split) for row in rows]
    return _table(title, columns, cells, keys=2 if seeds else 1)


def _cells(row: Row, headings: list[str], seeds: bool, split: bool) -> list[str]:
    metrics = _metrics(row.metrics)
    return [
        row.solver,
        *([str(row.seed)] if seeds else []),
        row.status if row.status != "NO_SOLUTION" else "NO PLAN",
        scaled(row.objective, row.weight_scale),
        scaled(row.bound, row.weight_scale),
        percent(row.gap),
        *([percent(row.future_gap), percent(row.heuristic_gap)] if split else []),
        f"{row.seconds:.2f}",
        *(metrics.get(heading, "-") for heading in headings),
    ]


def _summary_table(summary: Mapping[str, Mapping[str, Any]]) -> Grid:
    columns = [
        "solver",
        "runs",
        "solved",
        "at best bound",
        "errors",
        "mean gap",
        "largest gap",
        "seconds (shifted mean)",
    ]
    rows = [
        [
            name,
            *(str(line[key]) for key in ("runs", "solved", "at_best_bound", "errors")),
            percent(line["mean_gap"]),
            percent(line["max_gap"]),
            f"{line['seconds']:.2f}",
        ]
        for name, line in summary.items()
    ]
    return _table("all instances", columns, rows)
