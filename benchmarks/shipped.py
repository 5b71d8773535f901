"""What ships: the names of the index in their order, and how each instance is made."""

from dataclasses import dataclass

REAL = {8: 120.0, 12: 120.0, 20: 120.0, 60: 300.0, 200: 300.0}
"""Size of a composed instance -> seconds for each exact method."""

SEEDS_OF_LARGE = {60: 1, 200: 1}
"""Composed instances too large to be searched for by a proof: the first seed at which N tasks wait N ticks or more in
total in the plan of the best dispatch rule."""

MOST_COLUMNS = 1_000_000
"""The time-indexed MILP is left out where the best plan leaves more columns: it would not see its first relaxation."""

INVENTED = {
    "geo": {6: 3, 10: 0, 30: 0},
    "edge": {6: 3, 10: 2, 30: 0},
    "market": {6: 1, 10: 3, 30: 0},
    "contended": {6: 2, 10: 0, 30: 0},
    "pipeline": {6: 2, 10: 3, 30: 0},
    "ladder": {6: 3, 10: 3, 100: 0},
}
"""Preset -> number of tasks -> seed."""


@dataclass(frozen=True)
class Plan:
    """How one generated instance is made."""

    preset: str
    tasks: int
    seed: int

    @property
    def name(self) -> str:
        """Its name in the index."""
        return f"{self.preset}-{self.tasks}"

    @property
    def seconds(self) -> float:
        """Time limit of each exact method."""
        return 120.0 if self.tasks <= 10 else 300.0


GENERATED = [Plan(preset, tasks, seed) for preset, sizes in INVENTED.items() for tasks, seed in sizes.items()]
ORDER = [f"real-{size}" for size in REAL] + [plan.name for plan in GENERATED]
