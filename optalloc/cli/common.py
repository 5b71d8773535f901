"""What the commands share: exit codes, errors, and printing."""

import functools
import json
import math
import os
import sys
import time
import traceback
from collections.abc import Callable
from enum import IntEnum
from pathlib import Path
from typing import Any, NoReturn, ParamSpec

import typer

from optalloc.cli.signals import ended_gently
from optalloc.errors import Fault, InputError, UnsupportedError, visible_lines
from optalloc.io.atomic import can_write
from optalloc.output import give_up, make_usable, takes_unicode
from optalloc.solvers.interrupts import cut, whole

__all__ = [
    "Exit", "checked", "close_enough", "fail", "finite_number", "kept", "look_here", "nothing_yet", "parse_limits",
    "parse_pairs", "print_json", "say", "writable",
]  # fmt: skip

P = ParamSpec("P")


class Exit(IntEnum):
    """Exit codes; programs rely on them."""

    DONE = 0
    NOT_GOOD_ENOUGH = 1
    """A broken rule, or a gap beyond --max-gap."""
    BAD_INPUT = 2
    INFEASIBLE = 3
    NO_PLAN = 4
    INTERNAL = 5
    CONTRADICTION = 6
    """A verified plan is better than what has been proven to be possible: something is wrong with optalloc."""
    INTERRUPTED = 130
    UNREAD = 141
    """Nobody reads standard output any more (``| head``)."""


def checked(command: Callable[P, Exit | None]) -> Callable[P, None]:
    """Turn the command's answer or error into an exit code and, for bad input, one clear message per fault."""
    return _checked(command, cut)


def kept(command: Callable[P, Exit | None]) -> Callable[P, None]:
    """`checked` for a command that holds a plan or bound: Ctrl-C cuts short only what the command calls by `cut`."""
    return _checked(command, whole)


def _checked(
    command: Callable[P, Exit | None], call: Callable[[Callable[[], Exit | None]], Exit | None]
) -> Callable[P, None]:
    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        make_usable()
        try:
            with ended_gently() as end:
                code = call(lambda: command(*args, **kwargs)) or Exit.DONE
                sys.stdout.flush()
        except (InputError, UnsupportedError) as error:
            say(str(error))
            code = Exit.BAD_INPUT
        except OSError as error:
            if isinstance(error, BrokenPipeError) and error.filename is None:
                give_up(sys.stdout)
                raise typer.Exit(Exit.UNREAD) from None
            say(f"{error.filename or ''}: {error.strerror or error}".removeprefix(": "))
            code = Exit.BAD_INPUT
        except KeyboardInterrupt:
            say("interrupted")
            code = Exit.INTERRUPTED
        except typer.Exit:
            raise
        except Exception:
            traceback.print_exc()
            say("internal error: please report the lines above together with the input")
            code = Exit.INTERNAL
        raise typer.Exit(end.code if code == Exit.INTERRUPTED else int(code))

    run.__annotations__ = {**command.__annotations__, "return": None}
    return run


def say(message: str) -> None:
    """Print for people: on standard error, which ``--json`` leaves alone."""
    try:
        print(visible_lines(message), file=sys.stderr, flush=True)
    except BrokenPipeError:
        give_up(sys.stderr)


def fail(path: str, message: str) -> NoReturn:
    """Refuse an argument."""
    raise InputError(Fault(path, message))


def print_json(content: Any) -> None:
    """One JSON object on standard output and nothing else; NaN and infinity cannot pass."""
    escaped = not takes_unicode(sys.stdout)
    print(json.dumps(content, indent=1, allow_nan=False, ensure_ascii=escaped))


def nothing_yet(json: bool, instance: str, solver: str, began: float, seed: int, threads: int) -> Exit:
    """Ctrl-C has come before there was a problem to solve: say so."""
    from optalloc.result import not_begun

    content = not_begun(instance, solver, time.perf_counter() - began, seed, threads)
    if json:
        print_json(content)
    else:
        say(content["message"])
    return Exit.INTERRUPTED


def finite_number(option: str, value: float | None, *, least: float = 0.0) -> None:
    """Refuse NaN, infinity and what is below ``least``."""
    if value is not None and not (math.isfinite(value) and value >= least):
        fail(option, f"must be a finite number of at least {least:g}, got {value}")


def close_enough(gap: float | None, max_gap: float | None, unknown: str, run: str = "") -> bool:
    """Whether the gap is within ``--max-gap``; if not, say why. ``unknown`` says why there is no gap."""
    if max_gap is None or (gap is not None and gap <= max_gap):
        return True
    reason = unknown if gap is None else f"the gap is {gap:.4%}, allowed are {max_gap:.4%}"
    say(f"--max-gap: {run}{reason}")
    return False


def parse_pairs(option: str, texts: list[str] | None) -> dict[str, str]:
    """``["a=1", "b=2"]`` as a dict."""
    pairs: dict[str, str] = {}
    for text in texts or []:
        name, equals, value = text.partition("=")
        if not equals or not name or not value:
            fail(option, f"expected NAME=VALUE, got {text!r}")
        if pairs.setdefault(name.strip(), value.strip()) != value.strip():
            fail(option, f"{name.strip()} is given twice, as {pairs[name.strip()]} and as {value.strip()}")
    return pairs


def parse_limits(texts: list[str] | None) -> dict[str, str]:
    """``--limit TERM=MAX``; the values stay text so that they are read exactly."""
    return parse_pairs("--limit", texts)


def look_here(solver: str) -> None:
    """Find modules of the current folder, as ``python -m`` does; installed ones go first."""
    here = os.getcwd()
    if ":" in solver and here not in sys.path:
        sys.path.append(here)


def writable(option: str, path: Path | None) -> None:
    """Refuse an output that cannot be written before any work is done."""
    if path is None:
        return
    if not Path(os.path.realpath(path)).parent.is_dir():
        fail(option, f"{path}: the folder does not exist")
    if path.is_dir():
        fail(option, f"{path}: is a folder")
    try:
        can_write(path)
    except OSError as error:
        fail(option, f"{path}: cannot be written ({error.strerror})")
