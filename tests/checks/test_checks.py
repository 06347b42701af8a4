#!/usr/bin/env python3
"""The checks must be able to fail: each is shown a small tree, or a small library, with one thing wrong.

usage: test_checks.py
"""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).parent


def run(check, *arguments):
    done = subprocess.run([sys.executable, str(HERE / check), *map(str, arguments)], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


class Tree(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = Path(self.folder.name)

    def tearDown(self):
        self.folder.cleanup()

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)


class Layers(Tree):
    def check(self, path, text):
        self.write(path, text)
        return run("check_layers.py", self.root)

    def assert_breach(self, path, text, words):
        code, output = self.check(path, text)
        self.assertEqual(code, 1, output)
        self.assertIn(words, output)

    def test_downward_is_right(self):
        code, output = self.check("src/graph/node.cpp", '#include "graph/node.h"\n#include "base/error.h"\n#include <vector>\n#include <fmt/format.h>\n')
        self.assertEqual(code, 0, output)

    def test_upward(self):
        self.assert_breach("src/graph/node.cpp", '#include "compiler/ir/ir.h"\n', "graph includes compiler/ir/ir.h of compiler")

    def test_target_does_not_know_the_graph(self):
        self.assert_breach("src/target/cpu/cpu.cpp", '#include "graph/node.h"\n', "target/cpu includes graph/node.h")

    def test_targets_do_not_know_each_other(self):
        self.assert_breach("src/target/cpu/cpu.cpp", '#include "target/null/null.h"\n', "above or beside")

    def test_folder_upward(self):
        self.assert_breach("src/compiler/ir/ir.cpp", '#include "compiler/fusion/group.h"\n', "above or beside")

    def test_folder_beside(self):
        self.assert_breach("src/kernel/expand/expand.cpp", '#include "kernel/describe/desc.h"\n', "above or beside")

    def test_folder_downward_is_right(self):
        code, output = self.check("src/compiler/lower/dot/dot.cpp", '#include "compiler/lower/lower.h"\n#include "compiler/ir/ir.h"\n')
        self.assertEqual(code, 0, output)

    def test_new_folder(self):
        self.assert_breach("src/compiler/magic/a.cpp", '#include "compiler/ir/ir.h"\n', "compiler/magic is not known")

    def test_full_folder(self):
        for k in range(24):
            self.write(f"src/graph/ops/f{k}.cpp", "")
        self.assert_breach("src/graph/ops/one_more.cpp", "", "25 files are more than 24")

    def test_public_header_upward(self):
        self.assert_breach("include/weft/array.h", '#include "weft/nn.h"\n', "array includes weft/nn.h of nn")

    def test_public_header_with_internal_header(self):
        self.assert_breach("include/weft/nn.h", '#include "base/error.h"\n', "not installed")

    def test_public_header_with_third_party(self):
        self.assert_breach("include/weft/io.h", "#include <nlohmann/json.hpp>\n", "must not be included by a header")

    def test_new_public_header(self):
        self.assert_breach("include/weft/news.h", "", "belongs to no layer")

    def test_llvm_outside_its_target(self):
        self.assert_breach("src/compiler/lower/emit.cpp", "#include <llvm-c/Core.h>\n", "LLVM belongs in target/cpu only")

    def test_unknown_package(self):
        self.assert_breach("src/base/hash.cpp", "#include <boost/any.hpp>\n", "not known")

    def test_long_file(self):
        self.assert_breach("tests/base/long.cpp", "\n" * 601, "601 lines")

    def test_build_order(self):
        self.write("src/base/error.cpp", "")
        self.assert_breach("cmake/WeftLayers.cmake", "set(WEFT_LAYERS base graph kernel)\n", "not in the order")


class Readme(Tree):
    def setUp(self):
        super().setUp()
        self.write("examples/readme.cpp", "int main() {}\n")
        self.write("CONTRIBUTING.md", "")
        (self.root / "docs").mkdir()

    def test_equal(self):
        self.write("README.md", "```cpp\nint main() {}\n```\n")
        self.assertEqual(run("check_readme.py", self.root)[0], 0)

    def test_different(self):
        self.write("README.md", "```cpp\nint main() { }\n```\n")
        self.assertEqual(run("check_readme.py", self.root)[0], 1)

    def test_dead_link(self):
        self.write("README.md", "```cpp\nint main() {}\n```\n[more](docs/more.md)\n")
        self.assertIn("docs/more.md does not exist", run("check_readme.py", self.root)[1])


class Exports(Tree):
    # Enough names for a library that is not empty, and one more.
    OURS = "namespace weft { " + " ".join(f"void f{i}() {{}}" for i in range(12)) + " struct A { virtual ~A(); }; A::~A() {} }\n"

    def library(self, text):
        self.write("a.cpp", self.OURS + text)
        subprocess.run(["g++", "-shared", "-fPIC", "-o", str(self.root / "a.so"), str(self.root / "a.cpp")], check=True)
        return run("check_exports.py", self.root / "a.so")

    def test_ours_alone(self):
        code, output = self.library("namespace weft { template <class T> float g(T) { return 0; } template float g<int>(int); }\n")
        self.assertEqual(code, 0, output)

    def test_other_namespace(self):
        code, output = self.library("namespace fmt { void print(int) {} }\n")
        self.assertEqual(code, 1)
        self.assertIn("fmt::print(int)", output)

    def test_c_linkage(self):
        self.assertIn("helper (C linkage)", self.library('extern "C" void helper() {}\n')[1])

    def test_standard_template(self):
        self.assertIn("std::vector", self.library("#include <vector>\nnamespace weft { struct B { int i[9]; }; }\ntemplate class std::vector<weft::B>;\n")[1])

    def test_function_that_mentions_weft(self):
        self.assertEqual(self.library("namespace other { template <class T> float weft_of(T) { return 0; } template float weft_of<weft::A*>(weft::A*); }\n")[0], 1)


if __name__ == "__main__":
    unittest.main()
