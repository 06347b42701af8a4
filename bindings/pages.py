"""Turns declarations, stubs and Python sources into pages of Markdown for the reference (scripts/reference)."""

from __future__ import annotations

import ast
import inspect
import os
import re
from dataclasses import dataclass, field

import declarations
from signatures import split_outside


@dataclass
class Page:
    """A page, and the names that it explains: name → anchor."""

    path: str
    title: str
    text: str
    names: dict[str, str] = field(default_factory=dict)


def slug(heading: str) -> str:
    """Returns the anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


SIGNS = {"=": "eq", "!": "not", "<": "lt", ">": "gt", "+": "plus", "-": "minus", "*": "times", "/": "over", "%": "mod",
         "&": "and", "|": "or", "^": "xor", "~": "inv", "(": "call", "[": "at"}


def anchor(name: str) -> str:
    """Returns the anchor of a name: `operator+` is operator-plus."""
    name = re.sub(r"__(\w+?)__", r"dunder-\1", name)
    parts = re.match(r"(.*?operator)([^\w:.]*)(.*)", name)
    head, sign, tail = parts.groups() if parts else ("", "", name)
    signs = "".join(f"-{SIGNS[c]}" for c in sign if c in SIGNS)
    return re.sub(r"[^\w\-]+", "-", f"{head or ''}{signs}{tail}").strip("-")


def escaped(text: str) -> str:
    """Returns prose with what Markdown and HTML would take for theirs, code between backticks apart."""
    parts = re.split(r"(``.+?``|`[^`]+`)", text)
    for k in range(0, len(parts), 2):
        parts[k] = re.sub(r"[*\\]", lambda m: "\\" + m.group(), parts[k].replace("&", "&amp;").replace("<", "&lt;"))
        parts[k] = parts[k].replace("](", "]\\(").replace("_", "\\_")
    return "".join(parts)


def linked(text: str, here: str, headers: set[str]) -> str:
    """Makes links of the headers that a comment names."""
    def link(m: re.Match[str]) -> str:
        if m.group(1) not in headers:
            return m.group()
        return f"[{m.group()}]({os.path.relpath(f'cpp/{m.group(1)}.md', os.path.dirname(here))})"
    parts = re.split(r"(`[^`]+`)", text)
    parts[::2] = [re.sub(r"\bweft/([\w/]+\.h)", link, part.replace("\\_", "_")) for part in parts[::2]]
    return "".join(parts)


def prose(comment: str) -> str:
    """Returns a comment of the headers as Markdown: what is indented is a table or code."""
    blocks = []
    for block in re.split(r"\n\s*\n", comment.strip("\n")):
        lines = block.split("\n")
        if all(line.strip().startswith("|") for line in lines):
            blocks.append("\n".join(line.strip() for line in lines))
        elif all(line.startswith("  ") for line in lines if line.strip()):
            blocks.append("\n".join("    " + line for line in inspect.cleandoc(block).split("\n")))
        elif lines[0].lstrip().startswith(("- ", "* ")):
            blocks.append(re.sub(r"^(\s*)\\\*", r"\1*", escaped(block), flags=re.M))
        else:
            blocks.append(escaped(block))
    return "\n\n".join(blocks)


def header_page(header: declarations.Header, path: str, title: str, headers: set[str]) -> Page:
    """Returns the page of a header."""
    page = Page(path, title, "")
    parts = [f"# {title}", f'`#include "{title}"`', linked(prose(header.doc), path, headers)]
    for entry in header.entries:
        if not entry.declarations:
            continue
        names = list(dict.fromkeys(d.path for d in entry.declarations))
        new = [n for n in names if n not in page.names]
        page.names.update({n: anchor(n) for n in new})
        own = f" {{ #{anchor(new[0])} }}" if new else ""
        more = "".join(f'<a id="{anchor(n)}"></a>' for n in new[1:] if anchor(n) != anchor(new[0]))
        shown = ", ".join(f"`{n}`" for n in names)
        parts += [f"### {shown}{own}", more, "```cpp\n" + "\n".join(d.code for d in entry.declarations) + "\n```",
                  linked(prose(entry.doc), path, headers)]
    page.text = "\n\n".join(part for part in parts if part) + "\n"
    return page


SECTION = re.compile(r"^(Args|Arguments|Returns|Raises|Yields|Example|Examples|Attributes|Note):\s*$")


def docstring(text: str | None) -> str:
    """Returns a docstring as Markdown: sections are lists."""
    if not text:
        return ""
    out, section = [], ""
    for line in inspect.cleandoc(text).split("\n"):
        if match := SECTION.match(line):
            section = match.group(1)
            out += ["", f"**{section}**", ""]
        elif section and line.startswith("    ") and section not in ("Returns", "Example", "Examples", "Note"):
            item = re.match(r"    (\*{0,2}[\w.]+)( \([^)]*\))?: (.*)", line)
            out.append(f"- `{item.group(1)}`{item.group(2) or ''}: {escaped(item.group(3))}" if item
                       else "  " + escaped(line.strip()))
        elif section in ("Returns", "Note") and line.startswith("    "):
            out.append(escaped(line.strip()))
        else:
            section = section if not line.strip() or line.startswith("    ") else ""
            out.append(line if line.startswith("    ") else escaped(line))
    return "\n".join(out)


def spaced(parameter: str) -> str:
    """Returns `a: int = 1` of `a: int=1`."""
    declared, *default = split_outside(parameter, "=")
    return f"{declared} = {default[0]}" if default and ":" in declared else parameter


def signature(node: ast.FunctionDef, name: str) -> str:
    """Returns `name(…) -> result`, a line for each parameter where it is long."""
    result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    given = ast.unparse(node.args)
    parts = [spaced(part) for part in split_outside(given, ",")]
    short = f"{name}({', '.join(parts)}){result}"
    if len(short) <= 100:
        return short
    return f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){result}"


def is_public(name: str) -> bool:
    return not name.startswith("_") or name in ("__init__", "__call__", "__getitem__", "__setitem__")


def functions(body: list[ast.stmt], prefix: str, level: str, page: Page, whole: str) -> list[str]:
    """Returns the functions and properties of a module or class, overloads as one."""
    found: dict[str, list[ast.FunctionDef]] = {}
    for node in body:
        if isinstance(node, ast.FunctionDef) and is_public(node.name):
            found.setdefault(node.name, []).append(node)
    parts = []
    for name, nodes in found.items():
        decorators = {ast.unparse(d) for n in nodes for d in n.decorator_list}
        overloads = [n for n in nodes if any(ast.unparse(d) == "overload" for d in n.decorator_list)] or nodes[:1]
        doc = next((d for n in reversed(nodes) if (d := ast.get_docstring(n))), None)
        if not doc and prefix and name.startswith("__"):
            continue
        page.names[f"{whole}.{name}"] = anchor(f"{prefix}{name}")
        lines = [signature(n, name) for n in overloads]
        if "property" in decorators:
            lines = [f"{name}: {ast.unparse(n.returns) if n.returns else 'Any'}" for n in nodes[:1]]
        parts += [f"{level} `{prefix}{name}` {{ #{anchor(prefix + name)} }}",
                  "```python\n" + "\n".join(lines) + "\n```", docstring(doc)]
    return parts


def made_by(node: ast.ClassDef) -> str:
    """Returns the lines of constructors that say nothing else."""
    made = [n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"]
    if any(ast.get_docstring(n) for n in made):
        return ""
    return "".join("\n    " + signature(n, "__init__").replace("\n", "\n    ") for n in made)


def module_page(source: str, path: str, name: str, listed: list[str] | None) -> Page:
    """Returns the page of a Python module, from its source or stub; `listed` are its public names."""
    tree, page = ast.parse(source), Page(path, name, "")
    parts = [f"# {name}", docstring(ast.get_docstring(tree))]
    values = []
    kept = [n for n in tree.body if not isinstance(n, (ast.FunctionDef, ast.ClassDef)) or listed is None
            or n.name in listed]
    for node in kept:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and is_public(node.target.id):
            values.append((node.target.id, ast.unparse(node.annotation)))
    if values:
        rows = [f'| <a id="{anchor(n)}"></a>`{n}` | `{t}` |' for n, t in values]
        page.names.update({f"{name}.{n}": anchor(n) for n, _ in values})
        parts += ["## Values", "\n".join(["| name | type |", "|---|---|", *rows])]
    for node in kept:
        if isinstance(node, ast.ClassDef) and is_public(node.name):
            bases = ", ".join(ast.unparse(b) for b in node.bases)
            page.names[f"{name}.{node.name}"] = anchor(node.name)
            parts += [f"## `{node.name}` {{ #{anchor(node.name)} }}",
                      f"```python\nclass {node.name}{f'({bases})' if bases else ''}{made_by(node)}\n```",
                      docstring(ast.get_docstring(node)),
                      *functions(node.body, f"{node.name}.", "####", page, f"{name}.{node.name}")]
    rest = functions(kept, "", "###", page, name)
    parts += ["## Functions", *rest] if rest else []
    page.text = "\n\n".join(part for part in parts if part) + "\n"
    return page
