"""``optalloc verify``: does a plan keep every rule, and what is it worth?"""

from pathlib import Path
from typing import Annotated, Any

import typer

from optalloc.cli.common import Exit, checked, finite_number, print_json, say

__all__ = ["verify"]


@checked
def verify(
    instance: Annotated[str, typer.Argument(help="File, or name of a shipped instance.")],
    schedule: Annotated[Path, typer.Argument(help="Schedule file.")],
    max_gap: Annotated[
        float | None,
        typer.Option(help="Exit code 1 if the gap to the stored bound of a shipped instance is larger."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> Exit:
    """Check a plan against every rule, and list all that are broken."""
    from optalloc import instances
    from optalloc.comparison import reference_gap
    from optalloc.compilation import compile as compile_problem
    from optalloc.evaluation import evaluate
    from optalloc.io.reading import read
    from optalloc.schedule import read_schedule

    finite_number("--max-gap", max_gap)
    given = read(instance)
    evaluation = evaluate(compile_problem(given), read_schedule(schedule))
    bounds = instances.bounds_of(given.sha256)
    found = (
        reference_gap(evaluation.levels, {k: v for k, (v, _) in bounds.items()}) if evaluation.valid else None
    )
    answer: dict[str, Any] = evaluation.to_dict() | {
        "bound": None if found is None else bounds[found[0]][0],
        "gap": None if found is None else found[1],
        "bound_valid": None,
    }
    if json:
        print_json(answer)
    else:
        _print(answer, evaluation.notes)
    too_far = max_gap is not None and (answer["gap"] is None or answer["gap"] > max_gap)
    return Exit.NOT_GOOD_ENOUGH if too_far or not evaluation.valid else Exit.DONE


def _print(answer: dict[str, Any], notes: tuple[str, ...]) -> None:
    for violation in answer["violations"]:
        print(f"{violation['rule']}: {violation['message']}")
    for note in notes:
        say(f"note: {note}")
    if not answer["valid"]:
        print(f"not valid: {len(answer['violations'])} broken rule(s)")
        return
    print(f"valid; objective {answer['objective']}")
    for term, value in answer["terms"].items():
        print(f"  {term:<20} {value}")
    if answer["gap"] is not None:
        print(f"  gap {answer['gap']:.2%} to the proven bound {answer['bound']}")
