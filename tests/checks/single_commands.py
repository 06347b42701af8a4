#!/usr/bin/env python3
"""Writes BUILD/single/compile_commands.json: how each file is compiled by itself, for checks that look at single files.

A build that compiles the files of a folder as one (WEFT_UNITY) has no such commands, so that a second folder is
configured, with the same settings and nothing built; generated headers are those of BUILD.

usage: single_commands.py ROOT BUILD
"""
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

KEPT = re.compile(r"^(WEFT_\w+|CMAKE_BUILD_TYPE|CMAKE_CXX_COMPILER|CMAKE_CXX_FLAGS\w*):(\w+)=(.*)$")


def settings(build):
    """Returns the options of a build folder as arguments of cmake."""
    options = {}
    for line in (build / "CMakeCache.txt").read_text().splitlines():
        found = KEPT.match(line)
        if found and found[2] not in ("INTERNAL", "STATIC"):
            options[found[1]] = f"-D{found[1]}:{found[2]}={found[3]}"
    options.update(WEFT_UNITY="-DWEFT_UNITY=OFF", WEFT_TEST_HEADERS="-DWEFT_TEST_HEADERS=OFF")
    return list(options.values())


def main():
    root, build = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    single = build / "single"
    commands = (build / "compile_commands.json").read_text()
    if not any("/unity_" in entry["file"] for entry in json.loads(commands)):
        single.mkdir(exist_ok=True)
        (single / "compile_commands.json").write_text(commands)
        return 0
    shutil.rmtree(single, ignore_errors=True)
    done = subprocess.run(["cmake", "-S", root, "-B", single, "-G", "Ninja", *settings(build)], capture_output=True,
                          text=True)
    if done.returncode != 0:
        sys.exit(f"cmake does not configure {single}:\n{done.stdout}{done.stderr}")
    path = single / "compile_commands.json"
    path.write_text(path.read_text().replace(f"{single}/generated", f"{build}/generated"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
