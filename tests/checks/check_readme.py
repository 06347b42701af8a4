#!/usr/bin/env python3
"""Checks the documentation against the tree: the README's C++ example is, byte for byte, examples/readme.cpp, which the
build compiles and a test runs; every file and anchor that the README, CONTRIBUTING and docs/ link to exists;
docs/design.md and docs/architecture.md list the layers and folders of check_layers.py.

usage: check_readme.py [ROOT]
"""
import re
import sys
from pathlib import Path

from check_layers import FOLDERS, LAYERS


def blocks(markdown, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", markdown, re.MULTILINE | re.DOTALL)


def without_code(page):
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def anchors(page):
    """The anchors of a page: those of its headings, as GitHub makes them, and its own."""
    yield from re.findall(r'<a id="([^"]+)">', without_code(page))
    for heading in re.findall(r"^#+ (.*)$", without_code(page), re.MULTILINE):
        yield re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def dead_links(root, page):
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)]*))?\)", without_code(page)):
        if re.match(r"^[a-z]+:", target):
            continue
        to = page.parent / target if target else page
        if not to.exists():
            yield f"{page.relative_to(root)}: {target} does not exist"
        elif anchor and to.suffix == ".md" and anchor not in anchors(to):
            yield f"{page.relative_to(root)}: {target} has no anchor #{anchor}"


def unlisted_folders(root):
    """Folders of check_layers.py that docs/design.md (layers) or docs/architecture.md (folders in layers) do not list.
    """
    for page, names in (
            ("docs/design.md", {layer: [f"src/{layer}"] for layers in LAYERS for layer in layers}),
            ("docs/architecture.md", {f"{layer}/{folder}": [folder, f"{layer.split('/')[-1]}/{folder}"]
                                      for layer, ranks in FOLDERS.items() for rank in ranks for folder in rank
                                      if folder and not folder.endswith(".*")})):
        text = (root / page).read_text(encoding="utf-8") if (root / page).exists() else None
        for folder, spellings in names.items():
            if text is not None and (root / "src" / folder).is_dir() and not any(f"`{s}`" in text for s in spellings):
                yield f"{page} does not list src/{folder}"


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[2]).resolve()
    problems = []
    found = blocks((root / "README.md").read_text(encoding="utf-8"), "cpp")
    wanted = (root / "examples" / "readme.cpp").read_text(encoding="utf-8")
    if len(found) != 1:
        problems.append(f"README.md has {len(found)} C++ blocks; this check knows one")
    elif found[0] != wanted:
        problems.append("README.md's C++ example differs from examples/readme.cpp")
    for page in [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").rglob("*.md"))]:
        problems += dead_links(root, page)
    problems += unlisted_folders(root)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
