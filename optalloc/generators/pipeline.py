"""pipeline: workflows that prepare, train (one or two at a time) and test, with lags between the steps."""

from decimal import Decimal
from typing import Any

from optalloc.generators.load import set_releases
from optalloc.generators.world import DOMAINS, World, mesh

__all__ = ["DOMAINS", "LOAD", "build"]

LOAD = Decimal(1)

SITES = ("lab", "cloud")


def build(world: World) -> dict[str, object]:
    """Fill ``world``; returns what the load was made of."""
    for site in SITES:
        world.site(site)
    for origin, target in mesh(SITES):
        world.link(origin, target, world.draw.decimal(10, 40, 1), 30, world.draw.decimal(2, 6, 2))
    for number in range(1 + world.knobs.tasks // 40):
        world.node(f"lab-{number}", "lab", "t24", 2)
        world.node(f"cloud-{number}", "cloud", "t40", world.draw.pick((3, 4)))
    world.add_models()
    for domain in DOMAINS:
        for number in (1, 2):
            world.dataset(f"{domain}-{number}", domain, [world.draw.pick(SITES)], (40, 300))
    flows: list[list[dict[str, Any]]] = []
    while len(world.tasks) < world.knobs.tasks:
        flows.append(_flow(world, f"w{len(flows)}", world.knobs.tasks - len(world.tasks)))
    world.objective["levels"] = [{"makespan": 4, "weighted_completion": Decimal("0.5"), "cost": 1}]
    return set_releases(world, flows)


def _flow(world: World, name: str, most: int) -> list[dict[str, Any]]:
    """At most ``most`` tasks: prepare, then one or two trainings, then a test after all of them."""
    trainings = world.draw.integer(1, 2)
    first = world.task(f"{name}-prepare", (1,), (1, 3), setup_s={"t24": 60, "t40": 120})
    flow = [first]
    for number in range(trainings):
        train = world.task(f"{name}-train{number}", world.draw.pick(((1, 2), (2,))), (4, 12))
        train["after"] = [{"id": first["id"], "lag_s": world.draw.integer(0, 2) * 600}]
        _pair(world, train)
        flow.append(train)
    test = world.task(f"{name}-test", (1,), (1, 2), datasets=[], kappa=0)
    test["after"] = [{"id": train["id"], "lag_s": 0} for train in flow[1:]]
    flow.append(test)
    del flow[most:]
    del world.tasks[len(world.tasks) - (trainings + 2) + len(flow) :]
    return flow


def _pair(world: World, task: dict[str, Any]) -> None:
    """Sometimes a training reads a second dataset, of another domain, with a share of a quarter."""
    domain = task["model"].rsplit("-", 1)[0]
    own = [d["id"] for d in world.datasets if d["relevance"].get(domain, 0) >= Decimal("0.7")]
    others = [d["id"] for d in world.datasets if d["id"] not in own]
    extra = world.draw.sample(others, 2)
    if world.draw.chance(30):
        task["inputs"] = [{"datasets": own}, {"datasets": sorted(extra), "share": Decimal("0.25")}]
