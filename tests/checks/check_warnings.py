#!/usr/bin/env python3
"""Compiles the files that are most likely to be warned of falsely, with warnings as errors, at the flags of each CMake
preset. What g++ takes for uninitialized or out of bounds depends on what it inlined, that is on the flags, and a build
has the flags of one preset alone; `scripts/test presets` builds all files with all of them, which takes hours.

usage: check_warnings.py ROOT BUILD [FILE…]

The commands are those of BUILD/compile_commands.json with other flags of optimization. Presets that do not compile with
g++, or for which warnings are no errors, are left out. Prints the warnings and exits with 1 where there are some, with
77 where the build compiles several files as one.
"""
import json
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SKIPPED = 77
FILES = (  # where g++ has warned falsely before, and those with most optional values
    "src/array/routines/random.cpp",
    "src/compiler/fusion/group_join.cpp",
    "src/compiler/layout/view.cpp",
    "src/compiler/plan/step_maker.cpp",
    "src/compiler/rewrite/sum_terms.cpp",
    "src/graph/ops/indexed.cpp",
    "src/io/program/tape.cpp",
    "src/nn/norms.cpp",
    "src/target/cuda/libraries/cublaslt_form.cpp",
)
# CMake's flags of a build type, where a preset does not set them.
BUILD_TYPES = {"Release": "-O3 -DNDEBUG", "Debug": "-g", "RelWithDebInfo": "-O2 -g -DNDEBUG"}
# What cmake/WeftToolchain.cmake adds under a sanitizer.
SANITIZED = "-fno-omit-frame-pointer -fno-sanitize-recover=all -Wno-maybe-uninitialized"


def variables(presets, name):
    """Returns the cache variables of a preset, with those that it inherits."""
    preset = next(preset for preset in presets if preset["name"] == name)
    return {**(variables(presets, preset["inherits"]) if "inherits" in preset else {}),
            **preset.get("cacheVariables", {})}


def flags_of(root):
    """Returns flags and the presets that have them; a build type that users choose counts as one."""
    found = {BUILD_TYPES["RelWithDebInfo"]: ["CMAKE_BUILD_TYPE=RelWithDebInfo"]}
    presets = json.loads((root / "CMakePresets.json").read_text())["configurePresets"]
    for preset in presets:
        values = variables(presets, preset["name"])
        if preset.get("hidden") or "CMAKE_CXX_COMPILER" in values or values.get("WEFT_WERROR") == "OFF":
            continue
        kind = values.get("CMAKE_BUILD_TYPE", "Release")
        flags = values.get(f"CMAKE_CXX_FLAGS_{kind.upper()}", BUILD_TYPES[kind])
        if values.get("WEFT_SANITIZE"):
            flags += f" -fsanitize={values['WEFT_SANITIZE']} {SANITIZED}"
        found.setdefault(flags, []).append(preset["name"])
    return found


def split(entry):
    """Returns the compiler's command of an entry of compile_commands.json without its object, and its own flags."""
    command = shlex.split(entry["command"])
    command = command[next(k for k, word in enumerate(command) if re.search(r"(g\+\+|c\+\+)[-\d.]*$", word)):]
    kept, own, words = [], [], iter(command)
    for word in words:
        if word == "-o":
            next(words)
        elif re.match(r"-(O|g\d?$|DNDEBUG$|fsanitize)", word):
            own.append(word)
        elif word != "-Werror":
            kept.append(word)
    return kept, " ".join(own)


def main():
    root, build = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    entries = json.loads((build / "compile_commands.json").read_text())
    entries = {str(Path(entry["file"]).relative_to(root)): entry for entry in entries
               if Path(entry["file"]).is_relative_to(root)}
    if any("/unity_" in name for name in entries):
        print("skipped: this build compiles the files of a folder as one")
        return SKIPPED
    files = sys.argv[3:] or FILES
    absent = [name for name in files if name not in entries]
    if absent:
        sys.exit(f"{build} does not compile {', '.join(absent)}")
    # What has the flags of the build itself is compiled there.
    work = [(names, flags, name) for flags, names in flags_of(root).items() for name in files
            if flags != split(entries[name])[1]]

    def compile_one(item):
        _, flags, name = item
        command = [*split(entries[name])[0], "-Werror", *flags.split(), "-o", "/dev/null"]
        return subprocess.run(command, cwd=entries[name]["directory"], capture_output=True, text=True)

    breaches = 0
    with ThreadPoolExecutor(int(os.environ.get("WEFT_JOBS", os.cpu_count()))) as pool:
        for (names, flags, name), done in zip(work, pool.map(compile_one, work)):
            if done.returncode != 0:
                print(f"{name} at {flags} ({', '.join(names)}):\n{done.stderr}")
                breaches += 1
    print(f"{len(work)} compilations at {len({flags for _, flags, _ in work})} sets of flags, {breaches} breaches")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
