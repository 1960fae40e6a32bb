"""Results as tables: for pandas, polars, notebooks and loops."""

import copy
import json
import pickle
import sys

import pandas
import polars
import pyarrow
import pytest

import headstart
from headstart import _native

SMALL = {"duration": "5 s", "repeats": 2, "schemes": ["iw10", "halfback"]}


@pytest.fixture(
    scope="module",
    params=[
        lambda: headstart.race(**SMALL),
        lambda: headstart.capacity(duration="4 s", repeats=1, schemes="iw10", size="10 kB"),
        lambda: headstart.reproduce("quick-start", figure=["3"], quick=True),
        lambda: headstart.trace("iw10", size="20 kB"),
        lambda: headstart.schemes(),
    ],
    ids=["race", "capacity", "reproduce", "trace", "schemes"],
)
def results(request):
    return request.param()


def test_results_of_every_call_are_rows_and_columns(results):
    expected = pyarrow.table(results)
    assert list(results) == expected.to_pylist() and len(results) > 0
    assert {name: results[name] for name in results.columns} == expected.to_pydict()
    with pytest.raises(KeyError, match="found 'mean', expected one of"):
        results["mean"]


def test_results_of_every_call_are_data_frames(results):
    rows = pyarrow.table(results).to_pylist()
    assert results.to_polars().to_dicts() == rows
    assert polars.DataFrame(results).to_dicts() == rows
    frame = results.to_pandas()
    assert list(frame.columns) == results.columns and len(frame) == len(rows)
    plain = [{name: None if pandas.isna(value) else value for name, value in row.items()} for row in frame.to_dict("records")]
    assert plain == rows
    assert pandas.DataFrame(results).shape == frame.shape


def test_columns_of_data_frames_have_the_kinds_of_their_numbers():
    frame = headstart.race(**SMALL, load="1 %").to_pandas()
    assert str(frame.dtypes["mean_ms"]) == "float64" and str(frame.dtypes["flows"]) == "UInt64"
    assert frame.mean_ms.mean() > 0


def test_results_of_every_call_are_pickled_and_copied(results):
    for again in (pickle.loads(pickle.dumps(results)), copy.deepcopy(results)):
        assert pyarrow.table(again).equals(pyarrow.table(results), check_metadata=True)


def test_the_verdict_of_a_race_says_why_the_slowest_lose(command):
    options = {"load": "80 %", "duration": "20 s", "repeats": 3}
    verdict = headstart.race(schemes=["iw10", "halfback"], **options).verdict
    assert "Why halfback loses: " in verdict
    said = command("race", "--schemes", "iw10,halfback", *(f"--{name}={value}" for name, value in options.items())).stdout
    assert verdict.split() == said[said.index("Verdict: ") + 9 :].split()[: len(verdict.split())]
    assert headstart.sweep(**SMALL).verdict is None and headstart.trace("iw10", size="20 kB").verdict is None


def test_a_notebook_shows_rows(results):
    text = results._repr_html_()
    assert text.count("<tr>") == 1 + min(len(results), 60)
    assert results.columns[0] in text and ("rows</p>" in text) == (len(results) > 60)


def test_text_of_a_table_is_no_markup_of_the_notebook():
    text = headstart.Table(_native.table_of([("a<b", ("Utf8", ["<i>x</i>"]))], {}))._repr_html_()
    assert "a&lt;b" in text and "&lt;i&gt;x" in text and "<i>" not in text


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_a_package_that_is_missing_is_named(monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=f"to_{package}: found no {package}, expected that of `pip install {package}`"):
        getattr(headstart.schemes(), f"to_{package}")()


def test_every_flow_as_parquet_needs_no_other_program(tmp_path):
    headstart.race(**SMALL, flows=tmp_path / "flows.parquet")
    headstart.race(**SMALL, flows=tmp_path / "flows.csv")
    found, expected = polars.read_parquet(tmp_path / "flows.parquet"), polars.read_csv(tmp_path / "flows.csv", infer_schema_length=None)
    assert found["completion_ms"].to_list() == expected["completion_ms"].to_list() and len(found) > 50


def test_flows_in_memory_are_those_of_the_file_without_its_conditions(tmp_path):
    options = {"schemes": ["iw10", "halfback"], "duration": "5 s", "repeats": 2, "loss": "1 %"}
    headstart.race(**options, flows=tmp_path / "flows.csv")
    results = headstart.race(**options, keep_flows=True)
    kept, written = results.tables["flows"].to_pandas(), pandas.read_csv(tmp_path / "flows.csv", low_memory=False)
    assert len(kept) == len(written) > 100
    assert list(kept.columns) == [name for name in written.columns if name in kept.columns]
    conditions = json.loads(results.tables["flows"].metadata["conditions"])
    left_out = [name for name in written.columns if name not in kept.columns]
    assert set(left_out) <= set(conditions) and len(left_out) > 40
    for name in kept.columns:
        pandas.testing.assert_series_equal(
            kept[name].astype(written[name].dtype), written[name], check_exact=True, obj=name
        )
    capacities = headstart.capacity(**{**options, "duration": "1 s", "schemes": ["iw10"]}, keep_flows=True)
    assert list(capacities.tables) == ["capacity", "schemes", "seeds", "flows"]
    with pytest.raises(ValueError, match="flows: found a file, expected none"):
        headstart.race(**options, flows=tmp_path / "flows.csv", keep_flows=True)
