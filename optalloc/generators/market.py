"""market: datasets for sale, once or by use, with licence seats; tasks have a least utility and a budget."""

from decimal import Decimal

from optalloc.generators.load import set_releases
from optalloc.generators.world import World, mesh

__all__ = ["DOMAINS", "LOAD", "build"]

LOAD = Decimal("1.5")

SITES = ("hub", "west", "east")
DOMAINS = ("vision", "language", "translation")


def build(world: World) -> dict[str, object]:
    """Fill ``world``; returns what the load was made of."""
    for site in SITES:
        world.site(site)
    for origin, target in mesh(SITES):
        world.link(origin, target, world.draw.decimal(30, 100, 1), 20, world.draw.decimal(1, 5, 2))
    for number in range(1 + world.knobs.tasks // 40):
        for site, device_type in zip(SITES, ("t24", "t40", "t16"), strict=True):
            world.node(f"{site}-{number}", site, device_type, world.draw.pick((2, 3)))
    world.add_models()
    for domain in DOMAINS:
        _offers(world, domain)
    for number in range(world.knobs.tasks):
        task = world.task(f"t{number}", world.draw.pick(((1,), (1, 2), (2,))), (3, 12))
        task["kappa"] = world.draw.pick((1, 2))
        least, budget = world.draw.decimal(45, 60, 2), world.draw.integer(60, 150)
        if world.draw.chance(40):
            task["min_utility"] = least
        if world.draw.chance(30):
            task["budget_usd"] = budget
    levels = [{"weighted_completion": 1, "cost": 1, "utility_loss": Decimal("0.01")}]
    world.objective["levels"] = levels
    return set_releases(world)


def _offers(world: World, domain: str) -> None:
    """A plain free dataset, a better one paid by use, the best one paid once with few seats."""
    free = world.dataset(f"{domain}-open", domain, ["hub"], (40, 200))
    free |= {"quality": Decimal("0.75"), "relevance": {domain: world.draw.decimal(80, 90, 2)}}
    price, seats = world.draw.integer(3, 12), world.draw.integer(1, 2)
    home = [world.draw.pick(SITES)]
    world.dataset(f"{domain}-rent", domain, home, (40, 200), price_usd=price, pricing="per_use")
    home = [world.draw.pick(SITES)]
    more = {"price_usd": 4 * price, "pricing": "once", "max_readers": seats}
    best = world.dataset(f"{domain}-prime", domain, home, (40, 200), **more)
    best["relevance"] |= {domain: Decimal(1)}
