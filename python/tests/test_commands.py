"""The functions against the commands of the same names: the same numbers, bytes and messages."""

import csv
import json
import math
import multiprocessing
import os
import pickle
import random
import re
import shlex
import signal
import struct
import sys
import threading
import time
from decimal import Decimal

import numpy
import pyarrow
import pytest

import headstart

SMALL = {"duration": "10 s", "repeats": 2, "schemes": ["iw10", "halfback"]}


def words(results):
    """The words of the command line of these results."""
    return shlex.split(results.command)[1:]


def rows(table):
    """Rows of an Arrow table as the command writes them into CSV."""
    cells = [["" if cell is None else cell for cell in column.to_pylist()] for column in pyarrow.table(table).columns]
    return [list(row) for row in zip(*cells)]


def same(row, fields):
    """True if the fields of CSV are the values of this row."""
    equal = [field == "" if value == "" else type(value)(field) == value for value, field in zip(row, fields)]
    return len(row) == len(fields) and all(equal)


def test_a_race_has_the_bytes_of_the_command(command):
    results = headstart.race(rate="15 Mbit/s", rtt="60 ms", seed=3, **SMALL)
    done = command(*words(results), "--format=json")
    assert done.returncode == 0, done.stderr
    # The command tells its own line, which has one word more.
    assert done.stdout.replace(" --format=json", "") == results.json


def test_the_table_of_a_race_is_its_document():
    results = headstart.race(**SMALL)
    document = json.loads(results.json)
    table = pyarrow.table(results)
    assert table.to_pylist() == document["schemes"]
    assert json.loads(results.table.metadata["conditions"]) == document["conditions"]
    metadata = {key.decode(): value.decode() for key, value in table.schema.metadata.items()}
    assert metadata == results.table.metadata
    assert (metadata["headstart"], metadata["command"]) == (headstart.__version__, results.command)
    assert table.schema.field("mean_ms").type == pyarrow.float64()
    assert table.schema.field("flows").type == pyarrow.uint64()
    seeds = pyarrow.table(results.seeds).to_pylist()
    assert [(row["scheme"], row["seed"]) for row in seeds] == [("iw10", 1), ("iw10", 2), ("halfback", 1), ("halfback", 2)]


def test_the_flows_of_a_race_are_the_bytes_of_the_command(command, tmp_path):
    ours, theirs = tmp_path / "ours.csv", tmp_path / "theirs.csv"
    results = headstart.race(flows=ours, **SMALL)
    theirs_words = [word for word in words(results) if not word.startswith("--flows")]
    done = command(*theirs_words, f"--flows={theirs}")
    assert done.returncode == 0, done.stderr
    assert ours.read_bytes() == theirs.read_bytes() and ours.stat().st_size > 10_000


def test_a_sweep_has_the_bytes_of_the_command(command, tmp_path):
    results = headstart.sweep(load_share=[0.05, 0.25], rtt=["20 ms", "60 ms"], **SMALL)
    done = command(*words(results), "--format=json")
    assert done.returncode == 0, done.stderr
    assert done.stdout.replace(" --format=json", "") == results.json
    assert len(results) == 2 * 2 * 2
    with (tmp_path / "headstart-sweep/seeds.csv").open(newline="") as file:
        header, *written = csv.reader(file)
    assert header == results.seeds.columns
    found = rows(results.seeds)
    assert len(found) == len(written) == 16
    assert all(same(row, fields) for row, fields in zip(found, written))
    assert "load_share" not in json.loads(results.table.metadata["conditions"]), "it varies"


def test_a_trace_has_the_events_of_the_command(command, tmp_path):
    results = headstart.trace("halfback", size="100 kB", beside=["iw10"])
    assert list(results.tables) == ["halfback", "iw10"]
    done = command(*words(results))
    assert done.returncode == 0, done.stderr
    with (tmp_path / "headstart-trace/events.csv").open(newline="") as file:
        header, *written = csv.reader(file)
    assert header == results.table.columns
    found = rows(results)
    assert len(found) == len(written) > 100
    assert all(same(row, fields) for row, fields in zip(found, written))


def test_capacities_are_those_of_the_document():
    results = headstart.capacity(duration="4 s", repeats=1, schemes="iw10", size="10 kB")
    assert list(results.tables) == ["capacity", "schemes", "seeds"]
    document = json.loads(results.json)["capacity"]
    curveless = [{name: value for name, value in row.items() if name != "curve"} for row in document]
    assert pyarrow.table(results).to_pylist() == curveless
    assert [row["scheme"] for row in document] == ["iw10"]


@pytest.mark.parametrize(
    ("number", "text"),
    [
        ({"rate_bits_per_s": 15e6}, {"rate": "15 Mbit/s"}),
        ({"rtt_s": 0.06}, {"rtt": "60 ms"}),
        ({"rtt_s": 0.0601}, {"rtt": "60.1 ms"}),
        ({"size_bytes": 10_000}, {"size": "10 kB"}),
        ({"buffer_packets": 104}, {"buffer": "104 packets"}),
        ({"load_share": 0.07}, {"load": "7 %"}),
        ({"background": 1, "long_share": 0.1}, {"background": 1, "long_share": "10 %"}),
    ],
)
def test_numbers_in_si_units_are_the_same_as_text(number, text):
    small = {**SMALL, "duration": "3 s", "repeats": 1}
    by_number, by_text = (headstart.race(**small, **options) for options in (number, text))
    assert pyarrow.table(by_number).to_pylist() == pyarrow.table(by_text).to_pylist()
    assert by_number.table.metadata["conditions"] == by_text.table.metadata["conditions"]


@pytest.mark.parametrize(
    "options",
    [{"rate": "15"}, {"rtt": "-3 ms"}, {"schemes": "iw10,nobody"}, {"duration": "1000000 h"}, {"plan": "missing.toml"}],
)
def test_what_the_command_refuses_is_a_value_error_with_its_message(command, options):
    ((name, value),) = options.items()
    with pytest.raises(ValueError) as refused:
        headstart.race(**options)
    done = command("race", f"--{name}={value}")
    assert done.returncode == 2
    # The parser of the command line names the option before, and gives advice behind.
    argument, said = str(refused.value).split(": ", 1)
    assert argument == name and said in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rate_bits_per_s": float("nan")}, "rate_bits_per_s: found nan, expected a finite number"),
        ({"rtt": object}, "rtt: found <class 'object'>, expected text or a number"),
        ({"out": "folder"}, "out: found an option for files"),
        ({"rtt": []}, "rtt: found an empty list, expected at least one value"),
        ({"rate": "1 Mbit/s", "repeats": 0}, "0"),
    ],
)
def test_values_that_are_no_option_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        headstart.race(**options)


def test_an_option_that_changes_nothing_is_a_warning():
    with pytest.warns(UserWarning, match="--reorder"):
        results = headstart.race(reorder=True, **SMALL)
    assert len(results.notes) == 1


def test_progress_is_reported_and_rises_while_other_threads_go_on():
    reports, counted, is_done = [], [0], threading.Event()
    long = {**SMALL, "duration": "1500 s", "repeats": 4}

    def count():
        while not is_done.wait(0.001):
            counted[0] += 1

    counter = threading.Thread(target=count)
    counter.start()
    try:
        headstart.race(**long, progress=lambda *report: reports.append((*report, counted[0])))
    finally:
        is_done.set()
        counter.join()
    assert len(reports) > 2
    shares = [share for _, _, _, share, _ in reports]
    assert shares == sorted(shares) and 0 <= shares[0] < shares[-1] <= 1
    assert reports[-1][4] > reports[0][4], "the lock of the interpreter is free meanwhile"


def test_calls_at_once_have_the_results_of_calls_one_after_the_other():
    seeds = [1, 2, 3]
    alone = [headstart.race(seed=seed, **SMALL).json for seed in seeds]
    found = {}
    threads = [
        threading.Thread(target=lambda seed=seed: found.update({seed: headstart.race(seed=seed, **SMALL).json}))
        for seed in seeds
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[seed] for seed in seeds] == alone


# It would go on for hours: that the test ends shows that the runs do.
LONG = {"duration": "1000000 s", "repeats": 4, "large": True, "schemes": ["iw10", "halfback"]}


def test_ctrl_c_stops_the_runs():
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        headstart.race(**LONG)
    assert len(headstart.race(**SMALL)) == 2, "the next call is not stopped"


def test_ctrl_c_stops_the_runs_of_a_paper():
    def interrupt(title, finished, *_):
        if title == "reproducing" and finished:
            os.kill(os.getpid(), signal.SIGINT)

    before = time.process_time()
    with pytest.raises(KeyboardInterrupt):
        headstart.reproduce("halfback", quick=True, progress=interrupt)
    assert time.process_time() - before < 20, "all runs take several times as long"


def test_scalars_of_numpy_are_switches():
    plain = {"duration": "5 s", "repeats": 1, "schemes": ["iw10"], "queue": "codel"}
    told = headstart.race(ecn=numpy.bool_(True), **plain)
    assert "--ecn" in told.command and told.json == headstart.race(ecn=True, **plain).json
    assert "--ecn" not in headstart.race(ecn=numpy.bool_(False), **plain).command


def test_results_are_pickled():
    results = headstart.race(**SMALL)
    again = pickle.loads(pickle.dumps(results))
    assert pyarrow.table(again) == pyarrow.table(results) and again.json == results.json
    assert again.table.metadata == results.table.metadata
    assert pyarrow.table(again.seeds) == pyarrow.table(results.seeds)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"rate": 15}, "rate: found `15`"),
        ({"trace": "nope.down"}, "trace: cannot read `nope.down`"),
        ({"schemes": b"iw10"}, "schemes: found bytes"),
        ({"schemes": {"iw10": 1}}, "schemes: found dict"),
        ({"rtt": "60 ms", "rtt_s": 0.06}, "rtt_s: found with rtt, expected one of them"),
    ],
)
def test_a_refusal_names_the_argument(options, said):
    with pytest.raises(ValueError, match=said):
        headstart.race(**options)


def test_an_exception_of_the_progress_function_stops_the_runs():
    def fail(*_):
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        headstart.sweep(load=["5%", "25%"], progress=fail, **LONG)


def test_a_paper_is_reproduced_as_by_the_command(command, tmp_path):
    results = headstart.reproduce("quick-start", figure=["3"], quick=True)
    done = command(*words(results))
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "headstart-reproduce/quick-start"
    names = {"claims", *(file.stem for file in folder.glob("figure-3-*.csv"))}
    assert set(results.tables) == names and len(names) > 1
    for name, table in results.tables.items():
        with (folder / f"{name}.csv").open(newline="") as file:
            header, *written = csv.reader(file)
        assert header == table.columns
        found = rows(table)
        assert len(found) == len(written) > 0
        assert all(same(row, fields) for row, fields in zip(found, written))
    assert "x_" in results.tables[max(names - {"claims"})].columns[2]


def test_papers_are_listed_and_others_refused(command):
    listed = pyarrow.table(headstart.reproduce()).to_pylist()
    assert {"paper": "halfback", "figure": "figure-12"}.items() <= listed[[r["figure"] for r in listed].index("figure-12")].items()
    for options, message in [
        ({"paper": "nobody"}, "found the paper `nobody`, expected one of"),
        ({"paper": "halfback", "figure": "99"}, "figure: found `99`"),
        ({"paper": "halfback", "out": "folder"}, "out: found an option"),
    ]:
        with pytest.raises(ValueError, match=message):
            headstart.reproduce(**options)
    done = command("reproduce", "nobody")
    assert done.returncode == 2 and "found the paper `nobody`" in done.stderr


@pytest.mark.parametrize(
    "schemes",
    [
        lambda: (one for one in ["iw10", "halfback"]),
        lambda: map(str.lower, ["IW10", "Halfback"]),
        lambda: filter(None, ["iw10", "halfback"]),
        lambda: dict.fromkeys(["iw10", "halfback"]).keys(),
    ],
)
def test_an_iterable_that_can_be_read_once_is_read_whole(schemes):
    found = headstart.race(**{**SMALL, "schemes": schemes()})
    assert [row["scheme"] for row in pyarrow.table(found).to_pylist()] == ["iw10", "halfback"]


def test_a_set_is_refused_since_its_order_changes():
    with pytest.raises(ValueError, match="schemes: found a set"):
        headstart.race(**{**SMALL, "schemes": {"iw10", "halfback"}})


@pytest.mark.parametrize("value", [0.05 * 3, 1 / 30, numpy.float64(0.06), numpy.float32(0.0625), numpy.linspace(0.1, 0.3, 3)[1]])
def test_doubles_and_scalars_of_numpy_are_numbers(value):
    found = headstart.race(**{**SMALL, "repeats": 1}, rtt_s=value, load_share=0.1)
    assert found.json
    assert headstart.race(**{**SMALL, "repeats": 1}, load_share=value).json


def test_any_double_by_its_bits_is_the_nearest_nanosecond_or_refused_by_name():
    draw = random.Random(1)
    doubles = [struct.unpack("<d", draw.randbytes(8))[0] for _ in range(3000)]
    doubles += [10 ** draw.uniform(-12, 6) for _ in range(3000)] + [0.0, -0.0, 5e-324, 1e22, sys.float_info.max]
    for value in doubles:
        if not math.isfinite(value):
            with pytest.raises(ValueError, match="^rtt_s: found .*, expected a finite number"):
                headstart._words({"rtt_s": value})
            continue
        if value < 0 or 0 < Decimal(value) * 10**9 <= Decimal("0.5"):
            with pytest.raises(ValueError, match="^rtt_s: found .*, expected 0 or"):
                headstart._words({"rtt_s": value})
            continue
        (word,) = headstart._words({"rtt_s": value})
        text = re.fullmatch(r"--rtt=([0-9]+(\.[0-9]+)?)ns", word).group(1)
        exact = Decimal(value) * 10**9
        assert abs(Decimal(text) - exact) <= Decimal("0.5") + abs(exact) / 10**14, (value, word)


def forked(_):
    return pyarrow.table(headstart.race(**SMALL)).num_rows


def test_a_forked_process_runs_with_several_threads():
    headstart.race(**SMALL)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.map_async(forked, [1]).get(60) == [2]


def test_a_scheme_that_calls_the_package_is_refused():
    class Caller(headstart.Scheme):
        """Races within a race."""

        def establish(self, prior):
            headstart.race(**SMALL)

        def on_ack(self, ack):
            return None

        def allowance(self):
            return headstart.Allowance(14480)

    with pytest.raises(RuntimeError, match="within a scheme"):
        headstart.race(**{**SMALL, "schemes": ["iw10", Caller]})
