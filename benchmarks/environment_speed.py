"""Environment speed: decisions a second, single and many at once (CPU time of one process).

python benchmarks/environment_speed.py [--tasks 100] [--nodes 20] [--datasets 20] [--load 1] [--seconds 5]

Random possible options are taken on the same random instance, episode after episode. "core" is the episode alone (masks
and what every option would add); "ragged" adds the features of every entity; then the padded observations of
the Gymnasium environment in its two views, alone and 16 at once in each vector form.
"""

import argparse
import random
import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

import optalloc as oa
from optalloc.environment import ENVIRONMENT, Episode, Fleet, Prepared, Source, frame_of
from optalloc.instance import read_instance
from optalloc.problem import Problem

MEMBERS = 16


def cluster(tasks: int, nodes: int, datasets: int, load: float, seed: int = 0) -> Problem:
    """Tasks that can read any dataset on any node with 1 to 8 devices; five sites, links with channels."""
    draw = random.Random(seed)
    sites = [f"s{i}" for i in range(5)]
    works = [draw.uniform(1, 6) * 3600 for _ in range(tasks)]
    span = sum(works) * 4 / (nodes * 8 * load)
    document: dict[str, Any] = {
        "format": "optalloc-instance/1",
        "name": f"cluster-{tasks}-{nodes}-{datasets}",
        "sites": [{"id": site} for site in sites],
        "links": [
            {
                "id": f"{a}-{b}",
                "from": a,
                "to": b,
                "bandwidth_gbps": draw.choice([1, 2, 5]),
                "egress_usd_per_gb": draw.choice([0, 0.02, 0.05]),
                "channels": draw.choice([None, 2, 4]),
            }
            for a in sites
            for b in sites
            if a != b
        ],
        "datasets": [
            {
                "id": f"d{i}",
                "size_gb": draw.randint(20, 400),
                "sites": draw.sample(sites, draw.choice([1, 2])),
                "quality": draw.choice([0.6, 0.7, 0.8, 0.9, 1]),
                "relevance": {"x": draw.choice([0.5, 0.7, 0.9, 1])},
                "price_usd": draw.choice([0, 0, 5, 20]),
            }
            for i in range(datasets)
        ],
        "device_types": [{"id": name} for name in "abc"],
        "nodes": [
            {
                "id": f"n{i}",
                "site": sites[i % 5],
                "device_type": "abc"[i % 3],
                "devices": 8,
                "usd_per_device_hour": draw.choice([0.8, 1, 1.5, 2]),
            }
            for i in range(nodes)
        ],
        "models": [{"id": "m", "domain": "x", "scaling": {"name": "amdahl", "parameters": {"f": 0.05}}}],
        "throughputs": [
            {"model": "m", "device_type": name, "measured": {"1": rate}}
            for name, rate in zip("abc", (1, 1.4, 2), strict=True)
        ],
        "tasks": [
            {
                "id": f"t{j}",
                "model": "m",
                "release_s": round(draw.uniform(0, span)),
                "samples": round(works[j] * 4),
                "device_counts": [1, 2, 4, 8],
                "kappa": 0.5,
                "weight": draw.choice([1, 2, 4]),
            }
            for j in range(tasks)
        ],
        "objective": {"levels": [{"weighted_flow": 1, "cost": 1, "utility_loss": 0.01}]},
    }
    return oa.compile(read_instance(document))


def any_of(mask: Any, rng: np.random.Generator) -> int:
    """A random possible option; 0 where there is none."""
    return int(rng.choice(np.flatnonzero(mask))) if mask.any() else 0


def core(prepared: Prepared, watch: Callable[[Episode], Any]) -> Callable[[np.random.Generator], int]:
    """One decision at a time without Gymnasium; what is looked at each time."""
    episode = Episode(prepared)

    def step(rng: np.random.Generator) -> int:
        nonlocal episode
        watch(episode)
        episode.choose(any_of(episode.decision.mask, rng))
        if episode.done:
            episode = Episode(prepared)
        return 1

    return step


def fleet(problem: Problem) -> Callable[[np.random.Generator], int]:
    """Ragged frames of many episodes."""
    members = Fleet(Source(problem), MEMBERS)

    def step(rng: np.random.Generator) -> int:
        frame = members.frame()
        members.step([any_of(mask, rng) for mask in np.split(frame.mask, frame.option_ptr[1:-1])])
        return MEMBERS

    return step


def single(problem: Problem, factored: bool) -> Callable[[np.random.Generator], int]:
    """gymnasium.make, without its checker."""
    env = gymnasium.make(ENVIRONMENT, instance=problem, factored=factored, disable_env_checker=True)
    state = {"mask": env.reset(seed=0)[1]["action_mask"]}

    def step(rng: np.random.Generator) -> int:
        before = env.unwrapped.running.decisions
        *_, terminated, truncated, info = env.step(any_of(state["mask"], rng))
        taken = env.unwrapped.running.decisions - before
        if terminated or truncated:
            _, info = env.reset()
        state["mask"] = info["action_mask"]
        return taken

    return step


def vector(problem: Problem, factored: bool, mode: str) -> Callable[[np.random.Generator], int]:
    """gymnasium.make_vec."""
    settings = {"instance": problem, "factored": factored}
    envs = gymnasium.make_vec(ENVIRONMENT, num_envs=MEMBERS, vectorization_mode=mode, **settings)
    state = {"masks": envs.reset(seed=0)[1]["action_mask"]}
    members = [env.unwrapped for env in envs.unwrapped.envs]

    def step(rng: np.random.Generator) -> int:
        before = [(env.episode, env.running.decisions) for env in members]
        *_, info = envs.step(np.array([any_of(mask, rng) for mask in state["masks"]]))
        state["masks"] = info["action_mask"]
        after = [(env.episode, env.running.decisions) for env in members]
        return sum(new - old for (a, old), (b, new) in zip(before, after, strict=True) if a is b)

    return step


def measure(name: str, step: Callable[[np.random.Generator], int], seconds: float) -> None:
    """Print decisions a second."""
    rng, taken = np.random.default_rng(0), 0
    step(rng)
    began = time.process_time()
    while time.process_time() - began < seconds:
        taken += step(rng)
    print(f"{name:32} {taken / (time.process_time() - began):8.0f} decisions/s", flush=True)


def main() -> None:
    """Print one line for each form."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", type=int, default=100)
    parser.add_argument("--nodes", type=int, default=20)
    parser.add_argument("--datasets", type=int, default=20)
    parser.add_argument("--load", type=float, default=1.0)
    parser.add_argument("--seconds", type=float, default=5.0)
    given = parser.parse_args()
    problem = cluster(given.tasks, given.nodes, given.datasets, given.load)
    began = time.process_time()
    prepared = Prepared(problem)
    print(f"{problem}; prepared in {time.process_time() - began:.2f} s")
    measure("core", core(prepared, lambda episode: None), given.seconds)
    measure("ragged", core(prepared, frame_of), given.seconds)
    measure(f"ragged, fleet of {MEMBERS}", fleet(problem), given.seconds)
    for factored in (False, True):
        view = "factored" if factored else "flat"
        measure(view, single(problem, factored), given.seconds)
        measure(f"{view}, {MEMBERS} stacked", vector(problem, factored, "vector_entry_point"), given.seconds)
        measure(f"{view}, {MEMBERS} in SyncVectorEnv", vector(problem, factored, "sync"), given.seconds)


if __name__ == "__main__":
    main()
