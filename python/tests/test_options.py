"""Keywords of the functions: those of the command, in signatures, documentation and types."""

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
