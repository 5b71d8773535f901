"""Another objective for the same instance: ``makespan=1,cost=0.1`` with ``;`` between levels."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from optalloc.errors import Fault, InputError
from optalloc.instance import TERM_NAMES, Instance, Number, Objective
from optalloc.io.reading import as_instance

__all__ = ["parse_objective", "with_objective"]


def with_objective(
    instance: Instance | str | Path,
    objective: Objective | str | None = None,
    limits: Mapping[str, Any] | None = None,
) -> Instance:
    """The instance (or what is behind a file or a name) with its objective replaced.

    Parameters
    ----------
    objective
        An Objective, which replaces levels and limits, or a SPEC text, which replaces the levels only.
        Default: the instance's.
    limits
        Term -> largest value, added to the limits there are (a limit of the same term is replaced).
        ``cost`` is in $. Numbers may be given as text, so that they are read exactly.

    Raises
    ------
    InputError
        If the text cannot be read or the objective does not fit the instance.
    """
    instance = as_instance(instance)
    if isinstance(objective, str):
        objective = instance.objective.replace(levels=parse_objective(objective))
    changed = instance.objective if objective is None else objective
    if limits is not None and not isinstance(limits, Mapping):
        raise TypeError(f"limits must be a mapping of terms to numbers, got {limits!r}")
    if limits:
        read = {term: _number(f"limits.{term}", value) for term, value in limits.items()}
        changed = changed.replace(limits={**changed.limits, **read})
    return instance if changed is instance.objective else instance.replace(objective=changed)


def parse_objective(spec: str) -> tuple[dict[str, Number], ...]:
    """The levels in a SPEC text.

    Examples
    --------
    >>> parse_objective("makespan=1,cost=0.1;late=1")
    ({'makespan': Number('1'), 'cost': Number('0.1')}, {'late': Number('1')})
    """
    return tuple(_level(text) for text in spec.split(";"))


def _level(text: str) -> dict[str, Number]:
    level: dict[str, Number] = {}
    for pair in text.split(","):
        term, equals, weight = (part.strip() for part in pair.partition("="))
        if not equals or not term:
            raise InputError(Fault("objective", f"expected TERM=WEIGHT, got {pair.strip()!r}"))
        if term not in TERM_NAMES:
            raise InputError(
                Fault("objective", f"{term!r} is not a term; the terms are {', '.join(TERM_NAMES)}")
            )
        if term in level:
            raise InputError(Fault("objective", f"{term} stands twice in the same level"))
        level[term] = _number(f"objective.{term}", weight)
    return level


def _number(path: str, value: Any) -> Any:
    """Text as an exact number; numbers are left for the Objective to check."""
    if not isinstance(value, str):
        return value
    try:
        return Number(value.strip())
    except ValueError as error:
        raise InputError(Fault(path, str(error))) from None
