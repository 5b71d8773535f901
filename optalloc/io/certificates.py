"""Certificate files: format optalloc-certificate/1."""

import json
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from optalloc.certificate import FORMAT, Certificate
from optalloc.errors import Fault, InputError
from optalloc.io.atomic import write_text
from optalloc.io.documents import MAX_BYTES, load, parse, paused_collector
from optalloc.io.faults import json_path, shape_faults

__all__ = ["certificate_document", "read_certificate", "write_certificate"]

Whole = Annotated[int, Field(strict=True, ge=0)]


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


class _Share(_Strict):
    task: str
    dataset: str
    site: str
    share: Whole


class _Document(_Strict):
    format: Literal["optalloc-certificate/1"]
    instance: str
    instance_sha256: str
    objective: list[dict[str, str]]
    level: Whole
    caps: list[int]
    scale: Whole
    edges: list[Whole]
    prices: dict[str, list[Whole]]
    shares: list[_Share]
    ends: dict[str, Whole]
    energy: dict[str, Whole]
    limits: dict[str, Whole]
    earlier: list[Whole]
    bound: int


def certificate_document(certificate: Certificate) -> dict[str, Any]:
    """The certificate as JSON types."""
    return {
        "format": FORMAT,
        "instance": certificate.instance,
        "instance_sha256": certificate.instance_sha256,
        "objective": [dict(level) for level in certificate.objective],
        "level": certificate.level,
        "caps": list(certificate.caps),
        "scale": certificate.scale,
        "edges": list(certificate.edges),
        "prices": {name: list(prices) for name, prices in certificate.prices.items()},
        "shares": [
            {"task": task, "dataset": dataset, "site": site, "share": share}
            for (task, dataset, site), share in certificate.shares.items()
        ],
        "ends": dict(certificate.ends),
        "energy": dict(certificate.energy),
        "limits": dict(certificate.limits),
        "earlier": list(certificate.earlier),
        "bound": certificate.bound,
    }


def write_certificate(certificate: Certificate, path: str | Path) -> None:
    """Write atomically."""
    write_text(
        path, json.dumps(certificate_document(certificate), allow_nan=False, ensure_ascii=False) + "\n"
    )


def read_certificate(path: str | Path, *, max_bytes: int = MAX_BYTES) -> Certificate:
    """Read and check the shape; what it proves is for `optalloc.certificate.check_bound` to say.

    Raises
    ------
    InputError
        With every fault of shape and its path.
    """
    with paused_collector():
        content, found = parse(load(path, max_bytes), str(path))
        try:
            document = _Document.model_validate(content)
        except ValidationError as error:
            found += shape_faults(error, _Document)
    if found:
        raise InputError(Fault(json_path(steps), message, str(path)) for steps, message in found)
    return _from_document(document)


def _from_document(document: _Document) -> Certificate:
    content = {
        name: getattr(document, name) for name in _Document.model_fields if name not in ("format", "shares")
    }
    for name in ("objective", "caps", "edges", "earlier"):
        content[name] = tuple(content[name])
    content["prices"] = {name: tuple(prices) for name, prices in document.prices.items()}
    content["shares"] = {(s.task, s.dataset, s.site): s.share for s in document.shares}
    return Certificate(**content)
