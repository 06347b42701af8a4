#!/usr/bin/env python3
"""How the program behaves: what it prints, how it refuses, how it stops and resumes.

    python3 tests/tools/test_cli.py PATH_TO_WEFT DATA_DIR [names of tests]

DATA_DIR is a folder with real data; what needs a file that is not there is skipped. Standard library only.
"""
import json, os, pathlib, pty, random, re, shutil, signal, subprocess, sys, tempfile, unittest
import xml.etree.ElementTree as ElementTree

WEFT, DATA = "", pathlib.Path(".")
FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="weft-cli-"))
RHYME = FOLDER / "rhyme.txt"
TINY = ("--layers 1 --heads 2 --width 16 --context 16 --batch 4 --steps 40 --lr 1e-2 --warmup 4 --eval-every 10 "
        "--eval-batches 2").split()


def environment():
    env = dict(os.environ, OMP_WAIT_POLICY="passive")
    env.setdefault("WEFT_CACHE_DIR", str(FOLDER / "cache"))
    return env


def weft(*args, rc=0, cwd=None, env=None, text=""):
    """Runs the program on a text; the exit code must be `rc`, and a refusal must be sentences of its own making."""
    done = subprocess.run([WEFT, *map(str, args)], capture_output=True, cwd=cwd or FOLDER, input=text.encode(),
                          env={**environment(), **(env or {})}, timeout=600)
    done.out, done.err = done.stdout.decode(), done.stderr.decode()
    shown = f"{' '.join(map(str, args))}\n{done.out[-2000:]}\n{done.err[-2000:]}"
    assert done.returncode == rc, f"exit code {done.returncode}, not {rc}: {shown}"
    if rc:
        assert done.err.startswith("weft: "), shown
        assert "terminate" not in done.err and "what()" not in done.err and "bug in Weft" not in done.err, shown
        assert len(done.err.splitlines()[0]) > 20, shown
    return done


def train(out, *args, rc=0, data=None):
    return weft("train", "gpt", "--data", data or RHYME, *TINY, "--out", out, *args, rc=rc)


def rows(text):
    return [json.loads(line) for line in text.splitlines()]


def losses(text):
    """By step, as the digits that were printed: equal digits are equal bits."""
    return {row["step"]: re.search(r'"loss":([^,]+),', line)[1] for line, row in zip(text.splitlines(), rows(text))}


def start(*args):
    return subprocess.Popen([WEFT, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=FOLDER,
                            env=environment())


class Refusals(unittest.TestCase):
    def refused(self, rc, part, *args):
        with self.subTest(" ".join(map(str, args))):
            self.assertIn(part, weft(*args, rc=rc).err)

    def test_command_line(self):
        self.refused(2, "did you mean weft train?", "trian", "gpt")
        self.refused(2, "is none of cpu, gpu", "bench", "gelu", "--device", "tpu")
        self.refused(2, "is none of cpu, gpu", "bench", "gelu", "--device", "gpu:x")
        self.refused(2, "weft doctor says what was found", "bench", "gelu", "--device", "gpu:99")
        self.refused(2, "give --device gpu", "bench", "gpu-memory")
        self.refused(2, "did you mean weft train gpt?", "train", "gtp")
        self.refused(2, "needs one of: gpt", "train")
        self.refused(2, "did you mean weft sample?", "smaple", "dir")
        self.refused(2, "known are: doctor", "frobnicate")
        self.refused(2, "did you mean --layers?", "train", "gpt", "--layerz", 3)
        self.refused(2, "did you mean --no-libraries?", "train", "gpt", "--no-librarys")
        self.refused(2, "unknown option --frobnicate", "train", "gpt", "--frobnicate=7")
        self.refused(2, "did you mean --temperature?", "sample", "dir", "--temprature", 1)
        self.refused(2, "did you mean softmax?", "bench", "sotfmax")
        self.refused(2, "takes no further words", "doctor", "me")
        self.refused(2, "takes no further words", "bench", "softmax", "all")
        self.refused(2, "needs the name of a ladder", "bench", "ladder")
        self.refused(2, "did you mean transpose?", "bench", "ladder", "transpsoe")
        self.refused(2, "needs a value", "train", "gpt", "--layers")
        self.refused(2, "needs DIR", "sample")
        self.refused(2, "needs NAME", "bench")
        self.refused(2, "needs --data", "eval", "dir")
        self.refused(2, "--data FILE is needed", "train", "gpt")

    def test_nothing_at_all_shows_the_commands(self):
        done = subprocess.run([WEFT], capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 2)
        for name in (b"doctor", b"train", b"sample", b"eval", b"bench"):
            self.assertIn(name, done.stderr)

    def test_trace(self):
        trace = os.path.join(FOLDER, "trace.json")
        weft("bench", "nanogpt-cpu", "--reps", 1, "--trace", trace)
        with open(trace) as file:
            events = json.load(file)["traceEvents"]
        kinds = {event.get("cat") for event in events}
        self.assertTrue({"compiler", "program", "kernel"} <= kinds, kinds)
        names = {event["name"] for event in events}
        self.assertTrue({"trace", "simplify", "fuse", "lower", "allocate", "compile", "memory"} <= names, names)
        weft("bench", "nanogpt-cpu", "--reps", 1, "--tune", "force", "--trace", trace)
        with open(trace) as file:
            self.assertIn("measure", {event["name"] for event in json.load(file)["traceEvents"]})
        self.refused(1, "No such file", "bench", "softmax", "--trace", os.path.join(FOLDER, "no", "trace.json"))

    def test_instruction_set(self):
        self.refused(2, "native, avx512, avx2, generic", "doctor", "--isa", "mmx")

    def test_tuning_modes(self):
        self.refused(2, "off, cached, on, force", "doctor", "--tune", "maybe")
        self.assertIn("WEFT_TUNE is 'maybe'", weft("doctor", rc=2, env={"WEFT_TUNE": "maybe"}).err)
        row = json.loads(weft("bench", "nanogpt-cpu", "--reps", 1, "--json", env={"WEFT_TUNE": "force"}).out)
        self.assertEqual(row["tune"], "force")
        self.assertGreater(row["tune_s"], 0)
        self.assertNotIn("tune", json.loads(weft("bench", "nanogpt-cpu", "--reps", 1, "--json", "--tune", "off",
                                                 env={"WEFT_TUNE": "force"}).out))
        self.assertGreater(json.loads(weft("bench", "tune", "--reps", 2, "--json").out)["tune_s"], 0)

    def test_explain(self):
        out = os.path.join(FOLDER, "explained")
        train(out, "--steps", 1, "--warmup", 0)
        programs = rows(weft("explain", out, "--json", "--runs", 2, "--show", "graph,groups,kernels,plan").out)
        self.assertEqual(len(programs), 2)
        self.assertTrue(programs[0]["title"].startswith("Training step"))
        self.assertTrue(programs[1]["title"].startswith("Sampling step"))
        for program in programs:
            self.assertEqual(len(program["steps"]), program["launches"] + program["library_calls"] + program["copies"])
            self.assertTrue(all(step["bytes"] > 0 and step["ms"] > 0 for step in program["steps"]))
            self.assertGreater(program["flops"], 0)
            for stage in ("graph", "groups", "kernels", "plan"):
                self.assertGreater(len(program[stage]), 100)
        text = weft("explain", out, "--runs", 1, "--step", "sample").out
        self.assertIn("of peak", text)
        self.assertNotIn("Training step", text)
        self.refused(2, "cannot be printed, but any of graph, groups", "explain", out, "--show", "grpah")
        self.refused(1, "there is no folder", "explain", os.path.join(FOLDER, "nowhere"))

    def test_help(self):
        text = weft("train", "gpt", "--help").out
        self.assertIn("--weight-decay", text)
        self.assertIn("--bias,--no-bias ", text)
        self.assertIn("sample", weft("--help").out)
        self.assertRegex(weft("--version").out, r"^weft \d+\.\d+\.\d+\n$")

    def test_impossible_values(self):
        for option, value, part in (
                ("--batch", 0, "at least 1"), ("--batch", "many", "a whole number"), ("--lr", "nan", "more than 0"),
                ("--lr", "inf", "more than 0"),
                ("--lr", 0, "more than 0"), ("--lr", -1, "more than 0"), ("--heads", 3, "does not divide --width 128"),
                ("--layers", -2, "at least 1"),
                ("--layers", "4.5", "a whole number"), ("--dropout", 1, "less than 1"), ("--beta1", 1, "less than 1"),
                ("--beta2", "nan", "at least 0"),
                ("--batch", 0, "at least 1"), ("--dtype", "f64", "f32, bf16"), ("--tokenizer", "bpe", "char, byte"),
                ("--warmup", 5000, "longer than the run"),
                ("--min-lr", 1, "more than --lr"), ("--threads", "x", "a whole number"),
                ("--steps", "99999999999999999999999", "a whole number"),
                ("--grad-clip", "-1", "at least 0"), ("--weight-decay", "inf", "at most")):
            self.refused(2, part, "train", "gpt", "--data", RHYME, "--out", "never", option, value)
        self.refused(2, "too short for --context 5000", "train", "gpt", "--data", RHYME, "--out", "never", "--context",
                     5000)
        self.refused(2, "GiB to compute in", "train", "gpt", "--data", RHYME, "--out", "never", "--layers", 500,
                     "--width", 65536)
        self.assertFalse((FOLDER / "never" / "latest").exists())

    def test_data_files(self):
        bad = {"empty.txt": b"", "zero.bin": b"abc\0def" * 100, "garbage.bin": bytes(range(128, 256)) * 20,
               "cut.txt": "viele Grüße ü".encode()[:-1]}
        for name, content in bad.items():
            (FOLDER / name).write_bytes(content)
        self.refused(1, "there is no file", "train", "gpt", "--data", "none.txt", "--out", "never")
        self.refused(1, "is empty", "train", "gpt", "--data", "empty.txt", "--out", "never")
        self.refused(1, "is a folder", "train", "gpt", "--data", FOLDER, "--out", "never")
        self.refused(1, "zero byte at position 3", "train", "gpt", "--data", "zero.bin", "--out", "never")
        self.refused(1, "not UTF-8", "train", "gpt", "--data", "garbage.bin", "--out", "never")
        self.refused(1, "may have been cut off", "train", "gpt", "--data", "cut.txt", "--out", "never")
        compressed = DATA / "mnist" / "train-labels-idx1-ubyte.gz"
        if compressed.exists():
            self.refused(1, "--tokenizer byte", "train", "gpt", "--data", compressed, "--out", "never")

    def test_folders(self):
        (FOLDER / "file").write_text("x")
        self.refused(1, "not a folder", "train", "gpt", "--data", RHYME, "--out", "file")
        for out in ("file/below", "/proc/weft"):
            done = weft("train", "gpt", "--data", RHYME, "--out", out, "--json", rc=1)
            self.assertIn("cannot be made", done.err)
            self.assertEqual(done.out, "")
        self.refused(1, "there is no folder", "sample", "nowhere")
        self.refused(1, "holds no checkpoint", "sample", FOLDER)
        self.refused(1, "there is no folder", "train", "gpt", "--resume", "nowhere")
        self.refused(1, "there is no folder", "eval", "nowhere", "--data", RHYME)

    def test_configuration_files(self):
        (FOLDER / "good.json").write_text('{"layers": 1, "heads": 2, "width": 16, "context": 16, "batch": 4, '
                                          '"steps": 3, "min_lr": 1e-5, "bias": true}')
        (FOLDER / "unknown.json").write_text('{"layres": 2}')
        (FOLDER / "type.json").write_text('{"layers": "two"}')
        (FOLDER / "cut.json").write_text('{"layers": 2')
        done = weft("train", "gpt", "--config", "good.json", "--data", RHYME, "--steps", 2, "--out", "configured",
                    "--json")
        self.assertEqual([r["step"] for r in rows(done.out)], [1, 2])
        stored = json.loads((FOLDER / "configured" / "config.json").read_text())
        self.assertEqual([stored[k] for k in ("layers", "width", "steps", "min-lr", "bias")], [1, 16, 2, 1e-5, True])
        again = weft("train", "gpt", "--config", FOLDER / "configured" / "config.json", "--out", "configured-again",
                     "--json")
        self.assertEqual(losses(again.out), losses(done.out))  # what a run leaves is a configuration that repeats it
        self.refused(2, 'unknown key "layres"; did you mean "layers"?', "train", "gpt", "--config", "unknown.json",
                     "--data", RHYME)
        self.refused(2, "must be a whole number", "train", "gpt", "--config", "type.json", "--data", RHYME)
        self.refused(2, "is not JSON", "train", "gpt", "--config", "cut.json", "--data", RHYME)
        self.refused(2, "there is no file", "train", "gpt", "--config", "none.json", "--data", RHYME)


class Training(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.done = train("reference", "--json", "--checkpoint-every", 1000)
        cls.losses = losses(cls.done.out)

    def test_json_lines(self):
        table = rows(self.done.out)
        self.assertEqual([r["step"] for r in table], list(range(1, 41)))
        for row in table:
            keys = ["step", "loss", *(["val_loss"] if row["step"] % 10 == 0 else []), "ms", "tok_s"]
            self.assertEqual(list(row), keys)
            self.assertGreater(row["ms"], 0)
            rounding = 0.01 + 0.0006 / row["ms"]
            self.assertAlmostEqual(row["tok_s"], 4 * 16 / row["ms"] * 1e3, delta=row["tok_s"] * rounding + 0.1)
        self.assertLess(table[-1]["loss"], table[0]["loss"] - 0.5)

    def test_the_same_again_is_the_same(self):
        self.assertEqual(losses(train("again", "--json").out), self.losses)
        self.assertNotEqual(losses(train("other-seed", "--json", "--seed", 2).out), self.losses)

    def test_files(self):
        out = FOLDER / "reference"
        self.assertEqual(sorted(p.name for p in out.iterdir()),
                         ["config.json", "latest", "loss.svg", "step-40", "tokenizer.json"])
        root = ElementTree.fromstring((out / "loss.svg").read_text())
        self.assertTrue(root.tag.endswith("svg"))
        words = [e.text for e in root.iter() if e.tag.endswith("text")]
        for word in ("training loss", "validation loss", "step", "nats per token"):
            self.assertIn(word, words)
        self.assertEqual(json.loads((out / "config.json").read_text())["width"], 16)
        self.assertEqual(json.loads((out / "tokenizer.json").read_text())["kind"], "char")

    def test_lines_where_there_is_no_terminal(self):
        out = train("lines").out
        self.assertNotIn("\r", out)
        steps = re.findall(r"^step +(\d+)/40  loss \d", out, re.M)
        self.assertEqual(steps[0], "1")
        self.assertEqual(steps[-1], "40")
        self.assertIn("validation loss", out)

    def test_bar_on_a_terminal(self):
        try:
            pid, fd = pty.fork()
        except OSError as error:
            self.skipTest(f"this machine has no pseudo-terminals: {error}")
        if pid == 0:
            os.chdir(FOLDER)
            os.execve(WEFT, [WEFT, "train", "gpt", "--data", str(RHYME), *TINY, "--out", "terminal"],
                      dict(environment(), LC_ALL="C.UTF-8"))
        seen = b""
        while True:
            try:
                piece = os.read(fd, 65536)
            except OSError:  # the terminal's other end is closed
                break
            if not piece:
                break
            seen += piece
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
        text = seen.decode()
        self.assertIn("\r\x1b[K[", text)
        self.assertRegex(text, r"40/40  loss \d\.\d{4}  val \d\.\d{4}  \S+ tok/s  left 0s")
        self.assertRegex(text, "[\u2801-\u28ff]")  # the curve in braille dots

    def test_a_folder_in_use_is_not_overwritten(self):
        shutil.copytree(FOLDER / "reference", FOLDER / "in-use")
        before = (FOLDER / "in-use" / "step-40" / "state.json").read_bytes()
        self.assertIn("holds a run already", train("in-use", rc=2).err)
        self.assertIn("zero byte", train("in-use", "--overwrite", data=self.binary(), rc=1).err)
        self.assertEqual((FOLDER / "in-use" / "step-40" / "state.json").read_bytes(), before)
        train("in-use", "--overwrite", "--seed", 5)
        self.assertNotEqual((FOLDER / "in-use" / "step-40" / "state.json").read_bytes(), before)

    @staticmethod
    def binary():
        path = FOLDER / "binary.bin"
        path.write_bytes(b"\x00\x01" * 500)
        return path

    def test_a_tuned_run_goes_on_with_its_choices(self):
        """Choices of an earlier run, here ones that no measurement would make, decide again after each checkpoint, with
        an empty cache and in another mode."""
        larger = ["--width", 128, "--batch", 12, "--context", 64, "--steps", 6, "--warmup", 1, "--checkpoint-every", 3,
                  "--json"]
        first = losses(train("tuned", *larger, "--tune", "on").out)
        state = json.loads((FOLDER / "tuned" / "step-3" / "state.json").read_text())
        choices = dict(line.split() for line in state["tuning"].splitlines())
        self.assertGreater(len(choices), 0)
        go_on = lambda folder, *args, env: losses(weft("train", "gpt", "--resume", folder, "--out", f"{folder}-on",
                                                       "--json", *args, env=env).out)
        fresh = {"WEFT_CACHE_DIR": str(FOLDER / "other-cache")}
        (FOLDER / "measured").mkdir()
        shutil.copytree(FOLDER / "tuned" / "step-3", FOLDER / "measured" / "step-3")
        self.assertEqual(go_on("measured", env=fresh), {step: first[step] for step in (4, 5, 6)})

        # No group of rows can have "product": it stays with the rules.
        choices = {key: "product" if choice == "rules" else "rules" for key, choice in choices.items()}
        state["tuning"] = "".join(f"{key} {choice}\n" for key, choice in choices.items())
        for folder in ("chosen", "chosen-again"):
            (FOLDER / folder).mkdir()
            shutil.copytree(FOLDER / "tuned" / "step-3", FOLDER / folder / "step-3")
            (FOLDER / folder / "step-3" / "state.json").write_text(json.dumps(state))
        one, two = go_on("chosen", "--tune", "cached", env={}), go_on("chosen-again", "--tune", "off", env=fresh)
        self.assertEqual(one, two)
        after = json.loads((FOLDER / "chosen-on" / "step-6" / "state.json").read_text())["tuning"]
        self.assertLessEqual(choices.items(), dict(line.split() for line in after.splitlines()).items())
        state["tuning"] = "nonsense"
        (FOLDER / "chosen" / "step-3" / "state.json").write_text(json.dumps(state))
        self.assertIn("does not fit its own description",
                      weft("train", "gpt", "--resume", "chosen", "--out", "never", rc=1).err)

    def test_other_modes_learn_as_well(self):
        last = float(self.losses[40])
        for name, args in (("generated", ["--no-libraries"]), ("bf16", ["--dtype", "bf16"]),
                           ("bytes", ["--tokenizer", "byte"]), ("one-thread", ["--threads", 1]),
                           ("biased", ["--bias"]), ("unclipped", ["--grad-clip", 0]),
                           ("masters", ["--dtype", "bf16", "--weights", "master", "--residual", "dtype"]),
                           ("chance", ["--dtype", "bf16", "--weights", "stochastic", "--residual", "dtype"]),
                           ("scaled", ["--dtype", "f16", "--weights", "master"]),
                           ("eight bits", ["--dtype", "f8", "--weights", "master", "--residual", "dtype"])):
            with self.subTest(name):
                got = losses(train(name, "--json", *args).out)
                self.assertEqual(len(got), 40)
                self.assertLess(abs(float(got[40]) - last), 0.35 if name != "bytes" else 1.5)
        # Files have parameters as precisely as the optimizer.
        for name, kept in (("masters", "F32"), ("chance", "BF16"), ("scaled", "F32")):
            weights = (FOLDER / name / "step-40" / "model.safetensors").read_bytes()
            header = json.loads(weights[8 : 8 + int.from_bytes(weights[:8], "little")])
            self.assertEqual({v["dtype"] for k, v in header.items() if k != "__metadata__"}, {kept})
            self.assertEqual(len(weft("sample", name, "--tokens", 5, "--temperature", 0).out) > 0, True)
            weft("train", "gpt", "--resume", name, "--steps", 42)
        self.assertIn("has 32: give --dtype bf16",
                      weft("train", "gpt", "--data", str(RHYME), "--weights", "master", rc=2).err)
        self.assertIn("is for --dtype bf16", weft("train", "gpt", "--data", str(RHYME), "--dtype", "f16", "--weights",
                                                  "stochastic", rc=2).err)


class GoingOn(unittest.TestCase):
    """Stopped in any way, a run resumes as if it had not been."""

    @classmethod
    def setUpClass(cls):
        cls.args = ["--json", "--dropout", 0.1]
        cls.all = losses(train("whole", *cls.args).out)
        cls.val = {r["step"]: r["val_loss"] for r in rows((train("whole-again", *cls.args)).out) if "val_loss" in r}

    def check_rest(self, folder, first_part):
        """Resumes, and holds all that is printed against the uninterrupted run."""
        for step, loss in first_part.items():
            self.assertEqual(loss, self.all[step], f"step {step} before")
        done = weft("train", "gpt", "--resume", folder, "--json")
        rest = losses(done.out)
        self.assertGreater(len(rest), 0)
        for step, loss in rest.items():
            self.assertEqual(loss, self.all[step], f"step {step} after")
        self.assertEqual(max(rest), 40)
        self.assertLessEqual(min(rest), max(first_part, default=0) + 1)
        for row in rows(done.out):
            if "val_loss" in row:
                self.assertEqual(row["val_loss"], self.val[row["step"]])

    def killed(self, folder, every, lines):
        process = start("train", "gpt", "--data", RHYME, *TINY, "--out", folder, *self.args, "--checkpoint-every",
                        every)
        seen = b"".join(process.stdout.readline() for _ in range(lines))
        process.send_signal(signal.SIGKILL)
        seen += process.stdout.read()
        process.wait()
        process.stderr.close(), process.stdout.close()
        return losses(seen[:seen.rfind(b"\n") + 1].decode())

    def test_kill(self):
        chance = random.Random(7)
        for i in range(4):
            every, lines = chance.choice((1, 2, 5)), chance.randint(6, 30)
            with self.subTest(every=every, lines=lines):
                first = self.killed(f"killed-{i}", every, lines)
                self.check_rest(f"killed-{i}", first)
                names = [p.name for p in (FOLDER / f"killed-{i}").iterdir() if p.name.startswith("step-")]
                self.assertLessEqual(len(names), 2)
                self.assertFalse([n for n in names if n.endswith(".tmp")])

    def test_kill_while_going_on(self):
        first = self.killed("twice", 3, 10)
        process = start("train", "gpt", "--resume", "twice", "--json")
        seen = b"".join(process.stdout.readline() for _ in range(4))
        process.kill()
        seen += process.communicate()[0]
        first.update(losses(seen[:seen.rfind(b"\n") + 1].decode()))
        self.check_rest("twice", first)

    def test_interrupt(self):
        for sign in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(sign.name):
                folder = "stopped-" + sign.name
                process = start("train", "gpt", "--data", RHYME, *TINY, "--out", folder, *self.args)
                seen = b"".join(process.stdout.readline() for _ in range(8))
                process.send_signal(sign)
                rest, err = process.communicate(timeout=120)
                first = losses((seen + rest).decode())
                self.assertEqual(process.returncode, 0, err)
                self.assertLess(max(first), 40)
                self.assertIn(f"stopped after step {max(first)} of 40", err.decode())
                self.assertIn(f"--resume {folder}", err.decode())
                self.check_rest(folder, first)

    def test_no_steps(self):
        done = weft("train", "gpt", "--data", RHYME, *TINY, "--steps", 0, "--warmup", 0, "--out", "initial", "--json")
        self.assertEqual(done.out, "")
        self.assertTrue((FOLDER / "initial" / "step-0" / "model.safetensors").exists())

    def test_more_steps(self):
        shutil.copytree(FOLDER / "whole", FOLDER / "longer")
        done = weft("train", "gpt", "--resume", "longer")
        self.assertIn("has done all its 40 steps", done.err)
        self.assertIn("less than the steps of the checkpoint",
                      weft("train", "gpt", "--resume", "longer", "--steps", 10, rc=2).err)
        got = rows(weft("train", "gpt", "--resume", "longer", "--steps", 45, "--json").out)
        self.assertEqual([r["step"] for r in got], [41, 42, 43, 44, 45])

    def test_one_folder_by_many_names(self):
        shutil.copytree(FOLDER / "whole", FOLDER / "named")
        weft("train", "gpt", "--resume", "./named/", "--out", "named", "--steps", 41)
        weft("train", "gpt", "--resume", "step-41", "--steps", 42, cwd=FOLDER / "named")
        weft("train", "gpt", "--resume", ".", "--steps", 43, cwd=FOLDER / "named")
        self.assertEqual(sorted(p.name for p in (FOLDER / "named").iterdir()),
                         ["config.json", "latest", "loss.svg", "step-42", "step-43", "tokenizer.json"])
        weft("train", "gpt", "--resume", "named", "--out", "elsewhere", "--steps", 44)
        self.assertIn("holds a run already", weft("train", "gpt", "--resume", "whole", "--out", "named", "--steps", 50,
                                                  rc=2).err)
        self.assertEqual((FOLDER / "elsewhere" / "latest").read_text(), "step-44\n")

    def test_contradictions(self):
        for option, value in (("--layers", 2), ("--width", 32), ("--context", 8), ("--batch", 3), ("--seed", 3),
                              ("--dtype", "bf16"), ("--tokenizer", "byte")):
            err = weft("train", "gpt", "--resume", "whole", "--steps", 50, option, value, rc=2).err
            self.assertIn(f"{option} {value} contradicts the checkpoint", err)
        weft("train", "gpt", "--resume", "whole", "--steps", 41, "--layers", 1, "--out", "agreeing")
        (FOLDER / "contrary.json").write_text('{"heads": 4}')
        self.assertIn("--heads 4 contradicts", weft("train", "gpt", "--resume", "whole", "--steps", 50, "--config",
                                                    "contrary.json", rc=2).err)
        other = FOLDER / "other.txt"
        other.write_text(RHYME.read_text()[:-1] + "!")
        self.assertIn("is not the text", weft("train", "gpt", "--resume", "whole", "--steps", 50, "--data", other,
                                              rc=1).err)

    def test_damage(self):
        for name, part in (("model.safetensors", "not as it was written"),
                           ("optimizer.safetensors", "not as it was written"), ("state.json", "cut off")):
            with self.subTest(name):
                folder = FOLDER / ("damaged-" + name)
                shutil.copytree(FOLDER / "whole", folder)
                file = folder / "step-40" / name
                file.write_bytes(file.read_bytes()[:-100])
                err = weft("train", "gpt", "--resume", folder, "--steps", 50, rc=1).err
                self.assertIn("damaged", err)
                self.assertIn(part, err)
                if name != "optimizer.safetensors":
                    self.assertIn("damaged", weft("sample", folder, rc=1).err)
                    self.assertIn("damaged", weft("eval", folder, "--data", RHYME, rc=1).err)


class Kernels(unittest.TestCase):
    TEXT = ("kernel @doubled(p0 x: f32[50], p1 y: out f32[50]) grid 1 any_size {\n  %0 = constant 0 : i64\n"
            "  %1 = load p0[%0] stride(1) other(0) : f32[50]\n  %2 = add %1 %1 : f32[50]\n"
            "  store p1[%0] %2 stride(1)\n}\n")

    OF_CPUS = ["attention_together", "gemm_cpu_blocks", "gemm_cpu_panels", "gemm_cpu_columns", "gemm_cpu_depth"]
    OF_GPUS = ["gemm", "gemm_gelu"]
    DROPOUT = ["attention_dropout", "attention_dropout_queries", "attention_dropout_keys"]
    DECODE = ["attention_decode", "attention_decode_split", "attention_decode_join", "attention_decode_append"]
    LIBRARY = ["attention_forward", "attention_delta", "attention_queries", "attention_keys", *OF_CPUS[:1], *DROPOUT,
               *DECODE, *OF_GPUS, *OF_CPUS[1:]]

    def test_list_and_show(self):
        names = [row["kernel"] for row in rows(weft("kernel", "list", "--json").out)]
        self.assertEqual(names, ["add", "softmax", "layer_norm", "matmul"] + self.LIBRARY)
        self.assertIn("matrix product", weft("kernel", "list").out)
        text = weft("kernel", "show", "softmax", "--stage", "tile").out
        self.assertTrue(text.startswith("kernel @softmax(p0: f32[4096,4096], p1: out f32[4096,4096]) grid 4096"), text)
        self.assertTrue("fadd" in weft("kernel", "show", "add", "--stage", "llvm").out)
        self.assertIn("__global__", weft("kernel", "show", "add", "--stage", "cuda", "--arch", "sm_80").out)
        report, = rows(weft("kernel", "show", "matmul", "--arch", "sm_90a", "--json").out)
        self.assertEqual(report["product_flops"], 2 * 1024 ** 3)
        self.assertEqual(report["bytes"], 3 * 4 * 1024 ** 2)
        self.assertEqual(report["bound"], "products")
        if "gpu_code" not in report:  # NVRTC is here
            self.assertGreater(report["registers"], 0)
            self.assertIn(report["limiter"], ("registers", "shared memory", "threads", "blocks"))
            ptx, = rows(weft("kernel", "show", "add", "--stage", "ptx", "--arch", "sm_80", "--json").out)
            self.assertIn(".target sm_80", ptx["text"])

    def test_files(self):
        path = FOLDER / "doubled.tile"
        path.write_text(self.TEXT)
        self.assertEqual(weft("kernel", "show", path, "--stage", "tile").out, self.TEXT)
        result, = rows(weft("kernel", "run", path, "--json").out)
        self.assertEqual(result["results"][0]["array"], "f32(50)")
        self.assertLess(result["results"][0]["least"], result["results"][0]["largest"])
        path.write_text(self.TEXT.replace("add %1", "add %7"))
        self.assertIn("4:12: %7 is not defined", weft("kernel", "show", path, rc=1).err)

    def test_kernels_of_the_library(self):
        def text(name, stage, *options):
            return weft("kernel", "show", name, "--stage", stage, *options).out

        for name in self.LIBRARY:
            with self.subTest(name):
                tile = text(name, "tile")
                self.assertTrue(tile.startswith("kernel @"), tile)
                self.assertIn(": out ", tile)
                self.assertIn("define", text(name, "llvm"))
                self.assertIn("__global__", text(name, "cuda", "--arch", "sm_90a"))
                for checked in rows(weft("kernel", "check", name, "--json").out):
                    self.assertTrue(checked["equal"], checked)
        # A machine's own blocks, and a GPU's without its presence.
        self.assertNotEqual(text("attention_forward", "tile"), text("attention_forward", "tile", "--arch", "sm_90a"))
        self.assertNotIn("mma.sync", text("gemm", "cuda", "--arch", "sm_90a"))
        self.assertIn("mma.sync of bfloat16", text("gemm", "cuda", "--arch", "sm_80"))
        self.assertIn(") grid 1024 ", text("gemm_cpu_columns", "tile", "--isa", "generic"))  # 4 lanes a program
        product, = rows(weft("kernel", "show", "gemm_gelu", "--arch", "sm_90a", "--json").out)
        self.assertEqual(product["product_flops"], 2 * 2048 ** 3)
        self.assertEqual(product["bytes"], 2 * (4 * 2048 ** 2 + 2048))
        seen, = rows(weft("kernel", "show", "attention_keys", "--json").out)
        self.assertEqual(seen["product_flops"], 4 * 2 * 64 * 4 * 16 * 2048 * 2049 // 2)
        timed, = rows(weft("kernel", "bench", "gemm_cpu_depth", "--reps", 2, "--json").out)
        self.assertAlmostEqual(timed["product_gflops"] * timed["ms"], 2 * 4096 ** 2 / 1e6, delta=1)
        refused = weft("kernel", "show", "gemm", "--arch", "sm_60", rc=2).err
        self.assertIn("for tensor cores, which sm_60 lacks", refused)
        self.assertIn("did you mean gemm_gelu?", weft("kernel", "show", "gem_gelu", rc=2).err)

    def test_run_check_and_bench(self):
        checked = rows(weft("kernel", "check", "--json").out)
        for row in checked:
            self.assertTrue(row["equal"], row)
        of_cpu = {row["kernel"] for row in checked if row["machine"].endswith("threads")}
        self.assertTrue(of_cpu.issuperset(self.OF_CPUS + ["softmax"]), of_cpu)
        self.assertTrue(of_cpu.isdisjoint(self.OF_GPUS), of_cpu)
        timed, = rows(weft("kernel", "bench", "softmax", "--reps", 2, "--json").out)
        self.assertAlmostEqual(timed["GBps"] * timed["ms"], 2 * 4 * 4096 ** 2 / 1e6, delta=1)

    def test_debug(self):
        path = FOLDER / "stepped.tile"
        path.write_text(self.TEXT)
        commands = "break 5\nbreak 4 if %1[0] > 1e9\nc\nprint %1[0:2]\nprint x[0]\nc\n"
        out = weft("kernel", "debug", path, text=commands).out
        self.assertIn("begin: program 0 at tile IR:2", out)
        self.assertIn("breakpoint 1: program 0 at tile IR:5", out)
        self.assertNotIn("breakpoint 2: program", out)
        first, = re.findall(r"\(debug\) \[(\S+), \S+\]", out)
        self.assertIn(f"(debug) {first}\n", out)
        self.assertIn("kernel doubled has ended", out)
        self.assertIn("softmax has ended", weft("kernel", "debug", "softmax").out)

    def test_refusals(self):
        self.assertIn("did you mean softmax?", weft("kernel", "show", "sotfmax", rc=2).err)
        self.assertIn("neither a file nor a built-in kernel", weft("kernel", "run", "zzzz", rc=2).err)
        self.assertIn("tile, schedule, legalized, llvm", weft("kernel", "show", "add", "--stage", "hlo", rc=2).err)
        self.assertIn("is no GPU architecture", weft("kernel", "show", "add", "--arch", "gfx90a", rc=1).err)
        self.assertIn("needs one of: list, show, run, debug, bench, check", weft("kernel", rc=2).err)

    def test_device(self):
        cpu = rows(weft("device", "--json", "--no-measure").out)[0]
        self.assertEqual(cpu["device"], "cpu")
        self.assertGreaterEqual(cpu["processors"], 1)
        self.assertGreater(cpu["memory_bytes"], 1 << 20)
        self.assertNotIn("copy_GBps", cpu)
        measured = rows(weft("device", "--json").out)[0]
        self.assertGreater(measured["copy_GBps"], 0.1)
        self.assertGreater(measured["f32_product_gflops"], 0.1)
        self.assertIn("memory", weft("device", "--no-measure").out)


class Using(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.rows = rows(train("model", "--json", "--steps", 200).out)

    def test_sample(self):
        one = weft("sample", "model", "--prompt", "the cat", "--tokens", 60, "--seed", 3)
        self.assertTrue(one.out.startswith("the cat"))
        self.assertEqual(len(one.out), len("the cat") + 60 + 1)
        self.assertEqual(one.out, weft("sample", "model", "--prompt", "the cat", "--tokens", 60, "--seed", 3).out)
        self.assertNotEqual(one.out, weft("sample", "model", "--prompt", "the cat", "--tokens", 60, "--seed", 4).out)
        self.assertTrue(set(one.out) <= set(RHYME.read_text()))
        greedy = weft("sample", "model", "--prompt", "the cat", "--tokens", 30, "--temperature", 0).out
        self.assertEqual(greedy, weft("sample", "model", "--prompt", "the cat", "--tokens", 30, "--top-k", 1).out)
        self.assertEqual(weft("sample", "model", "--prompt", "the", "--tokens", 0).out, "the\n")
        weft("sample", "model", "--tokens", 5, "--top-p", 0.5)

    def test_no_program_is_built_as_the_text_grows(self):
        built = []
        for tokens in (4, 12, 90):  # 90 is far over the context of 16
            err = weft("sample", "model", "--prompt", "the", "--tokens", tokens, "--stats").err
            built.append(int(re.search(r"programs built (\d+)", err)[1]))
        for prompt in ("t", "the cat sat on the mat, and the"):
            err = weft("sample", "model", "--prompt", prompt, "--tokens", 12, "--stats").err
            built.append(int(re.search(r"programs built (\d+)", err)[1]))
        self.assertEqual(len(set(built)), 1, built)
        self.assertGreaterEqual(built[0], 2)
        self.assertLessEqual(built[0], 4)

    def test_sample_refuses(self):
        self.assertIn("the character 'Z'", weft("sample", "model", "--prompt", "Zebra", rc=2).err)
        self.assertIn("--prompt is empty", weft("sample", "model", "--prompt", "", rc=2).err)
        self.assertIn("at most 1", weft("sample", "model", "--top-p", 1.5, rc=2).err)
        self.assertIn("at least 0", weft("sample", "model", "--temperature", -1, rc=2).err)
        self.assertIn("at least 0", weft("sample", "model", "--tokens", -1, rc=2).err)

    def test_bytes_come_out_as_whole_characters(self):
        text = FOLDER / "umlaut.txt"
        text.write_text("äöüß €uro 漢字 🌍\n" * 60)
        train("umlaut", "--tokenizer", "byte", "--steps", 5, data=text)
        weft("sample", "umlaut", "--tokens", 200)  # decoded as UTF-8 by the harness
        train("umlaut-chars", "--steps", 5, data=text)
        weft("sample", "umlaut-chars", "--prompt", "ä", "--tokens", 40)

    def test_eval(self):
        got = json.loads(weft("eval", "model", "--data", RHYME, "--split", "val", "--json").out)
        self.assertAlmostEqual(got["loss"], self.rows[-1]["val_loss"], delta=1e-5)
        self.assertAlmostEqual(got["bits_per_char"], got["loss"] / 0.6931471805599453, delta=1e-6)
        self.assertAlmostEqual(got["perplexity"], 2.718281828459045 ** got["loss"], delta=1e-6 * got["perplexity"])
        everything = json.loads(weft("eval", "model", "--data", RHYME, "--json").out)
        self.assertEqual(everything["tokens"], len(RHYME.read_text()) - 1)
        self.assertIn("bits per character", weft("eval", "model", "--data", RHYME).out)
        foreign = FOLDER / "foreign.txt"
        foreign.write_text("漢字" * 50)
        self.assertIn("foreign.txt: the character '漢'", weft("eval", "model", "--data", foreign, rc=1).err)
        self.assertIn("there is no file", weft("eval", "model", "--data", "none.txt", rc=1).err)
        short = FOLDER / "short.txt"
        short.write_text("t")
        self.assertIn("too short", weft("eval", "model", "--data", short, rc=1).err)

    def test_doctor(self):
        out = weft("doctor").out
        for word in ("weft", "compiler", "CPU", "instructions", "threads", "memory", "libraries", "kernel cache", "GPU",
                     "code generator", "self-test"):
            self.assertRegex(out, rf"(?m)^{word} ")
        self.assertIn("passed", out)
        # Of each library its version and file, or what it is missed for.
        for library in ("CUDA driver", "NVRTC", "cuBLASLt", "cuDNN", "cuFFT", "cuBLAS", "cuSOLVER"):
            self.assertRegex(out, rf"(?m)^{library} +(\d+\.\d+(\.\d+)? in /|missing: \w)")
        if "\nCUDA driver      missing" in out:
            self.assertRegex(out, r"(?m)^GPU +none: no CUDA driver .*WEFT_CUDA_PATH")

    def test_instruction_set(self):
        def doctor(isa, **env):
            done = subprocess.run([WEFT, "doctor", "--isa", isa], capture_output=True, env={**environment(), **env},
                                  timeout=600)
            out = done.stdout.decode()
            if b"this processor has no" in done.stderr:
                self.skipTest(done.stderr.decode())
            self.assertEqual(done.returncode, 0, out + done.stderr.decode())
            return {line[:16].strip(): line[17:] for line in out.splitlines()}

        rows = doctor("generic")
        self.assertRegex(rows["code generator"], r"^cpu-[0-9a-f]+ \S+ generic")
        self.assertRegex(rows["vectors"], r"^128 bits; gathers: no \(need AVX2\).*; scatters: no \(need AVX-512\)")
        self.assertIn("needs F16C", rows["float16"])
        rows = doctor("avx2")
        self.assertRegex(rows["vectors"], r"^256 bits; gathers: yes; scatters: no \(need AVX-512\)")
        self.assertEqual(rows["float16"], "converted in hardware")
        self.assertIn("needs AVX-512 BF16", rows["bfloat16"])
        if "oneDNN 2." in rows["libraries"]:
            self.assertIn("instructions up to AVX2", rows["libraries"])
            self.assertEqual(rows["f32 products"], "oneDNN, with AVX2")
            self.assertEqual(rows["bf16 products"], "generated kernels; oneDNN takes them: no (needs AVX-512)")
            self.assertRegex(rows["int8 products"], r"^generated kernels; oneDNN takes them: no \(needs AVX-512 VNNI")
            # A cap of oneDNN's own binds it in addition to Weft's.
            self.assertIn("instructions up to SSE4.1", doctor("native", ONEDNN_MAX_CPU_ISA="SSE41")["libraries"])

    def test_missing_folder(self):
        self.assertIn("/nowhere is no folder", weft("doctor", env={"WEFT_CUDA_PATH": "/nowhere"}).out)

    def test_bench(self):
        for name in weft("bench", "list").out.splitlines():
            self.assertRegex(name, r"^[a-z0-9_-]+ +\S")
        rungs = rows(weft("bench", "ladder", "vec_add", "--sizes", "tiny", "--reps", 1, "--json").out)
        self.assertEqual([r["rung"] for r in rungs][:3], ["the compiler's own", "with libraries", "a loop in C++"])
        self.assertEqual(list(rungs[-1]), ["bench", "peer", "mode", "dtype", "rung", "ms", "GBps", "compiler_ms",
                                           "of_compiler", "of_library", "difference"])
        self.assertEqual([r["difference"] for r in rungs if r["difference"] > 0], [])
        row, = rows(weft("bench", "nanogpt-cpu", "--reps", 2, "--json").out)
        self.assertEqual(list(row), ["bench", "peer", "mode", "dtype", "ms", "tok_s", "first_step_s"])
        self.assertEqual((row["bench"], row["peer"], row["dtype"]), ("cpu_shakespeare_char_cpu", "weft", "float32"))
        self.assertAlmostEqual(row["tok_s"], 12 * 64 / row["ms"] * 1e3, delta=row["tok_s"] * 1e-3)
        record = os.path.join(FOLDER, "record")
        for reps in (1, 2):
            weft("bench", "nanogpt-cpu", "--reps", reps, "--record", record)
        with open(record) as file:
            lines = rows(file.read())
        self.assertEqual([line.get("command") for line in lines],
                         ["weft bench nanogpt-cpu --reps 1", None, "weft bench nanogpt-cpu --reps 2", None])
        self.assertEqual(list(lines[0]), ["command", "date", "flags"])
        self.assertEqual(lines[1].keys(), row.keys())
        self.assertIn("cannot be written", weft("bench", "nanogpt-cpu", "--record",
                                                os.path.join(FOLDER, "no", "record"), rc=1).err)
        kernels = rows(weft("bench", "kernels", "--model", "mnist", "--reps", 1, "--json").out)
        step = kernels.pop()
        self.assertEqual(step["bench"], "kernels_step")
        self.assertAlmostEqual(sum(row["ms"] for row in kernels), step["ms"], delta=0.02 * step["ms"])
        self.assertTrue(any("convolution" in row["name"] and row["tflops"] > 0 for row in kernels), kernels)
        row, = rows(weft("bench", "softmax", "--reps", 1, "--json").out)
        self.assertGreater(row["GBps"], 0)
        self.assertEqual([r["n"] for r in rows(weft("bench", "matmul", "--reps", 1, "--json").out)], [512, 1024, 2048])


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    WEFT, DATA = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2]).resolve()
    RHYME.write_text("".join(f"the {a} sat on the {b}, and the {c} sat on the log.\n" for a, b, c in
                             zip(["cat", "rat", "bat", "hen"] * 20, ["mat", "hat", "den"] * 27,
                                 ["dog", "frog", "hog", "fox", "owl"] * 16)))
    try:
        result = unittest.main(argv=[sys.argv[0], *sys.argv[3:]], exit=False).result
    finally:
        shutil.rmtree(FOLDER, ignore_errors=True)
    sys.exit(not result.wasSuccessful())
