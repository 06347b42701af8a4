#!/usr/bin/env python3
"""Holds code in the documentation against the examples that it is taken from.

usage: check_excerpts.py [ROOT]

A code block that follows a line <!-- excerpt: FILE --> stands in FILE word for word, at any indentation. Prints one
line for each block that does not, and exits with 1 where there is one.
"""
import re
import sys
from pathlib import Path

BLOCK = re.compile(r"<!-- excerpt: (\S+) -->\n```\w*\n(.*?)```", re.DOTALL)


def dedented(lines):
    """The lines without the indentation that all of them share, and without trailing spaces."""
    margins = [len(line) - len(line.lstrip()) for line in lines if line.strip()]
    margin = min(margins, default=0)
    return [line[margin:].rstrip() for line in lines]


def contains(text, block):
    """Whether the lines of `block` follow each other in `text`, at one indentation."""
    wanted, lines = dedented(block.splitlines()), text.splitlines()
    return any(dedented(lines[at:at + len(wanted)]) == wanted for at in range(len(lines) - len(wanted) + 1))


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    bad = 0
    for page in sorted((root / "docs").rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        for found in BLOCK.finditer(text):
            source = root / found[1]
            line = text[:found.start()].count("\n") + 1
            if not source.is_file():
                print(f"{page.relative_to(root)}:{line}: there is no {found[1]}")
            elif not contains(source.read_text(encoding="utf-8"), found[2]):
                print(f"{page.relative_to(root)}:{line}: the block is not in {found[1]} word for word")
            else:
                continue
            bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
