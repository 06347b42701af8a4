"""Mistakes of the caller: the class of exception of each."""

import pathlib
import struct
import tempfile

import mlx.core as mx
import mlx.nn as nn

from .inputs import normal


def mistakes():
    """Yields (name, function). Each is called, and its result evaluated."""
    a, b, v, i = normal(1, 3, 4), normal(2, 5, 6), normal(3, 4), mx.array([0, 1])
    s, e = mx.array(2.0), mx.zeros((0, 3))
    m = normal(4, 3, 3)
    pair = normal(15, 2, 2, 2)
    la, f, r, fast = mx.linalg, mx.fft, mx.random, mx.fast

    def watched(x):
        y = x * 2
        mx.async_eval(y)
        return y.sum()

    yield "add of shapes that do not broadcast", lambda: a + b
    yield "where of shapes that do not broadcast", lambda: mx.where(a > 0, b, v)
    yield "broadcast_to", lambda: mx.broadcast_to(a, (3, 5))
    yield "broadcast_to fewer axes", lambda: mx.broadcast_to(a, (4,))
    yield "broadcast_arrays", lambda: mx.broadcast_arrays(a, b)
    yield "bitwise_and of floats", lambda: mx.bitwise_and(a, a)
    yield "left_shift of floats", lambda: mx.left_shift(a, a)
    yield "bitwise_invert of floats", lambda: mx.bitwise_invert(a)
    yield "negative of bools", lambda: mx.negative(a > 0)
    yield "clip without bounds", lambda: mx.clip(a, None, None)
    for name in (
        "sum",
        "prod",
        "mean",
        "max",
        "min",
        "all",
        "any",
        "var",
        "std",
        "logsumexp",
        "argmax",
        "argmin",
        "softmax",
        "cumsum",
        "cumprod",
        "cummax",
        "logcumsumexp",
        "sort",
        "argsort",
        "median",
    ):
        yield name + " axis", lambda name=name: getattr(mx, name)(a, axis=2)
        yield name + " negative axis", lambda name=name: getattr(mx, name)(a, axis=-3)
    yield "sum axes twice", lambda: mx.sum(a, (0, 0))
    yield "max of nothing", lambda: mx.max(e, 0)
    yield "argmin of nothing", lambda: mx.argmin(e, 0)
    yield "partition axis", lambda: mx.partition(a, 1, axis=4)
    yield "partition place", lambda: mx.partition(a, 9, axis=1)
    yield "topk too many", lambda: mx.topk(a, 5, axis=1)
    yield "searchsorted of a matrix", lambda: mx.searchsorted(a, v)
    yield "reshape size", lambda: mx.reshape(a, (5, 2))
    yield "reshape two unknown", lambda: mx.reshape(a, (-1, -1))
    yield "reshape unknown does not divide", lambda: mx.reshape(a, (5, -1))
    yield "flatten axes", lambda: mx.flatten(a, 1, 0)
    yield "unflatten size", lambda: mx.unflatten(a, 1, (3, 2))
    yield "unflatten axis", lambda: mx.unflatten(a, 5, (2, 2))
    yield "squeeze of a longer axis", lambda: mx.squeeze(a, 0)
    yield "squeeze axis", lambda: mx.squeeze(a, 3)
    yield "expand_dims axis", lambda: mx.expand_dims(a, 5)
    yield "expand_dims twice", lambda: mx.expand_dims(a, (0, 0))
    yield "transpose number of axes", lambda: mx.transpose(a, (0,))
    yield "transpose twice", lambda: mx.transpose(a, (0, 0))
    yield "transpose axis", lambda: mx.transpose(a, (0, 3))
    yield "swapaxes axis", lambda: mx.swapaxes(a, 0, 2)
    yield "moveaxis axis", lambda: mx.moveaxis(a, 2, 0)
    yield "flip axis", lambda: mx.flip(a, 2)
    yield "roll axis", lambda: mx.roll(a, 1, 2)
    yield "diagonal of a vector", lambda: mx.diagonal(v)
    yield "diagonal axes", lambda: mx.diagonal(a, 0, 0, 3)
    yield "diag of three axes", lambda: mx.diag(mx.zeros((2, 2, 2)))
    yield "tril of a vector", lambda: mx.tril(v)
    yield "trace of a vector", lambda: mx.trace(v)
    yield "concatenate nothing", lambda: mx.concatenate([])
    yield "concatenate lengths", lambda: mx.concatenate([a, b])
    yield "concatenate axis", lambda: mx.concatenate([a, a], 2)
    yield "concatenate one array", lambda: mx.concatenate([a], 5)
    yield "stack nothing", lambda: mx.stack([])
    yield "stack shapes", lambda: mx.stack([a, v])
    yield "stack axis", lambda: mx.stack([a, a], 4)
    yield "split does not divide", lambda: mx.split(a, 3, 1)
    yield "split axis", lambda: mx.split(a, 2, 2)
    yield "repeat axis", lambda: mx.repeat(a, 2, 3)
    yield "repeat negative", lambda: mx.repeat(a, -1, 0)
    yield "pad negative", lambda: mx.pad(a, -1)
    yield "pad mode", lambda: mx.pad(a, 1, mode="round")
    yield "meshgrid indexing", lambda: mx.meshgrid(v, v, indexing="xyz")
    yield "zeros negative", lambda: mx.zeros((-1, 2))
    yield "eye negative", lambda: mx.eye(-1)
    yield "arange without a step", lambda: mx.arange(0.0, 1.0, 0.0)
    yield "arange of NaN", lambda: mx.arange(float("nan"))
    yield "linspace negative", lambda: mx.linspace(0, 1, -1)
    yield "as_strided lengths", lambda: mx.as_strided(a, (2, 2), (1,), 0)
    yield "view width", lambda: mx.view(normal(5, 3, 3).astype(mx.float16), mx.float32)
    yield "take axis", lambda: mx.take(a, i, 2)
    yield "take by floats", lambda: mx.take(a, v, 0)
    yield "take_along_axis ranks", lambda: mx.take_along_axis(a, i, 0)
    yield "take_along_axis axis", lambda: mx.take_along_axis(a, mx.zeros((3, 4), mx.int32), 2)
    yield "put_along_axis ranks", lambda: mx.put_along_axis(a, i, s, 0)
    yield "slice_update shape", lambda: mx.slice_update(a, b, i, (0, 1))
    yield "matmul lengths", lambda: a @ b
    yield "matmul of a number", lambda: a @ s
    yield "matmul of integers", lambda: mx.matmul(mx.ones((2, 2), mx.int32), mx.ones((2, 2), mx.int32))
    yield "addmm shape", lambda: mx.addmm(b, a, a.T)
    yield "inner lengths", lambda: mx.inner(a, m)
    yield "tensordot lengths", lambda: mx.tensordot(a, b, 1)
    yield "vecdot lengths", lambda: mx.vecdot(a, m)
    yield "einsum letters", lambda: mx.einsum("ij,jk", a)
    yield "einsum rank", lambda: mx.einsum("ijk->i", a)
    yield "einsum lengths", lambda: mx.einsum("ij,jk->ik", a, a)
    yield "hadamard length", lambda: mx.hadamard_transform(normal(6, 7))
    yield "conv1d rank", lambda: mx.conv1d(v, v)
    yield "conv1d channels", lambda: mx.conv1d(normal(7, 1, 5, 3), normal(8, 2, 3, 4))
    yield "conv2d groups", lambda: mx.conv2d(normal(7, 1, 5, 5, 3), normal(8, 2, 3, 3, 3), groups=2)
    yield "conv1d stride", lambda: mx.conv1d(normal(7, 1, 5, 3), normal(8, 2, 3, 3), stride=0)
    yield "inv of a row", lambda: la.inv(a)
    yield "inv of integers", lambda: la.inv(mx.ones((2, 2), mx.int32))
    yield "inv of a vector", lambda: la.inv(v)
    yield "cholesky of a row", lambda: la.cholesky(a)
    yield "solve lengths", lambda: la.solve(m, normal(9, 4, 2))
    yield "qr of a vector", lambda: la.qr(v)
    yield "svd of a vector", lambda: la.svd(v)
    yield "eigh UPLO", lambda: la.eigh(m, "X")
    yield "eigh of a row", lambda: la.eigvalsh(a)
    yield "norm order", lambda: la.norm(m, "what")
    yield "norm axes", lambda: la.norm(normal(10, 2, 2, 2), 2, (0, 1, 2))
    yield "norm axis", lambda: la.norm(m, axis=3)
    yield "cross length", lambda: la.cross(normal(11, 5), normal(12, 5))
    yield "det of a row", lambda: la.det(a)
    yield "fft of a number", lambda: f.fft(s)
    yield "fft axis", lambda: f.fft(a, axis=3)
    yield "fft length", lambda: f.fft(a, n=0)
    yield "fft2 of a vector", lambda: f.fft2(v)
    yield "fftn lengths", lambda: f.fftn(a, s=(2,), axes=(0, 1))
    yield "rfft of complex", lambda: f.rfft(f.fft(a))
    yield "fftshift axis", lambda: f.fftshift(a, axes=(3,))
    yield "fftfreq", lambda: f.fftfreq(0)
    yield "fftfreq distance", lambda: f.fftfreq(4, 0.0)
    yield "rfftfreq distance", lambda: f.rfftfreq(4, 0.0)
    yield "kron of nothing", lambda: mx.kron(e, m)
    yield "det of complex", lambda: la.det(m.astype(mx.complex64))
    yield "from_fp8 of integers", lambda: mx.from_fp8(i)
    yield "uniform dtype", lambda: r.uniform(shape=(2,), dtype=mx.int32)
    yield "uniform bounds", lambda: r.uniform(v, v, (3,))
    yield "uniform key dtype", lambda: r.uniform(shape=(2,), key=i)
    yield "uniform key shape", lambda: r.uniform(shape=(2,), key=mx.zeros((3,), mx.uint32))
    yield "normal dtype", lambda: r.normal((2,), dtype=mx.int32)
    yield "normal negative", lambda: r.normal((-2,))
    yield "randint of floats", lambda: r.randint(0, 3, (2,), dtype=mx.float32)
    yield "bernoulli of integers", lambda: r.bernoulli(i)
    yield "categorical axis", lambda: r.categorical(a, axis=4)
    yield "permutation axis", lambda: r.permutation(a, axis=3)
    yield "layer_norm weight", lambda: fast.layer_norm(a, normal(13, 3), None, 1e-5)
    yield "layer_norm of a number", lambda: fast.layer_norm(s, None, None, 1e-5)
    yield "rope rank", lambda: fast.rope(v, 4, traditional=False, base=10.0, scale=1.0, offset=0)
    yield "attention rank", lambda: fast.scaled_dot_product_attention(a, a, a, scale=1.0)
    yield "attention width", lambda: fast.scaled_dot_product_attention(
        normal(14, 1, 2, 3, 4), normal(14, 1, 2, 3, 5), normal(14, 1, 2, 3, 5), scale=1.0
    )
    yield "attention mode", lambda: fast.scaled_dot_product_attention(
        normal(14, 1, 2, 3, 4), normal(14, 1, 2, 3, 4), normal(14, 1, 2, 3, 4), scale=1.0, mask="acausal"
    )
    yield "grad of an array", lambda: mx.grad(lambda x: x * 2)(a)
    yield "grad by integers", lambda: mx.grad(lambda x: mx.sum(x))(i)
    yield "grad argument", lambda: mx.grad(lambda x: mx.sum(x), argnums=1)(a)
    yield "gather_mm by indices", lambda: mx.grad(lambda x, j: mx.gather_mm(x, x, j).sum(), (0, 1))(pair, i)
    yield "gather_mm by computed indices", lambda: mx.grad(
        lambda x: mx.gather_mm(x, x, None, mx.argmax(x[:, 0], axis=1)).sum()
    )(pair)
    yield "async_eval in grad", lambda: mx.grad(watched)(v)
    yield "async_eval in vmap", lambda: mx.vmap(watched)(a)
    yield "async_eval in compile", lambda: mx.compile(watched)(v)
    yield "vjp cotangents", lambda: mx.vjp(lambda x: x * 2, [a], [v])[0]
    yield "vjp number of cotangents", lambda: mx.vjp(lambda x: x * 2, [a], [])[0]
    yield "jvp tangents", lambda: mx.jvp(lambda x: x * 2, [a], [v])[0]
    yield "vmap axis", lambda: mx.vmap(lambda x: x, in_axes=3)(a)
    yield "vmap lengths", lambda: mx.vmap(lambda x, y: x + y)(a, b)
    yield "vmap of a number", lambda: mx.vmap(lambda x: x)(s)
    yield "item of more", lambda: a.item()
    yield "to_fp8 of integers", lambda: mx.to_fp8(i)
    yield "erf of complex", lambda: mx.erf(f.fft(v))
    yield "floor of complex", lambda: mx.floor(f.fft(v))
    yield "cross_entropy shapes", lambda: nn.losses.cross_entropy(a, mx.zeros((5,), mx.int32))
    yield "mse_loss shapes", lambda: nn.losses.mse_loss(a, v)


def files():
    """Yields (name, bytes, what loads it): files that are not what their name says."""
    header = b'{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
    good = struct.pack("<Q", len(header)) + header + bytes(8)
    yield "missing.npy", None
    yield "missing.safetensors", None
    yield "empty.npy", b""
    yield "magic.npy", b"\x93NUMPX\x01\x00" + bytes(120)
    yield "version.npy", b"\x93NUMPY\x09\x00" + bytes(120)
    yield "empty.safetensors", b""
    yield "short.safetensors", good[:20]
    yield "length.safetensors", struct.pack("<Q", 2**40) + header
    yield "json.safetensors", struct.pack("<Q", 4) + b"what"
    yield "offsets.safetensors", struct.pack("<Q", len(header)) + header.replace(b"[0,8]", b"[8,0]") + bytes(8)
    yield "size.safetensors", struct.pack("<Q", len(header)) + header.replace(b"[0,8]", b"[0,4]") + bytes(8)


def generate(store):
    for name, function in mistakes():
        store.add({"name": "mistake/" + name, "in": []}, function)
        store.cases[-1].pop("out", None)  # that it returns is what counts
        store.cases[-1].pop("message", None)
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files():
            path = pathlib.Path(folder) / name
            if content is not None:
                path.write_bytes(content)

            def load():
                loaded = mx.load(str(path))
                return list(loaded.values()) if isinstance(loaded, dict) else loaded

            inputs = [] if content is None else [store.array(mx.array(list(content), mx.uint8))]
            store.add({"name": "file/" + name, "in": inputs}, load)
            store.cases[-1].pop("out", None)
            store.cases[-1].pop("message", None)
