#!/usr/bin/env python3
"""Holds the documentation of the public headers: every public symbol has a comment, and a function's comment begins
with a verb.

usage: check_headers.py [ROOT]

A symbol is what stands at namespace scope or in the public part of a class in include/weft: functions, classes,
enumerations, aliases, constants, concepts, macros and data members. Its comment is `///` directly above it, or `///<`
at its end. One comment covers the declarations that follow it line by line, without a blank line or another comment
between, as long as they are overloads of one name, or all operators, all aliases, or all constants of one type.
Constructors may be described by the comment of their class. Overrides have the comment of what they override; deleted
and defaulted functions, destructors and namespaces `detail` need none.

The headers of include/weft/compat need one comment a file. Code in a comment (indented by four columns) must stand in
tests/nn/header_examples_test.cpp, which is compiled and run. Prints one line for each breach and exits with 1 where
there is one.
"""
import re
import sys
from pathlib import Path

EXAMPLES = Path("tests/nn/header_examples_test.cpp")
NO_VERB = {"This", "As", "Its", "Axis", "Always", "Hers", "Yes", "Is", "Bits"}


class Declaration:
    """One declaration: its text without comments, its first and last line, and its comments."""

    def __init__(self, text, first, last, above, trailing):
        self.text, self.first, self.last, self.above, self.trailing = text, first, last, above, trailing

    def comment(self):
        return self.above or self.trailing


def blank_literals(text):
    """The text with the insides of strings and characters replaced, so that brackets in them do not count."""
    return re.sub(r'"(?:[^"\\\n]|\\.)*"|(?<![0-9a-zA-Z])\'(?:[^\'\\\n]|\\.)*\'',
                  lambda m: '"' + "_" * (len(m.group()) - 2) + '"', text)


def split_comments(text):
    """Code with comments blanked, and for each line its `///` comment, its `///<` comment and whether the line is only
    a comment."""
    above, trailing, alone, code = {}, {}, set(), []
    for number, line in enumerate(blank_literals(text).split("\n"), 1):
        at = line.find("//")
        if at < 0:
            code.append(line)
            continue
        comment = text.split("\n")[number - 1][at:]
        if not line[:at].strip():
            alone.add(number)
        if comment.startswith("///<"):
            trailing[number] = comment[4:].strip()
        elif comment.startswith("///"):
            above[number] = comment[3:].strip() or "\n"
        code.append(line[:at])
    return "\n".join(code), above, trailing, alone


def closing(code, at):
    """The position of the bracket that closes the one at `at`."""
    depth, pairs = 0, {"{": "}", "(": ")", "[": "]"}
    opened, closed = code[at], pairs[code[at]]
    for k in range(at, len(code)):
        depth += (code[k] == opened) - (code[k] == closed)
        if depth == 0:
            return k
    raise ValueError("a bracket is not closed")


def without_angles(text):
    """The text without template arguments: `<…>` behind a name, unless it is a comparison."""
    while True:
        shorter = re.sub(r"((?<!operator)(?<=\w)|template )\s*<[^<>()]*(\([^()<>]*\)[^<>()]*)*>(?!=)", "", text)
        if shorter == text:
            return text
        text = shorter


def without_constraints(text):
    """The text without requires-clauses in brackets and attributes."""
    for word in ("requires", "alignas", "__attribute__", "decltype", "noexcept"):
        while match := re.search(rf"\b{word}\s*\(", text):
            end = closing(text, match.end() - 1)
            text = text[: match.start()] + text[end + 1:]
    return text


def symbol(text, class_name):
    """(kind, name) of a declaration; None where it needs no comment."""
    text = " ".join(text.split())
    if not text or re.match(r"(extern template|template class|static_assert|friend class|friend struct|"
                            r"using namespace|namespace)\b", text):
        return None
    if re.match(r"(public|private|protected)$", text):
        return None
    plain = without_angles(without_constraints(without_angles(text)))
    plain = re.sub(r"^(template\s*)+", "", plain).strip()
    if match := re.match(r"concept (\w+)", plain):
        return "concept", match.group(1)
    if match := re.match(r"using (\w+)[\w:]*\s*(=?)", plain):
        return ("alias", match.group(1)) if match.group(2) else None
    if match := re.match(r"(?:class|struct|union|enum class|enum)\s+(?:WEFT_API\s+)?([\w:]+)", plain):
        return ("forward" if text.endswith(";") and "{" not in text else "class"), match.group(1)
    if re.search(r"=\s*(delete|default)\s*;?$", plain) or re.search(r"\boverride\b|\bfinal\b", plain):
        return None
    if match := re.search(r"\boperator\s*(\(\)|\[\]|[^\s\w(]+|[\w: ]+?[&*]?)\s*\(", plain):
        return "operator", "operator" + match.group(1)
    match = re.search(r"([\w:]*::)?(~?\w+)\s*\(", plain)
    initial = re.search(r"[={]", plain)
    if match and not (initial and initial.start() < match.start()):
        if match.group(1) or match.group(2).startswith("~"):
            return None
        return ("constructor" if match.group(2) == class_name else "function"), match.group(2)
    match = re.search(r"(\w+)\s*(\[[^\]]*\])?\s*(=|\{|;|$|,)", plain)
    kind = "constant" if re.match(r"(inline |static )*constexpr\b", plain) else "field"
    return kind, match.group(1)


class Header:
    """Walks one header and collects its breaches."""

    def __init__(self, path, text):
        self.path = path
        text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
        self.code, self.above, self.trailing, self.alone = split_comments(text)
        self.code = re.sub(r"^([ \t]*#[^\n]*)", lambda m: " " * len(m.group()), self.code, flags=re.MULTILINE)
        self.breaches = []
        self.symbols = 0

    def line(self, at):
        return self.code.count("\n", 0, at) + 1

    def comment_above(self, first):
        """The block of `///` lines that ends on the line before `first`."""
        lines, k = [], first - 1
        while k in self.above:
            lines.insert(0, self.above[k])
            k -= 1
        return "\n".join(lines)

    def walk(self, begin, end, class_name="", documented=True):
        """Declarations of one scope. A class begins with its private part unless it is a struct, which the caller says
        by `begin`."""
        at, start, covered = begin, begin, None
        public = not self.private_first(begin) if class_name else True
        while at < end:
            c = self.code[at]
            if c in "([":
                at = closing(self.code, at) + 1
                continue
            access = re.fullmatch(r"\s*(public|private|protected)\s*", self.code[start:at])
            if c == ":" and class_name and access and self.code[at + 1] != ":":
                public = self.code[start:at].strip() == "public"
                at = start = at + 1
                covered = None
                continue
            if c == "{":
                at = self.block(start, at, public, documented)
                head = self.code[start:at]
                if re.match(r"\s*(inline )?namespace\b", head):
                    start, covered = at, None
                    continue
                following = re.match(r"\s*([;,=]|\w+\s*;|\(|\w)", self.code[at:end])
                is_type = re.match(r"\s*(template\s*<.*?>\s*)*(class|struct|union|enum)\b", head, re.DOTALL)
                is_function = re.search(r"\)\s*(const|noexcept|override|final|\s)*(:.*)?\{", self.code[start:at],
                                        re.DOTALL)
                if is_function and not is_type and not (following and following.group(1) == ";"):
                    covered = self.declare(start, at, public, class_name, covered)
                    start = at
                continue
            if c == ";":
                covered = self.declare(start, at + 1, public, class_name, covered)
                start = at + 1
            at += 1

    def private_first(self, begin):
        head = self.code[max(0, begin - 400):begin]
        head = head[max(head.rfind(";"), head.rfind("}")) + 1:]
        return re.search(r"\bclass\b(?!\s*>|\s+\w+\s*[,>])", head) is not None

    def block(self, start, at, public, documented):
        """Enters what is a namespace or a class; returns the position behind the closing bracket."""
        head, end = " ".join(self.code[start:at].split()), closing(self.code, at)
        if match := re.match(r"(?:inline )?namespace\s*([\w:]*)$", head):
            if match.group(1).split("::")[-1] != "detail":
                self.walk(at + 1, end)
        elif match := re.search(r"(?:^|> |\) )(?:class|struct|union)\s+(?:WEFT_API\s+)?([\w:]+)",
                                re.sub(r"^(template .*?>) (?=class|struct)", "> ", head)):
            if public and "(" not in head.split(match.group(1))[0]:
                self.walk(at + 1, end, match.group(1).split("::")[-1], True)
        return end + 1

    def declare(self, start, stop, public, class_name, covered):
        """Checks one declaration; returns what its comment covers: (line that follows, key)."""
        text = self.code[start:stop]
        body = text.lstrip()
        if not body or not public:
            return None
        first = self.line(start + len(text) - len(body))
        last = self.line(stop - 1)
        brace = self.head_of(body)
        found = symbol(brace, class_name)
        if found is None or found[0] == "forward":
            return covered
        kind, name = found
        key = self.key(kind, name, brace)
        self.symbols += 1
        above = self.comment_above(first)
        trailing = next((self.trailing[k] for k in range(first, last + 1) if k in self.trailing), "")
        if not trailing and last + 1 in self.trailing and last + 1 in self.alone:
            trailing = self.trailing[last + 1]
        comment = above or trailing
        while last + 1 in self.alone and last + 1 in self.trailing:
            last += 1
        if comment:
            if kind in ("function", "operator") and not self.begins_with_verb(comment):
                line = comment.split("\n")[0][:60]
                self.breach(first, f"the comment of {name} does not begin with a verb: \"{line}\"")
            return last + 1, key
        if covered and covered == (first, key):
            return last + 1, key
        if kind == "constructor":
            return None
        self.breach(first, f"{kind} {name} has no comment")
        return None

    @staticmethod
    def head_of(body):
        """A declaration without the body of a function or class."""
        depth = 0
        for k, c in enumerate(body):
            depth += (c in "([") - (c in ")]")
            if c == "{" and depth == 0:
                before = body[:k].rstrip()
                function = re.search(r"\)\s*(const|noexcept|override|final|mutable)*$", before)
                if re.search(r"[=\w>]$", before) and not function and not re.match(
                        r"(template|class|struct|enum|union)\b", before):
                    return body
                is_type = re.match(r"(template\s*<.*>\s*)*(class|struct|enum|union)\b", before, re.DOTALL)
                return before + (" {" if is_type else "")
        return body

    @staticmethod
    def key(kind, name, text):
        if kind == "constant":
            return kind, re.sub(r"\b(inline|static|constexpr|const)\b", "", text.split(name)[0]).strip()
        return (kind, "") if kind in ("operator", "alias") else (kind, name)

    @staticmethod
    def begins_with_verb(comment):
        word = re.match(r"[`(]?([A-Z][a-z]+s)\b", comment)
        return word is not None and word.group(1) not in NO_VERB

    def breach(self, line, text):
        self.breaches.append(f"{self.path}:{line}: {text}")


def macros(path, text):
    """Macros of the header without a comment above them."""
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        match = re.match(r"#define (\w+)", line)
        if match and not lines[number - 2].startswith("///"):
            yield f"{path}:{number}: macro {match.group(1)} has no comment"


def examples(path, text, known):
    """Code in comments that the test of examples does not have."""
    block, first = [], 0
    for number, line in enumerate(text.split("\n") + [""], 1):
        begins, continues = re.match(r"\s*///     \S", line), block and re.match(r"\s*///     ", line)
        match = re.match(r"\s*///     ?(?=\S| )(.*)", line) if begins or continues else None
        if match:
            first = first or number
            block.append(" ".join(match.group(1).split()))
        elif block:
            if " ".join(block) not in known:
                yield f"{path}:{first}: this example does not stand in {EXAMPLES}"
            block, first = [], 0


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[2]).resolve()
    breaches, symbols, headers = [], 0, 0
    test = root / EXAMPLES
    known = " ".join(test.read_text(encoding="utf-8").split()) if test.exists() else ""
    for path in sorted((root / "include" / "weft").rglob("*.h")):
        name, text = path.relative_to(root), path.read_text(encoding="utf-8")
        headers += 1
        if "compat" in name.parts:
            if "///" not in text:
                breaches.append(f"{name}: no comment says what this header is for")
            continue
        header = Header(name, text)
        header.walk(0, len(header.code))
        symbols += header.symbols
        breaches += [*header.breaches, *macros(name, text), *examples(name, text, known)]
    for breach in breaches:
        print(breach)
    print(f"{headers} headers, {symbols} symbols, {len(breaches)} breaches")
    return 1 if breaches or not headers else 0


if __name__ == "__main__":
    sys.exit(main())
