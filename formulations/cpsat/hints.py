"""A verified plan as a complete assignment of the model's variables."""

from collections.abc import Mapping

from optalloc.formulations.cpsat.objective import Terms
from optalloc.formulations.cpsat.variables import Activity, CpsatVariables, Literal, Option
from optalloc.problem import REJECTED, Plan, Problem, Transfer

__all__ = ["complete_values"]

Values = dict[int, int]
"""Index of a variable -> its value."""


def complete_values(terms: Terms, plan: Plan) -> Values | None:
    """A value for every variable; None where the model has no place for the plan.

    That is so for a mode dropped as dominated, a start outside the windows, a route that is not listed.
    """
    values: Values = {}
    variables = terms.of
    if not _set_tasks(variables, plan, values):
        return None
    for literal, others in variables.derived:
        values[literal.index] = int(any(_holds(values, other) for other in others))
    if not _set_transfers(variables, plan, values):
        return None
    _set_purchases(variables, values)
    _set_retentions(variables, values)
    _set_terms(terms, values)
    _set_constants(variables, values)
    return values


def _holds(values: Values, literal: Literal) -> bool:
    """Value of a literal that may be negated or a plain truth value."""
    if isinstance(literal, bool):
        return literal
    index = literal.index
    return bool(values[index]) if index >= 0 else not values[-index - 1]


def _set_activity(values: Values, activity: Activity, way: int | None, start: int) -> bool:
    """Values of one activity, done in a way at a start or left out; False if the model forbids that."""
    option = None if way is None else activity.options.get(way)
    if way is None:
        if activity.absent is None:
            return False
        start, end = activity.idle
    else:
        if option is None or not any(first <= start <= last for first, last in option.starts):
            return False
        end = start + option.ticks
    values |= {other.literal.index: int(other is option) for other in activity.options.values()}
    values |= {activity.start.index: start, activity.end.index: end}
    if activity.absent is not None:
        values[activity.absent.index] = int(way is None)
    return True


def _set_tasks(variables: CpsatVariables, plan: Plan, values: Values) -> bool:
    for task, activity in variables.watched(variables.tasks.items()):
        mode = int(plan.mode[task])
        way = None if mode == REJECTED else mode
        if not _set_activity(values, activity, way, int(plan.start[task])):
            return False
    return True


def _set_transfers(variables: CpsatVariables, plan: Plan, values: Values) -> bool:
    """Transfers that are read; unread ones of the plan are dropped, those at a fixed time moved to it."""
    problem = variables.problem
    brought = {(transfer.dataset, transfer.site): transfer for transfer in plan.transfers}
    for replica, activity in variables.transfers.items():
        reads = (literal for _, literal in variables.readings.get(replica, ()))
        way, start = None, 0
        if activity.absent is None or any(_holds(values, literal) for literal in reads):
            transfer = brought[int(problem.replica_dataset[replica]), int(problem.replica_site[replica])]
            way = _listed_route(problem, activity.options, transfer)
            start = activity.idle[0] if problem.constant_replicas[replica] else transfer.start
        if not _set_activity(values, activity, way, start):
            return False
    return True


def _listed_route(problem: Problem, options: Mapping[int, Option], transfer: Transfer) -> int | None:
    """The transfer's route, or one that is no worse in time, money and channels."""
    if transfer.route in options:
        return transfer.route
    for route, option in options.items():
        cheap = int(problem.route_cost[route]) <= transfer.cost and option.ticks <= transfer.ticks
        if cheap and set(problem.route_channels[route]) <= set(transfer.channels):
            return route
    return None


def _set_purchases(variables: CpsatVariables, values: Values) -> None:
    bought = {
        purchase
        for activity in variables.watched(variables.tasks.values())
        for mode, option in activity.options.items()
        if _holds(values, option.literal)
        for purchase in variables.problem.buys(mode)
    }
    values |= {literal.index: int(purchase in bought) for purchase, literal in variables.purchases.items()}


def _set_retentions(variables: CpsatVariables, values: Values) -> None:
    for replica, retention in variables.retentions.items():
        ends = [variables.fixed[task][1] for task in variables.fixed_readers(replica)]
        for task, literal in variables.readings.get(replica, ()):
            if _holds(values, literal):
                ends.append(values[variables.tasks[task].end.index])
        begin, arrival = (
            tick if isinstance(tick, int) else values[tick.index]
            for tick in (retention.begin, retention.arrival)
        )
        present = _holds(values, retention.present)
        end = max([0, *ends, *([arrival] if present else [])])
        values |= {retention.end.index: end, retention.size.index: end - begin if present else 0}


def _set_terms(terms: Terms, values: Values) -> None:
    tasks = terms.of.tasks
    ends = {task: values[a.end.index] for task, a in tasks.items() if _holds(values, a.present)}
    if terms.makespan is not None:
        fixed = [end for _, end in terms.of.fixed.values()]
        values[terms.makespan.index] = max([terms.makespan.proto.domain[0], *fixed, *ends.values()])
    due = terms.of.problem.due
    for task, late in terms.tardiness.items():
        values[late.index] = max(0, ends[task] - int(due[task])) if task in ends else 0
    for task, on_time in terms.on_time.items():
        values[on_time.index] = int(task in ends and ends[task] <= due[task])
        for mode, option in tasks[task].options.items():
            literal = terms.on_time_modes.get(mode)
            if literal is not None and literal.index != on_time.index:
                values[literal.index] = int(_holds(values, option.literal) and values[on_time.index])


def _set_constants(variables: CpsatVariables, values: Values) -> None:
    """CP-SAT's own constants, and a check that nothing was forgotten: hints are complete or not given."""
    for index, variable in enumerate(variables.model.proto.variables):
        if index not in values:
            if len(variable.domain) != 2 or variable.domain[0] != variable.domain[1]:
                raise RuntimeError(f"hint has no value for {variable.name}")
            values[index] = variable.domain[0]
