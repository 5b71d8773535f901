"""From pydantic's errors to faults with a JSON path and a remedy."""

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from optalloc.io.entries import Found, Step, Steps
from optalloc.quantities import shown

__all__ = ["RESERVED", "json_path", "python_names", "shape_faults"]

RESERVED: Final[Mapping[str, str]] = {
    "price_calendar": "prices that change over time",
    "storage_usd_per_gb_hour": "storage paid by the hour",
    "produces": "output datasets",
    "preemptible": "tasks that can be paused",
    "elastic": "tasks that change their devices while they run",
    "round_ticks": "tasks that change their devices while they run",
    "switch_s": "tasks that change their devices while they run",
    "nonrenewable": "resources that are used up",
}
"""Keys kept for what is not built yet -> what they stand for."""

_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def json_path(steps: Sequence[Step]) -> str:
    """``("tasks", 3, "release_s")`` as ``tasks[3].release_s``; odd keys are quoted.

    >>> json_path(("datasets", 0, "relevance", "a b"))
    'datasets[0].relevance["a b"]'
    """
    path = ""
    for step in steps:
        if isinstance(step, int):
            path += f"[{step}]"
        elif isinstance(step, str) and _PLAIN.fullmatch(step):
            path += f".{step}" if path else step
        else:
            path += f"[{json.dumps(step, ensure_ascii=False, default=repr)}]"
    return path


def shape_faults(error: ValidationError, model: type[BaseModel]) -> Iterator[Found]:
    """What pydantic found wrong with a document of type ``model``."""
    for detail in error.errors(include_url=False):
        steps: Steps = tuple(detail["loc"])
        if detail["type"] == "optalloc_faults":
            yield from (((*steps, *inside), message) for inside, message in detail["ctx"]["faults"])
        elif detail["type"] == "too_short" and detail["input"]:
            continue  # entries that are wrong themselves do not count, and are reported
        elif steps and steps[-1] == "[key]":
            yield steps[:-1], _key_message(detail)
        else:
            yield steps, _message(detail, steps, model)


def python_names(document: Any) -> Iterator[Found]:
    """Names that only Python needs: ``from_`` is accepted there and not in files."""
    links = document.get("links") if isinstance(document, Mapping) else None
    for index, link in enumerate(links if isinstance(links, list) else []):
        if isinstance(link, Mapping) and "from_" in link:
            yield ("links", index, "from_"), "unknown key; in a file it is written 'from'"


def _key_message(detail: Any) -> str:
    if detail["type"] == "literal_error":
        return f"is not a term of the objective; the terms are {detail['ctx']['expected']}"
    if detail["type"] == "string_pattern_mismatch":
        return 'must be a number of devices written as text, such as "4"'
    return f"is not a possible key: {detail['msg']}"


def _message(detail: Any, steps: Steps, model: type[BaseModel]) -> str:
    kind, value, context = detail["type"], detail.get("input"), detail.get("ctx", {})
    if kind == "extra_forbidden":
        return unknown_key(str(steps[-1]), _keys_at(model, steps[:-1]), "meta" in model.model_fields)
    if kind == "missing":
        return "is required"
    if kind in ("too_short", "string_too_short"):
        return "must not be empty"
    if kind == "too_long":
        return f"must have {context['max_length']} entries, got {context['actual_length']}"
    if kind == "literal_error":
        return f"must be {context['expected']}, got {shown(value)}"
    if kind == "greater_than_equal":
        return f"must be at least {context['ge']}, got {shown(value)}"
    wanted = _WANTED.get(kind)
    if wanted:
        return f"must be {wanted}, got {shown(value)}"
    return str(detail["msg"])


_WANTED: Final = {
    "string_type": "text",
    "string_unicode": "valid Unicode text (no lone surrogates)",
    "bool_type": "true or false",
    "int_type": "a whole number without a decimal point",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
}


def unknown_key(key: str, allowed: Sequence[str], has_meta: bool) -> str:
    """What to say about a key that does not belong here."""
    if key in RESERVED:
        return f"is reserved for {RESERVED[key]}, which this version cannot handle; remove the key"
    close = difflib.get_close_matches(key, allowed, n=1, cutoff=0.7)
    hint = f"did you mean {close[0]!r}?" if close else f"allowed: {', '.join(allowed)}"
    return f"unknown key; {hint}" + (" (free keys belong under meta)" if has_meta else "")


def _keys_at(model: type[BaseModel], steps: Sequence[Step]) -> list[str]:
    """The keys allowed in the object that ``steps`` lead to."""
    current: Any = model
    for step in steps:
        if isinstance(step, int):
            continue
        field = _by_alias(current).get(step)
        current = _model_in(field.annotation) if field else None
        if current is None:
            return []
    return list(_by_alias(current))


def _by_alias(model: type[BaseModel]) -> dict[str, Any]:
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model inside e.g. ``tuple[Task, ...] | None``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    arguments = getattr(annotation, "__args__", ())
    return next(filter(None, map(_model_in, arguments)), None)
