#!/usr/bin/env python3
"""Holds code, scripts, CMake files and presets to 120 columns. C++ is broken by clang-format, which leaves comments
without blanks and long literals as they are. Documents (tables, links), golden and data files may have longer lines.

usage: check_lines.py [ROOT]
"""
import sys
from pathlib import Path

COLUMNS = 120
FOLDERS = ("bench", "bindings", "cmake", "docs", "examples", "include", "models", "python", "scripts", "src", "tests",
           "tools", ".ci")
SUFFIXES = (".cpp", ".h", ".cu", ".cuh", ".py", ".cmake", ".sh", ".in", ".map")
NAMES = ("CMakeLists.txt", "CMakePresets.json", ".clang-format", ".clang-tidy")
SKIPPED = ("tests/compiler/golden", "tests/fuzz/corpus")


def files(root):
    """The files that are looked at: by suffix or name, and scripts, which say so in their first line."""
    for path in [*root.iterdir(), *(path for folder in FOLDERS for path in sorted((root / folder).rglob("*")))]:
        if not path.is_file() or str(path.relative_to(root)).startswith(SKIPPED):
            continue
        if path.suffix in SUFFIXES or path.name in NAMES or (not path.suffix and path.read_bytes()[:2] == b"#!"):
            yield path


def main():
    root, number, breaches = Path(sys.argv[1] if len(sys.argv) > 1 else "."), 0, 0
    for path in files(root):
        number += 1
        for line, text in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
            if len(text) > COLUMNS:
                print(f"{path.relative_to(root)}:{line}: {len(text)} columns are more than {COLUMNS}")
                breaches += 1
    print(f"{number} files, {breaches} breaches")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
