"""Weights as files: arrays in safetensors, everything else in a JSON file beside it. Loading runs no code."""

import json
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from optalloc.errors import Fault, InputError
from optalloc.io.atomic import write_bytes, write_text
from optalloc.quantities import shown

__all__ = [
    "MOST_BYTES", "MOST_STATE_BYTES", "SHIPPED", "load_weights", "read_arrays", "read_facts", "same_kind",
    "save_weights", "shipped_weights", "weights_file", "weights_path",
]  # fmt: skip

MOST_BYTES: Final = 2_000_000
"""Largest file of weights that is read."""

MOST_STATE_BYTES: Final = 500_000_000
"""The same of the state of a training run, which holds the demonstrated plans."""

SHIPPED: Final = Path(__file__).parent / "weights"

Arrays = Mapping[str, np.ndarray]


def weights_path(name: str) -> Path:
    """The file of shipped weights of that name."""
    return SHIPPED / f"{name}.safetensors"


def shipped_weights() -> list[str]:
    """Names of all shipped weights."""
    return sorted(path.stem for path in SHIPPED.glob("*.safetensors"))


def weights_file(name: str, weights: str | Path, option: str) -> Path:
    """The file of a learner's weights: given itself, or by the name of shipped ones.

    Parameters
    ----------
    option
        Which gives them; named in the fault.

    Raises
    ------
    InputError
        None of that name are shipped.
    """
    if not isinstance(weights, str | Path):
        raise InputError(
            Fault(f"options.{option}", f"must be a file or the name of shipped weights, got {shown(weights)}")
        )
    path = Path(weights)
    if path.suffix == ".safetensors" or path.name != str(weights):
        return path
    if path.name not in shipped_weights():
        raise _not_shipped(name, shown(weights), option)
    return weights_path(path.name)


def _not_shipped(name: str, weights: str, option: str) -> InputError:
    known = ", ".join(shipped_weights()) or "none"
    return InputError(
        Fault(
            f"options.{option}",
            f"no weights named {weights} are shipped (shipped: {known}); train some with "
            f"`optalloc train {name} --out DIR` and give {option}=DIR/{name}.safetensors",
        )
    )


def save_weights(path: Path, weights: Arrays, about: Mapping[str, Any]) -> None:
    """Write ``path`` (safetensors) and the JSON file beside it, each as a whole or not at all."""
    from safetensors.numpy import save

    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, save({name: np.asarray(array, order="C") for name, array in weights.items()}))
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
    found = read_arrays(path)
    wrong = [name for name in sorted({*found, *like}) if not same_kind(found.get(name), like.get(name))]
    if wrong:
        raise _fault(
            path, f"holds other weights than this version reads: {', '.join(wrong)}; train them anew"
        )
    return found, read_facts(path)


def read_arrays(path: Path, most: int = MOST_BYTES) -> dict[str, np.ndarray]:
    """All arrays of a safetensors file of at most so many bytes; nothing but numbers is read from it.

    Raises
    ------
    InputError
        As `load_weights`.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    content = _content(path, most)
    try:
        found = load(content)
    except (SafetensorError, KeyError, ValueError, TypeError) as error:
        raise _fault(path, f"is no safetensors file that can be read: {error}") from None
    if not all(
        np.issubdtype(array.dtype, np.number) and np.isfinite(array).all() for array in found.values()
    ):
        raise _fault(path, "holds what is no finite number")
    return found


def read_facts(path: Path, most: int = MOST_BYTES) -> dict[str, Any]:
    """The JSON file beside a safetensors file, of at most so many bytes.

    Raises
    ------
    InputError
        As `load_weights`.
    """
    beside = path.with_suffix(".json")
    content = _content(beside, most)
    try:
        facts = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise _fault(beside, f"is no JSON file: {error}") from None
    if not isinstance(facts, dict):
        raise _fault(beside, "must hold one JSON object")
    return facts


def _content(path: Path, most: int) -> bytes:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise _fault(path, "is no regular file")
        with path.open("rb") as stream:
            content = stream.read(most + 1)
        if len(content) > most:
            raise _fault(path, f"is larger than {most:,} bytes, the most that is read")
        return content
    except FileNotFoundError:
        raise _fault(path, "does not exist; `optalloc train` writes it") from None
    except OSError as error:
        raise _fault(path, f"cannot be read: {error.strerror}") from None


def _fault(path: Path, message: str) -> InputError:
    return InputError(Fault(str(path), message))


def same_kind(one: np.ndarray | None, other: np.ndarray | None) -> bool:
    """Two arrays of the same shape and type."""
    return one is not None and other is not None and one.shape == other.shape and one.dtype == other.dtype
