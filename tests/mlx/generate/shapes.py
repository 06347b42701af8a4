"""Creation, shape and movement of arrays."""

import mlx.core as mx

from .inputs import Subject, bools, complexes, integers, normal


def generate(store):
    case = Subject(store, "shapes")
    x, y, z = normal(1, 4, 6), normal(2, 2, 3, 4), normal(3, 5)
    n = integers(4, 3, 4)
    none = []
    case(
        "arange",
        none,
        lambda: [
            mx.arange(7),
            mx.arange(2, 9),
            mx.arange(9, 1, -3),
            mx.arange(0.5, 3.0, 0.25),
            mx.arange(3.0),
            mx.arange(1, 6, dtype=mx.uint8),
            mx.arange(0, 1, 0.1),
            mx.arange(5, 5),
            mx.arange(-3.5, 2.0),
            mx.arange(6, dtype=mx.float16),
        ],
    )
    case(
        "linspace",
        none,
        lambda: [
            mx.linspace(0, 1, 7),
            mx.linspace(-3, 5),
            mx.linspace(2, -2, 5, dtype=mx.float16),
            mx.linspace(0, 10, 11, dtype=mx.int32),
            mx.linspace(1, 2, 1),
        ],
    )
    case(
        "full",
        none,
        lambda: [
            mx.full((2, 3), 7),
            mx.full((2, 2), 1.5, mx.float16),
            mx.full((2, 3), mx.array([1, 2, 3])),
            mx.zeros((2, 2)),
            mx.zeros((3,), mx.int8),
            mx.ones((2, 1)),
            mx.ones((2,), mx.bool_),
            mx.full((0, 3), 1.0),
        ],
    )
    case(
        "likes",
        n,
        lambda n: [
            mx.zeros_like(n),
            mx.ones_like(n),
            mx.full_like(n, 3),
            mx.full_like(n, 2.5, mx.float32),
            mx.zeros_like(n, mx.float16),
        ],
    )
    case(
        "eye",
        none,
        lambda: [
            mx.eye(3),
            mx.eye(3, 4, 1),
            mx.eye(4, 3, -2, mx.int32),
            mx.identity(3, mx.float16),
            mx.tri(3, 4, 1),
            mx.tri(4, 4, -1, mx.int32),
        ],
    )
    case("triangles", [x, y], lambda x, y: [mx.tril(x), mx.triu(x), mx.tril(x, -1), mx.triu(x, 2), mx.tril(y, 1)])
    case(
        "diag",
        [x, z],
        lambda x, z: [mx.diag(x), mx.diag(x, 2), mx.diag(x, -1), mx.diag(z), mx.diag(z, 1), mx.diag(z, -2)],
    )
    case(
        "diagonal",
        [x, y],
        lambda x, y: [
            mx.diagonal(x),
            mx.diagonal(x, 1),
            mx.diagonal(y, 0, 0, 2),
            mx.diagonal(y, -1, 1, 2),
            mx.diagonal(y, 1, 2, 1),
        ],
    )
    case(
        "trace",
        [x, y],
        lambda x, y: [mx.trace(x), mx.trace(x, 1, 0, 1), mx.trace(y, 0, 1, 2), mx.trace(y, 1, 0, 2, mx.float16)],
    )
    case("trace of bools", bools(5, 3, 3), lambda b: mx.trace(b))
    case(
        "meshgrid",
        [z, n[0]],
        lambda a, b: [*mx.meshgrid(a, b), *mx.meshgrid(a, b, indexing="ij"), *mx.meshgrid(a, b, sparse=True)],
    )
    case("windows", none, lambda: [mx.hanning(8), mx.hamming(7), mx.bartlett(9), mx.blackman(6), mx.hanning(1)])
    case(
        "view",
        [integers(6, 2, 4), x],
        lambda n, x: [
            mx.view(n, mx.int16),
            mx.view(n, mx.float32),
            mx.view(x, mx.uint8),
            mx.view(x, mx.complex64),
            mx.view(mx.view(x, mx.complex64), mx.int64),
        ],
    )
    case(
        "contiguous",
        [x],
        lambda x: [mx.contiguous(x.T), mx.contiguous(x[::2, ::-1]), mx.contiguous(x.T, allow_col_major=True)],
    )
    case(
        "as_strided",
        [x],
        lambda x: [
            mx.as_strided(x, (3, 4), (2, 1), 1),
            mx.as_strided(x, (4, 4), (6, 0), 2),
            mx.as_strided(x, (3, 2, 2), (6, 1, 2), 0),
        ],
    )
    case("stop_gradient and depends", [x, z], lambda x, z: [mx.stop_gradient(x), mx.depends(x, z)])

    case(
        "reshape",
        y,
        lambda y: [
            mx.reshape(y, (6, 4)),
            mx.reshape(y, (-1,)),
            mx.reshape(y, (4, -1, 2)),
            mx.reshape(y.transpose(2, 0, 1), (8, 3)),
            mx.reshape(y[:, ::-1], (2, 12)),
            mx.reshape(y[..., ::2], (-1, 4)),
        ],
    )
    case(
        "flatten",
        y,
        lambda y: [
            mx.flatten(y),
            mx.flatten(y, 1),
            mx.flatten(y, 0, 1),
            mx.flatten(y, -2, -1),
            mx.unflatten(y, 2, (2, 2)),
            mx.unflatten(y, -1, (-1, 2)),
        ],
    )
    case(
        "squeeze",
        y,
        lambda y: [
            mx.squeeze(y[:1]),
            mx.squeeze(y[:1, :, :1], 0),
            mx.squeeze(y[:1, :, :1], (0, 2)),
            mx.squeeze(y[:1], -3),
        ],
    )
    case(
        "expand_dims",
        x,
        lambda x: [mx.expand_dims(x, 0), mx.expand_dims(x, -1), mx.expand_dims(x, (0, 2)), mx.expand_dims(x, (-1, 1))],
    )
    case(
        "transpose",
        y,
        lambda y: [
            mx.transpose(y),
            mx.transpose(y, (1, 0, 2)),
            mx.transpose(y, (-1, 0, 1)),
            mx.swapaxes(y, 0, 2),
            mx.swapaxes(y, -1, 1),
            mx.moveaxis(y, 0, 2),
            mx.moveaxis(y, -1, 0),
        ],
    )
    case(
        "broadcast",
        [x, z],
        lambda x, z: [
            mx.broadcast_to(z, (2, 5)),
            mx.broadcast_to(x[:, None], (4, 3, 6)),
            *mx.broadcast_arrays(z[:, None], x[0]),
        ],
    )
    case("flip", y, lambda y: [mx.flip(y), mx.flip(y, 1), mx.flip(y, (0, 2)), mx.flip(y, -1)])
    case(
        "roll",
        y,
        lambda y: [
            mx.roll(y, 1),
            mx.roll(y, -2, 2),
            mx.roll(y, (1, 2), (0, 2)),
            mx.roll(y, 5, 1),
            mx.roll(y, 1, (0, 1)),
            mx.roll(y, (1, 2)),
        ],
    )
    case(
        "atleast",
        [x, z, mx.array(3.0)],
        lambda x, z, s: [
            mx.atleast_1d(s),
            mx.atleast_2d(s),
            mx.atleast_3d(s),
            mx.atleast_2d(z),
            mx.atleast_3d(z),
            mx.atleast_3d(x),
        ],
    )
    case(
        "concatenate",
        [x, n],
        lambda x, n: [
            mx.concatenate([x, x[:2]]),
            mx.concatenate([x, x[:, :1]], 1),
            mx.concatenate([x[:3, :4], n], -1),
            mx.concatenate([n, n > 3], 0),
        ],
    )
    case("stack", [x, n], lambda x, n: [mx.stack([x, x * 2]), mx.stack([x, x + 1], 1), mx.stack([x, x, x], -1)])
    case("split", y, lambda y: [*mx.split(y, 2), *mx.split(y, 3, 1), *mx.split(y, [1, 3], 2), *mx.split(y, 2, -1)])
    case("unstack", y, lambda y: [*mx.unstack(y), *mx.unstack(y, axis=2)])
    case(
        "repeat and tile",
        x[:2, :3],
        lambda x: [
            mx.repeat(x, 2),
            mx.repeat(x, 3, 1),
            mx.repeat(x, 2, 0),
            mx.tile(x, (2,)),
            mx.tile(x, (2, 3)),
            mx.tile(x, (2, 1, 2)),
        ],
    )
    case(
        "pad",
        x[:3, :4],
        lambda x: [
            mx.pad(x, 1),
            mx.pad(x, (1, 2)),
            mx.pad(x, ((0, 1), (2, 0)), constant_values=mx.array(7.0)),
            mx.pad(x, ((2, 1), (1, 3)), mode="edge"),
        ],
    )
    case("slices", y, lambda y: [y[1], y[:, 1:], y[..., ::2], y[::-1, 2:0:-1], y[:, -2:], y[0:5, :, 3::-2], y[1:1]])
    case(
        "dynamic slices",
        [x, mx.array([1, 2])],
        lambda x, s: [mx.slice(x, s, (0, 1), (2, 3)), mx.slice_update(x, mx.ones((2, 2)), s, (0, 1))],
    )
    case("slice_update", [x, z], lambda x, z: [mx.slice_update(x, mx.full((2, 2), 9.0), mx.array([1, 1]), (0, 1))])
    case(
        "complex shapes",
        complexes(7, 2, 3),
        lambda c: [
            mx.transpose(c),
            mx.concatenate([c, c]),
            mx.flip(c, 1),
            mx.reshape(c, (3, 2)),
            mx.pad(c, 1),
            mx.tile(c, (2, 1)),
        ],
    )
    case(
        "empty",
        none,
        lambda: [
            mx.zeros((0, 3)).T,
            mx.concatenate([mx.zeros((0, 3)), mx.ones((2, 3))]),
            mx.sum(mx.zeros((0, 3)), 0),
            mx.prod(mx.zeros((0,))),
            mx.mean(mx.zeros((0,))),
            mx.take(mx.zeros((0,)), mx.zeros((0,), mx.int32)),
            mx.zeros((2, 0)) @ mx.zeros((0, 3)),
        ],
    )
