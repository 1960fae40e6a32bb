"""Keywords of the functions: those of the command, in signatures, documentation and types."""

import datetime
import inspect
import json
import keyword
import os
import pathlib
import pydoc
import re
import subprocess
import sys
import warnings

import numpy
import pandas
import pytest

import headstart
from headstart import _keywords

STUB = pathlib.Path(__file__).parents[1] / "headstart/_options.pyi"
SETTINGS = pathlib.Path(__file__).parents[2] / "pyproject.toml"
SMALL = {"duration": "5 s", "repeats": 1, "schemes": ["iw10"]}


def test_the_types_of_keywords_are_those_of_the_declared_options():
    if os.environ.get("HEADSTART_WRITE_DOCS"):
        STUB.write_text(_keywords.stub())
    assert STUB.read_text() == _keywords.stub(), "HEADSTART_WRITE_DOCS=1 before the command writes it"


@pytest.mark.parametrize("name", ["race", "sweep", "trace", "reproduce"])
def test_every_option_that_help_of_the_command_lists_is_a_keyword(command, name):
    listed = set(re.findall(r"^ +(?:-., )?--([a-z0-9-]+)", command(name, "--help").stdout, re.MULTILINE))
    keywords = {word.replace("-", "_") for word in listed} - _keywords.NOT_HERE
    keywords = {word + "_" * keyword.iskeyword(word) for word in keywords}
    assert keywords == set(headstart.options(name)["name"]) and len(keywords) > 8


def test_signature_and_help_have_names_types_defaults_and_documentation():
    parameters = inspect.signature(headstart.race).parameters
    assert parameters["rate"].default == "15 Mbit/s" and parameters["rate"].annotation == "str | None"
    assert parameters["repeats"].default == 8 and parameters["ecn"].default is False
    assert parameters["rtt_ms"].annotation == "float | None" and "out" not in parameters
    assert all(one.kind is inspect.Parameter.KEYWORD_ONLY for one in parameters.values())
    assert list(inspect.signature(headstart.trace).parameters)[:2] == ["scheme", "progress"]
    text = pydoc.plain(pydoc.render_doc(headstart.race))
    for part in ("rate, rate_bits_per_s: str", "rtt, rtt_s, rtt_ms: str", "Rate of the bottleneck, from sender to receiver [default: 15"):
        assert part in text, text
    assert "capacity" not in inspect.signature(headstart.capacity).parameters


def test_defaults_of_the_signature_are_those_of_the_runs():
    given = {"rate": "15 Mbit/s", "rtt": "60 ms", "buffer": "115 kB", "load": "25 %", "size": "100 kB", "ecn": False}
    parameters = inspect.signature(headstart.race).parameters
    assert {name: parameters[name].default for name in given} == given
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert headstart.race(**given, **SMALL)["mean_ms"] == headstart.race(**SMALL)["mean_ms"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: headstart.race(rat="x"), r"race\(\) got an unexpected keyword argument 'rat'; did you mean 'rate'"),
        (lambda: headstart.capacity(scheme="iw10"), r"capacity\(\) .* did you mean 'schemes'"),
        (lambda: headstart.sweep(rtt_us=60), "did you mean 'rtt_[a-z]+'"),
        (lambda: headstart.trace("iw10", repeats=3), r"trace\(\) got an unexpected keyword argument 'repeats'"),
        (lambda: headstart.race(xyzzy=1), r"headstart.options\('race'\) lists them"),
    ],
)
def test_an_unknown_keyword_is_a_type_error_with_the_nearest_one(call, message):
    with pytest.raises(TypeError, match=message):
        call()


def test_milliseconds_and_seconds_are_the_same_times():
    by_ms, by_s = (headstart.race(**SMALL, **times) for times in ({"rtt_ms": 60.5}, {"rtt_s": 0.0605}))
    assert by_ms.command == by_s.command and "60500000ns" in by_ms.command


def test_an_option_that_may_be_repeated_takes_a_list():
    hops = headstart.race(**SMALL, hop=["10mbit/5ms/50kB", "20mbit/1ms/50kB"])
    assert hops.command.count("--hop=") == 2


def test_schemes_paths_and_options_are_tables(command):
    assert [row["path"] for row in headstart.paths()] == [
        row["path"] for row in json.loads(command("paths", "--format=json").stdout)["rows"]
    ]
    schemes = headstart.schemes()
    listed = json.loads(command("schemes", "--format=json").stdout)["rows"]
    assert schemes["scheme"] == [row["scheme"] for row in listed] and "headstart" in schemes["scheme"]
    assert "threshold" in " ".join(headstart.schemes("halfback")["parameter"])
    with pytest.raises(ValueError, match="nobody"):
        headstart.schemes("nobody")
    options = {row["name"]: row for row in headstart.options("sweep")}
    assert options["rtt"]["numbers"] == "rtt_s, rtt_ms" and options["rtt"]["default"] == "60 ms"
    with pytest.raises(ValueError, match="command: found 'demo', expected one of race"):
        headstart.options("demo")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: headstart.sweep(rtt_ms=numpy.ma.array([10, 20], mask=[0, 1])), "rtt_ms: found a masked value"),
        (lambda: headstart.race(rtt_ms=numpy.ma.masked), "rtt_ms: found a masked value"),
        (lambda: headstart.race(rtt_ms=numpy.timedelta64(50, "ns")), "rtt_ms: found a length of time, expected a number"),
        (lambda: headstart.race(rtt_ms=datetime.timedelta(1)), "rtt_ms: found a length of time, expected a number"),
        (lambda: headstart.race(rtt=numpy.timedelta64("NaT")), "rtt: found NaT, expected a length of time"),
        (lambda: headstart.race(rtt=numpy.datetime64("2026-01-01")), "rtt: found the date 2026-01-01"),
        (lambda: headstart.race(rtt=datetime.timedelta(seconds=-1)), "rtt: found a time of -1000000000 ns, expected 0"),
        (lambda: headstart.race(size_bytes=1.5), "size_bytes: found 1.5, expected whole bytes"),
        (lambda: headstart.race(buffer_packets=1.5), "buffer_packets: found 1.5, expected whole packets"),
        (lambda: headstart.race(rtt_s=1e-12), "rtt_s: found 1e-12, expected 0 or at least a nanosecond"),
        (lambda: headstart.race(load_share=1e-9), "load_share: found 1e-09, expected 0 or at least a millionth"),
        (lambda: headstart.race(rtt_ms=-1), "rtt_ms: found -1, expected 0 or more"),
        (lambda: headstart.race(rtt_ms=1e9), "rtt_ms: found `"),
        (lambda: headstart.race(rate_bits_per_s=1), "rate_bits_per_s: found `1bit/s`"),
        (lambda: headstart.race(rate_bits_per_s="15e6"), "rate_bits_per_s: found '15e6', expected a number"),
        (lambda: headstart.race(repeats=True), "repeats: found True, expected text or a number"),
        (lambda: headstart.race(rate=True), "rate: found True, expected text or a number"),
        (lambda: headstart.race(seed=False), "seed: found False, expected text or a number"),
        (lambda: headstart.race(ecn="yes"), "ecn: found 'yes', expected True or False"),
        (lambda: headstart.race(ecn=1), "ecn: found 1, expected True or False"),
        (lambda: headstart.race(trace="nope.down"), "trace: cannot read `nope.down`"),
        (lambda: headstart.assess("nope"), "schemes: found `nope`"),
        (lambda: headstart.schemes("nope"), "name: found `nope`"),
        (lambda: headstart.trace("nope"), "scheme: found `nope`"),
        (lambda: headstart.sweep(executor="dask"), "executor: found 'dask', expected an executor"),
        (lambda: headstart.sweep_blocks("x", executor=1), "executor: found 1, expected an executor"),
    ],
)
def test_a_value_that_would_become_another_is_refused_by_the_name_that_was_written(call, said):
    with pytest.raises(ValueError, match=f"^{re.escape(said)}"):
        call()


@pytest.mark.parametrize(
    "times",
    [
        [datetime.timedelta(milliseconds=50), datetime.timedelta(milliseconds=60)],
        numpy.array([50, 60], dtype="timedelta64[ms]"),
        numpy.array([50_000_000, 60_000_000], dtype="timedelta64[ns]"),
        pandas.Series([50, 60], dtype="timedelta64[ms]"),
    ],
)
def test_a_length_of_time_keeps_its_unit(times):
    assert "--rtt=50000000ns,60000000ns" in headstart.sweep(rtt=times, **SMALL).command


def test_a_file_name_that_is_not_utf_8_is_read(tmp_path):
    entry = {"startedDateTime": "2024-01-01T00:00:00", "request": {"url": "https://a.example/"}}
    entry["response"] = {"status": 200, "bodySize": 20_000}
    name = os.fsencode(tmp_path) + b"/n\xff.har"
    with open(name, "w") as file:
        json.dump({"log": {"entries": [entry]}}, file)
    (listed,) = os.listdir(tmp_path)
    for har in (tmp_path / listed, name, os.fspath(tmp_path / listed)):
        assert headstart.race(har=har, **SMALL)["mean_ms"][0] > 0
    with pytest.raises(ValueError, match="^har: found a file name that is not UTF-8"):
        headstart.sweep(har=name, **SMALL)
    with pytest.raises(ValueError, match="^flows: found a file name that is not UTF-8"):
        headstart.race(flows=name, **SMALL)


TYPED = """
import headstart

headstart.race(rate="15 Mbit/s", rtt_ms=60, schemes=["iw10", "halfback"], repeats=4, ecn=True, threads=None)
headstart.sweep(load_share=[0.05, 0.25], rtt=["20 ms", "60 ms"])
means: list[float] = headstart.race(duration="5 s")["mean_ms"]
for row in headstart.options():
    print(row["name"])
"""
REFUSED = {
    'headstart.race(rat="x")': 'Unexpected keyword argument "rat"',
    "headstart.race(rate=15)": 'Argument "rate" to "race" has incompatible type "int"',
    'headstart.race(repeats="many")': 'Argument "repeats" to "race" has incompatible type "str"',
    'headstart.trace("iw10", repeats=2)': 'Unexpected keyword argument "repeats"',
}


def test_mypy_refuses_what_is_no_keyword_or_of_another_type(tmp_path):
    file = tmp_path / "typed.py"
    lines = [TYPED.strip(), *REFUSED]
    file.write_text("\n".join(lines))
    site = pathlib.Path(headstart.__file__).parents[1]
    # The settings leave out packages whose types take a minute to read.
    mypy = [sys.executable, "-m", "mypy", "--config-file", str(SETTINGS), str(file)]
    settings = {**os.environ, "MYPYPATH": str(site)} if site.name != "site-packages" else None
    done = subprocess.run(mypy, cwd=tmp_path, env=settings, capture_output=True, text=True, timeout=300)
    found = [line for line in done.stdout.splitlines() if line.startswith("typed.py") and "error" in line]
    first = TYPED.strip().count("\n") + 2
    assert [int(line.split(":")[1]) for line in found] == [first + at for at in range(len(REFUSED))], done.stdout
    for line, message in zip(found, REFUSED.values()):
        assert message in line
