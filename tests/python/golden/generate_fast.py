#!/usr/bin/env python3
"""Writes fast.npz: what MLX gives for every case of fast_cases.

usage: generate_fast.py  (with MLX 0.32.4 and NumPy installed)
"""

import sys
from pathlib import Path

import mlx.core as mx

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent))

import fast_cases  # noqa: E402
import stored  # noqa: E402


def main():
    mx.set_default_device(mx.cpu)
    stored.save(FOLDER / "fast.npz", {name: stored.outcome(mx, call) for name, call in fast_cases.cases(mx)})


if __name__ == "__main__":
    main()
