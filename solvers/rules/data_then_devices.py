"""Rules that fix the dataset first and choose the devices afterwards: the controls for joint allocation."""

import numpy as np

from optalloc.placement import Placement
from optalloc.problem import Ints
from optalloc.solvers.rules.criteria import Completion, best_in_groups
from optalloc.solvers.rules.desk import Desk
from optalloc.solvers.rules.listing import place_in_order
from optalloc.solvers.rules.shortest import smith_ratio

__all__ = ["compute_centric", "data_choices", "data_first"]


def compute_centric(desk: Desk) -> None:
    """Shortest task first; data of the highest utility, whatever they cost; then where it ends first."""
    place_in_order(desk, desk.shortest.tolist(), _most_useful)


def _most_useful(desk: Desk, task: int) -> Placement | None:
    modes = desk.modes(task)
    return best_in_groups(desk, task, modes, -desk.problem.utility[modes], Completion())


def data_first(desk: Desk) -> None:
    """Largest w_j / p_j first; the datasets that cost least by themselves; then where the task ends first.

    What datasets cost by themselves is the least, over the modes that read them, of what the first level
    charges for money (run, data, transfers and purchases not paid yet), for utility, and for waiting until
    the data can be there: the queues at the nodes and the length of the run are not looked at.
    """
    place_in_order(desk, (-smith_ratio(desk)).tolist(), _least_data_cost)


def _least_data_cost(desk: Desk, task: int) -> Placement | None:
    problem, modes = desk.problem, desk.modes(task)
    form = problem.levels[0]
    money = form.cost * (problem.money[modes] + desk.shared_money(modes))
    wait = form.completion[task] * (desk.first[modes] - problem.release[task])
    cost = money + wait + form.loss[task] * (1000 - problem.utility[modes])
    choice = data_choices(desk, modes)
    least = np.full(len(modes), np.iinfo(np.int64).max)
    np.minimum.at(least, choice, cost)
    # Among choices of equal cost the first one: a rank that no two choices share.
    rank = np.empty(len(modes), dtype=np.int64)
    rank[np.argsort(least, kind="stable")] = np.arange(len(modes))
    return best_in_groups(desk, task, modes, rank[choice], Completion())


def data_choices(desk: Desk, modes: Ints) -> Ints:
    """For each mode of a task a number below ``len(modes)`` that says which datasets it reads."""
    problem = desk.problem
    count = problem.input_ptr[modes + 1] - problem.input_ptr[modes]
    number = np.zeros(len(modes), dtype=np.int64)
    for place in range(int(count.max(initial=0))):
        has = count > place
        dataset = np.full(len(modes), -1)
        dataset[has] = problem.input_dataset[problem.input_ptr[modes[has]] + place]
        number = np.unique(number * (len(problem.dataset_ids) + 1) + dataset + 1, return_inverse=True)[1]
    return np.asarray(number)
