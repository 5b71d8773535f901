"""Weights that decide otherwise than the rule, as files."""

from pathlib import Path

import numpy as np

from optalloc.solvers.learned.schedulers import SCHEDULERS
from optalloc.solvers.learned.weights import Arrays, save_weights


def random_weights(name: str, seed: int = 1) -> Arrays:
    """Random numbers in all weights of a scheduler."""
    rng = np.random.default_rng(seed)
    weights = SCHEDULERS[name].initial(seed)
    return {
        one: (array + rng.normal(0, 0.3, array.shape)).astype(array.dtype) for one, array in weights.items()
    }


def written(name: str, folder: Path, seed: int = 1) -> Path:
    """The file of random weights of a scheduler."""
    path = folder / f"{name}-{seed}.safetensors"
    save_weights(path, random_weights(name, seed), {"solver": name})
    return path
