"""Small random instances in which every feature of the file format is on somewhere, and matters.

Numbers are awkward on purpose: decimals that do not fall on ticks, cents or permille.
"""

import copy
import functools
import json
from collections.abc import Callable
from random import Random
from typing import Any

from support.evaluator import terms
from support.mode_table import Mode, Table, build
from support.oracle import TooLarge, enumerate_optimum

Json = dict[str, Any]

PROFILES = ("small", "tiny", "medium")
"""small: up to 5 tasks, no storage limit; tiny: up to 3 tasks within about 12 ticks, storage, channels and
streams; medium: 6 to 12 tasks with everything."""

TERMS_WITH_TIME = ("weighted_completion", "weighted_flow", "weighted_tardiness", "makespan")
DOMAINS = ("vision", "text")


class Generator:
    """Draws one instance."""

    def __init__(self, seed: int, profile: str):
        self.random = Random(f"{profile} {seed}")
        self.profile = profile
        self.tick = self.pick([60, 60, 45, 300, 7.5])
        self.name = f"random-{profile}-{seed}"

    def pick(self, options: Any) -> Any:
        return self.random.choice(list(options))

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def seconds(self, ticks: float) -> float:
        """About so many ticks, seldom exactly."""
        return round(max(0, ticks * self.tick + self.pick([0, 0, -0.3, 0.6, 3.5, -2.5])), 1)

    # places --------------------------------------------------------------------------------------
    def instance(self) -> Json:
        self.pressed = self.profile == "tiny"
        self.crowded = self.pressed and self.chance(0.45)
        self.apart = self.crowded or self.chance({"tiny": 0.6, "small": 0.25}.get(self.profile, 0.4))
        count = {"small": self.pick([2, 3, 3, 4, 4, 5]), "tiny": self.pick([1, 2, 2, 3, 3])}
        self.num_tasks = count.get(self.profile) or self.random.randint(6, 10)
        self.sites = [f"s{i}" for i in range(self.pick([2, 2, 3]))]
        found: Json = {
            "format": "optalloc-instance/1",
            "name": self.name,
            "tick_seconds": self.tick,
            "money_unit_usd": self.pick([0.01, 0.01, 0.05, 0.001]),
            "sites": [self.site(s) for s in self.sites],
            "links": self.links(),
            "datasets": [
                self.dataset(i)
                for i in range(
                    self.pick([2, 3, 3]) if self.crowded or not self.pressed else self.pick([1, 2, 2])
                )
            ],
            "device_types": [
                {"id": "a", "memory_gb": 16, "interconnect_gbps": self.pick([100, 25])},
                {
                    "id": "b",
                    "memory_gb": self.pick([11.5, 24, None]),
                    "interconnect_gbps": self.pick([0.8, 2.5]),
                },
            ],
            "nodes": [self.node(i) for i in range(self.pick([1, 2, 2, 3]))],
            "models": [self.model(i) for i in range(2)],
            "throughputs": [self.throughput(m, t) for m in ("m0", "m1") for t in "ab"],
        }
        self.found = found
        found["tasks"] = []
        for i in range(self.num_tasks):
            found["tasks"].append(self.task(i))
            if not self.chance(0.02):
                self.mend(found["tasks"][-1])
        self.precedence(found["tasks"])
        found["objective"] = self.objective()
        found["meta"] = {"generator": "tests", "source": "random"}
        if self.chance(0.4):
            self.add_state(found)
        if self.profile != "medium" and self.chance(0.7):
            self.tighten(found)
        return found

    def site(self, name: str) -> Json:
        row: Json = {"id": name, "tier": self.pick(["cloud", "edge"])}
        if self.profile != "small" and (self.apart or self.chance(0.6)):
            row["storage_gb"] = self.pick([5, 5, 5.9] if self.crowded else [5, 6.2, 7.6, None, None])
        return row

    def links(self) -> list[Json]:
        rows: list[Json] = []
        pairs = [(a, b) for a in self.sites for b in self.sites if a != b]
        used = [p for p in pairs if self.chance(0.9)] + [p for p in pairs if self.chance(0.25)]
        for a, b in [("s0", "s1")] if self.crowded else used:
            ticks = self.pick([1.4, 2.2, 3.1] if self.crowded else [0.7, 1.4, 2.2, 3.1])
            row = {
                "id": f"l{len(rows)}",
                "from": a,
                "to": b,
                "bandwidth_gbps": round(32 / (ticks * self.tick), 3),
            }
            row["egress_usd_per_gb"] = self.pick([0, 0.02, 0.05, 0.085, 0.3])
            if self.chance(0.4):
                row["latency_s"] = self.pick([0.05, round(0.6 * self.tick, 1), round(1.1 * self.tick, 1)])
            if self.crowded or self.chance(0.75 if self.profile != "small" else 0.35):
                row["channels"] = 1 if self.crowded else self.pick([1, 1, 1, 2, None])
            if self.chance(0.2):
                row["both_ways"] = True
            rows.append(row)
        return rows

    def dataset(self, i: int) -> Json:
        homes = ["s0"] if self.apart else self.random.sample(self.sites, 2 if self.chance(0.2) else 1)
        row: Json = {
            "id": f"d{i}",
            "size_gb": self.pick([3, 3.1, 4.2, 5] if self.crowded else [0.35, 2, 3, 3.1, 4.2, 5]),
            "sites": homes,
        }
        row["quality"] = self.pick([0.5, 0.7, 0.875, 0.9, 1])
        row["relevance"] = {d: self.pick([0.333, 0.65, 0.8, 0.9, 1]) for d in DOMAINS if self.chance(0.85)}
        if self.chance(0.5):
            row["price_usd"] = self.pick([0.0049, 0.35, 0.5, 1.005, 1.5, 2])
            row["pricing"] = self.pick(["per_use", "once", "once"])
        if self.chance(0.3):
            row["available_s"] = self.seconds(self.pick([0.4, 1, 2]))
        if self.chance(0.45):
            row["max_readers"] = self.pick([1, 1, 2, None])
        if self.chance(0.6 if self.pressed and not self.crowded else 0.3):
            row["streamable"] = True
        return row

    def node(self, i: int) -> Json:
        devices = self.pick([2, 3] if self.crowded else [1, 2, 2, 3])
        row: Json = {
            "id": f"n{i}",
            "site": self.pick(self.sites[1:2] if self.apart else self.sites),
            "device_type": self.pick("aab"),
            "devices": devices,
        }
        row["usd_per_device_hour"] = round(self.pick([0.05, 0.1, 0.25, 0.4]) * 3600 / self.tick, 2)
        if self.chance(0.35):
            row["availability"] = self.pick([None, self.windows(devices), self.windows(devices)])
        if self.chance(0.8):
            row["extra"] = {"cpu": self.pick([4, 6]), "ram_gb": self.pick([16, 24.5])}
        return row

    def windows(self, devices: int) -> list[list[float]]:
        """Two to four windows, some touching, the last one long."""
        start, rows = self.pick([0, 0, self.seconds(1.2)]), []
        count = self.pick([2, 3, 4])
        for k in range(count):
            extension = 40 * self.tick if k == count - 1 and self.chance(0.85) else 0
            end = round(max(start + 1, start + self.seconds(self.pick([1.5, 2, 3])) + extension), 1)
            rows.append([start, end, self.random.randint(1, devices)])
            start = end if self.chance(0.5) else round(end + abs(self.seconds(self.pick([0.3, 1]))), 1)
        return rows

    def model(self, i: int) -> Json:
        row: Json = {"id": f"m{i}", "domain": DOMAINS[i]}
        kind = self.pick(["", "linear", "amdahl", "affine_log", "ring", "ring", "ring"])
        parameters: Json = {
            "amdahl": {"f": self.pick([0.05, 0.1, 0.35])},
            "affine_log": {"a": 0.2, "b": 0.8, "c": self.pick([0.03, 0.05])},
            "ring": {"gam": self.pick([1, 2, 1.5]), "batch_samples": self.pick([8, 32])},
        }
        if kind:
            row["scaling"] = {"name": kind, "parameters": parameters.get(kind, {})}
        if kind == "ring" or self.chance(0.2):
            row["size_gb"] = self.pick([0.35, 4, 12])
            if self.chance(0.8):
                row["compression"] = self.pick([0.5, 0.25, 0.1])
        return row

    def throughput(self, model: str, device_type: str) -> Json:
        single = self.pick([0.3, 0.35, 0.7, 1.05, 2.1])
        measured = {"1": single}
        if self.chance(0.4):
            measured["2"] = round(single * self.pick([0.9, 1.7, 1.9, 2]), 3)
        if self.chance(0.25):
            measured["3"] = round(single * self.pick([2.4, 2.8]), 3)
        if self.chance(0.15):
            measured[self.pick(["1", "2"])] = 0
        return {"model": model, "device_type": device_type, "measured": measured}

    # tasks ---------------------------------------------------------------------------------------
    def task(self, i: int) -> Json:
        row: Json = {"id": f"t{i}", "weight": self.pick([0.5, 1, 1, 1.5, 2, 3])}
        if self.chance(0.35):
            row["release_s"] = max(0, self.seconds(self.pick([0, 0.5, 1, 2.4])))
        if self.chance(0.5):
            row["due_s"] = self.seconds(self.pick([2.5, 3, 4, 5.6]))
        if self.chance(0.8 if self.pressed else 0.25):
            row["deadline_s"] = self.seconds(
                self.pick([7.5, 9, 11.8]) if self.pressed else self.pick([7, 9, 14, 20])
            )
        if self.chance(0.3):
            row["reject_penalty"] = self.pick([2, 5, 7.5, 12])
        if self.chance(0.35):
            row["budget_usd"] = self.pick([0.2, 0.35, 0.51, 0.72, 1.2])
        if self.chance(0.3):
            row["sites"] = [s for s in self.sites if self.chance(0.6)] or [self.sites[0]]
        if self.chance(0.35):
            row["min_utility"] = self.pick([0.3145, 0.5, 0.6501, 0.72, 0.8])
        return self.explicit(row) if self.chance(0.25) else self.physics(row)

    def physics(self, row: Json) -> Json:
        model = self.pick([0, 1])
        row["model"] = f"m{model}"
        if self.chance(0.2):
            row["domain"] = self.pick(DOMAINS)
        typical = {"a": 0.6, "b": 0.6}
        work = self.pick([0.8, 1.5, 2.4, 3.3, 4.6])
        if self.chance(0.2):
            row["reference_hours"] = round(work * self.tick / 3600, 4)
            row["reference"] = {"device_type": self.pick(self.known(row["model"])), "devices": 1}
        else:
            row["samples"] = max(1, round(work * self.tick * typical["a"]))
        if self.chance(0.5):
            row["kappa"] = self.pick([0.35, 1, 2])
        if self.chance(0.3):
            row["device_counts"] = self.pick([[1], [2], [1, 2], [1, 3]])
        if self.chance(0.55):
            row["memory_gb_per_device"] = self.pick([11.5, 12, 16, 20, 20])
        if self.chance(0.45):
            row["extra"] = {"cpu": self.pick([1, 3, 4]), "ram_gb": self.pick([8, 12.25])}
        if self.chance(0.3):
            row["setup_s"] = {t: self.seconds(self.pick([0.3, 0.5, 1])) for t in "ab" if self.chance(0.8)}
        kind = self.random.random()
        names = [d["id"] for d in self.found["datasets"]]
        if self.crowded and kind < 0.85:
            row["datasets"] = [names[int(row["id"][1:]) % len(names)]]
            return row
        if kind < 0.1:
            row["datasets"] = []
        elif kind < 0.45 and len(names) > 1:
            row["inputs"] = self.inputs(names)
        else:
            row["datasets"] = self.pick(
                [None, self.random.sample(names, min(len(names), self.pick([1, 2, 2])))]
            )
        return row

    def known(self, model: str) -> list[str]:
        """Device types with a rate for one device."""
        rows = [t for t in self.found["throughputs"] if t["model"] == model and t["measured"].get("1")]
        if not rows:
            rows = [t for t in self.found["throughputs"] if t["model"] == model]
            rows[0]["measured"]["1"] = 0.7
        return [t["device_type"] for t in rows if t["measured"].get("1")]

    def inputs(self, names: list[str]) -> list[Json]:
        rows: list[Json] = [{"datasets": None}, {"datasets": self.random.sample(names, self.pick([1, 2]))}]
        self.random.shuffle(rows)
        for row in rows:
            if self.chance(0.6):
                row["share"] = self.pick([0.35, 0.5, 2, 3])
            if self.chance(0.85):
                row["min_utility"] = self.pick([0.5, 0.57, 0.65, 0.72])
        return rows

    def explicit(self, row: Json) -> Json:
        """Two or three modes written out."""
        nodes, names = self.found["nodes"], [d["id"] for d in self.found["datasets"]]
        row["modes"] = []
        for k in range(self.pick([1, 2, 3])):
            used = self.random.sample(nodes, 2 if len(nodes) > 1 and self.chance(0.3) else 1)
            mode: Json = {"id": f"e{k}", "duration_ticks": self.pick([1, 2, 3, 4])}
            mode["uses"] = [{"node": n["id"], "devices": self.random.randint(1, n["devices"])} for n in used]
            if self.chance(0.1):
                mode["uses"][0]["devices"] += 2
            single = len({n["site"] for n in used}) == 1
            count = self.pick([0, 1, 1, 2]) if single else 0
            mode["datasets"] = self.random.sample(names, min(count, len(names)))
            mode["usd"] = self.pick([0, 0.1, 0.345, 0.8, 1.5])
            if self.chance(0.7):
                mode["utility"] = self.pick([245, 350, 700, 900, 1000])
            row["modes"].append(mode)
        return row

    def mend(self, task: Json) -> None:
        """Take filters off a task until it can run somewhere."""
        filters = ["min_utility", "budget_usd", "sites", "memory_gb_per_device", "device_counts", "extra"]
        self.random.shuffle(filters)
        for key in [*filters, "inputs", "datasets"]:
            if build({**self.found, "tasks": [task]}).tasks[task["id"]].modes:
                return
            if "modes" in task and key == "extra":
                task["modes"] = [m for m in self.explicit({})["modes"] if not m["datasets"]] or task["modes"]
            task.pop(key, None)
        if not build({**self.found, "tasks": [task]}).tasks[task["id"]].modes:
            task.setdefault("reject_penalty", self.pick([2, 7.5]))

    def precedence(self, tasks: list[Json]) -> None:
        for i, task in enumerate(tasks):
            if i and self.chance(0.3):
                row = {"id": tasks[self.random.randrange(i)]["id"]}
                if self.chance(0.5):
                    row["lag_s"] = max(0, self.seconds(self.pick([0.4, 1, 1.7])))
                task["after"] = [row]
        order = list(range(len(tasks)))
        self.random.shuffle(order)
        tasks[:] = [tasks[i] for i in order]

    # objective -----------------------------------------------------------------------------------
    def objective(self) -> Json:
        rejectable = any("reject_penalty" in t for t in self.found["tasks"])
        levels = []
        for _ in range(self.pick([1, 1, 1, 2, 2, 3])):
            level: Json = {}
            if self.chance(0.8):
                level[self.pick(TERMS_WITH_TIME)] = self.pick([0.1, 0.35, 0.5, 1, 2])
            if self.chance(0.25):
                level[self.pick(TERMS_WITH_TIME)] = self.pick([0.35, 0.5, 1])
            if self.chance(0.6):
                level["cost"] = self.pick([0.5, 1, 2, 10])
            if self.chance(0.4):
                level["utility_loss"] = self.pick([0.002, 0.01])
            if self.chance(0.3):
                level["late"] = self.pick([0.35, 1, 2, 10])
            if not level:
                level["weighted_completion"] = 1
            levels.append(level)
        if rejectable and not any({"late", "utility_loss"} & set(level) for level in levels):
            self.pick(levels)["rejected"] = self.pick([0.5, 1, 2])
        elif self.chance(0.3):
            self.pick(levels)["rejected"] = 1
        if self.chance(0.05) and not rejectable:
            return {}
        limits: Json = {}
        n, w = self.num_tasks, sum(t["weight"] for t in self.found["tasks"])
        options = {
            "cost": lambda: self.pick([0.505, 0.9, 1.6]) * n,
            "makespan": lambda: self.pick([4, 6, 8]) + n,
            "weighted_completion": lambda: self.pick([4, 5.5, 7.5]) * w,
            "weighted_flow": lambda: self.pick([3.5, 5.25, 7]) * w,
            "weighted_tardiness": lambda: self.pick([0.5, 1.25, 2]) * w,
            "late": lambda: self.pick([1, 2, 3, 4.5]),
            "rejected": lambda: self.pick([0, 2, 7]),
            "utility_loss": lambda: self.pick([300, 512, 700]) * w,
        }
        for term in self.random.sample(list(options), self.pick([0, 0, 0, 1, 1])):
            limits[term] = round(options[term](), 3)
        found: Json = {"levels": levels}
        if limits:
            found["limits"] = limits
        return found

    def tighten(self, found: Json) -> None:
        """A limit that the best plan does not keep."""
        try:
            best = enumerate_optimum(found, 1000)
        except TooLarge:
            return
        if best.plan is None or not best.plan.runs:
            return
        values = terms(best.table, best.plan)
        values["cost"] *= best.table.unit
        often = ("cost", "weighted_tardiness", "late", "rejected", "utility_loss")
        term = self.pick(
            [t for t, value in values.items() for _ in range(3 if t in often else 2) if value > 0]
        )
        limit = round(float(values[term]) * self.pick([0.99, 0.95, 0.85]), 3)
        found["objective"].setdefault("levels", [{"weighted_completion": 1, "cost": 1}])
        limits = found["objective"].setdefault("limits", {})
        before, limits[term] = limits.get(term), limit
        if not self.chance(0.15) and enumerate_optimum(found).plan is None:
            del limits[term]
            if before is not None:
                limits[term] = before

    # state ---------------------------------------------------------------------------------------
    def add_state(self, found: Json) -> None:
        """A running task with what it reads, a replica under way, a purchase."""
        table = build(found)
        state: Json = {"tasks": [], "transfers": [], "purchases": []}
        first = [
            t for t in found["tasks"] if "after" not in t and "release_s" not in t and "budget_usd" not in t
        ]
        if first and self.chance(0.8):
            task = self.pick(first)
            modes = table.tasks[task["id"]].modes
            if modes:
                self.running(table, state, task["id"], self.pick(modes))
        if table.routes and self.chance(0.4):
            replica = self.pick(sorted(table.routes))
            if all((t["dataset"], t["site"]) != replica for t in state["transfers"]):
                route = self.pick(table.routes[replica])
                row = {"dataset": replica[0], "site": replica[1], "route": list(route.links)}
                state["transfers"].append({**row, "start": self.random.randint(-route.ticks - 1, 0)})
        once = [d["id"] for d in found["datasets"] if d.get("pricing") == "once"]
        if once and self.chance(0.9):
            state["purchases"].append(self.pick(once))
        if self.chance(0.3):
            state["time_zero"] = "2026-01-01T00:00:00Z"
        if any(state.values()):
            found["state"] = state

    def running(self, table: Table, state: Json, task: str, mode: Mode) -> None:
        start = self.random.randint(1 - mode.duration, 0)
        for dataset, site in mode.replicas:
            route = self.pick(table.routes[dataset, site])
            row = {"dataset": dataset, "site": site, "route": list(route.links)}
            state["transfers"].append({**row, "start": start - route.ticks - self.pick([0, 1])})
        inputs = [
            {"dataset": i.dataset, "access": i.access, "route": list(i.route.links) if i.route else None}
            for i in mode.inputs
        ]
        choice: Json = {"inputs": inputs}
        if mode.explicit is not None:
            choice["mode"] = mode.explicit
        uses = [{"node": node, "devices": count} for node, count in mode.uses]
        segment = {"uses": uses, "start": start, "end": start + mode.duration}
        state["tasks"].append({"task": task, "choice": choice, "segments": [segment]})


def random_instance(seed: int, profile: str = "small") -> Json:
    """An instance as it would stand in a file.

    Parameters
    ----------
    seed
        Any integer; the same seed gives the same instance.
    profile
        One of `PROFILES`.
    """
    found: Json = json.loads(_random_text(seed, profile))
    return found


@functools.cache
def _random_text(seed: int, profile: str) -> str:
    return json.dumps(Generator(seed, profile).instance())


# features ------------------------------------------------------------------------------------------
def _set(kind: str, key: str, value: Any) -> Callable[[Json], None]:
    def change(found: Json) -> None:
        for row in found[kind]:
            if key in row:
                row[key] = value

    return change


def _drop(kind: str, key: str) -> Callable[[Json], None]:
    def change(found: Json) -> None:
        for row in found[kind]:
            row.pop(key, None)

    return change


def _no_lags(found: Json) -> None:
    for task in found["tasks"]:
        for row in task.get("after", []):
            row.pop("lag_s", None)


def _pricing(old: str, **change: Any) -> Callable[[Json], None]:
    def apply(found: Json) -> None:
        for row in found["datasets"]:
            if row.get("pricing") == old:
                row.update(change)

    return apply


def _no_zero_rates(found: Json) -> None:
    for row in found["throughputs"]:
        row["measured"] = {k: v or 0.7 for k, v in row["measured"].items()}


def _one_input(found: Json) -> None:
    for task in found["tasks"]:
        if "inputs" in task:
            task["datasets"] = task.pop("inputs")[0]["datasets"]


def _inside_inputs(key: str) -> Callable[[Json], None]:
    def change(found: Json) -> None:
        for task in found["tasks"]:
            for row in task.get("inputs", []):
                row.pop(key, None)

    return change


def _in_modes(key: str, value: Any) -> Callable[[Json], None]:
    def change(found: Json) -> None:
        for task in found["tasks"]:
            for mode in task.get("modes", []):
                if key in mode:
                    mode[key] = value

    return change


def _one_node_modes(found: Json) -> None:
    for task in found["tasks"]:
        for mode in task.get("modes", []):
            mode["uses"] = mode["uses"][:1]


def _all_data(found: Json) -> None:
    for task in found["tasks"]:
        if task.get("datasets"):
            task["datasets"] = None


def _one_way(found: Json) -> None:
    _drop("links", "both_ways")(found)
    found.pop("state", None)  # it may use the way back


def _one_home(found: Json) -> None:
    for row in found["datasets"]:
        row["sites"] = row["sites"][:1]


def _relevant(found: Json) -> None:
    for row in found["datasets"]:
        row["relevance"] = dict.fromkeys(row["relevance"], 1)


def _reverse_levels(found: Json) -> None:
    found["objective"]["levels"].reverse()


def _limit(term: str) -> Callable[[Json], None]:
    def change(found: Json) -> None:
        found["objective"].get("limits", {}).pop(term, None)

    return change


def _term(term: str) -> Callable[[Json], None]:
    def change(found: Json) -> None:
        levels = found["objective"].get("levels") or [{"weighted_completion": 1, "cost": 1}]
        kept = [{t: w for t, w in level.items() if t != term} for level in levels]
        found["objective"]["levels"] = [level or {"makespan": 0} for level in kept]

    return change


def _state(*keys: str) -> Callable[[Json], None]:
    def change(found: Json) -> None:
        for key in keys:
            if key in found.get("state", {}):
                found["state"][key] = []

    return change


REMOVALS: dict[str, Callable[[Json], None]] = {
    "storage": _drop("sites", "storage_gb"),
    "channels": _drop("links", "channels"),
    "latency": _drop("links", "latency_s"),
    "egress": _set("links", "egress_usd_per_gb", 0),
    "both_ways": _one_way,
    "several_homes": _one_home,
    "quality": _set("datasets", "quality", 1),
    "relevance": _relevant,
    "price_per_use": _pricing("per_use", price_usd=0),
    "price_once": _pricing("once", price_usd=0),
    "once_is_shared": _pricing("once", pricing="per_use"),
    "available": _drop("datasets", "available_s"),
    "seats": _drop("datasets", "max_readers"),
    "streams": _drop("datasets", "streamable"),
    "calendars": _drop("nodes", "availability"),
    "device_price": _set("nodes", "usd_per_device_hour", 0),
    "scaling": _drop("models", "scaling"),
    "compression": _drop("models", "compression"),
    "zero_rates": _no_zero_rates,
    "weights": _drop("tasks", "weight"),
    "release": _drop("tasks", "release_s"),
    "due": _drop("tasks", "due_s"),
    "deadline": _drop("tasks", "deadline_s"),
    "rejection": _drop("tasks", "reject_penalty"),
    "budget": _drop("tasks", "budget_usd"),
    "sites": _drop("tasks", "sites"),
    "min_utility": _drop("tasks", "min_utility"),
    "domain": _drop("tasks", "domain"),
    "kappa": _drop("tasks", "kappa"),
    "device_counts": _drop("tasks", "device_counts"),
    "memory": _drop("tasks", "memory_gb_per_device"),
    "extra": _drop("tasks", "extra"),
    "setup": _drop("tasks", "setup_s"),
    "candidates": _all_data,
    "inputs": _one_input,
    "share": _inside_inputs("share"),
    "input_min_utility": _inside_inputs("min_utility"),
    "explicit_usd": _in_modes("usd", 0),
    "explicit_utility": _in_modes("utility", 1000),
    "several_nodes": _one_node_modes,
    "after": _drop("tasks", "after"),
    "lags": _no_lags,
    "levels": _reverse_levels,
    **{f"limit_{term}": _limit(term) for term in ("cost", "makespan", "weighted_completion", "weighted_flow",
       "weighted_tardiness", "late", "rejected", "utility_loss")},
    **{f"term_{term}": _term(term) for term in ("cost", "makespan", "weighted_completion", "weighted_flow",
       "weighted_tardiness", "late", "rejected", "utility_loss")},
    "state_tasks": _state("tasks"),
    "state_transfers": _state("tasks", "transfers"),
    "state_purchases": _state("purchases"),
}  # fmt: skip
"""Feature -> how to take it out of an instance in place."""


def without(instance: Json, feature: str) -> Json:
    """A copy of the instance in which one feature is gone."""
    found = copy.deepcopy(instance)
    REMOVALS[feature](found)
    return found


def begun_earlier(instance: Json, ticks: int) -> Json:
    """A copy in which runs and transfers of the state began so many ticks earlier, and may have ended before 0."""
    found = copy.deepcopy(instance)
    state = found.get("state", {})
    for row in [part for task in state.get("tasks", []) for part in task["segments"]]:
        row["start"], row["end"] = row["start"] - ticks, row["end"] - ticks
    for row in state.get("transfers", []):
        row["start"] -= ticks
    return found
