"""Every dispatch rule: hand-derived orders, verified plans on random instances, fast searches equal to slow ones."""

from pathlib import Path

import numpy as np
import pytest
from support.problems import Mode, Replica, Task, make_problem
from support.random_instances import random_instance
from support.ticks import broken

import optalloc as oa
from optalloc.errors import InputError
from optalloc.evaluation import evaluate
from optalloc.instance import read_instance
from optalloc.problem import FREE, REJECTED
from optalloc.scope import full_scope
from optalloc.solvers.registry import solver_names
from optalloc.solvers.rules import RULES, DeadEnd, Desk, best_start, run_rule
from optalloc.solvers.rules.criteria import Completion, Duration, Increase, Money, best_placement
from optalloc.solvers.rules.data_then_devices import data_choices
from optalloc.solvers.rules.due_dates import atc_index
from optalloc.solvers.rules.start import joint_with_retries
from optalloc.solvers.rules.upward_rank import upward_rank


def run(name, problem, seed=0):
    return run_rule(RULES[name], full_scope(problem), seed)


def starts(name, problem):
    """Start ticks of a rule's plan, which breaks nothing."""
    plan = run(name, problem)
    assert broken(full_scope(problem), plan) == []
    return plan.start.tolist()


def one_device(*tasks):
    """Tasks given as keywords of `Task` and ``p``, the duration of their only mode, on one device."""
    return make_problem([Task([Mode(t.pop("p"), {0: 1})], **t) for t in map(dict, tasks)])


def two_nodes(*durations):
    """Tasks given by their durations on two nodes of one device."""
    tasks = [Task([Mode(p, {node: 1}) for node, p in enumerate(pair)]) for pair in durations]
    return make_problem(tasks, [1, 1])


# orders -------------------------------------------------------------------------------------------
def test_fifo_goes_by_release():
    """Releases 3, 1, 0 with runs of 2, 3, 4: [0, 4), [4, 7), [7, 9)."""
    problem = one_device({"p": 2, "release": 3}, {"p": 3, "release": 1}, {"p": 4})
    assert starts("fifo", problem) == [7, 4, 0]


def test_fifo_uses_gaps():
    """Task 2 comes last and fits before task 1, which waits for its data until 4."""
    tasks = [
        Task([Mode(2, {0: 1})]),
        Task([Mode(2, {0: 1}, available=4)]),
        Task([Mode(2, {0: 1})], release=1),
    ]
    assert starts("fifo", make_problem(tasks)) == [0, 4, 2]


def test_spt_takes_the_shortest_mode_as_length():
    """Shortest modes 5, 2, 3: order 1, 2, 0."""
    tasks = [
        Task([Mode(5, {0: 1}), Mode(9, {0: 1})]),
        Task([Mode(7, {0: 1}), Mode(2, {0: 1})]),
        Task([Mode(3, {0: 1})]),
    ]
    assert starts("spt", make_problem(tasks)) == [5, 0, 2]


def test_wspt_goes_by_weight_per_tick():
    """Ratios 1/4, 3/3, 1/2: order 1, 2, 0."""
    problem = one_device({"p": 4}, {"p": 3, "weight": 3}, {"p": 2})
    assert starts("wspt", problem) == [5, 0, 3]


def test_edd_takes_the_earlier_of_due_date_and_deadline():
    """Due 9, 20 with deadline 6, none: order 1, 0, 2."""
    problem = one_device({"p": 2, "due": 9}, {"p": 2, "due": 20, "deadline": 6}, {"p": 2})
    assert starts("edd", problem) == [2, 0, 4]


def test_atc_is_neither_wspt_nor_edd():
    """p = 2, 2, 4; w = 1, 2, 1; due 2, 6, 4.

    t = 0, mean 8/3: indices 1/2, 1 * exp(-4 / (16/3)) = .472, 1/4: task 0. t = 2, mean 3: exp(-2/6) = .717
    against 1/4: task 1, then task 2. By weight per tick it would be 1, 0, 2, by due date 0, 2, 1.
    """
    problem = one_device({"p": 2, "due": 2}, {"p": 2, "weight": 2, "due": 6}, {"p": 4, "due": 4})
    assert starts("atc", problem) == [0, 2, 4]
    desk = Desk(full_scope(problem))
    index = atc_index(desk, np.arange(3), 0, 8 / 3)
    assert index == pytest.approx([0.5, np.exp(-0.75), 0.25])
    assert starts("wspt", problem) == [2, 0, 4]
    assert starts("edd", problem) == [0, 6, 2]


def test_atc_compares_only_tasks_that_wait():
    """Task 0 would end first (at 4 against 5), so t = 0: the urgent task 1 does not wait yet, and comes second."""
    problem = one_device({"p": 4, "due": 99}, {"p": 2, "due": 5, "release": 3, "weight": 9})
    assert starts("atc", problem) == [0, 4]


def test_heft_goes_by_the_longest_way_to_the_end():
    """Task 1 (1 tick), then with lag 1 task 2 (4 or 6 ticks, 5 on average): ranks 7 and 5; task 0 alone: 4.

    Task 1 runs in [0, 1), task 2 in [2, 6) in its shorter mode, task 0 in [6, 10).
    """
    tasks = [
        Task([Mode(4, {0: 1})]),
        Task([Mode(1, {0: 1})]),
        Task([Mode(6, {0: 1}), Mode(4, {0: 1})], after=[(1, 1)]),
    ]
    problem = make_problem(tasks)
    assert upward_rank(Desk(full_scope(problem))).tolist() == [4, 7, 5]
    assert starts("heft", problem) == [6, 0, 2]
    assert starts("fifo", problem) == [0, 4, 6]


def test_min_min():
    """Ends (2, 6), (3, 4), (5, 10): task 0 on node 0 until 2; now task 1 ends at 4 on node 1, task 2 at 7 on node 0."""
    problem = two_nodes((2, 6), (3, 4), (5, 10))
    assert run("min-min", problem).mode.tolist() == [0, 3, 4]
    assert starts("min-min", problem) == [0, 0, 2]


def test_max_min():
    """Task 2 (best end 5) first, on node 0; then task 0 ends at 6 on node 1, task 1 at 4: task 0; task 1 on node 0."""
    problem = two_nodes((2, 6), (3, 4), (5, 10))
    assert run("max-min", problem).mode.tolist() == [1, 2, 4]
    assert starts("max-min", problem) == [0, 5, 0]


def test_sufferage():
    """Losses 4, 1, 5: task 2 on node 0 until 5. Then 7 or 6, and 8 or 4: losses 1 and 4: task 1 on node 1; task 0."""
    problem = two_nodes((2, 6), (3, 4), (5, 10))
    assert run("sufferage", problem).mode.tolist() == [0, 3, 4]
    assert starts("sufferage", problem) == [5, 0, 0]


def test_sufferage_places_a_task_without_alternative_first():
    """Task 1 can only use node 0: it goes before task 0, which loses 9."""
    tasks = [Task([Mode(1, {0: 1}), Mode(10, {1: 1})]), Task([Mode(2, {0: 1})])]
    assert starts("sufferage", make_problem(tasks, [1, 1])) == [2, 0]


# choices of modes ---------------------------------------------------------------------------------
def test_cheapest_counts_what_it_makes_everyone_pay():
    """Staged: 0 for the run, 4 for the cheap slow route (5 ticks); local 5: staged. The second reader pays nothing."""
    task = Task([Mode(2, {0: 1}, needs=[0]), Mode(2, {0: 1}, money=5)])
    problem = make_problem([task, task], [2], replicas=[Replica(0, 0, [(1, 6, ()), (5, 4, ())])])
    plan = run("cheapest", problem)
    assert plan.mode.tolist() == [0, 2]
    assert plan.start.tolist() == [5, 5]
    assert plan.transfers == (problem.transfer(0, 1, 0),)


def test_fastest_waits_for_the_shortest_run():
    """Node 0 is busy until 9; the run of 2 there ends at 11, the run of 3 on node 1 would end at 3."""
    tasks = [Task([Mode(9, {0: 1})]), Task([Mode(2, {0: 1}), Mode(3, {1: 1})])]
    problem = make_problem(tasks, [1, 1])
    assert starts("fastest", problem) == [0, 9]
    assert starts("fifo", problem) == [0, 0]


def test_data_first_compute_centric_and_joint_greedy_differ():
    """Dataset 0: utility 1000, price 50, 4 ticks. Dataset 1: 900 and free, 6 ticks on node 0, 5 for 30 on node 1.

    compute-centric takes dataset 0; data-first dataset 1 where it ends first; joint-greedy dataset 1 at 6 + 0
    < 5 + 30.
    """
    modes = [
        Mode(4, {0: 1}, money=50, dataset=0),
        Mode(6, {0: 1}, utility=900, dataset=1),
        Mode(5, {1: 1}, money=30, utility=900, dataset=1),
    ]
    problem = make_problem([Task(modes)], [1, 1])
    chosen = {
        name: run(name, problem).mode.item(0) for name in ("compute-centric", "data-first", "joint-greedy")
    }
    assert chosen == {"compute-centric": 0, "data-first": 2, "joint-greedy": 1}


def test_compute_centric_falls_back_to_the_next_dataset():
    """The best dataset cannot be read before the deadline."""
    modes = [Mode(2, {0: 1}, available=5, dataset=0), Mode(2, {0: 1}, utility=500, dataset=1)]
    assert run("compute-centric", make_problem([Task(modes, deadline=6)])).mode.tolist() == [1]


def test_joint_greedy_counts_shared_charges_and_makespan():
    """Purchase 7 against 4 more ticks: own data (6 < 2 + 7); with weight 1 on makespan 6 + 6 > 2 + 7 + 2."""
    task = Task([Mode(6, {0: 1}), Mode(2, {0: 1}, buys=[0])])
    plain = make_problem([task], purchases=[7])
    assert run("joint-greedy", plain).mode.tolist() == [0]
    with_makespan = make_problem(
        [task], purchases=[7], levels=[{"weighted_completion": 1, "cost": 1, "makespan": 1}]
    )
    assert run("joint-greedy", with_makespan).mode.tolist() == [1]
    both = make_problem([task, task], [2], purchases=[3])
    # The first reader pays 3 for 4 ticks; the second pays nothing.
    assert run("joint-greedy", both).mode.tolist() == [1, 3]


def test_joint_greedy_looks_at_later_levels():
    """Both modes end at 3: the second level prefers the cheaper one."""
    problem = make_problem(
        [Task([Mode(3, {0: 1}, money=5), Mode(3, {0: 1}, money=2)])],
        levels=[{"weighted_completion": 1}, {"cost": 1}],
    )
    assert run("joint-greedy", problem).mode.tolist() == [1]


def test_data_choices_tell_sets_of_datasets_apart():
    """Modes of two inputs and of one: equal sets have equal numbers."""
    replicas = [Replica(d, 0) for d in range(3)]
    sets = ([0, 1], [0, 2], [0, 1], [0], [1, 2], [0])
    problem = make_problem([Task([Mode(1, {0: 1}, needs=s) for s in sets])], replicas=replicas)
    number = data_choices(Desk(full_scope(problem)), np.arange(6)).tolist()
    assert number[0] == number[2]
    assert number[3] == number[5]
    assert len(set(number)) == 4


# rejection, limits, dead ends ---------------------------------------------------------------------
@pytest.mark.parametrize("name", RULES)
def test_a_task_is_rejected_when_that_is_better(name):
    """Completion 5 against a penalty of 3: rejected; 5 against 5: placed."""
    level = {"weighted_completion": 1, "rejected": 1}
    problem = make_problem([Task([Mode(5, {0: 1})], penalty=3)], levels=[level])
    assert run(name, problem).mode.tolist() == [REJECTED]
    problem = make_problem([Task([Mode(5, {0: 1})], penalty=5)], levels=[level])
    assert run(name, problem).mode.tolist() == [0]


@pytest.mark.parametrize("name", RULES)
def test_rejection_counts_all_tasks_after_it(name):
    """Completion 5 against penalties 3 + 3: placed; the second then costs 6 against 3: rejected."""
    tasks = [Task([Mode(5, {0: 1})], penalty=3), Task([Mode(1, {0: 1})], penalty=3, after=[(0, 0)])]
    problem = make_problem(tasks, levels=[{"weighted_completion": 1, "rejected": 1}])
    assert run(name, problem).mode.tolist() == [0, REJECTED]


@pytest.mark.parametrize("name", RULES)
def test_a_dead_end_gives_no_plan(name):
    """Two runs of 3 on one device by 5: one of them has no place and must run."""
    problem = one_device({"p": 3, "deadline": 5}, {"p": 3, "deadline": 5})
    with pytest.raises(DeadEnd) as caught:
        run(name, problem)
    assert "must run" in caught.value.describe(full_scope(problem))


@pytest.mark.parametrize(("most", "modes"), [(16, [0, 2]), (10, [0, 3]), (9, [1, 3]), (4, [1, 3]), (3, None)])
def test_the_cost_limit_is_kept(most, modes):
    """Modes (1 tick, 8) and (4 ticks, 2): a choice leaves at least 2 for the other task."""
    task = Task([Mode(1, {0: 1}, money=8), Mode(4, {0: 1}, money=2)])
    problem = make_problem([task, task], limits={"cost": most})
    for name in ("fifo", "min-min", "sufferage", "atc"):
        if modes is None:
            with pytest.raises(DeadEnd):
                run(name, problem)
        else:
            assert run(name, problem).mode.tolist() == modes


def test_a_limit_on_rejection_is_kept():
    """Rejecting both would be cheapest (1 + 1 against 5); only one may be."""
    task = Task([Mode(5, {0: 1})], penalty=1)
    problem = make_problem(
        [task, task], levels=[{"weighted_completion": 1, "rejected": 1}], limits={"rejected": 1}
    )
    assert sorted(run("fifo", problem).mode.tolist()) == [REJECTED, 1]


@pytest.mark.parametrize("name", ["min-min", "max-min", "sufferage"])
def test_offers_are_looked_at_again_after_a_rejection(name):
    """Lost utility at most 1300. Task 0 (it would cost 1000) is rejected, which loses 1000: task 1 may lose 300 only.

    Its first offer, made before, loses 600 in one tick; the other mode takes four.
    """
    tasks = [
        Task([Mode(1, {0: 1}, money=1000, utility=500)], penalty=1),
        Task(
            [Mode(1, {0: 1}, utility=400), Mode(4, {0: 1}, utility=700)],
            release=9 if name == "min-min" else 0,
        ),
    ]
    problem = make_problem(tasks, [2], levels=[{"cost": 1, "rejected": 1}], limits={"utility_loss": 1300})
    # max-min and sufferage take the first of equals, min-min the first to end: task 0 is always decided first.
    assert run(name, problem).mode.tolist() == [REJECTED, 2]


@pytest.mark.parametrize("name", ["min-min", "max-min", "sufferage", "atc"])
def test_offers_are_looked_at_again_when_storage_is_taken(name):
    """Room for one of two replicas, which two tasks on two nodes need: one waits until the other has ended.

    The one is there in [0, 6) with its run in [1, 6), the other arrives at 7.
    """
    tasks = [Task([Mode(5, {node: 1}, needs=[node])]) for node in range(2)]
    problem = make_problem(
        tasks, [1, 1], node_sites=[0, 0], replicas=[Replica(0), Replica(1)], storage={0: 1}
    )
    assert starts(name, problem) == [1, 7]


def test_fixed_parts_that_break_a_rule_leave_no_plan():
    """Two runs of the state on one device at once: no rule has a plan, and it says why."""
    mode = {"id": "m", "uses": [{"node": "n", "devices": 1}], "duration_ticks": 4, "datasets": []}
    entry = {"choice": {"mode": "m", "inputs": []}}
    instance = {
        "format": "optalloc-instance/1",
        "name": "overlap",
        "sites": [{"id": "s"}],
        "device_types": [{"id": "a"}],
        "nodes": [{"id": "n", "site": "s", "device_type": "a", "devices": 1, "usd_per_device_hour": 0}],
        "tasks": [{"id": i, "modes": [mode]} for i in ("a", "b", "c")],
        "state": {
            "tasks": [
                {"task": i, "segments": [{"uses": mode["uses"], "start": s, "end": s + 4}], **entry}
                for i, s in (("a", -1), ("b", 1))
            ],
            "transfers": [],
            "purchases": [],
        },
    }
    scope = full_scope(oa.compile(read_instance(instance)))
    with pytest.raises(DeadEnd) as caught:
        run_rule(RULES["fifo"], scope)
    assert "what is fixed breaks R5" in caught.value.describe(scope)
    assert best_start(scope) is None


# fast equals slow ---------------------------------------------------------------------------------
def crowded(seed):
    """Two nodes, channels, storage on some, shared charges, precedence: tasks compete for everything."""
    rng = np.random.default_rng(seed)
    routes = [
        [
            (
                int(rng.integers(1, 5)),
                int(rng.integers(9)),
                [int(rng.integers(2, 4))] if rng.random() < 0.5 else [],
            )
        ]
        * 2
        for _ in range(3)
    ]
    replicas = [Replica(d, 0, routes[d], int(rng.integers(1, 3))) for d in range(3)]

    def mode():
        uses = {int(rng.integers(2)): int(rng.integers(1, 3))}
        needs = [int(rng.integers(3))] if rng.random() < 0.5 else []
        money, utility = int(rng.integers(9)), int(rng.integers(1001))
        return Mode(int(rng.integers(1, 7)), uses, money, utility, needs, [0] if rng.random() < 0.3 else [])

    tasks = [
        Task(
            [mode() for _ in range(5)],
            release=int(rng.integers(10)),
            due=int(rng.integers(5, 30)),
            weight=int(rng.integers(1, 4)),
            after=[(int(rng.integers(j)), 1)] if j and rng.random() < 0.3 else (),
            penalty=int(rng.integers(20, 90)) if rng.random() < 0.2 else None,
        )
        for j in range(9)
    ]
    return make_problem(
        tasks,
        [2, [(0, 3), (8, 2)]],
        channels=[1, 1],
        replicas=replicas,
        storage={0: 4} if seed % 2 else None,
        purchases=[5],
        levels=[{"weighted_completion": 1, "weighted_tardiness": 2, "cost": 1, "makespan": 1, "rejected": 1}],
        limits={"cost": 60} if seed % 3 == 0 else None,
    )


@pytest.mark.parametrize("seed", range(20))
def test_pruned_choice_is_the_best_of_all_modes(seed):
    """The search that stops early finds the placement with the least key over all modes placed one by one."""
    problem = crowded(seed)
    desk = Desk(full_scope(problem))
    for task in problem.topological:
        for criterion in (Duration(), Money(), Increase(), Completion()):
            options = [
                p
                for mode in problem.modes_of(task).tolist()
                if (p := desk.table.earliest(task, mode, routes=criterion.routes(desk, mode))) is not None
                and desk.allows(p)
            ]
            slow = min(options, key=lambda p: criterion.key(desk, p), default=None)
            assert best_placement(desk, task, criterion) == slow
        try:
            desk.settle(task, slow)
        except DeadEnd:
            break
        if desk.table.mode[task] == REJECTED:
            break


def by_comparing_all(problem, value):
    """Modes and starts when every ready task's offers are worked out anew at every step."""
    desk = Desk(full_scope(problem))
    table = desk.table
    while FREE in table.mode:
        offers = []
        for task, mode in enumerate(table.mode):
            if mode == FREE and all(table.mode[p] != FREE for p, _ in problem.predecessors(task)):
                offers.append((value(desk, task), -task))
        task = -max(offers)[1]
        desk.settle(task, best_placement(desk, task, Completion()))
    return table.mode, table.start


def ends(desk, task):
    """(best end, best end on a node other than the best one), -1 for none."""
    best = best_placement(desk, task, Completion())
    if best is None:
        return None, None
    problem = desk.problem
    node = next(problem.uses(best.mode))[0]
    rest = [m for m in desk.modes(task).tolist() if next(problem.uses(m))[0] != node]
    other = best_placement(desk, task, Completion(), np.array(rest, dtype=np.int64))
    return best.end, other.end if other else 10**9


VALUES = {
    "min-min": lambda best, other: -best,
    "max-min": lambda best, other: best,
    "sufferage": lambda best, other: other - best,
}


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("seed", range(12))
def test_offers_kept_are_offers_worked_out_anew(name, seed):
    """Keeping offers and looking at the marked ones only changes nothing in what is chosen."""
    problem = crowded(seed)

    def value(desk, task):
        best, other = ends(desk, task)
        return -(10**9) if best is None else VALUES[name](best, other)

    try:
        slow = by_comparing_all(problem, value)
    except DeadEnd:
        with pytest.raises(DeadEnd):
            run(name, problem)
        return
    plan = run(name, problem)
    assert (plan.mode.tolist(), plan.start.tolist()) == slow


# all rules on random instances --------------------------------------------------------------------
def random_problems(profile, seeds):
    for seed in seeds:
        try:
            yield oa.compile(read_instance(random_instance(seed, profile)))
        except InputError:
            continue


@pytest.mark.parametrize("profile", ["small", "tiny", "medium"])
def test_rules_pass_the_verifier_or_say_that_they_have_no_plan(profile):
    """Every feature of the model: a rule's plan breaks nothing, and the same seed gives the same plan."""
    placed = dict.fromkeys(RULES, 0)
    for problem in random_problems(profile, range(16)):
        scope = full_scope(problem)
        if problem.impossible:
            continue
        for name, rule in RULES.items():
            try:
                plan = run_rule(rule, scope, seed=3)
            except DeadEnd:
                continue
            assert evaluate(problem, plan, scope=scope).violations == (), (problem, name)
            again = run_rule(rule, scope, seed=3)
            assert (again.mode == plan.mode).all()
            assert (again.start == plan.start).all()
            assert again.transfers == plan.transfers
            placed[name] += 1
    assert min(placed.values()) >= 2


def test_random_depends_on_its_seed():
    """Six equal tasks on one device: some of ten seeds differ in their order."""
    problem = one_device(*({"p": 2} for _ in range(6)))
    orders = {tuple(run("random", problem, seed).start.tolist()) for seed in range(10)}
    assert len(orders) > 3


def test_the_start_is_no_worse_than_any_rule_it_tries():
    """`best_start` is verified, and on small problems no worse than joint-greedy with its retries."""
    for problem in random_problems("medium", range(8)):
        scope = full_scope(problem)
        plan = best_start(scope)
        for name in ("joint-greedy", "wspt", "cheapest", "atc"):
            try:
                rule = evaluate(problem, run(name, problem), scope=scope).levels
            except DeadEnd:
                continue
            assert plan is not None
            assert evaluate(problem, plan, scope=scope).levels <= rule


def test_the_start_gets_out_of_a_dead_end():
    """By weight per tick task 0 goes first, and task 1 misses its deadline: the second try places task 1 first."""
    problem = one_device({"p": 3, "weight": 9}, {"p": 3, "deadline": 4})
    with pytest.raises(DeadEnd):
        run("joint-greedy", problem)
    desk = Desk(full_scope(problem))
    joint_with_retries([0, 1])(desk)
    assert desk.table.start == [3, 0]


def test_the_start_can_be_told_to_stop():
    """The first rule always runs; the others only while there is time."""
    problem = next(p for p in random_problems("medium", range(30)) if best_start(full_scope(p)) is not None)
    asked = []

    def stop():
        asked.append(True)
        return True

    assert best_start(full_scope(problem), should_stop=stop) is not None
    assert asked == [True]


def test_every_rule_is_a_registered_solver():
    """The registry and the rules name the same set, and `solve` runs them."""
    assert set(solver_names("rules")) == set(RULES)
    problems = random_problems("medium", range(30))
    problem = next(p for p in problems if best_start(full_scope(p)) is not None)
    for name in RULES:
        result = oa.solve(problem, solver=name, time_limit=20)
        assert result.status in (oa.Status.FEASIBLE, oa.Status.NO_SOLUTION), result.message
        assert (result.plan is None) == (result.message.startswith("dead end"))


def test_every_rule_is_documented():
    """The page on rules has a row for each of them."""
    page = Path(__file__).resolve().parents[1] / "docs" / "rules.md"
    text = page.read_text(encoding="utf-8")
    assert [name for name in RULES if f"| `{name}` |" not in text] == []
