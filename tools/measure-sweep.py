#!/usr/bin/env python3
"""Measures costs of sweeps over several processes: the figures of docs/records/scale.md.

    HEADSTART=target/release/headstart tools/measure-sweep.py flows|workers|points|blocks|driver

Runs with an interpreter that has the package `headstart`, Dask and Ray. Times are processor time
of all processes that a measurement starts, unless they are by the clock. Ray's daemons do not let
theirs be counted.
"""

import ctypes
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

HEADSTART = pathlib.Path(os.environ.get("HEADSTART", "target/release/headstart")).resolve()
# A worker of a cluster may outlive its parent: it is inherited, and its time counted.
PR_SET_CHILD_SUBREAPER = 36
ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def cost(folder, *words):
    """Processor seconds of a program and of all that it starts."""

    def spent():
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    before = spent()
    subprocess.run(words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    try:
        while True:
            os.waitpid(-1, 0)
    except ChildProcessError:
        return spent() - before


def stored(folder):
    """Runs, flows, packets and bytes of a store."""
    lines = (pathlib.Path(folder) / "runs.jsonl").read_text().splitlines()
    runs = [json.loads(line)["result"] for line in lines]
    flows = sum(group["flows"] for run in runs for group in run["groups"])
    return len(runs), flows, sum(run["data_packets"] for run in runs), sum(map(len, lines)) + len(lines)


def flows():
    """Core-seconds a flow and a packet, of several workloads."""
    for options in ["--size 10kB", "--size 100kB", "--size 1MB", "--size internet"]:
        with tempfile.TemporaryDirectory() as folder:
            line = f"sweep {options} --load 5%,25%,50% --rtt 20ms,60ms --duration 100s --repeats 2 --threads 1 --out s"
            seconds = cost(folder, HEADSTART, *line.split())
            runs, flows, packets, size = stored(f"{folder}/s")
            print(
                f"{options}: {runs} runs, {flows} flows, {packets} packets, {seconds:.2f} s:"
                f" {1e6 * seconds / flows:.1f} us a flow, {1e6 * seconds / packets:.2f} us a packet,"
                f" {size / runs:.0f} bytes of the store a run"
            )


GRID = {"load": "5%..50%:5%", "rtt": "10ms..100ms:10ms", "schemes": "iw10,halfback,wise-start", "duration": "60s"}
GRID |= {"repeats": "2", "threads": "1"}


EXECUTORS = {
    "none": "executor = None",
    "processes": "from concurrent.futures import ProcessPoolExecutor\nexecutor = ProcessPoolExecutor(WORKERS)",
    "dask": "from dask.distributed import Client, LocalCluster\n"
    "cluster = LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None)\n"
    "client = Client(cluster)\nexecutor = client.get_executor()",
    "ray": "import ray, headstart.ray\nray.init(num_cpus=WORKERS, include_dashboard=False, log_to_driver=False)\n"
    "executor = headstart.ray.RayExecutor()",
}
SWEEP = """
import sys, headstart
if __name__ == "__main__":
    WORKERS, points = int(sys.argv[1]), int(sys.argv[2])
    {}
    small = dict(load=f"1%..{{points * 0.02 + 0.98:.2f}}%:0.02%", schemes="iw10", duration="2 s", repeats=1, threads=1)
    headstart.sweep(executor=executor, **(small if points else {grid}))
    if executor:
        executor.shutdown()
    for name in ("client", "cluster"):
        if name in globals():
            globals()[name].close()
"""


def write(script, setup):
    """The script of an executor."""
    script.write_text(SWEEP.format(setup.replace("\n", "\n    "), grid=GRID))


def workers():
    """Processor time of a sweep by an executor, over that of one process."""
    with tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder) / "sweep.py"
        for name, count in [("none", 1), *((name, count) for name in ("processes", "dask") for count in (1, 2, 4))]:
            write(script, EXECUTORS[name])
            began = time.monotonic()
            spent = cost(folder, sys.executable, script, str(count), "0")
            if name == "none":
                alone = spent
            print(
                f"{name}, {count} workers: {spent:.2f} s, efficiency {alone / spent:.2f};"
                f" {time.monotonic() - began:.1f} s by the clock",
                flush=True,
            )


def points():
    """Time a point by each executor, of points that cost little."""
    few, many = 100, 600
    with tempfile.TemporaryDirectory() as folder:
        for name, setup in EXECUTORS.items():
            script = pathlib.Path(folder) / "sweep.py"
            write(script, setup)
            for workers in (1, 2, 4) if name != "none" else (1,):
                each = []
                for _ in range(2):
                    spent = []
                    for count in (few, many):
                        began = time.monotonic()
                        processor = cost(folder, sys.executable, script, str(workers), str(count))
                        spent.append((processor, time.monotonic() - began))
                    each.append([(more - less) / (many - few) for less, more in zip(*spent)])
                for kind, times, first in zip(("processor", "clock"), zip(*each), spent[0]):
                    if (name, kind) != ("ray", "processor"):
                        print(
                            f"{name}, {workers} workers, {kind}: {1e3 * statistics.median(times):.2f} ms a point"
                            f" ({1e3 * min(times):.2f} to {1e3 * max(times):.2f}),"
                            f" {first - few * times[-1]:.1f} s to begin and end",
                            flush=True,
                        )


BLOCKS = """
import resource, sys, headstart
from concurrent.futures import ProcessPoolExecutor

if __name__ == "__main__":
    seeds, executor = int(sys.argv[1]) // 1000, ProcessPoolExecutor(2) if sys.argv[2] == "processes" else None
    grid = dict(seed=f"1..{seeds}:1", load="1%..50%:1%", rtt="1 ms..20 ms:1 ms", schemes="iw10", duration="2 s")
    headstart.sweep_blocks(sys.argv[3], executor=executor, repeats=1, **grid)
    if executor:
        executor.shutdown()
    used = resource.getrusage(resource.RUSAGE_SELF)
    workers = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{sys.argv[1]} points, {sys.argv[2]}: the caller {used.ru_utime + used.ru_stime:.1f} s of processor time and"
          f" {used.ru_maxrss / 1e3:.0f} MB, the workers {workers.ru_utime + workers.ru_stime:.0f} s", flush=True)
"""


def blocks():
    """Time and memory of sweeps in blocks, of points that cost little."""
    with tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder) / "blocks.py"
        script.write_text(BLOCKS)
        for points in (10_000, 100_000):
            for name in ("alone", "processes"):
                out = pathlib.Path(folder) / f"{points}-{name}"
                subprocess.run([sys.executable, script, str(points), name, out], check=True)
                files = list(out.rglob("*.parquet"))
                print(f"{sum(file.stat().st_size for file in files) / 1e6:.0f} MB in {len(files)} files", flush=True)


DRIVER = """
import concurrent.futures, queue, resource, sys, threading, time, headstart


class Canned(concurrent.futures.Executor):
    # Gives the first call's result for each: workers that take no time.
    def __init__(self):
        self.calls, self.first = queue.SimpleQueue(), None
        threading.Thread(target=self.answer, daemon=True).start()

    def submit(self, function, /, *arguments):
        future = concurrent.futures.Future()
        self.calls.put((future, function, arguments))
        return future

    def answer(self):
        while True:
            future, function, arguments = self.calls.get()
            self.first = self.first or function(*arguments)
            if future.set_running_or_notify_cancel():
                # Block number, tables, keys of points, runs and seconds.
                future.set_result((arguments[3], self.first[1], {}, *self.first[3:]))


points, out, blocks = int(sys.argv[1]), sys.argv[2], []
grid = dict(seed=f"1..{points // 1000}:1", load="11%..60%:1%", rtt="1 ms..20 ms:1 ms")
grid |= dict(schemes=["iw10", "halfback", "wise-start"], duration="5 s", repeats=8, large=True)
# The time of the first block is that of its runs.
report = lambda *_: blocks.append((time.monotonic(), time.process_time()))
headstart.sweep_blocks(out, executor=Canned(), progress=report, **grid)
count, (took, spent) = len(blocks), (last - first for first, last in zip(blocks[0], blocks[-1]))
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
print(f"{points} points in {count} blocks: {count / took:.0f} blocks and {points / took:.0f} points a second,"
      f" {1e3 * spent / count:.2f} ms of processor time a block, {memory:.0f} MB")
"""


def driver():
    """The caller of `sweep_blocks`, with workers that take no time, on a disk and in memory."""
    for where in (None, "/dev/shm"):
        print(where or "the disk")
        for count in (10_000, 100_000, 1_000_000):
            with tempfile.TemporaryDirectory(dir=where) as folder:
                subprocess.run([sys.executable, "-c", DRIVER, str(count), f"{folder}/grid"], check=True)


if __name__ == "__main__":
    began = time.monotonic()
    {"flows": flows, "workers": workers, "points": points, "blocks": blocks, "driver": driver}[sys.argv[1]]()
    print(f"{time.monotonic() - began:.0f} s by the clock")
