"""Objective terms as linear expressions: one short function per term, shared by levels, limits and caps."""

from collections.abc import Callable
from dataclasses import dataclass, field

from ortools.sat.python import cp_model

from optalloc.errors import UnsupportedError
from optalloc.formulations.cpsat.constraints import MAX_PRODUCT
from optalloc.formulations.cpsat.variables import Activity, CpsatVariables, Literal, Variable
from optalloc.problem import Form, rejection_cost

__all__ = ["MAX_COEFFICIENT", "Linear", "Terms", "at_most", "form_value"]

MAX_COEFFICIENT = 2**53
"""CP-SAT silently turns an objective with a larger coefficient into one of floating-point numbers."""


@dataclass(eq=False)
class Linear:
    """An integer linear expression that is checked before CP-SAT sees it."""

    constant: int = 0
    variables: dict[int, Variable] = field(default_factory=dict)
    coefficients: dict[int, int] = field(default_factory=dict)

    def add(self, coefficient: int, variable: Variable | int) -> None:
        """Add ``coefficient * variable``; a plain number goes to the constant."""
        coefficient = int(coefficient)
        if isinstance(variable, int):
            self.constant += coefficient * variable
        elif coefficient:
            self.variables[variable.index] = variable
            self.coefficients[variable.index] = self.coefficients.get(variable.index, 0) + coefficient

    def range(self) -> tuple[int, int]:
        """Least and largest value that the domains of the variables allow."""
        least = largest = self.constant
        for index, coefficient in self.coefficients.items():
            domain = self.variables[index].proto.domain
            ends = coefficient * domain[0], coefficient * domain[len(domain) - 1]
            least, largest = least + min(ends), largest + max(ends)
        return least, largest

    def expression(self) -> cp_model.LinearExprT:
        """The native expression without the constant.

        Raises
        ------
        UnsupportedError
            A coefficient passes 2^53, or a value could pass 2^62.
        """
        size = sum(abs(end) for end in self.range()) + abs(self.constant)
        largest = max((abs(value) for value in self.coefficients.values()), default=0)
        if largest > MAX_COEFFICIENT or size > MAX_PRODUCT:
            raise UnsupportedError(
                f"CP-SAT would overflow: an objective or limit reaches {size}, a coefficient {largest} "
                "(at most 2^62 and 2^53); use coarser ticks, a larger money unit or simpler weights."
            )
        order = list(self.coefficients)
        return cp_model.LinearExpr.weighted_sum(
            [self.variables[index] for index in order], [self.coefficients[index] for index in order]
        )


@dataclass(eq=False)
class Terms:
    """Variables of objective terms, made when a form first asks for them and shared by all forms.

    Attributes
    ----------
    makespan
        At least the end of every placed task; None until asked for.
    tardiness
        Task -> at least its ticks past due, where that is open.
    on_time
        Task -> literal that it is placed and ends by its due date, where that is open.
    on_time_modes
        Mode -> literal: chosen, and on time.
    """

    of: CpsatVariables
    makespan: Variable | None = None
    tardiness: dict[int, Variable] = field(default_factory=dict)
    on_time: dict[int, Literal] = field(default_factory=dict)
    on_time_modes: dict[int, Literal] = field(default_factory=dict)

    def the_makespan(self) -> Variable:
        """makespan >= end, enforced per presence: the end of a task that is left out means nothing."""
        if self.makespan is None:
            tasks = self.of.tasks.values()
            fixed = [end for _, end in self.of.fixed.values()]
            must = [activity.idle[1] for activity in tasks if activity.absent is None]
            last = [activity.last_end for activity in tasks]
            least, largest = max([0, *fixed, *must]), max([0, *fixed, *must, *last])
            self.makespan = self.of.model.new_int_var(least, largest, "makespan")
            for activity in tasks:
                self.of.model.add(self.makespan >= activity.end).only_enforce_if(activity.present)
        return self.makespan

    def tardiness_of(self, task: int) -> Variable | int:
        """tardiness >= end - due where the task is placed."""
        activity, due = self.of.tasks[task], int(self.of.problem.due[task])
        if activity.last_end <= due:
            return 0
        if task not in self.tardiness:
            late = self.of.model.new_int_var(0, activity.last_end - due, f"task{task}_tardiness")
            self.of.model.add(late >= activity.end - due).only_enforce_if(activity.present)
            self.tardiness[task] = late
        return self.tardiness[task]

    def on_time_of(self, task: int) -> Literal | None:
        """on time -> end <= due; at most the modes that can make it. None if placed is always on time."""
        activity, due = self.of.tasks[task], int(self.of.problem.due[task])
        if activity.last_end <= due:
            return None
        if task not in self.on_time:
            self._make_on_time(task, activity, due)
        return self.on_time[task]

    def _make_on_time(self, task: int, activity: Activity, due: int) -> None:
        model = self.of.model
        on_time = self.on_time[task] = model.new_bool_var(f"task{task}_on_time")
        model.add(activity.end <= due).only_enforce_if(on_time)
        able = {way: option for way, option in activity.options.items() if option.first + option.ticks <= due}
        for mode, option in able.items():
            literal = on_time if len(able) == 1 else model.new_bool_var(f"task{task}_on_time_way{mode}")
            model.add_implication(literal, option.literal)
            self.on_time_modes[mode] = literal
        if len(able) != 1:
            model.add(cp_model.LinearExpr.sum([self.on_time_modes[mode] for mode in able]) == on_time)


def form_value(terms: Terms, form: Form) -> Linear:
    """The value of a form: the sum of its terms over fixed and free tasks, transfers and purchases."""
    linear = Linear()
    for term in terms.of.watched(TERM_FUNCTIONS):
        term(linear, terms, form)
    return linear


def add_makespan(linear: Linear, terms: Terms, form: Form) -> None:
    """makespan coefficient * largest end of a placed task."""
    if form.makespan:
        linear.add(form.makespan, terms.the_makespan())


def add_completion(linear: Linear, terms: Terms, form: Form) -> None:
    """completion[j] * C_j of placed tasks; one left out stands at its first end, which is taken off again."""
    for task, (_, end) in terms.of.fixed.items():
        linear.add(form.completion[task], end)
    for task, activity in terms.of.tasks.items():
        if form.completion[task]:
            linear.add(form.completion[task], activity.end)
            if activity.absent is not None:
                linear.add(-int(form.completion[task]) * activity.idle[1], activity.absent)


def add_tardiness(linear: Linear, terms: Terms, form: Form) -> None:
    """tardiness[j] * max(0, C_j - due_j)."""
    for task, (_, end) in terms.of.fixed.items():
        linear.add(form.tardiness[task], max(0, end - int(terms.of.problem.due[task])))
    for task in terms.of.tasks:
        if form.tardiness[task]:
            linear.add(form.tardiness[task], terms.tardiness_of(task))


def add_late(linear: Linear, terms: Terms, form: Form) -> None:
    """late[j] where the task ends past its due date or is rejected."""
    for task, (_, end) in terms.of.fixed.items():
        linear.add(form.late[task], int(end > terms.of.problem.due[task]))
    for task in terms.of.fixed_rejected:
        linear.add(form.late[task], 1)
    for task, activity in terms.of.tasks.items():
        if form.late[task]:
            on_time = terms.on_time_of(task)
            if on_time is not None:
                linear.add(form.late[task], 1)
                linear.add(-form.late[task], on_time)
            elif activity.absent is not None:
                linear.add(form.late[task], activity.absent)


def add_loss(linear: Linear, terms: Terms, form: Form) -> None:
    """loss[j] * (1000 - utility of the mode)."""
    utility = terms.of.problem.utility
    _add_per_mode(linear, terms, lambda task, mode: int(form.loss[task]) * (1000 - int(utility[mode])))


def add_placed(linear: Linear, terms: Terms, form: Form) -> None:
    """placed[j], the constant of a placed task (less its weighted release, for flow times)."""
    _add_per_mode(linear, terms, lambda task, mode: int(form.placed[task]))


def add_money(linear: Linear, terms: Terms, form: Form) -> None:
    """cost * the own money of each mode."""
    _add_per_mode(linear, terms, lambda task, mode: form.cost * int(terms.of.problem.money[mode]))


def add_rejection(linear: Linear, terms: Terms, form: Form) -> None:
    """rejected[j] + 1000 * loss[j] of each task left out (its lateness is counted by `add_late`)."""
    penalty = rejection_cost(form) - form.late
    for task in terms.of.fixed_rejected:
        linear.add(penalty[task], 1)
    for task, activity in terms.of.tasks.items():
        if activity.absent is not None:
            linear.add(penalty[task], activity.absent)


def add_transfers(linear: Linear, terms: Terms, form: Form) -> None:
    """cost * the charge of each transfer's route."""
    for fixed in terms.of.scope.transfers:
        linear.add(form.cost, fixed.cost)
    for transfer in terms.of.transfers.values():
        for route, option in transfer.options.items():
            linear.add(form.cost * int(terms.of.problem.route_cost[route]), option.literal)


def add_purchases(linear: Linear, terms: Terms, form: Form) -> None:
    """cost * each price that is paid once."""
    problem, scope = terms.of.problem, terms.of.scope
    bought = {purchase for task in terms.of.fixed for purchase in problem.buys(int(scope.mode[task]))}
    for purchase in bought:
        linear.add(form.cost, int(problem.purchase_cost[purchase]))
    for purchase, literal in terms.of.purchases.items():
        linear.add(form.cost * int(problem.purchase_cost[purchase]), literal)


TERM_FUNCTIONS = (
    add_makespan, add_completion, add_tardiness, add_late, add_loss, add_placed, add_money, add_rejection,
    add_transfers, add_purchases,
)  # fmt: skip
"""Every part of a form."""


def _add_per_mode(linear: Linear, terms: Terms, coefficient: Callable[[int, int], int]) -> None:
    """coefficient(task, mode) of the mode of every placed task."""
    for task in terms.of.fixed:
        linear.add(coefficient(task, int(terms.of.scope.mode[task])), 1)
    for task, activity in terms.of.watched(terms.of.tasks.items()):
        for mode, option in activity.options.items():
            linear.add(coefficient(task, mode), option.literal)


def at_most(terms: Terms, form: Form, bound: int) -> None:
    """R10 and the caps of earlier levels: the form is at most ``bound``."""
    linear = form_value(terms, form)
    if linear.range()[1] > bound:
        terms.of.model.add(linear.expression() <= bound - linear.constant)
