#!/usr/bin/env python3
"""Measures costs of sweeps over several processes: the figures of docs/records/scale.md.

    HEADSTART=target/release/headstart tools/measure-sweep.py flows|workers|points

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


if __name__ == "__main__":
    began = time.monotonic()
    {"flows": flows, "workers": workers, "points": points}[sys.argv[1]]()
    print(f"{time.monotonic() - began:.0f} s by the clock")
