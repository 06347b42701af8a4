"""Kernels of the kernel language in Python: what they compute, their derivatives, and what is refused by line."""

import inspect

import numpy as np
import pytest
import weft.core as mx
from support import assert_close, assert_equal, draw, host
from weft.core import kernel as k


@k.kernel(grid=lambda x, y: x.dim(0))
def softmax(x: k.In, y: k.Out):
    row = k.program_id(0)
    v = x[row, :].load()
    e = k.exp(v - k.max(v, 0))
    y[row, :] = e / k.sum(e, 0)


@k.kernel(grid=lambda x, w, y: x.dim(0))
def rms_norm(x: k.In, w: k.In, y: k.Out, eps: float = 1e-5, block: int = 16):
    row, n = k.program_id(0), x.dim(1)
    squares = k.var(k.zeros(block))
    for i in k.range(0, n, block):
        v = x[row, k.ds(i, block)].load()
        squares += v * v
    scale = k.rsqrt(k.sum(squares, 0) / n + eps)
    for i in k.range(0, n, block):
        at = k.ds(i, block)
        y[row, at] = x[row, at].load() * scale * w[at].load()


@k.kernel(
    grid=lambda a, b, c, m, n: (k.cdiv(c.dim(0), m), k.cdiv(c.dim(1), n)),
    outputs=lambda a, b: ((a.shape[0], b.shape[1]), a.dtype),
)
def matmul(a: k.In, b: k.In, c: k.Out, m: int = 16, n: int = 16, depth: int = 8):
    rows, columns = k.block(k.program_id(0), m), k.block(k.program_id(1), n)
    total = k.var(k.zeros((m, n)))
    for i in k.range(0, a.dim(1), depth):
        inner = k.ds(i, depth)
        total.value = k.dot(a[rows, inner], b[inner, columns], total)
    c[rows, columns] = k.cast(total, c.dtype)


def exact_softmax(values):
    e = np.exp(values - values.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def exact_norm(x, w, eps=1e-5):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * w


def slope(f, x, cotangent, *rest):
    return mx.grad(lambda v: (f(v, *rest) * cotangent).sum())(x)


def differences(f, x, cotangent, step=1e-6):
    """The derivative of sum(f(x) · cotangent) by central differences, in float64."""
    out = np.zeros_like(x)
    for at in np.ndindex(*x.shape):
        high, low = x.copy(), x.copy()
        high[at] += step
        low[at] -= step
        out[at] = ((f(high) - f(low)) * cotangent).sum() / (2 * step)
    return out


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(1, 1), (5, 7), (65, 103)])
def test_a_row_as_one_tile(dtype, shape):
    values = draw("float64", shape)
    x = mx.array(values, getattr(mx, dtype))
    y = softmax(x)
    assert y.dtype == x.dtype
    assert_close(y, exact_softmax(values), tolerance=1e-6 if dtype == "float32" else 1e-13)
    assert_close(softmax.interpret(x), host(y), tolerance=1e-6)


def test_views_and_edge_values():
    values = draw("float64", (6, 8))
    x = mx.array(values.astype(np.float32))
    assert_close(softmax(x.T), exact_softmax(values.T), tolerance=1e-6)
    assert_close(softmax(x[::-2, 1::3]), exact_softmax(values[::-2, 1::3]), tolerance=1e-6)
    assert softmax(mx.zeros((0, 3))).shape == (0, 3)
    hidden = mx.array([[0.0, -np.inf, 0.0], [1.0, np.nan, 1.0]])
    found = host(softmax(hidden))
    assert found[0].tolist() == [0.5, 0, 0.5] and np.isnan(found[1]).all()


@pytest.mark.parametrize("n", [1, 16, 40])
@pytest.mark.parametrize("block", [1, 16, 64])
def test_a_loop_carries_a_variable(n, block):
    x, w = draw("float64", (4, n), seed=1), draw("float64", (n,), seed=2)
    found = rms_norm.config(block=block)(mx.array(x), mx.array(w))
    assert_close(found, exact_norm(x, w), tolerance=2e-6)
    other = rms_norm.config(eps=2.0, block=block)(mx.array(x), mx.array(w))
    assert_close(other, exact_norm(x, w, 2.0), tolerance=2e-6)


@pytest.mark.parametrize("shape", [(16, 8, 16), (33, 20, 17), (1, 1, 1)])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_products(shape, dtype):
    rows, inner, columns = shape
    a, b = draw(dtype, (rows, inner), seed=3), draw(dtype, (inner, columns), seed=4)
    c = matmul(mx.array(a), mx.array(b))
    assert c.shape == (rows, columns) and c.dtype == getattr(mx, dtype)
    assert_close(c, a.astype(np.float64) @ b.astype(np.float64), factor=20)


def test_derivatives_follow_from_the_body():
    x, g = draw("float64", (3, 5), seed=5), draw("float64", (3, 5), seed=6)
    found = slope(softmax, mx.array(x, mx.float64), mx.array(g, mx.float64))
    assert_close(found, differences(exact_softmax, x, g), tolerance=1e-8)
    w = draw("float64", (5,), seed=7)
    weights = mx.array(w.astype(np.float32))
    by_x = slope(rms_norm, mx.array(x), mx.array(g), weights)
    assert_close(by_x, differences(lambda v: exact_norm(v, w), x, g), tolerance=2e-5)
    by_w = slope(lambda v: rms_norm(mx.array(x), v), weights, mx.array(g))
    assert_close(by_w, differences(lambda v: exact_norm(x, v), w, g), tolerance=2e-5)
    _, forward = mx.jvp(softmax, [mx.array(x, mx.float64)], [mx.array(g, mx.float64)])
    both = (forward[0] * mx.array(g, mx.float64)).sum().item(), (found * mx.array(g, mx.float64)).sum().item()
    assert both[0] == pytest.approx(both[1], rel=1e-9)


def test_a_derivative_by_a_rule():
    @k.kernel(grid=lambda y, g, dx: y.dim(0))
    def backward(y: k.In, g: k.In, dx: k.Out):
        row = k.program_id(0)
        out, cotangent = y[row, :].load(), g[row, :].load()
        dx[row, :] = out * (cotangent - k.sum(out * cotangent, 0))

    ruled = mx.custom_function(softmax)
    calls = []

    @ruled.vjp
    def rule(x, cotangent, y):
        calls.append(1)
        return backward(y, cotangent)

    x, g = mx.array(draw("float32", (9, 33))), mx.array(draw("float32", (9, 33), seed=8))
    assert_close(slope(ruled, x, g), host(slope(softmax, x, g)), tolerance=1e-6)
    assert calls


def test_kernels_compile_and_batch():
    values = draw("float64", (3, 4, 6))
    x = mx.array(values.astype(np.float32))
    assert_close(mx.vmap(softmax)(x), exact_softmax(values), tolerance=1e-6)
    moved = mx.vmap(softmax, in_axes=1, out_axes=1)(x)
    assert_close(moved, exact_softmax(values), tolerance=1e-6)
    step = mx.compile(lambda v: softmax(v * 2) + 1)
    assert_close(step(x[0]), exact_softmax(2 * values[0]) + 1, tolerance=1e-6)


def test_kernels_are_exported(tmp_path):
    x = mx.array(draw("float32", (3, 7)))
    mx.export_function(str(tmp_path / "softmax.weft"), softmax, x)
    assert_equal(mx.import_function(str(tmp_path / "softmax.weft"))(x)[0], host(softmax(x)))


def test_programs_of_all_configurations_are_alike():
    a, b = mx.array(draw("float32", (40, 24))), mx.array(draw("float32", (24, 30), seed=9))
    wanted = host(matmul(a, b))
    tuned = matmul.configs([k.Config(m=16, n=16, depth=8), k.Config(m=8, n=32, warps=4), k.Config(m=32, n=8, stages=2)])
    assert_equal(tuned(a, b), wanted)
    assert_equal(matmul.schedule("warps(4)")(a, b), wanted)
    assert_equal(matmul.sharding("m k, k n -> m n")(a, b), wanted)


def test_conditions_choose_and_store():
    @k.kernel(grid=lambda x, y, z: k.cdiv(x.dim(0), 8))
    def choose(x: k.In, y: k.Out, z: k.Out):
        at = k.block(k.program_id(0), 8)
        v = x[at].load()
        most = k.var(0.0)
        with k.when(k.program_id(0) > 0):
            most.set(k.max(v))
        y[at] = k.where(v > most, v, most)
        z[at] = k.if_else(k.any(v < 0), lambda: -v, lambda: v * 2)

    values = draw("float32", (20,))
    y, z = (host(r) for r in choose(mx.array(values)))
    for start in (0, 8, 16):
        part = np.zeros(8, np.float32)
        part[: len(values[start : start + 8])] = values[start : start + 8]
        most = part.max() if start else np.float32(0)
        wanted_z = -part if (part < 0).any() else part * 2
        n = len(values[start : start + 8])
        assert np.array_equal(y[start : start + 8], np.maximum(part, most)[:n])
        assert np.array_equal(z[start : start + 8], wanted_z[:n])


def test_loops_that_end_when_a_condition_says_so():
    @k.kernel(grid=1, outputs=lambda x: x.shape)
    def halvings(x: k.In, y: k.Out):
        left, count = k.var(x[0].load()), k.var(0, mx.float32)

        def body():
            left.set(left / 2)
            count.set(count + 1)

        k.while_(lambda: left.value > 1.0, body)
        y[0] = count

    assert halvings(mx.array([40.0])).tolist() == [6] and halvings(mx.array([0.5])).tolist() == [0]


def test_parallel_iterations_and_sequential_programs():
    @k.kernel(grid=lambda x, y: x.dim(0), outputs=lambda x: (x.shape[0],))
    def largest(x: k.In, y: k.Out):
        row = k.program_id(0)
        found = k.scratch(4)
        for part in k.parallel(4):
            found[part] = k.max(x[row, k.ds(part * 8, 8)].load(-np.inf))
        y[row] = k.max(found[:].load())

    @k.kernel(grid=lambda x, y: k.Axis(x.dim(0), "sequential"), outputs=lambda x: (x.shape[1],))
    def column_sums(x: k.In, y: k.Out):
        with k.when(k.program_id(0) == 0):
            y[:] = 0
        y[:] += x[k.program_id(0), :]

    values = draw("float32", (5, 27))
    assert_equal(largest(mx.array(values)), values.max(1))
    assert_close(column_sums(mx.array(values)), values.astype(np.float64).sum(0), tolerance=1e-5)


def test_elements_at_positions():
    @k.kernel(grid=1, outputs=lambda x, at: (at.shape, x.dtype))
    def pick(x: k.In, at: k.In, y: k.Out):
        y[:] = k.gather(x, at[:], other=-1)

    @k.kernel(grid=lambda at, counts: at.dim(0))
    def count(at: k.In, counts: k.InOut):
        k.atomic("add", counts, 1, at[k.program_id(0)])

    x = mx.array([5.0, 6.0, 7.0])
    assert pick(x, mx.array([2, 0, 9, -1])).tolist() == [7, 5, -1, -1]
    start = mx.array([1, 0, 0])
    assert count(mx.array([2, 2, 0]), start).tolist() == [2, 0, 2]
    assert start.tolist() == [1, 0, 0]


TILES = mx.array(draw("float32", (4, 8), seed=10))


@pytest.mark.parametrize(
    "f, wanted",
    [
        (lambda v: v[1:3, ::2], lambda v: v[1:3, ::2]),
        (lambda v: v[:, None, 3:], lambda v: v[:, None, 3:]),
        (lambda v: v.T, lambda v: v.T),
        (lambda v: k.flip(v, 1), lambda v: v[:, ::-1]),
        (lambda v: k.cat([v, v], 1), lambda v: np.concatenate([v, v], 1)),
        (lambda v: k.reshape(v, (8, 4)), lambda v: v.reshape(8, 4)),
        (lambda v: k.cumsum(v, 1), lambda v: v.astype(np.float64).cumsum(1)),
        (lambda v: k.cummax(v, 0, reverse=True), lambda v: np.maximum.accumulate(v[::-1], 0)[::-1]),
        (lambda v: k.sort(v, 1, descending=True), lambda v: np.sort(v, 1)[:, ::-1]),
        (lambda v: k.topk(v, 2), lambda v: np.sort(v, 1)[:, :-3:-1]),
        (lambda v: k.argmax(v, 1), lambda v: v.argmax(1)),
        (lambda v: k.reduce(v, 1, lambda a, b: k.maximum(a, b)), lambda v: v.max(1)),
        (lambda v: k.scan(v, 1, lambda a, b: k.minimum(a, b)), lambda v: np.minimum.accumulate(v, 1)),
        (lambda v: k.split(k.join(v, v * 2))[1], lambda v: v * 2),
        (lambda v: v @ v.T, lambda v: v.astype(np.float64) @ v.T.astype(np.float64)),
        (lambda v: 2**v, lambda v: 2.0**v),
        (lambda v: (1 - v) ** 2 / 3, lambda v: (1 - v) ** 2 / 3),
        (lambda v: k.cast(v, mx.int32) // 2, lambda v: v.astype(np.int32) // 2),
        (lambda v: k.cast(v, mx.int32) % 3, lambda v: v.astype(np.int32) % 3),
        (lambda v: k.where((v > 0) & ~(v >= 1), v, 0), lambda v: np.where((v > 0) & ~(v >= 1), v, 0)),
        (lambda v: abs(-v), np.abs),
        (lambda v: k.apply("xlogy", abs(v), 2.0), lambda v: np.abs(v) * np.log(2)),
        (lambda v: k.fma(v, 2, v), lambda v: 3 * v),
        (lambda v: k.bitcast(v, mx.int32), lambda v: v.view(np.int32)),
        (lambda v: k.broadcast_to(k.sum(v, 1)[:, None], (4, 2)), lambda v: v.sum(1)[:, None] * np.ones((1, 2))),
    ],
)
def test_functions_of_tiles(f, wanted):
    values = host(TILES)
    expected = np.asarray(wanted(values))
    dtype = {"i": mx.int32, "u": mx.int32, "f": mx.float32}[expected.dtype.kind]

    @k.kernel(grid=1, outputs=lambda x: (expected.shape, dtype))
    def apply(x: k.In, y: k.Out):
        y[...] = k.cast(f(x[:, :].load()), y.dtype)

    assert_close(apply(TILES), expected, tolerance=1e-5)


def test_random_numbers_are_those_of_every_device():
    @k.kernel(grid=1, outputs=lambda n: (n.shape, mx.float32))
    def uniform(n: k.In, y: k.Out, seed: int = 7):
        y[:] = k.rand(seed, n[:])

    found = host(uniform(mx.arange(4096)))
    assert ((found >= 0) & (found < 1)).all() and abs(found.mean() - 0.5) < 0.02
    assert not np.array_equal(found, host(uniform.config(seed=8)(mx.arange(4096))))


def line_of(function, words):
    """The number of the line of a function on which words stand."""
    lines, first = inspect.getsourcelines(function)
    return first + next(n for n, line in enumerate(lines) if words in line)


def mistakes():
    def shapes(x: k.In, y: k.Out):
        y[:, :] = k.dot(x[:, :], x[:, :])  # wrong

    def dtypes(x: k.In, y: k.Out):
        y[:, :] = x[:, :] + k.zeros((4, 6), mx.int32)  # wrong

    def stored(x: k.In, y: k.Out):
        x[0, 0] = 1.0  # wrong

    def escaped(x: k.In, y: k.Out):
        for _ in k.range(3):
            v = x[:, :].load()
        y[:, :] = v  # wrong

    def left(x: k.In, y: k.Out):
        for _ in k.range(3):
            y[:, :] = x[:, :]  # wrong
            break

    def negative(x: k.In, y: k.Out):
        y[:, :] = x[-1, 0]  # wrong

    def computed(x: k.In, y: k.Out):
        i = k.program_id(0)
        y[:, :] = x[i : i + 2, :]  # wrong

    def fraction(x: k.In, y: k.Out):
        y[:, :] = k.cast(k.cast(x[:, :], mx.int32) * 0.5, mx.float32)  # wrong

    def quotient(x: k.In, y: k.Out):
        y[:, :] = k.cast(k.cast(x[:, :], mx.int32) / 2, mx.float32)  # wrong

    def named(x: k.In, y: k.Out):
        y[:, :] = k.dot(x[:, :], x[:, :], precision="half")  # wrong

    return {
        shapes: "inner extents 6 and 4", dtypes: "int32|i32", stored: "written|Out", escaped: "used after it",
        left: "without break or return", negative: "dim.axis. - 1", computed: "ds.start, size.",
        fraction: "cast the tile", quotient: "// for integers", named: "precision",
    }


@pytest.mark.parametrize("function, words", mistakes().items(), ids=lambda v: getattr(v, "__name__", "words"))
def test_mistakes_are_refused_by_line(function, words):
    with pytest.raises(ValueError, match=words) as error:
        k.kernel(function, grid=1)(mx.zeros((4, 6)))
    if function.__name__ != "left":
        assert f"{__file__}:{line_of(function, '# wrong')}: " in str(error.value)


def test_values_are_not_known_while_tracing():
    @k.kernel(grid=1)
    def decides(x: k.In, y: k.Out):
        if k.sum(x[:]) > 0:
            y[:] = 1.0

    with pytest.raises(TypeError, match="when, if_else or where"):
        decides(mx.ones(3))

    @k.kernel(grid=1)
    def adds_a_list(x: k.In, y: k.Out):
        y[:] = x[:] + [1, 2, 3]

    with pytest.raises(TypeError):
        adds_a_list(mx.ones(3))
    with pytest.raises(ValueError, match="no kernel being traced"):
        k.zeros(3)


def test_calls_that_do_not_fit():
    with pytest.raises(ValueError, match=r"\[kernel softmax\] takes 1 arrays, got 2"):
        softmax(mx.ones((2, 2)), mx.ones((2, 2)))
    with pytest.raises(ValueError, match="has no parameter blck"):
        rms_norm.config(blck=3)
    with pytest.raises(ValueError, match="writes no array"):

        @k.kernel(grid=1)
        def reads(x: k.In):
            pass

    with pytest.raises(ValueError, match="name of an option"):

        @k.kernel(grid=1)
        def option(y: k.Out, warps: int = 3):
            pass

    @k.kernel(grid=1)
    def unset(x: k.In, y: k.Out, block: int):
        y[:] = x[:]

    with pytest.raises(ValueError, match="block has no value"):
        unset(mx.ones(3))
    assert unset.config(block=1)(mx.ones(3)).tolist() == [1, 1, 1]

    @k.kernel(grid=1, outputs=lambda x: "large")
    def odd(x: k.In, y: k.Out):
        y[:] = x[:]

    with pytest.raises(ValueError, match="outputs returns a shape"):
        odd(mx.ones(3))

    @k.kernel
    def nowhere(x: k.In, y: k.Out):
        y[:] = x[:]

    with pytest.raises(ValueError, match="no grid"):
        nowhere(mx.ones(3))


def test_errors_of_the_function_pass_through():
    @k.kernel(grid=1)
    def fails(x: k.In, y: k.Out):
        for _ in k.range(4):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        fails(mx.ones(3))
    assert softmax(mx.zeros((1, 2))).tolist() == [[0.5, 0.5]]  # another trace begins anew


def test_the_interpreter_finds_programs_that_interfere():
    @k.kernel(grid=2)
    def races(x: k.In, y: k.Out):
        y[0] = x[k.program_id(0)]

    with pytest.raises(RuntimeError, match="test_kernel_language.py"):
        races.interpret(mx.ones(3))


def test_what_becomes_of_a_kernel():
    x = mx.zeros((4, 32))
    assert "exp" in softmax.show("tile", x)
    assert "llvm" in softmax.show("llvm", x, machine="generic").lower() or "define" in softmax.show("llvm", x)
    assert "__global__" in softmax.show("cuda", x, machine="sm_90a")
    with pytest.raises(ValueError):
        softmax.show("nothing", x)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_kernels_compile_for_gpus(arch):
    norm = (mx.zeros((8, 256)), mx.zeros(256))
    product = (mx.zeros((64, 64), mx.float16), mx.zeros((64, 64), mx.float16))
    for f, arrays in [(softmax, [mx.zeros((4, 1000))]), (rms_norm.config(block=256), norm), (matmul, product)]:
        try:
            code = f.show("ptx", *arrays, machine=arch)
        except RuntimeError as error:
            pytest.skip(f"NVRTC is missing: {error}")
        assert ".entry" in code and f"target {arch}" in code


def test_launches_on_tensors_of_others():
    x = draw("float32", (6, 10))
    y = np.zeros((6, 10), np.float32)
    softmax.launch(x, y)
    np.testing.assert_allclose(y, exact_softmax(x.astype(np.float64)), rtol=1e-6)
    wide = np.zeros((10, 6), np.float32)
    softmax.launch(x, wide.T)
    assert np.array_equal(wide.T, y)
    with pytest.raises(ValueError, match="takes 2 tensors, got 1"):
        softmax.launch(x)
    with pytest.raises(TypeError, match="__dlpack__"):
        softmax.launch(x, 5)
    with pytest.raises(ValueError, match="y is an array of Weft's"):
        softmax.launch(x, mx.zeros((6, 10)))
    frozen = np.zeros((6, 10), np.float32)
    frozen.flags.writeable = False
    with pytest.raises((ValueError, BufferError), match="written|readonly"):
        softmax.launch(x, frozen)
    softmax.launch(frozen, y)
    assert (y == np.float32(0.1)).all() and (frozen == 0).all()
    with pytest.raises(ValueError, match=rf"{__file__}:\d+: launch: array 1 has 2 axes, its shape is|repeats"):
        softmax.launch(x, np.lib.stride_tricks.as_strided(y, (6, 10), (0, 4)))


def test_launches_on_tensors_of_pytorch():
    torch = pytest.importorskip("torch")
    x, y = torch.randn(6, 10), torch.zeros(10, 6)
    softmax.launch(x, y.T)
    torch.testing.assert_close(y.T, torch.softmax(x, -1))
    odd = torch.zeros(20, 6, dtype=torch.float64)[3:13:2, 1:4]
    softmax.launch(torch.ones(5, 3, dtype=torch.float64), odd)
    assert torch.all(odd == 1 / 3)
    with pytest.raises(ValueError, match="dtype that Weft lacks"):
        softmax.launch(x.to(torch.complex128), y)
    needs_gradient = torch.ones(2, 2, requires_grad=True)
    softmax.launch(needs_gradient.detach(), y[:2, :2])
    assert torch.all(y[:2, :2] == 0.5)


def test_kernels_are_collected():
    import gc
    import weakref

    class Witness:
        pass

    def make():
        own = {"witness": Witness()}

        @k.kernel(grid=1)
        def copy(x: k.In, y: k.Out):
            y[:] = x[:] * len(own)

        own["kernel"] = copy  # which its own function refers to
        assert copy(mx.ones(3)).tolist() == [2, 2, 2]
        return weakref.ref(own["witness"])

    witness = make()
    gc.collect()
    assert witness() is None
