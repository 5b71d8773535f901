"""Composed instances: every figure traces back to its source, every rule of the composition holds."""

import csv
import json
import shutil
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from optalloc import instances
from optalloc.compilation import compile as compile_problem
from optalloc.composition import FILES, compose
from optalloc.composition.catalogue import read_catalogue
from optalloc.composition.jobs import read_jobs
from optalloc.composition.layout import cloud_of, pool_count
from optalloc.composition.prices import read_prices
from optalloc.composition.rates import elasticflow_rates, gavel_rates
from optalloc.composition.regions import read_regions
from optalloc.composition.sources import SOURCES, Reader
from optalloc.errors import InputError
from optalloc.instance import Instance

SIZES = (12, 20, 60)


@pytest.fixture(scope="module")
def data(shared: Path) -> Path:
    """Folder of the public data."""
    return shared / "data"


@pytest.fixture(scope="module", params=SIZES)
def composed(request: pytest.FixtureRequest, data: Path) -> Instance:
    """A composed instance of each size."""
    return compose(data, request.param, seed=5)


@pytest.fixture
def copied(data: Path, tmp_path: Path) -> Path:
    """A folder in which single files can be changed."""
    for source in SOURCES:
        shutil.copytree(
            data / source, tmp_path / source, ignore=shutil.ignore_patterns("*_raw", "msr", "raw")
        )
    for path in tmp_path.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return tmp_path


def table(path: Path) -> list[dict[str, str]]:
    """Rows of a source file."""
    with path.open(encoding="utf-8-sig", newline="") as stream:
        return list(csv.DictReader(stream))


def trace(data: Path) -> list[dict[str, str]]:
    """The trace in the order of submission and id."""
    rows = table(data / "itp-elasticflow/sim/cluster06.csv")
    return sorted(rows, key=lambda row: (int(row["submission_time"]), row["job_id"]))


# jobs ------------------------------------------------------------------------------------------------------
def test_tasks_are_consecutive_rows(composed, data):
    """Task k is row offset + k: release, soft due date and device count come from it; no hard deadline."""
    rows = trace(data)[int(composed.meta["offset"]) :]
    start = int(rows[0]["submission_time"])
    assert composed.meta["first_job"] == rows[0]["job_id"]
    for task, row in zip(composed.tasks, rows, strict=False):
        assert task.id.endswith(row["job_id"][:8])
        assert task.release_s == int(row["submission_time"]) - start
        assert task.due_s == int(row["deadline"]) - start
        assert task.deadline_s is None
        assert task.device_counts == (min(8, int(row["num_gpu"])),)
        assert (task.kappa, task.weight in (1, 2, 4)) == (1, True)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("size", [8, 12, 20])
def test_small_windows_are_worth_proving(data, size, seed):
    """Span 2-24 ticks, longest job <= 24, upper median >= 3, device counts mixed and <= 8, releases apart."""
    instance = compose(data, size, seed=seed)
    rows = trace(data)[int(instance.meta["offset"]) :][:size]
    releases = [-(-int(task.release_s) // 1800) for task in instance.tasks]
    ticks = sorted(-(-int(row["duration"]) // 1800) for row in rows)
    counts = {int(row["num_gpu"]) for row in rows}
    assert 2 <= max(releases) - min(releases) <= 24
    assert ticks[-1] <= 24
    assert ticks[size // 2] >= 3
    assert max(counts) <= 8
    assert len(counts) >= 2
    assert len(set(releases)) >= min(4, size / 4)


def test_work_is_the_sources(composed, data):
    """Half keep model, batch and iterations; half do what Gavel measured on V100 in the trace's time."""
    rows = trace(data)[int(composed.meta["offset"]) :]
    gavel = json.loads((data / "gavel/simulation_throughputs.json").read_text(), parse_float=Decimal)
    kept = 0
    for task, row in zip(composed.tasks, rows, strict=False):
        name, batch = task.model.split("@")
        if task.model == f"{row['model_name']}@{row['batch_size']}":
            kept += 1
            assert task.samples == int(row["num_iteration"]) * int(batch)
        else:
            assert name in ("LM", "ResNet-18", "ResNet-50", "Transformer")
            key = f"('{name} (batch size {batch})', {task.device_counts[0]})"
            steps = gavel["v100"][key]["null"]
            assert task.samples == int(row["duration"]) * steps * int(batch)
    assert kept == (len(composed.tasks) + 1) // 2


def test_rates_are_measured(composed, data):
    """Each rate is a measured one times the batch; zero ones are absent; none crosses the tables."""
    gavel = json.loads((data / "gavel/simulation_throughputs.json").read_text(), parse_float=Decimal)
    for entry in composed.throughputs:
        name, batch = entry.model.split("@")
        both = name == "resnet50" and batch in ("64", "128")
        for count, rate in entry.measured.items():
            if entry.device_type == "A100":
                rows = table(data / f"elasticflow/throughputs_A100/{name}.csv")
                source = next(Decimal(r[count]) for r in rows if r["global_batch_size"] == batch)
            else:
                assert name[0].isupper() or (both and count == "1")
                kind = "ResNet-50" if both else name
                key = f"('{kind} (batch size {batch})', {count})"
                source = gavel[entry.device_type.lower()][key]["null"]
            assert rate == source * int(batch) > 0


def test_durations_are_the_traces(composed, data):
    """On perfect data, a task with its own model takes the trace's duration on A100 (to 0.1 %)."""
    rows = trace(data)[int(composed.meta["offset"]) :]
    rates = {(t.model, t.device_type): t.measured for t in composed.throughputs}
    for task, row in zip(composed.tasks, rows, strict=False):
        if int(row["num_gpu"]) > 8:
            continue
        device_type = "V100" if task.model[0].isupper() else "A100"
        rate = rates[task.model, device_type][str(task.device_counts[0])]
        assert float(task.samples / rate) == pytest.approx(int(row["duration"]), rel=1e-3)


# places ----------------------------------------------------------------------------------------------------
def test_regions_with_full_measurements(data):
    """60 of 63 regions; Paris, East US 2 and West US 2 lack latencies."""
    regions = read_regions(Reader(data))
    assert len(regions.names) == 60
    assert not {"aws:eu-west-3", "azure:eastus2", "azure:westus2"} & set(regions.names)


def test_sites_and_links(composed, data):
    """Five regions of three clouds, fully linked; figures are the premium tier's, repeats averaged."""
    names = [site.id for site in composed.sites]
    assert len(names) == 5
    assert {cloud_of(name) for name in names} == {"aws", "azure", "gcp"}
    assert len(composed.links) == 20
    received, rtt, cost = (
        means(data, *columns)
        for columns in (
            (
                "throughput",
                "src_region",
                "dst_region",
                "src_tier",
                "dst_tier",
                "throughput_received_bits_per_second",
            ),
            ("latency", "src_region", "dst_region", "src_tier", "dst_tier", "avg_rtt"),
            ("cost", "src", "dest", "src_tier", "dest_tier", "cost"),
        )
    )
    for link in composed.links:
        pair = link.from_, link.to
        assert abs(Fraction(link.bandwidth_gbps) * 10**9 - received[pair]) <= Fraction(1, 2)
        assert Fraction(link.latency_s) == rtt[pair] / 2000
        assert Fraction(link.egress_usd_per_gb) == cost[pair]
        assert link.channels is None


def means(
    data: Path, name: str, origin: str, target: str, tier: str, other: str, value: str
) -> dict[tuple[str, str], Fraction]:
    """(origin, target) -> mean of a column over the premium tier."""
    found: dict[tuple[str, str], list[Fraction]] = {}
    for row in table(data / f"skyplane/{name}.csv"):
        if row[tier] == row[other] == "PREMIUM":
            found.setdefault((row[origin], row[target]), []).append(Fraction(row[value]))
    return {pair: sum(values) / len(values) for pair, values in found.items()}


def test_prices(data):
    """The lowest on-demand price of each cloud and type; Azure sells A100 of 80 GB, AWS no P100."""
    prices = {key: str(price) for key, price in read_prices(Reader(data)).items()}
    assert prices == {
        ("aws", "A100"): "4.10", ("aws", "V100"): "3.06",
        ("gcp", "A100"): "3.48", ("gcp", "V100"): "2.95", ("gcp", "P100"): "1.93",
        ("azure", "A100"): "3.67", ("azure", "V100"): "3.06", ("azure", "P100"): "2.07",
    }  # fmt: skip


def test_pools(composed, data):
    """Pools of 8 at three sites, priced as their cloud sells them; four distinct ones up to 20 tasks."""
    prices = read_prices(Reader(data))
    kinds = Counter(node.device_type for node in composed.nodes)
    count = pool_count(len(composed.tasks))
    assert kinds == {"A100": count // 2, "V100": count // 4, "P100": count // 4}
    assert len({node.site for node in composed.nodes}) == 3
    for node in composed.nodes:
        assert node.devices == 8
        assert node.usd_per_device_hour == prices[cloud_of(node.site), node.device_type]
    if len(composed.tasks) <= 20:
        assert len({(node.site, node.device_type) for node in composed.nodes}) == len(composed.nodes) == 4


# data ------------------------------------------------------------------------------------------------------
def test_datasets(composed, data):
    """Three a domain, 8-150 GB before coupling, at one data-only site each; relevance 1, .85 and .7."""
    pools = {node.site for node in composed.nodes}
    domains = {model.domain for model in composed.models}
    known = {e.name: e for entries in read_catalogue(Reader(data)).values() for e in entries}
    assert len(composed.datasets) == 3 * len(domains) <= 12
    found: dict[str, list[Decimal]] = {}
    for dataset in composed.datasets:
        assert dataset.size_gb == known[dataset.id].size_gb * 10
        assert 8 <= known[dataset.id].size_gb <= 150
        assert len(dataset.sites) == 1
        assert not pools & set(dataset.sites)
        assert Decimal("0.75") <= dataset.quality <= 1
        assert dataset.price_usd in (0, 5, 20, 40)
        ((domain, relevance),) = dataset.relevance.items()
        found.setdefault(domain, []).append(relevance)
    assert found.keys() == domains
    assert all(sorted(values) == [Decimal("0.7"), Decimal("0.85"), 1] for values in found.values())


def test_catalogue_takes_the_largest_configuration(data):
    """One entry a name; wrong or odd sizes stay out: ImageNet (gated, 155 GB), C4 (TB), CIFAR (MB)."""
    entries = {e.name: e for found in read_catalogue(Reader(data)).values() for e in found}
    assert entries["wikipedia"].catalogue.endswith("hf_datasets_2.2.0_catalog.csv")
    assert entries["wikipedia"].size == 20_598_313_936
    assert entries["librispeech_asr"].config == "all"
    assert not {"imagenet2012", "imagenet-1k", "c4", "cifar10"} & entries.keys()


@pytest.mark.parametrize("size", [8, 20, 60, 200])
def test_at_most_twelve_modes(data, size):
    """No task has more than 12 modes, and every task has one."""
    problem = compile_problem(compose(data, size, seed=1))
    active = [len(problem.modes_of(task)) for task in range(problem.num_tasks)]
    assert max(active) <= 12
    assert min(active) >= 1


def test_fixed_settings(composed):
    """Half-hour ticks, cents, a dollar for a weighted tick."""
    assert composed.tick_seconds == 1800
    assert composed.money_unit_usd == Decimal("0.01")
    assert [dict(level) for level in composed.objective.levels] == [{"weighted_completion": 1, "cost": 1}]


# parameters ------------------------------------------------------------------------------------------------
def test_same_seed_gives_the_same_instance(data):
    """Equal hash for equal parameters, another one for another seed."""
    assert compose(data, 12, seed=3).sha256 == compose(data, 12, seed=3).sha256
    assert compose(data, 12, seed=3).sha256 != compose(data, 12, seed=4).sha256


def test_coupling(data):
    """Coupling multiplies sizes; at 0 everything is everywhere."""
    one, zero = compose(data, 8, seed=3, coupling=1), compose(data, 8, seed=3, coupling=0)
    ten = compose(data, 8, seed=3)
    assert [d.size_gb for d in ten.datasets] == [10 * d.size_gb for d in one.datasets]
    assert ten.links == one.links == zero.links
    assert all(len(dataset.sites) == 5 for dataset in zero.datasets)
    assert compile_problem(zero).num_replicas == 0


def test_offset(data):
    """The first row may be named; one that leaves too few rows is refused."""
    assert compose(data, 60, seed=0, offset=100).meta["offset"] == 100
    with pytest.raises(InputError, match="offset"):
        compose(data, 60, seed=0, offset=5000)


def test_meta(composed):
    """Sources with licence and hashes, what was drawn, what was dropped."""
    meta = composed.meta
    assert {source["title"] for source in meta["sources"]} == {facts[0] for facts in SOURCES.values()}
    assert all(source["licence"] and source["files_sha256"] for source in meta["sources"])
    drawn = " ".join(meta["synthetic"])
    for field in (
        "quality",
        "relevance",
        "price_usd",
        "pricing",
        "datasets.sites",
        "weight",
        "kappa",
        "size_gb",
    ):
        assert field in drawn
    assert meta["dropped"]["dataset-catalogs/tfds_2020-04_catalog.csv"]["size unknown"] > 0


# broken sources --------------------------------------------------------------------------------------------
def test_bad_rows_are_dropped_and_counted(copied):
    """Missing, fractional and repeated values drop a row; a byte order mark is no part of a name."""
    path = copied / "itp-elasticflow/sim/cluster06.csv"
    lines = path.read_text().splitlines()
    first = lines[1].split(",")
    extra = [
        ",".join([first[0], "", *first[2:]]),
        ",".join(["new", "1.5", *first[2:]]),
        ",".join(["new", "NaN", *first[2:]]),
        lines[1],
        ",".join(["zero", *first[1:7], "0"]),
        ",".join([*first, "more"]),
        ",".join(["odd", first[1], "10", "lenet", *first[4:]]),
    ]
    path.write_text("\ufeff" + "\r\n".join([*lines, *extra]), encoding="utf-8", newline="")
    dropped = compose(copied, 60, seed=0, offset=0).meta["dropped"]["itp-elasticflow/sim/cluster06.csv"]
    assert dropped == {
        "a value is missing or not a whole number": 3,
        "no A100 rate for its model, batch and devices": 1,
        "no id, or zero iterations, batch, devices or duration": 1,
        "repeated job id": 1,
        "wrong number of values": 1,
    }


def test_order_of_rows_does_not_matter(data, copied):
    """Sorted or not, the trace gives the same instance."""
    path = copied / "itp-elasticflow/sim/cluster06.csv"
    header, *lines = path.read_text().splitlines()
    path.write_text("\n".join([header, *reversed(lines)]))
    assert compose(copied, 12, seed=0).tasks == compose(data, 12, seed=0).tasks


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("cloud-gpus/cloud-gpus.csv", None, "is missing; cloud-gpus/ holds"),
        ("cloud-gpus/cloud-gpus.csv", b"Cloud,GPU Type\nAWS,A100\n", "Per-GPU"),
        ("cloud-gpus/cloud-gpus.csv", b"Cloud\xff", "UTF-8"),
        ("skyplane/cost.csv", b"src,dest,src_tier,dest_tier,cost\n", "no two regions"),
        ("gavel/simulation_throughputs.json", b"{", "is not JSON"),
        ("gavel/simulation_throughputs.json", b'{"v100": {"a": {"null": NaN}}}', "v100"),
        ("gavel/simulation_throughputs.json", b"[]", "v100"),
    ],
)
def test_broken_files_are_named(copied, name, content, message):
    """A missing or malformed file is refused with its path."""
    path = copied / name
    path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        compose(copied, 12, seed=0)
    assert str(path.parent) in str(caught.value)


def test_all_missing_files_are_named_at_once(tmp_path, data):
    """Each with where it comes from; and no file is read that is not among them."""
    with pytest.raises(InputError) as caught:
        compose(tmp_path, 12, seed=0)
    assert [fault.source for fault in caught.value.faults] == [str(tmp_path / name) for name in FILES]
    assert all(SOURCES[name.split("/")[0]][1] in str(caught.value) for name in FILES)
    read = [name for source in compose(data, 12, seed=0).meta["sources"] for name in source["files_sha256"]]
    assert sorted(read) == sorted(FILES)


def test_zero_rates_are_absent(copied):
    """Gavel's 0.0 means that it does not run: no rate of 0 is taken over."""
    path = copied / "gavel/simulation_throughputs.json"
    document = json.loads(path.read_text())
    document["p100"]["('LM (batch size 5)', 8)"]["null"] = 0.0
    path.write_text(json.dumps(document))
    reader = Reader(copied)
    assert 8 not in gavel_rates(reader)["LM@5"].rates["P100"]
    assert reader.counts()["gavel/simulation_throughputs.json"] == {"rate is 0": 1}


def test_unmeasured_counts_are_absent(data):
    """deepspeech2 at batch 32 was not measured on 64 devices."""
    reader = Reader(data)
    rates = elasticflow_rates(reader, gavel_rates(reader))
    assert sorted(rates["deepspeech2@32"].rates["A100"]) == [1, 2, 4, 8, 16, 32]
    assert rates["resnet50@64"].rates["P100"].keys() == {1}
    assert "P100" not in rates["resnet50@256"].rates
    assert len(read_jobs(reader)) == 2396


# shipped ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", [name for name in instances.names() if name.startswith("real-")])
def test_shipped_instances_equal_a_fresh_composition(data, name):
    """real-N is what compose makes of the data today (but for the note on how its seed was found)."""
    shipped, origin = instances.load(name), instances.entry(name).origin
    fresh = compose(data, len(shipped.tasks), seed=origin["seed"])
    meta = {key: value for key, value in shipped.meta.items() if key != "search"}
    assert shipped.replace(meta=meta).sha256 == fresh.sha256
