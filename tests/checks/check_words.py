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


def blanked(text):
    return re.sub(r"[^\n]", " ", text)


def split(path):
    """Three texts of the file's length: code, code with comments, and prose (comments, string literals, documents)."""
    text = path.read_text(errors="replace")
    if path.suffix == ".md":
        return blanked(text), blanked(text), text
    bare, code, prose, at = [], [], [], 0
    for m in LEXER.finditer(text):
        between = text[at:m.start()]
        bare.append(between)
        code.append(between)
        prose.append(blanked(between))
        part = m.group()
        bare.append(blanked(part))
        if m.group("comment"):
            code.append(part)
            prose.append(part)
        else:
            include = re.search(r"#include\s*$", between)
            code.append(blanked(part))
            prose.append(part if m.group("text") and not include else blanked(part))
        at = m.end()
    bare.append(text[at:])
    code.append(text[at:])
    prose.append(blanked(text[at:]))
    return "".join(bare), "".join(code), "".join(prose)


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
    everywhere = files(root)
    texts = {}
    wrong = 0
    for word, names, phrases, folders, now in rows:
        plain = names_pattern([n for n in names if not is_name(n)])
        compound = names_pattern([n for n in names if is_name(n)])
        spoken = [re.compile(re.sub(r" ", r"(?:\\s|//+|\\*)+", p), re.I) for p in phrases]
        for path in everywhere:
            name = str(path.relative_to(root))
            if folders and not name.startswith(tuple(folders)):
                continue
            if path not in texts:
                texts[path] = split(path)
            bare, code, prose = texts[path]
            hits = list(plain.finditer(bare)) if plain else []
            hits += compound.finditer(code) if compound else []
            for p in spoken:
                hits += p.finditer(prose)
            for m in hits:
                line = texts[path][0].count("\n", 0, m.start()) + 1
                found = re.sub(r"\s+", " ", m.group())
                print(f"{name}:{line}: '{found}': {word} is retired, say: {now}")
                wrong += 1
    if wrong:
        print(f"check_words: {wrong} retired words; docs/glossary.md says what to write instead")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
