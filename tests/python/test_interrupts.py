"""Ctrl-C while an evaluation runs."""

import os
import signal
import threading
import time

import numpy as np
import pytest
import weft.core as mx

SIZE = 1024


def product(x, steps):
    """A product of many equal matrices whose powers are themselves: a step of the program each."""
    y = x
    for _ in range(steps):
        y = y @ x
    return y


def long_work(x, seconds):
    begun = time.perf_counter()
    mx.eval(product(x, 20))
    return product(x, int(20 * seconds / (time.perf_counter() - begun)))


def send(number, after):
    timer = threading.Timer(after, os.kill, (os.getpid(), number))
    timer.start()
    return timer


def averaging():
    x = mx.full((SIZE, SIZE), 1 / SIZE)
    mx.eval(product(x, 2))
    return x


def test_ctrl_c_ends_an_evaluation_between_its_steps():
    work = long_work(averaging(), 20)
    timer = send(signal.SIGINT, 0.3)
    begun = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        mx.eval(work)
    assert time.perf_counter() - begun < 10
    timer.join()


def test_what_a_handler_raises_ends_it_and_it_can_begin_again():
    def handler(*_):
        raise TimeoutError("enough")

    work = long_work(averaging(), 4)
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        timer = send(signal.SIGUSR1, 0.1)
        with pytest.raises(TimeoutError, match="enough"):
            mx.eval(work)
        timer.join()
    finally:
        signal.signal(signal.SIGUSR1, before)
    np.testing.assert_allclose(np.array(work), 1 / SIZE, rtol=1e-3)


def test_ctrl_c_ends_waiting_for_a_stream_whose_work_goes_on():
    x = averaging()
    work = long_work(x, 5)
    mx.async_eval(work)
    timer = send(signal.SIGINT, 0.3)
    begun = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        mx.synchronize()
    assert time.perf_counter() - begun < 2
    timer.join()
    later = x * 2  # behind it on the stream
    timer = send(signal.SIGINT, 0.3)
    with pytest.raises(KeyboardInterrupt):
        mx.eval(later)
    timer.join()
    mx.synchronize()
    np.testing.assert_allclose(np.array(work), 1 / SIZE, rtol=1e-3)
    np.testing.assert_allclose(np.array(later), 2 / SIZE, rtol=1e-6)
