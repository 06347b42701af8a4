#!/usr/bin/env python3
"""Writes the files of this folder, which other libraries wrote for the tests of tests/io.

    pip install gguf torch && tests/io/golden/generate.py gguf torch
    pip install mlx==0.32.4 && tests/io/golden/generate.py mlx

  blocks.gguf   a tensor of random blocks for each quantised type, by the package gguf
  blocks.npy    the numbers that it makes of them, one tensor after the other, as float16
  metadata.gguf values of every type, and a tensor, by gguf
  mlx.gguf      tensors and metadata, by MLX
  state.pt      tensors of every dtype and layout in nested lists and dictionaries, by PyTorch
  old.pt        the same in the format before PyTorch 1.6
"""
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent


def halves(random, count):
    """Random float16 numbers of moderate size as bytes, two a row."""
    return random.uniform(-2, 2, count).astype(np.float16).view(np.uint8).reshape(count, 2)


# The bytes at which a block has float16 numbers: any others are random.
HALVES = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82], "Q3_K": [108],
          "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0], "IQ4_XS": [0], "MXFP4": []}


def write_gguf():
    import gguf

    random = np.random.default_rng(7)
    writer = gguf.GGUFWriter(HERE / "blocks.gguf", "test")
    numbers = []
    for name, positions in HALVES.items():
        kind = gguf.GGMLQuantizationType[name]
        elements, size = gguf.GGML_QUANT_SIZES[kind]
        count = max(1, 64 // elements)
        blocks = random.integers(0, 256, (count, size), dtype=np.uint8)
        for at in positions:
            blocks[:, at:at + 2] = halves(random, count)
        if name == "MXFP4":
            blocks[:, 0] = random.integers(120, 135, count)
        rows = blocks.reshape(1, -1)
        writer.add_tensor(f"{name}.weight", rows, raw_dtype=kind)
        numbers.append(gguf.quants.dequantize(rows, kind).astype(np.float16)[0])
    finish(writer)
    np.save(HERE / "blocks.npy", np.concatenate(numbers))

    writer = gguf.GGUFWriter(HERE / "metadata.gguf", "test")
    for name, value in [("uint8", 200), ("int8", -3), ("uint16", 65535), ("int16", -5), ("uint32", 2**32 - 1),
                        ("int32", -7), ("float32", 1.5), ("bool", True), ("string", "h\u00e9llo"),
                        ("uint64", 2**64 - 1), ("int64", -2**63), ("float64", 0.1)]:
        getattr(writer, f"add_{name}")(name, value)
    for name, value in [("integers", [1, 2, 3]), ("texts", ["a", "", "bc"]), ("bools", [True, False]),
                        ("floats", [1.5, 2.5]), ("nested", [[1, 2], [3, 4], [5, 6]])]:
        writer.add_array(name, value)
    writer.add_custom_alignment(64)
    writer.add_tensor("f32", np.arange(6, dtype=np.float32).reshape(2, 3))
    writer.add_tensor("f64", np.arange(3, dtype=np.float64))
    writer.add_tensor("bf16", np.array([[0x3F80, 0xC000]], np.uint16).view(np.uint8),
                      raw_dtype=gguf.GGMLQuantizationType.BF16)
    finish(writer)


def finish(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_mlx():
    import mlx.core as mx

    mx.set_default_device(mx.cpu)
    arrays = {"float16": mx.arange(6, dtype=mx.float16).reshape(1, 2, 3), "int8": mx.array([-1, 2], dtype=mx.int8),
              "scalar": mx.array(2.5)}
    metadata = {"text": "t", "texts": ["a", "b"], "number": mx.array(7), "list": mx.array([True, False])}
    mx.save_gguf(str(HERE / "mlx.gguf"), arrays, metadata)


def write_torch():
    import torch

    count = torch.arange(24, dtype=torch.float32)
    dtypes = {str(d).removeprefix("torch."): torch.tensor([[0, 1, 1], [1, 0, 1]]).to(d) for d in (
        torch.bool, torch.uint8, torch.uint16, torch.uint32, torch.uint64, torch.int8, torch.int16, torch.int32,
        torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64,
        torch.complex128, torch.float8_e4m3fn, torch.float8_e5m2)}
    layouts = [count.reshape(4, 6).t(), count[3:9], count[1::5],
               (torch.ones(1, 1).expand(3, 4), count.unfold(0, 4, 10))]
    state = {"dtypes": dtypes, "layouts": layouts, "empty": torch.zeros(0, 3), "scalar": torch.tensor(2.5),
             "parameter": torch.nn.Parameter(count[:2].clone()), "layer.bias": count[:1].clone(), 7: count[5:6],
             "epoch": 3, "loss": 0.5, "name": "n\u00e4me", "flag": True, "none": None, "seed": 2**64 - 1,
             "size": torch.Size([1, 2]), "dtype": torch.float32, "device": torch.device("cpu"), "bytes": b"ab"}
    torch.save(state, HERE / "state.pt")
    torch.save(state, HERE / "old.pt", _use_new_zipfile_serialization=False)


if __name__ == "__main__":
    for wanted in sys.argv[1:]:
        {"gguf": write_gguf, "mlx": write_mlx, "torch": write_torch}[wanted]()
