#!/usr/bin/env python3
"""Checks the subjects of the newest commits, and the bodies of those that change fingerprints.

Usage: tools/history.py
A subject is `crate: imperative summary` in at most 72 characters: one or several lower-case words
before the colon, no period at the end, no "wip", "fixup" or "squash". A commit that changes
crates/networks/sim/tests/fingerprints.csv gives the reason in its body.

Without a repository the check reports NOT RUN; in a shallow clone it has the commits that are
there.
"""

import re
import subprocess
import sys

COMMITS = 300
SUBJECT_COLUMNS = 72
SUBJECT = re.compile(r"[a-z][a-z0-9_.-]*(, [a-z][a-z0-9_.-]*)*: \S.*[^.\s]")
UNFINISHED = re.compile(r"\b(wip|fixup|squash)\b", re.IGNORECASE)
FINGERPRINTS = "crates/networks/sim/tests/fingerprints.csv"


def fault(subject, body, files):
    """The fault of a commit, or None."""
    if len(subject) > SUBJECT_COLUMNS:
        return f"found a subject of {len(subject)} characters, expected at most {SUBJECT_COLUMNS}"
    if not SUBJECT.fullmatch(subject) or UNFINISHED.search(subject):
        return "found another form, expected `crate: imperative summary` without a period"
    if FINGERPRINTS in files and not body.strip():
        return f"found no body, expected the reason for a change of {FINGERPRINTS}"
    return None


def check_rules():
    """Ends the program if a rule misses the fault of a sample, or finds one where there is none."""
    for subject, body, files, is_fault in [
        ("sim, net: count packets that wait", "", [], False),
        ("sim: " + "x" * SUBJECT_COLUMNS, "", [], True),
        ("Count packets that wait", "", [], True),
        ("sim: count packets that wait.", "", [], True),
        ("sim: wip", "", [], True),
        ("sim: round up", "", [FINGERPRINTS], True),
        ("sim: round up", "RFC 9438 rounds up.", [FINGERPRINTS], False),
    ]:
        if (fault(subject, body, files) is not None) != is_fault:
            sys.exit(f"history.py: {subject!r}: expected {'a fault' if is_fault else 'none'}")


def main():
    check_rules()
    form = "%x02%h%x00%P%x00%s%x00%b%x00"
    log = subprocess.run(
        ["git", "log", "--no-merges", f"--max-count={COMMITS}", f"--format={form}", "--name-only"],
        capture_output=True,
        check=False,
        encoding="utf-8",
        errors="replace",
    )
    if log.returncode != 0:
        print(f"history.py: NOT RUN: {log.stderr.strip()}")
        return
    commits = [commit.split("\0") for commit in log.stdout.split("\x02")[1:]]
    found = 0
    for number, parents, subject, body, files in commits:
        # The oldest commit of a shallow clone lists every file of the tree.
        message = fault(subject, body, files.split("\n") if parents else [])
        if message:
            print(f"{number} {subject}: {message}")
            found += 1
    if found:
        sys.exit(f"history.py: {found} faults in {len(commits)} commits")
    print(f"history.py: {len(commits)} commits, no faults")


if __name__ == "__main__":
    main()
