#!/usr/bin/env python3
"""Writes nn.npz beside this file: what mlx (0.32.4, on a CPU) computes for the cases of nn_cases.py.

usage: pip install mlx==0.32.4 && tests/python/golden/generate_nn.py
"""
import json
from pathlib import Path

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from nn_cases import CASES, flat


def main():
    mx.set_default_device(mx.cpu)
    index, values = {}, []
    for name, case in CASES.items():
        leaves = flat(case(mx, nn))
        index[name] = [[leaf, list(x.shape), str(x.dtype).split(".")[-1]] for leaf, x in leaves]
        values += [np.array(x.astype(mx.float32)).reshape(-1) for _, x in leaves]
    text = np.frombuffer(json.dumps(index).encode(), np.uint8)
    np.savez_compressed(Path(__file__).with_name("nn.npz"), index=text, values=np.concatenate(values))


if __name__ == "__main__":
    main()
