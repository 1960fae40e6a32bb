#!/usr/bin/env python3
"""Checks links, paths and commands of documents, the table of crates, and tests as evidence.

A link must lead to a file and a heading that exist. So must a path in code, and a test named behind
it: `crates/networks/net/src/link.rs`, `net/tests/elements.rs: a_test`, `link.rs` of any folder.
Packages, targets and features of cargo's commands must exist; options of `headstart` are checked by
the test `documents_name_commands_and_options_that_exist`. Documents that programs name exist. The
table of crates must have every one, with the crates it depends on as `cargo metadata` has them,
without those of tests. No crate depends on one of a house above its own. Links to other hosts are
not followed. Each threat of docs/security.md names tests, and they exist. Each record has its date
and commit, and README is short. Nothing has a reader install a package that is not known to be ours
or well known: a name that nobody has taken is anybody's. Each rule is first shown to find a fault
in a sample.
"""

import fnmatch
import functools
import json
import pathlib
import re
import subprocess
import sys

TABLE = "CONTRIBUTING.md"
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)")
THREATS = "docs/security.md"
ROW = re.compile(r"\| `([\w-]+)` \| .* \| (.*) \|$")
# Houses of crates, from the lowest floor to the highest.
HOUSES = ["schemes", "transports", "networks", "laboratory", "command"]
# Files that a reader makes.
MADE = {"crates/networks/net/src/gaps.rs", "crates/schemes/startup/src/scheme/spread.rs"}
# Most words of a page that is read in two minutes.
WORDS = {"README.md": 1000}


def without_code(text):
    """The text without blocks and spans of code; lines stay lines."""
    text = re.sub(r"^```.*?^```", lambda block: re.sub(r"[^\n]", "", block[0]), text, flags=re.S | re.M)
    return re.sub(r"`[^`\n]*`", "code", text)


def anchors(text):
    """Anchors of the headings of a document; a repeated one has a number behind it."""
    found = []
    blocks = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    for heading in re.findall(r"^#+ (.*)$", blocks, flags=re.M):
        heading = re.sub(r"\]\([^)]*\)", "]", heading)
        name = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        count = sum(name == known or re.fullmatch(rf"{re.escape(name)}-\d+", known) is not None for known in found)
        found.append(f"{name}-{count}" if count else name)
    return found


def dead_links(path, text, read):
    """Line number and message of each dead link; `read` gives the text of a path, or None."""
    for found in LINK.finditer(without_code(text)):
        target, anchor = found.groups()
        if re.match(r"[a-z]+:", target):
            continue
        place = (pathlib.Path(path).parent / target).resolve() if target else pathlib.Path(path).resolve()
        number = without_code(text).count("\n", 0, found.start()) + 1
        linked = read(place)
        if linked is None:
            yield number, f"a link to {target!r}, expected a file or folder of the repository"
        elif anchor and place.suffix == ".md" and anchor not in anchors(linked):
            yield number, f"a link to {target}#{anchor}, expected a heading of that name"


def wrong_rows(text, dependencies):
    """Message of each crate whose row of the table is missing or has the wrong dependencies."""
    rows = {found[1]: found[2] for found in map(ROW.match, text.splitlines()) if found}
    for name, expected in dependencies.items():
        if name not in rows:
            yield f"found no row for the crate `{name}`"
            continue
        named = set(re.findall(r"`([\w-]+)`", rows[name]))
        if rows[name].startswith("all but "):
            named = set(dependencies) - {name, "python"} - named
        if named != expected:
            yield f"`{name}`: found {', '.join(sorted(named)) or '-'}, expected {', '.join(sorted(expected)) or '-'}"


def wrong_evidence(text, read):
    """Line number and message of each row of the table of threats that names no test that exists.

    Evidence is `CRATE/tests/FILE.rs: TEST`, more `TEST`s of that file, a whole file, "`CRATE` unit
    tests of `MODULE`", or "fuzz targets" and their names. `read` gives the text of a path or None.
    """
    rows = re.finditer(r"^\| .* \| .* \| (.*) \|$", text.partition("| threat |")[2].partition("\n\n")[0], re.M)
    for row in rows:
        number = text.partition("| threat |")[0].count("\n") + 1 + row.string.count("\n", 0, row.start())
        path, tests = None, 0
        for part in row[1].split(";"):
            spans = re.findall(r"`([^`]+)`", part)
            if units := re.match(r" *`([\w-]+)` unit tests of ", part):
                paths = [f"{folder(units[1])}/src/{module}" for module in spans[1:]]
                files = [f"{it}/tests.rs" if read(pathlib.Path(f"{it}/tests.rs")) else f"{it}.rs" for it in paths]
                names = ["#[test]"] * len(files)
            elif "fuzz target" in part:
                files, names = [f"fuzz/fuzz_targets/{name}.rs" for name in spans], ["fuzz_target!"] * len(spans)
            else:
                files, names = [], []
                for span in spans:
                    given, _, test = span.rpartition(": ") if ".rs" in span else ("", "", span)
                    if ".rs" in span and not given:
                        given, test = span, "#["
                    crate, _, rest = given.partition("/")
                    path = f"{folder(crate)}/{rest}" if given else path
                    files.append(path)
                    names.append(test if test == "#[" else f"fn {test}(")
            for file, name in zip(files, names):
                tests += 1
                found = read(pathlib.Path(file)) if file else None
                if found is None:
                    yield number, f"found the file {file}, expected one of the repository with tests"
                elif name not in found:
                    yield number, f"found {name!r} as a test of {file}, expected one that is there"
        if not tests:
            yield number, "found a threat without a test, expected the name of one"


def foreign_installs(text, known):
    """Message of each package that is installed by a name that is neither known nor a place."""
    for found in re.finditer(r"\b(?:pip3?|uv pip|uv tool|pipx) install((?: [^\n|#;`)]+)+)", text):
        for word in re.findall(r"[^\s'\"`]+", found[1]):
            name = re.split(r"[\[<>=!~,.]", word)[0].lower()
            is_place = word.startswith((".", "/", "-", "$", "{")) or "/" in word or word.endswith(".whl")
            if is_place:
                continue
            if name not in known:
                yield f"an installation of {word!r}, expected a folder, or a package of pyproject.toml"
            # A sentence goes on behind the first name.
            break


def packages():
    """The packages that pyproject.toml has among its extras."""
    extras = pathlib.Path("pyproject.toml").read_text(encoding="utf-8").split("[project.optional-dependencies]")[1]
    return {re.split(r"[\[<>=]", name)[0] for name in re.findall(r'"([\w\[\]<>=.,-]+)"', extras.split("\n[")[0])}


def code(text):
    """Line number and text of each span of code, and of each line of a block."""
    fence, before = None, ""
    for number, line in enumerate(text.splitlines(), 1):
        mark = re.match(r" *```(\w*)", line)
        if mark:
            fence = None if fence is not None else mark[1]
        elif fence in ("", "sh", "text") or fence is None and line.startswith("    ") and not before.strip():
            yield number, line.split(" #")[0].strip(), True
            continue
        elif fence is None:
            yield from ((number, span, False) for span in re.findall(r"`([^`]+)`", line))
        before = line


@functools.cache
def folders_of(files):
    return {file[: found.start()] for file in files for found in re.finditer("/", file)}


def wrong_paths(path, text, files):
    """Line number and message of each path in code that is none, and of each missing test."""
    folders = folders_of(tuple(files))
    tops = {folder.split("/")[0] for folder in folders}
    rooms = {pathlib.PurePath(file).parts[-2]: file for file in files if re.fullmatch(r"crates/.*/Cargo\.toml", file)}
    here = pathlib.PurePath(path).parent
    for number, span, is_block in code(text):
        for word in span.split() if is_block else [span]:
            name, _, test = word.partition(": ") if not is_block else (word.strip("'\"(),;"), "", "")
            name = name.removeprefix("./").rstrip("/")
            if not re.fullmatch(r"[\w.<>*/-]+", name) or "..." in name or name in MADE:
                continue
            first, _, rest = name.partition("/")
            is_ours = rest and (first in tops or first in rooms and re.match(r"(src|tests|examples|benches)\b", rest))
            is_source = re.search(r"\w\.(rs|py|sh|js|h|ipynb)$", name) and not is_block
            if not is_ours and not is_source:
                continue
            pattern = re.sub(r"<\w+>|\b[A-Z]{3,}\b", "*", name)
            places = [pattern, f"{here}/{pattern}"]
            places += [f"{pathlib.PurePath(rooms[first]).parent}/{rest}"] if first in rooms else []
            found = [place for place in places if place in files or place in folders]
            if not found and ("*" in pattern or not is_ours):
                places += [] if is_ours else [f"*/{pattern}"]
                found = [file for place in places for file in fnmatch.filter([*files, *folders], place)]
            if not found:
                yield number, f"found `{name}`, expected a file or folder of the repository"
            elif re.fullmatch(r"[a-z]\w+", test) and not any(f"fn {test}(" in (files.get(file) or "") for file in found):
                yield number, f"found `{test}`, expected a test of {name}"


def dead_mentions(text, files):
    """Message of each document that a program or an experiment names and that is not there."""
    for found in set(re.findall(r"\bdocs/[\w/-]+\.(?:md|csv)\b", text)):
        if found not in files:
            yield f"found {found}, expected a document of the repository"


def wrong_cargo(text, targets):
    """Line number and message of each package, target or feature of cargo that is none."""
    for number, line, _ in code(text):
        call = re.search(r"\bcargo (test|bench|run|build|clippy|install|doc)\b([^|;`]*)", line)
        if not call or "--manifest-path" in line:
            continue
        words = call[2].split(" -- ")[0].split()
        for flag, value in zip(words, words[1:]):
            kind = {"-p": "package", "--features": "feature"}.get(flag, flag.removeprefix("--"))
            if kind not in targets or value.startswith("-"):
                continue
            for name in value.split(",") if kind == "feature" else [value]:
                if name.strip("'\"").split("/")[-1] not in targets[kind] and not re.search("[A-Z]{3}", name):
                    yield number, f"found the {kind} `{name}` of cargo, expected one of the workspace"


def long_or_undated(path, text):
    """Messages for a page that is too long, and for a record without date and commit."""
    words = len(text.split())
    if words > WORDS.get(path, words):
        yield f"found {words} words, expected at most {WORDS[path]}"
    if path.startswith("docs/records/") and not re.search(r"\bTaken 20\d\d-\d\d-\d\d[^.]*?,\s+commits? [0-9a-f]{7,}", text):
        yield "found a record without a line such as `Taken 2026-01-31, commit 0123abcd`"


def cargo_targets(packages):
    """Names of packages, features and targets by kind."""
    found = {"package": set(), "feature": {"all"}, "test": set(), "bench": set(), "example": set(), "bin": set()}
    for package in packages:
        found["package"].add(package["name"])
        found["feature"].update(package["features"])
        for target in package["targets"]:
            for kind in target["kind"]:
                found.setdefault(kind, set()).add(target["name"])
    return found


def workspace():
    command = ["cargo", "metadata", "--format-version", "1", "--no-deps", "--offline", "--locked"]
    return json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)["packages"]


@functools.cache
def folder(crate):
    """The folder of a crate, which lies in one of the houses below crates/."""
    manifests = sorted(pathlib.Path("crates").rglob("Cargo.toml"))
    return next((str(it.parent) for it in manifests if it.parent.name == crate), f"crates/{crate}")


def wrong_floors(packages):
    """Crates that depend on a house above their own, by the folders of both."""
    place = {package["name"]: pathlib.Path(package["manifest_path"]).parent for package in packages}
    house = {name: it.name if it.name in HOUSES else it.parent.name for name, it in place.items()}
    for package in packages:
        for it in package["dependencies"]:
            own, other = house[package["name"]], house.get(it["name"])
            if it["kind"] != "dev" and own in HOUSES and other in HOUSES and HOUSES.index(other) > HOUSES.index(own):
                yield f"found {package['name']} of {own}, which depends on {it['name']} of {other}, expected a house below it"


def crates(packages):
    """Each crate of the workspace by the name of its folder, with those it depends on."""
    folder = {package["name"]: pathlib.Path(package["manifest_path"]).parent.name for package in packages}
    return {
        folder[package["name"]]: {
            folder[it["name"]] for it in package["dependencies"] if it["name"] in folder and it["kind"] != "dev"
        }
        for package in packages
    }


def check_rules():
    """Ends the program if a rule misses the fault of a sample, or finds one where there is none."""
    page = "# A head: `x`\n\n# Again\n\n# Again\n"
    here = {pathlib.Path("b.md").resolve(): page}
    for text, expected in [
        ("[x](b.md)", 0),
        ("[x](c.md)", 1),
        ("[x](b.md#a-head-x) [x](b.md#again-1) [x](https://c)", 0),
        ("[x](b.md#none)", 1),
        ("```\n[x](c.md)\n```\n`[x](c.md)`", 0),
    ]:
        found = [message for _, message in dead_links("a.md", text, here.get)]
        if len(found) != expected:
            sys.exit(f"documents.py: {text!r}: found {found}, expected {expected} faults")
    edges = {"units": set(), "net": {"units"}, "command": {"net"}}
    for text, expected in [
        ("| `units` | x | - |\n| `net` | x | `units` |\n| `command` | x | all but `units` |", 0),
        ("| `units` | x | - |\n| `net` | x | - |\n| `command` | x | all but `net` |", 2),
        ("| `units` | x | - |\n| `net` | x | `units` |", 1),
    ]:
        found = [*wrong_rows(text, edges)]
        if len(found) != expected:
            sys.exit(f"documents.py: {text!r}: found {found}, expected {expected} faults")
    packages = [
        {"name": name, "manifest_path": f"crates/{path}/Cargo.toml", "dependencies": [{"name": it, "kind": kind} for it, kind in needs]}
        for name, path, needs in [
            ("b", "transports/b", [("c", None), ("d", "dev")]),
            ("c", "laboratory/c", [("b", None)]),
            ("d", "command", [("c", None)]),
        ]
    ]
    if len(found := [*wrong_floors(packages)]) != 1:
        sys.exit(f"documents.py: floors: found {found}, expected 1 fault")
    head = "| threat | bound | shown by |\n|---|---|---|\n"
    there = {
        pathlib.Path("crates/transports/web/tests/a.rs"): "#[test]\nfn one() {}\n#[test]\nfn two() {}",
        pathlib.Path("crates/transports/web/src/log.rs"): "#[test]",
        pathlib.Path("fuzz/fuzz_targets/hint.rs"): "fuzz_target!",
    }
    for evidence, expected in [
        ("`web/tests/a.rs: one`, `two`; `web` unit tests of `log`; fuzz target `hint`", 0),
        ("`web/tests/a.rs`", 0),
        ("`web/tests/a.rs: three`, `two`, `four`", 2),
        ("`web/tests/b.rs`", 1),
        ("`web` unit tests of `log`, `other`; fuzz targets `hint`, `none`", 2),
        ("`two`", 1),
        ("by thought", 1),
    ]:
        found = [*wrong_evidence(f"{head}| x | y | {evidence} |\n", there.get)]
        if len(found) != expected:
            sys.exit(f"documents.py: {evidence!r}: found {found}, expected {expected} faults")


    files = {"crates/networks/net/src/link.rs": "", "crates/networks/net/tests/a.rs": "fn one() {", "tools/x.py": "", "docs/a.md": ""}
    for text, expected in [
        ("`crates/networks/net/src/link.rs`, `link.rs`, `net/tests/a.rs: one`, `crates/networks/net/src/`, `docs/<name>.md`", 0),
        ("`crates/networks/net/src/links.rs`", 1),
        ("`links.rs` `race.csv` `/metrics` `arriving/...`", 1),
        ("`net/tests/a.rs: two`", 1),
        ("```sh\ntools/x.py --only y\n```", 0),
        ("```sh\ntools/y.py --only y   # in tools/z.py\n```", 1),
        ("before\n\n    tools/y.py\n", 1),
    ]:
        found = [*wrong_paths("docs/a.md", text, files)]
        if len(found) != expected:
            sys.exit(f"documents.py: {text!r}: found {found}, expected {expected} faults")
    if (found := len([*dead_mentions("docs/a.md, docs/b.md and docs/a.md", files)])) != 1:
        sys.exit(f"documents.py: found {found} dead mentions, expected 1")
    targets = {"package": {"net"}, "feature": {"full"}, "test": {"a"}, "bench": set()}
    for text, expected in [
        ("`cargo test -p net --test a --features net/full -- --nocapture`, `cargo test -p CRATE`", 0),
        ("`cargo test -p nets --test b --features net/all`", 3),
        ("```sh\ncargo bench --bench a   # cargo test -p x\n```", 1),
    ]:
        found = [*wrong_cargo(text, targets)]
        if len(found) != expected:
            sys.exit(f"documents.py: {text!r}: found {found}, expected {expected} faults")
    for path, text, expected in [
        ("README.md", "word " * 1000, 0),
        ("README.md", "word " * 1001, 1),
        ("docs/records/a.md", "Taken 2026-11-25, commit 0123abcd, on x", 0),
        ("docs/records/a.md", "Taken 2026-11-25 on x", 1),
        ("docs/a.md", "word " * 1001, 0),
    ]:
        found = [*long_or_undated(path, text)]
        if len(found) != expected:
            sys.exit(f"documents.py: {text[:60]!r}: found {found}, expected {expected} faults")
    for text, expected in [
        ("pip install '.[gym]'  # at the root", 0),
        ("expected `pip install pandas`", 0),
        ("pip install --quiet ./python[notebook]", 0),
        ("pip install headstart", 1),
        ("found no tqdm, expected pip install headstart[notebook]", 1),
        ("uv pip install --upgrade 'headstart[gym]>=1'", 1),
    ]:
        found = [*foreign_installs(text, {"pandas"})]
        if len(found) != expected:
            sys.exit(f"documents.py: {text!r}: found {found}, expected {expected} faults")


def read_file(place):
    if place.is_dir():
        return ""
    return place.read_text(encoding="utf-8", errors="replace") if place.is_file() else None


def main():
    check_rules()
    listed = subprocess.run(["git", "ls-files", "*.md"], capture_output=True, check=True, text=True).stdout.splitlines()
    everything = subprocess.run(["git", "ls-files"], capture_output=True, check=True, text=True).stdout.splitlines()
    files = {file: read_file(pathlib.Path(file)) if file.endswith(".rs") else "" for file in everything}
    members = workspace()
    targets = cargo_targets(members)
    faults = []
    for path in listed:
        text = pathlib.Path(path).read_text(encoding="utf-8")
        faults += [f"{path}:{number}: {message}" for number, message in dead_links(path, text, read_file)]
        faults += [f"{path}:{number}: {message}" for number, message in wrong_paths(path, text, files)]
        faults += [f"{path}:{number}: {message}" for number, message in wrong_cargo(text, targets)]
        faults += [f"{path}: {message}" for message in long_or_undated(path, text)]
        if path == THREATS:
            faults += [f"{path}:{number}: {message}" for number, message in wrong_evidence(text, read_file)]
    known = packages()
    sources = ["*.md", "*.py", "*.rs", "*.toml", "*.ipynb", "*.sh", ":!tools/documents.py"]
    for path in subprocess.run(["git", "ls-files", *sources], capture_output=True, check=True, text=True).stdout.splitlines():
        text = pathlib.Path(path).read_text(encoding="utf-8")
        faults += [f"{path}: {message}" for message in foreign_installs(text, known)]
        if not path.endswith(".md"):
            faults += [f"{path}: {message}" for message in dead_mentions(text, files)]
    faults += [f"crates: {message}" for message in wrong_floors(members)]
    faults += [f"{TABLE}: {message}" for message in wrong_rows(pathlib.Path(TABLE).read_text(encoding="utf-8"), crates(members))]
    if faults:
        sys.exit("\n".join([*faults, f"documents.py: {len(faults)} faults"]))
    print(f"documents.py: {len(listed)} documents; links, paths, commands and the table of crates are right")


if __name__ == "__main__":
    main()
