"""Public datasets: names and sizes from the catalogues of Hugging Face and TensorFlow Datasets."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from optalloc.composition.sources import Reader, whole

__all__ = ["Entry", "read_catalogue"]

TFDS = "dataset-catalogs/tfds_2020-04_catalog.csv"
HF = "dataset-catalogs/hf_datasets_2.2.0_catalog.csv"
FAMILIES = {"image": "vision", "text": "language", "audio": "speech", "translate": "translation"}
"""Family of TFDS -> domain."""
TASKS = {
    "image-classification": "vision",
    "text-generation": "language",
    "automatic-speech-recognition": "speech",
    "translation": "translation",
}
"""Task category of Hugging Face -> domain."""
SMALLEST, LARGEST = 8 * 10**9, 150 * 10**9


@dataclass(frozen=True)
class Entry:
    """The largest configuration of a dataset."""

    name: str
    domain: str
    catalogue: str
    config: str
    size: int
    """Bytes: the larger of download and prepared dataset."""

    @property
    def size_gb(self) -> Decimal:
        """Size in 10^9 bytes."""
        return Decimal(self.size).scaleb(-9)


def read_catalogue(reader: Reader) -> dict[str, list[Entry]]:
    """Domain -> datasets of 8-150 GB, one entry a name, sorted by name.

    A name that stands under several domains counts for the first of them only.
    """
    largest: dict[str, Entry] = {}
    for entry in [*_tfds(reader), *_hugging_face(reader)]:
        known = largest.get(entry.name)
        if known is None or (entry.size > known.size and entry.domain == known.domain):
            largest[entry.name] = entry
    domains: dict[str, list[Entry]] = {domain: [] for domain in FAMILIES.values()}
    for _, entry in sorted(largest.items()):
        if SMALLEST <= entry.size <= LARGEST:
            domains[entry.domain].append(entry)
        else:
            reader.drop(entry.catalogue, "dataset of another size")
    return domains


def _tfds(reader: Reader) -> Iterator[Entry]:
    for row in reader.rows(TFDS, ["dataset", "config", "family", "download_bytes", "dataset_bytes"]):
        domain = FAMILIES.get(row["family"])
        size = _size(row["download_bytes"], row["dataset_bytes"])
        if domain is not None and size is None:
            reader.drop(TFDS, "size unknown")
        elif domain is not None and size is not None:
            yield Entry(row["dataset"], domain, TFDS, row["config"], size)


def _hugging_face(reader: Reader) -> Iterator[Entry]:
    for row in reader.rows(HF, ["dataset", "config", "task_categories", "download_size", "dataset_size"]):
        categories = row["task_categories"].split("|")
        size = _size(row["download_size"], row["dataset_size"])
        for category, domain in TASKS.items():
            if category in categories and size is None:
                reader.drop(HF, "size unknown")
            elif category in categories and size is not None:
                yield Entry(row["dataset"], domain, HF, row["config"], size)


def _size(*texts: str) -> int | None:
    """The largest known of several sizes, None if none is known."""
    return max((value for text in texts if (value := whole(text))), default=None)
