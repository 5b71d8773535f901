"""Tables, figure and page made of stored runs; nothing is run."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from statistics import median
from typing import Any

from ladder_parts import NAMES
from ladder_store import REFUSED, Run, Spec, Store
from pages import between, markdown

MARKS = (10.0, 60.0, 300.0)
NOTHING = "No runs are stored yet."
_NEVER = float("inf")
_LEAST_GAP = 1e-5
"""Drawn in place of smaller gaps: 0 has no place on a logarithmic axis."""
Group = list[Run]


def report(store: Store, marks: Sequence[float] | None = None) -> str:
    """Heading, gaps, parts, and what was not measured, as Markdown."""
    runs = store.newest()
    if not runs:
        return NOTHING
    measured = [run for run in runs if run.status != REFUSED]
    pieces = [
        heading(runs),
        gap_table(measured, marks or marks_of(runs)),
        parts_table(measured),
        left_out(runs),
    ]
    return "\n\n".join(piece for piece in pieces if piece)


def marks_of(runs: Iterable[Run]) -> list[float]:
    """The usual marks within the longest limit, and that limit."""
    longest = max(run.spec.limit for run in runs)
    return sorted({mark for mark in MARKS if mark < longest} | {longest})


def heading(runs: Group) -> str:
    """Commit, machine, versions, seeds, limits, threads."""
    about: dict[str, list[str]] = {}
    for run in runs:
        for name, value in run.about.items():
            about.setdefault(name, []).append(value)
    versions = [f"{name} {_either(found)}" for name, found in about.items() if name != "machine"]
    facts = [
        f"Commit {_either(run.commit for run in runs)}",
        _either(about.get("machine", ["unknown machine"])),
        *versions,
        f"load {_either(run.spec.load for run in runs)}",
        f"coupling {_either(run.spec.coupling for run in runs)}",
        f"objective {_either(run.spec.objective for run in runs)}",
        f"instances of seed {_either(run.spec.seed for run in runs)}",
        f"{_either(_number(run.spec.limit) for run in runs)} s",
        f"{_either(run.spec.threads for run in runs)} threads",
        "solver seed 0",
    ]
    return "; ".join(facts) + "."


def _either(values: Iterable[Any]) -> str:
    return ", ".join(map(str, dict.fromkeys(values)))


def _number(value: float) -> str:
    return f"{value:,g}" if value < 1e6 else f"{value:g}"


# groups ----------------------------------------------------------------------------------------------------
def grouped(runs: Group, names: Sequence[str]) -> dict[tuple[Any, ...], Group]:
    """Runs that agree in those fields, in the order of these."""
    found: dict[tuple[Any, ...], Group] = {}
    for run in sorted(runs, key=lambda run: [_order(runs, name, run) for name in names]):
        found.setdefault(tuple(getattr(run.spec, name) for name in names), []).append(run)
    return found


def _order(runs: Group, name: str, run: Run) -> int:
    """Numbers by size, names as they were run."""
    values = list(dict.fromkeys(getattr(other.spec, name) for other in runs))
    ordered = sorted(values) if all(isinstance(value, int | float) for value in values) else values
    return ordered.index(getattr(run.spec, name))


def varied(runs: Group) -> list[str]:
    """Fields by which a table has rows: size and solver, and what else differs, but for the seed."""
    names = [field.name for field in fields(Spec) if field.name != "seed"]
    always = ("tasks", "solver")
    return [name for name in names if name in always or len({getattr(run.spec, name) for run in runs}) > 1]


# tables ----------------------------------------------------------------------------------------------------
def gap_table(runs: Group, marks: Sequence[float]) -> str:
    """Median gap at the marks, proofs, time to 1 % and its ratio to auto's, memory."""
    if not runs:
        return ""
    names = varied(runs)
    columns = [
        *(f"{_number(mark)} s" for mark in marks),
        "proven",
        "1 % after",
        "vs auto",
        "memory",
        "failed",
    ]
    rows = [
        [*map(_cell, key), str(len(same)), *_gap_cells(same, runs, marks)]
        for key, same in grouped(runs, names).items()
    ]
    return markdown([*names, "runs", *columns], rows)


def _gap_cells(same: Group, runs: Group, marks: Sequence[float]) -> list[str]:
    gaps = (middle([run.gap_at(mark) for run in same], lambda value: f"{value:.2%}") for mark in marks)
    proven = sum(run.status == "OPTIMAL" for run in same)
    failed = sum(run.failed or run.wrong for run in same)
    memory = max((run.gigabytes for run in same if run.gigabytes is not None), default=None)
    return [
        *gaps,
        str(proven),
        middle([run.reached for run in same], lambda value: f"{value:.2g} s"),
        ratio(same, runs),
        "-" if memory is None else f"{memory:.1f} GB",
        str(failed or "-"),
    ]


def middle(values: Sequence[float | None], text: Callable[[float], str]) -> str:
    """The median; what a run has not reached counts as the worst."""
    value = median(_NEVER if value is None else value for value in values)
    return "-" if value == _NEVER else text(value)


def ratio(same: Group, runs: Group) -> str:
    """Median of the times to 1 % over auto's on the same instance; the limit stands for a time not reached.

    Instances on which neither reaches it tell nothing.
    """
    auto = {_instance(run): run.reached for run in runs if run.spec.solver == "auto"}
    found = []
    for run in same:
        key, limit = _instance(run), run.spec.limit
        if run.spec.solver != "auto" and key in auto and (run.reached, auto[key]) != (None, None):
            mine, other = (limit if time is None else time for time in (run.reached, auto[key]))
            found.append((mine / max(other, 1e-3), run.reached is None))
    if not found:
        return "-"
    value, open_ended = sorted(found)[len(found) // 2]
    return f"{'> ' if open_ended else ''}{value:.2g} x"


def _instance(run: Run) -> tuple[Any, ...]:
    spec = run.spec
    return spec.tasks, spec.load, spec.coupling, spec.objective, spec.seed, spec.limit, spec.threads


def parts_table(runs: Group) -> str:
    """Median seconds of each part, its largest memory, and how far it moved plan and bound."""
    rows = []
    for (tasks, solver), same in grouped(runs, ("tasks", "solver")).items():
        done = [run for run in same if run.parts]
        for name in NAMES:
            parts = [run.parts[name] for run in done if name in run.parts]
            if parts:
                memory = max((part.gigabytes for part in parts if part.gigabytes is not None), default=None)
                rows.append([
                    _cell(tasks), solver, name, f"{len(parts)} of {len(done)}",
                    f"{median(part.seconds for part in parts):.1f} s",
                    "-" if memory is None else f"{memory:.1f} GB",
                    _moved(-median(part.plan for part in parts)), _moved(median(part.bound for part in parts)),
                ])  # fmt: skip
    return (
        markdown(["tasks", "solver", "part", "in runs", "time", "memory", "plan", "bound"], rows)
        if rows
        else ""
    )


def _moved(share: float) -> str:
    return "-" if abs(share) < 5e-6 else f"{share:+.2%}"


def left_out(runs: Group) -> str:
    """Runs without figures, and why."""
    silent = [run for run in runs if run.failed or run.wrong or run.status in (REFUSED, "NO_SOLUTION")]
    by_reason: dict[tuple[str, str, str], Group] = {}
    for run in silent:
        by_reason.setdefault((run.spec.solver, run.status, run.message or "no message"), []).append(run)
    return "\n".join(
        f"- {solver}, {_either(_cell(run.spec.tasks) for run in same)} tasks: {status} in {len(same)} "
        f"{'run' if len(same) == 1 else 'runs'}: {message}"
        for (solver, status, message), same in by_reason.items()
    )


def _cell(value: Any) -> str:
    return f"{value:,g}" if isinstance(value, int | float) else str(value)


# figure ----------------------------------------------------------------------------------------------------
def draw(runs: Group, path: Path) -> None:
    """Median gap over time: one panel a size, one line a solver."""
    import matplotlib

    matplotlib.use("svg")
    # The same runs give the same file, and text stays text.
    matplotlib.rcParams |= {"svg.hashsalt": "ladder", "svg.fonttype": "none"}
    from matplotlib import pyplot

    sizes = sorted({run.spec.tasks for run in runs})
    solvers = list(dict.fromkeys(run.spec.solver for run in runs))
    longest, size = max(run.spec.limit for run in runs), (1 + 2.4 * len(sizes), 3.2)
    figure, panels = pyplot.subplots(
        1, len(sizes), figsize=size, sharex=True, sharey=True, squeeze=False, layout="constrained"
    )
    for panel, tasks in zip(panels[0], sizes, strict=True):
        for number, solver in enumerate(solvers):
            same = [run for run in runs if (run.spec.tasks, run.spec.solver) == (tasks, solver)]
            line = median_line(same) or [(1.0, float("nan"))]
            seconds, gaps = zip(*line, strict=True)
            panel.step(seconds, gaps, where="post", label=solver, color=f"C{number}", linewidth=1.4)
        panel.set(xscale="log", yscale="log", title=f"{tasks:,} tasks", xlabel="seconds")
        panel.set(xlim=(0.1, longest), ylim=(70 * _LEAST_GAP, 150))  # also where nothing is drawn
        for axis in (panel.xaxis, panel.yaxis):
            axis.set_major_formatter("{x:g}")
            axis.set_minor_formatter("")
        panel.grid(alpha=0.3)
    figure.legend(*panels[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize=8)
    panels[0][0].set_ylabel("gap to the proven bound, %")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def median_line(same: Group) -> list[tuple[float, float]]:
    """(seconds, median gap in %) wherever half of the runs have plan and bound."""
    if not same:
        return []
    longest = max(run.spec.limit for run in same)
    instants = sorted({point[0] for run in same for point in run.curve if point[0] <= longest} | {longest})
    line = []
    for at in instants:
        value = median(_NEVER if gap is None else gap for gap in (run.gap_at(at) for run in same))
        if value < _NEVER:
            line.append((at, 100 * max(_LEAST_GAP, value)))
    return line


# page ------------------------------------------------------------------------------------------------------
def filled(page: str, folder: Path) -> str:
    """A page with what stands between ``<!-- table:NAME -->`` and ``<!-- end -->`` made of NAME.jsonl again."""
    for name in re.findall(r"<!-- table:([\w-]+) -->", page):
        text = report(Store(folder / f"{name}.jsonl"))
        picture = folder / f"{name}.svg"
        if text != NOTHING and picture.exists():
            text += f"\n\n![Median gap over time: {name}](../benchmarks/results/{picture.name})"
        page = between(page, f"table:{name}", text)
    return page
