"""Allocation as a Gymnasium environment."""

import math
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any, SupportsFloat

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from optalloc.environment.descent import FactoredView
from optalloc.environment.episode import Episode
from optalloc.environment.prepared import Prepared
from optalloc.environment.rendering import as_picture, as_text
from optalloc.environment.shaping import Potential, potential_of
from optalloc.environment.sizes import Sizes
from optalloc.environment.source import Given, Source
from optalloc.environment.views import Arrays, FlatView
from optalloc.errors import Fault, InputError
from optalloc.instance import Instance
from optalloc.problem import Bools, Problem

__all__ = ["AllocationEnv"]

Observation = dict[str, Any]
Step = tuple[Observation, SupportsFloat, bool, bool, dict[str, Any]]

INVALID = ("raise", "noop")

_MOST_CELLS = 2**24
"""Numbers in one observation: 64 MiB. Larger ones are a mistake."""


class AllocationEnv(gymnasium.Env[Observation, np.int64]):
    """Which data, which devices, how many, and when: one decision after the other, without knowing the future.

    **Action space.** ``Discrete``. Flat (default): a mode of a waiting task, rejecting it, a transfer, or waiting for
    the next event (`FlatView`). Factored: task, data, node and devices one after the other (`FactoredView`). What is
    possible says `action_masks`, and ``info["action_mask"]`` after every step.

    **Observation space.** ``Dict`` of flat float32 boxes in [-1, 1]; `unpack` gives them back their shapes. Features
    and their units: `optalloc.environment.features`.

    **Reward.** Minus the growth of the objective of what is decided for good, in whole numbers scaled by K: the
    undiscounted return of a feasible episode is exactly ``-(objective - info["start_value"])``.

    **Episode end.** Terminated when everything is decided, or at a dead end: a task that must run has missed its
    deadline, a limit is passed, or nothing is possible any more. The last reward then holds ``-penalty``, and
    ``info["feasible"]`` is False.

    Parameters
    ----------
    instance, generator, generator_options, instance_seeds, objective, limits
        What to solve: see `Source`. With ``reset(options={"instance_seed": n})`` the generator makes that one.
    seed
        Seed of the instances and of nothing else, for a `reset` without one.
    discipline
        ``"replan"`` or ``"reserve"`` (docs/online.md).
    transfers
        ``"none"``, ``"seen"`` or ``"any"``: see `Episode`.
    factored
        The view of a decision.
    invalid
        What an option does that is masked out: ``"raise"`` a ValueError, or ``"noop"``: nothing changes, reward 0.
    max_steps
        Truncate after so many steps. Default: never; with ``"noop"`` 1,000 + 100 for each task.
    penalty
        Of a dead end, >= 0. Default: more than any plan costs that ends by the horizon (`Prepared.worst`).
    shaping
        None; ``"backlog"``; or a function of an `Episode`: its potential. The reward of a step from s to s' gains
        ``gamma * potential(s') - potential(s)``, with 0 for the potential of the end: no optimal policy changes.
    gamma
        Discount of the learner, for the shaping only.
    sizes
        Of the observation, all or some (`Sizes`); default what the instances need.
    render_mode
        ``"ansi"``, ``"rgb_array"`` or None.

    Raises
    ------
    InputError
        A parameter, an instance that cannot be read, has no plan, nothing to decide, or does not fit the sizes.
    UnsupportedError
        The objective has several levels.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi", "rgb_array"], "render_fps": 4}  # noqa: RUF012 (Gymnasium)

    def __init__(
        self,
        instance: Given | Sequence[Given] | None = None,
        *,
        generator: str | Callable[[int], Instance | Problem] | None = None,
        generator_options: Mapping[str, Any] | None = None,
        instance_seeds: Sequence[int] = range(2**31),
        objective: str | None = None,
        limits: Mapping[str, Any] | None = None,
        seed: int | None = None,
        discipline: str = "replan",
        transfers: str = "seen",
        factored: bool = False,
        invalid: str = "raise",
        max_steps: int | None = None,
        penalty: float | None = None,
        shaping: str | Potential | None = None,
        gamma: float = 1.0,
        sizes: Sizes | Mapping[str, int] | None = None,
        render_mode: str | None = None,
    ):
        _check(invalid=invalid, penalty=penalty, gamma=gamma, max_steps=max_steps, render_mode=render_mode)
        self.source = Source(instance, generator, generator_options, instance_seeds, objective, limits)
        self.discipline, self.transfers = discipline, transfers
        self.invalid, self.max_steps, self.penalty = invalid, max_steps, penalty
        self.potential, self.gamma = potential_of(shaping), gamma
        self.render_mode = render_mode
        self.sizes = _sizes(sizes, self.source)
        self.view: FlatView | FactoredView = FactoredView(self.sizes) if factored else FlatView(self.sizes)
        self.action_space = spaces.Discrete(self.view.size)
        self.observation_space = spaces.Dict(
            {
                name: spaces.Box(-1, 1, (int(np.prod(shape)),), np.float32)
                for name, shape in self.view.shapes.items()
            }
        )
        _check_cells(self.view)
        self._first_seed = seed
        self.episode: Episode | None = None

    def twin(self) -> "AllocationEnv":
        """An environment with the same settings and source, without an episode."""
        twin = copy(self)
        twin.view = type(self.view)(self.sizes)
        twin.episode = None
        return twin

    # Gymnasium --------------------------------------------------------------------------------------------
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode."""
        self.restart(seed, options)
        return self.observe(), self.info()

    def step(self, action: np.int64) -> Step:
        """Take an option."""
        reward, terminated, truncated = self.advance(int(action))
        return self.observe(), reward, terminated, truncated, self.info()

    def render(self) -> Any:
        """Text, or a Gantt chart of what is decided for good."""
        if self.render_mode is None:
            gymnasium.logger.warn("Nothing is rendered: the environment has render_mode=None.")
            return None
        return as_text(self.running) if self.render_mode == "ansi" else as_picture(self.running)

    def action_masks(self) -> Bools:
        """(actions,) which options are possible now."""
        return self.view.mask()

    # parts ------------------------------------------------------------------------------------------------
    @property
    def running(self) -> Episode:
        """The episode.

        Raises
        ------
        RuntimeError
            Before the first `reset`.
        """
        if self.episode is None:
            raise RuntimeError("The environment has to be reset first.")
        return self.episode

    def restart(self, seed: int | None = None, options: Mapping[str, Any] | None = None) -> None:
        """`reset` without an observation."""
        if seed is None and self.episode is None:
            seed = self._first_seed
        super().reset(seed=seed)
        self._begin(self._drawn(options or {}))

    def _drawn(self, options: Mapping[str, Any]) -> Prepared:
        unknown = set(options) - {"instance_seed"}
        if unknown:
            raise InputError(
                [Fault(f"options.{name}", "is not known; there is instance_seed") for name in unknown]
            )
        if "instance_seed" in options:
            return self.source.of_seed(int(options["instance_seed"]))
        return self.source.draw(self.np_random)

    def _begin(self, prepared: Prepared) -> None:
        self.sizes.check(prepared.layout)
        episode = Episode(prepared, self.discipline, self.transfers)
        if episode.done:
            reason = episode.simulator.failure or "every task is decided from the start"
            raise InputError(
                Fault("instance", f"{prepared.problem.instance.name!r} has nothing to decide: {reason}")
            )
        self.episode, self._steps = episode, 0
        self._limit = self.max_steps
        if self._limit is None and self.invalid == "noop":
            self._limit = 1000 + 100 * episode.problem.num_tasks
        self._terminated = self._truncated = False
        self._potential = self.potential(episode) if self.potential else 0.0
        self.view.begin(episode)

    def advance(self, option: int) -> tuple[float, bool, bool]:
        """`step` without an observation: reward, terminated, truncated."""
        episode = self.running
        if self._terminated or self._truncated:
            raise RuntimeError("The episode has ended: reset the environment.")
        self._steps += 1
        reward = 0.0
        if self._is_possible(option):
            action = self.view.choose(option)
            if action is not None:
                reward = float(-episode.apply(action))
                self.view.begin(episode)
        self._terminated = episode.done
        self._truncated = not self._terminated and self._limit is not None and self._steps >= self._limit
        if episode.done and not episode.feasible:
            reward -= self._penalty()
        return reward + self._shaping(), self._terminated, self._truncated

    def _is_possible(self, option: int) -> bool:
        mask = self.view.mask()
        possible = 0 <= option < len(mask) and bool(mask[option])
        if not possible and self.invalid == "raise":
            raise ValueError(
                f"Action {option} is masked out: take one of action_masks(), or use invalid='noop'."
            )
        return possible

    def _penalty(self) -> float:
        return float(self.running.prepared.worst if self.penalty is None else self.penalty)

    def _shaping(self) -> float:
        if self.potential is None:
            return 0.0
        before = self._potential
        self._potential = 0.0 if self._terminated else self.potential(self.running)
        return self.gamma * self._potential - before

    def observe(self) -> Observation:
        """The observation, in new arrays."""
        parts = {name: np.zeros(shape, dtype=np.float32) for name, shape in self.view.shapes.items()}
        self.view.write(parts)
        return {name: values.reshape(-1) for name, values in parts.items()}

    def unpack(self, observation: Mapping[str, NDArray[np.float32]]) -> Arrays:
        """The parts of an observation, or of a batch of them, in their own shapes (``view.shapes``)."""
        shapes = self.view.shapes
        return {name: part.reshape(*part.shape[:-1], *shapes[name]) for name, part in observation.items()}

    def info(self) -> dict[str, Any]:
        """Mask, value and clock; at the end the objective, whether there is a plan, and the plan."""
        episode = self.running
        found: dict[str, Any] = {
            "action_mask": self.view.mask().astype(np.int8),
            "value": episode.value,
            "start_value": episode.start_value,
            "clock": episode.simulator.clock,
        }
        if self._terminated:
            found |= {
                "objective": episode.value,
                "feasible": episode.feasible,
                "schedule": episode.schedule(),
            }
            found["failure"] = episode.simulator.failure
        return found


def _check(
    *, invalid: str, penalty: float | None, gamma: float, max_steps: int | None, render_mode: str | None
) -> None:
    modes = AllocationEnv.metadata["render_modes"]
    faults = [
        Fault(name, message)
        for name, message, wrong in (
            ("invalid", f"must be one of {', '.join(INVALID)}, got {invalid!r}", invalid not in INVALID),
            ("penalty", f"must be finite and >= 0, got {penalty}", not 0 <= (penalty or 0) < float("inf")),
            ("gamma", f"must be above 0 and at most 1, got {gamma}", not 0 < gamma <= 1),
            ("max_steps", f"must be at least 1, got {max_steps}", max_steps is not None and max_steps < 1),
            (
                "render_mode",
                f"must be one of {', '.join(modes)}, got {render_mode!r}",
                render_mode not in (None, *modes),
            ),
        )
        if wrong
    ]
    if faults:
        raise InputError(faults)


def _check_cells(view: FlatView | FactoredView) -> None:
    cells = sum(math.prod(shape) for shape in view.shapes.values())
    if cells > _MOST_CELLS:
        message = f"one observation would hold {cells:,} numbers; show fewer tasks, for example sizes={{'tasks': 50}}"
        raise InputError(Fault("sizes", message))


def _sizes(given: Sizes | Mapping[str, int] | None, source: Source) -> Sizes:
    if isinstance(given, Sizes):
        return given
    return source.sizes() if given is None else source.sizes().changed(given)
