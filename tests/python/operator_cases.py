"""Calls of every element-wise function, reduction, scan and sort on every dtype and layout, for core modules to be
compared: 12 numbers each, with zeros, ties, NaN and infinities among them."""

import numpy as np

DTYPES = (
    "bool_", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32",
    "float64", "complex64",
)
LAYOUTS = ("contiguous", "transposed", "reversed", "broadcast")
UNARY = (
    "abs", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "bitwise_invert", "ceil", "conjugate", "cos",
    "cosh", "degrees", "erf", "erfinv", "exp", "expm1", "floor", "imag", "isfinite", "isinf", "isnan", "isneginf",
    "isposinf", "log", "log10", "log1p", "log2", "logical_not", "nan_to_num", "negative", "radians", "real",
    "reciprocal", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc",
)
BINARY = (
    "add", "arctan2", "bitwise_and", "bitwise_or", "bitwise_xor", "divide", "equal", "floor_divide", "greater",
    "greater_equal", "isclose", "left_shift", "less", "less_equal", "logaddexp", "logical_and", "logical_or", "maximum",
    "minimum", "multiply", "not_equal", "power", "remainder", "right_shift", "subtract",
)
REDUCTIONS = (
    "all", "any", "argmax", "argmin", "count_nonzero", "logsumexp", "max", "mean", "median", "min", "prod", "softmax",
    "std", "sum", "var",
)
SCANS = ("cummax", "cummin", "cumprod", "cumsum", "logcumsumexp")
SORTS = ("argsort", "sort", "topk")

FLOATS = (0.5, -1.25, 0.0, 3.0, np.nan, -0.75, np.inf, 2.0, 0.5, -np.inf, -0.0, 7.5)
FLOATS_B = (2.0, 0.5, -1.0, 3.0, 1.0, np.nan, -2.0, 0.0, 0.25, 1.5, -0.0, -3.0)
WHOLE = (3, -5, 0, 7, 2, -1, 100, 4, 3, -128, 1, 6)
WHOLE_B = (2, 3, 1, 7, 5, 2, 6, 1, 4, 3, 2, 5)


def values(dtype, second=False):
    """12 numbers of a dtype, as float32, complex64 or int64 to be converted, shape (3, 4)."""
    if dtype == "complex64":
        reals = np.array(WHOLE_B if second else WHOLE, np.float32) / 4
        return (reals + 1j * np.roll(reals, 5)).astype(np.complex64).reshape(3, 4)
    if dtype in ("float16", "bfloat16", "float32", "float64"):
        return np.array(FLOATS_B if second else FLOATS, np.float32).reshape(3, 4)
    whole = np.array(WHOLE_B if second else WHOLE, np.int64)
    if dtype == "bool_":
        whole = whole % 2
    return (abs(whole) if dtype.startswith("u") else whole).reshape(3, 4)


def argument(mx, dtype, layout, second=False):
    """The numbers as an array of a layout, shape (3, 4)."""
    x = mx.array(values(dtype, second)).astype(getattr(mx, dtype))
    if layout == "transposed":
        return mx.contiguous(x.T).T
    if layout == "reversed":
        return mx.contiguous(x[::-1, ::-1])[::-1, ::-1]
    if layout == "broadcast":
        return mx.broadcast_to(x[1:2], (3, 4))
    return x


def calls(mx):
    """(name, function of no arguments) of every case."""
    for dtype in DTYPES:
        for layout in LAYOUTS:
            yield from calls_of(mx, dtype, layout)


def calls_of(mx, dtype, layout):
    def named(name, *options):
        return "/".join((name, dtype, layout, *map(str, options)))

    with mx.stream(mx.cpu):
        a, b = argument(mx, dtype, layout), argument(mx, dtype, layout, second=True)
    for name in UNARY:
        yield named(name), lambda f=getattr(mx, name): f(a)
    for name in BINARY:
        yield named(name), lambda f=getattr(mx, name): f(a, b)
    for name in REDUCTIONS:
        for axis in (None, 0, 1):
            yield named(name, axis), lambda f=getattr(mx, name), axis=axis: f(a, axis=axis)
    for name in SCANS:
        for axis in (0, 1):
            yield named(name, axis), lambda f=getattr(mx, name), axis=axis: f(a, axis=axis)
            yield named(name, axis, "reverse"), lambda f=getattr(mx, name), axis=axis: f(a, axis=axis, reverse=True)
    for name in SORTS:
        for axis in (0, 1):
            options = {"k": 2} if name == "topk" else {}
            yield named(name, axis), lambda f=getattr(mx, name), axis=axis, o=options: f(a, axis=axis, **o)


def outcome(mx, call):
    """What a call gives: a NumPy array (bfloat16 as float32), or the name of the exception it raises."""
    try:
        result = call()
        mx.eval(result)
    except Exception as error:
        return type(error).__name__
    wide = result.astype(mx.float32) if result.dtype == mx.bfloat16 else result
    return dtype_name(result.dtype), np.array(wide)


def dtype_name(dtype):
    return str(dtype).rpartition(".")[2].removesuffix("_")
