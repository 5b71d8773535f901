"""Many episodes at once, as Gymnasium wants them: stacked arrays."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from optalloc.environment.gymnasium_env import AllocationEnv, Observation
from optalloc.environment.views import Arrays
from optalloc.errors import Fault, InputError
from optalloc.problem import Bools

__all__ = ["AllocationVectorEnv"]

Batch = tuple[Observation, NDArray[np.float64], Bools, Bools, dict[str, Any]]


class AllocationVectorEnv(VectorEnv[Observation, NDArray[np.int64], Any]):
    """`AllocationEnv` many times over, in one process; observations are written straight into stacked arrays.

    **Autoreset**: next step, as in Gymnasium's own vector environments. The step after an episode has ended takes no
    action: it begins the next episode and returns its first observation with reward 0.

    Parameters
    ----------
    num_envs
        How many.
    settings
        Of each `AllocationEnv`. A ``seed`` s means s, s + 1, ... for the environments in turn.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 (Gymnasium)
        **AllocationEnv.metadata,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(self, num_envs: int = 1, **settings: Any):
        if num_envs < 1:
            raise InputError(Fault("num_envs", f"must be at least 1, got {num_envs}"))
        first = AllocationEnv(**settings)
        # All read their instances, and the generator's, from one source: each is compiled once.
        self.envs = [first, *(first.twin() for _ in range(num_envs - 1))]
        self.num_envs, self.render_mode = num_envs, first.render_mode
        self.single_action_space, self.single_observation_space = first.action_space, first.observation_space
        self.action_space = batch_space(first.action_space, num_envs)
        self.observation_space = batch_space(first.observation_space, num_envs)
        self._seed = settings.get("seed")
        self._ended = np.zeros(num_envs, dtype=bool)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode everywhere; an integer seed s means s, s + 1, ..."""
        if seed is None and self.envs[0].episode is None:
            seed = self._seed
        seeds = [seed + i for i in range(self.num_envs)] if isinstance(seed, int) else seed
        for env, own in zip(self.envs, [None] * self.num_envs if seeds is None else seeds, strict=True):
            env.restart(own, options)
        self._ended[:] = False
        return self._observe(), self._infos()

    def step(self, actions: NDArray[np.int64]) -> Batch:
        """Take one option everywhere."""
        rewards = np.zeros(self.num_envs)
        terminated, truncated = np.zeros(self.num_envs, dtype=bool), np.zeros(self.num_envs, dtype=bool)
        for i, (env, action) in enumerate(zip(self.envs, actions, strict=True)):
            if self._ended[i]:
                env.restart()
            else:
                rewards[i], terminated[i], truncated[i] = env.advance(int(action))
        self._ended = terminated | truncated
        return self._observe(), rewards, terminated, truncated, self._infos()

    def _observe(self) -> Observation:
        shapes = self.envs[0].view.shapes
        stacked = {
            name: np.zeros((self.num_envs, *shape), dtype=np.float32) for name, shape in shapes.items()
        }
        for i, env in enumerate(self.envs):
            env.view.write({name: values[i] for name, values in stacked.items()})
        return {name: values.reshape(self.num_envs, -1) for name, values in stacked.items()}

    def _infos(self) -> dict[str, Any]:
        infos: dict[str, Any] = {}
        for i, env in enumerate(self.envs):
            infos = self._add_info(infos, env.info(), i)
        return infos

    def action_masks(self) -> Bools:
        """(num_envs, actions) which options are possible now."""
        return np.stack([env.action_masks() for env in self.envs])

    def unpack(self, observation: Observation) -> Arrays:
        """The parts of a batch of observations in their own shapes."""
        return self.envs[0].unpack(observation)

    def render(self) -> tuple[Any, ...] | None:
        """A picture or text of each."""
        return tuple(env.render() for env in self.envs) if self.render_mode else None
