"""The environment for reinforcement learning."""

import pathlib
import threading
import warnings

import gymnasium
import numpy
import pyarrow
import pytest
from gymnasium.utils.env_checker import check_env

import headstart
import headstart.gym

PATH = {"rate": "15 Mbit/s", "rtt": "60 ms", "size": "300 kB"}


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
    found, _ = total(env, lambda observation: numpy.array([0.5]))

    class Doubling(headstart.Scheme):
        """Begins with twenty segments and doubles: as the policy above does, but at each ack."""

        def establish(self, prior):
            self.window = 20 * prior.mss_bytes
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
    grow, shrink = (lambda _: numpy.array([0.5])), (lambda _: numpy.array([-0.5]))
    assert total(env, grow, seed=5) == total(env, grow, seed=5)
    assert total(env, grow, seed=5)[0] > total(env, shrink, seed=5)[0]
    drawn = {env.reset(seed=seed)[1]["options"]["rtt"] for seed in range(8)}
    assert drawn == {"20 ms", "100 ms"}
    env.close()


def test_a_window_too_large_for_the_path_costs_by_loss():
    path = {**PATH, "size": "140 kB", "buffer": "10 packets"}
    careless = lambda _: numpy.array([1.0])  # noqa: E731
    without, with_weight = (
        total(headstart.gym.StartEnv(**path, loss_weight=weight), careless)[0] for weight in (0.0, 10.0)
    )
    assert with_weight < without - 0.1


def test_an_episode_that_is_given_up_leaves_no_thread():
    env = headstart.gym.StartEnv(**PATH, most_steps=2)
    before = threading.active_count()
    for _ in range(5):
        env.reset()
    assert total(env, lambda _: numpy.array([-1.0]))[1] == 2, "truncated"
    env.close()
    assert threading.active_count() == before


def test_an_option_that_is_refused_is_refused_by_reset():
    with pytest.raises(ValueError, match="15"):
        headstart.gym.StartEnv(rate="15").reset()
    with pytest.raises(RuntimeError, match="expected a call of reset"):
        headstart.gym.StartEnv().step(numpy.zeros(1))
