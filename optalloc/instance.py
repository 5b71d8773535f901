"""The instance: what people write, exactly as they wrote it."""

import gzip
import hashlib
from collections.abc import Mapping
from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import (
    AfterValidator,
    ModelWrapValidatorHandler,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic_core import PydanticCustomError

from optalloc.entities import (
    TERM_NAMES,
    After,
    Dataset,
    DeviceType,
    Input,
    Link,
    Listed,
    Mode,
    Model,
    Node,
    Objective,
    Part,
    Reference,
    Scaling,
    Site,
    StateChoice,
    StateInput,
    StateModel,
    StateSegment,
    StateTask,
    StateTransfer,
    Task,
    Throughput,
    Use,
)
from optalloc.errors import Fault, InputError
from optalloc.io.atomic import write_bytes
from optalloc.io.checks import in_order, semantic_faults
from optalloc.io.documents import MAX_BYTES, canonical_text, load, parse, paused_collector, pretty_text
from optalloc.io.entries import Found, Steps
from optalloc.io.faults import json_path, python_names, shape_faults
from optalloc.io.migrations import FORMAT, migrate
from optalloc.quantities import EMPTY, FrozenDict, Id, Number, Positive, as_number

__all__ = [
    "FORMAT", "TERM_NAMES", "After", "Dataset", "DeviceType", "Input", "Instance", "Link", "Mode", "Model",
    "Node", "Number", "Objective", "Reference", "Scaling", "Site", "StateChoice", "StateInput",
    "StateModel", "StateSegment", "StateTask", "StateTransfer", "Task", "Throughput", "Use",
    "read_instance", "read_text", "write_instance",
]  # fmt: skip

DEEPEST: Final = 60
"""Levels of objects and lists under ``meta``."""
AS_READ: Final = {"as_read": True}
"""Validation context: what is given is a plain document already."""


def _free(value: dict[str, Any]) -> Any:
    """A frozen copy of what stands under ``meta``: any JSON, numbers exact."""
    found: list[Found] = []
    frozen = _frozen(value, (), found)
    if found:
        raise PydanticCustomError("optalloc_faults", "malformed", {"faults": found})
    return frozen


def _frozen(value: Any, steps: Steps, found: list[Found]) -> Any:
    if len(steps) > DEEPEST:
        found.append((steps, f"must not be nested more than {DEEPEST} deep"))
        return None
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            found.append((steps, "must have text as keys"))
        pairs = ((str(key), inner) for key, inner in value.items())
        return FrozenDict({_text(k, steps, found): _frozen(inner, (*steps, k), found) for k, inner in pairs})
    if isinstance(value, list | tuple):
        return tuple(_frozen(inner, (*steps, index), found) for index, inner in enumerate(value))
    if isinstance(value, str):
        return _text(value, steps, found)
    if value is None or isinstance(value, bool):
        return value
    try:
        number = as_number(value)
        return int(number) if isinstance(value, Integral) else number
    except ValueError as error:
        found.append((steps, str(error).replace("must be a number", "must be JSON")))
        return None


def _text(value: str, steps: Steps, found: list[Found]) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        found.append((steps, "must be valid Unicode text (no lone surrogates)"))
    return value


class Instance(Part):
    """Sites, data, devices and tasks, with what is wanted of a plan.

    Built in Python with ints, floats (read through their shortest text) or Decimals.

    Raises
    ------
    InputError
        Something is malformed; all faults are reported at once.
    """

    format: Literal["optalloc-instance/1"] = FORMAT
    name: Id
    tick_seconds: Positive = Number("60")
    """Length of a tick."""
    money_unit_usd: Positive = Number("0.01")
    """Every amount of money is rounded to whole multiples of it."""
    sites: Listed[Site] = ()
    links: Listed[Link] = ()
    datasets: Listed[Dataset] = ()
    device_types: Listed[DeviceType] = ()
    nodes: Listed[Node] = ()
    models: Listed[Model] = ()
    throughputs: Listed[Throughput] = ()
    tasks: Listed[Task] = ()
    objective: Objective = Objective()
    state: StateModel | None = None
    """What is running, staged and bought at tick 0."""
    meta: Annotated[dict[str, Any], AfterValidator(_free)] = EMPTY
    """Anything: source, licence, seed, generator, ``synthetic`` (fields that were drawn)."""

    @model_validator(mode="wrap")
    @classmethod
    def _check_everything(
        cls, given: Any, handler: ModelWrapValidatorHandler["Instance"], info: ValidationInfo
    ) -> "Instance":
        """Shape and meaning are checked together, so that all faults show at once."""
        found: list[Found] = []
        try:
            instance = handler(given)
            document = given if info.context is AS_READ else instance.document()
        except ValidationError as error:
            document = _plain(given)
            found = list(shape_faults(error, cls))
        found += semantic_faults(document)
        if found:
            raise PydanticCustomError("optalloc_faults", "malformed", {"faults": in_order(found, document)})
        return instance

    def document(self) -> dict[str, Any]:
        """The instance as in its file: plain dicts, lists and numbers; only keys that were set."""
        return {"format": self.format, **_document(self)}

    def canonical(self) -> str:
        """The canonical text: sorted keys, no white space, numbers as written."""
        return canonical_text(self.document())

    @cached_property
    def sha256(self) -> str:
        """Hash of the canonical text: the identity that schedules and certificates refer to."""
        return hashlib.sha256(self.canonical().encode()).hexdigest()

    @cached_property
    def all_links(self) -> tuple[Link, ...]:
        """Every directed link: both_ways ones are followed by their twin ``<id>:back``."""
        return tuple(directed for link in self.links for directed in _directions(link))


def _directions(link: Link) -> tuple[Link, ...]:
    if not link.both_ways:
        return (link,)
    back = {"id": f"{link.id}:back", "from_": link.to, "to": link.from_, "both_ways": False}
    return link.model_copy(update={"both_ways": False}), link.model_copy(update=back)


def _document(part: Part) -> dict[str, Any]:
    given = part.model_fields_set
    fields = type(part).model_fields
    return {fields[k].alias or k: _plain(getattr(part, k)) for k in fields if k in given}


def _plain(value: Any) -> Any:
    if isinstance(value, Part):
        return _document(value)
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(inner) for inner in value]
    return value


def read_instance(source: str | Path | Mapping[str, Any], *, max_bytes: int = MAX_BYTES) -> Instance:
    """Read a ``.json`` or ``.json.gz`` file, or a document given as a dict.

    Parameters
    ----------
    max_bytes
        Refuse files whose text is larger, also after decompression.

    Raises
    ------
    InputError
        With all faults found, each with its file and its path inside it.
    """
    if isinstance(source, Mapping):
        return _validated(dict(source), [], "")
    return read_text(load(source, max_bytes), str(source))


def read_text(text: str, source: str = "") -> Instance:
    """Read the text of an instance file; ``source`` names it in faults."""
    with paused_collector():
        return _validated(*parse(text, source), source)


def _validated(document: Any, found: list[Found], source: str) -> Instance:
    document = migrate(document, source)
    if isinstance(document, dict) and "format" not in document:
        found = [*found, (("format",), f"is required: {FORMAT!r}")]
    found = [*found, *python_names(document)]
    try:
        instance = Instance.model_validate(document, context=AS_READ)
    except ValidationError as error:
        found += shape_faults(error, Instance)
    if found:
        raise InputError(Fault(json_path(steps), text, source) for steps, text in in_order(found, document))
    return instance


def write_instance(instance: Instance, path: str | Path) -> None:
    """Write a ``.json`` or, by its name, ``.json.gz`` file, whole or not at all.

    Numbers keep their literals, only keys that were set are written; equal content gives equal bytes.
    """
    if not isinstance(instance, Instance):
        raise TypeError(f"expected an Instance, got {type(instance).__name__}")
    content = pretty_text(instance.document()).encode()
    if str(path).endswith(".gz"):
        content = gzip.compress(content, mtime=0)
    write_bytes(path, content)
