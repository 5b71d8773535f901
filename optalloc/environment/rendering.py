"""An episode as text and as a picture."""

import numpy as np
from numpy.typing import NDArray

from optalloc.environment.episode import Episode
from optalloc.errors import UnsupportedError

__all__ = ["as_picture", "as_text"]

_BAR = 20


def as_text(episode: Episode) -> str:
    """The clock, the value so far, what runs on each node, and the queue."""
    simulator, problem = episode.simulator, episode.problem
    state = "" if not episode.done else (" done" if episode.feasible else f" {simulator.failure}")
    lines = [f"tick {simulator.clock}  value {episode.value}{state}"]
    running = simulator.running
    for node, name in enumerate(problem.node_ids):
        most = max(1, int(problem.capacity(node)[1].max()))
        free = simulator.table.profiles[node].at(simulator.clock)
        here = [problem.task_ids[j] for j in running if node in dict(problem.uses(simulator.firm.mode[j]))]
        taken = round(_BAR * (most - free) / most)
        lines.append(
            f"{name:>12} |{'#' * taken}{'.' * (_BAR - taken)}| {most - free}/{most} {' '.join(here)}".rstrip()
        )
    queue = ", ".join(problem.task_ids[task] for task in simulator.queue)
    return "\n".join([*lines, f"queue: {queue or 'empty'}"])


def as_picture(episode: Episode) -> NDArray[np.uint8]:
    """(height, width, 3) the Gantt chart of what is decided for good.

    Raises
    ------
    UnsupportedError
        Without matplotlib.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UnsupportedError('Pictures need matplotlib: pip install "optalloc[plot]".') from error
    from optalloc.plotting.gantt import draw_gantt

    figure = Figure(figsize=(10, 5), dpi=80, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    axes = draw_gantt(episode.problem, episode.simulator.plan(), figure.subplots())
    axes.axvline(episode.simulator.clock * float(episode.problem.instance.tick_seconds) / 3600, color="red")
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()
