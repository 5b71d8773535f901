"""Compile all kernels and keep them on disk: ``python -m optalloc.solvers.warming``. See `optalloc.solvers.jit`."""

import sys
from contextlib import suppress
from pathlib import Path

import optalloc as oa
from optalloc.scope import full_scope
from optalloc.solvers import jit
from optalloc.solvers.base import Monitor, Request
from optalloc.solvers.lns.driver import search_plans
from optalloc.solvers.price_bound import price_bound
from optalloc.solvers.prices.fixing import narrowed_windows

__all__ = ["compile_all", "main"]


def compile_all() -> None:
    """Use every kernel once, on a small problem."""
    scope = full_scope(oa.compile(oa.generate("ladder", tasks=5)))
    monitor = Monitor(scope, 600.0)
    search_plans(Request(scope, monitor, options={"iterations": 50}))
    found = price_bound(scope, monitor, 0, plan=monitor.best)
    if found.proof is not None:
        narrowed_windows(found.proof, monitor.values[0])


def main() -> None:
    """Compile, say so by the marker, and drop the lock whose path is given."""
    try:
        compile_all()
        jit.mark()
    finally:
        for lock in sys.argv[1:]:
            with suppress(OSError):
                Path(lock).unlink()


if __name__ == "__main__":
    main()
