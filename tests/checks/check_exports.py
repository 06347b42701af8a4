#!/usr/bin/env python3
"""Checks that a shared library exports names of namespace weft and nothing else.

usage: check_exports.py LIBRARY [NM]

Names of the C interface are those of tests/checks/c_symbols.txt: programs in C are linked to them, so one that is lost
is a breach. New ones are added to the list by `check_exports.py LIBRARY NM --write`.

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
C_LIST = Path(__file__).with_name("c_symbols.txt")
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
        if mangled not in LINKER and not OURS.match(mangled) and not mangled.startswith("weft_"):
            yield name if mangled.startswith("_Z") else f"{name} (C linkage)"


def main():
    library, nm = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "nm"
    symbols = exported(library, nm)
    wrong = sorted(set(strays(symbols)))
    in_c = sorted(mangled for mangled, _ in symbols if mangled.startswith("weft_"))
    if "--write" in sys.argv:
        C_LIST.write_text("".join(f"{name}\n" for name in in_c))
    listed = C_LIST.read_text().split()
    for name in sorted({*listed} ^ {*in_c}):
        print(f"{name} is lost" if name in listed else f"{name} is not in {C_LIST.name}")
    wrong += sorted({*listed} ^ {*in_c})
    for name in wrong[:50]:
        print(f"exported, but not of weft: {name}")
    print(f"{len(symbols)} exported symbols, {len(wrong)} of them not of weft")
    return 1 if wrong or len(symbols) < 10 else 0


if __name__ == "__main__":
    sys.exit(main())
