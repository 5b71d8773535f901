"""Modes never worth choosing: another mode of the same task is at least as good in everything."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from optalloc.problem import Bools, Ints

__all__ = ["Signatures", "active_modes"]

_CHUNK: Final = 200_000
"""Rows looked at together: bounds the memory."""
_REMEMBERED: Final = 10**6
"""Comparisons of signatures that are kept."""


class Signatures:
    """What modes hold beside the devices of one node: multisets of tokens, equal ones with the same number.

    Number 0 is the empty multiset. All numbers are given before the first comparison.
    """

    def __init__(self) -> None:
        self._number: dict[tuple[tuple[int, int], ...], int] = {(): 0}
        self._amounts: list[dict[int, int]] = [{}]
        self._size = [0]
        self._mask = [0]
        self._known: dict[int, bool] = {}

    def number(self, amounts: Mapping[int, int]) -> int:
        """The signature of token -> amount."""
        key = tuple(sorted(amounts.items()))
        if key not in self._number:
            self._number[key] = len(self._amounts)
            self._amounts.append(dict(key))
            self._size.append(sum(amounts.values()))
            self._mask.append(_token_mask(amounts))
        return self._number[key]

    def sizes(self) -> Ints:
        """Total amount of each signature."""
        return np.array(self._size, dtype=np.int64)

    def masks(self) -> Ints:
        """62 bits of each signature: a subset's bits are a subset of the bits."""
        return np.array(self._mask, dtype=np.int64)

    def subset(self, small: Ints, large: Ints) -> Bools:
        """Whether each ``small[i]`` is contained in ``large[i]``."""
        pairs, inverse = np.unique(small * len(self._amounts) + large, return_inverse=True)
        if len(self._known) > _REMEMBERED:
            self._known.clear()
        known = [self._is_subset(pair) for pair in pairs.tolist()]
        return np.asarray(np.array(known, dtype=bool)[inverse.reshape(-1)])

    def _is_subset(self, pair: int) -> bool:
        known = self._known.get(pair)
        if known is None:
            small, large = (self._amounts[number] for number in divmod(pair, len(self._amounts)))
            known = all(large.get(token, 0) >= amount for token, amount in small.items())
            self._known[pair] = known
        return known


def _token_mask(tokens: Mapping[int, int]) -> int:
    mask = 0
    for token in tokens:
        mask |= 1 << (token * 0x9E3779B97F4A7C15 % 2**64 % 61)
    return mask


@dataclass(frozen=True, eq=False)
class Rows:
    """A row per mode and node it uses, sorted by group (task and node) and then best first."""

    mode: Ints
    group: Ints
    duration: Ints
    money: Ints
    utility: Ints
    available: Ints
    amount: Ints
    signature: Ints
    mask: Ints

    def take(self, rows: Ints) -> "Rows":
        """Some of the rows."""
        return Rows(*(column[rows] for column in vars(self).values()))


def active_modes(
    task: Ints,
    duration: Ints,
    money: Ints,
    utility: Ints,
    available: Ints,
    uses: tuple[Ints, Ints, Ints],
    signature: Ints,
    signatures: Signatures,
) -> Bools:
    """(M,) False where another mode of the same task is no worse in everything; exact ties keep the first.

    Parameters
    ----------
    task
        (M,) increasing.
    uses
        (mode, node, devices) of every node that a mode uses, by mode.
    signature
        (M,) what the mode holds beside: replicas, purchases, seats, channels, and for modes on several
        nodes all their devices.
    """
    active = np.ones(len(task), dtype=bool)
    mode, node, amount = uses
    size, mask = signatures.sizes(), signatures.masks()
    for part in _chunks(task[mode]):
        rows = mode[part]
        columns = (duration[rows], money[rows], utility[rows], available[rows], amount[part], signature[rows])
        table = Rows(rows, _groups(task[rows], node[part]), *columns, mask[signature[rows]])
        active[_dominated(_sorted(table, size), signatures)] = False
    return active


def _chunks(task: Ints) -> Iterator[slice]:
    """Slices of whole tasks of about _CHUNK rows."""
    begin = 0
    while begin < len(task):
        end = min(begin + _CHUNK, len(task))
        if end < len(task):
            whole = int(np.searchsorted(task, task[end], side="left"))
            end = whole if whole > begin else int(np.searchsorted(task, task[end], side="right"))
        yield slice(begin, end)
        begin = end


def _groups(task: Ints, node: Ints) -> Ints:
    return np.asarray((task - task[0]) * (int(node.max()) + 1) + node)


def _sorted(rows: Rows, size: Ints) -> Rows:
    """By group; within a group nothing is dominated by a later row."""
    keys = (
        rows.mode,
        size[rows.signature],
        rows.amount,
        rows.available,
        -rows.utility,
        rows.money,
        rows.duration,
    )
    return rows.take(np.lexsort((*keys, rows.group)))


def _dominated(rows: Rows, signatures: Signatures) -> Ints:
    """Modes that a better row of some group of theirs dominates.

    The best remaining row of every group is compared with all rows after it; what it dominates leaves at once
    (dominance is transitive), and then it is the turn of the next.
    """
    left = np.arange(len(rows.mode))
    rank = np.cumsum(np.diff(rows.group, prepend=rows.group[:1]) != 0)
    sizes = np.bincount(rank)
    found: list[Ints] = []
    for turn in range(int(sizes.max(initial=0))):
        left = left[(sizes > turn + 1)[rank[left]]]
        if not len(left):
            break
        sizes = np.bincount(rank[left], minlength=len(sizes))
        worse = _worse(rows, left, sizes[sizes > 0], turn, signatures)
        found.append(rows.mode[left[worse]])
        sizes = sizes - np.bincount(rank[left[worse]], minlength=len(sizes))
        left = np.delete(left, worse)
    return np.concatenate([np.zeros(0, dtype=np.int64), *found])


def _worse(rows: Rows, left: Ints, sizes: Ints, turn: int, signatures: Signatures) -> Ints:
    """Positions in ``left`` of rows dominated by row number ``turn`` of their group; groups have ``sizes`` rows.

    Later rows are no shorter, by the order of the rows.
    """
    starts = np.cumsum(sizes) - sizes
    leaders = left[starts + turn]
    after = np.arange(len(left)) > np.repeat(starts + turn, sizes)
    position = np.flatnonzero(after & (np.repeat(rows.money[leaders], sizes) <= rows.money[left]))
    later, best = left[position], np.repeat(leaders, sizes)[position]
    for column, sign in ((rows.utility, -1), (rows.available, 1), (rows.amount, 1)):
        fits = sign * column[best] <= sign * column[later]
        position, later, best = position[fits], later[fits], best[fits]
    fits = (rows.mask[best] & ~rows.mask[later]) == 0
    position, later, best = position[fits], rows.signature[later[fits]], rows.signature[best[fits]]
    unsure = np.flatnonzero((best != 0) & (best != later))
    if len(unsure):
        contained = signatures.subset(best[unsure], later[unsure])
        position = np.delete(position, unsure[~contained])
    return position
