"""Decompositions of complex matrices against NumPy and PyTorch: values, batches, derivatives."""

import numpy as np
import pytest
from support import IS_MLX, assert_close, module

import weft.core as mx

pytestmark = pytest.mark.skipif(IS_MLX, reason="MLX takes complex matrices in three functions alone")

LOOSE = {"complex64": 2e-4, "complex128": 1e-11}
REAL = {"complex64": mx.float32, "complex128": mx.float64}
random = np.random.default_rng(11)


def draw(dtype, *shape):
    values = (random.standard_normal(shape) + 1j * random.standard_normal(shape)).astype(dtype)
    return mx.array(values, getattr(mx, dtype)), values.astype(np.complex128)


def square(dtype, *batch, n=4):
    x, a = draw(dtype, *batch, n, n)
    return x + 4 * mx.eye(n, dtype=x.dtype), a + 4 * np.eye(n)


def adjoint(a):
    return (mx.conjugate if isinstance(a, mx.array) else np.conjugate)(a).swapaxes(-1, -2)


def positive(dtype, *batch):
    x, a = square(dtype, *batch)
    return x @ adjoint(x), a @ adjoint(a)


@pytest.mark.parametrize("batch", [(), (3,), (2, 2), (0,)])
@pytest.mark.parametrize("dtype", LOOSE)
def test_inverses_and_solutions(dtype, batch):
    bound = LOOSE[dtype]
    (x, a), (b, c) = square(dtype, *batch), draw(dtype, *batch, 4, 2)
    assert_close(mx.linalg.inv(x), np.linalg.inv(a), tolerance=bound)
    assert_close(mx.linalg.solve(x, b), np.linalg.solve(a, c), tolerance=bound)
    assert_close(mx.linalg.tri_inv(mx.tril(x)), np.linalg.inv(np.tril(a)), tolerance=bound)
    assert_close(mx.linalg.solve_triangular(x, b), np.linalg.solve(np.tril(a), c), tolerance=bound)
    assert_close(mx.linalg.solve_triangular(x, b, upper=True), np.linalg.solve(np.triu(a), c), tolerance=bound)
    assert_close(mx.linalg.det(x), np.linalg.det(a), tolerance=5 * bound * 256)
    for mine, numpy in zip(mx.linalg.slogdet(x), np.linalg.slogdet(a)):
        assert_close(mine, numpy, tolerance=bound)


@pytest.mark.parametrize("batch", [(), (3,)])
@pytest.mark.parametrize("dtype", LOOSE)
def test_hermitian_matrices(dtype, batch):
    bound = 20 * LOOSE[dtype]
    x, a = positive(dtype, *batch)
    low = np.linalg.cholesky(a)
    assert_close(mx.linalg.cholesky(x), low, tolerance=bound)
    assert_close(mx.linalg.cholesky(x, upper=True), adjoint(low), tolerance=bound)
    assert_close(mx.linalg.cholesky_inv(mx.linalg.cholesky(x)), np.linalg.inv(a), tolerance=bound)
    for uplo in "LU":
        values, vectors = mx.linalg.eigh(x, UPLO=uplo)
        assert values.dtype == REAL[dtype] and vectors.dtype == x.dtype
        assert_close(values, np.linalg.eigvalsh(a), tolerance=bound)
        assert_close(mx.linalg.eigvalsh(x, uplo), np.linalg.eigvalsh(a), tolerance=bound)
        assert_close(x @ vectors, np.array(vectors * values[..., None, :]), tolerance=bound)
        # Vectors are NumPy's up to a phase: their projectors are the same.
        between = adjoint(vectors) @ mx.array(np.linalg.eigh(a)[1], vectors.dtype)
        assert_close(mx.abs(between), np.broadcast_to(np.eye(4), a.shape), tolerance=bound)


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 4, 3), (3, 1)])
@pytest.mark.parametrize("dtype", LOOSE)
def test_decompositions_multiply_to_the_matrix(dtype, shape):
    bound = LOOSE[dtype]
    x, a = draw(dtype, *shape)
    u, s, v = mx.linalg.svd(x)
    k = min(shape[-2:])
    assert s.dtype == REAL[dtype] and u.dtype == v.dtype == x.dtype
    assert u.shape[-2:] == (shape[-2],) * 2 and v.shape[-2:] == (shape[-1],) * 2
    assert_close((u[..., :k] * s[..., None, :]) @ v[..., :k, :], a, tolerance=bound)
    assert_close(s, np.linalg.svd(a, compute_uv=False), tolerance=bound)
    for unitary in (u, v):
        identity = np.broadcast_to(np.eye(unitary.shape[-1]), unitary.shape)
        assert_close(adjoint(unitary) @ unitary, identity, tolerance=bound)
    q, r = mx.linalg.qr(x)
    numpy_q, numpy_r = np.linalg.qr(a)  # its diagonal is real, and so are signs that differ
    signs = np.prod([np.sign(np.diagonal(f, axis1=-2, axis2=-1).real) for f in (np.array(r), numpy_r)], axis=0)
    assert_close(q, numpy_q * signs[..., None, :], tolerance=bound)
    assert_close(r, numpy_r * signs[..., :, None], tolerance=bound)
    assert_close(mx.linalg.pinv(x), np.linalg.pinv(a), tolerance=10 * bound)
    rows, low, up = mx.linalg.lu(x)
    rows = mx.broadcast_to(rows[..., None], low.shape)
    assert_close(mx.take_along_axis(low, rows, -2) @ up, a, tolerance=bound)


@pytest.mark.parametrize("dtype", [*LOOSE, "float32", "float64"])
def test_general_eigenvalues(dtype):
    a = random.standard_normal((3, 5, 5)) + (1j * random.standard_normal((3, 5, 5)) if dtype in LOOSE else 0)
    x = mx.array(a, getattr(mx, dtype))
    wide = dtype in ("float64", "complex128")
    bound = 1e-11 if wide else 1e-3
    values, vectors = mx.linalg.eig(x)
    assert values.dtype == vectors.dtype == (mx.complex128 if wide else mx.complex64)
    assert_close(x @ vectors, np.array(vectors * values[..., None, :]), tolerance=bound)
    assert_close(mx.sum(mx.square(mx.abs(vectors)), axis=-2), np.ones((3, 5)), tolerance=bound)
    assert_close(mx.linalg.eigvals(x), np.array(values), tolerance=bound)
    for mine, numpy in zip(np.array(values), np.linalg.eigvals(a)):
        assert np.abs(mine[:, None] - numpy).min(axis=1).max() < 10 * bound  # each is one of NumPy's
        assert np.abs(mine[:, None] - numpy).min(axis=0).max() < 10 * bound


@pytest.mark.parametrize("order", [1, -1, 2, -2, np.inf, -np.inf, "fro", "nuc"])
@pytest.mark.parametrize("dtype", LOOSE)
def test_norms(dtype, order):
    x, a = draw(dtype, 4, 3)
    mine = mx.linalg.norm(x, order if isinstance(order, str) else float(order))
    np.testing.assert_allclose(np.array(mine).real, np.linalg.norm(a, order), rtol=LOOSE[dtype])


# ---- derivatives: PyTorch's are the same for functions that do not depend on phases ----


def phaseless(xp, conj, transpose, linalg):
    """Functions of a 4 by 4 matrix to real numbers, in the names of either library."""

    def hermitian(a):
        return a @ conj(transpose(a))

    def eigh(a):
        w, v = linalg.eigh(hermitian(a))
        return xp.sum(w * w) + xp.sum(xp.abs(v[:, :1] @ conj(transpose(v[:, :1])) + a))

    def eig(a):
        w, v = linalg.eig(a)
        return xp.sum(xp.abs(w + 0.3j)) + xp.sum(xp.abs(v @ conj(transpose(v)) + a))

    def svd(a):
        u, s, vh = linalg.svd(a)
        return xp.sum(s * s * s) + xp.sum(xp.abs(u[:, :2] @ vh[:2] + a))

    def qr(a):
        q, r = linalg.qr(a)
        return xp.sum(xp.abs(q @ conj(transpose(q[:1])))) + xp.sum(xp.abs(q + 0.5 * a)) + xp.sum(xp.abs(r + 0.1j))

    return {
        "cholesky": lambda a: xp.sum(xp.abs(linalg.cholesky(hermitian(a)) + a)),
        "inv": lambda a: xp.sum(xp.abs(linalg.inv(a) + 0.2 * a)),
        "solve": lambda a: xp.sum(xp.abs(linalg.solve(a, a[:, :2] * a[0, 0]) + 0.1)),
        "pinv": lambda a: xp.sum(xp.abs(linalg.pinv(a[:, :3]) + 0.1)),
        "det": lambda a: xp.abs(linalg.det(a) + 1j),
        "slogdet": lambda a: linalg.slogdet(a)[1],
        "eigh": eigh,
        "eig": eig,
        "svd": svd,
        "qr": qr,
    }


OURS = phaseless(mx, mx.conjugate, lambda a: a.swapaxes(-1, -2), mx.linalg)


@pytest.mark.parametrize("name", OURS)
def test_gradients_are_those_of_pytorch(name):
    torch = module("torch")
    x, a = square("complex128")
    theirs = phaseless(torch, torch.conj, lambda a: a.transpose(-1, -2), torch.linalg)[name]
    z = torch.tensor(a, requires_grad=True)
    theirs(z).backward()
    assert_close(OURS[name](x), theirs(z).item(), tolerance=1e-10)
    assert_close(mx.grad(OURS[name])(x), z.grad.numpy(), tolerance=1e-8)


@pytest.mark.parametrize("name", OURS)
def test_gradients_are_slopes(name):
    x, a = square("complex128")
    f, step = OURS[name], 1e-6
    direction = mx.array(draw("complex128", 4, 4)[1], mx.complex128)
    slope = ((f(x + step * direction) - f(x - step * direction)) / (2 * step)).item()
    along = mx.sum(mx.real(mx.conjugate(mx.grad(f)(x)) * direction)).item()
    assert along == pytest.approx(slope, rel=1e-6)
    assert mx.jvp(f, [x], [direction])[1][0].item() == pytest.approx(slope, rel=1e-6)
    several = mx.stack([x, x + direction])
    assert_close(mx.vmap(f)(several), [f(v).item() for v in several], tolerance=1e-11)
    assert_close(mx.vmap(mx.grad(f))(several), np.array([np.array(mx.grad(f)(v)) for v in several]), tolerance=1e-9)
