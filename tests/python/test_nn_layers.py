"""Activations, linear layers, embeddings, dropout and norms against NumPy in float64; golden values are elsewhere."""

import math

import numpy as np
import pytest
from support import host

import weft.core as mx
import weft.nn as nn


def draw(*shape, seed=0):
    return np.random.RandomState(seed).standard_normal(shape).astype(np.float32)


def close(got, expected, bound=2e-6):
    assert got.dtype == mx.float32 and tuple(got.shape) == np.shape(expected)
    np.testing.assert_allclose(host(got), expected, rtol=bound, atol=bound)


erf = np.vectorize(math.erf)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softplus(x):
    return np.logaddexp(x, 0)


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def elu(x, alpha=1.0):
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


ACTIVATIONS = {
    "celu": lambda x: np.maximum(x, 0) + np.expm1(np.minimum(x, 0)),
    "elu": elu,
    "gelu": lambda x: x * (1 + erf(x / np.sqrt(2))) / 2,
    "gelu_approx": lambda x: x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    "gelu_fast_approx": lambda x: x * sigmoid(1.702 * x),
    "hard_shrink": lambda x: np.where(abs(x) > 0.5, x, 0),
    "hard_tanh": lambda x: np.clip(x, -1, 1),
    "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x),
    "log_sigmoid": lambda x: -softplus(-x),
    "log_softmax": lambda x: np.log(softmax(x)),
    "mish": lambda x: x * np.tanh(softplus(x)),
    "relu": lambda x: np.maximum(x, 0),
    "relu2": lambda x: np.maximum(x, 0) ** 2,
    "relu6": lambda x: np.clip(x, 0, 6),
    "selu": lambda x: 1.0507 * elu(x, 1.67326),
    "sigmoid": sigmoid,
    "silu": lambda x: x * sigmoid(x),
    "softmax": softmax,
    "softmin": lambda x: softmax(-x),
    "softplus": softplus,
    "softshrink": lambda x: np.where(abs(x) > 0.5, x - 0.5 * np.sign(x), 0),
    "softsign": lambda x: x / (1 + abs(x)),
    "tanh": np.tanh,
}
MODULES = {
    "celu": "CELU", "elu": "ELU", "gelu": "GELU", "hard_shrink": "HardShrink", "hard_tanh": "HardTanh",
    "hardswish": "Hardswish", "leaky_relu": "LeakyReLU", "log_sigmoid": "LogSigmoid", "log_softmax": "LogSoftmax",
    "mish": "Mish", "relu": "ReLU", "relu2": "ReLU2", "relu6": "ReLU6", "selu": "SELU", "sigmoid": "Sigmoid",
    "silu": "SiLU", "softmax": "Softmax", "softmin": "Softmin", "softplus": "Softplus", "softshrink": "Softshrink",
    "softsign": "Softsign", "tanh": "Tanh",
}  # fmt: skip


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation(name):
    x = 4 * draw(3, 17)
    close(getattr(nn, name)(mx.array(x)), ACTIVATIONS[name](x.astype(np.float64)))


@pytest.mark.parametrize("name", MODULES)
def test_activation_module(name):
    m, x = getattr(nn, MODULES[name])(), mx.array(draw(3, 5))
    assert repr(m) == f"{MODULES[name]}()" and m.parameters() == {}
    np.testing.assert_array_equal(host(m(x)), host(getattr(nn, name)(x)))


def test_activations_with_arguments():
    x = mx.array([-2.0, -0.3, 0.0, 0.3, 2.0])
    close(nn.ELU(2.0)(x), elu(host(x).astype(np.float64), 2.0))
    close(nn.LeakyReLU(0.5)(x), [-1, -0.15, 0, 0.3, 2])
    close(nn.CELU(0.5)(x), nn.celu(x, 0.5).tolist())
    close(nn.HardShrink(0.1)(x), [-2, -0.3, 0, 0.3, 2])
    close(nn.Softshrink(0.1)(x), [-1.9, -0.2, 0, 0.2, 1.9])
    close(nn.hard_tanh(x, -0.1, 0.2), [-0.1, -0.1, 0, 0.2, 0.2])
    close(nn.softmax(x[None], axis=0), np.ones((1, 5)))


def test_step_is_an_integer():
    x = mx.array([-1.0, 0.0, 0.5, 1.0])
    assert nn.step(x).dtype == mx.int32 and nn.step(x).tolist() == [0, 1, 1, 1]
    assert nn.Step(0.5)(x).tolist() == [0, 0, 1, 1]


def test_gelu_module_chooses_an_approximation():
    x = mx.array(draw(9))
    for approx, f in (("none", nn.gelu), ("precise", nn.gelu_approx), ("tanh", nn.gelu_approx),
                      ("fast", nn.gelu_fast_approx)):  # fmt: skip
        np.testing.assert_array_equal(host(nn.GELU(approx)(x)), host(f(x)))
    with pytest.raises(ValueError):
        nn.GELU("other")


def test_glu_halves_an_axis():
    x = draw(4, 6)
    a, b = x[:, :3].astype(np.float64), x[:, 3:].astype(np.float64)
    close(nn.GLU()(mx.array(x)), a * sigmoid(b))
    close(nn.glu(mx.array(x), axis=0), x[:2] * sigmoid(x[2:].astype(np.float64)))
    with pytest.raises(ValueError):
        nn.glu(mx.zeros((3,)))


def test_prelu_has_a_weight():
    m = nn.PReLU(3, 0.1)
    assert m.weight.tolist() == pytest.approx([0.1] * 3)
    close(m(mx.array([[-1.0, 2.0, -3.0]])), [[-0.1, 2, -0.3]])


@pytest.mark.parametrize("name", ["relu", "gelu", "silu", "softplus", "softmax", "tanh"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_activations_keep_half_dtypes(name, dtype):
    assert getattr(nn, name)(mx.ones((4,), getattr(mx, dtype))).dtype == getattr(mx, dtype)


def test_derivatives_stay_finite_where_functions_saturate():
    x = mx.array([-100.0, 100.0])
    for name in ("sigmoid", "softplus", "log_sigmoid", "gelu", "silu", "mish", "tanh"):
        assert np.isfinite(host(mx.grad(lambda x, f=getattr(nn, name): f(x).sum())(x))).all(), name


def test_linear():
    m, x = nn.Linear(4, 3), draw(2, 5, 4)
    w, b = host(m.weight).astype(np.float64), host(m.bias)
    assert w.shape == (3, 4) and abs(w).max() <= 0.5 and abs(b).max() <= 0.5
    close(m(mx.array(x)), x @ w.T + b)
    close(m(mx.array(x[0, 0])), x[0, 0] @ w.T + b)
    plain = nn.Linear(4, 3, bias=False)
    assert list(plain) == ["weight"] and repr(plain) == "Linear(input_dims=4, output_dims=3, bias=False)"
    close(plain(mx.array(x)), x @ host(plain.weight).astype(np.float64).T)
    with pytest.raises(ValueError):
        m(mx.zeros((2, 5)))


def test_bilinear():
    m, x1, x2 = nn.Bilinear(4, 3, 2), draw(2, 5, 4), draw(2, 5, 3, seed=1)
    w = host(m.weight).astype(np.float64)
    assert w.shape == (2, 3, 4) and repr(m) == "Bilinear(input1_dims=4, input2_dims=3, output_dims=2, bias=True)"
    close(m(mx.array(x1), mx.array(x2)), np.einsum("nlj,oji,nli->nlo", x2, w, x1) + host(m.bias))


def test_identity_takes_any_arguments():
    x = mx.ones((2,))
    assert nn.Identity(3, name="x")(x) is x


def test_embedding():
    m = nn.Embedding(6, 4)
    w = host(m.weight)
    assert repr(m) == "Embedding(6, 4)" and w.shape == (6, 4)
    close(m(mx.array([[0, 5], [2, 2]])), w[[[0, 5], [2, 2]]])
    close(m.as_linear(mx.array(draw(2, 4))), draw(2, 4) @ w.T.astype(np.float64))
    assert abs(host(nn.Embedding(1000, 16).weight).std() - 0.25) < 0.01


def test_sequential_calls_modules_and_functions():
    m = nn.Sequential(nn.Linear(4, 3), mx.exp)
    x = mx.array(draw(2, 4))
    np.testing.assert_array_equal(host(m(x)), host(mx.exp(m.layers[0](x))))
    assert list(m.parameters()) == ["layers"] and nn.Sequential()(x) is x


@pytest.mark.parametrize("p", [-0.1, 1.0, 2.0])
@pytest.mark.parametrize("name", ["Dropout", "Dropout2d", "Dropout3d"])
def test_dropout_needs_a_probability(name, p):
    with pytest.raises(ValueError):
        getattr(nn, name)(p)


def test_dropout():
    m, x = nn.Dropout(0.25), mx.ones((100, 100))
    y = host(m(x))
    np.testing.assert_allclose(np.unique(y), [0, 1 / 0.75], rtol=1e-6)
    assert abs(y.mean() - 1) < 0.03
    assert m.eval()(x) is x and nn.Dropout(0)(x) is x and repr(m) == "Dropout(p=0.25)"
    assert nn.Dropout(0.5)(mx.ones((3,), mx.float16)).dtype == mx.float16


@pytest.mark.parametrize("name, space", [("Dropout2d", 2), ("Dropout3d", 3)])
def test_dropout_of_channels(name, space):
    m = getattr(nn, name)(0.5)
    for shape in ([50] + [3] * space + [40], [3] * space + [40]):
        y = host(m(mx.ones(shape)))
        axes = tuple(range(len(shape) - 1 - space, len(shape) - 1))
        assert (y.min(axis=axes) == y.max(axis=axes)).all() and set(np.unique(y)) == {0, 2}
    for wrong in (space, space + 3):
        with pytest.raises(ValueError):
            m.eval()(mx.ones([2] * wrong))


def normalized(x, axes, eps=1e-5):
    x = x.astype(np.float64)
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


def with_parameters(m):
    """Give a norm a weight and a bias that are not ones and zeros."""
    for name in ("weight", "bias"):
        if name in m:
            m[name] = mx.array(draw(*m[name].shape, seed=5))
    weight = host(m.weight).astype(np.float64) if "weight" in m else 1
    return m, weight, host(m.bias) if "bias" in m else 0


@pytest.mark.parametrize("options", [{}, {"affine": False}, {"bias": False}, {"eps": 0.1}])
def test_layer_norm(options):
    m, w, b = with_parameters(nn.LayerNorm(6, **options))
    x = 3 * draw(2, 5, 6) + 1
    close(m(mx.array(x)), normalized(x, -1, options.get("eps", 1e-5)) * w + b, 1e-5)
    assert repr(m) == f"LayerNorm(6, eps={options.get('eps', 1e-05)}, affine={options.get('affine', True)})"


def test_rms_norm():
    m, w, _ = with_parameters(nn.RMSNorm(6))
    x = draw(2, 5, 6).astype(np.float64)
    close(m(mx.array(x.astype(np.float32))), x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * w)
    assert repr(m) == "RMSNorm(6, eps=1e-05)"


@pytest.mark.parametrize("affine", [False, True])
def test_instance_norm(affine):
    m, w, b = with_parameters(nn.InstanceNorm(4, affine=affine))
    for x in (draw(2, 5, 4), draw(2, 3, 5, 4)):
        close(m(mx.array(x)), normalized(x, tuple(range(1, x.ndim - 1))) * w + b, 1e-5)
    with pytest.raises(ValueError):
        m(mx.zeros((2, 4)))


@pytest.mark.parametrize("neighbours", [False, True])
def test_group_norm(neighbours):
    m, w, b = with_parameters(nn.GroupNorm(2, 6, pytorch_compatible=neighbours))
    x = draw(2, 3, 5, 6)
    if neighbours:
        y = normalized(x.reshape(2, 15, 2, 3), (1, 3)).reshape(x.shape)
    else:
        y = normalized(x.reshape(2, 15, 3, 2), (1, 2)).reshape(x.shape)
    close(m(mx.array(x)), y * w + b, 1e-5)
    assert repr(m) == f"GroupNorm(2, 6, eps=1e-05, affine=True, pytorch_compatible={neighbours})"
    sizes = ((4, 6), (0, 6), (-1, 6), (4, 0))
    for wrong in (*[lambda s=s: nn.GroupNorm(*s) for s in sizes], lambda: m(mx.zeros((6,)))):
        with pytest.raises(ValueError):
            wrong()


@pytest.mark.parametrize("affine", [False, True])
def test_batch_norm(affine):
    m, w, b = with_parameters(nn.BatchNorm(4, momentum=0.2, affine=affine))
    mean, var = np.zeros(4), np.ones(4)
    for seed, shape in enumerate([(3, 4), (2, 5, 4), (2, 3, 5, 4)]):
        x = 2 * draw(*shape, seed=seed) + 1
        axes = tuple(range(x.ndim - 1))
        close(m(mx.array(x)), normalized(x, axes) * w + b, 1e-5)
        mean = 0.8 * mean + 0.2 * x.mean(axes)
        var = 0.8 * var + 0.2 * x.var(axes, ddof=1)
    close(m.running_mean, mean)
    close(m.running_var, var, 1e-5)
    x = draw(5, 4)
    close(m.eval()(mx.array(x)), (x - mean) / np.sqrt(var + 1e-5) * w + b, 1e-5)
    for wrong in ((4,), (1, 1, 1, 1, 4)):
        with pytest.raises(ValueError):
            m(mx.zeros(wrong))


def test_batch_norm_without_running_statistics():
    m, x = nn.BatchNorm(4, track_running_stats=False).eval(), draw(6, 4)
    close(m(mx.array(x)), normalized(x, 0), 1e-5)
    assert set(m) == {"weight", "bias"}


def test_running_statistics_stay_frozen():
    m = nn.BatchNorm(4)
    assert set(m.parameters()) == {"weight", "bias", "running_mean", "running_var"}
    assert set(m.trainable_parameters()) == {"weight", "bias"}
    m.freeze()
    m.unfreeze()
    assert set(m.trainable_parameters()) == {"weight", "bias"}
    m.unfreeze(keys="running_mean")
    assert set(m.trainable_parameters()) == {"weight", "bias"}


@pytest.mark.parametrize("make", [nn.LayerNorm, nn.RMSNorm, nn.BatchNorm, lambda n: nn.InstanceNorm(n, affine=True)])
def test_norms_promote_half_inputs_by_their_weight(make):
    assert make(4)(mx.ones((2, 3, 4), mx.float16)).dtype == mx.float32


@pytest.mark.parametrize(
    "make", [nn.LayerNorm, nn.RMSNorm, nn.BatchNorm, nn.InstanceNorm, lambda n, eps: nn.GroupNorm(2, n, eps)]
)
def test_norms_need_a_positive_eps(make):
    for eps in (0.0, -1e-30):
        with pytest.raises(ValueError, match="must be positive"):
            make(4, eps=eps)
    assert make(4, eps=1e-30).eps == 1e-30


def test_batch_norm_trains_on_more_than_one_value_for_each_channel():
    m = nn.BatchNorm(3)
    for shape in ((1, 3), (1, 1, 3)):
        with pytest.raises(ValueError):
            m(mx.ones(shape))
    assert m(mx.ones((1, 2, 3))).shape == (1, 2, 3)
    assert m.eval()(mx.ones((1, 3))).shape == (1, 3)
