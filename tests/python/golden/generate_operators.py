#!/usr/bin/env python3
"""Writes operators.npz: what MLX gives for every case of operator_cases. A second run writes the same bytes.

usage: generate_operators.py  (with MLX 0.32.4 and NumPy installed)
"""

import sys
from pathlib import Path

import mlx.core as mx
import numpy as np

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent))

import operator_cases  # noqa: E402


def main():
    mx.set_default_device(mx.cpu)
    names, kinds, ranks, lengths, pieces = [], [], [], [], []
    for name, call in operator_cases.calls(mx):
        found = operator_cases.outcome(mx, call)
        names.append(name)
        if isinstance(found, str):
            kinds.append("!" + found)
            ranks.append(0)
            continue
        dtype, values = found
        kinds.append(dtype)
        ranks.append(values.ndim)
        lengths += values.shape
        pieces.append(np.ascontiguousarray(values).tobytes())
    np.savez_compressed(
        FOLDER / "operators.npz", names=np.array(names), kinds=np.array(kinds), ranks=np.array(ranks, np.uint8),
        lengths=np.array(lengths, np.uint8), data=np.frombuffer(b"".join(pieces), np.uint8))
    print(len(names), "cases,", (FOLDER / "operators.npz").stat().st_size, "bytes")


if __name__ == "__main__":
    main()
