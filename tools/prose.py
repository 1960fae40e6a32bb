#!/usr/bin/env python3
"""Checks comments and documents: their width, the length and openings of sentences, backquotes.

Usage: tools/prose.py [FILE...]
Without files, every source file and every document of the repository is checked.

Comments and docstrings have at most 100 columns, documents 120 (tables, code, headings and the
targets of links do not count). A sentence has at most 30 words; text between backquotes is one
word. No sentence opens with a noun clause: "What was sent." and "Whether it is lost." describe a
thing without its name; "Bytes sent." and "True if it is lost." have it. "Where" and "How" may open
a sentence that goes on after a comma: "Where no router answers, slow start runs." Questions are
allowed. A comment of documentation stands alone: "Its name." needs the line above. A parameter that
it names is in the code. Each rule is first shown to find a fault in a sample.
"""

import ast
import inspect
import re
import subprocess
import sys

COMMENT_COLUMNS = 100
DOCUMENT_COLUMNS = 120
SENTENCE_WORDS = 30
C = r"//+!?|/\*+|\*(?!/)"
MARKS = {"rs": r"//[/!]?", "c": C, "h": C, "js": C, "sh": "#", "py": "#", "toml": "#"}
DOCUMENT = "md"

NOUN = re.compile(r"(What|Whether|Who|Whoever|Whatever)\b")
NOUN_WITHOUT_COMMA = re.compile(r"(Where|How)\b[^,:]*$")
LEANING = re.compile(r"(Its|Their|The same|Those|That of|This one|As above|Likewise)\b")
# Names that stand where documentation names a parameter: as the subject, or behind what it is.
PARAMETER = re.compile(r"`([a-z][a-z0-9_]*)` (?:is|are|has|have|gives|says)\b|, `([a-z][a-z0-9_]*)`[.;]")
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


def docstrings(lines):
    """The lines of a Python program, empty but for the text of its docstrings."""
    blank = [""] * len(lines)
    for node in ast.walk(ast.parse("\n".join(lines))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
            first, text = node.body[0].lineno - 1, inspect.cleandoc(node.body[0].value.value).splitlines()
            blank[first : first + len(text)] = ["" if line.startswith((">>>", "...")) else line for line in text]
    return blank


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


def leaning(lines):
    """Comments of documentation in Rust whose first words lean on the line above."""
    before = False
    for number, line in enumerate(lines, 1):
        found = re.match(r"\s*///(?: |$)(.*)", line)
        if found and not before and (word := LEANING.match(found[1])):
            yield number, f"documentation opens with {word[0]!r}, expected the name of the thing"
        before = bool(found)


def parameters(lines):
    """Names in the documentation of a function of Rust that nothing in the file's code has."""
    code = " ".join(re.sub(r"//.*", "", line) for line in lines)
    documented = []
    for number, line in enumerate(lines, 1):
        if re.match(r"\s*///", line):
            documented.append((number, line))
        elif not re.match(r"\s*#\[", line):
            is_function = re.match(r"\s*(pub(\([^)]*\))? )?(const |async |unsafe )*fn ", line)
            for at, text in documented if is_function else []:
                for found in PARAMETER.finditer(text):
                    name = found[1] or found[2]
                    if not re.search(rf"\b{name}\b", code):
                        yield at, f"documentation names `{name}`, expected a name of the code"
            documented = []


def wide_comments(lines, mark):
    for number, line in enumerate(lines, 1):
        if re.match(rf"\s*({mark})( |$)", line) and len(line) > COMMENT_COLUMNS and "://" not in line:
            yield number, f"a comment of {len(line)} columns, expected at most {COMMENT_COLUMNS}"


def wide_docstrings(lines):
    for number, text in enumerate(docstrings(lines), 1):
        if text and len(lines[number - 1]) > COMMENT_COLUMNS and "://" not in text:
            yield number, f"a docstring of {len(lines[number - 1])} columns, expected at most {COMMENT_COLUMNS}"


def wide_lines(lines):
    for number, line in prose(lines):
        width = len(re.sub(r"\]\([^)]*\)", "]", line))
        if width > DOCUMENT_COLUMNS and "://" not in line and not line.startswith(("#", "![")):
            yield number, f"a line of {width} columns, expected at most {DOCUMENT_COLUMNS}"


def long_sentences(paragraphs):
    for paragraph in paragraphs:
        for number, sentence in sentences(paragraph):
            plain = re.sub(r"`[^`]*`", "code", re.sub(r"\]\([^)]*\)", "]", sentence))
            words = sum(bool(re.search(r"\w", word)) for word in plain.split())
            if words > SENTENCE_WORDS:
                yield number, f"a sentence of {words} words, expected at most {SENTENCE_WORDS}"


def odd_backquotes(paragraphs):
    """A substitution that went wrong leaves half of a name."""
    for paragraph in paragraphs:
        if sum(text.count("`") for _, text in paragraph) % 2:
            yield paragraph[0][0], "an odd number of backquotes, expected pairs"


def faults(path, lines):
    """Line number and message of each fault in a file."""
    end = path.rsplit(".", 1)[-1]
    if end == DOCUMENT:
        rules = [openings, long_sentences, odd_backquotes]
        return [*wide_lines(lines), *(fault for rule in rules for fault in rule(paragraphs(lines)))]
    mark = MARKS[end]
    rules = [openings, long_sentences, *([] if end == "sh" else [odd_backquotes])]
    found = [*wide_comments(lines, mark), *(fault for rule in rules for fault in rule(comments(lines, mark)))]
    if end == "rs":
        found += [*leaning(lines), *parameters(lines)]
    if end == "py":
        text = docstrings(lines)
        found += [*wide_docstrings(lines), *openings(paragraphs(text)), *long_sentences(paragraphs(text))]
    return found


def check_rules():
    """Ends the program if a rule misses the fault of a sample, or finds one where there is none."""
    thirty = "\n".join(["word"] * SENTENCE_WORDS)
    for path, text, expected in [
        ("sample.rs", "/// What was sent.", 1),
        ("sample.rs", f"// {'x' * COMMENT_COLUMNS}", 1),
        ("sample.rs", "/// Bytes sent.\n// How long?", 0),
        ("sample.rs", "/// " + thirty.replace("\n", "\n    /// ") + "\n    /// more.", 1),
        ("sample.rs", "// " + thirty.replace("\n", "\n// ") + "\n//\n// more.\nlet code = 1;\n// More.", 0),
        ("sample.rs", "/// call)` reaches the\n/// methods of `Startup`.\nfn a() {}\n/// `b`", 1),
        ("sample.rs", "/// Its name.\na: u8,\n/// The same of a reader.", 2),
        ("sample.rs", "/// Name.\n/// Its use.\n// Its end.", 0),
        ("sample.rs", "/// Runs; `asked` are the options.\n#[inline]\nfn run(given: u8) {}", 1),
        ("sample.rs", "/// Runs with the options, `asked`.\npub(crate) async fn run() {}", 1),
        ("sample.rs", "/// Runs; `given` are the options, `asked`. `h3` tells.\nfn run(given: u8) { asked(); }", 0),
        ("sample.sh", "# " + thirty.replace("\n", "\n# ") + "\n# `a b` [c](d e)", 1),
        ("sample.py", f'def sent():\n    """Bytes.\n\n    What was sent.\n\n    {" ".join(["a"] * 31)}.\n    """', 2),
        ("sample.py", f'"""{"x" * COMMENT_COLUMNS}"""', 1),
        ("sample.py", f'"""Bytes.\n\n>>> {" ".join(["a"] * 31)}\n{thirty}.\n"""\nlong = "{"x" * COMMENT_COLUMNS}"', 0),
        ("sample.md", "Whether it is lost.", 1),
        ("sample.md", "x" * (DOCUMENT_COLUMNS + 1), 1),
        ("sample.md", "Where no router answers, slow start runs. How long does it last?", 0),
        ("sample.md", f"- {thirty}\n  more.", 1),
        ("sample.md", f"{thirty}.\n`more` {thirty}.", 1),
        ("sample.md", f"1. {thirty}.\n`a b` [c](d e) {thirty[:-10]}. (More.)", 0),
        ("sample.md", f"{thirty}.\n\n| more |\n|---|\n{thirty.replace('word', '| word |')}\n", 0),
    ]:
        found = [message for _, message in faults(path, text.splitlines())]
        if len(found) != expected:
            sys.exit(f"prose.py: {path}, {text!r}: found {found}, expected {expected} faults")


def main():
    ends = [f"*.{end}" for end in [*MARKS, DOCUMENT]]
    listed = subprocess.run(["git", "ls-files", *ends], capture_output=True, check=True, text=True).stdout.splitlines()
    files = sys.argv[1:] or listed
    check_rules()
    found = 0
    for path in files:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
        for number, message in sorted(faults(path, lines)):
            print(f"{path}:{number}: {message}")
            found += 1
    if found:
        sys.exit(f"prose.py: {found} faults in {len(files)} files")
    print(f"prose.py: {len(files)} files, no faults")


if __name__ == "__main__":
    main()
