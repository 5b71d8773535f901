"""Learned schedulers against rules, rolling horizon and proven bounds, on instances that none of them has learned from.

python benchmarks/learned.py train --presets contended market --learners fdqn additive --seeds 5 --minutes 10
python benchmarks/learned.py run --presets contended market --tasks 20 60 --instances 30 --solvers rules,fdqn,es-index
python benchmarks/learned.py run --presets contended --tasks 20 --solvers reference --reference-seconds 20
python benchmarks/learned.py report [--docs]

Everything is stored under benchmarks/results/learned: weights of every run, and a JSON line for every solver on every
instance; what is stored is not done again. Training runs and test runs use one thread each, as many at once as
``--workers`` says. A learner's name stands for its shipped weights and for all that were trained on instances of the
family: ``fdqn`` on market instances is fdqn, fdqn@market-40-0, fdqn@market-40-1, ... (preset, tasks, seed), and those
that began with the rule: fdqn@market-40-rule-0, and by imitating plans: fdqn@market-40-rule-plans-0, ... The preset
``real`` stands for instances composed of public data, which have to lie in ``--data`` (docs/instances.md).
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from itertools import product
from multiprocessing import get_context
from os.path import relpath
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

import optalloc as oa
from optalloc.io.atomic import write_text
from optalloc.solvers.learned.practice import TEST
from optalloc.solvers.learned.schedulers import SCHEDULERS
from optalloc.solvers.learned.weights import weights_path

RESULTS = Path(__file__).parent / "results" / "learned"
ROWS = RESULTS / "rows.jsonl"
RULES = (
    "online-fifo", "online-spt", "online-wspt", "online-edd", "online-atc", "online-min-min", "online-max-min",
    "online-sufferage", "online-heft", "online-cheapest", "online-fastest", "online-random", "online-compute-centric",
    "online-data-first", "online-joint-greedy", "easy-backfill", "conservative-backfill", "tetris",
)  # fmt: skip
BASE = "replan-index"
IMITATION = ("demonstrations=60", "demonstration_steps=300", "learning_rate=3e-4", "polyak=0.02")
INDEXED = ("fdqn", "additive", "bdq")
"""Learners whose networks can begin with the weights of `es-index`."""
RESIDUAL = (*INDEXED, "flat-dqn")
"""Learners whose networks add to the scores of the rule."""
REFERENCE = "reference"
"""`auto`, which knows all releases: a plan and a proven bound. The seconds that it had follow after ``@``."""
FIXED_DATA = "reference-fixed-data"
"""The same where every task has only its data of the highest utility: what choosing data jointly is worth at most."""
TIMED = (REFERENCE, FIXED_DATA)
REAL = "real"
DATA = Path(__file__).parents[2] / "shared" / "data"
MOST_SECONDS = 3600.0
SAVE_EVERY = 30.0
"""Seconds between two writings of all rows while they are run."""
MEASURES = (
    "mean_flow_hours", "makespan_hours", "utilisation", "matching_ratio", "cost_usd", "due_met", "tasks_rejected",
)  # fmt: skip
"""What is stored of a plan beside the objective (docs/results.md)."""
ERROR = "ERROR"


@dataclass(frozen=True)
class Case:
    """A test instance."""

    preset: str
    tasks: int
    load: str
    coupling: str
    seed: int

    @property
    def instance(self) -> oa.Instance:
        """It is generated with a seed of its own, by which nobody learns."""
        if self.preset == REAL:
            return oa.compose(DATA, self.tasks, seed=TEST + self.seed, coupling=self.coupling)
        load = {"load": self.load} if self.load else {}
        return oa.generate(
            self.preset, tasks=self.tasks, coupling=self.coupling, seed=TEST + self.seed, **load
        )


@dataclass(frozen=True)
class Row:
    """One solver on one test instance.

    Attributes
    ----------
    solver
        Its name; a learner's weights follow after ``@``.
    objective, bound
        Of the first level, scaled; the bound of the reference only.
    seconds
        Of CPU for the whole run (of the clock for the reference).
    measures
        MEASURES of the plan; empty without one.
    """

    case: Case
    solver: str
    status: str
    objective: int | None
    bound: int | None
    seconds: float
    commit: str
    measures: dict[str, float | None] = field(default_factory=dict)


def main() -> None:
    """Train, run or report."""
    chosen = arguments()
    chosen.does(chosen)


def arguments() -> argparse.Namespace:
    """What to do."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    training = commands.add_parser("train")
    training.set_defaults(does=train)
    training.add_argument("--presets", nargs="+", required=True)
    training.add_argument("--learners", nargs="+", choices=tuple(SCHEDULERS), required=True)
    training.add_argument("--tasks", type=int, default=40)
    training.add_argument("--coupling", default="1")
    training.add_argument("--seeds", type=int, default=1)
    training.add_argument("--minutes", type=float, default=10.0)
    training.add_argument(
        "--index",
        action="store_true",
        help="networks begin with the weights of es-index, seed 0, not with the rule",
    )
    training.add_argument(
        "--imitate", action="store_true", help=f"networks imitate plans first: {', '.join(IMITATION)}"
    )
    training.add_argument("--workers", type=int, default=2)
    running = commands.add_parser("run")
    running.set_defaults(does=run)
    running.add_argument("--presets", nargs="+", required=True)
    running.add_argument("--tasks", type=int, nargs="+", default=[20])
    running.add_argument("--loads", nargs="+", default=[""], help="the preset's own unless given")
    running.add_argument("--couplings", nargs="+", default=["1"])
    running.add_argument("--instances", type=int, default=30)
    running.add_argument("--solvers", required=True, help="names with commas; 'rules' stands for all rules")
    running.add_argument(
        "--weights-of", default="", help="preset whose weights learners use; default their own"
    )
    running.add_argument("--reference-seconds", type=float, default=20.0)
    running.add_argument("--workers", type=int, default=2)
    reporting = commands.add_parser("report")
    reporting.set_defaults(does=report)
    reporting.add_argument("--docs", action="store_true", help="fill the tables of docs/learned.md")
    return parser.parse_args()


# training --------------------------------------------------------------------------------------------------
def train(chosen: argparse.Namespace) -> None:
    """Every learner on every family with every seed, each in a process of its own; finished ones are left alone."""
    waiting, failed = unfinished(chosen), 0
    running: list[subprocess.Popen[bytes]] = []
    while waiting or running:
        ended = [process for process in running if process.poll() is not None]
        failed += sum(process.returncode != 0 for process in ended)
        running = [process for process in running if process not in ended]
        while waiting and len(running) < chosen.workers:
            words = waiting.pop(0)
            print(" ".join(words[1:]), flush=True)
            running.append(subprocess.Popen(words, stdout=subprocess.DEVNULL))
        time.sleep(1)
    if failed:
        sys.exit(f"{failed} training runs have failed")


def unfinished(chosen: argparse.Namespace) -> list[list[str]]:
    """The commands of all runs whose time is not over; those that were cut short go on."""
    found = []
    for seed, preset, name in product(range(chosen.seeds), chosen.presets, chosen.learners):
        path = weights(name, preset, seed, chosen)
        if not path.exists():
            found.append(command(name, preset, seed, chosen))
        elif (
            json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))["seconds"] < 60 * chosen.minutes
        ):
            found.append([*command(name, preset, seed, chosen), "--resume"])
    return found


def command(name: str, preset: str, seed: int, chosen: argparse.Namespace) -> list[str]:
    """The training command of one run."""
    words = [
        sys.executable,
        "-m",
        "optalloc",
        "train",
        name,
        "--preset",
        preset,
        "--tasks",
        str(chosen.tasks),
    ]
    words += ["--coupling", chosen.coupling, "--seed", str(seed), "--minutes", str(chosen.minutes)]
    if name in INDEXED and chosen.index:
        words += ["--set", f"index={relpath(weights('es-index', preset, 0, chosen))}"]
    if name in RESIDUAL and chosen.imitate:
        words += [word for setting in IMITATION for word in ("--set", setting)]
    return [*words, "--out", relpath(weights(name, preset, seed, chosen).parent)]


def weights(name: str, preset: str, seed: int, chosen: argparse.Namespace) -> Path:
    """Where the weights of a training run are."""
    coupling = "" if chosen.coupling == "1" else f"-coupling {chosen.coupling}"
    begin = "-rule" if name in RESIDUAL and not (name in INDEXED and chosen.index) else ""
    begin += "-plans" if name in RESIDUAL and chosen.imitate else ""
    kind = f"{preset.replace(',', '+')}-{chosen.tasks}{coupling}{begin}"
    return RESULTS / f"{name}-{kind}-{seed}" / f"{name}.safetensors"


# running ---------------------------------------------------------------------------------------------------
def run(chosen: argparse.Namespace) -> None:
    """Run and store what is not stored yet, unless somebody else does."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(RESULTS / "lock", timeout=0):
            _run(chosen)
    except Timeout:
        sys.exit(f"{ROWS} is written by another run; wait for its end")


def _run(chosen: argparse.Namespace) -> None:
    commit = _commit()
    rows = kept()
    known = {(row.case, row.solver) for row in rows}
    jobs = [job for job in asked(chosen) if job not in known]
    print(f"{len(jobs)} runs", flush=True)
    began = saved = time.monotonic()
    with ProcessPoolExecutor(chosen.workers, mp_context=get_context("spawn")) as pool:
        pending = [pool.submit(measure, *job, commit) for job in jobs]
        for number, done in enumerate(as_completed(pending), start=1):
            rows.append(done.result())
            if number == len(jobs) or time.monotonic() > saved + SAVE_EVERY:
                save(rows)
                saved = time.monotonic()
                print(f"{number} of {len(jobs)} after {saved - began:.0f} s", flush=True)


def asked(chosen: argparse.Namespace) -> Iterator[tuple[Case, str]]:
    """Every solver on every instance; the first instances of all cells come first."""
    kinds = product(range(chosen.instances), chosen.presets, chosen.tasks, chosen.loads, chosen.couplings)
    for seed, preset, tasks, load, coupling in kinds:
        case = Case(preset, tasks, load, coupling, seed)
        for solver in solvers(chosen.solvers, chosen.weights_of or preset):
            yield case, f"{solver}@{chosen.reference_seconds:g}" if solver in TIMED else solver


def solvers(text: str, preset: str) -> Iterator[str]:
    """Names as they are stored: ``rules`` spelled out, learners with the shipped weights and each of the family."""
    for name in text.split(","):
        if name == "rules":
            yield from (*RULES, BASE)
        elif name in SCHEDULERS:
            kind = preset.replace(",", "+")
            if weights_path(name).exists():
                yield name
            for path in sorted(RESULTS.glob(f"{name}-{kind}-*/{name}.safetensors")):
                yield f"{name}@{path.parent.name.removeprefix(f'{name}-')}"
        else:
            yield name


def measure(case: Case, solver: str, commit: str) -> Row:
    """One solver on one instance; whatever goes wrong is kept in its row."""
    try:
        return _measured(case, solver, commit)
    except Exception as error:
        return Row(case, solver, f"{ERROR}: {type(error).__name__}: {error}", None, None, 0.0, commit)


def _measured(case: Case, solver: str, commit: str) -> Row:
    name, _, kind = solver.partition("@")
    problem = compiled(case, name == FIXED_DATA)
    began = time.process_time()
    if name in TIMED:
        result = oa.solve(problem, "auto", time_limit=float(kind), threads=1)
    else:
        options = {"weights": str(RESULTS / f"{name}-{kind}" / f"{name}.safetensors")} if kind else {}
        result = oa.solve(problem, name, time_limit=MOST_SECONDS, threads=1, options=options)
    seconds = result.seconds if name in TIMED else time.process_time() - began
    first = result.levels[0]
    bound = first.bound if name == REFERENCE else None
    metrics = result.evaluation.metrics if result.evaluation else {}
    measures = {name: metrics[name] for name in MEASURES if name in metrics}
    return Row(case, solver, result.status.value, first.objective, bound, round(seconds, 3), commit, measures)


@lru_cache(maxsize=4)
def compiled(case: Case, fixed: bool) -> oa.Problem:
    """The problem of an instance; the last ones are kept, since a worker meets most instances several times."""
    return oa.compile(fixed_data(case.instance) if fixed else case.instance)


def fixed_data(instance: oa.Instance) -> oa.Instance:
    """Every task that reads one dataset reads that of the highest utility; among equals the first."""

    def best(task: Any) -> str:
        named = [data for data in instance.datasets if task.datasets is None or data.id in task.datasets]
        return max(named, key=lambda data: data.relevance.get(task.domain, 0) * data.quality).id

    tasks = [
        task if task.inputs or task.modes or task.datasets == [] else task.replace(datasets=[best(task)])
        for task in instance.tasks
    ]
    return instance.replace(tasks=tasks)


# storing ---------------------------------------------------------------------------------------------------
def stored() -> list[Row]:
    """All rows."""
    lines = ROWS.read_text(encoding="utf-8").splitlines() if ROWS.exists() else []
    found = map(json.loads, lines)
    return [Row(**{**entry, "case": Case(**entry["case"])}) for entry in found]


def kept() -> list[Row]:
    """Rows that are not to be done again: all but errors."""
    return [row for row in stored() if not row.status.startswith(ERROR)]


def save(rows: Iterable[Row]) -> None:
    """All rows, as a whole."""
    write_lines(ROWS, rows)


def write_lines(path: Path, rows: Iterable[Any]) -> None:
    """A JSON line for each dataclass, instead of what the file has."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, "".join(json.dumps(asdict(row), separators=(",", ":")) + "\n" for row in rows))


def _commit() -> str:
    from ladder_store import code_commit

    return code_commit()


def report(chosen: argparse.Namespace) -> None:
    """Print the tables, and fill the page."""
    from learned_report import DETAILS, PAGE, PICTURE, detailed, draw, filled, summary

    rows = stored()
    print(summary(rows))
    if chosen.docs:
        write_text(PAGE, filled(PAGE.read_text(encoding="utf-8"), rows))
        write_text(DETAILS, detailed(rows))
        draw(rows, PICTURE)


if __name__ == "__main__":
    main()
