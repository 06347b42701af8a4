"""A call for each differentiable operation: the gradients of its results, weighted and summed, by all arguments."""

import numpy as np


def draw(mx, seed, *shape, low=-1.5, high=1.5):
    return mx.array(np.random.default_rng(seed).uniform(low, high, shape).astype(np.float32))


def gradients(mx, f, arguments):
    """The gradients by all arguments of the sum of f's results times cosines of their positions."""

    def loss(*xs):
        results = f(*xs)
        total = mx.array(0.0)
        for y in results if isinstance(results, (list, tuple)) else [results]:
            total = total + (mx.real(y) * mx.cos(mx.arange(y.size).reshape(y.shape) + 0.5)).sum()
        return total

    return mx.grad(loss, argnums=tuple(range(len(arguments))))(*arguments)


# Functions of one array, with the range of the draws.
UNARY = {
    **dict.fromkeys(
        "abs arctan arcsinh ceil cos cosh degrees erf exp expm1 floor negative radians round sigmoid sign sin sinh "
        "square tan tanh trunc".split(),
        (-1.4, 1.4),
    ),
    **dict.fromkeys("arccos arcsin arctanh erfinv".split(), (-0.9, 0.9)),
    **dict.fromkeys("log log10 log1p log2 reciprocal rsqrt sqrt".split(), (0.2, 3.0)),
    "arccosh": (1.2, 3.0),
}
BINARY = "add subtract multiply divide maximum minimum arctan2 logaddexp".split()
REDUCTIONS = "sum mean max min prod var std logsumexp median softmax sort".split()
SCANS = "cumsum cumprod cummax cummin logcumsumexp".split()


def shape_cases(mx):
    x, y = draw(mx, 1, 3, 4), draw(mx, 2, 3, 4)
    picks = mx.array([2, 0, 2])
    return {
        "broadcast_to": (lambda x: mx.broadcast_to(x, (2, 3, 4)), x),
        "concatenate": (lambda x, y: mx.concatenate([x, y], axis=1), x, y),
        "stack": (lambda x, y: mx.stack([x, y], axis=1), x, y),
        "split": (lambda x: mx.split(x, [1, 3], axis=1), x),
        "pad": (lambda x: mx.pad(x, [(1, 0), (0, 2)]), x),
        "pad of edges": (lambda x: mx.pad(x, [(1, 2), (0, 1)], mode="edge"), x),
        "repeat": (lambda x: mx.repeat(x, 3, axis=0), x),
        "tile": (lambda x: mx.tile(x, (2, 1, 2)), x),
        "roll": (lambda x: mx.roll(x, 2, axis=1), x),
        "transpose": (lambda x: mx.transpose(x), x),
        "moveaxis": (lambda x: mx.moveaxis(x, 0, -1), x),
        "reshape": (lambda x: mx.reshape(x, (2, 6)), x),
        "slice": (lambda x: x[::2, 3:0:-1], x),
        "diagonal": (lambda x: mx.diagonal(x, 1), x),
        "diag": (lambda x: mx.diag(x[0]), x),
        "tril": (lambda x: mx.tril(x), x),
        "triu": (lambda x: mx.triu(x, 1), x),
        "flatten": (lambda x: mx.flatten(x), x),
        "as_strided": (lambda x: mx.as_strided(x, (3, 3), (2, 1), 1), x),
        "take": (lambda x: mx.take(x, picks, axis=1), x),
        "take_along_axis": (lambda x: mx.take_along_axis(x, mx.array([[0, 1], [2, 3], [1, 1]]), axis=1), x),
        "put_along_axis": (lambda x, y: mx.put_along_axis(x, mx.array([[1], [3], [0]]), y[:, :1], axis=1), x, y),
        "index by arrays": (lambda x: x[picks, mx.array([1, 1, 3])], x),
        "at add": (lambda x, y: x.at[picks].add(y), x, y),
        "at maximum": (lambda x, y: x.at[picks].maximum(y), x, y),
        "slice_update": (lambda x, y: mx.slice_update(x, y[:1, :2], mx.array([1, 1]), (0, 1)), x, y),
        "where": (lambda x, y: mx.where(x > y, x * 2, y * 3), x, y),
        "select of a scalar": (lambda x: mx.where(x > 0, x, 0.5), x),
        "clip": (lambda x: mx.clip(x, -0.5, 0.7), x),
        "clip by arrays": (lambda x, y: mx.clip(x, y - 0.5, y + 0.5), x, y),
        "nan_to_num": (lambda x: mx.nan_to_num(x), x),
        "partition": (lambda x: mx.partition(x, 2, axis=1)[:, 2], x),
        "topk": (lambda x: mx.topk(x, 2, axis=1), x),
        "stop_gradient": (lambda x: x * mx.stop_gradient(x), x),
        "astype": (lambda x: x.astype(mx.float16).astype(mx.float32) ** 2, x),
        "power": (lambda x, y: mx.power(mx.abs(x) + 0.5, y), x, y),
        "remainder": (lambda x, y: mx.remainder(x, y + 2.5), x, y),
        "divmod": (lambda x, y: mx.divmod(x, y + 2.5), x, y),
        "complex parts": (lambda x, y: [mx.real(x + 1j * y) * 2, mx.imag((x + 1j * y) * 1j), mx.abs(x + 1j * y)], x, y),
    }


def product_cases(mx):
    x, y, m = draw(mx, 3, 2, 3, 4), draw(mx, 4, 2, 4, 5), draw(mx, 5, 4, 4)
    image, kernel = draw(mx, 6, 2, 7, 6, 4), draw(mx, 7, 6, 3, 2, 2)
    line, taps = draw(mx, 8, 2, 9, 4), draw(mx, 9, 6, 3, 4)
    back, volume, cube = draw(mx, 10, 6, 3, 4), draw(mx, 11, 1, 4, 5, 3, 2), draw(mx, 12, 3, 2, 3, 2, 2)
    return {
        "matmul": (lambda x, y: x @ y, x, y),
        "matmul of vectors": (lambda x, y: x[0, 0] @ y[0], x, y),
        "matmul, broadcast": (lambda x, y: x[:, None] @ y, x, y),
        "addmm": (lambda c, x, y: mx.addmm(c, x[0], y[0], alpha=0.5, beta=2.0), draw(mx, 13, 3, 5), x, y),
        "inner": (lambda x, y: mx.inner(x[0], y[0].T), x, y),
        "outer": (lambda x, y: mx.outer(x[0, 0], y[0, 0]), x, y),
        "tensordot": (lambda x, y: mx.tensordot(x, y, axes=[[2], [1]]), x, y),
        "einsum": (lambda x, y: mx.einsum("bij,bjk->kb", x, y), x, y),
        "einsum of three": (lambda x, y, m: mx.einsum("bij,bjk,jl->lk", x, y, m), x, y, m),
        "kron": (lambda x, y: mx.kron(x[0], y[0, :2, :2]), x, y),
        "trace": (lambda m: mx.trace(m, offset=1), m),
        "gather_mm": (lambda x, y: mx.gather_mm(x, y, mx.array([0, 1, 0]), mx.array([1, 0, 0])), x, y),
        "block_masked_mm": (
            lambda m: mx.block_masked_mm(mx.tile(m, (8, 8)), mx.tile(m, (8, 8)), 32, mx.array([[True]]))[:3, :5], m),
        "hadamard_transform": (lambda x: mx.hadamard_transform(x), x),
        "conv1d": (lambda x, w: mx.conv1d(x, w, stride=2, padding=1), line, taps),
        "conv1d, dilated": (lambda x, w: mx.conv1d(x, w, dilation=3), line, taps),
        "conv2d": (
            lambda x, w: mx.conv2d(x, mx.concatenate([w, w], axis=-1), stride=(2, 1), padding=(1, 0)), image, kernel),
        "conv2d of groups": (lambda x, w: mx.conv2d(x, w, groups=2), image, kernel),
        "conv3d": (lambda x, w: mx.conv3d(x, w, stride=(2, 1, 1)), volume, cube),
        "conv_transpose1d": (lambda x, w: mx.conv_transpose1d(x, w, stride=2, padding=1), line, back),
        "convolve": (lambda x, y: mx.convolve(x[0, 0], y[0, :, 0], mode="same"), x, y),
        "fft": (lambda x: [mx.real(mx.fft.fft(x)), mx.imag(mx.fft.fft(x))], x),
        "ifft": (lambda x: [mx.real(mx.fft.ifft(x)), mx.imag(mx.fft.ifft(x))], x),
        "rfft": (lambda x: mx.abs(mx.fft.rfft(x)), x),
        "irfft": (lambda x: mx.fft.irfft(x + 1j * mx.square(x)), x),
        "fft2": (lambda x: mx.abs(mx.fft.fft2(x)), x),
        "rfftn of a longer axis": (lambda x: mx.abs(mx.fft.rfft(x, n=7)), x),
        "norm": (lambda x: mx.linalg.norm(x, axis=-1), x),
        "norm of matrices": (lambda x: mx.linalg.norm(x), x),
        "norm of order 3": (lambda x: mx.linalg.norm(x, ord=3, axis=1), x),
        "cross": (lambda x, y: mx.linalg.cross(x[..., :3], y[:, :3, :3]), x, y),
    }


def fast_cases(mx):
    x, w, b = draw(mx, 20, 2, 3, 8), draw(mx, 21, 8), draw(mx, 22, 8)
    q, k, v = (draw(mx, seed, 1, 4, length, 8) for seed, length in ((23, 5), (24, 7), (25, 7)))
    few = draw(mx, 26, 1, 2, 7, 8)
    codes = mx.quantize(draw(mx, 27, 16, 64), group_size=32, bits=4)
    wide, narrow = draw(mx, 28, 3, 64), draw(mx, 29, 3, 16)
    stacked = mx.quantize(draw(mx, 30, 3, 16, 64), group_size=32, bits=8)
    experts, rows = mx.array([2, 0, 1, 1]), draw(mx, 31, 4, 1, 64)

    def attention(mask=None, sinks=None):
        def call(q, k, v):
            added = mask.astype(q.dtype) if isinstance(mask, mx.array) and mask.dtype == mx.float32 else mask
            more = {} if sinks is None else {"sinks": sinks.astype(q.dtype)}
            return mx.fast.scaled_dot_product_attention(q, k, v, scale=0.4, mask=added, **more)

        return call

    def rope(x, **options):
        defaults = {"dims": 8, "traditional": False, "base": 100.0, "scale": 1.0, "offset": 3}
        return mx.fast.rope(x, **{**defaults, **options})

    return {
        "layer_norm": (lambda x, w, b: mx.fast.layer_norm(x, w, b, 1e-5), x, w, b),
        "layer_norm without weights": (lambda x: mx.fast.layer_norm(x, None, None, 1e-3), x),
        "rms_norm": (lambda x, w: mx.fast.rms_norm(x, w, 1e-5), x, w),
        "rms_norm without weights": (lambda x: mx.fast.rms_norm(x, None, 1e-3), x),
        "rope": (lambda x: rope(x), x),
        "rope, traditional": (lambda x: rope(x, traditional=True), x),
        "rope of half": (lambda x: rope(x, dims=4, scale=0.5), x),
        "rope by frequencies": (lambda x: rope(x, base=None, freqs=mx.array([1.0, 2.0, 5.0, 9.0])), x),
        "attention": (attention(), q, k, v),
        "attention, causal": (attention(mask="causal"), q, k, v),
        "attention, masked": (attention(mask=mx.arange(35).reshape(5, 7) % 3 != 0), q, k, v),
        "attention, biased": (attention(mask=draw(mx, 32, 1, 4, 5, 7)), q, k, v),
        "attention with shared keys": (attention(), q, few, few * 0.5),
        "attention with sinks": (attention(sinks=draw(mx, 33, 4)), q, k, v),
        "quantized_matmul": (lambda x: mx.quantized_matmul(x, *codes, transpose=True, group_size=32, bits=4), wide),
        "quantized_matmul, not transposed": (
            lambda x: mx.quantized_matmul(x, *codes, transpose=False, group_size=32, bits=4), narrow),
        "gather_qmm": (lambda x: mx.gather_qmm(x, *stacked, rhs_indices=experts, group_size=32, bits=8), rows),
    }


def cases(mx):
    """(name, call) of each case."""
    found = {}
    for name, (low, high) in UNARY.items():
        found[name] = (lambda x, name=name: getattr(mx, name)(x), draw(mx, 40, 3, 5, low=low, high=high))
    for name in BINARY:
        arguments = draw(mx, 41, 3, 5), draw(mx, 42, 5, low=0.3, high=2)
        found[name] = (lambda x, y, name=name: getattr(mx, name)(x, y), *arguments)
    for name in [*REDUCTIONS, *SCANS]:
        for axis in (0, 1):
            call = lambda x, name=name, axis=axis: getattr(mx, name)(x, axis=axis)  # noqa: E731
            found[f"{name} along {axis}"] = (call, draw(mx, 43, 4, 5))
    for more in (shape_cases(mx), product_cases(mx), fast_cases(mx)):
        found.update(more)
    for name, (f, *arguments) in found.items():
        yield name, lambda f=f, arguments=arguments: gradients(mx, f, arguments)
