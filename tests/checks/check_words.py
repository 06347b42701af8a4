#!/usr/bin/env python3
"""Holds code, comments and documents to the words of docs/glossary.md: none of its retired identifiers and phrases may
come back.

usage: check_words.py ROOT

The table under "Retired words" has a row a word: the word, its identifiers and its phrases (in backticks), the folders
that the row is about (none: all), and the words of now. Identifiers are whole names of C++ code, case and all, and of
comments where they are no English word (with an underscore or a capital inside); text of string literals may keep them,
since it is generated code or a file format. Phrases are regular expressions over comments, string literals and
documents, in any case; blanks stand for line breaks and comment signs as well.
"""
import bisect
import re
import sys
from pathlib import Path

FOLDERS = ("src", "include", "python", "tools", "models", "tests", "docs")
FILES = ("README.md", "CONTRIBUTING.md")
SKIPPED = ("docs/glossary.md", "tests/compiler/golden", "tests/checks", "tests/fuzz/corpus", "docs/notes")
CXX = (".cpp", ".h", ".cu", ".cuh")
LEXER = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<text>R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"|"(?:[^"\\\n]|\\.)*")|"""
    r"""(?P<char>'(?:[^'\\\n]|\\.)+')""",
    re.S)


def retired(root):
    """The rows of the table: (word, identifiers, phrases, folders, now)."""
    text = (root / "docs/glossary.md").read_text()
    rows = []
    for line in text.split("## Retired words", 1)[-1].splitlines():
        cells = [c.strip() for c in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
        if len(cells) != 5 or set(line) <= set("|- ") or cells[0] == "word":
            continue
        names, phrases, folders = (re.findall(r"`([^`]+)`", c.replace("\\|", "|")) for c in cells[1:4])
        rows.append((cells[0], names, phrases, folders, cells[4]))
    return rows


def files(root):
    found = [root / f for f in FILES if (root / f).is_file()]
    for folder in FOLDERS:
        found += [p for p in sorted((root / folder).rglob("*")) if p.suffix in CXX + (".md",) and p.is_file()]
    return [p for p in found if not str(p.relative_to(root)).startswith(SKIPPED)]


class Text:
    """Parts of a file, joined by a blank: what lies between them takes most of a search's time otherwise."""

    def __init__(self, parts):
        self.starts, self.offsets, length = [], [], 0
        for offset, part in parts:
            self.starts.append(length)
            self.offsets.append(offset)
            length += len(part) + 1
        self.joined = " ".join(part for _, part in parts)
        self.words = set(re.findall(r"\w+", self.joined))

    def matches(self, pattern):
        """Where the pattern matches: (offset in the file, text)."""
        for m in pattern.finditer(self.joined):
            part = bisect.bisect_right(self.starts, m.start()) - 1
            yield self.offsets[part] + m.start() - self.starts[part], m.group()


def split(path):
    """The file, and of it three texts: code, code with comments, and prose (comments, string literals, documents)."""
    text = path.read_text(errors="replace")
    if path.suffix == ".md":
        return text, Text([]), Text([]), Text([(0, text.lower())])
    bare, code, prose, at = [], [], [], 0
    for m in LEXER.finditer(text):
        between = (at, text[at:m.start()])
        bare.append(between)
        code.append(between)
        if m.group("comment"):
            code.append((m.start(), m.group()))
        if m.group("comment") or m.group("text") and not re.search(r"#include\s*$", between[1]):
            prose.append((m.start(), m.group().lower()))
        at = m.end()
    bare.append((at, text[at:]))
    code.append((at, text[at:]))
    return text, Text(bare), Text(code), Text(prose)


def lowered(phrase):
    """The regular expression for texts in small letters."""
    return re.sub(r"\\.|[A-Z]", lambda m: m[0] if m[0][0] == "\\" else m[0].lower(), phrase)


def required(phrase):
    """Letters that every match of the regular expression has: most texts lack them, and are not searched further."""
    if "[" in phrase or re.search(r"\|(?![^(]*\))", phrase):
        return ""
    while "(" in phrase:
        phrase = re.sub(r"\([^()]*\)[?*]?", "\0", phrase)
    phrase = re.sub(r"\\.|.[?*]|[^a-z ]", "\0", phrase)
    return max(re.findall("[a-z]*", phrase), key=len)


def names_pattern(names):
    return re.compile(r"(?<![\w:])(?:" + "|".join(map(re.escape, names)) + r")(?!\w|\.(?:h|cpp))") if names else None


def is_name(name):
    return "_" in name or re.search("[a-z:][A-Z]", name) or "::" in name


def main():
    root = Path(sys.argv[1])
    rows = retired(root)
    if not rows:
        print("check_words: docs/glossary.md has no table of retired words")
        return 1
    everywhere = [(str(p.relative_to(root)), split(p)) for p in files(root)]
    wrong = 0
    for word, names, phrases, folders, now in rows:
        plain = names_pattern([n for n in names if not is_name(n)])
        compound = names_pattern([n for n in names if is_name(n)])
        parts = {n.split("::")[-1] for n in names}
        phrases = [lowered(p) for p in phrases]
        spoken = [(required(p), re.compile(re.sub(r" ", r"(?:\\s|//+|\\*)+", p))) for p in phrases]
        for name, (text, bare, code, prose) in everywhere:
            if folders and not name.startswith(tuple(folders)):
                continue
            hits = list(bare.matches(plain)) if plain and not bare.words.isdisjoint(names) else []
            hits += code.matches(compound) if compound and not code.words.isdisjoint(parts) else []
            for letters, p in spoken:
                if letters in prose.joined:
                    hits += prose.matches(p)
            for offset, found in hits:
                found = re.sub(r"\s+", " ", found)
                print(f"{name}:{text.count(chr(10), 0, offset) + 1}: '{found}': {word} is retired, say: {now}")
                wrong += 1
    if wrong:
        print(f"check_words: {wrong} retired words; docs/glossary.md says what to write instead")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
