#!/usr/bin/env python3
"""Opens reports in headless Chromium and uses them as a reader does.

It sorts, picks, points, saves figures, and lays flows over one another. Figures for TeX are
compiled with pdflatex (Debian: texlive-pictures); without it that is NOT RUN.

usage: tools/report-browser.py [--screenshots FOLDER] REPORT...

Needs chromium and chromedriver (Debian: chromium, chromium-driver); says NOT RUN where they are
missing. Ends with 1 if something is not as it should be.
"""

import base64
import csv
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
import xml.etree.ElementTree

ENTER, RIGHT, DOWN, ESCAPE = "\ue007", "\ue014", "\ue015", "\ue00c"
WIDTHS = (1400, 1100, 420)
ENDINGS = (".svg", ".png", ".csv", ".pgf")
# Labels that reach beyond the sides of their figure, which clips them.
CUT_LABELS = """
return [...document.querySelectorAll('figure>svg text')].filter(text => {
  const label = text.getBoundingClientRect(), figure = text.closest('figure').getBoundingClientRect();
  return label.width > 0 && (label.left < figure.left - 0.5 || label.right > figure.right + 0.5);
}).map(text => text.textContent)
"""

SMALL_TEXT = """
return [...document.querySelectorAll('svg.heat text')].filter(text => text.textContent && text.checkVisibility())
  .map(text => [text.textContent, Math.round(100 * text.getBoundingClientRect().height) / 100])
  .filter(([, height]) => height < 11)
"""


class Browser:
    """A session of chromedriver, by the WebDriver protocol."""

    def __init__(self, chromium, driver):
        # A port that it chose itself is nobody else's.
        quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
        self.process = subprocess.Popen([driver, "--port=0"], **quiet)
        listens = (re.search(r"successfully on port (\d+)", line) for line in self.process.stdout)
        self.base = f"http://127.0.0.1:{next(filter(None, listens))[1]}"
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        options = {"binary": chromium, "args": arguments}
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        session = self.call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self.base += f"/session/{session['sessionId']}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.call("DELETE", "")
        finally:
            self.process.terminate()
            self.process.wait()

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"content-type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise SystemExit(f"report-browser: {path}: {json.load(error)['value']['message']}") from error

    def script(self, text, *arguments):
        return self.call("POST", "/execute/sync", {"script": text, "args": list(arguments)})

    def click(self, text, *arguments):
        """Clicks on the element that a script returns."""
        (element,) = self.script(text, *arguments).values()
        self.call("POST", f"/element/{element}/click", {})

    def cdp(self, command, **parameters):
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def open(self, path, fragment="", width=1400, scheme="light", media="screen"):
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=1000, deviceScaleFactor=1, mobile=width < 500)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.cdp("Emulation.setEmulatedMedia", media=media, features=features)
        self.call("POST", "/url", {"url": "about:blank"})
        self.call("POST", "/url", {"url": pathlib.Path(path).resolve().as_uri() + fragment})

    def errors(self):
        """Errors and warnings in the console since the last call."""
        entries = self.call("POST", "/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries if entry["level"] in ("SEVERE", "WARNING")]

    def keys(self, *values):
        actions = [{"type": kind, "value": value} for value in values for kind in ("keyDown", "keyUp")]
        self.call("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def point(self, x, y, kind="mouse"):
        actions = [{"type": "pointerMove", "duration": 0, "x": round(x), "y": round(y), "origin": "viewport"}]
        if kind == "touch":
            actions += [{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        source = {"type": "pointer", "id": kind, "parameters": {"pointerType": kind}, "actions": actions}
        self.call("POST", "/actions", {"actions": [source]})

    def tip(self):
        return self.script("const t = document.querySelector('.tip'); return t.hidden ? null : t.innerText")

    def screenshots(self, folder, name):
        height = self.script("return document.documentElement.scrollHeight")
        width = self.script("return innerWidth")
        for part, top in enumerate(range(0, height, 1600)):
            clip = {"x": 0, "y": top, "width": width, "height": min(1600, height - top), "scale": 1}
            shot = self.cdp("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
            pathlib.Path(folder, f"{name}-{part}.png").write_bytes(base64.b64decode(shot["data"]))


failures = []


def check(is_so, claim, found=""):
    if not is_so:
        failures.append(claim)
        print(f"report-browser: NOT SO: {claim}{f': found {found}'[:600] if found != '' else ''}", file=sys.stderr)


# The first column of the first table that has several numbers.
NUMBERS = """
const table = document.querySelector('main table');
if (!table) return null;
const rows = [...table.tBodies[0].rows];
const count = column => new Set(rows.map(row => row.cells[column]?.dataset.v)).size;
const found = [...table.tHead.rows[0].cells].findIndex((_, column) => count(column) > 2);
return found < 0 ? null : found;
"""

COLUMN = """
const table = document.querySelector('main table');
const heads = [...table.tHead.rows[0].cells];
const column = arguments[0];
return {
    sort: heads[column].getAttribute('aria-sort'),
    better: heads[column].dataset.better ?? 'lower',
    others: heads.filter((head, index) => index !== column && head.getAttribute('aria-sort') !== 'none').length,
    values: [...table.tBodies[0].rows].map(row => row.cells[column].dataset.v),
    names: [...table.tBodies[0].rows].map(row => row.cells[0].innerText),
};
"""

BUTTON = "document.querySelectorAll('main table')[0].tHead.rows[0].cells[arguments[0]].querySelector('button')"


def numbers_in(values):
    return [float(value) for value in values if value is not None]


def sorts(browser, column):
    before = browser.script(COLUMN, column)
    numbers = numbers_in(before["values"])
    directions = ["ascending", "descending"]
    if before["better"] == "higher":
        directions.reverse()
    browser.script(f"{BUTTON}.click()", column)
    for direction, how in zip(directions, ("a click sorts, the better end first", "Enter turns the order round")):
        after = browser.script(COLUMN, column)
        check(after["sort"] == direction and after["others"] == 0, f"the head says that {how}", after)
        expected = sorted(numbers, reverse=direction == "descending")
        check(numbers_in(after["values"]) == expected, how, after["values"])
        check(sorted(after["names"]) == sorted(before["names"]), "each row keeps its name", after["names"])
        check(None not in after["values"][: len(numbers)], "what is missing stays last", after["values"])
        browser.script(f"{BUTTON}.focus()", column)
        browser.keys(ENTER)


# Colours of a scheme's series and row: the grey of what is not picked, or not.
LOOKS = """
const grey = getComputedStyle(document.documentElement).getPropertyValue('--grey').trim();
const probe = document.createElement('i');
probe.style.color = grey;
document.body.append(probe);
const rgb = getComputedStyle(probe).color;
probe.remove();
const greyed = elements => elements.filter(one => getComputedStyle(one).color === rgb).length;
const name = arguments[0];
const series = [...document.querySelectorAll('svg > [data-name]')].filter(group => group.dataset.name === name);
const rows = [...document.querySelectorAll('tbody tr')].filter(row => row.cells[0].innerText.split(/\\s/)[0] === name);
return { series: series.length, grey_series: greyed(series), rows: rows.length, grey_rows: greyed(rows) };
"""


def picks(browser, path, names):
    def looks(which):
        return browser.script(LOOKS, which)

    one, other, rest = names[0], names[1], names[2:]
    # A paper's tables are of claims, not of schemes.
    least = 1 if looks(one)["rows"] else 0
    check(all(looks(name)["grey_series"] == 0 for name in names), "nothing is grey before something is picked")
    for name in (one, other):
        browser.script(
            "[...document.querySelectorAll('.picks button')].find(chip => chip.innerText === arguments[0]).click()", name
        )
    for visit in ("after the clicks", "opened by its address"):
        for name in (one, other):
            found = looks(name)
            is_so = found["series"] > 0 and found["rows"] >= least and found["grey_series"] + found["grey_rows"] == 0
            check(is_so, f"{name} is picked and keeps its colours, {visit}", found)
        for name in rest:
            found = looks(name)
            is_so = found["series"] == found["grey_series"] > 0 and found["rows"] == found["grey_rows"] >= least
            check(is_so, f"{name} is not picked and goes grey in every figure and table, {visit}", found)
        address = browser.script("return location.hash")
        wanted = "#pick=" + ",".join(urllib.parse.quote(name, safe="!*'()") for name in (one, other))
        check(address == wanted, "the address has the picks", address)
        browser.open(path, address)
    browser.script("document.querySelector('.picks .none').click()")
    check(looks(rest[0])["grey_series"] == 0, "nothing is grey once the picks are cleared")
    check(browser.script("return location.hash") == "", "the address is bare again")


# Where a series' first point is on the screen, and what is written there.
POINT = """
const svg = document.querySelectorAll('svg[data-box]')[arguments[0]];
svg.scrollIntoView({ block: 'center' });
const group = [...svg.querySelectorAll(':scope > [data-name]')].find(one => one.dataset.name === arguments[1]);
const marks = group.querySelector('.marks, .line').getAttribute('d').match(/[ML](-?[\\d.]+) (-?[\\d.]+)/);
const at = new DOMPoint(Number(marks[1]), Number(marks[2])).matrixTransform(svg.getScreenCTM());
return { x: at.x, y: at.y, points: group.dataset.points };
"""


def points(browser, names):
    fields = {}
    for name in names[:6]:
        # The first figure is the plane.
        found = browser.script(POINT, 0, name)
        browser.point(found["x"], found["y"])
        fields[name] = browser.tip() or ""
        x, y = (part.split(":")[0] for part in found["points"].split(" "))
        is_so = name in fields[name] and f": {x}" in fields[name] and f": {y}" in fields[name]
        check(is_so, f"the value of {name} is read under the pointer", f"{fields[name]!r}, expected {x} and {y}")
    check(len(set(fields.values())) > 1, "values differ from point to point", fields)
    browser.point(2, 2)
    check(browser.tip() is None, "away from the figure nothing is read", browser.tip())
    # Keyboard: along a series, and from one to the next.
    first = browser.script("const svg = document.querySelectorAll('svg[data-box]')[1]; svg.focus(); return svg.tabIndex")
    check(first == 0, "a figure can be reached by keyboard", first)
    readings = []
    for key in (RIGHT, RIGHT, DOWN):
        browser.keys(key)
        readings.append(browser.tip())
    check(None not in readings and len(set(readings)) == 3, "arrows go from value to value", readings)
    browser.keys(ESCAPE)
    check(browser.tip() is None, "Escape ends it", browser.tip())
    found = browser.script(POINT, 0, names[0])
    browser.point(found["x"], found["y"], "touch")
    check(browser.tip() is not None, "a touch reads as well")


def reads_by_keyboard(browser):
    """Every figure with data has a value to read."""
    silent = browser.script("""
        const silent = [];
        for (const svg of document.querySelectorAll('svg[data-box]')) {
            const key = new KeyboardEvent('keydown', { key: 'End' });
            svg.dispatchEvent(key);
            const tip = document.querySelector('.tip');
            const lines = tip.hidden ? [] : tip.innerText.split('\\n');
            const isEmpty = !svg.querySelector(':scope > [data-name]');
            if (!isEmpty && (lines.length !== 3 || /NaN|undefined|Infinity/.test(tip.innerText))) {
                silent.push([svg.getAttribute('aria-label'), tip.innerText]);
            }
        }
        return silent;
    """)
    check(not silent, "each figure has values to read", silent)


def saves(browser):
    """Figures as files, each of them whole."""
    with tempfile.TemporaryDirectory() as folder:
        browser.cdp("Browser.setDownloadBehavior", behavior="allow", downloadPath=folder)
        lines = browser.script("return document.querySelectorAll('.files').length")
        # Those in closed parts as well.
        some, values, found = range(0, lines, max(1, lines // 6)), [], []
        for number, line in enumerate(some):
            values += browser.script(
                """
                const figure = document.querySelectorAll('.files')[arguments[0]].closest('figure');
                const points = [...figure.querySelectorAll('svg > [data-points]')];
                const first = group => group.dataset.points.split(/[ ;]/).slice(0, 2).flatMap(text => text.split(':'));
                return points.map(group => [group.dataset.name, ...first(group)]);
                """,
                line,
            )
            # Before the click, which would miss a button that moves.
            browser.script(
                """
                const line = document.querySelectorAll('.files')[arguments[0]];
                for (let part = line; part; part = part.parentElement) if (part.localName === 'details') part.open = true;
                line.scrollIntoView({ block: 'center' });
                """,
                line,
            )
            # A part that has just opened may still move the line.
            place = None
            for _ in range(1200):
                before, place = place, browser.script("return document.querySelectorAll('.files')[arguments[0]].getBoundingClientRect().top", line)
                if place == before:
                    break
                time.sleep(0.05)
            for button in range(4):
                # A reader's click: of files that come without one a browser drops some.
                browser.click(
                    "return document.querySelectorAll('.files')[arguments[0]].querySelectorAll('button')[arguments[1]]",
                    line,
                    button,
                )
                for _ in range(1200):
                    found = [file for file in pathlib.Path(folder).iterdir() if file.suffix in ENDINGS and file.stat().st_size]
                    if len(found) > 4 * number + button:
                        break
                    time.sleep(0.05)
        names = [file.name for file in found]
        check(len(names) == 4 * len(some) > 0, f"{len(some)} figures are saved in four ways", (len(names), sorted(names)))
        files = {ending: [file for file in found if file.suffix == ending] for ending in ENDINGS}
        for file in files[".svg"]:
            root = xml.etree.ElementTree.parse(file).getroot()
            sheet = root.find("{http://www.w3.org/2000/svg}style").text
            check("--back" in sheet and ".k0" in sheet, f"{file.name} brings its colours", sheet)
        for file in files[".png"]:
            content = file.read_bytes()
            width = int.from_bytes(content[16:20], "big")
            drawn = float(xml.etree.ElementTree.parse(file.with_suffix(".svg")).getroot().get("width"))
            check(content.startswith(b"\x89PNG") and width == 3 * drawn, f"{file.name} is three times as fine", width)
        saved = set()
        for file in files[".csv"]:
            rows = list(csv.reader(file.read_text().splitlines()))
            is_so = len(rows) > 1 and all(len(row) == len(rows[0]) for row in rows) and "NaN" not in file.read_text()
            check(is_so, f"{file.name} has a row for each point", rows[:3])
            saved |= {tuple(cell for cell in row if cell) for row in rows}
        missing = [value for value in values if tuple(value) not in saved]
        check(not missing, "the values of points are saved with the ends of their intervals", missing)
        for file in files[".pgf"]:
            text = file.read_text()
            check(not re.search("NaN|undefined", text) and "\\path" in text, f"{file.name} is drawn", text)
        compile_drawings(pathlib.Path(folder), files[".pgf"])


def compile_drawings(folder, files):
    tex = shutil.which("pdflatex")
    if not tex:
        print("report-browser.py: compiling figures in TeX: NOT RUN, pdflatex is not installed")
        return
    inputs = "\n".join(f"\\input{{{file.name}}}\\par" for file in files)
    page = f"\\documentclass{{article}}\\usepackage{{tikz}}\\begin{{document}}\n{inputs}\n\\end{{document}}\n"
    (folder / "all.tex").write_text(page)
    done = subprocess.run([tex, "-halt-on-error", "all.tex"], cwd=folder, capture_output=True, text=True, check=False)
    check(done.returncode == 0, "figures compile in TeX", done.stdout[-500:])


OVERLAY = """
const svg = document.querySelector('svg[data-over=sequence]');
const source = name => document.querySelector(`svg[data-view=sequence][data-of="${name}"]`);
const places = (root, side) => [...root.querySelectorAll(':scope > [data-name]')]
    .filter(group => side === null || group.classList.contains(`k${side}`))
    .map(group => [group.dataset.name, (group.innerHTML.match(/[ML]-?[\\d.]+ /g) ?? []).map(x => Number(x.slice(1)))]);
const selects = [...document.querySelectorAll('.overlay select')];
return selects.map((select, side) => ({
    name: select.value, options: select.options.length,
    shown: places(svg, side), own: places(source(select.value), null),
    note: select.parentElement.querySelector('output').innerText, noted: source(select.value).dataset.note,
    label: svg.getAttribute('aria-label'), said: source(select.value).getAttribute('aria-label'),
}));
"""


def lays_over(browser, path):
    def holds(when):
        sides = browser.script(OVERLAY)
        check(len(sides) == 2 and sides[0]["name"] != sides[1]["name"], f"two flows are chosen, {when}", sides)
        for side in sides:
            # On the shared time axis each packet has the place of its own drawing, to half a pixel.
            is_so = [name for name, _ in side["own"]] == [name for name, _ in side["shown"]] != []
            for (_, own), (_, shown) in zip(side["own"], side["shown"]):
                for these, those in ((own, shown), (shown, own)):
                    is_so = is_so and these and all(min(abs(x - other) for other in those) < 0.6 for x in these)
            check(is_so, f"{side['name']} lies where its own plot has it, {when}", side)
            check(side["note"] == side["noted"] != "", f"its time stands beside its name, {when}", side["note"])
            check(side["said"] in side["label"], f"the overlay says of it what its own plot says, {when}", side["label"])
        return [side["name"] for side in sides]

    first = holds("at first")
    if browser.script("return document.querySelector('.overlay select').options.length") < 3:
        # There is no third flow to choose.
        return
    choose = """
        const select = document.querySelectorAll('.overlay select')[1];
        const other = [...select.options].map(option => option.value).filter(value => !arguments[0].includes(value)).pop();
        select.value = other;
        select.dispatchEvent(new Event('change'));
        return other;
    """
    chosen = browser.script(choose, first)
    check(holds("after a choice") == [first[0], chosen], "the chosen flow is shown")
    address = browser.script("return location.hash")
    check(address == f"#flows={first[0]},{chosen}", "the address has the flows", address)
    browser.open(path, address)
    check(holds("opened by its address") == [first[0], chosen], "the address brings them back")


CONTRAST = """
const parse = text => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
const light = text => {
    const [r, g, b] = parse(text).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
};
const back = light(getComputedStyle(document.body).backgroundColor);
const series = [...document.querySelectorAll('svg > [data-name]')].map(group => light(getComputedStyle(group).color));
return { back, least: Math.min(...series.map(one => Math.max(one, back) / Math.min(one, back))) };
"""


def in_the_dark_and_in_print(browser, path):
    backs = []
    for scheme in ("light", "dark"):
        browser.open(path, scheme=scheme)
        found = browser.script(CONTRAST)
        backs.append(found["back"])
        check(found["least"] >= 3, f"series stand out from the page, {scheme}", found)
    check(backs[0] > 1 and backs[1] < 0.1, "the page follows the reader's choice of light or dark", backs)
    heights = "return [...document.querySelectorAll('details')].map(d => d.getBoundingClientRect().height)"
    browser.open(path, scheme="dark", media="print")
    check(browser.script(CONTRAST)["back"] > 1, "print is light")
    check(all(height > 60 for height in browser.script(heights)), "print opens all that is closed")
    hidden = "return getComputedStyle(document.querySelector('.picks') ?? document.querySelector('.tip')).display"
    check(browser.script(hidden) == "none", "print has no controls")
    opened = """
        const open = () => document.querySelectorAll('details[open]').length;
        const before = open();
        dispatchEvent(new Event('beforeprint'));
        const during = open();
        dispatchEvent(new Event('afterprint'));
        return [before, during, open(), document.querySelectorAll('details').length];
    """
    before, during, after, count = browser.script(opened)
    check(before == after and during == count, "all is opened for print and closed after it", (before, during, after, count))
    pdf = base64.b64decode(browser.call("POST", "/print", {}))
    check(pdf.startswith(b"%PDF") and len(pdf) > 20_000, "it prints", len(pdf))


def without_script(browser, path):
    """A script that was changed, or added to the page, does not run."""
    html = pathlib.Path(path).read_text()
    changed = html.replace("'use strict';", "'use  strict';", 1)
    added = "<script>document.title = 'broken in'</script></body>"
    changed = changed.replace("</body>", added, 1)
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder, "report.html")
        copy.write_text(changed)
        browser.open(copy)
        errors = browser.errors()
        check(len([one for one in errors if "Content Security Policy" in one]) == 2, "the policy stops both scripts", errors)
        state = browser.script("""
            const visible = one => one.getBoundingClientRect().height > 0;
            const figures = [...document.querySelectorAll('figure > svg')].filter(svg => !svg.closest('details'));
            return {
                title: document.title,
                controls: [...document.querySelectorAll('.picks, .tip')].filter(visible).length,
                rows: [...document.querySelectorAll('table tr')].filter(visible).length,
                figures: figures.length, drawn: figures.filter(visible).length,
                overlay: [...document.querySelectorAll('.overlay b')].filter(visible).length,
                closed: [...document.querySelectorAll('.all')].filter(visible).length,
            };
        """)
        check(state["title"] != "broken in", "an added script does not run")
        check(state["controls"] == 0, "no dead controls", state)
        is_whole = state["rows"] > 1 and state["drawn"] == state["figures"] > 0
        is_whole = is_whole and state["overlay"] == html.count('data-side="')
        check(is_whole, "tables, figures and an overlay are there without the script", state)
        offers = """
            const all = document.querySelector('.all');
            if (!all) return null;
            const shown = () => [...document.querySelectorAll('figure > svg .more')].filter(
                one => getComputedStyle(one).display !== 'none').length;
            const before = shown();
            all.click();
            return [before, shown()];
        """
        found = browser.script(offers)
        check(found is None or found[0] == 0 < found[1], "series on demand come without the script", found)


def main(arguments):
    screenshots = None
    if arguments[:1] == ["--screenshots"]:
        screenshots, arguments = arguments[1], arguments[2:]
        pathlib.Path(screenshots).mkdir(parents=True, exist_ok=True)
    if not arguments:
        raise SystemExit(__doc__)
    for path in arguments:
        if not pathlib.Path(path).is_file():
            raise SystemExit(f"report-browser: {path} is missing")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if not chromium or not driver:
        print("reports in a browser: NOT RUN: chromium or chromedriver is missing (Debian: chromium, chromium-driver)")
        return 0
    with Browser(chromium, driver) as browser:
        for path in arguments:
            browser.open(path)
            names = browser.script("return JSON.parse(document.querySelector('[data-picks]')?.dataset.picks ?? '[]')")
            is_race = browser.script("return !!document.querySelector('.overlay')")
            column = browser.script(NUMBERS)
            check(column is not None or not is_race or not names, "there is a table of numbers to sort")
            if column is not None:
                sorts(browser, column)
            if len(names) > 2:
                browser.open(path)
                picks(browser, path, names)
            if is_race and names:
                browser.open(path)
                points(browser, names)
            browser.open(path)
            reads_by_keyboard(browser)
            saves(browser)
            if is_race:
                lays_over(browser, path)
            for width in WIDTHS:
                browser.open(path, width=width)
                # A phone's innerWidth grows with what is too wide.
                wide = browser.script("return document.documentElement.scrollWidth - arguments[0]", width)
                check(wide <= 0, f"at {width} pixels nothing but tables scrolls sideways", wide)
                figures = browser.script(
                    "return [...document.querySelectorAll('figure')].map(one => one.scrollWidth - one.clientWidth)"
                )
                check(max(figures, default=0) <= 0, f"at {width} pixels every figure fits", figures)
                cut = browser.script(CUT_LABELS)
                check(not cut, f"at {width} pixels no label of a figure is cut off", cut)
                small = browser.script(SMALL_TEXT)
                check(not small, f"at {width} pixels text of heat maps can be read", small)
                if screenshots:
                    browser.screenshots(screenshots, f"{pathlib.Path(path).parent.name}-{width}")
            for look in ({"width": 1400}, {"width": 720, "media": "print"}):
                browser.open(path, **look)
                found = browser.script(
                    "return [...document.querySelectorAll('.wide')].map(one => one.scrollWidth - one.clientWidth)"
                )
                check(max(found, default=0) <= 0, f"every column is seen with {look}", found)
            in_the_dark_and_in_print(browser, path)
            errors = browser.errors()
            check(not errors, "the console is silent", errors)
            if screenshots:
                for name, look in (("dark", {"scheme": "dark"}), ("print", {"media": "print", "width": 1100})):
                    browser.open(path, **look)
                    browser.screenshots(screenshots, f"{pathlib.Path(path).parent.name}-{name}")
            without_script(browser, path)
    if failures:
        print(f"report-browser: {len(failures)} failures", file=sys.stderr)
        return 1
    print(f"reports in a browser: {len(arguments)} read, sorted, picked, pointed at and laid over one another")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
