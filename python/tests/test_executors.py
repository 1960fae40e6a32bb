"""Sweeps by other processes: the bytes of one process, also where a worker is killed."""

import collections
import concurrent.futures
import multiprocessing
import os
import pathlib
import signal
import subprocess
import sys

import pytest

import headstart
from headstart import _blocks

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
        # A check would run it in this process.
        is_checked = False
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
        _blocks._block("0.0.0 abc", [], [], 0, (0, 1), False)
    monkeypatch.setattr(_blocks, "_program", iter(["here", "here", "there"]).__next__)
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


def files(folder):
    """The files of a folder of blocks with their content."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*.parquet"))}


def test_blocks_have_the_rows_of_the_sweep_by_any_executor(tmp_path):
    dataset = pytest.importorskip("pyarrow.dataset")
    # Readers refuse a column that is there twice: seeds have one of their own.
    options = SMALL | {"seed": [1, 5]}
    results = headstart.sweep(**options)
    alone, together = tmp_path / "alone", tmp_path / "together"
    headstart.sweep_blocks(alone, **options)
    headstart.sweep_blocks(together, executor=Here(), **options)
    assert files(alone) == files(together) and len(files(alone)) == 2 * 8
    for name, table in results.tables.items():
        found = dataset.dataset(alone / name).to_table()
        assert found.column_names == list(table.columns)
        assert [[repr(value) for value in column.to_pylist()] for column in found.columns] == list(rows(table))


def test_blocks_that_are_there_are_not_run_again(tmp_path):
    folder = tmp_path / "grid"
    calls = []
    headstart.sweep_blocks(folder, executor=Here(lambda: calls.append(1)), **SMALL)
    first = files(folder)
    (folder / "points" / "0000002.parquet").unlink()
    headstart.sweep_blocks(folder, executor=Here(lambda: calls.append(1)), **SMALL)
    assert (len(calls), files(folder)) == (5, first)
    with pytest.raises(ValueError, match="found blocks of another sweep, or of other input files .*--load=5%,25%"):
        headstart.sweep_blocks(folder, **SMALL | {"repeats": 3})
    with pytest.raises(ValueError, match="flows: found it with blocks"):
        headstart.sweep_blocks(folder, flows="flows.csv", **SMALL)
    assert files(folder) == first


def test_a_command_and_a_call_take_turns(tmp_path):
    folder = tmp_path / "grid"
    line = "sweep --blocks --load 5%,25% --rtt 20ms,60ms --schemes iw10,halfback --duration 5s --repeats 2 --out"
    environment = os.environ | {"PYTHONPATH": str(pathlib.Path(headstart.__file__).parents[1])}
    command = [sys.executable, "-m", "headstart", *line.split(), str(folder)]
    subprocess.run(command, env=environment, check=True)
    first = files(folder)
    (folder / "points" / "0000001.parquet").unlink()
    calls = []
    headstart.sweep_blocks(folder, executor=Here(lambda: calls.append(1)), **SMALL)
    assert (len(calls), files(folder)) == (1, first)


CALLER = """
import os, pathlib, signal, sys, threading, time, headstart


def main():
    if sys.argv[2] == "processes":
        from concurrent.futures import ProcessPoolExecutor
        executor = ProcessPoolExecutor(2)
    elif sys.argv[2] == "dask":
        from dask.distributed import Client, LocalCluster
        executor = Client(LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)).get_executor()
    elif sys.argv[2] == "ray":
        import ray
        from headstart.ray import RayExecutor
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
        executor = RayExecutor()
    else:
        executor = None
    folder, kills = pathlib.Path(sys.argv[1]), sys.argv[3] == "kills"

    def kill():
        while len(list(folder.glob("points/*.parquet"))) < 3:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)

    if kills:
        threading.Thread(target=kill, daemon=True).start()
    grid = {"load": "5%..50%:5%", "rtt": ["20 ms", "60 ms"], "schemes": ["iw10", "halfback"], "duration": "20 s"}
    headstart.sweep_blocks(folder, executor=executor, repeats=4, threads=1, **grid)


if __name__ == "__main__":
    main()
"""


def call(folder, executor, ends):
    """Runs the caller in a process; its exit code."""
    script = folder.parent / "caller.py"
    script.write_text(CALLER)
    environment = os.environ | {
        "PYTHONPATH": str(pathlib.Path(headstart.__file__).parents[1]),
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    command = [sys.executable, str(script), str(folder), executor, ends]
    return subprocess.run(command, env=environment, check=False).returncode


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The files of a caller that nobody killed."""
    folder = tmp_path_factory.mktemp("whole") / "grid"
    assert call(folder, "none", "ends") == 0
    return files(folder)


@pytest.mark.parametrize("executor", ["none", "processes", "dask", "ray"])
def test_a_caller_that_is_killed_goes_on_from_its_blocks(executor, tmp_path, whole):
    modules = {"dask": "distributed", "ray": "ray"}
    if executor in modules:
        pytest.importorskip(modules[executor], reason=f"NOT RUN: {modules[executor]} is not installed")
    folder = tmp_path / "grid"
    assert call(folder, executor, "kills") == -signal.SIGKILL
    kept = {name: (folder / name).stat().st_mtime_ns for name in files(folder) if name.startswith("points")}
    assert 3 <= len(kept) < 20
    assert call(folder, executor, "ends") == 0
    assert all((folder / name).stat().st_mtime_ns == at for name, at in kept.items()), "none was run again"
    assert files(folder) == whole and len(whole) == 2 * 20


def test_a_call_keeps_no_more_blocks_at_once_than_its_window(monkeypatch):
    waiting, at_once = [], []

    class Ended(collections.deque):
        """Ends all calls, the last one first, as soon as somebody waits for one."""

        put = collections.deque.append

        def get(self):
            if waiting:
                at_once.append(len(self) + len(waiting))
            while waiting:
                number, future = waiting.pop()
                future.set_result(number)
            return self.popleft()

    def submit(number):
        waiting.append((number, concurrent.futures.Future()))
        return waiting[-1][1]

    monkeypatch.setattr(_blocks.queue, "SimpleQueue", Ended)
    assert sorted(_blocks._each(submit, iter(range(1_000)), 20)) == list(range(1_000))
    assert max(at_once) == 20


def test_an_exception_in_a_worker_ends_the_sweep():
    class Failing(headstart.Scheme):
        def establish(self, prior):
            raise LookupError("no plan")

    with pytest.raises(LookupError, match="no plan"):
        headstart.sweep(executor=Here(), schemes=["iw10", Failing], load=["5%", "25%"], duration="1 s", repeats=1)
