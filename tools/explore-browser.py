#!/usr/bin/env python3
"""Uses the page of `headstart explore` in headless Chromium, and compares it with the command.

usage: tools/explore-browser.py [--screenshots FOLDER] HEADSTART

Needs chromium and chromedriver (Debian: chromium, chromium-driver); says NOT RUN where they are
missing. The rules of axe-core are from its package of npm, which is kept below target/tools; that
part is NOT RUN where it cannot be had. Ends with 1 if something is not as it should be.
"""

import base64
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
    // Those of a state before stay until others come.
    flows: document.body.dataset.flows ? document.querySelectorAll('#flows svg').length : 0, fragment: location.hash,
};
"""


def waits(browser, is_done, script=STATE):
    """The value of a script once it is as awaited, or after a minute."""
    for _ in range(1200):
        found = browser.script(script)
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


def show(browser, address, width=1280, scheme="light", height=900):
    browser.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500)
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


def axe_core():
    """The text of axe-core, or None where it cannot be had."""
    folder = HERE.parent / "target/tools/axe"
    script = folder / "package/axe.min.js"
    if not script.exists():
        folder.mkdir(parents=True, exist_ok=True)
        try:
            options = {"cwd": folder, "capture_output": True, "text": True, "check": True, "timeout": 120}
            packed = subprocess.run(["npm", "pack", "--silent", AXE], **options).stdout.split()[-1]
            subprocess.run(["tar", "xzf", packed, "package/axe.min.js"], **options)
        except (OSError, subprocess.SubprocessError, IndexError):
            return None
    return script.read_text(encoding="utf-8")


def is_accessible(browser, axe, when):
    browser.script(axe)
    browser.script("window.found = null; axe.run().then(result => { window.found = result.violations; })")
    violations = "return window.found?.map(one => [one.id, one.nodes.map(node => node.target.join(' '))])"
    found = waits(browser, lambda found: found is not None, violations)
    check(found == [], f"axe finds nothing {when}", found)


AXE = "axe-core@4.14.1"
# Places that must be seen at once: one changes there, and sees the answer here.
SEEN = """
const box = one => { const { top, bottom, left, right } = one.getBoundingClientRect(); return { top, bottom, left, right }; };
const inside = ({ top, bottom, left, right }) => top >= 0 && left >= 0 && bottom <= innerHeight && right <= innerWidth + 1;
return {
    plane: inside(box(document.querySelector('#plane svg'))),
    controls: [...document.querySelectorAll('#controls .field')].filter(one => {
        const { top, bottom, left, right } = box(one);
        const found = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
        return inside(box(one)) && found && document.getElementById('controls').contains(found);
    }).length,
};
"""
# Pairs of texts of the plane that lie on one another.
OVERLAPS = """
const texts = [...document.querySelectorAll('#plane svg text')].map(one => [one.textContent, one.getBoundingClientRect()]);
const pairs = [];
texts.forEach(([one, a], at) => texts.slice(at + 1).forEach(([other, b]) => {
    const width = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const height = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (width > 1 && height > 3) pairs.push([one, other]);
}));
return pairs;
"""
FONTS = """
return [...document.querySelectorAll('svg text')].filter(text => text.checkVisibility())
    // The difference of two edges far down the page is not exact.
    .map(one => [one.textContent, Math.round(100 * one.getBoundingClientRect().height) / 100])
    .filter(([, height]) => height < 11);
"""
TYPE = """
const text = document.getElementById(arguments[0]).closest('.field').querySelector('input[type=text]');
text.value = arguments[1];
text.dispatchEvent(new Event('change'));
"""

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
    drawn = "return [document.body.dataset.{0} ?? '', document.querySelectorAll('#{0} {1}').length]"
    found = waits(browser, lambda found: found[0], drawn.format("capacity", "svg"))
    check("--capacity" in found[0] and found[1] == 1, "the plane of capacities follows", found)
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

    # Moves within a second are one step of the history.
    time.sleep(1.1)
    browser.script("document.getElementById('load').focus()")
    browser.keys(report_browser.RIGHT)
    keyed = waits(browser, lambda found: done(found) and "31 %" in found["command"])
    check("31 %" in keyed["command"], "arrow keys move a slider", keyed["command"])
    browser.script("document.getElementById('step').focus()")
    browser.keys(report_browser.ENTER)
    stepped = browser.script(STATE)
    check(stepped["moved"] != keyed["moved"], "a step moves the packets", (keyed["moved"], stepped["moved"]))
    browser.script("document.getElementById('play').click()")
    waits(browser, lambda found: found["moved"] != stepped["moved"])
    browser.script("document.getElementById('play').click()")
    played = browser.script(STATE)
    time.sleep(0.2)
    check(browser.script(STATE)["moved"] == played["moved"], "and pause")
    inked = browser.script("return document.getElementById('lanes').toDataURL().length")
    check(inked > 5000, "the path is drawn", inked)

    # Back undoes what was done by a control; a reload stays.
    browser.call("POST", "/back", {})
    backed = waits(browser, lambda found: done(found) and "31 %" not in found["command"])
    check("--load=30 %" in backed["command"], "Back undoes the last change", backed["command"])
    slider = browser.script("return document.getElementById('load').getAttribute('aria-valuetext')")
    check(slider == "30 %", "and the slider with it", slider)
    browser.call("POST", "/forward", {})
    waits(browser, lambda found: done(found) and "31 %" in found["command"])
    browser.call("POST", "/refresh", {})
    reloaded = waits(browser, done)
    check(reloaded["command"] == keyed["command"], "a reload stays where it was", reloaded["command"])

    went_back(browser, address)
    show(browser, address + reloaded["fragment"])
    waits(browser, done)

    # The state before is a ghost; one that is kept stays beside the others.
    browser.script(MOVE, "load", "45")
    waits(browser, lambda found: done(found) and "45 %" in found["command"])
    ghosts = browser.script("return document.querySelectorAll('#plane circle.ghost').length")
    check(ghosts == len(keyed["rows"]), "each scheme has a ghost where it was", ghosts)
    browser.script("document.getElementById('keep').click()")
    browser.script(MOVE, "load", "70")
    other = waits(browser, lambda found: done(found) and "70 %" in found["command"])
    rows = browser.script("return [...document.querySelectorAll('#difference tbody tr')].map(row => row.innerText)")
    check(len(rows) == len(other["rows"]), "A and now stand side by side", rows)
    browser.script("document.getElementById('swap').click()")
    waits(browser, lambda found: done(found) and "45 %" in found["command"])
    browser.script("document.getElementById('drop').click()")
    found = waits(browser, lambda found: found[0], drawn.format("multiples", "svg rect"))
    check(found[0].startswith("headstart sweep --rtt=") and found[1] == 9 * 5, "a panel of nine for each scheme but the reference", found)

    # The path box says what the values are.
    said = "const box = document.getElementById('preset'); return box.selectedOptions[0].textContent"
    show(browser, address + "#path=lte")
    waits(browser, done)
    check(browser.script(said) == "lte", "the path box has the path of the address", browser.script(said))
    browser.script(TYPE, "rate", "955 Mbit/s")
    waits(browser, lambda found: done(found) and "955" in found["command"])
    check(browser.script(said) == "lte, changed", "and says that it is another one now", browser.script(said))

    state = keyed["fragment"]
    show(browser, address + state)
    again = waits(browser, done)
    check(again["command"] == keyed["command"] and again["rows"] == keyed["rows"], "an address brings its state back", again)

    browser.script(TYPE, "loss", "many")
    browser.script(TYPE, "rate", "fast")
    # The first value is refused alone where the second one is late.
    refused = waits(browser, lambda found: "--rate" in (found["refusal"] or ""))
    check("--rate: found `fast`, expected a rate" in refused["refusal"], "a bad value is refused in the option's words", refused)
    marked = """return [...document.querySelectorAll('#controls [aria-invalid=true]')].map(one =>
        [one.closest('.field').querySelector('label').textContent, document.getElementById(one.getAttribute('aria-describedby')).innerText])"""
    found = waits(browser, lambda found: len(found) == 2, marked)
    names = [name for name, _ in found]
    check(names == ["rate", "loss"], "each refused field is marked, with its own message", found)
    browser.script(TYPE, "loss", "0 %")
    browser.script(TYPE, "rate", "15 Mbit/s")
    waits(browser, done)
    check(browser.script(marked) == [], "and not any more when it is right")
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

    times, axe = [], axe_core()
    if axe is None:
        print("axe: NOT RUN: its package of npm is not to be had")
    for width, height in ((1280, 800), (1100, 800), (390, 844)):
        for scheme in ("light", "dark"):
            times.append(looks(browser, address, (width, height), scheme, axe, screenshots))
    check(not browser.errors(), "the console is silent on every width")
    print(f"explore in a browser: moved, typed, played and compared with the command; first answers after {times} ms")


FIELD = """
const text = document.getElementById(arguments[0]).closest('.field').querySelector('input[type=text]');
return [text.value, document.activeElement === text, text.getAttribute('aria-invalid'), location.hash];
"""


def went_back(browser, address):
    """After Back a field has the value of the state, whatever was typed, and with the focus."""
    typed = [("loss", "3 %", "0 %"), ("loss", "200 %", "0 %"), ("load", "banana", "25 %"), ("hint", "banana", "100 %"),
             ("background", "-1", "0"), ("history", "x", "100000")]
    for name, text, before in typed:
        show(browser, address)
        waits(browser, done)
        browser.script("document.getElementById(arguments[0]).closest('.field').querySelector('input[type=text]').focus()", name)
        browser.script(TYPE, name, text)
        waits(browser, lambda found: found["state"] in ("done", "refused") and found["fragment"] != "#defaults")
        browser.call("POST", "/back", {})
        found = waits(browser, lambda found: done(found) and name not in found["fragment"])
        shown = browser.script(FIELD, name)
        check(shown[:3] == [before, True, None], f"Back writes the field {name} after {text}", (shown, found["fragment"]))
    show(browser, address)
    waits(browser, done)
    # A slider that has the focus goes back, too.
    browser.script("document.getElementById('load').focus()")
    place = browser.script("return document.getElementById('load').value")
    browser.script(MOVE, "load", "60")
    waits(browser, lambda found: done(found) and "60 %" in found["command"])
    browser.call("POST", "/back", {})
    waits(browser, lambda found: done(found) and "60 %" not in found["command"])
    found = browser.script("return document.getElementById('load').value")
    check(found == place, "Back moves the slider that has the focus", (found, place))


def looks(browser, address, size, scheme, axe, screenshots):
    """One width and colour scheme: what is seen, read and reached; the time of the first answer."""
    width, height = size
    show(browser, address, width, scheme, height)
    found = waits(browser, done)
    if width < 500:
        # The figure stays while one scrolls from path to workload.
        browser.script("scrollTo(0, 250)")
    seen = browser.script(SEEN)
    enough = 4 if width < 500 else 11
    is_so = seen["plane"] and seen["controls"] >= enough
    check(is_so, f"at {width} x {height} controls and answer are seen together", seen)
    overlaps = browser.script(OVERLAPS)
    check(not overlaps, f"at {width} pixels no label lies on another", overlaps)
    # A phone's innerWidth grows with what is too wide.
    wide = browser.script("return document.documentElement.scrollWidth - arguments[0]", width)
    check(wide <= 0, f"at {width} pixels nothing scrolls sideways", wide)
    small = browser.script(FONTS)
    check(not small, f"at {width} pixels text in figures is readable", small)
    if screenshots:
        shot = browser.cdp("Page.captureScreenshot", format="png")
        pathlib.Path(screenshots, f"explore-{width}-{scheme}-first.png").write_bytes(base64.b64decode(shot["data"]))
        browser.screenshots(screenshots, f"explore-{width}-{scheme}")
    if axe is not None:
        is_accessible(browser, axe, f"at {width} pixels, {scheme}")
    return found["first"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
