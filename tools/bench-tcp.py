#!/usr/bin/env python3
"""The cost of `headstart tcp` for nginx with small files: wrk over loopback, in turns without it.

Needs root, nginx and wrk. Usage:
    tools/bench-tcp.py [HEADSTART] [--turns N] [--seconds S] [--close] [--control NAME]
        [-- OPTIONS OF ATTACH]

Processor time per request is that of nginx, and that of nginx and wrk together: either may process
an ack. It is read from /proc/PID/schedstat; other load of the machine changes it through caches
only. Each turn with `headstart tcp` is compared with the turns before and after it, and the median
of the ratios is printed with its 95 % interval.

--control is the congestion control of nginx without it (net.ipv4.tcp_congestion_control of this
namespace, restored at the end).
"""

import argparse
import glob
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time


def cgroup_mount():
    for line in open("/proc/mounts"):
        fields = line.split()
        if fields[2] == "cgroup2":
            return pathlib.Path(fields[1])
    sys.exit("bench-tcp.py: found no mount of cgroup v2, expected one")


def processor_time(pid):
    """Nanoseconds of all threads."""
    total = 0
    for path in glob.glob(f"/proc/{pid}/task/*/schedstat"):
        try:
            total += int(open(path).read().split()[0])
        except OSError:
            pass
    return total


class Server:
    def __init__(self, folder, cgroup, size):
        (folder / "file").write_bytes(b"x" * size)
        (folder / "nginx.conf").write_text(
            f"daemon off; master_process off; error_log {folder}/error; pid {folder}/pid;\n"
            "events { worker_connections 1024; }\n"
            "http { access_log off; sendfile on; tcp_nopush on; keepalive_requests 100000000; open_file_cache max=10;\n"
            f"client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;\n"
            f"uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;\n"
            f"server {{ listen 127.0.0.1:8099 backlog=4096; root {folder}; }} }}\n"
        )
        script = f"echo $$ > {cgroup}/cgroup.procs && exec nginx -c {folder}/nginx.conf"
        self.process = subprocess.Popen(["taskset", "-c", "0", "chrt", "-f", "1", "sh", "-c", script])
        time.sleep(0.5)
        if self.process.poll() is not None:
            sys.exit("bench-tcp.py: nginx does not start")


def turn(server, seconds, close):
    """One run of wrk: requests, and processor nanoseconds of nginx and of both per request."""
    words = ["taskset", "-c", "1", "chrt", "-f", "1", "wrk", "-t", "1", "-c", "16", "-d", f"{seconds}s"]
    words += ["-H", "Connection: close"] if close else []
    before = processor_time(server.process.pid)
    client = subprocess.Popen(words + ["http://127.0.0.1:8099/file"], stdout=subprocess.PIPE, text=True)
    out = client.stdout.read()
    _, _, used = os.wait4(client.pid, 0)
    nginx = processor_time(server.process.pid) - before
    requests = next(int(line.split()[0]) for line in out.splitlines() if " requests in " in line)
    return requests, nginx / requests, (nginx + (used.ru_utime + used.ru_stime) * 1e9) / requests


DEFAULT = pathlib.Path("/proc/sys/net/ipv4/tcp_congestion_control")


class Control:
    """The namespace's default, replaced for a while."""

    def __init__(self, name):
        self.name, self.before = name, DEFAULT.read_text().strip()

    def __enter__(self):
        available = DEFAULT.with_name("tcp_available_congestion_control").read_text().split()
        if self.name and self.name not in available:
            sys.exit(f"bench-tcp.py: --control: found {self.name}, expected one of {', '.join(available)}")
        DEFAULT.write_text(self.name or self.before)

    def __exit__(self, *_):
        DEFAULT.write_text(self.before)


def programs():
    """Calls and nanoseconds of each program of the object."""
    found = json.loads(subprocess.run(["bpftool", "prog", "list", "-j"], capture_output=True, check=True).stdout)
    own = [program for program in found if program.get("name", "").startswith("hs_")]
    return {program["name"]: (program.get("run_cnt", 0), program.get("run_time_ns", 0)) for program in own}


def profile(server, options, attach, detach):
    """A turn with the kernel's own account of each program, whose clock is a part of it."""
    switch = pathlib.Path("/proc/sys/kernel/bpf_stats_enabled")
    before = switch.read_text()
    subprocess.run(attach, shell=True, check=True)
    try:
        switch.write_text("1")
        requests, _, _ = turn(server, options.seconds, options.close)
        found = programs()
    finally:
        switch.write_text(before)
        subprocess.run(detach, shell=True, check=True)
    print("| program | calls per request | ns per call | ns per request |\n|---|---|---|---|")
    for name, (count, time) in sorted(found.items()):
        if count:
            print(f"| `{name}` | {count / requests:.3f} | {time / count:.0f} | {time / requests:.1f} |")
    print(f"| all | {sum(it[0] for it in found.values()) / requests:.2f} | | {sum(it[1] for it in found.values()) / requests:.0f} |")


def interval(values):
    """Median, and a 95 % interval of it by resampling."""
    pick = random.Random(1)
    middle = lambda some: sorted(some)[len(some) // 2]
    again = sorted(middle(pick.choices(values, k=len(values))) for _ in range(2000))
    return middle(values), again[50], again[1949]


def main():
    words = sys.argv[1:]
    rest = words[words.index("--") + 1 :] if "--" in words else []
    words = words[: words.index("--")] if "--" in words else words
    parser = argparse.ArgumentParser()
    parser.add_argument("headstart", nargs="?", default="./target/release/headstart")
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--seconds", type=int, default=1)
    parser.add_argument("--size", type=int, default=1000)
    parser.add_argument("--close", action="store_true", help="a connection for each request")
    parser.add_argument("--empty", action="store_true", help="attach nothing: the comparison's own error")
    parser.add_argument("--programs", action="store_true", help="what each program takes, by bpf_stats")
    parser.add_argument("--control", help="the control without it [default: the namespace's]")
    parser.add_argument("--on", help="instead of `tcp attach`")
    parser.add_argument("--off", help="instead of `tcp detach`")
    options = parser.parse_args(words)
    for tool in ["nginx", "wrk", "taskset", "chrt"]:
        if not shutil.which(tool):
            sys.exit(f"bench-tcp.py: {tool} is missing")
    cgroup = cgroup_mount() / "headstart-bench"
    cgroup.mkdir(exist_ok=True)
    with Control(options.control), tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        os.chmod(folder, 0o755)
        server = Server(folder, cgroup, options.size)
        attach = options.on or f"{options.headstart} tcp attach --cgroup {cgroup} {' '.join(rest)} 2>/dev/null"
        detach = options.off or f"{options.headstart} tcp detach"
        if options.empty:
            attach = detach = "true"
        try:
            turn(server, 1, options.close)
            if options.programs:
                profile(server, options, attach, detach)
                return
            off = [turn(server, options.seconds, options.close)]
            on = []
            for _ in range(options.turns):
                subprocess.run(attach, shell=True, check=True)
                try:
                    on.append(turn(server, options.seconds, options.close))
                finally:
                    subprocess.run(detach, shell=True, check=True)
                off.append(turn(server, options.seconds, options.close))
        finally:
            server.process.send_signal(signal.SIGKILL)
            server.process.wait()
            cgroup.rmdir()
    print(f"load {os.getloadavg()[0]:.1f}, {options.turns} turns of {options.seconds} s, {'closed' if options.close else 'kept'} connections, against {options.control or DEFAULT.read_text().strip()}")
    for index, name, unit in [(0, "requests", options.seconds), (1, "nginx us/request", 1000), (2, "both us/request", 1000)]:
        ratios = [
            2 * with_it[index] / (before[index] + after[index]) for before, with_it, after in zip(off, on, off[1:])
        ]
        middle = lambda runs: sorted(run[index] for run in runs)[len(runs) // 2] / unit
        change, low, high = (100 * (ratio - 1) for ratio in interval(ratios))
        print(f"{name:<17} without {middle(off):10.2f}  with {middle(on):10.2f}  {change:+.2f} % [{low:+.2f}, {high:+.2f}]")


if __name__ == "__main__":
    main()
