"""geo: regions of a cloud with their own prices, distances and egress; some tasks are bound to regions."""

from decimal import Decimal

from optalloc.generators.load import set_releases
from optalloc.generators.world import DOMAINS, World, mesh

__all__ = ["DOMAINS", "LOAD", "build"]

LOAD = Decimal(2)

REGIONS = {"us-east": 0, "eu-west": 80, "asia-east": 190, "south": 240}
"""Region -> milliseconds from the first."""

TYPES = ("t24", "t40", "t16", "t80")


def build(world: World) -> dict[str, object]:
    """Fill ``world``; returns what the load was made of."""
    for region in REGIONS:
        world.site(region)
    for origin, target in mesh(REGIONS):
        distance = abs(REGIONS[origin] - REGIONS[target]) + 10
        gbps = world.draw.decimal(20, 60, 1)
        world.link(origin, target, gbps, distance // 2, world.draw.decimal(2, 9, 2))
    _add_pools(world)
    world.add_models()
    for domain in DOMAINS:
        for number in (1, 2):
            homes = world.draw.sample(list(REGIONS), world.draw.integer(1, 2))
            world.dataset(f"{domain}-{number}", domain, homes, (60, 500))
    for number in range(world.knobs.tasks):
        task = world.task(f"t{number}", world.draw.pick(((1,), (1, 2), (2,))), (3, 14))
        residence = world.draw.sample(list(REGIONS), 2)
        if world.draw.chance(25):
            task["sites"] = [region for region in REGIONS if region in residence]
    return set_releases(world)


def _add_pools(world: World) -> None:
    """One pool a region, and another for every 40 tasks."""
    for number in range(1 + world.knobs.tasks // 40):
        for place, region in enumerate(REGIONS):
            device_type = TYPES[(place + number) % len(TYPES)]
            world.node(f"{region}-{number}", region, device_type, world.draw.pick((2, 2, 3)))
