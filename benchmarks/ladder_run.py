"""One run of the ladder, in a process of its own: ``python ladder_run.py SPEC ANSWER`` (JSON text, file to write)."""

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from ladder_parts import NAMES, PART_OF_SOURCE, Watch, peak
from ladder_store import INVALID, REFUSED, Part, Point, Run, Spec, about_here, gap_of, line_of

import optalloc as oa
from optalloc.io.atomic import write_text
from optalloc.result import CurvePoint, Result
from optalloc.solvers.base import Outcome, Request

OBJECTIVES = {
    "completion": "weighted_completion=1,cost=1",
    "flow": "weighted_flow=1,cost=1",
    "time": "weighted_completion=1",
}
"""Name -> objective. `time` leaves money out: others know no cost of modes."""

INSTANTS = (1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0)
"""Seconds at which a stored curve is exact, besides a fine grid and the limit."""
CLOSE = 0.01


def main() -> None:
    """Run what the first argument says, and write the answer to the second."""
    asked = json.loads(sys.argv[1])
    run = measure(Spec(**asked["spec"]), asked["commit"])
    write_text(Path(sys.argv[2]), line_of(run))


def measure(spec: Spec, commit: str) -> Run:
    """Warm up, solve, and say how it went."""
    instance = instance_of(spec)
    solver = _solver(spec.solver)
    warm(spec.solver)
    with Watch() as watch:
        try:
            result = oa.solve(instance, solver, time_limit=spec.limit, threads=spec.threads)
        except oa.UnsupportedError as error:
            return Run(spec, commit, about_here(), REFUSED, str(error))
    fault = fault_of(result)
    first = result.levels[0]
    points = points_of(result.curve)
    return Run(
        spec,
        commit,
        about_here(),
        INVALID if fault else result.status.value,
        fault or result.message,
        first.objective,
        first.bound,
        round(result.seconds, 3),
        reached(points, CLOSE, spec.limit),
        _rounded(peak()),
        parts_of(result.curve, watch),
        thinned(points, spec.limit),
    )


def instance_of(spec: Spec) -> oa.Instance:
    """The instance of a run."""
    instance = oa.generate("ladder", tasks=spec.tasks, load=spec.load, coupling=spec.coupling, seed=spec.seed)
    return oa.with_objective(instance, OBJECTIVES[spec.objective])


def _solver(name: str) -> str | Callable[[Request], Outcome]:
    if name not in ("cpsat-plain", "highs-plain", "pyjobshop"):
        return name
    from peers import PEERS

    return PEERS[name]


def warm(solver: str) -> None:
    """Load what is loaded once a process: kernels, and libraries behind the exact methods."""
    from optalloc.solvers import cpsat, highs, jit  # noqa: F401
    from optalloc.solvers.warming import compile_all

    if solver == "pyjobshop":
        import pyjobshop  # noqa: F401
    if jit.COMPILED and jit.prepare(lambda: False):
        compile_all()


def fault_of(result: Result) -> str:
    """What is wrong with a result; "" if nothing is. The schedule is checked once more as a reader would."""
    if result.schedule is None:
        return ""
    checked = oa.evaluate(result.problem, result.schedule)
    first = result.levels[0]
    if not checked.valid:
        return f"the plan breaks {checked.violations[0]}"
    if checked.levels[0] != first.objective:
        return f"the plan is worth {checked.levels[0]}, not {first.objective}"
    if first.bound is not None and first.bound > checked.levels[0]:
        return f"bound {first.bound} above the plan's {checked.levels[0]}"
    return ""


# curve -----------------------------------------------------------------------------------------------------
def points_of(curve: Iterable[CurvePoint]) -> list[Point]:
    """What was known of the first level after each event."""
    points: list[Point] = []
    plan = bound = None
    for event in curve:
        if event.level == 0:
            plan = plan if event.objective is None else event.objective
            bound = bound if event.bound is None else event.bound
            points.append((round(event.seconds, 3), plan, bound))
    return points


def reached(points: Iterable[Point], close: float, limit: float) -> float | None:
    """Seconds to the first gap that is so small, within the limit."""
    gaps = ((point[0], gap_of(point)) for point in points if point[0] <= limit)
    return next((seconds for seconds, gap in gaps if gap is not None and gap <= close), None)


def thinned(points: list[Point], limit: float) -> tuple[Point, ...]:
    """The last point before each instant of a grid, and the very last one: at most some sixty."""
    grid = {0.05 * (limit / 0.05) ** (step / 45) for step in range(45)}
    instants = sorted(grid | {at for at in INSTANTS if at <= limit} | {limit})
    kept = (next((p for p in reversed(points) if p[0] <= at), None) for at in instants)
    return tuple(dict.fromkeys([point for point in kept if point is not None] + points[-1:]))


# parts -----------------------------------------------------------------------------------------------------
def parts_of(curve: Iterable[CurvePoint], watch: Watch) -> dict[str, Part]:
    """What each part took, and how far it moved plan and bound of the first level."""
    plans, bounds = moves([event for event in curve if event.level == 0])
    return {
        name: Part(
            round(watch.seconds.get(name, 0.0), 2),
            _rounded(watch.gigabytes.get(name)),
            round(plans.get(name, 0.0), 6),
            round(bounds.get(name, 0.0), 6),
        )
        for name in NAMES
        if name in watch.seconds.keys() | plans.keys() | bounds.keys()
    }


def moves(events: list[CurvePoint]) -> tuple[dict[str, float], dict[str, float]]:
    """Part -> how far it moved the plan, and the bound, as a share of the last plan; first ones move nothing."""
    plans: dict[str, float] = {}
    bounds: dict[str, float] = {}
    last = next((e.objective for e in reversed(events) if e.objective is not None), None)
    whole = max(1, abs(last or 0))
    plan = bound = None
    for event in events:
        part = PART_OF_SOURCE.get(event.source, "exact")
        if event.objective is not None:
            known = event.objective if plan is None else plan
            plans[part] = plans.get(part, 0.0) + (known - event.objective) / whole
            plan = event.objective
        if event.bound is not None:
            known = event.bound if bound is None else bound
            bounds[part] = bounds.get(part, 0.0) + (event.bound - known) / whole
            bound = event.bound
    return plans, bounds


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


if __name__ == "__main__":
    main()
