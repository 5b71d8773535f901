"""``optalloc train``: weights of a learned scheduler."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from optalloc.cli.common import Exit, kept, parse_pairs, print_json, say
from optalloc.errors import Fault, InputError
from optalloc.output import answers_only

if TYPE_CHECKING:
    from optalloc.solvers.learned.training import Run, Training

__all__ = ["train"]


@kept
def train(
    name: Annotated[
        str, typer.Argument(help="fdqn, bdq, additive, flat-dqn, reinforce or es-index.", metavar="NAME")
    ],
    preset: Annotated[
        str | None, typer.Option(help="Instances to learn from; several presets with commas between.")
    ] = None,
    tasks: Annotated[
        str | None, typer.Option(help="Tasks of each; several numbers with commas between.", metavar="N")
    ] = None,
    load: Annotated[str | None, typer.Option(help="As for `generate`.", metavar="X")] = None,
    coupling: Annotated[str | None, typer.Option(help="As for `generate`.", metavar="X")] = None,
    seed: Annotated[str | None, typer.Option(help="Seed of everything that is drawn.", metavar="N")] = None,
    minutes: Annotated[
        str | None,
        typer.Option(help="Ends after so many; default 10, or no limit with --iterations.", metavar="M"),
    ] = None,
    iterations: Annotated[str | None, typer.Option(help="Ends after so many.", metavar="N")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the weights; default trained/NAME.", metavar="DIR")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in the folder.")] = False,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="KEY=VALUE: another setting; may be repeated.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> Exit:
    """Train a scheduler on generated instances; the weights best on held-out ones are kept. Ctrl-C keeps them, too."""
    from optalloc.cli.progress import Status
    from optalloc.solvers.interrupts import cut
    from optalloc.solvers.learned.files import RunFiles
    from optalloc.solvers.learned.learners import make_trainer, training_args
    from optalloc.solvers.learned.training import run_training

    named = {"preset": preset, "tasks": tasks, "load": load, "coupling": coupling, "seed": seed}
    given = _merged(named | {"minutes": minutes, "iterations": iterations}, parse_pairs("--set", set_))
    args = cut(lambda: training_args(name, given))
    files = RunFiles(out or Path("trained") / name, name, args)
    trainer = make_trainer(name, args)
    if resume:
        files.check_there()
    else:
        files.begin()
    with files.alone(), Status(f"training {name}", "Ctrl-C keeps the best weights") as status, answers_only():
        run = run_training(
            trainer,
            args,
            resumed=files.resume(trainer) if resume else None,
            say=lambda run: status.update(_line(run, args)),
            keep=files.keep,
        )
    if json:
        print_json(_answer(name, args, files.weights, run))
    else:
        _print(name, files.weights, run)
    return Exit.INTERRUPTED if run.interrupted else Exit.DONE


def _merged(named: dict[str, str | None], pairs: dict[str, str]) -> dict[str, Any]:
    """All settings that are given, each once."""
    given: dict[str, Any] = {key: value for key, value in named.items() if value is not None}
    twice = [Fault("--set", f"{key} is given twice; use --{key}") for key in pairs if key in given]
    if twice:
        raise InputError(twice)
    given |= pairs
    if "iterations" in given:
        given.setdefault("minutes", 0.0)
    return given


def _line(run: "Run", args: "Training") -> str:
    last, best = run.looks[-1:], run.best_look
    ratio = f"{last[0].ratio:.4f}" if last else "-"
    reached = f"{best.ratio:.4f} at {best.iteration}" if best else "-"
    of = f" of {args.iterations}" if args.iterations else ""
    spent = f"{run.seconds / 60:.1f}" + (f" of {args.minutes:g}" if args.minutes else "") + " min"
    return f"{spent}  iteration {run.iteration}{of}  ratio to replan-index {ratio}  best {reached}"


def _answer(name: str, args: "Training", weights: Path, run: "Run") -> dict[str, Any]:
    from dataclasses import asdict

    best = run.best_look
    return {
        "solver": name,
        "args": asdict(args),
        "iterations": run.iteration,
        "seconds": run.seconds,
        "interrupted": run.interrupted,
        "ratio": best.ratio if best else None,
        "ratio_at": best.iteration if best else None,
        "looks": [asdict(look) for look in run.looks],
        "weights": str(weights),
    }


def _print(name: str, weights: Path, run: "Run") -> None:
    from optalloc.report import console, plain_table

    best = run.best_look
    shown = [look for look in run.looks if look in (run.looks[0], best, run.looks[-1])]
    rows = [
        {
            "iteration": look.iteration,
            "minutes": f"{look.seconds / 60:.2f}",
            "ratio to replan-index": f"{look.ratio:.4f}",
            "": "best" if look is best else "",
        }
        for look in shown
    ]
    if not rows:
        say("interrupted before the first weights were judged")
        return
    console().print(
        plain_table(f"{name}: {len(shown)} of {len(run.looks)} looks at held-out instances", rows)
    )
    option = shlex.quote(f"weights={weights}")
    say(f"wrote {weights}; use it: optalloc solve INSTANCE --solver {name} --option {option}")
