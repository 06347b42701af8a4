#!/usr/bin/env python3
"""Runs the Python examples of pages.

usage: check_python_page.py PAGE…   # PYTHONPATH finds weft and numpy

The blocks of a page (```python) run one after the other, as one program, in a folder of their own. A block behind a
line <!-- not run: REASON --> is only compiled. Exits with 77 where NumPy is not installed.
"""
import importlib.util
import os
import re
import sys
import tempfile
import traceback
import types
from pathlib import Path

BLOCK = re.compile(r"(<!-- not run: [^\n]+ -->\n)?^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run_page(page):
    """Whether all blocks run; prints what the first one that does not says, with the page's lines."""
    text, module = page.read_text(encoding="utf-8"), types.ModuleType("page")
    sys.modules["page"] = module  # classes of a module that is known can be pickled
    blocks = list(BLOCK.finditer(text))
    for found in blocks:
        line = text[: found.start(2)].count("\n")
        try:
            code = compile("\n" * line + found[2], str(page), "exec")
            if not found[1]:
                exec(code, vars(module))
        except Exception:
            traceback.print_exc(limit=-1)
            return False
    print(f"{page.name}: {len(blocks)} blocks")
    return bool(blocks)


def main():
    if importlib.util.find_spec("numpy") is None:
        print("check_python_page: NumPy is not installed: skipped")
        return 77
    pages = [Path(name).resolve() for name in sys.argv[1:]]
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        good = [run_page(page) for page in pages]
        os.chdir("/")
    return 0 if good and all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
