"""Schemes that are written in Python."""

from __future__ import annotations

import copyreg
import re
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import ClassVar, SupportsIndex

from . import _native
from ._native import Ack, Allowance, Congestion, FlightPlan, HandOver, Prior, Timeout
from ._progress import reported


def _flight_plan(flight_bytes: int, burst_bytes: int, pace_bytes_per_s: int | None) -> FlightPlan:
    return FlightPlan(flight_bytes, burst_bytes=burst_bytes, pace_bytes_per_s=pace_bytes_per_s)


def _hand_over_as(how: HandOver) -> Callable[[int], HandOver]:
    if how.cut:
        return HandOver.to_be_cut
    return HandOver.growing if how.ssthresh_bytes is None else HandOver.avoiding


# Answers of a scheme can be pickled and copied: they are made again.
copyreg.pickle(FlightPlan, lambda it: (_flight_plan, (it.flight_bytes, it.burst_bytes, it.pace_bytes_per_s)))
copyreg.pickle(Allowance, lambda it: (Allowance, (it.window_bytes, it.pace_bytes_per_s)))
copyreg.pickle(HandOver, lambda it: (_hand_over_as(it), (it.window_bytes,)))


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
    is_checked: ClassVar[bool] = True
    """False lets it race although `check` finds it stuck, deaf to loss, starved or random."""

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


class PropertyError(AssertionError):
    """A property that every scheme must have does not hold."""

    def __init__(self, found: str, seed: int = 0) -> None:
        super().__init__(found)
        self.seed = seed
        """The case again: `check(scheme, cases=1, seed=error.seed)`."""


def check(
    scheme: type[Scheme],
    *,
    cases: int = 200,
    seed: int = 0,
    progress: bool | Callable[[int, int], object] | None = None,
) -> None:
    """Tests the properties that every scheme must have, over drawn paths, hosts and transfers.

    They are those that the schemes of the catalogue are tested for. All data is delivered once
    whatever is lost, with no storm of retransmissions. No window is below a segment, and no copy
    beyond its budget. Another run of the same seed has the same events. No history and no hint,
    however wrong, changes that. Then a flow alone on each of two paths, always the same, keeps
    bounds on time and loss (docs/python.md). So the window grows, and losses are answered.

    `cases` is the number of cases, the first drawn by `seed`, each other by the next number.
    `progress` is True for a bar by tqdm, or takes the numbers of cases that are done and of all.

    Raises PropertyError with the first property that does not hold and its seed, or with the bound
    and the method and field that broke it. An exception of the scheme is its cause.

    >>> headstart.check(Mine, progress=True)
    """
    _checked(scheme)
    for name, value, least in (("cases", cases, 1), ("seed", seed, 0)):
        if isinstance(value, bool) or not isinstance(value, SupportsIndex) or value < least:
            raise ValueError(f"{name}: found {value!r}, expected a whole number of at least {least}")
    with reported(progress is True) as bar:
        for number in range(cases):
            with _failing(scheme, seed + number):
                found_property = _native.check_case(scheme, seed + number)
            if found_property:
                # Behind it is the line of the sources, which says nothing of the scheme.
                text = re.sub(r" at \S+\.rs:\d+$", "", found_property[0]) + f"\nin the case {found_property[1]}"
                raise PropertyError(f"{scheme.name}: seed {seed + number}: {text}", seed + number)
            if bar:
                bar("checking", number + 1, cases, (number + 1) / cases)
            elif callable(progress):
                progress(number + 1, cases)
    with _failing(scheme, seed):
        broken = _native.check_bounds(scheme)
    if broken:
        raise PropertyError(_broken(scheme, broken), seed)
    _admitted.add(scheme)


_admitted: weakref.WeakSet[type[Scheme]] = weakref.WeakSet()
"""Classes that keep the bounds."""


def admit(classes: Iterable[type[Scheme]]) -> None:
    """Refuses classes that do not keep the bounds of `check`: their numbers would mislead."""
    for scheme in classes:
        if not scheme.is_checked or scheme in _admitted:
            continue
        try:
            broken = _native.check_bounds(scheme)
        except Exception:
            # The run itself raises it, if it comes to that.
            continue
        if broken:
            raise PropertyError(f"{_broken(scheme, broken)} (`is_checked = False` in the class lets it race)")
        _admitted.add(scheme)


def _broken(scheme: type[Scheme], found: str) -> str:
    """The bound that does not hold, behind the class and the method that broke it."""
    is_of_method = found.partition(":")[0].isidentifier()
    return f"{scheme.name}{'.' if is_of_method else ': '}{found}"


@contextmanager
def _failing(scheme: type[Scheme], seed: int) -> Iterator[None]:
    """An exception of the scheme is the cause of a PropertyError, with its class and method."""
    try:
        yield
    except Exception as error:
        places = "".join(f" ({note})" for note in getattr(error, "__notes__", []))
        raise PropertyError(f"{scheme.name}: seed {seed}: {type(error).__name__}: {error}{places}", seed) from error


def replay(scheme: type[Scheme], vectors: str) -> int:
    """Plays conformance vectors on a scheme; returns the number of answers compared.

    `vectors` is the text of a file of `vectors/`, whose form docs/conformance.md defines: packets
    that are sent, acknowledged and lost, with the window and pace that follow.

    Raises AssertionError with the first line whose answer is another one, and ValueError with a
    line of another form.

    >>> headstart.replay(Mine, pathlib.Path("vectors/iw10.txt").read_text())
    """
    _checked(scheme)
    if not isinstance(vectors, str):
        raise ValueError(f"vectors: found {type(vectors).__name__}, expected the text of a file of vectors")
    compared, differs = _native.replay(scheme, vectors)
    if differs:
        raise AssertionError(f"{scheme.name}: {differs}")
    return compared


def _checked(scheme: object) -> None:
    if not (isinstance(scheme, type) and issubclass(scheme, Scheme)):
        raise ValueError(f"scheme: found {scheme!r}, expected a class derived from headstart.Scheme")
