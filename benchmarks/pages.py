"""Tables in Markdown, and the places of pages that they are put into."""

import re
from collections.abc import Iterable, Sequence

__all__ = ["between", "markdown"]


def markdown(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def between(page: str, name: str, text: str) -> str:
    """The page with ``text`` between ``<!-- NAME -->`` and ``<!-- end -->``, instead of what stands there.

    Raises
    ------
    ValueError
        The page has no such lines.
    """
    first, last = f"<!-- {name} -->\n", "<!-- end -->"
    block = f"{first}{text}\n{last}"
    new, count = re.subn(f"{re.escape(first)}.*?{last}", lambda _: block, page, flags=re.DOTALL)
    if not count:
        raise ValueError(f"the page has no lines <!-- {name} --> and <!-- end --> for the tables")
    return new
