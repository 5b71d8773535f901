"""What each level of a scheduler's decisions loses, by the exact worth of every action on small instances.

python benchmarks/learned_regret.py run --presets contended market --couplings 0 1 4 --instances 10 \
    --schedulers replan-index,fdqn,additive
python benchmarks/learned_regret.py report [--docs]

Q(s, a) is the objective of the best plan of all tasks, later releases known, that agrees with what is decided for good
in s and has the run of action a exactly where the scheduler would place it; for a commitment that holds until the next
event only, too. It is solved by the CP-SAT formulation to proven optimality. ``fdqn`` stands for the shipped weights
and all that `learned.py` has stored of the family, ``fdqn@zero`` has those that it starts training from. With
``--control`` utility changes no duration, every price is paid per use, and there are neither seats nor budgets.
What is stored (benchmarks/results/learned/regret.jsonl, a JSON line per scheduler and instance) is not done again.
"""

import argparse
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from itertools import product
from multiprocessing import get_context
from typing import Any

import numpy as np
from learned import BASE, RESULTS, Case, solvers, write_lines
from learned_exact import Exact, Run, Unproven

import optalloc as oa
from optalloc.io.atomic import write_text
from optalloc.problem import FREE, REJECTED, Ints
from optalloc.scope import full_scope
from optalloc.simulation import Simulator
from optalloc.solvers.learned.board import LATER, REJECT, Board, Choice
from optalloc.solvers.learned.features import Event
from optalloc.solvers.learned.ground import Ground
from optalloc.solvers.learned.policy import Scorer, run_episode
from optalloc.solvers.learned.rule import RuleScorer
from optalloc.solvers.learned.schedulers import SCHEDULERS
from optalloc.solvers.learned.solving import scorer_of

ROWS = RESULTS / "regret.jsonl"
LEVELS = ("task", "data", "node", "devices", "start")
UNTRAINED = "zero"
RUN, REJECTION, POSTPONED, UNPROVEN, DEAD_END = "run", "reject", "later", "unproven", "dead end"
"""Kinds of decisions: a run; a rejection; left for the next event; without exact values; after which no plan exists."""


# one decision -----------------------------------------------------------------------------------------------
Label = tuple[int, int, int]
"""Data and access, nodes, row."""

Pair = tuple[tuple[int, ...], int]
"""Data, node."""

ACCESS, DATASET = "data and access", "dataset"
"""What counts as the data of a pair: with access, as schedulers decide; or the datasets alone, in the best access."""


@dataclass
class Decision:
    """What a decision loses. Values are objectives, scaled.

    Attributes
    ----------
    for_good
        Not only until the next event.
    actions
        How many were possible.
    losses
        At each of LEVELS: the best that is left after it, less the best that was left before. That of the start is
        against any other start of the same mode. Empty where it is not known.
    beyond
        What the best action of all loses against the best plan.
    wrong_pair
        The data and node are not among the best pairs of the task.
    fits
        ACCESS and DATASET, where the task has a choice of both data and node -> [pairs that it could have; what the
        pair loses that an additive fit to their exact values takes; what the pair loses that conditional choices
        take].
    """

    clock: int
    task: int
    kind: str
    actions: int
    for_good: bool = False
    losses: list[float] = field(default_factory=list)
    beyond: float = 0.0
    wrong_pair: bool = False
    fits: dict[str, list[float]] = field(default_factory=dict)


def runs_of(board: Board, choice: Choice) -> dict[Label, Run]:
    """Every action of a task, by data, nodes and row; leaving it for later is none."""
    layout, found = board.ground.layout, {}
    for at in choice.at.tolist():
        if at == REJECT:
            found[at, at, at] = Run(choice.task, REJECTED, None)
        elif at != LATER:
            row = board.rows.item(at)
            label = layout.choice.item(row), layout.place.item(row), row
            found[label] = Run(choice.task, layout.mode.item(row), board.start.item(at))
    return found


def losses(values: Mapping[Label, float], chosen: Label, least: float) -> list[float]:
    """What each level but the start loses.

    Parameters
    ----------
    values
        Exact, of every action of the task.
    least
        Of every action of every task.
    """
    left = [
        min(value for label, value in values.items() if label[:known] == chosen[:known])
        for known in range(len(chosen) + 1)
    ]
    return [after - before for before, after in zip([least, *left[:-1]], left, strict=True)]


def tables_of(board: Board, values: Mapping[Label, float]) -> dict[str, dict[Pair, float]]:
    """The best exact value of each pair of data and node with which a plan exists; by ACCESS and by DATASET."""
    layout = board.ground.layout
    tables: dict[str, dict[Pair, float]] = {ACCESS: {}, DATASET: {}}
    for (data, _, row), value in values.items():
        if row != REJECT and value < np.inf:
            node = layout.node.item(row)
            for kind, key in ((ACCESS, (data,)), (DATASET, tuple(layout.inputs[row].tolist()))):
                tables[kind][key, node] = min(value, tables[kind].get((key, node), value))
    return tables


def additive_pair(table: Mapping[Pair, float]) -> Pair:
    """The pair that independent choices take: least u, then least v of what is possible with it, in the fit u + v."""
    data, nodes = sorted({pair[0] for pair in table}), sorted({pair[1] for pair in table})
    columns = np.array([(data.index(one), len(data) + nodes.index(other)) for one, other in table])
    matrix = np.zeros((len(table), len(data) + len(nodes)))
    matrix[np.arange(len(table))[:, None], columns] = 1
    fit = np.linalg.lstsq(matrix, np.array(list(table.values())), rcond=None)[0].round(6)
    first = data[int(fit[: len(data)].argmin())]
    possible = [node for node in nodes if (first, node) in table]
    return first, min(possible, key=lambda node: fit[len(data) + nodes.index(node)])


def conditional_pair(table: Mapping[Pair, float]) -> Pair:
    """The pair that conditional choices take: the data that are best with their best node, then that node."""
    best: dict[tuple[int, ...], float] = {}
    for (data, _), value in table.items():
        best[data] = min(value, best.get(data, value))
    first = min(best, key=best.__getitem__)
    return first, min((node for data, node in table if data == first), key=lambda node: table[first, node])


@dataclass
class Account:
    """Where the objective beyond the optimum comes from: the best that is left grows by steps, which add up to it.

    Attributes
    ----------
    decided
        By decisions for good.
    transfers
        By the transfers that decisions begin; those of a commitment that holds until the next event only are for
        good, too.
    waiting
        From one decision to the next one: by the clock.
    """

    decided: float = 0.0
    transfers: float = 0.0
    waiting: float = 0.0


class Observer:
    """A scorer that decides as another does, while the exact values are worked out beside it.

    Attributes
    ----------
    decisions
        Those at which more than one action was possible.
    account
        Of all decisions; None once a value is missing.
    """

    def __init__(self, scorer: Scorer, exact: Exact, optimum: float):
        self.scorer, self.exact = scorer, exact
        self.decisions: list[Decision] = []
        self.account: Account | None = Account()
        self._left = optimum
        self._open: tuple[Decision, float, float] | None = None
        """The last decision, the best before it, and with its run in its place."""

    def task(self, event: Event, positions: Ints) -> int:
        self.close(event.board.simulator)
        return self.scorer.task(event, positions)

    def row(self, event: Event, position: int, choice: Choice) -> int:
        found, board = self.scorer.row(event, position, choice), event.board
        actions = [runs_of(board, board.choice(other)) for other in board.options.tolist()]
        decision = Decision(board.clock, choice.task, POSTPONED, sum(map(len, actions)))
        before = placed = np.inf
        try:
            before = placed = self.exact.at(board.simulator).best
            if choice.at[found] != LATER:
                placed = self._measure(decision, board, choice, int(choice.at[found]), actions)
        except Unproven:
            decision.kind = UNPROVEN
        self._open = decision, before, placed
        if decision.actions > 1:
            self.decisions.append(decision)
        return found

    def close(self, simulator: Simulator) -> None:
        """See what has become of the last decision; also when the episode has ended."""
        if self._open is None:
            return
        decision, before, placed = self._open
        decision.for_good = bool(simulator.firm.mode[decision.task] != FREE)
        self._open = None
        try:
            after = self.exact.at(simulator, decision.clock).best
        except Unproven:
            after = np.inf
        if self.account is None or decision.kind == UNPROVEN or max(before, placed, after) == np.inf:
            self.account = None
            return
        decided = placed if decision.for_good else before
        self.account.waiting += before - self._left
        self.account.decided += decided - before
        self.account.transfers += after - decided
        self._left = after

    def _measure(
        self,
        decision: Decision,
        board: Board,
        choice: Choice,
        at: int,
        actions: Sequence[Mapping[Label, Run]],
    ) -> float:
        """What the decision loses at each level; returns its exact value."""
        moment, own = self.exact.at(board.simulator), runs_of(board, choice)
        chosen = list(own)[[position for position in choice.at.tolist() if position != LATER].index(at)]
        values = {label: moment.least([run]) for label, run in own.items()}
        least = min(values.values())
        if least > moment.best:
            least = min(least, moment.least(run for runs in actions for run in runs.values()))
        decision.kind = REJECTION if at == REJECT else RUN
        if values[chosen] == np.inf:
            decision.kind = DEAD_END
        else:
            free = moment.least([own[chosen]._replace(start=None)])
            decision.losses = [*losses(values, chosen, least), values[chosen] - free]
            decision.beyond = least - moment.best
            self._compare(decision, board, chosen, tables_of(board, values))
        return values[chosen]

    def _compare(
        self, decision: Decision, board: Board, chosen: Label, tables: Mapping[str, Mapping[Pair, float]]
    ) -> None:
        """The pair of data and node with the exactly best ones, and with what factorisations would take."""
        best = min(tables[ACCESS].values(), default=np.inf)
        if decision.kind == RUN:
            pair = (chosen[0],), board.ground.layout.node.item(chosen[2])
            decision.wrong_pair = tables[ACCESS][pair] > best
        for kind, table in tables.items():
            if all(len({pair[side] for pair in table}) > 1 for side in (0, 1)):
                pairs = additive_pair(table), conditional_pair(table)
                decision.fits[kind] = [len(table), *(table[pair] - best for pair in pairs)]
                assert table[pairs[1]] == best, "conditional choices lose nothing"


# one episode ------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Trial:
    """A scheduler on an instance.

    Attributes
    ----------
    control
        Without what couples data and nodes, transfers excepted.
    """

    case: Case
    control: bool
    scheduler: str


@dataclass
class Row:
    """What came of a trial.

    Attributes
    ----------
    optimum, objective
        Of the whole instance, and what the scheduler reached (None: a dead end); scaled.
    seconds, solves
        Of the clock, and exact values worked out; what schedulers before it have met costs nothing.
    """

    trial: Trial
    optimum: float
    objective: int | None
    account: Account | None
    decisions: list[Decision]
    seconds: float
    solves: int


def instance_of(case: Case, control: bool) -> oa.Instance:
    """The instance, or what is left of it without coupling by kappa, purchases, seats and budgets."""
    instance = case.instance
    if not control:
        return instance
    datasets = [dataset.replace(pricing="per_use", max_readers=None) for dataset in instance.datasets]
    tasks = [task.replace(kappa=0, budget_usd=None) for task in instance.tasks]
    return instance.replace(datasets=datasets, tasks=tasks)


def scorer(name: str) -> Scorer:
    """By the name of a scheduler and its weights."""
    kind, _, of = name.partition("@")
    if kind == BASE:
        return RuleScorer()
    if of == UNTRAINED:
        return SCHEDULERS[kind].make(SCHEDULERS[kind].initial(0))
    return scorer_of(kind, RESULTS / f"{kind}-{of}" / f"{kind}.safetensors" if of else kind)


def observe(ground: Ground, exact: Exact, optimum: float, scorer: Scorer) -> tuple[Observer, int | None]:
    """Beside a scorer on an instance, and what it reaches."""
    simulator = Simulator(full_scope(ground.problem))
    observer = Observer(scorer, exact, optimum)
    run_episode(ground, simulator, observer)
    observer.close(simulator)
    return observer, None if simulator.failure else simulator.values[0]


def measure(case: Case, control: bool, schedulers: Sequence[str]) -> list[Row]:
    """Schedulers on one instance; they share the exact values of moments that several meet.

    Returns
    -------
    Nothing where the optimum of the instance is not proven in time.
    """
    ground = Ground(oa.compile(instance_of(case, control)))
    exact = Exact(ground.problem)
    rows: list[Row] = []
    try:
        optimum = exact.at(Simulator(full_scope(ground.problem))).best
    except Unproven:
        return rows
    for name in schedulers:
        began, solves = time.perf_counter(), exact.solves
        seen, objective = observe(ground, exact, optimum, scorer(name))
        seconds = round(time.perf_counter() - began, 2)
        trial, solves = Trial(case, control, name), exact.solves - solves
        rows.append(Row(trial, optimum, objective, seen.account, seen.decisions, seconds, solves))
    return rows


# running ----------------------------------------------------------------------------------------------------
def main() -> None:
    """Run or report."""
    chosen = arguments()
    chosen.does(chosen)


def arguments() -> argparse.Namespace:
    """What to do."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    running = commands.add_parser("run")
    running.set_defaults(does=run)
    running.add_argument("--presets", nargs="+", required=True)
    running.add_argument("--couplings", nargs="+", default=["1"])
    running.add_argument("--tasks", type=int, default=6)
    running.add_argument("--instances", type=int, default=10)
    running.add_argument(
        "--schedulers", required=True, help="names with commas; a learner's: all its weights"
    )
    running.add_argument("--control", action="store_true")
    running.add_argument("--workers", type=int, default=1)
    reporting = commands.add_parser("report")
    reporting.set_defaults(does=report)
    reporting.add_argument("--docs", action="store_true", help="fill the tables of docs/learned.md")
    return parser.parse_args()


def run(chosen: argparse.Namespace) -> None:
    """Run and store what is not stored yet."""
    rows = stored()
    jobs = list(missing(chosen, {row.trial for row in rows}))
    print(f"{len(jobs)} instances", flush=True)
    with ProcessPoolExecutor(chosen.workers, mp_context=get_context("spawn")) as pool:
        pending = [pool.submit(measure, *job) for job in jobs]
        for number, done in enumerate(as_completed(pending), start=1):
            rows += done.result()
            save(rows)
            print(f"{number} of {len(jobs)}: {cost_of(done.result())}", flush=True)


def missing(chosen: argparse.Namespace, known: set[Trial]) -> Iterator[tuple[Case, bool, list[str]]]:
    """Instances with the schedulers that have not met them; the first instances of all cells come first."""
    for seed, preset, coupling in product(range(chosen.instances), chosen.presets, chosen.couplings):
        case = Case(preset, chosen.tasks, "", coupling, seed)
        names = solvers(chosen.schedulers, preset)
        wanted = [name for name in names if Trial(case, chosen.control, name) not in known]
        if wanted:
            yield case, chosen.control, wanted


def cost_of(rows: Sequence[Row]) -> str:
    """What a decision takes."""
    decisions = sum(len(row.decisions) for row in rows)
    seconds, solves = sum(row.seconds for row in rows), sum(row.solves for row in rows)
    return f"{decisions} decisions, {solves} exact values, {seconds:.1f} s"


def stored() -> list[Row]:
    """All rows."""
    lines = ROWS.read_text(encoding="utf-8").splitlines() if ROWS.exists() else []
    return [row_of(json.loads(line)) for line in lines]


def row_of(entry: dict[str, Any]) -> Row:
    """A row as it was stored."""
    trial = Trial(**{**entry["trial"], "case": Case(**entry["trial"]["case"])})
    account = entry["account"] and Account(**entry["account"])
    decisions = [Decision(**decision) for decision in entry["decisions"]]
    return Row(**{**entry, "trial": trial, "account": account, "decisions": decisions})


def save(rows: Iterable[Row]) -> None:
    """All rows, as a whole."""
    write_lines(ROWS, rows)


def report(chosen: argparse.Namespace) -> None:
    """Print the tables, and fill the page."""
    from learned_regret_report import PAGE, filled, tables

    text = tables(stored())
    print(text)
    if chosen.docs and PAGE.exists():
        write_text(PAGE, filled(PAGE.read_text(encoding="utf-8"), text))


if __name__ == "__main__":
    main()
