#!/usr/bin/env python3
"""Writes the stubs of the Python package and has mypy check them and the package.

usage: check_types.py ROOT FOLDER_OF_THE_PACKAGE   # PYTHONPATH finds weft, nanobind and mypy

Exits with 77 where mypy is not installed. The stubs must be whole: no function without types, and no name that is not
imported; a program reads them. What the package says must hold: its functions have types, and calls fit the stubs.
"""
import importlib.util
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


def main():
    root, package = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    if importlib.util.find_spec("mypy") is None:
        print("check_types: mypy is not installed (scripts/setup --python installs it): skipped")
        return 77
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        shutil.copytree(root / "python" / "weft", folder / "weft", ignore=shutil.ignore_patterns("__pycache__"))
        for module in (package / "weft").glob("core.*"):
            (folder / "weft" / module.name).symlink_to(module)
        subprocess.run([sys.executable, root / "bindings" / "stubs.py", folder], check=True)
        shutil.copy(root / "tests" / "checks" / "typed_program.py", folder)
        status = 0
        for options in (["--strict", "weft/core"], ["--disallow-untyped-defs", "weft"],
                        ["--strict", "--follow-imports=silent", "typed_program.py"]):
            command = [sys.executable, "-m", "mypy", "--cache-dir", folder / "cache", "--warn-unused-ignores", *options]
            status |= subprocess.run(command, cwd=folder).returncode
    return 1 if status else 0


if __name__ == "__main__":
    sys.exit(main())
