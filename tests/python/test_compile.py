"""compile: traces, captured inputs and outputs, keywords, constants, random state, shapeless functions."""

from functools import partial

import numpy as np
import pytest
from support import IS_MLX, assert_close, assert_equal

import weft.core as mx


def counted(f):
    """A function that counts how often it is traced."""

    def wrapper(*args, **kwargs):
        wrapper.traces += 1
        return f(*args, **kwargs)

    wrapper.traces = 0
    return wrapper


def test_results_equal_eager_ones():
    def f(x, y):
        return mx.exp(-x) * y + mx.sum(y, axis=0), x - y

    x, y = mx.random.normal((4, 5)), mx.random.normal((4, 5))
    for eager, compiled in zip(f(x, y), mx.compile(f)(x, y)):
        assert_close(compiled, np.array(eager), 2)


def test_traced_once_for_equal_shapes():
    f = counted(lambda x: x * 2 + 1)
    g = mx.compile(f)
    for i in range(3):
        assert_equal(g(mx.array([float(i)])), [2 * i + 1])
    assert f.traces == 1
    g(mx.array([1.0, 2.0]))
    g(mx.array([1, 2]))
    assert f.traces == 3  # another shape, another dtype
    g(mx.array([5.0]))
    assert f.traces == 3


def test_as_a_decorator():
    @mx.compile
    def f(x):
        return x + 1

    @partial(mx.compile, shapeless=True)
    def g(x):
        return x + 1

    assert f(mx.array(1)).item() == 2 and g(mx.array(1)).item() == 2


def test_trees_of_arguments_and_results():
    g = mx.compile(lambda tree, rest: {"sum": tree["a"] + tree["b"][0], "rest": [rest, (rest * 2,)]})
    result = g({"a": mx.array([1.0]), "b": [mx.array([2.0])]}, mx.array(3.0))
    assert result["sum"].item() == 3 and result["rest"][0].item() == 3 and result["rest"][1][0].item() == 6
    assert isinstance(result["rest"], list) and isinstance(result["rest"][1], tuple)


def test_keywords_and_constants():
    f = counted(lambda x, scale=1.0, *, shift: x * scale + shift)
    g = mx.compile(f)
    x = mx.array([1.0, 2.0])
    assert_equal(g(x, shift=mx.array(1.0)), [2, 3])
    assert_equal(g(x, scale=3.0, shift=mx.array(1.0)), [4, 7])
    assert_equal(g(x, shift=mx.array(5.0)), [6, 7])
    assert f.traces == 2  # numbers are constants of a trace, arrays are not
    assert_equal(g(x, 2.0, shift=mx.array(0.0)), [2, 4])


@pytest.mark.parametrize("constant", [2, 2.5, "twice", True])
def test_constants_are_part_of_the_key(constant):
    f = counted(lambda x, c: x * 2 if c == "twice" else x * c)
    g = mx.compile(f)
    factor = 2 if constant == "twice" else constant
    assert_close(g(mx.array([3.0]), constant), [3 * factor])
    assert_close(g(mx.array([3.0]), 7), [21])
    assert_close(g(mx.array([3.0]), constant), [3 * factor])
    assert f.traces == 2


def test_arguments_that_no_trace_can_hold():
    with pytest.raises(ValueError):
        mx.compile(lambda x, y: x)(mx.array([1.0]), object())


def test_results_that_are_no_arrays():
    g = mx.compile(lambda x: (x + 1, "text"))
    for _ in range(2):
        value, text = g(mx.array([1.0]))
        assert value.item() == 2 and text == "text"


def test_captured_outputs():
    state = {"count": mx.array(0), "list": [mx.array(1.0)]}

    def f(x):
        state["count"] = state["count"] + 1
        state["list"][0] = state["list"][0] * x
        return x + state["list"][0]

    g = mx.compile(f, inputs=state, outputs=state)
    for i in range(1, 4):
        assert g(mx.array(2.0)).item() == 2 + 2.0**i
        assert state["count"].item() == i and state["list"][0].item() == 2.0**i


def test_captured_inputs():
    state = [mx.array(1.0)]
    f = counted(lambda x: x + state[0])
    g = mx.compile(f, inputs=state)
    assert g(mx.array(1.0)).item() == 2
    state[0] = mx.array(10.0)
    assert g(mx.array(1.0)).item() == 11 and f.traces == 1


def test_what_is_not_captured_is_a_constant():
    state = [mx.array(1.0)]
    g = mx.compile(lambda x: x + state[0])
    assert g(mx.array(1.0)).item() == 2
    state[0] = mx.array(10.0)
    assert g(mx.array(1.0)).item() == 2


def test_random_state_is_captured():
    g = mx.compile(lambda: mx.random.uniform(shape=(4,)), inputs=mx.random.state, outputs=mx.random.state)
    mx.random.seed(3)
    first, second = g(), g()
    assert not mx.array_equal(first, second).item()
    mx.random.seed(3)
    assert_equal(mx.random.uniform(shape=(4,)), np.array(first))
    assert_equal(mx.random.uniform(shape=(4,)), np.array(second))


def test_random_numbers_without_captured_state():
    """The implicit key is always captured here (docs/design.md), so that dropout differs in every call."""
    g = mx.compile(lambda: mx.random.uniform(shape=(4,)))
    assert mx.array_equal(g(), g()).item() is IS_MLX


@pytest.mark.parametrize("outside", [True, False])
def test_with_grad(outside):
    def f(x):
        return (mx.exp(x) * x).sum()

    g = mx.grad(mx.compile(f)) if outside else mx.compile(mx.grad(f))
    a = np.array([0.5, 1.5])
    assert_close(g(mx.array(a)), np.exp(a) * (a + 1), 4)


def test_with_vmap():
    x = mx.random.normal((3, 4))
    expected = (np.array(x) ** 2).sum(1)
    assert_close(mx.vmap(mx.compile(lambda r: (r * r).sum()))(x), expected, 4)
    assert_close(mx.compile(mx.vmap(lambda r: (r * r).sum()))(x), expected, 4)


def test_inside_another_compiled_function():
    inner = mx.compile(lambda x: mx.sin(x) + 1)
    outer = mx.compile(lambda x: inner(x) * inner(x + 1))
    a = np.array([0.1, 0.2])
    assert_close(outer(mx.array(a)), (np.sin(a) + 1) * (np.sin(a + 1) + 1), 4)


def test_shapeless():
    g = mx.compile(lambda x: mx.abs(x).sum(axis=-1) * 2, shapeless=True)
    for shape in ((2, 3), (5, 3), (4, 7)):
        x = mx.random.normal(shape)
        assert_close(g(x), 2 * np.abs(np.array(x)).sum(-1), 4)
    x = mx.ones((2, 2, 3))
    assert_close(g(x), np.full((2, 2), 6))  # other ranks are traced again


def test_disable_compile():
    f = counted(lambda x: x + 1)
    g = mx.compile(f)
    mx.disable_compile()
    try:
        for _ in range(3):
            g(mx.array([1.0]))
        assert f.traces == 3
    finally:
        mx.enable_compile()
    for _ in range(3):
        g(mx.array([1.0]))
    assert f.traces == 4


def test_values_are_not_known_while_tracing():
    with pytest.raises((ValueError, RuntimeError)):
        mx.compile(lambda x: x if x.item() > 0 else -x)(mx.array(1.0))
    with pytest.raises((ValueError, RuntimeError)):
        mx.compile(lambda x: mx.eval(x * 2))(mx.array(1.0))


def test_in_place_updates_inside():
    @mx.compile
    def f(x):
        y = x * 1
        y[0] = 5
        y += 1
        return y

    x = mx.array([1.0, 2.0])
    assert_equal(f(x), [6, 3])
    assert_equal(x, [1, 2])


def test_functions_without_arguments_and_outputs_that_repeat():
    assert mx.compile(lambda: mx.array(2.0) * 3)().item() == 6
    a, b = mx.compile(lambda x: (x, x))(mx.array([1.0]))
    assert a.item() == b.item() == 1


def test_methods_and_bound_state():
    class Model:
        def __init__(self):
            self.w = mx.array([2.0])

        def __call__(self, x):
            return x * self.w

    model = Model()
    assert_equal(mx.compile(model)(mx.array([3.0])), [6])
    assert_equal(mx.compile(model.__call__)(mx.array([4.0])), [8])


def test_name_and_documentation_are_kept():
    def f(x):
        """Double."""
        return x * 2

    assert mx.compile(f).__name__ == "f" and mx.compile(f).__doc__ == "Double."


@pytest.mark.parametrize("bad", [5, None, "f"])
def test_what_cannot_be_called(bad):
    with pytest.raises((TypeError, ValueError)):
        mx.compile(bad)(mx.array(1.0))


def test_a_training_loop():
    w = {"w": mx.array([0.0, 0.0]), "b": mx.array(0.0)}
    x = mx.random.normal((64, 2))
    y = x @ mx.array([2.0, -1.0]) + 0.5
    state = [w]

    def loss(parameters):
        return ((x @ parameters["w"] + parameters["b"] - y) ** 2).mean()

    @partial(mx.compile, inputs=state, outputs=state)
    def step():
        value, slopes = mx.value_and_grad(loss)(w)
        for name in w:
            w[name] = w[name] - 0.1 * slopes[name]
        return value

    values = [step().item() for _ in range(100)]
    assert values[-1] < 1e-4 < values[0]
    assert_close(w["w"], [2, -1], tolerance=1e-2)


def test_the_random_sequence_as_captured_state_moves_on_in_each_call():
    state = [{"w": mx.zeros(3)}, mx.random.state]

    @partial(mx.compile, inputs=state, outputs=state)
    def step():
        state[0]["w"] = state[0]["w"] + 1
        return mx.random.uniform(shape=(4,))

    mx.random.seed(5)
    draws = [step() for _ in range(4)]
    mx.random.seed(5)
    for draw in draws:
        assert_equal(draw, np.array(mx.random.uniform(shape=(4,))))
    assert_equal(state[0]["w"], np.full(3, 4))
