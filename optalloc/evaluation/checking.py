"""Check a plan against every rule and measure it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

from optalloc.evaluation.metrics import plan_metrics, task_facts
from optalloc.evaluation.rules import RULES
from optalloc.evaluation.terms import plan_levels, plan_terms, text
from optalloc.evaluation.view import View
from optalloc.instance import Instance
from optalloc.problem import Plan, Problem
from optalloc.schedule.conversion import resolve
from optalloc.schedule.files import as_schedule
from optalloc.schedule.model import Schedule, Violation
from optalloc.schedule.shape import check_shape
from optalloc.scope import Scope, full_scope

__all__ = ["Evaluation", "evaluate"]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What a plan is worth, and every rule that it breaks.

    Attributes
    ----------
    violations
        All broken rules, R1 first.
    terms
        Exact and unscaled: time in ticks, cost in money units, task weights applied. Where tasks have no
        valid choice (R1, R2) the terms are those of the others.
    levels
        Levels of the objective times K (``Problem.scale``).
    notes
        What is allowed and still worth a word: unused transfers, another instance's hash.
    """

    violations: tuple[Violation, ...]
    terms: Mapping[str, int | Fraction]
    levels: tuple[int, ...]
    notes: tuple[str, ...] = ()
    view: View = field(repr=False, kw_only=True)

    @property
    def valid(self) -> bool:
        """No rule is broken."""
        return not self.violations

    @property
    def objective(self) -> int:
        """The last level."""
        return self.levels[-1]

    @property
    def plan(self) -> Plan:
        """What was checked."""
        return self.view.plan

    @cached_property
    def metrics(self) -> dict[str, Any]:
        """Hours, $, GB and shares (docs/results.md); worked out on first use."""
        return plan_metrics(self.view)

    @cached_property
    def tasks(self) -> dict[str, dict[str, Any]]:
        """Start, end, flow, tardiness, money and utility of each placed task."""
        return task_facts(self.view)

    def to_dict(self) -> dict[str, Any]:
        """JSON object: valid, violations, objective, levels, terms (fractions as text), metrics,
        tasks, notes."""
        return {
            "valid": self.valid,
            "violations": [
                {"rule": v.rule, "ids": list(v.ids), "message": v.message} for v in self.violations
            ],
            "objective": self.objective,
            "levels": list(self.levels),
            "terms": {name: text(value) for name, value in self.terms.items()},
            "metrics": self.metrics,
            "tasks": self.tasks,
            "notes": list(self.notes),
        }


def evaluate(
    problem: Problem | Instance | str | Path,
    plan: Schedule | Plan | str | Path,
    *,
    scope: Scope | None = None,
) -> Evaluation:
    """Check ``plan`` against every rule (docs/model.md) and compute its terms.

    Parameters
    ----------
    problem
        A compiled instance; another one, a file or a name is compiled first.
    plan
        A Schedule, which may leave out what the state fixes, its file, or a solver's Plan.
    scope
        What the plan was made under: tasks that do not exist are ignored, fixed parts must be unchanged, and
        nothing else may start before ``scope.not_before``. Default: the whole instance with its state.

    Raises
    ------
    InputError
        For a Plan whose arrays are not those of a plan of this problem, and for malformed files.
    """
    unresolved: tuple[Violation, ...] = ()
    notes: list[str] = []
    if not isinstance(problem, Problem):
        from optalloc.compilation import compile as compile_problem

        problem = compile_problem(problem)
    plan = as_schedule(plan, "plan")
    if isinstance(plan, Schedule):
        notes += _hash_note(problem, plan)
        plan, unresolved = resolve(problem, plan)
    check_shape(problem, plan)
    view = View(problem, full_scope(problem) if scope is None else scope, plan)
    violations = _in_order([*unresolved, *_broken(view, {v.ids[0] for v in unresolved})])
    terms = plan_terms(view)
    return Evaluation(violations, terms, plan_levels(view, terms), (*notes, *_unused(view)), view=view)


def _broken(view: View, known: set[str]) -> Iterable[Violation]:
    """All broken rules; that a task in ``known`` has no place has been said already."""
    for rule, check in RULES.items():
        for violation in check(view):
            if rule not in ("R1", "scope") or violation.ids[0] not in known:
                yield violation


def _in_order(violations: Iterable[Violation]) -> tuple[Violation, ...]:
    order = list(RULES)
    return tuple(sorted(violations, key=lambda violation: order.index(violation.rule)))


def _hash_note(problem: Problem, schedule: Schedule) -> list[str]:
    expected, given = problem.instance.sha256, schedule.instance_sha256
    if given is None or given == expected:
        return []
    return [
        f"the schedule was made for another instance: its hash is {given[:12]}..., not {expected[:12]}..."
    ]


def _unused(view: View) -> Iterable[str]:
    read = set(view.needs[1].tolist())
    for transfer in view.new_transfers:
        if view.replica(transfer) not in read:
            dataset, site = view.pair(transfer)
            yield f"the transfer of {dataset!r} to {site!r} serves no task and is paid for"
