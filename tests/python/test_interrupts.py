"""Ctrl-C while an evaluation runs."""

import os
import signal
import threading
import time

import numpy as np
import pytest
import weft.core as mx


def long_work(x, steps):
    for _ in range(steps):
        x = (x @ x) * (1 / 512)
    return x


def test_ctrl_c_ends_an_evaluation_between_its_steps_and_it_can_begin_again():
    x = mx.ones((512, 512))
    mx.eval(x, long_work(x, 2))
    begun = time.perf_counter()
    mx.eval(long_work(x, 50))
    steps = int(50 * 20 / (time.perf_counter() - begun))  # of about 20 seconds
    work = long_work(x, steps)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    begun = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        mx.eval(work)
    assert time.perf_counter() - begun < 10
    timer.join()
    del work
    again = long_work(x, 3)
    np.testing.assert_allclose(np.array(again), 1, rtol=1e-5)


def test_what_is_interrupted_stays_pending():
    x = mx.full((512, 512), 1 / 512)
    y = long_work(x * 512, 400)
    mx.eval(x)
    raised = threading.Event()

    def handler(*_):
        raised.set()
        raise TimeoutError("enough")

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGUSR1))
        timer.start()
        try:
            mx.eval(y)
        except TimeoutError:  # on a fast machine it is done before
            pass
        timer.join()
    except TimeoutError:
        pass
    finally:
        signal.signal(signal.SIGUSR1, before)
    np.testing.assert_allclose(np.array(y), 1, rtol=1e-4)
