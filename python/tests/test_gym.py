"""The environment for reinforcement learning."""

import gc
import importlib.util
import math
import os
import pathlib
import subprocess
import sys
import threading
import time
import warnings

import gymnasium
import numpy
import pyarrow
import pytest
from gymnasium.utils.env_checker import check_env

import headstart
import headstart.gym

PATH = {"rate": "15 Mbit/s", "rtt": "60 ms", "size": "300 kB"}


def starting(flight, pace, then):
    """A policy with one action for the first flight and another one behind it."""
    return lambda observation: numpy.array([flight, pace, -1.0] if observation[0] < 0 else then)


def total(env, policy, seed=1):
    """Sum of rewards and number of steps of an episode."""
    observation, _ = env.reset(seed=seed)
    rewards, is_over = [], False
    while not is_over:
        observation, reward, is_terminated, is_truncated, _ = env.step(policy(observation))
        assert env.observation_space.contains(observation)
        rewards.append(reward)
        is_over = is_terminated or is_truncated
    return sum(rewards), len(rewards)


def test_the_example_of_the_documents_runs():
    page = (pathlib.Path(__file__).parents[2] / "docs/python.md").read_text()
    (example,) = [block for block in page.split("```python\n")[1:] if "StartEnv(" in block]
    exec(example.split("```")[0], {"headstart": headstart})


def test_the_checker_of_gymnasium_passes():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make("headstart/Start-v0", **PATH).unwrapped, skip_render_check=True)


def test_without_loss_the_rewards_are_the_completion_time_in_round_trips():
    env = headstart.gym.StartEnv(**PATH, buffer="1000 packets")
    found, _ = total(env, starting(0.0, -1.0, [0.5, -1.0, -1.0]))

    class Doubling(headstart.Scheme):
        """Begins with the root of the size and doubles as the policy above, but at each ack."""

        def establish(self, prior):
            self.window = int(prior.mss_bytes * (prior.flow_size_bytes / prior.mss_bytes) ** 0.5)
            return headstart.FlightPlan(self.window)

        def on_ack(self, ack):
            self.window += ack.newly_acked_bytes

        def allowance(self):
            return headstart.Allowance(self.window)

    events = pyarrow.table(headstart.trace(Doubling, **PATH, buffer="1000 packets")).to_pylist()
    began = next(row["time_ns"] for row in events if row["event"] == "established")
    took = (max(row["time_ns"] for row in events if row["event"] == "acked") - began) / 60e6
    assert -found == pytest.approx(took, rel=0.3)


def test_the_action_matters_and_the_seed_determines_the_episode():
    env = headstart.gym.StartEnv(**{**PATH, "rtt": ["20 ms", "100 ms"]}, loss="1 %")
    grow, shrink = (starting(0.0, -1.0, [growth, -1.0, -1.0]) for growth in (0.5, -0.5))
    assert total(env, grow, seed=5) == total(env, grow, seed=5)
    assert total(env, grow, seed=5)[0] > total(env, shrink, seed=5)[0]
    drawn = {env.reset(seed=seed)[1]["options"]["rtt"] for seed in range(8)}
    assert drawn == {"20 ms", "100 ms"}
    env.close()


def test_a_window_too_large_for_the_path_costs_by_loss():
    path = {**PATH, "size": "140 kB", "buffer": "10 packets"}
    careless = starting(1.0, -1.0, [0.0, -1.0, -1.0])
    without, with_weight = (
        total(headstart.gym.StartEnv(**path, loss_weight=weight), careless)[0] for weight in (0.0, 10.0)
    )
    assert with_weight < without - 0.1


def test_an_episode_that_is_given_up_leaves_no_thread():
    env = headstart.gym.StartEnv(**PATH, most_steps=2)
    before = threading.active_count()
    for _ in range(5):
        env.reset()
    assert total(env, starting(-1.0, -1.0, [-1.0, -1.0, -1.0]))[1] == 2, "truncated"
    env.close()
    assert threading.active_count() == before


def test_an_option_that_is_refused_is_refused_by_reset():
    with pytest.raises(ValueError, match="15"):
        headstart.gym.StartEnv(rate="15").reset()
    with pytest.raises(RuntimeError, match="expected a call of reset"):
        headstart.gym.StartEnv().step(numpy.zeros(3))


def test_an_environment_that_is_forgotten_leaves_no_thread():
    before = threading.active_count()
    for _ in range(20):
        headstart.gym.StartEnv(**PATH).reset()
    gc.collect()
    for _ in range(100):
        if threading.active_count() == before:
            return
        time.sleep(0.05)
    raise AssertionError(threading.enumerate())


def test_the_first_flight_reaches_the_limit_and_its_pace_is_kept():
    sent = {}
    for pace in (-1.0, 0.5, 1.0):
        scheme = headstart.gym.policy_scheme(starting(1.0, pace, [0.0, -1.0, 1.0]), "all-at-once")
        events = headstart.trace(scheme, **{**PATH, "size": "130 kB"}, buffer="1000 packets").to_pandas()
        first = events[(events.event == "sent") & (events.time_ns < 2 * 60e6)]
        assert first.payload_bytes.sum() == 130_000, "the whole flow before its first acknowledgement"
        sent[pace] = (first.time_ns.max() - first.time_ns.min()) / 60e6
    assert sent[-1.0] < 0.01 < 0.2 < sent[1.0] < 0.3 < 0.9 < sent[0.5] < 1.01


def test_after_a_hand_over_the_step_is_the_rest_of_the_flow():
    env = headstart.gym.StartEnv(**PATH)
    rewards, steps = total(env, starting(0.3, 0.5, [0.0, -1.0, 1.0]))
    assert steps == 2 and -40 < rewards < -5, "a window of nine segments grows by one in a round trip"
    scheme = headstart.gym.policy_scheme(starting(0.3, 0.5, [0.0, -1.0, 1.0]))
    phases = headstart.trace(scheme, **PATH)["phase"]
    assert phases[0] == "policy" and phases[-1] == "avoidance"
    growing = headstart.trace(headstart.gym.policy_scheme(starting(0.3, 0.5, [0.0, -1.0, 0.5])), **PATH)
    assert growing["phase"][-1] == "slow start"


def test_the_return_of_a_scheme_on_the_same_episode_is_in_the_information():
    path = {**PATH, "buffer": "20 packets", "loss": "2 %"}
    iw10 = starting(math.log(10) / math.log(300_000 / 1448) * 2 - 1, -1.0, [0.0, -1.0, -1.0])
    found = {}
    for reference in ("iw10", "jump-start", None):
        env = headstart.gym.StartEnv(**path, reference=reference)
        env.reset(seed=3)
        is_over = False
        while not is_over:
            *_, ends, is_truncated, info = env.step(iw10([-1.0]) if env._steps == 0 else [0.0, -1.0, -1.0])
            is_over = ends or is_truncated
        found[reference] = info.get("reference_return")
    assert found[None] is None and found["iw10"] != found["jump-start"]
    # Of a path without loss it is the completion time.
    env = headstart.gym.StartEnv(**PATH, buffer="1000 packets")
    env.reset(seed=3)
    *_, info = env.step([1.0, -1.0, -1.0])
    *_, info = env.step([0.0, -1.0, 1.0])
    events = headstart.trace("iw10", **PATH, buffer="1000 packets").to_pandas()
    begin = events.time_ns[events.event == "established"].iloc[0]
    took = (events.time_ns[events.event == "acked"].max() - begin) / events.smoothed_rtt_ns[events.event == "established"].iloc[0]
    assert info["reference_return"] == pytest.approx(-took)


def test_a_policy_races_as_a_scheme():
    policy = headstart.gym.policy_scheme(starting(1.0, 0.5, [0.0, -1.0, 1.0]), "all")
    results = headstart.race(schemes=["iw10", policy], **PATH, duration="5 s", repeats=2)
    iw10, other = results["mean_ms"]
    assert results["scheme"] == ["iw10", "all"] and other < iw10


@pytest.mark.parametrize("action", [[math.nan, 0, 0], [0.5], "fast"])
def test_an_action_of_another_form_is_refused(action):
    env = headstart.gym.StartEnv(**PATH)
    env.reset()
    with pytest.raises(ValueError, match="expected 3 finite numbers|could not convert"):
        env.step(action)
    env.close()


def test_the_worked_example_learns_and_its_paths_are_apart():
    spec = importlib.util.spec_from_file_location(
        "learn_start", pathlib.Path(__file__).parents[1] / "examples/learn_start.py"
    )
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    for name in ("rate", "rtt", "size"):
        assert not {path[name] for path in example.TRAINING} & {path[name] for path in example.HELD_OUT}, name
    few = example.TRAINING[5:14:4]
    mean, gains = example.learn(1, 5, 12, lambda drawn: [example.score(one, few) for one in drawn])
    assert gains[-1] > gains[0] + 0.1
    assert example.score(mean, few) > example.score(numpy.zeros(example.Policy.WEIGHTS), few) + 0.1
    (row,) = example.compare(example.Policy(mean), example.HELD_OUT[:1], duration="2 s", repeats=1)
    assert 0.2 < row["time"] < 5


@pytest.mark.parametrize("end", ["", "raise SystemExit(0)", "env.step(env.action_space.sample())"])
def test_a_script_may_end_with_an_open_episode(end, tmp_path):
    script = tmp_path / "script.py"
    make = "headstart.gym.StartEnv(rate='5 Mbit/s', size='300 kB', reference=None)"
    lines = ["import headstart.gym", *(f"env{number} = {make}\nenv{number}.reset(seed=1)" for number in range(3))]
    script.write_text("\n".join([*lines, "env = env0", end]))
    site = {**os.environ, "PYTHONPATH": str(pathlib.Path(headstart.__file__).parents[1])}
    done = subprocess.run([sys.executable, script], env=site, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
