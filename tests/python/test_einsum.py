"""einsum: the order of contraction beside mlx's, and axes that are sums of indices against NumPy's loops."""

import json
from pathlib import Path

import numpy as np
import pytest

import weft.core as mx
from support import IS_MLX, assert_close, pair

PATHS = json.loads((Path(__file__).parent / "golden" / "einsum_paths.json").read_text(encoding="utf-8"))
weft_only = pytest.mark.skipif(IS_MLX, reason="MLX has no sums of indices")


@pytest.mark.parametrize("entry", PATHS, ids=[entry["subscripts"] for entry in PATHS])
def test_paths_are_those_of_mlx(entry):
    arrays = [mx.zeros(shape) for shape in entry["shapes"]]
    path, text = mx.einsum_path(entry["subscripts"], *arrays)
    assert [list(step) for step in path] == entry["path"]
    assert text == entry["text"]


@pytest.mark.parametrize("entry", PATHS, ids=[entry["subscripts"] for entry in PATHS])
def test_contractions_in_that_order(entry):
    # A label's length in NumPy is one number: axes of length 1 beside longer ones are MLX's broadcasting.
    mine, theirs = zip(*[pair("float32", tuple(shape), seed=k) for k, shape in enumerate(entry["shapes"])])
    expected = np.einsum(entry["subscripts"], *theirs, optimize=True)
    assert_close(mx.einsum(entry["subscripts"], *mine), expected, 1e3)


def with_ellipsis(seed):
    """Subscripts with "..." at any place, of axes of several lengths that broadcast, and NumPy's arrays."""
    draw = np.random.default_rng(seed)
    lengths, hidden = dict(zip("abcd", draw.integers(1, 4, 4))), draw.integers(1, 4, draw.integers(0, 4))
    texts, arrays = [], []
    for _ in range(draw.integers(1, 4)):
        named = "".join(draw.permutation(list("abcd"))[: draw.integers(0, 4)])
        at, axes = draw.integers(0, len(named) + 1), hidden[draw.integers(0, len(hidden) + 1) :]
        axes = [n if draw.random() < 0.8 else 1 for n in axes]
        some = draw.random() < 0.75
        texts.append(named[:at] + "..." * some + named[at:])
        shape = [lengths[c] for c in named[:at]] + axes * some + [lengths[c] for c in named[at:]]
        arrays.append(draw.standard_normal(shape).astype(np.float32))
    used = sorted({c for text in texts for c in text if c != "."})
    result = "".join(draw.permutation(used)[: draw.integers(0, len(used) + 1)]) if used else ""
    form = draw.integers(0, 3)
    return ",".join(texts) + ("", "->..." + result, "->" + result)[form], arrays


@pytest.mark.parametrize("seed", range(120))
def test_ellipses_are_numpys(seed):
    subscripts, arrays = with_ellipsis(seed)
    try:
        expected = np.einsum(subscripts, *arrays)
    except ValueError:  # NumPy wants the axes of an ellipsis in the result; MLX adds them up
        operands, result = subscripts.split("->")
        expected = np.einsum(f"{operands}->...{result}", *arrays)
        expected = expected.sum(tuple(range(expected.ndim - len(result))))
    assert_close(mx.einsum(subscripts, *[mx.array(a) for a in arrays]), expected, 1e2)


def windows(x, w, stride, dilation):
    """[n, positions, c] and [taps, c] to [n, positions]."""
    count = (x.shape[1] - 1 - (w.shape[0] - 1) * dilation) // stride + 1
    result = np.zeros((x.shape[0], count))
    for o in range(count):
        for k in range(w.shape[0]):
            result[:, o] += x[:, stride * o + dilation * k] @ w[k]
    return result


@weft_only
@pytest.mark.parametrize("stride", [1, 2, 5])
@pytest.mark.parametrize("dilation", [1, 3])
def test_sums_of_indices_against_loops(stride, dilation):
    (x, a), (w, b) = pair("float32", (3, 17, 2)), pair("float32", (4, 2), seed=1)
    for subscripts in ("n({}*o+{}*k)c,kc->no", "batch ({}*place + {}*tap) c, tap c -> batch place"):
        assert_close(mx.einsum(subscripts.format(stride, dilation), x, w), windows(a, b, stride, dilation), 16)


@weft_only
def test_einsum_of_an_image_is_conv2d():
    (x, _), (w, _) = pair("float32", (2, 9, 8, 3)), pair("float32", (3, 2, 3, 5), seed=1)

    def convolve(x, w):
        return mx.einsum("b (2*oh+kh) (2*ow+kw) c, kh kw c o -> b oh ow o", x, w)

    expected = mx.conv2d(x, w.transpose(3, 0, 1, 2), stride=2)
    assert mx.allclose(convolve(x, w), expected, atol=1e-5).item()
    mine = mx.grad(lambda x, w: (convolve(x, w) ** 2).sum(), argnums=(0, 1))(x, w)
    theirs = mx.grad(lambda x, w: (mx.conv2d(x, w.transpose(3, 0, 1, 2), stride=2) ** 2).sum(), argnums=(0, 1))(x, w)
    for got, wanted in zip(mine, theirs):
        assert mx.allclose(got, wanted, rtol=1e-4, atol=1e-3).item()
    batched = mx.vmap(convolve, in_axes=(0, None))(mx.stack([x, 2 * x]), w)
    assert mx.allclose(batched[1], 2 * expected, atol=1e-4).item()


@weft_only
@pytest.mark.parametrize(
    "subscripts, why",
    [
        ("b(o-k),k->bo", "reverse or pad"),
        ("b(o*k),k->bo", "positive integers times index names"),
        ("b(o+k)->bo", "all but one index"),
        ("b(5*o+5*k+1),k->bo", "too short"),
    ],
)
def test_what_is_no_sum_of_indices_is_refused(subscripts, why):
    operands = [mx.ones((2, 9)), mx.ones((3,))][: subscripts.count(",") + 1]
    with pytest.raises(ValueError, match=why):
        mx.einsum(subscripts, *operands)
