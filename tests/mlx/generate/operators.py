"""Every unary, binary, reduction and scan operator, 14 dtypes, 4 layouts."""

import mlx.core as mx
import numpy as np

INTEGERS = ["uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
DTYPES = ["bool"] + INTEGERS + FLOATS + ["complex64"]
LAYOUTS = ["contiguous", "transposed", "reversed", "broadcast"]
ROWS, COLUMNS = 4, 6
COUNT = ROWS * COLUMNS
NAN, INF = float("nan"), float("inf")


def dtype_of(name):
    return getattr(mx, "bool_" if name == "bool" else name)


def numpy_dtype(name):
    return np.dtype({"bool": "?", "bfloat16": "float32"}.get(name, name))


def limits(name):
    info = np.iinfo(name)
    return int(info.min), int(info.max)


# ---- values: 24 of each dtype, for each use


def floats(name):
    """Signs, both zeros, ties of rounding, arguments of every size up to the largest number, subnormals' neighbours,
    infinities, NaN.
    """
    big, small = {
        "float16": (6e4, 6.2e-5),
        "bfloat16": (3e38, 1.2e-38),
        "float32": (3e38, 1.2e-38),
        "float64": (1.7e308, 2.3e-308),
    }[name]
    a = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        1.5,
        2.5,
        -2.5,
        3.25,
        -7.0,
        0.1,
        -0.9375,
        10.0,
        88.0,
        -87.0,
        1000.0,
        -3000.0,
        small,
        -big,
        big,
        INF,
        -INF,
        NAN,
    ]
    b = [
        1.0,
        0.0,
        -1.0,
        2.0,
        0.5,
        -0.5,
        -0.0,
        2.5,
        3.0,
        -2.0,
        2.0,
        4.0,
        0.9375,
        -3.0,
        1.0,
        0.5,
        -1000.0,
        3.0,
        2.0,
        1.0,
        INF,
        2.0,
        3.0,
        1.0,
    ]
    return a, b


def integers(name):
    low, high = limits(name)
    a = [
        0,
        1,
        2,
        3,
        5,
        7,
        10,
        12,
        31,
        64,
        100,
        127,
        high,
        high - 1,
        high // 2,
        low,
        low + 1,
        high // 3,
        4,
        6,
        9,
        11,
        1,
        0,
    ]
    b = [1, 0, 2, 5, 3, 7, 0, 2, 1, 3, 4, 120, 1, high, 2, 1, low, 5, high, 2, 9, 0, 4, 0]
    if low < 0:
        a = [-x if i % 3 == 1 and x > low else x for i, x in enumerate(a)]
        b = [-x if i % 4 == 3 and x > low else x for i, x in enumerate(b)]
    return a, b


COMPLEX_A = [
    0,
    1,
    -1,
    1j,
    -1j,
    1 + 1j,
    -1.5 + 2j,
    0.25 - 3j,
    -2 - 0.5j,
    3,
    -4,
    2.5j,
    10 + 0.125j,
    -0.001 + 0.002j,
    1e-3,
    7 - 6j,
    -12 + 5j,
    0.5 + 0.5j,
    20 - 1j,
    -0.75 - 0.75j,
    1 + 1j,
    1 - 1j,
    100 + 3j,
    -3 - 100j,
]
COMPLEX_B = [
    1,
    2 - 1j,
    -1 + 0.5j,
    1j,
    3j,
    1 - 1j,
    -1.5 + 2j,
    2,
    -2 - 0.25j,
    3,
    0.5 + 2j,
    -2.5j,
    2 + 0.5j,
    1.5,
    1e-3 + 1j,
    -1 + 1j,
    0.5 - 2j,
    0.5 - 0.5j,
    1 + 3j,
    0.75,
    1 + 1j,
    1 + 1j,
    -0.5,
    1j,
]


def general(name):
    """Returns two lists of 24 values: what an operator is given where every value is defined."""
    if name == "bool":
        return [i * i % 3 == 1 for i in range(COUNT)], [i * i % 5 < 2 for i in range(COUNT)]
    if name == "complex64":
        return COMPLEX_A, COMPLEX_B
    return integers(name) if name in INTEGERS else floats(name)


def moderate(name):
    """Values whose sums and products stay in range, in four rows: two of finite ones with ties, one with an infinity,
    one with NaN.
    """
    if name in ("bool", "complex64"):
        return general(name)[0]
    if name in INTEGERS:
        a = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2, 6, 4]
        return a if limits(name)[0] == 0 else [-x if i % 5 == 2 else x for i, x in enumerate(a)]
    return [
        3.0,
        -1.0,
        4.5,
        -1.0,
        0.25,
        4.5,
        2.0,
        6.0,
        -5.0,
        3.5,
        0.0,
        -0.0,
        1.5,
        INF,
        -2.0,
        0.75,
        2.5,
        1.5,
        8.0,
        NAN,
        0.5,
        -6.0,
        2.0,
        NAN,
    ]


def divisors(name):
    """Divisors for integers and bools: none is 0, and none is -1, by which the smallest number cannot be divided."""
    b = general(name)[1]
    if name == "bool":
        return [True] * COUNT
    if name not in INTEGERS:
        return b
    return [7 if x == 0 else 3 if x == -1 else x for x in b]


def shifts(name):
    """Amounts from 0 to the width less one."""
    if name not in INTEGERS:
        return general(name)[1]
    return [i * 5 % np.dtype(name).itemsize * 8 + i % 8 for i in range(COUNT)]


def exponents(name):
    """Small exponents for integers."""
    return [i * 7 % 6 for i in range(COUNT)] if name in INTEGERS else general(name)[1]


def inside(name, target):
    """Values that a cast to the target can represent after it dropped the fraction."""
    a = general(name)[0]
    if target not in INTEGERS:
        return a
    low, high = limits(target)
    if name == "complex64":
        return [complex(abs(x.real), x.imag) if low == 0 else x for x in map(complex, a)]
    if name not in FLOATS:
        return a
    digits = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}[name]
    bits = high.bit_length() if name != "float16" else min(high.bit_length(), 15)
    top = (
        high if bits <= digits else (2**digits - 1) * 2 ** (bits - digits)
    )  # the largest number of the dtype that fits
    bottom = 0 if low == 0 else -(top // 2)
    return [min(max(x, bottom), top) if np.isfinite(x) else 3.75 for x in a]


def array(values, name):
    if name == "float64":
        return mx.array(np.array(values), dtype=mx.float64)  # without a dtype it would pass through float32
    values = np.array(values, dtype=name if name in INTEGERS else None)
    with np.errstate(over="ignore", invalid="ignore"):
        return mx.array(values.astype(numpy_dtype(name))).astype(dtype_of(name))


def laid_out(flat, layout):
    """Makes a (4, 6) array of 24 values that lies in memory as `layout` says; "broadcast" repeats the first row."""
    if layout == "transposed":
        return mx.transpose(mx.reshape(flat, (COLUMNS, ROWS)))
    a = mx.reshape(flat, (ROWS, COLUMNS))
    if layout == "reversed":
        return a[::-1, ::-1]
    return mx.broadcast_to(a[0:1], (ROWS, COLUMNS)) if layout == "broadcast" else a


# ---- operators: name, (values of each operand), function

UNARY = """abs arccos arccosh arcsin arcsinh arctan arctanh ceil conjugate cos cosh degrees erf erfinv exp expm1 floor
imag isfinite isinf isnan isneginf isposinf log
log10 log1p log2 logical_not bitwise_invert nan_to_num negative positive radians real reciprocal round rsqrt sigmoid
sign sin sinh sqrt square tan tanh trunc to_fp8
stop_gradient zeros_like ones_like""".split()
BINARY = """add subtract multiply divide maximum minimum arctan2 logaddexp equal not_equal greater greater_equal less
less_equal logical_and logical_or
logical_xor bitwise_and bitwise_or bitwise_xor isclose array_equal allclose outer inner""".split()
REDUCTIONS = (
    "all any sum prod mean var std max min argmax argmin logsumexp softmax sort argsort median count_nonzero".split()
)
SCANS = "cumsum cumprod cummax cummin logcumsumexp".split()


def count_nonzero(x, axis):
    return mx.sum(x != 0, axis=axis) if not hasattr(mx, "count_nonzero") else mx.count_nonzero(x, axis=axis)


def operators():
    """Yields (name, one function from a dtype to values for each operand, function)."""
    for name in UNARY:
        yield name, [lambda d: general(d)[0]], getattr(mx, name)
    yield "round_2", [lambda d: general(d)[0]], lambda x: mx.round(x, 2)
    for name in DTYPES:
        yield "astype_" + name, [lambda d, t=name: inside(d, t)], lambda x, t=name: x.astype(dtype_of(t))
    for name in BINARY:
        yield name, [lambda d: general(d)[0], lambda d: general(d)[1]], getattr(mx, name)
    for name in ("floor_divide", "remainder", "divmod"):
        yield name, [lambda d: general(d)[0], divisors], getattr(mx, name)
    for name in ("left_shift", "right_shift"):
        yield name, [lambda d: general(d)[0], shifts], getattr(mx, name)
    yield "power", [lambda d: general(d)[0], exponents], mx.power
    yield "where", [lambda d: general(d)[0], lambda d: general(d)[1]], lambda x, y: mx.where(x, x, y)
    yield "clip", [lambda d: general(d)[0], moderate], lambda x, y: mx.clip(
        x, mx.minimum(y, mx.ones_like(y)), mx.maximum(y, mx.ones_like(y))
    )
    for name in REDUCTIONS:
        function = count_nonzero if name == "count_nonzero" else getattr(mx, name)
        for axis in (0, 1):
            yield f"{name}_{axis}", [moderate], lambda x, f=function, axis=axis: f(x, axis=axis)
    for name in SCANS:
        function = getattr(mx, name)
        yield name, [moderate], lambda x, f=function: f(x, axis=1)
        yield name + "_reverse", [moderate], lambda x, f=function: f(x, axis=0, reverse=True)
        yield name + "_exclusive", [moderate], lambda x, f=function: f(x, axis=1, inclusive=False)


def beyond():
    """Yields what is defined in Weft alone: casts that leave the range, amounts of shifts that are negative or too
    large.
    """
    for name in INTEGERS:
        yield "astype_" + name, FLOATS, [lambda d: general(d)[0]], lambda x, t=name: x.astype(dtype_of(t))
    for name in ("left_shift", "right_shift"):
        yield name, INTEGERS, [lambda d: general(d)[0], lambda d: general(d)[1]], getattr(mx, name)


def generate(store):
    def add(kind, name, dtypes, layouts, values, function):
        for dtype in dtypes:
            flat = [array(v(dtype), dtype) for v in values]
            stored = [store.array(a) for a in flat]
            for layout in layouts:
                # The second operand lies as the first does, but for the transposed layout: there it is contiguous.
                operands = [
                    laid_out(a, layout if i == 0 or layout != "transposed" else "contiguous")
                    for i, a in enumerate(flat)
                ]
                store.add(
                    {"kind": kind, "op": name, "dtype": dtype, "layout": layout, "in": stored},
                    lambda: function(*operands),
                )

    for name, values, function in operators():
        # Casts, reductions of columns and exclusive scans are variants: two layouts will do.
        variant = name.startswith("astype_") or name.endswith("_0") or name.endswith("_exclusive")
        add("operator", name, DTYPES, LAYOUTS[:2] if variant else LAYOUTS, values, function)
    for name, dtypes, values, function in beyond():
        add("beyond", name, dtypes, ["contiguous"], values, function)
