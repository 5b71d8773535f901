"""Modes of single tasks, derived by hand; the base instance stands in support/physics.py."""

import pytest
from support.physics import changed, document, problem_of, shown

ONE = ("near local", {"n": 1}, 10, 50, 400)
TWO = ("near local", {"n": 2}, 7, 70, 400)
# near: utility 0.8 * 0.5 = 400 permille. One device: 6000/10 = 600 s = 10 ticks, $3 * 10/60 = $0.50 = 50 units.
# Two devices: 6000/16 = 375 s = 6.25 -> 7 ticks, billed as 7: $3 * 2 * 7/60 = $0.70.


def far(**keys):
    """A task on the dataset that lies at the other site; ``keys`` change that dataset."""
    found = changed(datasets=["far"], device_counts=[1])
    found["datasets"][1].update(keys)
    return found


def test_every_count_with_a_rate_is_a_mode():
    """Durations and money of the base instance."""
    assert shown(problem_of(document())) == [ONE, TWO]


@pytest.mark.parametrize(
    ("samples", "ticks"),
    [(0, 1), (1, 1), (600, 1), (600.01, 2), (6000, 10), (6000.000001, 11), (5999.999999, 10)],
)
def test_durations_round_up_exactly(samples, ticks):
    """600 samples fill a tick of one device; nothing is shorter than a tick."""
    problem = problem_of(changed(samples=samples, device_counts=[1]))
    assert problem.duration.tolist() == [ticks]


def test_set_up_belongs_to_the_run_and_is_billed():
    """600 s + 0.5 s are 11 ticks, $3 * 11/60 = $0.55."""
    problem = problem_of(changed(setup_s={"gpu": 0.5}, device_counts=[1]))
    assert shown(problem) == [("near local", {"n": 1}, 11, 55, 400)]


def test_poor_data_need_more_work():
    """kappa 1, u 0.4: 6000 * 1.6 = 9600 samples: 960 s = 16 ticks or 600 s = 10 ticks."""
    assert problem_of(changed(kappa=1)).duration.tolist() == [16, 10]


def test_the_rounded_utility_enters_the_work():
    """Relevance 0.3335 is 334 permille: 6000 * (1 + 10 * 0.666) / 10 s = 76.6 ticks."""
    found = changed(kappa=10, device_counts=[1])
    found["datasets"][0].update(relevance={"vision": 0.3335}, quality=1)
    problem = problem_of(found)
    assert (problem.utility.tolist(), problem.duration.tolist()) == ([334], [77])


@pytest.mark.parametrize(
    ("relevance", "quality", "permille"), [(0.0005, 1, 1), (0.00049, 1, 0), (0.67, 0.75, 503)]
)
def test_utility_rounds_half_up(relevance, quality, permille):
    """0.5 -> 1, 0.49 -> 0, 502.5 -> 503."""
    found = document()
    found["datasets"][0].update(relevance={"vision": relevance}, quality=quality)
    assert set(problem_of(found).utility.tolist()) == {permille}


def test_money_of_device_time_rounds_half_up():
    """$1.83 an hour for 10 minutes is 30.5 units."""
    found = changed(device_counts=[1])
    found["nodes"][0]["usd_per_device_hour"] = 1.83
    assert problem_of(found).money.tolist() == [31]
    found["nodes"][0]["usd_per_device_hour"] = 1.829
    assert problem_of(found).money.tolist() == [30]


def test_remote_data_are_staged_and_streamed_if_they_may():
    """The link takes 4 s + 80 Gbit / 1 Gbit/s = 84 s = 2 ticks and $1; a stream pays it in every run."""
    staged = ("far staged", {"n": 1}, 10, 50, 1000)
    assert shown(problem_of(far())) == [staged]
    assert shown(problem_of(far(streamable=True))) == [staged, ("far streamed l", {"n": 1}, 10, 150, 1000)]


def test_a_stream_lasts_as_long_as_its_transfer():
    """100 GB: 804 s = 14 ticks > 10; the devices are billed for 14: 70 + $10 egress."""
    streamed = ("far streamed l", {"n": 1}, 14, 1070, 1000)
    assert shown(problem_of(far(streamable=True, size_gb=100)))[1] == streamed


def test_a_dataset_that_no_link_reaches_gives_no_mode():
    """Without the link only the local dataset is left."""
    found = changed(datasets=["far", "near"])
    found["links"] = []
    assert shown(problem_of(found)) == [ONE, TWO]


def test_at_a_home_site_data_are_local_only():
    """A dataset at both sites is neither staged nor streamed."""
    assert shown(problem_of(far(streamable=True, sites=["here", "there"]))) == [
        ("far local", {"n": 1}, 10, 50, 1000)
    ]


def test_per_use_prices_are_in_the_mode_and_once_prices_are_not():
    """$0.125 is 12.5 -> 13 units a use."""
    local = {"sites": ["here"], "price_usd": 0.125}
    per_use, once = problem_of(far(**local)), problem_of(far(**local, pricing="once"))
    assert (per_use.money.tolist(), per_use.num_purchases) == ([63], 0)
    assert (once.money.tolist(), once.purchase_cost.tolist(), once.buys(0)) == ([50], [13], [0])


def test_candidates_default_to_all_relevant_data():
    """null: every dataset with relevance above 0; []: no data, utility 1000."""
    found = changed(datasets=None, device_counts=[1])
    assert [row[0] for row in shown(problem_of(found))] == ["near local", "far staged"]
    found["datasets"][1]["relevance"] = {"text": 1}
    assert [row[0] for row in shown(problem_of(found))] == ["near local"]
    assert shown(problem_of(changed(datasets=[], device_counts=[1]))) == [("", {"n": 1}, 10, 50, 1000)]


def test_a_listed_dataset_is_a_candidate_whatever_its_relevance():
    """Relevance 0 gives utility 0 and, with kappa 1, double work."""
    found = changed(datasets=["near"], kappa=1, device_counts=[1])
    found["datasets"][0]["relevance"] = {}
    assert shown(problem_of(found)) == [("near local", {"n": 1}, 20, 100, 0)]


def test_the_domain_of_the_task_wins():
    """The task asks for text, its model for vision."""
    found = changed(domain="text", device_counts=[1])
    found["datasets"][0]["relevance"] = {"vision": 0.8, "text": 0.2}
    assert problem_of(found).utility.tolist() == [100]


@pytest.mark.parametrize(
    ("change", "kept"),
    [
        ({"memory_gb_per_device": 16}, 2),
        ({"memory_gb_per_device": 16.01}, 0),
        ({"sites": ["here"]}, 2),
        ({"sites": ["there"]}, 0),
        ({"min_utility": 0.4}, 2),
        ({"min_utility": 0.4001}, 0),
        ({"device_counts": [2, 4]}, 1),
        ({"device_counts": [4]}, 0),
        ({"budget_usd": 0.5}, 1),
        ({"budget_usd": 0.499}, 0),
        ({"budget_usd": 0.709}, 2),
        ({"extra": {"cpu": 0}}, 2),
        ({"extra": {"cpu": 0.5}}, 0),
    ],
)
def test_filters(change, kept):
    """Modes left of two: memory, sites, utility (rounded up: 0.4001 asks for 401), counts, budget, extra."""
    assert problem_of(changed(**change)).num_modes == kept


def test_memory_without_limit():
    """A device type without memory_gb has room for everything."""
    found = changed(memory_gb_per_device=10**6)
    del found["device_types"][0]["memory_gb"]
    assert problem_of(found).num_modes == 2


def test_extra_demands_are_of_the_whole_run():
    """2.5 of 4 cpu and 1 of 1 fpga; in the least unit that makes 4 and 2.5 whole, 5 of 8."""
    found = changed(extra={"cpu": 2.5, "fpga": 1}, device_counts=[2])
    found["nodes"][0]["extra"] = {"cpu": 4, "fpga": 1, "idle": 3}
    problem = problem_of(found)
    assert problem.resource_label == ("devices of n", "cpu of n", "fpga of n")
    assert list(problem.uses(0)) == [(0, 2), (1, 5), (2, 1)]
    assert problem.cap_amount.tolist() == [2, 8, 1]
    found["nodes"][0]["extra"] = {"cpu": 2.4, "fpga": 1}
    assert problem_of(found).num_modes == 0


def test_reference_hours_are_work_at_the_rate_of_the_reference():
    """0.5 h on two devices: 1800 s * 16/s = 28800 samples, 2880 s = 48 ticks on one; set-up is not part of it."""
    reference = {"device_type": "gpu", "devices": 2}
    found = changed(samples=None, reference_hours=0.5, reference=reference, setup_s={"gpu": 60})
    assert problem_of(found).duration.tolist() == [49, 31]
    found["tasks"][0]["reference"] = {"device_type": "gpu", "devices": 4}
    assert problem_of(found).num_modes == 0


def test_several_inputs_choose_different_data():
    """Utilities 400 and 1000, shares 3 and 1: (1200 + 1000)/4 = 550; the other way round 850."""
    first = {"datasets": ["near", "far"], "share": 3}
    second = {"datasets": ["near", "far"]}
    rows = shown(problem_of(changed(datasets=None, inputs=[first, second], device_counts=[1])))
    assert rows == [
        ("near local, far staged", {"n": 1}, 10, 50, 550),
        ("far staged, near local", {"n": 1}, 10, 50, 850),
    ]


def test_least_utilities_of_inputs_and_task():
    """Each input has its own least utility, the task one for the mean (rounded half up again)."""
    inputs = [{"datasets": ["near"], "min_utility": 0.4}, {"datasets": ["far"], "share": 1.0025}]
    # (400 + 1.0025 * 1000) / 2.0025 = 700.37... -> 700
    found = changed(datasets=None, inputs=inputs, device_counts=[1], min_utility=0.7)
    assert problem_of(found).utility.tolist() == [700]
    found["tasks"][0]["min_utility"] = 0.7001
    assert problem_of(found).num_modes == 0
    found["tasks"][0].update(min_utility=0, inputs=[{**inputs[0], "min_utility": 0.401}, inputs[1]])
    assert problem_of(found).num_modes == 0


def test_several_streams_last_as_long_as_the_longest():
    """84 s and 804 s: 14 ticks; egress of both; a channel of the shared link for each."""
    found = changed(datasets=None, inputs=[{"datasets": ["far"]}, {"datasets": ["big"]}], device_counts=[1])
    found["links"][0]["channels"] = 2
    found["datasets"][1]["streamable"] = True
    found["datasets"].append({**found["datasets"][1], "id": "big", "size_gb": 100})
    problem = problem_of(found)
    both = shown(problem)[-1]
    assert both == ("far streamed l, big streamed l", {"n": 1}, 14, 70 + 100 + 1000, 1000)
    assert list(problem.uses(3)) == [(0, 1), (1, 2)]
    assert [row[0] for row in shown(problem)] == [
        "far staged, big staged",
        "far staged, big streamed l",
        "far streamed l, big staged",
        "far streamed l, big streamed l",
    ]


def explicit(*modes, **keys):
    """A task with modes written out, on the base nodes and a second node n2."""
    found = document(tasks=[{"id": "t", "modes": list(modes), **keys}])
    found["nodes"].append({**found["nodes"][0], "id": "n2"})
    return found


def test_explicit_modes_come_in_unchanged():
    """usd is rounded to units, data prices and egress are added, a stream may take longer."""
    plain = {
        "id": "a",
        "uses": [{"node": "n2", "devices": 2}],
        "duration_ticks": 5,
        "usd": 1.005,
        "utility": 700,
    }
    data = {"id": "b", "uses": [{"node": "n", "devices": 1}], "duration_ticks": 1, "datasets": ["far"]}
    found = explicit(plain, data)
    found["datasets"][1].update(streamable=True, price_usd=0.07)
    problem = problem_of(found)
    assert shown(problem) == [
        ("", {"n2": 2}, 5, 101, 700),
        ("far staged", {"n": 1}, 1, 7, 1000),
        ("far streamed l", {"n": 1}, 2, 107, 1000),
    ]
    assert problem.explicit.tolist() == [0, 1, 1]


def test_explicit_modes_on_several_nodes():
    """Both nodes are held; the order of writing does not matter."""
    uses = [{"node": "n2", "devices": 2}, {"node": "n", "devices": 1}]
    problem = problem_of(explicit({"id": "a", "uses": uses, "duration_ticks": 5}))
    assert list(problem.uses(0)) == [(0, 1), (1, 2)]


@pytest.mark.parametrize(
    ("keys", "kept"),
    [
        ({}, ["a", "b"]),
        ({"min_utility": 0.7005}, ["b"]),
        ({"budget_usd": 1}, ["b"]),
        ({"sites": ["there"]}, []),
    ],
)
def test_filters_of_explicit_modes(keys, kept):
    """Utility, budget and sites filter them too; one that is larger than its node does not exist."""
    modes = [
        {"id": "a", "uses": [{"node": "n", "devices": 2}], "duration_ticks": 5, "usd": 2, "utility": 700},
        {"id": "b", "uses": [{"node": "n", "devices": 1}], "duration_ticks": 5, "usd": 1},
        {"id": "large", "uses": [{"node": "n", "devices": 3}], "duration_ticks": 5},
    ]
    problem = problem_of(explicit(*modes, **keys))
    assert [problem.instance.tasks[0].modes[index].id for index in problem.explicit.tolist()] == kept


def test_seats_are_held_once_per_run_and_channels_by_streams_only():
    """Staging holds no channel in the mode; its transfer does."""
    found = far(streamable=True, max_readers=3)
    found["links"][0]["channels"] = 1
    problem = problem_of(found)
    assert problem.resource_label == ("devices of n", "channels of l", "seats of far")
    assert [list(problem.uses(mode)) for mode in range(2)] == [[(0, 1), (2, 1)], [(0, 1), (1, 1), (2, 1)]]
    assert problem.cap_amount.tolist() == [2, 1, 3]


def test_the_availability_of_data_rounds_up():
    """61 s is tick 2; it binds reading and the transfer, not the release."""
    problem = problem_of(far(available_s=61))
    assert (problem.available.tolist(), problem.replica_available.tolist()) == ([2], [2])
    assert problem.release.tolist() == [0]


def test_huge_numbers_stay_exact():
    """Rates and prices whose common denominators do not fit 64 bits are computed in Python integers."""
    found = changed(samples=123456789.123456789, kappa=0.123456789, device_counts=[1])
    found["throughputs"][0]["measured"] = {"1": 0.1234567890123}
    found["nodes"][0]["usd_per_device_hour"] = 0.12345678901234567
    # u = 400: work = 123456789.123456789 * (1 + 0.123456789 * 0.6) samples at 0.1234567890123 samples/s.
    from fractions import Fraction
    from math import ceil, floor

    work = Fraction("123456789.12345679") * (1 + Fraction("0.123456789") * Fraction(6, 10))
    ticks = ceil(work / Fraction("0.1234567890123") / 60)
    money = floor(Fraction("0.12345678901234568") * ticks * 60 / 3600 * 100 + Fraction(1, 2))
    problem = problem_of(found)
    assert (problem.duration.tolist(), problem.money.tolist()) == ([ticks], [money])
