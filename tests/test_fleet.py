"""Many episodes on ragged arrays: frames join, steps equal single episodes, ends are handed out."""

import numpy as np
import pytest
from support.episodes import greedy
from support.online import compiled, drawn

from optalloc.environment import Episode, Fleet, Source, frame_of
from optalloc.environment.features import DATASET, GLOBAL, MODE, NODE, TASK, TRANSFER
from optalloc.environment.frame import joined
from optalloc.errors import InputError
from optalloc.evaluation import evaluate


def generator(tasks=6):
    return Source(generator="pipeline", generator_options={"tasks": tasks}, instance_seeds=range(9))


def choices(fleet, rng):
    """A random possible option for each episode, read from the frame."""
    frame = fleet.frame()
    parts = np.split(frame.mask, frame.option_ptr[1:-1])
    return [rng.choice(np.flatnonzero(part)) for part in parts]


def test_frame_of_an_episode():
    """Every column has its length, and the options stand in the order of the decision."""
    episode = Episode(compiled(drawn("contended", 8, 1)))
    while not episode.done:
        frame, decision = frame_of(episode), episode.decision
        count, tasks = len(decision.rows), len(decision.tasks)
        assert len(frame) == 1
        assert frame.modes.shape == (count, len(MODE))
        assert frame.tasks.shape == (tasks, len(TASK))
        assert frame.datasets.shape == (len(episode.problem.dataset_ids), len(DATASET))
        assert frame.nodes.shape == (episode.problem.num_nodes, len(NODE))
        assert frame.transfers.shape == (len(decision.routes), len(TRANSFER))
        assert frame.scalars.shape == (1, len(GLOBAL))
        assert (frame.mask == decision.mask).all()
        layout = episode.prepared.layout
        for position, row in enumerate(decision.rows.tolist()):
            assert decision.tasks[frame.task_of_mode[position]] == layout.task[row]
            assert episode.problem.inputs(layout.mode.item(row))[0][0] == frame.dataset_of_mode[position]
            assert frame.node_of_mode[position] in dict(episode.problem.uses(layout.mode.item(row)))
        for label, deeper in (
            (frame.task_of_mode, frame.choice_of_mode),
            (frame.choice_of_mode, frame.place_of_mode),
        ):
            assert (np.diff(deeper)[np.diff(label) != 0] == 1).all()
            assert set(np.diff(deeper).tolist()) <= {0, 1}
        episode.choose(greedy(episode))
    assert not frame_of(episode).mask.any()


def test_frames_join():
    """Each entity keeps its features and its neighbours."""
    fleet = Fleet(generator(), 4, seed=1)
    singles = [frame_of(episode) for episode in fleet.episodes]
    frame = fleet.frame()
    assert len(frame) == 4
    for i, single in enumerate(singles):
        rows = slice(frame.mode_ptr[i], frame.mode_ptr[i + 1])
        assert (frame.modes[rows] == single.modes).all()
        at = frame.task_of_mode[rows]
        assert (frame.tasks[at] == single.tasks[single.task_of_mode]).all()
        assert (frame.nodes[frame.node_of_mode[rows]] == single.nodes[single.node_of_mode]).all()
        reading = single.dataset_of_mode >= 0
        mine = frame.dataset_of_mode[rows]
        assert (mine[~reading] == -1).all()
        assert (frame.datasets[mine[reading]] == single.datasets[single.dataset_of_mode[reading]]).all()
        assert (frame.mask[frame.option_ptr[i] : frame.option_ptr[i + 1]] == single.mask).all()
        brought = frame.dataset_of_transfer[frame.transfer_ptr[i] : frame.transfer_ptr[i + 1]]
        assert (frame.datasets[brought] == single.datasets[single.dataset_of_transfer]).all()
    assert len(np.unique(frame.choice_of_mode)) == frame.num_choices == sum(s.num_choices for s in singles)
    assert len(np.unique(frame.place_of_mode)) == frame.num_places
    assert joined(singles[:1]) is singles[0]


def test_steps_equal_single_episodes():
    """Growth, ticks and ends of every episode; what has ended is a finished plan, and a new one has begun."""
    rng, fleet = np.random.default_rng(3), Fleet(generator(), 5, seed=2)
    totals, ended = np.zeros(5, dtype=np.int64), 0
    for _ in range(150):
        options = choices(fleet, rng)
        before = list(fleet.episodes)
        clocks = [episode.simulator.clock for episode in before]
        outcome = fleet.step(options)
        totals += outcome.growth
        assert outcome.elapsed.tolist() == [
            e.simulator.clock - c for e, c in zip(before, clocks, strict=True)
        ]
        assert outcome.ended == [episode for episode in before if episode.done]
        for i in np.flatnonzero(outcome.done).tolist():
            ended += 1
            assert fleet.episodes[i] is not before[i]
            assert not fleet.episodes[i].done
            if before[i].feasible:
                objective = evaluate(before[i].problem, before[i].schedule()).objective
                assert totals[i] == objective - before[i].start_value
            totals[i] = 0
    assert ended >= 10


def test_the_same_seed_draws_the_same():
    """Another seed, and other members, draw other instances."""

    def names(seed, size):
        fleet = Fleet(generator(), size, seed=seed)
        return [episode.problem.instance.sha256 for episode in fleet.episodes]

    assert names(1, 6) == names(1, 6)
    assert names(1, 6)[:3] == names(1, 3)
    assert len(set(names(1, 6))) >= 3
    assert names(1, 6) != names(2, 6)


def test_faults():
    """No members; a negative seed; an option that is masked out."""
    with pytest.raises(InputError, match="size: must be at least 1"):
        Fleet(generator(), 0)
    with pytest.raises(InputError, match="seed: must be at least 0, got -1"):
        Fleet(generator(), 2, seed=-1)
    fleet = Fleet(generator(), 2)
    frame = fleet.frame()
    closed = int(np.flatnonzero(~frame.mask[: frame.option_ptr[1]])[0])
    with pytest.raises(ValueError, match="not possible"):
        fleet.step([closed, 0])
