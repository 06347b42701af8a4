#!/usr/bin/env python3
"""Holds the files of a folder apart, so that a unity build (WEFT_UNITY) means what a build of single files means.

In a unity build the files of a folder are one, and so are their unnamed namespaces. A function there that has the name
of another file's becomes an overload of it, and hides a function of an outer namespace that another file calls. Both
compile, and may call another function than before. So a function of an unnamed namespace has a name that no other file
of its folder defines there, or calls. Two constants or types of one name do not compile at all. Nor do two types of one
namespace that headers define: a file that includes only one of them compiles, a unity build includes both.

usage: check_unity.py [ROOT]
"""
import re
import sys
from pathlib import Path

DEFINITION = re.compile(r"(?:template <[^>]*>\s*)?(?:static |inline |constexpr )*[\w:<>,&*\s]+?[\s&*](\w+)\(")
NOT_ONE = (" ", "#", "}", "using", "struct", "class", "return")


CONSTANT = re.compile(r"(?:inline |static )*(?:constexpr|const) [^=({]*?(\w+)(?:\[\w*\])? ?(?:=|\{)")
FURTHER = re.compile(r", (\w+) = ")
TYPE = re.compile(r"(?:struct|class|enum class|enum) (\w+)(?: final)?(?: :[^;]*)? \{")


def plain(text):
    """The text without comments and strings."""
    return re.sub(r'"(?:[^"\\\n]|\\.)*"', '""', re.sub(r"//[^\n]*", "", text))


def local_lines(text):
    """The lines of the file's unnamed namespaces that lie in no braces of their own."""
    for start in re.finditer(r"^namespace \{", text, re.M):
        end, depth = start.end(), 1
        while depth and end < len(text):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        depth = 0
        for line in text[start.end():end].split("\n"):
            if depth == 0:
                yield line
            depth += line.count("{") - line.count("}")


def local_functions(text):
    """Names of the functions in the file's unnamed namespaces."""
    found = (DEFINITION.match(line) for line in local_lines(text) if not line.startswith(NOT_ONE))
    return {match.group(1) for match in found if match}


def local_objects(text):
    """Names of the constants and types in the file's unnamed namespaces."""
    names = set()
    for line in local_lines(text):
        if found := CONSTANT.match(line):
            names.add(found.group(1))
            names.update(FURTHER.findall(line[found.end():]))
        elif found := TYPE.match(line):
            names.add(found.group(1))
    return names


def calls(text, name):
    """Whether the text calls a function of this name that it does not declare itself, as a member or a variable."""
    own = rf"[\w>&*] \w*(?:::)?{name}\(|auto {name}\b|[\s(&*]{name}[,;)={{ ]"
    return re.search(rf"(?<![\w.:>]){name}\(", text) and not re.search(own, text)


def breaches(folder):
    texts = {path: plain(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.cpp"))}
    local = {path: local_functions(text) for path, text in texts.items()}
    objects = {path: local_objects(text) for path, text in texts.items()}
    for path, names in objects.items():
        for other in (other for other in texts if path < other):
            for name in sorted(names & objects[other]):
                yield f"{path}: {name} is a constant or a type of {other.name}, too, in an unnamed namespace"
    for path, names in local.items():
        for other, text in texts.items():
            for name in sorted(names) if other != path else ():
                if name in local[other] and path < other:
                    yield f"{path}: {name} is a function of {other.name}, too, in an unnamed namespace"
                elif name not in local[other] and calls(text, name):
                    yield f"{path}: {name} hides the function that {other.name} calls"


def namespace_types(text):
    """Pairs of namespace and name of the types that a header defines in namespaces."""
    namespace = ""
    for line in text.split("\n"):
        if found := re.match(r"namespace ([\w:]+) \{", line):
            namespace = found.group(1)
        elif found := TYPE.match(line):
            yield namespace, found.group(1)


def repeated_types(root):
    first = {}
    for path in sorted((root / "src").rglob("*.h")) + sorted((root / "include").rglob("*.h")):
        for namespace, name in namespace_types(plain(path.read_text(encoding="utf-8"))):
            other = first.setdefault((namespace, name), path)
            if other != path:
                yield f"{path}: {namespace}::{name} is a type of {other.relative_to(root)}, too"


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    folders = sorted({path.parent for path in (root / "src").rglob("*.cpp")})
    found = [breach for folder in folders for breach in breaches(folder)] + list(repeated_types(root))
    for breach in found:
        print(breach.removeprefix(f"{root}/"))
    print(f"{len(folders)} folders, {len(found)} breaches")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
