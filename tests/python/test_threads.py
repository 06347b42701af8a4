"""Several threads at once, with the GIL and on a CPython without one."""

import gc
import sys
import sysconfig
import threading

import numpy as np
import pytest

import weft.core as mx
from weft import nn, optimizers as optim

THREADS = 8


def in_threads(work):
    """Runs work(k) in THREADS threads that begin together; returns the results, and raises the first exception."""
    results, failures = [None] * THREADS, []
    begin = threading.Barrier(THREADS)

    def run(k):
        try:
            begin.wait()
            results[k] = work(k)
        except BaseException as failure:  # pylint: disable=broad-except
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return results


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this CPython has a GIL")
def test_the_module_leaves_the_gil_disabled():
    assert not sys._is_gil_enabled()


def test_eager_operations():
    def work(k):
        x = mx.arange(64, dtype=mx.float32) + k
        for _ in range(50):
            x = mx.sin(x) * 2 + x[::-1] - mx.mean(x)
        return np.array(x)

    expected = [work(k) for k in range(THREADS)]
    for got, want in zip(in_threads(work), expected):
        np.testing.assert_array_equal(got, want)


def test_arrays_that_threads_share():
    x = mx.arange(1000, dtype=mx.float32)
    shared = mx.exp(-x / 100) + x  # not yet computed
    total = in_threads(lambda k: (mx.sum(shared) + k).item())
    assert total == [pytest.approx(total[0] + k, rel=1e-6) for k in range(THREADS)]


def test_one_compiled_function():
    scale = mx.array(3.0)

    @mx.compile
    def f(x, y):
        return mx.tanh(x @ y) * scale, mx.sum(x)

    def work(k):
        x, y = mx.full((4 + k % 3, 8), k / 10), mx.ones((8, 5))
        out = [f(x, y) for _ in range(30)]
        return [(np.array(a), b.item()) for a, b in out]

    for k, got in enumerate(in_threads(work)):
        for a, b in got:
            np.testing.assert_allclose(a, np.full((4 + k % 3, 5), 3 * np.tanh(0.8 * k)), rtol=1e-5)
            assert b == pytest.approx((4 + k % 3) * 8 * k / 10)


def test_gradients_of_a_shared_model():
    model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
    mx.eval(model.parameters())

    def gradient(k):
        step = nn.value_and_grad(model, lambda x: mx.mean(model(x) ** 2))
        x = mx.full((3, 6), 0.1 * k)
        for _ in range(10):
            value, grads = step(x)
            mx.eval(value, grads)
        return value.item(), np.array(grads["layers"][0]["weight"])

    # value_and_grad puts tracers into the model while it runs, so that threads take turns.
    turn = threading.Lock()

    def work(k):
        with turn:
            return gradient(k)

    expected = [gradient(k) for k in range(THREADS)]
    for (value, grad), (wanted, wanted_grad) in zip(in_threads(work), expected):
        assert value == wanted
        np.testing.assert_array_equal(grad, wanted_grad)


def test_a_model_for_each_thread():
    def work(k):
        model = nn.Linear(4, 4)
        model.weight = mx.eye(4) * (k + 1)
        optimizer = optim.SGD(learning_rate=0.1)
        state = [model.state, optimizer.state]
        loss_and_grad = nn.value_and_grad(model, lambda x: mx.sum(model(x) ** 2))

        def step(x):
            loss, grads = loss_and_grad(x)
            optimizer.update(model, grads)
            return loss

        step = mx.compile(step, inputs=state, outputs=state)
        x = mx.ones((2, 4))
        model.bias = mx.zeros(4)
        losses = [step(x).item() for _ in range(10)]
        return losses

    expected = [work(k) for k in range(THREADS)]
    assert in_threads(work) == expected


def test_items_of_one_array_are_set_in_turn():
    x = mx.zeros((THREADS, 100))
    turn = threading.Lock()

    def work(k):
        for n in range(100):
            with turn:
                x[k, n] = k + 1

    in_threads(work)
    np.testing.assert_array_equal(np.array(x), np.repeat(np.arange(1, THREADS + 1)[:, None], 100, 1))


def test_objects_come_and_go():
    def work(k):
        for n in range(200):
            tree = {"a": [mx.full((3,), n), (mx.zeros(2), k)], "b": np.ones(4) * n}
            mx.eval(mx.array(tree["b"]) + n, tree["a"][0])
            if n % 50 == 0:
                gc.collect()
        return True

    assert all(in_threads(work))
