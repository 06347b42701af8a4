#!/usr/bin/env python3
"""The demo in small: trains a character GPT on the demo's text, lets it write, and judges both.

usage: check_demo.py WEFT ROOT

The validation loss must fall under MAX_VAL_LOSS (a uniform guess is ln 84 = 4.43, the frequencies of characters alone
give 3.3, of pairs 2.4), and at least MIN_KNOWN of the words that the model writes must occur in the text.
"""
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

STEPS = 1200
MODEL = ["--layers", "2", "--heads", "4", "--width", "96", "--context", "64", "--batch", "16", "--lr", "4e-3",
         "--warmup", "50", "--seed", "1"]
MAX_VAL_LOSS = 1.95
SAMPLE = ["--prompt", "The ", "--tokens", "1500", "--temperature", "0.5", "--seed", "1"]
MIN_KNOWN = 0.8


def run(*command):
    done = subprocess.run(list(map(str, command)), capture_output=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed with {done.returncode}:\n"
                 f"{done.stdout.decode()[-2000:]}\n{done.stderr.decode()[-4000:]}")
    return done.stdout.decode()


def words(text):
    return re.findall(r"[A-Za-z]+", text)


def last_validation_loss(lines):
    """The last "val_loss" of the training's JSON lines."""
    reports = [json.loads(line) for line in lines.splitlines() if line.startswith("{")]
    losses = [r["val_loss"] for r in reports if r.get("val_loss") is not None]
    if not losses or len(reports) < STEPS:
        sys.exit(f"weft train reported {len(reports)} of {STEPS} steps and {len(losses)} validation losses")
    return losses[-1]


def known_share(sample, text):
    """The share of the sample's words that occur in the text. The first and the last may be cut off."""
    written = words(sample)[1:-1]
    if len(written) < 100:
        sys.exit(f"the sample has {len(written)} words only:\n{sample}")
    vocabulary = set(words(text))
    return sum(word in vocabulary for word in written) / len(written), len(written)


def main():
    weft, root = Path(sys.argv[1]), Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        text, model = Path(folder) / "text.txt", Path(folder) / "model"
        run(root / "scripts" / "demo-text", text)
        report = run(weft, "train", "gpt", "--data", text, "--out", model, "--steps", STEPS, "--eval-every", STEPS,
                     "--json", *MODEL)
        loss = last_validation_loss(report)
        sample = run(weft, "sample", model, *SAMPLE)
        share, count = known_share(sample, text.read_text(encoding="utf-8"))
    print(sample)
    print(f"validation loss {loss:.3f} (must be under {MAX_VAL_LOSS}); "
          f"{share:.0%} of {count} words are known (at least {MIN_KNOWN:.0%})")
    return 0 if loss < MAX_VAL_LOSS and share >= MIN_KNOWN else 1


if __name__ == "__main__":
    sys.exit(main())
