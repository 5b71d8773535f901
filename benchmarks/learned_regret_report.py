"""Tables of what `learned_regret.py` has stored."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
from learned_regret import ACCESS, DATASET, LEVELS, UNTRAINED, Decision, Row
from pages import between, markdown

__all__ = ["PAGE", "filled", "tables"]

PAGE = Path(__file__).parents[1] / "docs" / "learned_regret.md"

Measured = Sequence[tuple[Row, Decision]]
"""Decisions with the runs that they belong to."""


def filled(page: str, text: str) -> str:
    """The page with its tables made again."""
    return between(page, "regret", text)


def tables(rows: Sequence[Row]) -> str:
    """For each kind of instance what is lost and where; for all of them what factorisations lose."""
    cells: dict[tuple[str, int, bool, str], list[Row]] = defaultdict(list)
    for row in rows:
        case = row.trial.case
        cells[case.preset, case.tasks, row.trial.control, case.coupling].append(row)
    parts = [
        f"**{title(*cell)}**\n\n{account_table(same)}\n\n{level_table(same)}"
        for cell, same in sorted(cells.items())
    ]
    bias = [line for cell, same in sorted(cells.items()) for line in bias_lines(title(*cell), same)]
    columns = ["instances", "scheduler", "decisions", "wrong pair"]
    for kind in (ACCESS, DATASET):
        columns += [f"{kind} x node", "additive wrong", "additive loses", "conditional loses"]
    return "\n\n".join([*parts, markdown(columns, bias)]) if rows else "Nothing is stored yet."


def title(preset: str, tasks: int, control: bool, coupling: str) -> str:
    """A cell in words."""
    return f"{preset}, {tasks} tasks, coupling {coupling}{', control' if control else ''}"


def by_scheduler(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Rows of each scheduler: shipped weights, all weights of a family together, untrained ones."""
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        name, _, of = row.trial.scheduler.partition("@")
        kind = f"{name} of {of.rpartition('-')[0]}" if of and of != UNTRAINED else row.trial.scheduler
        found[kind].append(row)
    return found


def account_table(rows: Sequence[Row]) -> str:
    """Mean gap to the optimum, and where it comes from."""
    lines = []
    for name, same in by_scheduler(rows).items():
        parts = [np.array([*asdict(row.account).values()]) / row.optimum for row in same if row.account]
        shown = [f"{mean:.2%}" for mean in np.mean(parts, axis=0)] if parts else ["-"] * 3
        above = interval(by_case(same)) if parts else "-"
        lines.append([name, f"{len(same)}", above, *shown, f"{len(same) - len(parts)}"])
    columns = ["scheduler", "runs", "above the optimum", "decided", "transfers", "waiting", "not measured"]
    return markdown(columns, lines)


def by_case(rows: Sequence[Row]) -> np.ndarray:
    """(C,) what runs lose on each instance, as a part of the optimum: the mean over the weights there."""
    found: dict[object, list[float]] = defaultdict(list)
    for row in rows:
        if row.account:
            found[row.trial.case].append(sum(asdict(row.account).values()) / row.optimum)
    return np.array([np.mean(of) for of in found.values()])


def interval(values: np.ndarray) -> str:
    """Mean, and an interval of 95 % by drawing instances again."""
    from scipy.stats import bootstrap

    mean = f"{values.mean():.2%}"
    if len(values) < 2 or np.ptp(values) == 0:
        return mean
    found = bootstrap((values,), np.mean, method="percentile", rng=0).confidence_interval
    return f"{mean} [{found.low:.2%}, {found.high:.2%}]"


def level_table(rows: Sequence[Row]) -> str:
    """Mean loss of each level in % of the optimum, and the share of decisions with any; for good and for now."""
    lines = []
    for name, same in by_scheduler(rows).items():
        for kind, good in (("for good", True), ("for now", False)):
            every = [(row, each) for row in same for each in row.decisions if each.for_good is good]
            known = [(row, each) for row, each in every if each.losses]
            cells = [name, kind, f"{len(known)}", *(spoken(known, of_level(k)) for k in range(len(LEVELS)))]
            lines.append([*cells, spoken(known, lambda each: each.beyond), not_measured(every)])
    return markdown(["scheduler", "commitments", "decisions", *LEVELS, "any action", "not measured"], lines)


def of_level(level: int) -> Callable[[Decision], float]:
    """What a decision loses at a level."""
    return lambda decision: decision.losses[level]


def spoken(known: Measured, loss: Callable[[Decision], float]) -> str:
    """Mean loss over the optimum (share of decisions with any)."""
    if not known:
        return "-"
    lost = [loss(each) for _, each in known]
    mean = np.mean([value / row.optimum for value, (row, _) in zip(lost, known, strict=True)])
    return f"{mean:.2%} ({np.mean([value > 0 for value in lost]):.0%})"


def not_measured(every: Measured) -> str:
    """Decisions without losses by kind."""
    kinds = [each.kind for _, each in every if not each.losses]
    return ", ".join(f"{kinds.count(kind)} {kind}" for kind in sorted(set(kinds))) or "-"


def bias_lines(name: str, rows: Sequence[Row]) -> Iterator[list[str]]:
    """What the pair of an additive fit loses in the states that each scheduler meets."""
    for scheduler, same in by_scheduler(rows).items():
        known = [(row, each) for row in same for each in row.decisions if each.losses]
        wrong = f"{np.mean([each.wrong_pair for _, each in known]):.0%}" if known else "-"
        fits = [cell for kind in (ACCESS, DATASET) for cell in bias(known, kind)]
        yield [name, scheduler, f"{len(known)}", wrong, *fits]


def bias(known: Measured, kind: str) -> list[str]:
    """Decisions with a choice of both and the mean number of pairs; how often the additive one is wrong; losses."""
    found = [(row.optimum, *each.fits[kind]) for row, each in known if kind in each.fits]
    if not found:
        return ["0", "-", "-", "-"]
    optimum, pairs, *lost = np.array(found).T
    shares = [f"{np.mean(loss / optimum):.2%}" for loss in lost]
    return [f"{len(found)} of {pairs.mean():.1f} pairs", f"{np.mean(lost[0] > 0):.0%}", *shares]
