#!/usr/bin/env python3
"""Uses the page of `headstart explore` in headless Chromium, and compares it with the command.

usage: tools/explore-browser.py [--screenshots FOLDER] HEADSTART

Needs chromium and chromedriver (Debian: chromium, chromium-driver); says NOT RUN where they are
missing. Ends with 1 if something is not as it should be.
"""

import importlib.util
import json
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
spec = importlib.util.spec_from_file_location("report_browser", HERE / "report-browser.py")
report_browser = importlib.util.module_from_spec(spec)
spec.loader.exec_module(report_browser)
check = report_browser.check

STATE = """
const text = id => document.getElementById(id).textContent;
return {
    state: document.body.dataset.state, seeds: Number(document.body.dataset.seeds ?? 0),
    first: Number(document.body.dataset.first ?? -1), status: text('status'),
    command: text('race-command'), trace: text('trace-command'), explore: text('explore-command'),
    refusal: document.getElementById('refusal').hidden ? null : text('refusal'),
    rows: Object.fromEntries([...document.querySelectorAll('#table tbody tr')].map(row =>
        [row.cells[0].innerText.replace(' *', '').trim(), Number(row.cells[1].dataset.v)])),
    bars: document.querySelectorAll('#plane svg [data-name]').length,
    caption: document.querySelector('#plane figcaption')?.innerText ?? '',
    moved: document.getElementById('clock').textContent, says: text('says'),
    flows: document.querySelectorAll('#flows svg').length, fragment: location.hash,
};
"""


def waits(browser, is_done, seconds=60):
    for _ in range(seconds * 20):
        found = browser.script(STATE)
        if is_done(found):
            return found
        time.sleep(0.05)
    check(False, "the page comes to an end", found)
    return found


def done(found):
    return found["state"] == "done" and found["flows"] > 0


def told(headstart, command):
    """The rows of a command line of the page."""
    words = shlex.split(command)
    with tempfile.TemporaryDirectory() as folder:
        line = [headstart, *words[1:], "--format=json", f"--out={folder}/race"]
        answer = subprocess.run(line, capture_output=True, text=True, check=True)
    return json.loads(answer.stdout)["schemes"]


def show(browser, address, width=1280, scheme="light"):
    browser.cdp("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 500)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.cdp("Emulation.setEmulatedMedia", media="screen", features=features)
    browser.call("POST", "/url", {"url": "about:blank"})
    browser.call("POST", "/url", {"url": address})


def agrees(browser, headstart, found, when):
    rows = told(headstart, found["command"])
    check(len(rows) == len(found["rows"]) > 0, f"every scheme is in the table, {when}", found["rows"])
    for row in rows:
        shown = found["rows"].get(row["scheme"])
        is_same = shown is not None and abs(shown - row["mean_ms"]) < 1e-3
        check(is_same, f"{row['scheme']} has the command's number, {when}", (shown, row["mean_ms"]))
    return rows


MOVE = """
const slider = document.getElementById(arguments[0]);
slider.value = arguments[1];
slider.dispatchEvent(new Event('input', { bubbles: true }));
"""


def main(arguments):
    screenshots = None
    if arguments[:1] == ["--screenshots"]:
        screenshots, arguments = arguments[1], arguments[2:]
        pathlib.Path(screenshots).mkdir(parents=True, exist_ok=True)
    if len(arguments) != 1:
        raise SystemExit(__doc__)
    headstart = arguments[0]
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if not chromium or not driver:
        print("explore in a browser: NOT RUN: chromium or chromedriver is missing (Debian: chromium, chromium-driver)")
        return 0
    server = subprocess.Popen([headstart, "explore", "--no-open", "--repeats=2"], stdout=subprocess.PIPE, text=True)
    try:
        address = server.stdout.readline().strip()
        with report_browser.Browser(chromium, driver) as browser:
            used(browser, headstart, address, screenshots)
    finally:
        server.terminate()
        server.wait()
    if report_browser.failures:
        print(f"explore-browser: {len(report_browser.failures)} failures", file=sys.stderr)
        return 1
    return 0


def used(browser, headstart, address, screenshots):
    show(browser, address)
    first = waits(browser, done)
    agrees(browser, headstart, first, "at first")
    capacity = "return document.body.dataset.capacity ?? null"
    for _ in range(1200):
        if browser.script(capacity):
            break
        time.sleep(0.05)
    found = browser.script("return [document.body.dataset.capacity, document.querySelectorAll('#capacity svg').length]")
    check("--capacity" in (found[0] or "") and found[1] == 1, "the plane of capacities follows", found)
    check("over 2 seeds" in first["caption"], "the bars say how many seeds", first["caption"])

    browser.script(MOVE, "load", "60")
    moved = waits(browser, lambda found: done(found) and "--load=60 %" in found["command"])
    rows = agrees(browser, headstart, moved, "after a slider moved")
    check(moved["rows"] != first["rows"], "a slider changes the numbers", rows)
    check("load=60" in moved["fragment"], "the address has the state", moved["fragment"])

    # An interrupted answer belongs to no state: only the last move counts.
    for load in ("70", "80", "30"):
        browser.script(MOVE, "load", load)
    last = waits(browser, lambda found: done(found) and "30 %" in found["command"])
    agrees(browser, headstart, last, "after many moves")

    before = last["moved"]
    browser.script("document.getElementById('load').focus()")
    browser.keys(report_browser.RIGHT)
    keyed = waits(browser, lambda found: done(found) and "31 %" in found["command"])
    check("31 %" in keyed["command"], "arrow keys move a slider", keyed["command"])
    browser.script("document.getElementById('step').focus()")
    browser.keys(report_browser.ENTER)
    stepped = browser.script(STATE)
    check(stepped["moved"] != before, "a step moves the packets", (before, stepped["moved"]))
    browser.script("document.getElementById('play').click()")
    time.sleep(0.3)
    browser.script("document.getElementById('play').click()")
    played = browser.script(STATE)
    check(played["moved"] != stepped["moved"], "they play", played["moved"])
    time.sleep(0.2)
    check(browser.script(STATE)["moved"] == played["moved"], "and pause")
    inked = browser.script("return document.getElementById('lanes').toDataURL().length")
    check(inked > 5000, "the path is drawn", inked)

    state = keyed["fragment"]
    show(browser, address + state)
    again = waits(browser, done)
    check(again["command"] == keyed["command"] and again["rows"] == keyed["rows"], "an address brings its state back", again)

    browser.script("""
        const text = document.querySelector('#path-fields input[type=text]');
        text.value = 'fast';
        text.dispatchEvent(new Event('change'));
    """)
    refused = waits(browser, lambda found: found["refusal"] is not None)
    check("--rate: found `fast`, expected a rate" in refused["refusal"], "a bad value is refused in the option's words", refused)
    # The browser reports the answer 400 in its console.
    errors = [one for one in browser.errors() if "400 (Bad Request)" not in one]
    check(not errors, "the console is silent", errors)

    show(browser, address)
    waits(browser, done)
    for name in browser.script("return [...document.querySelectorAll('#preset optgroup:first-of-type option')].map(o => o.value)"):
        browser.script("const p = document.getElementById('preset'); p.value = arguments[0]; p.dispatchEvent(new Event('change'))", name)
        found = waits(browser, done)
        is_set = "--rate=" in found["command"] and found["refusal"] is None and found["rows"]
        check(is_set, f"the path of {name} has a result", found)

    times = []
    for width, scheme in ((1280, "light"), (420, "light"), (1280, "dark"), (420, "dark")):
        show(browser, address, width, scheme)
        found = waits(browser, done)
        times.append(found["first"])
        wide = browser.script("return document.documentElement.scrollWidth - innerWidth")
        check(wide <= 0, f"at {width} pixels nothing scrolls sideways", wide)
        if screenshots:
            browser.screenshots(screenshots, f"explore-{width}-{scheme}")
    check(not browser.errors(), "the console is silent on every width")
    print(f"explore in a browser: moved, typed, played and compared with the command; first answers after {times} ms")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
