"""Reads all that the public headers declare, for the reference and the list of names: types, templates and values
beside the functions of signatures.py, each with its comment and its text.

It relies on the headers' formatting alone: comments of /// stand above what they are about, declarations that share one
follow each other without a blank line.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

from signatures import closing

HIDDEN = ("detail", "erased", "std")  # namespaces that are no part of the interface


@dataclass
class Declaration:
    """One declaration of a namespace."""

    namespace: str  # below weft
    name: str
    kind: str  # function, type, value, macro
    code: str  # as the header has it, without bodies of functions and private members

    @property
    def path(self) -> str:
        return f"{self.namespace}::{self.name}" if self.namespace else self.name


@dataclass
class Entry:
    """Declarations that share a comment."""

    doc: str
    declarations: list[Declaration] = field(default_factory=list)


@dataclass
class Header:
    """What one header declares."""

    path: str
    doc: str = ""  # the comment above its first namespace
    entries: list[Entry] = field(default_factory=list)


NO_CODE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)'|^#(?:[^\n]*\\\n)*[^\n]*""", re.S | re.M)


def blanked(text: str) -> str:
    """Returns the text with blanks for comments, literals and lines of the preprocessor."""
    return NO_CODE.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def comment_above(text: str, at: int) -> tuple[str, int]:
    """Returns the /// comment of the lines right above a position, and where it begins."""
    begin = text.rfind("\n", 0, at) + 1
    lines: list[str] = []
    while begin > 0:
        before = text.rfind("\n", 0, begin - 1) + 1
        line = text[before:begin].strip()
        if not line.startswith("///") or line.startswith("///<"):
            break
        lines.insert(0, line[3:].removeprefix(" "))
        begin = before
    return "\n".join(lines), begin


def end_of(code: str, at: int, end: int) -> int:
    """Returns the position behind the statement that begins at `at`."""
    k = at
    while k < end:
        if code[k] in "([":
            k = closing(code, k)
        elif code[k] == ";":
            return k + 1
        elif code[k] == "{":
            head = code[at:k]
            k = closing(code, k)
            if head.startswith("typedef"):
                return code.index(";", k) + 1
            # Types and values end with a semicolon; bodies of functions, after what initializes members, do not.
            rest = code[k + 1:end].lstrip()
            is_call = "(" in re.sub(r"\b(requires|alignas|decltype|__attribute__)\s*\(", "", head)
            if not is_call and rest.startswith(";"):
                return code.index(";", k) + 1
            if not rest.startswith((",", "{", ";")):
                return k + 1
        k += 1
    return end


def statements(code: str, begin: int, end: int) -> list[tuple[int, int]]:
    """Returns the statements of a scope."""
    found, at = [], begin
    while True:
        while at < end and (code[at].isspace() or code[at] == ";"):
            at += 1
        if at >= end:
            return found
        access = re.compile(r"(public|private|protected)\s*:").match(code, at)
        stop = access.end() if access else end_of(code, at, end)
        found.append((at, stop))
        at = stop


def is_type(head: str) -> bool:
    head = re.sub(r"^template\s*<[^{;]*?>\s*(?=struct|class|enum|union)", "", head)
    return re.match(r"(typedef\s+)?(struct|class|enum|union)\b[^(;]*\{", head) is not None


def first_brace(code: str, begin: int, end: int) -> int:
    """Returns where the first brace outside of parentheses opens, -1 where there is none."""
    k = begin
    while k < end:
        if code[k] in "([":
            k = closing(code, k)
        elif code[k] == "{":
            return k
        k += 1
    return -1


def shown(text: str, code: str, begin: int, end: int) -> str:
    """Returns a declaration as the header has it, without bodies and what is private."""
    head = code[begin:end]
    brace = first_brace(code, begin, end)
    if is_type(head):
        if re.match(r"(typedef\s+)?enum\b", head):
            return text[begin:end]
        parts, visible = [], re.match(r".*?\b(class|struct)\b", head, re.S).group(1) == "struct"
        inside = closing(code, brace)
        for a, b in statements(code, brace + 1, inside):
            words = code[a:b].strip()
            if words.endswith(":"):
                visible = not words.startswith("private")
                parts += [f" {words}"] if visible else []
            elif visible and not words.startswith(("friend", "static_assert")):
                doc, start = comment_above(text, a)
                above = text[start:a] if doc else text[text.rfind("\n", 0, a) + 1:a]
                gap = "\n" if "\n\n" in text[:start][-2:] else ""
                line_end = text.find("\n", b)
                behind = text[b:line_end] if text[b:line_end].strip().startswith("//") else ""
                parts.append(gap + above + shown(text, code, a, b) + behind)
        body = "\n".join(parts)
        margin = " " * (begin - text.rfind("\n", 0, begin) - 1)
        opening = text[begin:brace].rstrip()
        return f"{opening} {{\n{body}\n{margin}}};" if body.strip() else f"{opening};"
    is_value = brace >= 0 and re.search(r"(^[^({]*=)|((?<!operator)=\s*$)", code[begin:brace])
    if brace >= 0 and not is_value and "(" in code[begin:brace]:
        colon = re.compile(r"\)\s*(const|noexcept|override|\s)*:(?!:)").search(code, begin, brace)
        return text[begin:(colon.start() + 1 if colon else brace)].rstrip() + ";"
    return text[begin:end]


def without_constraint(text: str) -> str:
    """Returns what follows a requires clause."""
    if not text.startswith("requires"):
        return text
    text = text.removeprefix("requires").strip()
    while True:
        if text.startswith("("):
            text = text[closing(text, 0) + 1:].strip()
        else:
            text = re.sub(r"^[\w:]+(<[^<>]*(<[^<>]*>[^<>]*)*>)?\s*", "", text)
        if not text.startswith(("&&", "||")):
            return text
        text = text[2:].strip()


def name_of(head: str) -> tuple[str, str]:
    """Returns the name and the kind of a declaration."""
    head = " ".join(head.split())
    plain = re.sub(r"\b(WEFT_API|inline|constexpr|static|explicit)\s+", "", head)
    while plain.startswith("template"):
        depth, k = 0, plain.index("<")
        for k in range(k, len(plain)):
            depth += (plain[k] == "<") - (plain[k] == ">" and plain[k - 1] != "-")
            if depth == 0:
                break
        plain = without_constraint(plain[k + 1:].strip())
    plain = plain.replace("decltype(auto)", "auto")
    if match := re.match(r"typedef [^{]*?\(\*(\w+)\)|typedef .*?(\w+);$", plain):
        return match.group(1) or match.group(2), "type"
    if match := re.match(r"(?:using|concept|struct|class|enum class|enum|union)\s+(?:alignas\(\w+\)\s*)?(\w+)", plain):
        if plain.startswith("using namespace"):
            return "", ""
        return match.group(1), "type"
    if match := re.search(r"operator\s*(\(\)|\[\]|\"\"\s*\w+|[^\s(\w]+|\w[\w:]*)\s*\(", plain):
        return f"operator{match.group(1)}", "function"
    before = plain.split("=")[0] if re.match(r"[^(]*=", plain) else plain
    if match := re.search(r"([\w:<>, ]*::)?(\w+)\s*\(", before):
        member = match.group(1) and not match.group(1).strip().startswith("std::")
        return ("", "") if re.search(r"[\w>]::$", match.group(1) or "") and member else (match.group(2), "function")
    if match := re.search(r"(\w+)\s*(?:\[\w*\])?\s*(?:[={;]|$)", plain):
        return match.group(1), "value"
    return "", ""


class Reader:
    """Walks one header."""

    def __init__(self, header: str, text: str):
        self.text, self.code = text, blanked(text)
        self.found = Header(header)
        self.last = -1  # where the last declaration ended

    def read(self) -> Header:
        self.macros()
        self.walk(0, len(self.code), [])
        return self.found

    def macros(self) -> None:
        for m in re.finditer(r"^#define (WEFT_\w+|[a-z]\w+)(\([^)]*\))?", self.text, re.M):
            doc, _ = comment_above(self.text, m.start())
            if doc:
                self.found.entries.append(Entry(doc, [Declaration("", m.group(1), "macro", m.group())]))

    def walk(self, begin: int, end: int, names: list[str]) -> None:
        for at, stop in statements(self.code, begin, end):
            head = self.code[at:stop]
            doc, doc_begin = comment_above(self.text, at)
            if match := re.match(r'(?:inline\s+)?namespace\s+([\w:]*)\s*\{|extern\s+"?\s*"?\s*\{', head):
                if doc and not self.found.doc:
                    self.found.doc = doc
                inner = at + match.end() - 1
                below = (match.group(1) or "").split("::") if match.group(1) else []
                if not set(below) & set(HIDDEN):
                    self.walk(inner + 1, closing(self.code, inner), names + below)
                self.last = -1
                continue
            self.add(at, stop, head, names, doc, doc_begin)

    def add(self, at: int, stop: int, head: str, names: list[str], doc: str, doc_begin: int) -> None:
        name, kind = name_of(head)
        forward = re.match(r"(template\s*<.*>\s*)?(struct|class)\s+(WEFT_API\s+)?\w+\s*;", head, re.S) and not doc
        of_std = name == "std" and kind != "function"
        hidden = head.startswith(("friend", "static_assert", "using namespace", "extern template"))
        if not name or forward or hidden or of_std:
            return
        code = textwrap.dedent(shown(self.text, self.code, at, stop))
        line_end = self.text.find("\n", stop)
        if self.text[stop:line_end].strip().startswith("///<"):
            code += self.text[stop:line_end]
        shared = not doc and self.last >= 0 and self.text[self.last:at].count("\n") <= 1
        if doc or not shared:
            self.found.entries.append(Entry(doc))
        namespace = "::".join(n for n in names if n != "weft")
        self.found.entries[-1].declarations.append(Declaration(namespace, name, kind, code))
        self.last = line_end if line_end >= 0 else stop


def public_headers(include: Path) -> list[str]:
    """Returns the headers below include/weft, those of MLX's names apart."""
    return sorted(str(p.relative_to(include)) for p in include.rglob("*.h")
                  if not str(p.relative_to(include)).startswith("compat"))


def read(include: Path, header: str) -> Header:
    """Returns what a header below include/weft declares."""
    return Reader(header, (include / header).read_text(encoding="utf-8")).read()
