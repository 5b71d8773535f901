"""What the ladder is compared with: the exact methods without help, and PyJobShop.

`cpsat-plain`
    The interval model of `optalloc.formulations.cpsat`, given to CP-SAT with its own defaults: no plan of a rule as
    hint and cutoff, no start windows narrowed by it, and neither linearization_level=2 nor the added max_lp worker.
`highs-plain`
    The time-indexed model on all starts up to the horizon, given to HiGHS without a plan that could narrow them.
`pyjobshop`
    PyJobShop's own CP-SAT model of the same modes, with its own parameters: a job with one task for each of
    ours. Its objectives know no money, so only those of completion and flow times can be compared.

Each is a solver of optalloc: its plans pass `evaluate`, its bounds are in the units of the objective.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from optalloc.errors import UnsupportedError
from optalloc.problem import Problem
from optalloc.result import Termination
from optalloc.scope import Scope, windows
from optalloc.solvers import cpsat, highs
from optalloc.solvers.base import Outcome, Request
from optalloc.solvers.levels import solve_levels
from optalloc.solvers.registry import solver

CPSAT_DEFAULTS = {"linearization_level": 1, "extra_subsolvers": []}
"""CP-SAT's own values of what our solver sets."""


@solver("cpsat-plain", exact=True, summary="our interval model, CP-SAT by itself", libraries=("ortools",))
def cpsat_plain(request: Request) -> Outcome:
    """Our model without our help."""
    return solve_levels(replace(request, options=CPSAT_DEFAULTS), cpsat.solve_level, "cpsat-plain")


@solver("highs-plain", exact=True, summary="our time-indexed model, HiGHS by itself", libraries=("highspy",))
def highs_plain(request: Request) -> Outcome:
    """Our model without our help."""
    return solve_levels(request, highs.solve_level, "highs-plain")


@solver("pyjobshop", exact=True, summary="PyJobShop's model and CP-SAT", libraries=("pyjobshop", "ortools"))
def pyjobshop(request: Request) -> Outcome:
    """PyJobShop's model with its solver's parameters; solutions are taken in as they come."""
    return _Peer(request).solve()


PEERS = {"cpsat-plain": cpsat_plain, "highs-plain": highs_plain, "pyjobshop": pyjobshop}


def cannot_express(scope: Scope) -> list[str]:
    """What of a problem PyJobShop has no words for, or this adapter does not translate."""
    problem = scope.problem
    level, active = problem.levels[0], np.flatnonzero(problem.active)
    own = level.makespan or any(form.any() for form in (level.tardiness, level.late, level.loss))
    found = {
        "several levels": len(problem.levels) > 1,
        "the cost of modes": level.cost != 0,
        "objective terms other than completion and flow times": own,
        "limits": bool(problem.limits),
        "data that are brought first": any(problem.needs(mode) for mode in active.tolist()),
        "rejection": scope.rejectable.any(),
        "calendars": len(problem.cap_time) > problem.num_resources,
        "data that become available": (problem.available > problem.release[problem.mode_task])[active].any(),
        "what is fixed already": not scope.free.all() or scope.not_before > 0,
    }
    return [name for name, there in found.items() if there]


class _Peer:
    """One run of PyJobShop."""

    def __init__(self, request: Request):
        reasons = cannot_express(request.scope)
        if reasons:
            raise UnsupportedError(f"PyJobShop cannot express: {', '.join(reasons)}")
        self.request, self.monitor = request, request.monitor
        self.problem = request.scope.problem
        self.mode_of: list[int] = []
        """Mode of PyJobShop -> mode of ours."""

    @property
    def constant(self) -> int:
        """What the objective holds beyond weight * (end - release) of every task."""
        level = self.problem.levels[0]
        return int((level.completion * self.problem.release + level.placed).sum())

    def data(self) -> Any:
        """The problem as PyJobShop writes it: nodes, seats and the like are renewable resources."""
        from pyjobshop import Model

        problem, model = self.problem, Model()
        end_by = windows(self.request.scope).horizon
        resources = [model.add_renewable(amount) for amount in capacities(problem)]
        tasks = []
        for task in range(problem.num_tasks):
            release, weight = int(problem.release[task]), int(problem.levels[0].completion[task])
            latest = min(int(problem.deadline[task]), end_by)
            job = model.add_job(weight=weight, release_date=release, deadline=latest)
            tasks.append(model.add_task(job, earliest_start=release, latest_end=latest))
            for mode in problem.modes_of(task).tolist():
                uses = list(problem.uses(mode))
                held, amounts = [resources[r] for r, _ in uses], [amount for _, amount in uses]
                model.add_mode(tasks[-1], held, int(problem.duration[mode]), amounts)
                self.mode_of.append(mode)
            for before, lag in problem.predecessors(task):
                model.add_end_before_start(tasks[before], tasks[task], lag)
        model.set_objective(weight_total_flow_time=1)
        return model.data()

    def solve(self) -> Outcome:
        """Build, search, and take over plans and bounds."""
        from ortools.sat.python import cp_model
        from pyjobshop.solvers.ortools import CPModel

        built = CPModel(self.data())
        native = cp_model.CpSolver()
        # What PyJobShop's own solve sets, and nothing else.
        native.parameters.max_time_in_seconds = self.monitor.remaining
        native.parameters.num_workers = self.request.threads
        native.best_bound_callback = self.note_bound
        status = native.solve(built.model, _taker(self, built.variables))
        if status == cp_model.INFEASIBLE:
            return Outcome(Termination.PROVEN, infeasible=True)
        if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            self.offer(built.variables, native.value)
        self.note_bound(native.best_objective_bound)
        done = self.monitor.gap(0) == 0
        return Outcome(Termination.PROVEN if done else Termination.TIME_LIMIT)

    def note_bound(self, value: float) -> None:
        """A bound in our units."""
        self.monitor.bound(0, cpsat.rounded_bound(value) + self.constant, "pyjobshop")

    def offer(self, variables: Any, value: Any) -> None:
        """A solution as a plan, which is verified."""
        plan = self.request.scope.start_plan()
        for chosen, mode in zip(variables.mode_vars, self.mode_of, strict=True):
            if value(chosen):
                task = int(self.problem.mode_task[mode])
                plan.mode[task], plan.start[task] = mode, value(variables.task_vars[task].start)
        self.monitor.offer(plan, "pyjobshop")


def capacities(problem: Problem) -> list[int]:
    """(R,) what each resource holds; calendars have been refused."""
    amounts: list[int] = problem.cap_amount[problem.cap_ptr[:-1]].tolist()
    return amounts


def _taker(peer: _Peer, variables: Any) -> Any:
    """CP-SAT's callback that offers each solution."""
    from ortools.sat.python.cp_model import CpSolverSolutionCallback

    class Taker(CpSolverSolutionCallback):  # type: ignore[misc]
        def on_solution_callback(self) -> None:
            peer.offer(variables, self.value)

    return Taker()
