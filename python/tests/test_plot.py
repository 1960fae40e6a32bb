"""The figures show the numbers of the tables."""

import math

import matplotlib
import pyarrow
import pytest

import headstart

matplotlib.use("Agg")

SMALL = {"duration": "10 s", "repeats": 2, "schemes": ["iw10", "halfback"]}


def test_the_plane_has_each_scheme_at_its_harm_and_completion_time():
    results = headstart.race(**SMALL)
    ax = results.plot.plane()
    drawn = {bars.get_label(): bars.lines[0].get_xydata().tolist() for bars in ax.containers}
    rows = pyarrow.table(results).to_pylist()
    assert drawn == {row["scheme"]: [[row["harm"], row["mean_ms"]]] for row in rows}
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("harm", "mean completion time (ms)")


def test_the_distribution_has_the_flows_of_the_table(tmp_path):
    results = headstart.race(**SMALL, flows=tmp_path / "flows.csv")
    rows = {row["scheme"]: row for row in pyarrow.table(results).to_pylist()}
    lines = {line.get_label(): line for line in results.plot.cdf().lines}
    assert set(lines) == set(rows) == {"iw10", "halfback"}
    for name, line in lines.items():
        # Before the flows there is the place where none is complete.
        first, *times = line.get_xdata()
        assert (first, line.get_ydata()[0]) == (times[0], 0)
        assert len(times) == rows[name]["flows"] and line.get_ydata()[-1] == 1
        # The table's mean is that of a histogram.
        assert sum(times) / rows[name]["flows"] == pytest.approx(rows[name]["mean_ms"], rel=1e-3)
    with pytest.raises(ValueError, match="cdf: found no flows"):
        headstart.race(**SMALL).plot.cdf()


def test_the_tail_is_what_the_distribution_leaves_and_bands_hold_it():
    results = headstart.race(**SMALL, keep_flows=True)
    complete, tail = results.plot.cdf(log=False), results.plot.cdf(tail=True)
    assert (complete.get_xscale(), tail.get_xscale(), tail.get_yscale()) == ("linear", "log", "log")
    for one, other, band in zip(complete.lines, tail.lines, complete.collections):
        pairs = list(zip(one.get_ydata(), other.get_ydata()))
        assert pairs[:-1] == [(share, pytest.approx(1 - share)) for share, _ in pairs[:-1]]
        assert pairs[-1][0] == 1 and math.isnan(pairs[-1][1])
        (area,) = band.get_paths()
        outline = area.vertices
        for time, share in one.get_xydata()[5::20]:
            around = outline[abs(outline[:, 0] - time) < 1e-9][:, 1]
            assert around.min() <= share <= around.max()


def test_a_legend_of_many_schemes_is_beside_the_axes():
    results = headstart.race(schemes=headstart.schemes()["scheme"][:11], duration="2 s", repeats=1)
    ax = results.plot.plane()
    ax.figure.canvas.draw()
    assert ax.get_legend().get_window_extent().x0 >= ax.get_window_extent().x1
    marks = {bars.lines[0].get_marker() for bars in ax.containers}
    assert marks == {"o", "s"}


def test_a_figure_is_drawn_on_the_axes_that_it_is_given():
    _, axes = matplotlib.pyplot.subplots()
    assert headstart.trace("iw10", size="10 kB").plot.flow(axes) is axes


def test_the_flow_has_every_segment_and_ends_with_all_acknowledged():
    ax = headstart.trace("halfback", size="100 kB", beside=["iw10"]).plot.flow()
    acknowledged, sent, again = ax.lines[:3]
    assert acknowledged.get_label() == "halfback" and ax.lines[3].get_label() == "iw10"
    assert acknowledged.get_ydata()[-1] == 100.0
    # 70 segments of 1448 bytes; copies of the last ones until the acknowledgements meet them.
    assert len(sent.get_xdata()) == 70 and len(again.get_xdata()) > 20
    assert min(sent.get_xdata()) >= 0


@pytest.mark.parametrize(("name", "results"), [("plane", "trace"), ("flow", "race")])
def test_a_figure_of_another_call_is_refused(name, results):
    found = headstart.trace("iw10", size="10 kB") if results == "trace" else headstart.race(**SMALL)
    with pytest.raises(ValueError, match=f"{name}: found tables of another call"):
        getattr(found.plot, name)()
