"""Run functions in processes of their own, so that one crash or hang never loses the others."""

import multiprocessing
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, Future, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Final

from optalloc.errors import InputError

__all__ = ["ENGINES", "Engine", "collect", "get_engine", "refuse_while_imported"]

Answer = Mapping[str, Any]
Engine = Callable[
    [Callable[..., dict[str, Any]], Sequence[tuple[Any, ...]], float, Callable[[int, Answer], None]], bool
]
"""``engine(function, arguments, timeout, keep)`` calls ``keep(index, answer)`` as answers come; False: interrupted."""


def get_engine(name: str, jobs: int) -> Engine:
    """The engine of that name with ``jobs`` runs at a time.

    Raises
    ------
    InputError
        For an unknown name, fewer than one job, or a missing library (with the command that installs it).
    """
    if name not in ENGINES:
        raise InputError(f"unknown engine {name!r}; known: {', '.join(ENGINES)}")
    if jobs < 1:
        raise InputError(f"jobs must be at least 1, got {jobs}")
    return ENGINES[name](jobs)


def _local(jobs: int) -> Engine:
    def run(
        function: Callable[..., dict[str, Any]],
        arguments: Sequence[tuple[Any, ...]],
        timeout: float,
        keep: Callable[[int, Answer], None],
    ) -> bool:
        from pebble import ProcessPool

        # spawn: HiGHS and torch hang for ever in a forked child
        context = multiprocessing.get_context("spawn")
        with ProcessPool(max_workers=jobs, context=context, initializer=_end_with_parent) as pool:
            futures = {
                pool.schedule(function, args=list(args), timeout=timeout): index
                for index, args in enumerate(arguments)
            }
            finished = collect(futures, keep)
            if not finished:
                pool.stop()
            return finished

    return run


_GUARD = (
    "no process could begin: each imports the script that is run, and a script that compares as it is imported would "
    'begin anew in each of them; call compare under: if __name__ == "__main__":'
)

_NO_PROCESS: Final[Answer] = {
    "status": "ERROR",
    "termination": "ERROR",
    "message": "its process could not begin",
}


def refuse_while_imported() -> None:
    """End a process that has only begun to import its main script, which asks for processes of its own."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise SystemExit(1)


def _end_with_parent() -> None:
    """Let no run go on when nobody waits for it any more, whatever has ended the process that began it."""
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, name="end with parent", daemon=True).start()


def _dask(jobs: int) -> Engine:
    try:
        from distributed import Client, LocalCluster
    except ModuleNotFoundError:
        raise InputError(
            "the dask engine needs distributed; install it with: pip install 'optalloc[dask]'"
        ) from None

    def run(
        function: Callable[..., dict[str, Any]],
        arguments: Sequence[tuple[Any, ...]],
        timeout: float,
        keep: Callable[[int, Answer], None],
    ) -> bool:
        cluster = LocalCluster(n_workers=jobs, threads_per_worker=1, dashboard_address=None)
        with cluster, Client(cluster) as client:
            executor = client.get_executor(retries=0, pure=False)
            return collect({executor.submit(function, *args): i for i, args in enumerate(arguments)}, keep)

    return run


ENGINES: dict[str, Callable[[int], Engine]] = {"local": _local, "dask": _dask}


def collect(futures: Mapping["Future[dict[str, Any]]", int], keep: Callable[[int, Answer], None]) -> bool:
    """Hand over answers as they come; a Ctrl-C cancels what has not begun and returns False."""
    try:
        for count, future in enumerate(as_completed(futures)):
            answer = _answer(future)
            if answer is _NO_PROCESS and count == 0:
                raise InputError(_GUARD)
            keep(futures[future], answer)
    except KeyboardInterrupt:
        for future in futures:
            future.cancel()
        return False
    return True


def _answer(future: "Future[dict[str, Any]]") -> Answer:
    try:
        return future.result()
    except BrokenProcessPool:
        return _NO_PROCESS
    except CancelledError:
        return {"status": "NO_SOLUTION", "termination": "USER"}
    except TimeoutError:
        return {
            "status": "ERROR",
            "termination": "TIME_LIMIT",
            "message": "did not stop at its time limit and was ended",
        }
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # raised in the child: sys.exit in a solver must not end the comparison
        return {"status": "ERROR", "termination": "ERROR", "message": f"{type(error).__name__}: {error}"}
