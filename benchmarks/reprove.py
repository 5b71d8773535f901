"""Derive the index of shipped instances again: every instance, optimum, bound and stored plan.

    python benchmarks/reprove.py [NAME...] [--time-limit S] [--solvers S1,S2] [--data FOLDER]

Generated instances are generated again, composed ones only if the public data are given (else the shipped
file is taken). Both exact methods run on each, from the best plan known, and `auto` where they leave a gap. A
bound or plan is replaced only by a better one, and two proofs that contradict each other stop the run. The
index is written after each instance, whole or not at all.
"""

import argparse
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from proving import EXACT, DisagreementError, Proof, prove, read_index, store
from shipped import GENERATED, ORDER, REAL, SEEDS_OF_LARGE

from optalloc import composition, generators, instances
from optalloc.instance import Instance
from optalloc.schedule import Schedule


def reprove(name: str, data: Path | None, seconds: float | None, solvers: Sequence[str]) -> Proof | None:
    """Make one instance again, prove it, and store what came out; None if it cannot be made."""
    known = read_index().get(name)
    made = _generated(name) or _composed(name, data, known)
    if made is None:
        return None
    instance, family, origin, limit = made
    same = known is not None and known["sha256"] == instance.sha256
    proof = prove(instance, seconds or limit, solvers, _stored_plan(name) if same else None)
    if same:
        _compare(name, proof, known)
    store(instance, proof, family, origin, ORDER, **(known["facts"] if same else {}))
    return proof


def _stored_plan(name: str) -> Schedule:
    return instances.solution(name)


def _compare(name: str, proof: Proof, known: dict[str, Any]) -> None:
    """Hold a new proof against the stored one; keep the stored bound if it is better."""
    if proof.lower > known["upper"] or (proof.upper is not None and proof.upper < known["lower"]):
        found = f"{proof.lower} to {proof.upper}"
        raise DisagreementError(f"{name}: stored {known['lower']} to {known['upper']}, found {found}")
    if known["lower"] > proof.lower:
        proof.lower, proof.runs = known["lower"], known["proven_by"]


def _generated(name: str) -> tuple[Instance, str, dict[str, Any], float] | None:
    for plan in GENERATED:
        if plan.name == name:
            instance = generators.generate(plan.preset, tasks=plan.tasks, seed=plan.seed)
            origin = {"command": "generate", "preset": plan.preset, "tasks": plan.tasks, "seed": plan.seed}
            return instance, plan.preset, origin | {"version": generators.VERSION}, plan.seconds
    return None


def _composed(
    name: str, data: Path | None, known: dict[str, Any] | None
) -> tuple[Instance, str, dict[str, Any], float] | None:
    """The shipped file or, with data, a new composition; a small size must have been found by the search."""
    size = int(name.removeprefix("real-"))
    if known is not None and data is None:
        return instances.load(name), "real", known["origin"], REAL[size]
    if data is None or (known is None and size not in SEEDS_OF_LARGE):
        return None
    seed = SEEDS_OF_LARGE[size] if known is None else SEEDS_OF_LARGE.get(size, known["origin"]["seed"])
    instance = composition.compose(data, size, seed=seed)
    if known is not None and "search" in instances.load(name).meta:
        meta = instance.meta | {"search": instances.load(name).meta["search"]}
        instance = instance.replace(meta=meta)
    origin = {
        "command": "compose",
        "size": size,
        "coupling": "10",
        "seed": seed,
        "version": composition.VERSION,
    }
    return instance, "real", origin, REAL[size]


def report(name: str, proof: Proof | None) -> str:
    """One line on what was found."""
    if proof is None:
        return f"{name}: not made (composed instances need --data, the small ones benchmarks/search_seeds.py)"
    gap = (proof.upper - proof.lower) / max(1, proof.upper) if proof.upper is not None else float("nan")
    runs = ", ".join(f"{run['solver']} {run['version']} {run['seconds']} s" for run in proof.runs)
    best = min(proof.rules.values(), default=None)
    return f"{name}: {proof.lower} to {proof.upper} ({gap:.2%}) by {runs}; best rule {best}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the arguments and prove."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="names or patterns; default: all")
    parser.add_argument("--time-limit", type=float, help="seconds for each method; default: by size")
    parser.add_argument("--solvers", default=",".join(EXACT), help="methods that prove, default: %(default)s")
    parser.add_argument("--data", type=Path, help="folder of the public data, to compose again")
    given = parser.parse_args(arguments)
    for name in ORDER:
        if not given.names or any(fnmatchcase(name, pattern) for pattern in given.names):
            proof = reprove(name, given.data, given.time_limit, given.solvers.split(","))
            print(report(name, proof), flush=True)


if __name__ == "__main__":
    main()
