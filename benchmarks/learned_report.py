"""Tables and a picture of what `learned.py` has stored: a line a cell, and a page with all else.

An instance counts where every one of a learner's weights has a plan; how many do is told by the plans of all runs.
Intervals are of 95 %, by drawing instances and, independently, weights again (both with replacement).
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from learned import BASE, FIXED_DATA, MEASURES, REFERENCE, RESULTS, TIMED, Case, Row, stored
from pages import between, markdown

from optalloc.solvers.learned.schedulers import SCHEDULERS

__all__ = ["DETAILS", "PAGE", "PICTURE", "detailed", "draw", "filled", "summary", "tables"]

PAGE = Path(__file__).parents[1] / "docs" / "learned.md"
DETAILS = PAGE.with_name("learned_results.md")
PICTURE = RESULTS / "ratios.svg"
FIRST = "fdqn"
"""What the other learners are held against, with weights of the same kind."""
DRAWS = 2000
SUMMARISED = (
    "fdqn", "additive", "bdq", "flat-dqn", "es-index", "reinforce", "lookahead", "rolling", FIXED_DATA, REFERENCE,
)  # fmt: skip
SHOWN = 14
"""Solvers in a panel of the picture."""

Cell = tuple[str, int, str, str]
"""Preset, tasks, load, coupling."""

Runs = Mapping[Case, Mapping[str, Row]]
"""Of one solver, by the weights ("" where it has none)."""

Planned = Mapping[Case, np.ndarray]
"""(S,) objectives by the weights, of instances on which all of them have a plan; at least 1."""


# what is stored ---------------------------------------------------------------------------------------------
def cells_of(rows: Sequence[Row]) -> dict[Cell, list[Row]]:
    """Rows of each kind of instances."""
    cells: dict[Cell, list[Row]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: (row.case.seed, row.solver)):
        cells[row.case.preset, row.case.tasks, row.case.load, row.case.coupling].append(row)
    return dict(sorted(cells.items()))


def by_solver(rows: Sequence[Row]) -> dict[str, Runs]:
    """Runs of each solver; a learner's shipped weights and those of each kind of instances are solvers of their own.

    Of the reference the run that had most time counts.
    """
    found: dict[str, dict[Case, dict[str, Row]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        name, _, weights = row.solver.partition("@")
        if name in TIMED:
            longest = found[name][row.case].get("", row)
            found[name][row.case][""] = max(row, longest, key=lambda one: one.seconds)
        else:
            found[f"{name} of {weights.rpartition('-')[0]}" if weights else name][row.case][weights] = row
    return found


def planned(runs: Runs) -> Planned:
    """Objectives that can be compared."""
    every = sorted({weights for of in runs.values() for weights in of})
    values = {case: [of[one].objective if one in of else None for one in every] for case, of in runs.items()}
    return {case: np.maximum(1, np.array(of)) for case, of in values.items() if None not in of}


def name_of(cell: Cell) -> str:
    """A cell as a title."""
    preset, tasks, load, coupling = cell
    return f"{preset}, {tasks} tasks, coupling {coupling}" + (f", load {load}" if load else "")


def is_rule(name: str) -> bool:
    """A rule without foresight or learning."""
    return name == BASE or name == "tetris" or name.startswith("online-") or name.endswith("-backfill")


# ratios -----------------------------------------------------------------------------------------------------
class Ratio:
    """Objectives over another solver's, instance by instance.

    Attributes
    ----------
    each
        (I,) means over the weights of both, one over the other.
    mean, low, high
        Of them, with the interval.
    """

    def __init__(self, values: Planned, base: Planned):
        both = [case for case in values if case in base]
        mine, other = (np.array([of[case] for case in both], dtype=float) for of in (values, base))
        self.each = mine.mean(axis=1) / other.mean(axis=1)
        self.mean = float(self.each.mean())
        instances, *weights = _shares(len(both), mine.shape[1], other.shape[1])
        drawn = (mine @ weights[0].T) / (other @ weights[1].T)
        self.low, self.high = np.percentile(np.einsum("di,id->d", instances, drawn), [2.5, 97.5]).tolist()

    def __str__(self) -> str:
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"


def ratio(values: Planned, base: Planned) -> Ratio | None:
    """None where no instance is planned by both."""
    return Ratio(values, base) if values.keys() & base.keys() else None


@lru_cache(maxsize=64)
def _shares(*counts: int) -> list[np.ndarray]:
    """(DRAWS, count) for each count: how often each of them is in a sample of as many, over their number."""
    rng = np.random.default_rng(0)
    return [rng.multinomial(count, np.full(count, 1 / count), size=DRAWS) / count for count in counts]


def middle(found: Ratio) -> str:
    """Mean of the middle half."""
    from scipy.stats import trim_mean

    return f"{trim_mean(found.each, 0.25):.3f}"


# tables -----------------------------------------------------------------------------------------------------
def tables(rows: Sequence[Row]) -> dict[str, str]:
    """The tables of each cell, by its name."""
    return {name_of(cell): "\n\n".join(of_cell(cell, same)) for cell, same in cells_of(rows).items()}


def summary(rows: Sequence[Row]) -> str:
    """A line for each cell: the best rule, every learner, and what knowing the future gives, over the same rule."""
    cells = {cell: by_solver(same) for cell, same in cells_of(rows).items()}
    shown = [name for name in SUMMARISED if any(name in found for found in cells.values())]
    lines = []
    for cell, found in cells.items():
        plans = {name: planned(runs) for name, runs in found.items()}
        base, bounds = plans.get(BASE, {}), bounds_of(found)
        best = best_rule_of(plans)
        own = [str(ratio(plans.get(name, {}), base) or "-") for name in shown]
        gaps = [gap(plans.get(name, {}), bounds) for name in (BASE, FIRST)]
        ahead = ratio(plans.get(FIRST, {}), plans.get(best, {}))
        count = str(len({case for of in found.values() for case in of}))
        of_best = f"{best} {_mean(ratio(plans.get(best, {}), base)):.3f}"
        lines.append([name_of(cell), count, of_best, *own, str(ahead or "-"), *gaps])
    over = [f"{FIRST} over the best rule", f"gap of {BASE}", f"gap of {FIRST}"]
    return markdown(["instances", "number", "best rule", *shown, *over], lines)


def bounds_of(found: Mapping[str, Runs]) -> dict[Case, int]:
    """Proven bounds of the reference."""
    runs = found.get(REFERENCE, {})
    return {case: row.bound for case, of in runs.items() for row in of.values() if row.bound is not None}


def best_rule_of(plans: Mapping[str, Planned]) -> str:
    """The rule with the least mean ratio among those that have as many plans as the base."""
    base = plans.get(BASE, {})
    rules = [name for name in plans if is_rule(name) and len(plans[name]) == len(base)]
    return min(sorted(rules), key=lambda name: _mean(ratio(plans[name], base)), default=BASE)


def gap(values: Planned, bounds: Mapping[Case, int]) -> str:
    """Mean distance to the bound, as a part of the objective."""
    gaps = [1 - bounds[case] / of.mean() for case, of in values.items() if case in bounds]
    return f"{np.mean(gaps):.1%}" if gaps else "-"


def of_cell(cell: Cell, rows: Sequence[Row]) -> Iterator[str]:
    """Objectives of all solvers; `fdqn` against the others that learned alike; what plans are like beside that."""
    found = by_solver(rows)
    plans = {name: planned(runs) for name, runs in found.items()}
    base = plans.get(BASE, {})
    order = sorted(found, key=lambda name: _mean(ratio(plans[name], base)))
    yield f"**{name_of(cell)}** ({len({row.case for row in rows})} instances)"
    yield objectives(order, found, plans)
    yield from against_first(order, plans)
    yield from measures(order, found)


def _mean(found: Ratio | None) -> float:
    return np.inf if found is None else found.mean


def objectives(order: Sequence[str], found: Mapping[str, Runs], plans: Mapping[str, Planned]) -> str:
    """Every solver, best first: its distance to the rule, to the best rule, and to the proven bound."""
    base, best_rule, bounds = plans.get(BASE, {}), best_rule_of(plans), bounds_of(found)
    lines = []
    for name in order:
        runs = [row for of in found[name].values() for row in of.values()]
        of_base, of_best = (ratio(plans[name], other) for other in (base, plans.get(best_rule, {})))
        left = of_the_gap(plans[name], base, bounds)
        lines.append(
            [
                name,
                f"{sum(row.objective is not None for row in runs)} of {len(runs)}",
                str(of_base or "-"),
                middle(of_base) if of_base else "-",
                "-" if name == best_rule else str(of_best or "-"),
                gap(plans[name], bounds),
                "-" if left is None else f"{left:.2f}",
                _shown([row.seconds for row in runs if row.objective is not None], "{:.2f}"),
            ]
        )
    distances = [f"to {BASE}", "IQM", f"to {best_rule}", "gap to the bound", "of the rule's gap"]
    return markdown(["solver", "plans", *distances, "seconds"], lines)


def of_the_gap(values: Planned, base: Planned, bounds: Mapping[Case, int]) -> float | None:
    """Mean distance to the bound over that of the rule, both in the rule's objectives."""
    both = [case for case in values if case in base and case in bounds]
    mine, rule = (
        sum((of[case].mean() - bounds[case]) / base[case].mean() for case in both) for of in (values, base)
    )
    return float(mine / rule) if rule else None


def against_first(order: Sequence[str], plans: Mapping[str, Planned]) -> Iterator[str]:
    """The first learner over each of the others, on the same instances."""
    lines = []
    for name in order:
        kind, _, family = name.partition(" of ")
        first = f"{FIRST} of {family}" if family else FIRST
        found = ratio(plans.get(first, {}), plans[name])
        if kind in (*SCHEDULERS, "lookahead") and kind != FIRST and found is not None:
            counts = [int(np.sum(which)) for which in (found.each < 1, found.each > 1)]
            lines.append(
                [f"{first} over {name}", str(found), *(f"{one} of {len(found.each)}" for one in counts)]
            )
    if lines:
        yield markdown(["learners", "ratio", "better", "worse"], lines)


def measures(order: Sequence[str], found: Mapping[str, Runs]) -> Iterator[str]:
    """Means over all plans of what is not the objective."""
    lines = []
    for name in order:
        known = [row.measures for of in found[name].values() for row in of.values() if row.measures]
        values = [[one[key] for one in known if one.get(key) is not None] for key in MEASURES]
        if known:
            lines.append([name, *(_shown(of, "{:.3g}") for of in values)])
    if lines:
        yield markdown(["solver", *(key.replace("_", " ") for key in MEASURES)], lines)


def _shown(values: Sequence[float], form: str) -> str:
    return form.format(np.mean(values)) if values else "-"


PAIRS = (("fdqn", "online-compute-centric"), ("reinforce", "online-fifo"), ("reinforce", BASE))
"""Whose plans are held against each other in more than the objective: claims X9 to X12, C3 and C4."""


def pairs(rows: Sequence[Row]) -> str:
    """For each pair and cell one over the other: objective and measures, with intervals over the instances."""
    lines = []
    for cell, same in cells_of(rows).items():
        found = by_solver(same)
        for first, second in PAIRS:
            mine, other = found.get(first, {}), found.get(second, {})
            objective = ratio(planned(mine), planned(other))
            if objective is not None:
                measured = [ratio(_measured(mine, key), _measured(other, key)) for key in PAIR_MEASURES]
                shown = [str(one or "-") for one in (objective, *measured)]
                lines.append([f"{first} over {second}", name_of(cell), *shown])
    return markdown(
        ["plans", "instances", "objective", *(key.replace("_", " ") for key in PAIR_MEASURES)], lines
    )


PAIR_MEASURES = ("matching_ratio", "mean_flow_hours", "makespan_hours", "utilisation", "cost_usd")


def _measured(runs: Runs, key: str) -> Planned:
    """(S,) a measure by the weights, of instances where all plans have it and it is not 0."""
    values = {case: [row.measures.get(key) for row in of.values()] for case, of in runs.items()}
    return {case: np.array(of) for case, of in values.items() if all(of)}


# learning ---------------------------------------------------------------------------------------------------
MINUTES = (0, 1, 2, 3, 4, 6, 7, 10, 12)


def curves(folder: Path) -> str:
    """Best look at the validation instances so far by the minutes of training, over the runs of a learner."""
    runs: dict[tuple[str, str], list[list[dict[str, Any]]]] = defaultdict(list)
    for log in sorted(folder.glob("*/log.jsonl")):
        name = next(path.stem for path in sorted(log.parent.glob("*.safetensors")) if path.stem != "state")
        kind = log.parent.name.removeprefix(f"{name}-").rpartition("-")[0]
        looks = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
        minutes = json.loads((log.parent / f"{name}.json").read_text(encoding="utf-8"))["args"]["minutes"]
        # The last look comes when the time is over.
        runs[kind, name].append([look | {"seconds": min(look["seconds"], 60 * minutes)} for look in looks])
    lines = []
    for (kind, name), logs in sorted(runs.items()):
        longest = max(log[-1]["seconds"] for log in logs)
        reached = [_best_by(logs, 60.0 * minutes) if 60 * minutes <= longest else "-" for minutes in MINUTES]
        iterations = " to ".join(
            dict.fromkeys(str(end(log[-1]["iteration"] for log in logs)) for end in (min, max))
        )
        lines.append([kind, name, str(len(logs)), iterations, *reached])
    return markdown(["learned from", "learner", "runs", "iterations", *(f"{m} min" for m in MINUTES)], lines)


def _best_by(logs: Sequence[Sequence[Mapping[str, Any]]], seconds: float) -> str:
    """Mean over runs of the least ratio by then; in brackets the least and the largest of them."""
    best = [min(look["ratio"] for look in log if look["seconds"] <= max(seconds, 1.0)) for log in logs]
    spread = f" [{min(best):.3f}, {max(best):.3f}]" if len(best) > 1 else ""
    return f"{np.mean(best):.3f}{spread}"


# the page ---------------------------------------------------------------------------------------------------
def filled(page: str, rows: Sequence[Row]) -> str:
    """The page with the line of each cell made again of what is stored."""
    text = f"{summary(rows)}\n\n{pairs(rows)}" if rows else "Nothing is stored yet."
    if rows:
        text += f"\n\n![Objectives over {BASE}'s](../benchmarks/results/learned/{PICTURE.name})"
    return between(between(page, "comparison", text), "curves", curves(RESULTS))


def detailed(rows: Sequence[Row]) -> str:
    """The page with all tables."""
    commits = ", ".join(sorted({row.commit for row in rows}))
    command = "`python benchmarks/learned.py report --docs`"
    about = f"Made by {command} of runs of commit {commits}; [what it means](learned.md)."
    return "\n\n".join(["# Learned schedulers: all results", about, *tables(rows).values()]) + "\n"


def draw(rows: Sequence[Row], path: Path) -> None:
    """Mean ratio and interval of every solver, a panel a cell."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    cells = cells_of(rows)
    columns = min(3, len(cells))
    lines = -(-len(cells) // columns)
    figure, axes = pyplot.subplots(lines, columns, figsize=(4.6 * columns, 4.2 * lines), squeeze=False)
    for axis, (cell, same) in zip(axes.flat, cells.items(), strict=False):
        _panel(axis, cell, {name: planned(runs) for name, runs in by_solver(same).items()})
    for axis in list(axes.flat)[len(cells) :]:
        axis.set_visible(False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def _panel(axis: Any, cell: Cell, plans: Mapping[str, Planned]) -> None:
    """The best solvers of a cell."""
    found = {name: ratio(values, plans.get(BASE, {})) for name, values in plans.items()}
    known = {name: of for name, of in found.items() if of is not None}
    best = sorted(known, key=lambda name: known[name].mean)[:SHOWN]
    for height, name in enumerate(reversed(best)):
        of = known[name]
        colour = "tab:grey" if is_rule(name) else "tab:blue" if name != REFERENCE else "tab:green"
        axis.plot([of.low, of.high], [height, height], color=colour)
        axis.plot(of.mean, height, "o", color=colour, markersize=4)
    axis.set_yticks(range(len(best)), list(reversed(best)), fontsize=7)
    axis.axvline(1, linewidth=0.7, color="black")
    rest = f" (best {SHOWN} of {len(known)})" if len(known) > SHOWN else ""
    axis.set_title(name_of(cell) + rest, fontsize=8)


if __name__ == "__main__":
    print("\n\n".join(tables(stored()).values()))
