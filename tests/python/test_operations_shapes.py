"""Creation, shapes, products of matrices, convolutions and quantisation against NumPy; keywords of MLX's signatures."""

import numpy as np
import pytest
from support import ALL, FLOATS, IS_MLX, LAYOUTS, assert_close, assert_equal, host, pair

import weft.core as mx

CREATION = [
    (lambda: mx.zeros((2, 3)), np.zeros((2, 3)), "float32"),
    (lambda: mx.zeros(3, dtype=mx.int8), np.zeros(3), "int8"),
    (lambda: mx.ones([2], dtype=mx.bool_), np.ones(2), "bool_"),
    (lambda: mx.full((2, 2), 7), np.full((2, 2), 7), "int32"),
    (lambda: mx.full((2, 3), vals=mx.array([1.0, 2.0, 3.0])), np.broadcast_to([1, 2, 3], (2, 3)), "float32"),
    (lambda: mx.full(2, 1.5, dtype=mx.float16), np.full(2, 1.5), "float16"),
    (lambda: mx.zeros_like(mx.array([1, 2])), np.zeros(2), "int32"),
    (lambda: mx.ones_like(mx.array([1, 2]), dtype=mx.float32), np.ones(2), "float32"),
    (lambda: mx.full_like(mx.array([1, 2]), 3), np.full(2, 3), "int32"),
    (lambda: mx.arange(5), np.arange(5), "int32"),
    (lambda: mx.arange(2, 8, 3), np.arange(2, 8, 3), "int32"),
    (lambda: mx.arange(5, 0, -2), np.arange(5, 0, -2), "int32"),
    (lambda: mx.arange(2**40, 2**40 + 2), np.arange(2**40, 2**40 + 2), "int64"),
    (lambda: mx.arange(2**31 - 2, 2**31), np.arange(2**31 - 2, 2**31), "int64"),
    (lambda: mx.arange(stop=2**31 - 1, start=2**31 - 2), [2**31 - 2], "int32"),
    (lambda: mx.arange(0, 2, 2**40), [0], "int64"),
    (lambda: mx.full((2,), 0.1, dtype=mx.float64), [0.1, 0.1], "float64"),
    (lambda: mx.full_like(mx.zeros(2, mx.float64), 0.1), [0.1, 0.1], "float64"),
    (lambda: mx.full_like(mx.zeros(2, mx.int32), 0.5), [0, 0], "int32"),
    (lambda: mx.pad(mx.zeros(1, mx.float64), 1, constant_values=0.1), [0.1, 0, 0.1], "float64"),
    (lambda: mx.pad(mx.zeros(1, mx.int32), 1, constant_values=2.5), [2, 0, 2], "int32"),
    (lambda: mx.arange(2.0), np.arange(2.0), "float32"),
    (lambda: mx.arange(0, 1, 0.25), np.arange(0, 1, 0.25), "float32"),
    (lambda: mx.arange(3, dtype=mx.float16), np.arange(3), "float16"),
    (lambda: mx.arange(1, 3, dtype=mx.int64), np.arange(1, 3), "int64"),
    (lambda: mx.linspace(0, 1, 5), np.linspace(0, 1, 5), "float32"),
    (lambda: mx.linspace(0, 1, num=1), np.linspace(0, 1, 1), "float32"),
    (lambda: mx.eye(3), np.eye(3), "float32"),
    (lambda: mx.eye(n=2, m=3, k=1, dtype=mx.int32), np.eye(2, 3, 1), "int32"),
    (lambda: mx.identity(2, dtype=mx.int32), np.identity(2), "int32"),
    (lambda: mx.tri(3, m=4, k=-1), np.tri(3, 4, -1), "float32"),
    (lambda: mx.empty((2, 3)).shape[0] * mx.ones(1), np.full(1, 2), "float32"),
]


@pytest.mark.parametrize("number", range(len(CREATION)))
def test_creation(number):
    make, expected, dtype = CREATION[number]
    assert make().dtype == getattr(mx, dtype)
    assert_close(make(), expected, tolerance=1e-6)


@pytest.mark.parametrize("name", ["hanning", "hamming", "bartlett", "blackman"])
def test_windows(name):
    for n in (1, 2, 7, 12):
        assert_close(getattr(mx, name)(n), getattr(np, name)(n), tolerance=1e-6)


# Name: what it does to an array and to its values, of shape (2, 3, 4).
SHAPES = {
    "reshape": (lambda x: mx.reshape(x, (4, 6)), lambda a: a.reshape(4, 6)),
    "reshape with an unknown": (lambda x: mx.reshape(x, shape=(3, -1)), lambda a: a.reshape(3, -1)),
    "flatten": (lambda x: mx.flatten(x), lambda a: a.ravel()),
    "flatten some": (lambda x: mx.flatten(x, start_axis=1, end_axis=2), lambda a: a.reshape(2, 12)),
    "unflatten": (lambda x: mx.unflatten(x, axis=2, shape=(2, 2)), lambda a: a.reshape(2, 3, 2, 2)),
    "transpose": (lambda x: mx.transpose(x), lambda a: a.transpose()),
    "transpose axes": (lambda x: mx.transpose(x, axes=(1, 2, 0)), lambda a: a.transpose(1, 2, 0)),
    "swapaxes": (lambda x: mx.swapaxes(x, 0, -1), lambda a: a.swapaxes(0, -1)),
    "moveaxis": (lambda x: mx.moveaxis(x, 0, -1), lambda a: np.moveaxis(a, 0, -1)),
    "matrix_transpose": (lambda x: mx.matrix_transpose(x), lambda a: a.swapaxes(-1, -2)),
    "expand_dims": (lambda x: mx.expand_dims(x, axis=1), lambda a: np.expand_dims(a, 1)),
    "expand_dims twice": (lambda x: mx.expand_dims(x, (0, -1)), lambda a: np.expand_dims(a, (0, -1))),
    "squeeze": (lambda x: mx.squeeze(x[:1, :, :1]), lambda a: a[:1, :, :1].squeeze()),
    "squeeze one": (lambda x: mx.squeeze(x[:1, :, :1], axis=0), lambda a: a[:1, :, :1].squeeze(0)),
    "broadcast_to": (
        lambda x: mx.broadcast_to(x[:, :1], (5, 2, 3, 4)),
        lambda a: np.broadcast_to(a[:, :1], (5, 2, 3, 4)),
    ),
    "flip": (lambda x: mx.flip(x), lambda a: np.flip(a)),
    "flip axes": (lambda x: mx.flip(x, axis=(0, 2)), lambda a: np.flip(a, (0, 2))),
    "roll": (lambda x: mx.roll(x, 5), lambda a: np.roll(a, 5)),
    "roll an axis": (lambda x: mx.roll(x, -1, 2), lambda a: np.roll(a, -1, 2)),
    "roll axes": (lambda x: mx.roll(x, (1, 2), (0, 1)), lambda a: np.roll(a, (1, 2), (0, 1))),
    "repeat": (lambda x: mx.repeat(x, 2), lambda a: np.repeat(a, 2)),
    "repeat along": (lambda x: mx.repeat(x, repeats=3, axis=1), lambda a: np.repeat(a, 3, 1)),
    "tile": (lambda x: mx.tile(x, (2, 1, 3)), lambda a: np.tile(a, (2, 1, 3))),
    "tile more": (lambda x: mx.tile(x, (2, 1, 1, 1)), lambda a: np.tile(a, (2, 1, 1, 1))),
    "concatenate": (lambda x: mx.concatenate([x, x[:1]], axis=0), lambda a: np.concatenate([a, a[:1]])),
    "concatenate flat": (lambda x: mx.concatenate([x, x], axis=None), lambda a: np.concatenate([a, a], axis=None)),
    "stack": (lambda x: mx.stack([x, x], axis=-1), lambda a: np.stack([a, a], axis=-1)),
    "pad": (lambda x: mx.pad(x, ((0, 0), (1, 2), (0, 1))), lambda a: np.pad(a, ((0, 0), (1, 2), (0, 1)))),
    "pad all": (lambda x: mx.pad(x, 1, constant_values=5), lambda a: np.pad(a, 1, constant_values=5)),
    "pad edge": (lambda x: mx.pad(x, (1, 2), mode="edge"), lambda a: np.pad(a, (1, 2), mode="edge")),
    "pad reflect": (lambda x: mx.pad(x, 1, mode="reflect"), lambda a: np.pad(a, 1, mode="reflect")),
    "pad symmetric": (lambda x: mx.pad(x, 1, mode="symmetric"), lambda a: np.pad(a, 1, mode="symmetric")),
    "diagonal": (lambda x: mx.diagonal(x), lambda a: np.diagonal(a)),
    "diagonal of axes": (lambda x: mx.diagonal(x, offset=1, axis1=1, axis2=2), lambda a: np.diagonal(a, 1, 1, 2)),
    "diag": (lambda x: mx.diag(x[0, 0], k=1), lambda a: np.diag(a[0, 0], 1)),
    "diag of a matrix": (lambda x: mx.diag(x[0], k=-1), lambda a: np.diag(a[0], -1)),
    "tril": (lambda x: mx.tril(x, k=1), lambda a: np.tril(a, 1)),
    "triu": (lambda x: mx.triu(x), lambda a: np.triu(a)),
    "contiguous": (lambda x: mx.contiguous(x.T), lambda a: a.T),
    "stop_gradient": (lambda x: mx.stop_gradient(x), lambda a: a),
    "atleast_1d": (lambda x: mx.atleast_1d(x[0, 0, 0]), lambda a: np.atleast_1d(a[0, 0, 0])),
    "atleast_2d": (lambda x: mx.atleast_2d(x[0, 0]), lambda a: np.atleast_2d(a[0, 0])),
    "atleast_3d": (lambda x: mx.atleast_3d(x[0]), lambda a: np.atleast_3d(a[0])),
}


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool_", "complex64", "bfloat16", "float64"])
@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name, dtype):
    mine, numpy = SHAPES[name]
    x, a = pair(dtype, (2, 3, 4))
    if name.startswith("tri") and dtype == "bool_":
        a = a.astype(np.int8)
    assert_equal(mine(x), numpy(a))


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name not in ("broadcast", "strided")])
@pytest.mark.parametrize("name", SHAPES)
def test_shapes_of_views(name, layout):
    mine, numpy = SHAPES[name]
    shape = (4, 3, 2) if layout == "transposed" else (2, 3, 4)
    x, a = pair("float32", shape, layout)
    assert_equal(mine(x), numpy(a))


def test_splits():
    x, a = pair("float32", (6, 4))
    for parts, expected in (
        (mx.split(x, 3), np.split(a, 3)),
        (mx.split(x, indices_or_sections=[1, 4], axis=0), np.split(a, [1, 4])),
        (mx.split(x, 2, axis=-1), np.split(a, 2, -1)),
        (mx.unstack(x, axis=1), [a[:, i] for i in range(4)]),
    ):
        assert len(parts) == len(expected)
        for part, values in zip(parts, expected):
            assert_equal(part, values)


def test_broadcast_arrays_and_meshgrid():
    x, y = mx.array([1, 2, 3]), mx.array([[1], [2]])
    for mine, numpy in zip(mx.broadcast_arrays(x, y), np.broadcast_arrays(np.array(x), np.array(y))):
        assert_equal(mine, numpy)
    for options in ({}, {"indexing": "ij"}, {"sparse": True}):
        mine = mx.meshgrid(x, y[:, 0], **options)
        for m, n in zip(mine, np.meshgrid([1, 2, 3], [1, 2], **options)):
            assert_equal(m, n)


def test_shifts_along_one_axis_add_up():
    x = np.arange(12).reshape(3, 4)
    for shift, axis in (((1, 2), 1), ((33, 33), 0), ((-1, 2), (0, 1)), (2, (0, 1)), ((1, 1), (1, 1))):
        assert_equal(mx.roll(mx.array(x), shift, axis), np.roll(x, shift, axis))


def test_broadcast_shapes_needs_a_shape():
    assert mx.broadcast_shapes((2, 1), (3,)) == (2, 3)
    with pytest.raises(ValueError):
        mx.broadcast_shapes()


def test_astype_takes_a_stream_in_its_place():
    assert_equal(mx.array([1.5]).astype(mx.int32, mx.cpu), [1], "int32")
    assert_equal(mx.array([1.5]).astype(mx.int32, stream=mx.cpu), [1], "int32")


def test_as_strided():
    x = mx.arange(10)
    assert_equal(mx.as_strided(x, shape=(3, 3), strides=(2, 1), offset=1), [[1, 2, 3], [3, 4, 5], [5, 6, 7]])


@pytest.mark.parametrize(
    "call",
    [
        lambda x: mx.reshape(x, (5, 5)),
        lambda x: mx.transpose(x, (0, 0, 1)),
        lambda x: mx.transpose(x, (0, 1)),
        lambda x: mx.squeeze(x, axis=0),
        lambda x: mx.split(x, 5),
        lambda x: mx.stack([]),
        lambda x: mx.concatenate([]),
        lambda x: mx.concatenate([x, mx.ones((2, 2, 4))], axis=0),
        lambda x: mx.broadcast_to(x, (2, 3, 5)),
        lambda x: mx.expand_dims(x, 7),
        lambda x: mx.zeros((-1,)),
        lambda x: mx.eye(-1),
        lambda x: mx.arange(0, 1, 0),
        lambda x: mx.full((2,), 300, dtype=mx.int8),
        lambda x: mx.moveaxis(x, 0, 7),
        lambda x: mx.flip(x, 3),
        lambda x: mx.sort(x, axis=3),
        lambda x: mx.tile(x, (-1,)),
    ],
)
def test_mistakes(call):
    with pytest.raises((ValueError, IndexError)):
        call(mx.ones((2, 3, 4)))


PRODUCTS = {
    "matmul": (lambda x, y: mx.matmul(x, y), lambda a, b: a @ b, (3, 4), (4, 5)),
    "matmul batched": (lambda x, y: x @ y, lambda a, b: a @ b, (2, 3, 4), (2, 4, 5)),
    "matmul broadcast": (lambda x, y: x @ y, lambda a, b: a @ b, (2, 1, 3, 4), (6, 4, 5)),
    "matmul vector": (lambda x, y: x @ y, lambda a, b: a @ b, (4,), (4, 5)),
    "matmul by a vector": (lambda x, y: x @ y, lambda a, b: a @ b, (2, 3, 4), (4,)),
    "matmul of vectors": (lambda x, y: x @ y, lambda a, b: a @ b, (4,), (4,)),
    "matmul transposed": (lambda x, y: x.T @ y.T, lambda a, b: a.T @ b.T, (4, 3), (5, 4)),
    "inner": (lambda x, y: mx.inner(x, y), np.inner, (3, 4), (5, 4)),
    "outer": (lambda x, y: mx.outer(x, y), np.outer, (3,), (4,)),
    "vecdot": (lambda x, y: mx.vecdot(x, y, axis=-1), lambda a, b: (a * b).sum(-1), (3, 4), (3, 4)),
    "kron": (lambda x, y: mx.kron(x, y), np.kron, (2, 3), (3, 2)),
    "tensordot": (lambda x, y: mx.tensordot(x, y), lambda a, b: np.tensordot(a, b), (2, 3, 4), (3, 4, 5)),
    "tensordot of axes": (
        lambda x, y: mx.tensordot(x, y, axes=[[0, 2], [1, 0]]),
        lambda a, b: np.tensordot(a, b, axes=[[0, 2], [1, 0]]),
        (2, 3, 4),
        (4, 2, 5),
    ),
    "tensordot of none": (lambda x, y: mx.tensordot(x, y, 0), lambda a, b: np.tensordot(a, b, 0), (2,), (3,)),
    "einsum": (
        lambda x, y: mx.einsum("bij,bkj->bik", x, y),
        lambda a, b: np.einsum("bij,bkj->bik", a, b),
        (2, 3, 4),
        (2, 5, 4),
    ),
    "einsum trace": (lambda x, y: mx.einsum("ii,j->j", x, y), lambda a, b: np.einsum("ii,j->j", a, b), (3, 3), (4,)),
    "einsum with an ellipsis": (
        lambda x, y: mx.einsum("...i,ij->...j", x, y),
        lambda a, b: np.einsum("...i,ij->...j", a, b),
        (2, 3, 4),
        (4, 5),
    ),
    "convolve": (lambda x, y: mx.convolve(x, y), np.convolve, (7,), (3,)),
    "convolve same": (lambda x, y: mx.convolve(x, y, mode="same"), lambda a, b: np.convolve(a, b, "same"), (7,), (3,)),
    "convolve valid": (lambda x, y: mx.convolve(x, y, "valid"), lambda a, b: np.convolve(a, b, "valid"), (7,), (3,)),
}


@pytest.mark.parametrize("dtype", [*FLOATS, "complex64"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name, dtype):
    mine, numpy, left, right = PRODUCTS[name]
    if dtype == "complex64" and ("convolve" in name or name == "vecdot"):
        return
    (x, a), (y, b) = pair(dtype, left), pair(dtype, right, seed=1)
    result = mine(x, y)
    assert result.dtype == x.dtype
    assert_close(result, numpy(a, b), 16)


def test_addmm_trace_and_einsum_path():
    (c, p), (x, a), (y, b) = pair("float32", (3, 5)), pair("float32", (3, 4), seed=1), pair("float32", (4, 5), seed=2)
    assert_close(mx.addmm(c, x, y, alpha=0.5, beta=2.0), 0.5 * a @ b + 2 * p, 8)
    assert_close(mx.trace(x, offset=1, axis1=0, axis2=1), np.trace(a, 1))
    assert mx.trace(mx.array([[1, 2], [3, 4]]), dtype=mx.float32).dtype == mx.float32
    path, _ = mx.einsum_path("ij,jk,kl->il", x, y, mx.ones((5, 2)))
    assert sorted(map(len, path))


@pytest.mark.parametrize(
    "call",
    [
        lambda: mx.ones((2, 3)) @ mx.ones((2, 3)),
        lambda: mx.ones((2, 3), mx.int32) @ mx.ones((3, 2), mx.int32),
        lambda: mx.einsum("ij,jk", mx.ones((2, 3))),
        lambda: mx.einsum("ij,jk->ik", mx.ones((2, 3)), mx.ones((2, 3))),
        lambda: mx.tensordot(mx.ones((2, 3)), mx.ones((2, 3)), 2 + 1),
        lambda: mx.conv1d(mx.ones((1, 5, 2)), mx.ones((3, 2, 3))),
    ],
)
def test_products_that_do_not_fit(call):
    with pytest.raises(ValueError):
        call()


def convolution(a, w, stride, padding, dilation, groups, transposed=False):
    """A convolution (N, spatial…, channels) with filters (outputs, spatial…, channels), written out as loops."""
    n = a.ndim - 2
    a = np.pad(a, [(0, 0), *[(p, p) for p in padding], (0, 0)])
    taps = w.shape[1:-1]
    sizes = [(a.shape[1 + i] - dilation[i] * (taps[i] - 1) - 1) // stride[i] + 1 for i in range(n)]
    out = np.zeros((a.shape[0], *sizes, w.shape[0]))
    per_group, outs = w.shape[-1], w.shape[0] // groups
    for tap in np.ndindex(*taps):
        starts = [t * d for t, d in zip(tap, dilation)]
        spans = tuple(slice(b, b + s * (size - 1) + 1, s) for b, s, size in zip(starts, stride, sizes))
        patch = a[(slice(None), *spans)]
        for g in range(groups):
            part = patch[..., g * per_group : (g + 1) * per_group]
            weights = w[(slice(g * outs, (g + 1) * outs), *tap)]
            out[..., g * outs : (g + 1) * outs] += part @ weights.T
    return out


@pytest.mark.parametrize("stride, padding, dilation, groups", [(1, 0, 1, 1), (2, 1, 1, 1), (1, 2, 2, 1), (1, 1, 1, 2)])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_convolutions(n, stride, padding, dilation, groups):
    if n == 3 and groups > 1:
        return  # MLX refuses it
    (x, a), (w, b) = pair("float32", (2, *[7, 6, 5][:n], 4)), pair("float32", (6, *[3, 2, 3][:n], 4 // groups), seed=1)
    expected = convolution(a, b, [stride] * n, [padding] * n, [dilation] * n, groups)
    function = getattr(mx, f"conv{n}d")
    options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    assert_close(function(x, w, **options), expected, 64)
    general = mx.conv_general(x, w, stride=stride, padding=padding, kernel_dilation=dilation, groups=groups)
    assert_close(general, expected, 64)


@pytest.mark.parametrize("stride, padding, output_padding", [(1, 0, 0), (2, 1, 0), (2, 1, 1)])
@pytest.mark.parametrize("n", [1, 2])
def test_transposed_convolutions_are_transposes(n, stride, padding, output_padding):
    w, _ = pair("float32", (3, *[3] * n, 2), seed=1)
    y, _ = pair("float32", (1, *[4] * n, 2))
    function = getattr(mx, f"conv_transpose{n}d")
    forward = getattr(mx, f"conv{n}d")
    result = function(y, w, stride=stride, padding=padding, output_padding=output_padding)
    filters = w.swapaxes(0, -1)  # of the convolution whose transpose this is
    x = mx.random.normal(result.shape)
    left = (forward(x, filters, stride=stride, padding=padding)[tuple([slice(None), *[slice(4)] * n])] * y).sum()
    assert_close(left, np.array((x * result).sum()), 200)


def test_quantisation():
    w = mx.random.normal((8, 64))
    for bits in (4, 8):
        packed, scales, biases = mx.quantize(w, group_size=32, bits=bits)
        assert packed.dtype == mx.uint32 and packed.shape == (8, 64 * bits // 32) and scales.shape == (8, 2)
        wide = mx.dequantize(packed, scales=scales, biases=biases, group_size=32, bits=bits)
        assert mx.abs(wide - w).max().item() < 6 / 2**bits
        x = mx.random.normal((3, 64))
        y = mx.quantized_matmul(x, packed, scales=scales, biases=biases, transpose=True, group_size=32, bits=bits)
        assert_close(y, np.array(x @ wide.T), 64)


def test_hadamard_and_fp8():
    x, a = pair("float32", (3, 8))
    h = np.array([[1.0]])
    for _ in range(3):
        h = np.block([[h, h], [h, -h]])
    assert_close(mx.hadamard_transform(x), a @ h / np.sqrt(8), 8)
    assert_close(mx.hadamard_transform(x, scale=1.0), a @ h, 8)
    codes = mx.to_fp8(mx.array([1.0, -2.0, 0.5]))
    assert codes.dtype == mx.uint8 and mx.from_fp8(codes, dtype=mx.float32).tolist() == [1, -2, 0.5]


def test_gather_mm():
    (x, a), (y, b) = pair("float32", (4, 2, 3)), pair("float32", (5, 3, 2), seed=1)
    left, right = mx.array([0, 3, 3], mx.uint32), mx.array([4, 0, 1], mx.uint32)
    result = mx.gather_mm(x, y, lhs_indices=left, rhs_indices=right)
    assert_close(result, a[[0, 3, 3]] @ b[[4, 0, 1]], 8)


def test_fast():
    x, a = pair("float32", (2, 8))
    weight, bias = mx.random.normal((8,)), mx.random.normal((8,))
    w, b = np.array(weight, np.float64), np.array(bias, np.float64)
    normal = (a - a.mean(-1, keepdims=True)) / np.sqrt(a.var(-1, keepdims=True) + 1e-5)
    assert_close(mx.fast.layer_norm(x, weight, bias, 1e-5), normal * w + b, 8)
    assert_close(mx.fast.layer_norm(x, None, None, eps=1e-5), normal, 8)
    assert_close(mx.fast.rms_norm(x, weight, 1e-5), a / np.sqrt((a * a).mean(-1, keepdims=True) + 1e-5) * w, 8)
    q, k, v = (mx.random.normal((1, 2, 5, 4)) for _ in range(3))
    scores = np.array(q) @ np.array(k).swapaxes(-1, -2) * 0.5
    for mask in (None, "causal"):
        s = np.where(np.tri(5, dtype=bool), scores, -np.inf) if mask else scores
        e = np.exp(s - s.max(-1, keepdims=True))
        expected = e / e.sum(-1, keepdims=True) @ np.array(v)
        assert_close(mx.fast.scaled_dot_product_attention(q, k, v, scale=0.5, mask=mask), expected, 8)
    r = mx.fast.rope(mx.ones((1, 3, 4)), 4, traditional=False, base=10000.0, scale=1.0, offset=0)
    angle = np.arange(3)[:, None] * np.array([1.0, 0.01])
    expected = np.concatenate([np.cos(angle) - np.sin(angle), np.sin(angle) + np.cos(angle)], -1)
    assert_close(r[0], expected, 8)


KEYWORDS = [
    (lambda x: mx.array_equal(x, x, equal_nan=True), lambda a: np.array(True)),
    (lambda x: mx.isclose(x, x, rtol=0.0, atol=1.0), lambda a: np.full(a.shape, True)),
    (lambda x: mx.count_nonzero(x, axis=0, keepdims=True), lambda a: np.count_nonzero(a, axis=0, keepdims=True)),
    (lambda x: mx.full(shape=(2,), vals=3, dtype=mx.int32), lambda a: np.full(2, 3)),
    (lambda x: mx.full_like(x, 3, dtype=mx.float32), lambda a: np.full(a.shape, 3)),
    (lambda x: mx.linspace(start=0, stop=1, num=2, dtype=mx.float32), lambda a: np.array([0, 1])),
    (lambda x: mx.tri(n=2, m=2, k=0, dtype=mx.float32), lambda a: np.tri(2)),
    (lambda x: mx.identity(n=2), lambda a: np.eye(2)),
    (lambda x: mx.tril(x=x, k=0), np.tril),
    (lambda x: mx.kron(a=x, b=x), lambda a: np.kron(a, a)),
    (lambda x: mx.repeat(x, repeats=2, axis=0), lambda a: np.repeat(a, 2, 0)),
    (lambda x: mx.stack([x, x], axis=1), lambda a: np.stack([a, a], 1)),
    (lambda x: mx.concatenate([x, x], axis=1), lambda a: np.concatenate([a, a], 1)),
    (lambda x: mx.diagonal(a=x, offset=1, axis1=0, axis2=1), lambda a: np.diagonal(a, 1)),
    (lambda x: mx.pad(x, pad_width=1, mode="constant", constant_values=2.0), lambda a: np.pad(a, 1, constant_values=2)),
    (lambda x: mx.moveaxis(x, source=0, destination=1), lambda a: a.T),
    (lambda x: mx.swapaxes(x, axis1=0, axis2=1), lambda a: a.T),
    (lambda x: mx.nan_to_num(x, nan=0.0, posinf=None, neginf=None), lambda a: a),
    (lambda x: mx.take(x, indices=mx.array([1]), axis=0), lambda a: a[[1]]),
    (lambda x: mx.view(x, dtype=mx.int32).view(mx.float32), lambda a: a),
    (lambda x: mx.unique(mx.array([3, 1, 3]), size=2), lambda a: np.array([1, 3])),
]


@pytest.mark.parametrize("number", range(len(KEYWORDS)))
def test_keywords(number):
    mine, numpy = KEYWORDS[number]
    x, a = pair("float32", (2, 3))
    assert_close(mine(x), numpy(a), tolerance=1e-6)


def test_unknown_keywords_are_refused():
    for call in (
        lambda: mx.sum(mx.ones(2), dim=0),
        lambda: mx.zeros(shape=(2,), kind=1),
        lambda: mx.sum(),
        lambda: mx.matmul(mx.ones((2, 2))),
    ):
        with pytest.raises(TypeError):
            call()


@pytest.mark.parametrize("dtype", ALL)
def test_streams_are_accepted_as_keywords(dtype):
    x = mx.ones((2, 2), getattr(mx, dtype))
    assert_equal(mx.transpose(x, stream=mx.default_stream(mx.default_device())), np.ones((2, 2)))
    assert_equal(mx.add(x, x, stream=mx.default_device()), host(x + x))


def test_sequences_whose_elements_are_made_when_they_are_read():
    x = mx.arange(12).reshape(3, 4)
    assert_equal(mx.stack(x), np.array(x), x.dtype)
    assert_equal(mx.concatenate(x), np.arange(12), x.dtype)

    class Rows:
        def __len__(self):
            return 50

        def __getitem__(self, k):
            if k >= 50:
                raise IndexError
            return mx.full((100,), k)

    assert_equal(mx.stack(Rows()), np.broadcast_to(np.arange(50)[:, None], (50, 100)))


@pytest.mark.skipif(IS_MLX, reason="MLX takes lists of its own arrays alone")
def test_lists_of_numpys_arrays():
    rows = [np.full(100, k, np.float32) for k in range(50)]
    assert_equal(mx.stack(rows), np.stack(rows), "float32")
    assert_equal(mx.concatenate([rows[1], mx.ones(3)]), np.ones(103), "float32")
    assert mx.stack(range(1000, 1003)).tolist() == [1000, 1001, 1002]
    kept = mx.zeros(100)
    mixed = mx.stack([rows[1], kept, mx.full(100, 2.0), kept, rows[4]])
    assert_equal(mixed, np.broadcast_to(np.array([1, 0, 2, 0, 4])[:, None], (5, 100)), "float32")


def test_kron_of_nothing_is_refused():
    for left, right in (((0,), (3,)), ((2, 0), (3,)), ((2, 3), (0, 0))):
        with pytest.raises(ValueError):
            mx.kron(mx.zeros(left), mx.zeros(right))


def test_put_along_axis_of_an_empty_list():
    empty = mx.array([])
    assert mx.put_along_axis(empty, empty, empty, axis=None).shape == (0,)
    assert mx.put_along_axis(mx.zeros((0, 2)), mx.zeros((0, 2)), mx.zeros((0, 2)), axis=0).shape == (0, 2)
    with pytest.raises((ValueError, RuntimeError)):
        mx.eval(mx.put_along_axis(mx.zeros(3), mx.array([1.0]), mx.array([1.0]), axis=0))
