"""Figures of results, by matplotlib (`pip install '.[plot]'`)."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ._tables import Table


class Plot:
    """The figures of a result.

    Each is drawn on the axes that it is given, or on new ones, and returns them.
    """

    def __init__(self, tables: Mapping[str, Table], flows: str | None = None) -> None:
        self._tables = tables
        self._flows = flows

    def plane(self, ax: Axes | None = None) -> Axes:
        """The latency-safety plane of a race: mean completion time in ms over harm, a ratio.

        Bars are 95 % intervals over the seeds. Harm is that to flows of the reference beside the
        scheme (docs/definitions.md), 1 where there is none; a scheme without it is left out.
        """
        if "schemes" not in self._tables:
            raise ValueError("plane: found tables of another call, expected those of race or capacity")
        columns = _columns(self._tables["schemes"])
        ax = _axes(ax)
        for row, name in enumerate(columns["scheme"]):
            (x, left, right), (y, down, up) = (_interval(columns, of, row) for of in ("harm", "mean_ms"))
            if x is not None and y is not None:
                ax.errorbar(x, y, xerr=[[left], [right]], yerr=[[down], [up]], fmt="o", capsize=2, label=name)
        ax.axvline(1, color="grey", linewidth=0.8, linestyle=":")
        ax.set(xlabel="harm", ylabel="mean completion time (ms)")
        ax.legend()
        return ax

    def cdf(self, ax: Axes | None = None) -> Axes:
        """The distribution of completion times of a race in ms: the share of flows over time.

        It is of the flows that began after the warm-up and where the scheme is alone, over all
        seeds. The race needs `flows="flows.csv"`, from which they are read.
        """
        if self._flows is None:
            raise ValueError('cdf: found no flows, expected a race with flows="flows.csv"')
        times: dict[str, list[float]] = {}
        with open(self._flows, newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                is_measured = (row["run"], row["kind"], row["after_warm_up"]) == ("alone", "flow", "1")
                if is_measured and row["role"] == "tested" and row["completion_ms"]:
                    times.setdefault(row["scheme"], []).append(float(row["completion_ms"]))
        ax = _axes(ax)
        for name, found in times.items():
            shares = [(number + 1) / len(found) for number in range(len(found))]
            ax.step(sorted(found), shares, where="post", label=name)
        ax.set(xlabel="completion time (ms)", ylabel="share of flows", ylim=(0, 1))
        ax.legend()
        return ax

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


def _columns(table: Table) -> dict[str, list[Any]]:
    return {name: table[name] for name in table.columns}


def _interval(columns: Mapping[str, list[Any]], name: str, row: int) -> tuple[float | None, float, float]:
    """A number, and the distances to the ends of its interval: 0 where it has no interval."""
    value, low, high = (columns[key][row] for key in (name, f"{name}_low", f"{name}_high"))
    if None in (value, low, high):
        return value, 0.0, 0.0
    return value, max(value - low, 0.0), max(high - value, 0.0)
