"""Sweeps by other processes: the bytes of one process, also where a worker is killed."""

import concurrent.futures
import multiprocessing
import os
import pathlib
import signal

import pytest
from conftest import ROOT

import headstart
from headstart import _points

SMALL = {"load_share": [0.05, 0.25], "rtt": ["20 ms", "60 ms"], "schemes": ["iw10", "halfback"]}
SMALL |= {"duration": "5 s", "repeats": 2}


def same(results, others):
    """True if results have the same bytes."""
    tables = [[(name, *map(list, rows(table))) for name, table in one.tables.items()] for one in (results, others)]
    return tables[0] == tables[1] and (results.json, results.command) == (others.json, others.command)


def rows(table):
    """The columns of a table as text, which tells every bit of a number."""
    pyarrow = pytest.importorskip("pyarrow")
    return ([repr(value) for value in column.to_pylist()] for column in pyarrow.table(table).columns)


def noting(folder, kills):
    """A scheme that notes each connection in a file of its process.

    The first process that notes 500 is killed.

    Clusters take it by value, since it is local.
    """

    class Noting(headstart.Scheme):
        count = 0

        def __init__(self):
            with open(os.path.join(folder, str(os.getpid())), "a", encoding="utf-8") as file:
                file.write("connection\n")
            Noting.count += 1
            if kills and Noting.count == 500:
                try:
                    os.mkdir(os.path.join(folder, "killed"))
                except FileExistsError:
                    return
                os.kill(os.getpid(), signal.SIGKILL)

        def establish(self, prior):
            self.window = 20 * prior.mss_bytes
            return headstart.FlightPlan(self.window)

        def on_ack(self, ack):
            return headstart.HandOver.avoiding(self.window)

        def allowance(self):
            return headstart.Allowance(self.window)

    return Noting


def connections(folder):
    """Connections that were noted."""
    return sum(file.read_text().count("\n") for file in pathlib.Path(folder).iterdir() if file.is_file())


@pytest.fixture
def dask():
    """Two worker processes of Dask."""
    distributed = pytest.importorskip("distributed", reason="NOT RUN: dask[distributed] is not installed")
    kind = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**kind) as cluster, distributed.Client(cluster) as client:
        yield client.get_executor()


@pytest.fixture
def ray(monkeypatch):
    """Two worker processes of Ray."""
    ray = pytest.importorskip("ray", reason="NOT RUN: ray is not installed")
    from headstart.ray import RayExecutor

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield RayExecutor()
    ray.shutdown()


@pytest.mark.parametrize("cluster", ["dask", "ray"])
def test_a_cluster_that_loses_a_worker_has_the_bytes_of_one_process(cluster, request, tmp_path):
    executor = request.getfixturevalue(cluster)
    alone, together = tmp_path / "alone", tmp_path / "together"
    alone.mkdir()
    together.mkdir()
    options = {"load": "10%..50%:10%", "rtt": ["20 ms", "60 ms"], "duration": "20 s", "repeats": 2}
    expected = headstart.sweep(schemes=["iw10", noting(alone, False)], **options)
    reports = []
    schemes = ["iw10", noting(together, True)]
    results = headstart.sweep(
        executor=executor, progress=lambda *report: reports.append(report), schemes=schemes, **options
    )
    assert same(results, expected)
    assert len(results) == 5 * 2 * 2 and len(results.seeds) == 2 * len(results)
    assert [finished for _, finished, _, _ in reports] == [10 * number for number in range(1, 11)], "each point once"
    assert reports[-1] == ("sweeping", 100, 100, 1.0)
    processes = {file.name for file in together.iterdir()}
    assert "killed" in processes and len(processes) > 2 and str(os.getpid()) not in processes
    assert connections(together) > connections(alone), "the killed worker's point was begun again"


def test_processes_and_threads_of_the_standard_library_have_the_bytes_of_one_process():
    expected = headstart.sweep(**SMALL)
    with concurrent.futures.ThreadPoolExecutor(2) as executor:
        assert same(headstart.sweep(executor=executor, **SMALL), expected)
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as executor:
        assert same(headstart.sweep(executor=executor, **SMALL), expected)


class Here(concurrent.futures.Executor):
    """Runs calls at once, after `before`."""

    def __init__(self, before=lambda: None):
        self.before = before

    def submit(self, function, /, *arguments, **named):
        self.before()
        future = concurrent.futures.Future()
        try:
            future.set_result(function(*arguments, **named))
        except Exception as error:
            future.set_exception(error)
        return future


def test_a_worker_with_another_build_is_refused(monkeypatch):
    with pytest.raises(ValueError, match="another build of headstart"):
        _points._point("0.0.0 abc", [], [])
    monkeypatch.setattr(_points, "_program", iter(["here", "here", "there"]).__next__)
    with pytest.raises(ValueError, match="another build of headstart .there., expected here"):
        headstart.sweep(executor=Here(), load=["5%", "25%"], duration="1 s", repeats=1, schemes="iw10")


def test_a_worker_with_other_input_files_is_refused(tmp_path):
    trace = tmp_path / "link.trace"
    trace.write_text("".join(f"{number}\n" for number in range(1, 500)))
    options = {"trace": trace, "load": ["5%", "25%"], "duration": "1 s", "repeats": 1, "schemes": "iw10"}
    assert len(headstart.sweep(executor=Here(), **options)) == 2
    changed = Here(lambda: trace.write_text("".join(f"{2 * number}\n" for number in range(1, 500))))
    with pytest.raises(ValueError, match="found results of other runs than those of .*--load=.*same input files"):
        headstart.sweep(executor=changed, **options)


def test_what_a_sweep_refuses_is_refused_before_anything_is_submitted():
    def fail():
        raise AssertionError("submitted")

    for options, message in [
        ({"flows": "flows.csv"}, "flows: found it with an executor"),
        ({"rate": ["15 Mbit/s", "15"]}, "15"),
        ({"duration": "1000000 s", "repeats": 1000}, "--large"),
    ]:
        with pytest.raises(ValueError, match=message):
            headstart.sweep(executor=Here(fail), **options)


def test_the_example_of_partitions_continues_with_the_value_that_has_no_file(tmp_path, monkeypatch):
    dataset = pytest.importorskip("pyarrow.dataset")
    page = (ROOT / "docs/scale.md").read_text()
    (example,) = (block for block in page.split("```python\n")[1:] if "write_table" in block.split("```")[0])
    example = example.split("```")[0].replace("range(1, 101)", "(20, 60)")
    monkeypatch.chdir(tmp_path)
    points = []
    rest = {name: value for name, value in SMALL.items() if name != "rtt"}
    names = {"headstart": headstart, "executor": Here(lambda: points.append(1)), "rest": rest}
    exec(example, names)
    assert len(points) == 4
    files = [tmp_path / f"grid/rtt_ms={rtt}/points.parquet" for rtt in (20, 60)]
    first = [file.read_bytes() for file in files]
    files[1].unlink()
    exec(example, names)
    assert len(points) == 6
    assert [file.read_bytes() for file in files] == first
    table = dataset.dataset("grid", partitioning="hive").to_table()
    assert sorted(set(table["rtt_ms"].to_pylist())) == [20, 60] and len(table) == 2 * 2 * 2


def test_an_exception_in_a_worker_ends_the_sweep():
    class Failing(headstart.Scheme):
        def establish(self, prior):
            raise LookupError("no plan")

    with pytest.raises(LookupError, match="no plan"):
        headstart.sweep(executor=Here(), schemes=["iw10", Failing], load=["5%", "25%"], duration="1 s", repeats=1)
