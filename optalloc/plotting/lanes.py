"""Which of a pool's identical devices a run is drawn on."""

from collections.abc import Iterable

__all__ = ["assign_lanes"]


def assign_lanes(runs: Iterable[tuple[int, int, int]], devices: int) -> list[list[int]]:
    """Give each run as many lanes as it uses devices, lowest free ones first.

    Parameters
    ----------
    runs
        (start, end, amount) of each run, ticks and devices; together they never need more than ``devices``.
    devices
        Number of lanes.

    Returns
    -------
    For each run, in the given order, its lanes in increasing order.

    Examples
    --------
    >>> assign_lanes([(0, 2, 1), (0, 3, 2), (2, 4, 1)], devices=3)
    [[0], [1, 2], [0]]
    """
    runs = list(runs)
    busy_until: list[int | None] = [None] * devices
    lanes: list[list[int]] = [[] for _ in runs]
    for index in sorted(range(len(runs)), key=lambda i: runs[i][:2]):
        start, end, amount = runs[index]
        free = [lane for lane, until in enumerate(busy_until) if until is None or until <= start]
        lanes[index] = free[:amount]
        for lane in lanes[index]:
            busy_until[lane] = end
    return lanes
