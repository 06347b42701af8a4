"""Operators between arrays, and with Python's numbers: values, dtypes, reflected and in-place forms, errors."""

import operator

import numpy as np
import pytest
from support import ALL, INTEGERS, LAYOUTS, assert_close, assert_equal, draw, pair

import weft.core as mx

ARITHMETIC = {
    "add": (operator.add, np.add),
    "sub": (operator.sub, np.subtract),
    "mul": (operator.mul, np.multiply),
    "truediv": (operator.truediv, np.true_divide),
    "pow": (operator.pow, np.power),
}
DIVISION = {"floordiv": (operator.floordiv, np.floor_divide), "mod": (operator.mod, np.remainder)}
COMPARISONS = {name: (getattr(operator, name), getattr(operator, name)) for name in "eq ne lt le gt ge".split()}
BITWISE = {
    "and": (operator.and_, np.bitwise_and),
    "or": (operator.or_, np.bitwise_or),
    "xor": (operator.xor, np.bitwise_xor),
    "lshift": (operator.lshift, np.left_shift),
    "rshift": (operator.rshift, np.right_shift),
}
IN_PLACE = {
    "add": operator.iadd,
    "sub": operator.isub,
    "mul": operator.imul,
    "truediv": operator.itruediv,
    "floordiv": operator.ifloordiv,
    "mod": operator.imod,
    "pow": operator.ipow,
    "and": operator.iand,
    "or": operator.ior,
    "xor": operator.ixor,
    "lshift": operator.ilshift,
    "rshift": operator.irshift,
}
WHOLE = [d for d in ALL if d not in ("bool_",)]
EVERY = {**ARITHMETIC, **DIVISION, **COMPARISONS, **BITWISE}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", WHOLE)
@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", *COMPARISONS])
def test_values(name, dtype, layout):
    if dtype == "complex64" and name in ("lt", "le", "gt", "ge"):
        pytest.skip("NumPy orders complex numbers in another way")
    mine, numpy = EVERY[name]
    (x, a), (y, b) = pair(dtype, (4, 4), layout), pair(dtype, (4, 4), layout, seed=1)
    if name == "truediv":
        y, b = y + y.dtype.size * 0 + 4, b + 4
    if dtype in INTEGERS and name != "truediv":
        a, b = a.astype(dtype), b.astype(dtype)
    assert_close(mine(x, y), numpy(a, b), 2)


@pytest.mark.parametrize("dtype", [d for d in WHOLE if d != "complex64"])
@pytest.mark.parametrize("name", DIVISION)
def test_floor_division_and_remainder(name, dtype):
    mine, numpy = DIVISION[name]
    signed = dtype[0] not in "u"
    a = np.array([7, 6, 5, 4, 3, 2, 1, 0])
    b = np.array([3, 2, 5, 3, 2, 1, 4, 2])
    kind = dtype if dtype in INTEGERS else "float64"
    x, y = mx.array(a.tolist(), getattr(mx, dtype)), mx.array(b.tolist(), getattr(mx, dtype))
    assert_equal(mine(x, y), numpy(a.astype(kind), b.astype(kind)), dtype)
    if signed and name == "mod":
        assert_equal(mine(-x, y), numpy(-a.astype(kind), b.astype(kind)), dtype)
        assert_equal(mine(x, -y), numpy(a.astype(kind), -b.astype(kind)), dtype)


def test_floor_division_and_divmod_floor():
    x, y = mx.array([-7, 7, -7]), mx.array([2, -2, -2])
    assert_equal(x // y, [-4, -4, 3], "int32")
    quotient, remainder = mx.divmod(x, y)
    assert_equal(quotient, [-4, -4, 3], "int32")
    assert_equal(remainder, [1, -1, -1], "int32")
    assert_equal(x.astype(mx.float32) // y, [-4, -4, 3], "float32")


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", BITWISE)
def test_bitwise(name, dtype):
    mine, numpy = BITWISE[name]
    a, b = np.array([0, 1, 5, 12, 100]).astype(dtype), np.array([3, 1, 2, 0, 1]).astype(dtype)
    assert_equal(mine(mx.array(a), mx.array(b)), numpy(a, b), dtype)


@pytest.mark.parametrize("name", ["and", "or", "xor"])
def test_bitwise_of_bools(name):
    mine, numpy = BITWISE[name]
    a, b = np.array([True, True, False, False]), np.array([True, False, True, False])
    assert_equal(mine(mx.array(a), mx.array(b)), numpy(a, b), "bool_")


@pytest.mark.parametrize("dtype", [d for d in WHOLE if d != "complex64"])
def test_powers(dtype):
    a = [1, 2, 3, 4]
    x = mx.array(a, getattr(mx, dtype))
    assert_close(x**2, np.array(a) ** 2)
    assert_close(2**x, 2.0 ** np.array(a))
    assert_close(x ** mx.array([0, 1, 2, 3], getattr(mx, dtype)), np.array(a) ** np.arange(4))
    assert_close(x**0.5, np.sqrt(a), 2)


def test_wrapping():
    assert_equal(mx.array([127], mx.int8) + 1, [-128], "int8")
    assert_equal(mx.array([0], mx.uint8) - 1, [255], "uint8")
    assert_equal(mx.array([2**31 - 1]) * 2, [-2], "int32")


SCALARS = [("float32", 2.5), ("float32", 3), ("float16", 2.0), ("int32", 3), ("int32", 2.5), ("uint8", 3), ("int64", 2)]


@pytest.mark.parametrize("dtype, scalar", SCALARS)
@pytest.mark.parametrize("name", [*ARITHMETIC, *DIVISION])
def test_reflected(name, dtype, scalar):
    mine, numpy = EVERY[name]
    a = np.array([1, 2, 4], dtype)
    x = mx.array(a)
    real = isinstance(scalar, float) or dtype.startswith("float")
    wide = a.astype(np.float64) if real else a
    assert_close(mine(scalar, x), numpy(float(scalar) if real else wide.dtype.type(scalar), wide), 2)
    assert_close(mine(x, scalar), numpy(wide, scalar if real else wide.dtype.type(scalar)), 2)


@pytest.mark.parametrize("name", ["and", "or", "xor", "lshift", "rshift"])
def test_bitwise_with_integers(name):
    a = np.array([1, 2, 5], np.int32)
    assert_equal(EVERY[name][0](mx.array(a), 2), EVERY[name][1](a, 2), "int32")


@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons_with_numbers(name):
    a = np.array([1.0, 2.0, 3.0], np.float32)
    assert_equal(COMPARISONS[name][0](mx.array(a), 2), COMPARISONS[name][0](a, 2), "bool_")
    assert_equal(COMPARISONS[name][0](2, mx.array(a)), COMPARISONS[name][0](2, a), "bool_")


def test_comparisons_with_other_objects():
    x = mx.array([1, 2])
    assert (x == "a") is False and (x != "a") is True
    for f in (operator.lt, operator.le, operator.gt, operator.ge):
        with pytest.raises((TypeError, ValueError)):
            f(x, "a")


@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place_forms_rebind_and_keep_aliases(name):
    values = np.array([5, 6, 7], np.float32 if name == "truediv" else np.int32)
    x = mx.array(values)
    before = x + 0
    alias = x
    result = IN_PLACE[name](x, mx.array([1, 2, 1]))
    expected = EVERY[name][1](values, np.array([1, 2, 1]))
    assert_close(result, expected, tolerance=1e-6)
    assert_equal(before, values)
    assert result is alias  # the object is the same, its value new


def test_in_place_matmul():
    x = mx.array([[1.0, 2.0], [3.0, 4.0]])
    x @= mx.array([[0.0, 1.0], [1.0, 0.0]])
    assert_equal(x, [[2, 1], [4, 3]])


def test_in_place_with_numbers_and_broadcasting():
    x = mx.zeros((2, 3))
    x += 1
    x *= mx.array([1.0, 2.0, 3.0])
    x -= 0.5
    x /= 2
    assert_close(x, np.broadcast_to([0.25, 0.75, 1.25], (2, 3)))


def test_in_place_promotion():
    x = mx.array([1, 2])
    x += 1.5
    assert_equal(x, [2.5, 3.5], "float32")
    with pytest.raises(ValueError):
        operator.itruediv(mx.array([1, 2]), 2)


def test_unary():
    a = np.array([-1.5, 0.0, 2.0], np.float32)
    x = mx.array(a)
    assert_equal(-x, -a)
    assert_equal(abs(x), abs(a))
    assert_equal(~mx.array([True, False]), [False, True], "bool_")
    assert_equal(~mx.array([1, -2]), [-2, 1], "int32")
    for bad in (lambda: -mx.array([True]), lambda: ~x):
        with pytest.raises((ValueError, TypeError)):
            bad()


def test_matmul():
    (x, a), (y, b) = pair("float32", (3, 4)), pair("float32", (4, 5), seed=1)
    assert_close(x @ y, a @ b, 4)
    with pytest.raises(ValueError):
        x @ x
    with pytest.raises((ValueError, TypeError)):
        x @ 2


@pytest.mark.parametrize("a, b", [((2, 3), (3,)), ((2, 1), (1, 3)), ((4, 1, 3), (2, 1)), ((), (2,)), ((0, 3), (1, 3))])
def test_broadcasting(a, b):
    (x, u), (y, v) = pair("float32", a), pair("float32", b, seed=1)
    assert_close(x + y, u + v)
    assert_close(x * y, u * v)
    assert mx.broadcast_shapes(a, b) == np.broadcast_shapes(a, b)


@pytest.mark.parametrize("name", EVERY)
def test_shapes_that_do_not_match(name):
    with pytest.raises(ValueError):
        EVERY[name][0](mx.ones((2, 3), mx.int32), mx.ones((4,), mx.int32))


@pytest.mark.parametrize("name", [*ARITHMETIC, *DIVISION])
@pytest.mark.parametrize("other", ["a", None, {}, [1.0, "a"]])
def test_objects_that_are_no_numbers(name, other):
    with pytest.raises((TypeError, ValueError)):
        EVERY[name][0](mx.array([1.0]), other)


@pytest.mark.parametrize("name", ["and", "or", "xor"])
def test_bitwise_refuses_floats(name):
    with pytest.raises(ValueError):
        EVERY[name][0](mx.array([1.0]), mx.array([2.0]))


@pytest.mark.parametrize("name", [*ARITHMETIC, *DIVISION, *COMPARISONS])
def test_numpy_operands(name):
    a, b = np.array([1, 2, 3], np.float32), np.array([3, 2, 1], np.float32)
    assert_close(EVERY[name][0](mx.array(a), b), EVERY[name][1](a, b), 2)


def test_functions_and_operators_agree():
    (x, _), (y, _) = pair("float32", (3, 4)), pair("float32", (3, 4), seed=1)
    functions = {
        "add": mx.add,
        "sub": mx.subtract,
        "mul": mx.multiply,
        "truediv": mx.divide,
        "floordiv": mx.floor_divide,
        "mod": mx.remainder,
        "eq": mx.equal,
        "ne": mx.not_equal,
        "lt": mx.less,
        "le": mx.less_equal,
        "gt": mx.greater,
        "ge": mx.greater_equal,
    }
    for name, f in functions.items():
        assert_equal(f(x, y), np.array(EVERY[name][0](x, y)))


def test_long_chains():
    a = draw("float32", (100,)).astype(np.float64)
    x = mx.array(a, mx.float32)
    for _ in range(50):
        x, a = x * 0.5 + 1, a * 0.5 + 1
    assert_close(x, a)
