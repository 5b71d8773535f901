"""Prices of devices by cloud and type."""

from decimal import Decimal

from optalloc.composition.sources import Reader, number

__all__ = ["read_prices"]

TABLE = "cloud-gpus/cloud-gpus.csv"
CLOUDS = {"AWS": "aws", "GCP": "gcp", "Azure": "azure"}
"""Name in the table -> prefix of the cloud's regions."""
TYPES = {"A100 (40 GB)": "A100", "V100 (16 GB)": "V100", "P100 (16 GB)": "P100"}
AZURE_TYPES = TYPES | {"A100 (80 GB)": "A100"}
"""Azure has no A100 of 40 GB."""


def read_prices(reader: Reader) -> dict[tuple[str, str], Decimal]:
    """(cloud, device type) -> lowest $ per device and hour among offers with an on-demand price."""
    prices: dict[tuple[str, str], Decimal] = {}
    for row in reader.rows(TABLE, ["Cloud", "GPU Type", "On-demand", "Per-GPU"]):
        cloud = CLOUDS.get(row["Cloud"], "")
        device_type = (AZURE_TYPES if cloud == "azure" else TYPES).get(row["GPU Type"])
        if not cloud or device_type is None:
            continue
        price = number(row["Per-GPU"])
        if not number(row["On-demand"]) or not price:
            reader.drop(TABLE, "no on-demand price")
            continue
        key = cloud, device_type
        prices[key] = min(price, prices.get(key, price))
    return prices
