#!/usr/bin/env python3
"""Checks alert rules and dashboard against a server and a real Prometheus.

usage: monitoring.py HEADSTART

- `promtool` checks the rules and runs their tests.
- A server is started, pages are fetched, and `promtool` checks its counters.
- Every metric in rules and dashboard is one of the server's.
- Prometheus scrapes the server while pages are fetched, until every query of the dashboard has a
  number.
"""

import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

PACKAGING = pathlib.Path(__file__).resolve().parent.parent / "packaging"
METRIC = re.compile(r"\bheadstart_[a-z_]+")
SERIES_OF_HISTOGRAM = re.compile(r"_(bucket|sum|count)$")
SECONDS = 120


def get(url):
    with urllib.request.urlopen(url, timeout=SECONDS) as answer:
        return answer.read().decode()


def addresses(server, *expected):
    """Addresses that a server prints: a port that it chose itself is nobody else's."""
    printed = ""
    for line in server.stderr:
        printed += line
        found = [re.search(address, printed) for address in expected]
        if all(found):
            return [one[0] for one in found]
    sys.exit(f"monitoring.py: found no addresses, expected {' and '.join(expected)}:\n{printed}")


def until(what, attempt):
    end = time.monotonic() + SECONDS
    while True:
        try:
            return attempt()
        except (OSError, KeyError, IndexError) as error:
            if time.monotonic() > end:
                sys.exit(f"monitoring.py: waited {SECONDS} s in vain: {what}: {error}")
            time.sleep(0.1)


def queries(dashboard):
    """Title and query of each series, with the variables as Grafana would fill them in."""
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            text = target["expr"].replace("$__rate_interval", "1m")
            yield panel["title"], re.sub(r"\$[a-z]+", ".*", text)


def has_data(result):
    """True if one series is a number: 0/0 is none, and Grafana draws nothing for it."""
    return any(math.isfinite(float(series["value"][1])) for series in result)


def check(headstart, folder):
    rules = PACKAGING / "prometheus-rules.yml"
    subprocess.run(["promtool", "check", "rules", rules], check=True, stdout=subprocess.DEVNULL)
    tests = PACKAGING / "prometheus-rules.test.yml"
    subprocess.run(["promtool", "test", "rules", tests], check=True, stdout=subprocess.DEVNULL)

    # Nobody answers for the fleet's history: its counters are there all the same.
    generate = [headstart, "serve", "--generate", "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--quiet"]
    # Both arms: loopback is shorter than the paths on which they are drawn, and Headstart is slow
    # start there.
    server = [*generate, "--scheme", "wise-start", "--rollout", "50 %", "--shortest-rtt", "0 ms"]
    server += ["--history", "valkey://127.0.0.1:1/", "--access-log", f"{folder}/access.log"]
    environment = dict(os.environ, XDG_DATA_HOME=str(folder))
    # A history is a fleet's or a file.
    of_file = [*generate, "--history", f"{folder}/peers.history"]
    running = [
        subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=environment) for words in (server, of_file)
    ]
    try:
        (counters, url), (counters_of_file, _) = (addresses(one, r"http://\S+/metrics", r"https://[^,]*/") for one in running)
        fetch = [headstart, "get", f"{url}bytes/1000000", "--insecure", "--repeat", "5"]
        subprocess.run(fetch, check=True, stdout=subprocess.DEVNULL)
        text = get(counters)
        subprocess.run(["promtool", "check", "metrics"], check=True, input=text, text=True)
        exported = set(re.findall(r"^# TYPE (\S+)", text + get(counters_of_file), re.MULTILINE))
        dashboard = json.loads((PACKAGING / "grafana-dashboard.json").read_text())
        named = set(METRIC.findall(rules.read_text())) | set(METRIC.findall(json.dumps(dashboard)))
        absent = sorted(name for name in named if not {name, SERIES_OF_HISTOGRAM.sub("", name)} & exported)
        if absent:
            sys.exit(f"monitoring.py: found {', '.join(absent)}, expected metrics of the server")

        settings = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(rules)],
            "scrape_configs": [{"job_name": "headstart", "static_configs": [{"targets": [urllib.parse.urlsplit(counters).netloc]}]}],
        }
        # YAML has JSON in it.
        (folder / "prometheus.yml").write_text(json.dumps(settings))
        prometheus = ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
        prometheus += ["--web.listen-address=127.0.0.1:0"]
        running.append(subprocess.Popen(prometheus, stderr=subprocess.PIPE, text=True))
        (listen,) = addresses(running[-1], r"(?<=address=)127\.0\.0\.1:[1-9]\d*")

        def ask(query):
            address = f"http://{listen}/api/v1/query?" + urllib.parse.urlencode({"query": query})
            return json.loads(get(address))["data"]["result"]

        count = lambda: ask("sum(headstart_connections_total) > 2")[0]["value"][1]
        until("the connections", count)
        asked = empty = [*queries(dashboard)]
        end = time.monotonic() + SECONDS
        while empty := [(title, query) for title, query in empty if not has_data(ask(query))]:
            if time.monotonic() > end:
                sys.exit("\n".join(f"monitoring.py: no data in {SECONDS} s: {title}: {query}" for title, query in empty))
            subprocess.run(fetch, check=True, stdout=subprocess.DEVNULL)
        ended = count()
        groups = json.loads(get(f"http://{listen}/api/v1/rules"))["data"]["groups"]
        alerts = [rule for group in groups for rule in group["rules"]]
        bad = [rule["name"] for rule in alerts if rule["health"] == "err"]
        if bad:
            sys.exit(f"monitoring.py: rules that Prometheus cannot evaluate: {', '.join(bad)}")
        print(f"{len(named)} metrics, {len(asked)} queries with data, {len(alerts)} alerts, {ended} connections")
    finally:
        for process in reversed(running):
            process.terminate()
            process.wait()


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    if not all(map(shutil.which, ["prometheus", "promtool"])):
        print("NOT RUN: alert rules and dashboard: prometheus is not installed")
        return
    with tempfile.TemporaryDirectory() as folder:
        check(sys.argv[1], pathlib.Path(folder))


main()
