"""The instance model in Python: exact numbers, identity, frozen parts, checked copies."""

import copy
import hashlib
import json
import pickle
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optalloc.errors import InputError
from optalloc.instance import (
    TERM_NAMES,
    Dataset,
    DeviceType,
    Instance,
    Link,
    Mode,
    Model,
    Node,
    Number,
    Objective,
    Site,
    Task,
    Throughput,
    Use,
    read_instance,
    read_text,
    write_instance,
)
from optalloc.problem import TERMS
from optalloc.quantities import as_number


def small() -> Instance:
    """Two sites, one dataset, one node, one task."""
    return Instance(
        name="small",
        sites=[Site(id="a"), Site(id="b", storage_gb=Decimal("0.1"))],
        links=[Link(id="l", from_="a", to="b", bandwidth_gbps=0.1, both_ways=True)],
        datasets=[Dataset(id="d", size_gb=3, sites=["a"], relevance={"vision": 0.7})],
        device_types=[DeviceType(id="gpu")],
        nodes=[Node(id="n", site="b", device_type="gpu", devices=4)],
        models=[Model(id="m", domain="vision")],
        throughputs=[Throughput(model="m", device_type="gpu", measured={1: 2.5, "2": 4})],
        tasks=[Task(id="t", model="m", samples=100)],
    )


@pytest.mark.parametrize(
    ("given_", "text", "value"),
    [
        (3, "3", Fraction(3)),
        (0.1, "0.1", Fraction(1, 10)),
        (1e22 / 1e10, "1000000000000.0", Fraction(10**12)),
        (2.5e-7, "2.5e-07", Fraction(1, 4_000_000)),
        (Decimal("1.50"), "1.50", Fraction(3, 2)),
        (Decimal("1E+3"), "1E+3", Fraction(1000)),
        (np.float64(0.1), "0.1", Fraction(1, 10)),
        (np.int64(7), "7", Fraction(7)),
        (-0.0, "-0.0", Fraction(0)),
    ],
)
def test_numbers_given_in_python_are_exact(given_: object, text: str, value: Fraction) -> None:
    """Ints, floats (by their shortest text), Decimals and numpy scalars become the decimal written."""
    number = as_number(given_)
    assert (number.text, Fraction(number)) == (text, value)


@pytest.mark.parametrize(
    "wrong",
    [
        True,
        "3",
        None,
        float("nan"),
        float("inf"),
        Decimal("NaN"),
        Decimal("Infinity"),
        Fraction(1, 3),
        1j,
        [1],
    ],
)
def test_other_things_are_not_numbers(wrong: object) -> None:
    """Text, booleans, NaN, infinities and inexact fractions are refused."""
    with pytest.raises(ValueError, match=r"number|an int, a float"):
        as_number(wrong)


LARGE = [2**53 + 1, 1e16, Decimal("9007199254740992.0001"), 10**30, -(2**54)]
LARGE += [
    Decimal("1e999999"),
    Decimal("-1e999999999"),
    Number("1e999999999"),
    Number("-1e99999999999999999999"),
]
LARGE += [Decimal("9007199254740992." + "0" * 28 + "1")]  # 45 digits, of which arithmetic keeps 28


@pytest.mark.parametrize("large", LARGE)
def test_magnitudes_past_two_to_the_53_are_refused(large: object) -> None:
    """Larger numbers lose units in solvers that compute in doubles."""
    with pytest.raises(ValueError, match=r"2\^53"):
        as_number(large)
    assert as_number(2**53) == 2**53
    with pytest.raises(InputError, match="devices: must not exceed 2"):
        Use(node="n", devices=10**5000)


@pytest.mark.parametrize("zeros", [0, 3, 30, 300])
def test_exponents_of_any_length_are_read(zeros: int) -> None:
    """A number that Decimal cannot hold keeps its literal and its sign, and is out of range on the right side."""
    far = "9" * 10 + "0" * zeros
    assert Number(f"1e{far}") > 10**30 > Number(f"-2.5E+{far}")
    assert 0 < Number(f"1e-{far}") < Decimal("1e-30")
    assert as_number(Number(f"0e{far}")) == 0
    assert str(Number(f"-2.5E+{far}")) == f"-2.5E+{far}"
    with pytest.raises(ValueError, match="more than 30 decimals"):
        as_number(Number(f"1e-{far}"))


def test_number_is_a_decimal_that_keeps_its_literal() -> None:
    """Equality is by value; copies, pickles and texts keep the literal."""
    number = Number("1.500")
    assert number == Number("1.5") == Decimal("1.5") == 1.5
    assert hash(number) == hash(Number("1.5"))
    for same in (copy.copy(number), copy.deepcopy(number), pickle.loads(pickle.dumps(number))):
        assert same.text == str(same) == "1.500"
    assert repr(number) == "Number('1.500')"
    for wrong in ("", "1.", ".5", "01", "+1", "1_0", " 1", "NaN", "٣", "0x1"):
        with pytest.raises(ValueError, match="written as in JSON"):
            Number(wrong)


def test_defaults() -> None:
    """Missing keys mean what the format says."""
    instance = small()
    assert (instance.tick_seconds, instance.money_unit_usd) == (60, Decimal("0.01"))
    task, data, node = instance.tasks[0], instance.datasets[0], instance.nodes[0]
    assert (task.weight, task.kappa, task.release_s, task.min_utility) == (1, 0, 0, 0)
    assert (task.due_s, task.deadline_s, task.reject_penalty, task.datasets) == (None, None, None, None)
    assert (data.quality, data.price_usd, data.pricing, data.streamable) == (1, 0, "per_use", False)
    assert (data.max_readers, node.availability, node.usd_per_device_hour) == (None, None, 0)
    assert (instance.models[0].compression, instance.models[0].scaling) == (1, None)
    assert (instance.sites[0].storage_gb, instance.device_types[0].memory_gb) == (None, None)
    assert instance.objective.levels == ({"weighted_completion": 1, "cost": 1},)
    assert instance.state is None
    assert instance.meta == {}


def test_an_empty_instance_is_an_instance() -> None:
    """No tasks, nothing to do."""
    assert Instance(name="empty").tasks == ()


def test_terms_are_those_of_the_problem() -> None:
    """The model and the compiled problem know the same terms in the same order."""
    assert TERM_NAMES == TERMS


def test_document_holds_only_what_was_set() -> None:
    """Defaults are not written, an explicit null is; the format always is."""
    document = Instance(name="x", sites=[Site(id="a", storage_gb=None)]).document()
    assert document == {
        "format": "optalloc-instance/1",
        "name": "x",
        "sites": [{"id": "a", "storage_gb": None}],
    }


def test_sha256_is_of_the_canonical_form() -> None:
    """Sorted keys, no white space, UTF-8, numbers as written: by hand for a small instance."""
    text = '{"tick_seconds": 1.50, "name": "é \\"x", "format": "optalloc-instance/1", "meta": {"b": 1e2}}'
    canonical = '{"format":"optalloc-instance/1","meta":{"b":1e2},"name":"é \\"x","tick_seconds":1.50}'
    instance = read_text(text)
    assert instance.canonical() == canonical
    assert instance.sha256 == hashlib.sha256(canonical.encode()).hexdigest()
    assert read_text(canonical).sha256 == instance.sha256
    assert read_text(text.replace("1.50", "1.5")).sha256 != instance.sha256


def test_canonical_form_agrees_with_the_json_module() -> None:
    """Where no literal is unusual, the canonical form is what the standard library writes."""
    instance = small()
    plain = json.loads(instance.canonical())
    assert (
        json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False) == instance.canonical()
    )


def test_all_links_expands_both_ways() -> None:
    """The twin follows its link, runs the other way and is no shorthand itself."""
    there, back = small().all_links
    assert (there.id, there.from_, there.to) == ("l", "a", "b")
    assert (back.id, back.from_, back.to) == ("l:back", "b", "a")
    assert not there.both_ways
    assert not back.both_ways
    assert back.bandwidth_gbps.text == "0.1"


def test_instances_do_not_change() -> None:
    """Attributes, mappings and meta are frozen."""
    instance = small().replace(meta={"list": [1, {"a": 2}]})
    with pytest.raises(ValueError, match="frozen"):
        instance.tasks[0].weight = Number("2")  # type: ignore[misc]
    for mapping in (instance.datasets[0].relevance, instance.meta, instance.meta["list"][1]):
        with pytest.raises(TypeError, match="cannot be changed"):
            mapping["vision"] = 1
        with pytest.raises(TypeError, match="cannot be changed"):
            mapping.update(a=1)
    assert isinstance(instance.meta["list"], tuple)


def test_replace_is_checked() -> None:
    """A changed copy keeps what was set and is checked like a new instance."""
    instance = small()
    other = instance.replace(name="other", objective={"levels": [{"makespan": 1}]})
    assert other.name == "other"
    assert other.tasks is instance.tasks or other.tasks == instance.tasks
    assert other.sha256 != instance.sha256
    assert instance.replace() == instance
    with pytest.raises(InputError, match=r"tick_seconds: must be greater than 0, got 0"):
        instance.replace(tick_seconds=0)
    with pytest.raises(InputError, match=r"tasks\[0\].model: no model has the id 'm'"):
        instance.replace(models=[], throughputs=[])
    assert instance.tasks[0].replace(weight=2).weight == 2


def test_instances_copy_and_pickle() -> None:
    """Copies and pickles are equal and have the same hash."""
    instance = small()
    for same in (copy.deepcopy(instance), pickle.loads(pickle.dumps(instance)), instance.model_copy()):
        assert same == instance
        assert same.sha256 == instance.sha256
        assert hash(same) == hash(instance)


def test_parts_report_all_their_faults() -> None:
    """A part built in Python names every wrong field."""
    with pytest.raises(InputError) as caught:
        Task(id="", weight=-1, kappa="x", speed=3)
    assert [fault.path for fault in caught.value.faults] == ["id", "weight", "kappa", "speed"]


def test_parts_may_be_given_as_dicts() -> None:
    """Dicts and parts mix; in dicts the file's names serve."""
    link = {"id": "l", "from": "a", "to": "b", "bandwidth_gbps": 1}
    instance = Instance(name="x", sites=[Site(id="a"), {"id": "b"}], links=[link])
    assert instance.links[0].from_ == "a"


def test_faults_of_shape_and_meaning_come_together() -> None:
    """One wrong type does not hide a dangling id elsewhere."""
    with pytest.raises(InputError) as caught:
        Instance(name="x", tick_seconds="1", nodes=[Node(id="n", site="s", device_type="g", devices=1)])
    paths = [fault.path for fault in caught.value.faults]
    assert paths == ["tick_seconds", "nodes[0].site", "nodes[0].device_type"]


def test_explicit_modes_in_python() -> None:
    """Modes can be written out with plain numbers."""
    instance = small()
    mode = Mode(id="m", uses=[Use(node="n", devices=2)], duration_ticks=np.int64(3), usd=1.25, datasets=["d"])
    task = Task(id="e", modes=[mode], reject_penalty=2.5)
    other = instance.replace(tasks=[task], objective=Objective(levels=[{"rejected": 1}]))
    assert other.document()["tasks"][0]["modes"][0]["duration_ticks"] == 3
    assert read_instance(other.document()) == other


def test_importing_the_model_is_light() -> None:
    """Only pydantic is needed: no numpy, no solver."""
    heavy = "{'numpy', 'ortools', 'pyomo', 'highspy', 'networkx'}"
    code = f"import sys, optalloc.instance; print(sorted({heavy} & set(sys.modules)))"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert result.stdout.strip() == "[]"


TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)
LITERAL = st.from_regex(r"(0|[1-9][0-9]{0,5})(\.[0-9]{1,6})?([eE][+-]?[0-6])?", fullmatch=True).map(Number)
JSON = st.recursive(
    st.none() | st.booleans() | TEXT | LITERAL | st.integers(-(2**53), 2**53),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@st.composite
def documents(draw: st.DrawFn) -> Instance:
    """Instances with odd ids and literals."""
    sites = draw(st.lists(TEXT, min_size=2, max_size=4, unique=True))
    site = st.sampled_from(sites)
    amount = draw(LITERAL)
    share = st.sampled_from([Number("0.0"), Number("1e-3"), Number("0.250"), Number("1")])
    nodes = draw(st.lists(TEXT, min_size=1, max_size=3, unique=True))
    modes = [
        Mode(
            id=draw(TEXT),
            uses=[Use(node=draw(st.sampled_from(nodes)), devices=1)],
            duration_ticks=2,
            usd=amount,
        )
    ]
    tasks = [Task(id=name, weight=draw(LITERAL), modes=modes) for name in draw(st.sets(TEXT, max_size=3))]
    return Instance(
        name=draw(TEXT),
        sites=[Site(id=name, storage_gb=draw(st.none() | LITERAL)) for name in sites],
        datasets=[
            Dataset(id=name, size_gb=draw(LITERAL), sites=[draw(site)], relevance={draw(TEXT): draw(share)})
            for name in draw(st.sets(TEXT, max_size=3))
        ],
        device_types=[DeviceType(id="g")],
        nodes=[
            Node(id=name, site=draw(site), device_type="g", devices=2, extra={"cpu": draw(LITERAL)})
            for name in nodes
        ],
        tasks=tasks,
        meta=draw(st.dictionaries(TEXT, JSON, max_size=3)),
    )


@settings(max_examples=25, deadline=None)
@given(instance=documents())
def test_read_of_write_is_the_same(instance: Instance, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Every instance survives its file, plain and compressed, whatever its ids and literals."""
    folder = tmp_path_factory.getbasetemp()
    for name in ("property.json", "property.json.gz"):
        write_instance(instance, folder / name)
        again = read_instance(folder / name)
        assert again == instance
        assert again.sha256 == instance.sha256
        assert again.document() == instance.document()
