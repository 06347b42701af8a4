#!/usr/bin/env python3
"""Tests of what makes the reference and of the checks beside it: the reader of the headers, pages, links, examples.

usage: test_reference.py
"""
import importlib.machinery
import importlib.util
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "bindings"))
import declarations  # noqa: E402
import pages  # noqa: E402
import signatures  # noqa: E402


def script(name):
    loader = importlib.machinery.SourceFileLoader(name, str(ROOT / "scripts" / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


HEADER = """\
#pragma once

/// What the header is about.
namespace weft {

/// Adds (weft/array.h).
///
///     add(a, b);
WEFT_API array add(const array& a, const array& b, StreamOrDevice s = {});
WEFT_API array add(int a, int b);
namespace detail {
void hidden();
}

/// A thing.
class WEFT_API Thing : public Base {
 public:
  explicit Thing(int a) : a_(a) {}
  /// Returns it.
  int get() const { return a_; }
  std::function<void(int)> call = {};

 private:
  int a_ = 0;
};
template <class T>
requires(sizeof(T) > 1 && std::is_same_v<T, int>) T twice(T x) { return x + x; }
enum class Kind { a, b };
constexpr int most = 4;

}  // namespace weft
"""


class Reading(unittest.TestCase):
    def setUp(self):
        self.header = declarations.Reader("h.h", HEADER).read()
        self.found = {d.path: d for e in self.header.entries for d in e.declarations}

    def test_names(self):
        self.assertEqual(self.header.doc, "What the header is about.")
        kinds = {name: d.kind for name, d in self.found.items()}
        self.assertEqual(kinds, {"add": "function", "Thing": "type", "twice": "function", "Kind": "type",
                                 "most": "value"})

    def test_overloads_share_a_comment(self):
        entry = self.header.entries[0]
        self.assertEqual((len(entry.declarations), entry.doc.split("\n")[0]), (2, "Adds (weft/array.h)."))

    def test_bodies_and_private_members_are_left_out(self):
        code = self.found["Thing"].code
        self.assertIn("explicit Thing(int a);", code)
        self.assertIn("int get() const;", code)
        self.assertIn("call = {};", code)
        self.assertNotIn("a_", code)

    def test_every_operation_is_read(self):
        include = ROOT / "include" / "weft"
        for header in signatures.HEADERS:
            known = {d.path for e in declarations.read(include, header).entries for d in e.declarations}
            wanted = {s.path for s in signatures.read_header(include, header)}
            self.assertEqual(wanted - known, set(), header)

    def test_page(self):
        page = pages.header_page(self.header, "cpp/h.h.md", "weft/h.h", {"array.h"})
        self.assertIn("[weft/array.h](array.h.md)", page.text)
        self.assertIn("### `add` { #add }", page.text)
        self.assertIn("\n\n    add(a, b);", page.text)
        self.assertEqual(page.names["Thing"], "Thing")


class Python(unittest.TestCase):
    def test_module(self):
        source = textwrap.dedent('''
            """A module."""
            def f(a: int, *, b: str = "x") -> int:
                """Return <a> * 2.

                Args:
                    a: a number.
                """
            def _hidden(): ...
        ''')
        page = pages.module_page(source, "python/m.md", "m", None)
        self.assertIn("f(a: int, *, b: str = 'x') -> int", page.text)
        self.assertIn("Return &lt;a> \\* 2.", page.text)
        self.assertIn("- `a`: a number.", page.text)
        self.assertEqual(page.names, {"m.f": "f"})


class Checks(unittest.TestCase):
    def test_dead_links_are_found(self):
        with tempfile.TemporaryDirectory() as scratch:
            site = Path(scratch)
            (site / "a.html").write_text('<h1 id="top"></h1><a href="b.html#x">b</a><a href="c.html">c</a>')
            (site / "b.html").write_text('<a href="a.html#top">a</a><a href="#y">y</a>')
            dead = list(script("reference").dead_links(site))
        self.assertEqual(dead, ["a.html: b.html#x has no such anchor", "a.html: c.html leads nowhere",
                                "b.html: #y has no such anchor"])

    def test_links_out_of_the_pages_are_texts(self):
        text = script("reference").fixed_links("[a](../src/a.cpp) [b](b.md#x)\n## A `b`\n", "c.md", {"b.md"})
        self.assertEqual(text, "a [b](b.md#x)\n## A `b` { #a-b }\n")

    def test_examples_that_fail_are_found(self):
        with tempfile.TemporaryDirectory() as scratch:
            for code, bad in (("x = 1\n```\n\n```python\nassert x == 1", 0), ("assert False", 1)):
                page = Path(scratch) / "p.md"
                page.write_text(f"```python\n{code}\n```\n")
                run = subprocess.run([sys.executable, HERE / "check_python_page.py", page], capture_output=True)
                self.assertIn(run.returncode, (bad, 77))


if __name__ == "__main__":
    unittest.main()
