"""What the shape of a document cannot tell. Checks see the raw document, so that all faults show at once."""

from collections.abc import Callable, Iterator
from typing import Any, Final

from optalloc.io.checks_ids import check_ids, check_references
from optalloc.io.checks_resources import check_calendars, check_links, check_scaling
from optalloc.io.checks_state import check_state
from optalloc.io.checks_tasks import check_cycles, check_modes, check_rejection, check_tasks
from optalloc.io.entries import Entry, Found, Steps

__all__ = ["in_order", "semantic_faults"]

CHECKS: Final[tuple[Callable[[Entry], Iterator[Found]], ...]] = (
    check_ids,
    check_references,
    check_links,
    check_calendars,
    check_scaling,
    check_tasks,
    check_modes,
    check_cycles,
    check_rejection,
    check_state,
)


def semantic_faults(document: Any) -> list[Found]:
    """Everything wrong with the meaning of an instance document; parts of the wrong shape are skipped."""
    root = Entry(document if isinstance(document, dict) else {})
    return [found for check in CHECKS for found in check(root)]


def in_order(found: list[Found], document: Any) -> list[Found]:
    """The faults in the order of the document, each once."""
    return sorted(dict.fromkeys(found), key=lambda fault: _position(fault[0], document))


def _position(steps: Steps, document: Any) -> tuple[int, ...]:
    position = []
    for step in steps:
        if isinstance(document, dict):
            names = list(document)
            position.append(names.index(step) if step in document else len(names))
            document = document.get(step)
        else:
            position.append(step if isinstance(step, int) else 0)
            inside = isinstance(document, list | tuple) and isinstance(step, int) and step < len(document)
            document = document[step] if inside else None
    return tuple(position)
