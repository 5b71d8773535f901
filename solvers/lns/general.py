"""The general engine: every feature of the model, one Python call of the placement kernel per mode tried."""

from collections.abc import Sequence

import numpy as np

from optalloc.placement import Placement, Timetable
from optalloc.problem import REJECTED, Form, Plan, own_cost, rejection_cost
from optalloc.scope import Scope, Windows
from optalloc.solvers.lns.arrays import Cap

__all__ = ["GeneralSearch"]

SIZE = 6
"""Most tasks that a step takes out."""


class GeneralSearch:
    """A search on one form; see `optalloc.solvers.lns.compiled.CompiledSearch`."""

    unit = 1

    def __init__(self, scope: Scope, form: Form, caps: Sequence[Cap], allowed: Windows, seed: int = 0):
        self.scope, self.form, self.caps = scope, form, caps
        self.problem = problem = scope.problem
        self.rng = np.random.default_rng(seed)
        self.free: list[int] = np.flatnonzero(scope.free).tolist()
        self.rejection = rejection_cost(form)
        self.modes = [self._ranked(allowed, task) for task in range(problem.num_tasks)]
        self.blank = Timetable(scope)
        self.table = self.blank
        self.now = 0
        self.best: int | None = None
        self.best_table = self.blank
        self.counts: dict[str, tuple[int, int]] = {}
        self.units = 0

    def _ranked(self, allowed: Windows, task: int) -> list[tuple[int, int]]:
        """(least own cost, mode) of the open modes of a task, cheapest first."""
        if not self.scope.free[task]:
            return []
        modes = self.problem.modes_of(task)
        modes = modes[allowed.open[modes]]
        low = own_cost(self.problem, self.form, modes, allowed.earliest[modes])
        return sorted(zip(low.tolist(), modes.tolist(), strict=True))

    # plans ------------------------------------------------------------------------------------------------
    def begin(self, plan: Plan) -> None:
        """Go on from ``plan``."""
        table = self.blank.copy()
        known = set(self.scope.transfers)
        read = {k for m in plan.mode.tolist() if m >= 0 for k in self.problem.needs(m)}
        for transfer in plan.transfers:
            if transfer not in known and transfer.replica in read:
                table.stage(transfer)
        for task in self.problem.topological:
            mode, start = int(plan.mode[task]), int(plan.start[task])
            if not self.scope.free[task] or table.mode[task] == REJECTED:
                continue
            if mode >= 0:
                table.commit(Placement(task, mode, start, start + table.facts(mode).duration))
            elif mode == REJECTED:
                table.reject(task)
        self.table, self.now = table, table.value(self.form)
        self._keep()

    def restart(self) -> None:
        """Go back to the best plan."""
        if self.best is not None:
            self.table, self.now = self.best_table.copy(), self.best

    def plan(self) -> Plan:
        """The best plan."""
        return self.best_table.plan()

    def _keep(self) -> None:
        if self.best is None or self.now < self.best:
            self.best, self.best_table = self.now, self.table.copy()

    # steps ------------------------------------------------------------------------------------------------
    def steps(self, slack: float) -> int:
        """One step; a left shift now and then."""
        self.units += 1
        if self.units % max(20, len(self.free)) == 0:
            self._try(self._by_start(), {}, slack, own_mode=True)
            return 1
        name = self._draw()
        picked, bias = getattr(self, f"_{name}")()
        tried, better = self.counts.get(name, (0, 0))
        gained = bool(picked) and self._try(picked, bias, slack)
        self.counts[name] = (tried + 1, better + gained)
        return 1

    def _draw(self) -> str:
        names = ["random", "window", "node"]
        names += ["chain"] if len(self.problem.pred_task) else []
        names += ["replica", "replica", "open"] if self.problem.num_replicas else []
        return names[int(self.rng.integers(len(names)))]

    def _try(self, picked: list[int], bias: dict[int, float], slack: float, own_mode: bool = False) -> bool:
        """Take the tasks out and put them back; whether the plan got better."""
        old, before = self.table, self.now
        modes = {task: old.mode[task] for task in picked} if own_mode else {}
        table = old.copy()
        for task in picked:
            table.remove(task)
        order = picked if own_mode else self._order(old, picked)
        if not all(self._insert(table, task, bias, modes.get(task, -1)) for task in self._sorted(order)):
            return False
        if any(table.value(form) > bound for form, bound in self.caps):
            return False
        after = table.value(self.form)
        if after > before - slack * np.log(1 - self.rng.random()):
            return False
        self.table, self.now = table, after
        self._keep()
        return after < before

    def _order(self, table: Timetable, picked: list[int]) -> list[int]:
        """Random, or as they were with some noise."""
        if self.rng.random() < 0.5:
            return [picked[i] for i in self.rng.permutation(len(picked))]
        noise = self.rng.normal(0, 3, len(picked)).tolist()
        keys = [table.start[task] + shift for task, shift in zip(picked, noise, strict=True)]
        return [task for _, task in sorted(zip(keys, picked, strict=True))]

    def _sorted(self, order: list[int]) -> list[int]:
        """The same tasks, predecessors first."""
        if not len(self.problem.pred_task):
            return order
        left, done = list(order), []
        waiting = set(order)
        while left:
            ready = (t for t in left if not any(p in waiting for p, _ in self.problem.predecessors(t)))
            task = next(ready)
            left.remove(task)
            waiting.discard(task)
            done.append(task)
        return done

    def _insert(self, table: Timetable, task: int, bias: dict[int, float], only: int) -> bool:
        """Place or reject a task, whichever adds least; False: neither is possible."""
        if table.mode[task] == REJECTED:
            return True
        found = self._best_placement(table, task, bias, only)
        chain = table.followers(task) if self.scope.rejectable[task] else ()
        may_drop = bool(chain) and not any(table.mode[one] >= 0 for one in chain)
        if may_drop and (found is None or self.rejection[task] < table.increase(self.form, found)):
            # Successors are among the tasks taken out, or rejected already.
            table.mode[task] = REJECTED
            return True
        if found is None:
            return False
        table.commit(found)
        return True

    def _best_placement(
        self, table: Timetable, task: int, bias: dict[int, float], only: int
    ) -> Placement | None:
        best, least = None, float("inf")
        for low, mode in self.modes[task]:
            if only >= 0 and mode != only:
                continue
            if low >= least:
                break
            needs = table.facts(mode).needs
            if any(bias.get(k, 1.0) > 1.0 for k in needs):
                continue
            found = table.earliest(task, mode)
            if found is None:
                continue
            value = float(table.increase(self.form, found))
            value -= sum(self.form.cost * t.cost * (1 - bias.get(t.replica, 1.0)) for t in found.transfers)
            if value < least and self._within(table, found):
                best, least = found, value
        return best

    def _within(self, table: Timetable, found: Placement) -> bool:
        return all(table.value(form) + table.increase(form, found) <= bound for form, bound in self.caps)

    # neighbourhoods ---------------------------------------------------------------------------------------
    def _size(self) -> int:
        return int(self.rng.integers(1, SIZE + 1))

    def _nearest(self, tasks: Sequence[int], keys: Sequence[float]) -> list[int]:
        return [task for _, task in sorted(zip(keys, tasks, strict=True))[: self._size()]]

    def _random(self) -> tuple[list[int], dict[int, float]]:
        return self._nearest(self.free, self.rng.random(len(self.free)).tolist()), {}

    def _window(self) -> tuple[list[int], dict[int, float]]:
        middle = self.table.start[self.free[int(self.rng.integers(len(self.free)))]]
        noise = self.rng.random(len(self.free)).tolist()
        keys = [abs(self.table.start[t] - middle) + n for t, n in zip(self.free, noise, strict=True)]
        return self._nearest(self.free, keys), {}

    def _node(self) -> tuple[list[int], dict[int, float]]:
        seed = self.free[int(self.rng.integers(len(self.free)))]
        near = [t for t in self.free if self._place_of(t) in (self._place_of(seed), -1)]
        keys = [abs(self.table.start[t] - self.table.start[seed]) + float(self.rng.random()) for t in near]
        return self._nearest(near, keys), {}

    def _place_of(self, task: int) -> int:
        mode = self.table.mode[task]
        uses = self.table.facts(mode).uses if mode >= 0 else ()
        return uses[0][0] if uses else -1

    def _chain(self) -> tuple[list[int], dict[int, float]]:
        """A task and what is around it in the order of precedence."""
        found = [self.free[int(self.rng.integers(len(self.free)))]]
        for task in found:
            near = [p for p, _ in self.problem.predecessors(task)] + list(self.problem.successors[task])
            found += [t for t in near if self.scope.free[t] and t not in found]
            if len(found) > SIZE:
                break
        return found, {}

    def _replica(self) -> tuple[list[int], dict[int, float]]:
        """All readers of a replica; every other time it may not be opened again."""
        held = [k for k, h in self.table.held.items() if any(self.scope.free[t] for t in h.readers)]
        if not held:
            return [], {}
        replica = held[int(self.rng.integers(len(held)))]
        readers = [t for t in self.table.held[replica].readers if self.scope.free[t]]
        return readers, {replica: 2.0} if self.rng.random() < 0.5 else {}

    def _open(self) -> tuple[list[int], dict[int, float]]:
        """Some tasks, with the charge of a replica that nobody reads left out of account."""
        closed = [k for k in range(self.problem.num_replicas) if k not in self.table.held]
        if not closed:
            return [], {}
        return self._random()[0], {closed[int(self.rng.integers(len(closed)))]: 0.0}

    def _by_start(self) -> list[int]:
        placed = [t for t in self.free if self.table.mode[t] >= 0]
        return sorted(placed, key=lambda task: (self.table.start[task], task))
