"""Own solvers by where they are: ``module:function`` or ``folder/file.py:function``."""

import importlib
import sys
from collections.abc import Callable
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from traceback import format_exception_only
from types import ModuleType
from typing import Any

from optalloc.errors import Fault, InputError

__all__ = ["named_object", "own_object"]


def own_object(name: str, load: Callable[[], Any]) -> Any:
    """What ``load`` gives; whatever goes wrong in code that is not ours is told as bad input.

    Raises
    ------
    InputError
        With the reason and where modules are looked for.
    """
    try:
        return load()
    except (Exception, SystemExit) as error:
        reason = format_exception_only(error)[-1].strip()
        raise InputError(Fault("solver", f"{name!r} cannot be loaded: {reason}{_remedy(error)}")) from error


def _remedy(error: BaseException) -> str:
    if not isinstance(error, ModuleNotFoundError):
        return ""
    return (
        "; modules are looked for where Python finds them and, by the command line, in the current folder; "
        "a file elsewhere is named as folder/file.py:function"
    )


def named_object(name: str) -> Any:
    """The object behind ``module:object`` or ``file.py:object``; ``object`` may be dotted."""
    module, _, path = name.rpartition(":")
    found: Any = (
        _from_file(Path(module).resolve()) if module.endswith(".py") else importlib.import_module(module)
    )
    for part in path.split("."):
        found = getattr(found, part)
    return found


@cache
def _from_file(path: Path) -> ModuleType:
    """The module in a file, which finds the modules beside it; loaded once."""
    name = str(path)
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    module = sys.modules[name] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
