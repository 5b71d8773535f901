"""Regrets of learned schedulers: worked out by hand, by another exact solve, and none where a plan is optimal."""

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.learned import random_weights

import optalloc as oa
from optalloc.instance import read_instance
from optalloc.result import Status
from optalloc.scope import full_scope
from optalloc.simulation import Simulator, left_shifted
from optalloc.solvers.learned.board import LATER, Board
from optalloc.solvers.learned.ground import Ground
from optalloc.solvers.learned.rule import RuleScorer
from optalloc.solvers.learned.schedulers import SCHEDULERS

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

import learned_regret as regret  # noqa: E402
import learned_regret_report as regret_report  # noqa: E402
from learned import Case  # noqa: E402
from learned_exact import SECONDS, Exact  # noqa: E402


def mode(data: str, node: str, devices: int, ticks: int) -> dict[str, Any]:
    """A way to run a task."""
    uses = [{"node": node, "devices": devices}]
    return {"id": f"{data}{node}{devices}", "uses": uses, "duration_ticks": ticks, "datasets": [data]}


HAND = {
    "format": "optalloc-instance/1",
    "name": "hand",
    "tick_seconds": 60,
    "money_unit_usd": 0.01,
    "sites": [{"id": "a"}],
    "links": [],
    "datasets": [{"id": name, "size_gb": 1, "sites": ["a"], "relevance": {"v": 1}} for name in "de"],
    "device_types": [{"id": "t"}],
    "nodes": [{"id": name, "site": "a", "device_type": "t", "devices": 2} for name in "nm"],
    "models": [{"id": "x", "domain": "v"}],
    "throughputs": [],
    "tasks": [
        {"id": "x", "modes": [mode("d", "n", 1, 4), mode("d", "n", 2, 3), mode("e", "m", 2, 9)]},
        {"id": "y", "modes": [mode("d", "n", 2, 2), mode("d", "m", 2, 7)]},
    ],
    "objective": {"levels": [{"weighted_completion": 1}]},
}
"""Two tasks that both want node n. Sums of completions, the other task in its best place each time:

x d n 1: 4, then y 4 + 2: 10;   from 2 on: 2 + 6 = 8
x d n 2: 3, then y 3 + 2: 8;    from 2 on: 2 + 5 = 7
x e m 2: 9, y beside it 2: 11
y d n 2: 2, then x 2 + 3: 7, the optimum
y d m 2: 7, x beside it 3: 10
"""


class Begun(RuleScorer):
    """A first decision that is given; after that the rule decides."""

    def __init__(self, task: int, mode: int):
        self.first: tuple[int, int] | None = (task, mode)

    def task(self, event, positions):
        if self.first is None:
            return super().task(event, positions)
        return [event.board.tasks[position] for position in positions].index(self.first[0])

    def row(self, event, position, choice):
        if self.first is None:
            return super().row(event, position, choice)
        modes = event.ground.layout.mode[event.board.rows[choice.at]].tolist()
        found, self.first = modes.index(self.first[1]), None
        return found


class Planned(RuleScorer):
    """Follows a plan: task by task as they start; what would start elsewhere is left for later."""

    def __init__(self, plan):
        self.plan = plan

    def task(self, event, positions):
        return min(range(len(positions)), key=lambda p: self.plan.start[event.board.tasks[positions[p]]])

    def row(self, event, position, choice):
        board, plan = event.board, self.plan
        modes = event.ground.layout.mode[board.rows[choice.at]]
        same = (modes == plan.mode[choice.task]) & (board.start[choice.at] == plan.start[choice.task])
        same &= choice.at >= 0
        return int(np.flatnonzero(same)[0]) if same.any() else choice.at.tolist().index(LATER)


def hand_made():
    problem = oa.compile(read_instance(HAND))
    assert problem.active.all()
    return problem


def observed(problem, scorer, seconds=SECONDS):
    exact = Exact(problem, seconds)
    optimum = oa.solve(problem, "cpsat", threads=1).objective
    return regret.observe(Ground(problem), exact, optimum, scorer)


# by hand ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("task", "mode", "losses", "beyond"),
    [
        # task, data, node, devices, start
        (0, 0, [8 - 7, 0, 0, 10 - 8, 10 - 8], 0),
        (0, 1, [8 - 7, 0, 0, 0, 8 - 7], 0),
        (0, 2, [8 - 7, 11 - 8, 0, 0, 0], 0),
        (1, 3, [0, 0, 0, 0, 0], 0),
        (1, 4, [0, 0, 10 - 7, 0, 0], 0),
    ],
)
def test_the_losses_of_each_level_are_those_worked_out_by_hand(task, mode, losses, beyond):
    observer, objective = observed(hand_made(), Begun(task, mode))
    first = observer.decisions[0]
    assert (first.task, first.actions, first.kind, first.for_good) == (task, 5, regret.RUN, True)
    assert first.losses == losses
    assert first.beyond == beyond
    assert first.wrong_pair == (mode in (2, 4))
    account = observer.account
    assert objective - 7 == account.decided + account.transfers + account.waiting
    assert account.decided >= sum(first.losses[:4])


def test_a_commitment_for_now_is_measured_and_told_apart():
    """y takes node n for good; x waits behind it for now, and is decided again when y ends."""
    observer, objective = observed(hand_made(), RuleScorer())
    assert objective == 7
    assert [(each.clock, each.task, each.for_good) for each in observer.decisions] == [
        (0, 1, True), (0, 0, False), (2, 0, True),
    ]  # fmt: skip
    assert not any(sum(each.losses) for each in observer.decisions)


def test_an_additive_fit_takes_the_wrong_pair_of_a_coupled_table():
    """Means of the rows 4.5 and 4, of the columns 2.5 and 6: second data, first node, 5 instead of 0."""
    table = {((0,), 0): 0, ((0,), 1): 9, ((1,), 0): 5, ((1,), 1): 3}
    assert regret.additive_pair(table) == ((1,), 0)
    assert regret.conditional_pair(table) == ((0,), 0)


# in general ------------------------------------------------------------------------------------------------
def test_conditional_choices_lose_nothing_and_additive_ones_nothing_of_a_sum():
    rng = np.random.default_rng(1)
    for _ in range(50):
        u, v = rng.integers(0, 20, rng.integers(2, 5)), rng.integers(0, 20, rng.integers(2, 5))
        pairs = [((d,), n) for d in range(len(u)) for n in range(len(v))]
        summed = {((d,), n): int(u[d] + v[n]) for (d,), n in pairs}
        assert summed[regret.additive_pair(summed)] == min(summed.values())
        some = rng.choice(len(pairs), rng.integers(1, len(pairs) + 1), replace=False)
        coupled = {pairs[at]: int(rng.integers(0, 20)) for at in some}
        assert coupled[regret.conditional_pair(coupled)] == min(coupled.values())


@pytest.mark.parametrize("preset", ["contended", "market"])
def test_levels_add_up_to_the_regret_by_another_exact_solve(preset):
    problem = oa.compile(oa.generate(preset, tasks=3, coupling=2, seed=3))
    simulator = Simulator(full_scope(problem))
    while len(simulator.queue) < 2:
        simulator.wait()
    board = Board(Ground(problem), simulator)
    board.begin()
    moment, worth = Exact(problem).at(simulator), {}
    for position in board.options.tolist():
        for label, run in regret.runs_of(board, board.choice(position)).items():
            fixed = full_scope(problem).start_plan()
            fixed.mode[run.task], fixed.start[run.task] = run.mode, run.start
            result = oa.solve(problem, "cpsat", fixed=fixed, not_before=board.clock, threads=1)
            assert result.status is Status.OPTIMAL
            assert moment.least([run]) == result.objective
            worth.setdefault(run.task, {})[label] = run, result.objective
    least = min(value for values in worth.values() for _, value in values.values())
    everything = [run for values in worth.values() for run, _ in values.values()]
    assert moment.least(everything) == least >= moment.best
    for values in worth.values():
        own = {label: value for label, (_, value) in values.items()}
        for label, value in own.items():
            lost = regret.losses(own, label, least)
            assert min(lost) >= 0
            assert sum(lost) == value - least


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_an_optimal_plan_loses_nothing(seed):
    """All tasks are there from the start and need no transfers, so that the plan can be followed."""
    instance = oa.generate("market", tasks=5, coupling=0, seed=seed)
    problem = oa.compile(instance.replace(tasks=[task.replace(release_s=0) for task in instance.tasks]))
    result = oa.solve(problem, "cpsat", threads=1)
    plan = left_shifted(full_scope(problem), result.plan)
    observer, objective = observed(problem, Planned(plan))
    assert objective == result.objective
    assert len([each for each in observer.decisions if each.losses]) >= 5
    assert not any(sum(each.losses) + each.beyond for each in observer.decisions if each.losses)
    assert observer.account == regret.Account()


@pytest.mark.parametrize("preset", ["contended", "market"])
def test_steps_add_up_to_the_gap_whatever_is_decided(preset):
    """With random weights: by decisions for good, by the transfers that they begin, by waiting."""
    problem = oa.compile(oa.generate(preset, tasks=3, coupling=2, seed=3))
    ground, exact = Ground(problem), Exact(problem)
    optimum = exact.at(Simulator(full_scope(problem))).best
    assert optimum == oa.solve(problem, "cpsat", threads=1).objective
    met = set()
    for name, scheduler in SCHEDULERS.items():
        observer, objective = regret.observe(ground, exact, optimum, scheduler.make(random_weights(name)))
        account = observer.account
        assert min(account.decided, account.transfers, account.waiting) >= 0
        assert account.decided + account.transfers + account.waiting == objective - optimum
        met |= {(each.kind, each.for_good, sum(each.losses) > 0) for each in observer.decisions}
    assert met >= {(regret.RUN, good, lost) for good in (True, False) for lost in (True, False)}


def test_what_is_not_proven_in_time_is_counted():
    observer, objective = observed(hand_made(), RuleScorer(), seconds=0.0)
    assert objective == 7
    assert {each.kind for each in observer.decisions} == {regret.UNPROVEN}
    assert observer.account is None


def test_the_control_has_no_coupling_but_transfers():
    instance = regret.instance_of(Case("market", 6, "", "1", 0), control=True)
    assert {dataset.pricing for dataset in instance.datasets} == {"per_use"}
    assert {dataset.max_readers for dataset in instance.datasets} == {None}
    assert {(task.kappa, task.budget_usd) for task in instance.tasks} == {(0, None)}


# stored and shown ------------------------------------------------------------------------------------------
def test_runs_are_stored_and_not_done_again(tmp_path, monkeypatch):
    monkeypatch.setattr(regret, "RESULTS", tmp_path)
    monkeypatch.setattr(regret, "ROWS", tmp_path / "regret.jsonl")
    chosen = argparse.Namespace(
        instances=1, presets=["market"], couplings=["1"], tasks=3, control=False, schedulers="replan-index"
    )
    (job,) = regret.missing(chosen, set())
    rows = regret.measure(*job)
    rows += regret.measure(*job[:2], ["fdqn@zero"])
    regret.save(rows)
    assert regret.stored() == rows
    assert rows[0].decisions == rows[1].decisions, "without training it is the rule"
    assert not list(regret.missing(chosen, {row.trial for row in rows}))
    text = regret_report.tables(rows)
    assert text.count("| fdqn@zero |") == 4
    page = regret_report.filled("before\n<!-- regret -->\nold\n<!-- end -->\nafter\n", text)
    assert text in page
    assert "old" not in page
    assert page.endswith("after\n")


def test_the_page_agrees_with_what_is_stored():
    """Else: python benchmarks/learned_regret.py report --docs."""
    page = regret_report.PAGE.read_text(encoding="utf-8")
    assert regret_report.filled(page, regret_report.tables(regret.stored())) == page
