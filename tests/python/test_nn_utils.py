"""value_and_grad, checkpoint and the names of the package."""

import numpy as np
import pytest
from support import host

import weft.core as mx
import weft.nn as nn
from weft.utils import tree_flatten


def draw(*shape, seed=0):
    return mx.array(np.random.RandomState(seed).standard_normal(shape).astype(np.float32))


def close(got, expected, bound=1e-5):
    assert tuple(got.shape) == np.shape(expected)
    np.testing.assert_allclose(host(got), expected, rtol=bound, atol=bound)


def test_value_and_grad_of_a_linear_layer():
    m, x = nn.Linear(3, 2), draw(4, 3)
    value, gradient = nn.value_and_grad(m, lambda x: mx.square(m(x)).sum())(x)
    y = host(m(x))
    close(value, (y**2).sum())
    assert set(gradient) == {"weight", "bias"}
    close(gradient["weight"], 2 * y.T @ host(x))
    close(gradient["bias"], 2 * y.sum(0))


def test_value_and_grad_leaves_out_what_is_frozen():
    m, x = nn.Sequential(nn.Linear(3, 2), nn.Tanh(), nn.Linear(2, 1)), draw(4, 3)
    m.layers[0].freeze()
    m.layers[2].freeze(keys="bias")
    _, gradient = nn.value_and_grad(m, lambda x: m(x).sum())(x)
    assert [name for name, _ in tree_flatten(gradient)] == ["layers.2.weight"]
    with pytest.raises(ValueError):
        nn.value_and_grad(m.freeze(), lambda x: m(x).sum())(x)


def test_value_and_grad_passes_arguments_and_other_results():
    m, x = nn.Linear(3, 1), draw(4, 3)

    def loss(x, factor=1):
        y = m(x)
        return factor * y.sum(), y, {"input": x}

    function = nn.value_and_grad(m, loss)
    (value, y, more), gradient = function(x, factor=3)
    close(value, 3 * host(y).sum(), 1e-4)
    close(gradient["bias"], [12])
    assert more["input"].shape == (4, 3) and function.__name__ == "loss"


def test_value_and_grad_keeps_what_the_function_assigns():
    m, x = nn.BatchNorm(2), draw(8, 2)
    nn.value_and_grad(m, lambda x: m(x).sum())(x)
    close(m.running_mean, 0.1 * host(x).mean(0))
    m = nn.Linear(2, 2)

    def loss(x):
        y = m(x).sum()
        m.weight = m.weight * 0
        return y

    nn.value_and_grad(m, loss)(x)
    close(m.weight, np.zeros((2, 2)))


def test_the_model_is_as_before_when_the_function_fails():
    m = nn.Linear(2, 2)
    before = m.weight

    def loss(x):
        raise RuntimeError("no loss")

    with pytest.raises(RuntimeError, match="no loss"):
        nn.value_and_grad(m, loss)(draw(1, 2))
    assert m.weight is before


def test_the_model_is_as_before_behind_a_gradient():
    m = nn.Linear(2, 2)
    before = host(m.weight)
    nn.value_and_grad(m, lambda x: m(x).sum())(draw(1, 2))
    np.testing.assert_array_equal(host(m.weight), before)


@pytest.mark.parametrize("own", [False, True])
def test_checkpoint_has_the_same_value_and_gradient(own):
    m, x = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)), draw(5, 3)
    function = nn.utils.checkpoint(m, (lambda x, factor=1: factor * m(x)) if own else None)
    factor = 2 if own else 1
    close(function(x, factor=2) if own else function(x), factor * host(m(x)))
    value, gradient = nn.value_and_grad(m, lambda x: factor * mx.square(m(x)[0]).sum())(x)

    def loss(x):
        y = m(x) if own else function(x)
        return (function(x, factor=2) * y)[0].sum() if own else mx.square(y[0]).sum()

    again, same = nn.value_and_grad(m, loss)(x)
    close(again, host(value))
    for (_, a), (_, b) in zip(tree_flatten(same), tree_flatten(gradient)):
        close(a, host(b), 1e-4)
    close(
        mx.grad(lambda x: mx.square(nn.utils.checkpoint(m)(x)[0]).sum())(x),
        host(mx.grad(lambda x: mx.square(m(x)[0]).sum())(x)),
    )


def test_a_compiled_step_trains():
    m, x = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1)), draw(32, 2)
    target = mx.sin(x.sum(axis=1, keepdims=True))
    loss_and_gradient = nn.value_and_grad(m, lambda x, target: nn.losses.mse_loss(m(x), target))

    def step(x, target):
        value, gradient = loss_and_gradient(x, target)
        slopes = dict(tree_flatten(gradient))
        m.load_weights([(name, p - 0.1 * slopes[name]) for name, p in tree_flatten(m.parameters())], strict=False)
        return value

    compiled = mx.compile(step, inputs=m.state, outputs=m.state)
    start = [(name, mx.array(host(p))) for name, p in tree_flatten(m.parameters())]
    eager = [step(x, target).item() for _ in range(5)]
    m.load_weights(start)
    assert [compiled(x, target).item() for _ in range(5)] == pytest.approx(eager, rel=1e-4)
    assert eager[-1] < eager[0]


def test_names_of_the_package():
    classes = {name for name in dir(nn) if isinstance(getattr(nn, name), type)}
    assert len(classes) == 72 and classes <= set(nn.__all__)
    for name in nn.__all__:
        assert hasattr(nn, name), name
    for module in (nn.losses, nn.init, nn.utils, nn.layers):
        for name in module.__all__:
            assert getattr(module, name).__doc__, name
    for name in nn.__all__:
        assert getattr(nn, name).__doc__, name
    assert nn.layers.base.Module is nn.Module and nn.layers.distributed.fully_shard is nn.fully_shard


@pytest.mark.parametrize("name", sorted(name for name in nn.__all__ if isinstance(getattr(nn, name), type)))
def test_classes_are_modules(name):
    assert issubclass(getattr(nn, name), nn.Module)
