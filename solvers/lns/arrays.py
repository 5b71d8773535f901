"""From a scope to the flat arrays of the compiled search; `optalloc.solvers.lns.columns` says what is where."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from optalloc.problem import FREE, NEVER, Form, Ints, Problem, entries, own_cost, rejection_cost
from optalloc.scope import Scope, Windows, windows
from optalloc.solvers.lns import columns as at
from optalloc.solvers.lns.draws import seeded
from optalloc.solvers.lns.neighbours import NAMES
from optalloc.solvers.lns.profiles import reserve
from optalloc.solvers.prices.layout import Floats

__all__ = ["Cap", "Core", "Guide", "build_core", "build_state", "plain_guide"]

Cap = tuple[Form, int]
"""A form and what it may not pass: a limit, or an earlier level at its achieved value."""


@dataclass(frozen=True, eq=False)
class Guide:
    """What the search is guided by.

    Attributes
    ----------
    modes, rank
        Modes worth trying and their order within a task, least first.
    edges, price
        (B+1,) bucket edges; (R, B) price per unit and tick.
    want
        (J, 2) mode and start that are best at these prices; mode -1: none.
    """

    modes: Ints
    rank: Floats
    edges: Ints
    price: Floats
    want: Ints


@dataclass(frozen=True, eq=False)
class Core:
    """What never changes in a search.

    Attributes
    ----------
    c, x
        The arrays.
    routes
        Address of each route in c.
    size
        Length of s.
    """

    scope: Scope
    c: Ints
    x: Floats
    routes: Ints
    size: int


def plain_guide(scope: Scope, form: Form, allowed: Windows) -> Guide:
    """Every open mode, cheapest first; no prices."""
    problem = scope.problem
    modes = _open_modes(scope, allowed)
    rank = own_cost(problem, form, modes, allowed.earliest[modes]).astype(float)
    want = np.full((problem.num_tasks, 2), -1, dtype=np.int64)
    return Guide(modes, rank, np.array([0, 1]), np.zeros((problem.num_resources, 1)), want)


def _open_modes(scope: Scope, allowed: Windows) -> Ints:
    problem = scope.problem
    return np.flatnonzero(allowed.open & problem.active & scope.free[problem.mode_task])


class _Tape:
    """Arrays one behind the other, and their addresses in the head."""

    def __init__(self, head: int = 0):
        self.parts: list[Ints] = [np.zeros(head, dtype=np.int64)]
        self.length = head

    def add(self, array: Any) -> int:
        """Append an array, flattened; returns its address."""
        flat = np.asarray(array).reshape(-1)
        self.parts.append(flat)
        self.length += len(flat)
        return self.length - len(flat)

    def joined(self, kind: type) -> Any:
        """One array of the given kind."""
        return np.concatenate(self.parts, dtype=kind, casting="unsafe")


def build_core(
    scope: Scope,
    form: Form,
    caps: Sequence[Cap] = (),
    allowed: Windows | None = None,
    guide: Guide | None = None,
) -> Core:
    """Lay out a search that minimises ``form`` with every cap kept."""
    problem = scope.problem
    allowed = windows(scope) if allowed is None else allowed
    guide = plain_guide(scope, form, allowed) if guide is None else guide
    forms = (form, *(cap for cap, _ in caps))
    head = np.zeros(len(at.ADDRESSES), dtype=np.int64)
    whole, real = _Tape(len(head)), _Tape()
    head[[at.TASKS, at.REPLICAS, at.FORMS]] = problem.num_tasks, problem.num_replicas, len(forms)
    head[at.EDGES] = len(guide.edges)
    routes = whole.add(np.column_stack([problem.route_ticks, problem.route_cost]))
    routes_at = routes + 2 * np.arange(len(problem.route_ticks) + 1)
    cand, readers = _lay_candidates(scope, form, allowed, guide, whole, real, head)
    arcs = _lay_arcs(scope, whole)
    basic = (scope.free, scope.rejectable, problem.due, *arcs, *cand, guide.want)
    coefficients = [_coefficients(scope, one, allowed) for one in forms]
    head[at.TASK_WIDTH] = at.COEFFICIENTS + at.FORM_COLUMNS * len(forms)
    head[at.TASK] = whole.add(np.column_stack([*basic, *coefficients]))
    head[at.MODE_WIDTH] = at.CONST + len(forms)
    head[at.MODE] = whole.add(_modes(problem, forms, allowed, whole))
    head[at.REPLICA] = whole.add(_replicas(scope, allowed, routes_at, readers))
    bounds = [NEVER * 256, *(bound for _, bound in caps)]
    head[at.FORM] = whole.add([(f.cost, f.makespan, b) for f, b in zip(forms, bounds, strict=True)])
    _lay_prices(guide, whole, real, head)
    size = _address_state(scope, head, len(forms))
    c = whole.joined(np.int64)
    c[: len(head)] = head
    return Core(scope, _read_only(c), _read_only(real.joined(np.float64)), routes_at[:-1], size)


def _read_only(array: Any) -> Any:
    array.flags.writeable = False
    return array


def _lay_prices(guide: Guide, whole: _Tape, real: _Tape, head: Ints) -> None:
    lengths = np.diff(guide.edges)
    before = np.cumsum(guide.price * lengths, axis=1)
    head[at.EDGE] = whole.add(guide.edges)
    head[at.BUCKET] = whole.add(np.repeat(np.arange(len(lengths)), lengths))
    head[at.BEFORE] = real.add(np.column_stack([np.zeros(len(before)), before]))
    head[at.PRICE] = real.add(guide.price)


def _lay_candidates(
    scope: Scope, form: Form, allowed: Windows, guide: Guide, whole: _Tape, real: _Tape, head: Ints
) -> tuple[tuple[Ints, Ints], tuple[Ints, Ints]]:
    """Addresses of the candidates of each task, and of those who may read each replica."""
    problem = scope.problem
    modes = guide.modes[np.lexsort((guide.rank, problem.mode_task[guide.modes]))]
    pointer = np.searchsorted(problem.mode_task[modes], np.arange(problem.num_tasks + 1))
    head[at.CAND] = whole.add(modes)
    head[at.LOW] = real.add(own_cost(problem, form, modes, allowed.earliest[modes]))
    pointer += head[at.CAND]
    reader_ptr, reader = _readers(problem, modes)
    reader_ptr = reader_ptr + whole.add(reader)
    return (pointer[:-1], pointer[1:]), (reader_ptr[:-1], reader_ptr[1:])


def _readers(problem: Problem, modes: Ints) -> tuple[Ints, Ints]:
    """Replica -> tasks with a candidate that needs it, as a CSR list."""
    reads, need = entries(problem.need_ptr, modes)
    replica = problem.need_replica[need].astype(np.int64)
    pair = np.unique(replica * problem.num_tasks + problem.mode_task[modes][reads])
    names = np.arange(problem.num_replicas + 1) * problem.num_tasks
    return np.searchsorted(pair, names), pair % max(1, problem.num_tasks)


def _lay_arcs(scope: Scope, whole: _Tape) -> list[Ints]:
    """(task, lag) pairs between tasks that exist; the columns PRED_LO .. SUCC_HI."""
    problem, tasks = scope.problem, np.arange(scope.problem.num_tasks + 1)
    after = np.repeat(np.arange(problem.num_tasks), np.diff(problem.pred_ptr))
    keep = scope.exists[after] & scope.exists[problem.pred_task]
    after, before, lag = after[keep], problem.pred_task[keep], problem.pred_lag[keep]
    order = np.argsort(before, kind="stable")
    pred = 2 * np.searchsorted(after, tasks) + whole.add(np.column_stack([before, lag]))
    succ = 2 * np.searchsorted(before[order], tasks) + whole.add(np.column_stack([after[order], lag[order]]))
    return [pred[:-1], pred[1:], succ[:-1], succ[1:]]


def _modes(problem: Problem, forms: Sequence[Form], allowed: Windows, whole: _Tape) -> Ints:
    uses = 2 * problem.use_ptr + whole.add(np.column_stack([problem.use_resource, problem.use_amount]))
    needs = problem.need_ptr + whole.add(problem.need_replica)
    price = problem.purchase_cost[problem.buy_purchase]
    buys = 2 * problem.buy_ptr + whole.add(np.column_stack([problem.buy_purchase, price]))
    lists = [pointer for ptr in (uses, needs, buys) for pointer in (ptr[:-1], ptr[1:])]
    node = _first_entry(problem.use_ptr, problem.use_resource)
    dataset = _first_entry(problem.input_ptr, problem.input_dataset)
    constants = [_constants(problem, form) for form in forms]
    facts = (allowed.earliest, allowed.latest, problem.duration, node, dataset)
    return np.column_stack([*facts, *lists, *constants])


def _constants(problem: Problem, form: Form) -> Ints:
    """(M,) what a mode adds to ``form`` whatever its start."""
    task = problem.mode_task
    return form.loss[task] * (1000 - problem.utility) + form.placed[task] + form.cost * problem.money


def _first_entry(pointer: Ints, entries: Ints) -> Ints:
    if not len(entries):
        return np.full(len(pointer) - 1, -1, dtype=np.int64)
    first = entries[np.minimum(pointer[:-1], len(entries) - 1)]
    return np.where(pointer[1:] > pointer[:-1], first, -1).astype(np.int64)


def _coefficients(scope: Scope, form: Form, allowed: Windows) -> Ints:
    """(J, FORM_COLUMNS); the last one is the least that a free task adds."""
    problem, unset = scope.problem, np.iinfo(np.int64).max
    modes = _open_modes(scope, allowed)
    least = np.full(problem.num_tasks, unset)
    np.minimum.at(least, problem.mode_task[modes], own_cost(problem, form, modes, allowed.earliest[modes]))
    least = np.minimum(least, np.where(scope.rejectable, rejection_cost(form), unset))
    least = np.where(scope.free & (least < unset), least, 0)
    return np.column_stack([form.completion, form.tardiness, form.late, rejection_cost(form), least])


def _replicas(scope: Scope, allowed: Windows, routes_at: Ints, readers: tuple[Ints, Ints]) -> Ints:
    problem = scope.problem
    fixed = np.full(problem.num_replicas, -1, dtype=np.int64)
    for transfer in scope.transfers:
        if transfer.replica >= 0:
            fixed[transfer.replica] = max(0, transfer.end)
    routes = routes_at[problem.route_ptr]
    return np.column_stack([routes[:-1], routes[1:], allowed.transfer_earliest, fixed, *readers])


# state ------------------------------------------------------------------------------------------------------
def _address_state(scope: Scope, head: Ints, forms: int) -> int:
    """Fill the addresses of s; returns its length."""
    problem = scope.problem
    tasks, replicas = problem.num_tasks, problem.num_replicas
    sizes = {
        at.PLAN: at.PLAN_COLUMNS * tasks, at.HELD: at.HELD_COLUMNS * replicas, at.BUYERS: problem.num_purchases,
        at.SUMS: 2 * forms, at.LATEST: 1, at.SPAN: 2 * problem.num_resources, at.BEST: 1, at.BEST_PLAN: 2 * tasks,
        at.BEST_ROUTE: replicas, at.OUT: at.OUT_COLUMNS * (at.MOST_OUT + tasks), at.SAVED: 2 * replicas,
        at.COUNTS: 2 * len(NAMES), at.WEIGHT: len(NAMES), at.KEY: tasks, at.MARK: problem.num_resources,
        at.GAIN: 1, at.RNG: 2,
    }  # fmt: skip
    length = 0
    for name, size in sizes.items():
        head[name] = length
        length += size
    return length


def build_state(core: Core, seed: int = 0) -> Ints:
    """Nothing placed, not even what is fixed: `optalloc.solvers.lns.loop.put` enters that with the rest."""
    scope, c = core.scope, core.c
    problem, tasks = scope.problem, scope.problem.num_tasks
    profiles, span = _profiles(scope, core.size)
    s = np.concatenate([np.zeros(core.size, dtype=np.int64), profiles])
    s[c[at.PLAN] : c[at.PLAN] + at.PLAN_COLUMNS * tasks : at.PLAN_COLUMNS] = FREE
    held = s[c[at.HELD] : c[at.HELD] + at.HELD_COLUMNS * problem.num_replicas].reshape(-1, at.HELD_COLUMNS)
    held[:, [at.ROUTE, at.ONLY]] = -1
    s[c[at.SPAN] : c[at.SPAN] + span.size] = span.reshape(-1)
    paid = sum(transfer.cost for transfer in scope.transfers)
    for f in range(int(c[at.FORMS])):
        s[c[at.SUMS] + 2 * f + at.TOTAL] = c[c[at.FORM] + at.FORM_FACTS * f + at.MONEY] * paid
        least = c[at.TASK] + at.COEFFICIENTS + at.FORM_COLUMNS * f + at.LEAST
        width = int(c[at.TASK_WIDTH])
        s[c[at.SUMS] + 2 * f + at.WAITING] = c[least : least + width * tasks : width].sum()
    s[c[at.BEST]] = 2**62
    s[c[at.GAIN]] = 2**50
    s[c[at.WEIGHT] : c[at.WEIGHT] + len(NAMES)] = _weights(core)
    s[c[at.RNG] : c[at.RNG] + 2] = seeded(seed)
    return s


def _weights(core: Core) -> list[int]:
    """How often each neighbourhood is drawn: docs/search.md has what was measured."""
    problem, c = core.scope.problem, core.c
    chains, routes = len(problem.pred_task) > 0, (np.diff(problem.route_ptr) > 1).any()
    replicas = 1 if problem.num_replicas else 0
    ends = 2 if c[c[at.FORM] + at.MAKESPAN] else 0
    drawn = {
        "random": 1,
        "node": 2,
        "two-nodes": 2,
        "window": 2,
        "dataset": 1,
        "last": ends,
        "chain": 2 * chains,
    }
    drawn |= {"close": replicas, "open": replicas, "reroute": replicas * int(routes), "target": 4, "push": 4}
    return [int(drawn[name]) for name in NAMES]


def _profiles(scope: Scope, offset: int) -> tuple[Ints, Ints]:
    """Profiles with room for every run that may hold a resource, fixed transfers entered; and their addresses."""
    problem = scope.problem
    room = np.diff(problem.cap_ptr) + 2 * _holders(scope) + 4
    first = 2 * np.concatenate([[0], np.cumsum(room)])
    s = np.zeros(first[-1], dtype=np.int64)
    span = np.zeros((problem.num_resources, 2), dtype=np.int64)
    for r in range(problem.num_resources):
        times, amounts = problem.capacity(r)
        changes = np.concatenate([[True], amounts[1:] != amounts[:-1]])
        pairs = np.column_stack([times[changes], amounts[changes]]).reshape(-1)
        span[r] = first[r], first[r] + len(pairs)
        s[first[r] : first[r] + len(pairs)] = pairs
    for transfer in scope.transfers:
        for r in transfer.channels:
            span[r, 1] = reserve(s, span[r, 0], span[r, 1], 1, transfer.start, transfer.end)
    return s, span + offset


def _holders(scope: Scope) -> Ints:
    """(R,) how many runs and transfers can hold each resource."""
    problem = scope.problem
    owner = problem.mode_task[np.repeat(np.arange(problem.num_modes), np.diff(problem.use_ptr))]
    pair = np.unique(problem.use_resource.astype(np.int64) * problem.num_tasks + owner)
    count = np.bincount(pair // max(1, problem.num_tasks), minlength=problem.num_resources)
    for transfer in scope.transfers:
        count[list(transfer.channels)] += 1
    return np.asarray(count, dtype=np.int64)
