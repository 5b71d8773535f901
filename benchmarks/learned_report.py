"""Tables and a picture of what `learned.py` has stored."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from ladder_report import markdown
from learned import BASE, REFERENCE, RESULTS, Case, Row, stored

__all__ = ["PAGE", "draw", "filled", "tables"]

PAGE = Path(__file__).parents[1] / "docs" / "learned.md"
PICTURE = RESULTS / "ratios.svg"

Cell = tuple[str, int, str, str]
"""Preset, tasks, load, coupling."""

Values = Mapping[Case, list[int]]
"""Objectives on each instance: several where several weights of a learner ran."""


def tables(rows: Sequence[Row]) -> dict[str, str]:
    """One table for each cell, by its name."""
    cells: dict[Cell, list[Row]] = defaultdict(list)
    for row in rows:
        cells[row.case.preset, row.case.tasks, row.case.load, row.case.coupling].append(row)
    return {name_of(cell): table(cell, same) for cell, same in sorted(cells.items())}


def name_of(cell: Cell) -> str:
    """A cell as a title."""
    preset, tasks, load, coupling = cell
    return f"{preset}, {tasks} tasks, coupling {coupling}" + (f", load {load}" if load else "")


def table(cell: Cell, rows: Sequence[Row]) -> str:
    """Every solver of a cell, best first: its distance to the rule, to the best rule, and to the proven bound."""
    found = by_solver(rows)
    base = found.get(BASE, {})
    bounds = {row.case: row.bound for row in rows if row.solver == REFERENCE and row.bound is not None}
    rules = {name: ratios(values, base) for name, values in found.items() if is_rule(name)}
    whole = {name: of for name, of in rules.items() if len(of) == len(base)}
    best_rule = min(whole, key=lambda name: np.mean(list(whole[name].values())), default=BASE)
    lines = []
    for name, values in found.items():
        of_base = ratios(values, base)
        cells = [name, f"{sum(len(of) for of in values.values())}", spread(list(of_base.values()))]
        cells.append(middle(list(of_base.values())))
        cells.append("-" if name == best_rule else spread(list(ratios(values, found[best_rule]).values())))
        gaps = [
            (np.mean(of) - bounds[case]) / max(1, abs(np.mean(of)))
            for case, of in values.items()
            if case in bounds
        ]
        cells.append(f"{np.mean(gaps):.1%}" if gaps else "-")
        seconds = [row.seconds for row in rows if row.solver.partition("@")[0] == name]
        cells.append(f"{np.mean(seconds):.2f}")
        lines.append((np.mean(list(of_base.values())) if of_base else np.inf, cells))
    title = ["solver", "plans", f"to {BASE}", "IQM", f"to {best_rule}", "gap to the bound", "seconds"]
    ordered = [cells for _, cells in sorted(lines, key=lambda line: line[0])]
    instances = len({row.case for row in rows})
    return f"**{name_of(cell)}** ({instances} instances)\n\n{markdown(title, ordered)}"


def by_solver(rows: Sequence[Row]) -> dict[str, dict[Case, list[int]]]:
    """Objectives of each solver; those of a learner's different weights together."""
    found: dict[str, dict[Case, list[int]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row.objective is not None:
            found[row.solver.partition("@")[0]][row.case].append(row.objective)
    return found


def is_rule(name: str) -> bool:
    """A rule without foresight or learning."""
    return name == BASE or name == "tetris" or name.startswith("online-") or name.endswith("-backfill")


def ratios(values: Values, base: Values) -> dict[Case, float]:
    """Objective over another solver's on the instances that both have planned."""
    both = values.keys() & base.keys()
    return {case: float(np.mean(values[case]) / np.mean(base[case])) for case in both}


def spread(found: Sequence[float]) -> str:
    """Mean and its 95 % interval, by resampling the instances."""
    if not found:
        return "-"
    low, high = interval(found)
    return f"{np.mean(found):.3f} [{low:.3f}, {high:.3f}]"


def interval(found: Sequence[float]) -> tuple[float, float]:
    """95 % bootstrap interval of the mean."""
    if len(found) < 2 or np.ptp(found) == 0:
        return float(np.mean(found)), float(np.mean(found))
    from scipy.stats import bootstrap

    drawn = bootstrap((np.asarray(found),), np.mean, n_resamples=2000, rng=np.random.default_rng(0))
    return float(drawn.confidence_interval.low), float(drawn.confidence_interval.high)


def middle(found: Sequence[float]) -> str:
    """Mean of the middle half."""
    from scipy.stats import trim_mean

    return f"{trim_mean(found, 0.25):.3f}" if found else "-"


def filled(page: str, rows: Sequence[Row]) -> str:
    """The page with its comparison made again of what is stored."""
    text = "\n\n".join(tables(rows).values()) or "Nothing is stored yet."
    if rows:
        draw(rows, PICTURE)
        text += f"\n\n![Objectives over {BASE}'s](../benchmarks/results/learned/{PICTURE.name})"
    block = f"<!-- comparison -->\n{text}\n<!-- end -->"
    return re.sub(r"<!-- comparison -->\n.*?<!-- end -->", lambda _: block, page, flags=re.DOTALL)


def draw(rows: Sequence[Row], path: Path) -> None:
    """Mean ratio and interval of every solver, a panel a cell."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    cells: dict[Cell, list[Row]] = defaultdict(list)
    for row in rows:
        cells[row.case.preset, row.case.tasks, row.case.load, row.case.coupling].append(row)
    columns = min(3, len(cells))
    lines = -(-len(cells) // columns)
    figure, axes = pyplot.subplots(lines, columns, figsize=(4.6 * columns, 4.2 * lines), squeeze=False)
    for axis, (cell, same) in zip(axes.flat, sorted(cells.items()), strict=False):
        found = by_solver(same)
        means = {name: list(ratios(values, found.get(BASE, {})).values()) for name, values in found.items()}
        kept = sorted((name for name, of in means.items() if of), key=lambda name: np.mean(means[name]))[:14]
        for height, name in enumerate(reversed(kept)):
            low, high = interval(means[name])
            colour = "tab:grey" if is_rule(name) else "tab:blue" if name != REFERENCE else "tab:green"
            axis.plot([low, high], [height, height], color=colour)
            axis.plot(np.mean(means[name]), height, "o", color=colour, markersize=4)
        axis.set_yticks(range(len(kept)), list(reversed(kept)), fontsize=7)
        axis.axvline(1, linewidth=0.7, color="black")
        axis.set_title(name_of(cell), fontsize=8)
    for axis in list(axes.flat)[len(cells) :]:
        axis.set_visible(False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


if __name__ == "__main__":
    print("\n\n".join(tables(stored()).values()))
