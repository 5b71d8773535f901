"""Do the claims of different runs agree? A verified plan below what another run has proven shows that one is wrong."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Claim", "Contradiction", "contradictions", "refuted_level"]


@dataclass(frozen=True)
class Claim:
    """What a run, or the index, says about an instance.

    Attributes
    ----------
    by
        Who says it.
    levels
        Level by level ``objective`` of its verified plan and ``bound``, None where there is none.
    infeasible
        It says that no plan exists.
    """

    by: str
    levels: Sequence[Mapping[str, Any]] = ()
    infeasible: bool = False

    @property
    def values(self) -> tuple[int, ...]:
        """The levels of its plan; () without one."""
        values = [level["objective"] for level in self.levels]
        return () if None in values else tuple(values)


@dataclass(frozen=True)
class Contradiction:
    """A verified plan that cannot be if the other's claim is true.

    Attributes
    ----------
    level
        Where the plan is better than the bound, counted from 0.
    objective, plan_by
        The plan's value there, scaled by ``weight_scale``, and who holds the plan.
    bound, bound_by
        What is said to be the least possible, likewise; None: it is said that no plan exists.
    """

    instance: str
    level: int
    objective: int
    plan_by: str
    bound: int | None
    bound_by: str
    weight_scale: int = 1


def contradictions(instance: str, claims: Sequence[Claim], weight_scale: int = 1) -> list[Contradiction]:
    """Every pair of a plan and a claim that it refutes.

    Examples
    --------
    >>> right, wrong = Claim("a", [{"objective": 7, "bound": 7}]), Claim("b", [{"objective": 9, "bound": 9}])
    >>> [(found.plan_by, found.bound_by) for found in contradictions("x", [right, wrong])]
    [('a', 'b')]
    """
    return list(_pairs(instance, claims, weight_scale))


def _pairs(instance: str, claims: Sequence[Claim], scale: int) -> Iterable[Contradiction]:
    for holder in claims:
        values = holder.values
        for claim in claims if values else ():
            level = 0 if claim.infeasible else refuted_level(values, claim.levels)
            if level is not None:
                bound = None if claim.infeasible else claim.levels[level]["bound"]
                yield Contradiction(instance, level, values[level], holder.by, bound, claim.by, scale)


def refuted_level(values: Sequence[int], levels: Sequence[Mapping[str, Any]]) -> int | None:
    """The first level on which a plan of these values is below a bound that is claimed for it.

    The bound of level k is one on all plans that are no worse than ``objective`` on each level before.

    Examples
    --------
    >>> refuted_level([10, 3], [{"objective": 10, "bound": 10}, {"objective": 8, "bound": 4}])
    1
    >>> refuted_level([11, 3], [{"objective": 10, "bound": 10}, {"objective": 8, "bound": 4}]) is None
    True
    """
    for number, (value, level) in enumerate(zip(values, levels, strict=False)):
        if level["bound"] is not None and value < level["bound"]:
            return number
        if level["objective"] is None or value > level["objective"]:
            return None
    return None
