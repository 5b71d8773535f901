"""ladder: congested, any size; the tasks of ten and of ten thousand have the same shape."""

from decimal import Decimal

from optalloc.generators.load import set_releases
from optalloc.generators.world import DEVICE_TYPES, DOMAINS, World, mesh

__all__ = ["DOMAINS", "LOAD", "build"]

LOAD = Decimal(3)

SITES = ("alpha", "beta", "gamma")
POOLS = (4, 8, 16)
COUNTS = ((1,), (1, 2), (1, 2, 4), (2, 4), (2, 4, 8))
MOST_MODES = 480
MOST_CANDIDATES = 8


def build(world: World) -> dict[str, object]:
    """Fill ``world``; returns what the load was made of."""
    num_nodes, num_datasets = sizes(world.knobs.tasks)
    for site in SITES:
        world.site(site)
    for origin, target in mesh(SITES):
        world.link(origin, target, world.draw.decimal(20, 80, 1), 40, world.draw.decimal(2, 9, 2))
    for number in range(num_nodes):
        # Every site has every size of pool; types go round at another pace.
        site = SITES[number % 3]
        device_type = tuple(DEVICE_TYPES)[(number + number // 4 + 1) % 4]
        world.node(f"n{number}", site, device_type, POOLS[(number // 3 + number) % 3])
    world.add_models()
    for number in range(num_datasets):
        homes = world.draw.sample(SITES, world.draw.pick((1, 1, 2)))
        world.dataset(f"d{number}", DOMAINS[number % len(DOMAINS)], homes, (60, 500))
    by_domain = {d: [x["id"] for x in world.datasets if d in x["relevance"]] for d in DOMAINS}
    for number in range(world.knobs.tasks):
        _add_task(world, number, by_domain)
    return set_releases(world)


def sizes(tasks: int) -> tuple[int, int]:
    """Nodes and datasets for a number of tasks: 6 and 16 up to 100 tasks, then 60 and 506 by 10,000.

    >>> sizes(20), sizes(100), sizes(1000), sizes(10_000)
    ((6, 16), (6, 16), (19, 90), (60, 506))
    """
    factor = max(1.0, tasks / 100)
    return round(6 * factor**0.5), round(16 * factor**0.75)


def _add_task(world: World, number: int, by_domain: dict[str, list[str]]) -> None:
    """A task with as many candidate datasets as keep its modes below the limit."""
    task = world.task(f"t{number}", world.draw.pick(COUNTS), (6, 40))
    pairs = sum(count <= node["devices"] for node in world.nodes for count in task["device_counts"])
    most = max(1, min(MOST_CANDIDATES, MOST_MODES // pairs))
    domain = task["model"].rsplit("-", 1)[0]
    task["datasets"] = world.draw.sample(by_domain[domain], world.draw.integer(min(2, most), most))
