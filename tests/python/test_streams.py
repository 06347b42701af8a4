"""Devices, streams, threads, evaluation and memory."""

import threading

import numpy as np
import pytest
from support import IS_MLX, assert_equal

import weft.core as mx


def test_devices(device):
    assert mx.default_device() == device
    assert mx.Device(mx.cpu) == mx.Device(mx.cpu, 0) and mx.Device(mx.cpu) == mx.cpu
    assert mx.Device(mx.cpu).type == mx.cpu and mx.cpu != mx.gpu
    assert mx.is_available(mx.cpu) and mx.device_count(mx.cpu) >= 1
    assert isinstance(mx.is_available(mx.gpu), bool) and isinstance(mx.device_info(mx.cpu), dict)
    assert mx.metal.is_available() is False and isinstance(mx.cuda.is_available(), bool)


def test_a_device_that_is_not_there():
    if mx.is_available(mx.gpu):
        pytest.skip("there is a GPU")
    for call in (mx.default_stream, mx.new_stream, mx.set_default_device):
        with pytest.raises(ValueError):
            call(mx.gpu)


def test_default_streams():
    s = mx.default_stream(mx.cpu)
    assert s == mx.default_stream(mx.cpu) and s.device == mx.Device(mx.cpu)
    other = mx.new_stream(mx.cpu)
    assert other != s and other.device == s.device
    mx.set_default_stream(other)
    assert mx.default_stream(mx.cpu) == other
    mx.set_default_stream(s)
    assert mx.default_stream(mx.cpu) == s


def test_stream_contexts():
    s, other = mx.default_stream(mx.cpu), mx.new_stream(mx.cpu)
    before = mx.default_device()
    with mx.stream(other):
        assert mx.default_stream(mx.cpu) == other and mx.default_device() == mx.cpu
        with mx.stream(s):
            assert mx.default_stream(mx.cpu) == s
        assert mx.default_stream(mx.cpu) == other
        x = mx.ones(3) + 1
    assert mx.default_stream(mx.cpu) == s and mx.default_device() == before
    assert_equal(x, [2, 2, 2])
    with mx.stream(mx.cpu):
        assert mx.default_device() == mx.cpu
    with pytest.raises(KeyError):
        with mx.stream(other):
            raise KeyError
    assert mx.default_stream(mx.cpu) == s


@pytest.mark.parametrize(
    "make", [lambda: mx.cpu, lambda: mx.Device(mx.cpu), lambda: mx.new_stream(mx.cpu), lambda: None]
)
def test_streams_of_operations(make):
    assert_equal(mx.add(mx.ones(2), 1, stream=make()), [2, 2])


@pytest.mark.parametrize("bad", ["cpu", 5, {}])
def test_what_is_no_stream(bad):
    with pytest.raises(TypeError):
        mx.add(1, 2, stream=bad)
    with pytest.raises(TypeError):
        mx.stream(bad)


def test_results_pass_between_streams():
    a, b = mx.new_stream(mx.cpu), mx.new_stream(mx.cpu)
    x = mx.ones((64, 64))
    for _ in range(20):
        x = mx.add(x, 1, stream=a)
        x = mx.multiply(x, 0.5, stream=b)
    expected = 1.0
    for _ in range(20):
        expected = (expected + 1) * 0.5
    np.testing.assert_allclose(np.array(x), expected, rtol=1e-5)


def test_synchronize():
    s = mx.new_stream(mx.cpu)
    x = mx.add(mx.ones(4), 1, stream=s)
    mx.async_eval(x)
    mx.synchronize(s)
    mx.synchronize()
    assert_equal(x, [2] * 4)


def test_eval_takes_trees():
    x, y = mx.ones(2) + 1, mx.ones(2) * 3
    mx.eval({"a": [x, (y,)]}, x, [], None, "text")
    mx.async_eval([x], y)
    assert_equal(x + y, [5, 5])


def test_threads():
    results = {}

    def work(i):
        x = mx.full((32, 32), float(i))
        for _ in range(10):
            x = x @ mx.eye(32) + 1
        results[i] = x.sum().item()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == {i: 1024.0 * (i + 10) for i in range(4)}


def test_arrays_made_in_another_thread():
    made = []
    thread = threading.Thread(target=lambda: made.append(mx.arange(4) * 2) or mx.eval(made[0]))
    thread.start()
    thread.join()
    assert_equal(made[0] + 1, [1, 3, 5, 7])


def test_default_streams_belong_to_threads():
    seen = {}
    s = mx.new_stream(mx.cpu)
    with mx.stream(s):
        thread = threading.Thread(target=lambda: seen.update(stream=mx.default_stream(mx.cpu)))
        thread.start()
        thread.join()
    assert seen["stream"] != s


def test_streams_in_other_threads():
    """A stream of new_thread_unsafe_stream runs in any thread; so does every stream here (docs/differences.md,
    streams-any-thread)."""
    errors, values = [], []

    def work(s):
        try:
            values.append(mx.add(mx.ones(2), 1, stream=s).tolist())
        except RuntimeError as error:
            errors.append(error)

    made = [mx.new_thread_unsafe_stream(mx.cpu), mx.new_thread_local_stream(mx.cpu)]
    if not IS_MLX:
        made.append(mx.new_stream(mx.cpu))
    for s in made:
        thread = threading.Thread(target=work, args=(s,))
        thread.start()
        thread.join()
    assert not errors and values == [[2, 2]] * len(made)


def test_random_state_belongs_to_threads():
    mx.random.seed(5)
    first = mx.random.uniform(shape=(2,)).tolist()
    mx.random.seed(5)
    thread = threading.Thread(target=lambda: mx.random.seed(9))
    thread.start()
    thread.join()
    assert mx.random.uniform(shape=(2,)).tolist() == first


def test_python_runs_while_arrays_are_computed():
    done = threading.Event()
    thread = threading.Thread(target=done.set)
    x = mx.random.normal((256, 256))
    thread.start()
    for _ in range(4):
        x = mx.tanh(x @ x)
    mx.eval(x)
    assert done.wait(10)
    thread.join()


def test_memory():
    mx.reset_peak_memory()
    before = mx.get_active_memory()
    x = mx.zeros((1024, 1024)) + 1
    mx.eval(x)
    mx.synchronize()
    assert mx.get_active_memory() - before >= x.nbytes and mx.get_peak_memory() >= x.nbytes
    del x
    assert mx.get_active_memory() - before < 1024 * 1024
    mx.clear_cache()
    assert mx.get_cache_memory() == 0
    old = mx.set_cache_limit(1 << 20)
    assert mx.set_cache_limit(old) == 1 << 20
    limit = mx.set_memory_limit(1 << 40)
    assert mx.get_memory_limit() == 1 << 40 and mx.set_memory_limit(limit) == 1 << 40


def test_long_graphs():
    x = mx.array(0.0)
    for _ in range(5000):
        x = x + 1
    assert x.item() == 5000


def test_evaluation_is_lazy_and_repeats_nothing():
    x = mx.ones(2)
    y = x + 1
    z, w = y * 2, y * 3
    mx.eval(z)
    mx.eval(w)
    assert_equal(z + w, [10, 10])
