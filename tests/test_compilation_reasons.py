"""Why there is no plan, and what was left out, in words."""

import pytest
from support.physics import changed, document, problem_of


def reasons(found, task="t"):
    """The reasons that a compiled document gives, joined."""
    return "; ".join(problem_of(found).impossible.get(task, ()))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"memory_gb_per_device": 17}, ["memory: a device needs 17 GB", "nodes n "]),
        ({"sites": ["there"]}, ["none is at an allowed site"]),
        ({"min_utility": 0.5}, ["datasets near (utility below 500 permille)"]),
        ({"budget_usd": 0.1}, ["2 modes over the budget of $0.1"]),
        ({"extra": {"cpu": 2}}, ["extra: cpu 2"]),
        ({"device_counts": [3]}, ["no throughput of net for an allowed device count"]),
        ({"datasets": None, "domain": "text"}, ["(no candidate)"]),
        (
            {"samples": None, "reference_hours": 1, "reference": {"device_type": "gpu", "devices": 7}},
            ["net has no throughput on its reference gpu"],
        ),
        ({"deadline_s": 419}, ["window: 2 of 2 modes do not end in time", "shortest duration 7, deadline 6"]),
        ({"release_s": 61, "deadline_s": 500}, ["earliest start 2"]),
    ],
)
def test_reasons_of_a_task(change, words):
    """Memory, sites, utility, budget, extra, throughput, reference, window."""
    told = reasons(changed(**change))
    assert all(word in told for word in words), told


def test_no_route():
    """The dataset lies elsewhere and nothing leads here."""
    found = changed(datasets=["far"])
    found["links"] = []
    assert "datasets far at site here (no route)" in reasons(found)


def test_all_combinations_too_poor():
    """Each input would do, the mean does not."""
    inputs = [{"datasets": ["near"]}, {"datasets": ["near"]}]
    assert "all combinations of datasets" in reasons(changed(datasets=None, inputs=inputs))


def test_calendars():
    """Windows of 6 ticks hold no run of 7; with a gap filled they do."""
    found = changed()
    found["nodes"][0]["availability"] = [[0, 360, 2], [400, 760, 2]]
    assert "capacity: 2 of 2 modes never find enough (devices of n)" in reasons(found)
    found["nodes"][0]["availability"][1][0] = 360
    assert reasons(found) == ""


def test_calendars_within_the_window():
    """The node opens at tick 10; a deadline at 17 leaves 7 ticks, at 16 only 6."""
    found = changed(deadline_s=17 * 60)
    found["nodes"][0]["availability"] = [[600, 6000, 2]]
    assert reasons(found) == ""
    found["tasks"][0]["deadline_s"] = 16 * 60
    assert "capacity" in reasons(found)


def test_nodes_that_never_have_enough_devices():
    """Two of two are asked for, one is ever there; the mode exists, but there is no plan."""
    found = changed(device_counts=[2])
    found["nodes"][0]["availability"] = [[0, 10**6, 1]]
    problem = problem_of(found)
    assert problem.num_modes == 1
    assert "never find enough" in problem.impossible["t"][0]


def test_storage():
    """10 GB do not fit 9.99 GB."""
    found = changed(datasets=["far"])
    found["sites"][0]["storage_gb"] = 9.99
    assert "storage: 2 of 2 modes" in reasons(found)
    found["sites"][0]["storage_gb"] = 10
    assert reasons(found) == ""


def test_two_streams_over_one_channel():
    """The mode exists and can never run."""
    found = changed(datasets=None, inputs=[{"datasets": ["far"]}, {"datasets": ["more"]}], device_counts=[1])
    found["links"][0]["channels"] = 1
    found["datasets"][1]["streamable"] = True
    found["datasets"].append({**found["datasets"][1], "id": "more"})
    found["sites"][0]["storage_gb"] = 0
    told = reasons(found)
    assert "capacity: 1 of " in told
    assert "storage: 3 of " in told


def test_precedence_narrows_windows():
    """7 ticks, a lag of 3, and 7 more end at 17."""
    found = changed()
    found["tasks"].append({**found["tasks"][0], "id": "next", "after": [{"id": "t", "lag_s": 180}]})
    found["tasks"][1]["deadline_s"] = 17 * 60
    assert problem_of(found).impossible == {}
    found["tasks"][1]["deadline_s"] = 16 * 60
    assert set(problem_of(found).impossible) == {"t", "next"}


@pytest.mark.parametrize(
    ("limit", "broken"),
    [
        ({"cost": 0.5}, False),
        ({"cost": 0.49}, True),  # the cheaper mode costs 50 units
        ({"makespan": 7}, False),
        ({"makespan": 6}, True),
        ({"weighted_completion": 7}, False),
        ({"weighted_completion": 6.9}, True),
        ({"utility_loss": 600}, False),
        ({"utility_loss": 599}, True),
    ],
)
def test_limits(limit, broken):
    """Each task alone, as early and as cheap as it can be."""
    problem = problem_of(document(objective={"levels": [{"makespan": 1}], "limits": limit}))
    assert ("" in problem.impossible) == broken


def test_a_limit_that_rejection_can_meet_is_not_impossible():
    """The task may go."""
    objective = {"levels": [{"rejected": 1}], "limits": {"cost": 0.1}}
    found = changed(reject_penalty=1)
    found["objective"] = objective
    assert problem_of(found).impossible == {}


def test_rejectable_tasks_without_modes_are_rejected_with_a_note():
    """Its successor goes with it; neither makes the instance impossible."""
    found = changed(reject_penalty=1, memory_gb_per_device=17)
    after = {**found["tasks"][0], "id": "next", "after": [{"id": "t"}], "memory_gb_per_device": 1}
    found["tasks"].append(after)
    found["objective"] = {"levels": [{"rejected": 1}]}
    problem = problem_of(found)
    assert problem.impossible == {}
    assert problem.notes[0].startswith("Task t must be rejected, and with it next: no mode: nodes n (memory")


def test_dropped_options_are_told():
    """A node that is too small is left out with a note; the other one runs the task."""
    found = changed(memory_gb_per_device=12)
    found["device_types"].append({"id": "small", "memory_gb": 8})
    found["nodes"].append({"id": "weak", "site": "here", "device_type": "small", "devices": 1})
    (note,) = problem_of(found).notes
    assert note.startswith("Task t: dropped nodes weak (memory: a device needs 12 GB)")


def test_notes_do_not_flood():
    """Thirty tasks lose an option; twenty are told."""
    base = changed(budget_usd=0.5)["tasks"][0]
    found = document(tasks=[{**base, "id": f"t{number}"} for number in range(30)])
    notes = problem_of(found).notes
    assert len(notes) == 21
    assert notes[-1] == "Only the first 20 tasks with dropped options are listed."


def test_nothing_to_tell():
    """An instance without dropped options has no notes; one without tasks is fine."""
    assert problem_of(document()).notes == ()
    problem = problem_of(document(tasks=[]))
    assert (problem.num_tasks, problem.num_modes, dict(problem.impossible)) == (0, 0, {})


def test_empty_worlds():
    """No nodes, no datasets or no links: reasons, not exceptions."""
    assert "no throughput" not in reasons(document(nodes=[]))
    assert problem_of(document(nodes=[])).impossible["t"]
    assert "datasets far at site here" in reasons({**changed(datasets=["far"]), "links": []})
    assert problem_of({**changed(datasets=[]), "datasets": []}).num_modes == 2
