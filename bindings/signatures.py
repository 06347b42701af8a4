"""Reads the signatures of Weft's functions from its public headers.

The headers are the one table of functions: the C interface, the Python module, its stubs, the reference and the list of
what MLX has are made of what this module returns. It reads the subset of C++ that the headers use, formatted as
scripts/format does, and raises ValueError for anything else, so that no function is lost in silence.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

# The headers with functions of arrays, in the order of the reference.
HEADERS = (
    "ops/creation.h", "ops/layout.h", "ops/shape.h", "ops/indexing.h", "ops/arithmetic.h", "ops/comparison.h",
    "ops/reductions.h", "ops/ordering.h", "ops/matmul.h", "ops/convolution.h", "ops/quantized.h", "einsum.h",
    "linalg.h", "fft.h", "random.h", "fast.h",
)


@dataclass(frozen=True)
class Parameter:
    """One parameter of a function."""

    type: str  # without const and &, for example "std::vector<int>"
    name: str
    default: str | None = None


@dataclass(frozen=True)
class Signature:
    """One declaration of a function."""

    namespace: str  # below weft, "" or "linalg"
    name: str
    result: str
    parameters: tuple[Parameter, ...]
    header: str
    doc: str  # the comment above it, or above the first of the declarations that share it

    @property
    def path(self) -> str:
        """The name as C++ spells it below weft."""
        return f"{self.namespace}::{self.name}" if self.namespace else self.name


@dataclass
class Group:
    """All declarations of one name, in the order of the headers."""

    namespace: str
    name: str
    overloads: list[Signature] = field(default_factory=list)

    @property
    def doc(self) -> str:
        """The comments of all declarations, each once."""
        seen = dict.fromkeys(s.doc for s in self.overloads if s.doc)
        return " ".join(seen)


def plain_type(text: str) -> str:
    """Returns a type without const and reference: `const std::optional<array>&` is std::optional<array>."""
    text = " ".join(text.split())
    text = re.sub(r"^const\s+", "", text)
    text = re.sub(r"\s*&$", "", text)
    return re.sub(r"\s+const$", "", text)


def split_outside(text: str, separator: str) -> list[str]:
    """Splits at a character that stands outside of all brackets."""
    parts, depth, begin, quoted = [], 0, 0, False
    for at, c in enumerate(text):
        if c == '"':
            quoted = not quoted
        if quoted:
            continue
        depth += (c in "([{<") - (c in ")]}>")
        if c == separator and depth == 0:
            parts.append(text[begin:at])
            begin = at + 1
    parts.append(text[begin:])
    return [part.strip() for part in parts if part.strip()]


def parameter(text: str) -> Parameter:
    """Reads `const array& a` or `int axis = -1`."""
    declared, *default = split_outside(text, "=")
    match = re.fullmatch(r"(.*?[\s&>])(\w+)", declared.strip(), re.DOTALL)
    if not match:
        return Parameter(plain_type(declared), "", default[0] if default else None)  # `StreamOrDevice = {}`
    return Parameter(plain_type(match.group(1)), match.group(2), default[0] if default else None)


def closing(text: str, at: int) -> int:
    """Returns the position of the bracket that closes the one at `at`."""
    pairs, depth = {"(": ")", "{": "}", "[": "]"}, 0
    for k in range(at, len(text)):
        depth += (text[k] == text[at]) - (text[k] == pairs[text[at]])
        if depth == 0:
            return k
    raise ValueError(f"no closing bracket behind {text[at:at + 60]!r}")


class Reader:
    """Walks the namespaces of one header."""

    def __init__(self, header: str, text: str):
        self.header, self.found = header, []
        lines = text.split("\n")
        self.docs = {}  # position in the code of the first character behind a comment → the comment
        code, doc = [], []
        for line in lines:
            stripped = line.strip()
            if stripped.startswith("///"):
                doc.append(stripped[3:].removeprefix(" "))
                continue
            if stripped and doc:
                self.docs[sum(len(c) + 1 for c in code)] = "\n".join(doc)
            doc = [] if stripped else doc
            line = "" if stripped.startswith("#") else re.sub(r"//.*", "", line)
            code.append(line)
        self.code = "\n".join(code)

    def read(self) -> list[Signature]:
        self.walk(0, len(self.code), [])
        return self.found

    def walk(self, begin: int, end: int, names: list[str]) -> None:
        """Reads the declarations of one namespace."""
        at, doc, key = begin, "", ""
        while True:
            while at < end and self.code[at].isspace():
                at += 1
            if at >= end:
                return
            line = range(self.code.rfind("\n", 0, at) + 1, at + 1)
            doc_here = next((self.docs[p] for p in line if p in self.docs), "")
            stop = self.end_of(at, end)
            text = self.code[at:stop]
            if match := re.match(r"namespace\s+([\w:]+)\s*\{", text):
                inner = at + match.end() - 1
                self.walk(inner + 1, closing(self.code, inner), names + match.group(1).split("::"))
            else:
                name = self.declaration(text, names, doc_here or (doc if self.name_of(text) == key else ""))
                doc, key = doc_here or doc, self.name_of(text) if name or doc_here else key
            at = stop

    def end_of(self, at: int, end: int) -> int:
        """Returns the position behind the declaration that begins at `at`."""
        k = at
        while k < end:
            if self.code[k] in "([":
                k = closing(self.code, k)
            elif self.code[k] == ";":
                return k + 1
            elif self.code[k] == "{":
                k = closing(self.code, k)
                rest = self.code[k + 1:end].lstrip()
                is_type = re.match(r"(struct|class|enum|union)\b", self.code[at:k])
                is_value = re.match(r"[^({]*=\s*\{", self.code[at:k + 1])
                if not is_type and not is_value:
                    return k + 1
                if rest.startswith(";"):
                    return self.code.index(";", k) + 1
            k += 1
        return end

    @staticmethod
    def name_of(text: str) -> str:
        match = re.search(r"(\w+)\s*\(", text)
        return match.group(1) if match else ""

    def declaration(self, text: str, names: list[str], doc: str) -> bool:
        """Adds a function; leaves types, templates, operators and Weft's own parts out."""
        head = " ".join(text.split())
        if "detail" in names or re.match(r"(template|using|struct|class|enum|extern|friend|static_assert)\b", head):
            return False
        if "operator" in head.split("(")[0]:
            return False
        match = re.match(r"(?:inline\s+|WEFT_API\s+|constexpr\s+)+(.*?[\s&>])(\w+)\s*\(", head)
        if not match:
            if "(" in head and not re.match(r"(inline\s+)?constexpr\b", head):
                raise ValueError(f"{self.header}: cannot read {head[:100]!r}")
            return False
        opening = match.end() - 1
        inside = head[opening + 1:closing(head, opening)]
        self.found.append(Signature("::".join(names[1:]), match.group(2), plain_type(match.group(1)),
                                    tuple(parameter(p) for p in split_outside(inside, ",")), self.header, doc))
        return True


def read_header(include: Path, header: str) -> list[Signature]:
    """Returns the functions of one public header, `include` being the folder include/weft."""
    return Reader(header, (include / header).read_text(encoding="utf-8")).read()


def read_all(include: Path, headers: tuple[str, ...] = HEADERS) -> list[Group]:
    """Returns the functions of the headers, a group for each name."""
    groups: dict[tuple[str, str], Group] = {}
    for header in headers:
        for s in read_header(include, header):
            groups.setdefault((s.namespace, s.name), Group(s.namespace, s.name)).overloads.append(s)
    return list(groups.values())
