"""What is worked out once per problem and shared by its episodes."""

from functools import cached_property

import numpy as np

from optalloc.environment.costs import Costs
from optalloc.environment.features import Known
from optalloc.environment.layout import Layout
from optalloc.environment.scales import Isolated
from optalloc.errors import Fault, InputError, UnsupportedError
from optalloc.problem import Problem
from optalloc.scope import full_scope, horizon

__all__ = ["Prepared"]


class Prepared:
    """A problem made ready for episodes.

    Raises
    ------
    UnsupportedError
        The objective has several levels.
    InputError
        The problem was shown to have no plan.

    Attributes
    ----------
    layout
        Its modes as rows.
    costs
        Of the objective, then of each limit.
    isolated, known
        Facts for the features.
    """

    def __init__(self, problem: Problem):
        if len(problem.levels) > 1:
            raise UnsupportedError(
                f"The environment has one reward, and the objective has {len(problem.levels)} levels: give it one, "
                'for example objective="weighted_flow=1,cost=1".'
            )
        if problem.impossible:
            reasons = "; ".join(reason for each in problem.impossible.values() for reason in each)
            raise InputError(Fault("instance", f"has no plan: {reasons}"))
        self.problem = problem
        self.layout = Layout(problem)
        forms = (problem.levels[0], *(limit.form for limit in problem.limits))
        self.costs = [Costs(self.layout, form) for form in forms]
        self.isolated = Isolated(self.layout, self.costs[0])
        self.known = Known(self.layout)

    @cached_property
    def worst(self) -> int:
        """More than any plan that ends by the horizon adds to the objective.

        Every task in its dearest row, ended at the horizon, or rejected; every transfer over its dearest route;
        every purchase; and 1.
        """
        problem, costs, layout = self.problem, self.costs[0], self.layout
        scope = full_scope(problem)
        last = horizon(scope)
        end = np.full(layout.num_rows, last)
        value = costs.increase(np.arange(layout.num_rows), end, np.zeros_like(end), last)
        dearest = np.where(scope.rejectable, costs.rejection, 0)
        np.maximum.at(dearest, layout.task, value)
        routes = np.append(problem.route_cost, 0)[layout.routes].max(axis=1, initial=0)
        money = int(routes.sum()) + int(problem.purchase_cost.sum())
        return int(dearest[scope.free].sum()) + costs.form.cost * money + costs.form.makespan * last + 1
