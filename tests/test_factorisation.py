"""Conditional factorisation on a Markov decision process that value iteration solves: what each form can be.

In each of K states data d and a node n are chosen together; the reward has a part for each and one for the pair, times
the coupling. The pair decides about the next state, so values matter, too.
"""

import numpy as np
import pytest
import torch

from optalloc.solvers.learned.bdq import Learner as Branching
from optalloc.solvers.learned.fdqn import Args, Batch, Learner, below_best
from optalloc.solvers.learned.features import ROW, TASK
from optalloc.solvers.learned.network import DATA as DATA_LEVEL
from optalloc.solvers.learned.network import NODE as NODE_LEVEL
from optalloc.solvers.learned.network import visible
from optalloc.solvers.learned.scorer import Pick, Step

STATES, DATA, NODES, DISCOUNT = 5, 4, 3, 0.9


def process(seed, coupling):
    """(rewards (K, D, N), next states (K, D, N)): without coupling the pair matters in no way."""
    rng = np.random.default_rng(seed)
    alone = rng.normal(size=(STATES, DATA, 1)) + rng.normal(size=(STATES, 1, NODES))
    rewards = alone + coupling * rng.normal(size=(STATES, DATA, NODES))
    joint = rng.integers(STATES, size=(STATES, DATA, NODES))
    plain = np.broadcast_to(rng.integers(STATES, size=(STATES, 1, 1)), joint.shape)
    return rewards, joint if coupling else plain


def optimal(rewards, after):
    """Q (K, D, N) by value iteration."""
    q = np.zeros_like(rewards)
    for _ in range(500):
        q = rewards + DISCOUNT * q.max(axis=(1, 2))[after]
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
    return q.max(axis=(1, 2)) - q[np.arange(STATES), data, node]


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
    learner = Learner(Args(preset="contended", tasks=4))
    state = np.zeros_like(learner.weights["value.1.weight"][:, 0])
    batch = Batch.of([Step(state), Step(state)])
    assert learner.beside(learner.online.advantage(batch), batch).item() == 0


def test_independent_branches_see_the_moment():
    """A name that rows and the moment share hides the rows' column only."""
    seen, rows = visible("branches"), slice(len(TASK), len(TASK) + len(ROW))
    assert seen[:, len(TASK) + len(ROW) :].all()
    assert not seen[DATA_LEVEL, rows].all()
