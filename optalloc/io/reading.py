"""Reading instances: every fault at once, each with its file and path."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from optalloc.errors import Fault, InputError
from optalloc.instance import Instance
from optalloc.io.documents import MAX_BYTES, load, parse
from optalloc.io.faults import faults_of, json_path

__all__ = ["read", "read_instance", "read_text"]


def read(path_or_name: str | Path) -> Instance:
    """The instance in a file (which wins) or of that name in the index of shipped instances."""
    if isinstance(path_or_name, Path) or Path(path_or_name).exists():
        return read_instance(path_or_name)
    from optalloc import instances

    if path_or_name in instances.names():
        return instances.load(path_or_name)
    raise InputError(
        Fault("", "is neither a file nor a name that `optalloc list instances` shows", path_or_name)
    )


def read_instance(source: str | Path | Mapping[str, Any], *, max_bytes: int = MAX_BYTES) -> Instance:
    """Read a ``.json`` or ``.json.gz`` file, or a document given as a dict.

    Raises
    ------
    InputError
        With all faults found.
    """
    if isinstance(source, Mapping):
        return _validate(dict(source), [], "")
    return read_text(load(source, max_bytes), str(source))


def read_text(text: str, source: str = "") -> Instance:
    """Read the text of an instance file; ``source`` names it in faults."""
    document, repeated = parse(text, source)
    return _validate(document, repeated, source)


def _validate(document: Any, repeated: list[Any], source: str) -> Instance:
    faults = [Fault(json_path(steps), message, source) for steps, message in repeated]
    try:
        instance = Instance.model_validate(document)
    except ValidationError as error:
        faults += [found for _, found in faults_of(error, Instance, source)]
    if faults:
        raise InputError(faults)
    return instance
