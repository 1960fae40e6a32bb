#!/usr/bin/env python3
"""Untouched servers over the kernel's TCP behind `headstart link`, and the QUIC server.

A known peer's 100 kB by nginx, Go and Java on four paths of docs/records/agreement.md, in turns
with CUBIC, and the QUIC server's time on the same paths.

Needs root, nginx, curl, Go and a JDK. Usage:
    tools/measure-tcp.py [HEADSTART] [--repeats N] [--servers nginx,go,java,java-nodelay]

`empty` is the server's own time: no eBPF, CUBIC, and a first window of 400 segments by a route,
which sends everything at once. Its time beyond handshake, request, and size over rate is not due to
the start. The QUIC row is `headstart serve` with wise-start, fetched by `headstart get`
(from its first packet, handshake and request included). Times are medians in milliseconds.
"""

import argparse
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

PATHS = ["25 50 104", "50 50 208", "8 90 140", "32 70 560"]
SIZE = 100_000
SERVERS = pathlib.Path(__file__).resolve().parent / "tcp-servers"


def cgroup_mount():
    for line in open("/proc/mounts"):
        fields = line.split()
        if fields[2] == "cgroup2":
            return pathlib.Path(fields[1])
    sys.exit("measure-tcp.py: found no mount of cgroup v2, expected one")


def build(folder, wanted):
    """Commands that serve the folder's file on port 80, by server."""
    (folder / "file").write_bytes(b"x" * SIZE)
    (folder / "nginx.conf").write_text(
        f"daemon off; master_process off; error_log {folder}/error; pid {folder}/pid; events {{ worker_connections 256; }}\n"
        f"http {{ access_log off; sendfile on; tcp_nopush on; client_body_temp_path {folder}/b; proxy_temp_path {folder}/p;\n"
        f"fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;\n"
        f"server {{ listen 80; root {folder}; }} }}\n"
    )
    commands = {"nginx": f"nginx -c {folder}/nginx.conf"}
    if "go" in wanted:
        subprocess.run(["go", "build", "-o", folder / "files", SERVERS / "files.go"], check=True)
        commands["go"] = f"{folder}/files 80 {folder}"
    if any(name.startswith("java") for name in wanted):
        subprocess.run(["javac", "-d", folder, SERVERS / "Files.java"], check=True)
        commands["java"] = f"java -cp {folder} Server 80 {folder}"
        commands["java-nodelay"] = f"java -Dsun.net.httpserver.nodelay=true -cp {folder} Server 80 {folder}"
    return {name: commands[name] for name in wanted}


def link(headstart, path, serve, client):
    """Output of the client in a run in which the machine kept real time."""
    rate, rtt, packets = path.split()
    words = [headstart, "link", "--rate", f"{rate}mbit", "--rtt", f"{rtt}ms", "--buffer", f"{packets}p", "--strict"]
    for _ in range(6):
        said = subprocess.run(words + ["--serve", serve, "--", "sh", "-c", client], capture_output=True, text=True)
        if "INVALID" not in said.stdout + said.stderr:
            return said.stdout
    return ""


def fetch(headstart, path, command, cgroup, count, before=""):
    """Milliseconds of `count` fetches after one that warms the server up."""
    serve = f"sh -c 'echo $$ > {cgroup}/cgroup.procs && {before} exec chrt -f 1 {command}'"
    one = "chrt -f 1 curl -s -o /dev/null -w 'took %{time_total}\\n' http://$HEADSTART_OUTSIDE/file; sleep 0.3; "
    client = "sysctl -qw net.ipv4.tcp_rmem='4096 1048576 6291456'; " + one * (count + 2)
    found = re.findall(r"^took ([0-9.]+)", link(headstart, path, serve, client), re.M)
    return [1000 * float(time) for time in found][2:]


def fetch_quic(headstart, path, count):
    """The same over QUIC, from the first packet of the handshake to the last byte."""
    serve = f"sh -c 'exec chrt -f 1 {headstart} serve --generate --listen 100.64.0.1:4433 --scheme wise-start'"
    client = f"chrt -f 1 {headstart} get --insecure --repeat {count + 3} --format csv https://$HEADSTART_OUTSIDE:4433/bytes/{SIZE}"
    lines = [line.split(",") for line in link(headstart, path, serve, client).splitlines()]
    at = next((line.index("complete_ms") for line in lines if "complete_ms" in line), 0)
    return [float(line[at]) for line in lines if len(line) > at and line[1].isdigit()][3:]


def median(times):
    return statistics.median(times) if times else float("nan")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("headstart", nargs="?", default="./target/release/headstart")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quic", help="another build of headstart for the QUIC server and its client")
    parser.add_argument("--servers", default="nginx,go,java,java-nodelay")
    options = parser.parse_args()
    wanted = options.servers.split(",")
    headstart = shutil.which(options.headstart) or sys.exit("measure-tcp.py: found no headstart")
    cgroup = cgroup_mount() / "headstart-measure"
    cgroup.mkdir(exist_ok=True)
    cubic = "ip route change 100.64.0.2 dev headstart congctl cubic"
    wide = f'{cubic} initcwnd 400 && sysctl -qw net.ipv4.tcp_wmem="4096 1048576 4194304" &&'
    print("| path | server | CUBIC | empty | wise-start | over the bound | over the server's own |\n|---|---|---|---|---|---|---|", flush=True)
    try:
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            os.chmod(folder, 0o755)
            for path in PATHS:
                rate, rtt, _ = map(float, path.split())
                bound = 2 * rtt + -(-(SIZE + 244) // 1448) * 1500 * 8 / rate / 1000
                for name, command in build(folder, wanted).items():
                    plain = median(fetch(headstart, path, command, cgroup, options.repeats, f"{cubic} &&"))
                    empty = median(fetch(headstart, path, command, cgroup, options.repeats, wide))
                    subprocess.run([headstart, "tcp", "attach", "--cgroup", cgroup], check=True, capture_output=True)
                    try:
                        fast = median(fetch(headstart, path, command, cgroup, options.repeats))
                    finally:
                        subprocess.run([headstart, "tcp", "detach"], check=True)
                    print(f"| {path} | {name} | {plain:.1f} | {empty:.1f} | {fast:.1f} | {100 * (fast / bound - 1):+.1f} % | {100 * (fast / empty - 1):+.1f} % |", flush=True)
                quic = median(fetch_quic(options.quic or headstart, path, options.repeats))
                print(f"| {path} | QUIC | | | {quic:.1f} | | |\n| {path} | bound | | | {bound:.1f} | | |", flush=True)
    finally:
        cgroup.rmdir()


if __name__ == "__main__":
    main()
