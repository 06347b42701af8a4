#!/usr/bin/env python3
"""Writes einsum_paths.json: the orders in which mlx contracts random expressions, with its description of each.

    python tests/python/golden/generate_einsum_paths.py    (with mlx 0.32.4)
"""

import json
import random
from pathlib import Path

import mlx.core as mx


def expression(seed):
    """Subscripts and shapes: three to seven operands of up to four axes, some of length 1."""
    draw = random.Random(seed)
    letters = "abcdefgh"[: draw.randint(3, 8)]
    lengths = {letter: draw.choice([1, 2, 3, 4, 5, 10]) for letter in letters}
    count = draw.randint(3, 7)
    operands = ["".join(draw.sample(letters, draw.randint(0, min(4, len(letters))))) for _ in range(count)]
    used = sorted(set("".join(operands)))
    result = "".join(draw.sample(used, draw.randint(0, min(len(used), 4))))
    return ",".join(operands) + "->" + result, [[lengths[letter] for letter in operand] for operand in operands]


# Random seeds, three of which contract more than two operands at once; then forms that people write.
CASES = [expression(seed) for seed in [*range(30), 126, 288, 943]] + [
    ("ij->ji", [[2, 3]]),
    ("ij->", [[2, 3]]),
    ("ij,jk", [[2, 3], [3, 4]]),
    ("i,j->ij", [[2], [3]]),
    ("...ij,jk,...kl->...il", [[5, 2, 3], [3, 4], [5, 4, 6]]),
    ("ij,jk,kl->il", [[100, 2], [2, 100], [100, 2]]),
    ("bij,bkj,bkl,lm->bim", [[2, 3, 4], [2, 5, 4], [2, 5, 6], [6, 7]]),
]


def main():
    entries = []
    for subscripts, shapes in CASES:
        path, text = mx.einsum_path(subscripts, *[mx.zeros(shape) for shape in shapes])
        entries.append({"subscripts": subscripts, "shapes": shapes, "path": path, "text": text})
    lines = ",\n".join(json.dumps(entry) for entry in entries)
    Path(__file__).with_name("einsum_paths.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
