#!/usr/bin/env python3
"""`headstart serve` beside nginx, Caddy and plain noq in the same run, and beside ten thousand idle
connections.

Needs Linux, nginx, h2load (package nghttp2-client) and openssl; with Caddy it takes part. The
programs are built as docs/records/serving.md says; `--help` has the options.

All serve over loopback. Certificate and files are the same, TLS is 1.3, nothing is resumed.
There is one worker of nginx; the others have their threads. No processor is reserved for any. The
example `plain` is noq alone: the server of `headstart serve` without anything of headstart between
it and the stack. The client of TCP is h2load, that of QUIC the example `load`.

Processor time is that of the server's process, for each request or connection. In each
turn every server has its run, and ratios are those of one turn, over nginx with HTTP/2 and over
noq. Their medians are printed with 95 % intervals. "On one core" is what one core of the server
carries: requests or connections, and bits, over processor time. Requests per second are medians by
the clock, which other load of the machine changes. --real-time runs servers and clients before
everything else (needs root).

--proxies measures nginx, `headstart proxy` and Caddy in front of another nginx that has the files,
and keeps their connections. --crowd measures completion times and memory with idle QUIC connections
instead.
"""

import argparse
import os
import pathlib
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time

PORTS = {"nginx": 8443, "headstart": 4533, "noq": 4534, "caddy": 4535, "noq-without-gso": 4536, "one-worker": 4537,
         "noq-without-gro": 4538, "origin": 4539}
#: name, file, kind, connections at once
CASES = [
    ("1 kB, kept", "1k", "kept", 16),
    ("100 kB, kept", "100k", "kept", 16),
    ("1 kB, new", "1k", "new", 64),
    ("10 MB", "10M", "kept", 2),
    ("1 GB", "1G", "kept", 1),
]
SIZES = {"1k": 1000, "100k": 100_000, "10M": 10_000_000, "1G": 1_000_000_000}
SERVERS = ["nginx h2", "nginx h1", "headstart h2", "headstart h1", "headstart h3", "noq h3", "caddy h3", "noq-without-gso h3", "noq-without-gro h3",
           "one-worker h3"]
PROXIES = ["nginx h2", "nginx h1", "headstart h2", "headstart h1", "headstart h3", "caddy h2", "caddy h1", "caddy h3"]


def processor_time(pid):
    """Nanoseconds of all threads, those that have ended included (clock_getcpuclockid(3))."""
    return time.clock_gettime_ns(~pid << 3 | 2)


def resident(pid):
    """Bytes."""
    return int(re.search(r"^VmRSS:\s+(\d+) kB", open(f"/proc/{pid}/status").read(), re.M)[1]) * 1024


def interval(values):
    """Median, and a 95 % interval of it by resampling."""
    pick = random.Random(1)
    middle = lambda some: sorted(some)[len(some) // 2]
    again = sorted(middle(pick.choices(values, k=len(values))) for _ in range(2000))
    return middle(values), again[50], again[1949]


def site(folder):
    """Files of bytes that no file system leaves out, and a certificate."""
    (folder / "site").mkdir()
    block = os.urandom(1_000_000)
    for name, size in SIZES.items():
        with open(folder / "site" / name, "wb") as file:
            for _ in range(max(size // len(block), 1)):
                file.write(block[:size])
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "10",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", folder / "key.pem", "-out",
         folder / "cert.pem"],
        check=True, capture_output=True,
    )


def start_nginx(folder, name="nginx", passes_on=False):
    """One over TLS that has the files or passes requests on, or the origin behind."""
    files = f"root {folder}/site;"
    if passes_on:
        files = 'location / { proxy_pass http://files; proxy_http_version 1.1; proxy_set_header Connection ""; }'
    listen = f"{PORTS[name]} " + ("" if name == "origin" else "ssl http2 ") + "backlog=4096"
    (folder / f"{name}.conf").write_text(
        f"daemon off; master_process off; error_log {folder}/error; pid {folder}/{name}.pid;\n"
        "events { worker_connections 4096; }\n"
        "http { access_log off; sendfile on; tcp_nopush on; keepalive_requests 100000000; open_file_cache max=10;\n"
        f"client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;\n"
        f"uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s; ssl_protocols TLSv1.3; ssl_session_tickets off;\n"
        f"ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem;\n"
        f"upstream files {{ server 127.0.0.1:{PORTS['origin']}; keepalive 256; keepalive_requests 100000000; }}\n"
        f"server {{ listen 127.0.0.1:{listen}; {files} }} }}\n"
    )
    return subprocess.Popen(["nginx", "-c", folder / f"{name}.conf"])


def start_headstart(headstart, folder, most=10_000, server="headstart", passes_on=False):
    one = {"TOKIO_WORKER_THREADS": "1"} if server == "one-worker" else {}
    contents = ["proxy", "--upstream", f"http://127.0.0.1:{PORTS['origin']}"] if passes_on else ["serve", folder / "site"]
    return subprocess.Popen(
        [headstart, *contents, "--listen", f"127.0.0.1:{PORTS[server]}", "--certificate",
         folder / "cert.pem", "--key", folder / "key.pem", "--quiet", "--most-connections", str(most),
         "--most-per-address", str(most)],
        stderr=subprocess.DEVNULL,
        env=os.environ | one,
    )


def start_noq(plain, folder, server="noq"):
    words = [plain, folder / "site", f"127.0.0.1:{PORTS[server]}", folder / "cert.pem", folder / "key.pem"]
    without = {"noq": [], "noq-without-gso": ["no-gso"], "noq-without-gro": ["no-gro"]}
    return subprocess.Popen(words + without[server])


def start_caddy(folder, passes_on=False):
    files = f"reverse_proxy 127.0.0.1:{PORTS['origin']}" if passes_on else f"root * {folder}/site\n file_server"
    # QUIC needs a name to choose the certificate by; the client sends localhost.
    (folder / "Caddyfile").write_text(
        "{\n admin off\n auto_https off\n}\n"
        f"https://localhost:{PORTS['caddy']} {{\n bind 127.0.0.1\n tls {folder}/cert.pem {folder}/key.pem\n"
        f" {files}\n}}\n"
    )
    words = ["caddy", "run", "--config", folder / "Caddyfile", "--adapter", "caddyfile"]
    environment = dict(os.environ, HOME=str(folder), XDG_DATA_HOME=str(folder), XDG_CONFIG_HOME=str(folder))
    return subprocess.Popen(words, stderr=subprocess.DEVNULL, env=environment)


class Failed(Exception):
    pass


def tcp(server, name, kind, count, seconds):
    """Requests, seconds and bytes of one run of h2load."""
    port = PORTS[server.split()[0]]
    words = ["h2load", "-t", "1", "-c", str(count)] + (["--h1"] if server.endswith("h1") else [])
    size = SIZES[name]
    if kind == "kept" and size > 1_000_000:
        # Its own time limit would end in the middle of a file.
        words += ["-n", str(count * max(1, round(seconds * 5e8 / size / count)))]
        # Windows of a gigabyte: one round trip of loopback is no limit for HTTP/2 either.
        words += ["-w", "30", "-W", "30"]
    elif kind == "kept":
        words += ["-D", str(seconds), "-m", "1"]
    else:
        words += ["-n", str(count)]
    requests = elapsed = received = 0
    begun = time.monotonic()
    while not requests or (kind == "new" and time.monotonic() - begun < seconds):
        at = time.monotonic()
        said = subprocess.run(words + [f"https://localhost:{port}/{name}"], capture_output=True, text=True).stdout
        if kind == "new":
            elapsed += time.monotonic() - at
        elif finished := re.search(r"finished in ([0-9.]+)(m?)s", said):
            elapsed += float(finished[1]) * (0.001 if finished[2] else 1)
        found = re.search(r"(\d+) done, (\d+) succeeded, (\d+) failed", said)
        if not found or int(found[3]) or not int(found[2]):
            raise Failed(f"{server}, {name}: {said[-400:]}")
        requests += int(found[2])
    return requests, elapsed, requests * size


def quic(load, server, name, kind, count, seconds):
    mode = "requests" if kind == "kept" else "connections"
    url = f"https://localhost:{PORTS[server.split()[0]]}/{name}"
    done = subprocess.run([load, mode, url, str(count), str(seconds)], capture_output=True, text=True)
    words = done.stdout.split()
    if len(words) < 7 or int(words[1]) or not int(words[0]):
        raise Failed(f"{server}, {name}: {done.stdout} {done.stderr}")
    return int(words[0]), float(words[3]), int(words[2])


def compare(options, folder):
    wanted = (options.servers or "nginx,headstart,noq,caddy").split(",")
    proxies = options.proxies
    servers = [server for server in (PROXIES if proxies else SERVERS) if server.split()[0] in wanted]
    if not shutil.which("caddy"):
        servers = [server for server in servers if not server.startswith("caddy")]
    starts = {
        "origin": lambda: start_nginx(folder, "origin"),
        "nginx": lambda: start_nginx(folder, passes_on=proxies),
        "headstart": lambda: start_headstart(options.headstart, folder, passes_on=proxies),
        "one-worker": lambda: start_headstart(options.headstart, folder, server="one-worker"),
        "noq": lambda: start_noq(f"{options.examples}/plain", folder),
        "caddy": lambda: start_caddy(folder, proxies),
        "noq-without-gso": lambda: start_noq(f"{options.examples}/plain", folder, "noq-without-gso"),
        "noq-without-gro": lambda: start_noq(f"{options.examples}/plain", folder, "noq-without-gro"),
    }
    names = ["origin"] * proxies + [server.split()[0] for server in servers]
    processes = {name: starts[name]() for name in dict.fromkeys(names)}
    time.sleep(1)
    try:
        for name, process in processes.items():
            if process.poll() is not None:
                sys.exit(f"measure-serve.py: {name} does not start")
        print(f"load {os.getloadavg()[0]:.1f}, {options.turns} turns of {options.seconds} s")
        bases = [base for base in ["nginx h2", "noq h3"] if base in servers]
        print("| work | server | by the clock (per second) | processor of the server (us each) | on one core (per second) "
              "| on one core (Gbit/s) |" + "".join(f" over {base} (ratio) |" for base in bases))
        print("|---|---|" + "--:|" * (4 + len(bases)))
        for case, name, kind, count in CASES:
            if options.only and not any(word in case for word in options.only.split(",")):
                continue
            runs = {server: [] for server in servers}
            failed = {}
            for turn in range(options.turns + 1):
                for server in servers:
                    if server in failed:
                        continue
                    pid = processes[server.split()[0]].pid
                    before = processor_time(pid)
                    try:
                        if server.endswith("h3"):
                            done, elapsed, received = quic(f"{options.examples}/load", server, name, kind, count, options.seconds)
                        else:
                            done, elapsed, received = tcp(server, name, kind, count, options.seconds)
                    except Failed as failure:
                        # It has no number then; the others go on.
                        failed[server] = failure
                        continue
                    used = processor_time(pid) - before
                    # The first turn fills caches.
                    if turn:
                        runs[server].append((done / elapsed, used / done / 1000, done * 1e9 / used, received * 8 / used))
            for server in servers:
                if server in failed:
                    print(f"measure-serve.py: {failed[server]}", file=sys.stderr)
                    continue
                middle = [sorted(run[index] for run in runs[server])[options.turns // 2] for index in range(4)]
                text = f"| {case} | {server} | " + " | ".join(f"{value:.4g}" for value in middle) + " |"
                for base in bases:
                    if base in failed:
                        text += " - |"
                        continue
                    ratio, low, high = interval([run[1] / beside[1] for run, beside in zip(runs[server], runs[base])])
                    text += " 1 |" if server == base else f" {ratio:.2f} [{low:.2f}, {high:.2f}] |"
                print(text, flush=True)
    finally:
        for process in processes.values():
            process.kill()
            process.wait()


def crowd(options, folder):
    idle, busy = (int(number) for number in options.crowd.split(","))
    print(f"load {os.getloadavg()[0]:.1f}, {options.turns} turns of {options.seconds} s, {busy} busy connections, 100 kB each")
    print("| idle connections | opened in (s) | server's memory (MB) | for each idle one (kB) | completed | failed "
          "| p50 (ms) | p99 (ms) | longest (ms) | processor of the server (us each) | idle ones left |")
    print("|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    rows = {0: [], idle: []}
    for turn in range(options.turns):
        for count in (0, idle):
            server = start_headstart(options.headstart, folder, 2 * (idle + busy))
            time.sleep(1)
            url = f"https://localhost:{PORTS['headstart']}/100k"
            load = f"{options.examples}/load"
            try:
                # Memory of the first connections of any server is no part of an idle one.
                subprocess.run([load, "connections", url, str(busy), "1"], check=True, capture_output=True)
                before = resident(server.pid)
                client = subprocess.Popen(
                    [load, "crowd", url, str(count), str(busy), str(options.seconds)],
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                )
                opened, failures, took = client.stdout.readline().split()
                time.sleep(1)
                after = resident(server.pid)
                used = processor_time(server.pid)
                client.stdin.write("\n")
                client.stdin.flush()
                words = client.stdout.readline().split()
                used = processor_time(server.pid) - used
                client.wait()
            finally:
                server.kill()
                server.wait()
            if int(failures) or int(opened) != count:
                raise Failed(f"{opened} of {count} idle connections, {failures} failed")
            each = (after - before) / count / 1000 if count else 0
            rows[count].append([float(took), after / 1e6, each, *map(float, words[:2]), *map(float, words[4:7]),
                                used / max(int(words[0]), 1) / 1000, float(words[7])])
    for count, found in rows.items():
        middle = [sorted(row[index] for row in found)[len(found) // 2] for index in range(len(found[0]))]
        print(f"| {count} | " + " | ".join(f"{value:.4g}" for value in middle) + " |")
    for index, name in [(5, "p50"), (6, "p99"), (8, "processor")]:
        ratios = [beside[index] / alone[index] for beside, alone in zip(rows[idle], rows[0])]
        print("%s with over without, turn by turn: %.2f [%.2f, %.2f]" % (name, *interval(ratios)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("headstart", nargs="?", default="./target/release/headstart")
    parser.add_argument("--examples", default="./target/release/examples", help="folder of `load` and `plain`")
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--seconds", type=int, default=1)
    parser.add_argument("--only", help="cases with one of these words")
    parser.add_argument("--servers", help="these servers alone, such as headstart,one-worker,noq,noq-without-gso,noq-without-gro")
    parser.add_argument("--proxies", action="store_true", help="in front of another server")
    parser.add_argument("--real-time", action="store_true", help="before everything else")
    parser.add_argument("--crowd", help="idle and busy connections, such as 10000,500")
    options = parser.parse_args()
    plain = [] if options.proxies else [f"{options.examples}/plain"]
    tools = [] if options.crowd else [*plain, "nginx", "h2load"]
    for tool in [options.headstart, f"{options.examples}/load", "openssl", *tools]:
        if not shutil.which(tool):
            sys.exit(f"measure-serve.py: {tool} is missing")
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    if options.real_time:
        # Children inherit it.
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        os.chmod(folder, 0o755)
        site(folder)
        try:
            crowd(options, folder) if options.crowd else compare(options, folder)
        except Failed as failure:
            sys.exit(f"measure-serve.py: {failure}")


if __name__ == "__main__":
    main()
