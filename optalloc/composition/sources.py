"""Reading the public data strictly: every value is checked, every dropped row is counted."""

import csv
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any

from optalloc.errors import Fault, InputError
from optalloc.quantities import parse_float

__all__ = ["SOURCES", "Reader", "number", "whole"]

SOURCES = {
    "itp-elasticflow": (
        "Microsoft ITP cluster traces", "https://github.com/microsoft/elasticflow-traces",
        "277ed24d0e908c31a1c98145819e2e3853d8ac00", "MIT",
    ),
    "elasticflow": (
        "ElasticFlow A100 throughput tables (ASPLOS 2023)", "https://github.com/gudiandian/ElasticFlow-artifact",
        "b3f5ea4c9fa92107b0e0e2ba7c06900f4a0ec03a", "Apache-2.0",
    ),
    "gavel": (
        "Gavel V100 and P100 throughputs (OSDI 2020)", "https://github.com/stanford-futuredata/gavel",
        "c4fa40097339e9608ab71fd64c8bdea96a5e4a4c", "MIT",
    ),
    "cloud-gpus": (
        "Full Stack Deep Learning: cloud GPU prices", "https://github.com/the-full-stack/website",
        "2bddc6d52544dc258e7e34396c6958377f72816b", "MIT",
    ),
    "skyplane": (
        "Skyplane region-to-region throughput, latency and egress price (NSDI 2023)",
        "https://github.com/skyplane-project/paper-demo",
        "85e06b5a55e90951b6b004bbe3127d46098544a0", "Apache-2.0",
    ),
    "dataset-catalogs": (
        "Hugging Face datasets 2.2.0 and TFDS (2020-04): dataset sizes", "https://github.com/huggingface/datasets",
        "5842d588f8bcf939a798e38d3b677d815edd4600", "Apache-2.0 (metadata; each dataset has its own licence)",
    ),
}  # fmt: skip
"""Folder -> title, address, commit that we used, licence."""

_WHOLE = re.compile(r"[0-9]{1,15}", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,15}(\.[0-9]{1,25})?", re.ASCII)


def whole(text: str | None) -> int | None:
    """A whole number >= 0 written in digits only, else None: ``""``, ``"3.0"`` and ``"nan"`` are none."""
    return int(text) if text is not None and _WHOLE.fullmatch(text) else None


def number(text: str | None) -> Decimal | None:
    """A plain decimal >= 0, else None."""
    return Decimal(text) if text is not None and _NUMBER.fullmatch(text) else None


def _origin(name: str) -> str:
    folder = name.split("/")[0]
    title, address, commit, _ = SOURCES[folder]
    return f"{folder}/ holds {title}, from {address} at {commit[:12]}"


class Reader:
    """Reads files of a data folder; keeps the hash of each and the count of dropped rows by reason.

    Parameters
    ----------
    folder
        Holds one folder a source, see `SOURCES`.
    """

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        self.hashes: dict[str, str] = {}
        self.dropped: Counter[tuple[str, str]] = Counter()
        self.kept: Counter[str] = Counter()

    def require(self, names: Iterable[str]) -> None:
        """Refuse to begin unless all these files are there.

        Raises
        ------
        InputError
            Each one that is missing, with the source that it is part of.
        """
        missing = [name for name in names if not (self.folder / name).is_file()]
        if missing:
            raise InputError(Fault("", f"is missing; {_origin(name)}", self.path(name)) for name in missing)

    def text(self, name: str) -> str:
        """The text of a file; a byte order mark is removed.

        Raises
        ------
        InputError
            The file is missing or not UTF-8.
        """
        path = self.folder / name
        try:
            content = path.read_bytes()
        except OSError as error:
            raise InputError(Fault("", f"cannot be read: {error.strerror}.", str(path))) from None
        self.hashes[name] = hashlib.sha256(content).hexdigest()
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InputError(Fault(f"byte {error.start}", "is not UTF-8.", str(path))) from None

    def rows(self, name: str, columns: Sequence[str]) -> Iterator[dict[str, str]]:
        """``columns`` of a CSV file with a header; rows with too few or too many values are dropped.

        Raises
        ------
        InputError
            A column is missing or double, or the file is not CSV.
        """
        lines = csv.reader(StringIO(self.text(name), newline=""), strict=True)
        try:
            header = next(lines, [])
            self._check_header(name, header, columns)
            wanted = [header.index(column) for column in columns]
            for values in lines:
                if values and len(values) != len(header):
                    self.drop(name, "wrong number of values")
                elif values:
                    yield {header[place]: values[place] for place in wanted}
        except csv.Error as error:
            raise InputError(
                Fault(f"line {lines.line_num}", f"is not CSV: {error}.", self.path(name))
            ) from None

    def json(self, name: str) -> Any:
        """A JSON file; numbers with a point are read as exact decimals."""
        try:
            return json.loads(self.text(name), parse_float=parse_float)
        except json.JSONDecodeError as error:
            raise InputError(
                Fault(f"line {error.lineno}", f"is not JSON: {error.msg}.", self.path(name))
            ) from None

    def drop(self, name: str, reason: str) -> None:
        """Count a dropped row."""
        self.dropped[name, reason] += 1

    def path(self, name: str) -> str:
        """Path of a file as shown to people."""
        return str(self.folder / name)

    def counts(self) -> dict[str, dict[str, int]]:
        """File -> reason -> rows dropped; files in the order of their names."""
        counts: dict[str, dict[str, int]] = {}
        for (name, reason), count in sorted(self.dropped.items()):
            counts.setdefault(name, {})[reason] = count
        return counts

    def _check_header(self, name: str, header: list[str], columns: Sequence[str]) -> None:
        missing = [column for column in columns if header.count(column) != 1]
        if missing:
            found = ", ".join(header) or "nothing"
            message = f"needs each of the columns {', '.join(missing)} once; found {found}."
            raise InputError(Fault("line 1", message, self.path(name)))
