"""A Gantt chart: nodes over time, one lane a device; transfers above."""

from typing import TYPE_CHECKING

import numpy as np

from optalloc.errors import visible
from optalloc.plotting.lanes import assign_lanes
from optalloc.problem import Plan, Problem

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_gantt"]

_TRANSFER_COLOUR = "#8c8c8c"
_CLOSED_COLOUR = "#e8e8e8"
_LONGEST = 60
"""Characters of a name that are drawn."""


def draw_gantt(problem: Problem, plan: Plan, ax: "Axes | None" = None) -> "Axes":
    """Draw a plan: a band per node with a lane per device, and above them a lane per transfer.

    Grey areas are outside the node's availability. The colour of a run is that of its first dataset.

    Parameters
    ----------
    ax
        Axes to draw on; a new figure of fitting size by default.

    Returns
    -------
    The axes. Nothing is shown or saved.
    """
    import matplotlib.pyplot as plt

    hours = float(problem.instance.tick_seconds) / 3600
    bands = _bands(problem)
    height = bands[-1][2] if bands else 1
    if ax is None:
        size = (12, max(3.0, 0.22 * (height + len(plan.transfers)) + 1.5))
        _, ax = plt.subplots(figsize=size, layout="constrained")
    end = _last_tick(problem, plan)
    for node, bottom, top in bands:
        _draw_closed(ax, problem, node, bottom, top, end, hours)
        _draw_runs(ax, problem, plan, node, bottom, hours)
        ax.axhline(top, color="black", linewidth=0.5)
    _draw_transfers(ax, problem, plan, height, hours)
    _label(ax, problem, bands, height, len(plan.transfers))
    ax.set_xlim(min(0, *_starts(plan)) * hours, max(end, 1) * hours)
    ax.set_xlabel("hours")
    ax.set_title(_name(problem.instance.name))
    _legend(ax, problem, plan)
    return ax


def _name(text: str) -> str:
    """A name as Matplotlib draws it literally: a pair of $ would be read as mathematics."""
    name = visible(text)
    name = name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"
    return name.replace("$", r"\$")


def _bands(problem: Problem) -> list[tuple[int, int, int]]:
    """(node, bottom, top) of each node's band, in lanes."""
    bands, top = [], 0
    for node in range(problem.num_nodes):
        devices = max(1, int(problem.instance.nodes[node].devices))
        bands.append((node, top, top + devices))
        top += devices
    return bands


def _starts(plan: Plan) -> list[int]:
    return [0, *(int(s) for s in plan.start[plan.mode >= 0]), *(t.start for t in plan.transfers)]


def _last_tick(problem: Problem, plan: Plan) -> int:
    placed = plan.mode >= 0
    ends = plan.start[placed] + problem.duration[plan.mode[placed]]
    return int(max([*ends.tolist(), *(t.end for t in plan.transfers)], default=1))


def _draw_closed(
    ax: "Axes", problem: Problem, node: int, bottom: int, top: int, end: int, hours: float
) -> None:
    """Shade the lanes that the calendar takes away."""
    times, amounts = problem.capacity(node)
    for i, amount in enumerate(amounts.tolist()):
        until = int(times[i + 1]) if i + 1 < len(times) else end
        if bottom + amount < top and until > times[i]:
            span = (int(times[i]) * hours, (until - int(times[i])) * hours)
            ax.broken_barh(
                [span], (bottom + amount, top - bottom - amount), facecolors=_CLOSED_COLOUR, zorder=0
            )


def _draw_runs(ax: "Axes", problem: Problem, plan: Plan, node: int, bottom: int, hours: float) -> None:
    runs = []
    for task in np.flatnonzero(plan.mode >= 0).tolist():
        mode = int(plan.mode[task])
        amount = dict(problem.uses(mode)).get(node, 0)
        if amount:
            start = int(plan.start[task])
            runs.append((task, mode, start, start + int(problem.duration[mode]), amount))
    devices = max(1, int(problem.instance.nodes[node].devices))
    lanes = assign_lanes([run[2:] for run in runs], devices)
    for (task, mode, start, end, _), rows in zip(runs, lanes, strict=True):
        colour = _colour(problem, mode)
        for first, last in _stretches(rows):
            span = [(start * hours, (end - start) * hours)]
            rows_span = (bottom + first, last - first + 1)
            ax.broken_barh(span, rows_span, facecolors=colour, edgecolors="white", linewidth=0.8)
        if rows:
            middle = bottom + (rows[0] + rows[-1] + 1) / 2
            name = _name(problem.task_ids[task])
            text = ax.text((start + end) / 2 * hours, middle, name, fontsize=7, clip_on=True)
            text.set(ha="center", va="center")


def _stretches(rows: list[int]) -> list[tuple[int, int]]:
    """Maximal runs of consecutive lanes: [0, 1, 3] -> [(0, 1), (3, 3)]."""
    stretches: list[tuple[int, int]] = []
    for row in rows:
        if stretches and stretches[-1][1] == row - 1:
            stretches[-1] = (stretches[-1][0], row)
        else:
            stretches.append((row, row))
    return stretches


def _draw_transfers(ax: "Axes", problem: Problem, plan: Plan, height: int, hours: float) -> None:
    for row, transfer in enumerate(sorted(plan.transfers, key=lambda t: (t.start, t.dataset, t.site))):
        span = [(transfer.start * hours, transfer.ticks * hours)]
        ax.broken_barh(span, (height + 1 + row, 0.8), facecolors=_TRANSFER_COLOUR)
        dataset, site = problem.dataset_ids[transfer.dataset], problem.site_ids[transfer.site]
        text = f" {_name(dataset)} → {_name(site)}"
        ax.text(transfer.end * hours, height + 1.4 + row, text, va="center", fontsize=7)


def _colour(problem: Problem, mode: int) -> str:
    import matplotlib.pyplot as plt

    inputs = problem.inputs(mode)
    if not inputs:
        return "#b0b0b0"
    red, green, blue, _ = plt.get_cmap("tab20")(inputs[0][0] % 20)
    return f"#{int(255 * red):02x}{int(255 * green):02x}{int(255 * blue):02x}"


def _label(
    ax: "Axes", problem: Problem, bands: list[tuple[int, int, int]], height: int, transfers: int
) -> None:
    ticks = [(bottom + top) / 2 for _, bottom, top in bands]
    labels = [f"{_name(problem.node_ids[n])} ({top - bottom})" for n, bottom, top in bands]
    if transfers:
        ticks.append(height + 1 + transfers / 2)
        labels.append("transfers")
    ax.set_yticks(ticks, labels)
    ax.set_ylim(0, height + 1 + transfers)


def _legend(ax: "Axes", problem: Problem, plan: Plan) -> None:
    from matplotlib.patches import Patch

    first = {}
    for mode in plan.mode[plan.mode >= 0].tolist():
        for dataset, _, _ in problem.inputs(mode)[:1]:
            first[dataset] = _colour(problem, mode)
    patches = [
        Patch(color=colour, label=_legend_name(problem.dataset_ids[d])) for d, colour in sorted(first.items())
    ]
    if patches:
        ax.legend(handles=patches, title="dataset", loc="center left", bbox_to_anchor=(1, 0.5), fontsize=7)


def _legend_name(text: str) -> str:
    """A legend leaves out what begins with an underscore."""
    name = _name(text)
    return f" {name}" if name.startswith("_") else name
