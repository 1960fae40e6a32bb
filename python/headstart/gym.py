"""A start as an environment for reinforcement learning (`pip install '.[gym]'`).

An episode is one flow alone on a path, a step one round trip. The agent sets the window.

The observation is an array of seven float32. Latency ratio and gradient are those of Aurora (Jay et
al., A Deep Reinforcement Learning Perspective on Internet Congestion Control, ICML 2019):

- 0: the window, as log2 of its segments (0 to 30);
- 1: the latency ratio, smoothed RTT over minimum RTT (1 to 100);
- 2: the latency gradient, the change of the smoothed RTT over the step (-10 to 10);
- 3: bytes delivered in the step over the window (0 to 100);
- 4: bytes lost in the step over the window (0 to 100);
- 5: the share of the flow that is delivered (0 to 1);
- 6: the history, as log2 of the segments of its rate times its RTT (0 to 30; 0 is none).

The action is an array of one float32, -1 to 1. The window is multiplied by 4 to its power: a
quarter to four times, as in Orca (Abbasloo et al., Classic Meets Modern, SIGCOMM 2020). It is never
below one segment and never above the receiver's window. Before the first action it is ten segments
(RFC 6928).

The reward is linear in time and loss, as Aurora's is in throughput, latency and loss. It is minus
the minimum RTTs that the step took, minus `loss_weight` times the share of the flow that was lost.
The sum over an episode without loss is minus the completion time in minimum RTTs, from the
end of the handshake.

An episode ends when the flow is delivered, and is truncated after `most_steps`.
"""

from __future__ import annotations

import math
import queue
import threading
from typing import Any

import gymnasium
import numpy
from gymnasium import spaces

from . import Ack, Allowance, Congestion, FlightPlan, Prior, Scheme, Timeout, trace

_LOW = numpy.array([0, 1, -10, 0, 0, 0, 0], dtype=numpy.float32)
_HIGH = numpy.array([30, 100, 10, 100, 100, 1, 30], dtype=numpy.float32)
_INITIAL_SEGMENTS = 10


class _Stopped(Exception):
    """The episode was given up."""


class _Episode:
    """One flow on a thread of its own, which waits for actions."""

    def __init__(self, options: dict[str, Any], loss_weight: float) -> None:
        self.reports: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.actions: queue.SimpleQueue[float | None] = queue.SimpleQueue()
        self.loss_weight = loss_weight
        self.thread = threading.Thread(target=self._run, args=(options,), daemon=True)
        self.thread.start()

    def _run(self, options: dict[str, Any]) -> None:
        try:
            trace(_agent(self), **options)
        except _Stopped:
            return
        except Exception as error:
            self.reports.put(error)

    def action(self) -> float:
        found = self.actions.get()
        if found is None:
            raise _Stopped
        return found

    def report(self) -> tuple[Any, float, bool]:
        """Observation, reward, and True at the end of the flow."""
        found = self.reports.get()
        if isinstance(found, Exception):
            raise found
        observation, reward, is_end = found
        return observation, reward, is_end

    def stop(self) -> None:
        self.actions.put(None)
        self.thread.join()


def _agent(episode: _Episode) -> type[Scheme]:
    """The scheme that does as the environment's user says."""

    class Agent(Scheme):
        needs = "history"

        def establish(self, prior: Prior) -> FlightPlan:
            self.mss, self.most = prior.mss_bytes, max(prior.receive_window_bytes, prior.mss_bytes)
            if prior.flow_size_bytes is None:
                raise ValueError("StartEnv: found a flow of unknown size, expected one that is announced")
            self.size = prior.flow_size_bytes
            self.window = min(_INITIAL_SEGMENTS * self.mss, self.most)
            record = prior.history
            product = record.bottleneck_bytes_per_s * record.min_rtt_s if record else 0.0
            self.history = _log2(product / self.mss)
            self.begin_s, self.rtt_s, self.min_rtt_s = prior.now_s, prior.handshake_rtt_s, prior.handshake_rtt_s
            self.delivered = self.before = self.lost = 0
            self.decide(prior.now_s, prior.handshake_rtt_s)
            return FlightPlan(self.window)

        def on_ack(self, ack: Ack) -> None:
            self.delivered, self.min_rtt_s = ack.delivered_bytes, ack.min_rtt_s
            is_end = self.delivered >= self.size
            if is_end or ack.now_s - self.begin_s >= ack.smoothed_rtt_s:
                self.decide(ack.now_s, ack.smoothed_rtt_s, is_end)

        def on_congestion(self, signal: Congestion) -> None:
            self.lost += signal.lost_bytes

        def on_timeout(self, timeout: Timeout) -> None:
            # RFC 5681: everything in flight is taken for lost.
            self.lost += timeout.prior_in_flight_bytes
            self.window = self.mss

        def allowance(self) -> Allowance:
            return Allowance(self.window)

        def decide(self, now_s: float, rtt_s: float, is_end: bool = False) -> None:
            time_s = now_s - self.begin_s
            observation = [
                _log2(self.window / self.mss),
                rtt_s / self.min_rtt_s,
                (rtt_s - self.rtt_s) / time_s if time_s > 0 else 0.0,
                (self.delivered - self.before) / self.window,
                self.lost / self.window,
                self.delivered / self.size,
                self.history,
            ]
            reward = -time_s / self.min_rtt_s - episode.loss_weight * self.lost / self.size
            found = numpy.clip(numpy.array(observation, dtype=numpy.float32), _LOW, _HIGH)
            episode.reports.put((found, reward, is_end))
            self.begin_s, self.rtt_s, self.before, self.lost = now_s, rtt_s, self.delivered, 0
            if not is_end:
                self.window = min(max(int(self.window * 4 ** episode.action()), self.mss), self.most)

    return Agent


def _log2(segments: float) -> float:
    return math.log2(max(segments, 1.0))


class StartEnv(gymnasium.Env):
    """The start of one flow; the module says how it is observed, steered and rewarded.

    `options` are those of `headstart.trace`; a list has values of which each episode draws one. The
    seed of `reset` determines all episodes until the next one.

    >>> env = headstart.gym.StartEnv(rate=["5 Mbit/s", "50 Mbit/s"], rtt=["20 ms", "100 ms"])
    """

    metadata = {"render_modes": []}

    def __init__(
        self, *, loss_weight: float = 10.0, most_steps: int = 200, render_mode: None = None, **options: Any
    ) -> None:
        self.observation_space = spaces.Box(_LOW, _HIGH, dtype=numpy.float32)
        self.action_space = spaces.Box(-1.0, 1.0, (1,), dtype=numpy.float32)
        self.render_mode = render_mode
        self._options, self._loss_weight, self._most_steps = options, loss_weight, most_steps
        self._episode: _Episode | None = None
        self._steps = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begins a flow; `options` go before those of the environment."""
        super().reset(seed=seed)
        self.close()
        drawn = {"seed": int(self.np_random.integers(1, 2**31))}
        for name, value in {**self._options, **(options or {})}.items():
            drawn[name] = value[int(self.np_random.integers(len(value)))] if isinstance(value, list) else value
        self._episode, self._steps = _Episode(drawn, self._loss_weight), 0
        observation, _, _ = self._episode.report()
        return observation, {"options": drawn}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Sets the window for the next round trip."""
        if self._episode is None:
            raise RuntimeError("step: found no episode, expected a call of reset before it")
        self._episode.actions.put(float(numpy.clip(numpy.asarray(action).reshape(-1)[0], -1.0, 1.0)))
        self._steps += 1
        observation, reward, is_end = self._episode.report()
        is_truncated = not is_end and self._steps >= self._most_steps
        if is_end or is_truncated:
            self.close()
        return observation, float(reward), is_end, is_truncated, {}

    def close(self) -> None:
        """Gives up the flow."""
        if self._episode is not None:
            self._episode.stop()
            self._episode = None


gymnasium.register(id="headstart/Start-v0", entry_point=StartEnv)
