"""Random numbers: bits that are fixed by a key, distributions, state, mistakes."""

import numpy as np
import pytest
from support import INTEGERS, assert_close, assert_equal, host

import weft.core as mx

KEY = 7


def key():
    return mx.random.key(KEY)


# Values of MLX 0.32.4 for key(7): those of integers are exact.
EXACT = [
    (lambda: key(), [0, 7], "uint32"),
    (lambda: mx.random.key(2**40), [256, 0], "uint32"),
    (lambda: mx.random.split(key()), [[966301609, 989289821], [1948237315, 1058547403]], "uint32"),
    (
        lambda: mx.random.split(key(), num=3),
        [[276534068, 861967409], [1905761346, 1641862660], [2900896126, 1402713516]],
        "uint32",
    ),
    (lambda: mx.random.randint(0, 10, (5,), key=key()), [0, 2, 6, 3, 6], "int32"),
    (lambda: mx.random.randint(0, 10, shape=(5,), dtype=mx.uint8, key=key()), [0, 2, 6, 3, 6], "uint8"),
    (lambda: mx.random.randint(0, 2, (5,), mx.bool_, key()), [False, False, True, False, True], "bool_"),
    (lambda: mx.random.bernoulli(0.3, (6,), key()), [True, True, False, False, False, False], "bool_"),
    (lambda: mx.random.categorical(mx.zeros((2, 5)), key=key()), [0, 4], "uint32"),
    (lambda: mx.random.categorical(mx.zeros((2, 5)), num_samples=3, key=key()), [[4, 2, 2], [1, 4, 3]], "uint32"),
    (
        lambda: mx.random.categorical(mx.zeros((2, 5)), shape=(4, 2), key=key()),
        [[1, 0], [2, 4], [1, 1], [1, 0]],
        "uint32",
    ),
    (lambda: mx.random.permutation(6, key=key()), [0, 1, 5, 3, 2, 4], "uint32"),
    (
        lambda: mx.random.permutation(mx.arange(12).reshape(3, 4), axis=1, key=key()),
        [[0, 1, 3, 2], [4, 5, 7, 6], [8, 9, 11, 10]],
        "int32",
    ),
]


@pytest.mark.parametrize("number", range(len(EXACT)))
def test_integers_of_a_key(number):
    make, expected, dtype = EXACT[number]
    assert_equal(make(), expected, dtype)


CLOSE = [
    (lambda: mx.random.uniform(shape=(3,), key=key()), [0.224985, 0.42616, 0.453609]),
    (lambda: mx.random.uniform(-1, 1, (3,), mx.float16, key()), [-0.549805, -0.147461, -0.0927734]),
    (lambda: mx.random.uniform(mx.array([0.0, 10.0]), mx.array([1.0, 20.0]), (2,), key=key()), [0.0454126, 19.4581]),
    (lambda: mx.random.normal((3,), key=key()), [-0.755466, -0.186158, -0.116547]),
    (lambda: mx.random.normal(shape=(3,), loc=2, scale=mx.array(3.0), key=key()), [-0.266399, 1.44153, 1.65036]),
    (lambda: mx.random.normal((2,), mx.complex64, key=key()), [-0.534195 - 0.521659j, -0.0824114 - 0.484838j]),
    (lambda: mx.random.truncated_normal(-1.0, 1.0, (4,), key=key()), [-0.489483, -0.479184, -0.0794695, -0.448455]),
    (lambda: mx.random.gumbel((3,), key=key()), [-0.399932, 0.159067, 0.235066]),
    (lambda: mx.random.laplace((3,), loc=1.0, scale=2.0, key=key()), [2.59715, 1.31958, 1.19474]),
]


@pytest.mark.parametrize("number", range(len(CLOSE)))
def test_floats_of_a_key(number):
    make, expected = CLOSE[number]
    assert_close(make(), expected, tolerance=2e-4)


def test_the_state():
    mx.random.seed(3)
    a, b = mx.random.normal((4,)), mx.random.normal((4,))
    mx.random.seed(3)
    assert_equal(mx.random.normal((4,)), np.array(a))
    assert_equal(mx.random.normal((4,)), np.array(b))
    assert not mx.array_equal(a, b).item()
    keyed = mx.random.normal((4,), key=key())
    assert_equal(mx.random.normal((4,), key=key()), np.array(keyed))


def test_the_state_is_a_sequence_of_one_key():
    mx.random.seed(3)
    assert len(mx.random.state) == 1 and mx.random.state[0].tolist() == [0, 3]
    mx.random.uniform()
    (now,) = mx.random.state
    assert now.dtype == mx.uint32 and now.tolist() != [0, 3]
    mx.eval(mx.random.state)


N = 20000
# Draws, with their mean and standard deviation.
DISTRIBUTIONS = {
    "uniform": (lambda d: mx.random.uniform(shape=(N,), dtype=d), 0.5, 12**-0.5),
    "uniform of ends": (lambda d: mx.random.uniform(-1, 3, (N,), d), 1, 4 * 12**-0.5),
    "normal": (lambda d: mx.random.normal((N,), d), 0, 1),
    "normal moved": (lambda d: mx.random.normal((N,), d, loc=2, scale=0.5), 2, 0.5),
    "truncated": (lambda d: mx.random.truncated_normal(-1, 1, (N,), d), 0, 0.53956),
    "gumbel": (lambda d: mx.random.gumbel((N,), d), 0.57722, np.pi / 6**0.5),
    "laplace": (lambda d: mx.random.laplace((N,), d, loc=1, scale=2), 1, 8**0.5),
}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])  # MLX draws no float64
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_moments(name, dtype):
    make, mean, deviation = DISTRIBUTIONS[name]
    x = make(getattr(mx, dtype))
    assert x.dtype == getattr(mx, dtype) and x.shape == (N,)
    values = host(x).astype(np.float64)
    assert values.mean() == pytest.approx(mean, abs=5 * deviation / N**0.5 + 4e-3)
    assert values.std() == pytest.approx(deviation, rel=0.06)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_uniform_stays_below_its_end(dtype):
    x = mx.random.uniform(shape=(100_000,), dtype=getattr(mx, dtype))
    assert x.min().item() >= 0 and x.max().item() < 1


@pytest.mark.parametrize("dtype", INTEGERS)
def test_randint(dtype):
    x = mx.random.randint(3, 9, (N,), getattr(mx, dtype))
    values, counts = np.unique(np.array(x), return_counts=True)
    assert values.tolist() == [3, 4, 5, 6, 7, 8] and (abs(counts / N - 1 / 6) < 0.02).all()


def test_randint_of_arrays():
    x = np.array(mx.random.randint(mx.array([0, 100]), mx.array([5, 110]), (1000, 2)))
    assert (x.min(0) == [0, 100]).all() and (x.max(0) == [4, 109]).all()


def test_bernoulli():
    p = np.array([0.0, 0.25, 1.0])
    x = np.array(mx.random.bernoulli(mx.array(p), (N, 3)))
    assert abs(x.mean(0) - p).max() < 0.02 and mx.random.bernoulli().shape == ()
    assert mx.random.bernoulli(mx.array(p)).shape == (3,)


def test_categorical():
    p = np.array([0.1, 0.6, 0.3])
    logits = mx.log(mx.array(p))
    for draws in (
        mx.random.categorical(logits, num_samples=N),
        mx.random.categorical(logits, shape=(N,)),
        mx.random.categorical(mx.broadcast_to(logits, (N, 3))),
        mx.random.categorical(mx.broadcast_to(logits[:, None], (3, N)), axis=0),
    ):
        assert draws.shape == (N,) and draws.dtype == mx.uint32
        assert abs(np.bincount(np.array(draws), minlength=3) / N - p).max() < 0.02


def test_permutation():
    assert sorted(mx.random.permutation(50).tolist()) == list(range(50))
    x = mx.arange(12).reshape(4, 3)
    rows = np.array(mx.random.permutation(x))
    assert sorted(rows[:, 0].tolist()) == [0, 3, 6, 9] and (rows[:, 1] == rows[:, 0] + 1).all()


def test_multivariate_normal():
    mean, cov = np.array([1.0, -2.0]), np.array([[2.0, 0.5], [0.5, 1.0]])
    x = mx.random.multivariate_normal(mx.array(mean, mx.float32), mx.array(cov, mx.float32), (N,))
    assert x.shape == (N, 2)
    assert abs(np.array(x).mean(0) - mean).max() < 0.05 and abs(np.cov(np.array(x).T) - cov).max() < 0.1


def test_vmap_over_keys():
    keys = mx.random.split(key(), 4)
    x = mx.vmap(lambda k: mx.random.normal((3,), key=k))(keys)
    expected = np.stack([np.array(mx.random.normal((3,), key=k)) for k in keys])
    assert_close(x, expected)


def test_truncated_normal_of_arrays():
    x = np.array(mx.random.truncated_normal(mx.array([-1.0, 2.0]), mx.array([0.0, 3.0]), (1000, 2)))
    assert (x.min(0) >= [-1, 2]).all() and (x.max(0) <= [0, 3]).all()


MISTAKES = [
    lambda: mx.random.uniform(shape=(2,), dtype=mx.int32),
    lambda: mx.random.uniform(shape=(-1,)),
    lambda: mx.random.normal(dtype=mx.int32),
    lambda: mx.random.uniform(key=mx.array([1, 2])),
    lambda: mx.random.uniform(key=mx.array([1], mx.uint32)),
    lambda: mx.random.split(mx.array([1, 2])),
    lambda: mx.random.randint(0, 1, dtype=mx.float32),
    lambda: mx.random.randint(mx.array([0, 1]), mx.array([5, 6])),
    lambda: mx.random.bernoulli(mx.array([1, 2]), shape=(3,)),
    lambda: mx.random.categorical(mx.zeros((2, 5)), shape=(3,), num_samples=2),
    lambda: mx.random.categorical(mx.zeros((2, 5)), axis=5),
    lambda: mx.random.permutation(mx.arange(3), axis=4),
    lambda: mx.random.truncated_normal(mx.array([0.0, 1.0]), 1.0, (3,)),
    lambda: mx.random.multivariate_normal(mx.zeros(2), mx.eye(3)),
    lambda: mx.random.uniform(mx.array([0.0, 10.0]), mx.array([1.0, 20.0]), (3,)),
]


@pytest.mark.parametrize("number", range(len(MISTAKES)))
def test_mistakes(number):
    with pytest.raises((ValueError, IndexError)):
        MISTAKES[number]()


@pytest.mark.parametrize("seed", [-1, 1.5, 2**64, "a"])
def test_seeds_are_64_bit_integers(seed):
    for call in (mx.random.key, mx.random.seed):
        with pytest.raises((TypeError, ValueError, OverflowError)):
            call(seed)


def test_one_distribution_is_searched_whatever_its_axes():
    for shape, expected in (((200,), 93), ((1, 200), [66]), ((1, 1, 50), [[12]])):
        mx.random.seed(0)
        assert mx.random.categorical(mx.random.normal(shape)).tolist() == expected
