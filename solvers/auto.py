"""The default: rules, search, price bound, fixing and the exact methods, sharing plans and bounds.

1. The best dispatch rule gives a first plan, and CP-SAT has a short try: small instances end here.
2. The price bound prices the capacity; the search improves the plan under those prices, in a thread of its own if there
   is a second one, while the prices are refined and what can only be worse than the best plan is dropped.
3. HiGHS or CP-SAT gets what is left, once that is little enough for the time; until then there is a second search.

Bound and search take part where their kernels are compiled (`pip install optalloc[fast]`); without them the exact
methods take turns.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, Final

import numpy as np

from optalloc.errors import UnsupportedError
from optalloc.result import Termination
from optalloc.scope import Windows
from optalloc.solvers.base import Monitor, Outcome, Request
from optalloc.solvers.jit import COMPILED, prepare, ready
from optalloc.solvers.price_bound import PriceBound, least_value, price_bound
from optalloc.solvers.prices.ascent import REFINING, STAGES, Settings
from optalloc.solvers.prices.fixing import narrowed_windows, starts_to_look_at
from optalloc.solvers.registry import get_solver, solver

__all__ = ["auto", "starts_left"]

_TRY_SECONDS, _TRY_MOST = 2.0, 0.3
"""CP-SAT's first try: so many seconds, but no more than that share of the time."""
_MOST_MODES: Final = 2_000
"""Active modes up to which that is worth its model."""
_SECONDS_PER_MODE: Final = 5e-6
"""What nobody can interrupt takes up to so long: arrays of the search, first lines of a model."""
_POLL_SECONDS: Final = 0.1
"""Between two looks at the clock while another thread works."""
_PATIENCE: Final = 3.0
"""Seconds of waiting for kernels between two tries of CP-SAT."""
_FEWEST_STARTS: Final = 1_000
"""Starts up to which the time-indexed model is solved before anyone searches."""
_FEW_STARTS: Final = 8_000
"""Starts up to which the time-indexed model is solved in seconds, and can be built anew when there are fewer."""
_MOST_STARTS: Final = 60_000
"""Starts up to which it is worth building at all."""
_FAR_STARTS: Final = 5 * _MOST_STARTS
"""Starts from which there is no hope of getting there: one long search finds more than several short ones."""
_STARTS_PER_SECOND: Final = 1_000
"""How many starts of it need a second for a bound that is better than the prices' (measured: root and first cuts)."""
_FIRST_PRICES, _PRICES_PER_MODE = 2.0, 4.5e-5
"""Seconds that the first prices may take at most: so many, and so many for each active mode."""
_QUICK, _QUICK_SECONDS = 0.05, 1.0
"""Part of the time and seconds that the first prices may take, for the search to wait until they are refined."""
_FIRST_SEARCH: Final = 3.0
"""Seconds of search, at most, before anything else builds on the plan."""
_SEARCHES_FOR_PRICES: Final = 3.0
"""While prices are refined, a search takes so many times what the first prices took."""
_MOST_LOOKED_AT: Final = 20_000_000
"""Starts up to which it is worth asking which of them are left."""


@solver("auto", exact=True, options={}, libraries=("ortools", "highspy", "pyomo"))
def auto(request: Request) -> Outcome:
    """Prove or improve with one method after the other, within one time limit."""
    team = _Team(request)
    team.begin()
    if team.small:
        team.exact("cpsat", min(_TRY_MOST, _TRY_SECONDS / max(1e-9, request.monitor.remaining)))
    team.wait_for_kernels()
    while team.ended is None and team.level is not None and not request.monitor.should_stop():
        team.work_on(team.level)
    if 0 not in request.monitor.bounds:
        request.monitor.bound(0, least_value(request.scope), "auto")
    if team.ended is not None:
        return Outcome(team.ended.termination, team.ended.infeasible, team.ended.message, team.info)
    return Outcome(team.termination(), info=team.info)


class _Team:
    """The methods, and what each leaves for the next."""

    def __init__(self, request: Request):
        self.request, self.monitor = request, request.monitor
        self.prices: dict[int, tuple[tuple[int, ...], PriceBound]] = {}
        self.ended: Outcome | None = None
        self.last = Termination.COMPLETED
        self.info: dict[str, Any] = {"methods": []}
        self.modes = int(request.scope.problem.active.sum())
        self.small = self.modes <= _MOST_MODES
        self.searching_now = 0
        self._seeds = count(request.seed + 1)  # one for each search, in whatever thread
        self.refused: set[str] = set()
        self._narrowed: dict[int, tuple[Any, int, Windows]] = {}
        self._failure: BaseException | None = None

    @property
    def level(self) -> int | None:
        """The first level that is not close enough to proven."""
        levels = range(len(self.request.scope.problem.levels))
        return next((level for level in levels if not self.monitor.close_enough(level)), None)

    @property
    def done(self) -> bool:
        """Nothing more is to be done on any level, or can be."""
        return self.ended is not None or self.level is None or self.monitor.should_stop()

    # order of work -----------------------------------------------------------------------------------------
    def begin(self) -> None:
        """Offer the best plan of a few fast rules; of the compiled list scheduler where there are many tasks."""
        from optalloc.solvers.lns.driver import MANY, list_start
        from optalloc.solvers.rules import best_start

        if COMPILED and not ready():
            prepare(lambda: True)  # begins it, and goes on
        elif COMPILED and int(self.request.scope.free.sum()) >= MANY:
            if self.modes * _SECONDS_PER_MODE > self.monitor.remaining:
                self.info["start"] = "no time"
                return
            if list_start(self.request):
                self.info["start"] = "list scheduling"
                return
        plan = best_start(self.request.scope, seed=self.request.seed, should_stop=self.monitor.should_stop)
        self.info["start"] = "none found" if plan is None else "rules"
        if plan is not None:
            self.monitor.offer(plan, "rules")

    def wait_for_kernels(self) -> None:
        """Bound and search are compiled once, elsewhere: until then the exact methods work."""
        while COMPILED and not self.done and not prepare(self.monitor.part(_PATIENCE).should_stop):
            if self.small:
                self.exact("cpsat", min(1.0, _PATIENCE / max(_PATIENCE, self.monitor.remaining)))

    def work_on(self, level: int) -> None:
        """One level, until it is close enough or the time is up."""
        if not COMPILED or self.monitor.best is None:
            self.take_turns()
            return
        began = self.monitor.elapsed
        most = _FIRST_PRICES + self.modes * _PRICES_PER_MODE
        self.bound(level, STAGES, min(0.3, most / max(1e-9, self.monitor.remaining)))
        quick = self.monitor.elapsed - began < min(_QUICK_SECONDS, _QUICK * self.monitor.remaining)
        if starts_left(self.windows(level), _MOST_STARTS) <= _FEWEST_STARTS:
            self.exact("highs", 0.3, level)
        if self.done or self.level != level:
            return
        if quick:
            self.bound(level, REFINING, 0.2)  # better prices are a better guide, too
            self.search(level, min(0.05, _FIRST_SEARCH / max(_FIRST_SEARCH, self.monitor.remaining)))
        first = max(_FIRST_SEARCH, _SEARCHES_FOR_PRICES * (self.monitor.elapsed - began))
        with self.searching(level, 0 if quick else first) as refined:
            if not quick:
                self.bound(level, REFINING, 0.3)
                refined.set()
            round_ = 0
            while not self.done and self.level == level:
                self.prove(level, round_)
                round_ += 1
        if self._failure is not None:
            raise self._failure

    def take_turns(self) -> None:
        """The exact methods alone, each with more of the time than before; at least until there is a plan."""
        for round_ in range(4):
            if self.done or (COMPILED and self.monitor.best is not None):
                return
            if self.modes * _SECONDS_PER_MODE > self.monitor.remaining:
                message = "the time that is left does not suffice for the first model"
                self.ended = Outcome(Termination.TIME_LIMIT, message=message)
                return
            self.exact(("cpsat", "highs")[round_ % 2], 0.6 if round_ % 2 == 0 else 0.9)
        if not self.done:
            self.ended = Outcome(self.last)

    def prove(self, level: int, round_: int) -> None:
        """What promises most for the rest of the time: an exact method on what is left, or more search."""
        starts = starts_left(self.windows(level), _FAR_STARTS)
        remaining = self.monitor.remaining
        if starts <= _FEW_STARTS:
            # The plan may soon be better and the model smaller: no method gets all of the time at once.
            name, share = (("highs", 0.4), ("cpsat", 0.25), ("highs", 0.9), ("cpsat", 0.9))[round_ % 4]
        elif starts <= min(_MOST_STARTS, remaining * _STARTS_PER_SECOND):
            # So large a model is built once, when the plan is good.
            name, share = ("lns", 0.3) if round_ == 0 else ("highs", 1.0)
        else:
            name, share = ("lns", 0.3) if round_ % 2 == 0 else ("cpsat", 0.4)
            if starts >= _FAR_STARTS and not self.small:
                share = 1.0
        if name == "lns" or name in self.refused or (name == "cpsat" and not self.small):
            self.search(level, share if remaining > 1 else 1.0)
        else:
            self.exact(name, share, level)

    # search ------------------------------------------------------------------------------------------------
    @contextmanager
    def searching(self, level: int, seconds: float) -> Iterator[threading.Event]:
        """Search in a thread of its own for the time of a ``with`` block.

        For so many ``seconds`` each time, until the event is set that prices are refined: then once more, with them, to
        the end. A search keeps to the prices with which it began.

        Only on the first level: there values only fall. A better plan may be worse on a later level, and windows made
        a moment before would then leave out plans that are better than it.
        """
        refined = threading.Event()
        if self.request.threads < 2 or level > 0:
            yield refined
            return
        part = self.monitor.part(self.monitor.remaining)
        parts = [part]

        def work() -> None:
            while seconds and not refined.is_set():
                parts.append(part.part(seconds))
                if part.should_stop() or self._failure is not None:
                    return
                self._search(parts[-1], level)
            self._search(part, level)

        thread = threading.Thread(target=work, name="search", daemon=True)
        thread.start()
        self.searching_now = 1
        try:
            yield refined
        finally:
            for one in parts:
                one.stop()
            thread.join()
            self.searching_now = 0

    def search(self, level: int, share: float) -> None:
        """Search in this thread; wait for the other one where there is no time to begin."""
        begin, remaining = self.modes * _SECONDS_PER_MODE, self.monitor.remaining
        if begin > remaining:
            time.sleep(min(_POLL_SECONDS, remaining))
            return
        self._search(self.monitor.part(max(share * remaining, 3 * begin)), level)

    def _search(self, part: Monitor, level: int) -> None:
        from optalloc.solvers.lns.driver import Budget, improve

        began = part.elapsed
        own = Request(self.request.scope, part, part.best, next(self._seeds))
        try:
            known = self.priced(level)
            pair = None if known is None or known.proof is None else (known.layout, known.prices)
            facts = improve(own, level, Budget(part, part.remaining, 0, began), pair)
        except BaseException as failure:  # another thread's: it goes on in the caller's
            self._failure = failure
            self.monitor.interrupt()
        else:
            self.note("lns", began, **facts)

    # bound -------------------------------------------------------------------------------------------------
    def priced(self, level: int) -> PriceBound | None:
        """The best prices of the level so far; those made under other values of earlier levels are void."""
        caps, found = self.prices.get(level, ((), None))
        return found if caps == self.monitor.values[:level] else None

    def windows(self, level: int) -> Windows | None:
        """Starts that can be in a plan as good as the best one; None: nothing is ruled out."""
        found, upper = self.priced(level), self.monitor.values[level]
        if found is None or found.proof is None:
            return None
        proof, value, narrowed = self._narrowed.get(level, (None, 0, None))
        if narrowed is None or proof is not found.proof or value != upper:
            if starts_to_look_at(found.proof, upper) > _MOST_LOOKED_AT:
                return None
            narrowed = narrowed_windows(found.proof, upper)
            self._narrowed[level] = (found.proof, upper, narrowed)
        return narrowed

    def bound(self, level: int, stages: Any, share: float) -> None:
        """Price the capacity, or price it better."""
        monitor, known = self.monitor, self.priced(level)
        if monitor.should_stop():
            return
        began, caps = monitor.elapsed, monitor.values[:level]
        part = monitor.part(share * monitor.remaining)
        settings = Settings(stages=stages)
        try:
            found = price_bound(
                self.request.scope,
                part,
                level,
                caps=caps,
                seed=self.request.seed,
                plan=monitor.best,
                settings=settings,
                begin=None if known is None else known.prices,
            )
        except UnsupportedError as error:
            self.note("bound", began, refused=str(error))
            return
        old, new = None if known is None else known.value, found.value
        if old is None or (new is not None and new >= old):
            self.prices[level] = (caps, found)
        self.note("bound", began)

    # exact methods -----------------------------------------------------------------------------------------
    def exact(self, name: str, share: float, level: int | None = None) -> None:
        """One exact method on what is left of a level, or on all levels."""
        if self.monitor.should_stop() or self.level is None:
            return
        outcome = self.run(name, share, level)
        if outcome is not None and (outcome.infeasible or outcome.termination is Termination.PROVEN):
            self.ended = outcome
        stuck = outcome is not None and outcome.termination is not Termination.TIME_LIMIT
        if outcome is None or (stuck and level is not None and not self.monitor.close_enough(level)):
            self.refused.add(name)  # it would say the same again

    def run(self, name: str, share: float, level: int | None) -> Outcome | None:
        """A registered solver for its share of the time; None if it does not handle the problem."""
        request, left = self.request, {}
        for priced in self.prices:
            narrowed = self.windows(priced)
            if narrowed is not None:
                left[priced] = narrowed
        monitor = self.monitor.part(share * self.monitor.remaining)
        threads = max(1, request.threads - self.searching_now)
        part = Request(request.scope, monitor, monitor.best, request.seed, threads, windows=left, level=level)
        began = monitor.elapsed
        run: Callable[[Request], Outcome] = get_solver(name).run
        try:
            outcome = run(part)
        except UnsupportedError as error:
            self.note(name, began, refused=str(error))
            return None
        self.last = outcome.termination
        self.note(name, began, termination=outcome.termination.value, **outcome.info)
        return outcome

    # facts -------------------------------------------------------------------------------------------------
    def note(self, name: str, began: float, **facts: Any) -> None:
        """Keep who did what for how long."""
        seconds = round(self.monitor.elapsed - began, 3)
        self.info["methods"].append({"name": name, "seconds": seconds, **facts})

    def termination(self) -> Termination:
        """Why it stopped, when no method said that it is done."""
        return _stopped(self.monitor) or (self.last if self.level is not None else self.reached())

    def reached(self) -> Termination:
        """Every level is close enough: proven, or within the gap that was asked for."""
        levels = range(len(self.request.scope.problem.levels))
        return Termination.PROVEN if all(self.monitor.gap(k) == 0 for k in levels) else Termination.GAP


def starts_left(narrowed: Windows | None, otherwise: int) -> int:
    """Number of (mode, start) pairs in narrowed windows."""
    if narrowed is None:
        return otherwise
    return int(np.maximum(0, narrowed.latest - narrowed.earliest + 1)[narrowed.open].sum())


def _stopped(monitor: Monitor) -> Termination | None:
    if monitor.interrupted:
        return Termination.USER
    return Termination.TIME_LIMIT if monitor.remaining <= 0 else None
