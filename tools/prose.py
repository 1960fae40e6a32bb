#!/usr/bin/env python3
"""Checks the language of comments and of documents: their width, and that sentences name their subject.

Usage: tools/prose.py [FILE...]      (without files: every source file and every document of the repository)

Comments have at most 100 columns, documents 120 (tables, code, headings and the targets of links do not count). No sentence opens
with a noun clause: "What was sent." and "Whether it is lost." describe a thing without its name; "Bytes sent." and "True if it is
lost." have it. "Where" and "How" may open a sentence that goes on after a comma: "Where no router answers, slow start runs."
Questions are allowed.
"""

import re
import subprocess
import sys

COMMENT_COLUMNS = 100
DOCUMENT_COLUMNS = 120
C = r"//+!?|/\*+|\*(?!/)"
MARKS = {"rs": r"//[/!]?", "c": C, "h": C, "js": C, "sh": "#", "py": "#", "toml": "#"}
DOCUMENT = "md"

NOUN = re.compile(r"(What|Whether|Who|Whoever|Whatever)\b")
NOUN_WITHOUT_COMMA = re.compile(r"(Where|How)\b[^,:]*$")
ITEM = re.compile(r"^([-*#>]+|\d+\.) +")


def comments(lines, mark):
    """Paragraphs of comments, each a list of (line number, text)."""
    paragraph, fenced, kind = [], False, None
    for number, line in enumerate(lines, 1):
        found = re.match(rf"\s*({mark})(?: |$)(.*)", line)
        text = found[2].strip() if found else ""
        if text.startswith("```"):
            fenced = not fenced
            text = ""
        if not found:
            fenced = False
        if paragraph and (not text or fenced or found[1] != kind or text.startswith("|") or ITEM.match(text)):
            yield paragraph
            paragraph = []
        if text and not fenced:
            kind = found[1]
            paragraph.append((number, ITEM.sub("", text, count=1)))
    if paragraph:
        yield paragraph


def prose(lines):
    """Lines of a document that are neither code nor tables nor comments: (line number, text)."""
    fenced = commented = False
    before = ""
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if text.startswith("```"):
            fenced = not fenced
        elif text.startswith("<!--"):
            commented = "-->" not in text
        elif commented:
            commented = "-->" not in text
        elif not fenced and not text.startswith("|") and not (line.startswith("    ") and not before):
            yield number, line.rstrip()
        if not line.startswith("    "):
            before = text


def paragraphs(lines):
    """Paragraphs, items of lists and headings of a document, each a list of (line number, text)."""
    paragraph, last = [], 0
    for number, line in prose(lines):
        text = line.strip()
        if paragraph and (not text or number != last + 1 or ITEM.match(text)):
            yield paragraph
            paragraph = []
        if text:
            paragraph.append((number, ITEM.sub("", text, count=1)))
            if text.startswith("#"):
                yield paragraph
                paragraph = []
        last = number
    if paragraph:
        yield paragraph


def sentences(paragraph):
    """Sentences of a paragraph, each with the number of the line in which it begins."""
    text, places = "", []
    for number, line in paragraph:
        places.append((len(text), number))
        text += line + " "
    begin = 0
    for end in [found.end() for found in re.finditer(r"[.!?:]\)?(?=[\s*([\"]+[A-Z`§])|$", text)]:
        sentence = text[begin:end]
        start = begin + len(sentence) - len(sentence.lstrip(" *"))
        yield max(number for place, number in places if place <= start), sentence.strip(" *")
        begin = end


def openings(paragraphs):
    for paragraph in paragraphs:
        for number, sentence in sentences(paragraph):
            if not sentence.endswith("?") and (NOUN.match(sentence) or NOUN_WITHOUT_COMMA.match(sentence.rstrip("."))):
                yield number, f"a sentence opens with {sentence.split()[0]!r}, expected the name of the thing"


def wide_comments(lines, mark):
    for number, line in enumerate(lines, 1):
        if re.match(rf"\s*({mark})( |$)", line) and len(line) > COMMENT_COLUMNS and "://" not in line:
            yield number, f"a comment of {len(line)} columns, expected at most {COMMENT_COLUMNS}"


def wide_lines(lines):
    for number, line in prose(lines):
        width = len(re.sub(r"\]\([^)]*\)", "]", line))
        if width > DOCUMENT_COLUMNS and "://" not in line and not line.startswith(("#", "![")):
            yield number, f"a line of {width} columns, expected at most {DOCUMENT_COLUMNS}"


def faults(path):
    """Line number and message of each fault in a file."""
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    end = path.rsplit(".", 1)[-1]
    if end == DOCUMENT:
        return [*wide_lines(lines), *openings(paragraphs(lines))]
    return [*wide_comments(lines, MARKS[end]), *openings(comments(lines, MARKS[end]))]


def main():
    ends = [f"*.{end}" for end in [*MARKS, DOCUMENT]]
    listed = subprocess.run(["git", "ls-files", *ends], capture_output=True, check=True, text=True).stdout.splitlines()
    files = sys.argv[1:] or listed
    found = 0
    for path in files:
        for number, message in sorted(faults(path)):
            print(f"{path}:{number}: {message}")
            found += 1
    if found:
        sys.exit(f"prose.py: {found} faults in {len(files)} files")
    print(f"prose.py: {len(files)} files, no faults")


if __name__ == "__main__":
    main()
