"""The mode table of an instance, derived a second time: plain Python, fractions, nothing of the library.

Everything here is recomputed from the text of the instance file and the written rules of the model. It is
slow and short on purpose.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

DIGITS = Context(prec=60)


@dataclass(frozen=True)
class Route:
    """One way to bring a dataset to a site."""

    links: tuple[str, ...]
    ticks: int
    cost: int
    channels: frozenset[str]


@dataclass(frozen=True)
class Input:
    """One dataset of a mode and how it is reached."""

    dataset: str
    access: str
    route: Route | None = None


@dataclass(frozen=True)
class Mode:
    """One way to run a task."""

    explicit: str | None
    inputs: tuple[Input, ...]
    uses: tuple[tuple[str, int], ...]
    duration: int
    money: int
    utility: int
    available: int
    site: str | None
    extra: tuple[tuple[str, str, Fraction], ...] = ()

    @property
    def key(self) -> tuple[Any, ...]:
        """The content of the mode, by which two derivations are compared."""
        inputs = tuple((i.dataset, i.access, i.route.links if i.route else None) for i in self.inputs)
        return (self.explicit, inputs, tuple(sorted(self.uses)))

    @property
    def replicas(self) -> tuple[tuple[str, str], ...]:
        """(dataset, site) that must have been staged."""
        return tuple((i.dataset, str(self.site)) for i in self.inputs if i.access == "staged")

    @property
    def datasets(self) -> tuple[str, ...]:
        return tuple(i.dataset for i in self.inputs)


@dataclass(frozen=True)
class Task:
    """One task in integers."""

    id: str
    release: int
    due: int | None
    deadline: int | None
    weight: Fraction
    penalty: Fraction | None
    rejectable: bool
    after: tuple[tuple[str, int], ...]
    modes: tuple[Mode, ...]


@dataclass
class Table:
    """All that follows from an instance before any decision is taken."""

    raw: dict[str, Any]
    tick: Fraction
    unit: Fraction
    tasks: dict[str, Task] = field(default_factory=dict)
    channels: dict[str, int | None] = field(default_factory=dict)
    calendar: dict[str, list[int]] = field(default_factory=dict)
    """Devices per tick; the last entry holds for ever."""
    extra: dict[tuple[str, str], Fraction] = field(default_factory=dict)
    seats: dict[str, int | None] = field(default_factory=dict)
    available: dict[str, int] = field(default_factory=dict)
    size: dict[str, Fraction] = field(default_factory=dict)
    storage: dict[str, Fraction | None] = field(default_factory=dict)
    once: dict[str, int] = field(default_factory=dict)
    """Price of each dataset that is bought once; 0 where the state has it."""
    routes: dict[tuple[str, str], tuple[Route, ...]] = field(default_factory=dict)


def parse(text: str) -> dict[str, Any]:
    """Read JSON with every number exact."""
    loaded: dict[str, Any] = json.loads(text, parse_float=Fraction, parse_int=int)
    return loaded


def exact(instance: Mapping[str, Any] | Path) -> dict[str, Any]:
    """An instance (dict or file) with every decimal as written."""
    return parse(instance.read_text("utf-8") if isinstance(instance, Path) else json.dumps(instance))


def ceil(value: Fraction | int) -> int:
    return math.ceil(value)


def half_up(value: Fraction | int) -> int:
    return math.floor(Fraction(value) + Fraction(1, 2))


def all_links(raw: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The links, with a second one for each that goes both ways."""
    links = []
    for link in raw.get("links") or []:
        links.append(dict(link))
        if link.get("both_ways"):
            links.append({**link, "id": f"{link['id']}:back", "from": link["to"], "to": link["from"]})
    return links


def simple_paths(
    links: Sequence[Mapping[str, Any]], origin: str, goal: str
) -> Iterator[list[Mapping[str, Any]]]:
    """Every path from origin to goal that visits no site twice."""

    def walk(here: str, seen: frozenset[str]) -> Iterator[list[Mapping[str, Any]]]:
        if here == goal:
            yield []
            return
        for link in links:
            if link["from"] == here and link["to"] not in seen:
                for rest in walk(link["to"], seen | {link["to"]}):
                    yield [link, *rest]

    yield from walk(origin, frozenset({origin}))


def route_of(table: Table, size: Fraction | int, path: Sequence[Mapping[str, Any]]) -> Route:
    """Latencies add up, the narrowest link sets the pace, egress is rounded once a route."""
    bandwidth = min(Fraction(link["bandwidth_gbps"]) for link in path)
    seconds = sum(Fraction(link.get("latency_s") or 0) for link in path) + Fraction(size) * 8 / bandwidth
    egress = sum(Fraction(link.get("egress_usd_per_gb") or 0) for link in path) * size
    return Route(
        links=tuple(link["id"] for link in path),
        ticks=max(1, ceil(seconds / table.tick)),
        cost=half_up(egress / table.unit),
        channels=frozenset(link["id"] for link in path if link.get("channels") is not None),
    )


def calendar_of(node: Mapping[str, Any], tick: Fraction) -> list[int]:
    """Devices in each tick: the least over its seconds, none outside the windows."""
    windows = node.get("availability")
    if windows is None:
        return [node["devices"]]
    last = max((Fraction(w[1]) for w in windows), default=Fraction(0))
    row = []
    for t in range(ceil(last / tick) + 1):
        first, end = t * tick, (t + 1) * tick
        parts = [
            (max(Fraction(a), first), min(Fraction(b), end), d)
            for a, b, d in windows
            if a < end and b > first
        ]
        covered = sum(b - a for a, b, _ in parts) == end - first
        row.append(min(d for *_, d in parts) if covered else 0)
    return row


def rate(raw: Mapping[str, Any], model_id: str, type_id: str, count: int) -> Fraction | None:
    """Samples per second of the whole job; None where nothing is known."""
    rows = [t for t in raw["throughputs"] if (t["model"], t["device_type"]) == (model_id, type_id)]
    if not rows:
        return None
    measured = {int(k): Fraction(v) for k, v in rows[0]["measured"].items()}
    if count in measured:
        return measured[count]
    model = next(m for m in raw["models"] if m["id"] == model_id)
    if not model.get("scaling") or 1 not in measured:
        return None
    device = next(d for d in raw["device_types"] if d["id"] == type_id)
    return measured[1] * speedup(model, device, measured[1], count) if measured[1] else Fraction(0)


def speedup(model: Mapping[str, Any], device: Mapping[str, Any], single: Fraction, n: int) -> Fraction:
    """How many times as fast as one device n devices are."""
    name, p = model["scaling"]["name"], model["scaling"].get("parameters") or {}
    if name == "linear":
        return Fraction(n)
    if name == "amdahl":
        return 1 / (Fraction(p["f"]) + (1 - Fraction(p["f"])) / n)
    if name == "affine_log":
        return 1 / (Fraction(p["a"]) + Fraction(p["b"]) / n + Fraction(p["c"]) * Fraction(math.log2(n)))
    compute = Fraction(p["batch_samples"]) / single
    gigabytes = Fraction(model.get("size_gb") or 0) * Fraction(model.get("compression", 1))
    reduce = Fraction(2 * (n - 1), n) * gigabytes * 8 / Fraction(device["interconnect_gbps"])
    return compute / joined(compute / n, reduce, Fraction(p.get("gam", 1)))


def joined(a: Fraction, b: Fraction, gam: Fraction) -> Fraction:
    """(a^gam + b^gam)^(1/gam): exact for gam 1, else to 60 digits."""
    if gam == 1:
        return a + b

    def decimal(x: Fraction) -> Decimal:
        return DIGITS.divide(Decimal(x.numerator), Decimal(x.denominator))

    total = DIGITS.add(*(DIGITS.power(decimal(x), decimal(gam)) if x else Decimal(0) for x in (a, b)))
    return Fraction(DIGITS.power(total, DIGITS.divide(Decimal(1), decimal(gam))))


def by_id(raw: Mapping[str, Any], kind: str) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in raw.get(kind) or []}


def utility_of(dataset: Mapping[str, Any], domain: str) -> int:
    """Relevance times quality in permille."""
    relevance = Fraction((dataset.get("relevance") or {}).get(domain, 0))
    return half_up(1000 * relevance * Fraction(dataset.get("quality", 1)))


def accesses(table: Table, dataset: Mapping[str, Any], site: str | None) -> list[Input]:
    """Every way in which a run at ``site`` can reach ``dataset``."""
    if site in dataset["sites"]:
        return [Input(dataset["id"], "local")]
    routes = table.routes.get((dataset["id"], str(site)), ())
    found = [Input(dataset["id"], "staged")] if routes else []
    if dataset.get("streamable"):
        found += [Input(dataset["id"], "streamed", route) for route in routes]
    return found


def data_choices(table: Table, task: Mapping[str, Any], domain: str) -> list[tuple[tuple[str, ...], int]]:
    """(datasets, utility) for every admissible choice of one dataset an input."""
    datasets = by_id(table.raw, "datasets")
    inputs = task.get("inputs")
    if inputs is None:
        if task.get("datasets") == []:
            return [((), 1000)]
        inputs = [{"datasets": task.get("datasets")}]
    lists, shares = [], []
    for row in inputs:
        names = row.get("datasets")
        if names is None:
            names = [d for d, data in datasets.items() if (data.get("relevance") or {}).get(domain, 0) > 0]
        floor = ceil(1000 * Fraction(row.get("min_utility") or 0))
        lists.append([(d, utility_of(datasets[d], domain)) for d in names])
        lists[-1] = [(d, u) for d, u in lists[-1] if u >= floor]
        shares.append(Fraction(row.get("share", 1)))
    choices = []
    for choice in product(*lists):
        names = tuple(d for d, _ in choice)
        if len(set(names)) == len(names):
            mean = sum(s * u for s, (_, u) in zip(shares, choice, strict=True)) / sum(shares)
            choices.append((names, half_up(mean)))
    return choices


def physics_modes(table: Table, task: Mapping[str, Any]) -> Iterator[Mode]:
    """Every (dataset choice, access, node, count) of a task that is described by its work."""
    raw = table.raw
    datasets, types = by_id(raw, "datasets"), by_id(raw, "device_types")
    domain = task.get("domain") or by_id(raw, "models")[task["model"]].get("domain")
    samples = task.get("samples")
    if samples is None:
        known = rate(raw, task["model"], task["reference"]["device_type"], task["reference"]["devices"])
        samples = Fraction(task["reference_hours"]) * 3600 * Fraction(known or 0)
    for names, utility in data_choices(table, task, domain):
        work = samples * (1 + Fraction(task.get("kappa") or 0) * (1 - Fraction(utility, 1000)))
        for node in raw["nodes"]:
            device = types[node["device_type"]]
            memory, wanted = device.get("memory_gb"), task.get("memory_gb_per_device") or 0
            demand = {k: Fraction(v) for k, v in (task.get("extra") or {}).items()}
            offered = node.get("extra") or {}
            if memory is not None and wanted > memory:
                continue
            if task.get("sites") is not None and node["site"] not in task["sites"]:
                continue
            if any(v > 0 and (k not in offered or v > offered[k]) for k, v in demand.items()):
                continue
            setup = Fraction((task.get("setup_s") or {}).get(device["id"], 0))
            for count in task.get("device_counts") or range(1, node["devices"] + 1):
                speed = rate(raw, task["model"], device["id"], count) if count <= node["devices"] else None
                if not speed:
                    continue
                for inputs in product(*(accesses(table, datasets[d], node["site"]) for d in names)):
                    ticks = max(1, ceil((setup + work / speed) / table.tick))
                    ticks = max([ticks, *(i.route.ticks for i in inputs if i.route)])
                    dollars = (
                        Fraction(node.get("usd_per_device_hour") or 0) * count * ticks * table.tick / 3600
                    )
                    extra = tuple((node["id"], k, v) for k, v in demand.items() if v > 0)
                    yield Mode(
                        explicit=None,
                        inputs=inputs,
                        uses=((node["id"], count),),
                        duration=ticks,
                        money=half_up(dollars / table.unit) + data_money(table, inputs),
                        utility=utility,
                        available=max((table.available[d] for d in names), default=0),
                        site=node["site"],
                        extra=extra,
                    )


def explicit_modes(table: Table, task: Mapping[str, Any]) -> Iterator[Mode]:
    """The modes that a task lists outright, with every access of their datasets."""
    nodes, datasets = by_id(table.raw, "nodes"), by_id(table.raw, "datasets")
    for mode in task["modes"]:
        names = tuple(mode.get("datasets") or ())
        sites = {nodes[u["node"]]["site"] for u in mode["uses"]}
        if any(u["devices"] > nodes[u["node"]]["devices"] for u in mode["uses"]):
            continue
        if task.get("sites") is not None and not sites <= set(task["sites"]):
            continue
        site = min(sites) if len(sites) == 1 else None
        for inputs in product(*(accesses(table, datasets[d], site) for d in names)):
            yield Mode(
                explicit=mode["id"],
                inputs=inputs,
                uses=tuple((u["node"], u["devices"]) for u in mode["uses"]),
                duration=max([mode["duration_ticks"], *(i.route.ticks for i in inputs if i.route)]),
                money=half_up(Fraction(mode.get("usd") or 0) / table.unit) + data_money(table, inputs),
                utility=mode.get("utility", 1000),
                available=max((table.available[d] for d in names), default=0),
                site=site,
            )


def data_money(table: Table, inputs: Sequence[Input]) -> int:
    """Per-use prices and the egress of streams, each rounded by itself."""
    datasets = by_id(table.raw, "datasets")
    total = 0
    for chosen in inputs:
        data = datasets[chosen.dataset]
        if data.get("pricing", "per_use") == "per_use":
            total += half_up(Fraction(data.get("price_usd") or 0) / table.unit)
        total += chosen.route.cost if chosen.route else 0
    return total


def modes_of(table: Table, task: Mapping[str, Any], in_state: bool) -> tuple[Mode, ...]:
    """All modes of a task that pass its filters; those of running tasks are paid already."""
    modes = list(explicit_modes(table, task) if task.get("modes") is not None else physics_modes(table, task))
    floor = ceil(1000 * Fraction(task.get("min_utility") or 0))
    modes = [m for m in modes if m.utility >= floor]
    if task.get("budget_usd") is not None:
        modes = [m for m in modes if m.money <= math.floor(Fraction(task["budget_usd"]) / table.unit)]
    if in_state:
        modes = [Mode(**{**m.__dict__, "money": 0}) for m in modes]
    return tuple(modes)


def build(instance: Mapping[str, Any] | Path) -> Table:
    """The whole table of an instance given as a dict or as a file."""
    raw = exact(instance)
    table = Table(
        raw, Fraction(raw.get("tick_seconds", 60)), Fraction(raw.get("money_unit_usd", Fraction(1, 100)))
    )
    state = raw.get("state") or {}
    _places(table)
    _datasets(table, state)
    running = {row["task"] for row in state.get("tasks") or []}
    rejectable = _rejectable(raw, running)
    for task in raw["tasks"]:
        due, deadline = task.get("due_s"), task.get("deadline_s")
        table.tasks[task["id"]] = Task(
            id=task["id"],
            release=ceil(Fraction(task.get("release_s") or 0) / table.tick),
            due=None if due is None else math.floor(Fraction(due) / table.tick),
            deadline=None if deadline is None else math.floor(Fraction(deadline) / table.tick),
            weight=Fraction(task.get("weight", 1)),
            penalty=None if task.get("reject_penalty") is None else Fraction(task["reject_penalty"]),
            rejectable=task["id"] in rejectable,
            after=tuple(
                (a["id"], ceil(Fraction(a.get("lag_s") or 0) / table.tick)) for a in task.get("after") or []
            ),
            modes=modes_of(table, task, task["id"] in running),
        )
    return table


def _places(table: Table) -> None:
    raw = table.raw
    for site in raw["sites"]:
        limit = site.get("storage_gb")
        table.storage[site["id"]] = None if limit is None else Fraction(limit)
    for link in all_links(raw):
        table.channels[link["id"]] = link.get("channels")
    for node in raw["nodes"]:
        table.calendar[node["id"]] = calendar_of(node, table.tick)
        for key, amount in (node.get("extra") or {}).items():
            table.extra[node["id"], key] = Fraction(amount)


def _datasets(table: Table, state: Mapping[str, Any]) -> None:
    raw = table.raw
    read = [i["dataset"] for row in state.get("tasks") or [] for i in row["choice"]["inputs"]]
    bought = {*(state.get("purchases") or []), *read}
    links = all_links(raw)
    for data in raw.get("datasets") or []:
        name = data["id"]
        table.seats[name] = data.get("max_readers")
        table.available[name] = ceil(Fraction(data.get("available_s") or 0) / table.tick)
        table.size[name] = Fraction(data["size_gb"])
        if data.get("pricing") == "once":
            price = half_up(Fraction(data.get("price_usd") or 0) / table.unit)
            table.once[name] = 0 if name in bought else price
        for site in raw["sites"]:
            if site["id"] in data["sites"]:
                continue
            paths = [p for home in data["sites"] for p in simple_paths(links, home, site["id"])]
            routes = tuple([route_of(table, table.size[name], p) for p in paths])
            if routes:
                table.routes[name, site["id"]] = routes


def _rejectable(raw: Mapping[str, Any], running: set[str]) -> set[str]:
    """Tasks with a penalty whose successors can all be left out too."""
    allowed = {t["id"] for t in raw["tasks"] if t.get("reject_penalty") is not None} - running
    changed = True
    while changed:
        must = {a["id"] for t in raw["tasks"] if t["id"] not in allowed for a in t.get("after") or []}
        changed = bool(allowed & must)
        allowed -= must
    return allowed
