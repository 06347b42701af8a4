"""complex128, which MLX lacks: values of NumPy's to 1e-12, dtypes, conversions, files, derivatives."""

import copy
import pickle

import numpy as np
import pytest

import weft.core as mx
from support import IS_MLX, assert_equal

pytestmark = pytest.mark.skipif(IS_MLX, reason="MLX has no complex128")

random = np.random.default_rng(7)


def draw(*shape):
    return random.standard_normal(shape) + 1j * random.standard_normal(shape)


def wide(values):
    return mx.array(values, mx.complex128)


def assert_near(x, expected, bound=1e-12):
    expected = np.asarray(expected)
    assert name(x.dtype) == expected.dtype.name
    np.testing.assert_allclose(np.array(x), expected, rtol=bound, atol=bound)


def name(dtype):
    return str(dtype).rsplit(".", 1)[-1]


FUNCTIONS = (
    "exp log log2 log10 log1p sqrt sin cos tan sinh cosh tanh arcsin arccos arctan arcsinh arccosh arctanh square "
    "negative conjugate reciprocal abs real imag round"
).split()


@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions_of_one_argument(function):
    a = draw(6, 7)
    assert_near(getattr(mx, function)(wide(a)), getattr(np, function)(a))
    assert_near(getattr(mx, function)(wide(a.T)[::2, ::-1]), getattr(np, function)(a.T[::2, ::-1]))
    assert getattr(mx, function)(wide(draw(0, 3))).shape == (0, 3)


@pytest.mark.parametrize("function", "add subtract multiply divide power logaddexp".split())
def test_functions_of_two_arguments(function):
    a, b = draw(5, 4), draw(4)
    numpy = (lambda x, y: np.log(np.exp(x) + np.exp(y))) if function == "logaddexp" else getattr(np, function)
    mine = getattr(mx, function)
    assert_near(mine(wide(a), wide(b)), numpy(a, b))
    narrow = b.astype(np.complex64)
    assert_near(mine(wide(a), mx.array(narrow)), numpy(a, narrow.astype(np.complex128)))
    assert_near(mine(wide(a), mx.array(b.real, mx.float64)), numpy(a, b.real.astype(np.complex128)))
    assert_near(mine(mx.array(narrow), mx.array(b.real, mx.float64)), numpy(narrow.astype(np.complex128), b.real + 0j))


REDUCTIONS = "sum prod mean var std max min cumsum cumprod argmax argmin sort argsort".split()


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("axis", [0, 1])
def test_reductions_and_orders(reduction, axis):
    a = draw(5, 8)
    result, expected = getattr(mx, reduction)(wide(a), axis=axis), getattr(np, reduction)(a, axis=axis)
    if reduction.startswith("arg"):
        assert_equal(result, expected, "uint32")
    else:
        assert_near(result, expected)


def test_order_is_by_real_then_by_imaginary_parts():
    a = np.array([1 + 2j, 1 - 1j, 0.5 + 9j, np.nan, 1 + 1e-13j])
    assert_equal(mx.sort(wide(a))[:4], np.sort(a)[:4], "complex128")
    assert np.isnan(complex(mx.max(wide(a))))
    assert mx.greater(wide(a), wide(1 + 0j)).tolist() == [True, False, False, False, True]


@pytest.mark.parametrize(
    "values",
    [
        [720 + 1j, 800 + np.pi, -800 + 1j, 0j],
        [complex(np.inf, 0), complex(-np.inf, 1), complex(0, 1e-320)],
        [1e200 + 1e200j, 3e-200 + 4e-200j, complex(1e308, -1e308)],
        [complex(-4, 0.0), complex(-4, -0.0), complex(0.0, -0.0), complex(-0.0, 0.0)],
    ],
)
@pytest.mark.parametrize("function", ["exp", "log", "sqrt", "abs", "arcsinh", "arctan", "tanh"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_ends_of_the_range(function, values):
    a = np.array(values, np.complex128)
    mine, numpy = np.array(getattr(mx, function)(wide(a))), getattr(np, function)(a)
    for got, expected in zip(mine.tolist(), numpy.tolist()):
        for part in ("real", "imag"):
            x, y = getattr(got, part), getattr(expected, part)
            assert x == y or abs(x - y) <= 1e-12 * abs(expected) or (np.isnan(x) and np.isnan(y))


def test_products():
    a, b = draw(3, 5, 4), draw(3, 4, 6)
    assert_near(wide(a) @ wide(b), a @ b)
    assert_near(mx.tensordot(wide(a), wide(b[0]), axes=1), np.tensordot(a, b[0], axes=1))
    assert_near(mx.einsum("bij,bjk->ik", wide(a), wide(b)), np.einsum("bij,bjk->ik", a, b))
    assert_near(mx.inner(wide(a[0]), wide(a[1])), np.inner(a[0], a[1]))
    assert_near(mx.outer(wide(a[0, 0]), wide(b[0, 0])), np.outer(a[0, 0], b[0, 0]))
    assert_near(wide(a) @ mx.array(b.real.astype(np.float32)), a @ b.real.astype(np.float32).astype(np.float64))
    assert_near(mx.matmul(wide(draw(0, 4)), wide(b[0])), np.zeros((0, 6), np.complex128))


@pytest.mark.parametrize("n", [1, 2, 7, 16, 30, 97, 1000])
def test_fourier_transforms(n):
    z, x = draw(3, n), random.standard_normal((3, n))
    for function in ("fft", "ifft"):
        assert_near(getattr(mx.fft, function)(wide(z)), getattr(np.fft, function)(z))
        assert_near(getattr(mx.fft, function)(mx.array(x, mx.float64)), getattr(np.fft, function)(x))
    spectrum = mx.fft.rfft(mx.array(x, mx.float64))
    assert_near(spectrum, np.fft.rfft(x))
    assert_near(mx.fft.irfft(spectrum, n=n), x)
    assert_near(mx.fft.fftn(wide(z), norm="ortho"), np.fft.fftn(z, norm="ortho"))


def test_short_time_transforms():
    x = mx.array(random.standard_normal(128), mx.float64)
    window = mx.hanning(32).astype(mx.float64)
    spectrum = mx.fft.stft(x, n_fft=32, hop_length=8, window=window)
    again = mx.fft.istft(spectrum, n_fft=32, hop_length=8, window=window, length=128)
    assert spectrum.dtype == mx.complex128 and again.dtype == mx.float64
    np.testing.assert_allclose(np.array(again)[16:-16], np.array(x)[16:-16], rtol=1e-12, atol=1e-12)


def test_promotion():
    z, x = wide([1 + 2j]), mx.array([0.1], mx.float64)
    for other in (mx.bool_, mx.int64, mx.uint64, mx.float16, mx.bfloat16, mx.float32, mx.float64, mx.complex64):
        assert (z + mx.ones(1, other)).dtype == mx.complex128 == mx.result_type(other, mx.complex128)
    assert (mx.array([1j]) * x).dtype == mx.complex128 and (mx.array([1j]) * mx.ones(1, mx.int64)).dtype == mx.complex64
    assert (z * 0.1).item() == (1 + 2j) * 0.1 and (x * (0.1 + 1j)).item() == 0.1 * (0.1 + 1j)
    assert (z + 1).dtype == mx.complex128 and (mx.array([1j]) * 0.1).dtype == mx.complex64
    assert mx.issubdtype(mx.complex128, mx.complexfloating) and mx.isdtype(mx.complex128, "complex floating")
    assert mx.finfo(mx.complex128).dtype == mx.float64 and mx.complex128.size == 16
    assert str(mx.complex128).endswith("core.complex128")


def test_conversions():
    a = draw(2, 3)
    z = wide(a)
    assert_equal(z, a, "complex128")
    assert z.tolist() == a.tolist() and z[1, 2].item() == complex(z[1, 2]) == a[1, 2]
    assert_equal(wide(a.tolist()), a, "complex128")
    assert_equal(mx.array(z), a, "complex128")
    assert_equal(z.astype(mx.complex64), a.astype(np.complex64), "complex64")
    assert_equal(mx.array(a.astype(np.complex64)).astype(mx.complex128), a.astype(np.complex64), "complex128")
    assert_equal(mx.array([0.1, 2], mx.float64).astype(mx.complex128), np.array([0.1, 2], np.complex128), "complex128")
    assert_equal(z.astype(mx.float64), a.real, "float64")
    assert_equal(z.astype(mx.int32), a.real.astype(np.int32), "int32")
    assert_equal(wide([0j, 1e-300j, 2]).astype(mx.bool_), [False, True, True], "bool_")
    assert mx.full((2,), 0.1, mx.complex128).tolist() == [0.1, 0.1]
    assert mx.zeros((), mx.complex128).item() == 0 and mx.full((), 0.1, mx.complex128).item() == 0.1
    assert mx.zeros((), mx.complex64).item() == 0 and mx.full((), 2.5, mx.complex64).item() == 2.5
    assert mx.arange(0.1, 2, 0.5, mx.complex128)[1].item().real == pytest.approx(0.6, abs=1e-15)
    assert mx.array(np.zeros(3, np.complex128)).dtype == mx.complex64
    assert repr(wide([1 - 0.5j])) == "array([1-0.5j], dtype=complex128)"
    assert mx.nan_to_num(wide([complex(np.nan, np.inf)])).tolist() == [complex(0, np.finfo(np.float64).max)]


def test_bits_as_other_dtypes():
    a = draw(2, 4)
    z = wide(a)
    for dtype in ("float64", "complex64", "int64", "uint8", "float32"):
        bits = z.view(getattr(mx, dtype))
        assert_equal(bits, a.view(dtype), dtype)
        assert_equal(bits.view(mx.complex128), a, "complex128")


def test_memory_is_shared():
    a = draw(3, 4)
    for view in (a, a.T, a[:, 1:], a[::-1]):
        assert_equal(mx.from_dlpack(view, copy=False), view, "complex128")
        assert_equal(mx.from_dlpack(view), view.astype(np.complex64), "complex64")
    z = wide(a)
    np.testing.assert_array_equal(np.from_dlpack(z), a)
    view = memoryview(z)
    assert view.format == "Zd" and view.itemsize == 16 and view.shape == (3, 4)
    np.testing.assert_array_equal(np.asarray(view), a)
    for other in (pickle.loads(pickle.dumps(z)), copy.deepcopy(z)):
        assert_equal(other, a, "complex128")


def test_files(tmp_path):
    a = draw(2, 3)
    mx.save(str(tmp_path / "a.npy"), wide(a))
    assert_equal(mx.load(str(tmp_path / "a.npy")), a, "complex128")
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), a)
    np.save(tmp_path / "b.npy", np.asfortranarray(a).astype(">c16"))
    assert_equal(mx.load(str(tmp_path / "b.npy")), a, "complex128")
    mx.savez(str(tmp_path / "c.npz"), x=wide(a))
    assert_equal(mx.load(str(tmp_path / "c.npz"))["x"], a, "complex128")
    with pytest.raises(ValueError, match="safetensors files cannot hold"):
        mx.save_safetensors(str(tmp_path / "d"), {"x": wide(a)})


def test_exported_programs(tmp_path):
    path, a = str(tmp_path / "f.weft"), draw(3)
    stored = draw(2, 3)
    mx.export_function(path, lambda z: mx.exp(z * (0.1 + 1j)) + wide(stored), wide(a))
    assert_near(mx.import_function(path)(wide(a))[0], np.exp(a * (0.1 + 1j)) + stored)
    mx.export_function(path, lambda z: z + wide(draw(0, 3)), wide(a))
    assert mx.import_function(path)(wide(a))[0].shape == (0, 3)


def test_random_numbers_are_those_of_complex64():
    key = mx.random.key(3)
    z = mx.random.normal((1000,), mx.complex128, key=key)
    assert z.dtype == mx.complex128
    np.testing.assert_allclose(np.array(z), np.array(mx.random.normal((1000,), mx.complex64, key=key)), rtol=1e-6)
    assert abs(np.var(np.array(z)) - 1) < 0.2


def loss(z):
    w = mx.fft.fft(mx.exp(z) * mx.conjugate(z) / (z * z + 3.0))
    return mx.sum(mx.square(mx.abs(w @ z.T))) + mx.sum(mx.log1p(mx.abs(mx.cumprod(z, axis=1))))


def test_gradients_against_finite_differences():
    a, step = draw(2, 3), 1e-6
    gradient = mx.grad(loss)(wide(a))
    assert gradient.dtype == mx.complex128
    for k in np.ndindex(*a.shape):
        for direction in (1, 1j):
            moved = np.zeros_like(a)
            moved[k] = step * direction
            slope = (loss(wide(a + moved)) - loss(wide(a - moved))).item() / (2 * step)
            part = np.array(gradient)[k]
            assert slope == pytest.approx(part.real if direction == 1 else part.imag, rel=1e-7, abs=1e-7)


def test_jvp_is_the_transpose_of_vjp():
    z, t, g = (wide(draw(3, 4)) for _ in range(3))

    def f(x):
        return mx.sin(x) * mx.sort(x, axis=1) + mx.cumsum(mx.sqrt(x), axis=0)

    _, (moved,) = mx.jvp(f, [z], [t])
    _, (pulled,) = mx.vjp(f, [z], [g])
    forward, backward = (mx.sum(mx.real(mx.conjugate(a) * b)).item() for a, b in ((g, moved), (pulled, t)))
    assert moved.dtype == pulled.dtype == mx.complex128
    assert forward == pytest.approx(backward, rel=1e-12)


def test_batches_and_compiled_functions():
    z = wide(draw(4, 5))

    def f(x):
        return mx.exp(x) @ mx.fft.fft(x) + mx.prod(x)

    expected = np.array([np.array(f(z[k])) for k in range(4)])
    assert_near(mx.vmap(f)(z), expected)
    assert_near(mx.compile(mx.vmap(f))(z), expected)
    assert_near(mx.vmap(f, in_axes=1)(z.T), expected)
