"""The Gymnasium environment: checkers, exact returns in both views, masks, seeds, vector forms, learners."""

import subprocess
import sys
import warnings
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from support.episodes import along, greedy, one_level
from support.problems import Mode, Task, make_problem

import optalloc as oa
from optalloc.environment import ENVIRONMENT, AllocationEnv, Episode, Sizes
from optalloc.environment.descent import LEVELS
from optalloc.environment.features import DATASET, GLOBAL, MODE, NODE, TASK, TRANSFER
from optalloc.environment.shaping import backlog
from optalloc.errors import InputError, UnsupportedError
from optalloc.evaluation import evaluate
from optalloc.problem import TERMS
from optalloc.result import Status
from optalloc.solvers.run import solve

BOTH = pytest.mark.parametrize("factored", [False, True], ids=["flat", "factored"])
SMALL = {"generator": "contended", "generator_options": {"tasks": 5}, "instance_seeds": range(6)}


def play(env, choose, **begin):
    """(return, last info, steps) of an episode; ``choose`` takes the environment and its mask."""
    observation, info = env.reset(**begin)
    total, steps, over = 0.0, 0, False
    while not over:
        option = choose(env, info["action_mask"].astype(bool))
        observation, reward, terminated, truncated, info = env.step(option)
        assert observation in env.observation_space
        total, steps, over = total + reward, steps + 1, terminated or truncated
    return total, info, steps


def anything(seed):
    """A random possible option."""
    rng = np.random.default_rng(seed)
    return lambda env, mask: rng.choice(np.flatnonzero(mask))


def as_option(choose):
    """What a function of an episode chooses, as the options of either view that lead to it."""
    ahead = []

    def option(env, mask):
        if not ahead:
            ahead.extend(env.view.path(env.episode.decision.action(choose(env.episode))))
        return ahead.pop(0)

    return option


def leaves(env, path=()):
    """(action, path) of everything that can be reached below some options of the view."""
    env.view.begin(env.episode)
    taken = None
    for option in path:
        taken = env.view.choose(option)
    if taken is not None:
        yield taken, list(path)
        return
    for option in np.flatnonzero(env.view.mask()).tolist():
        yield from leaves(env, (*path, option))


# registration and checkers ------------------------------------------------------------------------
@pytest.mark.parametrize(
    "program",
    [
        "import gymnasium as g; g.make('optalloc.environment:{id}', instance='real-8')",
        "import gymnasium as g; g.make('optalloc:{id}', instance='real-8')",
        "import gymnasium as g; import optalloc; g.make('{id}', instance='real-8')",
        "import optalloc.environment; import gymnasium as g; g.make_vec('{id}', num_envs=2, instance='real-8')",
    ],
)
def test_registration(program):
    """From a fresh interpreter: by the module in the name, or after an import."""
    ran = subprocess.run(
        [sys.executable, "-c", program.format(id=ENVIRONMENT)], capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr


def test_episodes_need_no_gymnasium():
    """Ragged arrays and episodes do without; the environment says what to install."""
    program = (
        "import sys; sys.modules['gymnasium'] = None\n"
        "import importlib.util as u; found = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'gymnasium' else found(name, *a)\n"
        "import optalloc.environment as e\n"
        "e.Fleet(e.Source('real-8'), 2).frame()\n"
        "try: e.AllocationEnv\nexcept Exception as error: print(error)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.stdout.strip() == 'AllocationEnv needs Gymnasium: pip install "optalloc[rl]".', ran.stderr


@BOTH
@pytest.mark.parametrize("settings", [{"instance": "real-8"}, SMALL], ids=["index", "generator"])
def test_checkers(settings, factored):
    """Gymnasium's and Stable-Baselines3's, with warnings as errors; they sample without masks."""
    sb3 = pytest.importorskip("stable_baselines3.common.env_checker")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make(
            ENVIRONMENT, invalid="noop", factored=factored, render_mode="rgb_array", **settings
        )
        check_env(env.unwrapped)
        sb3.check_env(env.unwrapped, skip_render_check=False)


# returns ------------------------------------------------------------------------------------------
@BOTH
def test_returns_are_minus_the_objective(factored):
    """Random and greedy play of random problems with every feature but levels: exact integers, in floats."""
    finished = 0
    for profile, seeds in (("small", range(22)), ("medium", range(10))):
        for seed, problem in one_level(profile, seeds):
            if Episode(problem).done:
                continue
            env = AllocationEnv(problem, factored=factored, discipline=("replan", "reserve")[seed % 2])
            for choose in (anything(seed), as_option(greedy)):
                total, info, _ = play(env, choose)
                if info["feasible"]:
                    finished += 1
                    objective = evaluate(problem, info["schedule"]).objective
                    assert info["objective"] == info["value"] == objective
                    assert total == -(objective - info["start_value"])
    assert finished >= 12


@BOTH
def test_optimal_play_returns_minus_the_optimum(factored):
    """Followed option by option, with leave to prefetch."""
    found = 0
    for profile in ("small", "tiny"):
        for _, problem in one_level(profile, range(16)):
            result = solve(problem, "cpsat", threads=1, time_limit=10)
            if result.status is Status.OPTIMAL and not Episode(problem, transfers="any").done:
                env = AllocationEnv(problem, factored=factored, transfers="any")
                total, info, _ = play(env, as_option(along(problem, result.plan)))
                assert info["feasible"]
                assert total == -(result.objective - info["start_value"])
                found += 1
    assert found >= 8


@pytest.mark.long
@BOTH
def test_returns_are_minus_the_objective_on_many(factored):
    """The same on many problems, random play only."""
    for profile in ("small", "tiny", "medium"):
        for seed, problem in one_level(profile, range(300)):
            if not Episode(problem).done:
                env = AllocationEnv(problem, factored=factored, discipline=("replan", "reserve")[seed % 2])
                total, info, _ = play(env, anything(seed))
                assert not info["feasible"] or total == -(info["objective"] - info["start_value"])
                assert (
                    not info["feasible"] or evaluate(problem, info["schedule"]).objective == info["objective"]
                )


def test_both_views_lead_to_the_same_actions():
    """What can be reached down the levels is what is possible in the flat view, each action once."""
    for _, problem in one_level("medium", range(14)):
        if Episode(problem).done:
            continue
        flat, factored = AllocationEnv(problem), AllocationEnv(problem, factored=True)
        for env in (flat, factored):
            env.reset()
        decision = flat.episode.decision
        possible = [decision.action(option) for option in np.flatnonzero(decision.mask).tolist()]
        for env in (flat, factored):
            found = list(leaves(env))
            assert {action for action, _ in found} == set(possible)
            assert len(found) == len(possible)
            env.view.begin(env.episode)
            assert all(env.view.path(action) == path for action, path in found)
        for option in np.flatnonzero(~decision.mask).tolist():
            for env in (flat, factored):
                with pytest.raises(ValueError, match="not possible"):
                    env.view.path(decision.action(option))


def test_sub_decisions_bring_no_reward():
    """Only the last level of a decision does; the clock stands still in between."""
    env = AllocationEnv("real-8", factored=True)
    _, info = env.reset()
    levels, inner = set(), 0
    choose, over = anything(1), False
    while not over:
        levels.add(LEVELS[env.view.level])
        clock, decisions = info["clock"], env.episode.decisions
        observation, reward, over, _, info = env.step(choose(env, info["action_mask"]))
        assert env.unpack(observation)["level"].sum() == 1
        if env.episode.decisions == decisions:
            inner += 1
            assert (reward, info["clock"]) == (0, clock)
    assert inner > 10
    assert levels == {"task", "data", "node", "devices"} - ({"devices"} if env.sizes.counts == 1 else set())


# masks --------------------------------------------------------------------------------------------
@BOTH
def test_masked_out_options_raise(factored):
    """Every one of them, at every step; the others are taken. Afterwards the mask is empty."""
    env = AllocationEnv("contended-6", factored=factored)
    _, info = env.reset(seed=1)
    rng, over = np.random.default_rng(1), False
    while not over:
        mask = info["action_mask"]
        assert mask.dtype == np.int8
        assert (env.action_masks() == mask.astype(bool)).all()
        for option in [*rng.choice(np.flatnonzero(mask == 0), 5).tolist(), -1, len(mask)]:
            with pytest.raises(ValueError, match="masked out"):
                env.step(option)
        _, _, over, _, info = env.step(rng.choice(np.flatnonzero(mask)))
    assert not info["action_mask"].any()
    with pytest.raises(RuntimeError, match="reset"):
        env.step(0)


@BOTH
def test_masked_out_options_as_noops(factored):
    """Nothing changes, reward 0; the step limit truncates."""
    env = AllocationEnv("real-8", factored=factored, invalid="noop", max_steps=7)
    observation, info = env.reset(seed=1)
    for step in range(7):
        option = int(np.flatnonzero(info["action_mask"] == 0)[step])
        again, reward, terminated, truncated, later = env.step(option)
        assert (reward, terminated, truncated) == (0, False, step == 6)
        assert all((again[name] == observation[name]).all() for name in observation)
        assert later["value"] == info["value"]
    assert AllocationEnv("real-8", invalid="noop").reset()[1]["clock"] == info["clock"]


def test_default_step_limit():
    """1,000 + 100 a task with no-ops; none where options are masked."""
    env = AllocationEnv("real-8", invalid="noop")
    env.reset()
    steps, truncated = 0, False
    while not truncated:
        _, _, truncated = env.advance(-1)
        steps += 1
    assert steps == 1800


# dead ends, penalties, shaping --------------------------------------------------------------------
DEAD_END = [Task([Mode(4, {0: 1})]), Task([Mode(2, {0: 1})], deadline=3)]


@pytest.mark.parametrize(("penalty", "charged"), [(None, 13), (50, 50), (0, 0)])
def test_a_dead_end_costs_the_penalty(penalty, charged):
    """t0 holds the device beyond the deadline of t1: reward -(4 + penalty).

    By default more than what both add if they end at the horizon, 4 + 2 ticks: 6 + 6 + 1.
    """
    env = AllocationEnv(make_problem(DEAD_END), penalty=penalty)
    env.reset()
    reward, terminated, truncated = env.advance(0)
    assert (terminated, truncated) == (True, False)
    assert not env.running.feasible
    assert reward == -(4 + charged)


@BOTH
@pytest.mark.parametrize("gamma", [1.0, 0.9])
def test_shaping_telescopes(gamma, factored):
    """The discounted sum of what shaping adds is minus the potential of the start, however the episode goes."""
    for seed in range(4):
        plain = AllocationEnv(**SMALL, factored=factored)
        shaped = AllocationEnv(**SMALL, factored=factored, shaping="backlog", gamma=gamma)
        for env in (plain, shaped):
            env.reset(options={"instance_seed": seed})
        start, added, factor, over = backlog(shaped.running), 0.0, 1.0, False
        assert start < 0
        choose = anything(seed)
        while not over:
            option = int(choose(plain, plain.action_masks()))
            reward, over, _ = plain.advance(option)
            added += factor * (shaped.advance(option)[0] - reward)
            factor *= gamma
        assert added == -start if gamma == 1 else abs(added + start) < 1e-6 * abs(start)


def test_own_potential():
    """A function of the episode."""
    env = AllocationEnv("real-8", shaping=lambda episode: float(len(episode.simulator.queue)))
    env.reset()
    queue = len(env.running.simulator.queue)
    option = int(np.flatnonzero(env.action_masks())[0])
    plain = AllocationEnv("real-8")
    plain.reset()
    assert env.advance(option)[0] == plain.advance(option)[0] + len(env.running.simulator.queue) - queue


# observations -------------------------------------------------------------------------------------
@pytest.mark.parametrize("preset", ["contended", "market", "edge", "pipeline"])
@BOTH
def test_observations_are_bounded(factored, preset):
    """Within [-1, 1] and finite at every step of random play; see `play` for the bounds."""
    env = AllocationEnv(generator=preset, generator_options={"tasks": 7}, seed=1, factored=factored)
    _, _, steps = play(env, anything(1))
    assert steps >= 7


def test_every_feature_says_something():
    """Over some presets each takes several values."""
    names = {"tasks": TASK, "datasets": DATASET, "nodes": NODE, "modes": MODE, "transfers": TRANSFER}
    seen = {part: [] for part in (*names, "scalars")}
    for preset, number in (("contended", 1), ("market", 2), ("edge", 1), ("pipeline", 1)):
        env = AllocationEnv(generator=preset, generator_options={"tasks": 8}, seed=number)
        _, info = env.reset()
        choose, over = anything(number), False
        while not over:
            features = env.running.features
            for part in names:
                values = features.modes() if part == "modes" else getattr(features, part)
                seen[part].append(np.unique(values, axis=0))
            seen["scalars"].append(features.scalars[None])
            _, _, over, _, info = env.step(choose(env, info["action_mask"]))
    for part, columns in names.items():
        table = np.concatenate(seen[part])
        still = [name for i, name in enumerate(columns) if len(np.unique(table[:, i])) < 2]
        # Only a limit of the plan closes a transfer that is shown.
        assert still == (["open"] if part == "transfers" else [])
    assert np.concatenate(seen["scalars"]).shape[1] == len(GLOBAL)


def test_every_feature_is_documented():
    """By its name, on the page of the environment."""
    page = (Path(__file__).parents[1] / "docs" / "environment.md").read_text()
    for name in {*TASK, *DATASET, *NODE, *MODE, *TRANSFER, *(set(GLOBAL) - set(TERMS))}:
        assert f"`{name}`" in page, name


def test_parts_of_an_observation():
    """Unpacked: masks say what is there, and an open mode stands where its option is."""
    env = AllocationEnv("contended-6")
    observation, info = env.reset()
    parts, decision = env.unpack(observation), env.episode.decision
    assert parts["task_mask"].sum() == len(decision.tasks)
    assert parts["node_mask"].sum() == env.episode.problem.num_nodes
    assert parts["dataset_mask"].sum() == len(env.episode.problem.dataset_ids)
    size = env.sizes.tasks * env.sizes.modes
    opened = parts["modes"][..., MODE.index("open")].reshape(-1)
    assert (opened == info["action_mask"][:size]).all()
    assert (parts["mask"] == info["action_mask"]).all()
    rejections = info["action_mask"][size : size + env.sizes.tasks]
    assert (parts["tasks"][:, TASK.index("may_reject")] == rejections).all()


def test_windows():
    """Fewer places than waiting tasks and transfers: the first are shown, and the episode still ends."""
    whole, part = AllocationEnv("real-12"), AllocationEnv("real-12", sizes={"tasks": 2, "transfers": 3})
    total, info, _ = play(part, anything(1))
    assert info["feasible"]
    assert total == -(info["objective"] - info["start_value"])
    assert part.action_space.n < whole.action_space.n
    play(AllocationEnv("real-12", sizes={"tasks": 1, "transfers": 1}, factored=True), anything(1))


def test_sizes():
    """What does not fit, or is not a size, is named."""
    for sizes, message in (
        ({"modes": 1}, "sizes.modes: 1 is too small: 'real-8' needs 6"),
        ({"colour": 3}, "sizes.colour: is not known"),
        ({"tasks": 0}, "sizes.tasks: must be an integer >= 1"),
        ({"tasks": 10**6}, "one observation would hold .* numbers; show fewer tasks"),
    ):
        with pytest.raises(InputError, match=message):
            AllocationEnv("real-8", sizes=sizes).reset()
    assert AllocationEnv("real-8", sizes=Sizes(8, 6, 6, 4, 3, 9, 4, 30)).reset()
    several = AllocationEnv(["real-8", "contended-6"])
    for seed in range(4):
        several.reset(seed=seed)
    assert {env.problem.instance.name for env in several.source._fixed} == {"real-8", "contended-6"}


# seeds and vector forms ---------------------------------------------------------------------------
def trajectory(env, seed, steps=120):
    """Observations, rewards and names of instances under a fixed stream of random options."""
    rng, found = np.random.default_rng(7), []
    observation, info = env.reset(seed=seed)
    for _ in range(steps):
        observation, reward, terminated, _, info = env.step(rng.choice(np.flatnonzero(info["action_mask"])))
        found.append(
            (*(values.tobytes() for values in observation.values()), reward, terminated, info["value"])
        )
        if terminated:
            observation, info = env.reset()
    return found


@BOTH
def test_the_same_seed_gives_the_same_trajectory(factored):
    """Two environments, and the same one again, over several episodes and instances; another seed differs."""
    env, other = AllocationEnv(**SMALL, factored=factored), AllocationEnv(**SMALL, factored=factored)
    first = trajectory(env, 3)
    assert trajectory(other, 3) == first
    assert trajectory(env, 3) == first
    assert any(trajectory(env, seed) != first for seed in (4, 5, 6))
    assert sum(step[-2] for step in first) >= 1


def test_seed_of_the_constructor():
    """Without a seed the first reset takes the constructor's; it then goes on by itself."""
    drawn = []
    for _ in range(2):
        env = AllocationEnv(generator="ladder", generator_options={"tasks": 3}, seed=11)
        found = [env.reset()[1] and env.episode.problem.instance.sha256 for _ in range(3)]
        drawn.append(found)
    assert drawn[0] == drawn[1]
    assert len(set(drawn[0])) == 3
    by_seed = env.reset(options={"instance_seed": 5})[1]
    assert env.episode.problem.instance.sha256 == oa.generate("ladder", tasks=3, seed=5).sha256
    assert by_seed["clock"] >= 0


@BOTH
def test_vector_forms_agree(factored):
    """Ours, Gymnasium's, and single environments: the same arrays under the same seeds, over ends of episodes."""
    settings = SMALL | {"factored": factored}
    ours = gymnasium.make_vec(ENVIRONMENT, num_envs=3, **settings)
    theirs = gymnasium.make_vec(ENVIRONMENT, num_envs=3, vectorization_mode="sync", **settings)
    assert ours.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    rng, ends = np.random.default_rng(0), 0
    (mine, info), (other, other_info) = ours.reset(seed=5), theirs.reset(seed=5)
    for _ in range(120):
        assert all((mine[name] == other[name]).all() for name in mine)
        assert (info["action_mask"] == other_info["action_mask"]).all()
        assert (ours.action_masks() == info["action_mask"].astype(bool)).all()
        options = np.array(
            [rng.choice(np.flatnonzero(mask)) if mask.any() else 0 for mask in info["action_mask"]]
        )
        mine, rewards, terminated, truncated, info = ours.step(options)
        other, other_rewards, other_terminated, _, other_info = theirs.step(options)
        assert rewards.tolist() == other_rewards.tolist()
        assert terminated.tolist() == other_terminated.tolist()
        assert not truncated.any()
        ends += terminated.sum()
        if terminated.any():
            assert info["objective"][terminated].tolist() == other_info["objective"][terminated].tolist()
    assert ends >= 3
    assert ours.unpack(mine)["mask"].shape == (3, int(ours.single_action_space.n))
    with pytest.raises(InputError, match="num_envs"):
        gymnasium.make_vec(
            ENVIRONMENT, num_envs=0, vectorization_mode="vector_entry_point", instance="real-8"
        )


# rendering and faults -----------------------------------------------------------------------------
def test_rendering():
    """Text and picture, at the beginning and the end."""
    for mode in ("ansi", "rgb_array"):
        env = AllocationEnv("real-8", render_mode=mode)
        env.reset()
        before = env.render()
        play(env, anything(1))
        after = env.render()
        if mode == "ansi":
            assert before.startswith("tick 0  value 0")
            assert "queue: empty" in after
            assert "done" in after
        else:
            assert before.shape == after.shape
            assert before.dtype == np.uint8
            assert (before != after).any()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "either an instance or a generator"),
        ({"instance": "real-8", "generator": "geo"}, "either an instance or a generator"),
        ({"instance": "real-9"}, "real-9"),
        ({"instance": []}, "must not be an empty list"),
        ({"generator": "moon"}, "moon"),
        ({"generator": "geo", "instance_seeds": []}, "instance_seeds: must not be empty"),
        (
            {"instance": "real-8", "invalid": "ignore", "gamma": 0},
            "invalid: must be one of raise, noop.*\n.*gamma",
        ),
        ({"instance": "real-8", "penalty": -1}, "penalty: must be finite"),
        ({"instance": "real-8", "penalty": float("nan")}, "penalty: must be finite"),
        ({"instance": "real-8", "max_steps": 0}, "max_steps: must be at least 1"),
        ({"instance": "real-8", "render_mode": "human"}, "render_mode: must be one of ansi, rgb_array"),
        ({"instance": "real-8", "discipline": "hope"}, "replan, reserve"),
        ({"instance": "real-8", "transfers": "all"}, "none, seen, any"),
        ({"instance": "real-8", "objective": "speed=1"}, "'speed' is not a term"),
        ({"instance": "real-8", "shaping": "yes"}, "backlog or a function"),
    ],
)
def test_faults(settings, message):
    """Each is named, with what is allowed."""
    with pytest.raises(InputError, match=message):
        AllocationEnv(**settings).reset()


def test_other_faults():
    """Levels, with the remedy; an unknown option of reset; an instance seed without generator; no reset."""
    with pytest.raises(UnsupportedError, match="2 levels"):
        AllocationEnv("real-8", objective="makespan=1;cost=1")
    assert AllocationEnv("real-8", objective="makespan=1,cost=1", limits={"cost": 10**6}).reset()
    env = AllocationEnv("real-8")
    with pytest.raises(RuntimeError, match="reset first"):
        env.step(0)
    with pytest.raises(InputError, match=r"options\.speed"):
        env.reset(options={"speed": 1})
    with pytest.raises(InputError, match="needs a generator"):
        env.reset(options={"instance_seed": 1})
    done = make_problem([Task([Mode(2, {0: 1})])], state_mode=[0], state_start=[0])
    with pytest.raises(InputError, match="nothing to decide"):
        AllocationEnv(done).reset()


# learners -----------------------------------------------------------------------------------------
@pytest.fixture
def one_thread():
    """Two threads only get in each other's way with networks this small."""
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_dqn_trains(one_thread):
    """Stable-Baselines3's DQN knows no masks: invalid options are no-ops."""
    sb3 = pytest.importorskip("stable_baselines3")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make(ENVIRONMENT, instance="real-8", invalid="noop", max_steps=300)
        settings = {"learning_starts": 200, "buffer_size": 2000, "train_freq": 8, "seed": 0, "device": "cpu"}
        model = sb3.DQN("MultiInputPolicy", env, **settings).learn(2000)
    assert model.num_timesteps == 2000
    assert np.isfinite(model.logger.name_to_value.get("train/loss", 0.0))
    assert len(model.ep_info_buffer) >= 3


@BOTH
def test_maskable_ppo_trains(factored, one_thread):
    """It finds the masks through the wrappers of gym.make; what it has learned plays only possible options."""
    contrib = pytest.importorskip("sb3_contrib")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make(ENVIRONMENT, factored=factored, **SMALL)
        model = contrib.MaskablePPO(
            "MultiInputPolicy", env, n_steps=512, batch_size=128, seed=0, device="cpu"
        )
        model.learn(2048)
    assert model.num_timesteps == 2048
    observation, info = env.reset(seed=1)
    over = False
    while not over:
        option, _ = model.predict(observation, action_masks=info["action_mask"].astype(bool))
        observation, _, over, _, info = env.step(option)
    assert info["feasible"] in (True, False)


def test_sampling_by_the_mask():
    """As Gymnasium's spaces do it."""
    env = AllocationEnv("contended-6")
    env.action_space.seed(1)
    _, info, steps = play(env, lambda env, mask: env.action_space.sample(mask.astype(np.int8)), seed=1)
    assert steps > 5
    assert info["feasible"]
