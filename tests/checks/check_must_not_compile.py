#!/usr/bin/env python3
"""Compiles kernels that are wrong, and holds the compiler's message against the words that a user needs.

usage: check_must_not_compile.py ROOT COMPILER…

Each file of tests/checks/must_not_compile has cases, which begin with `// case NAME: WORDS` and end at the next one;
WORDS must stand in the message. What stands before the first case belongs to each of them. A case has a sound twin
in the line `// instead: CODE`: the case with its line `// wrong` replaced by CODE must compile, so that it fails for
nothing but that line. Files sound*.cpp compile as they are. clang++-14 is tried as well where there is one. Prints what
is wrong, and exits with 1 where something is.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FLAGS = ["-std=c++20"]
CASE = re.compile(r"^// case ([\w ]+): (.+)$", re.MULTILINE)
WRONG = re.compile(r"^.*// wrong$", re.MULTILINE)
INSTEAD = re.compile(r"^ *// instead: (.+)$", re.MULTILINE)


def cases_of(path):
    """Returns what stands before the cases of a file, and (name, words, wrong code, sound code) of each case."""
    text = path.read_text()
    found = list(CASE.finditer(text))
    cases = []
    for case, following in zip(found, [m.start() for m in found[1:]] + [len(text)]):
        body = text[case.end():following]
        wrong, instead = WRONG.findall(body), INSTEAD.search(body)
        if len(wrong) != 1 or not instead:
            raise ValueError(f"{path}: case {case[1]} wants one line `// wrong` and one `// instead: CODE`")
        cases.append((case[1], case[2], body, body.replace(wrong[0], instead[1])))
    return text[:found[0].start()], cases


def includes(root):
    return [f"-I{root / 'include'}", f"-I{root / 'tests'}"]


def precompiled(compiler, root, folder, number, text):
    """Compiles what stands before the cases once, which takes most of the time of a case. Returns the header."""
    header = Path(folder) / f"before{number}.h"
    header.write_text(text)
    output = f"{header}.{'pch' if 'clang' in compiler else 'gch'}"
    subprocess.run([compiler, *FLAGS, *includes(root), "-x", "c++-header", str(header), "-o", output], check=True)
    return header


def compile_text(compiler, root, text, header=None):
    """Returns the compiler's message, "" where the text compiles."""
    before = ["-include", str(header)] if header else []
    done = subprocess.run([compiler, *FLAGS, "-fsyntax-only", *includes(root), *before, "-x", "c++", "-"],
                          input=text, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
    return done.stdout + done.stderr if done.returncode else ""


def plain(text):
    return text.replace("‘", "'").replace("’", "'")


def check_wrong(compiler, root, name, words, text, header):
    message = compile_text(compiler, root, text, header)
    if not message:
        return f"{name}: {compiler} compiles it"
    return None if words in plain(message) else f"{name}: {compiler} does not say \"{words}\":\n{message[:2000]}"


def check_sound(compiler, root, name, text, header=None):
    message = compile_text(compiler, root, text, header)
    return f"{name}: {compiler} refuses the sound one:\n{message[:2000]}" if message else None


def work_of(compiler, root, path, folder, number):
    """Yields what is to be done for a file: a check and its arguments."""
    if path.stem.startswith("sound"):
        yield check_sound, compiler, root, path.name, path.read_text()
        return
    before, cases = cases_of(path)
    header = precompiled(compiler, root, folder, number, before)
    # The sound twins are compiled as one, each in a namespace of its own.
    twins = "".join(f"namespace twin{k} {{\n{sound}\n}}\n" for k, (_, _, _, sound) in enumerate(cases))
    yield check_sound, compiler, root, path.name, twins, header
    for name, words, wrong, _ in cases:
        yield check_wrong, compiler, root, name, words, wrong, header


def main():
    root, compilers = Path(sys.argv[1]).resolve(), sys.argv[2:]
    if shutil.which("clang++-14") and not any("clang" in c for c in compilers):
        compilers.append("clang++-14")
    files = sorted((root / "tests/checks/must_not_compile").glob("*.cpp"))
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        work = [item for k, compiler in enumerate(compilers) for n, path in enumerate(files)
                for item in work_of(compiler, root, path, folder, k * len(files) + n)]
        breaches = [b for b in pool.map(lambda item: item[0](*item[1:]), work) if b]
    for breach in breaches:
        print(breach)
    print(f"{len(work)} compilations, {len(breaches)} breaches")
    return 1 if breaches or not work else 0


if __name__ == "__main__":
    sys.exit(main())
