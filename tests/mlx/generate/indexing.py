"""Indexing, gathers, scatters, order."""

import mlx.core as mx

from .inputs import Subject, bools, integers, normal


def scattered(x, index, values, method):
    return getattr(x.at[index], method)(values)


def replaced(x, index, values):
    x = mx.array(x)
    x[index] = values
    return x


def generate(store):
    case = Subject(store, "indexing")
    x, y, z = normal(11, 5, 4), normal(12, 2, 3, 4), normal(13, 7)
    i, j = mx.array([3, 0, 3, -1]), mx.array([[0, 2], [1, -2]])
    u = normal(14, 4, 4)
    case(
        "take",
        [x, i],
        lambda x, i: [
            mx.take(x, i, 0),
            mx.take(x, i, 1),
            mx.take(x, i),
            mx.take(x, 2, 0),
            mx.take(x, 7),
            mx.take(x, mx.array([[0, 1], [2, 3]]), 1),
        ],
    )
    case(
        "take_along_axis",
        [x, integers(15, 2, 4, high=5)],
        lambda x, n: [
            mx.take_along_axis(x, n, 0),
            mx.take_along_axis(x, n[:, :1], 0),
            mx.take_along_axis(mx.flatten(x), mx.array([1, 19, 4]), 0),
        ],
    )
    case(
        "along a matrix",
        [x, integers(15, 5, 3, high=4)],
        lambda x, n: [mx.take_along_axis(x, n, 1), mx.take_along_axis(x, n, -1)],
    )
    case(
        "put_along_axis",
        [x, mx.array([[3, 0, 2, 1]]), normal(16, 1, 4)],
        lambda x, n, v: [mx.put_along_axis(x, n, v, 0), mx.put_along_axis(x, n, mx.array(7.0), 0)],
    )
    case(
        "arrays of integers",
        [y, i, j],
        lambda y, i, j: [
            y[mx.abs(i) % 2],
            y[:, j],
            y[mx.array([0, 1]), mx.array([2, 0])],
            y[mx.array([1, 0]), :, mx.array([3, 1])],
            y[..., i],
            y[:, mx.array([0, 1]), mx.array([2, 3])],
            y[1, j],
            y[j[:, :1] % 2, mx.array([0, 2])],
        ],
    )
    case(
        "mixed",
        [y, i],
        lambda y, i: [
            y[0, ..., None],
            y[None, :, 1],
            y[1, 2, 3],
            y[:, None, ::2],
            y[-1, -2],
            y[..., 0],
            y[i % 2, None, 1:],
            y[::-1, i % 3],
        ],
    )
    case(
        "slice assignment",
        [x, u],
        lambda x, u: [
            replaced(x, (slice(1, 3), slice(None)), u[:2]),
            replaced(x, (slice(None), 0), 3.0),
            replaced(x, (slice(None, None, 2), slice(None, None, -1)), u[:3]),
            replaced(x, 2, u[0]),
            replaced(x, (Ellipsis, -1), 1.0),
        ],
    )
    case(
        "array assignment",
        [x, u],
        lambda x, u: [replaced(x, mx.array([0, 3, 1, 4]), u), replaced(x, (mx.array([0, 1]), mx.array([2, 3])), 5.0)],
    )
    case(
        "mask assignment",
        [x, bools(17, 5, 4)],
        lambda x, m: [
            replaced(x, m, 0.0),
            replaced(x, m, mx.arange(20, dtype=mx.float32)[: int(m.sum().item())]),
            replaced(x, m[:, 0], 2.0),
        ],
    )
    for method in ("add", "subtract", "multiply", "divide", "maximum", "minimum"):
        case(
            "at " + method,
            [x, i, u],
            lambda x, i, u, m=method: [
                scattered(x, i, u, m),
                scattered(x, (slice(1, 4), 1), u[0, :3], m),
                scattered(x, (i, mx.array([0, 1, 0, 1])), u[0], m),
            ],
        )
    case(
        "where",
        [x, normal(18, 4)],
        lambda x, v: [
            mx.where(x > 0, x, v),
            mx.where(x > 0, 1.0, v),
            mx.where(v > 0, x, mx.array(0)),
            mx.where(mx.array(True), x, 2.0),
        ],
    )

    n = integers(19, 4, 6, high=5)
    case(
        "sort",
        [y, n],
        lambda y, n: [
            mx.sort(y),
            mx.sort(y, 0),
            mx.sort(y, None),
            mx.argsort(y, 1),
            mx.argsort(y, None),
            mx.sort(n, 1),
            mx.argsort(n, 1),
            mx.argsort(n, 0),
        ],
    )
    case(
        "partition",
        [z],
        lambda z: [
            mx.partition(z, 3)[3],
            mx.sort(mx.partition(z, 2)[:2]),
            mx.sort(mx.partition(z, 4)[5:]),
            z[mx.argpartition(z, 3)[3]],
        ],
    )
    case(
        "topk",
        [z, x],
        lambda z, x: [mx.sort(mx.topk(z, 3)), mx.sort(mx.topk(x, 2, 0), 0), mx.sort(mx.topk(x, 1, -1), -1)],
    )
    case(
        "median",
        [x, n],
        lambda x, n: [
            mx.median(x),
            mx.median(x, axis=0),
            mx.median(x, axis=1, keepdims=True),
            mx.median(n, axis=1),
            mx.median(x, axis=(0, 1)),
        ],
    )
    case(
        "searchsorted",
        [mx.sort(z), normal(20, 2, 3)],
        lambda a, v: [
            mx.searchsorted(a, v),
            mx.searchsorted(a, v, side="right"),
            mx.searchsorted(a, a[2]),
            mx.searchsorted(a, a, side="right"),
        ],
    )
    case(
        "argmax",
        [y, n],
        lambda y, n: [
            mx.argmax(y),
            mx.argmax(y, 1),
            mx.argmin(y, 2, keepdims=True),
            mx.argmax(n, 0),
            mx.argmin(n),
            mx.argmax(n, keepdims=True),
        ],
    )
    case(
        "nan order",
        mx.array([3.0, float("nan"), 1.0, float("-inf"), 2.0]),
        lambda a: [mx.sort(a), mx.argsort(a), mx.max(a), mx.min(a), mx.argmax(a[2:]), mx.maximum(a, 2), mx.cummax(a)],
    )
