"""Exact worth of what a scheduler can decide on small instances, by the CP-SAT formulation.

What is decided for good is given; all other tasks, those released later too, are placed as well as possible.
"""

from collections.abc import Iterable
from typing import NamedTuple

from ortools.sat.python import cp_model

from optalloc.evaluation import evaluate
from optalloc.formulations.cpsat import build, read_plan
from optalloc.problem import REJECTED, Plan, Problem
from optalloc.schedule import build_scope
from optalloc.scope import windows
from optalloc.simulation import Simulator, left_shifted

__all__ = ["SECONDS", "Exact", "Moment", "Run", "Unproven"]

SECONDS = 5.0
"""For one exact value."""


class Run(NamedTuple):
    """A task in a mode, or REJECTED, from a start on; None: from any."""

    task: int
    mode: int
    start: int | None

    def is_in(self, plan: Plan) -> bool:
        """Whether a plan has it."""
        same = plan.mode[self.task] == self.mode
        return bool(same and (self.start is None or plan.start[self.task] == self.start))


class Unproven(Exception):
    """The optimum was not proven in time."""


class Moment:
    """Exact values at one moment of a simulation: nothing but what is decided for good is given.

    Parameters
    ----------
    plan
        What is decided for good.
    clock
        Nothing else starts before.
    seconds
        For one value.
    """

    def __init__(self, problem: Problem, plan: Plan, clock: int, seconds: float = SECONDS):
        self.scope = build_scope(problem, plan, clock)
        self.built = build(self.scope, windows(self.scope))
        self.seconds = seconds
        self.solves = 0
        self._optimal: list[Plan] = []
        self._values: dict[tuple[Run, ...], float] = {}

    @property
    def best(self) -> float:
        """Of all plans; infinite without any."""
        return self._value(())

    def least(self, runs: Iterable[Run]) -> float:
        """Objective of the best plan that has at least one of some runs; infinite without any.

        Raises
        ------
        Unproven
        """
        asked, best = tuple(sorted(runs)), self.best
        if any(run.is_in(plan) for plan in self._optimal for run in asked):
            return best
        return self._value(asked)

    def _value(self, runs: tuple[Run, ...]) -> float:
        if runs not in self._values:
            self._values[runs] = self._solve(runs)
        return self._values[runs]

    def _solve(self, runs: tuple[Run, ...]) -> float:
        model, native = self.built.model.clone(), cp_model.CpSolver()
        if runs:
            model.add_bool_or([self._placed(model, run) for run in runs])
        native.parameters.num_workers = 1
        native.parameters.linearization_level = 2
        native.parameters.cp_model_presolve = False  # it takes longer than the search
        native.parameters.max_time_in_seconds = self.seconds
        self.solves += 1
        status = native.solve(model)
        if status == cp_model.INFEASIBLE:
            return float("inf")
        if status != cp_model.OPTIMAL:
            raise Unproven
        return self._checked(read_plan(self.built, native.value), native, runs)

    def _placed(self, model: cp_model.CpModel, run: Run) -> cp_model.IntVar:
        """A literal that is true only if the run is in the plan."""
        literal, activity = model.new_bool_var(""), self.built.variables.tasks[run.task]
        option = activity.options.get(run.mode)
        chosen = activity.absent if run.mode == REJECTED else option and option.literal
        model.add_bool_and([literal.negated() if chosen is None else chosen]).only_enforce_if(literal)
        if run.start is not None:
            model.add(activity.start == run.start).only_enforce_if(literal)
        return literal

    def _checked(self, plan: Plan, native: cp_model.CpSolver, runs: tuple[Run, ...]) -> int:
        """The value of a plan that is verified to be one, has a run that was asked for, and is proven optimal."""
        found = evaluate(self.scope.problem, plan, scope=self.scope)
        bound = int(native.response_proto.inner_objective_lower_bound) + self.built.constant
        if not found.valid or found.levels[0] != bound or (runs and not any(run.is_in(plan) for run in runs)):
            raise RuntimeError(f"The exact value {bound} does not belong to its plan: {found.violations}")
        if not runs:
            self._optimal += [plan, left_shifted(self.scope, plan)]
        elif bound == self._values.get(()):
            self._optimal.append(plan)
        return bound


class Exact:
    """The moments of an instance, each worked out once, whoever meets it."""

    def __init__(self, problem: Problem, seconds: float = SECONDS):
        self.problem, self.seconds = problem, seconds
        self.moments: dict[tuple[int, bytes, bytes, tuple[object, ...]], Moment] = {}

    def at(self, simulator: Simulator, clock: int | None = None) -> Moment:
        """The moment of what a simulator has decided for good; the clock is its own unless it is given."""
        plan, clock = simulator.plan(), simulator.clock if clock is None else clock
        key = (clock, plan.mode.tobytes(), plan.start.tobytes(), plan.transfers)
        if key not in self.moments:
            self.moments[key] = Moment(self.problem, plan, clock, self.seconds)
        return self.moments[key]

    @property
    def solves(self) -> int:
        """How many exact values were worked out."""
        return sum(moment.solves for moment in self.moments.values())
