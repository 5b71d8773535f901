"""contended: links that carry one or two things at a time, sites with little storage, streams."""

from decimal import Decimal

from optalloc.generators.load import set_releases
from optalloc.generators.world import World

__all__ = ["DOMAINS", "LOAD", "build"]

LOAD = Decimal("1.5")

COMPUTE = ("north", "south")
DOMAINS = ("vision", "language")


def build(world: World) -> dict[str, object]:
    """Fill ``world``; returns what the load was made of."""
    world.site("store")
    for site in COMPUTE:
        # Two of the larger datasets never fit at once.
        world.site(site, storage_gb=world.coupled(Decimal(world.draw.integer(420, 650))))
    for site in COMPUTE:
        _connect(world, "store", site, world.draw.integer(1, 2))
    _connect(world, *COMPUTE, 1)
    for number in range(1 + world.knobs.tasks // 40):
        for site, device_type in zip(COMPUTE, ("t24", "t40"), strict=True):
            world.node(
                f"{site}-{number}",
                site,
                device_type,
                world.draw.pick((3, 4)),
                extra={"cpu": 32, "ram_gb": 256},
            )
    world.add_models()
    for domain in DOMAINS:
        for number in (1, 2, 3):
            home = "store" if world.draw.chance(80) else world.draw.pick(COMPUTE)
            streamable = world.draw.chance(60)
            world.dataset(f"{domain}-{number}", domain, [home], (150, 400), streamable=streamable)
    for number in range(world.knobs.tasks):
        task = world.task(f"t{number}", world.draw.pick(((1,), (1, 2), (2,))), (3, 10))
        task["extra"] = {"cpu": world.draw.pick((4, 8, 12)), "ram_gb": world.draw.pick((16, 32, 64))}
    return set_releases(world)


def _connect(world: World, one: str, other: str, channels: int) -> None:
    """Links of both directions, with their own rates."""
    for origin, target in ((one, other), (other, one)):
        gbps, egress = world.draw.decimal(8, 30, 1), world.draw.decimal(1, 4, 2)
        world.link(origin, target, gbps, 15, egress, channels)
