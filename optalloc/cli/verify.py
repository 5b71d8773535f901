"""``optalloc verify``: does a plan keep every rule, and what is it worth?"""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from optalloc.cli.common import Exit, checked, close_enough, finite_number, parse_limits, print_json, say
from optalloc.errors import InputError, visible_lines

if TYPE_CHECKING:
    from optalloc.certificate import CheckedBound
    from optalloc.evaluation import Evaluation
    from optalloc.problem import Problem

__all__ = ["verify"]


@checked
def verify(
    instance: Annotated[str, typer.Argument(help="File, or name of a shipped instance.")],
    schedule: Annotated[Path, typer.Argument(help="Schedule file.")],
    bound: Annotated[
        Path | None, typer.Option(help="Certificate file (optalloc bound --out) to check as well.")
    ] = None,
    objective: Annotated[
        str | None, typer.Option(help="As given to solve or bound; default: the instance's.")
    ] = None,
    limit: Annotated[list[str] | None, typer.Option(help="TERM=MAX, likewise; may be repeated.")] = None,
    max_gap: Annotated[
        float | None,
        typer.Option(help="Exit code 1 if the gap to the bound is larger."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> Exit:
    """Check a plan against every rule, and list all that are broken."""
    from optalloc import instances
    from optalloc.comparison import reference_gap
    from optalloc.compilation import compile as compile_problem
    from optalloc.evaluation import evaluate
    from optalloc.io.reading import read
    from optalloc.objective_spec import with_objective
    from optalloc.schedule import read_schedule

    finite_number("--max-gap", max_gap)
    given = read(instance)
    judged = with_objective(given, objective, parse_limits(limit) or None)
    problem, plan = compile_problem(judged), read_schedule(schedule)
    if plan.instance_sha256 == given.sha256:  # plans name the instance as it was given
        plan = replace(plan, instance_sha256=judged.sha256)
    evaluation = evaluate(problem, plan)
    known = {level: value for level, (value, _) in instances.bounds_of(judged.sha256).items()}
    proof = None if bound is None else _checked(problem, bound)
    if proof is not None and proof.valid and proof.level == 0:  # later levels: only under the caps it names
        known[0] = max(proof.claimed, known.get(0, proof.claimed))
    found = reference_gap(evaluation.levels, known) if evaluation.valid else None
    answer: dict[str, Any] = evaluation.to_dict() | {
        "bound": None if found is None else known[found[0]],
        "gap": None if found is None else found[1],
        "bound_valid": None if proof is None else proof.valid,
        "weight_scale": problem.scale,
    }
    if json:
        print_json(answer)
    else:
        _print(evaluation, answer)
    if answer["gap"] is not None and answer["gap"] < 0:
        say(
            f"CONTRADICTION: the plan is valid and {-answer['gap']:.2%} below the proven bound {answer['bound']} "
            f"(scaled by {problem.scale}): one of the two is wrong"
        )
        return Exit.CONTRADICTION
    if not evaluation.valid or answer["bound_valid"] is False:
        return Exit.NOT_GOOD_ENOUGH
    unknown = "no bound is known for this instance; give one with --bound (optalloc bound --out)"
    return Exit.DONE if close_enough(answer["gap"], max_gap, unknown) else Exit.NOT_GOOD_ENOUGH


def _checked(problem: "Problem", path: Path) -> "CheckedBound":
    """Re-derive a certificate's bound; one that proves nothing is refused with its reasons."""
    from optalloc.certificate import check_bound
    from optalloc.io.certificates import read_certificate

    certificate = read_certificate(path)
    try:
        return check_bound(problem, certificate)
    except InputError as error:
        raise InputError(replace(fault, source=str(path)) for fault in error.faults) from None


def _print(evaluation: "Evaluation", answer: dict[str, Any]) -> None:
    """As `solve` prints it: objective and bound divided by K, cost in $."""
    from optalloc.report import scaled

    for violation in evaluation.violations:
        print(visible_lines(str(violation)))
    for note in evaluation.notes:
        say(f"note: {note}")
    if not evaluation.valid:
        print(f"not valid: {len(evaluation.violations)} broken rule(s)")
        return
    problem = evaluation.view.problem
    print(f"valid; objective {'; '.join(scaled(level, problem.scale) for level in evaluation.levels)}")
    for term, value in evaluation.terms.items():
        print(f"  {term:<20} {problem.written(term, value)}")
    if answer["bound_valid"] is not None:
        held = "holds" if answer["bound_valid"] else "does NOT prove the bound that it claims"
        print(f"  the certificate {held}")
    if answer["gap"] is not None:
        print(f"  gap {answer['gap']:.2%} to the proven bound {scaled(answer['bound'], problem.scale)}")
