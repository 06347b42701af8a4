"""Recurrent layers, attention, transformers and encodings of positions against NumPy in float64."""

import numpy as np
import pytest
from support import host

import weft.core as mx
import weft.nn as nn


def draw(*shape, seed=0):
    return np.random.RandomState(seed).standard_normal(shape).astype(np.float32)


def close(got, expected, bound=5e-6):
    assert tuple(got.shape) == np.shape(expected)
    np.testing.assert_allclose(host(got), expected, rtol=bound, atol=bound)


def wide(m, name):
    return host(m[name]).astype(np.float64) if name in m else 0.0


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def rnn(m, x, h):
    states = []
    for t in range(x.shape[-2]):
        h = np.tanh(x[..., t, :] @ wide(m, "Wxh").T + h @ wide(m, "Whh").T + wide(m, "bias"))
        states.append(h)
    return np.stack(states, -2)


def gru(m, x, h):
    states = []
    for t in range(x.shape[-2]):
        xr, xz, xn = np.split(x[..., t, :] @ wide(m, "Wx").T + wide(m, "b"), 3, -1)
        hr, hz, hn = np.split(h @ wide(m, "Wh").T, 3, -1)
        r, z = sigmoid(xr + hr), sigmoid(xz + hz)
        n = np.tanh(xn + r * (hn + wide(m, "bhn")))
        h = (1 - z) * n + z * h
        states.append(h)
    return np.stack(states, -2)


def lstm(m, x, h, c):
    states, cells = [], []
    for t in range(x.shape[-2]):
        i, f, g, o = np.split(x[..., t, :] @ wide(m, "Wx").T + h @ wide(m, "Wh").T + wide(m, "bias"), 4, -1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        states.append(h)
        cells.append(c)
    return np.stack(states, -2), np.stack(cells, -2)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("shape", [(2, 5, 4), (5, 4)])
def test_rnn_and_gru(bias, shape):
    x, h = draw(*shape), draw(*shape[:-2], 3, seed=1)
    for m, f in ((nn.RNN(4, 3, bias), rnn), (nn.GRU(4, 3, bias), gru)):
        close(m(mx.array(x)), f(m, x, np.zeros_like(h)))
        close(m(mx.array(x), mx.array(h)), f(m, x, h))


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("shape", [(2, 5, 4), (5, 4)])
def test_lstm(bias, shape):
    m, x = nn.LSTM(4, 3, bias), draw(*shape)
    h, c = draw(*shape[:-2], 3, seed=1), draw(*shape[:-2], 3, seed=2)
    for given in ((), (h,), (h, c)):
        start = [*given, *[np.zeros_like(h)] * (2 - len(given))]
        got, expected = m(mx.array(x), *map(mx.array, given)), lstm(m, x, *start)
        assert isinstance(got, tuple)
        for a, b in zip(got, expected):
            close(a, b)
    close(m(mx.array(x), cell=mx.array(c))[1], lstm(m, x, np.zeros_like(h), c)[1])


def test_recurrent_parameters():
    assert {k: v.shape for k, v in nn.RNN(4, 3).items()} == {"Wxh": (3, 4), "Whh": (3, 3), "bias": (3,)}
    assert {k: v.shape for k, v in nn.GRU(4, 3).items()} == {"Wx": (9, 4), "Wh": (9, 3), "b": (9,), "bhn": (3,)}
    assert {k: v.shape for k, v in nn.LSTM(4, 3).items()} == {"Wx": (12, 4), "Wh": (12, 3), "bias": (12,)}
    assert nn.LSTM(4, 3, False).bias is None and abs(host(nn.GRU(40, 4).Wx)).max() <= 0.5
    assert repr(nn.GRU(4, 3)) == "GRU(input_dims=4, hidden_size=3, bias=True)"
    assert repr(nn.LSTM(4, 3, False)) == "LSTM(input_dims=4, hidden_size=3, bias=False)"


def test_rnn_takes_a_nonlinearity():
    m, x = nn.RNN(4, 3, nonlinearity=nn.relu), mx.array(draw(2, 1, 4))
    close(m(x)[:, 0], np.maximum(host(x)[:, 0] @ wide(m, "Wxh").T + wide(m, "bias"), 0))
    assert "nonlinearity=" in repr(m)
    with pytest.raises(ValueError):
        nn.RNN(4, 3, nonlinearity=3)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def linear(m, x):
    return x @ wide(m, "weight").T + wide(m, "bias")


def attention(m, q, k, v, mask=0.0):
    def heads(x):
        return x.reshape(*x.shape[:2], m.num_heads, -1).transpose(0, 2, 1, 3)

    q, k, v = heads(linear(m.query_proj, q)), heads(linear(m.key_proj, k)), heads(linear(m.value_proj, v))
    y = softmax(q @ k.transpose(0, 1, 3, 2) / np.sqrt(q.shape[-1]) + mask) @ v
    return linear(m.out_proj, y.transpose(0, 2, 1, 3).reshape(*y.transpose(0, 2, 1, 3).shape[:2], -1))


@pytest.mark.parametrize("bias", [False, True])
def test_attention(bias):
    m = nn.MultiHeadAttention(8, 2, 4, 5, 6, 10, 12, bias)
    q, k, v, mask = draw(2, 3, 4), draw(2, 4, 5), draw(2, 4, 6), draw(3, 4)
    expected = attention(m, q, k, v)
    close(m(*map(mx.array, (q, k, v))), expected)
    close(m(*map(mx.array, (q, k, v, mask))), attention(m, q, k, v, mask))
    allowed = np.tril(np.ones((3, 4), bool))
    close(m(*map(mx.array, (q, k, v, allowed))), attention(m, q, k, v, np.where(allowed, 0, -np.inf)))


def test_attention_sizes():
    m = nn.MultiHeadAttention(8, 2, key_input_dims=5)
    shapes = {name: module.weight.shape for name, module in m.children().items()}
    assert shapes == {"query_proj": (8, 8), "key_proj": (8, 5), "value_proj": (8, 5), "out_proj": (8, 8)}
    with pytest.raises(ValueError):
        nn.MultiHeadAttention(8, 3)


def test_causal_mask():
    mask = nn.MultiHeadAttention.create_additive_causal_mask(3)
    low = np.finfo(np.float32).min
    close(mask, [[0, low, low], [0, 0, low], [0, 0, 0]])
    half = nn.MultiHeadAttention.create_additive_causal_mask(2, mx.float16)
    assert half.dtype == mx.float16 and half[0, 1].item() == -65504
    m, x = nn.MultiHeadAttention(8, 2), mx.array(draw(1, 3, 8))
    close(m(x, x, x, "causal"), host(m(x, x, x, mask)))


def layer_norm(x):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


@pytest.mark.parametrize("first", [False, True])
def test_transformer_layers(first):
    before, behind = (layer_norm, lambda x: x) if first else (lambda x: x, layer_norm)
    mask = host(nn.MultiHeadAttention.create_additive_causal_mask(3)).astype(np.float64)

    def mlp(m, x):
        y = before(x)
        return behind(x + linear(m.linear2, np.maximum(linear(m.linear1, y), 0)))

    m, x, memory = nn.TransformerEncoderLayer(8, 2, norm_first=first), draw(2, 3, 8), draw(2, 4, 8, seed=1)
    assert m.linear1.weight.shape == (32, 8)
    y = before(x)
    y = behind(x + attention(m.attention, y, y, y, mask))
    close(m(mx.array(x), mx.array(mask.astype(np.float32))), mlp(m, y), 2e-5)

    m = nn.TransformerDecoderLayer(8, 2, 16, norm_first=first)
    y = before(x)
    y = behind(x + attention(m.self_attention, y, y, y, mask))
    y = behind(y + attention(m.cross_attention, before(y), memory, memory))
    close(m(mx.array(x), mx.array(memory), mx.array(mask.astype(np.float32)), None), mlp(m, y), 2e-5)


def test_encoder_and_decoder_apply_layers_and_a_norm():
    x, memory = mx.array(draw(2, 3, 8)), mx.array(draw(2, 4, 8))
    m = nn.TransformerEncoder(2, 8, 2)
    close(m(x, None), host(m.ln(m.layers[1](m.layers[0](x, None), None))))
    m = nn.TransformerDecoder(1, 8, 2)
    close(m(x, memory, None, None), host(m.ln(m.layers[0](x, memory, None, None))))
    m = nn.Transformer(8, 2, 1, 1)
    close(m(memory, x, None, None, None), host(m.decoder(x, m.encoder(memory, None), None, None)))


def test_transformer_takes_other_parts():
    m = nn.Transformer(8, 2, custom_encoder=nn.Identity(), custom_decoder=lambda *arguments: arguments[1])
    assert type(m.encoder) is nn.Identity and list(m) == ["encoder"]


def test_checkpointed_layers_have_the_same_gradient():
    x = mx.array(draw(1, 3, 8))
    plain, other = nn.TransformerEncoder(2, 8, 2), nn.TransformerEncoder(2, 8, 2, checkpoint=True)
    other.update(plain.parameters())
    value, gradient = nn.value_and_grad(plain, lambda x: mx.square(plain(x, None)[0, 0]).sum())(x)
    again, same = nn.value_and_grad(other, lambda x: mx.square(other(x, None)[0, 0]).sum())(x)
    close(again, host(value))
    close(same["layers"][0]["linear1"]["weight"], host(gradient["layers"][0]["linear1"]["weight"]), 1e-4)


def test_dropout_of_transformers_is_drawn_in_training_alone():
    m, x = nn.TransformerEncoderLayer(8, 2, dropout=0.5), mx.array(draw(1, 3, 8))
    assert not mx.array_equal(m(x, None), m(x, None)).item()
    m.eval()
    assert mx.array_equal(m(x, None), m(x, None)).item()


@pytest.mark.parametrize("traditional", [False, True])
def test_rope_rotates_pairs(traditional):
    m, x = nn.RoPE(4, traditional, base=100.0, scale=0.5), draw(1, 2, 5, 6)
    angles = 0.5 * (np.arange(5) + 3)[:, None] * 100.0 ** (-np.arange(0, 4, 2) / 4)
    y = x.astype(np.float64)
    a, b = (slice(0, 4, 2), slice(1, 4, 2)) if traditional else (slice(0, 2), slice(2, 4))
    y[..., a] = x[..., a] * np.cos(angles) - x[..., b] * np.sin(angles)
    y[..., b] = x[..., a] * np.sin(angles) + x[..., b] * np.cos(angles)
    close(m(mx.array(x), offset=3), y)
    assert repr(m) == f"RoPE(4, traditional={traditional})" and m.parameters() == {}


def test_sinusoidal_encoding():
    x = np.arange(7.0)
    sigmas = np.exp(np.linspace(0, np.log(1e-4), 4))
    angles = x[:, None] * sigmas
    m = nn.SinusoidalPositionalEncoding(8)
    close(m(mx.array(x.astype(np.float32))), np.concatenate([np.sin(angles), np.cos(angles)], -1) * 0.5)
    assert m.parameters() == {}
    m = nn.SinusoidalPositionalEncoding(8, scale=1.0, cos_first=True, full_turns=True)
    turns = angles * 2 * np.pi
    close(m(mx.array(x.astype(np.float32))), np.concatenate([np.cos(turns), np.sin(turns)], -1), 2e-5)
    close(nn.SinusoidalPositionalEncoding(2, max_freq=0.5)(mx.array([1.0])), [[np.sin(0.5), np.cos(0.5)]])
    for dims in (0, 7):
        with pytest.raises(ValueError):
            nn.SinusoidalPositionalEncoding(dims)


def test_alibi():
    slopes = nn.ALiBi.create_alibi_slope(6)
    assert slopes.shape == (6, 1, 1)
    close(slopes.reshape(-1), 2.0 ** np.array([-2, -4, -6, -8, -1, -3]))
    matrix = nn.ALiBi.create_alibi_matrix(5, 7, 6, 2)
    distances = abs((np.arange(3) + 2)[:, None] - np.arange(7))
    close(matrix, -distances * host(slopes)[None])
    assert nn.ALiBi.create_alibi_matrix(2, 2, 2, dtype=mx.float16).dtype == mx.float16
    scores, mask = mx.array(draw(2, 6, 3, 7)), mx.array(draw(3, 7))
    close(nn.ALiBi()(scores, 2, mask), host(scores) + host(matrix) + host(mask))
