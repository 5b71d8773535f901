"""Learned schedulers: without residuals they are `replan-index`, they keep to scopes, and weights are numbers only."""

import json
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import save
from support.learned import random_weights, written
from support.online import compiled, drawn, random_problem
from support.ticks import broken

from optalloc.errors import InputError
from optalloc.result import Status
from optalloc.schedule import build_scope
from optalloc.scope import full_scope
from optalloc.simulation import Simulator, simulate
from optalloc.solvers.learned.episodes import play
from optalloc.solvers.learned.ground import Ground
from optalloc.solvers.learned.network import COLUMNS, DATA, DEVICES, NODE
from optalloc.solvers.learned.policy import LearnedPolicy
from optalloc.solvers.learned.schedulers import SCHEDULERS
from optalloc.solvers.learned.weights import (
    MOST_BYTES,
    load_weights,
    read_arrays,
    read_facts,
    save_weights,
    shipped_weights,
    weights_path,
)
from optalloc.solvers.online.desk import OnlineDesk
from optalloc.solvers.online.index import replan_index
from optalloc.solvers.registry import solver_names
from optalloc.solvers.run import solve

BY_RULE = sorted(set(SCHEDULERS) - {"reinforce"})
"""Those that begin as `replan-index`."""


def by_rule(scope):
    """The trace of `replan-index`."""
    lines = []
    simulator = Simulator(scope, trace=lines.append)
    desk = OnlineDesk(simulator)
    simulate(simulator, lambda turn: replan_index(desk.begin()))
    return lines


def by_scheduler(scope, name, weights):
    """The trace of a learned scheduler."""
    lines = []
    simulator = Simulator(scope, trace=lines.append)
    scorer = SCHEDULERS[name].make(weights)
    simulate(simulator, LearnedPolicy(Ground(scope.problem), simulator, scorer))
    return lines


# without residuals --------------------------------------------------------------------------------
@pytest.mark.parametrize("preset", ["geo", "market", "edge", "contended", "pipeline", "ladder"])
def test_without_residuals_presets_are_decided_as_by_replan_index(preset):
    """Decision by decision: what, where, when, for good or not, and in which order."""
    for seed, tasks in ((1, 30), (2, 40)):
        scope = full_scope(compiled(drawn(preset, tasks, seed)))
        expected = by_rule(scope)
        assert len(expected) > tasks
        for name in BY_RULE:
            assert by_scheduler(scope, name, SCHEDULERS[name].initial(seed)) == expected, (name, seed)


@pytest.mark.parametrize("name", BY_RULE)
def test_without_residuals_random_instances_are_decided_as_by_replan_index(name):
    """Limits, levels, precedence, rejection, purchases, makespan, storage, channels, state, fixed runs."""
    met = dict.fromkeys(
        ("limits", "levels", "precedence", "rejection", "purchases", "makespan", "replicas"), 0
    )
    for profile, seeds in (("tiny", range(100, 200)), ("small", (*range(30, 80), 143, 237, 253, 470, 473))):
        for seed in seeds:
            problem = random_problem(seed, profile)
            if problem is None:
                continue
            scope = full_scope(problem)
            assert by_scheduler(scope, name, SCHEDULERS[name].initial(0)) == by_rule(scope), (profile, seed)
            facts = (
                problem.limits, len(problem.levels) > 1, problem.pred_ptr[-1], problem.rejectable.any(),
                problem.num_purchases, problem.levels[0].makespan, problem.num_replicas,
            )  # fmt: skip
            for feature, there in zip(met, facts, strict=True):
                met[feature] += bool(there)
    assert min(met.values()) >= 5, met


def test_weights_change_decisions():
    """Random ones decide otherwise; the comparison above is not empty."""
    scope = full_scope(compiled(drawn("contended", 20, 1)))
    expected = by_rule(scope)
    for name in SCHEDULERS:
        assert by_scheduler(scope, name, random_weights(name)) != expected, name


def test_all_networks_value_states_by_the_same_numbers():
    """Of each waiting task once, however many rows it has."""
    ground = Ground(compiled(drawn("contended", 12, 1)))
    states = []
    for name in ("fdqn", "flat-dqn", "additive"):
        steps = play(ground, SCHEDULERS[name].make(SCHEDULERS[name].initial(0))).steps
        states.append(np.stack([step.state for step in steps]))
    assert len(np.unique(states[0], axis=0)) >= 10
    np.testing.assert_array_equal(states[0], states[1])
    np.testing.assert_array_equal(states[0], states[2])


def test_a_rejection_speaks_for_no_node():
    """Also where it is the rule's first choice and each level is scored over all rows of the task."""
    weights = SCHEDULERS["additive"].initial(0)
    weights["linear.weight"][COLUMNS.index("reject"), DATA] = -100
    scorer = SCHEDULERS["additive"].make(weights)
    scorer.seen = np.ones_like(scorer.seen)
    first, below = 0, 0
    for seed in range(4):
        for step in play(Ground(compiled(drawn("edge", 30, seed))), scorer).steps:
            for pick in step.picks:
                rejects = pick.options[:, COLUMNS.index("reject")] == 1
                if pick.level == DATA:
                    first += bool(rejects[0])
                elif pick.level in (NODE, DEVICES):
                    assert not rejects.any()
                    below += first > 0
    assert first >= 3
    assert below >= 3


# scopes -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", solver_names("learned"))
def test_scopes_are_kept(name, tmp_path):
    """What is fixed stays, nothing else begins before a tick, left-out tasks do not exist."""
    if name == "lookahead":
        options = {"tasks": 2, "modes": 1, "base": str(written("es-index", tmp_path))}
    else:
        options = {"weights": str(written(name, tmp_path))}
    problem = compiled(drawn("contended", 8, 2))
    first = solve(problem, "replan-index", threads=1).plan
    begun = sorted(range(problem.num_tasks), key=lambda task: first.start[task])
    fixed = solve(problem, "replan-index", threads=1, tasks=[problem.task_ids[t] for t in begun[:3]]).plan
    moment = int(fixed.start[begun[:3]].max()) + 1
    chosen = [problem.task_ids[task] for task in begun[3:6]]
    given = {"fixed": fixed, "not_before": moment, "tasks": chosen}
    result = solve(problem, name, threads=1, options=options, **given)
    assert result.status is Status.FEASIBLE
    plan = result.plan
    assert broken(build_scope(problem, fixed, moment, chosen), plan) == []
    assert plan.start[begun[:3]].tolist() == fixed.start[begun[:3]].tolist()
    assert all(plan.mode[begun[3:6]] >= 0)
    assert all(plan.start[begun[3:6]] >= moment)
    assert all(plan.mode[begun[6:]] < 0)


def test_lookahead_with_a_learned_base_is_never_worse_than_it_on_what_is_released(tmp_path):
    """All released at 0."""
    better = 0
    for seed in range(3):
        document = drawn("contended", 6, seed)
        for task in document["tasks"]:
            task["release_s"] = 0
        problem, path = compiled(document), str(written("es-index", tmp_path, seed))
        base = solve(problem, "es-index", threads=1, options={"weights": path}).objective
        ahead = solve(problem, "lookahead", threads=1, options={"base": path, "tasks": 3}).objective
        assert ahead <= base
        better += ahead < base
    assert better >= 1


def test_acting_needs_no_torch(tmp_path):
    """NumPy and safetensors are enough."""
    path = written("fdqn", tmp_path)
    program = (
        "import sys, optalloc as oa\n"
        f"print(oa.solve('contended-6', 'fdqn', options={{'weights': {str(path)!r}}}).status)\n"
        "print(*(name for name in ('torch', 'cma') if name in sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (ran.stdout.split(), ran.stderr) == (["FEASIBLE"], "")


# weights ------------------------------------------------------------------------------------------
def refused(path: Path, like=None) -> str:
    """The one message about a file of weights."""
    with pytest.raises(InputError) as caught:
        load_weights(path, SCHEDULERS["fdqn"].initial(0) if like is None else like)
    assert len(caught.value.faults) == 1
    return str(caught.value)


def stored(folder: Path, content: bytes) -> Path:
    """A file of that content, with a JSON file beside it."""
    path = folder / "weights.safetensors"
    path.write_bytes(content)
    path.with_suffix(".json").write_text("{}")
    return path


def test_weights_survive_a_round_trip(tmp_path):
    """Bit for bit, with what is said about them."""
    for name in SCHEDULERS:
        weights = random_weights(name)
        save_weights(tmp_path / "w.safetensors", weights, {"ratio": 0.5})
        found, about = load_weights(tmp_path / "w.safetensors", SCHEDULERS[name].initial(3))
        assert about == {"ratio": 0.5}
        assert found.keys() == weights.keys()
        assert all(np.array_equal(found[one], weights[one]) for one in weights)


class Harmful:
    """Unpickling it would write a file."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.mark.parametrize("form", ["pickle", "torch.save"])
def test_pickles_are_refused_and_run_no_code(tmp_path, form):
    """Under whatever name."""
    trace, path = tmp_path / "ran", stored(tmp_path, b"")
    if form == "pickle":
        path.write_bytes(pickle.dumps(Harmful(trace)))
    else:
        torch.save({"encoder.1.weight": Harmful(trace)}, path)
    assert "weights.safetensors: is no safetensors file" in refused(path)
    assert not trace.exists()


def test_other_files_are_refused(tmp_path):
    """Too large, of other shapes or types, not finite, cut off, nonsense; each with one message."""
    good = random_weights("fdqn")
    assert "larger than 2,000,000 bytes" in refused(stored(tmp_path, b" " * (MOST_BYTES + 1)))
    assert "other weights than this version reads: extra" in refused(
        stored(tmp_path, save(good | {"extra": np.zeros(1, np.float32)}))
    )
    for wrong in (np.zeros((2, 2), np.float32), np.zeros(good["scale"].shape, np.float64)):
        message = refused(stored(tmp_path, save(good | {"scale": wrong})))
        assert "reads: scale; train them anew" in message
    for value in (np.nan, np.inf):
        bad = good["scale"].copy()
        bad[1] = value
        assert "no finite number" in refused(stored(tmp_path, save(good | {"scale": bad})))
    assert "is no safetensors file" in refused(stored(tmp_path, save(good)[:-10]))
    assert "is no safetensors file" in refused(stored(tmp_path, b"\xff" * 100))
    header = json.dumps({"scale": {"dtype": "F8_E4M3", "shape": [4], "data_offsets": [0, 4]}}).encode()
    assert "weights.safetensors: " in refused(
        stored(tmp_path, len(header).to_bytes(8, "little") + header + b"\0\0\0\0")
    )


def test_files_beside_weights_are_read_with_care(tmp_path):
    """Missing, no JSON, nested without end, no object."""
    path = stored(tmp_path, save(random_weights("fdqn")))
    beside = path.with_suffix(".json")
    for content, message in (
        ("{", "no JSON file"),
        ("[" * 100_000, "no JSON file"),
        ("[]", "one JSON object"),
    ):
        beside.write_text(content)
        assert message in refused(path)
    beside.unlink()
    assert "weights.json: does not exist; `optalloc train` writes it" in refused(path)
    assert "nothing.safetensors: does not exist" in refused(tmp_path / "nothing.safetensors")


@pytest.mark.parametrize("name", shipped_weights())
def test_shipped_weights_are_told_how_they_came_about_and_act(name):
    """Small, named after their scheduler, other numbers than those it begins with."""
    path = weights_path(name)
    solver = read_facts(path)["solver"]
    assert name == solver or name.startswith(f"{solver}-")
    weights, about = load_weights(path, SCHEDULERS[solver].initial(0))
    assert path.stat().st_size < MOST_BYTES
    assert about["command"].startswith(f"optalloc train {solver} ")
    assert about["iterations"] >= about["iteration"] > 0
    assert any(
        not np.array_equal(weights[key], array) for key, array in SCHEDULERS[solver].initial(0).items()
    )
    result = solve(compiled(drawn("contended", 8, 3)), solver, options={"weights": name})
    assert result.status == Status.FEASIBLE
    assert result.evaluation.valid


def test_weights_that_are_not_there(tmp_path):
    """The message says how to train some."""
    problem = compiled(drawn("contended", 4, 1))
    with pytest.raises(
        InputError, match=r"options\.weights: no weights named 'mine' are shipped .*train fdqn"
    ):
        solve(problem, "fdqn", options={"weights": "mine"})
    with pytest.raises(
        InputError, match=r"options\.base: no weights named 'mine' are shipped .*train es-index"
    ):
        solve(problem, "lookahead", options={"base": "mine"})
    for other in ("es-index", "additive"):
        with pytest.raises(
            InputError, match=rf"options\.weights: .* holds weights of '{other}', not of fdqn"
        ):
            solve(problem, "fdqn", options={"weights": str(written(other, tmp_path))})
    for wrong in (5, None, b"fdqn", ["fdqn"], "x" * 5000):
        with pytest.raises(InputError, match=r"options\.weights: (must be a file|no weights named)"):
            solve(problem, "fdqn", options={"weights": wrong})
    with pytest.raises(InputError, match="no such option"):
        solve(problem, "fdqn", options={"discipline": "reserve"})


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no devices")
def test_endless_files_are_not_read():
    """Nor is a pipe waited for."""
    with pytest.raises(InputError, match="/dev/zero: is no regular file"):
        read_arrays(Path("/dev/zero"))
