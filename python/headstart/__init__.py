"""Compare fast-start schemes of transport protocols in a packet simulator.

`race`, `sweep`, `trace`, `capacity` and `reproduce` are the commands of the same names. Their
keyword arguments are the options of the command with underscores for hyphens, with the same
defaults and meanings: `help(headstart.race)` and `headstart.options()` list them, and `schemes()`
and `paths()` list the names that they take.

- a quantity is text with its unit (`rate="15 Mbit/s"`, `rtt="60 ms"`, `size="100 kB"`,
  `load="25 %"`), or a number under a name that ends in the unit: `rate_bits_per_s=15e6`,
  `rtt_ms=60`, `rtt_s=0.06`, `size_bytes=100_000`, `buffer_packets=104`, `load_share=0.25`. A time
  is a `timedelta`, too;
- a switch is True or False (`ecn=True`), a count a whole number (`repeats=4`), None the default;
- a list is a sequence (`schemes=["iw10", "halfback"]`); in a sweep a sequence of values of any
  option is one of its dimensions;
- a scheme is named, or is a class derived from `Scheme`. One that `check` finds stuck, deaf to
  loss, starved or random is refused: PropertyError, unless its class has `is_checked = False`;
- a file is a path as text, as bytes or as a `Path`.

A keyword that is no option raises TypeError, a value that the command refuses ValueError with the
command's message. The same options and
seed give the same numbers as the command. Nothing is written, except the file of `flows`.
"""

from __future__ import annotations

import datetime
import json
import os
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from decimal import Decimal
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeGuard

from . import _native
from ._blocks import run_blocks, write_blocks
from ._keywords import NOT_HERE as _NOT_HERE
from ._keywords import UNITS as _UNITS
from ._keywords import bare as _bare
from ._keywords import described as _described
from ._keywords import files as _files
from ._keywords import options as _options
from ._keywords import repeated as _repeated
from ._keywords import switches as _switches
from ._native import Ack, Allowance, Congestion, FlightPlan, HandOver, Prior, Record, Timeout, __version__
from ._native import run as _run
from ._plot import Plot
from ._progress import Progress, reported
from ._scheme import PropertyError, Scheme, admit, check, replay
from ._tables import Rows, Table

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import AssessOptions, RaceOptions, ReproduceOptions, SweepOptions, TraceOptions

__all__ = [
    "Ack",
    "Allowance",
    "Congestion",
    "FlightPlan",
    "HandOver",
    "Plot",
    "Prior",
    "PropertyError",
    "Record",
    "Results",
    "Rows",
    "Scheme",
    "Table",
    "Timeout",
    "__version__",
    "assess",
    "capacity",
    "check",
    "options",
    "paths",
    "race",
    "replay",
    "reproduce",
    "schemes",
    "sweep",
    "sweep_blocks",
    "trace",
]

_native.library(_native.__file__)

# Options whose values contain commas: a list of them is separated by semicolons in a sweep.
_WITH_COMMAS = {"schemes", "burst_loss", "policer", "flows", "plan"}
# Steps of units: a double is taken for the nearest multiple of one.
_STEPS = {"bit/s": "1", "ns": "1", "%": "0.0001"}
# The least amount above zero of a unit of the command, or a unit that has no parts.
_LEAST = {"ns": ("1", "a nanosecond"), "%": ("0.0001", "a millionth"), "B": (None, "bytes"), "p": (None, "packets")}
# Arguments of the command that are no options, by the names of the functions.
_PLACES = {"NAMES": "schemes", "NAME": "name", "SCHEME": "scheme", "PAPER": "paper"}
# Their own names end as if in a unit: as a number they are shares.
_SHARES = {"long_share", "router_share"}


@dataclass(frozen=True)
class Results(Rows):
    """The results of a call: its main table as rows, and what belongs to it.

    pyarrow.table(results), pandas.DataFrame(results), polars.DataFrame(results) and DuckDB take it
    as it is.

    >>> results["mean_ms"], results.to_pandas(), [row["scheme"] for row in results]
    """

    tables: Mapping[str, Table] = field(repr=False)
    """All tables by name, the main one first."""
    command: str
    """The command line with the same results."""
    json: str | None = field(repr=False)
    """The document of `--format json`; None of a trace."""
    notes: tuple[str, ...]
    """Options that change nothing in these runs."""
    flows: str | None = None
    """The file of `flows`, if it was asked for: a row for each flow of a race."""

    @property
    def table(self) -> Table:
        """The main table."""
        return next(iter(self.tables.values()))

    @property
    def seeds(self) -> Table:
        """The numbers of every scheme and seed. A trace has none: KeyError."""
        return self.tables["seeds"]

    @property
    def answer(self) -> tuple[str, ...]:
        """Of a race: what to use, its gain and its cost to others, in at most three lines."""
        answer = json.loads(self.json).get("answer") if self.json else None
        return tuple(answer) if isinstance(answer, list) else ()

    @property
    def verdict(self) -> str | None:
        """Of a race: the fastest scheme, who harms, and why the slowest lose; else None."""
        verdict = json.loads(self.json).get("verdict") if self.json else None
        return verdict if isinstance(verdict, str) else None

    @property
    def plot(self) -> Plot:
        """Figures by matplotlib: `plane` and `cdf` of a race, `flow` of a trace."""
        return Plot(self.tables, self.flows)

    @property
    def _data(self) -> _native.Table:
        return self.table._data


def _is_scheme(value: object) -> TypeGuard[type[Scheme]]:
    return isinstance(value, type) and issubclass(value, Scheme)


def _listed(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options with every sequence as a list: generators are read once."""
    listed: dict[str, Any] = {}
    for name, value in options.items():
        if isinstance(value, (set, frozenset)):
            raise ValueError(f"{name}: found a set, whose order changes from run to run, expected a list")
        if isinstance(value, bytes) and name in _files():
            listed[name] = os.fsdecode(value)
            continue
        if isinstance(value, (bytes, bytearray, Mapping)):
            raise ValueError(f"{name}: found {type(value).__name__}, expected text, a number or a list of these")
        is_sequence = isinstance(value, Iterable) and not isinstance(value, str) and not _is_scheme(value)
        if is_sequence and getattr(value, "ndim", None) != 0:
            listed[name] = [_plain(name, one) for one in value]
        else:
            listed[name] = _plain(name, value)
    return listed


@dataclass(frozen=True)
class _Time:
    """A length of time, of whichever type."""

    nanoseconds: int


def _plain(name: str, value: Any) -> Any:
    """A scalar of numpy as one of Python, and a length of time of any type as `_Time`."""
    if isinstance(value, bytes) and name in _files():
        return os.fsdecode(value)
    if isinstance(value, datetime.timedelta):
        # That of pandas has nanoseconds, too.
        rest = value.microseconds * 1000 + getattr(value, "nanoseconds", 0)
        return _Time((value.days * 86_400 + value.seconds) * 10**9 + rest)
    if getattr(value, "ndim", None) != 0 or not hasattr(value, "item"):
        return value
    if getattr(value, "mask", False):
        raise ValueError(f"{name}: found a masked value, expected values without a mask")
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    if kind == "m":
        # `item` gives a plain number of the type's unit, or none.
        nanoseconds = value.astype("timedelta64[ns]").item()
        if nanoseconds is None:
            raise ValueError(f"{name}: found {value}, expected a length of time")
        return _Time(nanoseconds)
    if kind == "M":
        raise ValueError(f"{name}: found the date {value}, expected a length of time")
    return value.item()


def _classes(*values: object) -> list[type[Scheme]]:
    """The classes among values and sequences of values, each once."""
    flat = [one for value in values for one in (value if isinstance(value, (list, tuple)) else [value])]
    return list(dict.fromkeys(one for one in flat if _is_scheme(one)))


def _admitted(*values: object) -> list[type[Scheme]]:
    """The classes, of which none is refused."""
    classes = _classes(*values)
    admit(classes)
    return classes


def _text(name: str, value: object, factor: int = 1, unit: str = "") -> str:
    """One value as the command spells it."""
    if isinstance(value, str):
        if unit:
            raise ValueError(f"{name}: found {value!r}, expected a number")
        return value
    if isinstance(value, _Time):
        if unit:
            raise ValueError(f"{name}: found a length of time, expected a number: the name without its unit takes it")
        if value.nanoseconds < 0:
            raise ValueError(f"{name}: found a time of {value.nanoseconds} ns, expected 0 or more")
        return f"{value.nanoseconds}ns"
    if _is_scheme(value):
        return value.name
    if isinstance(value, bool) or value is None:
        raise ValueError(f"{name}: found {value!r}, expected text or a number")
    if isinstance(value, PathLike):
        return os.fsdecode(value)
    try:
        # Fifteen digits: 0.06 s is 60 ms, and so are 0.05 * 3 s 150 ms, which are a little more.
        number = Decimal(f"{value:.15g}" if isinstance(value, float) else str(value)) * factor
        # Larger ones have no digits of a step, and the command refuses them.
        has_step = isinstance(value, float) and number.is_finite() and abs(number) < 10**20
        if has_step and (step := _STEPS.get(unit)):
            number = number.quantize(Decimal(step)) or number
    except ArithmeticError:
        raise ValueError(f"{name}: found {value!r}, expected text or a number") from None
    if not number.is_finite():
        raise ValueError(f"{name}: found {value!r}, expected a finite number")
    if number < 0:
        raise ValueError(f"{name}: found {value!r}, expected 0 or more")
    if unit in _LEAST:
        least, of = _LEAST[unit]
        if least is None and number != number.to_integral_value():
            raise ValueError(f"{name}: found {value!r}, expected whole {of}")
        if least is not None and 0 < number < Decimal(least):
            raise ValueError(f"{name}: found {value!r}, expected 0 or at least {of}")
    text = f"{abs(number):f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) or "0"


_ODD = "found a file name that is not UTF-8, expected text"


def _is_odd(word: str) -> bool:
    """True if it has bytes that are no text, as os.fsdecode gives them (PEP 383)."""
    return not word.isascii() and any("\udc80" <= letter <= "\udcff" for letter in word)


class _Words(list[str]):
    """Words of a command line, and the keywords of their options."""

    names: dict[str, str]


def _words(options: Mapping[str, Any], is_sweep: bool = False) -> _Words:
    """The options as words of a command line."""
    words, names = _Words(), dict[str, str]()
    words.names = names
    for name, value in options.items():
        if name in _NOT_HERE:
            raise ValueError(f"{name}: found an option for files or output of the command, expected one of its runs")
        if value is None:
            continue
        is_switch = name.rstrip("_") in _switches()
        if is_switch != isinstance(value, bool):
            expected = "True or False" if is_switch else "text or a number"
            raise ValueError(f"{name}: found {value!r}, expected {expected}")
        if value is False:
            continue
        end = next((end for end in _UNITS if name.endswith(end)), "")
        is_text = isinstance(value, str) or (
            isinstance(value, Iterable) and any(isinstance(one, str) for one in value)
        )
        unit, factor = _UNITS[end] if end and not (is_text and name in _bare()) else ("", 1)
        # Keywords of the language have a low line behind them here: `in_`, `for_`.
        bare = name[: -len(end)] if unit and name not in _SHARES else name.rstrip("_")
        option = "--" + bare.replace("_", "-")
        if (other := names.setdefault(option, name)) != name:
            raise ValueError(f"{name}: found with {other}, expected one of them")
        if value is True:
            words.append(option)
            continue
        if isinstance(value, Iterable) and not isinstance(value, str):
            items = [_text(name, one, factor, unit) + unit for one in value]
            if not items:
                raise ValueError(f"{name}: found an empty list, expected at least one value")
            if not is_sweep and bare in _repeated():
                words.extend(f"{option}={item}" for item in items)
                continue
            separator = ";" if is_sweep and name in _WITH_COMMAS - {"schemes"} else ","
            words.append(f"{option}={separator.join(items)}")
        else:
            words.append(f"{option}={_text(name, value, factor, unit)}{unit}")
        if is_sweep and _is_odd(words[-1]):
            raise ValueError(f"{name}: {_ODD}")
    return words


def _behind(places: list[str], words: _Words) -> _Words:
    words[:0] = places
    return words


def _called(
    name: str,
    words: list[str],
    report: Progress | None,
    classes: list[type[Scheme]],
    blocks: Sequence[bytes] = (),
    keep_flows: bool = False,
) -> Results:
    try:
        tables, command, json, notes = _run(name, words, report, classes, blocks, keep_flows)
    except ValueError as error:
        raise _named(error, words) from None
    for note in notes:
        # Behind the function of the command, and the one that checks its keywords.
        warnings.warn(note, stacklevel=4)
    return Results({name: Table(table) for name, table in tables}, command, json, tuple(notes))


def _named(error: ValueError, words: Sequence[str]) -> ValueError:
    """The error with the keyword that was written, where the command names an option or a place."""
    message = str(error)
    place = re.match(r"(?:[<\[])([A-Z]+)(?:[>\]]): ", message)
    if place:
        return ValueError(f"{_PLACES.get(place[1], place[1].lower())}: {message[place.end():]}")
    names = getattr(words, "names", {})
    if message.startswith("invalid UTF-8"):
        odd = (word.partition("=")[0] for word in words if _is_odd(word))
        return ValueError(f"{next((names.get(one, one) for one in odd), 'name')}: {_ODD}")
    option, colon, rest = message.partition(":")
    written = names.get("--" + option.replace("_", "-"), option)
    return ValueError(f"{written}{colon}{rest}") if written != option else error


def _check_executor(executor: object) -> None:
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise ValueError(f"executor: found {executor!r}, expected an executor with `submit`")


@_described("race")
def race(*, keep_flows: bool = False, progress: bool | Progress = False, **options: Unpack[RaceOptions]) -> Results:
    """Runs all schemes on one path and compares them, as `headstart race`.

    The main table, `schemes`, has a row for each scheme, `seeds` one for each scheme and seed;
    docs/data.md describes the columns, whose units are in their names. With `capacity=True` the
    table `capacity` has each scheme's feasible capacities in percent of the link. With
    `keep_flows=True` the table `flows` has a row for each flow, as the file of `flows`, but without
    the columns of the conditions: those are in its metadata.

    `progress` is True for a bar by tqdm, or a function that takes what is being done, finished
    runs, all runs and the share of the work done. Ctrl-C, or an exception of that function, stops
    the runs.

    >>> headstart.race(rate="15 Mbit/s", rtt_s=0.06, schemes=["iw10", "halfback"])
    """
    given = _listed(options)
    with reported(progress) as report:
        found = _called("race", _words(given), report, _admitted(*given.values()), keep_flows=keep_flows)
    return replace(found, flows=_file(given))


def _file(given: Mapping[str, Any]) -> str | None:
    flows = given.get("flows")
    return None if flows is None else os.fsdecode(flows)


@_described("sweep")
def sweep(*, executor: Executor | None = None, progress: bool | Progress = False, **options: Unpack[SweepOptions]) -> Results:
    """Races at every combination of lists, as `headstart sweep`.

    An option with a sequence of values, or text such as "5%..50%:5%", is a dimension; `schemes`
    alone is the list of schemes of every point. The main table, `points`, has a row for each point
    and scheme; `seeds` one for each seed, too. `progress` is that of `race`; at each point without
    an executor.

    `executor` runs the points in place of this process, each as one call of its `submit` with one
    thread; of more than 2048 points several are one call. It is any executor of
    `concurrent.futures`: one of the standard library, that of a Dask cluster
    (`client.get_executor()`), or `headstart.ray.RayExecutor`. The results are the same bytes.
    Workers need the same build of this package and the same input files. `flows` cannot be written
    then.

    >>> headstart.sweep(load_share=[0.05, 0.25], rtt=["20 ms", "60 ms"], schemes=["halfback"])
    """
    given = _listed(options)
    words, classes = _words(given, is_sweep=True), _admitted(*given.values())
    _check_executor(executor)
    with reported(progress) as report:
        if executor is None:
            return _called("sweep", words, report, classes)
        if given.get("flows") is not None:
            raise ValueError("flows: found it with an executor, expected a sweep without one: workers keep no flows")
        return _called("sweep", words, None, classes, run_blocks(executor, words, classes, report))


@_described("sweep")
def sweep_blocks(
    out: str | PathLike[str],
    *,
    executor: Executor | None = None,
    progress: bool | Progress = False,
    **options: Unpack[SweepOptions],
) -> None:
    """Writes a sweep to a folder in blocks of points, as `headstart sweep --blocks --out FOLDER`.

    For up to 10 million points: memory does not grow with them. Each block is a file in `points`
    and one in `seeds` of the folder, as Parquet with the columns of the tables of `sweep`. A call
    that was interrupted, even killed, goes on when it is repeated. `executor` and `progress` are
    those of `sweep`.

    >>> headstart.sweep_blocks("grid", load="1%..50%:1%", rtt="1 ms..200 ms:1 ms", large=True)
    """
    given = _listed(options)
    if given.get("flows") is not None:
        raise ValueError("flows: found it with blocks, expected a sweep without one")
    with reported(progress) as report:
        _check_executor(executor)
        write_blocks(out, executor, _words(given, is_sweep=True), _admitted(*given.values()), report)


@_described("trace")
def trace(scheme: str | type[Scheme], *, progress: bool | Progress = False, **options: Unpack[TraceOptions]) -> Results:
    """One flow in detail, as `headstart trace`: sends, acks, losses and the window.

    The tables are those of `events.csv`, by the names of the schemes: `scheme`, then `beside`.
    Times are in nanoseconds, sizes in bytes, the pace in bytes per second.

    >>> headstart.trace("halfback", size="100 kB", rate="15 Mbit/s")
    """
    name = scheme.name if _is_scheme(scheme) else scheme
    if not isinstance(name, str) or name.startswith("-"):
        raise ValueError(f"scheme: found {scheme!r}, expected the name of a scheme")
    given = _listed(options)
    with reported(progress) as report:
        return _called("trace", _behind([name], _words(given)), report, _classes(scheme, *given.values()))


@_described("race")
def capacity(*, keep_flows: bool = False, progress: bool | Progress = False, **options: Unpack[RaceOptions]) -> Results:
    """Searches the feasible capacity of every scheme, as `headstart race --capacity`.

    The main table, `capacity`, has for each scheme the largest load in percent of the link's rate
    by each of the three rules of docs/definitions.md: it takes minutes. The other tables are those
    of `race`, with `keep_flows=True` the flows, too.

    >>> headstart.capacity(schemes=["iw10", "halfback"], duration="600 s")
    """
    given = _listed(options)
    words = _words({**given, "capacity": True})
    with reported(progress) as report:
        found = _called("race", words, report, _admitted(*given.values()), keep_flows=keep_flows)
    tables = {"capacity": found.tables["capacity"], **found.tables}
    return replace(found, tables=tables, flows=_file(given))


@_described("reproduce")
def reproduce(paper: str | None = None, *, progress: bool | Progress = False, **options: Unpack[ReproduceOptions]) -> Results:
    """Runs the experiments of a paper again and judges its claims, as `headstart reproduce`.

    The main table, `claims`, has the rows of claims.csv, a claim under each variant. Each figure's
    data are a table with the name of its file, such as `figure-12-mean-ethernet`. Without a paper
    there is the table `papers`, which lists papers and figures. `quick=True` is a cut-down run; the
    full one takes hours.

    A claim whose outcome is not the one on record is a warning; with `check=True` a ValueError.
    Figures over QUIC or in the emulator are not in this package: ValueError says so.

    >>> headstart.reproduce("halfback", figure=["12"], quick=True)
    """
    if paper is not None and (not isinstance(paper, str) or paper.startswith("-")):
        raise ValueError(f"paper: found {paper!r}, expected the name of a paper or a folder")
    given = _listed(options)
    with reported(progress) as report:
        return _called("reproduce", _behind([paper] if paper else [], _words(given)), report, [])


@_described("assess")
def assess(
    schemes: str | type[Scheme] | Sequence[str | type[Scheme]],
    *,
    progress: bool | Progress = False,
    **options: Unpack[AssessOptions],
) -> Results:
    """Judges schemes by the criteria of RFC 9743, as `headstart assess`.

    The table `assessment` has a row for each criterion and scheme, with the result and the number
    found. A result is "shown", "not shown", "in words" or "does not apply". It is "not shown: wide"
    where the 95 % interval reaches over the bound. `quick=True` is a cut-down run, which takes less
    than two minutes of processor time; a class of Python takes longer.

    >>> headstart.assess(["headstart", Mine], quick=True, figure=["load"])
    """
    several = [schemes] if isinstance(schemes, (str, type)) else list(schemes)
    names = [scheme.name if _is_scheme(scheme) else scheme for scheme in several]
    if not names or any(not isinstance(name, str) or name.startswith("-") for name in names):
        raise ValueError(f"schemes: found {schemes!r}, expected names of schemes or classes")
    given = _listed(options)
    with reported(progress) as report:
        words = _behind([",".join(str(name) for name in names)], _words(given))
        return _called("assess", words, report, _admitted(several, *given.values()))


def options(command: str = "race") -> Table:
    """The keyword arguments of a function: `race`, `sweep`, `trace`, `reproduce` or `assess`.

    `numbers` are the names that take a number in a unit in place of text.

    >>> headstart.options().to_pandas()
    """
    return _options(command)


def schemes(name: str | None = None) -> Table:
    """The schemes of the catalogue, or the parameters of the one of this name.

    >>> headstart.schemes("halfback")["parameter"]
    """
    if name is not None and (not isinstance(name, str) or name.startswith("-")):
        raise ValueError(f"name: found {name!r}, expected the name of a scheme")
    try:
        return Table(_run("schemes", [] if name is None else [name])[0][0][1])
    except ValueError as error:
        raise _named(error, []) from None


def paths() -> Table:
    """The paths of `path=`: the options that each sets, their values and sources."""
    return Table(_run("paths", [])[0][0][1])
