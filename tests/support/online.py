"""Instances that change after a tick, and what an online policy decides up to it."""

import copy
import json
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from optalloc.compilation import compile as compile_problem
from optalloc.errors import InputError
from optalloc.generators import generate
from optalloc.instance import read_instance
from optalloc.problem import Problem
from optalloc.scope import full_scope
from optalloc.solvers.beginning import contradictions
from support.random_instances import random_instance

Json = dict[str, Any]


def drawn(preset: str, tasks: int, seed: int) -> Json:
    """A generated instance as a document."""
    document: Json = json.loads(generate(preset, tasks=tasks, seed=seed).canonical())
    return document


def compiled(document: Json) -> Problem | None:
    """The problem; None if there is no plan or the document is refused."""
    try:
        problem = compile_problem(read_instance(document))
    except InputError:
        return None
    return None if problem.impossible or contradictions(full_scope(problem)) else problem


def random_problem(seed: int, profile: str) -> Problem | None:
    """A random instance with every feature, compiled."""
    return compiled(random_instance(seed, profile))


def split(document: Json) -> tuple[float, list[int]]:
    """A moment in the middle of the releases, and the positions of the tasks released later."""
    releases = sorted(float(task.get("release_s", 0)) for task in document["tasks"])
    moment = releases[(len(releases) - 1) // 2]
    late = [i for i, task in enumerate(document["tasks"]) if float(task.get("release_s", 0)) > moment]
    return moment, late


def heavier(task: Json, rng: Random) -> Json:
    """Another weight and length; still later."""
    change = {"weight": rng.choice([1, 2, 5]), "release_s": float(task["release_s"]) + rng.randint(0, 300)}
    if "samples" in task:
        change["samples"] = round(float(task["samples"]) * rng.choice([0.2, 3]))
    for key in ("due_s", "deadline_s"):
        if key in task and task[key] is not None:
            change[key] = float(task[key]) + 5000
    return task | change


def change(document: Json, rng: Random) -> Json:
    """Other weights, lengths and releases of the tasks released after the moment."""
    changed = copy.deepcopy(document)
    for at in split(document)[1]:
        changed["tasks"][at] = heavier(changed["tasks"][at], rng)
    return changed


def permute(document: Json, rng: Random) -> Json:
    """The later tasks in another order."""
    changed = copy.deepcopy(document)
    late = split(document)[1]
    for at, other in zip(late, rng.sample(late, len(late)), strict=True):
        changed["tasks"][at] = document["tasks"][other]
    return changed


def drop(document: Json, rng: Random) -> Json:
    """Without the later tasks."""
    changed = copy.deepcopy(document)
    late = set(split(document)[1])
    gone = {document["tasks"][at]["id"] for at in late}
    changed["tasks"] = [task for at, task in enumerate(changed["tasks"]) if at not in late]
    for task in changed["tasks"]:
        if "after" in task:
            task["after"] = [edge for edge in task["after"] if edge["id"] not in gone]
    return changed


CHANGES: Mapping[str, Callable[[Json, Random], Json]] = {"change": change, "permute": permute, "drop": drop}


def decisions(lines: list[Json], until: int) -> list[Json]:
    """What was decided up to a tick, without what a plan is worth (its scale knows all weights)."""
    return [
        {key: value for key, value in line.items() if key != "values"}
        for line in lines
        if line["clock"] <= until and line["action"] in ("commit", "stage", "reject")
    ]
