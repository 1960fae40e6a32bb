"""Properties that every scheme must have, and schemes that do not have them."""

import itertools
import pathlib
import random
import re
import sys

import pytest

import headstart
from headstart import Allowance, FlightPlan, HandOver


class Fine(headstart.Scheme):
    """Slow start from ten segments."""

    def establish(self, prior):
        self.window = 10 * prior.mss_bytes
        return FlightPlan(self.window)

    def on_ack(self, ack):
        if ack.is_window_limited and not ack.in_recovery:
            self.window += ack.newly_acked_bytes

    def allowance(self):
        return Allowance(self.window)


def test_a_scheme_that_keeps_the_contract_passes():
    done = []
    headstart.check(Fine, cases=60, progress=lambda *report: done.append(report))
    assert done == [(number, 60) for number in range(1, 61)]


def test_a_bar_shows_the_cases_that_are_done(capsys):
    headstart.check(Fine, cases=3, progress=True)
    assert "checking: 3 of 3 runs" in capsys.readouterr().err


class Random(Fine):
    """Draws its window from a source that is not the run's."""

    def establish(self, prior):
        self.window = random.choice((2, 60)) * prior.mss_bytes
        return FlightPlan(self.window)


class Shared(Fine):
    """Connections of one run change those of the next."""

    windows = itertools.cycle((2, 60))

    def establish(self, prior):
        self.window = next(self.windows) * prior.mss_bytes
        return FlightPlan(self.window)


class Shrinking(Fine):
    """Halves its window at each loss and never hands over."""

    def on_congestion(self, signal):
        self.window //= 2

    def on_timeout(self, timeout):
        self.window //= 2


class Trusting(Fine):
    """Takes for granted that there is a history."""

    def establish(self, prior):
        self.window = max(prior.history.window_bytes, prior.mss_bytes)
        return FlightPlan(self.window)


class Paced(Fine):
    """Divides by a rate that may be zero or absent."""

    def on_ack(self, ack):
        return HandOver.avoiding(int(ack.rate_bytes_per_s * ack.min_rtt_s))


# Three runs of a case are compared: two alike, and one that is recorded.
UNEQUAL = "the same seed gave other (flows|events)|the recorder changed the run"


@pytest.mark.parametrize(
    ("scheme", "message", "cause"),
    [
        (Random, UNEQUAL, type(None)),
        (Shared, UNEQUAL, type(None)),
        (Shrinking, "shrinking.allowance: found a window of", ValueError),
        (Trusting, "AttributeError", AttributeError),
        (Paced, "expected", (TypeError, ValueError)),
    ],
)
def test_a_broken_scheme_is_found_with_its_seed(scheme, message, cause):
    with pytest.raises(headstart.PropertyError, match=message) as found:
        headstart.check(scheme, cases=60)
    assert isinstance(found.value.__cause__, cause)
    # A scheme that draws random numbers may be found out by other words the second time.
    with pytest.raises(headstart.PropertyError, match=f"seed {found.value.seed}:|the same seed gave another"):
        # Both runs of a case may draw the same windows.
        for _ in range(40):
            headstart.check(scheme, cases=1, seed=found.value.seed)


class Stuck(Fine):
    """Keeps one segment for ever."""

    def establish(self, prior):
        self.window = prior.mss_bytes
        return FlightPlan(self.window)

    def on_ack(self, ack):
        return None


class Ten(Stuck):
    """Keeps ten segments for ever."""

    def establish(self, prior):
        self.window = 10 * prior.mss_bytes
        return FlightPlan(self.window)


class Deaf(Stuck):
    """Keeps a window of 1 GB whatever is lost."""

    def establish(self, prior):
        self.window = 10**9
        return FlightPlan(self.window)

    def on_congestion(self, signal):
        return None

    def on_timeout(self, timeout):
        return None


class Starved(Fine):
    """Has a window, and one byte per second."""

    def allowance(self):
        return Allowance(self.window, 1)


@pytest.mark.parametrize(
    ("scheme", "message"),
    [
        (Stuck, r"^stuck\.allowance: window_bytes: found 1448 at first and 1448 at most: a flow of 10 MB alone .* took "),
        (Ten, r"^ten\.allowance: window_bytes: found 14480 at first and 14480 at most: .* expected 8.4 s at most"),
        (Deaf, r"^deaf\.on_congestion: window_bytes: found 1000000000 at most: .* lost .* packets, expected 20 % at most"),
        (Starved, r"^starved\.allowance: pace_bytes_per_s: found 1: a flow of 10 MB alone"),
    ],
)
def test_a_scheme_that_delivers_everything_but_is_stuck_deaf_or_starved_fails(scheme, message):
    with pytest.raises(headstart.PropertyError, match=message):
        headstart.check(scheme, cases=3)


def test_two_runs_that_differ_are_told_in_words():
    with pytest.raises(headstart.PropertyError, match=f"random: seed .*: ({UNEQUAL}).*: a scheme draws no random numbers") as found:
        headstart.check(Random, cases=60)
    assert "left ==" not in str(found.value) and "properties.rs" not in str(found.value)


@pytest.mark.parametrize("scheme", [Stuck, Ten, Deaf, Starved, Random])
def test_what_a_check_refuses_does_not_race_unless_its_class_says_so(scheme):
    options = {"schemes": ["iw10", scheme], "duration": "2 s", "repeats": 1}
    with pytest.raises(headstart.PropertyError, match=rf"^{scheme.name}[.:].*`is_checked = False` in the class lets it"):
        # Two runs may draw the same windows.
        for _ in range(40):
            headstart._scheme._admitted.discard(scheme)
            headstart.race(**options)
    with pytest.raises(headstart.PropertyError):
        for _ in range(40):
            headstart._scheme._admitted.discard(scheme)
            headstart.sweep(load=["5 %", "10 %"], **options)
    assert len(headstart.trace(scheme, size="10 kB")) > 0, "a trace shows what is wrong"
    unchecked = type(scheme.__name__, (scheme,), {"is_checked": False})
    assert headstart.race(**{**options, "schemes": [unchecked]})["mean_ms"][0] > 0


class Negative(Fine):
    """A window below zero."""

    def allowance(self):
        return Allowance(-1)


class Fraction(Fine):
    """A window that is a double."""

    def establish(self, prior):
        self.window = 20 * float(prior.mss_bytes)
        return FlightPlan(self.window)


class Endless(Fine):
    """Hands over a window beyond any path."""

    def on_ack(self, ack):
        return HandOver.growing(2**70)


@pytest.mark.parametrize(
    ("scheme", "kind", "field", "place"),
    [
        (Negative, ValueError, "window_bytes: found -1, expected 1 to 1099511627776", "in negative.allowance"),
        (Fraction, TypeError, "flight_bytes: found 28960.0, expected a whole number of bytes", "in fraction.establish"),
        (Endless, ValueError, "window_bytes: found 1180591620717411303424, expected 1 to", "in endless.on_ack"),
    ],
)
def test_a_wrong_answer_is_told_with_class_method_and_field(scheme, kind, field, place):
    with pytest.raises(headstart.PropertyError, match=re.escape(field)) as found:
        headstart.check(scheme, cases=3)
    assert place in str(found.value) or sys.version_info < (3, 11)
    with pytest.raises(kind, match=re.escape(field)):
        headstart.race(schemes=[scheme], duration="5 s", repeats=1)


@pytest.mark.parametrize("wrong", [{"cases": 0}, {"cases": -1}, {"cases": 1.5}, {"cases": True}, {"seed": -1}])
def test_a_check_of_nothing_is_refused(wrong):
    ((name, value),) = wrong.items()
    with pytest.raises(ValueError, match=f"^{name}: found {value}, expected a whole number of at least [01]$"):
        headstart.check(Fine, **wrong)


def test_only_classes_of_schemes_are_checked():
    for wrong in ("iw10", object, Fine()):
        with pytest.raises(ValueError, match="expected a class derived from headstart.Scheme"):
            headstart.check(wrong)


VECTORS = pathlib.Path(__file__).parents[2] / "vectors"


def test_slow_start_in_python_has_the_answers_of_the_vectors_of_iw10():
    assert headstart.replay(Fine, (VECTORS / "iw10.txt").read_text()) == 84


def test_another_answer_than_that_of_the_vectors_is_shown_with_its_line():
    with pytest.raises(AssertionError, match=r"fine: line 6: begin .*: found burst=12000 .*, expected burst=2400 "):
        headstart.replay(Fine, (VECTORS / "iw2.txt").read_text())


@pytest.mark.parametrize("vectors", ["acked 0 0", "begin packet=9", "begin packet=1200 packets=5 rtt=5 known=x"])
def test_vectors_of_another_form_are_refused(vectors):
    with pytest.raises(ValueError, match=r"vectors: line \d: found .*, expected"):
        headstart.replay(Fine, vectors)
    with pytest.raises(ValueError, match="vectors: found bytes, expected the text"):
        headstart.replay(Fine, vectors.encode())
