"""Rates: measured, or extended from one device by a scaling model."""

import math
from fractions import Fraction

import pytest
from support.physics import document

from optalloc.compilation.rates import Rates, Ring, ring_step_seconds
from optalloc.errors import InputError
from optalloc.instance import Instance


def rates(measured, scaling=None, **model):
    """Rates of a document whose only model has these throughputs."""
    found = document(
        models=[{"id": "net", "domain": "vision", "scaling": scaling, **model}],
        throughputs=[{"model": "net", "device_type": "gpu", "measured": measured}],
    )
    return Rates(Instance(**found))


def scaling(name, **parameters):
    """The key of a model."""
    return {"name": name, "parameters": parameters}


def rate(table, count):
    """Samples/s on some devices of the only type."""
    return table.rate("net", "gpu", count)


def test_only_measured_counts_exist_without_scaling():
    """2 and 4 are measured, 3 is not invented; 0 means that it does not run."""
    table = rates({"2": 16, "4": 0})
    assert [rate(table, count) for count in (1, 2, 3, 4)] == [None, 16, None, None]
    assert table.counts("net", "gpu", 8) == [2]
    assert table.counts("net", "gpu", 1) == []


def test_measured_rates_need_not_be_monotone():
    """Real tables are kept as they are."""
    assert [rate(rates({"1": 10, "2": 7, "4": 30}), count) for count in (1, 2, 4)] == [10, 7, 30]


def test_linear():
    """n times the rate of one; measured entries override, 0 included."""
    table = rates({"1": 10.5, "2": 12, "4": 0}, scaling("linear"))
    assert [rate(table, count) for count in (1, 2, 3, 4)] == [Fraction(21, 2), 12, Fraction(63, 2), None]
    assert table.counts("net", "gpu", 5) == [1, 2, 3, 5]


def test_no_scaling_without_a_rate_of_one():
    """There is nothing to extend; nor is there if one device does not run."""
    assert rate(rates({"2": 16}, scaling("linear")), 4) is None
    assert rate(rates({"1": 0, "2": 16}, scaling("linear")), 4) is None


def test_amdahl():
    """f = 0.1 serial: T(4)/T(1) = 0.1 + 0.9/4 = 0.325."""
    assert rate(rates({"1": 13}, scaling("amdahl", f=0.1)), 4) == 40


def test_affine_log():
    """T(2)/T(1) = 0.2 + 0.8/2 + 0.03 = 0.63; for 3 the logarithm is the double, exactly."""
    table = rates({"1": 63}, scaling("affine_log", a=0.2, b=0.8, c=0.03))
    assert rate(table, 2) == 100
    relative = Fraction(2, 10) + Fraction(8, 30) + Fraction(3, 100) * Fraction(math.log2(3))
    assert rate(table, 3) == 63 / relative
    assert rate(table, 1) == 63  # as measured, though a + b + 0 = 1 only by chance


def test_ring_without_overlap():
    """32 samples at 16/s: 2 s a step. On 4: 0.5 s and 2*3/4 * 1 GB * 0.5 / (8 Gbit/s = 1 GB/s) = 0.75 s: 25.6/s."""
    table = rates({"1": 16}, scaling("ring", gam=1, batch_samples=32), size_gb=1, compression=0.5)
    assert rate(table, 4) == Fraction(32) / Fraction(125, 100)


def test_ring_with_overlap():
    """gam 2 joins 3 s and 4 s to 5 s exactly, and 1 s and 1 s to sqrt 2 to 60 digits."""
    ring = Ring(size_bytes=Fraction(4), bandwidth=Fraction(1))
    assert ring_step_seconds(Fraction(6), 2, Fraction(2), ring) == 5
    root = ring_step_seconds(Fraction(2), 2, Fraction(2), Ring(Fraction(1), Fraction(1)))
    assert root == Fraction("1.41421356237309504880168872420969807856967187537694807317668")


def test_ring_on_unconnected_devices():
    """Nothing to send is no obstacle; something to send is."""
    assert ring_step_seconds(Fraction(2), 2, Fraction(1), Ring(Fraction(0), Fraction(0))) == 1
    assert ring_step_seconds(Fraction(2), 2, Fraction(1), Ring(Fraction(1), Fraction(0))) is None


@pytest.mark.parametrize("gam", [1, 2, 1.5])
def test_more_overlap_is_never_slower(gam):
    """A larger gam shortens the step: by the order of norms."""
    ring = Ring(Fraction(3), Fraction(2))
    steps = [ring_step_seconds(Fraction(5), 3, Fraction(order), ring) for order in (gam, gam + 1)]
    assert steps[0] >= steps[1] >= max(Fraction(5, 3), Fraction(2))


def test_endless_counts_are_refused():
    """A huge pool with scaling and no device_counts would have as many modes."""
    table = rates({"1": 10}, scaling("linear"))
    assert len(table.counts("net", "gpu", 10_000)) == 10_000
    with pytest.raises(InputError, match=r"1 to 10001 devices.*give device_counts"):
        table.counts("net", "gpu", 10_001)
