"""Layers, losses and initializers against what mlx computes: initial parameters, results, gradients."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import weft.core as mx
import weft.nn as nn

GOLDEN = Path(__file__).parent / "golden"
sys.path.insert(0, str(GOLDEN))

from nn_cases import CASES, flat  # noqa: E402


def load():
    with np.load(GOLDEN / "nn.npz") as file:
        index, values = json.loads(file["index"].tobytes()), file["values"]
    golden, at = {}, 0
    for name, leaves in index.items():
        golden[name] = []
        for leaf, shape, dtype in leaves:
            size = int(np.prod(shape))
            golden[name].append((leaf, dtype, values[at : at + size].reshape(shape)))
            at += size
    return golden


EXPECTED = load()
# Relative and absolute bounds of results by dtype; draws and initial parameters are held to their last digits.
BOUNDS = {"float32": (2e-5, 2e-5), "bfloat16": (1e-2, 1e-2), "float16": (2e-3, 2e-3)}
DRAWS = (2e-6, 1e-7)


def bounds(name, leaf, dtype):
    drawn = leaf.split(".")[0] in ("initial", "draw") or name.startswith("init.") and name != "init.orthogonal"
    return DRAWS if drawn else BOUNDS.get(dtype, (0, 0))


def test_cases_are_those_of_the_file():
    assert set(EXPECTED) == set(CASES)


@pytest.mark.parametrize("name", sorted(CASES))
def test_case(name):
    got = flat(CASES[name](mx, nn))
    assert [leaf for leaf, _ in got] == [leaf for leaf, _, _ in EXPECTED[name]]
    for (leaf, value), (_, dtype, expected) in zip(got, EXPECTED[name]):
        assert str(value.dtype).split(".")[-1] == dtype, leaf
        assert tuple(value.shape) == expected.shape, leaf
        relative, absolute = bounds(name, leaf, dtype)
        np.testing.assert_allclose(
            np.array(value.astype(mx.float32)), expected, rtol=relative, atol=absolute, err_msg=f"{name}: {leaf}"
        )
