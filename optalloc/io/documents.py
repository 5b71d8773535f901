"""JSON text to a plain document and back, losing nothing: literals, duplicate keys, the place of a fault."""

import gc
import gzip
import io
import json
import math
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from json.encoder import encode_basestring
from pathlib import Path
from typing import Any, Final

from optalloc.errors import Fault, InputError
from optalloc.io.entries import Found, Steps
from optalloc.quantities import Number, parse_float, parse_int

__all__ = ["MAX_BYTES", "canonical_text", "load", "parse", "paused_collector", "pretty_text"]

MAX_BYTES: Final = 2**28
"""Largest text that is read, after decompression."""

GZIP_MAGIC: Final = b"\x1f\x8b"


def load(path: str | Path, max_bytes: int = MAX_BYTES) -> str:
    """The text of a ``.json`` or ``.json.gz`` file (told apart by content).

    Raises
    ------
    InputError
        The file is missing, too large, damaged or not UTF-8.
    """
    source = str(path)
    try:
        with Path(path).open("rb") as stream:
            content = stream.read(max_bytes + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise InputError(Fault("", reason or str(error), source)) from None
    if content.startswith(GZIP_MAGIC):
        content = _decompress(content, max_bytes, source)
    if len(content) > max_bytes:
        raise InputError(Fault("", f"is larger than {max_bytes} bytes; nothing of that size is read", source))
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            Fault("", f"is not UTF-8 text (byte {error.start}); save it as UTF-8", source)
        ) from None


def _decompress(content: bytes, max_bytes: int, source: str) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as stream:
            return stream.read(max_bytes + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(Fault("", f"is a damaged gzip file ({error})", source)) from None


@contextmanager
def paused_collector() -> Iterator[None]:
    """Build large trees without the cyclic garbage collector, which doubles the time by walking them."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class _Repeated(dict[str, Any]):
    """An object in which some keys stand more than once; the last value was kept."""

    keys_twice: tuple[str, ...] = ()


def parse(text: str, source: str = "") -> tuple[Any, list[Found]]:
    """The document in ``text`` and the (steps, message) of its duplicate keys.

    Numbers with a point or an exponent become `Number`; NaN and infinities become floats, for the checks to
    refuse.

    Raises
    ------
    InputError
        It is not JSON.
    """
    any_twice = False

    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal any_twice
        built = dict(pairs)
        if len(built) == len(pairs):
            return built
        any_twice = True
        seen: set[str] = set()
        repeated = _Repeated(built)
        repeated.keys_twice = tuple(dict.fromkeys(k for k, _ in pairs if k in seen or seen.add(k)))  # type: ignore[func-returns-value]
        return repeated

    try:
        document = json.loads(
            text,
            object_pairs_hook=build,
            parse_float=parse_float,
            parse_int=parse_int,
            parse_constant=_constant,
        )
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise InputError(Fault("", f"is not JSON: {error.msg} at {where}", source)) from None
    except RecursionError:
        raise InputError(Fault("", "is nested too deeply to be read", source)) from None
    return document, list(_repeated_keys(document)) if any_twice else []


def _constant(name: str) -> float:
    return math.nan if name == "NaN" else math.inf


def _repeated_keys(document: Any) -> Iterator[Found]:
    """Where keys stand twice; without recursion, as documents may be deep."""
    waiting: list[tuple[Steps, Any]] = [((), document)]
    while waiting:
        steps, value = waiting.pop()
        if isinstance(value, _Repeated):
            for key in value.keys_twice:
                yield (*steps, key), "stands more than once in the same object; keep one"
        if isinstance(value, dict):
            waiting += [((*steps, key), inner) for key, inner in value.items()]
        elif isinstance(value, list):
            waiting += [((*steps, index), inner) for index, inner in enumerate(value)]


def canonical_text(document: Any) -> str:
    """JSON with sorted keys, no white space, numbers as written: what the hash is taken of."""
    if isinstance(document, dict):
        return (
            "{"
            + ",".join(f"{encode_basestring(k)}:{canonical_text(document[k])}" for k in sorted(document))
            + "}"
        )
    if isinstance(document, list | tuple):
        return "[" + ",".join(map(canonical_text, document)) + "]"
    return _scalar(document)


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return str(encode_basestring(value))
    if isinstance(value, Number):
        return value.text
    if value is None or isinstance(value, bool | int):
        return json.dumps(value)
    raise TypeError(f"{value!r} has no place in a document")


def pretty_text(document: dict[str, Any]) -> str:
    """JSON for files: one line per key, and per entry of a list of objects."""
    return "{\n" + ",\n".join(f" {encode_basestring(k)}: {_line(v)}" for k, v in document.items()) + "\n}\n"


def _line(value: Any) -> str:
    if isinstance(value, list | tuple) and value and all(isinstance(entry, dict) for entry in value):
        return "[\n" + ",\n".join(f"  {_flat(entry)}" for entry in value) + "\n ]"
    return _flat(value)


def _flat(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{encode_basestring(k)}: {_flat(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_flat, value)) + "]"
    return _scalar(value)
