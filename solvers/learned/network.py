"""The network of the learned schedulers, as plain arrays: what acts needs NumPy only.

One encoder describes every option of every level (a task, data, a node, a number of devices) by the same columns, so
that one set of weights serves any number of each:

    h(x) = relu(W2 relu(W1 x + b1) + b2),    residual of level l: heads[l] . h(x) + linear[l] . x + bias[l]

and one small network values the moment by the mean and the maximum of the columns over the tasks that wait.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np

from optalloc.solvers.learned.features import MOMENT, ROW, TASK, TIMES, Singles

__all__ = [
    "COLUMNS",
    "DATA",
    "DEVICES",
    "LEVELS",
    "NODE",
    "TASK_LEVEL",
    "TASK_SCALE",
    "WIDTH",
    "Network",
    "initial",
    "visible",
]

LEVELS: Final = ("task", "data", "node", "devices")
TASK_LEVEL, DATA, NODE, DEVICES = range(4)

COLUMNS: Final = (*TASK, *ROW, *MOMENT, *(f"at {level}" for level in LEVELS))
"""What describes an option; the last ones tell the level."""

WIDTH: Final = 48

_AT_ONCE: Final = 100
"""Options of one product: for larger ones BLAS calls threads, which takes longer than the product."""

TASK_SCALE: Final = 0.05
_SCALES: Final = (TASK_SCALE, 1, 1, 1)
"""What a unit of the rule's score is worth in mean objectives, to begin with: urgencies are logarithms."""

Weights = Mapping[str, Singles]

_OF_DATA: Final = (
    "charge", "charge_shared", "readers", "popularity", "staged", "streamed", "lacking", "utility", "reject", "later",
)  # fmt: skip
_OF_NODE: Final = ("free", "settles", "room", "staged")
_OF_DEVICES: Final = ("devices", "area", "duration", "priced")
"""What independent branches see: of data nothing that depends on the node, and the other way round."""


def initial(seed: int) -> dict[str, Singles]:
    """Weights to begin with: random encoder, heads of zeros, so that the rule decides.

    Parameters
    ----------
    seed
        Of the random numbers.
    """
    rng = np.random.default_rng(seed)
    inputs = len(COLUMNS)
    shapes = {
        "encoder.1.weight": (inputs, WIDTH),
        "encoder.2.weight": (WIDTH, WIDTH),
        "value.1.weight": (2 * inputs, WIDTH),
        "value.2.weight": (WIDTH, 1),
    }
    weights = {
        name: (rng.standard_normal(shape) * np.sqrt(2 / shape[0])).astype(np.float32)
        for name, shape in shapes.items()
    }
    weights["value.2.weight"] *= np.float32(0.1)
    zeros = {
        "encoder.1.bias": (WIDTH,), "encoder.2.bias": (WIDTH,), "heads.weight": (WIDTH, len(LEVELS)),
        "heads.bias": (len(LEVELS),), "linear.weight": (inputs, len(LEVELS)),
        "value.1.bias": (WIDTH,), "value.2.bias": (1,),
    }  # fmt: skip
    weights |= {name: np.zeros(shape, dtype=np.float32) for name, shape in zeros.items()}
    return weights | {"scale": np.log(np.array(_SCALES, dtype=np.float32))}


class Network:
    """Residuals of options, from arrays.

    Parameters
    ----------
    weights
        As `initial` names and shapes them.
    """

    def __init__(self, weights: Weights):
        self.weights = dict(weights)

    def residual(self, level: int, options: Singles) -> Singles:
        """(N,) what is added to the rule's score of each option.

        Parameters
        ----------
        options
            (N, COLUMNS)
        """
        if len(options) > _AT_ONCE:
            parts = np.split(options, range(_AT_ONCE, len(options), _AT_ONCE))
            return np.concatenate([self.residual(level, part) for part in parts])
        w = self.weights
        hidden = np.maximum(options @ w["encoder.1.weight"] + w["encoder.1.bias"], 0)
        hidden = np.maximum(hidden @ w["encoder.2.weight"] + w["encoder.2.bias"], 0)
        linear = options @ w["linear.weight"][:, level]
        return np.asarray(hidden @ w["heads.weight"][:, level] + linear + w["heads.bias"][level])


def visible(kind: str) -> np.ndarray:
    """(LEVELS, COLUMNS) which columns a kind of scheduler sees at each level, as zeros and ones.

    ``"all"``: everything; ``"branches"``: data, node and devices each see only their own; ``"no times"``: nothing that
    tells how long something takes.
    """
    seen = np.ones((len(LEVELS), len(COLUMNS)), dtype=np.float32)
    own = {DATA: _OF_DATA, NODE: _OF_NODE, DEVICES: _OF_DEVICES}
    rows = slice(len(TASK), len(TASK) + len(ROW))  # a name can stand for the moment, too
    if kind == "no times":
        seen[:, [name in TIMES for name in COLUMNS]] = 0
    if kind == "branches":
        for level, names in own.items():
            seen[level, rows] = [name in names for name in ROW]
    return seen
