"""Layers that are divided among processes, in one process and with stand-ins for the others."""

import numpy as np
import pytest
from support import host

import weft.core as mx
import weft.nn as nn
from weft.nn.layers.distributed import shard_inplace, shard_linear, sum_gradients
from weft.utils import tree_flatten

if not hasattr(mx, "distributed"):
    pytest.skip("weft.core is built without distributed", allow_module_level=True)


def draw(*shape, seed=0):
    return mx.array(np.random.RandomState(seed).standard_normal(shape).astype(np.float32))


def close(got, expected, bound=1e-5):
    assert tuple(got.shape) == np.shape(expected)
    np.testing.assert_allclose(host(got.astype(mx.float32)), expected, rtol=bound, atol=bound)


class Group:
    """Says that this process is one of several."""

    def __init__(self, rank, size=2):
        self._rank, self._size = rank, size

    def rank(self):
        return self._rank

    def size(self):
        return self._size


GROUPS = [Group(0), Group(1)]
NAMES = ["AllToShardedLinear", "ShardedToAllLinear", "QuantizedAllToShardedLinear", "QuantizedShardedToAllLinear"]


@pytest.fixture
def recorded(monkeypatch):
    """Sums over processes become the identity, and are recorded."""
    sums = []

    def all_sum(x, group=None, stream=None):
        sums.append(x)
        return x

    monkeypatch.setattr(mx.distributed, "all_sum", all_sum)
    sum_gradients.cache_clear()
    return sums


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("bias", [False, True])
def test_one_process_has_everything(name, bias):
    m = getattr(nn, name)(64, 6, bias)
    quantized = name.startswith("Quantized")
    linear = nn.QuantizedLinear(64, 6, bias) if quantized else nn.Linear(64, 6, bias)
    linear.update(m.parameters())
    x = draw(3, 64)
    close(m(x), host(linear(x)))
    more = ", group_size=64, bits=4, mode=affine" if quantized else ""
    assert repr(m) == f"{name}(input_dims=64, output_dims=6, bias={bias}{more})"
    assert set(m.trainable_parameters()) == (set() if quantized else set(m))


@pytest.mark.parametrize("name", NAMES)
def test_sizes_of_parts(name):
    quantized, rows = name.startswith("Quantized"), "AllToSharded" in name
    for group in GROUPS:
        m = getattr(nn, name)(128, 6, group=group)
        columns = 128 if rows else 64
        assert m.weight.shape == (3 if rows else 6, columns // 8 if quantized else columns)
        assert m.bias.shape == ((3,) if rows else (6,))
        assert "input_dims=128, output_dims=6" in repr(m)
    with pytest.raises(ValueError, match="across 2 devices"):
        getattr(nn, name)(*((64, 7) if rows else (65, 6)), group=GROUPS[0])


@pytest.mark.parametrize("name", NAMES[2:])
def test_quantized_parts_stay_frozen(name):
    m = getattr(nn, name)(64, 6)
    m.unfreeze()
    assert m.trainable_parameters() == {}


@pytest.mark.parametrize("quantized", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_parts_make_the_whole(recorded, quantized, bias):
    linear, x = nn.Linear(128, 6, bias), draw(3, 128)
    linear = linear.to_quantized(group_size=32) if quantized else linear
    y = host(linear(x))
    rows = [shard_linear(linear, "all-to-sharded", group=g) for g in GROUPS]
    assert all(type(m) is (nn.QuantizedAllToShardedLinear if quantized else nn.AllToShardedLinear) for m in rows)
    close(mx.concatenate([m(x) for m in rows], axis=-1), y, 1e-4)
    assert not recorded
    columns = [shard_linear(linear, "sharded-to-all", group=g) for g in GROUPS]
    total = sum((m(part) for m, part in zip(columns, mx.split(x, 2, axis=-1))), start=0)
    close(total - (linear.bias if bias else 0), y, 1e-4)
    assert len(recorded) == 2


def test_gradients_of_inputs_are_summed(recorded):
    m, x = nn.AllToShardedLinear(4, 6, group=GROUPS[0]), draw(3, 4)
    close(mx.grad(lambda x: m(x).sum())(x), np.tile(host(m.weight).sum(0), (3, 1)))
    assert len(recorded) == 1 and recorded[0].shape == (3, 4)
    assert sum_gradients(GROUPS[0]) is sum_gradients(GROUPS[0])
    assert sum_gradients(Group(0, 1))(x) is x


SEGMENTS = [
    (1, [0, 1, 2, 3, 4, 5]),
    (2, [0, 1, 2, 6, 7, 8]),
    (3, [0, 1, 4, 5, 8, 9]),
    ([4], [0, 1, 4, 5, 6, 7]),
    ([2, 6], [0, 2, 3, 6, 7, 8]),
    ([0.5], [0, 1, 2, 6, 7, 8]),
    ([1 / 3], [0, 1, 4, 5, 6, 7]),
]


@pytest.mark.parametrize("segments, expected", SEGMENTS, ids=str)
def test_segments_are_divided_one_by_one(segments, expected):
    linear = nn.Linear(4, 12)
    linear.bias = mx.arange(12).astype(mx.float32)
    m = nn.AllToShardedLinear.from_linear(linear, segments=segments, group=GROUPS[0])
    assert m.bias.tolist() == expected
    close(m.weight, host(linear.weight)[expected])
    linear = nn.Linear(12, 4)
    m = nn.ShardedToAllLinear.from_linear(linear, segments=segments, group=GROUPS[0])
    close(m.weight, host(linear.weight)[:, expected])
    close(m.bias, host(linear.bias))


def test_shard_linear_needs_a_known_name():
    for wrong in ("other", None):
        with pytest.raises(ValueError):
            shard_linear(nn.Linear(4, 4), wrong)
    with pytest.raises(ValueError):
        shard_linear(nn.Linear(4, 4), "all-to-sharded", segments=4, group=GROUPS[0])


def test_shard_inplace():
    m = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm(6))
    assert shard_inplace(m, "all-to-sharded", group=GROUPS[1]) is None
    shapes = {name: p.shape for name, p in tree_flatten(m.parameters())}
    assert shapes["layers.0.weight"] == (3, 4) and shapes["layers.1.running_mean"] == (3,)
    m = nn.Conv2d(4, 6, 3)
    shard_inplace(m, "sharded-to-all", group=GROUPS[0])
    assert m.weight.shape == (6, 3, 3, 2) and m.bias.shape == (6,)
    m = nn.Linear(4, 12)
    weight = host(m.weight)
    shard_inplace(m, lambda name, p: (0, 3) if name == "weight" else None, group=GROUPS[1])
    close(m.weight, weight[[2, 3, 6, 7, 10, 11]])
    assert m.bias.shape == (12,)
    shard_inplace(m, lambda name, p: -1 if name == "weight" else None, group=GROUPS[1])
    assert m.weight.shape == (6, 2)
    for wrong in ("other", lambda name, p: "0", lambda name, p: 1.5):
        with pytest.raises(ValueError):
            shard_inplace(nn.Linear(4, 4), wrong, group=GROUPS[0])


def test_one_process_is_not_divided():
    m = nn.Linear(4, 4)
    assert nn.fully_shard(m) is m
    gradients = {"a": mx.ones((2,))}
    assert nn.average_gradients(gradients) is gradients


def test_fully_shard_refuses_what_cannot_be_divided():
    scalar = nn.Module()
    scalar.a = mx.array(1.0)
    for m in (nn.Linear(4, 5), nn.PReLU(), scalar):
        with pytest.raises(ValueError, match="Cannot shard parameter"):
            nn.fully_shard(m, group=GROUPS[0])
    for m in (nn.ReLU(), nn.fully_shard(nn.Linear(2, 2), group=GROUPS[0])):
        assert nn.fully_shard(m, group=GROUPS[0]) is m


@pytest.fixture
def exchange(monkeypatch):
    """The other process's part of what is gathered is `exchange[0]`; scattered sums are of two equal processes."""
    others, sent = [], []

    def all_gather(x, group=None, stream=None):
        sent.append(x)
        return mx.concatenate([x, others.pop(0) if others else x])

    def sum_scatter(x, group=None, stream=None):
        return 2 * x[group.rank() : group.rank() + 1]

    monkeypatch.setattr(mx.distributed, "all_gather", all_gather)
    monkeypatch.setattr(mx.distributed, "sum_scatter", sum_scatter)
    return others, sent


def test_fully_sharded_module(exchange):
    others, sent = exchange
    m = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2))
    whole = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2))
    whole.update(m.parameters())
    second = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2))
    second.update(m.parameters())
    first = nn.fully_shard(m, group=GROUPS[0])
    second = nn.fully_shard(second, group=GROUPS[1])
    assert repr(first).startswith("FullyShardedModule(num_sharded_params=4\n  (module): Sequential(")
    shapes = {name: p.shape for name, p in tree_flatten(first.parameters())}
    assert shapes["module.layers.0.weight"] == (3, 4) and shapes["module.layers.2.bias"] == (1,)

    x = draw(5, 4)
    second(x)
    other = sent[0]
    others.append(other)
    close(first(x), host(whole(x)))
    assert m.layers[0].weight.shape == (3, 4)  # the parts again

    others += [other]
    value, gradient = nn.value_and_grad(first, lambda x: mx.square(first(x)).sum())(x)
    expected_value, expected = nn.value_and_grad(whole, lambda x: mx.square(whole(x)).sum())(x)
    close(value, host(expected_value), 1e-4)
    for (_, part), (_, all_of_it) in zip(tree_flatten(gradient), tree_flatten(expected)):
        close(part, host(all_of_it)[: part.shape[0]], 1e-4)


def test_fully_sharded_module_converts(exchange):
    _, sent = exchange
    m = nn.fully_shard(nn.PReLU(4), group=GROUPS[0], compute_dtype=mx.bfloat16)
    x = -mx.ones((1, 4), mx.bfloat16)
    assert m(x).dtype == mx.bfloat16 and sent[0].dtype == mx.bfloat16
    _, gradient = nn.value_and_grad(m, lambda x: m(x).sum())(x)
    assert gradient["module"]["weight"].dtype == mx.float32 and gradient["module"]["weight"].tolist() == [-1, -1]


def test_parameters_of_several_dtypes_travel_apart(exchange):
    _, sent = exchange
    m = nn.Sequential(nn.PReLU(2), nn.PReLU(2))
    m.layers[1].set_dtype(mx.float16)
    nn.fully_shard(m, group=GROUPS[0])(mx.ones((1, 2)))
    assert {x.dtype for x in sent} == {mx.float32, mx.float16}


def test_sharded_modules_inside_stay_with_themselves(exchange):
    inner = nn.fully_shard(nn.Linear(4, 4), group=GROUPS[0])
    m = nn.fully_shard(nn.Sequential(nn.PReLU(4), inner), group=GROUPS[0])
    assert "num_sharded_params=1" in repr(m) and inner.module.weight.shape == (2, 4)
    assert m(mx.ones((1, 4))).shape == (1, 4)
    embedding = nn.fully_shard(nn.Embedding(8, 4), group=GROUPS[0])
    assert embedding.as_linear(mx.ones((1, 4))).shape == (1, 8) and embedding(mx.array([1])).shape == (1, 4)
    with pytest.raises(AttributeError):
        embedding.weight


GRADIENTS = {"a": mx.ones((3,)), "b": [mx.ones((2,)), mx.ones((2, 2))]}


@pytest.mark.parametrize("size, sums", [(32 * 1024**2, 1), (16, 2), (20, 2), (21, 1), (1, 3), (0, 3), (-1, 3)])
def test_gradients_are_averaged_together(recorded, size, sums):
    means = nn.average_gradients(GRADIENTS, group=GROUPS[0], all_reduce_size=size)
    assert len(recorded) == sums
    assert [(name, x.shape) for name, x in tree_flatten(means)] == [("a", (3,)), ("b.0", (2,)), ("b.1", (2, 2))]
    assert all((x == 0.5).all().item() for _, x in tree_flatten(means))


def test_gradients_of_several_dtypes_are_averaged_one_by_one(recorded):
    means = nn.average_gradients({**GRADIENTS, "c": mx.ones((2,), mx.float16)}, group=GROUPS[0])
    assert len(recorded) == 4 and means["c"].dtype == mx.float16


def test_clip_grad_norm_sharded():
    gradients = {"a": mx.array([3.0, 4.0]), "b": [mx.array(12.0)]}
    clipped, norm = nn.utils.clip_grad_norm_sharded(gradients, 6.5)
    close(norm, 13)
    close(clipped["a"], [1.5, 2])
    close(clipped["b"][0], 6)
    clipped, _ = nn.utils.clip_grad_norm_sharded(gradients, 20.0)
    close(clipped["a"], [3, 4])
    clipped, norm = nn.utils.clip_grad_norm_sharded({}, 1.0)
    assert clipped == {} and norm.item() == 0


def test_clipping_sums_over_processes(monkeypatch):
    monkeypatch.setattr(mx.distributed, "all_sum", lambda x, group=None, stream=None: 4 * x)
    _, norm = nn.utils.clip_grad_norm_sharded({"a": mx.array([3.0, 4.0])}, 1.0, group=GROUPS[0])
    close(norm, 10)
