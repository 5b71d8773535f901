"""Measured rates: ElasticFlow's on A100, Gavel's on V100 and P100; none is carried over to another."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from optalloc.composition.sources import Reader, number, whole
from optalloc.errors import Fault, InputError

__all__ = ["ELASTICFLOW", "GAVEL_TYPES", "ModelRates", "elasticflow_rates", "gavel_rates"]

ELASTICFLOW = {
    "bert": "language",
    "deepspeech2": "speech",
    "gpt2": "language",
    "inception3": "vision",
    "resnet50": "vision",
    "vgg16": "vision",
}
"""Model -> domain."""

GAVEL_TYPES = {"LM": "language", "ResNet-18": "vision", "ResNet-50": "vision", "Transformer": "translation"}
"""Job type -> domain; A3C, CycleGAN and Recommendation are left out."""

FIELD = "resnet50"
"""The one model that both measured: with the same batch, one device of V100 or P100 runs it as well."""
FIELD_TYPE, FIELD_BATCHES = "ResNet-50", (64, 128)

THROUGHPUTS = "gavel/simulation_throughputs.json"
A100_TABLES = {model: f"elasticflow/throughputs_A100/{model}.csv" for model in ELASTICFLOW}
_KEY = re.compile(r"\('(.+?)(?: \(batch size (\d+)\))?', (\d+)\)")
_COUNTS = ("1", "2", "4", "8", "16", "32", "64")


@dataclass(frozen=True)
class ModelRates:
    """A model at one global batch.

    Attributes
    ----------
    id
        ``model@batch``.
    batch
        Samples of one iteration (ElasticFlow) or step (Gavel).
    rates
        Device type -> device count -> iterations or steps per second of the whole job; never 0.
    """

    id: str
    domain: str
    batch: int
    rates: Mapping[str, Mapping[int, Decimal]]


def elasticflow_rates(reader: Reader, gavel: Mapping[str, ModelRates]) -> dict[str, ModelRates]:
    """A100 rates by ``model@batch``; resnet50@64 and @128 with Gavel's rates of one device as well."""
    found: dict[str, ModelRates] = {}
    for model, domain in ELASTICFLOW.items():
        name = A100_TABLES[model]
        for row in reader.rows(name, ["global_batch_size", *_COUNTS]):
            batch = whole(row["global_batch_size"])
            if not batch or f"{model}@{batch}" in found:
                reader.drop(name, "batch size missing or repeated")
                continue
            rates = {"A100": _a100(reader, name, row)}
            if model == FIELD and batch in FIELD_BATCHES:
                rates |= _one_device(gavel.get(f"{FIELD_TYPE}@{batch}"))
            found[f"{model}@{batch}"] = ModelRates(f"{model}@{batch}", domain, batch, rates)
    return found


def _a100(reader: Reader, name: str, row: dict[str, str]) -> dict[int, Decimal]:
    """Count -> rate of one row; empty, ``nan`` and 0 mean that it does not run."""
    rates: dict[int, Decimal] = {}
    for count in _COUNTS:
        rate = number(row[count])
        if rate:
            rates[int(count)] = rate
        elif rate is None and row[count] not in ("", "nan"):
            reader.drop(name, "value is not a number")
    return rates


def _one_device(model: ModelRates | None) -> dict[str, dict[int, Decimal]]:
    """V100 and P100 rates at exactly one device."""
    if model is None:
        return {}
    return {device: {1: rates[1]} for device, rates in model.rates.items() if 1 in rates}


def gavel_rates(reader: Reader) -> dict[str, ModelRates]:
    """V100 and P100 rates of jobs that run alone, by ``type@batch``."""
    document = reader.json(THROUGHPUTS)
    domains: dict[str, tuple[str, int]] = {}
    rates: dict[str, dict[str, dict[int, Decimal]]] = {}
    for device in ("V100", "P100"):
        for key, alone in _section(reader, document, device.lower()):
            kind, batch, count = _parsed(key)
            if kind not in GAVEL_TYPES or not batch:
                continue
            if not alone:
                reader.drop(THROUGHPUTS, "rate is 0")
                continue
            model = f"{kind}@{batch}"
            domains[model] = GAVEL_TYPES[kind], batch
            rates.setdefault(model, {}).setdefault(device, {})[count] = alone
    return {model: ModelRates(model, *domains[model], rates[model]) for model in sorted(rates)}


def _section(reader: Reader, document: Any, worker: str) -> list[tuple[str, Decimal]]:
    """(key, rate alone) of one worker type."""
    try:
        pairs = [(key, Decimal(entry["null"])) for key, entry in document[worker].items()]
    except (AttributeError, KeyError, TypeError, ValueError, ArithmeticError):
        message = f'needs an object "{worker}" whose entries each have a number "null".'
        raise InputError(Fault(worker, message, reader.path(THROUGHPUTS))) from None
    if not all(rate.is_finite() and rate >= 0 for _, rate in pairs):
        raise InputError(Fault(worker, "holds a rate that is not a number >= 0.", reader.path(THROUGHPUTS)))
    return pairs


def _parsed(key: str) -> tuple[str, int, int]:
    """(type, batch or 0, workers) of a key such as ``('LM (batch size 5)', 2)``."""
    match = _KEY.fullmatch(key)
    return (match[1], int(match[2] or 0), int(match[3])) if match else ("", 0, 0)
