#!/usr/bin/env python3
"""Checks that the README's C++ example is, byte for byte, examples/readme.cpp, which the build compiles and a test runs; and that every
file which the README, CONTRIBUTING and docs/ link to exists.

usage: check_readme.py [ROOT]
"""
import re
import sys
from pathlib import Path


def blocks(markdown, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", markdown, re.MULTILINE | re.DOTALL)


def dead_links(root, page):
    prose = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", prose):
        if not re.match(r"^[a-z]+:", target) and not (page.parent / target).exists():
            yield f"{page.relative_to(root)}: {target} does not exist"


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[2]).resolve()
    problems = []
    found = blocks((root / "README.md").read_text(encoding="utf-8"), "cpp")
    wanted = (root / "examples" / "readme.cpp").read_text(encoding="utf-8")
    if len(found) != 1:
        problems.append(f"README.md has {len(found)} C++ blocks; this check knows one")
    elif found[0] != wanted:
        problems.append("README.md's C++ example differs from examples/readme.cpp")
    for page in [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").glob("*.md"))]:
        problems += dead_links(root, page)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
