"""Files: npy, npz, safetensors, gguf and exported functions, to and from NumPy and the safetensors package."""

import io
import struct
from pathlib import Path

import numpy as np
import pytest
from support import ALL, IS_MLX, assert_close, assert_equal, device_array, draw, host, module

import weft.core as mx

NUMPY_DTYPES = [d for d in ALL if d != "bfloat16"]
SHAPES = [(), (3,), (2, 3), (2, 0, 3)]


def arrays(dtypes=ALL):
    return {f"{d}.{i}": device_array(draw(d, (2, 3 + i)), d) for i, d in enumerate(dtypes)}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ALL)
def test_npy_there_and_back(dtype, shape, tmp_path):
    x = device_array(draw(dtype, shape), dtype)
    mx.save(str(tmp_path / "x"), x)  # the suffix is added
    assert_equal(mx.load(str(tmp_path / "x.npy")), host(x), x.dtype)


@pytest.mark.parametrize("dtype", NUMPY_DTYPES)
def test_npy_is_numpys(dtype, tmp_path):
    values = draw(dtype, (2, 3))
    mx.save(tmp_path / "mine.npy", device_array(values, dtype))
    back = np.load(tmp_path / "mine.npy")
    assert back.dtype == values.dtype and np.array_equal(back, values)
    for name, written in (("plain", values), ("fortran", np.asfortranarray(values)), ("scalar", values[0, 0])):
        np.save(tmp_path / f"{name}.npy", written)
        assert_equal(mx.load(tmp_path / f"{name}.npy"), written, dtype)


def test_npy_of_views_and_of_the_other_byte_order(tmp_path):
    x = mx.arange(12).reshape(3, 4)
    mx.save(tmp_path / "x.npy", x.T[::-1])
    assert np.array_equal(np.load(tmp_path / "x.npy"), np.array(x).T[::-1])
    np.save(tmp_path / "big.npy", np.arange(5, dtype=">i4"))
    assert_equal(mx.load(tmp_path / "big.npy"), np.arange(5), "int32")


def test_npy_of_bfloat16_is_two_bytes_in_numpy(tmp_path):
    mx.save(tmp_path / "x.npy", mx.ones((2, 3), mx.bfloat16))
    assert np.load(tmp_path / "x.npy").dtype == np.dtype("V2")


@pytest.mark.parametrize("save, numpy", [(mx.savez, np.savez), (mx.savez_compressed, np.savez_compressed)])
def test_npz_both_ways(save, numpy, tmp_path):
    named = {k: v for k, v in arrays(NUMPY_DTYPES).items()}
    save(str(tmp_path / "mine"), mx.ones(2), mx.zeros(3), **named)
    back = np.load(tmp_path / "mine.npz")
    assert set(back.files) == {"arr_0", "arr_1", *named}
    for name, value in named.items():
        np.testing.assert_array_equal(back[name], host(value))
    numpy(tmp_path / "theirs.npz", **{name: host(value) for name, value in named.items()})
    for name, value in mx.load(str(tmp_path / "theirs.npz")).items():
        assert_equal(value, host(named[name]), named[name].dtype)


def test_file_objects(tmp_path):
    x = mx.arange(6).reshape(2, 3)
    with open(tmp_path / "x.npy", "wb") as file:
        mx.save(file, x)
    with open(tmp_path / "x.npy", "rb") as file:
        assert_equal(mx.load(file), np.array(x))
    with open(tmp_path / "x.npz", "wb") as file:
        mx.savez(file, a=x)
    with open(tmp_path / "x.npz", "rb") as file:
        assert_equal(mx.load(file)["a"], np.array(x))
    with open(tmp_path / "x.safetensors", "wb") as file:
        mx.save_safetensors(file, {"a": x})
    with open(tmp_path / "x.safetensors", "rb") as file:
        assert_equal(mx.load(file)["a"], np.array(x))


def test_formats_are_given_or_follow_from_the_name(tmp_path):
    mx.save_safetensors(str(tmp_path / "x.safetensors"), {"a": mx.ones(2)})
    (tmp_path / "x.safetensors").rename(tmp_path / "x.bin")
    assert_equal(mx.load(str(tmp_path / "x.bin"), format="safetensors")["a"], [1, 1])
    with pytest.raises(ValueError):
        mx.load(str(tmp_path / "x.bin"))


def test_safetensors_there_and_back(tmp_path):
    named = {k: v for k, v in arrays().items() if not k.startswith("float64")}
    named.update({"scalar": mx.array(2.5), "empty": mx.zeros((0, 3)), "view": mx.arange(6).reshape(2, 3).T})
    mx.save_safetensors(str(tmp_path / "x"), named, {"key": "value", "other": "å"})
    back, metadata = mx.load(str(tmp_path / "x.safetensors"), return_metadata=True)
    assert metadata == {"key": "value", "other": "å"} and set(back) == set(named)
    for name, value in named.items():
        assert_equal(back[name], host(value), value.dtype)
    mx.save_safetensors(str(tmp_path / "y.safetensors"), {"a": mx.ones(1)})
    assert mx.load(str(tmp_path / "y.safetensors"), return_metadata=True)[1] == {}


def test_safetensors_of_the_package(tmp_path):
    package = module("safetensors.numpy")
    named = {d: draw(d, (2, 3)) for d in NUMPY_DTYPES if d not in ("complex64", "bool_", "float64")}
    package.save_file(named, str(tmp_path / "theirs.safetensors"), metadata={"a": "b"})
    back, metadata = mx.load(str(tmp_path / "theirs.safetensors"), return_metadata=True)
    assert metadata == {"a": "b"}
    for name, value in named.items():
        assert_equal(back[name], value, name)
    mx.save_safetensors(str(tmp_path / "mine.safetensors"), back, {"a": "b"})
    for name, value in package.load_file(str(tmp_path / "mine.safetensors")).items():
        assert value.dtype == named[name].dtype and np.array_equal(value, named[name])


def test_gguf_there_and_back(tmp_path):
    named = {d: device_array(draw(d, (2, 3)), d) for d in ("float32", "float16", "int8", "int16", "int32")}
    metadata = {"number": mx.array(3), "list": mx.array([1.5, 2.5]), "text": "words", "texts": ["a", "b"]}
    mx.save_gguf(str(tmp_path / "x"), named, metadata)
    back, found = mx.load(str(tmp_path / "x.gguf"), return_metadata=True)
    for name, value in named.items():
        assert_equal(back[name], host(value), name)
    assert found["text"] == "words" and found["texts"] == ["a", "b"] and found["number"].item() == 3
    assert_equal(found["list"], [1.5, 2.5], "float32")
    with pytest.raises(RuntimeError):
        mx.save_gguf(str(tmp_path / "y.gguf"), {"a": mx.ones(2, mx.bool_)})


def test_gguf_has_its_magic(tmp_path):
    mx.save_gguf(str(tmp_path / "x.gguf"), {"a": mx.ones((2, 3))})
    assert Path(tmp_path / "x.gguf").read_bytes()[:4] == b"GGUF"


@pytest.mark.parametrize(
    "suffix, error",
    [
        ("npy", RuntimeError),
        ("safetensors", RuntimeError),
        ("gguf", ValueError),
        ("npz", RuntimeError),
        ("bla", ValueError),
    ],
)
def test_files_that_are_not_there(suffix, error, tmp_path):
    with pytest.raises((error, OSError)):
        mx.load(str(tmp_path / f"missing.{suffix}"))


@pytest.mark.parametrize("suffix", ["npy", "safetensors", "gguf"])
def test_files_that_are_cut_off(suffix, tmp_path):
    path = tmp_path / f"x.{suffix}"
    if suffix == "npy":
        mx.save(str(path), mx.ones((64, 64)))
    else:
        getattr(mx, f"save_{suffix}")(str(path), {"a": mx.ones((64, 64))})
    path.write_bytes(path.read_bytes()[:20])
    with pytest.raises((RuntimeError, ValueError)):
        x = mx.load(str(path))
        mx.eval(x)


def test_files_that_are_something_else(tmp_path):
    path = tmp_path / "x.safetensors"
    for data in (b"", struct.pack("<Q", 10**9) + b"{}", struct.pack("<Q", 2) + b"[]"):
        path.write_bytes(data)
        with pytest.raises((RuntimeError, ValueError)):
            mx.load(str(path))
    (tmp_path / "x.npy").write_bytes(b"no numbers in here at all")
    with pytest.raises((RuntimeError, ValueError)):
        mx.load(str(tmp_path / "x.npy"))


@pytest.mark.parametrize(
    "call",
    [
        lambda: mx.load(5),
        lambda: mx.save(5, mx.ones(2)),
        lambda: mx.load(io.StringIO("x")),
        lambda: mx.save_safetensors("x", {"a": 5}),
        lambda: mx.save_safetensors("x", {"a": mx.ones(1)}, metadata={"k": 5}),
    ],
)
def test_mistakes(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((TypeError, ValueError, RuntimeError)):
        call()


def test_folders_that_are_not_there(tmp_path):
    with pytest.raises(RuntimeError):
        mx.save(str(tmp_path / "no" / "x"), mx.ones(2))


def test_export_and_import(tmp_path):
    path = str(tmp_path / "f.mlxfn")
    w = mx.random.normal((3, 4))

    def f(x, y):
        return mx.exp(x @ w) + y, mx.sum(x)

    x, y = mx.random.normal((2, 3)), mx.random.normal((4,))
    mx.export_function(path, f, x, y)
    loaded = mx.import_function(path)
    for mine, expected in zip(loaded(x, y), f(x, y)):
        assert_close(mine, np.array(expected), 4)
    for mine, expected in zip(loaded(x + 1, y * 2), f(x + 1, y * 2)):
        assert_close(mine, np.array(expected), 4)
    with pytest.raises(ValueError):
        loaded(mx.ones((5, 3)), y)
    with pytest.raises(ValueError):
        loaded(x)
    for wrong in (1, (x, 1), (x, [x])):
        with pytest.raises(ValueError):
            mx.export_function(path, lambda w=wrong: w)


def test_export_with_keywords_and_metadata(tmp_path):
    path = str(tmp_path / "f.mlxfn")
    mx.export_function(path, lambda x, *, y: [x + y], mx.ones(2), y=mx.ones(2), metadata="about")
    loaded, metadata = mx.import_function(path, return_metadata=True)
    assert metadata == "about"
    assert_equal(loaded(mx.ones(2), y=mx.array([2.0, 3.0]))[0], [3, 4])
    assert_equal(loaded([mx.ones(2)], {"y": mx.array([2.0, 3.0])})[0], [3, 4])
    with pytest.raises(ValueError):
        loaded(mx.ones(2))
    with pytest.raises(ValueError):
        mx.export_function(lambda told: None, mx.sin, mx.ones(2), metadata="about")


def test_exporter_of_several_shapes(tmp_path):
    path = str(tmp_path / "f.mlxfn")
    with mx.exporter(path, lambda x: x * 2) as export:
        export(mx.ones(2))
        export(mx.ones((2, 2)))
    loaded = mx.import_function(path)
    assert_equal(loaded(mx.ones(2))[0], [2, 2])
    assert_equal(loaded(mx.ones((2, 2)))[0], np.full((2, 2), 2))
    with pytest.raises(ValueError):
        loaded(mx.ones(3))


def test_a_closed_exporter_takes_nothing(tmp_path):
    export = mx.exporter(str(tmp_path / "f.mlxfn"), lambda x: x * 2)
    export(mx.ones(2))
    export.close()
    with pytest.raises(RuntimeError, match="closed"):
        export(mx.ones(3))


def test_shapeless_functions_take_other_lengths(tmp_path):
    path = str(tmp_path / "f.mlxfn")
    w = mx.random.normal((3, 4))
    mx.eval(w)

    def f(x, *, y):
        return [mx.softmax(x @ w, axis=-1) + y[:, None]]

    mx.export_function(path, f, mx.ones((5, 3)), y=mx.ones(5), shapeless=True)
    loaded = mx.import_function(path)
    for n in (1, 2, 9):
        x, y = mx.random.normal((n, 3)), mx.random.normal((n,))
        assert_close(loaded(x, y=y)[0], np.array(f(x, y=y)[0]), 4)
        slope = mx.grad(lambda x: (loaded(x, y=y)[0] ** 2).sum())(x)
        assert_close(slope, np.array(mx.grad(lambda x: (f(x, y=y)[0] ** 2).sum())(x)), 64)
    with pytest.raises(ValueError):
        loaded(mx.ones((4, 2, 3)), y=mx.ones(4))

    def heads(x):
        batch, length, width = x.shape
        y = (x @ square).reshape(batch, length, 2, -1).transpose(0, 2, 1, 3)
        return y * width**-0.5, mx.zeros((length, batch))

    if not IS_MLX:  # whose reshape has the example's sizes
        square = mx.random.normal((4, 4))
        mx.export_function(path, heads, mx.ones((2, 5, 4)), shapeless=True)
        loaded = mx.import_function(path)
        for shape in ((3, 1, 4), (1, 7, 4)):
            x = mx.random.normal(shape)
            for got, expected in zip(loaded(x), heads(x)):
                assert_close(got, np.array(expected), 4)
    with mx.exporter(path, lambda x: x * 2, shapeless=True) as export:
        export(mx.ones(3))
        export(mx.ones((2, 3)))
    loaded = mx.import_function(path)
    assert_equal(loaded(mx.ones(7))[0], np.full(7, 2))
    assert_equal(loaded(mx.ones((4, 5)))[0], np.full((4, 5), 2))


@pytest.mark.skipif(IS_MLX, reason="MLX runs the trace of the example")
@pytest.mark.parametrize(
    "f",
    (
        lambda x: x.reshape(-1),
        lambda x: x[1:],
        lambda x: x[-2:, ::-1],
        lambda x: mx.concatenate([x, x[:1]]),
        lambda x: x * x.shape[0] / np.sqrt(x.shape[1]),
        lambda x: mx.zeros(len(x)) + mx.arange(len(x)),
        lambda x: x @ mx.tril(mx.ones((x.shape[1], x.shape[1]))),
        lambda x: mx.fast.scaled_dot_product_attention(*[x[None, None]] * 3, scale=x.shape[1]**-0.5, mask="causal"),
    ),
)
def test_shapeless_functions_compute_with_lengths(tmp_path, f):
    path = str(tmp_path / "f.mlxfn")
    mx.export_function(path, f, mx.ones((4, 8)), shapeless=True)
    loaded = mx.import_function(path)
    for shape in ((4, 8), (3, 8), (9, 16), (200, 40)):
        x = mx.random.normal(shape)
        assert_close(loaded(x)[0], np.array(f(x)), 64)


@pytest.mark.skipif(IS_MLX, reason="MLX runs the trace of the example")
def test_lengths_that_cannot_stay_open_are_refused(tmp_path):
    path = str(tmp_path / "f.mlxfn")
    for f, why in (
        (lambda x: x[: x.shape[0] // 2], "a signature for each length"),
        (lambda x: x + 1 if x.shape[0] == 2 else x, "steps for one length and"),
        (lambda x: x + mx.array(np.ones(x.shape)), "refers to other arrays for other lengths"),
        (lambda x: x + mx.ones((2, 3)), "no length of the arguments may change"),
    ):
        with pytest.raises(ValueError, match=why):
            mx.export_function(path, f, mx.ones((2, 3)), shapeless=True)
    with pytest.raises(ZeroDivisionError):
        mx.export_function(path, lambda x: 1 / 0, mx.ones((2, 3)), shapeless=True)


def test_exported_draws_are_those_of_the_export(tmp_path):
    path = str(tmp_path / "f.mlxfn")
    mx.random.seed(3)
    mx.export_function(path, lambda: mx.random.normal((4,)))
    following = np.array(mx.random.normal((4,)))
    loaded = mx.import_function(path)
    mx.random.seed(3)
    expected = np.array(mx.random.normal((4,)))
    assert_equal(mx.random.normal((4,)), following)
    assert_equal(loaded()[0], expected)
    assert_equal(loaded()[0], expected)


def test_import_of_a_file_that_is_not_there(tmp_path):
    with pytest.raises(RuntimeError):
        mx.import_function(str(tmp_path / "missing.mlxfn"))


def test_imported_functions_in_transforms(tmp_path):
    path = str(tmp_path / "f.mlxfn")
    mx.export_function(path, lambda x: mx.sin(x).sum(), mx.ones(3))
    (loaded,) = [mx.import_function(path)]
    a = np.array([0.1, 0.2, 0.3])
    assert_close(mx.grad(lambda x: loaded(x)[0])(mx.array(a)), np.cos(a), 4)
    assert_close(mx.compile(lambda x: loaded(x)[0])(mx.array(a)), np.sin(a).sum(), 4)


def test_export_to_dot(tmp_path):
    x = mx.array([1.0])
    mx.export_to_dot(str(tmp_path / "g.dot"), x + 1)
    assert "digraph" in (tmp_path / "g.dot").read_text()
    text = io.StringIO()
    mx.export_to_dot(text, y=x * 2)
    assert "digraph" in text.getvalue()
