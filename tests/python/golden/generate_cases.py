#!/usr/bin/env python3
"""Writes fast.npz and gradients.npz: what MLX gives for every case of fast_cases and of gradient_cases.

usage: generate_cases.py [FOLDER]  (with MLX 0.32.4 and NumPy installed; default: where this file lies)
"""

import sys
from pathlib import Path

import mlx.core as mx

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import fast_cases  # noqa: E402
import gradient_cases  # noqa: E402
import stored  # noqa: E402


def main():
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    mx.set_default_device(mx.cpu)
    for name, module in (("fast", fast_cases), ("gradients", gradient_cases)):
        stored.save(folder / f"{name}.npz", {case: stored.outcome(mx, call) for case, call in module.cases(mx)})


if __name__ == "__main__":
    main()
