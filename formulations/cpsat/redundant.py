"""Redundant rows. They cut nothing off, and are what the linear relaxation sees: they let CP-SAT prove."""

from ortools.sat.python import cp_model

from optalloc.formulations.cpsat.constraints import MAX_PRODUCT, Item, items_by_resource
from optalloc.formulations.cpsat.objective import Terms
from optalloc.formulations.cpsat.profiles import Profile
from optalloc.formulations.cpsat.variables import Literal, Variable

__all__ = ["MAX_DEADLINES", "add_redundant_rows"]

MAX_DEADLINES = 40
"""Rows per resource; redundant, so leaving some out loses strength and nothing else."""


def add_redundant_rows(terms: Terms) -> None:
    """First ends of options, and work against capacity for every resource that could run short."""
    ends_of_options(terms)
    for resource, items in terms.of.watched(items_by_resource(terms.of).items()):
        profile = terms.of.profiles[resource]
        if _whole(profile, items) > MAX_PRODUCT or all(i.option.first == i.option.last for i in items):
            continue
        work_by_deadlines(terms, profile, items)
        if terms.makespan is not None:
            work_by_makespan(terms, terms.makespan, profile, items)


def ends_of_options(terms: Terms) -> None:
    """end >= sum over options of their first end * x: big-M free, unlike the enforced windows."""
    for activity in terms.of.watched(terms.of.tasks.values()):
        literals = [option.literal for option in activity.options.values()]
        ends = [option.first + option.ticks for option in activity.options.values()]
        if activity.absent is not None:
            literals.append(activity.absent)
            ends.append(activity.idle[1])
        if len(set(ends)) > 1:
            terms.of.model.add(activity.end >= cp_model.LinearExpr.weighted_sum(literals, ends))


def _whole(profile: Profile, items: list[Item]) -> int:
    """The largest number that a row could hold."""
    last = max(item.last_end for item in items)
    return sum(item.energy for item in items) + max(map(abs, profile.amounts)) * last


def work_by_deadlines(terms: Terms, profile: Profile, items: list[Item]) -> None:
    """sum amount * ticks * x over what must end by D (window, or due date if on time) <= area up to D."""
    first = min(item.option.first for item in items)
    for deadline in terms.of.watched(_deadlines(terms, items)):
        literals: list[Literal] = []
        work: list[int] = []
        most: dict[tuple[str, int], int] = {}
        for item in items:
            literal = _ends_by(terms, item, deadline)
            if literal is not None:
                literals.append(literal)
                work.append(item.energy)
                most[item.owner] = max(most.get(item.owner, 0), item.energy)
        area = profile.area(first, deadline)
        if sum(most.values()) > area:
            terms.of.model.add(cp_model.LinearExpr.weighted_sum(literals, work) <= area)


def _ends_by(terms: Terms, item: Item, deadline: int) -> Literal | None:
    """A literal under which the item is done by ``deadline``, if there is one."""
    if item.last_end <= deadline:
        return item.option.literal
    kind, task = item.owner
    if kind == "task" and item.way in terms.on_time_modes and terms.of.problem.due[task] <= deadline:
        return terms.on_time_modes[item.way]
    return None


def _deadlines(terms: Terms, items: list[Item]) -> list[int]:
    """Latest ends of options and due dates, at most MAX_DEADLINES of them, evenly taken."""
    ends = {item.last_end for item in items}
    tasks = {task for kind, task in {item.owner for item in items} if kind == "task"}
    ends |= {int(terms.of.problem.due[task]) for task in tasks & terms.on_time.keys()}
    order = sorted(ends)
    step = -(-len(order) // MAX_DEADLINES)
    return order[::-1][::step]


def work_by_makespan(terms: Terms, makespan: Variable, profile: Profile, items: list[Item]) -> None:
    """sum amount * ticks * x <= area up to the least makespan + peak capacity * (makespan - least)."""
    first = min(item.option.first for item in items)
    domain = makespan.proto.domain
    least, largest = domain[0], domain[len(domain) - 1]
    literals = [item.option.literal for item in items]
    work = [item.energy for item in items]
    growth = profile.peak(least, largest) * (makespan - least)
    area = profile.area(first, least) if first < least else 0
    terms.of.model.add(cp_model.LinearExpr.weighted_sum(literals, work) <= area + growth)
