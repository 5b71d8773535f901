"""Constraint families of the CP-SAT model, one short function each; rules R1-R11 are in docs/model.md."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from ortools.sat.python import cp_model

from optalloc.errors import UnsupportedError
from optalloc.formulations.cpsat.profiles import Profile
from optalloc.formulations.cpsat.variables import Activity, CpsatVariables, Literal, Option

__all__ = ["MAX_PRODUCT", "Item", "add_constraints", "items_by_resource"]

MAX_PRODUCT = 2**62
"""Products inside CP-SAT (energy, terms of a sum) must stay below: it computes in 64-bit integers."""


@dataclass(frozen=True, eq=False)
class Item:
    """One option of an activity on one resource.

    Attributes
    ----------
    owner
        ("task", j) or ("replica", k): options of one owner exclude each other.
    way
        Mode or route.
    amount
        Units held from start to end.
    """

    owner: tuple[str, int]
    way: int
    activity: Activity
    option: Option
    amount: int

    @property
    def energy(self) -> int:
        """Unit-ticks."""
        return self.amount * self.option.ticks

    @property
    def last_end(self) -> int:
        """Latest end."""
        return self.option.last + self.option.ticks


def add_constraints(variables: CpsatVariables) -> None:
    """Every rule but the limits, which are forms like the objective (see `objective`)."""
    for family in (
        choose_one_way,
        end_after_ticks,
        start_in_windows,
        reject_after_rejected,
        follow_predecessors,
        stage_before_reading,
        bring_only_what_is_read,
        pay_for_what_is_bought,
        fit_capacities,
        fit_storage,
    ):
        family(variables)


def _activities(variables: CpsatVariables) -> Iterator[Activity]:
    yield from variables.watched(variables.tasks.values())
    yield from variables.watched(variables.transfers.values())


def choose_one_way(variables: CpsatVariables) -> None:
    """R1, R2, R11: one mode of a task, or its rejection; one route of a replica, or no transfer."""
    for activity in _activities(variables):
        literals = [option.literal for option in activity.options.values()]
        variables.model.add_exactly_one([*literals, *([] if activity.absent is None else [activity.absent])])


def end_after_ticks(variables: CpsatVariables) -> None:
    """end = start + ticks under the literal of an option; both stand at their first values if left out.

    The last row says the same for all options at once: it is what the linear relaxation sees.
    """
    for activity in _activities(variables):
        lengths = {option.ticks for option in activity.options.values()}
        if activity.absent is not None:
            variables.model.add(activity.start == activity.idle[0]).only_enforce_if(activity.absent)
            variables.model.add(activity.end == activity.idle[1]).only_enforce_if(activity.absent)
            lengths.add(activity.idle[1] - activity.idle[0])
        if len(lengths) == 1:
            variables.model.add(activity.end == activity.start + lengths.pop())
            continue
        for option in activity.options.values():
            rule = variables.model.add(activity.end == activity.start + option.ticks)
            rule.only_enforce_if(option.literal)
        _add_length_row(variables, activity)


def _add_length_row(variables: CpsatVariables, activity: Activity) -> None:
    literals = [option.literal for option in activity.options.values()]
    lengths = [option.ticks for option in activity.options.values()]
    if activity.absent is not None:
        literals.append(activity.absent)
        lengths.append(activity.idle[1] - activity.idle[0])
    length = cp_model.LinearExpr.weighted_sum(literals, lengths)
    variables.model.add(activity.end - activity.start == length)


def start_in_windows(variables: CpsatVariables) -> None:
    """R3, R5, R6: an option starts within its window, where the calendars of all that it uses let it run."""
    for activity in _activities(variables):
        spans = {option.starts for option in activity.options.values()}
        for option in activity.options.values():
            if len(spans) > 1:
                domain = cp_model.Domain.from_intervals([list(span) for span in option.starts])
                rule = variables.model.add_linear_expression_in_domain(activity.start, domain)
                rule.only_enforce_if(option.literal)


def reject_after_rejected(variables: CpsatVariables) -> None:
    """R1: a placed task has placed predecessors."""
    for task, pred, _ in _precedences(variables):
        if variables.present(pred) is not True:
            variables.model.add_implication(variables.present(task), variables.present(pred))


def follow_predecessors(variables: CpsatVariables) -> None:
    """R4: start >= end of the predecessor + lag, where the task is placed."""
    for task, pred, lag in _precedences(variables):
        if pred in variables.fixed_rejected or task in variables.fixed_rejected:
            continue
        rule = variables.model.add(variables.start_of(task) - variables.end_of(pred) >= lag)
        rule.only_enforce_if(variables.present(task))


def _precedences(variables: CpsatVariables) -> Iterator[tuple[int, int, int]]:
    """(task, predecessor, lag) of all pairs that exist in this solve."""
    exists = variables.scope.exists
    for task in range(variables.problem.num_tasks):
        for pred, lag in variables.problem.predecessors(task):
            if exists[task] and exists[pred]:
                yield task, pred, lag


def stage_before_reading(variables: CpsatVariables) -> None:
    """R6: a replica that a run reads is brought, and has arrived when the run starts.

    Replicas that arrive at a fixed time are in the start windows already.
    """
    for (task, replica), reading in variables.reads.items():
        if variables.fixed_transfer(replica) is not None:
            continue
        transfer = variables.transfers[replica]
        variables.model.add_implication(reading, transfer.present)
        if not variables.problem.constant_replicas[replica] or len(transfer.options) > 1:
            rule = variables.model.add(variables.tasks[task].start >= transfer.end)
            rule.only_enforce_if(reading)


def bring_only_what_is_read(variables: CpsatVariables) -> None:
    """y <= sum x: a transfer is made only if some run reads it."""
    for replica, transfer in variables.transfers.items():
        readers = [reading for _, reading in variables.readings.get(replica, ())]
        if transfer.absent is not None:
            variables.model.add_bool_or([*readers, transfer.absent])


def pay_for_what_is_bought(variables: CpsatVariables) -> None:
    """x <= z <= sum x: a price that is paid once is paid exactly if some run depends on it."""
    users: dict[int, list[Literal]] = {purchase: [] for purchase in variables.purchases}
    for activity in variables.watched(variables.tasks.values()):
        for purchase, literals in _buyers(variables, activity).items():
            total = cp_model.LinearExpr.sum(literals)
            variables.model.add(total <= variables.purchases[purchase])
            users[purchase] += literals
    for purchase, literals in users.items():
        variables.model.add_bool_or([*literals, variables.purchases[purchase].negated()])


def _buyers(variables: CpsatVariables, activity: Activity) -> dict[int, list[Literal]]:
    """Purchase -> literals of the modes of one task that depend on it."""
    buyers: dict[int, list[Literal]] = {}
    for mode, option in activity.options.items():
        for purchase in variables.problem.buys(mode):
            if purchase in variables.purchases:
                buyers.setdefault(purchase, []).append(option.literal)
    return buyers


def items_by_resource(variables: CpsatVariables) -> dict[int, list[Item]]:
    """What may hold each resource: runs (devices, extra, seats, stream channels) and transfers (channels)."""
    items: dict[int, list[Item]] = {}
    for task, activity in variables.watched(variables.tasks.items()):
        for mode, option in activity.options.items():
            for resource, amount in variables.problem.uses(mode):
                items.setdefault(resource, []).append(Item(("task", task), mode, activity, option, amount))
    for replica, activity in variables.transfers.items():
        for route, option in activity.options.items():
            for channel in variables.problem.route_channels[route]:
                items.setdefault(channel, []).append(Item(("replica", replica), route, activity, option, 1))
    return items


def fit_capacities(variables: CpsatVariables) -> None:
    """R5, R7, R9: at every tick, what is held is at most the capacity less the fixed reservations."""
    items = items_by_resource(variables)
    intervals: dict[int, cp_model.IntervalVar] = {}
    for resource, profile in variables.watched(enumerate(variables.profiles)):
        if min(profile.amounts) < 0:
            variables.model.add_bool_or([])  # the fixed part alone does not fit
        held = items.get(resource, [])
        if not _could_exceed(profile, held):
            continue
        if all(item.option.first == item.option.last for item in held):
            _fit_at_ticks(variables, profile, held)
        else:
            _fit_over_time(variables, profile, held, intervals)


def _could_exceed(profile: Profile, items: list[Item]) -> bool:
    """Some choice of options at one tick asks for more than the least capacity."""
    if not items:
        return False
    largest: dict[tuple[str, int], int] = {}
    for item in items:
        largest[item.owner] = max(item.amount, largest.get(item.owner, 0))
    first = min(item.option.first for item in items)
    return sum(largest.values()) > profile.low(first, max(item.last_end for item in items))


def _fit_at_ticks(variables: CpsatVariables, profile: Profile, items: list[Item]) -> None:
    """A linear row per tick where an item starts or capacity drops: exact where no item can move.

    Matching-like problems (everything in one tick) are solved far better without intervals.
    """
    first, last = min(item.option.first for item in items), max(item.last_end for item in items)
    drops = {begin for begin, *_ in profile.segments(first, last)}
    for tick in variables.watched(sorted(drops | {item.option.first for item in items})):
        running = [item for item in items if item.option.first <= tick < item.last_end]
        literals = [item.option.literal for item in running]
        amounts = [item.amount for item in running]
        variables.model.add(
            cp_model.LinearExpr.weighted_sum(literals, amounts) <= profile.low(tick, tick + 1)
        )


def _fit_over_time(
    variables: CpsatVariables, profile: Profile, items: list[Item], intervals: dict[int, cp_model.IntervalVar]
) -> None:
    """A cumulative of the items' intervals, and of a fixed interval wherever less than the peak is left."""
    first, last = min(item.option.first for item in items), max(item.last_end for item in items)
    unit = math.gcd(*(item.amount for item in items))
    capacity = profile.peak(first, last) // unit
    check_area("a capacity", capacity, last, sum(item.energy // unit for item in items))
    held = [_interval(variables, item, intervals) for item in items]
    amounts = [item.amount // unit for item in items]
    for begin, until, left in profile.segments(first, last):
        if left // unit < capacity:
            held.append(variables.model.new_fixed_size_interval_var(begin, until - begin, ""))
            amounts.append(capacity - left // unit)
    variables.model.add_cumulative(held, amounts, capacity)


def _interval(
    variables: CpsatVariables, item: Item, intervals: dict[int, cp_model.IntervalVar]
) -> cp_model.IntervalVar:
    """The interval of an option, one for all resources that it holds: fixed size, under its literal."""
    key = item.option.literal.index
    if key not in intervals:
        start, ticks, literal = item.activity.start, item.option.ticks, item.option.literal
        name = f"{literal.name}_runs"
        intervals[key] = variables.model.new_optional_fixed_size_interval_var(start, ticks, literal, name)
    return intervals[key]


def check_area(what: str, capacity: int, until: int, work: int = 0) -> None:
    """Refuse areas (capacity * ticks, and the work to be done in them) that would overflow inside CP-SAT.

    Raises
    ------
    UnsupportedError
        Together they pass 2^62.
    """
    if capacity * until + work > MAX_PRODUCT:
        raise UnsupportedError(
            f"CP-SAT would overflow: {what} of {capacity} for {until} ticks, with work of {work} unit-ticks, "
            "passes 2^62; use coarser ticks or units, or the solver 'highs'."
        )


def fit_storage(variables: CpsatVariables) -> None:
    """R8: the replicas held at a site fit its storage.

    Each is held from its transfer's start to the end of its last reader, or of the transfer if unread.
    """
    sites: dict[int, list[int]] = {}
    for replica in variables.watched(variables.retentions):
        _hold_until_read(variables, replica)
        sites.setdefault(int(variables.problem.replica_site[replica]), []).append(replica)
    for site, replicas in sites.items():
        held = [_retention_interval(variables, replica) for replica in replicas]
        sizes = [Fraction(int(variables.problem.replica_size[replica])) for replica in replicas]
        for begin, until, size in variables.unlisted_at(site):
            held.append(variables.model.new_fixed_size_interval_var(begin, until - begin, ""))
            sizes.append(size)
        unit = _common_unit(sizes)
        capacity = int(int(variables.problem.site_storage[site]) / unit)
        check_area("a storage", capacity, variables.windows.horizon)
        variables.model.add_cumulative(held, [int(size / unit) for size in sizes], capacity)


def _common_unit(values: list[Fraction]) -> Fraction:
    """The largest number of which all values are whole multiples."""
    lcm = math.lcm(*(value.denominator for value in values))
    return Fraction(math.gcd(*(int(value * lcm) for value in values)) or 1, lcm)


def _hold_until_read(variables: CpsatVariables, replica: int) -> None:
    """A retention ends with or after its transfer and each of its readers."""
    retention = variables.retentions[replica]
    model = variables.model
    model.add(retention.end >= retention.arrival).only_enforce_if(retention.present)
    for task in variables.fixed_readers(replica):
        model.add(retention.end >= variables.fixed[task][1])
    for task, reading in variables.readings.get(replica, ()):
        model.add(retention.end >= variables.tasks[task].end).only_enforce_if(reading)


def _retention_interval(variables: CpsatVariables, replica: int) -> cp_model.IntervalVar:
    retention = variables.retentions[replica]
    parts = retention.begin, retention.size, retention.end, retention.present
    return variables.model.new_optional_interval_var(*parts, f"replica{replica}_kept")
