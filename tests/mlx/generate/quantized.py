"""Matrices in a few bits an element: codes, scales, numbers, products, derivatives."""

import mlx.core as mx

from .derivatives import gradient
from .inputs import Subject, normal

AFFINE_BITS = (1, 2, 3, 4, 5, 6, 8)
FLOATS = (mx.float32, mx.float16, mx.bfloat16)
FLOAT_MODES = ("mxfp4", "mxfp8", "nvfp4")


def matrix(seed):
    """Rows of several kinds: of both signs, zeros, positive, negative, tiny, of one number."""
    w = normal(seed, 8, 256)
    rows = [w[0], mx.zeros(256), mx.abs(w[2]), -mx.abs(w[3]), w[4] * 1e-6, mx.full(256, 0.3), w[6] * 100, w[7]]
    return mx.stack(rows)


def codes(case):
    w = matrix(201)
    case("affine", w, lambda w: [r for t in FLOATS for b in AFFINE_BITS for r in mx.quantize(w.astype(t), 64, b)])
    case("groups", w, lambda w: [r for g in (32, 64, 128) for r in mx.quantize(w, g, 4)])
    case("usual sizes", w, lambda w: [r for m in ("affine", *FLOAT_MODES) for r in mx.quantize(w, mode=m)])
    case("floats", w, lambda w: [r for t in FLOATS for m in FLOAT_MODES for r in mx.quantize(w.astype(t), mode=m)])
    case(
        "ties of 4 bits",
        mx.concatenate([mx.arange(0, 6.5, 0.25), mx.array([6.0] * 6), mx.arange(-6, 2, 0.25)]).reshape(1, 64),
        lambda w: [r for m in ("mxfp4", "nvfp4") for r in mx.quantize(w, mode=m)],
    )
    case("global scale", w, lambda w: mx.quantize(w, mode="nvfp4", global_scale=mx.array(700.0)))


def numbers(case):
    w = matrix(202)

    def read(w):
        out = [mx.dequantize(*mx.quantize(w.astype(t), 64, b), 64, b) for t in FLOATS for b in AFFINE_BITS]
        out += [mx.dequantize(*mx.quantize(w, mode=m), mode=m) for m in FLOAT_MODES]
        out += [mx.dequantize(*mx.quantize(w, mode=m), mode=m, dtype=mx.float32) for m in FLOAT_MODES]
        out += [mx.dequantize(*mx.quantize(w), dtype=mx.bfloat16)]
        g = mx.array(700.0)
        q = mx.quantize(w, mode="nvfp4", global_scale=g)
        return out + [mx.dequantize(*q, mode="nvfp4", global_scale=g, dtype=mx.float32)]

    case("numbers", w, read)
    words = mx.array([[0x76543210, 0xFEDCBA98, 0x01234567, 0x89ABCDEF]], dtype=mx.uint32)
    case(
        "all codes of 4 bits",
        words,
        lambda c: [
            mx.dequantize(c, mx.array([[s]], dtype=mx.uint8), mode="mxfp4", dtype=mx.float32) for s in (0, 1, 127, 200)
        ],
    )


def products(case):
    w, x = normal(203, 32, 128), normal(204, 3, 128)
    y = normal(205, 2, 5, 32)

    def multiply(w, x, y):
        out = []
        for b in AFFINE_BITS:
            q = mx.quantize(w, 64, b)
            out += [mx.quantized_matmul(x, *q, group_size=64, bits=b)]
            out += [mx.quantized_matmul(y, *q, transpose=False, group_size=64, bits=b)]
        for m in FLOAT_MODES:
            q = mx.quantize(w, mode=m)
            out += [mx.quantized_matmul(x, *q, mode=m), mx.quantized_matmul(y, *q, transpose=False, mode=m)]
        return out + [mx.quantized_matmul(x[0], *mx.quantize(w))]

    case("products", [w, x, y], multiply)

    def promoted(w, x):
        out = []
        for t in FLOATS:
            for u in FLOATS:
                out += [mx.quantized_matmul(x.astype(t), *mx.quantize(w.astype(u), 64, 4), group_size=64, bits=4)]
            out += [mx.quantized_matmul(x.astype(t), *mx.quantize(w, mode="mxfp4"), mode="mxfp4")]
        return out

    case("dtypes of products", [w, x], promoted)
    many, vectors = normal(206, 3, 16, 64), normal(207, 2, 4, 64)
    i, j = mx.array([0, 1, 1]), mx.array([2, 0, 1])

    def gathered(w, x, i, j):
        out = []
        for mode in ("affine", *FLOAT_MODES):
            q = mx.quantize(w, mode=mode)
            out += [
                mx.gather_qmm(x, *q, lhs_indices=i, rhs_indices=j, mode=mode),
                mx.gather_qmm(x, *q, rhs_indices=j[:2], mode=mode),
                mx.gather_qmm(x[:, :, :16], *q, rhs_indices=j[:2], transpose=False, mode=mode),
            ]
        return out

    case("gathered", [many, vectors, i, j], gathered)
    case(
        "derivatives",
        [w, x],
        lambda w, x: gradient(
            lambda x, s, b: mx.quantized_matmul(x, mx.quantize(w, 32, 4)[0], s, b, group_size=32, bits=4),
            x,
            *mx.quantize(w, 32, 4)[1:],
        ),
    )


def generate(store):
    case = Subject(store, "quantized")
    codes(case), numbers(case), products(case)
