"""Derivatives, vmap, checkpoint and custom functions. test_compile.py holds compile."""

import numpy as np
import pytest
from support import IS_MLX, assert_close, assert_equal

import weft.core as mx
from weft.utils import tree_map


def loss(w, x, b=0.0):
    return ((w * x + b) ** 2).sum()


W, X = np.array([1.0, 2.0]), np.array([3.0, -1.0])


def arrays(*values):
    return tuple(mx.array(v, mx.float32) for v in values)


def test_grad_of_the_first_argument():
    w, x = arrays(W, X)
    assert_close(mx.grad(loss)(w, x), 2 * W * X * X)
    value, slope = mx.value_and_grad(loss)(w, x)
    assert_close(value, ((W * X) ** 2).sum())
    assert_close(slope, 2 * W * X * X)


@pytest.mark.parametrize(
    "argnums, wanted", [(0, 0), (1, 1), ((0, 1), (0, 1)), ([0, 1], (0, 1)), ((1, 0), (0, 1)), ([1], 1), ((0,), 0)]
)
def test_argnums(argnums, wanted):
    """Gradients come in the order of the arguments, and that of one argument comes by itself."""
    slopes = [2 * W * X * X, 2 * W * W * X]
    found = mx.grad(loss, argnums=argnums)(*arrays(W, X))
    if isinstance(wanted, int):
        assert_close(found, slopes[wanted])
    else:
        assert isinstance(found, tuple) and len(found) == len(wanted)
        for f, n in zip(found, wanted):
            assert_close(f, slopes[n])


@pytest.mark.parametrize("argnums", [-1, 5, (0, 0)])
def test_argnums_that_are_no_arguments(argnums):
    with pytest.raises((ValueError, IndexError)):
        mx.grad(loss, argnums=argnums)(*arrays(W, X))


def test_argnames():
    w, x = arrays(W, X)
    b = mx.array(0.5)
    slope_b = (2 * (W * X + 0.5)).sum()
    _, names = mx.grad(loss, argnames="b")(w, x, b=b)
    assert set(names) == {"b"}
    assert_close(names["b"], slope_b)
    first, names = mx.grad(loss, argnums=0, argnames=["x", "b"])(w, x=x, b=b)
    assert_close(first, 2 * (W * X + 0.5) * X)
    assert_close(names["x"], 2 * (W * X + 0.5) * W)
    assert_close(names["b"], slope_b)
    for options in ({"argnames": "q"}, {"argnums": 5}, {"argnums": (0, 0)}):
        with pytest.raises((ValueError, IndexError)):
            mx.grad(loss, **options)(w, x, b=b)


def test_trees():
    def f(tree):
        return (tree["a"] * tree["b"][0]).sum() + tree["b"][1][0] ** 2

    tree = {"a": mx.array([1.0, 2.0]), "b": [mx.array([3.0, 4.0]), (mx.array(5.0),)]}
    value, slopes = mx.value_and_grad(f)(tree)
    assert value.item() == 36
    assert isinstance(slopes["b"], list) and isinstance(slopes["b"][1], tuple)
    assert_close(slopes["a"], [3, 4])
    assert_close(slopes["b"][0], [1, 2])
    assert_close(slopes["b"][1][0], 10)


def test_other_arguments_may_be_anything():
    f = mx.value_and_grad(lambda w, factor, table: (w ** table["p"]).sum() * factor)
    value, slope = f(mx.array([2.0]), 2, {"p": 3})
    assert value.item() == 16 and slope.item() == 24
    with pytest.raises(ValueError):
        mx.grad(lambda tree: tree["w"].sum())({"w": mx.array([2.0]), "p": 3})


def test_other_outputs_pass_through():
    def f(w):
        return (w * w).sum(), w + 1, {"text": "kept"}

    (value, next_w, rest), slope = mx.value_and_grad(f)(mx.array([1.0, 2.0]))
    assert value.item() == 5 and next_w.tolist() == [2, 3] and rest == {"text": "kept"}
    assert_close(slope, [2, 4])


@pytest.mark.parametrize(
    "f",
    [lambda x: x, lambda x: x.sum().item(), lambda x: "text", lambda x: None],
)
def test_functions_without_a_scalar(f):
    with pytest.raises((ValueError, TypeError)):
        mx.grad(f)(mx.ones((2,)))


def test_arguments_that_are_no_arrays():
    with pytest.raises((ValueError, TypeError)):
        mx.grad(lambda x: x)(1.0)


def test_higher_derivatives():
    f = lambda x: x**4  # noqa: E731
    assert mx.grad(mx.grad(mx.grad(f)))(mx.array(2.0)).item() == 48
    hessian_diagonal = mx.grad(lambda x: mx.grad(lambda y: (y**3).sum())(x).sum())(mx.array([1.0, 2.0]))
    assert_close(hessian_diagonal, [6, 12])


def test_unused_and_stopped_arguments():
    assert_close(mx.grad(lambda x, y: (y * 2).sum())(mx.ones(2), mx.ones(2)), [0, 0])
    assert_close(mx.grad(lambda x: (x * mx.stop_gradient(x)).sum())(mx.array([3.0])), [3])


def test_captured_arrays_are_constants():
    w = mx.array([2.0])
    assert_close(mx.grad(lambda x: (x * w).sum())(mx.array([5.0])), [2])


# Functions with their derivatives, at points where these exist.
DERIVATIVES = {
    "exp": (mx.exp, np.exp),
    "log": (mx.log, lambda a: 1 / a),
    "sqrt": (mx.sqrt, lambda a: 0.5 / np.sqrt(a)),
    "rsqrt": (mx.rsqrt, lambda a: -0.5 * a**-1.5),
    "sin": (mx.sin, np.cos),
    "cos": (mx.cos, lambda a: -np.sin(a)),
    "tan": (mx.tan, lambda a: 1 / np.cos(a) ** 2),
    "tanh": (mx.tanh, lambda a: 1 - np.tanh(a) ** 2),
    "sigmoid": (mx.sigmoid, lambda a: np.exp(-a) / (1 + np.exp(-a)) ** 2),
    "erf": (mx.erf, lambda a: 2 / np.sqrt(np.pi) * np.exp(-a * a)),
    "log1p": (mx.log1p, lambda a: 1 / (1 + a)),
    "arctan": (mx.arctan, lambda a: 1 / (1 + a * a)),
    "square": (mx.square, lambda a: 2 * a),
    "reciprocal": (mx.reciprocal, lambda a: -1 / a**2),
    "abs": (lambda x: mx.abs(-x), np.ones_like),
    "power": (lambda x: x**2.5, lambda a: 2.5 * a**1.5),
}


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives(name):
    f, slope = DERIVATIVES[name]
    a = np.array([0.3, 0.7, 1.2])
    (x,) = arrays(a)
    assert_close(mx.grad(lambda v: f(v).sum())(x), slope(a), 4)
    _, tangents = mx.jvp(f, [x], [mx.full((3,), 2.0)])
    assert_close(tangents[0], 2 * slope(a), 8)


REAL_FUNCTIONS = {
    "sum": lambda x: mx.sum(x * x, axis=0),
    "mean": lambda x: mx.mean(x * x, axis=1),
    "var": lambda x: mx.var(x, axis=1),
    "max": lambda x: mx.max(x, axis=1),
    "logsumexp": lambda x: mx.logsumexp(x, axis=1),
    "softmax": lambda x: mx.softmax(x, axis=-1),
    "cumsum": lambda x: mx.cumsum(x, axis=1) ** 2,
    "prod": lambda x: mx.prod(x, axis=1),
    "matmul": lambda x: x @ x.T,
    "transpose": lambda x: (x.T * 2)[1:] ** 2,
    "sort": lambda x: mx.sort(x, axis=1) * mx.arange(4),
    "pad": lambda x: mx.pad(x, 1) ** 2,
    "concatenate": lambda x: mx.concatenate([x, x * 2], axis=0) ** 2,
    "take": lambda x: mx.take(x, mx.array([0, 0, 2]), axis=1) ** 2,
    "where": lambda x: mx.where(x > 0, x * x, -x),
    "layer_norm": lambda x: mx.fast.layer_norm(x, None, None, 1e-5),
    "conv1d": lambda x: mx.conv1d(x[None], mx.ones((2, 2, 4))),
}


@pytest.mark.parametrize("name", REAL_FUNCTIONS)
def test_gradients_against_differences(name):
    f = REAL_FUNCTIONS[name]
    x = mx.random.uniform(-1, 1, (3, 4))
    weights = mx.random.normal(f(x).shape)
    slope = np.array(mx.grad(lambda v: (f(v) * weights).sum())(x))
    a, w, h = np.array(x, np.float64), np.array(weights, np.float64), 1e-2
    for index in np.ndindex(3, 4):
        ends = []
        for sign in (1, -1):
            moved = a.copy()
            moved[index] += sign * h
            ends.append((np.array(f(mx.array(moved, mx.float32)), np.float64) * w).sum())
        assert slope[index] == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=3e-2, abs=3e-2)


def test_vjp_and_jvp():
    def f(x, y):
        return x * y, x + y

    primals = list(arrays([1.0, 2.0], [3.0, 4.0]))
    outputs, slopes = mx.vjp(f, primals, [mx.array([1.0, 1.0]), mx.array([10.0, 20.0])])
    assert [o.tolist() for o in outputs] == [[3, 8], [4, 6]]
    assert [s.tolist() for s in slopes] == [[13, 24], [11, 22]]
    outputs, tangents = mx.jvp(f, primals, [mx.array([1.0, 0.0]), mx.array([0.0, 1.0])])
    assert [o.tolist() for o in outputs] == [[3, 8], [4, 6]]
    assert [t.tolist() for t in tangents] == [[3, 2], [1, 1]]


def test_vjp_and_jvp_mistakes():
    x = mx.ones((2,))
    for call in (
        lambda: mx.vjp(lambda a: a, [x], []),
        lambda: mx.vjp(lambda a: a, [x], [mx.ones((3,))]),
        lambda: mx.jvp(lambda a: a, [x], []),
        lambda: mx.jvp(lambda a: a, [x], [mx.ones((3,))]),
    ):
        with pytest.raises(ValueError):
            call()


@pytest.mark.parametrize(
    "in_axes, out_axes, shapes, numpy",
    [
        (0, 0, ((5, 3), (5, 3)), lambda a, b: a + 2 * b),
        ((0, None), 0, ((5, 3), (3,)), lambda a, b: a + 2 * b),
        ((None, 0), 0, ((3,), (5, 3)), lambda a, b: a + 2 * b),
        ((1, 0), 0, ((3, 5), (5, 3)), lambda a, b: a.T + 2 * b),
        ((-1, 0), 1, ((3, 5), (5, 3)), lambda a, b: (a.T + 2 * b).T),
        (0, -1, ((5, 3), (5, 3)), lambda a, b: (a + 2 * b).T),
        (0, (1,), ((5, 3), (5, 3)), lambda a, b: (a + 2 * b).T),
    ],
)
def test_vmap(in_axes, out_axes, shapes, numpy):
    x, y = (mx.random.normal(s) for s in shapes)
    result = mx.vmap(lambda a, b: a + 2 * b, in_axes=in_axes, out_axes=out_axes)(x, y)
    assert_close(result, numpy(np.array(x), np.array(y)))


def test_vmap_of_trees():
    def f(tree, y):
        return {"sum": tree["a"] + y, "rest": [tree["b"][0] * 2]}

    tree = {"a": mx.ones((4, 2)), "b": [mx.ones((2, 4))]}
    result = mx.vmap(f, in_axes=({"a": 0, "b": [1]}, None), out_axes={"sum": 0, "rest": [1]})(tree, mx.ones((2,)))
    assert result["sum"].shape == (4, 2) and result["rest"][0].shape == (2, 4)
    prefix = mx.vmap(lambda t: t["a"] + t["b"], in_axes=0)({"a": mx.ones((4, 2)), "b": mx.ones((4, 2))})
    assert_equal(prefix, np.full((4, 2), 2))


def test_vmap_twice_and_with_grad():
    x, y = mx.random.normal((3, 4)), mx.random.normal((5, 4))
    dots = mx.vmap(mx.vmap(lambda a, b: (a * b).sum(), in_axes=(None, 0)), in_axes=(0, None))(x, y)
    assert_close(dots, np.array(x @ y.T), 8)
    slopes = mx.vmap(mx.grad(lambda a: (a**3).sum()))(x)
    assert_close(slopes, 3 * np.array(x) ** 2, 8)
    total = mx.grad(lambda a: mx.vmap(lambda r: (r * r).sum())(a).sum())(x)
    assert_close(total, 2 * np.array(x), 8)


VMAPPED = {
    "matmul": lambda x: x @ x.T,
    "sum": lambda x: x.sum(axis=-1),
    "softmax": lambda x: mx.softmax(x, axis=0),
    "sort": lambda x: mx.sort(x, axis=0),
    "argmax": lambda x: mx.argmax(x, axis=1),
    "cumsum": lambda x: mx.cumsum(x, axis=0),
    "reshape": lambda x: x.reshape(-1),
    "index": lambda x: x[:, mx.array([1, 0])],
    "slice": lambda x: x[::-1, 1:],
    "concatenate": lambda x: mx.concatenate([x, x], axis=1),
    "pad": lambda x: mx.pad(x, 1),
    "where": lambda x: mx.where(x > 0, x, -x),
    "take_along_axis": lambda x: mx.take_along_axis(x, mx.argsort(x, axis=1), axis=1),
    "layer_norm": lambda x: mx.fast.layer_norm(x, None, None, 1e-5),
    "inverse": lambda x: mx.linalg.inv(x @ x.T + mx.eye(3)),
    "fft": lambda x: mx.abs(mx.fft.fft(x)),
}


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("name", VMAPPED)
def test_vmap_is_a_loop(name, axis):
    f = VMAPPED[name]
    shape = [3, 4]
    shape.insert(axis, 5)
    x = mx.random.normal(shape)
    expected = np.stack([np.array(f(mx.contiguous(mx.take(x, i, axis=axis)))) for i in range(5)])
    assert_close(mx.vmap(f, in_axes=axis)(x), expected, tolerance=1e-4)


def test_vmap_mistakes():
    for call in (
        lambda: mx.vmap(lambda x, y: x + y)(mx.ones((2,)), mx.ones((3,))),
        lambda: mx.vmap(lambda x: x, in_axes=2)(mx.ones((2, 3))),
        lambda: mx.vmap(lambda x, y: x + y, in_axes=(0,))(mx.ones((2,)), mx.ones((2,))),
        lambda: mx.vmap(lambda x: x)(mx.array(1.0)),
    ):
        with pytest.raises((ValueError, IndexError)):
            call()


def test_checkpoint():
    def f(x, y):
        return mx.sin(x) * y

    x, y = arrays([0.5, 1.0], [2.0, 3.0])
    plain = mx.grad(lambda a, b: f(a, b).sum(), argnums=(0, 1))(x, y)
    again = mx.grad(lambda a, b: mx.checkpoint(f)(a, b).sum(), argnums=(0, 1))(x, y)
    for p, q in zip(plain, again):
        assert_close(q, np.array(p))


def test_checkpoint_of_trees():
    f = mx.checkpoint(lambda tree, scale: {"y": tree["x"] * scale})
    assert_close(mx.grad(lambda t: f(t, mx.array(3.0))["y"].sum())({"x": mx.ones(2)})["x"], [3, 3])


def test_custom_function_without_rules():
    f = mx.custom_function(lambda x, y: x * y)
    x, y = arrays([1.0, 2.0], [3.0, 4.0])
    assert f(x, y).tolist() == [3, 8]
    assert_close(mx.grad(lambda a, b: f(a, b).sum())(x, y), [3, 4])


def test_custom_vjp():
    @mx.custom_function
    def f(x, y):
        return mx.sin(x) * y

    @f.vjp
    def f_vjp(primals, cotangent, output):
        x, y = primals
        return cotangent * 100, cotangent * output

    x, y = arrays([0.5, 1.0], [2.0, 3.0])
    value = np.sin([0.5, 1.0]) * np.array([2.0, 3.0])
    assert_close(f(x, y), value)
    gx, gy = mx.grad(lambda a, b: f(a, b).sum(), argnums=(0, 1))(x, y)
    assert_close(gx, [100, 100])
    assert_close(gy, value)


def test_custom_vjp_of_trees():
    @mx.custom_function
    def f(tree):
        return {"out": tree["a"] * 2}

    @f.vjp
    def f_vjp(primals, cotangents, outputs):
        return tree_map(lambda p: p * 0 + 7, primals)

    assert_close(mx.grad(lambda t: f(t)["out"].sum())({"a": mx.ones(2)})["a"], [7, 7])


def test_custom_jvp():
    @mx.custom_function
    def f(x, y):
        return x * y

    @f.jvp
    def f_jvp(primals, tangents):
        return tangents[0] * 10 if tangents[1] is None else tangents[0] * 10 + tangents[1]

    _, tangents = mx.jvp(f, list(arrays([1.0], [2.0])), list(arrays([1.0], [5.0])))
    assert tangents[0].tolist() == [15]


def test_custom_vmap():
    @mx.custom_function
    def f(x):
        return x * 2

    @f.vmap
    def f_vmap(x, axis):
        return x * 3, axis

    assert mx.vmap(f)(mx.ones((2, 3))).tolist() == [[3, 3, 3], [3, 3, 3]]
    assert f(mx.ones((2,))).tolist() == [2, 2]


def test_derivatives_of_integers_and_bools():
    assert_equal(mx.grad(lambda x: (mx.where(x > 0, x, 0.0)).sum())(mx.array([1.0, -1.0])), [1, 0])
    with pytest.raises((ValueError, TypeError)):
        mx.grad(lambda x: "no")(mx.array(1.0))


def test_depends():
    a, b = mx.array([1.0]), mx.array([2.0])
    (c,) = mx.depends([a], [b])
    assert c.item() == 1 and mx.depends(a, b).item() == 1
    assert mx.grad(lambda x: mx.depends(x * x, b).sum())(mx.array([3.0])).item() == 6


def test_exceptions_pass_through():
    def f(x):
        raise KeyError("mine")

    for transform in (mx.grad, mx.vmap, mx.compile, mx.checkpoint):
        with pytest.raises(KeyError):
            transform(f)(mx.array([1.0]))
    assert mx.grad(lambda x: x * x)(mx.array(2.0)).item() == 4  # and leave nothing behind


def test_functions_see_the_objects_that_they_are_given():
    """In the place of a tree's arrays are others during the trace; what the function assigns stays."""

    class Model(dict):
        def __call__(self, x):
            return self["w"] * x

    model = Model(w=mx.array(2.0), rest=(mx.array(1.0), [mx.array(4.0)]))
    before = model["w"], model["rest"][0], model["rest"][1][0]
    slopes = mx.grad(lambda m, x: m(x))(model, mx.array(3.0))
    assert slopes["w"].item() == 3 and slopes["rest"][1][0].item() == 0
    assert all(a is b for a, b in zip(before, (model["w"], model["rest"][0], model["rest"][1][0])))

    def assigning(arrays):
        arrays[1] = arrays[0] * 5
        return arrays[1]

    given = [mx.array(2.0), mx.array(1.0)]
    first = given[0]
    assert mx.grad(assigning)(given)[0].item() == 5
    assert given[0] is first and given[1].item() == 10


@pytest.mark.skipif(IS_MLX, reason="MLX leaves the traced arrays there")
def test_trees_are_put_back_after_an_exception():
    def failing(arrays):
        raise KeyError("mine")

    given = [mx.array(2.0)]
    first = given[0]
    with pytest.raises(KeyError):
        mx.grad(failing)(given)
    assert given[0] is first


def test_gather_mm_has_no_derivative_by_indices():
    x, i = mx.random.normal((3, 2, 2)), mx.array([0, 2, 1])

    def product(x, i):
        return mx.gather_mm(x, x, i, None).sum()

    with pytest.raises(ValueError, match="stop_gradient"):
        mx.grad(product, argnums=(0, 1))(x, i)

    def chosen(x, stop=lambda i: i):
        return product(x, stop(mx.argmax(x[:, 0], axis=1)))

    with pytest.raises(ValueError, match="stop_gradient"):
        mx.grad(chosen)(x)
    slopes = mx.grad(lambda x: chosen(x, mx.stop_gradient))(x)
    expected = mx.grad(lambda x: product(x, mx.argmax(mx.stop_gradient(x)[:, 0], axis=1)))(x)
    assert mx.array_equal(slopes, expected).item()
    assert mx.compile(chosen)(x).shape == ()


@pytest.mark.parametrize("transform", [mx.grad, mx.vmap, mx.compile])
def test_async_eval_of_what_is_traced_is_refused(transform):
    def watched(x):
        y = x * 2
        mx.async_eval(y)
        return y.sum()

    with pytest.raises(ValueError, match="async_eval"):
        transform(watched)(mx.ones((2, 3)))

    def beside(x):
        y = mx.ones(3) * 2
        mx.async_eval(y)
        return (x * y).sum()

    mx.eval(transform(beside)(mx.ones((2, 3))))
