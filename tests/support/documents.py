"""A document in which every key of the instance format stands, and ways to spoil it."""

from collections.abc import Callable
from typing import Any

from optalloc.errors import InputError
from optalloc.instance import read_instance

__all__ = ["Change", "Document", "drop", "faults_of", "full", "put"]

Document = dict[str, Any]
Change = Callable[[Document], object]


def full() -> Document:
    """An instance in which every key of the format stands once."""
    return {
        "format": "optalloc-instance/1",
        "name": "full",
        "tick_seconds": 30,
        "money_unit_usd": 0.001,
        "sites": [
            {"id": "a", "tier": "cloud", "storage_gb": 100},
            {"id": "b", "tier": "edge", "storage_gb": None},
        ],
        "links": [
            {
                "id": "ab",
                "from": "a",
                "to": "b",
                "bandwidth_gbps": 1.5,
                "latency_s": 0.1,
                "egress_usd_per_gb": 0.02,
                "channels": 2,
                "both_ways": True,
            },
            {"id": "ba", "from": "b", "to": "a", "bandwidth_gbps": 1, "channels": None},
        ],
        "datasets": [
            {
                "id": "d0",
                "size_gb": 4.2,
                "sites": ["a"],
                "quality": 0.9,
                "price_usd": 5,
                "pricing": "once",
                "relevance": {"vision": 1, "text": 0.5},
                "available_s": 10,
                "max_readers": 2,
                "streamable": True,
            },
            {"id": "d1", "size_gb": 1, "sites": ["a", "b"], "max_readers": None},
        ],
        "device_types": [
            {"id": "gpu", "memory_gb": 16, "interconnect_gbps": 100},
            {"id": "tpu", "memory_gb": None},
        ],
        "nodes": [
            {
                "id": "n0",
                "site": "a",
                "device_type": "gpu",
                "devices": 4,
                "usd_per_device_hour": 2.5,
                "availability": [[0, 100, 4], [100, 200, 2], [500, 900.5, 0]],
                "extra": {"cpu": 8},
            },
            {"id": "n1", "site": "b", "device_type": "tpu", "devices": 2, "availability": None},
        ],
        "models": [
            {
                "id": "m0",
                "domain": "vision",
                "size_gb": 0.5,
                "scaling": {"name": "ring", "parameters": {"gam": 2, "batch_samples": 64}},
                "compression": 0.5,
            },
            {"id": "m1", "domain": "text", "scaling": {"name": "amdahl", "parameters": {"f": 0.1}}},
            {
                "id": "m2",
                "domain": "text",
                "scaling": {"name": "affine_log", "parameters": {"a": 0.1, "b": 0.9, "c": 0}},
            },
            {"id": "m3", "domain": "text", "scaling": {"name": "linear"}},
            {"id": "m4", "domain": "text", "scaling": None},
        ],
        "throughputs": [
            {"model": "m0", "device_type": "gpu", "measured": {"1": 10, "2": 19.5, "16": 0}},
            {"model": "m1", "device_type": "tpu", "measured": {"1": 3}},
        ],
        "tasks": [
            {
                "id": "t0",
                "model": "m0",
                "domain": "text",
                "release_s": 5,
                "due_s": 100,
                "deadline_s": 1000,
                "weight": 2,
                "samples": 500,
                "device_counts": [1, 2],
                "memory_gb_per_device": 8,
                "extra": {"cpu": 2},
                "setup_s": {"gpu": 3},
                "datasets": ["d0", "d1"],
                "min_utility": 0.4,
                "budget_usd": 50,
                "reject_penalty": 3,
                "kappa": 1.5,
                "sites": ["a", "b"],
            },
            {
                "id": "t1",
                "model": "m1",
                "reference_hours": 0.5,
                "reference": {"device_type": "tpu", "devices": 1},
                "inputs": [{"datasets": ["d0"], "min_utility": 0.1, "share": 2}, {"datasets": None}],
                "after": [{"id": "t2", "lag_s": 4}],
            },
            {
                "id": "t2",
                "modes": [
                    {
                        "id": "e0",
                        "uses": [{"node": "n1", "devices": 1}],
                        "duration_ticks": 3,
                        "datasets": ["d0"],
                        "usd": 0.5,
                        "utility": 700,
                    },
                    {
                        "id": "e1",
                        "uses": [{"node": "n0", "devices": 1}, {"node": "n1", "devices": 2}],
                        "duration_ticks": 1,
                    },
                ],
            },
            {"id": "t3", "model": "m1", "samples": 10, "datasets": []},
        ],
        "objective": {"levels": [{"rejected": 1, "cost": 0.5}, {"makespan": 1}], "limits": {"cost": 100}},
        "state": {
            "tasks": [
                {
                    "task": "t2",
                    "rejected": False,
                    "choice": {
                        "inputs": [{"dataset": "d0", "access": "staged", "route": None}],
                        "mode": "e0",
                    },
                    "segments": [{"uses": [{"node": "n1", "devices": 1}], "start": -1, "end": 2}],
                },
                {
                    "task": "t1",
                    "choice": {
                        "inputs": [
                            {"dataset": "d0", "access": "streamed", "route": ["ab"]},
                            {"dataset": "d1", "access": "local"},
                        ]
                    },
                    "segments": [{"uses": [{"node": "n1", "devices": 1}], "start": 5, "end": 9}],
                },
            ],
            "transfers": [{"dataset": "d0", "site": "b", "route": ["ab"], "start": -2}],
            "purchases": ["d0"],
            "time_zero": "2026-01-31T08:00:00Z",
        },
        "meta": {"source": "by hand", "seed": 1, "synthetic": ["quality"], "nested": {"x": [None, 1.50]}},
    }


def faults_of(document: Any) -> dict[str, str]:
    """Path -> message of everything wrong with a document."""
    try:
        read_instance(document)
    except InputError as error:
        return {fault.path: fault.message for fault in error.faults}
    return {}


def put(*steps: str | int) -> Callable[[Any], Change]:
    """``put("tasks", 0, "weight")(3)`` is the change that sets this value."""

    def value_of(value: Any) -> Change:
        def change(document: Any) -> None:
            for step in steps[:-1]:
                document = document[step]
            if isinstance(document, list) and steps[-1] == len(document):
                document.append(value)
            else:
                document[steps[-1]] = value

        return change

    return value_of


def drop(*steps: str | int) -> Change:
    """The change that takes something away."""

    def change(document: Any) -> None:
        for step in steps[:-1]:
            document = document[step]
        del document[steps[-1]]

    return change
