"""Linear algebra and Fourier transforms against NumPy."""

import numpy as np
import pytest
from support import IS_MLX, assert_close, assert_equal, pair

import weft.core as mx

LOOSE = {"float32": 2e-4, "float64": 1e-10}


def square(dtype, *batch, n=4, seed=0):
    """A matrix that is far from singular, and its values."""
    x, a = pair(dtype, (*batch, n, n), seed=seed)
    return x + 5 * mx.eye(n, dtype=x.dtype), a + 5 * np.eye(n)


def positive(dtype, *batch):
    x, a = square(dtype, *batch)
    return x @ x.swapaxes(-1, -2), a @ a.swapaxes(-1, -2)


@pytest.mark.parametrize("batch", [(), (3,), (2, 2)])
@pytest.mark.parametrize("dtype", LOOSE)
def test_inverses_and_solutions(dtype, batch):
    bound = LOOSE[dtype]
    (x, a), (b, c) = square(dtype, *batch), pair(dtype, (*batch, 4, 2), seed=1)
    assert_close(mx.linalg.inv(x), np.linalg.inv(a), tolerance=bound)
    assert_close(mx.linalg.solve(x, b), np.linalg.solve(a, c), tolerance=bound)
    assert_close(mx.linalg.tri_inv(mx.tril(x)), np.linalg.inv(np.tril(a)), tolerance=bound)
    assert_close(mx.linalg.tri_inv(mx.triu(x), upper=True), np.linalg.inv(np.triu(a)), tolerance=bound)
    assert_close(mx.linalg.solve_triangular(mx.tril(x), b), np.linalg.solve(np.tril(a), c), tolerance=bound)
    upper = mx.linalg.solve_triangular(mx.triu(x), b, upper=True)
    assert_close(upper, np.linalg.solve(np.triu(a), c), tolerance=bound)
    assert_close(mx.linalg.det(x), np.linalg.det(a), tolerance=1e-3)
    sign, log = mx.linalg.slogdet(x)
    assert_close(sign, np.linalg.slogdet(a)[0], tolerance=bound)
    assert_close(log, np.linalg.slogdet(a)[1], tolerance=bound)


@pytest.mark.parametrize("batch", [(), (3,)])
@pytest.mark.parametrize("dtype", LOOSE)
def test_cholesky(dtype, batch):
    bound = 5 * LOOSE[dtype]
    x, a = positive(dtype, *batch)
    low = np.linalg.cholesky(a)
    assert_close(mx.linalg.cholesky(x), low, tolerance=bound)
    assert_close(mx.linalg.cholesky(x, upper=True), low.swapaxes(-1, -2), tolerance=bound)
    assert_close(mx.linalg.cholesky_inv(mx.linalg.cholesky(x)), np.linalg.inv(a), tolerance=bound)


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 4, 3)])
@pytest.mark.parametrize("dtype", LOOSE)
def test_decompositions_multiply_to_the_matrix(dtype, shape):
    bound = LOOSE[dtype]
    x, a = pair(dtype, shape)
    u, s, v = mx.linalg.svd(x)
    k = min(shape[-2:])
    assert u.shape[-2:] == (shape[-2],) * 2 and v.shape[-2:] == (shape[-1],) * 2
    assert_close((u[..., :k] * s[..., None, :]) @ v[..., :k, :], a, tolerance=bound)
    assert_close(s, np.linalg.svd(a, compute_uv=False), tolerance=bound)
    assert_close(mx.linalg.svd(x, compute_uv=False), np.linalg.svd(a, compute_uv=False), tolerance=bound)
    q, r = mx.linalg.qr(x)
    assert_close(q @ r, a, tolerance=bound)
    assert_close(q.swapaxes(-1, -2) @ q, np.broadcast_to(np.eye(k), (*shape[:-2], k, k)), tolerance=bound)
    assert_close(mx.linalg.pinv(x), np.linalg.pinv(a), tolerance=10 * bound)


@pytest.mark.parametrize("dtype", LOOSE)
def test_lu(dtype):
    x, a = square(dtype)
    rows, low, up = mx.linalg.lu(x)
    assert_close(low[rows, :] @ up, a, tolerance=LOOSE[dtype])
    packed, pivots = mx.linalg.lu_factor(x)
    assert packed.shape == (4, 4) and pivots.shape == (4,)
    assert_close(mx.triu(packed), np.array(up), tolerance=LOOSE[dtype])


@pytest.mark.parametrize("uplo", ["L", "U"])
@pytest.mark.parametrize("dtype", LOOSE)
def test_eigenvalues(dtype, uplo):
    bound = 20 * LOOSE[dtype]
    x, a = positive(dtype, 2)
    values, vectors = mx.linalg.eigh(x, UPLO=uplo)
    assert_close(values, np.linalg.eigvalsh(a), tolerance=bound)
    assert_close(x @ vectors, np.array(vectors * values[:, None, :]), tolerance=bound)
    assert_close(mx.linalg.eigvalsh(x, uplo), np.linalg.eigvalsh(a), tolerance=bound)


def test_eigenvalues_of_general_matrices():
    x, a = pair("float32", (4, 4))
    values, vectors = mx.linalg.eig(x)
    assert values.dtype == mx.complex64
    assert_close(x.astype(mx.complex64) @ vectors, np.array(vectors * values), tolerance=1e-4)
    both = [np.sort_complex(np.array(mx.linalg.eigvals(x))), np.sort_complex(np.linalg.eigvals(a))]
    np.testing.assert_allclose(both[0], both[1], rtol=1e-4, atol=1e-4)


NORMS = [
    ((5,), {}),
    ((5,), {"ord": 1}),
    ((5,), {"ord": 3}),
    ((5,), {"ord": np.inf}),
    ((5,), {"ord": -np.inf}),
    ((5,), {"ord": 0}),
    ((3, 4), {}),
    ((3, 4), {"axis": 1}),
    ((3, 4), {"axis": 0, "keepdims": True}),
    ((3, 4), {"ord": "fro"}),
    ((3, 4), {"keepdims": True}),
    ((3, 4), {"ord": 1}),
    ((3, 4), {"ord": np.inf}),
    ((3, 4), {"ord": -1}),
    ((2, 3, 4), {"ord": "fro", "axis": (1, 2)}),
    ((2, 3, 4), {"ord": 2, "axis": (0, 2)}),
    ((3, 4), {"ord": "nuc"}),
    ((3, 4), {"ord": -2}),
    ((2, 3, 4), {"axis": (1, 2), "keepdims": True}),
]


@pytest.mark.parametrize("number", range(len(NORMS)))
def test_norms(number):
    shape, options = NORMS[number]
    x, a = pair("float32", shape)
    axis = options.get("axis")
    mine = {**options, "axis": list(axis)} if isinstance(axis, tuple) else options
    assert_close(mx.linalg.norm(x, **mine), np.linalg.norm(a, **options), tolerance=2e-5)


def test_cross():
    (x, a), (y, b) = pair("float32", (4, 3)), pair("float32", (4, 3), seed=1)
    assert_close(mx.linalg.cross(x, y), np.cross(a, b), 8)
    assert_close(mx.linalg.cross(x.T, y.T, axis=0), np.cross(a, b).T, 8)


LINALG_MISTAKES = [
    lambda: mx.linalg.inv(mx.ones((2, 3))),
    lambda: mx.linalg.inv(mx.ones((2, 2), mx.int32)),
    lambda: mx.linalg.cholesky(mx.ones(3)),
    lambda: mx.linalg.norm(mx.ones((2, 2)), "bad"),
    lambda: mx.linalg.norm(mx.ones((2, 2, 2)), 2),
    lambda: mx.linalg.norm(mx.ones(3), ord="fro"),
    lambda: mx.linalg.svd(mx.ones(3)),
    lambda: mx.linalg.qr(mx.ones(3)),
    lambda: mx.linalg.solve(mx.ones((2, 2)), mx.ones(3)),
    lambda: mx.linalg.cross(mx.ones(4), mx.ones(4)),
]


@pytest.mark.parametrize("number", range(len(LINALG_MISTAKES)))
def test_mistakes_in_linear_algebra(number):
    with pytest.raises(ValueError):
        LINALG_MISTAKES[number]()


NORMALISATIONS = ["backward", "ortho", "forward"]


@pytest.mark.parametrize("norm", NORMALISATIONS)
@pytest.mark.parametrize("n", [None, 5, 12])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft"])
def test_transforms_of_one_axis(name, n, norm):
    x, a = pair("float32" if name == "rfft" else "complex64", (3, 8))
    mine, numpy = getattr(mx.fft, name), getattr(np.fft, name)
    for axis in (0, -1):
        assert_close(mine(x, n=n, axis=axis, norm=norm), numpy(a, n=n, axis=axis, norm=norm), tolerance=2e-5)


@pytest.mark.parametrize("norm", NORMALISATIONS)
@pytest.mark.parametrize(
    "options", [{}, {"s": (4, 6)}, {"axes": (0, 1)}, {"s": (3, 4), "axes": (1, 2)}, {"axes": None}]
)
@pytest.mark.parametrize("name", ["fft2", "ifft2", "fftn", "ifftn", "rfft2", "irfft2", "rfftn", "irfftn"])
def test_transforms_of_several_axes(name, options, norm):
    if "s" in options and "axes" not in options and name.endswith("n"):
        return  # NumPy deprecates it
    x, a = pair("float32" if name.startswith("r") else "complex64", (3, 4, 6))
    result = getattr(mx.fft, name)(x, **options, norm=norm)
    assert_close(result, getattr(np.fft, name)(a, **options, norm=norm), tolerance=5e-5)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 16, 30, 97, 128, 1000])
def test_lengths(n):
    x, a = pair("complex64", (2, n))
    assert_close(mx.fft.fft(x), np.fft.fft(a), tolerance=1e-4)
    assert_close(mx.fft.ifft(mx.fft.fft(x)), a, tolerance=1e-5)
    y, b = pair("float32", (2, n))
    assert_close(mx.fft.rfft(y), np.fft.rfft(b), tolerance=1e-4)
    assert_close(mx.fft.irfft(mx.fft.rfft(y), n=n), b, tolerance=1e-5)


def test_dtypes():
    assert mx.fft.fft(mx.ones(4)).dtype == mx.complex64
    assert mx.fft.rfft(mx.ones(4, mx.float16)).dtype == mx.complex64
    assert mx.fft.irfft(mx.ones(3, mx.complex64)).dtype == mx.float32
    assert_close(mx.fft.fft(mx.array([1, 2, 3])), np.fft.fft([1, 2, 3]), tolerance=1e-5)


def test_shifts_and_frequencies():
    for n in (4, 5):
        x, a = pair("float32", (n, 3))
        assert_equal(mx.fft.fftshift(x), np.fft.fftshift(a))
        assert_equal(mx.fft.ifftshift(x, axes=0), np.fft.ifftshift(a, axes=0))
        assert_close(mx.fft.fftfreq(n, d=0.5), np.fft.fftfreq(n, 0.5), tolerance=1e-6)
        assert_close(mx.fft.rfftfreq(n), np.fft.rfftfreq(n), tolerance=1e-6)


def test_short_time_transforms():
    x = mx.random.normal((2, 128))
    spectrum = mx.fft.stft(x, n_fft=32, hop_length=8, window=mx.hanning(32))
    assert spectrum.dtype == mx.complex64 and 17 in spectrum.shape
    again = mx.fft.istft(spectrum, n_fft=32, hop_length=8, window=mx.hanning(32), length=128)
    assert_close(again[:, 16:-16], np.array(x)[:, 16:-16], tolerance=1e-4)


def test_gradients_of_transforms():
    x, a = pair("float32", (8,))
    slope = mx.grad(lambda v: (mx.abs(mx.fft.rfft(v)) ** 2).sum())(x)
    h = 1e-5
    for i in range(8):
        step = np.zeros(8)
        step[i] = h
        difference = (abs(np.fft.rfft(a + step)) ** 2).sum() - (abs(np.fft.rfft(a - step)) ** 2).sum()
        assert slope[i].item() == pytest.approx(difference / (2 * h), rel=1e-3, abs=1e-3)


FFT_MISTAKES = [
    lambda: mx.fft.fft(mx.array(1.0)),
    lambda: mx.fft.fft(mx.ones(3), n=0),
    lambda: mx.fft.fft(mx.ones(3), axis=2),
    lambda: mx.fft.fft(mx.ones(3), norm="x"),
    lambda: mx.fft.fftn(mx.ones((3, 3)), s=(2,), axes=(0, 1)),
]


@pytest.mark.parametrize("number", range(len(FFT_MISTAKES)))
def test_mistakes_in_transforms(number):
    with pytest.raises((ValueError, IndexError)):
        FFT_MISTAKES[number]()


@pytest.mark.parametrize("frequencies", [mx.fft.fftfreq, mx.fft.rfftfreq])
def test_frequencies_of_samples_without_a_distance_are_refused(frequencies):
    for n, d in ((4, 0.0), (4, 0), (0, 1.0)):
        with pytest.raises(ValueError):
            frequencies(n, d)


@pytest.mark.parametrize("dtype", ["bool_", "int32", "uint8", "float16", "bfloat16"])
def test_determinants_of_other_numbers(dtype):
    x = mx.array([[[2, 1], [1, 3]], [[1, 4], [7, 2]]]).astype(getattr(mx, dtype))
    wide = np.array(x.astype(mx.float32)).astype(np.float64)
    result = x.dtype if dtype.endswith("float16") else mx.float32
    sign, log = mx.linalg.slogdet(x, stream=mx.cpu)
    expected_sign, expected_log = np.linalg.slogdet(wide)
    assert mx.linalg.det(x, stream=mx.cpu).dtype == sign.dtype == log.dtype == result
    tolerance = {"float16": 2e-3, "bfloat16": 2e-2}.get(dtype, 1e-5)
    assert_close(mx.linalg.det(x, stream=mx.cpu), np.linalg.det(wide), tolerance=tolerance)
    assert_close(sign, expected_sign, tolerance=tolerance)
    assert_close(log, expected_log, tolerance=tolerance)
    with pytest.raises(ValueError):
        mx.eval(mx.linalg.inv(x, stream=mx.cpu))
    if IS_MLX:
        with pytest.raises(ValueError):
            mx.linalg.det(x.astype(mx.complex64), stream=mx.cpu)
