"""Keyword arguments of the functions, from the declaration of the command's options."""

from __future__ import annotations

import difflib
import functools
import inspect
import keyword
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from . import _native
from ._tables import Table

COMMANDS = ("race", "sweep", "trace", "reproduce", "assess")
NOT_HERE = {"out", "blocks", "format", "sort", "save_plan", "qlog", "help"}
"""Options for files and output: a call has results instead."""
UNITS = {
    "_bits_per_s": ("bit/s", 1),
    "_bytes": ("B", 1),
    "_packets": ("p", 1),
    "_share": ("%", 100),
    "_ms": ("ns", 10**6),
    "_s": ("ns", 10**9),
}
"""Units of numbers, by the end of the argument's name: the command's unit, and the factor to it."""
_ENDS = {
    "rate": ("_bits_per_s",),
    "time": ("_s", "_ms"),
    "size": ("_bytes",),
    "size of a buffer": ("_bytes", "_packets", "_s", "_ms"),
    "share": ("_share",),
}
_NAMES = {
    "_bits_per_s": "bits per second",
    "_bytes": "bytes",
    "_packets": "packets",
    "_share": "1 for 100 %",
    "_ms": "milliseconds",
    "_s": "seconds",
}
_TYPES = {
    "switch": "bool",
    "count": "int",
    "scheme": "str | type[Scheme]",
    "list of scheme": "str | type[Scheme] | Iterable[str | type[Scheme]]",
    "file": "str | bytes | PathLike[str]",
    "list of file": "str | bytes | PathLike[str] | Iterable[str | bytes | PathLike[str]]",
    "list of text": "str | Iterable[str]",
}
_Function = TypeVar("_Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Keyword:
    """A keyword argument: an option, or a number for it in a unit."""

    name: str
    option: str
    """The keyword that takes text: itself, unless it is a number in a unit."""
    type: str
    default: str | int | bool | None
    """The command's own; None where it has none, or the keyword is a number."""
    values: str
    group: str
    about: str

    @property
    def text(self) -> str:
        """Documentation with default and values."""
        default = "" if self.default is None or self.default is False else f" [default: {self.default}]"
        return self.about + default + (f" (one of {self.values})" if self.values else "")


@functools.cache
def _declared() -> list[dict[str, Any]]:
    return [row for row in Table(dict(_native.run("options", COMMANDS)[0])["options"])]


@functools.cache
def keywords(command: str) -> Mapping[str, Keyword]:
    """The keyword arguments of a command by their names."""
    found = {}
    for row in _declared():
        name, kind = row["option"].replace("-", "_"), row["kind"]
        if row["command"] != command or name in NOT_HERE:
            continue
        name += "_" if keyword.iskeyword(name) else ""
        ends = [end for end in _ENDS.get(kind, ()) if not name.endswith(end)]
        of = "str | float" if kind == "share" and not ends else _TYPES.get(kind, "str")
        numbers = "float"
        if command == "sweep" and kind not in ("switch", "list of scheme"):
            of = f"{of} | Iterable[{of}]" if "str" in of else f"str | {of} | Iterable[str | {of}]"
            numbers = "float | Iterable[float]"
        default = row["default"]
        default = default == "on" if kind == "switch" else int(default) if kind == "count" and default else default
        about = " ".join(row["about"].split())
        group = row["group"] or "Options"
        found[name] = Keyword(name, name, of, default, row["values"] or "", group, about)
        for end in ends:
            text = f"`{name}` as a number, in {_NAMES[end]}"
            found[name + end] = Keyword(name + end, name, numbers, None, "", group, text)
    return found


@functools.cache
def repeated() -> frozenset[str]:
    """Keywords whose option is repeated for each value of a list."""
    kinds = {row["option"]: row["kind"] for row in _declared()}
    return frozenset(name for name, kind in kinds.items() if kind.startswith("list of ") and kind != "list of scheme")


@functools.cache
def switches() -> frozenset[str]:
    """Keywords that are True or False."""
    return frozenset(row["option"].replace("-", "_") for row in _declared() if row["kind"] == "switch")


@functools.cache
def files() -> frozenset[str]:
    """Keywords that name files."""
    return frozenset(row["option"].replace("-", "_") for row in _declared() if row["kind"].endswith("file"))


@functools.cache
def bare() -> frozenset[str]:
    """Keywords that are options by themselves, not numbers in a unit."""
    return frozenset(row["option"].replace("-", "_") for row in _declared())


def described(command: str) -> Callable[[_Function], _Function]:
    """Gives a function the keywords of a command: signature, documentation, refusal of others."""

    def describe(function: _Function) -> _Function:
        known = keywords(command)
        plain = inspect.signature(function)
        own = [one for one in plain.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]

        @functools.wraps(function)
        def checked(*arguments: Any, **options: Any) -> Any:
            for name in options:
                if name not in known and name not in NOT_HERE and name not in plain.parameters:
                    near = difflib.get_close_matches(name, [*known, *(one.name for one in own)], 1)
                    meant = f"; did you mean {near[0]!r}?" if near else f": headstart.options({command!r}) lists them"
                    raise TypeError(f"{function.__name__}() got an unexpected keyword argument {name!r}{meant}")
            return function(*arguments, **options)

        keyword_only = inspect.Parameter.KEYWORD_ONLY
        options = [
            inspect.Parameter(one.name, keyword_only, default=one.default, annotation=f"{one.type} | None")
            for one in known.values()
            if one.name not in plain.parameters and one.name != function.__name__
        ]
        checked.__signature__ = plain.replace(parameters=[*own, *options])  # type: ignore[attr-defined]
        checked.__annotations__ = {
            **{one.name: one.annotation for one in [*own, *options]},
            "return": plain.return_annotation,
        }
        checked.__doc__ = f"{inspect.getdoc(function)}\n\n{_listed(known)}"
        return checked  # type: ignore[return-value]

    return describe


def _listed(known: Mapping[str, Keyword]) -> str:
    """The keywords for a docstring, by their groups."""
    lines = ["Keyword arguments: options of the command. A name that ends in a unit takes a number."]
    groups: dict[str, list[str]] = {}
    for option, names in _names(known).items():
        one = known[option]
        about = [f"  {', '.join(names)}: {one.type}", *_wrapped(one.text, " " * 6)]
        groups.setdefault(one.group, ["", one.group]).extend(about)
    return "\n".join(sum(groups.values(), lines))


def _names(known: Mapping[str, Keyword]) -> dict[str, list[str]]:
    """The keywords of each option: its own, and those that take a number in a unit."""
    names: dict[str, list[str]] = {}
    for one in known.values():
        names.setdefault(one.option, []).append(one.name)
    return names


def _wrapped(text: str, indent: str, begin: str = "") -> list[str]:
    """Lines of at most 92 columns; textwrap would take four times as long at the import."""
    lines = [indent + begin]
    for word in text.split():
        if len(lines[-1]) + len(word) >= 92:
            lines.append(indent)
        lines[-1] += word if lines[-1] in (indent, indent + begin) else f" {word}"
    return lines


def options(command: str) -> Table:
    """The options of a function as a table: name, numbers, type, default, values, group, about."""
    if command not in COMMANDS:
        raise ValueError(f"command: found {command!r}, expected one of {', '.join(COMMANDS)}")
    known = keywords(command)
    names = _names(known)
    rows = [known[option] for option in names]
    columns = {
        "name": [one.name for one in rows],
        "numbers": [", ".join(numbers) for _, *numbers in names.values()],
        "type": [one.type for one in rows],
        "default": ["" if one.default is None else str(one.default) for one in rows],
        "values": [one.values for one in rows],
        "group": [one.group for one in rows],
        "about": [one.about for one in rows],
    }
    metadata = {"headstart": _native.__version__, "command": f"headstart {command} --help", "conditions": "{}"}
    return Table(_native.table_of([(name, ("Utf8", fields)) for name, fields in columns.items()], metadata))


def stub() -> str:
    """The text of _options.pyi: the keywords as types, for mypy and editors."""
    lines = [
        '"""Types of keyword arguments, written by tests/test_options.py."""',
        "",
        "from collections.abc import Iterable",
        "from os import PathLike",
        "from typing import TypedDict",
        "",
        "from ._scheme import Scheme",
    ]

    def declare(name: str, base: str, fields: list[Keyword]) -> None:
        lines.extend(["", f"class {name}({base}, total=False):"])
        for one in fields:
            lines.append(f"    {one.name}: {one.type} | None")
            *text, last = _wrapped(one.text, "    ", '"""')
            lines.extend([*text, f'{last}"""'])

    of = {command: list(keywords(command).values()) for command in COMMANDS}
    shared = [one for one in of["race"] if one in of["trace"]]
    declare("SharedOptions", "TypedDict", shared)
    for command, fields in of.items():
        base = "SharedOptions" if command in ("race", "trace") else "TypedDict"
        rest = [one for one in fields if base == "TypedDict" or one not in shared]
        declare(f"{command.capitalize()}Options", base, rest)
    return "\n".join(lines) + "\n"
