"""mx.fast and quantised products: values and classes of exceptions beside mlx's."""

import sys
from pathlib import Path

import numpy as np
import pytest
from fast_cases import cases
from support import IS_MLX, pair

import weft.core as mx

GOLDEN = Path(__file__).parent / "golden"
sys.path.insert(0, str(GOLDEN))

import stored  # noqa: E402

EXPECTED = stored.load(GOLDEN / "fast.npz")
CASES = dict(cases(mx))
BOUNDS = {"float32": 1e-5, "float16": 4e-3, "bfloat16": 3e-2}


def test_cases_are_those_of_the_file():
    assert set(CASES) == set(EXPECTED)


@pytest.mark.parametrize("name", sorted(CASES))
def test_case(name):
    found, expected = stored.outcome(mx, CASES[name]), EXPECTED[name]
    assert isinstance(found, str) == isinstance(expected, str), found
    if isinstance(expected, str):
        assert found == expected
        return
    assert len(found) == len(expected)
    for (dtype, got), (wanted, values) in zip(found, expected):
        assert dtype == wanted and got.shape == values.shape
        if values.dtype.kind != "f":
            np.testing.assert_array_equal(got, values)
            continue
        bound = BOUNDS[dtype] * max(1.0, np.abs(values).max(initial=0, where=np.isfinite(values)))
        np.testing.assert_allclose(got, values, rtol=BOUNDS[dtype], atol=bound)


@pytest.mark.skipif(IS_MLX, reason="MLX has qqmm on Apple's GPUs alone")
@pytest.mark.parametrize("mode, group_size, bits", [("nvfp4", 16, 4), ("mxfp8", 32, 8)])
def test_qqmm_is_the_product_of_what_the_codes_stand_for(mode, group_size, bits):
    how = {"mode": mode, "group_size": group_size, "bits": bits}
    (x, _), (w, _) = pair("float32", (5, 128)), pair("float32", (24, 128), seed=1)

    def rounded(v):
        return np.array(mx.dequantize(*mx.quantize(v, **how), **how).astype(mx.float32))

    expected = rounded(x) @ rounded(w).T
    codes, scales = mx.quantize(w, **how)
    for got in (mx.qqmm(x, w, **how), mx.qqmm(x, codes, scales, **how)):
        np.testing.assert_allclose(np.array(got), expected, rtol=1e-4, atol=1e-4)
    slopes = mx.grad(lambda x: mx.qqmm(x, w, **how).sum())(x)
    np.testing.assert_allclose(np.array(slopes), np.tile(rounded(w).sum(0), (5, 1)), rtol=1e-4, atol=1e-3)
    with pytest.raises(ValueError):
        mx.qqmm(x[:, :100], w, **how)
