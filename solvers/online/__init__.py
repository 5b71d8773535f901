"""Schedulers that do not know the future, as solvers: each is run through the simulator (docs/online.md)."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from optalloc.errors import Fault, InputError
from optalloc.io.atomic import can_write, same_file
from optalloc.problem import Plan
from optalloc.result import Result, Termination
from optalloc.scope import Scope
from optalloc.simulation import REPLAN, RESERVE, Policy, Simulator, simulate, write_trace
from optalloc.solvers.base import Outcome, Request
from optalloc.solvers.online.backfill import conservative_backfill, easy_backfill
from optalloc.solvers.online.desk import OnlineDesk
from optalloc.solvers.online.index import replan_index
from optalloc.solvers.online.packing import tetris
from optalloc.solvers.online.rolling import Rolling
from optalloc.solvers.online.rollout import MODES, TASKS, Rollout
from optalloc.solvers.online.rules import ONLINE_RULES, OnlineRule
from optalloc.solvers.registry import solver

__all__ = ["Make", "join_policy", "look_ahead", "online_policy", "run_policy"]

Make = Callable[[Request, Simulator], Policy]
"""A policy for one run."""

_EVERY: Final[Mapping[str, Any]] = {"trace": ""}
_CHOICE: Final[Mapping[str, Any]] = {"discipline": REPLAN, **_EVERY}


def run_policy(request: Request, name: str, make: Make, discipline: str) -> Outcome:
    """Simulate a policy and offer its plan."""
    lines: list[dict[str, Any]] = []
    path = request.options.get("trace", "")
    _check_trace(path, [value for name, value in request.options.items() if name != "trace"])
    simulator = Simulator(request.scope, discipline, trace=lines.append if path else None)
    policy = make(request, simulator)
    try:
        simulate(simulator, policy, request.monitor.should_stop)
    finally:
        if path:
            write_trace(lines, path)
    if simulator.failure:
        return Outcome(Termination.COMPLETED, message=simulator.failure)
    if not simulator.done:
        stopped = Termination.USER if request.monitor.interrupted else Termination.TIME_LIMIT
        return Outcome(stopped, message=f"the time was up at tick {simulator.clock} of the simulation")
    request.monitor.offer(simulator.plan(), name)
    return Outcome(Termination.COMPLETED)


def _check_trace(path: str | Path, others: Iterable[Any]) -> None:
    """It can be written, and is no file that another option names."""
    try:
        if path:
            can_write(path)
    except OSError as error:
        raise InputError(Fault("options.trace", f"{path}: {error.strerror}")) from None
    if path and any(same_file(path, other) for other in others):
        raise InputError(Fault("options.trace", f"{path} is read by another option; choose another file"))


def online_policy(name: str, *, summary: str = "", discipline: str = REPLAN) -> Callable[[Policy], Policy]:
    """Decorator that makes a policy, a function of a `Turn`, a solver of that name.

    Parameters
    ----------
    name
        How it is called in ``solve(..., solver=name)``.
    summary
        One line about it; default the first line of its docstring.
    discipline
        Default of the option of that name.
    """

    def join(policy: Policy) -> Policy:
        join_policy(
            name,
            summary or _first_line(policy),
            lambda request, simulator: policy,
            {"discipline": discipline, **_EVERY},
            origin=policy,
        )
        return policy

    return join


def join_policy(
    name: str,
    summary: str,
    make: Make,
    options: Mapping[str, Any],
    fixed: str = "",
    origin: Policy | None = None,
    least: Mapping[str, float] | None = None,
) -> None:
    """Register a policy as a solver.

    Parameters
    ----------
    fixed
        A discipline that cannot be chosen.
    origin
        The function by which the solver can be named as ``module:object``.
    least
        Smallest values allowed of options.
    """

    def run(request: Request) -> Outcome:
        given = {**options, **request.options}
        return run_policy(request, name, make, fixed or given["discipline"])

    # The registry tells functions apart by where they come from, and reads the signature of a solver.
    run.__qualname__ = f"run.{name}"
    if origin is not None:
        run.__dict__.update(__signature__=inspect.signature(run), __wrapped__=origin)
    solver(name, summary=summary, options=options, least=least)(run)


def _first_line(function: Callable[..., Any]) -> str:
    return (function.__doc__ or "").partition("\n")[0]


def _on_desk(rule: OnlineRule) -> Make:
    """A rule without foresight as a policy."""

    def make(request: Request, simulator: Simulator) -> Policy:
        desk = OnlineDesk(simulator, request.seed)
        return lambda turn: rule(desk.begin())

    return make


def look_ahead(tasks: int, modes: int, base: OnlineRule = replan_index) -> Make:
    """`Rollout` as a policy. It stops where half of the time is gone: the base rule needs the rest at most."""

    def make(request: Request, simulator: Simulator) -> Policy:
        def hurry() -> bool:
            return request.monitor.elapsed > request.monitor.time_limit / 2

        return _on_desk(Rollout(tasks, modes, base, hurry))(request, simulator)

    return make


def _rollout(request: Request, simulator: Simulator) -> Policy:
    given = {"tasks": TASKS, "modes": MODES, **request.options}
    return look_ahead(given["tasks"], given["modes"])(request, simulator)


def _rolling(request: Request, simulator: Simulator) -> Policy:
    from optalloc.solvers.run import solve

    given = {**_ROLLING, **request.options}
    work = float(given["deterministic"])
    options = {"max_deterministic_time": work} if work and given["solver"] == "cpsat" else {}

    def look(scope: Scope, start: Plan | None) -> Result | None:
        monitor = request.monitor
        left = monitor.time_limit * 0.9 - monitor.elapsed
        seconds = left if options else min(left, float(given["seconds"]))
        if seconds <= 0 or monitor.should_stop():
            return None
        ids = [scope.problem.task_ids[task] for task in scope.free.nonzero()[0].tolist()]
        return solve(
            scope.problem,
            given["solver"],
            time_limit=seconds,
            seed=request.seed,
            threads=request.threads,
            start=start,
            fixed=scope.start_plan(),
            not_before=scope.not_before,
            tasks=ids,
            options=options,
        )

    return Rolling(simulator, look, request.seed)


_ROLLING: Final[Mapping[str, Any]] = {"solver": "cpsat", "seconds": 2.0, "deterministic": 0.0, **_EVERY}

for _name, _rule in ONLINE_RULES.items():
    join_policy(
        f"online-{_name}", f"{_name} at every event, on what has been released", _on_desk(_rule), _CHOICE
    )
join_policy("replan-index", _first_line(replan_index), _on_desk(replan_index), _CHOICE)
join_policy("easy-backfill", _first_line(easy_backfill), _on_desk(easy_backfill), _EVERY, REPLAN)
join_policy(
    "conservative-backfill",
    _first_line(conservative_backfill),
    _on_desk(conservative_backfill),
    _EVERY,
    RESERVE,
)
join_policy("tetris", _first_line(tetris), _on_desk(tetris), _EVERY, REPLAN)
join_policy(
    "rollout",
    _first_line(Rollout),
    _rollout,
    {"tasks": TASKS, "modes": MODES, **_CHOICE},
    least={"tasks": 1, "modes": 1},
)
join_policy(
    "rolling",
    "what has been released solved exactly, again whenever more comes",
    _rolling,
    _ROLLING,
    REPLAN,
    least={"seconds": 0, "deterministic": 0},
)
