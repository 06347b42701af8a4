"""Losses and initializers against NumPy in float64; golden values are elsewhere."""

import math

import numpy as np
import pytest
from support import host

import weft.core as mx
import weft.nn as nn

losses, init = nn.losses, nn.init


def draw(*shape, seed=0):
    return np.random.RandomState(seed).standard_normal(shape).astype(np.float32)


def close(got, expected, bound=5e-6):
    assert tuple(got.shape) == np.shape(expected)
    np.testing.assert_allclose(host(got), expected, rtol=bound, atol=bound)


def log_softmax(x, axis=-1):
    return x - x.max(axis, keepdims=True) - np.log(np.exp(x - x.max(axis, keepdims=True)).sum(axis, keepdims=True))


X, Y, Z = (draw(4, 5, seed=seed).astype(np.float64) for seed in range(3))
P = np.exp(log_softmax(Z))
CLASSES = np.array([1, 0, 4, 2])
D = abs(X - Y)


def distance(a, b, p=2, axis=-1):
    return ((abs(a - b) ** p).sum(axis) + 1e-6) ** (1 / p)


# A loss, its arguments, its options, its value for each element or row, and its default reduction.
LOSSES = [
    ("cross_entropy", (X, CLASSES), {}, -log_softmax(X)[range(4), CLASSES], "none"),
    ("cross_entropy", (X, P), {}, -(P * log_softmax(X)).sum(-1), "none"),
    ("cross_entropy", (X.T, CLASSES), {"axis": 0}, -log_softmax(X)[range(4), CLASSES], "none"),
    (
        "cross_entropy", (X, CLASSES), {"label_smoothing": 0.3},
        -(0.7 * log_softmax(X)[range(4), CLASSES] + 0.3 * log_softmax(X).mean(-1)), "none",
    ),
    ("binary_cross_entropy", (X, P), {}, np.logaddexp(0, X) - X * P, "mean"),
    (
        "binary_cross_entropy", (np.exp(-D), P), {"with_logits": False},
        P * D - (1 - P) * np.log(-np.expm1(-D)), "mean",
    ),
    ("l1_loss", (X, Y), {}, D, "mean"),
    ("mse_loss", (X, Y), {}, D**2, "mean"),
    ("nll_loss", (X, CLASSES), {}, -X[range(4), CLASSES], "none"),
    ("nll_loss", (X.T, CLASSES), {"axis": 0}, -X[range(4), CLASSES], "none"),
    ("gaussian_nll_loss", (X, Y, P), {}, (np.log(P) + D**2 / P) / 2, "mean"),
    (
        "gaussian_nll_loss", (X, Y, P), {"full": True, "eps": 0.2},
        (np.log(np.maximum(P, 0.2)) + D**2 / np.maximum(P, 0.2) + math.log(2 * math.pi)) / 2, "mean",
    ),
    ("kl_div_loss", (X, Y), {}, (np.exp(Y) * (Y - X)).sum(-1), "none"),
    ("kl_div_loss", (X, Y), {"axis": 0}, (np.exp(Y) * (Y - X)).sum(0), "none"),
    ("smooth_l1_loss", (X, Y), {"beta": 0.7}, np.where(D < 0.7, D**2 / 1.4, D - 0.35), "mean"),
    ("triplet_loss", (X, Y, Z), {}, np.maximum(distance(X, Y) - distance(X, Z) + 1, 0), "none"),
    (
        "triplet_loss", (X, Y, Z), {"p": 3, "axis": 0, "margin": 0.2},
        np.maximum(distance(X, Y, 3, 0) - distance(X, Z, 3, 0) + 0.2, 0), "none",
    ),
    ("hinge_loss", (X, np.sign(Y)), {}, np.maximum(1 - X * np.sign(Y), 0), "none"),
    ("huber_loss", (X, Y), {"delta": 0.8}, np.where(D <= 0.8, D**2 / 2, 0.8 * (D - 0.4)), "none"),
    ("log_cosh_loss", (X, Y), {}, np.log(np.cosh(X - Y)), "none"),
    (
        "cosine_similarity_loss", (X, Y), {},
        (X * Y).sum(1) / (np.linalg.norm(X, axis=1) * np.linalg.norm(Y, axis=1)), "none",
    ),
    (
        "margin_ranking_loss", (X, Y, np.sign(Z)), {"margin": 0.3},
        np.maximum(-np.sign(Z) * (X - Y) + 0.3, 0), "none",
    ),
]  # fmt: skip


def arrays(values):
    return [mx.array(v if v.dtype == int else v.astype(np.float32)) for v in values]


@pytest.mark.parametrize("name, arguments, options, expected, default", LOSSES, ids=[f"{v[0]}{v[2]}" for v in LOSSES])
def test_loss(name, arguments, options, expected, default):
    f, given = getattr(losses, name), arrays(arguments)
    values = {"none": expected, "mean": expected.mean(), "sum": expected.sum()}
    for reduction, value in values.items():
        close(f(*given, reduction=reduction, **options), value, 2e-5)
    close(f(*given, **options), values[default], 2e-5)
    with pytest.raises(ValueError, match="reduction"):
        f(*given, reduction="other", **options)


def test_weights_multiply_losses():
    w = np.array([1.0, 0.5, 2.0, 0.0])
    x, classes, weights = arrays((X, CLASSES, w))
    expected = -log_softmax(X)[range(4), CLASSES] * w
    close(losses.cross_entropy(x, classes, weights), expected)
    close(losses.cross_entropy(x, classes, weights, reduction="mean"), expected.mean())
    x, p, weights = arrays((X, P, D))
    close(losses.binary_cross_entropy(x, p, weights), ((np.logaddexp(0, X) - X * P) * D).mean())


def test_losses_of_certain_probabilities_are_finite():
    p, t = mx.array([0.0, 1.0]), mx.array([1.0, 0.0])
    assert losses.binary_cross_entropy(p, t, with_logits=False).item() == 100
    assert np.isfinite(losses.cross_entropy(mx.array([[1e4, -1e4]]), mx.array([1])).item())


WRONG = [
    ("cross_entropy", ((4, 5), (3, 5)), {}),
    ("cross_entropy", ((4, 5), (3,)), {}),
    ("cross_entropy", ((4, 5), (4,), (4, 5)), {}),
    ("cross_entropy", ((4, 5), (4,)), {"label_smoothing": 1.0}),
    ("cross_entropy", ((4, 5), (4,)), {"label_smoothing": -0.1}),
    ("binary_cross_entropy", ((4, 5), (3, 5)), {}),
    ("binary_cross_entropy", ((4, 5), (4, 5), (4,)), {}),
    ("l1_loss", ((4, 5), (1, 5)), {}),
    ("mse_loss", ((4, 5), (1, 5)), {}),
    ("smooth_l1_loss", ((4, 5), (1, 5)), {}),
    ("nll_loss", ((4, 5), (3,)), {}),
    ("gaussian_nll_loss", ((4, 5), (1, 5), (4, 5)), {}),
    ("gaussian_nll_loss", ((4, 5), (4, 5), (4, 1)), {}),
    ("margin_ranking_loss", ((4, 5), (4, 5), (1, 5)), {}),
    ("hinge_loss", ((4, 5), (3, 5)), {}),
    ("huber_loss", ((4, 5), (3, 5)), {}),
    ("log_cosh_loss", ((4, 5), (3, 5)), {}),
    ("kl_div_loss", ((4, 5), (3, 5)), {}),
    ("triplet_loss", ((4, 5), (3, 5), (4, 5)), {}),
    ("cosine_similarity_loss", ((4, 5), (3, 5)), {}),
]


@pytest.mark.parametrize("name, shapes, options", WRONG, ids=str)
def test_losses_refuse_other_shapes(name, shapes, options):
    integers = name in ("cross_entropy", "nll_loss")
    given = [mx.zeros(s, mx.int32 if integers and k == 1 and len(s) == 1 else mx.float32) for k, s in enumerate(shapes)]
    with pytest.raises(ValueError):
        getattr(losses, name)(*given, **options)


def test_losses_keep_half_dtypes():
    x = mx.ones((4, 5), mx.float16)
    assert losses.mse_loss(x, x).dtype == mx.float16
    assert losses.cross_entropy(x, mx.array([0, 1, 2, 3])).dtype == mx.float16


FANS = {(6, 8): (8, 6), (6, 3, 2, 4): (24, 36)}  # inputs and outputs of an element


@pytest.mark.parametrize("shape", FANS)
@pytest.mark.parametrize("gain", [1.0, 2.0])
def test_scales_of_initializers(shape, gain):
    inputs, outputs = FANS[shape]
    a = mx.zeros((shape[0] * 50, *shape[1:]))  # more samples: the fans of outputs grow with them
    outputs *= 50
    both = math.sqrt(2 / (inputs + outputs))
    scales = [
        (init.glorot_normal()(a, gain), both),
        (init.glorot_uniform()(a, gain=gain), both),
        (init.he_normal()(a, "fan_in", gain), 1 / math.sqrt(inputs)),
        (init.he_uniform()(a, mode="fan_out", gain=gain), 1 / math.sqrt(outputs)),
    ]
    for values, scale in scales:
        values = host(values)
        assert values.shape == tuple(a.shape) and abs(values.mean()) < 0.1 * gain * scale
        assert abs(values.std() / (gain * scale) - 1) < 0.05
    for values, scale in (scales[1], scales[3]):
        assert abs(host(values)).max() <= gain * scale * math.sqrt(3) * (1 + 1e-6)


def test_simple_initializers():
    a = mx.zeros((100, 100), mx.int32)
    close(init.constant(0.5)(a), np.full((100, 100), 0.5))
    values = host(init.normal(1.0, 2.0)(a))
    assert abs(values.mean() - 1) < 0.1 and abs(values.std() - 2) < 0.1
    values = host(init.uniform(-1.0, 2.0)(a))
    assert values.min() >= -1 and values.max() < 2 and abs(values.mean() - 0.5) < 0.05
    close(init.identity()(mx.zeros((3, 3))), np.eye(3))


def test_sparse():
    values = host(init.sparse(0.3, 5.0, 0.1)(mx.zeros((20, 8))))
    assert ((values == 0).sum(1) == 3).all() and abs(values[values != 0].mean() - 5) < 0.1
    assert len({tuple(np.flatnonzero(row == 0)) for row in values}) > 3
    assert not host(init.sparse(1.5)(mx.zeros((2, 3)))).any()


@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 3)])
def test_orthogonal(shape):
    q = host(init.orthogonal(2.0)(mx.zeros(shape))) / 2
    product = q @ q.T if shape[0] <= shape[1] else q.T @ q
    np.testing.assert_allclose(product, np.eye(min(shape)), atol=1e-5)


SIMPLE = ["normal", "uniform", "identity", "glorot_normal", "glorot_uniform", "he_normal", "he_uniform", "orthogonal"]


@pytest.mark.parametrize("name", SIMPLE)
def test_initializers_have_a_dtype(name):
    assert getattr(init, name)()(mx.zeros((4, 4), mx.float16)).dtype == mx.float32
    assert getattr(init, name)(dtype=mx.float16)(mx.zeros((4, 4))).dtype == mx.float16
    assert init.sparse(0.5, dtype=mx.float16)(mx.zeros((4, 4))).dtype == mx.float16
    assert init.constant(1, mx.int32)(mx.zeros((4, 4))).dtype == mx.int32


def test_initializers_refuse_other_shapes():
    for name in ("identity", "glorot_normal", "glorot_uniform", "he_normal", "he_uniform", "orthogonal"):
        with pytest.raises(ValueError):
            getattr(init, name)()(mx.zeros((3,)))
    for wrong in (
        lambda: init.identity()(mx.zeros((2, 3))),
        lambda: init.sparse(0.5)(mx.zeros((2, 2, 2))),
        lambda: init.orthogonal()(mx.zeros((2, 2, 2))),
        lambda: init.he_normal()(mx.zeros((2, 2)), "other"),
    ):
        with pytest.raises(ValueError):
            wrong()
