#!/usr/bin/env python3
"""Checks that a shared library exports names of namespace weft and nothing else.

usage: check_exports.py LIBRARY [NM [LIST [--write]]]

LIST has the names of the C interface: programs in C are linked to them, so one that is lost is a breach. `--write`
writes the list anew, with names that have come.

So that libweft links beside any other library: nothing of LLVM, oneDNN, fmt or the standard library's templates gets
out.
"""
import re
import subprocess
import sys
from pathlib import Path

# A mangled name of namespace weft: functions and objects, virtual tables, type information, thunks, statics of
# functions and their guards.
OURS = re.compile(r"^_Z(T[VTIS]|TC|Thn?\d+_|Tv[n\d_]+_|Tc[hvn\d_]+_|GV|Z|GVZ)?NK?4weft")
# Put there by the linker.
LINKER = {"_init", "_fini", "__bss_start", "_edata", "_end", "__bss_start__", "_bss_end__", "__end__"}


def exported(library, nm):
    """(name as linked, name as written in C++) of every defined dynamic symbol."""
    def names(*options):
        text = subprocess.run([nm, "-D", "--defined-only", "--format=posix", *options, library], check=True,
                              capture_output=True, text=True).stdout
        return [re.sub(r" [A-Za-z]( [0-9a-f]+)*\s*$", "", line) for line in text.splitlines() if line]
    return list(zip(names(), names("-C")))


def strays(symbols):
    for mangled, name in symbols:
        if mangled not in LINKER and not OURS.match(mangled):
            yield name if mangled.startswith("_Z") else f"{name} (C linkage)"


def c_names(symbols):
    """What strays() says of the names of the C interface."""
    return {f"{mangled} (C linkage)" for mangled, _ in symbols if mangled.startswith("weft_")}


def compare(found, path):
    """The names that the list has and the library has not, and the other way round."""
    if "--write" in sys.argv:
        path.write_text("".join(f"{name.split()[0]}\n" for name in sorted(found)))
    listed = {f"{name} (C linkage)" for name in path.read_text().split()}
    return sorted(f"{name}, which is lost" for name in listed - found) + sorted(
        f"{name}, which {path.name} does not list" for name in found - listed)


def main():
    library, nm = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "nm"
    symbols = exported(library, nm)
    wrong = sorted(set(strays(symbols)))
    if len(sys.argv) > 3:
        wrong = sorted({*wrong} - c_names(symbols)) + compare(c_names(symbols), Path(sys.argv[3]))
    for name in wrong[:50]:
        print(f"exported, but not of weft: {name}")
    print(f"{len(symbols)} exported symbols, {len(wrong)} of them not of weft")
    return 1 if wrong or len(symbols) < 10 else 0


if __name__ == "__main__":
    sys.exit(main())
