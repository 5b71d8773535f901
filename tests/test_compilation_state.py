"""What is running, staged and bought at tick 0."""

import pytest
from support.physics import document, problem_of

from optalloc.errors import InputError
from optalloc.problem import FREE, REJECTED

FAR = {"dataset": "far", "access": "staged"}
BROUGHT = {"dataset": "far", "site": "here", "route": ["l"], "start": -3}


def running(entry=None, transfers=(BROUGHT,), purchases=(), **task):
    """Task t reads the far dataset on one device since tick -1; ``task`` changes it."""
    use = {"node": "n", "devices": 1}
    usual = {"task": "t", "choice": {"inputs": [FAR]}, "segments": [{"uses": [use], "start": -1, "end": 9}]}
    state = {
        "tasks": [{**usual, **(entry or {})}],
        "transfers": list(transfers),
        "purchases": list(purchases),
    }
    found = document(state=state)
    found["tasks"][0].update({"datasets": ["near", "far"], **task})
    found["datasets"][1].update(price_usd=2, pricing="once")
    return found


def test_running_tasks_keep_their_mode_and_start():
    """Mode 2: far, one device. All modes of the task cost nothing, its data are bought, its transfer is paid."""
    problem = problem_of(running())
    assert (problem.state_mode.tolist(), problem.state_start.tolist()) == ([2], [-1])
    assert problem.money.tolist() == [0, 0, 0, 0]
    assert (problem.purchase_dataset.tolist(), problem.purchase_cost.tolist()) == ([1], [0])
    (transfer,) = problem.state_transfers
    assert (transfer.start, transfer.end, transfer.cost, transfer.replica, transfer.route) == (
        -3,
        -1,
        0,
        0,
        0,
    )


def test_purchases_of_the_state_are_free():
    """The task itself is not running."""
    found = running(purchases=["far"])
    found["state"]["tasks"] = []
    problem = problem_of(found)
    assert (problem.purchase_cost.tolist(), problem.state_mode.tolist()) == ([0], [FREE])
    assert problem.money.tolist() == [50, 70, 50, 70]


def test_a_transfer_that_no_mode_reads():
    """It is kept, outside the lists of replicas and routes."""
    problem = problem_of(
        running({"choice": {"inputs": [{"dataset": "near", "access": "local"}]}}, datasets=["near"])
    )
    (transfer,) = problem.state_transfers
    assert (transfer.ticks, transfer.replica, transfer.route, problem.num_replicas) == (2, -1, -1, 0)


def test_running_tasks_cannot_be_rejected_and_rejected_ones_are():
    """A penalty does not help a running task; a rejected one needs it."""
    assert problem_of(running(reject_penalty=1)).rejectable.tolist() == [False]
    found = running({"rejected": True}, transfers=(), reject_penalty=1)
    del found["state"]["tasks"][0]["choice"], found["state"]["tasks"][0]["segments"]
    problem = problem_of(found)
    assert (problem.rejectable.tolist(), problem.state_mode.tolist()) == ([True], [REJECTED])
    del found["tasks"][0]["reject_penalty"]
    with pytest.raises(InputError, match="task 't' may not be rejected"):
        problem_of(found)


def test_running_streams_and_explicit_modes():
    """The route of a stream is part of the mode; an explicit mode is named."""
    found = running({"choice": {"inputs": [{"dataset": "far", "access": "streamed", "route": ["l"]}]}}, ())
    found["datasets"][1]["streamable"] = True
    # Modes: near on 1 and 2 devices, then far staged and streamed on 1, then on 2.
    assert problem_of(found).state_mode.tolist() == [3]
    modes = [{"id": name, "uses": [{"node": "n", "devices": 1}], "duration_ticks": 10} for name in "ab"]
    found = running({"choice": {"mode": "b"}}, ())
    found["tasks"] = [{"id": "t", "modes": modes}]
    assert problem_of(found).state_mode.tolist() == [1]


@pytest.mark.parametrize(
    ("entry", "task", "reason"),
    [
        (
            {"segments": [{"uses": [{"node": "n", "devices": 1}], "start": -1, "end": 8}]},
            {},
            "must end at 9, got 8",
        ),
        (
            {"segments": [{"uses": [{"node": "n", "devices": 5}], "start": 0, "end": 9}]},
            {},
            "none of its modes",
        ),
        ({"choice": {"inputs": [{"dataset": "near", "access": "staged"}]}}, {}, "none of its modes"),
        ({}, {"min_utility": 1, "datasets": ["near"]}, "none of its modes"),
        ({}, {"budget_usd": 0.4}, "none of its modes"),
    ],
)
def test_faults(entry, task, reason):
    """Filters apply to running tasks too, with the money that they would cost."""
    with pytest.raises(InputError, match=reason) as caught:
        problem_of(running(entry, **task))
    assert caught.value.faults[0].path == "state.tasks[0]"


def test_all_faults_at_once():
    """A running task outside its modes and a route that visits a site twice."""
    round_trip = {**BROUGHT, "route": ["l", "back", "l"]}
    found = running({"choice": {"inputs": [{"dataset": "near", "access": "staged"}]}}, (round_trip,))
    found["links"].append({"id": "back", "from": "here", "to": "there", "bandwidth_gbps": 1})
    with pytest.raises(InputError) as caught:
        problem_of(found)
    assert [fault.path for fault in caught.value.faults] == ["state.tasks[0]", "state.transfers[0].route"]
