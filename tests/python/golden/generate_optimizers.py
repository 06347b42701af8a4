#!/usr/bin/env python3
"""Writes golden/optimizers.npz: parameters and state after 20 steps of MLX's optimizers, and values of its schedules.

usage: pip install mlx==0.32.4 && tests/python/golden/generate_optimizers.py
"""

import sys
from pathlib import Path

import mlx.core as mx
import mlx.optimizers as optimizers
import numpy as np
from mlx.utils import tree_flatten

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from optimizer_cases import SHAPES, STEPS, runs, schedule_values, walk  # noqa: E402


def main():
    mx.set_default_device(mx.cpu)
    random = np.random.default_rng(20)
    stored = {f"parameter/{key}": random.normal(size=shape).astype(np.float32) for key, shape in SHAPES.items()}
    for key, shape in SHAPES.items():
        stored[f"gradient/{key}"] = random.normal(size=(STEPS, *shape)).astype(np.float32)
    inputs = dict(stored)
    for title, *run in runs():
        for path, value in walk(mx, optimizers, tree_flatten, inputs, *run).items():
            wide = value.astype(mx.float32) if value.dtype in (mx.bfloat16, mx.float16) else value
            stored[f"{title}/{path}"] = np.array(wide)
    for title, values in schedule_values(mx, optimizers).items():
        stored[f"schedule/{title}"] = np.array(values, np.float64)
    # One array of all float32 numbers, and the index of where each lies, make a far smaller file than one entry each.
    index, numbers = [], []
    for title, value in stored.items():
        index.append(f"{title}\t{value.dtype}\t{','.join(map(str, value.shape))}")
        numbers.append(np.asarray(value, np.float64).ravel())
    np.savez_compressed(
        Path(__file__).parent / "optimizers.npz",
        index=np.frombuffer("\n".join(index).encode(), np.uint8),
        numbers=np.concatenate(numbers).astype(np.float32),
    )


if __name__ == "__main__":
    main()
