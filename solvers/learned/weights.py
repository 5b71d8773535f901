"""Weights as files: arrays in safetensors, everything else in a JSON file beside it. Loading runs no code."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from optalloc.errors import Fault, InputError
from optalloc.io.atomic import write_bytes, write_text

__all__ = ["MOST_BYTES", "SHIPPED", "load_weights", "save_weights", "shipped_weights", "weights_path"]

MOST_BYTES: Final = 2_000_000
"""Largest file of weights that is read."""

SHIPPED: Final = Path(__file__).parent / "weights"

Arrays = Mapping[str, np.ndarray]


def weights_path(name: str) -> Path:
    """The file of shipped weights of that name."""
    return SHIPPED / f"{name}.safetensors"


def shipped_weights() -> list[str]:
    """Names of all shipped weights."""
    return sorted(path.stem for path in SHIPPED.glob("*.safetensors"))


def save_weights(path: Path, weights: Arrays, about: Mapping[str, Any]) -> None:
    """Write ``path`` (safetensors) and the JSON file beside it, each as a whole or not at all."""
    from safetensors.numpy import save

    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, save({name: np.ascontiguousarray(array) for name, array in weights.items()}))
    write_text(path.with_suffix(".json"), json.dumps(about, indent=1, sort_keys=True) + "\n")


def load_weights(path: Path, like: Arrays) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays, and what the JSON file says about them.

    Parameters
    ----------
    like
        Arrays of the names, shapes and types that are expected.

    Raises
    ------
    InputError
        There is no such file, it is too large, is no safetensors file, or holds something else.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    def fault(message: str) -> InputError:
        return InputError(Fault(str(path), message))

    try:
        if path.stat().st_size > MOST_BYTES:
            raise fault(f"is larger than {MOST_BYTES:,} bytes, the most that is read")
        found = load(path.read_bytes())
        about = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise fault(f"{error.filename} does not exist; `optalloc train` writes both files") from None
    except (SafetensorError, OSError, ValueError) as error:
        raise fault(f"cannot be read as weights: {error}") from None
    wrong = [name for name in sorted({*found, *like}) if not _same_kind(found.get(name), like.get(name))]
    if wrong:
        raise fault(f"holds other weights than this version reads: {', '.join(wrong)}; train them anew")
    if not all(np.isfinite(array).all() for array in found.values()):
        raise fault("holds numbers that are not finite")
    return found, about


def _same_kind(one: np.ndarray | None, other: np.ndarray | None) -> bool:
    return one is not None and other is not None and one.shape == other.shape and one.dtype == other.dtype
