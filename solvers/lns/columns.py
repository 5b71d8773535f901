"""Where things are in the arrays of the compiled search.

A kernel is handed three flat arrays: ``c``, whole numbers that never change; ``x``, floats that never change; ``s``,
whole numbers that do. Many small arrays would say the same, but each argument is paid for at every call and while
compiling (measured: 5 times slower to run, twice as long to compile). ``c`` begins with addresses (names in
``ADDRESSES``); the rows behind them have the columns named here.
"""

from typing import Final

ADDRESSES: Final = (
    # sizes
    "tasks", "replicas", "forms", "edges",
    # in c
    "task", "task_width", "mode", "mode_width", "replica", "form", "edge", "bucket", "cand",
    # in x
    "low", "before", "price",
    # in s
    "plan", "held", "buyers", "sums", "latest", "span", "best", "best_plan", "best_route", "out", "saved", "counts",
    "weight", "key", "mark", "gain", "rng",
)  # fmt: skip

(
    TASKS, REPLICAS, FORMS, EDGES,
    TASK, TASK_WIDTH, MODE, MODE_WIDTH, REPLICA, FORM, EDGE, BUCKET, CAND,
    LOW, BEFORE, PRICE,
    PLAN, HELD, BUYERS, SUMS, LATEST, SPAN, BEST, BEST_PLAN, BEST_ROUTE, OUT, SAVED, COUNTS,
    WEIGHT, KEY, MARK, GAIN, RNG,
) = range(len(ADDRESSES))  # fmt: skip

# a task in c; then for each form SLOPE .. LEAST
IS_FREE: Final = 0
REJECTABLE: Final = 1
DUE: Final = 2
PRED_LO: Final = 3
PRED_HI: Final = 4
SUCC_LO: Final = 5
SUCC_HI: Final = 6
"""(task, lag) pairs."""
CAND_LO: Final = 7
CAND_HI: Final = 8
"""Modes worth trying, most promising first; their lower bounds are in x."""
WANT_MODE: Final = 9
WANT_START: Final = 10
"""Where the prices alone would put it; mode -1: no prices, or rejected."""
COEFFICIENTS: Final = 11

SLOPE: Final = 0
TARDINESS: Final = 1
LATE: Final = 2
REJECT: Final = 3
LEAST: Final = 4
FORM_COLUMNS: Final = 5

# a mode in c
FIRST: Final = 0
LAST: Final = 1
TICKS: Final = 2
NODE: Final = 3
"""First resource that it holds, -1 without; DATASET likewise."""
DATASET: Final = 4
USE_LO: Final = 5
USE_HI: Final = 6
"""(resource, amount) pairs."""
NEED_LO: Final = 7
NEED_HI: Final = 8
BUY_LO: Final = 9
BUY_HI: Final = 10
"""(purchase, price) pairs."""
CONST: Final = 11
"""What it adds to form f whatever its start is in column CONST + f."""

# a replica in c
ROUTE_LO: Final = 0
ROUTE_HI: Final = 1
"""(ticks, cost) pairs."""
FROM_TICK: Final = 2
FIXED: Final = 3
"""When a transfer of the scope arrives, -1 if there is none."""
READER_LO: Final = 4
READER_HI: Final = 5
"""Tasks with a candidate that needs it."""
REPLICA_COLUMNS: Final = 6

# a form in c
MONEY: Final = 0
MAKESPAN: Final = 1
BOUND: Final = 2
FORM_FACTS: Final = 3

# a task in s (PLAN); in BEST_PLAN there are mode and start only
CHOSEN: Final = 0
START: Final = 1
END: Final = 2
PLAN_COLUMNS: Final = 3

# a replica in s (HELD)
READERS: Final = 0
ROUTE: Final = 1
"""Address of its route in c, -1 while nobody reads it."""
ARRIVAL: Final = 2
ONLY: Final = 3
"""The one route that it may take, -1: any."""
BIAS: Final = 4
KEPT: Final = 5
"""ONLY, put aside."""
HELD_COLUMNS: Final = 6

NORMAL, GRATIS, CLOSED = 0, 1, 2
"""Values of BIAS: its charge counts; does not count in the guide; it may not be opened."""

# a form in s (SUMS)
TOTAL: Final = 0
WAITING: Final = 1

# a resource in s (SPAN): address of its first (tick, free) pair, and behind the last
AT: Final = 0
UNTIL: Final = 1

# a task taken out (OUT)
PICKED: Final = 0
ORDER: Final = 1
OLD_MODE: Final = 2
OLD_START: Final = 3
OUT_COLUMNS: Final = 4
MOST_OUT: Final = 64
"""Most tasks that are taken out at a time."""
