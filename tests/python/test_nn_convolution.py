"""Convolutions, pooling and upsampling against loops in NumPy; golden values are elsewhere."""

import itertools

import numpy as np
import pytest
from support import host

import weft.core as mx
import weft.nn as nn


def draw(*shape, seed=0):
    return np.random.RandomState(seed).standard_normal(shape).astype(np.float32)


def close(got, expected, bound=2e-5):
    assert tuple(got.shape) == np.shape(expected)
    np.testing.assert_allclose(host(got), expected, rtol=bound, atol=bound)


def each(value, n):
    return (value,) * n if isinstance(value, int) else value


def convolve(x, w, stride=1, padding=0, dilation=1, groups=1):
    """The convolution of x [N, *space, C] with w [O, *kernel, C / groups], as a sum over a filter's elements."""
    n = w.ndim - 2
    stride, padding, dilation = each(stride, n), each(padding, n), each(dilation, n)
    x = np.pad(x.astype(np.float64), [(0, 0), *((p, p) for p in padding), (0, 0)])
    kernel = w.shape[1:-1]
    sizes = [(x.shape[a + 1] - dilation[a] * (kernel[a] - 1) - 1) // stride[a] + 1 for a in range(n)]
    y = np.zeros((x.shape[0], *sizes, w.shape[0]))
    inputs, outputs = x.shape[-1] // groups, w.shape[0] // groups
    for at in itertools.product(*map(range, kernel)):
        where = tuple(
            slice(at[a] * dilation[a], at[a] * dilation[a] + stride[a] * sizes[a], stride[a]) for a in range(n)
        )
        part = x[(slice(None), *where)]
        for g in range(groups):
            rows = slice(g * outputs, (g + 1) * outputs)
            y[..., rows] += part[..., g * inputs : (g + 1) * inputs] @ w[(rows, *at)].T
    return y


SHAPES = {1: (2, 9, 4), 2: (2, 7, 8, 4), 3: (1, 5, 4, 6, 4)}
OPTIONS = [
    {"kernel_size": 3},
    {"kernel_size": 2, "stride": 2, "padding": 1},
    {"kernel_size": 3, "padding": 2, "dilation": 2, "bias": False},
    {"kernel_size": 1, "groups": 2},
]


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_convolution(n, options):
    options = {k: v for k, v in options.items() if n < 3 or k != "groups"}
    m = getattr(nn, f"Conv{n}d")(4, 6, **options)
    if "bias" in m:
        assert not mx.any(m.bias).item()
        m.bias = mx.array(draw(6, seed=1))
    x, w = draw(*SHAPES[n]), host(m.weight)
    groups = options.get("groups", 1)
    assert w.shape == (6, *[options["kernel_size"]] * n, 4 // groups)
    assert abs(w).max() <= (options["kernel_size"] ** n * 4 / groups) ** -0.5
    y = convolve(x, w, **{k: v for k, v in options.items() if k not in ("kernel_size", "bias")})
    close(m(mx.array(x)), y + (host(m.bias) if "bias" in m else 0))


def test_convolution_with_sizes_of_each_axis():
    m = nn.Conv2d(4, 3, (3, 2), (2, 1), (1, 0), (1, 2))
    x = draw(2, 7, 8, 4)
    close(m(mx.array(x)), convolve(x, host(m.weight), (2, 1), (1, 0), (1, 2)))
    assert repr(m) == (
        "Conv2d(4, 3, kernel_size=(3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2), groups=1, bias=True)"
    )


def test_text_of_convolutions():
    assert repr(nn.Conv1d(4, 6, 3, groups=2)) == (
        "Conv1d(4, 6, kernel_size=3, stride=1, padding=0, dilation=1, groups=2, bias=True)"
    )
    assert repr(nn.Conv3d(4, 6, 3, bias=False)) == (
        "Conv3d(4, 6, kernel_size=(3, 3, 3), stride=(1, 1, 1), padding=(0, 0, 0), dilation=1, bias=False)"
    )
    assert repr(nn.ConvTranspose1d(4, 6, 3)) == (
        "ConvTranspose1d(4, 6, kernel_size=3, stride=1, padding=0, dilation=1, output_padding=0, bias=True)"
    )
    assert repr(nn.ConvTranspose2d(4, 6, 3, output_padding=(1, 0))) == (
        "ConvTranspose2d(4, 6, kernel_size=(3, 3), stride=(1, 1), padding=(0, 0), dilation=1, output_padding=(1, 0), "
        "bias=True)"
    )


@pytest.mark.parametrize("name", ["Conv1d", "Conv2d"])
def test_groups_divide_the_channels(name):
    with pytest.raises(ValueError, match="must be divisible by the number of groups"):
        getattr(nn, name)(4, 6, 3, groups=3)


def test_a_kernel_has_a_size_for_each_axis():
    with pytest.raises(IndexError):
        nn.Conv2d(4, 6, (3,))


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("options", [{}, {"stride": 2, "padding": 1, "output_padding": 1}, {"dilation": 2}], ids=str)
def test_transposed_convolution(n, options):
    m = getattr(nn, f"ConvTranspose{n}d")(2, 3, 3, **options)
    w, x = host(m.weight), draw(1, *(4, 3, 5)[:n], 2)
    assert w.shape == (3, *[3] * n, 2)
    stride, padding = options.get("stride", 1), options.get("padding", 0)
    dilation, more = options.get("dilation", 1), options.get("output_padding", 0)
    # Zeros between the elements, then a convolution with the mirrored filters.
    apart = np.zeros((1, *((s - 1) * stride + 1 for s in x.shape[1:-1]), 2))
    apart[(slice(None), *[slice(None, None, stride)] * n)] = x
    edge = dilation * 2 - padding
    apart = np.pad(apart, [(0, 0), *[(edge, edge + more)] * n, (0, 0)])
    close(m(mx.array(x)), convolve(apart, np.flip(w, tuple(range(1, n + 1))), dilation=dilation))


def pool(x, reduce, kernel, stride, padding, fill):
    n = x.ndim - 2
    kernel, stride, padding = each(kernel, n), each(stride, n), each(padding, n)
    x = np.pad(x.astype(np.float64), [(0, 0), *((p, p) for p in padding), (0, 0)], constant_values=fill)
    sizes = [(x.shape[a + 1] - kernel[a]) // stride[a] + 1 for a in range(n)]
    y = np.zeros((x.shape[0], *sizes, x.shape[-1]))
    for at in itertools.product(*map(range, sizes)):
        window = x[(slice(None), *(slice(i * s, i * s + k) for i, s, k in zip(at, stride, kernel)))]
        y[(slice(None), *at)] = reduce(window, tuple(range(1, n + 1)))
    return y


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("kind", ["Max", "Avg"])
@pytest.mark.parametrize("kernel, stride, padding", [(2, None, 0), (3, 2, 1), (2, 1, 0), (3, None, 0)])
def test_pooling(n, kind, kernel, stride, padding):
    m, x = getattr(nn, f"{kind}Pool{n}d")(kernel, stride, padding), draw(2, *(9, 8, 6)[:n], 3)
    reduce, fill = (np.max, -np.inf) if kind == "Max" else (np.mean, 0)
    close(m(mx.array(x)), pool(x, reduce, kernel, stride or kernel, padding, fill))


def test_pooling_with_sizes_of_each_axis():
    x = draw(2, 9, 8, 3)
    m = nn.MaxPool2d((3, 2), stride=(2, 1), padding=(1, 0))
    close(m(mx.array(x)), pool(x, np.max, (3, 2), (2, 1), (1, 0), -np.inf))
    assert repr(m) == "MaxPool2d(kernel_size=(3, 2), stride=(2, 1), padding=(1, 0))" and m.parameters() == {}
    close(nn.AvgPool2d(3, 2)(mx.array(x).transpose(0, 2, 1, 3)), pool(x.transpose(0, 2, 1, 3), np.mean, 3, 2, 0, 0))


def test_pooling_keeps_dtypes():
    assert nn.MaxPool1d(2)(mx.array([[[1], [5], [3], [2]]])).tolist() == [[[5], [3]]]
    assert nn.AvgPool1d(2)(mx.ones((1, 4, 1), mx.float16)).dtype == mx.float16


@pytest.mark.parametrize("name", ["MaxPool1d", "AvgPool2d", "MaxPool3d"])
@pytest.mark.parametrize(
    "options",
    [
        {"kernel_size": "a"},
        {"kernel_size": 2.5},
        {"kernel_size": 0},
        {"kernel_size": (1, 2, 3, 4)},
        {"kernel_size": 2, "stride": (1, 1, 1, 1)},
        {"kernel_size": 2, "stride": 0},
        {"kernel_size": 2, "padding": -1},
        {"kernel_size": 2, "padding": None},
    ],
    ids=str,
)
def test_pooling_needs_sizes(name, options):
    with pytest.raises(ValueError, match=rf"\[{name}\]"):
        getattr(nn, name)(**options)


@pytest.mark.parametrize("shape", [(9, 4), (2, 9, 9, 4)])
def test_pooling_needs_axes(shape):
    with pytest.raises(ValueError):
        nn.MaxPool1d(3, 2)(mx.zeros(shape))


def positions(size, count, scale, align):
    if align:
        return np.arange(count) * ((size - 1) / max(count - 1, 1))
    return np.arange(count) / scale - ((count - 1) / scale - size + 1) / 2


def kernel_of(mode, a):
    if mode == "linear":
        return lambda x: np.maximum(1 - x, 0)
    near = lambda x: (a + 2) * x**3 - (a + 3) * x**2 + 1  # noqa: E731
    far = lambda x: a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a  # noqa: E731
    return lambda x: np.where(x <= 1, near(x), np.where(x < 2, far(x), 0))


def interpolate(x, scale, mode, align=False, antialias=False):
    """Interpolation along the one axis of space of x [N, L, C]."""
    size = x.shape[1]
    count = int(scale * size)
    if mode == "nearest":
        return x[:, [min(int((i + 0.5) * size / count), size - 1) for i in range(count)]]
    wide = max(1 / scale, 1) if antialias else 1
    f = kernel_of(mode, -0.5 if antialias else -0.75)
    where = positions(size, count, scale, align)
    if mode == "linear" and not antialias:
        where = np.clip(where, 0, size - 1)
    y = np.zeros((x.shape[0], count, x.shape[2]))
    for i, p in enumerate(where):
        reach = range(int(np.floor(p - 2 * wide)) - 1, int(np.ceil(p + 2 * wide)) + 2)
        inside = [j for j in reach if not antialias or 0 <= j < size]
        weights = np.array([float(f(abs(p - j) / wide)) for j in inside])
        total = weights.sum() if antialias else 1
        for j, weight in zip(inside, weights):
            y[:, i] += weight / total * x[:, min(max(j, 0), size - 1)]
    return y


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("scale", [2, 1.5, 2.7, 0.5, 0.3])
@pytest.mark.parametrize("how", ["plain", "align", "antialias"])
def test_interpolation(mode, scale, how):
    x = draw(2, 10, 3)
    options = {"align_corners": how == "align", "antialias": how == "antialias"}
    expected = interpolate(x, scale, mode, how == "align", how == "antialias")
    close(nn.Upsample(scale, mode, **options)(mx.array(x)), expected)


@pytest.mark.parametrize("scale", [1, 2, 3.0, 2.5])
def test_nearest(scale):
    x = draw(2, 7, 3)
    close(nn.Upsample(scale)(mx.array(x)), interpolate(x, scale, "nearest"), 0)


def test_upsampling_of_several_axes():
    x = draw(1, 3, 4, 2)
    expected = interpolate(x[0].astype(np.float64).transpose(0, 1, 2), 1.5, "linear")[None]
    expected = interpolate(expected[0].transpose(1, 0, 2), 2.0, "linear").transpose(1, 0, 2)[None]
    close(nn.Upsample((2, 1.5), "linear")(mx.array(x)), expected)
    assert nn.Upsample((1, 2, 1.5))(mx.zeros((1, 2, 3, 4, 1))).shape == (1, 2, 6, 6, 1)


def test_upsampling_interpolates_in_float32():
    assert nn.Upsample(2, "linear")(mx.array([[[1], [2]]])).dtype == mx.float32
    assert nn.Upsample(2)(mx.array([[[1], [2]]])).dtype == mx.int32


def test_upsample_functions():
    x = mx.random.normal((1, 3, 4, 2))
    for name, mode, options in (
        ("nearest", "nearest", {}),
        ("linear", "linear", {"align_corners": True}),
        ("cubic", "cubic", {"antialias": True}),
    ):
        found = getattr(nn.layers.upsample, "upsample_" + name)(x, (2, 1.5), **options)
        assert mx.array_equal(found, nn.Upsample((2, 1.5), mode, **options)(x))


def test_upsample_options():
    assert repr(nn.Upsample(2)) == "Upsample(scale_factor=2.0, mode='nearest', align_corners=False)"
    assert repr(nn.Upsample([2, 3], "cubic", antialias=True)) == (
        "Upsample(scale_factor=(2.0, 3.0), mode='cubic', align_corners=False, antialias=True)"
    )
    for wrong in (
        lambda: nn.Upsample(2, "other"),
        lambda: nn.Upsample(2, antialias=True),
        lambda: nn.Upsample(2, "linear", align_corners=True, antialias=True),
        lambda: nn.Upsample(2)(mx.zeros((2, 3))),
        lambda: nn.Upsample((2, 2))(mx.zeros((1, 2, 3))),
    ):
        with pytest.raises(ValueError):
            wrong()
