"""Arrays as Python objects: construction, dtypes, conversions, printing, pickling, exchange with other libraries."""

import copy
import ctypes
import math
import pickle

import numpy as np
import pytest
from support import ALL, FLOATS, INTEGERS, IS_MLX, REALS, assert_equal, device_array, draw, host, module, name_of

import weft.core as mx

NUMPY_DTYPES = [d for d in ALL if d != "bfloat16"]


@pytest.mark.parametrize(
    "value, dtype",
    [
        (1, "int32"),
        (2**31 - 1, "int32"),
        (-(2**31), "int32"),
        (2**31, "int64"),
        (2**40, "int64"),
        (-(2**63), "int64"),
        (True, "bool_"),
        (1.5, "float32"),
        (1j, "complex64"),
        ([1, 2], "int32"),
        ((1, 2), "int32"),
        ([1, 2.5], "float32"),
        ([True, False], "bool_"),
        ([True, 2], "int32"),
        ([1, 2**40], "int64"),
        ([1, 1j], "complex64"),
        ([], "float32"),
        ([[]], "float32"),
        ([[], []], "float32"),
        ([[[1]], [[2]]], "int32"),
        ([(1, 2), [3, 4]], "int32"),
        ([[1.0, 2.0], [3.0, 4.0]], "float32"),
    ],
)
def test_dtype_and_shape_follow_from_the_value(value, dtype):
    assert_equal(mx.array(value), np.array(value), dtype)


@pytest.mark.parametrize("value", [[[1, 2], [3]], [[1], 2], [1, [2]], [[[1]], [2]], [[1, 2], [], [3]]])
def test_ragged_lists_are_refused(value):
    with pytest.raises(ValueError):
        mx.array(value)


@pytest.mark.parametrize("value", ["a", [None], {}, ["a"], [{}], range(3)])
def test_other_objects_are_refused(value):
    with pytest.raises((ValueError, TypeError)):
        mx.array(value)


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1])
def test_integers_of_more_than_64_bits_are_refused(value):
    with pytest.raises((RuntimeError, OverflowError, ValueError)):
        mx.array(value)


def test_lists_of_arrays():
    assert_equal(mx.array([mx.array(1), mx.array(2)]), [1, 2], "int32")
    assert_equal(mx.array([mx.array(1), 2.5]), [1, 2.5], "float32")
    assert_equal(mx.array([mx.array([1, 2]), mx.array([3.0, 4.0])]), [[1, 2], [3, 4]], "float32")
    with pytest.raises(ValueError):
        mx.array([mx.array([1, 2]), mx.array([3])])


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("value", [1, [0, 1, 2], [[1.0, 0.0]], True])
def test_a_dtype_may_be_given(value, dtype):
    x = mx.array(value, getattr(mx, dtype))
    assert x.dtype == getattr(mx, dtype) and name_of(x.dtype) == dtype.rstrip("_")
    np.testing.assert_array_equal(host(x), np.array(value).astype(host(x).dtype))


def test_lists_of_arrays_and_lists():
    one, two = mx.array([1]), mx.array([2.5])
    assert_equal(mx.array([one, [2]]), [[1], [2]], "int32")
    assert_equal(mx.array([[one, [2]], [[3], two]]), [[[1], [2]], [[3], [2.5]]], "float32")
    assert_equal(mx.array([[1], two], mx.float16), [[1], [2.5]], "float16")
    for wrong in ([one, 2], [one, [1, 2]], [[1, 2], 3], [mx.array([[1]]), [2]]):
        with pytest.raises(ValueError):
            mx.array(wrong)


def test_a_dtype_is_a_dtype():
    for dtype in ("float32", np.float32, float):
        with pytest.raises(TypeError):
            mx.array(1, dtype)


def test_casts_of_numbers_truncate():
    assert_equal(mx.array([1.7, -1.7], mx.int32), [1, -1], "int32")
    assert_equal(mx.array(1.5, mx.int32), 1, "int32")
    assert_equal(mx.array(5, mx.bool_), True, "bool_")


@pytest.mark.parametrize("dtype", NUMPY_DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 3, 4), (0,), (2, 0, 3)])
def test_numpy_arrays(dtype, shape):
    values = draw(dtype.rstrip("_"), shape)
    values = np.asarray(values, np.dtype(dtype.rstrip("_")))
    default = "float32" if dtype == "float64" else dtype
    assert_equal(mx.array(values), values.astype(np.float32) if dtype == "float64" else values, default)
    assert_equal(mx.array(values, getattr(mx, dtype)), values, dtype)


@pytest.mark.parametrize(
    "view", [lambda v: v.T, lambda v: v[:, ::2], lambda v: v[1:, 1:], lambda v: v.transpose(1, 0)[1], np.asfortranarray]
)
def test_numpy_views(view):
    values = view(np.arange(12, dtype=np.float32).reshape(3, 4))
    assert_equal(mx.array(values), values, "float32")


def test_float64_keeps_its_digits():
    assert mx.array(np.array([math.pi]), mx.float64).tolist() == [math.pi]
    assert mx.array([math.pi], mx.float64).item() == math.pi
    assert mx.array(math.pi, mx.float64).item() == math.pi


@pytest.mark.parametrize("scalar, dtype", [(np.int8(3), "int8"), (np.float16(1.5), "float16"), (np.bool_(1), "bool_")])
def test_numpy_scalars_keep_their_dtype(scalar, dtype):
    assert_equal(mx.array(scalar), scalar, dtype)


def test_numpy_complex128_and_float64_become_narrow():
    assert mx.array(np.zeros(3, np.complex128)).dtype == mx.complex64
    assert mx.array(np.float64(1)).dtype == mx.float32


def test_a_copy_does_not_follow_numpy():
    values = np.zeros(3, np.float32)
    x = mx.array(values)
    values[:] = 1
    assert_equal(x, np.zeros(3))


@pytest.mark.parametrize("data", [b"ab", bytearray(b"ab"), memoryview(b"ab")])
def test_objects_with_a_buffer(data):
    assert_equal(mx.array(data), [97, 98], "uint8")


def test_bfloat16_of_ml_dtypes():
    kind = module("ml_dtypes").bfloat16
    x = mx.array(np.array([1.5, -2.0], kind))
    assert x.dtype == mx.bfloat16 and x.tolist() == [1.5, -2.0]


PROMOTION = [
    ("int8", 1, "int8"),
    ("uint8", 1, "uint8"),
    ("bool_", 1, "int32"),
    ("bool_", True, "bool_"),
    ("int8", 1.5, "float32"),
    ("int64", 1.5, "float32"),
    ("float16", 1.5, "float16"),
    ("bfloat16", 1.5, "bfloat16"),
    ("float16", 1, "float16"),
    ("float64", 1.5, "float64"),
    ("int32", True, "int32"),
    ("float32", 1j, "complex64"),
    ("int32", 1j, "complex64"),
    ("complex64", 2, "complex64"),
]


@pytest.mark.parametrize("dtype, scalar, expected", PROMOTION)
def test_python_scalars_are_weak(dtype, scalar, expected):
    x = mx.ones((2,), getattr(mx, dtype))
    for result in (x + scalar, scalar + x, x * scalar, mx.add(x, scalar), mx.maximum(x, scalar)):
        assert result.dtype == getattr(mx, expected)


@pytest.mark.parametrize(
    "a, b, expected",
    [
        ("int8", "uint8", "int16"),
        ("int8", "uint16", "int32"),
        ("int16", "uint32", "int64"),
        ("int64", "uint64", "float32"),
        ("int64", "float16", "float16"),
        ("uint64", "bfloat16", "bfloat16"),
        ("float16", "bfloat16", "float32"),
        ("float16", "float64", "float64"),
        ("float64", "complex64", "complex64" if IS_MLX else "complex128"),
        ("bool_", "uint8", "uint8"),
        ("uint8", "uint32", "uint32"),
    ],
)
def test_promotion_of_arrays(a, b, expected):
    x, y = mx.ones((2,), getattr(mx, a)), mx.ones((2,), getattr(mx, b))
    assert (x + y).dtype == (y + x).dtype == mx.result_type(x, y) == getattr(mx, expected)
    assert mx.result_type(getattr(mx, a), getattr(mx, b)) == getattr(mx, expected)


@pytest.mark.parametrize("dtype", REALS)
def test_tolist_and_item(dtype):
    x = mx.array([[1, 0], [1, 1]], getattr(mx, dtype))
    kind = bool if dtype == "bool_" else float if dtype in FLOATS else int
    assert x.tolist() == [[1, 0], [1, 1]] and type(x.tolist()[0][0]) is kind
    assert x[0, 0].item() == 1 and type(x[0, 0].item()) is kind
    assert mx.array(1, getattr(mx, dtype)).tolist() == 1
    assert mx.array([[1]], getattr(mx, dtype)).item() == 1


def test_tolist_of_nothing_and_of_complex():
    assert mx.zeros((0,)).tolist() == [] and mx.zeros((2, 0)).tolist() == [[], []]
    assert mx.array([1 + 2j]).tolist() == [1 + 2j] and mx.array(1j).item() == 1j


@pytest.mark.parametrize("read", [lambda x: x.item(), bool, int, float])
def test_one_element_only(read):
    for x in (mx.zeros((2, 2)), mx.zeros((0,))):
        with pytest.raises(ValueError):
            read(x)


def test_numbers():
    assert int(mx.array(2.7)) == 2 and float(mx.array(2)) == 2.0 and complex(mx.array(2j)) == 2j
    assert int(mx.array([3])) == 3 and not bool(mx.array(0)) and bool(mx.array([1]))
    assert [10, 20, 30][mx.array(1)] == 20 and mx.array(3).__index__() == 3
    with pytest.raises(TypeError):
        float(mx.array(1j))


def test_length_and_iteration():
    x = mx.array([[1, 2], [3, 4]])
    assert len(x) == 2 and len(mx.zeros((0, 3))) == 0
    rows = list(x)
    assert [r.tolist() for r in rows] == [[1, 2], [3, 4]] and isinstance(rows[0], mx.array)
    a, b = x
    assert b.tolist() == [3, 4]
    for f in (len, list):
        with pytest.raises(TypeError):
            f(mx.array(1))


PRINTED = [
    ([[1.0, 2.0], [3.0, 4.0]], "array([[1, 2],\n       [3, 4]], dtype=float32)"),
    (1, "array(1, dtype=int32)"),
    ([True, False], "array([True, False], dtype=bool)"),
    ([], "array([], dtype=float32)"),
    ([[], []], "array([[],\n       []], dtype=float32)"),
    ([1 + 2j], "array([1+2j], dtype=complex64)"),
    ([1e-10, 1e10, 123456789.0], "array([1e-10, 1e+10, 1.23457e+08], dtype=float32)"),
    ([1.5, math.nan, math.inf], "array([1.5, nan, inf], dtype=float32)"),
]


@pytest.mark.parametrize("value, text", PRINTED)
def test_printing(value, text):
    assert repr(mx.array(value)) == str(mx.array(value)) == text


def test_printing_of_long_arrays():
    assert repr(mx.arange(2000)) == "array([0, 1, 2, ..., 1997, 1998, 1999], dtype=int32)"
    assert repr(mx.zeros((2, 1000))).count("...") == 2
    assert "dtype=bfloat16" in repr(mx.zeros(2, mx.bfloat16))


def test_format():
    assert f"{mx.array(1)}" == "1" and f"{mx.array([1, 2])}" == "array([1, 2], dtype=int32)"
    assert f"{mx.array(1.23456):.2f}" == "1.23" and f"{mx.array(3):5d}" == "    3" and "%d" % mx.array(2) == "2"
    with pytest.raises(TypeError):
        f"{mx.array([1.0, 2.0]):.2f}"


def test_print_options():
    with mx.printoptions(precision=2):
        assert str(mx.array(1.23456)) == "array(1.23, dtype=float32)"
    assert str(mx.array(1.23456)) == "array(1.23456, dtype=float32)"
    mx.set_printoptions(precision=3)
    assert mx.get_printoptions().precision == 3
    assert str(mx.array([1.5, 1.23456])) == "array([1.500, 1.235], dtype=float32)"
    mx.set_printoptions()
    assert str(mx.array(1.23456)) == "array(1.23456, dtype=float32)"


def test_hash_is_identity():
    x = mx.array([1, 2])
    assert hash(x) == hash(x) and {x: 1}[x] == 1 and hash(x) != hash(mx.array(x))


@pytest.mark.parametrize("dtype", [d for d in ALL if d != "float64"])  # pickled as float32 by MLX
@pytest.mark.parametrize("view", [lambda x: x, lambda x: x.T, lambda x: x[::-1]])
def test_pickle_and_copy(dtype, view):
    x = view(device_array(draw(dtype, (2, 3)), dtype))
    copies = [pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy({"a": x})["a"]]
    for other in copies:
        assert_equal(other, host(x), x.dtype)
    copies[1][0] = 0
    assert_equal(copies[2], host(x))


@pytest.mark.parametrize(
    "dtype, code",
    [("float32", "f"), ("float16", "e"), ("bool_", "?"), ("complex64", "Zf"), ("int64", "q"), ("uint8", "B")],
)
def test_buffer_protocol(dtype, code):
    x = mx.ones((2, 3), getattr(mx, dtype))
    view = memoryview(x)
    assert view.shape == (2, 3) and view.itemsize == x.itemsize and view.nbytes == x.nbytes
    assert view.format == code or (code == "q" and view.format == "l")
    assert np.array_equal(np.asarray(view), host(x))


def test_buffers_of_views():
    x = mx.array([[1, 2, 3], [4, 5, 6]], mx.uint8)
    assert bytes(x) == b"\1\2\3\4\5\6" and np.array_equal(np.asarray(memoryview(x.T)), host(x).T)
    assert memoryview(mx.array(1)).shape == ()


@pytest.mark.parametrize("dtype", NUMPY_DTYPES)
def test_to_numpy(dtype):
    values = draw(dtype, (2, 3))
    x = device_array(values, dtype)
    for result in (np.array(x), np.asarray(x), x.__array__()):
        assert result.dtype == values.dtype and np.array_equal(result, values)
    assert np.array_equal(np.array(x.T), values.T)
    assert np.array_equal(np.array(mx.broadcast_to(x[0], (4, 3))), np.broadcast_to(values[0], (4, 3)))
    if dtype != "complex64":
        assert np.array(x, dtype=np.float64).dtype == np.float64


def test_numpy_functions_take_arrays():
    x = mx.array([1.0, 4.0])
    assert np.sqrt(np.asarray(x)).tolist() == [1, 2] and np.sum(np.asarray(x)) == 5


@pytest.mark.parametrize("dtype", NUMPY_DTYPES)
def test_dlpack_both_ways_with_numpy(dtype):
    values = draw(dtype, (3, 4))
    x = device_array(values, dtype)
    for a, expected in ((x, values), (x.T, values.T)):
        if a.__dlpack_device__()[0] == 1:  # in the host's memory, the only one that NumPy takes
            assert np.array_equal(np.from_dlpack(a), expected)
    if dtype != "float64":
        assert_equal(mx.from_dlpack(values), values, dtype)
        assert_equal(mx.from_dlpack(values.T), values.T, dtype)
    assert len(x.__dlpack_device__()) == 2


def test_from_dlpack_refuses_other_objects():
    with pytest.raises(TypeError):
        mx.from_dlpack(5)


class Tensor:
    """A tensor of one axis that is made by hand, and counts how often it is given back."""

    def __init__(self, data, length, code=2, bits=32, device=(1, 0)):
        self.released, self.device = 0, device
        self.shape = (ctypes.c_int64 * 1)(length)
        deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)

        class Managed(ctypes.Structure):
            _fields_ = [
                ("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p), ("offset", ctypes.c_uint64),
                ("context", ctypes.c_void_p), ("deleter", deleter),
            ]

        def release(_):
            self.released += 1

        self.release = deleter(release)
        shape = ctypes.addressof(self.shape)
        where = (ctypes.c_int32 * 2)(*device)
        self.managed = Managed(data, where, 1, code, bits, 1, shape, None, 0, None, self.release)

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self):  # of before DLPack 1.0
        make = ctypes.pythonapi.PyCapsule_New
        make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return make(ctypes.addressof(self.managed), b"dltensor", None)


@pytest.mark.skipif(IS_MLX, reason="MLX takes other tensors")
def test_tensors_are_given_back_once():
    values = (ctypes.c_float * 3)(1, 2, 3)
    good = Tensor(ctypes.addressof(values), 3)
    x = mx.from_dlpack(good)
    assert x.tolist() == [1, 2, 3] and good.released == 0
    del x
    assert good.released == 1
    empty = Tensor(None, 0)
    assert mx.from_dlpack(empty).shape == (0,) and empty.released == 1
    odd = Tensor(ctypes.addressof(values) + 1, 2)  # not aligned: copied
    assert mx.from_dlpack(odd).shape == (2,) and odd.released == 1
    missing = Tensor(None, 3)
    with pytest.raises(ValueError, match="its pointer is null"):
        mx.from_dlpack(missing)
    assert missing.released == 1


@pytest.mark.skipif(IS_MLX, reason="MLX takes other tensors")
def test_tensors_that_are_refused_stay_their_owners():
    values = (ctypes.c_float * 3)(1, 2, 3)
    for wrong, words in [({"code": 7}, "dtype that Weft lacks"), ({"device": (8, 0)}, "device type 8")]:
        tensor = Tensor(ctypes.addressof(values), 3, **wrong)
        with pytest.raises(ValueError, match=words):
            mx.from_dlpack(tensor)
        assert tensor.released == 0  # its capsule still has it
    if not mx.cuda.is_available():
        with pytest.raises(ValueError, match="no GPU"):
            mx.from_dlpack(Tensor(ctypes.addressof(values), 3, device=(2, 0)))


@pytest.mark.skipif(IS_MLX, reason="MLX takes other tensors")
def test_dlpack_on_the_cpu_by_the_protocol():
    x = mx.arange(4.0, stream=mx.cpu)
    assert x.__dlpack_device__() == (1, 0)
    assert np.from_dlpack(x).tolist() == [0, 1, 2, 3]
    x.__dlpack__(stream=None, max_version=(1, 1), dl_device=(1, 0), copy=False)
    for device in [(1, 1), (8, 0), (2, 99)]:
        with pytest.raises(BufferError, match="no device"):
            x.__dlpack__(dl_device=device)
    with pytest.raises(ValueError, match="float8"):
        x.astype(mx.float8_e4m3).__dlpack__()


def test_torch():
    torch = module("torch")
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert_equal(mx.from_dlpack(torch.from_numpy(values)), values, "float32")
    assert_equal(mx.array(torch.from_numpy(values).bfloat16()), values, "bfloat16")
    assert np.array_equal(torch.from_dlpack(mx.array(values)).cpu().numpy(), values)


def test_jax():
    jnp = pytest.importorskip("jax.numpy")
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert_equal(mx.array(jnp.asarray(values)), values, "float32")
    assert np.array_equal(np.asarray(jnp.from_dlpack(mx.array(values))), values)


def test_asarray():
    x = mx.array([1.0, 2.0])
    assert_equal(mx.asarray(x), [1, 2], "float32")
    assert_equal(mx.asarray([1, 2]), [1, 2], "int32")
    assert_equal(mx.asarray(np.arange(3)), [0, 1, 2], "int64")
    assert_equal(mx.asarray(x, dtype=mx.int32), [1, 2], "int32")


def test_attributes():
    x = mx.zeros((2, 3, 4))
    assert (x.shape, x.ndim, x.size, x.itemsize, x.nbytes) == ((2, 3, 4), 3, 24, 4, 96)
    assert x.T.shape == (4, 3, 2) and x.mT.shape == (2, 4, 3) and mx.array(1).T.shape == ()
    assert mx.zeros((2,), mx.bfloat16).nbytes == 4 and mx.zeros((0, 3)).nbytes == 0
    with pytest.raises(ValueError):
        mx.ones(3).mT
    with pytest.raises(AttributeError):
        x.missing
    z = mx.array([1 + 2j])
    assert_equal(z.real, [1], "float32")
    assert_equal(z.imag, [2], "float32")
    assert_equal(mx.array([1, 2]).imag, [0, 0], "int32")
    assert x.__array_namespace__() is mx


def test_dtypes():
    assert str(mx.float32).endswith("core.float32") and repr(mx.float32) == str(mx.float32)
    assert mx.float32 == mx.float32 and mx.float32 != mx.int32 and mx.float32 != "float32"
    assert len({mx.float32, mx.float32, mx.int32}) == 2
    sizes = {name: getattr(mx, name).size for name in ALL}
    assert sizes["bool_"] == 1 and sizes["bfloat16"] == 2 and sizes["complex64"] == 8 and sizes["float64"] == 8


@pytest.mark.parametrize(
    "dtype, category, expected",
    [
        ("float32", "floating", True),
        ("int32", "floating", False),
        ("complex64", "inexact", True),
        ("uint8", "integer", True),
        ("uint8", "signedinteger", False),
        ("uint8", "unsignedinteger", True),
        ("bool_", "generic", True),
        ("bool_", "number", False),
    ],
)
def test_categories(dtype, category, expected):
    assert mx.issubdtype(getattr(mx, dtype), getattr(mx, category)) is expected


def test_isdtype_and_can_cast():
    assert mx.isdtype(mx.float32, "real floating") and not mx.isdtype(mx.float32, ("integral", "bool"))
    assert mx.can_cast(mx.int8, mx.int16) and not mx.can_cast(mx.float32, mx.int16)


def test_limits():
    assert mx.iinfo(mx.int8).min == -128 and mx.iinfo(mx.uint64).max == 2**64 - 1
    for dtype in ("float16", "float32", "float64"):
        mine, numpy = mx.finfo(getattr(mx, dtype)), np.finfo(dtype)
        assert mine.eps == numpy.eps and mine.max == numpy.max and mine.min == numpy.min and mine.bits == numpy.bits
        assert mine.smallest_normal == numpy.smallest_normal
    assert mx.finfo(mx.bfloat16).eps == 2**-7 and mx.finfo(mx.complex64).dtype == mx.float32
    for make, dtype in ((mx.finfo, mx.int32), (mx.iinfo, mx.float32)):
        with pytest.raises(ValueError):
            make(dtype)


@pytest.mark.parametrize("source", ALL)
@pytest.mark.parametrize("target", REALS)
def test_astype(source, target):
    values = np.array([0, 1, 2, 3]).astype("float32" if source == "bfloat16" else source.rstrip("_"))
    x = device_array(values, source).astype(getattr(mx, target))
    wide = values.real.astype(np.bool_ if target == "bool_" else np.float64)
    assert x.dtype == getattr(mx, target) and host(x).tolist() == wide.tolist()


def test_view():
    x = mx.array([[1.0, 2.0], [3.0, 4.0]])
    assert_equal(x.view(mx.int32), host(x).view(np.int32), "int32")
    assert x.view(mx.int8).shape == (2, 8) and x.view(mx.complex64).shape == (2, 1)
    assert_equal(mx.view(x.view(mx.uint16), mx.float32), host(x), "float32")


def test_constants():
    assert (mx.e, mx.pi, mx.inf, mx.newaxis) == (math.e, math.pi, math.inf, None) and math.isnan(mx.nan)
    assert mx.euler_gamma == pytest.approx(0.5772156649015329)


def test_every_integer_dtype_keeps_its_ends():
    for dtype in INTEGERS:
        info = np.iinfo(dtype)
        values = np.array([info.min, info.max], dtype)
        assert_equal(mx.array(values), values, dtype)
        assert mx.array(values).tolist() == values.tolist()


@pytest.mark.parametrize("dtype, number", [("int32", 3000000000), ("int8", 128), ("uint8", -1), ("uint32", -1)])
def test_integers_that_do_not_fit_beside_an_array_are_refused(dtype, number):
    x = device_array([1], dtype)
    for call in (lambda: x + number, lambda: mx.add(x, number), lambda: x == number, lambda: mx.maximum(x, number)):
        with pytest.raises(ValueError):
            call()


@pytest.mark.parametrize("other", ["hello", [1, 2], (1, 2), {"a": 1}])
def test_operators_refuse_objects_that_are_no_operands(other):
    """A list times an integer would be a longer list."""
    x = mx.array(2)
    for call in (
        lambda: x + other,
        lambda: other + x,
        lambda: x * other,
        lambda: other * x,
        lambda: x < other,
        lambda: x**other,
        lambda: x // other,
        lambda: x & other,
    ):
        with pytest.raises(ValueError):
            call()
    with pytest.raises(ValueError):
        x *= other
    assert not x == other and x != other


@pytest.mark.skipif(IS_MLX, reason="MLX refuses them")
def test_objects_may_have_reflected_operators():
    class Other:
        def __radd__(self, x):
            return "mine"

    assert mx.array(1) + Other() == "mine"


@pytest.mark.parametrize("dtype, narrow", [("float64", "float32"), ("complex128", "complex64")])
def test_from_dlpack_makes_wide_numbers_narrow(dtype, narrow):
    values = np.array([[1.5, 2.5, 3.5], [4, 5, 6]]).astype(dtype) * (1 + 2j if "complex" in dtype else 1)
    for view in (values, values.T, values[:, 1:], values[0]):
        assert_equal(mx.from_dlpack(view), view.astype(narrow), narrow)


def test_version():
    assert len(mx.__version__.split(".")) >= 3
