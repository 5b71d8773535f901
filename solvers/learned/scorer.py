"""Level by level: task, then data and access, then node, then devices, each scored by the rule and a residual."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import numpy as np

from optalloc.environment.scales import Floats
from optalloc.problem import NEVER, Bools, Ints
from optalloc.solvers.learned.board import Choice
from optalloc.solvers.learned.features import Event, Singles
from optalloc.solvers.learned.network import (
    COLUMNS,
    DATA,
    DEVICES,
    LEVELS,
    NODE,
    TASK_LEVEL,
    TASK_SCALE,
    Network,
    visible,
)
from optalloc.solvers.learned.policy import Scorer, urgency

__all__ = ["FactoredScorer", "FlatScorer", "Pick", "Step", "best_of"]


@dataclass(frozen=True, eq=False)
class Pick:
    """One level of a decision at which there was something to choose.

    Attributes
    ----------
    level
        Of LEVELS.
    options
        (N, COLUMNS)
    score
        (N,) the rule's.
    chosen
        An index of them.
    """

    level: int
    options: Singles
    score: Singles
    chosen: int


@dataclass(eq=False)
class Step:
    """A decision, as it is learned from.

    Attributes
    ----------
    state
        (2 * COLUMNS,) mean and maximum over the tasks that wait.
    picks
        Its levels.
    """

    state: Singles
    picks: list[Pick] = field(default_factory=list)


class Chooser(Protocol):
    """How an option of a level is chosen by the scores; every decision asks for its task first."""

    def __call__(self, level: int, scores: Floats) -> int: ...


def best_of(level: int, scores: Floats) -> int:
    """The largest score; among equals the first."""
    return int(scores.argmax())


Describe = Callable[[Ints], Singles]
"""Features of rows of a task, by their places in its `Choice`."""

_FEW: Final = 200
"""Rows of a task up to which all are described at once; of more, only those that speak for an option."""

_LEVEL_COLUMNS: Final = np.eye(len(LEVELS), dtype=np.float32)


class FactoredScorer:
    """The conditional factorisation: each level is decided given those before it.

    Parameters
    ----------
    network
        Of the residuals.
    kind
        What is seen (`optalloc.solvers.learned.network.visible`).
    conditional
        Whether the scores of a level depend on what was decided before; if not, every level is scored over all
        rows of the task, and only what is possible depends on the levels before.
    by_rule
        Whether the rule's scores are added.
    choose
        By the scores of the options of a level.
    """

    def __init__(
        self,
        network: Network,
        kind: str = "all",
        *,
        conditional: bool = True,
        by_rule: bool = True,
        choose: Chooser = best_of,
    ):
        self.network, self.seen = network, visible(kind)
        self.conditional, self.by_rule, self.choose = conditional, by_rule, choose
        self.steps: list[Step] | None = None
        """Where decisions are remembered; None: nowhere."""
        self.guide: Scorer | None = None
        """Who decides in the place of the scores; None: nobody."""

    # the two choices --------------------------------------------------------------------------------------
    def task(self, event: Event, positions: Ints) -> int:
        options = self._by_best_rows(event, positions)
        self._begin_step(options)
        self._of_task = options[:, : event.num_task_columns]
        guided = self.guide.task(event, positions) if self.guide else None
        found = self._pick(TASK_LEVEL, options, urgency(event, positions), guided)
        self._of_task = self._of_task[found : found + 1]
        return found

    def row(self, event: Event, position: int, choice: Choice) -> int:
        guided = self.guide.row(event, position, choice) if self.guide else None
        layout, rows = event.ground.layout, event.board.rows
        instead = choice.at < 0
        known = np.where(instead, choice.at.max(), choice.at)
        labels = {
            DATA: np.where(instead, choice.at, layout.choice[rows[known]]),
            # What stands in the place of a row has no node: it speaks for none.
            NODE: np.where(instead, NEVER, layout.node[rows[known]]),
            DEVICES: np.where(instead, NEVER, layout.devices[rows[known]]),
        }
        best, score = event.board.best[position], choice.score / event.board.value
        describe: Describe = lambda among: event.rows(choice.at[among], np.full(len(among), best))  # noqa: E731
        if len(choice.at) <= _FEW:
            described = describe(np.arange(len(choice.at)))
            describe = described.__getitem__
        left = np.ones(len(choice.at), dtype=bool)
        for level, label in labels.items():
            left &= self._level(level, event, describe, score, label, left, guided)
            if choice.at[left][0] < 0:
                break
        return int(np.flatnonzero(left)[0])

    def _level(
        self,
        level: int,
        event: Event,
        describe: Describe,
        score: Floats,
        label: Ints,
        left: Bools,
        guided: int | None,
    ) -> Bools:
        """(N,) rows with the label that is chosen among those that are left; of each label the first row speaks."""
        among = np.flatnonzero(left)
        labels, first = np.unique(label[among], return_index=True)
        if len(labels) == 1:
            return left
        order = np.argsort(first)
        labels, speak = labels[order], among[first[order]]
        if not self.conditional:
            # The best row with the label among all rows of the task speaks for it.
            speak = np.array([int(np.flatnonzero(label == one)[0]) for one in labels])
        of_task = np.repeat(self._of_task, len(speak), axis=0)
        options = self._options(level, event, of_task, describe(speak))
        wanted = None if guided is None else int((labels == label[guided]).argmax())
        return np.asarray(label == labels[self._pick(level, options, score[speak], wanted)])

    # scores -----------------------------------------------------------------------------------------------
    def _by_best_rows(self, event: Event, positions: Ints) -> Singles:
        """(P, COLUMNS) tasks, each with its best row."""
        best = event.board.best[positions]
        return self._options(TASK_LEVEL, event, event.tasks(positions), event.rows(best, best))

    def _begin_step(self, options: Singles) -> None:
        if self.steps is not None:
            self.steps.append(Step(np.concatenate([options.mean(axis=0), options.max(axis=0)])))

    def _options(self, level: int, event: Event, of_task: Singles, of_row: Singles) -> Singles:
        """(N, COLUMNS) with what is not seen set to 0."""
        count, tasks, rows = len(of_row), of_task.shape[1], of_row.shape[1]
        options = np.empty((count, len(COLUMNS)), dtype=np.float32)
        options[:, :tasks] = of_task
        options[:, tasks : tasks + rows] = of_row
        options[:, tasks + rows : -len(LEVELS)] = event.moment
        options[:, -len(LEVELS) :] = _LEVEL_COLUMNS[level]
        options *= self.seen[level]
        return options

    def _pick(self, level: int, options: Singles, score: Floats, guided: int | None) -> int:
        scores: Floats = self.network.residual(level, options) + (score if self.by_rule else np.float64(0))
        found = self.choose(level, scores) if guided is None else guided
        if self.steps is not None and len(options) > 1:
            rule = score if self.by_rule else np.zeros(len(options))
            self.steps[-1].picks.append(Pick(level, options, rule.astype(np.float32), found))
        return found


class FlatScorer(FactoredScorer):
    """The product space: every row of every task that waits is an option of one level."""

    def task(self, event: Event, positions: Ints) -> int:
        board = event.board
        choices = [board.choice(position) for position in positions.tolist()]
        owner = np.repeat(np.arange(len(positions)), [len(choice.at) for choice in choices])
        at = np.concatenate([choice.at for choice in choices])
        best = board.best[positions]
        below = np.concatenate([choice.score - choice.score.max() for choice in choices]) / board.value
        # Both in the units of an urgency: the one level has one scale.
        score = urgency(event, positions)[owner] + below / TASK_SCALE
        options = self._options(TASK_LEVEL, event, event.tasks(positions)[owner], event.rows(at, best[owner]))
        if self.steps is not None:
            self._begin_step(self._by_best_rows(event, positions))
        guided = None if self.guide is None else self._guided(self.guide, event, positions, choices, owner)
        found = self._pick(TASK_LEVEL, options, score, guided)
        self._row = found - int(np.flatnonzero(owner == owner[found])[0])
        return int(owner[found])

    @staticmethod
    def _guided(guide: Scorer, event: Event, positions: Ints, choices: Sequence[Choice], owner: Ints) -> int:
        """The option that the guide takes."""
        task = guide.task(event, positions)
        row = guide.row(event, int(positions[task]), choices[task])
        return int((owner == task).argmax()) + row

    def row(self, event: Event, position: int, choice: Choice) -> int:
        return self._row
