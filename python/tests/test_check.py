"""Properties that every scheme must have, and schemes that do not have them."""

import itertools
import pathlib
import random

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
    with pytest.raises(headstart.PropertyError, match=f"seed {found.value.seed}:"):
        # Both runs of a case may draw the same windows.
        for _ in range(40):
            headstart.check(scheme, cases=1, seed=found.value.seed)


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
