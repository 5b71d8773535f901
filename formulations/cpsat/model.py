"""The CP-SAT model of one level, family by family; docs/formulations_cpsat.md has the mathematics."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from ortools.sat.python import cp_model

from optalloc.errors import UnsupportedError
from optalloc.formulations.cpsat.constraints import add_constraints
from optalloc.formulations.cpsat.hints import complete_values
from optalloc.formulations.cpsat.objective import Linear, Terms, at_most, form_value
from optalloc.formulations.cpsat.redundant import add_redundant_rows
from optalloc.formulations.cpsat.variables import CpsatVariables, make_variables
from optalloc.io.atomic import write_bytes
from optalloc.problem import REJECTED, Plan, Problem
from optalloc.scope import Scope, Windows, full_scope, windows

__all__ = ["CpsatModel", "add_cutoff", "add_hint", "build", "export_cpsat", "read_plan"]


@dataclass(frozen=True, eq=False)
class CpsatModel:
    """A built model.

    Attributes
    ----------
    model
        The native `CpModel`, without the constant of the objective; experts may add to it before solving.
    variables
        Variables by index, see `CpsatVariables`.
    terms
        Variables of objective terms, see `Terms`.
    objective
        The level as an expression; its ``constant`` is to be added to the native objective value and bound.
    level
        Which level it minimises.
    """

    model: cp_model.CpModel
    variables: CpsatVariables
    terms: Terms
    objective: Linear
    level: int

    @property
    def constant(self) -> int:
        """What the native objective leaves out: CP-SAT keeps offsets as floating-point numbers."""
        return self.objective.constant

    @cached_property
    def range(self) -> tuple[int, int]:
        """Least and largest value of the level that the domains of the variables allow."""
        return self.objective.range()


def build(
    scope: Scope,
    windows: Windows,
    level: int = 0,
    caps: tuple[int, ...] = (),
    cutoff: int | None = None,
    *,
    check: Callable[[], None] = lambda: None,
) -> CpsatModel:
    """The model that minimises ``levels[level]`` with each earlier level at most its cap.

    Parameters
    ----------
    scope, windows
        What is decided, and where runs may start (`optalloc.scope.windows` or narrower).
    level
        Index of the level that is minimised.
    caps
        Greatest values of the earlier levels.
    cutoff
        Only plans whose level is at most this are wanted; None: all.
    check
        Called now and then, by `add_hint` too; may raise to give up (out of time).

    Raises
    ------
    UnsupportedError
        A number would overflow inside CP-SAT.
    """
    problem = scope.problem
    model = cp_model.CpModel()
    variables = make_variables(model, scope, windows, check)
    add_constraints(variables)
    terms = Terms(variables)
    for limit in problem.limits:
        at_most(terms, limit.form, limit.bound)
    for form, cap in zip(problem.levels, caps, strict=False):
        at_most(terms, form, cap)
    objective = form_value(terms, problem.levels[level])
    check()
    model.minimize(objective.expression())
    add_redundant_rows(terms)
    built = CpsatModel(model, variables, terms, objective, level)
    if cutoff is not None:
        add_cutoff(built, cutoff)
    check()
    _validate(model)
    return built


def _validate(model: cp_model.CpModel) -> None:
    fault = model.validate()
    if fault:
        raise UnsupportedError(f"CP-SAT refuses the model: {fault}")


def add_cutoff(cpsat: CpsatModel, cutoff: int) -> None:
    """Only plans whose level is at most ``cutoff`` are wanted from now on."""
    least, largest = cpsat.range
    if cutoff < least:
        cpsat.model.add_bool_or([])
    elif cutoff < largest:
        domain = [least - cpsat.constant, cutoff - cpsat.constant]
        cpsat.model.proto.objective.domain.extend(domain)


def read_plan(cpsat: CpsatModel, value: Callable[[Any], int]) -> Plan:
    """The plan behind a solution.

    Parameters
    ----------
    value
        Variable -> its value in the solution, e.g. ``CpSolver.value``. Only of a status that has a solution:
        after UNKNOWN, CP-SAT hands out memory garbage without a word.
    """
    scope = cpsat.variables.scope
    plan = scope.start_plan()
    mode, start = np.array(plan.mode), np.array(plan.start)
    for task, activity in cpsat.variables.tasks.items():
        chosen = [way for way, option in activity.options.items() if value(option.literal)]
        mode[task] = chosen[0] if chosen else REJECTED
        start[task] = value(activity.start) if chosen else 0
    made = [
        scope.problem.transfer(replica, route, value(activity.start))
        for replica, activity in cpsat.variables.transfers.items()
        for route, option in activity.options.items()
        if value(option.literal)
    ]
    return Plan(mode, start, (*plan.transfers, *made))


def add_hint(cpsat: CpsatModel, plan: Plan) -> bool:
    """Give a verified plan as a complete hint; any earlier hint is cleared first.

    Returns
    -------
    False if the model has no place for the plan (then there is no hint: a partial one is worse than none).
    """
    cpsat.model.clear_hints()
    values = complete_values(cpsat.terms, plan)
    if values is None:
        return False
    order = sorted(values)
    hint = cpsat.model.proto.solution_hint
    hint.vars.extend(order)
    hint.values.extend([values[index] for index in order])
    return True


def export_cpsat(problem: Problem, path: str | Path, level: int = 0) -> None:
    """Write one level, without caps on earlier ones, as a `CpModelProto`; the file is whole or absent.

    Names are generated (``task3_way17``): ids may hold any text.

    Parameters
    ----------
    path
        ``.txt`` and ``.pbtxt`` give the text form, anything else the binary one.

    Raises
    ------
    OSError
        The file cannot be written.
    """
    scope = full_scope(problem)
    built = build(scope, windows(scope), level, ())
    model = built.model
    model.proto.objective.offset = built.constant
    suffix = ".txt" if Path(path).suffix in (".txt", ".pbtxt") else ".pb"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, f"model{suffix}")
        if not model.export_to_file(str(file)):
            raise OSError(f"CP-SAT could not write the model to {file}")
        write_bytes(path, file.read_bytes())
