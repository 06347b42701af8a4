"""Layers with quantized weights against products with the dequantized weight; golden values are elsewhere."""

import numpy as np
import pytest
from support import host

import weft.core as mx
import weft.nn as nn

MODES = {"affine": (64, 4), "mxfp4": (32, 4), "nvfp4": (16, 4), "mxfp8": (32, 8)}


def draw(*shape, seed=0):
    return mx.array(np.random.RandomState(seed).standard_normal(shape).astype(np.float32))


def options(m):
    return {"group_size": m.group_size, "bits": m.bits, "mode": m.mode}


def dequantized(m):
    return host(mx.dequantize(m.weight, m.scales, m.biases, **options(m)).astype(mx.float32))


def close(got, expected, bound=1e-4):
    assert tuple(got.shape) == np.shape(expected)
    np.testing.assert_allclose(host(got.astype(mx.float32)), expected, rtol=bound, atol=bound)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("bias", [False, True])
def test_quantized_linear(mode, bias):
    linear, x = nn.Linear(64, 6, bias), draw(3, 64)
    m = linear.to_quantized(mode=mode)
    assert (m.group_size, m.bits, m.mode) == (*MODES[mode], mode) and m.weight.dtype == mx.uint32
    assert repr(m) == (
        f"QuantizedLinear(input_dims=64, output_dims=6, bias={bias}, group_size={m.group_size}, bits={m.bits}, "
        f"mode={mode})"
    )
    assert ("biases" in m) == (mode == "affine")
    close(m(x), host(x) @ dequantized(m).T + (host(m.bias) if bias else 0))
    assert abs(dequantized(m) - host(linear.weight)).max() < 0.05


@pytest.mark.parametrize("mode", MODES)
def test_quantized_embedding(mode):
    m, x = nn.Embedding(8, 64).to_quantized(mode=mode), draw(3, 64)
    ids = np.array([[0, 7], [2, 2]])
    close(m(mx.array(ids)), dequantized(m)[ids], 1e-2 if mode != "affine" else 1e-6)
    close(m.as_linear(x), host(x) @ dequantized(m).T)
    assert repr(m) == f"QuantizedEmbedding(8, 64, group_size={m.group_size}, bits={m.bits}, mode={mode})"


def test_quantized_layers_are_frozen():
    m = nn.QuantizedLinear(64, 6)
    assert set(m) == {"weight", "scales", "biases", "bias"} and m.trainable_parameters() == {}
    assert not mx.any(m.bias).item()
    assert list(nn.Linear(64, 6).to_quantized().trainable_parameters()) == ["bias"]
    assert nn.QuantizedEmbedding(8, 64).trainable_parameters() == {}


def test_quantization_takes_sizes():
    m = nn.QuantizedLinear(64, 6, group_size=32, bits=8)
    assert m.weight.shape == (6, 16) and m.scales.shape == (6, 2)
    m = nn.QuantizedLinear.from_linear(nn.Linear(64, 6), 32, 2)
    assert m.weight.shape == (6, 4)
    for wrong in (
        lambda: nn.QuantizedLinear(64, 6, mode="other"),
        lambda: nn.QuantizedLinear(64, 6, mode="mxfp4", bits=8),
        lambda: nn.QuantizedLinear(48, 6),
        lambda: nn.Embedding(8, 64).to_quantized(mode="other"),
    ):
        with pytest.raises(ValueError):
            wrong()


def test_gradients_go_through_quantized_layers():
    m, x = nn.QuantizedLinear(64, 6), draw(3, 64)
    close(mx.grad(lambda x: m(x).sum())(x), np.tile(dequantized(m).sum(0), (3, 1)))


@pytest.mark.parametrize("mode", ["nvfp4", "mxfp8"])
def test_inputs_are_quantized_too(mode):
    linear = nn.Linear(64, 6, bias=False).eval()
    m, x = linear.to_quantized(mode=mode, quantize_input=True), draw(3, 64)
    assert type(m) is nn.QQLinear and not m.training and set(m) == {"weight", "scales"}
    close(m(x), host(x) @ host(linear.weight).T, 0.3)
    m.train()
    assert set(m) == {"weight"} and m.weight.shape == (6, 64) and list(m.trainable_parameters()) == ["weight"]
    assert repr(m) == f"QQLinear(input_dims=64, output_dims=6, group_size={m.group_size}, bits={m.bits}, mode={mode})"
    m.dequantize()
    m.quantize()
    text, weight = repr(m), m.weight
    m.quantize()
    assert m.weight is weight and repr(m) == text and m.weight.dtype == mx.uint32


def test_qq_linear_begins_in_training_and_follows_the_layer():
    m = nn.QQLinear(64, 6)
    assert m.training and m.mode == "nvfp4" and m.weight.shape == (6, 64)
    linear = nn.Linear(64, 6, bias=False)
    assert nn.QQLinear.from_linear(linear).weight is linear.weight
    with pytest.raises(NotImplementedError):
        nn.QQLinear.from_linear(nn.Linear(64, 6))


@pytest.mark.parametrize("mode", ["affine", "mxfp4"])
def test_inputs_need_a_mode(mode):
    with pytest.raises(ValueError):
        nn.Linear(64, 6, bias=False).to_quantized(mode=mode, quantize_input=True)
    with pytest.raises(ValueError):
        nn.Embedding(8, 64).to_quantized(mode="nvfp4", quantize_input=True)


def model():
    return nn.Sequential(nn.Embedding(8, 64), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 5))


def kinds(m):
    return [type(layer).__name__ for layer in m.layers]


def test_quantize_replaces_layers():
    m = model()
    assert nn.quantize(m) is None
    assert kinds(m) == ["QuantizedEmbedding", "QuantizedLinear", "ReLU", "QuantizedLinear"]
    nn.quantize(m, 32, 8)  # nothing is left to do
    assert m.layers[1].bits == 4
    m = model()
    nn.quantize(m, 32, 8, mode="mxfp8")
    assert options(m.layers[1]) == {"group_size": 32, "bits": 8, "mode": "mxfp8"}


def test_quantize_asks_a_predicate():
    m, seen = model(), []

    def predicate(name, layer):
        seen.append((name, type(layer).__name__))
        return {"group_size": 32, "bits": 8} if name == "layers.3" else isinstance(layer, nn.Linear)

    nn.quantize(m, class_predicate=predicate)
    assert kinds(m) == ["Embedding", "QuantizedLinear", "ReLU", "QuantizedLinear"]
    assert (m.layers[1].bits, m.layers[3].bits, m.layers[3].group_size) == (4, 8, 32)
    assert seen == [("layers.0", "Embedding"), ("layers.1", "Linear"), ("layers.2", "ReLU"), ("layers.3", "Linear")]


@pytest.mark.parametrize("answer", [lambda name, layer: True, lambda name, layer: 1 if name == "layers.1" else 0])
def test_quantize_refuses_other_answers(answer):
    m = model()
    with pytest.raises(ValueError):
        nn.quantize(m, class_predicate=answer)
    assert kinds(m) == ["Embedding", "Linear", "ReLU", "Linear"]


def test_quantize_inputs():
    m = nn.Sequential(nn.Linear(64, 32, bias=False))
    nn.quantize(m, mode="nvfp4", quantize_input=True)
    assert kinds(m) == ["QQLinear"]


def test_quantized_weights_go_through_files(tmp_path):
    file = str(tmp_path / "weights.safetensors")
    m, other = model(), model()
    nn.quantize(m)
    nn.quantize(other)
    m.save_weights(file)
    ids = mx.array([1, 2])
    np.testing.assert_array_equal(host(other.load_weights(file)(ids)), host(m(ids)))
