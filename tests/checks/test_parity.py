#!/usr/bin/env python3
"""scripts/parity must find what is slower and accept what is equal. The programs it compares here only print times.

usage: test_parity.py
"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PARITY = Path(__file__).resolve().parents[2] / "scripts" / "parity"

# Prints one line a benchmark. Its times shake by some 3 % in the same way for both programs of a pair, and by some
# 0.3 % in each, as those of a machine do whose clock moves.
PROGRAM = """#!/usr/bin/env python3
import random, sys
from pathlib import Path
time, plan = {time}, {plan}
runs = Path(__file__).with_name("runs")
n = int(runs.read_text()) if runs.exists() else 0
runs.write_text(str(n + 1))
shared, own = random.Random(n).gauss(1, 0.03), random.Random(f"{{time}} {seed} {{n}}").gauss(1, 0.003)
bench = sys.argv[2]
if bench in {broken}:
    sys.exit("broken")
if bench == "compile":
    print('{{"bench": "compile_gpt_step", "peer": "weft", "layers": 12, "ms": %f, "steps": %d, "arena_mb": 1.5}}' %
          (time * shared * own, plan))
else:
    print('{{"bench": "cpu_' + bench + '", "peer": "weft", "dtype": "float32", "ms": %f, "GBps": 1.0}}' %
          (time * shared * own))
"""

TESTS = """#!/bin/sh
echo 'TEST CASE:  softmax is one kernel'
echo '  values: CHECK( {count} == 1 )'
"""


class Parity(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = Path(self.folder.name)

    def tearDown(self):
        self.folder.cleanup()

    def program(self, name, time=2.0, plan=252, count=1, broken=()):
        folder = self.root / name
        folder.mkdir()
        for file, text in (("weft", PROGRAM.format(time=time, plan=plan, broken=repr(broken), seed=name)),
                           ("test_compiler", TESTS.format(count=count))):
            (folder / file).write_text(text)
            (folder / file).chmod(0o755)

    def parity(self, *arguments, a="a", b="b"):
        done = subprocess.run(
            [sys.executable, str(PARITY), a, b, "--work", "work", "--device", "cpu", *arguments],
            cwd=self.root, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def test_equal(self):
        self.program("a"), self.program("b")
        code, output = self.parity("--only", "gelu", "--only", "compile")
        self.assertEqual(code, 0, output)
        self.assertIn("2 figures", output)
        self.assertIn("1 compared, 0 greater", output)

    def test_five_percent_slower(self):
        self.program("a"), self.program("b", time=2.1)
        code, output = self.parity("--only", "gelu")
        self.assertEqual(code, 1, output)
        self.assertIn("SLOWER", output)

    def test_five_percent_faster(self):
        self.program("a"), self.program("b", time=1.9)
        code, output = self.parity("--only", "gelu")
        self.assertEqual(code, 0, output)
        self.assertIn("0 slower", output)

    def test_longer_plan(self):
        self.program("a"), self.program("b", plan=253)
        code, output = self.parity("--only", "compile")
        self.assertEqual(code, 1, output)
        self.assertIn("steps: 252 -> 253  GREATER", output)

    def test_more_kernels(self):
        self.program("a"), self.program("b", count=2)
        code, output = self.parity("--only", "gelu")
        self.assertEqual(code, 1, output)
        self.assertIn('"softmax is one kernel": 1 -> 2  GREATER', output)

    def test_benchmark_that_no_longer_runs(self):
        self.program("a"), self.program("b", broken=("gelu",))
        code, output = self.parity("--only", "gelu", "--only", "softmax")
        self.assertEqual(code, 1, output)
        self.assertIn("LOST, only A runs it: cpu gelu", output)

    def test_parts_and_limits_add_up(self):
        self.program("a"), self.program("b")
        self.parity("--part", "1/2", "--limit", "0.0001")
        self.parity("--part", "1/2")
        self.parity("--part", "2/2")
        code, output = self.parity("--report")
        self.assertEqual(code, 0, output)
        self.assertNotIn("few pairs", output)
        self.assertIn("14 figures", output)
        lines = (self.root / "parity.jsonl").read_text().count('"lines"')
        self.assertEqual(lines, 14 * 2 * 5)
        self.parity()  # nothing is missing
        self.assertEqual((self.root / "parity.jsonl").read_text().count('"lines"'), lines)

    def test_turns(self):
        self.program("a"), self.program("b")
        self.parity("--only", "gelu", "--no-counts")
        sides = [line.split('"side": "')[1][0] for line in (self.root / "parity.jsonl").read_text().splitlines()]
        self.assertEqual("".join(sides), "ABBAABBAAB")

    def test_other_versions_in_the_file(self):
        self.program("a"), self.program("b"), self.program("c")
        self.parity("--only", "gelu")
        code, output = self.parity("--only", "softmax", b="c")
        self.assertEqual(code, 2, output)
        self.assertIn("other versions", output)

    def test_mistakes(self):
        self.program("a")
        self.assertIn("neither a folder nor a commit", self.parity(b="no-such-commit")[1])
        (self.root / "b").mkdir()
        self.assertIn("no program weft", self.parity()[1])
        self.assertIn("from 1 to N", self.parity("--part", "3/2")[1])

    def test_commits_are_built(self):
        if not shutil.which("cmake") or not shutil.which("git"):
            self.skipTest("no cmake or git")
        tree = self.root / "tree"
        (tree / "scripts").mkdir(parents=True)
        shutil.copy(PARITY, tree / "scripts" / "parity")
        self.program("tree/program")
        (tree / "CMakePresets.json").write_text(
            '{"version": 6, "configurePresets": [{"name": "release", "generator": "Ninja", '
            '"binaryDir": "${sourceDir}/build"}]}')
        (tree / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.20)\nproject(fake NONE)\nadd_custom_target(weft_program COMMAND "
            "${CMAKE_COMMAND} -E copy ${CMAKE_SOURCE_DIR}/program/weft ${CMAKE_BINARY_DIR}/weft)\n")
        quiet = {"check": True, "cwd": tree, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run(["git", "init"], **quiet)
        for time in ("2.0", "2.2"):
            program = tree / "program" / "weft"
            program.write_text(program.read_text().replace("time, plan = 2.0", f"time, plan = {time}"))
            subprocess.run(["git", "add", "-A"], **quiet)
            subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t", "commit", "--allow-empty", "-m", time],
                           **quiet)
        done = subprocess.run([sys.executable, str(tree / "scripts" / "parity"), "HEAD~1", "HEAD", "--only", "gelu",
                               "--no-counts", "--device", "cpu"], cwd=tree, capture_output=True, text=True)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("SLOWER", done.stdout)


if __name__ == "__main__":
    os.environ.pop("GIT_DIR", None)
    unittest.main()
