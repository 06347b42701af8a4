#!/usr/bin/env python3
"""Writes the C interface of Weft's operations: weft/c/operations.h and the C++ file that implements it.

usage: c.py HEADER SOURCE SYMBOLS

Every declaration of a function in the public headers becomes one function of C. Its name is `weft_`, the namespace and
the name, and for all but the shortest of several declarations the names of its parameters that the shortest lacks:
sum(a), sum(a, axis) and sum(a, axes) are weft_sum, weft_sum_axis and weft_sum_axes. SYMBOLS gets the sorted list of the
names.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import signatures

ROOT = Path(__file__).resolve().parents[1]

# C++ type → (C parameters, C++ argument); {} is the parameter's name.
TYPES = {
    "array": ("weft_array {}", "in({})"),
    "std::vector<array>": ("const weft_array* {}, size_t {}_count", "list({}, {}_count)"),
    "std::optional<array>": ("weft_array {}", "optional({})"),
    "int": ("int {}", "{}"),
    "uint64_t": ("uint64_t {}", "{}"),
    "size_t": ("size_t {}", "{}"),
    "float": ("float {}", "{}"),
    "double": ("double {}", "{}"),
    "bool": ("bool {}", "{}"),
    "std::string": ("const char* {}", "in({})"),
    "Dtype": ("weft_dtype {}", "in({})"),
    "FFTNorm": ("weft_fft_norm {}", "in({})"),
    "StreamOrDevice": ("weft_stream {}", "in({})"),
    "Shape": ("const int64_t* {}, size_t {}_count", "lengths({}, {}_count)"),
    "Strides": ("const int64_t* {}, size_t {}_count", "list({}, {}_count)"),
    "std::vector<int>": ("const int* {}, size_t {}_count", "list({}, {}_count)"),
    "std::optional<std::vector<int>>": (
        "const int* {}, size_t {}_count", "({} ? std::optional(list({}, {}_count)) : std::nullopt)"),
    "std::optional<int>": ("const int* {}", "optional({})"),
    "std::optional<float>": ("const float* {}", "optional({})"),
    "std::optional<bool>": ("const bool* {}", "optional({})"),
    "std::optional<Dtype>": ("const weft_dtype* {}", "optional({})"),
    "std::pair<int, int>": ("const int* {}", "std::pair<int, int>({}[0], {}[1])"),
    "std::tuple<int, int, int>": ("const int* {}", "std::tuple<int, int, int>({}[0], {}[1], {}[2])"),
}
# How C names what a C++ type has no parameter's name for.
WORDS = {"std::vector<array>": "arrays", "std::vector<int>": "several", "Shape": "shape", "int": "int",
         "double": "double", "std::string": "name", "array": "array", "std::pair<int, int>": "pair", "bool": "bool",
         "std::vector<std::pair<int, int>>": "pairs", "Dtype": "dtype", "std::optional<array>": "array",
         "float": "float", "std::optional<std::vector<int>>": "axes"}
# Declarations that C has no use for, or that weft/c.h has by hand: they take functions, pairs of lists, C++'s braces.
SKIPPED_TYPES = {"CpuKernelFunction", "std::vector<std::string>", "std::initializer_list<int>",
                 "std::vector<std::pair<int, int>>"}
SKIPPED_NAMES = {"random::seed", "random::key", "random::default_key", "einsum_path", "positive"}
RESULTS = {"array": 1, "std::vector<array>": 0, "std::pair<array, array>": 2, "std::tuple<array, array>": 2}


def needed(s: signatures.Signature) -> list[signatures.Parameter]:
    """Returns the parameters without a default, but for the stream."""
    return [p for p in s.parameters if p.default is None and p.type != "StreamOrDevice"]


def is_covered(s: signatures.Signature, others: list[signatures.Signature]) -> bool:
    """Returns whether another declaration takes the same and more, all of which has defaults."""
    own = [(p.name, p.type) for p in s.parameters]
    for t in others:
        rest = [p for p in t.parameters if (p.name, p.type) not in own]
        same = [(p.name, p.type) for p in t.parameters if p not in rest]
        if rest and same == own and all(p.default for p in rest):
            return True
    return False


def base_name(group: signatures.Group) -> str:
    return "_".join(filter(None, ("weft", group.namespace, group.name)))


def c_names(group: signatures.Group, functions: set[str]) -> dict[str, signatures.Signature]:
    """Returns the C name of each declaration of a function. `functions` are the names of all functions."""
    base = base_name(group)
    overloads = [s for s in group.overloads if not {p.type for p in s.parameters} & SKIPPED_TYPES]
    overloads = [s for s in overloads if s.result in RESULTS]
    overloads = [s for s in overloads if not is_covered(s, overloads)]
    if not overloads:
        return {}
    shortest = min(overloads, key=lambda s: len(needed(s)))
    plain = {p.name for p in shortest.parameters}
    names: dict[str, signatures.Signature] = {}
    for s in overloads:
        extra = [p.name for p in needed(s) if p.name not in plain]
        name = "_".join([base, *extra]) if s is not shortest else base
        if name in names or (s is not shortest and name in functions):
            others = {p.name: p.type for p in shortest.parameters}
            differing = [WORDS[p.type] for p in needed(s) if others.get(p.name) != p.type and p.type in WORDS]
            for k in range(1, len(differing) + 1):
                if (longer := "_".join([name, *differing[:k]])) not in {*names, *functions}:
                    name = longer
                    break
        if name in names:
            raise ValueError(f"two declarations of {group.name} would be {name}")
        names[name] = s
    return names


def parameters(s: signatures.Signature) -> str:
    """Returns the parameters of the C function."""
    count = RESULTS[s.result]
    results = ["weft_arrays* results"] if count == 0 else (
        ["weft_array* result"] if count == 1 else ["weft_array* first", "weft_array* second"])
    taken = [TYPES[p.type][0].replace("{}", parameter_name(p)) for p in s.parameters]
    return ", ".join([*results, *taken])


def parameter_name(p: signatures.Parameter) -> str:
    return "stream" if p.type == "StreamOrDevice" else p.name


def body(s: signatures.Signature) -> str:
    """Returns the statement that calls C++ and gives the results out."""
    arguments = ", ".join(TYPES[p.type][1].replace("{}", parameter_name(p)) for p in s.parameters)
    call = f"weft::{s.path}({arguments})"
    if RESULTS[s.result] == 0:
        return f"out(results, {call});"
    if RESULTS[s.result] == 1:
        return f"out(result, {call});"
    return f"out_all({call}, first, second);"


def wrapped(text: str, indent: str) -> str:
    """Breaks a declaration at commas, into lines of 120 columns."""
    lines, line = [], ""
    for part in re.split(r"(?<=,) ", text):
        if line and len(line) + 1 + len(part) > 118:
            lines.append(line)
            line = indent + part
        else:
            line = f"{line} {part}" if line else part
    return "\n".join([*lines, line])


def comment(text: str) -> str:
    """Returns a comment of C."""
    return "".join(f"/// {line}\n" if line else "///\n" for line in text.split("\n"))


def main() -> None:
    header_path, source_path, symbols_path = map(Path, sys.argv[1:4])
    header = ["// Written by bindings/c.py from the C++ headers.\n#pragma once\n#include \"weft/c.h\"\n\n"
              "/// The operations. Each has the comment of its C++ declaration: a list of lengths or axes is a pointer "
              "and a count,\n/// what is optional is a pointer or handle that may be NULL, and several results are "
              "several first parameters or a list.\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n"]
    source = ["// Written by bindings/c.py from the C++ headers.\n"
              "#include \"c/handles.h\"\n#include \"weft/einsum.h\"\n"
              "#include \"weft/fast.h\"\n#include \"weft/linalg.h\"\n#include \"weft/ops.h\"\n"
              "#include \"weft/random.h\"\n\nusing weft::c::guarded;\nusing weft::c::in;\nusing weft::c::list;\n"
              "using weft::c::optional;\nusing weft::c::out;\nusing weft::c::out_all;\nusing weft::c::lengths;\n\n"]
    symbols, last = [], ""
    groups = signatures.read_all(ROOT / "include" / "weft")
    functions = {base_name(g) for g in groups}
    for group in groups:
        if "::".join(filter(None, (group.namespace, group.name))) in SKIPPED_NAMES:
            continue
        for name, s in c_names(group, functions).items():
            declaration = f"weft_status {name}({parameters(s)})"
            text = comment(s.doc) if s.doc and s.doc != last else ""
            last = s.doc or last
            header.append(text + wrapped(f"WEFT_API {declaration};", " " * 4) + "\n")
            source.append(f"{declaration} {{\n  return guarded([&] {{ {body(s)} }});\n}}\n")
            symbols.append(name)
    header.append("\n#ifdef __cplusplus\n}\n#endif\n")
    for path, parts in ((header_path, header), (source_path, source)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(parts), encoding="utf-8")
    symbols_path.write_text("\n".join(sorted(symbols)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
