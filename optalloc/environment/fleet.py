"""Many episodes at once for learners with networks of their own: ragged arrays, no padding, no Gymnasium."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optalloc.environment.episode import Episode
from optalloc.environment.frame import Frame, frame_of, joined
from optalloc.environment.source import Source
from optalloc.errors import Fault, InputError
from optalloc.problem import Bools, Ints
from optalloc.simulation import REPLAN

__all__ = ["Fleet", "Outcome"]


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a step has brought, for every episode.

    Attributes
    ----------
    growth
        (B,) by how much the objective has grown, scaled by K; its sum over a feasible episode is the objective less
        ``start_value``.
    elapsed
        (B,) ticks that have passed.
    done
        (B,) episodes that have ended; in their places stand new ones.
    ended
        Those episodes.
    """

    growth: Ints
    elapsed: Ints
    done: Bools
    ended: list[Episode]


class Fleet:
    """Episodes that are stepped together.

    **Autoreset**: same step. Where an episode ends, the next one stands in its place when `step` returns; what ended
    is in the `Outcome`.

    Parameters
    ----------
    source
        Where the instances come from.
    size
        How many episodes at a time.
    seed
        Of the instances that are drawn; at least 0.
    discipline, transfers
        See `Episode`.

    Attributes
    ----------
    episodes
        Those that are under way.
    """

    def __init__(
        self, source: Source, size: int, *, seed: int = 0, discipline: str = REPLAN, transfers: str = "seen"
    ):
        if size < 1:
            raise InputError(Fault("size", f"must be at least 1, got {size}"))
        if seed < 0:
            raise InputError(Fault("seed", f"must be at least 0, got {seed}"))
        self.source, self.discipline, self.transfers = source, discipline, transfers
        self._rngs = [np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(size)]
        self.episodes = [self._next(rng) for rng in self._rngs]

    def _next(self, rng: np.random.Generator) -> Episode:
        episode = Episode(self.source.draw(rng), self.discipline, self.transfers)
        if episode.done:
            raise InputError(Fault("instance", f"{episode.problem.instance.name!r} has nothing to decide"))
        return episode

    def frame(self) -> Frame:
        """The decisions of all episodes."""
        return joined([frame_of(episode) for episode in self.episodes])

    def step(self, options: Sequence[int] | NDArray[np.int64]) -> Outcome:
        """Take one option in each episode, counted from the episode's own first (`Frame`).

        Raises
        ------
        ValueError
            One of them is masked out; the episodes before it have gone on.
        """
        growth = np.zeros(len(self.episodes), dtype=np.int64)
        elapsed, done, ended = growth.copy(), np.zeros(len(growth), dtype=bool), []
        for i, (episode, option) in enumerate(zip(self.episodes, options, strict=True)):
            before = episode.simulator.clock
            growth[i] = episode.choose(int(option))
            elapsed[i] = episode.simulator.clock - before
            if episode.done:
                done[i] = True
                ended.append(episode)
                self.episodes[i] = self._next(self._rngs[i])
        return Outcome(growth, elapsed, done, ended)
