"""All commands in one place; each lives in a file of its own."""

from collections.abc import Callable

import typer

from optalloc.cli.bound import bound
from optalloc.cli.compare import compare
from optalloc.cli.compose import compose
from optalloc.cli.convert import export, import_
from optalloc.cli.generate import generate
from optalloc.cli.listing import list_
from optalloc.cli.plot import plot
from optalloc.cli.solve import solve
from optalloc.cli.train import train
from optalloc.cli.verify import verify

__all__ = ["app"]

app = typer.Typer(
    name="optalloc",
    help="Which data, which devices, how many, and when, together: plans for deep-learning workloads, with proofs.",
    epilog="Exit codes: 0 done; 1 a rule is broken or a gap is passed; 2 wrong usage or input; 3 infeasible; "
    "4 no plan within the limit; 5 internal error; 6 proofs contradict each other; 130 interrupted.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_COMMANDS: dict[str, Callable[..., None]] = {
    "solve": solve,
    "bound": bound,
    "verify": verify,
    "compare": compare,
    "train": train,
    "generate": generate,
    "compose": compose,
    "import": import_,
    "export": export,
    "plot": plot,
    "list": list_,
}
for _name, _command in _COMMANDS.items():
    app.command(_name)(_command)


@app.callback(invoke_without_command=True)
def _version(version: bool = typer.Option(False, "--version", help="Print the version and leave.")) -> None:
    if version:
        from importlib.metadata import version as installed

        typer.echo(f"optalloc {installed('optalloc')}")
        raise typer.Exit
