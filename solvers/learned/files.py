"""What a training run leaves in its folder: the best weights, what is needed to go on, and a log of all looks.

NAME.safetensors, NAME.json     the best weights, and how they came about
state.safetensors, state.json   weights and state of the learner now; settings and looks
log.jsonl                       one look at the validation instances a line
"""

import json
import math
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from functools import cache
from importlib.metadata import version
from pathlib import Path
from platform import python_version
from typing import Any, Final

import numpy as np

import optalloc
from optalloc.errors import Fault, InputError
from optalloc.io.atomic import can_write, write_text
from optalloc.solvers.learned.learners import command_of
from optalloc.solvers.learned.schedulers import SCHEDULERS
from optalloc.solvers.learned.training import Arrays, Judged, Run, Trainer, Training
from optalloc.solvers.learned.weights import (
    MOST_STATE_BYTES,
    load_weights,
    read_arrays,
    read_facts,
    same_kind,
    save_weights,
)

__all__ = ["RunFiles"]

_BUDGET: Final = ("minutes", "iterations")
"""Settings that may differ when a run goes on; they count what was before."""


class RunFiles:
    """The files of one run.

    Parameters
    ----------
    folder
        Made when it is written to.
    """

    def __init__(self, folder: Path, name: str, args: Training):
        self.folder, self.name, self.args = folder, name, args
        self.weights = folder / f"{name}.safetensors"
        self._state = folder / "state.safetensors"

    def begin(self) -> None:
        """Make the folder; refuse to write over another run, or over weights.

        Raises
        ------
        InputError
        OSError
            Nothing can be written there.
        """
        if self.folder.exists() and not self.folder.is_dir():
            raise InputError(Fault("--out", f"{self.folder} is a file; give a folder"))
        if self._state.exists():
            message = f"{self.folder} holds a run; --resume goes on with it, or choose another folder"
            raise InputError(Fault("--out", message))
        if self.weights.exists():
            raise InputError(Fault("--out", f"{self.weights} is there already; choose another folder"))
        self.folder.mkdir(parents=True, exist_ok=True)
        can_write(self.weights)

    def check_there(self) -> None:
        """Refuse to go on where nothing has begun.

        Raises
        ------
        InputError
        """
        if not self._state.exists():
            raise InputError(
                Fault("--resume", f"{self.folder} holds no run; without --resume one begins there")
            )

    @contextmanager
    def alone(self) -> Iterator[None]:
        """As long as this goes on, nobody else trains in the folder.

        Raises
        ------
        InputError
            Somebody does.
        """
        from filelock import FileLock, Timeout

        try:
            with FileLock(self.folder / "lock", timeout=0):
                yield
        except Timeout:
            raise InputError(
                Fault("--out", f"a run is going on in {self.folder}; choose another folder")
            ) from None

    # writing ----------------------------------------------------------------------------------------------
    def keep(self, run: Run) -> None:
        """Write everything; the state comes last, so that it never is ahead of the weights."""
        looks = [asdict(look) for look in run.looks]
        save_weights(self.weights, run.best, self._about(run))
        write_text(self.folder / "log.jsonl", "".join(json.dumps(look) + "\n" for look in looks))
        arrays = {f"weights.{name}": array for name, array in run.weights.items()}
        arrays["iteration"] = np.array([run.iteration])
        arrays |= {f"state.{name}": array for name, array in run.state.items()}
        facts = {"solver": self.name, "args": asdict(self.args), "seconds": run.seconds, "looks": looks}
        save_weights(self._state, arrays, facts | {"resumed": run.resumed})

    def _about(self, run: Run) -> dict[str, Any]:
        best = run.best_look
        return {
            "solver": self.name,
            "args": asdict(self.args),
            "command": command_of(self.name, self.args, str(self.folder)),
            "iteration": best.iteration if best else 0,
            "ratio": best.ratio if best else None,
            "iterations": run.iteration,
            "resumed": run.resumed,
            "seconds": round(run.seconds, 1),
            "looks": len(run.looks),
            "versions": _versions(),
            "commit": _commit(),
        }

    # reading ----------------------------------------------------------------------------------------------
    def resume(self, trainer: Trainer) -> Run:
        """Where the run in the folder stands; the trainer goes on from there.

        Raises
        ------
        InputError
            There is none, it has other settings, or its files are damaged.
        """
        self.check_there()
        facts = read_facts(self._state, MOST_STATE_BYTES)
        self._check_same(facts)
        arrays = read_arrays(self._state, MOST_STATE_BYTES)
        best, _ = load_weights(self.weights, SCHEDULERS[self.name].initial(0))
        try:
            (iteration,) = arrays["iteration"].tolist()
            seconds, looks, resumed = _progress(facts, iteration)
            run = Run(
                _part(arrays, "weights."),
                _part(arrays, "state."),
                best,
                iteration,
                seconds,
                looks,
                [*resumed, iteration],
            )
            self._check_shapes(run, trainer.weights)
            trainer.weights = run.weights
            trainer.restore(run.state, run.iteration)
        except (KeyError, TypeError, ValueError, IndexError):
            raise InputError(
                Fault(
                    str(self._state.with_suffix(".*")),
                    "are damaged, or of another version; train anew in another folder",
                )
            ) from None
        return run

    def _check_same(self, facts: Mapping[str, Any]) -> None:
        """Refuse another learner and other settings, all at once."""
        if facts.get("solver") != self.name:
            raise InputError(Fault("--resume", f"{self.folder} holds a run of {facts.get('solver')}"))
        before, now = facts.get("args"), asdict(self.args)
        before = before if isinstance(before, dict) else {}
        faults = [
            Fault("--resume", f"{name} is {now.get(name)!r}, but was {before.get(name)!r} in {self.folder}")
            for name in {**now, **before}
            if name not in _BUDGET and now.get(name) != before.get(name)
        ]
        if faults:
            raise InputError(faults)

    def _check_shapes(self, run: Run, like: Arrays) -> None:
        if run.weights.keys() != like.keys() or not all(same_kind(run.weights[n], like[n]) for n in like):
            raise ValueError("other weights")
        for name, array in run.state.items():
            of = name.partition(".")[2]
            if of in like and array.ndim and array.shape != like[of].shape:
                raise ValueError("other moments")


def _progress(facts: Mapping[str, Any], iteration: int) -> tuple[float, list[Judged], list[int]]:
    """(seconds, looks, iterations at which it was resumed); ValueError and so on where they cannot be."""
    seconds, resumed = float(facts["seconds"]), list(facts["resumed"])
    looks = [Judged(**look) for look in facts["looks"]]
    counts = [*resumed, *(look.iteration for look in looks), iteration]
    sizes = [seconds, *(number for look in looks for number in (look.ratio, look.seconds))]
    if not all(type(count) is int and 0 <= count <= iteration for count in counts):
        raise ValueError("no counts")
    if not all(0 <= float(size) < math.inf for size in sizes):
        raise ValueError("no numbers")
    return seconds, looks, resumed


def _part(arrays: Arrays, prefix: str) -> Arrays:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _versions() -> dict[str, str]:
    found = {"python": python_version()}
    for name in ("optalloc", "numpy", "torch", "cma", "safetensors"):
        try:
            found[name] = version(name)
        except ModuleNotFoundError:
            continue
    return found


@cache
def _commit() -> str | None:
    """The commit of the source tree, "-dirty" if it is changed; None outside of one."""
    root = Path(optalloc.__file__).resolve().parent.parent
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--exclude=*", "--abbrev=40"]
    if not (root / ".git").exists():
        return None
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
