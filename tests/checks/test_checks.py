#!/usr/bin/env python3
"""The checks must be able to fail: each is shown a small tree, or a small library, with one thing wrong.

usage: test_checks.py
"""
import json
import shutil
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
        code, output = self.check("src/graph/node.cpp",
                                  '#include "graph/node.h"\n#include "base/error.h"\n#include <vector>\n'
                                  '#include <fmt/format.h>\n')
        self.assertEqual(code, 0, output)

    def test_upward(self):
        self.assert_breach("src/graph/node.cpp", '#include "compiler/ir/ir.h"\n',
                           "graph includes compiler/ir/ir.h of compiler")

    def test_target_does_not_know_the_graph(self):
        self.assert_breach("src/target/cpu/cpu.cpp", '#include "graph/node.h"\n', "target/cpu includes graph/node.h")

    def test_targets_do_not_know_each_other(self):
        self.assert_breach("src/target/cpu/cpu.cpp", '#include "target/null/null.h"\n', "above or beside")

    def test_folder_upward(self):
        self.assert_breach("src/compiler/ir/ir.cpp", '#include "compiler/fusion/group.h"\n', "above or beside")

    def test_folder_beside(self):
        self.assert_breach("src/kernel/expand/expand.cpp", '#include "kernel/describe/desc.h"\n', "above or beside")

    def test_folder_downward_is_right(self):
        code, output = self.check("src/compiler/lower/dot/dot.cpp",
                                  '#include "compiler/lower/lower.h"\n#include "compiler/ir/ir.h"\n')
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
        self.assert_breach("src/compiler/lower/emit.cpp", "#include <llvm-c/Core.h>\n",
                           "LLVM belongs in target/cpu only")

    def test_unknown_package(self):
        self.assert_breach("src/base/hash.cpp", "#include <boost/any.hpp>\n", "not known")

    def test_long_file(self):
        self.assert_breach("tests/base/long.cpp", "\n" * 601, "601 lines")

    def test_build_order(self):
        self.write("src/base/error.cpp", "")
        self.assert_breach("cmake/WeftLayers.cmake", "set(WEFT_LAYERS base graph kernel)\n", "not in the order")


class Lines(Tree):
    def check(self, path, text):
        self.write(path, text)
        return run("check_lines.py", self.root)

    def test_full_line_is_right(self):
        self.assertEqual(self.check("src/a.cpp", "x" * 120 + "\n" + "ü" * 120)[0], 0)

    def test_long_line(self):
        for path in ("src/a.cpp", "tests/checks/a.py", "CMakeLists.txt", "cmake/a.cmake", "CMakePresets.json"):
            self.assertIn(f"{path}:2: 121 columns", self.check(path, "\n" + "x" * 121)[1])

    def test_script_without_suffix(self):
        code, output = self.check("scripts/a", "#!/bin/sh\n" + "x" * 121)
        self.assertEqual(code, 1, output)

    def test_documents_and_data(self):
        self.write("tests/compiler/golden/a.h", "x" * 121)
        self.write("tests/data/a.txt", "x" * 121)
        self.assertEqual(self.check("docs/a.md", "x" * 121)[0], 0)


class Unity(Tree):
    LOCAL = "namespace weft {{\nnamespace {{\n\nint {0}(int x) {{ return x; }}\n\n}}  // namespace\n}}\n"

    def check(self, first, second):
        self.write("src/a/one.cpp", first)
        self.write("src/a/two.cpp", second)
        return run("check_unity.py", self.root)

    def test_own_names_are_right(self):
        code, output = self.check(self.LOCAL.format("one"), self.LOCAL.format("two"))
        self.assertEqual(code, 0, output)

    def test_the_same_name_twice(self):
        self.assertIn("half is a function of two.cpp, too", self.check(*[self.LOCAL.format("half")] * 2)[1])

    def test_a_hidden_function(self):
        self.assertIn("check hides the function that two.cpp calls",
                      self.check(self.LOCAL.format("check"), "void f() {\n  check(1);\n}\n")[1])

    def test_members_and_other_folders(self):
        self.write("src/b/two.cpp", self.LOCAL.format("half"))
        code, output = self.check(self.LOCAL.format("half"), "void f(A& a) {\n  a.half(1);\n  ix::half(2);\n}\n")
        self.assertEqual(code, 0, output)

    def test_types_of_headers(self):
        for folder in "ab":
            self.write(f"src/{folder}/one.h", "namespace weft::a {\n\nstruct Rows {\n  int n;\n};\n\n}\n")
        code, output = self.check("", "")
        self.assertEqual(code, 1)
        self.assertIn("weft::a::Rows is a type of src/a/one.h, too", output)
        self.write("src/b/one.h", "namespace weft::b {\n\nstruct Rows {\n  int n;\n};\n\n}\n")
        self.assertEqual(self.check("", "")[0], 0)


class Warnings(Tree):
    PRESETS = {"configurePresets": [
        {"name": "base", "hidden": True, "cacheVariables": {"CMAKE_BUILD_TYPE": "Release"}},
        {"name": "release", "inherits": "base"},
        {"name": "small", "inherits": "base", "cacheVariables": {"CMAKE_CXX_FLAGS_RELEASE": "-Os"}},
        {"name": "lenient", "inherits": "base", "cacheVariables": {"CMAKE_CXX_FLAGS_RELEASE": "-O1",
                                                                   "WEFT_WERROR": "OFF"}}]}

    def check(self, text, own="-O3 -DNDEBUG"):
        self.write("src/a.cpp", text)
        self.write("CMakePresets.json", json.dumps(self.PRESETS))
        self.write("build/compile_commands.json", json.dumps([{
            "directory": str(self.root), "file": str(self.root.resolve() / "src/a.cpp"),
            "command": f"ccache g++ -Wall {own} -o a.o -c {self.root}/src/a.cpp"}]))
        return run("check_warnings.py", self.root, self.root / "build", "src/a.cpp")

    def test_none(self):
        code, output = self.check("int a;\n")
        self.assertEqual(code, 0, output)
        self.assertIn("2 compilations at 2 sets", output)  # not at the build's own flags

    def test_flags_of_one_preset(self):
        code, output = self.check("#ifdef __OPTIMIZE_SIZE__\n#warning small\n#endif\n")
        self.assertEqual(code, 1, output)
        self.assertIn("src/a.cpp at -Os (small)", output)

    def test_preset_without_errors(self):
        self.assertEqual(self.check("#if !defined(NDEBUG) && !defined(__OPTIMIZE_SIZE__)\n#warning no\n#endif\n")[0], 0)


@unittest.skipUnless(shutil.which("clang-tidy-14"), "clang-tidy-14 is not installed")
class Tidy(Tree):
    def check(self, text, name="a.cpp"):
        self.write("src/a.cpp", text)
        self.write("build/compile_commands.json", json.dumps([{
            "directory": str(self.root), "file": str(self.root / "src" / name),
            "command": f"g++ -std=c++20 -o a.o -c {self.root}/src/{name}"}]))
        done = subprocess.run([str(HERE.parent.parent / "scripts/tidy"), "--build", str(self.root / "build"),
                               str(self.root / "src")], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def test_nothing_found(self):
        code, output = self.check("int f() { return 1; }\n")
        self.assertEqual((code, output), (0, ""))

    def test_use_after_move(self):
        code, output = self.check("#include <string>\n#include <utility>\nvoid g(std::string);\n"
                                  "char f(std::string a) { g(std::move(a)); return a[0]; }\n")
        self.assertEqual(code, 1, output)
        self.assertIn("'a' used after it was moved", output)

    def test_files_compiled_as_one(self):
        self.assertEqual(self.check("", "unity_src_a_cxx.cxx")[0], 3)


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

    def test_dead_heading(self):
        self.write("docs/notes/a.md", "# One thing, two\n[here](#one-thing-two) [there](../b.md#two)\n")
        self.write("docs/b.md", "# One\n## Three\n")
        self.write("README.md", "```cpp\nint main() {}\n```\n")
        code, output = run("check_readme.py", self.root)
        self.assertEqual((code, output.strip()), (1, "docs/notes/a.md: ../b.md has no anchor #two"))

    def test_unlisted_folders(self):
        self.write("README.md", "```cpp\nint main() {}\n```\n")
        self.write("docs/design.md", "`src/base`\n")
        self.write("docs/architecture.md", "`ops`\n")
        for folder in ("base", "graph/ops", "graph/regions"):
            self.write(f"src/{folder}/a.h", "")
        code, output = run("check_readme.py", self.root)
        self.assertEqual((code, output.splitlines()), (1, ["docs/design.md does not list src/graph",
                                                           "docs/architecture.md does not list src/graph/regions"]))


class Figures(Tree):
    SCRIPT = HERE.parents[1] / "scripts" / "figures"
    PAGE = ("A step takes\n15.3<!-- =step --> ms, 1.62<!-- =step.ratio --> of the peer.\n\n"
            "<!-- table: train -->\n<!-- end -->\n")

    def setUp(self):
        super().setUp()
        self.write("bench/results/machines.json", '{"m": {"short": "M", "what": "a machine"}}')
        self.write("bench/results/m.jsonl", "")
        self.record()
        self.write("docs/performance.md", self.PAGE)
        self.assertEqual(self.figures("--root", self.root), (0, ""))

    def record(self, **changes):
        record = {"id": "step", "bench": "train", "case": "small", "unit": "ms", "weft": 15.3, "peer": 24.8,
                  "peer_name": "PyTorch", "machine": "m", "date": "2026-11-21", "commit": "5a3a37a", "flags": "release",
                  "command": "build/weft bench train", **changes}
        with open(self.root / "bench/results/m.jsonl", "a") as out:
            out.write(json.dumps({k: v for k, v in record.items() if v is not None}) + "\n")

    def figures(self, *arguments):
        done = subprocess.run([sys.executable, str(self.SCRIPT), *map(str, arguments)], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def page(self):
        return (self.root / "docs/performance.md").read_text()

    def assert_refused(self, words):
        code, output = self.figures("--check", "--root", self.root)
        self.assertEqual(code, 1, output)
        self.assertIn(words, output)

    def test_generated_is_right(self):
        self.assertIn("| small | 15.3 | 24.8 | 1.62 |", self.page())
        self.assertEqual(self.figures("--check", "--root", self.root), (0, ""))

    def test_a_page_of_a_ladder(self):
        self.write("docs/kernels/vec_add.md", "<!-- table: ladder_vec_add -->\n<!-- end -->\n")
        self.write("raw.jsonl", '{"bench": "ladder_vec_add", "peer": "weft", "rung": "tiles", "ms": 4.0, '
                                '"compiler_ms": 5.0, "registers": 40, "occupancy": 0.75, "dead_end": "slow"}\n')
        self.assertEqual(self.figures("--root", self.root), (0, ""))
        self.assertIn("Not measured yet.", (self.root / "docs/kernels/vec_add.md").read_text())
        self.assertEqual(self.figures("add", self.root / "bench/results/m.jsonl", self.root / "raw.jsonl", "--machine",
                                      "m", "--commit", "5a3a37a"), (0, ""))
        self.assertEqual(self.figures("--root", self.root), (0, ""))
        self.assertIn("| tiles | 4.00 | 5.00 | 1.25 | 40 registers, occupancy 75%; dead end: slow |",
                      (self.root / "docs/kernels/vec_add.md").read_text())

    def test_changed_table(self):
        self.write("docs/performance.md", self.page().replace("| small | 15.3", "| small | 14.3"))
        self.assert_refused("should be | small | 15.3")

    def test_changed_reference(self):
        self.write("docs/performance.md", self.page().replace("1.62<!--", "1.72<!--"))
        self.assert_refused("should be 15.3<!-- =step --> ms, 1.62<!-- =step.ratio -->")

    def test_new_record(self):
        self.record(weft=14.3)
        self.assert_refused("should be")
        self.figures("--root", self.root)
        self.assertIn("14.3<!-- =step --> ms, 1.73", self.page())
        self.assertEqual(self.page().count("| small |"), 1)

    def test_unknown_reference(self):
        self.write("docs/performance.md", "7<!-- =nothing -->\n")
        self.assert_refused("no record has the id nothing")

    def test_table_without_records(self):
        self.write("docs/performance.md", "<!-- table: nothing -->\n<!-- end -->\n")
        self.assert_refused("no record is of nothing")

    def test_record_without_date(self):
        self.record(date=None, case="other", id=None)
        self.assert_refused("m.jsonl:2: unknown fields [], lacking ['date']")

    def test_ratio_that_does_not_follow(self):
        self.record(ratio=2.0)
        self.assert_refused("ratio 2.0, by its figures")

    def test_unknown_machine(self):
        self.record(machine="n")
        self.assert_refused("machine n is not in machines.json")

    def test_lines_of_benchmarks_become_records(self):
        self.write("lines", "\n".join(json.dumps(line) for line in [
            {"command": "weft bench memory --threads 2", "date": "2026-01-02", "flags": "-O2"},
            {"bench": "memory_copy", "peer": "weft", "mode": "compile", "dtype": "float32", "GBps": 70.0},
            {"bench": "memory_sum", "peer": "weft", "mode": "compile", "dtype": "float32", "ms": 1.06, "GBps": 63.0},
            {"command": "weft bench tutorials --device gpu", "date": "2026-01-02", "flags": "-O2"},
            {"bench": "tutorials", "peer": "weft", "mode": "compile", "dtype": "float16", "name": "asin", "ms": 2.0},
            {"bench": "tutorials", "peer": "triton", "dtype": "float16", "name": "asin", "ms": 3.0, "triton": "3.6.0"},
            {"torch": "2.15.0+cpu"},
            {"bench": "memory_sum", "peer": "torch", "mode": "eager", "dtype": "float32", "ms": 1.3, "GBps": 51.0},
            {"bench": "memory_sum", "peer": "torch", "mode": "compile", "dtype": "float32", "ms": 1.1, "GBps": 60.0}]))
        code, output = self.figures("add", self.root / "bench/results/n.jsonl", "--machine", "n", "--describe", "new",
                                    "--commit", "abc", self.root / "lines")
        self.assertEqual((code, output), (0, ""))
        records = [json.loads(line) for line in (self.root / "bench/results/n.jsonl").read_text().splitlines()]
        self.assertEqual(records[1], {
            "bench": "memory", "case": "sum", "unit": "GB/s", "weft": 63.0, "peer": 60.0, "floor": 70.0,
            "peer_name": "PyTorch 2.15.0, compile", "machine": "n", "date": "2026-01-02", "commit": "abc",
            "flags": "-O2", "command": "weft bench memory --threads 2"})
        self.assertEqual((records[2]["bench"], records[2]["case"]), ("tutorials", "asin, float16"))
        self.assertEqual((records[2]["peer"], records[2]["peer_name"]), (3.0, "Triton 3.6.0"))
        self.write("docs/performance.md", "<!-- table: memory -->\n<!-- end -->\n")
        self.assertEqual(self.figures("--root", self.root), (0, ""))
        self.assertIn("| sum | 63.0 | 60.0 | 1.05 | 70.0 | 0.90 |", self.page())


class Words(Tree):
    TABLE = """## Retired words

| word | identifiers | phrases | folders | now |
| --- | --- | --- | --- | --- |
| fold | `Op::reduce` `has_fold` `folds` | `\\ba (fold\\|folding)\\b` | | reduce |
| strip | `strip` | | `src/compiler` | panel |
"""

    def check(self, path, text):
        self.write("docs/glossary.md", self.TABLE)
        self.write(path, text)
        return run("check_words.py", self.root)

    def assert_breach(self, path, text, words):
        code, output = self.check(path, text)
        self.assertEqual(code, 1, output)
        self.assertIn(words, output)

    def assert_right(self, path, text):
        code, output = self.check(path, text)
        self.assertEqual(code, 0, output)

    def test_identifier(self):
        self.assert_breach("src/graph/a.cpp", "int a;\nbool b = has_fold();\n",
                           "a.cpp:2: 'has_fold': fold is retired, say: reduce")

    def test_qualified_identifier(self):
        self.assert_breach("tests/a.cpp", "auto a = Op::reduce;\n", "'Op::reduce'")

    def test_identifier_in_a_comment(self):
        self.assert_breach("include/weft/a.h", "// what has_fold says\n", "'has_fold'")

    def test_longer_names_are_others(self):
        self.assert_right("src/graph/a.cpp", "bool has_folder, folds_;\n")

    def test_english_in_comments_is_right(self):
        self.assert_right("src/graph/a.cpp", "int a;  // it folds constants\n")

    def test_generated_code_is_right(self):
        self.assert_right("src/graph/a.cpp", "const char* text = \"int has_fold;\";\n")

    def test_phrase(self):
        self.assert_breach("docs/design.md", "What a fold is.\n", "design.md:1: 'a fold'")

    def test_phrase_over_two_lines_of_a_comment(self):
        self.assert_breach("src/graph/a.cpp", "// This is a\n// folding of rows.\n", "a.cpp:1: 'a // folding'")

    def test_phrase_in_a_message(self):
        self.assert_breach("tools/weft/a.cpp", "fail(\"not a fold\");\n", "a.cpp:1")

    def test_word_of_a_folder(self):
        self.assert_breach("src/compiler/a.cpp", "int strip = 0;\n", "say: panel")

    def test_word_elsewhere_is_right(self):
        self.assert_right("src/text/a.cpp", "int strip = 0;\n")

    def test_glossary_without_a_table(self):
        self.write("docs/glossary.md", "# Glossary\n")
        code, output = run("check_words.py", self.root)
        self.assertEqual(code, 1, output)


class Headers(Tree):
    HEAD = "#pragma once\n/// Things.\nnamespace weft {\n"

    def check(self, text, example="", path="include/weft/things.h"):
        self.write(path, self.HEAD + text + "}  // namespace weft\n")
        self.write("tests/nn/header_examples_test.cpp", example)
        return run("check_headers.py", self.root)

    def assert_breach(self, text, words, **arguments):
        code, output = self.check(text, **arguments)
        self.assertEqual(code, 1, output)
        self.assertIn(words, output)

    def assert_right(self, text, **arguments):
        code, output = self.check(text, **arguments)
        self.assertEqual(code, 0, output)

    def test_documented(self):
        self.assert_right("/// Returns the sum of a and b.\nint add(int a, int b = 0);\nfloat add(float a, float b);\n")

    def test_function(self):
        self.assert_breach("int add(int a, int b);\n", "things.h:4: function add has no comment")

    def test_no_verb(self):
        self.assert_breach("/// The sum.\nint add(int a, int b);\n", "comment of add does not begin with a verb")

    def test_comment_of_another_function(self):
        self.assert_breach("/// Returns the sum.\nint add(int a);\nint sub(int a);\n", "things.h:6: function sub")

    def test_overload_behind_a_gap(self):
        self.assert_breach("/// Returns the sum.\nint add(int a);\n\nint add(float a);\n", "things.h:7: function add")

    def test_plain_comment(self):
        self.assert_breach("// Returns the sum.\nint add(int a);\n", "function add has no comment")

    def test_inline_template(self):
        self.assert_breach("template <class T, class U = std::vector<int>>\nrequires(sizeof(T) > 1) T add(T a) {\n"
                           "  if (a) { return a; }\n  return {};\n}\n",
                           "things.h:4: function add")

    def test_method(self):
        self.assert_breach("/// A thing.\nclass Thing {\n  int hidden();\n public:\n  Thing();\n  ~Thing();\n"
                           "  int seen() const { return 1; }\n};\n",
                           "things.h:10: function seen")

    def test_private_and_detail(self):
        self.assert_right("/// A thing.\nclass Thing {\n  int hidden();\n public:\n  Thing(int a) : a_(a) {}\n"
                          " private:\n  int a_;\n};\n"
                          "namespace detail {\nint f();\n}\nclass Later;\n")

    def test_field(self):
        self.assert_breach("/// Options.\nstruct Options {\n  int a = 1;  ///< the first\n"
                           "  std::vector<int> b = {1, 2};\n};\n", "things.h:7: field b")

    def test_nested_class(self):
        self.assert_breach("/// A thing.\nstruct Thing {\n  enum class Kind { a, b };\n};\n", "things.h:6: class Kind")

    def test_alias_constant_and_concept(self):
        for text, words in (("using F = int(*)(int);\n", "alias F"),
                            ("inline constexpr int size = 3;\n", "constant size"),
                            ("template <class T>\nconcept Small = sizeof(T) < 3;\n", "concept Small"),
                            ("#define THING 1\n", "macro THING")):
            self.assert_breach(text, f"{words} has no comment")

    def test_operator(self):
        self.assert_breach("/// A thing.\nstruct Thing {\n  bool operator<(const Thing& other) const;\n};\n",
                           "operator operator<")

    def test_example(self):
        text = "/// Returns 1.\n///\n///     int one = f();\n///     int two = one + f();\nint f();\n"
        self.assert_right(text, example="int one = f(); int two =\n one + f();")
        self.assert_breach(text, "things.h:6: this example", example="int one = f();")

    def test_compatibility_header(self):
        self.write("include/weft/compat/mlx/things.h", "#pragma once\nint f();\n")
        self.assert_breach("", "compat/mlx/things.h: no comment")

    def test_no_headers(self):
        self.assertEqual(run("check_headers.py", self.root)[0], 1)


class WorkedExample(Tree):
    SCRIPT = HERE.parents[1] / "scripts" / "worked-example"
    PAGE = "The passes:\n<!-- after: passes -->\n<!-- end -->\nThen\n<!-- after: after:fuse -->\n<!-- end -->\n"

    def setUp(self):
        super().setUp()
        self.program("true")
        self.write("page.md", self.PAGE)
        self.assertEqual(self.example(), (0, ""))

    def program(self, ending):
        passes = "   1 import                   0.05 ms  first\\n   2 gemv                        - ms  later\\n"
        text = json.dumps({"passes": "PASSES", "after:fuse": "group 0\n"}).replace("PASSES", passes)
        self.write("build/weft", f"#!/bin/sh\ncat <<'TEXT'\n{text}\nTEXT\n{ending}\n")
        self.write("build/examples/example_export_layer", "#!/bin/sh\n")
        for name in ("weft", "examples/example_export_layer"):
            (self.root / "build" / name).chmod(0o755)

    def example(self, *arguments):
        done = subprocess.run([sys.executable, str(self.SCRIPT), "--build", str(self.root / "build"), "--page",
                               str(self.root / "page.md"), *arguments], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def test_written_is_right(self):
        page = (self.root / "page.md").read_text()
        self.assertIn("| `import` | yes | first |\n| `gemv` |  | later |\n<!-- end -->", page)
        self.assertIn("```\ngroup 0\n```\n<!-- end -->", page)
        self.assertEqual(self.example("--check"), (0, ""))

    def test_changed(self):
        self.write("page.md", (self.root / "page.md").read_text().replace("group 0", "group 1"))
        code, output = self.example("--check")
        self.assertEqual(code, 1)
        self.assertIn("-group 1\n+group 0", output)

    def test_machine_without_avx2(self):
        self.program("echo '--isa avx2: this CPU has no such instructions' >&2; exit 2")
        self.assertEqual(self.example("--check")[0], 77)

    def test_program_that_fails(self):
        self.program("exit 2")
        self.assertEqual(self.example("--check")[0], 1)


class Exports(Tree):
    # Enough names for a library that is not empty, and one more.
    OURS = ("namespace weft { " + " ".join(f"void f{i}() {{}}" for i in range(12)) +
            " struct A { virtual ~A(); }; A::~A() {} }\n")

    def library(self, text):
        self.write("a.cpp", self.OURS + text)
        subprocess.run(["g++", "-shared", "-fPIC", "-o", str(self.root / "a.so"), str(self.root / "a.cpp")], check=True)
        return run("check_exports.py", self.root / "a.so")

    def test_ours_alone(self):
        code, output = self.library("namespace weft { template <class T> float g(T) { return 0; } "
                                    "template float g<int>(int); }\n")
        self.assertEqual(code, 0, output)

    def test_other_namespace(self):
        code, output = self.library("namespace fmt { void print(int) {} }\n")
        self.assertEqual(code, 1)
        self.assertIn("fmt::print(int)", output)

    def test_c_linkage(self):
        self.assertIn("helper (C linkage)", self.library('extern "C" void helper() {}\n')[1])

    def test_standard_template(self):
        self.assertIn("std::vector", self.library("#include <vector>\nnamespace weft { struct B { int i[9]; }; }\n"
                                                  "template class std::vector<weft::B>;\n")[1])

    def test_function_that_mentions_weft(self):
        code, output = self.library("namespace other { template <class T> float weft_of(T) { return 0; } "
                                    "template float weft_of<weft::A*>(weft::A*); }\n")
        self.assertEqual(code, 1, output)


if __name__ == "__main__":
    unittest.main()
