"""The learners by name: what trains each scheduler, and the settings of a run, read and checked."""

import re
import shlex
from collections.abc import Mapping
from dataclasses import MISSING, Field, asdict, fields
from importlib import import_module
from os import PathLike
from types import ModuleType
from typing import Any, Final

from optalloc.errors import Fault, InputError, UnsupportedError
from optalloc.generators import PRESETS
from optalloc.generators.knobs import knobs
from optalloc.options import Kind, read_options
from optalloc.quantities import shown
from optalloc.solvers.learned.practice import TRAINING, VALIDATION
from optalloc.solvers.learned.schedulers import SCHEDULERS, known_index
from optalloc.solvers.learned.training import Trainer, Training

__all__ = ["LEARNERS", "command_of", "make_trainer", "training_args"]

LEARNERS: Final = {name: name.replace("-", "_") for name in SCHEDULERS}
"""Name -> module below `optalloc.solvers.learned`, with ``Args`` and ``Learner``."""

_COUNTS: Final = (
    "judge_every", "judges", "instances", "memory", "batch", "decisions_per_update", "steps", "runs", "sample",
    "demonstration_steps", "demonstration_updates",
)  # fmt: skip
_POSITIVE: Final = ("horizon", "spread", "temperature", "polyak", "learning_rate", "value_rate")
_LEAST: Final = {**dict.fromkeys(_COUNTS, 1), "population": 4, "runs": 2, **dict.fromkeys(_POSITIVE, 1e-9)}
"""Smallest values of settings; 0 for the others. A run of `reinforce` is held against others of its instance."""
_SEEDS: Final = VALIDATION - TRAINING
_MOST: Final = {
    **dict.fromkeys(("instances", "judges", "demonstrations"), _SEEDS),
    **dict.fromkeys(("polyak", "explore", "learning_rate", "value_rate"), 1),
}
"""Largest values, for those that have one: more instances would be those of validation or test."""


def make_trainer(name: str, args: Training) -> Trainer:
    """A learner that begins."""
    trainer: Trainer = _module(name).Learner(args)
    return trainer


def training_args(name: str, given: Mapping[str, Any]) -> Training:
    """Settings of a run, text read.

    Parameters
    ----------
    given
        Those that differ from the defaults.

    Raises
    ------
    InputError
        There is no such learner, and all unknown settings and wrong values.
    UnsupportedError
        A library that training needs is not installed.
    """
    if name not in LEARNERS:
        raise InputError(Fault("NAME", f"{name!r} cannot be trained; known: {', '.join(LEARNERS)}"))
    settings = _module(name).Args
    known = {one.name: _kind(one) for one in fields(settings)}
    faults: list[Fault] = []
    read: dict[str, Any] = {}
    for one, value in given.items():
        try:
            read |= read_options(name, known, {one: _text(known, one, value)})
        except InputError as error:
            faults += error.faults
    args: Training = settings(**read)
    faults += _of_family(args) + _of_index(args)
    if not args.minutes and not args.iterations and not {fault.path for fault in faults} & _ENDS:
        faults.append(Fault("minutes", "0 minutes and 0 iterations would never end; give one of them"))
    if faults:
        raise InputError([Fault(fault.path.removeprefix("options."), fault.message) for fault in faults])
    return args


def _of_family(args: Training) -> list[Fault]:
    """What no preset could make."""
    faults = [
        Fault("preset", f"{name!r} is not known; there are {', '.join(PRESETS)}")
        for name in map(str.strip, args.preset.split(","))
        if name not in PRESETS
    ]
    sizes = [size.strip() for size in args.tasks.split(",")]
    wrong = [size for size in sizes if not _WHOLE.fullmatch(size)]
    faults += [
        Fault("tasks", f"must be whole numbers with commas between, got {shown(size)}") for size in wrong
    ]
    for number in {int(size) for size in sizes if size not in wrong} or {1}:
        try:
            knobs("", number, args.load or 1, args.coupling, args.seed)
        except InputError as error:
            faults += [fault for fault in error.faults if fault not in faults]
    return faults


_WHOLE: Final = re.compile("[0-9]{1,9}")
_ENDS: Final = {"options.minutes", "options.iterations"}


def _of_index(args: Training) -> list[Fault]:
    """Weights to begin with that cannot be read."""
    try:
        if getattr(args, "index", ""):
            known_index(getattr(args, "index", ""))
    except InputError as error:
        return list(error.faults)
    return []


def _kind(setting: Field[Any]) -> Kind | None:
    if setting.default is MISSING or isinstance(setting.default, str):
        return None
    if isinstance(setting.default, bool):
        return Kind(bool)
    return Kind(type(setting.default), _LEAST.get(setting.name, 0), _MOST.get(setting.name))


def _text(known: Mapping[str, Kind | None], name: str, value: Any) -> Any:
    """The value; refused where text is expected and it is none. A path stands for its name, a number for its digits."""
    if known.get(name, Kind(bool)) is not None:
        return value
    if isinstance(value, bool) or not isinstance(value, str | PathLike | int):
        raise InputError(Fault(name, f"must be text, got {shown(value)}"))
    return str(value)


def _module(name: str) -> ModuleType:
    try:
        return import_module(f"optalloc.solvers.learned.{LEARNERS[name]}")
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "cma"):
            raise
        raise UnsupportedError(
            f"training {name} needs {error.name}; install it with: pip install 'optalloc[learn]'"
        ) from None


def command_of(name: str, args: Training, out: str) -> str:
    """The command that trains with these settings."""
    usual = asdict(type(args)())
    given = {one: value for one, value in asdict(args).items() if value != usual[one]}
    if args.iterations and not args.minutes:
        del given["minutes"]
    words = ["optalloc", "train", name]
    for one in OPTIONS:
        if one in given:
            words += [f"--{one}", str(given.pop(one))]
    for one, value in given.items():
        words += ["--set", f"{one}={value}"]
    return shlex.join([*words, "--out", out])


OPTIONS: Final = ("preset", "tasks", "load", "coupling", "seed", "minutes", "iterations")
"""Settings with an option of their own on the command line."""
