"""Schemes that are written in Python."""

from __future__ import annotations

import re
from typing import ClassVar

from ._native import Ack, Allowance, Congestion, FlightPlan, HandOver, Prior, Timeout


class Scheme:
    """A start-up scheme: derive from it and pass the class among the schemes of a call.

    It owns the window from the first byte until it hands over to the congestion controller. Each
    connection has an object of its own, made without arguments. Its methods are told events and
    their times; it reads no clock and draws no random numbers, or the same seed no longer gives the
    same results. Sizes are whole numbers of bytes, times floats in seconds, rates in bytes per
    second.

    >>> class Spread(headstart.Scheme):
    ...     def establish(self, prior):
    ...         self.window = 20 * prior.mss_bytes
    ...         return headstart.FlightPlan(self.window, pace_bytes_per_s=self.window / prior.handshake_rtt_s)
    ...
    ...     def on_ack(self, ack):
    ...         return headstart.HandOver.avoiding(self.window)
    ...
    ...     def allowance(self):
    ...         return headstart.Allowance(self.window)
    >>> headstart.race(schemes=["iw10", Spread])
    """

    name: ClassVar[str] = ""
    """Its name in results: by default that of the class, with hyphens and in lower case."""
    needs: ClassVar[str] = ""
    """Prior knowledge beyond the handshake: "", "flow size", "history", "hint" or "routers"."""

    def __init_subclass__(cls, **arguments: object) -> None:
        super().__init_subclass__(**arguments)
        if "name" not in cls.__dict__:
            words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", cls.__name__)
            cls.name = words.replace("_", "-").strip("-").lower()

    def establish(self, prior: Prior) -> FlightPlan:
        """The connection is established. Returns the plan of the first flight."""
        raise NotImplementedError(f"{type(self).__name__}.establish")

    def on_ack(self, ack: Ack) -> HandOver | None:
        """Data was newly acknowledged. Returns None to stay in charge."""
        raise NotImplementedError(f"{type(self).__name__}.on_ack")

    def on_congestion(self, signal: Congestion) -> HandOver | None:
        """Data was lost or CE-marked; on the same ack this comes before `on_ack`.

        By default the base controller takes over and cuts the window.
        """
        return HandOver.to_be_cut(self.allowance().window_bytes)

    def on_timeout(self, timeout: Timeout) -> HandOver | None:
        """The retransmission timer expired.

        By default the base controller takes over and cuts the window.
        """
        return HandOver.to_be_cut(self.allowance().window_bytes)

    def allowance(self) -> Allowance:
        """Window and pace at this moment; called after each event, and changes nothing."""
        raise NotImplementedError(f"{type(self).__name__}.allowance")
