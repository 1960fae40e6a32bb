"""Schemes that are classes of Python, beside those of the catalogue."""

import copy
import gc
import os
import pickle
import signal
import threading
import time
import traceback
import weakref

import pyarrow
import pytest

import headstart
from headstart import Allowance, FlightPlan, HandOver

SMALL = {"duration": "10 s", "repeats": 2}


class SlowStart(headstart.Scheme):
    """As iw10 of the catalogue."""

    def establish(self, prior):
        self.window = 10 * prior.mss_bytes
        return FlightPlan(self.window)

    def on_ack(self, ack):
        if ack.is_window_limited and not ack.in_recovery:
            self.window += ack.newly_acked_bytes

    def allowance(self):
        return Allowance(self.window)


class Spread(headstart.Scheme):
    """The example of docs/a-new-scheme.md."""

    def establish(self, prior):
        self.window = 20 * prior.mss_bytes
        self.pace = self.window / prior.handshake_rtt_s
        return FlightPlan(self.window, burst_bytes=prior.mss_bytes, pace_bytes_per_s=self.pace)

    def on_ack(self, ack):
        return HandOver.avoiding(self.window)

    def allowance(self):
        return Allowance(self.window, self.pace)


def test_answers_of_schemes_are_pickled_and_copied():
    answers = {
        FlightPlan: [FlightPlan(14_480), FlightPlan(14_480, burst_bytes=1448, pace_bytes_per_s=1e6)],
        Allowance: [Allowance(14_480), Allowance(14_480, 1e6)],
        HandOver: [HandOver.to_be_cut(2896), HandOver.growing(2896), HandOver.avoiding(2896)],
    }
    for kind, ones in answers.items():
        names = [name for name in dir(kind) if isinstance(getattr(ones[0], name), (int, float, type(None)))]
        for one in ones:
            for again in [pickle.loads(pickle.dumps(one)), copy.deepcopy(one)]:
                assert type(again) is kind
                assert [getattr(again, name) for name in names] == [getattr(one, name) for name in names]


def rows(results):
    return pyarrow.table(results).to_pylist()


def test_slow_start_in_python_has_the_numbers_of_slow_start():
    found = headstart.race(schemes=["iw10", "halfback", SlowStart], **SMALL)
    theirs, other, ours = rows(found)
    assert (theirs["scheme"], other["scheme"], ours["scheme"]) == ("iw10", "halfback", "slow-start-python")
    different = {name for name, value in theirs.items() if value != ours[name]}
    assert different <= {"scheme", "verdict", "harm", "harm_low", "harm_high"} | {n for n in theirs if "p_value" in n}, different


SlowStart.name = "slow-start-python"


def test_the_same_seed_gives_the_same_bytes_with_any_number_of_threads():
    options = {"schemes": ["iw10", Spread, SlowStart], "loss": "1 %", **SMALL}
    first = headstart.race(threads=1, **options)
    second = headstart.race(threads=3, **options)
    assert first.json.replace("--threads=1", "") == second.json.replace("--threads=3", "")
    assert rows(first)[0] == rows(headstart.race(schemes=["iw10"], loss="1 %", **SMALL))[0], "others are not affected"


def test_traces_sweeps_and_capacities_take_classes():
    traced = headstart.trace(Spread, beside=["iw10", SlowStart], size="100 kB")
    assert list(traced.tables) == ["spread", "iw10", "slow-start-python"]
    events = {name: pyarrow.table(table).to_pylist() for name, table in traced.tables.items()}
    without_phase = [[{**row, "phase": ""} for row in events[name]] for name in ("iw10", "slow-start-python")]
    assert without_phase[0] == without_phase[1]
    points = headstart.sweep(schemes=["iw10", Spread], load_share=[0.05, 0.25], **SMALL)
    assert [row["scheme"] for row in rows(points)] == ["iw10", "spread"] * 2
    found = headstart.capacity(schemes=[Spread], duration="4 s", repeats=1, size="10 kB")
    assert [row["scheme"] for row in rows(found)] == ["spread"]


def test_events_have_their_units_and_add_up():
    seen = []

    class Curious(SlowStart):
        name = "curious"

        def establish(self, prior):
            seen.append(prior)
            return super().establish(prior)

        def on_ack(self, ack):
            seen.append(ack)
            return super().on_ack(ack)

        def on_congestion(self, signal):
            seen.append(signal)
            return super().on_congestion(signal)

        def on_timeout(self, timeout):
            seen.append(timeout)
            return super().on_timeout(timeout)

    headstart.trace(Curious, size="200 kB", rate="5 Mbit/s", rtt="60 ms", buffer="10 p")
    prior, *events = seen
    assert prior.handshake_rtt_s == pytest.approx(0.06, rel=0.02)
    assert (prior.flow_size_bytes, prior.sendable_bytes) == (200_000, min(200_000, prior.receive_window_bytes))
    assert prior.history is None and prior.granted_bytes_per_s is None
    times = [event.now_s for event in seen]
    assert times == sorted(times)
    acks = [event for event in events if isinstance(event, headstart.Ack)]
    assert sum(ack.newly_acked_bytes for ack in acks) == acks[-1].delivered_bytes
    assert all(ack.min_rtt_s >= 0.06 for ack in acks)
    assert "smoothed_rtt_s=0." in repr(acks[-1])
    assert isinstance(events[-1], headstart.Congestion), "it hands over at the first loss"
    assert events[-1].is_loss and events[-1].lost_bytes > 0 and events[-1].opens_episode


def test_events_are_pickled_and_copied_and_those_of_other_versions_refused():
    seen = {}

    class Keeping(SlowStart):
        name, needs, is_checked = "keeping", "history", False

        def keep(self, event):
            seen[type(event)] = event

        def establish(self, prior):
            if prior.history is not None:
                self.keep(prior)
                self.keep(prior.history)
            return super().establish(prior)

        on_ack = on_congestion = on_timeout = keep

    headstart.race(schemes=[Keeping], loss="20 %", duration="30 s", repeats=1)
    assert len(seen) == 5
    for kind, event in seen.items():
        for again in [pickle.loads(pickle.dumps(event)), copy.deepcopy(event)]:
            assert type(again) is kind and repr(again) == repr(event)
        make, (name, fields) = event.__reduce__()
        for other in [(*fields, 1), fields[:-1], (), ("now", *fields[1:])]:
            with pytest.raises(ValueError, match=f"^{name}: found .*: the pickle is of another version than headstart "):
                make(name, other)


def test_a_history_is_in_the_prior_of_a_scheme_that_needs_it():
    records = []

    class Remembering(SlowStart):
        name, needs = "remembering", "history"

        def establish(self, prior):
            records.append(prior.history)
            return super().establish(prior)

    headstart.race(schemes=[Remembering], duration="60 s", repeats=1)
    known = [record for record in records if record is not None]
    assert known and all(record.bottleneck_bytes_per_s > 0 and record.min_rtt_s > 0 for record in known)


def test_an_exception_ends_the_runs_with_its_traceback():
    class Failing(SlowStart):
        name = "failing"

        def on_ack(self, ack):
            raise LookupError("not found")

    with pytest.raises(LookupError, match="not found") as raised:
        headstart.race(schemes=["iw10", Failing], **SMALL)
    assert "on_ack" in [frame.name for frame in traceback.extract_tb(raised.value.__traceback__)]
    assert len(headstart.race(schemes=["iw10"], **SMALL)) == 1, "the next call is not affected"


def change(**methods):
    """A class with these methods in place of those of slow start."""
    return type("Changed", (SlowStart,), {"name": "changed", **methods})


@pytest.mark.parametrize(
    ("scheme", "kind", "message"),
    [
        (change(allowance=lambda self: 14_480), TypeError, "changed.allowance: found 14480, expected an Allowance"),
        (change(on_ack=lambda self, ack: False), TypeError, "changed.on_ack: found False, expected None or a HandOver"),
        (change(establish=lambda self, prior: None), TypeError, "changed.establish: found None, expected a FlightPlan"),
        (change(establish=lambda self, prior: FlightPlan(1)), ValueError, "found a window of 1 bytes, expected at least"),
        (change(allowance=lambda self: Allowance(100)), ValueError, "changed.allowance: found a window of 100 bytes"),
        (change(allowance=lambda self: Allowance(0)), ValueError, "window_bytes: found 0, expected 1 to"),
        (change(allowance=lambda self: Allowance(9**9, 0.5)), ValueError, "pace_bytes_per_s: found 0.5, expected 1 to"),
        (change(allowance=lambda self: Allowance(9**9, float("nan"))), ValueError, "pace_bytes_per_s: found NaN"),
        (change(allowance=lambda self: Allowance(14480.5)), TypeError, "found 14480.5, expected a whole number of bytes"),
        (change(__init__=lambda self, more: None), TypeError, "more"),
        (change(name="Not a name"), ValueError, "name: found `Not a name`, expected a name of lower-case letters"),
        (change(name="halfback"), ValueError, "expected a name that no scheme of the catalogue has"),
        (change(needs="luck"), ValueError, "needs: found \"luck\", expected"),
        (headstart.Scheme, ValueError, "name"),
    ],
)
def test_an_answer_out_of_the_contract_is_refused(scheme, kind, message):
    with pytest.raises(kind, match=message):
        headstart.race(schemes=["iw10", scheme], **SMALL)


def test_two_schemes_of_one_name_are_refused():
    with pytest.raises(ValueError, match="found two schemes of this name"):
        headstart.race(schemes=[change(), change()], **SMALL)


def test_nothing_of_a_class_is_kept_after_its_call():
    class Gone(SlowStart):
        name = "gone"
        alive = 0

        def __init__(self):
            Gone.alive += 1

        def __del__(self):
            Gone.alive -= 1

    headstart.race(schemes=[Gone], **SMALL)
    gc.collect()
    assert Gone.alive == 0
    reference = weakref.ref(Gone)
    del Gone
    gc.collect()
    assert reference() is None


LONG = {"duration": "1000000 s", "repeats": 2, "large": True}


def interrupted(scheme):
    """Seconds from Ctrl-C until the call has ended."""
    sent = []

    def interrupt():
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.7, interrupt)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        headstart.race(schemes=["iw10", scheme], **LONG)
    assert sent
    return time.monotonic() - sent[0]


def test_ctrl_c_ends_a_scheme_that_calculates():
    interrupted(SlowStart)
    assert len(headstart.race(schemes=[SlowStart], **SMALL)) == 1


def test_ctrl_c_ends_a_method_that_does_not_return():
    def on_ack(self, ack):
        while True:
            pass

    interrupted(change(on_ack=on_ack))
    assert len(headstart.race(schemes=[SlowStart], **SMALL)) == 1


def test_a_class_is_assessed_beside_a_scheme_of_the_catalogue():
    found = headstart.assess(["iw10", Spread], quick=True, figure=["crowd"])
    assert found.table.columns == ["criterion", "source", "accepted", "figure", "scheme", "result", "found"]
    assert len(found.table) == 2
    with pytest.raises(ValueError, match="figure: found `nothing`, expected one of load, bufferbloat"):
        headstart.assess("iw10", figure=["nothing"])
    for wrong in [[], "-h", [3]]:
        with pytest.raises(ValueError, match="schemes: found .*, expected names"):
            headstart.assess(wrong)
