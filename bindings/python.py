#!/usr/bin/env python3
"""Writes the bindings of Weft's functions for Python: C++ files for nanobind.

usage: python.py OUTPUT_FOLDER

What a function takes follows from its declaration in the public headers, where there is one; else from a line of
python/signatures.txt:

    NAME…: PARAMETER, … [-> RESULT] [=> CALL]

A name may be `alias=name`. A parameter is `name: TYPE [= default]`; `*` begins those that are given by keyword. TYPE
is one of TYPES below. `TYPE?` may be None and is then left out of the C++ call, which chooses another overload; `TYPE
or None` may be None and is passed on as std::optional; `dtype or float32` is float32 where it is None. `beside a` is a
number in the weak dtype beside a, and all parameters of type `operand` are promoted together. CALL is C++ code of the
parameters, by default the C++ function of the name with all of them in their order. RESULT is `list`, or `one or
tuple`; arrays are a tuple otherwise. Every function takes `stream` by keyword as well, and in its place where the
parameters end with `stream`.
"""

from __future__ import annotations

import itertools
import re
import sys
import textwrap
from dataclasses import dataclass, replace
from pathlib import Path

import signatures

ROOT = Path(__file__).resolve().parents[1]

# type → (C++ parameter, C++ argument of the parameter {}, annotation)
TYPES = {
    "array": ("const Operand&", "{}.get()", "scalar | array"),
    "operand": ("const Operand&", "{}_", "scalar | array"),
    "arrays": ("const std::vector<Operand>&", "helpers::arrays({})", "Sequence[array]"),
    "int": ("int", "{}", "int"),
    "float": ("double", "{}", "float"),
    "bool": ("bool", "{}", "bool"),
    "str": ("const std::string&", "{}", "str"),
    "dtype": ("const Dtype&", "{}", "Dtype"),
    "shape": ("Shape", "std::move({})", "Sequence[int]"),
    "lengths": ("const Lengths&", "{}.shape", "int | Sequence[int]"),
    "strides": ("const std::vector<int64_t>&", "{}", "Sequence[int]"),
    "axes": ("const Axes&", "*{}", "int | Sequence[int]"),
    "lists": ("const std::vector<std::vector<int>>&", "{}", "Sequence[Sequence[int]]"),
    "two": ("const Axes&", "helpers::two({})", "int | tuple[int, int]"),
    "three": ("const Axes&", "helpers::three({})", "int | tuple[int, int, int]"),
    "pairs": ("nb::handle", "{}", "int | tuple[int] | tuple[int, int] | Sequence[tuple[int, int]]"),
    "norm": ("const Norm&", "{}", 'Literal["backward", "ortho", "forward"]'),
    "float or str": ("const std::variant<double, std::string>&", "{}", "int | float | str"),
    "array or str": ("const std::variant<std::string, Operand>&", "{}", "array | str"),
    "uint64": ("uint64_t", "{}", "int"),
}
# Types that helpers take as they are.
HELPERS_OWN = ("axes", "array or str", "float or str", "operand", "pairs")
# C++ type of a parameter → type
FROM_CPP = {
    "array": "array", "std::vector<array>": "arrays", "int": "int", "uint64_t": "uint64", "float": "float",
    "double": "float", "bool": "bool", "std::string": "str", "Dtype": "dtype", "Shape": "shape", "size_t": "int",
    "std::vector<int>": "axes", "std::pair<int, int>": "two", "std::tuple<int, int, int>": "three",
    "FFTNorm": "norm", "Strides": "strides",
}
CPP_DEFAULTS = {"true": "True", "false": "False", "std::nullopt": "None", "FFTNorm::Backward": '"backward"',
                "fft::FFTNorm::Backward": '"backward"'}
SCALAR_DEFAULT = re.compile(r'-?[\d.e+-]+f?|True|False|".*"|\w+')
# Headers whose functions of two arrays a and b take numbers for either.
WEAK_HEADERS = ("ops/arithmetic.h", "ops/comparison.h")


@dataclass(frozen=True)
class Parameter:
    """A parameter of a Python function."""

    name: str
    type: str
    default: str | None = None
    left_out: bool = False  # None leaves it out of the call
    optional: bool = False  # None is passed on
    fallback: str = ""  # stands for None
    beside: str = ""  # the array whose dtype a number takes
    keyword: bool = False


@dataclass(frozen=True)
class Function:
    """A Python function."""

    namespace: str
    name: str
    parameters: tuple[Parameter, ...]
    target: str  # the C++ function
    call: str = ""
    result: str = ""
    doc: str = ""
    stream: bool = True  # it takes a stream
    stream_in_place: bool = False  # without its name too


def parse_parameter(text: str, keyword: bool) -> Parameter:
    name, _, rest = text.partition(":")
    kind, _, default = (part.strip() for part in rest.partition("="))
    p = Parameter(name.strip(), kind, default or None, keyword=keyword)
    if kind.endswith("?"):
        p = replace(p, type=kind[:-1], left_out=True, default=default or "None")
    elif kind.endswith(" or None"):
        p = replace(p, type=kind.removesuffix(" or None"), optional=True, default=default or "None")
    elif match := re.fullmatch(r"dtype or (\w+)", kind):
        p = replace(p, type="dtype", fallback=match.group(1), default=default or match.group(1))
    if p.type.startswith("beside "):
        p = replace(p, type="operand", beside=p.type.removeprefix("beside "))
    if p.type not in TYPES:
        raise ValueError(f"signatures.txt: unknown type {p.type!r} in {text!r}")
    return p


def parse_parameters(text: str) -> tuple[Parameter, ...]:
    found, keyword = [], False
    for part in signatures.split_outside(text, ","):
        if part == "*":
            keyword = True
        elif part != "stream":
            found.append(parse_parameter(part, keyword))
    return tuple(found)


def split_name(name: str) -> tuple[str, str]:
    namespace, _, last = name.rpartition(".")
    return namespace, last


def read_table(path: Path) -> tuple[list[Function], set[str], dict[str, str], list[str]]:
    """Returns the functions of signatures.txt, the names to skip, other names, and the methods."""
    functions, skipped, aliases, methods = [], set(), {}, []
    for line in path.read_text(encoding="utf-8").split("\n"):
        if not line or line.startswith("#"):
            continue
        words = line.split()
        if words[0] == "skip":
            skipped.update(words[1:])
        elif words[0] == "alias":
            aliases.update(word.split("=") for word in words[1:])
        elif words[0] == "methods":
            methods += words[1:]
        else:
            names, _, rest = line.partition(": ")
            rest, _, call = (part.strip() for part in rest.partition("=>"))
            rest, _, result = (part.strip() for part in rest.partition("->"))
            for name in names.split():
                name, _, target = name.partition("=")
                namespace, last = split_name(name)
                path_of = "::".join(filter(None, (namespace, target or last)))
                functions.append(Function(namespace, last, parse_parameters(rest), path_of,
                                          call.replace("{name}", path_of), result,
                                          stream_in_place=rest.endswith(", stream")))
    return functions, skipped, aliases, methods


def from_declaration(s: signatures.Signature) -> Function:
    """Returns the Python function of one C++ declaration."""
    parameters = []
    names = [p.name for p in s.parameters if p.type == "array"]
    weak = s.header in WEAK_HEADERS and names == ["a", "b"]
    for p in s.parameters:
        if p.type == "StreamOrDevice":
            continue
        kind, optional = p.type, False
        if match := re.fullmatch(r"std::optional<(.*)>", kind):
            kind, optional = match.group(1), True
        if kind not in FROM_CPP:
            raise ValueError(f"{s.header}: {s.path} takes {p.type}; give it a line in signatures.txt")
        default = p.default
        if default is not None:
            default = CPP_DEFAULTS.get(default, default)
            if not SCALAR_DEFAULT.fullmatch(default):
                raise ValueError(f"{s.header}: {s.path} has the default {default}; give it a line in signatures.txt")
            default = re.sub(r"^(-?[\d.e+-]+)f$", r"\1", default)
        kind = "operand" if weak and kind == "array" else FROM_CPP[kind]
        parameters.append(Parameter(p.name, kind, default or ("None" if optional else None), optional=optional))
    stream = any(p.type == "StreamOrDevice" for p in s.parameters)
    return Function(s.namespace, s.name, tuple(order_defaults(parameters)), s.path, doc=s.doc, stream=stream)


def order_defaults(parameters: list[Parameter]) -> list[Parameter]:
    """Drops the default of a parameter before one that has none: Python wants them last."""
    needed = False
    result = []
    for p in reversed(parameters):
        needed = needed or p.default is None
        result.insert(0, replace(p, default=None) if needed and p.default == "None" else p)
    return result


def all_functions() -> tuple[list[Function], list[str]]:
    """Returns every function of the module, with its comment, and the names of array's methods."""
    groups = signatures.read_all(ROOT / "include" / "weft")
    table, skipped, aliases, methods = read_table(ROOT / "python" / "signatures.txt")
    docs = {"::".join(filter(None, (g.namespace, g.name))): g.doc for g in groups}
    named = {".".join(filter(None, (f.namespace, f.name))) for f in table}
    functions = [replace(f, doc=docs.get(f.target, "")) for f in table]
    for g in groups:
        name = ".".join(filter(None, (g.namespace, g.name)))
        if name in named or name in skipped:
            continue
        if len(g.overloads) > 1:
            raise ValueError(f"{name} has {len(g.overloads)} declarations; give it a line in signatures.txt")
        functions.append(from_declaration(g.overloads[0]))
    for alias, name in aliases.items():
        functions += [replace(f, name=alias) for f in functions if not f.namespace and f.name == name]
    return functions, methods


def argument(p: Parameter) -> str:
    """Returns the C++ argument of a call."""
    cpp = TYPES[p.type][1]
    if p.beside:
        return f"helpers::beside({p.beside}, {p.name})"
    if p.optional and p.type == "array":
        return f"helpers::optional_array({p.name})"
    if p.optional or p.fallback:
        return f"{p.name}.value_or({p.fallback})" if p.fallback else p.name
    if p.left_out:
        inside = p.name if p.type == "axes" else f"(*{p.name})"
        return cpp.format(inside)
    return cpp.format(p.name)


def declared(p: Parameter) -> str:
    """Returns the C++ parameter of the lambda."""
    cpp = TYPES[p.type][0]
    if p.type != "axes" and (p.left_out or p.optional or p.fallback):
        plain = signatures.plain_type(cpp)
        return f"const std::optional<{plain}>& {p.name}"
    return f"{cpp} {p.name}"


def filled(call: str, parameters: tuple[Parameter, ...], missing: set[str]) -> str:
    """Returns a call of signatures.txt with the C++ arguments of the parameters, without those that are missing.
    Helpers take Python's own types as they are."""
    helper = call.startswith("helpers::")
    for p in parameters:
        if p.name in missing:
            call = re.sub(rf"(?<![\w.:]){p.name}\b, ", "", call)
            continue
        as_is = helper and not p.beside and (p.left_out or p.type in HELPERS_OWN)
        text = p.name if as_is else argument(p)
        call = re.sub(rf"(?<![\w.:]){p.name}\b(?!\()", lambda _, text=text: text, call)
    return call


def calls(f: Function) -> str:
    """Returns the body of the lambda: a call for each choice of arguments that are None."""
    before = []
    operands = [p.name for p in f.parameters if p.type == "operand" and not p.beside]
    if len(operands) == 2:
        before.append("const auto [{0}_, {1}_] = promote({0}, {1});".format(*operands))
    if f.call.startswith("helpers::"):
        return " ".join([*before, f"return {filled(f.call, f.parameters, {})[:-1]}, stream);"])
    open_ = [p for p in f.parameters if p.left_out]
    lines = []
    for given in itertools.product((True, False), repeat=len(open_)):
        chosen = {p.name: g for p, g in zip(open_, given)}
        missing = {name for name, g in chosen.items() if not g}
        arguments = [argument(p) for p in f.parameters if p.name not in missing]
        condition = " && ".join(p.name for p, g in zip(open_, given) if g)
        call = f"weft::{f.target}({', '.join([*arguments, *['stream'] * f.stream])})"
        if f.call:
            call = f"weft::{filled(f.call, f.parameters, missing)[:-1]}, stream)"
        lines.append(f"if ({condition}) return {call};" if condition else f"return {call};")
    return " ".join([*before, *lines])


def annotation(p: Parameter) -> str:
    text = TYPES[p.type][2]
    if p.left_out or p.optional or p.fallback:
        text += " | None"
    return text


def python_signature(f: Function, is_method: bool) -> str:
    """Returns the signature for the stub and the documentation."""
    parts, keyword = [], False
    for k, p in enumerate(f.parameters):
        if is_method and k == 0:
            parts.append("self")
            continue
        if p.keyword and not keyword:
            keyword = True
            parts.append("*")
        default = "..." if p.type == "lists" and p.default else p.default  # a number stands for a list of lists
        parts.append(f"{p.name}: {annotation(p)}" + (f" = {default}" if default is not None else ""))
    if f.stream and not keyword and not f.stream_in_place:
        parts.append("*")
    if f.stream:
        parts.append("stream: Stream | ThreadLocalStream | Device | DeviceType | None = None")
    return f"def {f.name}({', '.join(parts)}) -> {result_annotation(f)}"


def result_annotation(f: Function) -> str:
    if f.result == "list":
        return "list[array]"
    if f.result == "one or tuple":
        return "array | tuple[array, ...]"
    return RESULTS.get(f.target, "array")


EXCEPTIONS = {"std::invalid_argument": "ValueError", "std::out_of_range": "IndexError",
              "std::runtime_error": "RuntimeError", "std::overflow_error": "OverflowError", "Throws": "Raises",
              "throws": "raises", "nullopt": "None"}


def docstring(text: str) -> str:
    """Returns a comment of the headers as Python says it: other exceptions, and no code of C++."""
    paragraphs = re.split(r"\n\s*\n", "\n".join(line for line in text.split("\n") if not line.startswith("    ")))
    for cpp, python in EXCEPTIONS.items():
        paragraphs = [re.sub(rf"\b{cpp}\b", python, p) for p in paragraphs]
    return "\n\n".join(textwrap.fill(" ".join(p.split()), 100) for p in paragraphs if p.strip())


def literal(text: str) -> str:
    return 'R"doc(' + text + ')doc"'


def default_value(p: Parameter) -> str:
    """Returns the default as C++ makes the Python object."""
    text = p.default
    if text == "None":
        return "nb::none()"
    if text in ("True", "False"):
        return text.lower()
    if text == "()":
        return "nb::make_tuple()"
    if text.startswith("("):
        return f"nb::make_tuple{text}"
    if p.type == "dtype":
        return f"weft::{text}"
    return text


def definition(f: Function, where: str, is_method: bool) -> str:
    """Returns the C++ statement that defines the function."""
    arguments, keyword = [], False
    for k, p in enumerate(f.parameters):
        if p.keyword and not keyword:
            keyword = True
            arguments.append("nb::kw_only()")
        if is_method and k == 0:
            continue
        value = f" = {default_value(p)}" if p.default is not None else ""
        may_be_none = p.left_out or p.optional or p.fallback or p.type == "axes"
        none = ".none()" if may_be_none and p.default != "None" else ""
        arguments.append(f'nb::arg("{p.name}"){none}{value}')
    if f.stream:
        arguments += [*["nb::kw_only()"] * (not keyword and not f.stream_in_place), 'nb::arg("stream") = nb::none()']
    arguments.append(f"nb::sig({literal(python_signature(f, is_method))})")
    arguments.append(literal(docstring(f.doc)))
    taken = [*map(declared, f.parameters), *["const StreamOrDevice& stream"] * f.stream]
    lambda_ = f"[]({', '.join(taken)}) {{ {body(f)} }}"
    return f'  {where}.def("{f.name}", {lambda_},\n      ' + ", ".join(arguments) + ");\n"


def body(f: Function) -> str:
    inner = calls(f)
    if f.result == "list":
        return f"return helpers::list([&] {{ {inner} }}());"
    if f.result == "one or tuple":
        return f"return helpers::one_or_tuple([&] {{ {inner} }}());"
    if RESULTS.get(f.target):
        return f"return helpers::tuple([&] {{ {inner} }}());"
    return inner


RESULTS: dict[str, str] = {}


def find_results() -> None:
    """Notes which C++ functions return several arrays."""
    for g in signatures.read_all(ROOT / "include" / "weft"):
        results = {s.result for s in g.overloads}
        if results & {"std::vector<array>"}:
            RESULTS[g.overloads[0].path] = "tuple[array, ...]"
        for s in g.overloads:
            if match := re.fullmatch(r"std::(?:pair|tuple)<(.*)>", s.result):
                count = match.group(1).count("array")
                RESULTS.setdefault(s.path, f"tuple[{', '.join(['array'] * count)}]")
    RESULTS.pop("random::split", None)


def write(path: Path, name: str, head: str, statements: list[str]) -> None:
    path.write_text(
        "// Written by bindings/python.py from the public headers and python/signatures.txt.\n"
        '#include "helpers.h"\n\nnamespace weft::python {\n\n'
        f"void define_{name}({head}) {{\n" + "".join(statements) + "}\n\n}  // namespace weft::python\n",
        encoding="utf-8")


def main() -> None:
    output = Path(sys.argv[1])
    output.mkdir(parents=True, exist_ok=True)
    find_results()
    functions, methods = all_functions()
    plain = [f for f in functions if not f.namespace]
    half = (len(plain) + 1) // 2
    for name, part in (("operations_a", plain[:half]), ("operations_b", plain[half:])):
        write(output / f"{name}.cpp", name, "nb::module_& m", [definition(f, "m", False) for f in part])
    for namespace in ("linalg", "fft", "random", "fast"):
        write(output / f"{namespace}.cpp", namespace, "nb::module_& m",
              [definition(f, "m", False) for f in functions if f.namespace == namespace])
    write(output / "methods.cpp", "methods", "nb::class_<array>& c",
          [definition(f, "c", True) for name in methods for f in plain if f.name == name])


if __name__ == "__main__":
    main()
