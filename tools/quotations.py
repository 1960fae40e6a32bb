#!/usr/bin/env python3
"""Checks quoted words of papers and RFCs in comments and documents against docs/quotations.csv.

That file has each quotation with the text it was compared with: the paper itself, or quotations of
it in public code. These texts are not kept here. A quotation is text of three words or more between
quotation marks. It stands in a paragraph that cites a section, a figure or an RFC, or in a file
made from papers. Titles do not count: they follow an author's name. A quotation that is not in the
file, and a line of the file that is quoted nowhere, are faults.
"""

import csv
import pathlib
import re
import subprocess
import sys

import prose

LIST = "docs/quotations.csv"
# Files made from papers, in which a paragraph need not repeat the citation.
FROM_PAPERS = re.compile(r"crates/(schemes/startup/src|laboratory/study/src/(history|newcomers|quick_start))/")
CITES = re.compile(r"§|Figure \d|RFC \d|[Ss]lides? \d")
TITLE_FOLLOWS = re.compile(r"([A-Z][\w-]+|et al\.|RFC \d+|Source:),? $")


def plain(text):
    return re.sub(r"[\s*]+", " ", text).strip(" .,;?").lower()


def quotations(path):
    """Quotations of a file, each with the number of the line in which its paragraph begins."""
    lines = pathlib.Path(path).read_text(encoding="utf-8").splitlines()
    end = path.rsplit(".", 1)[-1]
    for paragraph in prose.paragraphs(lines) if end == prose.DOCUMENT else prose.comments(lines, prose.MARKS[end]):
        text = re.sub(r"`[^`]*`", lambda code: code[0].replace('"', "'"), " ".join(line for _, line in paragraph))
        for found in re.finditer(r'"([^"]+)"', text) if FROM_PAPERS.match(path) or CITES.search(text) else []:
            if len(found[1].split()) >= 3 and not TITLE_FOLLOWS.search(text[: found.start()]):
                yield paragraph[0][0], found[1]


def main():
    with open(LIST, encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    known = {plain(row["quotation"]): row["quotation"] for row in rows}
    listed = subprocess.run(["git", "ls-files", "*.rs", "*.md", "*.toml", "*.h", "*.c"], capture_output=True, check=True, text=True).stdout.splitlines()
    faults, used = [], set()
    for path in listed:
        for number, quotation in quotations(path):
            used.add(plain(quotation))
            if plain(quotation) not in known:
                faults.append(f"{path}:{number}: found {quotation!r}, expected a quotation of {LIST}")
    faults += [f"{LIST}: {known[text]!r} is quoted nowhere" for text in sorted(known.keys() - used)]
    if faults:
        sys.exit("\n".join([*faults, f"quotations.py: {len(faults)} faults; compare a new quotation with its source, then list it"]))
    second_hand = sum(row["compared with"].startswith("quotations") for row in rows)
    print(f"{len(used)} quotations, all of them compared: {len(used) - second_hand} with their source, {second_hand} with quotations of it")


if __name__ == "__main__":
    main()
