"""A start as an environment for reinforcement learning (`pip install '.[gym]'`).

An episode is one flow alone on a path, a step one round trip. The agent sets window and pace, and
may hand over to the base controller, which then ends the flow.

The observation is an array of ten float32. Latency ratio and gradient are those of Aurora (Jay et
al., A Deep Reinforcement Learning Perspective on Internet Congestion Control, ICML 2019):

- 0: the window, as log2 of its segments (0 to 40); -1 before the first flight;
- 1: the latency ratio, smoothed RTT over minimum RTT (1 to 100);
- 2: the latency gradient, the change of the smoothed RTT over the step (-10 to 10);
- 3: bytes delivered in the step over the window (0 to 100);
- 4: bytes lost in the step over the window (0 to 100);
- 5: the share of the flow that is delivered (0 to 1); 0 of a flow of unknown size;
- 6: the history, as log2 of the segments of its rate times its RTT (0 to 40; 0 is none);
- 7: the flow's size, as log2 of its segments (0 to 40; 0 is unknown);
- 8: the minimum RTT, as log2 of its milliseconds (-20 to 20);
- 9: the delivery rate times the minimum RTT, as log2 of its segments (0 to 40; 0 is no sample).

The action is an array of three float32, -1 to 1:

- 0: the first flight, from one segment at -1 to the limit at 1, evenly on a logarithmic scale. The
  limit is the flow's size, or the receiver's window where that is smaller. After the first flight
  the window is multiplied by 4 to this power: a quarter to four times, as in Orca (Abbasloo et al.,
  Classic Meets Modern, SIGCOMM 2020). It is never below one segment and never above the receiver's
  window;
- 1: the pace. Up to 0 it is the transport's own, and the first flight leaves at once. Above 0 it is
  the window per smoothed RTT, times 4 to the power of twice the number minus 1: one window per
  round trip at 0.5, four at 1;
- 2: above 0 the base controller takes over and continues from the window, up to 0.5 in slow start,
  above 0.5 in congestion avoidance. The step is then the rest of the flow. Before the first flight
  this changes nothing.

The reward is linear in time and loss, as Aurora's is in
throughput, latency and loss. It is minus the round-trip times of the handshake that the step took,
minus `loss_weight` times the share of the flow that was lost. The sum over an episode without loss
is minus the completion time in round trips, from the end of the handshake.

An episode ends when the flow is delivered, and is truncated after `most_steps`. The information of
its last step has `reference_return`, the sum of rewards of the scheme `reference` on the same
episode. A policy takes observations and returns actions; `policy_scheme` makes it a scheme.
"""

from __future__ import annotations

import atexit
import math
import queue
import threading
import weakref
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy
from gymnasium import spaces

from . import Ack, Allowance, Congestion, FlightPlan, HandOver, Prior, Results, Scheme, Timeout, trace

_LOW = numpy.array([-1, 1, -10, 0, 0, 0, 0, 0, -20, 0], dtype=numpy.float32)
_HIGH = numpy.array([40, 100, 10, 100, 100, 1, 40, 40, 20, 40], dtype=numpy.float32)
_ACTIONS = 3


class _Steered(Scheme):
    """A scheme that asks for an action before its first flight and after each round trip."""

    needs = "history"
    is_checked = False

    def act(self, observation: Any, now_s: float, is_end: bool) -> Any:
        """The next action. At the flow's end it is told, and none is taken."""
        raise NotImplementedError

    def establish(self, prior: Prior) -> FlightPlan:
        self.mss, self.most = prior.mss_bytes, max(prior.receive_window_bytes, prior.mss_bytes)
        self.size, record = prior.flow_size_bytes, prior.history
        self.history = _log2((record.bottleneck_bytes_per_s * record.min_rtt_s if record else 0.0) / self.mss)
        self.begin_s, self.rtt_s, self.min_rtt_s = prior.now_s, prior.handshake_rtt_s, prior.handshake_rtt_s
        self.window = self.delivered = self.before = self.lost = 0
        self.rate: float = 0.0
        flight, pace, _ = self.decide(prior.now_s, prior.handshake_rtt_s)
        limit = max(prior.sendable_bytes / self.mss, 1.0)
        self.window = round(self.mss * limit ** ((flight + 1) / 2))
        self.pace = self.paced(pace, prior.handshake_rtt_s)
        burst = self.window if self.pace is None else self.mss
        return FlightPlan(self.window, burst_bytes=burst, pace_bytes_per_s=self.pace)

    def on_ack(self, ack: Ack) -> HandOver | None:
        self.delivered, self.min_rtt_s = ack.delivered_bytes, ack.min_rtt_s
        self.rate = ack.rate_bytes_per_s or self.rate
        is_end = self.size is not None and self.delivered >= self.size
        if not is_end and ack.now_s - self.begin_s < ack.smoothed_rtt_s:
            return None
        growth, pace, hands_over = self.decide(ack.now_s, ack.smoothed_rtt_s, is_end)
        self.window = min(max(int(self.window * 4**growth), self.mss), self.most)
        self.pace = self.paced(pace, ack.smoothed_rtt_s)
        if hands_over <= 0:
            return None
        return HandOver.growing(self.window) if hands_over <= 0.5 else HandOver.avoiding(self.window)

    def on_congestion(self, signal: Congestion) -> None:
        self.lost += signal.lost_bytes

    def on_timeout(self, timeout: Timeout) -> None:
        # RFC 5681: everything in flight is taken for lost.
        self.lost += timeout.prior_in_flight_bytes
        self.window = self.mss

    def allowance(self) -> Allowance:
        return Allowance(self.window, self.pace)

    def paced(self, pace: float, rtt_s: float) -> float | None:
        return max(self.window / rtt_s * 4 ** (2 * pace - 1), 1.0) if pace > 0 else None

    def decide(self, now_s: float, rtt_s: float, is_end: bool = False) -> list[float]:
        time_s = now_s - self.begin_s
        observation = [
            _log2(self.window / self.mss) if self.window else -1.0,
            rtt_s / self.min_rtt_s,
            (rtt_s - self.rtt_s) / time_s if time_s > 0 else 0.0,
            (self.delivered - self.before) / max(self.window, 1),
            self.lost / max(self.window, 1),
            min(self.delivered / self.size, 1.0) if self.size else 0.0,
            self.history,
            _log2(self.size / self.mss) if self.size else 0.0,
            math.log2(self.min_rtt_s * 1e3),
            _log2(self.rate * self.min_rtt_s / self.mss),
        ]
        found = self.act(numpy.clip(numpy.array(observation, dtype=numpy.float32), _LOW, _HIGH), now_s, is_end)
        self.begin_s, self.rtt_s, self.before, self.lost = now_s, rtt_s, self.delivered, 0
        return [0.0] * _ACTIONS if is_end else _checked(found)


def _log2(segments: float) -> float:
    return math.log2(max(segments, 1.0))


def _checked(action: Any) -> list[float]:
    numbers = numpy.asarray(action, dtype=float).reshape(-1)
    if len(numbers) != _ACTIONS or not numpy.isfinite(numbers).all():
        raise ValueError(f"action: found {action!r}, expected {_ACTIONS} finite numbers")
    return [float(number) for number in numpy.clip(numbers, -1.0, 1.0)]


class _Stopped(Exception):
    """The episode was given up."""


_running: set[_Episode] = set()


@atexit.register
def _end_all() -> None:
    """Ends all episodes: a thread that waits in a run when the interpreter ends would abort it."""
    for episode in list(_running):
        episode.actions.put(None)
        episode.thread.join()


class _Episode:
    """One flow on a thread of its own, which waits for actions."""

    def __init__(self, options: dict[str, Any], loss_weight: float) -> None:
        self.reports: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.actions: queue.SimpleQueue[list[float] | None] = queue.SimpleQueue()
        self.loss_weight = loss_weight
        self.thread = threading.Thread(target=self._run, args=(options,), daemon=True)
        _running.add(self)
        self.thread.start()

    def _run(self, options: dict[str, Any]) -> None:
        try:
            agent = _agent(self)
            flow = trace(agent, **options)
            if not agent.has_ended:
                # The base controller ended the flow.
                reward = _reward(flow, agent.handshake_s, self.loss_weight, agent.told_s)
                last = agent.last.copy()
                last[5] = 1.0
                self.reports.put((last, reward, True))
        except _Stopped:
            return
        except Exception as error:
            self.reports.put(error)
        finally:
            _running.discard(self)

    def report(self) -> tuple[Any, float, bool]:
        """Observation, reward, and True at the end of the flow."""
        found = self.reports.get()
        if isinstance(found, Exception):
            raise found
        observation, reward, is_end = found
        return observation, reward, is_end


def _agent(episode: _Episode) -> Any:
    """The scheme that does as the environment's user says."""

    class Agent(_Steered):
        has_ended = False
        told_s = handshake_s = 0.0
        last: Any = None

        def establish(self, prior: Prior) -> FlightPlan:
            if prior.flow_size_bytes is None:
                raise ValueError("StartEnv: found a flow of unknown size, expected one that is announced")
            Agent.told_s, Agent.handshake_s = prior.now_s, prior.handshake_rtt_s
            return super().establish(prior)

        def act(self, observation: Any, now_s: float, is_end: bool) -> Any:
            assert self.size
            reward = -(now_s - self.begin_s) / Agent.handshake_s - episode.loss_weight * self.lost / self.size
            Agent.last, Agent.told_s, Agent.has_ended = observation, now_s, is_end
            episode.reports.put((observation, reward, is_end))
            if is_end:
                return None
            found = episode.actions.get()
            if found is None:
                raise _Stopped
            return found

    return Agent


def _reward(flow: Results, handshake_s: float, loss_weight: float, after_s: float) -> float:
    """The reward of the part of a trace that is later than this time."""
    last_s, lost, in_flight, size = after_s, 0, 0, 1
    columns = (flow[name] for name in ("time_ns", "event", "payload_bytes", "in_flight_bytes", "acknowledged_bytes"))
    for time_ns, event, payload, now_in_flight, acknowledged in zip(*columns):
        if event == "acked":
            last_s, size = time_ns / 1e9, max(size, acknowledged)
        if time_ns / 1e9 > after_s:
            lost += payload if event == "lost" else in_flight if event == "timeout" else 0
        in_flight = now_in_flight
    return -(last_s - after_s) / handshake_s - loss_weight * lost / size


def _return_of(scheme: str, options: dict[str, Any], loss_weight: float) -> float:
    """The sum of rewards of a scheme of the catalogue."""
    flow = trace(scheme, **options)
    at = flow["event"].index("established")
    begin_s, handshake_s = flow["time_ns"][at] / 1e9, flow["smoothed_rtt_ns"][at] / 1e9
    return _reward(flow, handshake_s, loss_weight, begin_s)


def policy_scheme(policy: Callable[[Any], Any], name: str = "policy") -> type[Scheme]:
    """A policy as a scheme, for `race` and the other functions that take one.

    `policy` takes an observation of `StartEnv` and returns an action. It is called for every
    connection, in any order: one that keeps a state or draws random numbers changes the results
    from run to run. It is not checked before it races.

    >>> headstart.race(schemes=["iw10", headstart.gym.policy_scheme(lambda observation: [0.2, 0.5, 1])])
    """

    class Policy(_Steered):
        def act(self, observation: Any, now_s: float, is_end: bool) -> Any:
            return None if is_end else policy(observation)

    Policy.name = name
    return Policy


class StartEnv(gymnasium.Env):
    """The start of one flow; the module says how it is observed, steered and rewarded.

    `options` are those of `headstart.trace`; a list or tuple has values of which each episode draws
    one. The seed of `reset` determines all episodes until the next one. `reference` is the scheme
    of `reference_return`, and None for none: it costs a second run of each episode.

    >>> env = headstart.gym.StartEnv(rate=["5 Mbit/s", "50 Mbit/s"], rtt=["20 ms", "100 ms"])
    """

    metadata = {"render_modes": []}

    def __init__(
        self,
        *,
        loss_weight: float = 10.0,
        most_steps: int = 200,
        reference: str | None = "iw10",
        render_mode: None = None,
        **options: Any,
    ) -> None:
        self.observation_space = spaces.Box(_LOW, _HIGH, dtype=numpy.float32)
        self.action_space = spaces.Box(-1.0, 1.0, (_ACTIONS,), dtype=numpy.float32)
        self.render_mode = render_mode
        self._options, self._loss_weight, self._most_steps = options, loss_weight, most_steps
        self._reference = reference
        self._episode: _Episode | None = None
        self._stop: Callable[[], object] = lambda: None
        self._drawn: dict[str, Any] = {}
        self._steps = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begins a flow; `options` go before those of the environment."""
        super().reset(seed=seed)
        self.close()
        drawn = {"seed": int(self.np_random.integers(1, 2**31))}
        for name, value in {**self._options, **(options or {})}.items():
            is_choice = isinstance(value, (list, tuple))
            drawn[name] = value[int(self.np_random.integers(len(value)))] if is_choice else value
        self._episode, self._drawn, self._steps = _Episode(drawn, self._loss_weight), drawn, 0
        # The thread ends with the environment, also where nobody calls close.
        self._stop = weakref.finalize(self, self._episode.actions.put, None)
        observation, _, _ = self._episode.report()
        return observation, {"options": drawn}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Sets window and pace for the next round trip, or hands over for the rest of the flow."""
        if self._episode is None:
            raise RuntimeError("step: found no episode, expected a call of reset before it")
        self._episode.actions.put(_checked(action))
        self._steps += 1
        observation, reward, is_end = self._episode.report()
        is_truncated = not is_end and self._steps >= self._most_steps
        info: dict[str, Any] = {}
        if is_end or is_truncated:
            self.close()
            if self._reference is not None:
                info["reference_return"] = _return_of(self._reference, self._drawn, self._loss_weight)
        return observation, float(reward), is_end, is_truncated, info

    def close(self) -> None:
        """Gives up the flow."""
        self._stop()
        if self._episode is not None:
            self._episode.thread.join()
        self._episode = None


gymnasium.register(id="headstart/Start-v0", entry_point=StartEnv)
