"""How fast the placement kernel and the rules are, on generated ladders of growing size.

    python benchmarks/kernel_speed.py [TASKS ...]

CPU seconds of this process: compile, then for each rule its desk (windows, start bounds) and its list
scheduling. Rules that compare all ready tasks at every step are left out above 1,000 tasks. The
micro-benchmark is the cost of one question, one commitment with its removal, and one copy on a full
timetable.
"""

import sys
import time
from collections.abc import Callable

import numpy as np

from optalloc.compilation import compile as compile_problem
from optalloc.evaluation import evaluate
from optalloc.generators import generate
from optalloc.placement import Timetable
from optalloc.problem import Problem
from optalloc.scope import full_scope
from optalloc.solvers.rules import RULES, DeadEnd, Desk, best_start

COMPARING = ("atc", "min-min", "max-min", "sufferage")
RUNS = 2000


def timed(action: Callable[[], object]) -> float:
    """CPU seconds of one call."""
    began = time.process_time()
    action()
    return time.process_time() - began


def rule_rows(problem: Problem) -> None:
    """One line per rule: seconds for the desk, for the rule, for the check, and the first level."""
    scope = full_scope(problem)
    for name, rule in RULES.items():
        if name in COMPARING and problem.num_tasks > 1000:
            continue
        desks: list[Desk] = []
        prepared = timed(lambda desks=desks: desks.append(Desk(scope)))
        try:
            placed = timed(lambda desk=desks[0], rule=rule: rule(desk))
        except DeadEnd as end:
            print(f"    {name:16} {prepared:8.2f} {end.describe(scope)}")
            continue
        plan = desks[0].table.plan()
        checked = timed(lambda plan=plan: evaluate(problem, plan, scope=scope))
        found = evaluate(problem, plan, scope=scope)
        assert not found.violations, found.violations[0]
        print(f"    {name:16} {prepared:8.2f} {placed:8.2f} {checked:8.2f} {found.levels[0]:16,d}")


def micro_rows(problem: Problem) -> None:
    """Microseconds of single operations on a timetable that FIFO has filled."""
    desk = Desk(full_scope(problem))
    RULES["fifo"](desk)
    table, rng = desk.table, np.random.default_rng(0)
    tasks = rng.integers(problem.num_tasks, size=RUNS).tolist()
    modes = [int(rng.choice(problem.modes_of(task))) for task in tasks]

    def ask() -> None:
        for task, mode in zip(tasks, modes, strict=True):
            table.earliest(task, mode)

    def move() -> None:
        for task in tasks:
            mode = table.mode[task]
            table.remove(task)
            placement = table.earliest(task, mode)
            assert placement is not None
            table.commit(placement)

    def copy_and_move() -> None:
        for task in tasks:
            twin: Timetable = table.copy()
            twin.remove(task)

    ask()
    for name, action in (
        ("earliest", ask),
        ("remove, earliest, commit", move),
        ("copy, remove", copy_and_move),
    ):
        print(f"    {name:28} {timed(action) / RUNS * 1e6:8.1f} us")


def main(sizes: list[int]) -> None:
    for tasks in sizes:
        instance = generate("ladder", tasks=tasks, seed=0)
        problems: list[Problem] = []
        compiled = timed(
            lambda instance=instance, problems=problems: problems.append(compile_problem(instance))
        )
        problem = problems[0]
        print(f"{problem!r}: compiled in {compiled:.1f} s")
        print("    rule                 desk    rule   check          level 1")
        rule_rows(problem)
        micro_rows(problem)
        print(f"    best_start {timed(lambda problem=problem: best_start(full_scope(problem))):.1f} s")


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]] or [100, 1000])
