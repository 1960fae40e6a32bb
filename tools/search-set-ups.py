#!/usr/bin/env python3
"""Searches set-ups of a paper whose text leaves options open, and guards against a mere fit.

    HEADSTART=target/ci/headstart tools/search-set-ups.py experiments/blitzstart 40 OUT

`search.toml` of the paper's folder has the options that the text leaves open, each with its
alternatives, and the figures to choose by (`train`). The cut-down run is judged under the first
alternatives, then with each other alternative alone. Then come draws of all options, as many as
requested and the same on any machine. Half of a draw's options keep their first alternative. Each
set-up is one line of OUT/set-ups.csv, which is not run again. The table counts claims that hold in
the figures chosen by and in the other ones: a set-up that is only fitted is better in the first
alone. Demonstrations and outcomes on record are left out.
"""

import collections
import csv
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tomllib

HEADSTART = os.environ.get("HEADSTART", "target/ci/headstart")
TABLES = ["path", "transport", "workload", "run"]
RECORDED = ["differs", "comes-out", "suffices", "quick"]


def inline(value):
    """A value as TOML writes it within a line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {inline(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(inline, value)) + "]"
    return json.dumps(value)


def toml(table):
    """A table as TOML; tables in it are inline."""
    return "".join(f"{json.dumps(key)} = {inline(value)}\n" for key, value in table.items())


def merged(tables, further):
    """Tables of options with `further` ones over them."""
    return {name: {**tables.get(name, {}), **further.get(name, {})} for name in {**tables, **further}}


def variant(paper, name):
    """The options of a variant, with those of the variants that it is like."""
    own = paper["variants"][name]
    base = variant(paper, own["like"]) if "like" in own else {}
    return merged(base, {table: own[table] for table in TABLES if table in own})


def write(source, target, judge, alternatives):
    """Writes the paper with one variant, the judge with these alternatives."""
    paper = tomllib.loads((source / "paper.toml").read_text())
    options, changed = variant(paper, judge), {}
    for one in alternatives:
        options = merged(options, {table: one[table] for table in TABLES if table in one})
        for scheme, parameters in one.get("parameters", {}).items():
            changed.setdefault(scheme, {}).update(parameters)
    for scheme, parameters in changed.items():
        words = ",".join(f"{key}={value}" for key, value in parameters.items())
        paper["schemes"][scheme] += f"({words})"
    paper.pop("quick-evidence", None)
    paper["variants"] = {judge: {"about": "The set-up.", **options}}
    measures = collections.ChainMap(*(one.get("measures", {}) for one in alternatives))
    for folder in sorted(path.parent for path in source.glob("*/plan.toml")):
        plan = tomllib.loads((folder / "plan.toml").read_text())
        if plan.get("ours") or plan.get("specification"):
            continue
        plan.pop("demonstrations", None)
        for part in [plan, plan.get("quick", {})]:
            if "variants" in part:
                part["variants"] = [judge]
        claims = tomllib.loads((folder / "claims.toml").read_text())["claim"]
        for claim in claims:
            for key in RECORDED:
                claim.pop(key, None)
            measure = claim["value"]["measure"]
            claim["value"]["measure"] = measures.get(measure, measure)
        (target / folder.name).mkdir(parents=True, exist_ok=True)
        (target / folder.name / "plan.toml").write_text(toml(plan))
        (target / folder.name / "claims.toml").write_text("claim = " + inline(claims) + "\n")
        (target / folder.name / "notes.md").write_text("A set-up of the search.\n")
    (target / "paper.toml").write_text(toml(paper))


def judged(source, out, judge, alternatives):
    """Runs the set-up; the claims of its claims.csv."""
    folder, results = out / "set-up", out / "results"
    for one in [folder, results]:
        shutil.rmtree(one, ignore_errors=True)
    write(source, folder, judge, alternatives)
    words = [HEADSTART, "reproduce", str(folder.resolve()), "--quick", "--threads", "1", "--out", str(results)]
    subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    with open(results / "set-up" / "claims.csv", newline="") as file:
        return list(csv.DictReader(file))


def set_ups(options, draws):
    """Choices of an alternative for each option: the first of each, each other one alone, draws."""
    names = {option: list(alternatives) for option, alternatives in options.items()}
    first = {option: alternatives[0] for option, alternatives in names.items()}
    yield first
    for option, alternatives in names.items():
        for one in alternatives[1:]:
            yield first | {option: one}
    for number in range(draws):
        draw = {}
        for option, alternatives in names.items():
            value = hashlib.sha256(f"{number} {option}".encode()).digest()
            drawn = alternatives[int.from_bytes(value[:8], "big") % len(alternatives)]
            draw[option] = drawn if value[8] % 2 else first[option]
        yield draw


def line(choice):
    """A choice in words."""
    return ", ".join(choice.values())


def main(folder, draws, out):
    """Runs what is not in OUT/set-ups.csv yet, and prints the table."""
    source, out = pathlib.Path(folder), pathlib.Path(out)
    search = tomllib.loads((source / "search.toml").read_text())
    out.mkdir(parents=True, exist_ok=True)
    kept, columns = out / "set-ups.csv", ["set-up", "train", "test", "claims"]
    if not kept.exists():
        kept.write_text(",".join(columns) + "\n")
    with open(kept, newline="") as file:
        done = {row["set-up"]: row for row in csv.DictReader(file)}
    for choice in set_ups(search["options"], int(draws)):
        if line(choice) in done:
            continue
        alternatives = [search["options"][option][one] for option, one in choice.items()]
        claims = judged(source, out, search["judge"], alternatives)
        counts = collections.Counter(row["figure"] in search["train"] for row in claims if row["verdict"].startswith("holds"))
        row = {"set-up": line(choice), "train": counts[True], "test": counts[False], "claims": len(claims)}
        (out / "claims").mkdir(exist_ok=True)
        shutil.copy(out / "results" / "set-up" / "claims.csv", out / "claims" / f"{len(done)}.csv")
        with open(kept, "a", newline="") as file:
            csv.DictWriter(file, columns).writerow(row)
        done[line(choice)] = row
        print(*row.values(), sep="; ", flush=True)
    print("\nBest by the figures chosen by:")
    for row in sorted(done.values(), key=lambda row: -int(row["train"]))[:10]:
        print(*row.values(), sep="; ")
    print("\nMean over all set-ups with an alternative:")
    for option, alternatives in search["options"].items():
        for one in alternatives:
            rows = [row for row in done.values() if one in row["set-up"].split(", ")]
            means = [sum(int(row[half]) for row in rows) / max(len(rows), 1) for half in ["train", "test"]]
            print(f"{option}: {one}: {means[0]:.1f} {means[1]:.1f} ({len(rows)} set-ups)")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
