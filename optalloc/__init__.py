"""Joint allocation of data and computing resources to deep-learning workloads, with proofs of optimality.

>>> import optalloc as oa
>>> oa.Status.OPTIMAL.value
'OPTIMAL'

Names are loaded when they are first used: ``import optalloc`` by itself costs next to nothing.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from optalloc.comparison import compare
    from optalloc.compilation import compile
    from optalloc.composition import compose
    from optalloc.errors import Fault, InputError, OptallocError, SolverError, UnsupportedError
    from optalloc.evaluation import Evaluation, evaluate
    from optalloc.generators import generate
    from optalloc.instance import Instance, Objective, write_instance
    from optalloc.io.reading import read
    from optalloc.io.writing import write
    from optalloc.objective_spec import with_objective
    from optalloc.problem import Plan, Problem
    from optalloc.result import Result, Status, Termination
    from optalloc.schedule import Schedule, Violation, read_schedule, resolve, to_schedule, write_schedule
    from optalloc.scope import Scope
    from optalloc.solvers.registry import solver, solver_names
    from optalloc.solvers.run import solve

__all__ = [
    "Evaluation", "Fault", "InputError", "Instance", "Objective", "OptallocError", "Plan", "Problem",
    "Result", "Schedule", "Scope", "SolverError", "Status", "Termination", "UnsupportedError", "Violation",
    "compare", "compile", "compose", "evaluate", "generate", "read", "read_schedule", "resolve", "solve", "solver",
    "solver_names", "to_schedule", "with_objective", "write", "write_instance", "write_schedule",
]  # fmt: skip

_MODULES: Final = {
    "optalloc.comparison": ("compare",),
    "optalloc.compilation": ("compile",),
    "optalloc.composition": ("compose",),
    "optalloc.errors": ("Fault", "InputError", "OptallocError", "SolverError", "UnsupportedError"),
    "optalloc.evaluation": ("Evaluation", "evaluate"),
    "optalloc.generators": ("generate",),
    "optalloc.instance": ("Instance", "Objective", "write_instance"),
    "optalloc.io.reading": ("read",),
    "optalloc.objective_spec": ("with_objective",),
    "optalloc.problem": ("Plan", "Problem"),
    "optalloc.result": ("Result", "Status", "Termination"),
    "optalloc.schedule": (
        "Schedule", "Violation", "read_schedule", "resolve", "to_schedule", "write_schedule",
    ),
    "optalloc.scope": ("Scope",),
    "optalloc.solvers.registry": ("solver", "solver_names"),
    "optalloc.solvers.run": ("solve",),
    "optalloc.io.writing": ("write",),
}  # fmt: skip
_HOME: Final = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


if sys.modules.get("gymnasium"):
    import_module("optalloc.environment")  # registers the environment: `gymnasium.make` finds it


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
