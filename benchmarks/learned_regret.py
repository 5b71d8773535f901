"""What each level of a scheduler's decisions loses, by the exact worth of every action on small instances.

python benchmarks/learned_regret.py run --presets contended market --couplings 0 1 4 --instances 10 \
    --schedulers replan-index,fdqn@contended-0,additive@contended-0
python benchmarks/learned_regret.py report [--docs]

Q(s, a) is the objective of the best plan of all tasks, later releases known, that agrees with what is decided for good
in s and has the run of action a exactly where the scheduler would place it; for a commitment that holds until the next
event only, too. It is solved by the CP-SAT formulation to proven optimality. ``fdqn@contended-0`` is fdqn with the
weights that `learned.py` has stored under that name, ``fdqn@zero`` with those it starts training from. With
``--control`` utility changes no duration, every price is paid per use, and there are neither seats nor budgets.
What is stored (benchmarks/results/learned/regret.jsonl, a JSON line per scheduler and instance) is not done again.
"""

import argparse
import json
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from ladder_report import markdown
from learned import BASE, RESULTS, Case, solvers
from ortools.sat.python import cp_model

import optalloc as oa
from optalloc.evaluation import evaluate
from optalloc.formulations.cpsat import build, read_plan
from optalloc.io.atomic import write_text
from optalloc.problem import FREE, REJECTED, Ints, Plan, Problem
from optalloc.schedule import build_scope
from optalloc.scope import full_scope, windows
from optalloc.simulation import Simulator, left_shifted
from optalloc.solvers.learned.board import LATER, REJECT, Board, Choice
from optalloc.solvers.learned.features import Event
from optalloc.solvers.learned.ground import Ground
from optalloc.solvers.learned.policy import Scorer, run_episode
from optalloc.solvers.learned.rule import RuleScorer
from optalloc.solvers.learned.schedulers import SCHEDULERS
from optalloc.solvers.learned.solving import scorer_of

ROWS = RESULTS / "regret.jsonl"
PAGE = Path(__file__).parents[1] / "docs" / "learned.md"
LEVELS = ("task", "data", "node", "devices", "start")
SECONDS = 5.0
"""For one exact value; a decision that needs longer is left out and counted."""

RUN, REJECTION, POSTPONED, UNPROVEN, DEAD_END = "run", "reject", "later", "unproven", "dead end"
"""Kinds of decisions: a run; a rejection; left for the next event; without exact values; after which no plan exists."""


# exact values -----------------------------------------------------------------------------------------------
class Run(NamedTuple):
    """A task in a mode, or REJECTED, from a start on; None: from any."""

    task: int
    mode: int
    start: int | None

    def is_in(self, plan: Plan) -> bool:
        """Whether a plan has it."""
        same = plan.mode[self.task] == self.mode
        return bool(same and (self.start is None or plan.start[self.task] == self.start))


class Unproven(Exception):
    """The optimum was not proven in time."""


class Moment:
    """Exact values at one moment of a simulation: nothing but what is decided for good is given.

    Parameters
    ----------
    plan
        What is decided for good.
    clock
        Nothing else starts before.
    seconds
        For one value.
    """

    def __init__(self, problem: Problem, plan: Plan, clock: int, seconds: float = SECONDS):
        self.scope = build_scope(problem, plan, clock)
        self.built = build(self.scope, windows(self.scope))
        self.seconds = seconds
        self.solves = 0
        self._optimal: list[Plan] = []
        self._values: dict[tuple[Run, ...], float] = {}

    @property
    def best(self) -> float:
        """Of all plans; infinite without any."""
        return self._value(())

    def least(self, runs: Iterable[Run]) -> float:
        """Objective of the best plan that has at least one of some runs; infinite without any.

        Raises
        ------
        Unproven
        """
        asked, best = tuple(sorted(runs)), self.best
        if any(run.is_in(plan) for plan in self._optimal for run in asked):
            return best
        return self._value(asked)

    def _value(self, runs: tuple[Run, ...]) -> float:
        if runs not in self._values:
            self._values[runs] = self._solve(runs)
        return self._values[runs]

    def _solve(self, runs: tuple[Run, ...]) -> float:
        model, native = self.built.model.clone(), cp_model.CpSolver()
        if runs:
            model.add_bool_or([self._placed(model, run) for run in runs])
        native.parameters.num_workers = 1
        native.parameters.linearization_level = 2
        native.parameters.cp_model_presolve = False  # it takes longer than the search
        native.parameters.max_time_in_seconds = self.seconds
        self.solves += 1
        status = native.solve(model)
        if status == cp_model.INFEASIBLE:
            return float("inf")
        if status != cp_model.OPTIMAL:
            raise Unproven
        return self._checked(read_plan(self.built, native.value), native, runs)

    def _placed(self, model: cp_model.CpModel, run: Run) -> cp_model.IntVar:
        """A literal that is true only if the run is in the plan."""
        literal, activity = model.new_bool_var(""), self.built.variables.tasks[run.task]
        option = activity.options.get(run.mode)
        chosen = activity.absent if run.mode == REJECTED else option and option.literal
        model.add_bool_and([literal.negated() if chosen is None else chosen]).only_enforce_if(literal)
        if run.start is not None:
            model.add(activity.start == run.start).only_enforce_if(literal)
        return literal

    def _checked(self, plan: Plan, native: cp_model.CpSolver, runs: tuple[Run, ...]) -> int:
        """The value of a plan that is verified to be one, has a run that was asked for, and is proven optimal."""
        found = evaluate(self.scope.problem, plan, scope=self.scope)
        bound = int(native.response_proto.inner_objective_lower_bound) + self.built.constant
        if not found.valid or found.levels[0] != bound or (runs and not any(run.is_in(plan) for run in runs)):
            raise RuntimeError(f"The exact value {bound} does not belong to its plan: {found.violations}")
        if not runs:
            self._optimal += [plan, left_shifted(self.scope, plan)]
        elif bound == self._values.get(()):
            self._optimal.append(plan)
        return bound


class Exact:
    """The moments of an instance, each worked out once, whoever meets it."""

    def __init__(self, problem: Problem, seconds: float = SECONDS):
        self.problem, self.seconds = problem, seconds
        self.moments: dict[tuple[int, bytes, bytes, tuple[object, ...]], Moment] = {}

    def at(self, simulator: Simulator, clock: int | None = None) -> Moment:
        """The moment of what a simulator has decided for good; the clock is its own unless it is given."""
        plan, clock = simulator.plan(), simulator.clock if clock is None else clock
        key = (clock, plan.mode.tobytes(), plan.start.tobytes(), plan.transfers)
        if key not in self.moments:
            self.moments[key] = Moment(self.problem, plan, clock, self.seconds)
        return self.moments[key]

    @property
    def solves(self) -> int:
        """How many exact values were worked out."""
        return sum(moment.solves for moment in self.moments.values())


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
        ACCESS and DATASET, where the task has a choice of both data and node -> [pairs that it could have, what the
        pair loses that an additive fit to the exact values of these takes].
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
                assert table[conditional_pair(table)] == best
                decision.fits[kind] = [len(table), table[additive_pair(table)] - best]


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
    if of == "zero":
        return SCHEDULERS[kind].make(SCHEDULERS[kind].initial(0))
    return scorer_of(kind, RESULTS / f"{kind}-{of}" / f"{kind}.safetensors")


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
    RESULTS.mkdir(parents=True, exist_ok=True)
    write_text(ROWS, "".join(json.dumps(asdict(row), separators=(",", ":")) + "\n" for row in rows))


# reporting --------------------------------------------------------------------------------------------------
Measured = list[tuple[Row, Decision]]


def report(chosen: argparse.Namespace) -> None:
    """Print the tables, and fill the page."""
    text = tables(stored())
    print(text)
    if chosen.docs and PAGE.exists():
        write_text(PAGE, filled(PAGE.read_text(encoding="utf-8"), text))


def filled(page: str, text: str) -> str:
    """The page with its tables made again; without the markers it stays as it is."""
    block = f"<!-- regret -->\n{text}\n<!-- end -->"
    return re.sub(r"<!-- regret -->\n.*?<!-- end -->", lambda _: block, page, flags=re.DOTALL)


def tables(rows: Sequence[Row]) -> str:
    """For each kind of instance what is lost and where; for all of them what factorisations lose."""
    cells: dict[tuple[str, int, bool, str], list[Row]] = defaultdict(list)
    for row in rows:
        case = row.trial.case
        cells[case.preset, case.tasks, row.trial.control, case.coupling].append(row)
    parts = [
        f"**{title(*cell)}**\n\n{account_table(same)}\n\n{level_table(same)}"
        for cell, same in sorted(cells.items())
    ]
    bias = [line for cell, same in sorted(cells.items()) for line in bias_lines(title(*cell), same)]
    columns = ["instances", "scheduler", "decisions", "wrong pair"]
    for kind in (ACCESS, DATASET):
        columns += [f"{kind} x node", "additive wrong", "additive loses"]
    columns.append("conditional loses")
    return "\n\n".join([*parts, markdown(columns, bias)]) if rows else "Nothing is stored yet."


def title(preset: str, tasks: int, control: bool, coupling: str) -> str:
    """A cell in words."""
    return f"{preset}, {tasks} tasks, coupling {coupling}{', control' if control else ''}"


def by_scheduler(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Rows of each scheduler; those of a learner's different weights together."""
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[row.trial.scheduler.partition("@")[0]].append(row)
    return found


def account_table(rows: Sequence[Row]) -> str:
    """Mean gap to the optimum, and where it comes from."""
    lines = []
    for name, same in by_scheduler(rows).items():
        parts = [np.array([*asdict(row.account).values()]) / row.optimum for row in same if row.account]
        means = [np.sum(parts, axis=1).mean(), *np.mean(parts, axis=0)] if parts else []
        shown = [f"{mean:.2%}" for mean in means] or ["-"] * 4
        lines.append([name, f"{len(same)}", *shown, f"{len(same) - len(parts)}"])
    columns = ["scheduler", "runs", "above the optimum", "decided", "transfers", "waiting", "not measured"]
    return markdown(columns, lines)


def level_table(rows: Sequence[Row]) -> str:
    """Mean loss of each level in % of the optimum, and the share of decisions with any; for good and for now."""
    lines = []
    for name, same in by_scheduler(rows).items():
        for kind, good in (("for good", True), ("for now", False)):
            every = [(row, each) for row in same for each in row.decisions if each.for_good is good]
            known = [(row, each) for row, each in every if each.losses]
            cells = [name, kind, f"{len(known)}", *(spoken(known, of_level(k)) for k in range(len(LEVELS)))]
            lines.append([*cells, spoken(known, lambda each: each.beyond), not_measured(every)])
    return markdown(["scheduler", "commitments", "decisions", *LEVELS, "any action", "not measured"], lines)


def of_level(level: int) -> Callable[[Decision], float]:
    """What a decision loses at a level."""
    return lambda decision: decision.losses[level]


def spoken(known: Measured, loss: Callable[[Decision], float]) -> str:
    """Mean loss over the optimum (share of decisions with any)."""
    if not known:
        return "-"
    lost = [loss(each) for _, each in known]
    mean = np.mean([value / row.optimum for value, (row, _) in zip(lost, known, strict=True)])
    return f"{mean:.2%} ({np.mean([value > 0 for value in lost]):.0%})"


def not_measured(every: Measured) -> str:
    """Decisions without losses by kind."""
    kinds = [each.kind for _, each in every if not each.losses]
    return ", ".join(f"{kinds.count(kind)} {kind}" for kind in sorted(set(kinds))) or "-"


def bias_lines(name: str, rows: Sequence[Row]) -> Iterator[list[str]]:
    """What the pair of an additive fit loses in the states that each scheduler meets."""
    for scheduler, same in by_scheduler(rows).items():
        known = [(row, each) for row in same for each in row.decisions if each.losses]
        wrong = f"{np.mean([each.wrong_pair for _, each in known]):.0%}" if known else "-"
        fits = [cell for kind in (ACCESS, DATASET) for cell in bias(known, kind)]
        # That conditional choices lose nothing is checked at every decision.
        yield [name, scheduler, f"{len(known)}", wrong, *fits, "0"]


def bias(known: Measured, kind: str) -> list[str]:
    """Decisions with a choice of both, and the mean number of pairs; how often the additive one is wrong; its loss."""
    lost = [(row.optimum, *each.fits[kind]) for row, each in known if kind in each.fits]
    if not lost:
        return ["0", "-", "-"]
    optimum, pairs, loss = np.array(lost).T
    return [
        f"{len(lost)} of {pairs.mean():.1f} pairs", f"{np.mean(loss > 0):.0%}", f"{np.mean(loss / optimum):.2%}"
    ]  # fmt: skip


if __name__ == "__main__":
    main()
