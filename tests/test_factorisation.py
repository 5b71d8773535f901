"""Conditional factorisation on a Markov decision process that value iteration solves: what each form can be.

In each of K states data d and a node n are chosen together; the reward has a part for each and one for the pair, times
the coupling. The pair decides about the next state, so values matter, too.
"""

import numpy as np
import pytest
import torch

from optalloc.solvers.learned import additive as summed
from optalloc.solvers.learned.bdq import Learner as Branching
from optalloc.solvers.learned.episodes import Episode
from optalloc.solvers.learned.fdqn import Args, Batch, Learner, Memory, below_best, returns
from optalloc.solvers.learned.features import ROW, TASK
from optalloc.solvers.learned.network import COLUMNS, TASK_LEVEL, visible
from optalloc.solvers.learned.network import DATA as DATA_LEVEL
from optalloc.solvers.learned.network import NODE as NODE_LEVEL
from optalloc.solvers.learned.scorer import Pick, Step

STATES, DATA, NODES, DISCOUNT = 5, 4, 3, 0.9


def process(seed, coupling, states=STATES):
    """(rewards (K, D, N), next states (K, D, N)): without coupling the pair matters in no way."""
    rng = np.random.default_rng(seed)
    alone = rng.normal(size=(states, DATA, 1)) + rng.normal(size=(states, 1, NODES))
    rewards = alone + coupling * rng.normal(size=(states, DATA, NODES))
    joint = rng.integers(states, size=(states, DATA, NODES))
    plain = np.broadcast_to((np.arange(states) + 1)[:, None, None] % states, joint.shape)
    return rewards, joint if coupling else plain


def optimal(rewards, after, discount=DISCOUNT):
    """Q (K, D, N) by value iteration."""
    q = np.zeros_like(rewards)
    for _ in range(500):
        q = rewards + discount * q.max(axis=(1, 2))[after]
    return q


def conditional(rewards, after):
    """(Q1 (K, D), Q2 (K, D, N)): y1 = max over n of Q2, y2 = r + discount * max over d of Q1 of the next state."""
    q1, q2 = np.zeros(rewards.shape[:2]), np.zeros_like(rewards)
    for _ in range(500):
        q2 = rewards + DISCOUNT * q1.max(axis=1)[after]
        q1 = q2.max(axis=2)
    return q1, q2


def additive(q):
    """(of data (K, D), of nodes (K, N)): the sums that come closest to Q in the squares."""
    mean = q.mean(axis=(1, 2), keepdims=True)
    return q.mean(axis=2) - mean[:, :, 0], q.mean(axis=1) - mean[:, 0] + mean[:, :, 0]


def lost(q, data, node):
    """(K,) what a choice loses to the best one."""
    return q.max(axis=(1, 2)) - q[np.arange(len(q)), data, node]


@pytest.mark.parametrize("coupling", [0, 0.5, 1, 4])
@pytest.mark.parametrize("seed", range(10))
def test_level_by_level_is_jointly_optimal(seed, coupling):
    """At the fixed point the best data, and the best node given them, are the best pair."""
    rewards, after = process(seed, coupling)
    q = optimal(rewards, after)
    q1, q2 = conditional(rewards, after)
    np.testing.assert_allclose(q2, q)
    data = q1.argmax(axis=1)
    node = q2[np.arange(STATES), data].argmax(axis=1)
    np.testing.assert_allclose(lost(q, data, node), 0, atol=1e-9)


def test_sums_are_optimal_without_coupling_only():
    """With it, the best of each is not the best pair in many states, the more often the stronger it is."""
    wrong = {}
    for coupling in (0, 0.5, 4):
        losses = []
        for seed in range(40):
            q = optimal(*process(seed, coupling))
            of_data, of_node = additive(q)
            losses.append(lost(q, of_data.argmax(axis=1), of_node.argmax(axis=1)))
        wrong[coupling] = float((np.array(losses) > 1e-9).mean())
    assert wrong[0] == 0
    assert 0.1 < wrong[0.5] < wrong[4]


def test_the_sums_are_the_least_squares():
    """The closed form is what a solver of least squares finds."""
    q = optimal(*process(3, 1))
    of_data, of_node = additive(q)
    columns = np.hstack(
        [np.kron(np.eye(DATA), np.ones((NODES, 1))), np.kron(np.ones((DATA, 1)), np.eye(NODES))]
    )
    for state in range(STATES):
        found = columns @ np.linalg.lstsq(columns, q[state].ravel(), rcond=None)[0]
        np.testing.assert_allclose((of_data[state][:, None] + of_node[state]).ravel(), found)


@pytest.mark.parametrize("coupling", [0, 2])
def test_the_form_that_fdqn_learns_holds_the_exact_values(coupling):
    """V + sum over levels of (A - max A) is Q where V is the largest Q, and A are Q1 and Q2."""
    rewards, after = process(1, coupling)
    q = optimal(rewards, after)
    q1, q2 = conditional(rewards, after)

    def pick(level, count, chosen):
        return Pick(level, np.zeros((count, 1), np.float32), np.zeros(count, np.float32), chosen)

    pairs = [(k, d, n) for k in range(STATES) for d in range(DATA) for n in range(NODES)]
    steps = [
        Step(np.zeros(2, np.float32), [pick(DATA_LEVEL, DATA, d), pick(NODE_LEVEL, NODES, n)])
        for _, d, n in pairs
    ]
    advantage = torch.from_numpy(np.concatenate([part for k, d, _ in pairs for part in (q1[k], q2[k, d])]))
    found = below_best(advantage.float(), Batch.of(steps)).numpy()
    value = q.max(axis=(1, 2))[[k for k, _, _ in pairs]]
    np.testing.assert_allclose(value + found, q.ravel(), atol=1e-4)


# what the learners learn -----------------------------------------------------------------------------------
FEW = 3
"""States of the process that is learned: a column for each state, data and node, or for each pair."""


def told(level, number, count, chosen):
    """A choice among so many options, each with a column of its own, the first of them ``number``."""
    options = np.zeros((count, len(COLUMNS)), np.float32)
    options[np.arange(count), number + np.arange(count)] = 1
    return Pick(level, options, np.zeros(count, np.float32), chosen)


def walk(rewards, after, length, *, joint):
    """Choices at random as an episode. Jointly, nodes are described by the data as well.

    The first level is that of tasks, since the double estimate is of it.
    """
    rng, state, steps, regret = np.random.default_rng(0), 0, [], [0.0]
    for _ in range(length):
        data, node = rng.integers(DATA), rng.integers(NODES)
        moment = np.zeros(2 * len(COLUMNS), np.float32)
        moment[state] = 1
        owner = state * DATA + data if joint else state
        picks = [
            told(TASK_LEVEL, state * DATA, DATA, data),
            told(NODE_LEVEL, owner * NODES, NODES, node),
        ]
        steps.append(Step(moment, picks))
        regret.append(regret[-1] - rewards[state, data, node])
        state = after[state, data, node]
    return Episode(steps, np.array(regret), np.arange(length + 1), 1.0, 0)


def learned(learner, seed, coupling, *, joint):
    """(loss of the greedy pairs (K,), error of the values of states (K,)) after some hundred updates."""
    rewards, after = process(seed, coupling, FEW)
    q = optimal(rewards, after, 0.7)
    args = Args(
        tasks="4", steps=1, horizon=-1 / np.log(0.7), hinge=0.0, batch=128, learning_rate=0.02, value_rate=0.02,
        polyak=0.1,
    )  # fmt: skip
    found = learner(args)
    found.memory.add(walk(rewards, after, 3000, joint=joint))
    for _ in range(UPDATES):
        found.update(warming_up=False)
    greedy = []
    for state in range(FEW):
        data = best(found, told(TASK_LEVEL, state * DATA, DATA, 0))
        owner = state * DATA + data if joint else state
        greedy.append((data, best(found, told(NODE_LEVEL, owner * NODES, NODES, 0))))
    moments = torch.zeros(FEW, 2 * len(COLUMNS))
    moments[range(FEW), range(FEW)] = 1
    values = found.slow.value(moments).detach().numpy()
    return lost(q, *np.array(greedy).T), values - q.max(axis=(1, 2))


UPDATES = 300


def best(learner, pick):
    """The option with the largest advantage."""
    batch = Batch.of([Step(np.zeros(2 * len(COLUMNS), np.float32), [pick])])
    return int(learner.slow.advantage(batch).argmax())


@pytest.mark.parametrize("seed", [0, 1])
def test_fdqn_learns_the_best_pairs_and_their_values(seed):
    """By its own loss and targets, from choices at random."""
    losses, errors = learned(Learner, seed, 2, joint=True)
    np.testing.assert_allclose(losses, 0, atol=1e-9)
    np.testing.assert_allclose(errors, 0, atol=0.3)


@pytest.mark.parametrize("learner", [summed.Learner, Branching])
def test_branches_that_do_not_know_each_other_learn_wrong_pairs(learner):
    """Of the same process; without coupling they learn the best ones."""
    assert learned(learner, 0, 2, joint=False)[0].max() > 0.3
    np.testing.assert_allclose(learned(learner, 0, 0, joint=False)[0], 0, atol=1e-9)


def test_the_double_estimate_takes_by_one_network_and_values_by_the_other():
    """`fdqn`: of the task level. `bdq`: the mean over its branches, against their means. Worked out by hand."""
    state = np.zeros(2 * len(COLUMNS), np.float32)
    batch = Batch.of([Step(state, [told(TASK_LEVEL, 0, 3, 0), told(NODE_LEVEL, 0, 2, 0)]), Step(state)])
    fast, slow = [1.0, 3.0, 2.0, 5.0, 4.0], [7.0, 4.0, 9.0, 1.0, 3.0]
    for learner, expected in ((Learner, 10 + 4 - 9), (Branching, 10 + ((4 - 20 / 3) + (1 - 2)) / 2)):
        made = learner(Args(tasks="4"))
        made.online.advantage = lambda batch: torch.tensor(fast)
        made.slow.advantage = lambda batch: torch.tensor(slow)
        made.slow.value = lambda state: torch.full((len(state),), 10.0)
        np.testing.assert_allclose(made.expected(batch).numpy(), [expected, 10], rtol=1e-6)


def test_returns_are_discounted_by_the_ticks_between_decisions():
    """Against a sum decision by decision; the last returns end with the episode and expect nothing more."""
    rng = np.random.default_rng(0)
    clock = np.cumsum(rng.integers(0, 4, size=12))
    episode = Episode([Step(np.zeros(2, np.float32))] * 11, rng.normal(size=12), clock, 5.0, 0)
    for at in range(11):
        reward, discount, end = returns(episode, at, 4, 6.0)
        assert end == min(at + 4, 11)
        kept = np.exp(-(clock - clock[at]) / 30)
        step = [kept[k] * (episode.regret[k] - episode.regret[k + 1]) for k in range(at, end)]
        assert reward == pytest.approx(sum(step))
        assert discount == pytest.approx(kept[end])


def test_targets_end_with_the_episode():
    """Only what is followed by a decision expects something."""
    episode = Episode([Step(np.zeros(2 * len(COLUMNS), np.float32))] * 3, np.arange(4.0), np.zeros(4), 1.0, 0)
    learner = Learner(Args(tasks="4", steps=2))
    learner.slow.value = lambda state: torch.full((len(state),), 10.0)
    target = learner.target([(episode, at) for at in range(3)])
    np.testing.assert_allclose(target.numpy(), [10 - 2, -2, -1])


def test_all_that_is_remembered_is_drawn_alike():
    """Decisions, not episodes; whole episodes are forgotten, the oldest first."""
    memory, rng = Memory(10), np.random.default_rng(0)
    episodes = [
        Episode([Step(np.zeros(2))] * n, np.zeros(n + 1), np.zeros(n + 1), 1.0, 0) for n in (5, 2, 8, 0)
    ]
    for episode in episodes:
        memory.add(episode)
    assert memory.episodes == episodes[1:3]
    drawn = memory.draw(rng, 20_000)
    counts = {(id(episode), at): 0 for episode in episodes[1:3] for at in range(len(episode.steps))}
    for episode, at in drawn:
        counts[id(episode), at] += 1
    assert min(counts.values()) > 1800
    assert max(counts.values()) < 2200


def test_branches_learn_the_value_of_states_without_a_choice():
    """By their own target; a batch of nothing else has an error, too."""
    state = np.zeros(2, np.float32)
    choice = Pick(DATA_LEVEL, np.zeros((2, 1), np.float32), np.zeros(2, np.float32), 1)
    value, target = torch.tensor([1.0, 2.0]), torch.tensor([1.0, 5.0])
    for picks, advantage, expected in (([choice], [0.0, 0.5], (0.25**2 / 2 + 2.5) / 2), ([], [], 2.5 / 2)):
        batch = Batch.of([Step(state, picks), Step(state, [])])
        found = Branching.error(None, value, torch.tensor(advantage), batch, target)
        assert found.item() == pytest.approx(expected)


def test_a_decision_without_a_choice_teaches_the_value_only():
    """Its hinge is 0 and no NaN: one such batch would spoil all weights."""
    learner = Learner(Args(preset="contended", tasks="4"))
    state = np.zeros_like(learner.weights["value.1.weight"][:, 0])
    batch = Batch.of([Step(state), Step(state)])
    assert learner.beside(learner.online.advantage(batch), batch).item() == 0


def test_independent_branches_see_the_moment():
    """A name that rows and the moment share hides the rows' column only."""
    seen, rows = visible("branches"), slice(len(TASK), len(TASK) + len(ROW))
    assert seen[:, len(TASK) + len(ROW) :].all()
    assert not seen[DATA_LEVEL, rows].all()
