"""Price certificates: a proof of a lower bound that anyone can re-check without trusting the search that found it.

A certificate holds multipliers >= 0 for the rows that tie tasks together. With them the problem falls apart into one
small minimum per task, and the sum of the minima is a lower bound (Lagrangian relaxation; Geoffrion 1974):

    sum over tasks of min over (mode, start), or rejection, of
        own cost + price of the capacity it holds + its shares of charges + energy price + end price * C
    - sum over resources and ticks of price * capacity            (R5, R7, R9)
    + (makespan weight - end prices - energy prices * peak capacity) * least makespan
    - sum over limits and earlier levels of multiplier * what is allowed   (R10)

where the shares of one charge (egress of a staged replica, price of a purchase) sum to at most its least price.
Everything is an integer in units of 1/scale of an objective unit; `check_bound` uses Python integers and plain loops.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from math import gcd

import numpy as np

from optalloc.errors import Fault, InputError
from optalloc.problem import NEVER, REJECTED, Form, Problem
from optalloc.scope import Scope, first_end, full_scope, start_intervals, windows

__all__ = [
    "FORMAT",
    "Certificate",
    "CheckedBound",
    "check_bound",
    "combined",
    "fixed_part",
    "form_divisor",
    "level_texts",
]

FORMAT = "optalloc-certificate/1"
_LARGEST = 2**62
_REMEDY = "check it under the objective and limits that it was made for (verify: --objective, --limit)"


@dataclass(frozen=True)
class Certificate:
    """Multipliers of a price bound.

    Attributes
    ----------
    instance, instance_sha256
        What it is about.
    objective
        The levels as written, term -> weight; a certificate says nothing of another objective.
    level
        Which level is bounded, counted from 0.
    caps
        Values that earlier levels are assumed not to exceed.
    scale
        Q: every multiplier is in 1/Q of an objective unit (K-scaled, as `optalloc solve` reports it).
    edges
        Ticks, increasing, from 0; prices are constant between neighbours and 0 after the last.
    prices
        Resource label -> price per unit and tick in each bucket.
    shares
        (task, dataset, site) -> share of the charge of the staged replica; site "" for the price of a purchase.
    ends
        Task -> price per tick of its end (rows C_j <= makespan).
    energy
        Resource label -> price per unit-tick used (rows sum of energy <= peak capacity * makespan).
    limits
        Term -> multiplier of its limit.
    earlier
        Multipliers of the caps.
    bound
        What is claimed: no plan has a smaller value of the level.
    """

    instance: str
    instance_sha256: str
    objective: tuple[Mapping[str, str], ...]
    level: int
    scale: int
    edges: tuple[int, ...]
    bound: int
    caps: tuple[int, ...] = ()
    prices: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    shares: Mapping[tuple[str, str, str], int] = field(default_factory=dict)
    ends: Mapping[str, int] = field(default_factory=dict)
    energy: Mapping[str, int] = field(default_factory=dict)
    limits: Mapping[str, int] = field(default_factory=dict)
    earlier: tuple[int, ...] = ()


@dataclass(frozen=True)
class CheckedBound:
    """What a certificate really proves.

    Attributes
    ----------
    value
        The lower bound that follows from the multipliers.
    claimed
        What the certificate says; it is valid if that is no larger.
    level
        Of which level, counted from 0.
    """

    value: int
    claimed: int
    level: int = 0

    @property
    def valid(self) -> bool:
        return self.claimed <= self.value


def level_texts(problem: Problem) -> tuple[dict[str, str], ...]:
    """The levels as written: term -> weight as exact text."""
    return tuple({term: str(weight) for term, weight in level.items()} for level in problem.level_weights)


def check_bound(problem: Problem, certificate: Certificate, scope: Scope | None = None) -> CheckedBound:
    """Re-derive a bound from its multipliers.

    Parameters
    ----------
    scope
        What was fixed when the bound was made; default only the state.

    Raises
    ------
    InputError
        If the certificate is about something else, names what does not exist, or holds multipliers that prove nothing
        (negative, or shares of a charge beyond its price).
    """
    scope = full_scope(problem) if scope is None else scope
    faults = list(_faults(problem, certificate))
    if faults:
        raise InputError(faults)
    proof = _Proof(problem, scope, certificate)
    faults = list(proof.faults())
    if faults:
        raise InputError(faults)
    level = problem.levels[certificate.level]
    unit = certificate.scale * form_divisor(level)
    value = -(-proof.total() // unit) * form_divisor(level)
    return CheckedBound(value, certificate.bound, certificate.level)


def _faults(problem: Problem, certificate: Certificate) -> Iterator[Fault]:
    if certificate.objective != level_texts(problem):
        meant = ";".join(",".join(f"{t}={w}" for t, w in level.items()) for level in certificate.objective)
        yield Fault("objective", f"the certificate is about another objective, {meant}; {_REMEDY}")
    elif certificate.instance_sha256 != problem.instance.sha256:
        yield Fault(
            "instance_sha256", f"the certificate is about another instance, or other limits; {_REMEDY}"
        )
    if not 0 <= certificate.level < len(problem.levels):
        yield Fault("level", f"there are {len(problem.levels)} levels, got {certificate.level}")
    elif len(certificate.caps) != certificate.level or len(certificate.earlier) != certificate.level:
        yield Fault("caps", "there must be one cap and one multiplier for each earlier level")
    if certificate.scale < 1:
        yield Fault("scale", f"must be at least 1, got {certificate.scale}")
    edges = certificate.edges
    if not edges or edges[0] != 0 or any(a >= b for a, b in pairwise(edges)):
        yield Fault("edges", "must increase from 0")
    labels, terms = set(problem.resource_label), {limit.term for limit in problem.limits}
    for name, values in certificate.prices.items():
        if name not in labels or len(values) != len(edges) - 1 or min(values, default=0) < 0:
            yield Fault(f"prices.{name}", "must be a resource with a price >= 0 for each bucket")
    for part, known in (("ends", set(problem.task_ids)), ("energy", labels), ("limits", terms)):
        for name, value in getattr(certificate, part).items():
            if name not in known or value < 0:
                yield Fault(f"{part}.{name}", "must be known and its multiplier >= 0")
    if min(certificate.earlier, default=0) < 0:
        yield Fault("earlier", "multipliers must be >= 0")


def combined(
    problem: Problem, level: int, scale: int, earlier: tuple[int, ...], limits: Mapping[str, int]
) -> Form:
    """scale * level + multipliers * (earlier levels, limits): what the relaxed problem minimises.

    Raises
    ------
    InputError
        If a coefficient would pass 2^62, beyond which 64-bit arrays would wrap round without a word.
    """
    parts = [(scale, problem.levels[level]), *zip(earlier, problem.levels, strict=False)]
    parts += [(limits[limit.term], limit.form) for limit in problem.limits if limit.term in limits]

    def total(name: str) -> object:
        largest = sum(factor * int(np.abs(getattr(form, name)).max(initial=0)) for factor, form in parts)
        if largest > _LARGEST:
            raise InputError(
                Fault("scale", f"scale and multipliers make coefficients of {largest}; at most 2^62")
            )
        return sum(factor * getattr(form, name) for factor, form in parts)

    return Form(**{name: total(name) for name in Form.__dataclass_fields__})  # type: ignore[arg-type]


def form_divisor(form: Form) -> int:
    """The largest q that divides every value the form can take."""
    arrays = (form.completion, form.tardiness, form.late, form.loss, form.rejected, form.placed)
    divisor = gcd(form.makespan, form.cost, *(int(v) for array in arrays for v in array))
    return max(1, divisor)


def fixed_part(problem: Problem, scope: Scope, certificate: Certificate, least_makespan: int) -> int:
    """All of the bound (times scale) but the minima of free tasks and the price of the capacity.

    Parameters
    ----------
    least_makespan
        `first_end` of all runs that are possible, which the caller knows without asking every mode for it.
    """
    proof = _Proof(problem, scope, certificate)
    tasks = sum(proof.task(j) for j in range(problem.num_tasks) if scope.exists[j] and not scope.free[j])
    return tasks + proof.constant(least_makespan)


class _Proof:
    """The bound's parts, each a short sum."""

    def __init__(self, problem: Problem, scope: Scope, certificate: Certificate):
        self.problem, self.scope, self.certificate = problem, scope, certificate
        self.windows = windows(scope)
        limits = certificate.limits
        self.form = combined(problem, certificate.level, certificate.scale, certificate.earlier, limits)
        self.price = {
            r: certificate.prices[n] for r, n in enumerate(problem.resource_label) if n in certificate.prices
        }
        self.rate = {r: certificate.energy.get(n, 0) for r, n in enumerate(problem.resource_label)}
        self.before = {r: self._sums(prices) for r, prices in self.price.items()}

    def _sums(self, prices: tuple[int, ...]) -> list[int]:
        """Price of one unit from tick 0 to each edge."""
        edges, sums = self.certificate.edges, [0]
        for k, price in enumerate(prices):
            sums.append(sums[-1] + price * (edges[k + 1] - edges[k]))
        return sums

    def until(self, resource: int, tick: int) -> int:
        """Price of one unit of ``resource`` from tick 0 to ``tick``."""
        edges, sums = self.certificate.edges, self.before[resource]
        if tick <= 0:
            return 0
        k = bisect_right(edges, tick) - 1
        return sums[-1] if k >= len(edges) - 1 else sums[k] + self.price[resource][k] * (tick - edges[k])

    # charges ---------------------------------------------------------------------------------------------------------
    def charge(self, dataset: str, site: str) -> int | None:
        """What the replica or purchase costs at least; None if there is no such charge."""
        problem = self.problem
        index = problem.dataset_ids.index(dataset) if dataset in problem.dataset_ids else -1
        if site:
            place = problem.site_ids.index(site) if site in problem.site_ids else -1
            replica = problem.replica_of.get((index, place))
            if replica is None:
                return None
            if (index, place) in self.scope.fixed_replicas:
                return 0
            return self.form.cost * min(int(problem.route_cost[q]) for q in problem.routes_of(replica))
        found = [b for b in range(problem.num_purchases) if int(problem.purchase_dataset[b]) == index]
        return self.form.cost * int(problem.purchase_cost[found[0]]) if found else None

    def faults(self) -> Iterator[Fault]:
        """Shares that promise more than the charge, and makespan prices beyond its weight."""
        spent: dict[tuple[str, str], int] = {}
        tasks = set(self.problem.task_ids)
        for (task, dataset, site), share in self.certificate.shares.items():
            if share < 0 or task not in tasks:
                yield Fault(f"shares.{task}.{dataset}.{site}", "must be of a known task and >= 0")
            spent[dataset, site] = spent.get((dataset, site), 0) + share
        for (dataset, site), total in spent.items():
            charge = self.charge(dataset, site)
            if charge is None or total > charge:
                yield Fault(f"shares.*.{dataset}.{site}", f"shares sum to {total}, the charge is {charge}")
        if self.slack() < 0:
            yield Fault("ends", "end and energy prices are beyond the weight of the makespan")

    def slack(self) -> int:
        """What is left of the makespan's weight."""
        peak = sum(rate * int(self.problem.capacity(r)[1].max()) for r, rate in self.rate.items() if rate)
        return self.form.makespan - sum(self.certificate.ends.values()) - peak

    # sums ------------------------------------------------------------------------------------------------------------
    def total(self) -> int:
        """The bound times the scale."""
        tasks = sum(self.task(j) for j in range(self.problem.num_tasks))
        return tasks + self.constant(self.least_makespan() if self.slack() else 0) - self.capacity()

    def constant(self, least_makespan: int) -> int:
        """Fixed charges, what is left of the makespan's weight, and what limits and caps allow."""
        limits = sum(
            self.certificate.limits.get(limit.term, 0) * limit.bound for limit in self.problem.limits
        )
        caps = sum(m * cap for m, cap in zip(self.certificate.earlier, self.certificate.caps, strict=True))
        return self.fixed_charges() + self.slack() * least_makespan - limits - caps

    def task(self, j: int) -> int:
        """The least that task j adds."""
        if not self.scope.exists[j]:
            return 0
        if self.scope.mode[j] == REJECTED:
            return self.rejection(j)
        if not self.scope.free[j]:
            return self.cost(j, int(self.scope.mode[j]), int(self.scope.start[j]), shared=False)
        best = self.rejection(j) if self.scope.rejectable[j] else NEVER**3
        spans = [(mode, *span) for mode in self.problem.modes_of(j).tolist() for span in self.intervals(mode)]
        for mode, first, last in sorted(spans, key=lambda span: self.own(j, *span[:2])):
            for start in self.candidates(j, mode, first, last):
                if self.own(j, mode, start) >= best:
                    break  # prices are >= 0, and own costs grow with time
                best = min(best, self.cost(j, mode, start))
        return best

    def intervals(self, mode: int) -> list[tuple[int, int]]:
        """Where the mode may start."""
        first, last = int(self.windows.earliest[mode]), int(self.windows.latest[mode])
        return start_intervals(self.problem, mode, first, last) if first <= last else []

    def candidates(self, j: int, mode: int, first: int, last: int) -> list[int]:
        """Starts among which the least cost of [first, last] is, in order: the cost is linear between them."""
        duration = int(self.problem.duration[mode])
        starts = {first, last, int(self.problem.due[j]) - duration}
        if any(r in self.price for r, _ in self.problem.uses(mode)):
            starts.update(self.certificate.edges)
            starts.update(edge - duration for edge in self.certificate.edges)
        return sorted(start for start in starts if first <= start <= last)

    def rejection(self, j: int) -> int:
        form = self.form
        return int(form.rejected[j]) + int(form.late[j]) + 1000 * int(form.loss[j])

    def own(self, j: int, mode: int, start: int) -> int:
        """Own cost of a run, without anything shared."""
        problem, form = self.problem, self.form
        end = start + int(problem.duration[mode])
        over = max(0, end - int(problem.due[j]))
        value = (
            int(form.completion[j]) * end + int(form.tardiness[j]) * over + (int(form.late[j]) if over else 0)
        )
        value += int(form.loss[j]) * (1000 - int(problem.utility[mode])) + int(form.placed[j])
        return value + form.cost * int(problem.money[mode])

    def cost(self, j: int, mode: int, start: int, shared: bool = True) -> int:
        """Own cost with all prices; what is fixed pays neither for capacity nor for shares."""
        problem, certificate = self.problem, self.certificate
        end = start + int(problem.duration[mode])
        value = self.own(j, mode, start) + certificate.ends.get(problem.task_ids[j], 0) * end
        for resource, amount in problem.uses(mode):
            # A row of energy is about ticks from 0 on: state runs may have begun before.
            value += self.rate[resource] * amount * (max(0, end) - max(0, start))
            if shared and resource in self.price:
                value += amount * (self.until(resource, end) - self.until(resource, start))
        if shared:
            value += sum(
                certificate.shares.get((problem.task_ids[j], *name), 0) for name in self.charges(mode)
            )
        return value

    def charges(self, mode: int) -> Iterator[tuple[str, str]]:
        """(dataset, site) of what the mode shares with others."""
        problem = self.problem
        for k in problem.needs(mode):
            dataset, site = int(problem.replica_dataset[k]), int(problem.replica_site[k])
            yield problem.dataset_ids[dataset], problem.site_ids[site]
        for b in problem.buys(mode):
            yield problem.dataset_ids[int(problem.purchase_dataset[b])], ""

    def fixed_charges(self) -> int:
        """What the fixed part pays: its transfers, and its purchases as far as no share claims them."""
        problem, scope = self.problem, self.scope
        paid = sum(t.cost for t in scope.transfers) * self.form.cost
        modes = scope.mode[scope.mode >= 0].tolist()
        for b in {b for mode in modes for b in problem.buys(mode)}:
            dataset = problem.dataset_ids[int(problem.purchase_dataset[b])]
            claimed = sum(v for (_, d, s), v in self.certificate.shares.items() if (d, s) == (dataset, ""))
            paid += self.form.cost * int(problem.purchase_cost[b]) - claimed
        return paid

    def least_makespan(self) -> int:
        """The latest of the earliest ends of tasks that must run."""
        free = np.flatnonzero(
            self.scope.free[self.problem.mode_task] & self.windows.open & self.problem.active
        )
        starts = {mode: found[0][0] for mode in free.tolist() if (found := self.intervals(mode))}
        return first_end(
            self.scope, np.array([*starts], dtype=np.int64), np.array([*starts.values()], dtype=np.int64)
        )

    def capacity(self) -> int:
        """Prices times the capacity that the fixed part leaves, from tick 0 to the horizon."""
        problem, scope, value = self.problem, self.scope, 0
        for resource in self.price:
            times, amounts = problem.capacity(resource)
            for i, amount in enumerate(amounts.tolist()):
                until = int(times[i + 1]) if i + 1 < len(times) else self.certificate.edges[-1]
                value += amount * (self.until(resource, until) - self.until(resource, int(times[i])))
        for resource, start, end, amount in scope.fixed_uses:
            if resource in self.price:
                value -= amount * (self.until(resource, end) - self.until(resource, start))
        return value
