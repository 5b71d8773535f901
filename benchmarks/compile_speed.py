"""Time and memory of compile() on a large synthetic instance.

    python benchmarks/compile_speed.py [--tasks 10000] [--nodes 100] [--datasets 500] [--sites 20] [--hubs 4]

Prints machine, versions, sizes, seconds of each step and the peak resident memory, as one JSON object.
"""

import argparse
import json
import os
import platform
import random
import resource
import sys
import time
from typing import Any

import numpy as np

import optalloc.compilation
from optalloc.instance import Instance

COUNTS = ("1", "2", "4", "8")


def synthetic(tasks: int, nodes: int, datasets: int, sites: int, hubs: int, seed: int) -> dict[str, Any]:
    """An instance document: hubs and sites around them; tasks with 8 candidate datasets and 3 allowed sites."""
    draw = random.Random(seed)
    names = [f"s{index}" for index in range(sites)]
    return {
        "format": "optalloc-instance/1",
        "name": f"compile-speed-{tasks}",
        "sites": [{"id": name, "storage_gb": draw.choice([None, 2000, 5000])} for name in names],
        "links": _links(draw, names, hubs),
        "datasets": [_dataset(draw, index, names) for index in range(datasets)],
        "device_types": [{"id": f"g{k}", "memory_gb": 16 * 2**k, "interconnect_gbps": 100} for k in range(3)],
        "nodes": [_node(draw, index, names) for index in range(nodes)],
        "models": [_model(index) for index in range(12)],
        "throughputs": [_throughput(draw, model, kind) for model in range(12) for kind in range(3)],
        "tasks": [_task(draw, index, names, datasets) for index in range(tasks)],
        "objective": {"levels": [{"weighted_completion": 1, "cost": 1}]},
    }


def _links(draw: random.Random, names: list[str], hubs: int) -> list[dict[str, Any]]:
    """The first ``hubs`` sites are joined with each other, every other site with one of them."""
    pairs = [(a, b) for a in range(hubs) for b in range(a + 1, hubs)]
    pairs += [(site, site % hubs) for site in range(hubs, len(names))]
    return [
        {
            "id": f"l{number}",
            "from": names[a],
            "to": names[b],
            "bandwidth_gbps": round(draw.uniform(1, 20), 3),
            "latency_s": round(draw.uniform(0.001, 0.2), 4),
            "egress_usd_per_gb": draw.choice([0.01, 0.02, 0.09]),
            "channels": draw.choice([None, 2, 4]),
            "both_ways": True,
        }
        for number, (a, b) in enumerate(pairs)
    ]


def _dataset(draw: random.Random, index: int, names: list[str]) -> dict[str, Any]:
    return {
        "id": f"d{index}",
        "size_gb": round(draw.uniform(5, 500), 2),
        "sites": draw.sample(names, 2),
        "quality": round(draw.uniform(0.7, 1), 3),
        "relevance": {f"domain{k}": round(draw.uniform(0.3, 1), 2) for k in range(4)},
        "price_usd": draw.choice([0, 5, 20.5]),
        "pricing": draw.choice(["once", "per_use"]),
        "available_s": draw.choice([0, 0, 3600]),
        "max_readers": draw.choice([None, None, 4]),
        "streamable": index % 20 == 0,
    }


def _node(draw: random.Random, index: int, names: list[str]) -> dict[str, Any]:
    return {
        "id": f"n{index}",
        "site": names[index % len(names)],
        "device_type": f"g{index % 3}",
        "devices": draw.choice([4, 8, 16]),
        "usd_per_device_hour": draw.choice([1.15, 2.48, 4.1]),
        "availability": [[0, 86400 * 30, 4], [86400 * 30, 86400 * 300, 4]] if index % 7 == 0 else None,
        "extra": {"cpu": draw.choice([32, 64]), "ram_gb": draw.choice([256, 512])},
    }


def _model(index: int) -> dict[str, Any]:
    amdahl = {"name": "amdahl", "parameters": {"f": 0.05}}
    return {"id": f"m{index}", "domain": f"domain{index % 4}", "scaling": amdahl if index % 2 else None}


def _throughput(draw: random.Random, model: int, kind: int) -> dict[str, Any]:
    single = draw.uniform(20, 300) * (1 + kind)
    rates = {count: round(single * int(count) ** draw.uniform(0.7, 1), 1) for count in COUNTS}
    return {"model": f"m{model}", "device_type": f"g{kind}", "measured": rates}


def _task(draw: random.Random, index: int, names: list[str], datasets: int) -> dict[str, Any]:
    return {
        "id": f"t{index}",
        "model": f"m{draw.randrange(12)}",
        "release_s": round(draw.uniform(0, 86400 * 10), 1),
        "weight": draw.choice([1, 2, 4]),
        "samples": draw.randrange(10**6, 10**8),
        "kappa": 1,
        "device_counts": draw.choice([[1, 2], [2, 4], [1, 2, 4]]),
        "memory_gb_per_device": draw.choice([8, 12, 24]),
        "extra": {"cpu": draw.randrange(1, 9), "ram_gb": draw.randrange(8, 65)},
        "setup_s": {"g0": 30.5},
        "sites": draw.sample(names, min(3, len(names))),
        "datasets": [f"d{number}" for number in draw.sample(range(datasets), min(8, datasets))],
    }


def peak_mib() -> float:
    """Largest resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Build, read and compile one instance."""
    options = {name: value for name, value in vars(arguments).items() if name != "profile"}
    document = synthetic(**options)
    began = time.perf_counter()
    instance = Instance(**document)
    read, cpu, before = time.perf_counter(), time.process_time(), peak_mib()
    problem = optalloc.compilation.compile(instance)
    done, cpu = time.perf_counter(), time.process_time() - cpu
    modes = np.diff(problem.mode_ptr)
    return {
        "machine": f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores",
        "versions": {"python": platform.python_version(), "numpy": np.__version__},
        **options,
        "modes": int(modes.sum()),
        "largest_task": int(modes.max()),
        "active_modes": int(problem.active.sum()),
        "replicas": problem.num_replicas,
        "routes": len(problem.route_ticks),
        "seconds_instance": round(read - began, 2),
        "seconds_compile": round(done - read, 2),
        "cpu_seconds_compile": round(cpu, 2),
        "peak_mib_before": round(before),
        "peak_mib": round(peak_mib()),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (
        ("tasks", 10_000),
        ("nodes", 100),
        ("datasets", 500),
        ("sites", 20),
        ("hubs", 4),
        ("seed", 0),
    ):
        parser.add_argument(f"--{name}", type=int, default=default)
    json.dump(measure(parser.parse_args()), sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
