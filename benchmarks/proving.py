"""Proofs and their records: solve instances by every exact method, and keep the index of what ships."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from shipped import MOST_COLUMNS

from optalloc.compilation import compile as compile_problem
from optalloc.evaluation import evaluate
from optalloc.instance import Instance
from optalloc.io.atomic import write_text
from optalloc.io.writing import write_instance
from optalloc.problem import Plan, Problem
from optalloc.result import Result, Status
from optalloc.schedule import Schedule, to_schedule, write_schedule
from optalloc.scope import full_scope, start_intervals, windows
from optalloc.solvers.registry import solver_names
from optalloc.solvers.run import solve
from optalloc.solvers.shrinking import shrink

EXACT = ("cpsat", "highs", "auto")
"""Methods that prove; `auto`, which uses both, only where neither has proven the optimum by itself."""
PACKAGE = Path(__file__).parents[1] / "instances"
INDEX_FORMAT = "optalloc-index/1"
LARGE_FILE = 300_000
"""Instance files of more characters than this are compressed."""


class DisagreementError(Exception):
    """Two proofs that contradict each other, or a plan below a proven bound: never written to the index."""


@dataclass
class Proof:
    """What is known of an instance: the best plan, the best bound, and the runs that proved it."""

    problem: Problem
    lower: int = 0
    upper: int | None = None
    plan: Plan | None = None
    rules: dict[str, int] = field(default_factory=dict)
    runs: list[dict[str, Any]] = field(default_factory=list)

    @property
    def proven(self) -> bool:
        """The plan is optimal."""
        return self.lower == self.upper

    def offer(self, plan: Plan | Schedule) -> None:
        """Keep a plan if it is valid and better."""
        checked = evaluate(self.problem, plan)
        if checked.valid and (self.upper is None or checked.objective < self.upper):
            self.upper, self.plan = checked.objective, checked.plan

    def record(self, result: Result) -> None:
        """Keep what a run of an exact method proved.

        Raises
        ------
        DisagreementError
            It is wrong, or something that was recorded before.
        """
        name = self.problem.instance.name
        if result.status in (Status.ERROR, Status.INFEASIBLE):
            raise DisagreementError(f"{name}: {result.solver} ended in {result.status}: {result.message}")
        if result.plan is not None:
            self.offer(result.plan)
        if result.bound is None:
            return
        if self.upper is not None and result.bound > self.upper:
            raise DisagreementError(
                f"{name}: bound {result.bound} of {result.solver}, but a plan has {self.upper}"
            )
        if result.status == Status.OPTIMAL and result.objective < self.lower:
            raise DisagreementError(
                f"{name}: {result.solver} proved {result.objective} below bound {self.lower}"
            )
        self._keep_run(result, result.bound)

    def _keep_run(self, result: Result, bound: int) -> None:
        """Only runs that proved the best bound stand in the index."""
        if bound < self.lower:
            return
        if bound > self.lower:
            self.runs = []
        self.lower = bound
        run = {"solver": result.solver, "version": version_of(result), "seconds": round(result.seconds, 1)}
        self.runs = [other for other in self.runs if other["solver"] != result.solver] + [run]


def version_of(result: Result) -> str:
    """Version of the library behind an exact method."""
    library = {"cpsat": "ortools", "highs": "highspy"}.get(result.solver, "optalloc")
    return str(result.versions.get(library, "unknown"))


def run_rules(problem: Problem, proof: Proof, seconds: float) -> None:
    """All dispatch rules: their objectives, and the best plan."""
    for name in solver_names(kind="rules"):
        result = solve(problem, name, time_limit=seconds, threads=1)
        if result.plan is not None and result.objective is not None:
            proof.rules[name] = result.objective
            proof.offer(result.plan)


def prove(
    instance: Instance, seconds: float, solvers: Sequence[str] = EXACT, start: Schedule | None = None
) -> Proof:
    """Run the rules, then each exact method for at most ``seconds``, from the best plan so far."""
    problem = compile_problem(instance)
    proof = Proof(problem)
    if start is not None:
        proof.offer(start)
    run_rules(problem, proof, seconds)
    for name in solvers:
        if name == "auto" and proof.proven:
            continue
        if name == "highs" and proof.plan is not None and start_columns(problem, proof.plan) > MOST_COLUMNS:
            continue
        threads = 2 if name == "auto" else 1
        proof.record(solve(problem, name, time_limit=seconds, threads=threads, start=proof.plan))
    return proof


# index -----------------------------------------------------------------------------------------------------
def read_index() -> dict[str, dict[str, Any]]:
    """Name -> entry of the index as it stands."""
    document = json.loads((PACKAGE / "index.json").read_text(encoding="utf-8"))
    return {entry["name"]: entry for entry in document["instances"]}


def write_index(entries: Iterable[dict[str, Any]]) -> None:
    """Write the index whole or not at all, one line an instance."""
    lines = ",\n".join("  " + json.dumps(entry, ensure_ascii=False) for entry in entries)
    write_text(
        PACKAGE / "index.json", f'{{\n "format": "{INDEX_FORMAT}",\n "instances": [\n{lines}\n ]\n}}\n'
    )


def store(
    instance: Instance, proof: Proof, family: str, origin: dict[str, Any], order: Sequence[str], **facts: Any
) -> None:
    """Write instance, plan and index entry; entries stand in the given order of names."""
    if proof.plan is None or proof.upper is None:
        raise DisagreementError(f"{instance.name}: no plan is known")
    small = len(instance.canonical()) <= LARGE_FILE
    path = f"families/{family}/{instance.name}.json" + ("" if small else ".gz")
    solution = f"solutions/{instance.name}.json"
    for folder in (PACKAGE / path, PACKAGE / solution):
        folder.parent.mkdir(parents=True, exist_ok=True)
    write_instance(instance, PACKAGE / path)
    write_schedule(to_schedule(proof.problem, proof.plan), PACKAGE / solution)
    entry = {"name": instance.name, "family": family, "path": path, "sizes": sizes_of(proof.problem)}
    entry |= {"origin": origin, "sha256": instance.sha256, "weight_scale": proof.problem.scale}
    entry |= {"lower": proof.lower, "upper": proof.upper, "proven_by": proof.runs, "solution": solution}
    entries = read_index() | {instance.name: entry | {"facts": facts}}
    write_index(sorted(entries.values(), key=lambda each: order.index(each["name"])))


def sizes_of(problem: Problem) -> dict[str, int]:
    """Numbers that tell how large an instance is."""
    return {
        "tasks": problem.num_tasks,
        "nodes": problem.num_nodes,
        "datasets": len(problem.dataset_ids),
        "modes": problem.num_modes,
        "active_modes": int(problem.active.sum()),
    }


# facts of a plan -------------------------------------------------------------------------------------------
def total_wait(problem: Problem, plan: Plan) -> int:
    """Ticks between release and start, over all placed tasks."""
    placed = plan.mode >= 0
    return int((plan.start - problem.release)[placed].sum())


def shared_replicas(problem: Problem, plan: Plan) -> list[list[str]]:
    """[dataset, site] of staged replicas that at least two tasks read."""
    readers = np.zeros(problem.num_replicas, dtype=int)
    for mode in plan.mode[plan.mode >= 0].tolist():
        readers[problem.needs(mode)] += 1
    pairs = (
        (problem.replica_dataset[k], problem.replica_site[k]) for k in np.flatnonzero(readers >= 2).tolist()
    )
    return [[problem.dataset_ids[dataset], problem.site_ids[site]] for dataset, site in pairs]


def start_columns(problem: Problem, plan: Plan) -> int:
    """(mode, start) pairs that windows shrunk by a plan leave: the columns of runs in the time-indexed MILP."""
    scope = full_scope(problem)
    value = evaluate(problem, plan).objective
    left = shrink(scope, windows(scope), len(problem.levels) - 1, value)
    spans = zip(range(problem.num_modes), left.earliest.tolist(), left.latest.tolist(), strict=True)
    return sum(b - a + 1 for span in spans for a, b in start_intervals(problem, *span))


def utility_first(instance: Instance) -> Instance:
    """Each task may only read its candidate of highest utility: data chosen first, devices afterwards."""
    problem = compile_problem(instance)
    tasks = []
    for number, task in enumerate(instance.tasks):
        modes = problem.modes_of(number, active=False)
        best = int(modes[np.argmax(problem.utility[modes])])
        names = [problem.dataset_ids[dataset] for dataset, _, _ in problem.inputs(best)]
        tasks.append(task.replace(datasets=names))
    return instance.replace(tasks=tasks)
