"""Indexing: forms that are written down, with NumPy's results, and mistakes. test_indexing_random.py draws others."""

import numpy as np
import pytest
from support import ALL, IS_MLX, assert_close, assert_equal, device_array, draw, host

import weft.core as mx

I, J, K = np.array([0, 1]), np.array([2, -1]), np.array([[0], [1]])
FORMS = {
    "integer": 0,
    "negative integer": -1,
    "integers": (1, 2),
    "all integers": (1, 2, -3),
    "nothing": (),
    "ellipsis": ...,
    "ellipsis first": (..., 1),
    "ellipsis last": (1, ...),
    "ellipsis between": (0, ..., 1),
    "ellipsis of no axes": (0, 1, 2, ...),
    "new axis": None,
    "new axes": (None, slice(None), None, ..., None),
    "slice": slice(1, 3),
    "step": slice(None, None, 2),
    "reversed": slice(None, None, -1),
    "reversed in steps": (slice(None), slice(None, None, -2), slice(-1, 0, -3)),
    "beyond the ends": (slice(-100, 100), slice(1, 100), slice(100, 200)),
    "empty": slice(2, 1),
    "slice and integer": (slice(1, None), 2, slice(None, 2)),
    "array": I,
    "negative array": J,
    "unsigned array": I.astype(np.uint8),
    "matrix": K,
    "arrays": (I, J),
    "arrays that broadcast": (K, J),
    "array and integer": (I, 1),
    "integer and array": (1, slice(None), J),
    "array and slice": (I, slice(1, 3)),
    "slice and array": (slice(None), J),
    "arrays apart": (I, slice(None), J),
    "arrays beside each other": (slice(None), I, J),
    "array and new axis": (I, None, J),
    "array and ellipsis": (..., J),
    "array and reversed": (slice(None, None, -1), J, slice(None, None, -2)),
    "three arrays": (I, J, np.array([3, 0])),
    "no indices": np.array([], np.int32),
}


SET = [name for name in FORMS if name not in ("new axis", "integer and array")]
"""Forms of assignments. MLX wants another shape of what is assigned to the rest: that without the new axis, and that
with the integer taken for itself, not as an array."""


def on_device(index):
    """The same index with Weft's arrays."""
    if isinstance(index, tuple):
        return tuple(on_device(part) for part in index)
    return mx.array(index) if isinstance(index, np.ndarray) else index


def values(dtype="int32"):
    return np.arange(60).reshape(3, 4, 5).astype(dtype)


@pytest.mark.parametrize("name", FORMS)
def test_get(name):
    for dtype in ("int32", "float16"):
        a = values(dtype)
        assert_equal(mx.array(a)[on_device(FORMS[name])], a[FORMS[name]], dtype)
    assert_equal(mx.array(a.T)[on_device(FORMS["slice"])], a.T[FORMS["slice"]])


@pytest.mark.parametrize("name", FORMS)
def test_get_of_views(name):
    a = np.arange(240).reshape(5, 4, 12)[:, :, ::2][:, :, :3]
    x = mx.array(np.ascontiguousarray(np.arange(240).reshape(5, 4, 12)))[:, :, ::2][:, :, :3]
    assert_equal(x.T[on_device(FORMS[name])], a.T[FORMS[name]])


@pytest.mark.parametrize("name", SET)
@pytest.mark.parametrize("what", ["number", "array", "row"])
def test_set(name, what):
    a = values("float32")
    x = mx.array(a)
    before = x + 0
    index, region = FORMS[name], a[FORMS[name]].shape
    if what == "number":
        new = 7
    elif what == "array":
        new = -np.arange(np.prod(region, dtype=int)).reshape(region).astype(np.float32)
    else:
        new = -np.arange(region[-1] if region else 1, dtype=np.float32).reshape(region[-1:])
    x[on_device(index)] = mx.array(new) if isinstance(new, np.ndarray) else new
    old = a.copy()
    a[index] = new
    assert_equal(x, a, "float32")
    assert_equal(before, old)


AT = {
    "add": np.add.at,
    "subtract": np.subtract.at,
    "multiply": np.multiply.at,
    "divide": np.divide.at,
    "maximum": np.maximum.at,
    "minimum": np.minimum.at,
}


@pytest.mark.parametrize("name", SET)
@pytest.mark.parametrize("operation", AT)
def test_at(operation, name):
    a = values("float32")
    x = mx.array(a)
    index, region = FORMS[name], a[FORMS[name]].shape
    update = (2.0 ** (np.arange(np.prod(region, dtype=int)) % 5)).reshape(region).astype(np.float32)
    result = getattr(x.at[on_device(index)], operation)(mx.array(update))
    assert_equal(x, a)
    AT[operation](a, index, update)
    assert_close(result, a)


@pytest.mark.parametrize("operation", AT)
def test_at_takes_every_index_of_several_equal_ones(operation):
    a = np.array([1.0, 5.0, 3.0], np.float32)
    index, update = np.array([0, 0, 2, 0]), np.array([2.0, 4.0, 2.0, 2.0], np.float32)
    result = getattr(mx.array(a).at[mx.array(index)], operation)(mx.array(update))
    AT[operation](a, index, update)
    assert_close(result, a)


def test_at_keeps_the_dtype_and_takes_numbers():
    x = mx.array([1, 2, 3])
    assert_equal(x.at[1:].add(1.5), [1, 3, 4], "int32")
    assert_equal(x.at[0].multiply(5), [5, 2, 3], "int32")
    with pytest.raises(ValueError):
        x.at.add(1)


@pytest.mark.parametrize("dtype", ALL)
def test_set_casts_to_the_dtype(dtype):
    a = draw(dtype, (3, 4))
    x = device_array(a, dtype)
    x[1] = 1
    x[:, 0] = mx.array([0, 1, 1])
    x[mx.array([2]), mx.array([3])] = mx.array([True])
    a[1], a[:, 0], a[2, 3] = 1, [0, 1, 1], 1
    assert_equal(x, a, dtype)


def test_set_with_a_mask():
    a = values("float32")
    for mask, new in (
        (a > 20, 0.0),
        (a[:, :, 0] > 20, -1.0),
        (np.array([True, False, True]), 2.0),
        (np.zeros(a.shape, bool), 3.0),
        (np.ones(a.shape, bool), 4.0),
    ):
        x, b = mx.array(a), a.copy()
        x[mx.array(mask)] = new
        b[mask] = new
        assert_equal(x, b)
    x, mask = mx.array(a), a > 40
    x[mx.array(mask)] = -mx.arange(19, dtype=mx.float32)
    a[mask] = -np.arange(19)
    assert_equal(x, a)


def test_set_with_a_mask_and_rows():
    a, mask = values("float32"), np.array([True, False, True])
    rows = np.arange(40, dtype=np.float32).reshape(2, 4, 5)
    x = mx.array(a)
    x[mx.array(mask)] = mx.array(rows)
    a[mask] = rows
    assert_equal(x, a)


def test_set_keeps_other_names_of_the_object():
    x = mx.zeros((3,))
    y, z = x, mx.array(x)
    x[0] = 1
    assert y.tolist() == [1, 0, 0] and z.tolist() == [0, 0, 0]


def test_set_of_scalars():
    for index in ((), ..., None):
        x = mx.array(1)
        x[index] = 5
        assert_equal(x, 5)


def test_set_with_numpy():
    x = mx.zeros((2, 3))
    x[0] = np.array([1, 2, 3], np.float32)
    assert_equal(x, [[1, 2, 3], [0, 0, 0]])


def test_leading_axes_of_values_that_are_one_long_go():
    x = mx.array([1, 2, 3])
    x[0] = mx.array([[[7]]])
    x[1:] = np.array([[8, 9]], np.int32)
    assert_equal(x, [7, 8, 9])
    assert_equal(mx.zeros((1, 2)).at[0].add(mx.ones((1, 1, 2))), [[1, 1]])
    slope = mx.grad(lambda v: (x.at[1:].multiply(v) ** 2).sum())(mx.array([[1.0, 2.0]]).astype(mx.float32))
    assert slope.shape == (1, 2)


def test_set_with_a_mask_of_no_axes():
    for mask in (mx.array(True), mx.array(False)):
        x = mx.array([1, 2, 3])
        x[mask] = 5
        assert_equal(x, [5, 5, 5] if mask.item() else [1, 2, 3])


def test_lists_of_lists_of_indices():
    a = values()
    assert_equal(mx.array(a)[[0, 2]], a[[0, 2]])
    x = mx.array(a)
    x[[0, 2]] = 1
    a[[0, 2]] = 1
    assert_equal(x, a)


def test_rows_that_overlap_are_read_before_they_are_written():
    a = np.arange(6)
    x = mx.array(a)
    x[1:] = x[:-1]
    assert x.tolist() == [0, 0, 1, 2, 3, 4]


MISTAKES = [
    (lambda x: x[0, 0, 0, 0], ValueError),
    (lambda x: x[..., ...], ValueError),
    (lambda x: x[1.0], ValueError),
    (lambda x: x["a"], ValueError),
    (lambda x: x[{}], ValueError),
    (lambda x: x[mx.array([0.5])], ValueError),
    (lambda x: mx.array(1)[0], ValueError),
    (lambda x: x.__setitem__((0, 0, 0, 0), 1), ValueError),
    (lambda x: x.__setitem__(slice(None), mx.zeros((3, 7))), ValueError),
    (lambda x: x.__setitem__(0, "a"), ValueError),
    (lambda x: x.__setitem__(mx.array([True, False]), 0), ValueError),
]


@pytest.mark.parametrize("number", range(len(MISTAKES)))
def test_mistakes(number):
    call, error = MISTAKES[number]
    with pytest.raises((error, IndexError)):
        call(mx.array(values()))


def test_reading_by_a_mask_is_refused_or_as_numpys():
    """MLX refuses it, since the size depends on values."""
    x = mx.array(values())
    try:
        chosen = x[x > 3]
    except ValueError:
        return
    assert_equal(chosen, values()[values() > 3])


def test_a_step_of_zero_is_refused():
    if IS_MLX:
        pytest.skip("the process dies in MLX")
    with pytest.raises(ValueError):
        mx.arange(3)[::0]


def test_indices_out_of_range_are_clamped():
    if IS_MLX:
        pytest.skip("MLX reads memory that is not the array's (docs/differences.md, index-out-of-range)")
    assert mx.arange(3)[mx.array([5, 0, -9])].tolist() == [2, 0, 0]


TAKES = [
    (lambda x: mx.take(x, mx.array(I), axis=1), lambda a: np.take(a, I, axis=1)),
    (lambda x: mx.take(x, mx.array(K), axis=-1), lambda a: np.take(a, K, axis=-1)),
    (lambda x: mx.take(x, mx.array(J)), lambda a: np.take(a, J)),
    (lambda x: mx.take(x, 1, axis=0), lambda a: np.take(a, 1, axis=0)),
    (
        lambda x: mx.take_along_axis(x, mx.argsort(-x, axis=1), axis=1),
        lambda a: np.take_along_axis(a, np.argsort(-a, axis=1), axis=1),
    ),
    (lambda x: mx.take_along_axis(x, mx.array([3, 1]), axis=None), lambda a: a.ravel()[[3, 1]]),
]


@pytest.mark.parametrize("number", range(len(TAKES)))
def test_take(number):
    mine, numpy = TAKES[number]
    assert_equal(mine(mx.array(values())), numpy(values()))


def test_put_along_axis():
    a, index = values(), np.array([[[1]], [[0]], [[3]]])
    result = mx.put_along_axis(mx.array(a), mx.array(np.broadcast_to(index, (3, 1, 5))), mx.array(-1), axis=1)
    np.put_along_axis(a, np.broadcast_to(index, (3, 1, 5)), -1, axis=1)
    assert_equal(result, a)


def test_slice_and_slice_update():
    a = values("float32")
    x = mx.array(a)
    part = mx.slice(x, mx.array([1, 2]), axes=(0, 1), slice_size=(2, 2, 5))
    assert_equal(part, a[1:3, 2:4])
    new = mx.slice_update(x, mx.zeros((2, 2, 5)), mx.array([1, 2]), axes=(0, 1))
    a[1:3, 2:4] = 0
    assert_equal(new, a)


def test_gradients_of_indexing():
    a = values("float32")
    index = (mx.array([0, 0, 2]), slice(None, None, -1))

    def loss(x):
        return (x[index] * 2).sum()

    expected = np.zeros_like(a)
    np.add.at(expected, (np.array([0, 0, 2]), slice(None, None, -1)), 2)
    assert_equal(mx.grad(loss)(mx.array(a)), expected)

    def loss_of_set(x, y):
        x[1, ::2] = y
        return (x * x).sum()

    gx, gy = mx.grad(loss_of_set, argnums=(0, 1))(mx.array(a), mx.ones((2, 5)))
    expected = 2 * a
    expected[1, ::2] = 0
    assert_equal(gx, expected)
    assert_equal(gy, np.full((2, 5), 2.0))
    assert host(mx.array(a)).shape == a.shape
