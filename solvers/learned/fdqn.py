"""`fdqn`: a factorised deep Q-network over task -> data -> node -> devices, on the action space of `replan-index`.

    Q(s, i, d, n, g) = V(s) + sum over levels l of [A_l(chosen) - max A_l],   A_l = e^scale_l (rule's score + residual)

Each level is scored given the levels before it, so that taking the largest score level by level is taking the largest
Q: a greedy decision has no factorisation bias. Zero residuals are `replan-index` exactly.

One transition is one decision. Its target is an n-step return with the discount e^(-ticks / horizon) of a semi-Markov
process; the bootstrap is a double estimate: the task that the network would take, valued by its slow (Polyak) copy.
Plans that know the future can be imitated first. docs/learned.md lists every choice.

References
----------
van Hasselt, H., Guez, A. and Silver, D. (2016). Deep reinforcement learning with double Q-learning. AAAI 2016.
Metz, L., Ibarz, J., Jaitly, N. and Davidson, J. (2017). Discrete sequential prediction of continuous actions for deep
RL. https://arxiv.org/abs/1705.05035
Hester, T. et al. (2018). Deep Q-learning from demonstrations. AAAI 2018.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from optalloc.problem import Plan
from optalloc.solvers.learned.demonstrations import better_plan, shown_decisions
from optalloc.solvers.learned.episodes import Episode, Explorer, play, watch
from optalloc.solvers.learned.features import Singles
from optalloc.solvers.learned.index import as_linear
from optalloc.solvers.learned.network import initial
from optalloc.solvers.learned.practice import by_rule
from optalloc.solvers.learned.schedulers import factored, known_index
from optalloc.solvers.learned.scorer import FactoredScorer, Pick, Step
from optalloc.solvers.learned.training import Arrays, Trainer, Training

__all__ = [
    "Args",
    "Batch",
    "Estimate",
    "Learner",
    "Memory",
    "below_best",
    "largest",
    "log_policy",
    "moments",
    "set_moments",
    "surprise",
]


@dataclass(frozen=True)
class Args(Training):
    """Settings of a training run.

    Attributes
    ----------
    index
        Weights of `es-index`, a file or the name of shipped ones, that the linear part begins with; empty: none.
    instances
        How many instances of the family are learned from.
    memory
        Decisions kept.
    batch
        Decisions of an update.
    decisions_per_update
        Decisions taken for each update.
    steps
        Decisions of a return.
    horizon
        Of the discount, in mean durations.
    warm_up
        Episodes after which more than the value of states is learned.
    learning_rate, value_rate
        Of the residuals, of the value.
    polyak
        Share by which the slow copy follows in each update. The slow copy acts and is kept: its choices change
        less from one update to the next.
    margin, hinge
        The choice of the rule (of ``index``, where given) shall be better than others by so much, unless returns say
        otherwise: weight of that loss.
    own_path
        The baseline is what the scheduler itself has on the instance without exploring, instead of `replan-index`: what
        is left are mostly the effects of exploring. One more run for each episode.
    explore, temperature
        Share of the decisions that are drawn, and how freely (in units of the scores). Demonstrations are imitated as
        if they had been drawn by their advantages.
    demonstrations
        So many iterations, before all others, show and imitate a plan of one more instance each.
    demonstration_steps
        Steps of the search that makes such a plan better than the scheduler's own.
    demonstration_updates
        Updates of each of these iterations, on all decisions shown so far.
    imitation
        Weight of these decisions in the updates of all later iterations, in the place of ``hinge``.
    """

    index: str = ""
    instances: int = 100
    memory: int = 30_000
    batch: int = 1024
    decisions_per_update: int = 64
    steps: int = 32
    horizon: float = 6.0
    warm_up: int = 20
    learning_rate: float = 1e-4
    value_rate: float = 1e-3
    polyak: float = 0.005
    margin: float = 0.02
    hinge: float = 0.1
    own_path: bool = True
    explore: float = 0.1
    temperature: float = 0.3
    demonstrations: int = 0
    demonstration_steps: int = 1000
    demonstration_updates: int = 20
    imitation: float = 0.1


@dataclass(frozen=True, eq=False)
class Batch:
    """Decisions as ragged tensors.

    Attributes
    ----------
    state
        (B, 2 * COLUMNS)
    options, score, level, pick
        (N, COLUMNS), (N,) of all options: the rule's score, level, and the pick to which it belongs.
    chosen, rule
        (P,) positions of each pick's choice and of the teacher's: the rule, or what learning began with.
    step
        (P,) decision of each pick.
    """

    state: Tensor
    options: Tensor
    score: Tensor
    level: Tensor
    pick: Tensor
    chosen: Tensor
    rule: Tensor
    step: Tensor

    @classmethod
    def of(cls, steps: Sequence[Step], teacher: Singles | None = None) -> "Batch":
        """The decisions one after the other.

        Parameters
        ----------
        teacher
            (COLUMNS, LEVELS) what a linear teacher adds to the rule's scores.
        """
        picks = [(number, pick) for number, step in enumerate(steps) for pick in step.picks]
        sizes = np.array([len(pick.options) for _, pick in picks], dtype=np.int64)
        first = np.cumsum(sizes) - sizes
        chosen = first + np.array([pick.chosen for _, pick in picks], dtype=np.int64)
        rule = first + np.array([_taught(pick, teacher) for _, pick in picks], dtype=np.int64)
        width = steps[0].state.shape[0] // 2
        options = np.concatenate([np.empty((0, width), np.float32), *(pick.options for _, pick in picks)])
        score = np.concatenate([np.empty(0, np.float32), *(pick.score for _, pick in picks)])
        level = np.repeat(np.array([pick.level for _, pick in picks], dtype=np.int64), sizes)
        arrays = (
            np.stack([step.state for step in steps]), options, score, level, np.repeat(np.arange(len(picks)), sizes),
            chosen, rule, np.array([number for number, _ in picks], dtype=np.int64),
        )  # fmt: skip
        return cls(*map(torch.from_numpy, arrays))


def _taught(pick: Pick, teacher: Singles | None) -> int:
    """What the teacher chooses."""
    if teacher is None:
        return int(pick.score.argmax())
    return int((pick.score + pick.options @ teacher[:, pick.level]).argmax())


class Estimate:
    """The network in tensors: values of states, advantages of options."""

    def __init__(self, weights: Arrays):
        self.weights = {name: torch.from_numpy(array.copy()) for name, array in weights.items()}

    def value(self, state: Tensor) -> Tensor:
        """(B,) V."""
        w = self.weights
        hidden = torch.relu(state @ w["value.1.weight"] + w["value.1.bias"])
        return (hidden @ w["value.2.weight"] + w["value.2.bias"]).squeeze(1)

    def advantage(self, batch: Batch) -> Tensor:
        """(N,) A of all options."""
        w = self.weights
        hidden = torch.relu(batch.options @ w["encoder.1.weight"] + w["encoder.1.bias"])
        hidden = torch.relu(hidden @ w["encoder.2.weight"] + w["encoder.2.bias"])
        heads = hidden @ w["heads.weight"] + batch.options @ w["linear.weight"] + w["heads.bias"]
        residual = heads.gather(1, batch.level[:, None]).squeeze(1)
        return torch.exp(w["scale"])[batch.level] * (batch.score + residual)

    def set(self, weights: Arrays) -> None:
        """Take over weights."""
        with torch.no_grad():
            for name, tensor in self.weights.items():
                tensor.copy_(torch.from_numpy(weights[name]))

    def arrays(self) -> Arrays:
        """The weights, for acting and saving."""
        return {name: tensor.detach().numpy().copy() for name, tensor in self.weights.items()}


def largest(values: Tensor, group: Tensor, groups: int) -> Tensor:
    """(groups,) the largest value of each group."""
    empty = torch.full((groups,), -torch.inf)
    return empty.scatter_reduce(0, group, values, "amax")


def log_policy(logits: Tensor, batch: Batch) -> Tensor:
    """(N,) logarithm of the softmax among the options of each pick."""
    most = largest(logits.detach(), batch.pick, len(batch.chosen))[batch.pick]
    total = torch.zeros(len(batch.chosen)).index_add(0, batch.pick, torch.exp(logits - most))
    return logits - most - torch.log(total)[batch.pick]


def surprise(advantage: Tensor, batch: Batch, temperature: float) -> Tensor:
    """(P,) -log of the probability of each pick's choice, if drawn by softmax(A / temperature)."""
    return -log_policy(advantage / temperature, batch)[batch.chosen]


def below_best(advantage: Tensor, batch: Batch) -> Tensor:
    """(B,) sum over levels of A(chosen) - max A."""
    best = largest(advantage, batch.pick, len(batch.chosen))
    return torch.zeros(len(batch.state)).index_add(0, batch.step, advantage[batch.chosen] - best)


_MOMENTS = ("step", "exp_avg", "exp_avg_sq")


def moments(optimiser: torch.optim.Optimizer, online: Estimate) -> Arrays:
    """What Adam remembers of each weight."""
    return {
        f"{key}.{name}": moment.detach().numpy().copy()
        for name, tensor in online.weights.items()
        for key, moment in optimiser.state.get(tensor, {}).items()
    }


def set_moments(optimiser: torch.optim.Optimizer, online: Estimate, state: Arrays) -> None:
    """Let Adam remember what `moments` gave."""
    for name, tensor in online.weights.items():
        kept = {key: state[f"{key}.{name}"] for key in _MOMENTS if f"{key}.{name}" in state}
        optimiser.state[tensor] = {key: torch.from_numpy(np.array(array)) for key, array in kept.items()}


class Memory:
    """The last decisions, with what came of them.

    Parameters
    ----------
    size
        Decisions kept; whole episodes are forgotten, the oldest first.
    """

    def __init__(self, size: int):
        self.size = size
        self.episodes: list[Episode] = []

    def add(self, episode: Episode) -> None:
        """Remember an episode."""
        if episode.steps:
            self.episodes.append(episode)
        while len(self.episodes) > 1 and self.count > self.size:
            del self.episodes[0]

    @property
    def count(self) -> int:
        """Decisions kept."""
        return sum(len(episode.steps) for episode in self.episodes)

    def draw(self, rng: np.random.Generator, number: int) -> list[tuple[Episode, int]]:
        """Decisions at random, all alike."""
        ends = np.cumsum([len(episode.steps) for episode in self.episodes])
        drawn = rng.integers(ends[-1], size=number)
        at = np.searchsorted(ends, drawn, side="right")
        first = ends - [len(episode.steps) for episode in self.episodes]
        return [(self.episodes[e], int(d - first[e])) for e, d in zip(at, drawn, strict=True)]


def returns(episode: Episode, at: int, steps: int, horizon: float) -> tuple[float, float, int]:
    """What follows a decision within so many others: discounted rewards, the discount at their end, the decision there.

    The reward of a decision is minus the growth of the regret J until the next one.
    """
    end = min(at + steps, len(episode.steps))
    discount = np.exp(-(episode.clock[at : end + 1] - episode.clock[at]) / (horizon * episode.duration))
    rewards = -np.diff(episode.regret[at : end + 1])
    return float(rewards @ discount[:-1]), float(discount[-1]), end


class Learner(Trainer):
    """The learner."""

    make: Callable[[Arrays], FactoredScorer] = staticmethod(factored)
    """The scheduler that learns."""

    def __init__(self, args: Args):
        torch.set_num_threads(1)
        self.args = args
        self.rng = np.random.default_rng(args.seed)
        self.weights = initial(args.seed)
        self.teacher = as_linear(known_index(args.index)) if args.index else None
        if self.teacher is not None:
            self.weights["linear.weight"] = self.teacher.copy()
        self.unpaid = 0
        """Decisions that no update has paid for yet."""
        self.online, self.slow = Estimate(self.weights), Estimate(self.weights)
        value = [tensor for name, tensor in self.online.weights.items() if name.startswith("value")]
        rest = [tensor for name, tensor in self.online.weights.items() if not name.startswith("value")]
        for tensor in (*value, *rest):
            tensor.requires_grad_()
        self.optimiser = torch.optim.Adam(
            [{"params": value, "lr": args.value_rate}, {"params": rest, "lr": args.learning_rate}]
        )
        self.memory = Memory(args.memory)
        self.plans: dict[int, Plan] = {}
        """Demonstrated so far, by the iteration."""
        self.shown: list[Step] = []
        """Their decisions."""

    def scorer(self, weights: Arrays) -> FactoredScorer:
        return self.make(weights)

    def iterate(self, number: int) -> dict[str, float]:
        """A demonstration; after all of these, an episode and the updates that its decisions pay for."""
        args = self.args
        if number < args.demonstrations:
            return self.imitate(number)
        family, seed = args.drawn(self.rng, args.instances)
        ground, scorer = family.ground(seed), self.scorer(self.weights)
        beside = watch(ground, scorer)[0] if args.own_path else by_rule(family, seed)[0]
        scorer.choose = Explorer(self.rng, args.explore, args.temperature)
        episode = play(ground, scorer, beside)
        self.memory.add(episode)
        updates, self.unpaid = divmod(self.unpaid + len(episode.steps), args.decisions_per_update)
        losses = [self.update(number - args.demonstrations < args.warm_up) for _ in range(updates)]
        self.weights = self.slow.arrays()
        return {"loss": float(np.mean(losses)) if losses else 0.0, "regret": float(episode.regret[-1])}

    def imitate(self, number: int) -> dict[str, float]:
        """One more plan is shown; updates on all that have been."""
        args = self.args
        family, seed = args.numbered(number)
        ground, scorer = family.ground(seed), self.scorer(self.weights)
        plan = better_plan(ground, scorer, args.demonstration_steps, args.seed)
        if plan is not None:
            self.show(number, plan)
        updates = args.demonstration_updates if self.shown else 0
        losses = [self.step(self.unlike()) for _ in range(updates)]
        self.weights = self.slow.arrays()
        return {"loss": float(np.mean(losses)) if losses else 0.0}

    def show(self, number: int, plan: Plan) -> None:
        """Remember a plan and its decisions; these do not depend on the weights."""
        family, seed = self.args.numbered(number)
        self.plans[number] = plan
        self.shown += shown_decisions(family.ground(seed), self.scorer(self.weights), plan)

    def unlike(self) -> Tensor:
        """How surprising some decisions of the demonstrations are, on average over their levels."""
        drawn = self.rng.integers(len(self.shown), size=self.args.batch)
        batch = Batch.of([self.shown[at] for at in drawn])
        found = surprise(self.online.advantage(batch), batch, self.args.temperature)
        return found.sum() / max(1, len(found))

    def update(self, warming_up: bool) -> float:
        """One step of the optimiser on what is remembered."""
        args = self.args
        drawn = self.memory.draw(self.rng, args.batch)
        batch = Batch.of([episode.steps[at] for episode, at in drawn], self.teacher)
        target = self.target(drawn)
        value, advantage = self.online.value(batch.state), self.online.advantage(batch)
        if warming_up:
            # What was explored is told apart already, so that the value is that of the best options.
            return self.step(self.error(value, advantage.detach(), batch, target))
        error = self.error(value, advantage, batch, target)
        if self.shown:
            # What is imitated is better than the rule: only one of them is held on to.
            return self.step(error + args.imitation * self.unlike())
        return self.step(error + args.hinge * self.beside(advantage, batch))

    def step(self, loss: Tensor) -> float:
        """One step of the optimiser; the slow copy follows."""
        self.optimiser.zero_grad()
        torch.autograd.backward([loss])
        parameters = [tensor for group in self.optimiser.param_groups for tensor in group["params"]]
        torch.nn.utils.clip_grad_norm_(parameters, 10.0)
        self.optimiser.step()
        with torch.no_grad():
            for name, tensor in self.slow.weights.items():
                tensor.lerp_(self.online.weights[name], self.args.polyak)
        return float(loss.detach())

    def error(self, value: Tensor, advantage: Tensor, batch: Batch, target: Tensor) -> Tensor:
        """Of Q = V + sum (A - max A)."""
        return torch.nn.functional.smooth_l1_loss(value + below_best(advantage, batch), target)

    def state(self) -> Arrays:
        """The network that learns, the moments of the optimiser, and what was demonstrated."""
        found = {f"online.{name}": array for name, array in self.online.arrays().items()}
        for number, plan in self.plans.items():
            found |= {f"plan.{number}.mode": plan.mode, f"plan.{number}.start": plan.start}
        return found | moments(self.optimiser, self.online)

    def restore(self, state: Arrays, iteration: int) -> None:
        """Go on; the memory begins anew."""
        self.rng = np.random.default_rng([self.args.seed, iteration])
        self.slow.set(self.weights)
        self.online.set({name: state[f"online.{name}"] for name in self.weights})
        set_moments(self.optimiser, self.online, state)
        for number in range(self.args.demonstrations):
            if f"plan.{number}.mode" in state:
                self.show(number, Plan(state[f"plan.{number}.mode"], state[f"plan.{number}.start"]))

    def target(self, drawn: Sequence[tuple[Episode, int]]) -> Tensor:
        """(B,) n-step returns, and what is expected after them."""
        args = self.args
        found = [returns(episode, at, args.steps, args.horizon) for episode, at in drawn]
        target = torch.tensor([reward for reward, _, _ in found])
        on = [i for i, (episode, _) in enumerate(drawn) if found[i][2] < len(episode.steps)]
        if on:
            later = Batch.of([drawn[i][0].steps[found[i][2]] for i in on])
            discount = torch.tensor([found[i][1] for i in on])
            target[on] += discount * self.expected(later)
        return target

    @torch.no_grad()
    def expected(self, batch: Batch) -> Tensor:
        """(B,) double estimate: the task that the network takes, as the slow copy values it."""
        slow = self.slow.advantage(batch)
        first = batch.level == 0
        pick, count = batch.pick[first], len(batch.chosen)
        online = self.online.advantage(batch)[first]
        best = largest(online, pick, count)
        taken = torch.full((count,), -torch.inf)
        taken = taken.scatter_reduce(
            0, pick, torch.where(online >= best[pick], slow[first], -torch.inf), "amax"
        )
        below = torch.where(torch.isfinite(taken), taken - largest(slow[first], pick, count), 0.0)
        return self.slow.value(batch.state).index_add(0, batch.step, below)

    def beside(self, advantage: Tensor, batch: Batch) -> Tensor:
        """How far other options come within the margin of the rule's choice, or pass it."""
        own = torch.zeros(len(advantage), dtype=torch.bool)
        own[batch.rule] = True
        rivals = torch.where(own, advantage, advantage + self.args.margin)
        over = largest(rivals, batch.pick, len(batch.rule)) - advantage[batch.rule]
        return over.sum() / max(1, len(batch.rule))
