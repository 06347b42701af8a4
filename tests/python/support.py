"""What several test files use: dtypes beside NumPy's, inputs in several layouts, and comparisons."""

import numpy as np
import pytest

import weft.core as mx

IS_MLX = mx.__name__.startswith("mlx")
"""Whether the tests run with MLX in Weft's place, which shows that they expect what it does."""

INTEGERS = "int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()
FLOATS = "float16 bfloat16 float32 float64".split()
REALS = ["bool_", *INTEGERS, *FLOATS]
ALL = [*REALS, "complex64"]
RELATIVE = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 3e-6, "float64": 3e-6, "complex64": 1e-5}
"""How far results of a dtype may be from NumPy's, relative to max(1, |result|). Functions of float64 may be computed in
float32 in MLX; here they are not."""


def name_of(dtype):
    return str(dtype).rsplit(".", 1)[-1].removesuffix("_")


def host(x):
    """The NumPy array of an array; bfloat16 comes as float32."""
    return np.array(x.astype(mx.float32) if x.dtype == mx.bfloat16 else x)


def device_array(values, dtype):
    """An array of one of ALL."""
    dtype = getattr(mx, dtype)
    return mx.array(values).astype(dtype) if dtype == mx.bfloat16 else mx.array(values, dtype)


def draw(dtype, shape, seed=0, low=-3.0, high=3.0):
    """Random numbers of a dtype, small enough for products."""
    r = np.random.default_rng(seed)
    if dtype in ("bool", "bool_"):
        return r.random(shape) < 0.5
    if dtype.startswith(("int", "uint")):
        return r.integers(max(0, int(low)) if dtype[0] == "u" else int(low), int(high) + 1, shape).astype(dtype)
    values = r.uniform(low, high, shape)
    if dtype == "complex64":
        return (values + 1j * r.uniform(low, high, shape)).astype(np.complex64)
    return host(device_array(values.astype(np.float32), dtype)) if dtype != "float64" else values


LAYOUTS = {
    "contiguous": (lambda x: x, lambda x: x),
    "transposed": (lambda x: x.T, lambda x: x.T),
    "reversed": (lambda x: x[::-1], lambda x: x[::-1]),
    "strided": (lambda x: x[..., ::2], lambda x: x[..., ::2]),
    "broadcast": (lambda x: mx.broadcast_to(x, (2, *x.shape)), lambda x: np.broadcast_to(x, (2, *x.shape))),
}


def pair(dtype, shape, layout="contiguous", **options):
    """An array and its values in NumPy, exact and wide: integers as they are, floats in float64."""
    values = draw(dtype, shape, **options)
    x = device_array(values, dtype)
    of_array, of_values = LAYOUTS[layout]
    wide = {"float16": np.float64, "bfloat16": np.float64, "float32": np.float64, "complex64": np.complex128}
    return of_array(x), of_values(values.astype(wide.get(dtype, values.dtype)))


def assert_equal(x, expected, dtype=None):
    """Hold an array to equal values and to a dtype."""
    expected = np.asarray(expected)
    assert tuple(x.shape) == expected.shape
    if dtype is not None:
        assert x.dtype == (getattr(mx, dtype) if isinstance(dtype, str) else dtype)
    np.testing.assert_array_equal(host(x), expected)


def assert_close(x, expected, factor=1.0, tolerance=None):
    """Hold an array to values within its dtype's tolerance."""
    expected = np.asarray(expected)
    assert tuple(x.shape) == expected.shape
    bound = tolerance if tolerance is not None else factor * RELATIVE.get(name_of(x.dtype), 0)
    actual = host(x)
    if actual.dtype.kind in "fc":
        actual = actual.astype(np.complex128 if actual.dtype.kind == "c" else np.float64)
    np.testing.assert_allclose(actual, expected, rtol=bound, atol=bound)


def module(name):
    """A package that a test needs, or a reason to skip."""
    return pytest.importorskip(name)
