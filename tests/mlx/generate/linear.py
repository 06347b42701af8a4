"""Linear algebra, Fourier transforms, convolutions, fast composites, and their derivatives."""

import mlx.core as mx

from .derivatives import gradient
from .inputs import Subject, complexes, normal, uniform


def matrices(case):
    a, b, t = normal(81, 4, 4) + 3 * mx.eye(4), normal(82, 4, 2), normal(83, 2, 3, 3)
    spd = mx.matmul(a, a.T) + mx.eye(4)
    r, c = normal(84, 5, 3), complexes(85, 3, 4)
    la = mx.linalg
    case(
        "norm",
        [r, t],
        lambda r, t: [
            la.norm(r),
            la.norm(r, axis=0),
            la.norm(r, axis=1, keepdims=True),
            la.norm(r, ord=1, axis=1),
            la.norm(r, ord=float("inf"), axis=0),
            la.norm(r, ord=float("-inf"), axis=0),
            la.norm(r, ord=0, axis=1),
            la.norm(r, ord=3, axis=1),
            la.norm(r, ord="fro"),
            la.norm(r, ord="nuc"),
            la.norm(r, ord=1),
            la.norm(r, ord=-1),
            la.norm(r, ord=2),
            la.norm(r, ord=-2),
            la.norm(r, ord=float("inf")),
            la.norm(t, axis=(1, 2)),
            la.norm(t, ord=1, axis=(0, 2)),
            la.norm(r[0], ord=4),
            la.norm(r, keepdims=True),
        ],
    )
    case(
        "norm of complex",
        [c],
        lambda c: [
            la.norm(c),
            la.norm(c, axis=1),
            la.norm(c, ord=1, axis=0),
            la.norm(c, ord=float("inf"), axis=0),
            la.norm(c, ord="fro"),
        ],
    )
    case(
        "inverses",
        [a, spd, b],
        lambda a, s, b: [
            la.inv(a),
            la.inv(s),
            la.tri_inv(mx.tril(a)),
            la.tri_inv(mx.triu(a), upper=True),
            la.cholesky(s),
            la.cholesky(s, upper=True),
            la.cholesky_inv(la.cholesky(s)),
            la.pinv(b),
            la.solve(a, b),
            la.solve(a, b[:, 0]),
            la.solve_triangular(mx.tril(a), b),
            la.solve_triangular(mx.triu(a), b, upper=True),
            la.inv(mx.stack([a, s])),
        ],
    )
    case(
        "decompositions",
        [a, spd, r],
        lambda a, s, r: [
            mx.abs(la.qr(r)[0]),
            mx.abs(la.qr(r)[1]),
            mx.matmul(*la.qr(a)),
            la.svd(r, compute_uv=False),
            mx.abs(la.svd(r)[0][:, :3]),
            la.svd(r)[1],
            mx.abs(la.svd(r)[2]),
            la.eigvalsh(s),
            la.eigh(s)[0],
            mx.abs(la.eigh(s)[1]),
            la.eigvalsh(s, "U"),
            *la.lu(a),
            *la.lu_factor(a),
        ],
    )
    case(
        "eigenvalues",
        [mx.array([[2.0, 1.0, 0.0], [0.0, 3.0, 1.0], [0.0, 0.0, 5.0]])],
        lambda a: [
            mx.sort(mx.real(la.eigvals(a))),
            mx.sort(mx.real(la.eig(a)[0])),
            mx.sum(mx.abs(mx.square(la.eig(a)[1])), 0),
        ],
    )
    case("determinants", [a, t], lambda a, t: [la.det(a), *la.slogdet(a), la.det(t), *la.slogdet(t)])
    case(
        "cross",
        [r, normal(86, 5, 3)],
        lambda a, b: [la.cross(a, b), la.cross(a[:3], b[:3], axis=0), la.cross(a[:, :2], b)],
    )
    case("cross of two", [r], lambda a: la.cross(a[:, :2], a[:, 1:]))
    case(
        "float64",
        [a.astype(mx.float64), b.astype(mx.float64)],
        lambda a, b: [la.inv(a), la.solve(a, b), la.norm(a), la.svd(a, compute_uv=False)],
    )
    whole = mx.array([[[2, 1], [1, 3]], [[-1, 4], [7, 2]]])
    case(
        "determinants of other numbers",
        [whole, whole.astype(mx.float16), whole.astype(mx.bfloat16), whole > 1],
        lambda *all: [f(x) for x in all for f in (la.det, lambda x: la.slogdet(x)[0], lambda x: la.slogdet(x)[1])],
    )
    case("det of float64", [a.astype(mx.float64)], la.det)
    case(
        "gradients",
        [a, b, spd],
        lambda a, b, s: [
            *gradient(la.norm, a),
            *gradient(lambda x: la.norm(x, axis=1), a),
            *gradient(lambda x, y: la.cross(x[:, :3], y[:, :3]), a, s),
        ],
    )


def transforms(case):
    x, z = normal(91, 3, 8), complexes(92, 3, 6)
    f = mx.fft
    case(
        "fft",
        [x, z],
        lambda x, z: [
            f.fft(x),
            f.fft(z),
            f.fft(z, axis=0),
            f.fft(z, n=4),
            f.fft(z, n=9),
            f.ifft(z),
            f.ifft(z, n=8, axis=1),
            f.rfft(x),
            f.rfft(x, n=5),
            f.rfft(x, axis=0),
            f.irfft(z),
            f.irfft(z, n=7),
            f.irfft(z, axis=0),
        ],
    )
    t = normal(93, 2, 4, 6)
    case(
        "fft of more axes",
        [t, complexes(94, 2, 4, 6)],
        lambda t, z: [
            f.fft2(t),
            f.ifft2(z),
            f.rfft2(t),
            f.irfft2(z),
            f.fftn(z),
            f.ifftn(z),
            f.rfftn(t),
            f.irfftn(z),
            f.fftn(z, axes=(0, 2)),
            f.fft2(z, s=(3, 5)),
            f.rfftn(t, s=(3, 4), axes=(1, 2)),
            f.irfft2(z, s=(4, 7)),
        ],
    )
    case(
        "fft scales",
        [z],
        lambda z: [
            f.fft(z, norm="ortho"),
            f.fft(z, norm="forward"),
            f.ifft(z, norm="ortho"),
            f.ifft(z, norm="forward"),
            f.irfft(z, norm="ortho"),
            f.fftn(z, norm="forward"),
        ],
    )
    case(
        "fft frequencies",
        [t],
        lambda t: [
            f.fftfreq(7),
            f.fftfreq(8, 0.5),
            f.rfftfreq(7),
            f.rfftfreq(8, 2.0),
            f.fftshift(t),
            f.fftshift(t, axes=(1,)),
            f.ifftshift(t),
            f.ifftshift(t, axes=(0, 2)),
        ],
    )
    case(
        "fft of primes",
        [normal(95, 17), normal(96, 31)],
        lambda a, b: [f.fft(a), f.rfft(b), f.fft(mx.concatenate([a, b]))],
    )


def convolutions(case):
    x1, w1 = normal(101, 2, 9, 4), normal(102, 6, 3, 4)
    x2, w2 = normal(103, 2, 7, 6, 4), normal(104, 4, 3, 2, 4)
    x3, w3 = normal(105, 1, 4, 5, 4, 2), normal(106, 3, 2, 2, 2, 2)
    case(
        "conv1d",
        [x1, w1, normal(107, 4, 3, 1), normal(108, 6, 3, 2)],
        lambda x, w, d, g: [
            mx.conv1d(x, w),
            mx.conv1d(x, w, stride=2, padding=1),
            mx.conv1d(x, w, dilation=2),
            mx.conv1d(x, d, groups=4),
            mx.conv1d(x, g, groups=2, padding=2),
        ],
    )
    case(
        "conv2d",
        [x2, w2, normal(109, 4, 3, 3, 1)],
        lambda x, w, d: [
            mx.conv2d(x, w),
            mx.conv2d(x, w, stride=(2, 1), padding=(1, 2)),
            mx.conv2d(x, w, dilation=2),
            mx.conv2d(x, d, padding=1, groups=4),
            mx.conv2d(x, w, 2),
        ],
    )
    case(
        "conv3d",
        [x3, w3],
        lambda x, w: [
            mx.conv3d(x, w),
            mx.conv3d(x, w, stride=(1, 2, 1), padding=1),
            mx.conv3d(x, w, dilation=(1, 2, 1)),
        ],
    )
    case(
        "conv_transpose",
        [x1, x2, x3, w1, w2, w3],
        lambda a, b, c, u, v, w: [
            mx.conv_transpose1d(a, u, 2),
            mx.conv_transpose1d(a, u, stride=2, padding=1, output_padding=1),
            mx.conv_transpose2d(b, v, (2, 1), (1, 0)),
            mx.conv_transpose3d(c, w, 2),
            mx.conv_transpose1d(a, u, dilation=2),
        ],
    )
    case(
        "conv_general",
        [x2, w2],
        lambda x, w: [
            mx.conv_general(
                x, w, stride=(1, 2), padding=([1, 0], [2, 1]), kernel_dilation=(2, 1), input_dilation=(1, 2)
            ),
            mx.conv_general(x, w, flip=True),
            mx.conv_general(x, w, padding=1),
        ],
    )
    case(
        "conv gradients",
        [x1, w1, x2, w2],
        lambda x, w, y, v: [
            *gradient(lambda a, b: mx.conv1d(a, b, 2, 1), x, w),
            *gradient(lambda a, b: mx.conv2d(a, b, (2, 1), (1, 0), (1, 2)), y, v),
            *gradient(lambda a, b: mx.conv_transpose1d(a, b, 2), x, w),
        ],
    )


def composites(case):
    x, w, b = normal(111, 2, 3, 8), uniform(112, 8, low=0.5, high=1.5), normal(113, 8)
    case(
        "layer_norm",
        [x, w, b],
        lambda x, w, b: [
            mx.fast.layer_norm(x, w, b, 1e-5),
            mx.fast.layer_norm(x, None, None, 1e-5),
            mx.fast.layer_norm(x, w, None, 1e-3),
            *gradient(lambda x, w, b: mx.fast.layer_norm(x, w, b, 1e-5), x, w, b),
        ],
    )
    q, k, v = normal(114, 1, 4, 5, 8), normal(115, 1, 2, 6, 8), normal(116, 1, 2, 6, 8)
    case(
        "attention",
        [q, k, v, mx.array([[i + j < 7 for j in range(6)] for i in range(5)]), normal(117, 5, 6)],
        lambda q, k, v, m, a: [
            mx.fast.scaled_dot_product_attention(q, k, v, scale=0.35),
            mx.fast.scaled_dot_product_attention(q, k, v, scale=0.35, mask=m),
            mx.fast.scaled_dot_product_attention(q, k, v, scale=0.35, mask=a),
            mx.fast.scaled_dot_product_attention(q, k, v, scale=0.35, mask="causal"),
            *gradient(
                lambda q, k, v: mx.fast.scaled_dot_product_attention(q, k, v, scale=0.35, mask="causal"), q, k, v
            ),
        ],
    )
    case(
        "rope",
        [normal(118, 2, 3, 5, 8), uniform(119, 4, low=1.0, high=90.0), mx.array([2, 7])],
        lambda x, f, o: [
            mx.fast.rope(x, 8, traditional=False, base=10000.0, scale=1.0, offset=0),
            mx.fast.rope(x, 4, traditional=True, base=500.0, scale=0.5, offset=3),
            mx.fast.rope(x, 8, traditional=False, base=None, scale=1.0, offset=1, freqs=f),
            mx.fast.rope(x, 8, traditional=True, base=10000.0, scale=1.0, offset=o),
            *gradient(lambda x: mx.fast.rope(x, 6, traditional=False, base=100.0, scale=1.0, offset=2), x),
        ],
    )
    if hasattr(mx.fast, "cross_entropy"):
        case(
            "cross_entropy",
            [normal(120, 4, 6), mx.array([0, 5, 2, 2])],
            lambda x, t: [mx.fast.cross_entropy(x, t), *gradient(lambda a: mx.fast.cross_entropy(a, t), x)],
        )


def generate(store):
    case = Subject(store, "linear")
    matrices(case), transforms(case), convolutions(case), composites(case)
