#!/usr/bin/env python3
"""Checks every dependency's licence, source, duplicates and minimum Rust version by deny.toml.

`cargo deny check` reads the same file and checks security advisories too, for which it needs their
database. This script needs nothing but `cargo metadata`, so that continuous integration can run it
anywhere. It ends with 1 and one line for each violation.
"""

import json
import pathlib
import re
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent


def tokens(expression):
    """The parts of an SPDX expression; `/` is the old spelling of `OR`."""
    expression = expression.replace("/", " OR ")
    return re.findall(r"\(|\)|[^\s()]+", expression)


def is_allowed(expression, allowed):
    """True if a choice among the licences of an SPDX expression consists of allowed ones only."""
    words = tokens(expression)

    def alternatives(at):
        value, at = conjunction(at)
        while at < len(words) and words[at] == "OR":
            other, at = conjunction(at + 1)
            value = value or other
        return value, at

    def conjunction(at):
        value, at = licence(at)
        while at < len(words) and words[at] == "AND":
            other, at = licence(at + 1)
            value = value and other
        return value, at

    def licence(at):
        if words[at] == "(":
            value, at = alternatives(at + 1)
            return value, at + 1
        name, at = words[at], at + 1
        if at < len(words) and words[at] == "WITH":
            name, at = f"{name} WITH {words[at + 1]}", at + 2
        return name in allowed, at

    return alternatives(0)[0]


def version(text):
    """A version as numbers that can be compared; a missing part is zero."""
    return tuple(int(part) for part in (text.split(".") + ["0", "0"])[:3])


def violations(metadata, policy):
    """One line for each rule that a package breaks."""
    allowed = set(policy["licenses"]["allow"])
    registries = {f"registry+{url}" for url in policy["sources"]["allow-registry"]}
    skipped = {entry["name"] for entry in policy["bans"]["skip"]}
    packages = metadata["packages"]
    ours = [package for package in packages if package["source"] is None]
    minimum = min(version(package["rust_version"]) for package in ours if package["rust_version"])
    versions = {}
    for package in packages:
        name = f"{package['name']} {package['version']}"
        versions.setdefault(package["name"], set()).add(package["version"])
        if not package["license"]:
            yield f"{name}: found no licence, expected one that deny.toml allows"
        elif not is_allowed(package["license"], allowed):
            yield f"{name}: found the licence `{package['license']}`, expected one that deny.toml allows"
        if package["source"] is not None and package["source"] not in registries:
            yield f"{name}: found the source {package['source']}, expected one of deny.toml's registries"
        if package["rust_version"] and version(package["rust_version"]) > minimum:
            yield (f"{name}: needs Rust {package['rust_version']}, expected at most "
                   f"{'.'.join(map(str, minimum[:2]))}, the workspace's rust-version")
    for name, found in sorted(versions.items()):
        if len(found) > 1 and name not in skipped:
            yield f"{name}: found the versions {', '.join(sorted(found))}, expected one"
        if len(found) == 1 and name in skipped:
            yield f"{name}: deny.toml skips its duplicates, of which there are none: delete the entry"
    for name in sorted(skipped - versions.keys()):
        yield f"{name}: deny.toml skips its duplicates, and it is no dependency: delete the entry"


def main():
    policy = tomllib.loads((ROOT / "deny.toml").read_text())
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--all-features"]
    output = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    found = list(violations(json.loads(output), policy))
    for line in found:
        print(f"dependencies.py: {line}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
