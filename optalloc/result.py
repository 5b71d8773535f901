"""Results are certificates: what we hold, why the run stopped, and what is proven about it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from optalloc.evaluation import Evaluation
    from optalloc.problem import Plan, Problem
    from optalloc.schedule import Schedule

__all__ = ["CurvePoint", "LevelResult", "Result", "Status", "Termination", "json_able", "not_begun"]


class Status(StrEnum):
    """What is held."""

    OPTIMAL = "OPTIMAL"
    """A verified plan whose objective equals a proven bound, on every level."""
    FEASIBLE = "FEASIBLE"
    """A verified plan."""
    INFEASIBLE = "INFEASIBLE"
    """A proof that no plan exists."""
    NO_SOLUTION = "NO_SOLUTION"
    """Neither a plan nor a proof that there is none."""
    ERROR = "ERROR"
    """The solver contradicted itself or a verified plan; nothing it said is used."""


class Termination(StrEnum):
    """Why the run stopped."""

    PROVEN = "PROVEN"
    COMPLETED = "COMPLETED"
    TIME_LIMIT = "TIME_LIMIT"
    GAP = "GAP"
    USER = "USER"
    MEMORY = "MEMORY"
    ERROR = "ERROR"


@dataclass(frozen=True)
class LevelResult:
    """One level of a lexicographic objective, scaled by K.

    Attributes
    ----------
    objective, bound
        None where there is no plan or no bound.
    proven_by
        Name of who proved the bound.
    conditional
        The bound holds only under the values achieved on earlier, unproven levels.
    """

    objective: int | None
    bound: int | None
    proven_by: str | None = None
    conditional: bool = False

    @property
    def proven(self) -> bool:
        """The objective of this level is optimal, unconditionally."""
        return self.objective is not None and self.objective == self.bound and not self.conditional

    @property
    def gap(self) -> float | None:
        """(objective - bound) / max(|objective|, 1)."""
        if self.objective is None or self.bound is None:
            return None
        return (self.objective - self.bound) / max(abs(self.objective), 1)

    def to_dict(self) -> dict[str, Any]:
        """JSON object."""
        return {
            "objective": self.objective,
            "bound": self.bound,
            "gap": self.gap,
            "proven_by": self.proven_by,
            "conditional": self.conditional,
        }


@dataclass(frozen=True)
class CurvePoint:
    """The state of a run at one moment.

    Attributes
    ----------
    seconds
        Since the call of solve.
    level
        Which level the values are of.
    objective, bound
        Best known by then, scaled by K.
    source
        Who moved it.
    """

    seconds: float
    level: int
    objective: int | None
    bound: int | None
    source: str


@dataclass(frozen=True, eq=False)
class Result:
    """What `solve` returns.

    ``objective``, ``bound`` and ``gap`` are those of the first level that is not proven, else of the last.
    """

    problem: "Problem"
    solver: str
    status: Status
    termination: Termination
    levels: tuple[LevelResult, ...]
    plan: "Plan | None" = None
    schedule: "Schedule | None" = None
    evaluation: "Evaluation | None" = None
    seconds: float = 0.0
    seed: int = 0
    threads: int = 1
    curve: tuple[CurvePoint, ...] = ()
    message: str = ""
    notes: tuple[str, ...] = ()
    reasons: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """With INFEASIBLE: task id (or "" for the plan) -> why."""
    versions: dict[str, str] = field(default_factory=dict)
    info: dict[str, Any] = field(default_factory=dict)
    """Solver-specific facts (columns, rows, nodes, warm_start, overshoot, ...)."""

    @property
    def _shown(self) -> LevelResult | None:
        unproven = [level for level in self.levels if not level.proven]
        return next(iter(unproven or self.levels[-1:]), None)

    @property
    def objective(self) -> int | None:
        return self._shown.objective if self._shown else None

    @property
    def bound(self) -> int | None:
        return self._shown.bound if self._shown else None

    @property
    def gap(self) -> float | None:
        return self._shown.gap if self._shown else None

    @property
    def weight_scale(self) -> int:
        """K: what objective and bound are scaled by."""
        return self.problem.scale

    def __str__(self) -> str:
        lines = {
            "instance": self.problem.instance.name,
            "solver": self.solver,
            "status": f"{self.status.value} ({self.termination.value})",
            "objective": self.objective,
            "bound": self.bound,
            "gap": None if self.gap is None else f"{self.gap:.4%}",
            "seconds": f"{self.seconds:.2f}",
            "message": self.message or None,
        }
        return "\n".join(f"{name:<10} {value}" for name, value in lines.items() if value is not None)

    def __repr__(self) -> str:
        return f"<Result of {self.solver} on {self.problem.instance.name!r}: {self.status.value}>"

    def to_dict(self) -> dict[str, Any]:
        """JSON object of ``optalloc solve --json``: ints stay ints, NaN and infinities become null."""
        measured = {} if self.evaluation is None else self.evaluation.to_dict()
        content = {
            "instance": self.problem.instance.name,
            "solver": self.solver,
            "status": self.status.value,
            "termination": self.termination.value,
            "objective": self.objective,
            "bound": self.bound,
            "gap": self.gap,
            "levels": [level.to_dict() for level in self.levels],
            "terms": measured.get("terms"),
            "metrics": measured.get("metrics"),
            "tasks": measured.get("tasks"),
            "seconds": round(self.seconds, 4),
            "weight_scale": self.weight_scale,
            "seed": self.seed,
            "threads": self.threads,
            "versions": self.versions,
            "message": self.message,
            "notes": self.notes,
            "reasons": self.reasons,
            "info": self.info,
            "curve": [[round(p.seconds, 4), p.level, p.objective, p.bound, p.source] for p in self.curve],
            "schedule": None if self.schedule is None else self.schedule.to_dict(),
        }
        return {name: json_able(value) for name, value in content.items()}


def not_begun(instance: str, solver: str, seconds: float, seed: int, threads: int) -> dict[str, Any]:
    """What `Result.to_dict` would give where Ctrl-C came before there was a problem: the same names, nothing held.

    Parameters
    ----------
    instance
        Name or file, as it was given.
    """
    nothing = ("objective", "bound", "gap", "terms", "metrics", "tasks", "weight_scale", "schedule")
    return {
        "instance": instance,
        "solver": solver,
        "status": Status.NO_SOLUTION.value,
        "termination": Termination.USER.value,
        "seconds": round(seconds, 4),
        "seed": seed,
        "threads": threads,
        "message": "interrupted before there was a problem to solve",
        **dict.fromkeys(nothing),
        **{name: [] for name in ("levels", "notes", "curve")},
        **{name: {} for name in ("versions", "reasons", "info")},
    }


def json_able(value: Any) -> Any:
    """Plain JSON types: whole numbers stay whole, what JSON cannot write becomes None or text."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        number = float(value)
        return number if math.isfinite(number) else None
    if isinstance(value, Mapping):
        return {str(key): json_able(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [json_able(inner) for inner in value]
    if hasattr(value, "tolist"):
        return json_able(value.tolist())
    return str(value)
