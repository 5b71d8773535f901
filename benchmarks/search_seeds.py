"""Search for composed instances that are worth solving: the first seed whose instance meets every criterion.

    python benchmarks/search_seeds.py --data FOLDER --size 12

The instance, its proof and its plan go to the index. Criteria, of an instance of N tasks:

- both exact methods prove the optimum within the time limit;
- the best dispatch rule is at least 3 % above the optimum;
- choosing the dataset of highest utility first raises the optimum by at least 0.5 %;
- in the stored optimum two tasks share a staged dataset, and tasks wait N/2 ticks or more in total;
- the MILP has at most 20,000 columns once its windows are shrunk by the best verified plan.
"""

import argparse
from pathlib import Path
from typing import Any

from proving import (
    Proof,
    compile_problem,
    run_rules,
    shared_replicas,
    start_columns,
    store,
    total_wait,
    utility_first,
)
from shipped import ORDER, REAL

from optalloc.composition import VERSION, compose
from optalloc.instance import Instance
from optalloc.result import Status
from optalloc.solvers.run import solve

RULE_GAP, UTILITY_GAP, MOST_COLUMNS = 0.03, 0.005, 20_000


class NotWorthSolving(Exception):
    """A criterion is not met."""


def need(holds: bool, why: str) -> None:
    """Give a seed up with the reason."""
    if not holds:
        raise NotWorthSolving(why)


def examine(instance: Instance, seconds: float) -> tuple[Proof, dict[str, Any]]:
    """The proof of an instance that meets every criterion, and the figures that show it.

    Raises
    ------
    NotWorthSolving
        With the first criterion that is not met.
    """
    proof = Proof(compile_problem(instance))
    run_rules(proof.problem, proof, seconds)
    need(proof.plan is not None, "no rule finds a plan")
    columns = start_columns(proof.problem, proof.plan)
    need(columns <= MOST_COLUMNS, f"{columns} columns or more")
    facts = _against_the_optimum(proof, seconds)
    blind = solve(utility_first(instance), "cpsat", time_limit=seconds, threads=1)
    need(blind.status == Status.OPTIMAL and blind.objective is not None, "utility first: no proof")
    facts["utility_first_optimum"] = blind.objective
    raised = blind.objective / proof.lower - 1
    need(raised >= UTILITY_GAP, f"utility first raises the optimum by {raised:.2%} only")
    # On its own, as users run it: the windows are shrunk by the best rule's plan.
    exact = solve(proof.problem, "highs", time_limit=seconds, threads=1)
    need(exact.status == Status.OPTIMAL, "no proof by highs")
    facts["milp_columns"] = int(exact.info["columns"])
    need(facts["milp_columns"] <= MOST_COLUMNS, f"{facts['milp_columns']} columns")
    proof.record(exact)
    return proof, facts


def _against_the_optimum(proof: Proof, seconds: float) -> dict[str, Any]:
    """Prove the optimum by CP-SAT and compare the rules with it."""
    best_rule = min(proof.rules, key=lambda name: proof.rules[name])
    value = proof.rules[best_rule]
    proof.record(solve(proof.problem, "cpsat", time_limit=seconds, threads=1))
    need(proof.proven and proof.plan is not None, "no proof by cpsat")
    gap = value / proof.lower - 1
    need(gap >= RULE_GAP, f"{best_rule} is {gap:.2%} above the optimum only")
    shared = shared_replicas(proof.problem, proof.plan)
    need(bool(shared), "no staged dataset is shared")
    wait = total_wait(proof.problem, proof.plan)
    need(2 * wait >= proof.problem.num_tasks, f"tasks wait {wait} ticks only")
    return {"best_rule": best_rule, "best_rule_objective": value, "shared": shared, "total_wait_ticks": wait}


def search(data: Path, size: int, first: int, tries: int, seconds: float) -> bool:
    """Try seeds from ``first`` on; store the first instance that is worth solving."""
    for seed in range(first, first + tries):
        instance = compose(data, size, seed=seed)
        try:
            proof, facts = examine(instance, seconds)
        except NotWorthSolving as reason:
            print(f"real-{size} seed {seed}: {reason}", flush=True)
            continue
        print(f"real-{size} seed {seed}: {facts}", flush=True)
        keep(instance, proof, seed, seed - first + 1, facts)
        return True
    return False


def keep(instance: Instance, proof: Proof, seed: int, tried: int, facts: dict[str, Any]) -> None:
    """Note in ``meta`` how the seed was found, and store instance, plan and entry."""
    text = "first seed whose instance is worth solving (benchmarks/search_seeds.py)"
    noted = instance.replace(
        meta=instance.meta | {"search": {"seed": seed, "tried": tried, "criteria": text}}
    )
    again = Proof(compile_problem(noted), proof.lower, None, None, proof.rules, proof.runs)
    again.offer(proof.plan)
    origin = {
        "command": "compose",
        "size": len(noted.tasks),
        "coupling": "10",
        "seed": seed,
        "version": VERSION,
    }
    store(noted, again, "real", origin, ORDER, **facts)


def main() -> None:
    """Parse the arguments and search."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the public data")
    parser.add_argument("--size", type=int, required=True, choices=sorted(REAL))
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--tries", type=int, default=200, help="number of seeds")
    parser.add_argument("--time-limit", type=float, default=120.0, help="seconds for each proof")
    given = parser.parse_args()
    if not search(given.data, given.size, given.first, given.tries, given.time_limit):
        raise SystemExit("no seed was found")


if __name__ == "__main__":
    main()
