#!/usr/bin/env python3
"""Writes the stubs of the module weft.core: its signatures for type checkers and editors.

usage: stubs.py FOLDER_OF_THE_PACKAGE   # the one that holds weft/; writes weft/core/*.pyi

nanobind's stubgen prints what each function says of itself. Signatures use names of `typing` and of weft.core without
importing them; this adds the imports, and the names that exist in stubs alone: `scalar`, what stands beside arrays.
"""

from __future__ import annotations

import importlib
import re
import sys
import types
from pathlib import Path

from nanobind.stubgen import StubGen

CORE = "weft.core"
WIDTH = 120
IMPORTS = {
    "collections.abc": ("Callable", "Iterator", "Mapping", "Sequence"),
    "enum": ("Enum",),
    "types": ("ModuleType",),
    "typing": ("Any", "Generic", "Literal", "TypeVar", "overload"),
    "typing_extensions": ("ParamSpec", "TypeAlias"),  # checkers know it whatever is installed
}
OWN = {
    "scalar": "scalar: TypeAlias = bool | int | float | complex",
    "P": 'P = ParamSpec("P")',
    "R": 'R = TypeVar("R")',
}
# Names of weft.core that the stubs of its submodules use.
SHARED = ("Device", "DeviceType", "Dtype", "Stream", "ThreadLocalStream", "array", "float32", "int32", "scalar")
# What signatures say → what checkers need to hear: comparisons are of arrays, whatever `object` says of them.
MENDED = (
    (r"(def __(?:eq|ne)__\(self, other: object\)) -> array \| bool: \.\.\.",
     r"\1 -> array: ...  # type: ignore[override]"),
    (r"(def __(?:eq|ne)__\(self, other: object\) -> Tile: \.\.\.)", r"\1  # type: ignore[override]"),
    (r"(def __i\w+__\(self, other: Value \| float\) -> Variable: \.\.\.)", r"\1  # type: ignore[override]"),
    (r"object \| None", "object"),
    (r"(def (?:item|__dlpack__|__getattr__)\(.*\)) -> object", r"\1 -> Any"),
    (r"(def __complex__\(.*\)) -> object", r"\1 -> complex"),
    (r"(def __index__\(.*\)) -> object", r"\1 -> int"),
    (r"(def __i(?!ter)\w+__\(.*\)) -> object", r"\1 -> array"),
    (r"(def __iter__\(.*\)) -> object", r"\1 -> Iterator[array]"),
    (r"(def __enter__\(.*\)) -> object", r"\1 -> FunctionExporter"),
    (r"\*args, \*\*kwargs\)", "*args: Any, **kwargs: Any)"),
    (r"\*args\)", "*args: Any)"),
    (r"(def __call__\(self, /, \*args: Any, \*\*kwargs: Any\)):", r"\1 -> Any:"),
    (r"Callable(?!\[)(?=[,)\]:])", "Callable[..., Any]"),
    (r"\btuple(?=:|\))", "tuple[Any, ...]"),
    (r"\bdict(?=:|\))", "dict[str, Any]"),
)


class Stub(StubGen):
    """Prints a module; a class may compute its __doc__."""

    def put_docstr(self, docstr: object) -> None:
        if isinstance(docstr, str):
            super().put_docstr(docstr)


def uses(text: str, name: str) -> bool:
    """Whether code, apart from texts, has the name."""
    return re.search(rf"(?<![\w.]){name}\b", text) is not None


def code_of(text: str) -> str:
    return re.sub(r'""".*?"""', "", text, flags=re.DOTALL)


def head(text: str, is_core: bool) -> str:
    """Returns the imports and names that the stub uses."""
    code = code_of(text)
    own = [line for name, line in OWN.items() if is_core and uses(code, name)]
    wanted = code + "\n".join(own)
    lines = []
    for module, names in IMPORTS.items():
        used = [name for name in names if uses(wanted, name)]
        if used:
            lines.append(f"from {module} import {', '.join(used)}")
    if not is_core:
        used = [name for name in SHARED if uses(code, name) and not re.search(rf"^def {name}\b", code, re.MULTILINE)]
        lines += [f"from {CORE} import {', '.join(used)}"] if used else []
    return "\n".join([*lines, "", *own, ""])


def stub(module: types.ModuleType, is_core: bool) -> str:
    """Returns the text of one stub."""
    writer = Stub(module, recursive=False, include_private=True, max_expr_length=WIDTH, quiet=True)
    writer.put(module)
    text = writer.get()
    # stubgen's own imports of what is imported here anyway
    text = re.sub(rf"^from ({'|'.join(map(re.escape, IMPORTS))}) import [^\n]*\n", "", text, flags=re.MULTILINE)
    for pattern, mended in MENDED:
        text = re.sub(pattern, mended, text)
    match = re.match(r'\s*(""".*?"""\n)', text, re.DOTALL)
    doc, rest = (match.group(1), text[match.end():]) if match else ("", text)
    return f"{doc}\n{head(rest, is_core)}\n{rest.strip()}\n"


def main() -> None:
    package = Path(sys.argv[1]).resolve()
    sys.path.insert(0, str(package))
    core = importlib.import_module(CORE)
    folder = package / "weft" / "core"
    folder.mkdir(exist_ok=True)
    (folder / "__init__.pyi").write_text(stub(core, True), encoding="utf-8")
    for name, value in sorted(vars(core).items()):
        if isinstance(value, types.ModuleType) and value.__name__.startswith(CORE):
            (folder / f"{name}.pyi").write_text(stub(value, False), encoding="utf-8")


if __name__ == "__main__":
    main()
