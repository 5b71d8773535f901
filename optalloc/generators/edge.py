"""edge: small pools open in windows only, and a dearer cloud; tasks with deadlines may be turned away."""

from decimal import Decimal

from optalloc.generators.load import set_releases, shortest_ticks
from optalloc.generators.world import TICK, World

__all__ = ["DOMAINS", "LOAD", "build"]

LOAD = Decimal(1)

EDGES = ("edge-a", "edge-b", "edge-c")
DOMAINS = ("vision", "speech")


def build(world: World) -> dict[str, object]:
    """Fill ``world``; returns what the load was made of."""
    world.site("cloud")
    for edge in EDGES:
        world.site(edge, "edge")
        for origin, target in (("cloud", edge), (edge, "cloud")):
            gbps, egress = world.draw.decimal(3, 12, 1), world.draw.decimal(4, 9, 2)
            world.link(origin, target, gbps, world.draw.integer(5, 20), egress)
    _add_pools(world)
    world.add_models()
    for domain in DOMAINS:
        for number in (1, 2, 3):
            homes = [world.draw.pick(("cloud", *EDGES))]
            world.dataset(f"{domain}-{number}", domain, homes, (20, 160))
    for number in range(world.knobs.tasks):
        world.task(f"t{number}", world.draw.pick(((1,), (1, 2), (2,))), (2, 10))
    facts = set_releases(world)
    _add_dates(world)
    world.objective["levels"] = [
        {"weighted_tardiness": 2, "rejected": 1, "cost": 1, "weighted_flow": Decimal("0.2")}
    ]
    return facts


def _add_pools(world: World) -> None:
    """A cloud pool that is always open and, at each edge, one with windows that repeat over four days."""
    for number in range(1 + world.knobs.tasks // 40):
        world.node(f"cloud-{number}", "cloud", "t24", 2)
        world.nodes[-1]["usd_per_device_hour"] *= 3
        for edge in EDGES:
            device_type = world.draw.pick(("t16", "t24", "t40"))
            devices = world.draw.integer(1, 3)
            world.node(f"{edge}-{number}", edge, device_type, devices, availability=_windows(world, devices))


def _windows(world: World, devices: int) -> list[list[int]]:
    """(start, end, devices): open 6-16 ticks, closed 3-8, sometimes with part of the devices only."""
    windows: list[list[int]] = []
    now = world.draw.integer(0, 4)
    while now < 4 * 96:
        end = now + world.draw.integer(6, 16)
        part = devices if world.draw.chance(70) else world.draw.integer(1, devices)
        windows.append([now * TICK, end * TICK, part])
        now = end + world.draw.integer(3, 8)
    return windows


def _add_dates(world: World) -> None:
    """Due dates for all; every second task has a deadline as well and may be rejected for a price."""
    for task in world.tasks:
        least = shortest_ticks(world, task)
        due = least + world.draw.integer(1, 5)
        penalty = task["weight"] * world.draw.integer(15, 40)
        late = due + world.draw.integer(2, 8)
        task["due_s"] = task["release_s"] + due * TICK
        if world.draw.chance(50):
            task |= {"deadline_s": task["release_s"] + late * TICK, "reject_penalty": penalty}
