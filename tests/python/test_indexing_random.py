"""Indexing by drawn indices, with NumPy as the oracle."""

import numpy as np
import pytest
from support import assert_equal

import weft.core as mx

hypothesis = pytest.importorskip("hypothesis")
st = hypothesis.strategies
settings = hypothesis.settings(max_examples=300, deadline=None, derandomize=True, database=None)

SHAPES = st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple)
NUMBERS = st.one_of(st.none(), st.integers(-8, 8))
STEPS = st.one_of(st.none(), st.integers(-4, -1), st.integers(1, 4))


@st.composite
def indices(draw, shape, writes=False, repeats=True):
    """An index of an array of that shape: a part for each of its first axes, new axes and an ellipsis between them.

    An index that is written to has no new axes, and no integers beside arrays: MLX wants other shapes of updates there.
    """
    kinds = ["integer", "slice", "slice", "array"]
    if writes:
        kinds = draw(st.sampled_from([["integer", "slice"], ["slice", "array"]]))
    common = draw(st.sampled_from([(2,), (3,), (2, 2), (1,)]))
    parts, seen_array = [], False
    for length in shape[: draw(st.integers(0, len(shape)))]:
        kind = draw(st.sampled_from(kinds))
        if kind == "integer":
            parts.append(draw(st.integers(-length, length - 1)))
        elif kind == "slice":
            parts.append(slice(draw(NUMBERS), draw(NUMBERS), draw(STEPS)))
        else:
            size = int(np.prod(common))
            if repeats or seen_array:
                chosen = draw(st.lists(st.integers(-length, length - 1), min_size=size, max_size=size))
                parts.append(np.array(chosen).reshape(common))
            else:  # different rows, so that what is written last does not matter
                chosen = draw(st.permutations(range(length)))
                common = (len(chosen),)
                parts.append(np.array(chosen))
            seen_array = True
    for _ in range(0 if writes else draw(st.integers(0, 2))):
        parts.insert(draw(st.integers(0, len(parts))), None)
    if draw(st.booleans()):
        parts.append(...)
    if len(parts) == 1 and draw(st.booleans()):
        return parts[0]
    return tuple(parts)


def on_device(index):
    if isinstance(index, tuple):
        return tuple(on_device(part) for part in index)
    return mx.array(index) if isinstance(index, np.ndarray) else index


def numbers(shape):
    return np.arange(np.prod(shape), dtype=np.int32).reshape(shape)


@settings
@hypothesis.given(st.data())
def test_get(data):
    a = numbers(data.draw(SHAPES))
    index = data.draw(indices(a.shape))
    assert_equal(mx.array(a)[on_device(index)], a[index], "int32")


@settings
@hypothesis.given(st.data())
def test_get_of_a_view(data):
    a, x = (v.T[::-1] for v in (numbers((4, 3, 5)), mx.array(numbers((4, 3, 5)))))
    index = data.draw(indices(a.shape))
    assert_equal(x[on_device(index)], a[index], "int32")


@settings
@hypothesis.given(st.data())
def test_set(data):
    a = numbers(data.draw(SHAPES))
    index = data.draw(indices(a.shape, writes=True, repeats=False))
    region = a[index].shape
    hypothesis.assume(a[index].size > 0)
    given = region[data.draw(st.integers(0, len(region))) :]
    given = tuple(1 if data.draw(st.integers(0, 3)) == 0 else n for n in given)
    update = -1 - numbers(given)
    x = mx.array(a)
    x[on_device(index)] = mx.array(update)
    a[index] = update
    assert_equal(x, a, "int32")


@settings
@hypothesis.given(st.data(), st.sampled_from(["add", "subtract", "multiply", "maximum", "minimum"]))
def test_at(data, operation):
    a = numbers(data.draw(SHAPES))
    index = data.draw(indices(a.shape, writes=True))
    hypothesis.assume(a[index].size > 0)
    update = 3 - numbers(a[index].shape) % 7
    result = getattr(mx.array(a).at[on_device(index)], operation)(mx.array(update))
    getattr(np, operation).at(a, index, update)
    assert_equal(result, a, "int32")


@settings
@hypothesis.given(st.data())
def test_masks(data):
    a = numbers(data.draw(SHAPES))
    shape = a.shape[: data.draw(st.integers(1, a.ndim))]
    size = int(np.prod(shape))
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=size, max_size=size))).reshape(shape)
    x = mx.array(a)
    x[mx.array(mask)] = -1
    a[mask] = -1
    assert_equal(x, a, "int32")
