"""Figures of results, by matplotlib (`pip install '.[plot]'`)."""

from __future__ import annotations

import bisect
import csv
import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ._tables import Table

_DASHES = ("-", "--", ":", "-.")
"""Lines of the first ten schemes, of the next ten, and so on."""


class Plot:
    """The figures of a result.

    Each is drawn on the axes that it is given, or on new ones, and returns them.
    """

    def __init__(self, tables: Mapping[str, Table], flows: str | None = None) -> None:
        self._tables = tables
        self._flows = flows

    def plane(self, ax: Axes | None = None) -> Axes:
        """The latency-safety plane of a race: mean completion time in ms over harm, a ratio.

        Bars are 95 % intervals over the seeds. Harm is done to concurrent flows of the
        reference (docs/definitions.md), 1 where there is none; a scheme without it is left out.
        """
        if "schemes" not in self._tables:
            raise ValueError("plane: found tables of another call, expected those of race or capacity")
        columns = _columns(self._tables["schemes"])
        ax = _axes(ax)
        for row, name in enumerate(columns["scheme"]):
            mark = "os^D"[row // 10 % 4]
            (x, left, right), (y, down, up) = (_interval(columns, of, row) for of in ("harm", "mean_ms"))
            if x is not None and y is not None:
                ax.errorbar(x, y, xerr=[[left], [right]], yerr=[[down], [up]], fmt=mark, capsize=2, label=name)
        ax.axvline(1, color="grey", linewidth=0.8, linestyle=":")
        ax.set(xlabel="harm", ylabel="mean completion time (ms)")
        ax.legend(**_beside(ax))
        return ax

    def cdf(self, ax: Axes | None = None, *, tail: bool = False, log: bool = True) -> Axes:
        """The distribution of completion times of a race in ms: the share of flows over time.

        It is of the flows that began after the warm-up and where the scheme is alone, over all
        seeds. The band is from the least to the greatest share of a seed. The race needs
        `keep_flows=True`, or `flows="flows.csv"`, from which they are read. `log` makes the axis of
        time logarithmic. `tail` is the share that is not complete, on a logarithmic axis, which
        tells tails apart (CCDF).
        """
        ax = _axes(ax)
        for number, (name, seeds) in enumerate(self._times().items()):
            style = {"color": f"C{number % 10}", "linestyle": _DASHES[number // 10 % len(_DASHES)]}
            times = sorted(time for found in seeds.values() for time in found)
            # The first step begins at no flow complete, not in mid-air.
            times = times[:1] + times

            def shares(found: list[float]) -> list[float]:
                complete = [0.0, *(bisect.bisect_right(found, time) / len(found) for time in times[1:])]
                # Zero has no logarithm.
                return [1 - share if share < 1 else math.nan for share in complete] if tail else complete

            ax.step(times, shares(times), where="post", label=name, **style)
            if len(seeds) > 1:
                each = [shares(sorted(found)) for found in seeds.values()]
                low, high = ([pick(column) for column in zip(*each)] for pick in (min, max))
                ax.fill_between(times, low, high, step="post", alpha=0.15, linewidth=0, color=style["color"])
        ax.set(xlabel="completion time (ms)", ylabel="share not complete" if tail else "share of flows")
        if log:
            ax.set_xscale("log")
        if tail:
            ax.set_yscale("log")
        else:
            ax.set_ylim(0, 1)
        ax.legend(**_beside(ax))
        return ax

    def _times(self) -> dict[str, dict[int, list[float]]]:
        """Completion times in ms by scheme and seed."""
        times: dict[str, dict[int, list[float]]] = {}
        for row in self._flow_rows():
            is_measured = (row["run"], row["kind"], str(row["after_warm_up"])) == ("alone", "flow", "1")
            if is_measured and row["role"] == "tested" and row["completion_ms"] not in ("", None):
                of_scheme = times.setdefault(row["scheme"], {})
                of_scheme.setdefault(int(row["seed"]), []).append(float(row["completion_ms"]))
        return times

    def _flow_rows(self) -> Iterator[dict[str, Any]]:
        names = ("run", "kind", "after_warm_up", "role", "completion_ms", "scheme", "seed")
        if "flows" in self._tables:
            table = self._tables["flows"]
            for values in zip(*(table[name] for name in names)):
                yield dict(zip(names, values))
            return
        if self._flows is None:
            raise ValueError("cdf: found no flows, expected a race with keep_flows=True or flows=\"flows.csv\"")
        if self._flows.endswith(".parquet"):
            raise ValueError("cdf: found a Parquet file, expected flows in CSV or a race with keep_flows=True")
        with open(self._flows, newline="", encoding="utf-8") as file:
            yield from csv.DictReader(file)

    def flow(self, ax: Axes | None = None) -> Axes:
        """The flows of a trace: the place in the stream in kB (1000 bytes) over time in ms.

        The line is what has been acknowledged, a dot a segment that is sent for the first time, a
        cross one that is sent again or as a copy. Time begins with each flow's establishment.
        """
        if "offset_bytes" not in next(iter(self._tables.values())).columns:
            raise ValueError("flow: found tables of another call, expected those of trace")
        ax = _axes(ax)
        for number, (name, table) in enumerate(self._tables.items()):
            columns, color = _columns(table), f"C{number}"
            begin = columns["time_ns"][columns["event"].index("established")]

            def points(place: str, *events: str) -> tuple[list[float], list[float]]:
                rows = [row for row, event in enumerate(columns["event"]) if event in events]
                return [(columns["time_ns"][row] - begin) / 1e6 for row in rows], [columns[place][row] / 1e3 for row in rows]

            ax.step(*points("acknowledged_bytes", "acked"), where="post", color=color, label=name)
            ax.plot(*points("offset_bytes", "sent"), ".", color=color, markersize=3)
            ax.plot(*points("offset_bytes", "retransmitted", "copied"), "x", color=color, markersize=5)
        ax.set(xlabel="time since establishment (ms)", ylabel="place in the stream (kB)")
        ax.legend()
        return ax


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ValueError("plot: found no matplotlib, expected `pip install matplotlib`") from None
    axes: Axes = pyplot.subplots()[1]
    return axes


def _beside(ax: Axes) -> dict[str, Any]:
    """Where the legend goes: a long one next to the axes, where it covers nothing."""
    if len(ax.get_legend_handles_labels()[1]) <= 10:
        return {}
    return {"loc": "upper left", "bbox_to_anchor": (1.02, 1.0), "fontsize": "small", "borderaxespad": 0}


def _columns(table: Table) -> dict[str, list[Any]]:
    return {name: table[name] for name in table.columns}


def _interval(columns: Mapping[str, list[Any]], name: str, row: int) -> tuple[float | None, float, float]:
    """A number, and the distances to the ends of its interval: 0 where it has no interval."""
    value, low, high = (columns[key][row] for key in (name, f"{name}_low", f"{name}_high"))
    if None in (value, low, high):
        return value, 0.0, 0.0
    return value, max(value - low, 0.0), max(high - value, 0.0)
