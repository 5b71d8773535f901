"""Schedules: files, conversion by content, what cannot be resolved, and scopes."""

import json

import numpy as np
import pytest
from support.world import STARTS, instance, plan_of, problem, run

from optalloc.errors import InputError
from optalloc.evaluation import evaluate
from optalloc.problem import ABSENT, FREE, REJECTED, STREAMED
from optalloc.schedule import (
    Choice,
    InputChoice,
    Schedule,
    Segment,
    TaskEntry,
    TransferEntry,
    Use,
    build_scope,
    read_schedule,
    resolve,
    schedule_from_dict,
    to_schedule,
    write_schedule,
)


@pytest.fixture(scope="module")
def world():
    """The small world, compiled."""
    return problem()


@pytest.fixture
def document(world):
    """The plan of the small world as a JSON object."""
    return to_schedule(world, plan_of(world, {**STARTS, "t6": None, "t7": None})).to_dict()


def same(first, second):
    return (
        np.array_equal(first.mode, second.mode)
        and np.array_equal(first.start, second.start)
        and set(first.transfers) == set(second.transfers)
    )


# files ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["plan.json", "plan.json.gz"])
def test_read_what_was_written(world, document, tmp_path, name):
    """read(write(x)) == x, plain or compressed, and equal schedules give equal bytes."""
    schedule = schedule_from_dict(document)
    write_schedule(schedule, tmp_path / name)
    assert read_schedule(tmp_path / name) == schedule
    first = (tmp_path / name).read_bytes()
    write_schedule(read_schedule(tmp_path / name), tmp_path / name)
    assert (tmp_path / name).read_bytes() == first


def test_the_file_is_the_published_format(world, document):
    """Keys and values as documented."""
    assert document["format"] == "optalloc-schedule/1"
    assert document["instance"] == "world"
    assert document["instance_sha256"] == world.instance.sha256
    assert document["tasks"][0] == {
        "task": "t0",
        "choice": {"mode": "only", "inputs": [{"dataset": "d", "access": "staged", "route": None}]},
        "segments": [{"uses": [{"node": "n", "devices": 1}], "start": 2, "end": 5}],
    }
    # t3 lists no explicit modes, so its choice names none.
    assert document["tasks"][3]["choice"] == {"inputs": [{"dataset": "f", "access": "local", "route": None}]}
    assert document["tasks"][6] == {"task": "t6", "rejected": True}
    assert document["transfers"][0] == {"dataset": "d", "site": "b", "route": ["ab"], "start": 0}


def test_all_faults_at_once_with_paths(tmp_path):
    """Every fault of a file, each with file and path."""
    path = tmp_path / "bad.json"
    path.write_text(
        '{"format": "optalloc-schedule/2", "instance": "x", "instance": "y", "tasks": ['
        '{"task": "a"}, {"task": "b", "rejected": true, "choice": {"inputs": []}},'
        '{"task": "c", "choice": {"inputs": []}, "segments": [{"uses": [], "start": 0.5, "end": "1"}]}],'
        '"transfers": [{"dataset": "d", "site": "s", "route": [], "start": NaN, "extra": 1}]}'
    )
    with pytest.raises(InputError) as caught:
        read_schedule(path)
    assert {fault.path for fault in caught.value.faults} == {
        "format",
        "instance",
        "tasks[0]",
        "tasks[1]",
        "tasks[2].segments[0].uses",
        "tasks[2].segments[0].start",
        "tasks[2].segments[0].end",
        "transfers[0].route",
        "transfers[0].start",
        "transfers[0].extra",
    }
    assert all(fault.source == str(path) for fault in caught.value.faults)


@pytest.mark.parametrize("text", ["", "[]", "{", "null", "1"])
def test_what_is_no_schedule_is_refused(tmp_path, text):
    """No traceback for a file of another kind."""
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(InputError):
        read_schedule(path)
    with pytest.raises(InputError):
        read_schedule(tmp_path / "missing.json")


def test_an_interrupted_write_leaves_the_old_file(world, document, tmp_path, monkeypatch):
    """Files appear whole or not at all."""
    path = tmp_path / "plan.json"
    write_schedule(schedule_from_dict(document), path)
    before = path.read_bytes()
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_schedule(Schedule("other", None), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


# conversion -------------------------------------------------------------------------------------------------
def test_plan_to_schedule_and_back(world, document):
    """The decisions come back as the same indices."""
    plan = plan_of(world, {**STARTS, "t6": None, "t7": None})
    found, violations = resolve(world, schedule_from_dict(json.loads(json.dumps(document))))
    assert violations == ()
    assert same(found, plan)


def test_modes_are_matched_by_content_not_by_order():
    """The same schedule fits an instance whose tasks, nodes and modes stand in another order."""
    given = instance()
    first = problem()
    schedule = to_schedule(first, plan_of(first))
    raw = given.document()
    turned = problem(**{key: list(reversed(raw[key])) for key in ("tasks", "nodes", "datasets", "sites")})
    assert evaluate(turned, schedule).valid
    assert evaluate(turned, schedule).levels == evaluate(first, schedule).levels


def test_streams_are_told_apart_by_their_route():
    """Two routes of one stream are two modes."""
    links = [
        {"id": "ab", "from": "a", "to": "b", "bandwidth_gbps": 0.8, "egress_usd_per_gb": 0.5},
        {"id": "cheap", "from": "a", "to": "b", "bandwidth_gbps": 0.4, "egress_usd_per_gb": 0.1},
    ]
    datasets = [{"id": "s", "size_gb": 6, "sites": ["a"], "streamable": True}]
    other = problem(links=links, datasets=datasets, tasks=[{"id": "t0", "modes": [run("n", 1, 1, "s")]}])
    for mode in other.modes_of(0, active=False).tolist():
        plan = plan_of(other, {"t0": 3}, {"s": 0})
        plan.mode[0] = mode
        found, violations = resolve(other, to_schedule(other, plan))
        assert violations == ()
        assert found.mode[0] == mode
    accesses = [other.inputs(m)[0][1] for m in other.modes_of(0, active=False).tolist()]
    assert accesses.count(STREAMED) == 2


def test_a_dominated_mode_is_one_of_the_modes():
    """Solvers leave dominated modes out; a schedule may use them."""
    modes = [run("m", 1, 2) | {"id": "good"}, run("m", 2, 3, usd=1) | {"id": "bad"}]
    other = problem(tasks=[{"id": "t0", "modes": modes}])
    assert not other.active.all()
    bad = TaskEntry("t0", choice=Choice(mode="bad"), segments=(Segment((Use("m", 2),), 0, 3),))
    assert evaluate(other, Schedule("world", None, (bad,))).valid


def test_a_dominated_route_may_be_used():
    """A route that compile drops, here slower and dearer, is a chain of links: it is accepted and paid."""
    links = [
        {"id": "ab", "from": "a", "to": "b", "bandwidth_gbps": 0.8},
        {"id": "slow", "from": "a", "to": "b", "bandwidth_gbps": 0.4, "egress_usd_per_gb": 0.1},
    ]
    other = problem(links=links, tasks=[{"id": "t0", "modes": [run("n", 1, 1, "d")]}])
    entry = TaskEntry("t0", choice=_staged("d"), segments=(Segment((Use("n", 1),), 2, 3),))
    schedule = Schedule("world", None, (entry,), (TransferEntry("d", "b", ("slow",), 0),))
    evaluation = evaluate(other, schedule)
    assert evaluation.valid
    assert evaluation.plan.transfers[0].route == -1
    assert evaluation.terms["cost"] == 60
    assert to_schedule(other, evaluation.plan).transfers == schedule.transfers


def _staged(dataset):
    return Choice((InputChoice(dataset, "staged"),), "only")


# what cannot be resolved ------------------------------------------------------------------------------------
def change(document, task, values):
    copy = json.loads(json.dumps(document))
    entry = next(entry for entry in copy["tasks"] if entry["task"] == task)
    for path, value in values.items():
        *steps, last = path.split("__")
        place = entry
        for step in steps:
            place = place[int(step) if step.isdigit() else step]
        place[int(last) if last.isdigit() else last] = value
    return copy


UNRESOLVED = {
    "unknown task": ("t0", {"task": "tx"}, ["R1", "R1"]),  # tx is unknown, and t0 has no place
    "unknown dataset": ("t0", {"choice__inputs__0__dataset": "zz"}, ["R2"]),
    "another dataset": ("t0", {"choice__inputs__0__dataset": "e"}, ["R2"]),
    "another access": ("t0", {"choice__inputs__0__access": "local"}, ["R2"]),
    "a stream without a route": ("t0", {"choice__inputs__0__access": "streamed"}, ["R2"]),
    "a route that is not streamed": ("t0", {"choice__inputs__0__route": ["ab"]}, ["R2"]),
    "unknown mode": ("t0", {"choice__mode": "zz"}, ["R2"]),
    "no mode named": ("t0", {"choice__mode": None}, ["R2"]),
    "a mode where there are none": ("t3", {"choice__mode": "only"}, ["R2"]),
    "unknown node": ("t0", {"segments__0__uses__0__node": "zz"}, ["R2"]),
    "another number of devices": ("t0", {"segments__0__uses__0__devices": 2}, ["R2"]),
    "end is not start + duration": ("t0", {"segments__0__end": 6}, ["R2"]),
}


@pytest.mark.parametrize("name", UNRESOLVED)
def test_choices_that_are_not_possible(world, document, name):
    """Each is named by its rule and its task, and nothing else is blamed."""
    task, values, expected = UNRESOLVED[name]
    evaluation = evaluate(world, schedule_from_dict(change(document, task, values)))
    assert [v.rule for v in evaluation.violations] == expected
    assert task in {v.ids[0] for v in evaluation.violations}


def test_several_segments_are_not_possible(world, document):
    """Runs cannot be paused."""
    copy = json.loads(json.dumps(document))
    copy["tasks"][0]["segments"] *= 2
    assert [v.rule for v in evaluate(world, schedule_from_dict(copy)).violations] == ["R2"]


def test_a_task_decided_twice(world, document):
    """R1, even if both entries are equal."""
    copy = json.loads(json.dumps(document))
    copy["tasks"].append(copy["tasks"][0])
    assert [v.rule for v in evaluate(world, schedule_from_dict(copy)).violations] == ["R1"]


TRANSFERS_WRONG = {
    "unknown dataset": ({"dataset": "zz"}, "R11"),
    "unknown site": ({"site": "zz"}, "R11"),
    "unknown link": ({"route": ["zz"]}, "R7"),
    "not from a home": ({"route": ["ba"]}, "R7"),
    "links that do not join": ({"route": ["ab", "ab"]}, "R7"),
    "ends elsewhere": ({"route": ["ab", "ba"]}, "R7"),
    "to a home": ({"site": "a", "route": ["ab", "ba"]}, "R7"),
}


@pytest.mark.parametrize("name", TRANSFERS_WRONG)
def test_transfers_that_are_not_possible(name):
    """R7 for the route, R11 for what does not exist."""
    values, rule = TRANSFERS_WRONG[name]
    links = [
        {"id": "ab", "from": "a", "to": "b", "bandwidth_gbps": 0.8},
        {"id": "ba", "from": "b", "to": "a", "bandwidth_gbps": 0.8},
    ]
    other = problem(links=links, tasks=[])
    entry = {"dataset": "d", "site": "b", "route": ["ab"], "start": 0} | values
    document = {"format": "optalloc-schedule/1", "instance": "world", "tasks": [], "transfers": [entry]}
    assert [v.rule for v in evaluate(other, schedule_from_dict(document)).violations] == [rule]


def test_a_transfer_between_homes_breaks_r11():
    """A dataset that is at home at a site cannot be brought there."""
    datasets = [{"id": "d", "size_gb": 6, "sites": ["a", "b"]}]
    other = problem(datasets=datasets, tasks=[])
    schedule = Schedule("world", None, (), (TransferEntry("d", "b", ("ab",), 0),))
    assert [v.rule for v in evaluate(other, schedule).violations] == ["R11"]


def test_another_hash_is_a_message(world, document):
    """The schedule is judged by what it says."""
    document["instance_sha256"] = "0" * 64
    evaluation = evaluate(world, schedule_from_dict(document))
    assert evaluation.valid
    assert "another instance" in evaluation.notes[0]
    document["instance_sha256"] = None
    assert evaluate(world, schedule_from_dict(document)).notes == ()


# the state --------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def running():
    """t0 runs since tick -1 on d, which was brought at -3; t1 is to be decided."""
    segment = {"uses": [{"node": "n", "devices": 1}], "start": -1, "end": 2}
    data = [{"dataset": "d", "access": "staged"}]
    state = {
        "tasks": [{"task": "t0", "choice": {"mode": "only", "inputs": data}, "segments": [segment]}],
        "transfers": [{"dataset": "d", "site": "b", "route": ["ab"], "start": -3}],
    }
    tasks = [{"id": "t0", "modes": [run("n", 1, 3, "d")]}, {"id": "t1", "modes": [run("n", 1, 3, "d")]}]
    return problem(tasks=tasks, state=state)


def test_a_schedule_may_repeat_or_omit_the_state(running):
    """Both say the same plan, in which the state costs nothing."""
    plan = plan_of(running, {"t0": -1, "t1": 0}, {})
    plan.transfers = running.state_transfers
    whole = to_schedule(running, plan)
    short = Schedule("world", None, whole.tasks[1:])
    for schedule in (whole, short):
        evaluation = evaluate(running, schedule)
        assert evaluation.valid
        assert evaluation.terms["cost"] == 0
        assert same(evaluation.plan, plan)


def test_a_schedule_may_not_contradict_the_state(running):
    """A running task is where it is; a replica that is there cannot be brought again."""
    plan = plan_of(running, {"t0": -1, "t1": 3}, {})
    plan.transfers = running.state_transfers
    whole = to_schedule(running, plan)
    later = TaskEntry("t0", choice=whole.tasks[0].choice, segments=(Segment((Use("n", 1),), 0, 3),))
    found = evaluate(running, Schedule("world", None, (later, whole.tasks[1]), whole.transfers)).violations
    assert [v.rule for v in found] == ["R1"]
    again = TransferEntry("d", "b", ("ab",), 0)
    found = evaluate(running, Schedule("world", None, whole.tasks, (again,))).violations
    assert [v.rule for v in found] == ["R11"]


# scopes -----------------------------------------------------------------------------------------------------
def test_scope_without_arguments_is_the_whole_instance(running):
    """Only the state is fixed."""
    scope = build_scope(running)
    assert scope.mode.tolist() == [0, FREE]
    assert scope.start[0] == -1
    assert scope.transfers == running.state_transfers


def test_scope_of_a_partial_schedule(world):
    """What the schedule says is fixed, the rest is free or does not exist."""
    fixed = to_schedule(world, plan_of(world, {"t0": 2, "t6": None}, {"d": 0}))
    scope = build_scope(world, fixed, 7, ["t1", "t0"])
    assert scope.mode[world.task_ids.index("t0")] == 0
    assert scope.mode[world.task_ids.index("t1")] == FREE
    assert scope.mode[world.task_ids.index("t2")] == ABSENT
    assert scope.mode[world.task_ids.index("t6")] == REJECTED
    assert [t.start for t in scope.transfers] == [0]
    assert scope.not_before == 7


def test_scope_may_repeat_the_state(running):
    """The state's transfers are not doubled."""
    plan = plan_of(running, {"t0": -1}, {})
    plan.transfers = running.state_transfers
    assert build_scope(running, to_schedule(running, plan)).transfers == running.state_transfers


def test_scope_refuses_what_does_not_exist(world):
    """All faults at once."""
    with pytest.raises(InputError) as caught:
        build_scope(world, tasks=["t0", "x", "y"])
    assert len(caught.value.faults) == 2
    with pytest.raises(InputError, match="fixed: R1"):
        build_scope(world, Schedule("world", None, (TaskEntry("x", rejected=True),)))
    with pytest.raises(InputError, match="not_before"):
        build_scope(world, not_before=-1)
